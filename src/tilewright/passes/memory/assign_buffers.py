"""Buffer assignment: every tile gets the buffer that it occupies; tiles that must or may share one do.

Before:  y: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(x)          # x dies here
After:   y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0"), pl.Mem.Vec] = pl.tile.exp(x)      # x is in vec0 too

Who shares: a view and what it views; a written tile and its next version; what a loop carries (initial value, carried
value, yielded value, result are one buffer); what the arms of a branch yield; and, where the op allows it, a result
and an operand that dies there. Where sharing is demanded but both are alive, a copy is inserted: carries are parallel
copies, so a swap stays a swap. Everything else stays apart; which buffers share *addresses* is `place_buffers`'s.
Refuses: a copy that the target has no edge for, above all from accumulator to accumulator (`AccumulatorError`)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from math import prod

from tilewright.analysis.footprint import footprint
from tilewright.analysis.liveness import Liveness, live_ranges, shareable
from tilewright.errors import AccumulatorError, Span
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Scope, Stmt, Yield, walk
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import MemRef, TileType, Type
from tilewright.ops.movement import Move
from tilewright.targets import Target


def assign_buffers(program: Program, target: Target) -> Program:
    """Requires every tile placed and laid out. Ensures a `MemRef` with bytes, without address, on every tile."""

    def transform(function: Function) -> Function:
        if function.kind is FunctionKind.ORCHESTRATION:
            return function
        function, plan = _with_copies(function, target)
        return _Apply(plan).function(function)

    return program.map(transform)


@dataclass(slots=True)
class BufferPlan:
    """The buffer of each tile, and the sharing that was demanded and is impossible without a copy."""

    buffers: dict[Value, MemRef] = field(default_factory=dict[Value, MemRef])
    copies: dict[Stmt, list[tuple[Scalar, int]]] = field(default_factory=dict[Stmt, list[tuple[Scalar, int]]])
    """statement -> values that it reads and that have to be copied first, with their positions in it: a value handed
    over twice may need a copy for one of them only"""


def plan_buffers(function: Function, target: Target) -> BufferPlan:
    """Decides which tiles share a buffer. Deterministic, and n log n in the number of tiles."""
    return _Planner(function, target).run()


class _Planner:
    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target
        self.live: Liveness = live_ranges(function)
        self.parent: dict[Value, Value] = {}
        self.ranges: dict[Value, list[tuple[int, int]]] = {}
        self.plan = BufferPlan()
        self.tiles: list[Value] = []
        self.parts: set[Value] = set()
        """tiles that are a part of their buffer, with its pitch"""

    def run(self) -> BufferPlan:
        statements = list(walk(self.function.body))
        for stmt in statements:
            for value in (*stmt.block_args(), *stmt.defs()):
                if isinstance(value.type, TileType):
                    self.tiles.append(value)
                    self.parent[value] = value
                    self.ranges[value] = list(self.live.ranges[value])
        lets = [s for s in statements if isinstance(s, Let) and isinstance(s.value, Op)]
        self.views(lets)
        for stmt in statements:
            if isinstance(stmt, For):
                for arg, result in zip(stmt.iter_args, stmt.results, strict=True):
                    self.union(arg, result)
        self.written(lets)
        for stmt in statements:
            self.joins(stmt)
        self.slots(self.function.body)
        self.inplace(lets)
        self.name()
        return self.plan

    # --- sharing ---
    def find(self, value: Value) -> Value:
        root = value
        while self.parent[root] is not root:
            root = self.parent[root]
        while self.parent[value] is not root:
            self.parent[value], value = root, self.parent[value]
        return root

    def union(self, a: Scalar, b: Scalar) -> None:
        """One buffer for both, whether or not they are alive together."""
        if a not in self.parent or b not in self.parent:
            return
        assert isinstance(a, Value) and isinstance(b, Value)
        one, two = self.find(a), self.find(b)
        if one is two:
            return
        if len(self.ranges[one]) < len(self.ranges[two]):
            one, two = two, one
        self.parent[two] = one
        for span in self.ranges.pop(two):
            _add(self.ranges[one], span)

    def may_share(self, a: Value, b: Value) -> bool:
        """Whether the buffers of `a` and `b` are never alive together."""
        one, two = self.find(a), self.find(b)
        if one is two:
            return True
        few, many = sorted((self.ranges[one], self.ranges[two]), key=len)
        return not any(_overlaps(many, span) for span in few)

    def demand(self, stmt: Stmt, given: Scalar, wanted: Value, position: int = 0) -> None:
        """`given`, which `stmt` reads at `position`, must lie in the buffer of `wanted`; else a copy is planned."""
        if wanted not in self.parent or not isinstance(given, Value):
            return
        if self.find(given) is self.find(wanted):
            return
        if given not in self.parts and self.may_share(given, wanted):
            self.union(given, wanted)
        else:
            self.plan.copies.setdefault(stmt, []).append((given, position))

    def views(self, lets: list[Let]) -> None:
        for stmt in lets:
            assert isinstance(stmt.value, Op)
            if stmt.value.view_of is not None and isinstance(stmt.target.type, TileType):
                source: Value = getattr(stmt.value, stmt.value.view_of)
                self.union(source, stmt.target)
                if source in self.parts or _is_part(source, stmt.target):
                    self.parts.add(stmt.target)

    def written(self, lets: list[Let]) -> None:
        for stmt in lets:
            assert isinstance(stmt.value, Op)
            if stmt.value.writes is not None:
                self.demand(stmt, getattr(stmt.value, stmt.value.writes), stmt.target)

    def joins(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                last = stmt.body[-1]
                assert isinstance(last, Yield)
                for position, (init, arg) in enumerate(zip(stmt.inits, stmt.iter_args, strict=True)):
                    self.demand(stmt, init, arg, position)
                for position, (value, arg) in enumerate(zip(last.values, stmt.iter_args, strict=True)):
                    self.demand(last, value, arg, position)
            case If() | Scope():
                for block in stmt.blocks():
                    last = block[-1]
                    assert isinstance(last, Yield)
                    for position, (value, result) in enumerate(zip(last.values, stmt.defs(), strict=True)):
                        self.demand(last, value, result, position)
            case _:
                pass

    def slots(self, block: Block) -> None:
        """The trips that a pipelined loop leaves over have the slots of its first copies."""
        for stmt, after in zip(block, (*block[1:], None), strict=True):
            for inner in stmt.blocks():
                self.slots(inner)
            if isinstance(stmt, For) and isinstance(after, For) and _goes_on(stmt, after):
                lets = ([s for s in walk(loop.body) if isinstance(s, Let)] for loop in (stmt, after))
                for first, second in zip(*lets, strict=False):
                    one, two = first.target, second.target
                    if one in self.parent and one.type is two.type and self.may_share(one, two):
                        self.union(one, two)

    def inplace(self, lets: list[Let]) -> None:
        for stmt in lets:
            assert isinstance(stmt.value, Op)
            if stmt.target not in self.parent or not stmt.value.inplace:
                continue
            allowed = shareable(stmt.value, stmt.target)
            for _, operand in stmt.value.operand_items():
                # A part of a tile lies elsewhere in its buffer, or with another pitch, than a result would.
                if operand in allowed and operand not in self.parts and self.may_share(operand, stmt.target):
                    self.union(operand, stmt.target)
                    break

    # --- names ---
    def name(self) -> None:
        """One `MemRef` per class; a buffer that the user pinned keeps its name and address."""
        pinned: dict[Value, MemRef] = {}
        sizes: dict[Value, int] = {}
        for value in self.tiles:
            assert isinstance(value.type, TileType)
            root = self.find(value)
            sizes[root] = max(sizes.get(root, 0), footprint(value.type, self.target))
            if value.type.memref is not None:
                pinned.setdefault(root, value.type.memref)
        names: dict[Value, MemRef] = {}
        counts: dict[MemorySpace, int] = {}
        for value in self.tiles:
            root = self.find(value)
            if root not in names:
                space = self._space(value)
                number = counts.get(space, 0)
                counts[space] = number + 1
                user = pinned.get(root)
                name = user.name if user else f"{space.value.lower()}{number}"
                names[root] = MemRef(name, user.addr if user else None, sizes[root])
            self.plan.buffers[value] = names[root]

    @staticmethod
    def _space(value: Value) -> MemorySpace:
        assert isinstance(value.type, TileType) and value.type.space is not None, f"{value.name} is not placed"
        return value.type.space


def _is_part(source: Value, view: Value) -> bool:
    """Whether a view shows fewer elements than its source has: it starts elsewhere in the buffer, or its rows lie
    further apart than they are long, so that nothing but another view can take its place."""
    assert isinstance(source.type, TileType) and isinstance(view.type, TileType)
    return prod(view.type.static_shape) != prod(source.type.static_shape)


def _goes_on(loop: For, after: For) -> bool:
    """Whether the pipelined loop `after` does what `loop` has left over."""
    kinds = loop.kind is LoopKind.PIPELINE and after.kind is LoopKind.PIPELINE
    return kinds and loop.stop == after.start and loop.step == after.step and loop.results == after.inits


def _overlaps(ranges: list[tuple[int, int]], span: tuple[int, int]) -> bool:
    """Whether `span` meets one of `ranges`, which are sorted and apart."""
    index = bisect_left(ranges, (span[1] + 1,))
    return index > 0 and ranges[index - 1][1] >= span[0]


def _add(ranges: list[tuple[int, int]], span: tuple[int, int]) -> None:
    """Adds `span` to sorted, disjoint `ranges`; what touches becomes one, so that a chain stays one range."""
    first, last = span
    begin = bisect_left(ranges, (first,))
    if begin and ranges[begin - 1][1] >= first - 1:
        begin -= 1
    end = begin
    while end < len(ranges) and ranges[end][0] <= last + 1:
        first, last = min(first, ranges[end][0]), max(last, ranges[end][1])
        end += 1
    ranges[begin:end] = [(first, last)]


# --- copies -------------------------------------------------------------------------------------------------------
def _with_copies(function: Function, target: Target) -> tuple[Function, BufferPlan]:
    """`function` with the copies that sharing needs, and its plan; a fixed point after at most three rounds."""
    for _ in range(3):
        plan = plan_buffers(function, target)
        if not plan.copies:
            return function, plan
        function = _InsertCopies(plan, target).function(function)
    raise AccumulatorError("carried tiles cannot be given one buffer each", span=function.span)


class _InsertCopies(Rewriter):
    """Copies the planned values just before the statement that needs them in another buffer."""

    def __init__(self, plan: BufferPlan, target: Target) -> None:
        super().__init__()
        self.plan = plan
        self.target = target

    def block(self, block: Block) -> Block:
        outer, self._out = self._out, []
        for stmt in block:
            wanted = self.plan.copies.get(stmt)
            self.stmt(self.copied(stmt, wanted) if wanted else stmt)
        new, self._out = self._out, outer
        return block if len(new) == len(block) and all(a is b for a, b in zip(new, block, strict=True)) else tuple(new)

    def copied(self, stmt: Stmt, wanted: list[tuple[Scalar, int]]) -> Stmt:
        """`stmt` reading copies. Several values handed over together are copied aside first, all of them, so that no
        copy overwrites what another still has to read."""
        values = list(dict.fromkeys(value for value, _ in wanted))
        if not isinstance(stmt, Yield | For):
            # Only what is written is copied: an operation may read the same tile beside it, which stays where it is.
            assert isinstance(stmt, Let) and isinstance(stmt.value, Op) and stmt.value.writes is not None
            copy = self.copy(self.scalar(values[0]), stmt.span)
            return Let(stmt.target, stmt.value.replace(**{stmt.value.writes: copy}), span=stmt.span)
        given = list(stmt.values if isinstance(stmt, Yield) else stmt.inits)
        aside = isinstance(stmt, Yield) and len(wanted) > 1
        sources = {old: self.copy(self.scalar(old), stmt.span) if aside else self.scalar(old) for old in values}
        for value, position in wanted:
            given[position] = self.copy(sources[value], stmt.span)
        return type(stmt)(tuple(given), span=stmt.span) if isinstance(stmt, Yield) else stmt.replace(inits=tuple(given))

    def copy(self, value: Scalar, span: Span) -> Value:
        assert isinstance(value, Value) and isinstance(value.type, TileType)
        space = value.type.space
        assert space is not None
        if self.target.edge(space, space) is None:
            raise AccumulatorError(
                f"{value.name!r} would have to be copied within {space.value}, and {self.target.name} has no such move",
                span=span,
                required="a tile that only one path takes over, into a buffer that is free by then",
                found=f"{value.name!r} and what takes its place alive together: {value.type!r}",
                help="give each path its own accumulator, or store the tile and load it again",
            )
        moved = Move(value, target_memory=space, span=span)
        return self.let(moved, f"{value.name}_copy", span, value.type.without_memref())


class _Apply(Rewriter):
    """Writes the plan into the types."""

    def __init__(self, plan: BufferPlan) -> None:
        super().__init__()
        self.plan = plan

    def retype(self, old: Value, type: Type) -> Value:
        memref = self.plan.buffers.get(old)
        return super().retype(old, type.with_(memref=memref) if memref and isinstance(type, TileType) else type)

    def visit_let(self, stmt: Let) -> None:
        if isinstance(stmt.target.type, TileType):
            value = stmt.value.with_operands(self.get) if isinstance(stmt.value, Op) else stmt.value
            target = self.retype(stmt.target, stmt.target.type.substitute(self.get))
            self.emit(Let(target, value, span=stmt.span))
        else:
            super().visit_let(stmt)

    def carried_type(self, arg: Value, init: Scalar) -> Type:
        return arg.type.substitute(self.get)
