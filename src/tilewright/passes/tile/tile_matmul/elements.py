"""Computing one window of a result: the sum there, from its products, loops and branches, and what follows it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from tilewright.ir.dtypes import INDEX
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Elementwise, Map
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Stmt, Yield, result_of, walk
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, clone_block, type_of
from tilewright.ir.scalar import Scalar, Value, constant
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.create import Create, Full
from tilewright.ops.matmul import MatmulAcc
from tilewright.ops.movement import Move
from tilewright.ops.parts import Extract
from tilewright.passes.tile.tile_matmul.decide import accumulator_field, logical
from tilewright.passes.tile.tile_matmul.forms import Branch, Carried, Index, Loop, Node, Product, Seed
from tilewright.passes.tile.tile_matmul.operands import Bring, load_of, narrowed, part_of, sliced, valid_part
from tilewright.passes.tile.tile_matmul.plan import ProductPlan, SumPlan
from tilewright.passes.tile.tile_matmul.windows import Segment, Window, segments
from tilewright.targets import Target

LEFT, RIGHT, MAT = MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.MAT
Made = dict[tuple[object, ...], Value]


class ElementWriter(Rewriter):
    """Appends the statements that compute a window. `made` holds windows that are there already, per open block."""

    def __init__(self, index: Index, target: Target) -> None:
        super().__init__()
        self.index = index
        self.target = target
        self.made: list[Made] = [{}]
        self.plans: Mapping[Stmt, ProductPlan] = {}
        self.current: SumPlan | None = None
        self.carried: dict[tuple[Stmt, int], Value] = {}

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

    # --- what is stored ---
    def element(self, value: Value, window: Window) -> Value:
        """A window of the sum, or of what is computed of it element by element; of another tile, where that is."""
        assert self.current is not None
        return self.once(("element", value, window), lambda: self._element(value, window))

    def _element(self, value: Value, window: Window) -> Value:
        plan = self.current
        assert plan is not None
        if value is plan.root:
            return self.sum(plan.node, window)
        stmt = self.index.defs.get(value)
        op = stmt.value if isinstance(stmt, Let) else None
        if not isinstance(op, Op) or not isinstance(op.loops, Elementwise) or not self.follows(value):
            return sliced(self.value(value), window.offsets, window.extents, self.part)
        maps = op.loops.maps
        fields: dict[str, Value] = {}
        tiles = [(name, operand) for name, operand in op.operand_items() if not op.field(name).scratch]
        for at, (name, operand) in enumerate(tiles):
            how = maps[at] if at < len(maps) else Map.FULL
            part = Window(
                0 if how is Map.COLUMN else window.row, 1 if how is Map.COLUMN else window.rows,
                0 if how is Map.ROW else window.col, 1 if how is Map.ROW else window.cols,
            )  # fmt: skip
            fields[name] = self.element(operand, part)
        new = op.with_operands(lambda old: old if old in dict(tiles).values() else self.get(old))
        return self.let(new.replace(**fields), value.name, value.span)

    def follows(self, value: Value) -> bool:
        """Whether `value` is computed from the sum of the grid."""
        plan = self.current
        assert plan is not None
        while value is not plan.root:
            stmt = self.index.defs.get(value)
            op = stmt.value if isinstance(stmt, Let) else None
            if not isinstance(op, Op) or not isinstance(op.loops, Elementwise):
                return False
            operands = [v for _, v in op.operand_items() if self.index.position.get(self.index.defs[v], -1) >= 0]
            onward = [v for v in operands if v is plan.root or self.follows(v)]
            if not onward:
                return False
            value = onward[0]
        return True

    # --- sums ---
    def sum(self, node: Node, window: Window) -> Value:
        """A window of a sum of products."""
        match node:
            case Seed(stmt=stmt, zero=zero):
                return self.seed(stmt, window, zero)
            case Carried(stmt=stmt, index=at):
                return self.carried[stmt, at]
            case Product(stmt=stmt, acc=acc):
                return self.product(node, None if acc is None else self.sum(acc, window), window)
            case Loop():
                return self.loop(node, window)
            case Branch():
                return self.branch(node, window)

    def seed(self, stmt: Let, window: Window, zero: bool) -> Value:
        kind = stmt.target.type
        assert isinstance(kind, TileType)
        four = zip(kind.valid, kind.shape, window.offsets, window.extents, strict=True)
        valid = tuple(part_of(self.scalar(v), p, o, e) for v, p, o, e in four)
        given = None if valid == window.extents else valid
        op: Op
        if zero:
            op = Full(window.extents, kind.dtype, constant(0, kind.dtype), given, level=Level.TILE, span=stmt.span)
        else:
            op = Create(window.extents, kind.dtype, kind.space, None, given, level=Level.TILE, span=stmt.span)
        return self.let(op, stmt.target.name, stmt.span)

    def loop(self, node: Loop, window: Window) -> Value:
        """The loop again, with a window of its accumulator, and of what else it carries what operands need."""
        stmt, plan = node.stmt, self.current
        assert plan is not None
        others = plan.slices.carries.get(stmt, [])
        start = self.sum(node.init, window)
        inits = (start, *(self.scalar(stmt.inits[at]) for at in others))
        iv = Value(stmt.iv.name, stmt.iv.type, stmt.iv.span)
        old = [stmt.iter_args[at] for at in (node.index, *others)]
        args = tuple(Value(arg.name, type_of(init), arg.span) for arg, init in zip(old, inits, strict=True))
        replaced = dict(zip([stmt.iv, *old[1:]], [iv, *args[1:]], strict=True))
        with self.copied(stmt.body, replaced) as body:
            self.carried[stmt, node.index] = args[0]
            total = self.sum(node.body, window)
            rest = (self.scalar(result_of(stmt.body)[at]) for at in others)
            body.append(Yield((total, *rest), span=stmt.span))
        results = tuple(Value(stmt.results[node.index].name, type_of(init), stmt.span) for init in inits)
        bounds = {name: self.scalar(getattr(stmt, name)) for name in ("start", "stop", "step")}
        self.emit(stmt.replace(**bounds, iv=iv, inits=inits, iter_args=args, body=tuple(body), results=results))
        return results[0]

    def branch(self, node: Branch, window: Window) -> Value:
        stmt = node.stmt
        arms: list[Block] = []
        for block, inner in zip(stmt.blocks(), (node.then, node.otherwise), strict=True):
            with self.copied(block, {}) as body:
                body.append(Yield((self.sum(inner, window),), span=stmt.span))
            arms.append(tuple(body))
        result = Value(stmt.results[node.index].name, type_of(result_of(arms[0])[0]), stmt.span)
        self.emit(If(self.scalar(stmt.condition), arms[0], arms[1], (result,), span=stmt.span))
        return result

    @contextmanager
    def copied(self, block: Block, replaced: Mapping[Value, Scalar]) -> Generator[list[Stmt]]:
        """A new block that begins with copies of what the plan says of `block`; `replaced` holds in there."""
        plan = self.current
        assert plan is not None
        needed = plan.slices.of(block[-1], self.index)
        inside = [v for stmt in walk(tuple(needed)) for v in (*stmt.defs(), *stmt.block_args())]
        before = {value: self.env.get(value) for value in (*replaced, *inside)}
        self.env.update(replaced)
        with self.nested() as body:
            for stmt in needed:
                for copy in clone_block((stmt,), self.env):
                    self.emit(copy)
            yield body
        for value, old in before.items():
            if old is None:
                self.env.pop(value, None)
            else:
                self.env[value] = old

    # --- products ---
    def accumulator(self, plan: ProductPlan) -> Value | None:
        field = accumulator_field(plan.product.op)
        return None if field is None else self.value(getattr(plan.product.op, field))

    def product(self, node: Product, acc: Value | None, window: Window) -> Value:
        """A window of one product on top of `acc`, K step by K step."""
        plan, (op, form) = self.plans[node.stmt], (node.op, node.form)
        lhs, rhs = getattr(op, form.lhs), getattr(op, form.rhs)
        depth = self.depth(lhs)
        size = plan.tile.k
        name, span = node.stmt.target.name, node.stmt.span

        def sides(at: Scalar, width: int) -> tuple[Value, Value]:
            rows = Window(window.row, window.rows, 0, plan.problem.k)
            cols = Window(0, plan.problem.k, window.col, window.cols)
            left = Window(window.row, window.rows, at, width)
            right = Window(at, width, window.col, window.cols)
            return (
                self.operand(lhs, left, rows, LEFT, plan.bring(form.lhs)),
                self.operand(rhs, right, cols, RIGHT, plan.bring(form.rhs)),
            )

        def step(at: Scalar, total: Value, width: int) -> Value:
            left, right = sides(at, width)
            return self.let(MatmulAcc(acc=total, lhs=left, rhs=right, span=span), name, span, total.type)

        first = min(size, plan.problem.k)
        total = self.first_step(node, acc, sides(0, first), window)
        if isinstance(depth, int) and depth <= first:
            return total
        streams = max(plan.tile.lhs_buffers, plan.tile.rhs_buffers)
        for run in segments(depth, size, first):
            total = self.over(run, total, lambda at, held, w=run.size: step(at, held, w), node.stmt.target, streams)
        return total

    def first_step(self, node: Product, acc: Value | None, sides: tuple[Value, Value], window: Window) -> Value:
        """The product as it was written, on its first step of K: what it starts from is its own."""
        op, form = node.op, node.form
        given = {form.lhs: sides[0], form.rhs: sides[1]}
        if form.acc is not None:
            given[form.acc] = acc if acc is not None else self.bias(getattr(op, form.acc), window)
        arrays = {value for _, value in op.operand_items()}
        new = op.with_operands(lambda old: old if old in arrays else self.get(old)).replace(**given)
        made, old = new.infer(), node.stmt.target.type
        assert isinstance(made, TileType) and isinstance(old, TileType)
        if old.space is not None and made.space is None:
            made = made.with_(space=old.space)
        return self.let(new, node.stmt.target.name, node.stmt.span, made)

    def depth(self, lhs: Value) -> Scalar:
        """The extent of K that has meaning."""
        kind = lhs.type
        assert isinstance(kind, TileType)
        valid = self.scalar(kind.valid[1])
        return logical(kind, 1) if isinstance(valid, int) else valid

    # --- operands ---
    def operand(self, value: Value, window: Window, whole: Window, space: MemorySpace, bring: Bring) -> Value:
        """A window of an operand, in the memory from which the matrix engine reads it. `whole` is the window with all
        of K."""

        def make() -> Value:
            if bring is Bring.BLOCK:
                return self.moved(self.loaded(value, window), space)
            if bring is Bring.PANEL:
                panel = self.panel(value, whole)
                at = _minus(window.row, whole.row), _minus(window.col, whole.col)
                return self.window(panel, Window(at[0], window.rows, at[1], window.cols), space)
            return self.window(self.value(value), window, space)

        return self.once(("operand", value, window, space), make)

    def panel(self, value: Value, window: Window) -> Value:
        return self.once(("panel", value, window), lambda: self.loaded(value, window))

    def loaded(self, value: Value, window: Window) -> Value:
        return narrowed(value, window.offsets, window.extents, self.index, self.part, self.scalar)

    def window(self, tile: Value, window: Window, space: MemorySpace) -> Value:
        """A part of a tile, taken to `space`."""
        if self.target.same_memory(MAT, space):
            return sliced(tile, window.offsets, window.extents, lambda op, of: self.let(op, of.name, of.span))
        kind = tile.type
        assert isinstance(kind, TileType)
        if kind.shape == window.extents:
            return self.moved(tile, space)
        valid = valid_part(kind, window.offsets, window.extents)
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
        if load_of(value, self.index) is not None:
            return self.panel(value, row)
        return self.once(
            ("bias", value, row), lambda: sliced(self.value(value), row.offsets, row.extents, self.part)
        )  # fmt: skip


def _minus(a: Scalar, b: Scalar) -> Scalar:
    return 0 if a == b else a if b == 0 else a - b

