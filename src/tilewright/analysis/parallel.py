"""Parallel loops: whether their work items really are independent.

Items run in any order and at the same time, so no item may touch what another one writes: for each tensor that the
loop writes, the box of every write must be apart from every box that *another* trip writes or reads.

    for i in pl.parallel(0, n, 64):
        out = pl.store(t, [i, 0], out)           # rows i .. i + 64: apart for any two trips
        out = pl.store(t, [i // 2, 0], out)      # refused: trips 0 and 64 both write rows 32 .. 63

Most loops are decided at a glance: in some dimension the offset moves with the loop variable by at least the extent.
The rest is a question about sets of integers, which isl answers exactly: floor division and modulo by constants,
minima, and bounds included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.errors import VerifyError
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Block, For, Let, LoopKind
from tilewright.ir.op import Op
from tilewright.ir.scalar import Binary, BinaryKind, Scalar, Shape, Value, binary, linear_terms, substitute, values_in
from tilewright.ir.storage import Roots, roots_of, written_operand
from tilewright.ir.types import TensorType


def check_parallel(program: Program) -> None:
    """Raises `VerifyError`, at the write, unless the work items of every parallel loop are independent."""
    for function in program.functions:
        if any(isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL for stmt in function.walk()):
            _Checker(function, program).run()


@dataclass(frozen=True, slots=True)
class _Access:
    """A box of a tensor that one statement touches, within the loops around it (outermost first)."""

    stmt: Let
    root: Value
    writes: bool
    atomic: bool
    offsets: Shape
    extents: Shape
    loops: tuple[For, ...]


class _Checker:
    def __init__(self, function: Function, program: Program) -> None:
        self.function = function
        self.roots: Roots = roots_of(function, program)
        self.named: dict[Value, Scalar] = {}
        self.accesses: list[_Access] = []

    def run(self) -> None:
        self.collect(self.function.body, ())
        for loop in {a.loops[i]: None for a in self.accesses for i in range(len(a.loops))}:
            if loop.kind is LoopKind.PARALLEL:
                self.check(loop, [access for access in self.accesses if loop in access.loops])

    def collect(self, block: Block, loops: tuple[For, ...]) -> None:
        for stmt in block:
            if isinstance(stmt, Let) and isinstance(stmt.value, Op):
                self.accesses += self.touched(stmt, stmt.value, loops)
            elif isinstance(stmt, Let) and not isinstance(stmt.value, Op):
                self.named[stmt.target] = self.spelled(stmt.value)
            for inner in stmt.blocks():
                self.collect(inner, (*loops, stmt) if isinstance(stmt, For) else loops)

    def spelled(self, scalar: Scalar) -> Scalar:
        """The scalar in terms of loop variables, parameters, and what is read at run time."""
        return substitute(scalar, lambda value: self.named.get(value, value))

    def touched(self, stmt: Let, op: Op, loops: tuple[For, ...]) -> Iterator[_Access]:
        written = written_operand(op)
        for name, value in op.operand_items():
            if not isinstance(value.type, TensorType) or not loops:
                continue
            for access in op.accesses():
                if access.field == name:
                    root = self.roots.get(value, value)
                    atomic = value is written and bool(getattr(op, "atomic", 0))
                    offsets = tuple(map(self.spelled, access.offsets))
                    extents = tuple(map(self.spelled, access.extents))
                    yield _Access(stmt, root, access.writes, atomic, offsets, extents, loops)

    def check(self, loop: For, accesses: list[_Access]) -> None:
        made = _made_in(loop)
        for write in accesses:
            if not write.writes or write.root in made:
                continue
            for other in accesses:
                if other.root is write.root and not (write.atomic and other.atomic) and not _apart(loop, write, other):
                    raise _refusal(loop, write, other)


def _refusal(loop: For, write: _Access, other: _Access) -> VerifyError:
    verb = "writes" if other.writes else "reads"
    return VerifyError(
        f"work items of a parallel loop may meet in {write.root.name!r}",
        span=write.stmt.span,
        required=f"no trip touches what another trip of {loop.iv.name!r} writes",
        found=f"a write at {list(write.offsets)} of {list(write.extents)}, and another trip {verb} at "
        f"{list(other.offsets)} of {list(other.extents)}",
        help="write what only this trip owns, use pl.range, or add with atomic=1",
        notes=() if other.stmt is write.stmt else (f"the other is at {other.stmt.span}",),
    )


def _made_in(loop: For) -> set[Value]:
    """Tensors that come into being in a trip: each has its own."""
    made: set[Value] = set()
    todo: list[Block] = [loop.body]
    while todo:
        for stmt in todo.pop():
            made.update(stmt.defs())
            todo += stmt.blocks()
    return made


# --- at a glance --------------------------------------------------------------------------------------------------
def _apart(loop: For, write: _Access, other: _Access) -> bool:
    """Whether the two boxes never meet in two different trips of `loop`."""
    for axis in range(len(write.offsets)):
        if _strides_over(loop, write, other, axis):
            return True
    return _isl_apart(loop, write, other)


def _strides_over(loop: For, write: _Access, other: _Access, axis: int) -> bool:
    """Whether along `axis` both offsets are the same multiple of the loop variable and something that all trips share,
    and neither box is longer than the way from one trip to the next."""
    if not isinstance(loop.step, int):
        return False
    terms, start = linear_terms(write.offsets[axis])
    theirs, their_start = linear_terms(other.offsets[axis])
    if terms != theirs or start != their_start:
        return False
    pace = abs(terms.get(loop.iv, 0) * loop.step)
    shared = all(term is loop.iv or _same_in_all_trips(term, loop) for term in terms)
    lengths = [longest(write.extents[axis]), longest(other.extents[axis])]
    return pace > 0 and shared and all(length is not None and length <= pace for length in lengths)


def _same_in_all_trips(term: object, loop: For) -> bool:
    """Whether a term is made of what is defined outside the loop."""
    made = _made_in(loop) | {loop.iv, *loop.iter_args}
    return isinstance(term, Value) and term not in made and term not in _inner_variables(loop)


def _inner_variables(loop: For) -> set[Value]:
    found: set[Value] = set()
    todo: list[Block] = [loop.body]
    while todo:
        for stmt in todo.pop():
            found.update(stmt.block_args())
            todo += stmt.blocks()
    return found


def longest(extent: Scalar) -> int | None:
    """A constant that an extent never exceeds, if one is plain to see: itself, or one side of a minimum."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Binary) and extent.kind in (BinaryKind.MIN, BinaryKind.MAX):
        sides = [longest(extent.lhs), longest(extent.rhs)]
        known = [side for side in sides if side is not None]
        if extent.kind is BinaryKind.MIN and known:
            return min(known)
        return max(known) if len(known) == 2 else None
    return None


# --- sets of integers ---------------------------------------------------------------------------------------------
def _isl_apart(loop: For, write: _Access, other: _Access) -> bool:
    """Whether no element lies in the write of one trip and in the other access of a different trip. False where a box
    depends on what only the run shows."""
    import islpy

    isl: Any = islpy
    mine, theirs = _Names("a"), _Names("b")
    here = [*_trip(write.loops, mine), *_box(write, mine)]
    there = [*_trip(other.loops, theirs), *_box(other, theirs)]
    outer = write.loops[: write.loops.index(loop)]
    same = [f"{mine.of(around.iv)} = {theirs.of(around.iv)}" for around in outer]
    different = f"{mine.of(loop.iv)} != {theirs.of(loop.iv)}"
    if mine.unknown(write.loops) or theirs.unknown(other.loops):
        return False
    inside = [f"{n.of(around.iv)}" for n, loops in ((mine, write.loops), (theirs, other.loops)) for around in loops]
    counts = [f"{n.count(around)}" for n, loops in ((mine, write.loops), (theirs, other.loops)) for around in loops]
    elements = [f"x{axis}" for axis in range(len(write.offsets))]
    free = sorted({*mine.free, *theirs.free})
    text = f"[{', '.join(free)}] -> {{ [{', '.join((*inside, *counts, *elements))}] : "
    text += " and ".join((*here, *there, *same, different)) + " }"
    return bool(isl.Set(text).is_empty())


class _Names:
    """isl names: loop variables of one of the two trips, and parameters, which both share."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.inside: dict[Value, str] = {}
        self.free: dict[str, Value] = {}
        self.read: set[Value] = set()

    def of(self, value: Value) -> str:
        if value in self.inside:
            return self.inside[value]
        name = f"p{id(value)}"
        self.free[name] = value
        self.read.add(value)
        return name

    def enter(self, loop: For) -> None:
        self.inside[loop.iv] = f"{self.side}{len(self.inside)}"

    def count(self, loop: For) -> str:
        return f"t{self.inside[loop.iv]}"

    def unknown(self, loops: tuple[For, ...]) -> bool:
        """Whether something other than loop variables and what is defined outside all the loops is mentioned."""
        made = {value for loop in loops for value in (*_made_in(loop), *loop.iter_args)}
        return any(value in made for value in self.read)


def _trip(loops: tuple[For, ...], names: _Names) -> Iterator[str]:
    """The constraints that say which values the loop variables take: start, start + step, ... below stop."""
    for loop in loops:
        start, stop = _text(loop.start, names), _text(loop.stop, names)
        names.enter(loop)
        iv, count = names.of(loop.iv), names.count(loop)
        # A step that is not a constant has no place in a linear set; any value is then taken for possible.
        if isinstance(loop.step, int) and loop.step > 0:
            yield f"{iv} = {start} + {loop.step} {count} and {count} >= 0 and {iv} < {stop}"


def _box(access: _Access, names: _Names) -> Iterator[str]:
    for axis, (offset, extent) in enumerate(zip(access.offsets, access.extents, strict=True)):
        end = _text(binary(BinaryKind.ADD, offset, extent), names)
        yield f"{_text(offset, names)} <= x{axis} < {end}"


def _text(scalar: Scalar, names: _Names) -> str:
    """The scalar as isl reads it."""
    if isinstance(scalar, int):
        return str(scalar)
    if isinstance(scalar, Value):
        return names.of(scalar)
    if isinstance(scalar, Binary):
        lhs, rhs = _text(scalar.lhs, names), _text(scalar.rhs, names)
        match scalar.kind:
            case BinaryKind.ADD | BinaryKind.SUB:
                return f"({lhs} {scalar.kind.value} {rhs})"
            case BinaryKind.MUL if isinstance(scalar.rhs, int):
                return f"({rhs} * {lhs})"
            case BinaryKind.MUL if isinstance(scalar.lhs, int):
                return f"({lhs} * {rhs})"
            case BinaryKind.FLOORDIV if isinstance(scalar.rhs, int):
                return f"floor(({lhs})/{rhs})"
            case BinaryKind.MOD if isinstance(scalar.rhs, int):
                return f"(({lhs}) mod {rhs})"
            case BinaryKind.MIN | BinaryKind.MAX:
                return f"{scalar.kind.value}({lhs}, {rhs})"
            case _:
                pass
    # Anything else stands for itself, as a number that nothing is known of; a value in it tells whether trips share it.
    for value in values_in(scalar):
        names.read.add(value)
    name = f"e{abs(hash(scalar))}"
    names.free[name] = next(values_in(scalar))
    return name
