"""Loop programs made simple: expressions, and statements that nothing reaches.

Before:  for i in pl.loop.serial(0, 16):
             if i < 16:
                 A[i * 4 + 2 - i * 4] = 1.0
             if i > 20:
                 A[0] = 2.0
After:   for i in pl.loop.serial(0, 16):
             A[2] = 1.0

Loops without trips, branches that are never taken and blocks whose predicate never holds are gone; a branch that is
always taken is its arm; a scalar named for a constant or another name is that, and so is the variable of one trip.
Ranges come from loop bounds, names and the conditions around. A read whose value does not count (`B[i] * 0`) goes with
the expression that held it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tilewright.analysis.scalar_ranges import Facts, Range, narrowed, range_of, simplify_scalar, trip_range, truth
from tilewright.ir.buffers import BufferType, Extern
from tilewright.ir.dtypes import INDEX
from tilewright.ir.loop_level import ALWAYS, Attribute, ComputeBlock, Launch, Loop, LoopFunction, While
from tilewright.ir.loop_rewrite import LoopRewriter
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind, Const, Scalar, UnaryKind, Value, binary, dtype_of, substitute, unary
from tilewright.ir.types import Type


def simplify(function: LoopFunction) -> LoopFunction:
    """`function` with its expressions simple and nothing that is never reached; itself when that is so already.
    A second run changes nothing."""
    while True:
        simpler = _Simplifier(function).function(function)
        if simpler is function:
            return function
        function = simpler


class _Simplifier(LoopRewriter):
    def __init__(self, function: LoopFunction) -> None:
        super().__init__()
        self.ranges: dict[Value, Range] = {}
        self.order: dict[Value, int] = {}
        self.facts = Facts(self.ranges, self.order)
        for value in (*function.symbols, *function.params):
            self.define(value)
        for value in function.symbols:
            self.ranges[value] = (0, None)

    def define(self, value: Value) -> None:
        self.order[value] = len(self.order)
        super().define(value)
        new = self.get(value)
        if isinstance(new, Value):
            self.order[new] = self.order[value]

    def scalar(self, scalar: Scalar) -> Scalar:
        return simplify_scalar(substitute(scalar, self.get), self.facts)

    def type(self, type: Type) -> Type:
        if not isinstance(type, BufferType):
            return super().type(type)
        shape = tuple(extent if isinstance(extent, int) else self.scalar(extent) for extent in type.shape)
        return type if shape == type.shape else BufferType(shape, type.dtype, type.space)

    @contextmanager
    def knowing(self, ranges: dict[Value, Range]) -> Generator[None]:
        """The ranges hold while the context is open."""
        before = {value: self.ranges.get(value, (None, None)) for value in ranges}
        self.ranges.update(ranges)
        yield
        self.ranges.update(before)

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self.let(stmt)
            case Loop() | Launch():
                self.loop(stmt)
            case If():
                self.branch(self.outside(stmt))
            case ComputeBlock():
                self.compute(self.outside(stmt))
            case Attribute() if not isinstance(self.get(stmt.node), Value):
                self.emit(*self.block(stmt.body))  # what is known of a number adds nothing
            case While():
                made = self.outside(stmt)
                if truth(made.condition, self.facts) is not False:
                    self.emit(self.inside(made))
            case _:
                self.keep(stmt)

    def let(self, stmt: Let) -> None:
        assert not isinstance(stmt.value, Op)
        value = self.scalar(stmt.value)
        if isinstance(value, (int, Const, Value)):
            self.env[stmt.target] = value
            return
        self.define(stmt.target)
        if dtype_of(value) is INDEX:
            self.ranges[stmt.target] = range_of(value, self.facts)
        self.emit(stmt if value is stmt.value else stmt.replace(value=value))

    def loop(self, stmt: Loop | Launch) -> None:
        made = self.outside(stmt)
        if isinstance(made, Launch):
            # As many threads as another launch says are known there only.
            trips: Range = (0, None)
            if made.extent is not None:
                trips = trip_range(0, made.extent, 1, self.facts)
        else:
            if truth(self.scalar(_has_trips(made)), self.facts) is False or not made.body:
                return
            trips = trip_range(made.start, made.stop, made.step, self.facts)
        self.ranges[made.iv] = trips
        if trips[0] is not None and trips[0] == trips[1]:
            self.env[made.iv] = trips[0]
        inner = self.inside(made)
        if inner.body or isinstance(inner, Launch):
            self.emit(inner)

    def branch(self, stmt: If) -> None:
        known = truth(stmt.condition, self.facts)
        if known is not None:
            self.emit(*self.block(stmt.then if known else stmt.otherwise))
            return
        with self.knowing(narrowed(stmt.condition, self.facts)):
            then = self.block(stmt.then)
        otherwise = self.arm(stmt.otherwise, stmt.condition)
        if then or otherwise or _has_effect(stmt.condition):
            same = then is stmt.then and otherwise is stmt.otherwise
            self.emit(stmt if same else stmt.replace(then=then, otherwise=otherwise))

    def arm(self, block: Block, condition: Scalar) -> Block:
        """The block that runs where `condition` does not hold."""
        opposite = simplify_scalar(unary(UnaryKind.NOT, condition), self.facts)
        with self.knowing(narrowed(opposite, self.facts)):
            return self.block(block)

    def compute(self, stmt: ComputeBlock) -> None:
        known = truth(stmt.where, self.facts)
        if known is False:
            return
        if known and stmt.where != ALWAYS:
            stmt = stmt.replace(where=ALWAYS)
        with self.knowing(narrowed(stmt.where, self.facts)):
            self.emit(self.inside(stmt))


def _has_trips(loop: Loop) -> Scalar:
    """A condition that fails where the loop certainly has no trip."""
    if not isinstance(loop.step, int) or loop.step == 0:
        return ALWAYS
    return binary(BinaryKind.LT if loop.step > 0 else BinaryKind.GT, loop.start, loop.stop)


def _has_effect(scalar: Scalar) -> bool:
    """Whether evaluating the scalar may do something."""
    if isinstance(scalar, Extern) and not scalar.pure:
        return True
    return not isinstance(scalar, int) and any(_has_effect(child) for child in scalar.children())
