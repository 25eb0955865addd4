"""Computing one window of a product: its operands brought to the matrix engine, K step by K step."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from tilewright.analysis.footprint import footprint
from tilewright.ir.dtypes import INDEX
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import For, LoopKind, Stmt, Yield
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import Scalar, Value, constant_value
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.matmul import Matmul, MatmulAcc
from tilewright.ops.movement import Move
from tilewright.ops.parts import Extract
from tilewright.passes.tile.tile_matmul.decide import logical
from tilewright.passes.tile.tile_matmul.forms import Index, Product, Seed, accumulator_field
from tilewright.passes.tile.tile_matmul.operands import Bring, load_of, narrowed, part_of, sliced, valid_part
from tilewright.passes.tile.tile_matmul.plan import ProductPlan, SumPlan
from tilewright.passes.tile.tile_matmul.windows import Segment, Window, segments
from tilewright.targets import Target

LEFT, RIGHT, MAT, BIAS = MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.MAT, MemorySpace.BIAS
Made = dict[tuple[object, ...], Value]


class ProductWriter(Rewriter):
    """Appends the statements that compute a window of a product. `made` holds windows that are there already, per open
    block."""

    def __init__(self, index: Index, target: Target) -> None:
        super().__init__()
        self.index = index
        self.target = target
        self.made: list[Made] = [{}]
        self.plans: Mapping[Stmt, ProductPlan] = {}
        self.current: SumPlan | None = None
        self.known: dict[Scalar, bool] = {}
        """conditions of the old program that are decided where statements are written now"""

    @contextmanager
    def using(self, plans: Mapping[Stmt, ProductPlan], current: SumPlan | None = None) -> Generator[None]:
        """The plans that hold for what is written inside; windows made there are not seen outside."""
        before = self.plans, self.current
        self.plans, self.current = plans, current
        self.made.append({})
        try:
            yield
        finally:
            self.plans, self.current = before
            self.made.pop()

    @contextmanager
    def nested(self) -> Generator[list[Stmt]]:
        """A block of its own: statements go there, windows made there are not seen outside."""
        outer, self._out = self._out, []
        self.made.append({})
        try:
            yield self._out
        finally:
            self._out = outer
            self.made.pop()

    def once(self, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """What `make` makes, unless an open block has it already."""
        for scope in reversed(self.made):
            if key in scope:
                return scope[key]
        self.made[-1][key] = value = make()
        return value

    def part(self, op: Op, of: Value) -> Value:
        """Appends an operation that stands for a part of `of`, operands replaced."""
        return self.let(op.with_operands(self.get), of.name, of.span)

    def placed(self, op: Op, of: Value) -> Value:
        """Appends an operation on values of the new program, which stands for a part of `of`."""
        return self.let(op, of.name, of.span)

    # --- loops ---
    def over(
        self, run: Segment, start: Value, trip: Callable[[Scalar, Value], Value], of: Value, stage: int = 1
    ) -> Value:
        """`trip(position, value)` for each part of a run, the value handed on; without a loop for a single part. `of`
        is what the loop is for."""
        if run.single:
            return trip(run.start, start)
        iv, arg = Value("i", ScalarType(INDEX), of.span), Value(of.name, type_of(start), of.span)
        with self.nested() as body:
            body_result = trip(iv, arg)
            body.append(Yield((body_result,), span=of.span))
        result = Value(of.name, type_of(start), of.span)
        kind = LoopKind.PIPELINE if stage > 1 else LoopKind.SEQUENTIAL
        bounds = (run.start, run.stop, run.size)
        self.emit(For(iv, *bounds, kind, (start,), (arg,), tuple(body), (result,), stage, span=of.span))
        return result

    # --- products ---
    def decided(self, condition: Scalar) -> bool | None:
        """What is known of a condition of the old program here."""
        if condition in self.known:
            return self.known[condition]
        value = constant_value(self.scalar(condition))
        return None if value is None else bool(value)

    def accumulator(self, plan: ProductPlan) -> Value | None:
        field = accumulator_field(plan.product.op)
        return None if field is None else self.value(getattr(plan.product.op, field))

    def product(self, node: Product, acc: Value | Seed | None, window: Window) -> Value:
        """A window of one product on top of `acc`, K step by K step."""
        plan, (op, form) = self.plans[node.stmt], (node.op, node.form)
        lhs, rhs = getattr(op, form.lhs), getattr(op, form.rhs)
        depth = self.depth(lhs)
        size = plan.tile.k
        name, span = node.stmt.target.name, node.stmt.span
        # Only what is held is kept for the next part of the result: what moves, and the windows of several steps of K,
        # have their turn, and would pile up.
        kept = plan.steps == 1 and not plan.tile.fallback
        held = kept and plan.choice.rows_outside, kept and not plan.choice.rows_outside

        def sides(at: Scalar, width: int) -> tuple[Value, Value]:
            rows, cols = self.operand_windows(lhs, window, 0, plan.problem.k, plan.problem.k)
            left, right = self.operand_windows(lhs, window, at, width, plan.problem.k)
            return (
                self.operand(lhs, left, rows, LEFT, plan.bring(form.lhs), kept=held[0]),
                self.operand(rhs, right, cols, RIGHT, plan.bring(form.rhs), kept=held[1]),
            )

        def step(at: Scalar, total: Value, width: int) -> Value:
            left, right = sides(at, width)
            return self.let(MatmulAcc(acc=total, lhs=left, rhs=right, span=span), name, span, total.type)

        first = min(size, plan.problem.k)
        total = self.first_step(node, acc, sides(0, first), window)
        if isinstance(depth, int) and depth <= first:
            return total
        streams = max(plan.tile.lhs_buffers, plan.tile.rhs_buffers)
        for run in segments(depth, size, first, plan.problem.k):
            total = self.over(run, total, lambda at, held, w=run.size: step(at, held, w), node.stmt.target, streams)
        return total

    def first_step(self, node: Product, acc: Value | Seed | None, sides: tuple[Value, Value], window: Window) -> Value:
        """The product on its first step of K, where it starts from what its sum is so far: nothing, for a seed."""
        new, old = self.started(node, acc, sides, window), node.stmt.target.type
        made = new.infer()
        assert isinstance(made, TileType) and isinstance(old, TileType)
        if old.space is not None and made.space is None:
            made = made.with_(space=old.space)
        return self.let(new, node.stmt.target.name, node.stmt.span, made)

    def started(self, node: Product, acc: Value | Seed | None, sides: tuple[Value, Value], window: Window) -> Op:
        op, form = node.op, node.form
        if isinstance(acc, Seed):
            return Matmul(*sides, level=Level.TILE, span=op.span)
        given: dict[str, object] = {form.lhs: sides[0], form.rhs: sides[1]}
        if form.acc is not None:
            given[form.acc] = acc if acc is not None else self.bias(getattr(op, form.acc), window)
        condition = None if form.unless is None else getattr(op, form.unless)
        if condition is not None and form.unless and self.decided(condition) is False:
            given[form.unless] = None
        arrays = {value for _, value in op.operand_items()}
        return op.with_operands(lambda value: value if value in arrays else self.get(value)).replace(**given)

    def depth(self, lhs: Value) -> Scalar:
        """The extent of K that has meaning."""
        kind = lhs.type
        assert isinstance(kind, TileType)
        valid = self.scalar(kind.valid[1])
        return logical(kind, 1) if isinstance(valid, int) else valid

    def operand_windows(self, lhs: Value, of: Window, at: Scalar, width: int, whole: int) -> tuple[Window, Window]:
        """What is read of both operands for a window of the result, from `at` of the first `whole` k on. The operands
        mean the same k, but may lie in tiles of different extents: how many of a step's k have meaning is said once,
        for both."""
        assert isinstance(lhs.type, TileType)
        valid = self.scalar(lhs.type.valid[1])
        # Steps cover an extent that is known exactly; one of run time may end within the step.
        meant = min(valid, width) if isinstance(valid, int) else part_of(valid, whole, at, width)
        return (
            Window(of.row, of.rows, at, width, (None, meant)),
            Window(at, width, of.col, of.cols, (meant, None)),
        )

    # --- operands ---
    def operand(
        self, value: Value, window: Window, whole: Window, space: MemorySpace, bring: Bring, *, kept: bool = True
    ) -> Value:
        """A window of an operand, in the memory from which the matrix engine reads it. `whole` is the window with all
        of K. `kept`: parts of the result that need the same window share it."""

        def make() -> Value:
            if bring is Bring.BLOCK:
                return self.moved(self.loaded(value, window), space)
            if bring is Bring.PANEL:
                panel = self.panel(value, whole)
                at = _minus(window.row, whole.row), _minus(window.col, whole.col)
                return self.window(panel, Window(at[0], window.rows, at[1], window.cols, window.meant), space)
            return self.window(self.value(value), window, space)

        return self.once(("operand", value, window, space), make) if kept else make()

    def panel(self, value: Value, window: Window) -> Value:
        return self.once(("panel", value, window), lambda: self.loaded(value, window))

    def loaded(self, value: Value, window: Window) -> Value:
        return narrowed(value, window, self.index, self.part, self.scalar)

    def window(self, tile: Value, window: Window, space: MemorySpace) -> Value:
        """A part of a tile, taken to `space`."""
        if self.target.same_memory(MAT, space):
            return sliced(tile, window, self.placed)
        kind = tile.type
        assert isinstance(kind, TileType)
        if kind.shape == window.extents:
            return self.moved(tile, space)
        valid = valid_part(kind, window)
        op = Extract(tile, window.row, window.col, window.extents, space, valid, span=tile.span)
        return self.let(op, f"{tile.name}_{space.value.lower()}", tile.span)

    def moved(self, tile: Value, space: MemorySpace) -> Value:
        if self.target.same_memory(MAT, space):
            return tile
        return self.let(Move(tile, space, span=tile.span), f"{tile.name}_{space.value.lower()}", tile.span)

    def bias(self, value: Value, window: Window) -> Value:
        """The columns of the bias that belong to a window: loaded where it comes from DDR, else a part of the tile."""
        row = Window(0, 1, window.col, window.cols)
        kind = value.type
        assert isinstance(kind, TileType)
        if kind.shape == row.extents:
            return self.value(value)

        def make() -> Value:
            if load_of(value, self.index) is not None:
                return self.loaded(value, row)
            return sliced(self.value(value), row, self.placed)

        # A part that is read again stays in Bias meanwhile, where all parts must have room then.
        whole = footprint(TileType(kind.static_shape, kind.dtype, BIAS), self.target)
        return self.once(("bias", value, row), make) if whole <= self.target.capacity(BIAS) else make()


def _minus(a: Scalar, b: Scalar) -> Scalar:
    return 0 if a == b else a if b == 0 else a - b
