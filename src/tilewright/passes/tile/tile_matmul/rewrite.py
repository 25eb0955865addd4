"""Rewriting: grids, K loops and windows, as the plan says."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import For, If, Let, Stmt
from tilewright.ir.op import Level
from tilewright.ir.prune import prune
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType
from tilewright.ops.create import Create
from tilewright.ops.movement import Load, Store
from tilewright.ops.parts import Assemble
from tilewright.passes.tile.tile_matmul.elements import ElementWriter
from tilewright.passes.tile.tile_matmul.forms import Index, Product, index_of
from tilewright.passes.tile.tile_matmul.operands import Bring
from tilewright.passes.tile.tile_matmul.plan import FunctionTiles, SumPlan
from tilewright.passes.tile.tile_matmul.sinks import ROOM, VEC, stored_offsets
from tilewright.passes.tile.tile_matmul.windows import Window, segments
from tilewright.targets import Target


def apply(function: Function, tiles: FunctionTiles, target: Target) -> Function:
    """`function` as planned; itself when nothing is cut."""
    if not tiles.sums and not tiles.products:
        return function
    return prune(_Tiler(tiles, index_of(function), target).function(function))


class _Tiler(ElementWriter):
    """Walks the function once. What a grid replaces is left standing, unread, and pruned afterwards."""

    def __init__(self, tiles: FunctionTiles, index: Index, target: Target) -> None:
        super().__init__(index, target)
        self.tiles = tiles
        self.at = {plan.sink.at: plan for plan in tiles.sums}
        self.after = {plan.sink.after[1]: plan for plan in tiles.sums if plan.sink.after is not None}

    # --- statements ---
    def visit_let(self, stmt: Let) -> None:
        plan, product = self.at.get(stmt), self.tiles.products.get(stmt)
        follows = self.after.get(stmt)
        if follows is not None and follows.sink.after is not None:
            with self.using(follows.products, follows):
                self.stored(follows, follows.sink.after[0], stmt, self.room(follows))
        elif plan is not None:
            if plan.sink.store is None:
                super().visit_let(stmt)
            self.grid(plan, stmt)
        elif product is not None:
            window = Window(0, product.problem.m, 0, product.problem.n)
            acc = self.accumulator(product)
            with self.using({stmt: product}):
                self.bind(stmt.target, self.product(product.product, acc, window))
        elif stmt.target not in self.env:
            super().visit_let(stmt)

    def visit_for(self, stmt: For) -> None:
        super().visit_for(stmt)
        if stmt in self.at:
            self.grid(self.at[stmt], stmt)

    def visit_if(self, stmt: If) -> None:
        super().visit_if(stmt)
        if stmt in self.at:
            self.grid(self.at[stmt], stmt)

    # --- grids ---
    def grid(self, plan: SumPlan, stmt: Stmt) -> None:
        """Every tile of the sum in turn, each completed and sent out before the next begins."""
        with self.using(plan.products, plan):
            if plan.sink.store is not None:
                self.stored(plan, plan.sink.value, plan.sink.store, (plan.m, plan.n))
            else:
                self.collected(plan, stmt) if plan.sink.space is None else self.put_together(plan, stmt)

    def room(self, plan: SumPlan) -> tuple[int, int]:
        """The parts in which what follows a collected sum is computed."""
        kind, rows = plan.root.type, plan.m
        assert isinstance(kind, TileType)
        box = self.target.box(VEC, self.target.layout(VEC, (rows, plan.n)), kind.dtype)[0]
        while rows > box and ROOM * rows * plan.n * kind.dtype.nbytes > self.target.capacity(VEC):
            rows = -(-(rows // 2) // box) * box
        return rows, plan.n

    def stored(self, plan: SumPlan, value: Value, stmt: Let, extents: tuple[int, int]) -> None:
        """`value`, in parts of `extents`, stored as `stmt` does with the whole."""
        op = stmt.value
        assert isinstance(op, Store)

        def store(window: Window, out: Value) -> Value:
            tile = self.element(value, window)
            assert isinstance(tile.type, TileType)
            new = op.with_operands(lambda value: value if value is op.tile else self.get(value))
            offsets = stored_offsets(new, window.row, window.col)
            assert offsets is not None
            shapes = None if op.shapes is None else tile.type.valid[-len(op.shapes) :]
            if op.shapes is not None and len(op.shapes) > 2:
                shapes = (*op.shapes[:-2], *tile.type.valid)
            new = new.replace(tile=tile, output_tensor=out, offsets=offsets, shapes=shapes)
            return self.let(new, stmt.target.name, stmt.span)

        self.bind(stmt.target, self.tiles_of(plan, extents, self.value(op.output_tensor), store))

    def collected(self, plan: SumPlan, stmt: Stmt) -> None:
        """The whole result in a temporary tensor, and loaded from there."""
        value, span = plan.sink.value, stmt.span
        kind = value.type
        assert isinstance(kind, TileType)
        shape, name = kind.static_shape, value.name
        space = self.let(Create(shape, kind.dtype, level=Level.TENSOR, span=span), f"{name}_space", span)

        def store(window: Window, out: Value) -> Value:
            tile = self.element(value, window)
            return self.let(Store(tile, (window.row, window.col), out, span=span), f"{name}_ddr", span)

        held = self.tiles_of(plan, (plan.m, plan.n), space, store)
        valid = kind.valid if kind.view.valid_shape is not None else None
        valid = None if valid is None else tuple(self.scalar(extent) for extent in valid)
        load = Load(held, (0, 0), shape, valid, span=span)
        self.index.temporary[value] = load
        self.bind(value, self.let(load, name, span))

    def put_together(self, plan: SumPlan, stmt: Stmt) -> None:
        """The whole result in a tile on chip, part by part."""
        value, span = plan.sink.value, stmt.span
        kind = value.type
        assert isinstance(kind, TileType)
        valid = None if kind.view.valid_shape is None else tuple(self.scalar(extent) for extent in kind.valid)
        room = Create(kind.static_shape, kind.dtype, plan.sink.space, None, valid, level=Level.TILE, span=span)

        def put(window: Window, whole: Value) -> Value:
            tile = self.element(value, window)
            part = Assemble(whole, tile, (window.row, window.col), level=Level.TILE, span=span)
            return self.let(part, value.name, span)

        self.bind(value, self.tiles_of(plan, (plan.m, plan.n), self.let(room, f"{value.name}_room", span), put))

    def tiles_of(
        self, plan: SumPlan, tile: tuple[int, int], out: Value, store: Callable[[Window, Value], Value]
    ) -> Value:
        """The loops of the grid around `store`; the last version of `out`."""
        kind = plan.root.type
        assert isinstance(kind, TileType)
        extents = tuple(self.scalar(extent) for extent in kind.valid)
        axes = tuple(zip(extents, tile, (0, 0), kind.shape, strict=True))
        outer, inner = axes if plan.rows_outside else axes[::-1]
        for far in segments(*outer):

            def outside(at: Scalar, held: Value, size: int = far.size) -> Value:
                self.hold(plan, at, size)
                for near in segments(*inner):

                    def inside(other: Scalar, now: Value, width: int = near.size) -> Value:
                        swapped = Window(other, width, at, size)
                        return store(Window(at, size, other, width) if plan.rows_outside else swapped, now)

                    held = self.over(near, held, inside, plan.root, self.streams(plan))
                return held

            out = self.over(far, out, outside, plan.root)
        return out

    def streams(self, plan: SumPlan) -> int:
        """How many buffers what moves through the inner loop has: accumulators, or the operand that is not held."""
        first = next(iter(plan.products.values()))
        collected = plan.sink.space is not None or plan.sink.value in self.index.temporary
        if collected or first.steps > 1 or not self.is_alone(plan):
            return 1
        return max(first.tile.accumulators, first.tile.lhs_buffers, first.tile.rhs_buffers)

    def hold(self, plan: SumPlan, at: Scalar, size: int) -> None:
        """The operand that stays while the inner loop runs is brought in front of it."""
        if plan.sink.value in self.index.temporary or not self.is_alone(plan):
            return
        product = next(iter(plan.products.values()))
        op, form = product.product.op, product.product.form
        field = form.lhs if plan.rows_outside else form.rhs
        space = MemorySpace.LEFT if plan.rows_outside else MemorySpace.RIGHT
        value: Value = getattr(op, field)
        bring, depth = product.bring(field), product.problem.k
        left, right = self.operand_windows(getattr(op, form.lhs), Window(at, size, at, size), 0, depth, depth)
        window = left if plan.rows_outside else right
        if product.steps == 1:
            self.operand(value, window, window, space, bring)
        elif bring is Bring.PANEL:
            self.panel(value, window)

    def is_alone(self, plan: SumPlan) -> bool:
        """Whether the sum is one product, in no loop of its user's."""
        return isinstance(plan.node, Product) and plan.node.acc is None
