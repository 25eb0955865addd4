"""The rewrite: applies a plan to a section, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.analysis.spaces import tile_operands
from tilewright.errors import Span
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Function
from tilewright.ir.loops import Contract, Index, Reduce
from tilewright.ir.nodes import Block, For, Let, LoopKind, Return, Stmt, Yield
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, minimum, substitute
from tilewright.ir.storage import Roots, written_operand
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.elementwise import Add, Maximum, Minimum, Mul
from tilewright.ops.matmul import MatmulAcc
from tilewright.ops.movement import Load, Store, swapped
from tilewright.passes.tile.partition.dimensions import VALID, Dim, Dimensions, region_axes, shape_field, tile_of
from tilewright.passes.tile.partition.plan import Cut, FunctionPlan, Part
from tilewright.passes.tile.partition.stages import is_leaf, stages_of, within_pass

JOINS = {BinaryKind.ADD: Add, BinaryKind.MAX: Maximum, BinaryKind.MIN: Minimum, BinaryKind.MUL: Mul}
"""What puts the reductions of two blocks together."""


@dataclass(frozen=True, slots=True)
class Active:
    """The block of a class that is being done: it starts at `index`; `valid` of its `block` elements have meaning."""

    block: int
    index: Scalar
    valid: Scalar


def rewrite(function: Function, plan: FunctionPlan, roots: Roots) -> Function:
    """The section, cut as planned."""
    emitter = _Emitter(roots)
    for stmt in plan.before:
        emitter.plain(stmt)
    for part in plan.parts:
        emitter.part(part)
    last = function.body[-1]
    assert isinstance(last, Return)
    results = tuple(emitter.scalar(value) for value in last.values)
    return function.with_body((*emitter.out, Return(results, span=last.span)))


class _Emitter:
    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self.env: dict[Value, Scalar] = {}
        self.out: list[Stmt] = []
        self.active: dict[Dim, Active] = {}
        self.sums: dict[Value, Value] = {}
        """of sums that an earlier block began: what there is so far"""
        self.dims = Dimensions()

    # --- building ---
    def get(self, value: Value) -> Scalar:
        return self.env.get(value, value)

    def scalar(self, scalar: Scalar) -> Scalar:
        return substitute(scalar, self.get)

    def let(self, name: str, value: Op | Scalar, span: Span) -> Value:
        made = Value(name, value.infer() if isinstance(value, Op) else type_of(value), span)
        self.out.append(Let(made, value, span=span))
        return made

    def plain(self, stmt: Let) -> None:
        """A statement as it was, on what stands for its operands."""
        value = stmt.value.with_operands(self.get) if isinstance(stmt.value, Op) else self.scalar(stmt.value)
        if value is stmt.value:
            self.out.append(stmt)
        else:
            self.env[stmt.target] = self.let(stmt.target.name, value, stmt.span)

    def loop(
        self,
        name: str,
        bounds: tuple[Scalar, Scalar, int],
        kind: LoopKind,
        inits: list[Scalar],
        names: list[str],
        body: Callable[[Value, tuple[Value, ...]], list[Scalar]],
        span: Span,
    ) -> tuple[Value, ...]:
        iv = Value(name, ScalarType(INDEX), span)
        args = tuple(Value(n, type_of(init), span) for n, init in zip(names, inits, strict=True))
        outer, self.out = self.out, []
        env = dict(self.env)
        given = body(iv, args)
        block: Block = (*self.out, Yield(tuple(given), span=span))
        self.out, self.env = outer, env
        results = tuple(Value(arg.name, arg.type, span) for arg in args)
        self.out.append(For(iv, *bounds, kind, tuple(inits), args, block, results, span=span))
        return results

    # --- one part ---
    def part(self, part: Part) -> None:
        self.dims = part.dims
        if not part.grid and not part.passes:
            for stmt in part.lets:
                self.plain(stmt)
            return
        if not part.grid:
            self.block(part.lets, part.passes)
            return
        tensors = self._tensors(part.lets)
        span = part.lets[-1].span

        def body(iv: Value, args: tuple[Value, ...]) -> list[Scalar]:
            for (first, _), arg in zip(tensors, args, strict=True):
                self.env[first] = arg
            self._enter(part.grid, iv, span)
            self.block(part.lets, part.passes)
            for cut in part.grid:
                del self.active[cut.cls]
            return [self.get(last) for _, last in tensors]

        bounds = (0, part.grid[0].extent, part.grid[0].block) if len(part.grid) == 1 else (0, _items(part.grid), 1)
        inits = [self.get(first) for first, _ in tensors]
        names = [first.name for first, _ in tensors]
        name = _index_name(part.grid[0]) if len(part.grid) == 1 else "item"
        results = self.loop(name, bounds, LoopKind.PARALLEL, inits, names, body, span)
        for (_, last), result in zip(tensors, results, strict=True):
            self.env[last] = result

    def _enter(self, grid: tuple[Cut, ...], iv: Value, span: Span) -> None:
        """The block of each class for one work item; several classes share one loop, the last one running fastest."""
        if len(grid) == 1:
            self.active[grid[0].cls] = _active(grid[0], iv)
            return
        rest: Scalar = iv
        for position, cut in reversed(list(enumerate(grid))):
            count = _count(cut)
            at = rest if position == 0 else binary(BinaryKind.MOD, rest, count)
            index = self.let(_index_name(cut), binary(BinaryKind.MUL, at, cut.block), span)
            self.active[cut.cls] = _active(cut, index)
            rest = binary(BinaryKind.FLOORDIV, rest, count)

    def _tensors(self, lets: tuple[Let, ...]) -> list[tuple[Value, Value]]:
        """The first and the last version of each tensor that is written."""
        found: dict[Value, tuple[Value, Value]] = {}
        for stmt in lets:
            out = written_operand(stmt.value) if isinstance(stmt.value, Op) else None
            if out is not None:
                root = self.roots[out]
                found[root] = (found[root][0] if root in found else out, stmt.target)
        return list(found.values())

    # --- passes ---
    def block(self, lets: tuple[Let, ...], passes: tuple[Cut, ...]) -> None:
        """Straight-line code, with loops over the blocks of `passes` where it meets them."""
        if not passes:
            for stmt in lets:
                self.stmt(stmt)
            return
        cut, rest = passes[0], passes[1:]
        inner = tuple(other.cls for other in rest)
        stages = stages_of(lets, cut.cls, self.dims)
        for number in range(stages.count + 1):
            between = tuple(
                stmt
                for stmt, run in zip(lets, stages.run, strict=True)
                if run is None and stages.of[stmt.target] == number and not self._remade(stmt, inner)
            )
            self.block(between, rest)
            body = within_pass(lets, stages, number, cut.cls, inner, self.dims)
            if body:
                ends = tuple(lets[p].target for p in body if stages.ends[p])
                self.one_pass(tuple(lets[p] for p in body), ends, cut, rest)

    def _remade(self, stmt: Let, inner: tuple[Dim, ...]) -> bool:
        """Whether a load is made anew within passes."""
        return is_leaf(stmt) and any(self.dims.has(stmt.target, cls) for cls in inner)

    def one_pass(self, lets: tuple[Let, ...], ends: tuple[Value, ...], cut: Cut, rest: tuple[Cut, ...]) -> None:
        """One loop over blocks. Where it sums, the first block comes before it: that is where sums start."""
        sums = [value for value in ends if isinstance(value.type, TileType)]
        tensors = self._tensors(lets)
        span = lets[-1].span
        start: Scalar = 0
        if sums:
            outside = {stmt.target for stmt in lets} - set(ends)
            self.active[cut.cls] = _active(cut, 0)
            self.block(lets, rest)
            for value in outside:
                self.env.pop(value, None)
            start = cut.block
        inits = [self.get(value) for value in sums] + [self.get(last if sums else first) for first, last in tensors]

        def body(iv: Value, args: tuple[Value, ...]) -> list[Scalar]:
            self.active[cut.cls] = _active(cut, iv)
            before = dict(self.sums)
            self.sums.update(zip(sums, args, strict=False))
            for (first, _), arg in zip(tensors, args[len(sums) :], strict=True):
                self.env[first] = arg
            self.block(lets, rest)
            self.sums = before
            return [self.get(value) for value in (*sums, *(last for _, last in tensors))]

        names = [value.name for value in sums] + [first.name for first, _ in tensors]
        bounds = (start, cut.extent, cut.block)
        results = self.loop(_index_name(cut), bounds, LoopKind.SEQUENTIAL, inits, names, body, span)
        del self.active[cut.cls]
        for value, result in zip((*sums, *(last for _, last in tensors)), results, strict=True):
            self.env[value] = result

    # --- one statement ---
    def stmt(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            self.env[stmt.target] = self.let(stmt.target.name, self.scalar(op), stmt.span)
            return
        new = self.moved(op, op.with_operands(self.get), stmt.target)
        so_far = self.sums.get(stmt.target)
        self.env[stmt.target] = (
            self.let(stmt.target.name, new, stmt.span) if so_far is None else self.added(op, new, so_far, stmt)
        )

    def added(self, op: Op, new: Op, so_far: Value, stmt: Let) -> Value:
        """The next block's share on top of `so_far`."""
        match op.loops:
            case Contract(lhs=lhs, rhs=rhs):
                both = getattr(new, lhs), getattr(new, rhs)
                return self.let(stmt.target.name, MatmulAcc(so_far, *both, level=Level.TILE, span=stmt.span), stmt.span)
            case Reduce(combine=combine):
                share = self.let(stmt.target.name, new, stmt.span)
                join = JOINS[combine](so_far, share, level=Level.TILE, span=stmt.span)
                return self.let(stmt.target.name, join, stmt.span)
            case _:
                raise AssertionError(f"{op.name} sums nothing")

    def moved(self, old: Op, new: Op, made: Value) -> Op:
        """The operation on the blocks that are being done: it says where it reads, writes, and what shape it makes."""
        if isinstance(old, Store) and isinstance(new, Store):
            return new.replace(offsets=self._shifted(old, new.offsets, old.tile))
        if not isinstance(made.type, TileType):
            return new
        blocks = [self.active.get(cls) for cls in self.dims.classes_of(made)]
        if all(block is None for block in blocks):
            return new
        kind = tile_of(made)
        shape = tuple(b.block if b else extent for b, extent in zip(blocks, kind.shape, strict=True))
        valid = tuple(b.valid if b else extent for b, extent in zip(blocks, kind.shape, strict=True))
        if isinstance(old, Load) and isinstance(new, Load):
            if old.transpose:
                shape, valid = swapped(shape), swapped(valid)
            offsets = self._shifted(old, new.offsets, made)
            return new.replace(offsets=offsets, shapes=shape, valid_shape=None if valid == shape else valid)
        field = shape_field(old)
        if field is None:
            return new
        if isinstance(old.loops, Index) and tile_operands(old):
            return new.replace(**{field: shape})
        return new.replace(**{field: shape, VALID: None if valid == shape else valid})

    def _shifted(self, op: Load | Store, offsets: tuple[Scalar, ...], tile: Value) -> tuple[Scalar, ...]:
        moved = list(offsets)
        for axis, at in enumerate(region_axes(op)):
            block = self.active.get(self.dims.root(tile, axis))
            if block is not None and at >= 0:
                moved[at] = binary(BinaryKind.ADD, moved[at], block.index)
        return tuple(moved)


def _active(cut: Cut, index: Scalar) -> Active:
    """The block at `index`; its tail has fewer valid elements."""
    if isinstance(cut.extent, int) and (cut.extent % cut.block == 0 or (index == 0 and cut.extent >= cut.block)):
        return Active(cut.block, index, cut.block)
    return Active(cut.block, index, minimum(cut.block, binary(BinaryKind.SUB, cut.extent, index)))


def _count(cut: Cut) -> Scalar:
    up = binary(BinaryKind.ADD, cut.extent, cut.block - 1)
    return binary(BinaryKind.FLOORDIV, up, cut.block)


def _items(grid: tuple[Cut, ...]) -> Scalar:
    total: Scalar = 1
    for cut in grid:
        total = binary(BinaryKind.MUL, total, _count(cut))
    return total


def _index_name(cut: Cut) -> str:
    value, axis = cut.cls
    back = tile_of(value).rank - axis
    return {1: "column", 2: "row"}.get(back, "index")
