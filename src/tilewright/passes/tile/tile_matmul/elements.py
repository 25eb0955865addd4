"""Computing one window of a result: the sum there, from its products, loops and branches, and what follows it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext

from tilewright.analysis.footprint import footprint
from tilewright.ir.loops import Elementwise, Map
from tilewright.ir.nodes import Block, If, Let, Stmt, Yield, result_of, walk
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import clone_block, type_of
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, constant
from tilewright.ir.types import TileType
from tilewright.ops.create import Create, Full
from tilewright.passes.tile.tile_matmul.forms import Branch, Carried, Index, Loop, Node, Product, Seed
from tilewright.passes.tile.tile_matmul.operands import load_of, part_of, sliced
from tilewright.passes.tile.tile_matmul.products import ProductWriter
from tilewright.passes.tile.tile_matmul.sinks import ROOM, VEC
from tilewright.passes.tile.tile_matmul.slices import NEVER
from tilewright.passes.tile.tile_matmul.windows import Window
from tilewright.targets import Target


class ElementWriter(ProductWriter):
    """Appends the statements that compute a window of what is stored."""

    def __init__(self, index: Index, target: Target) -> None:
        super().__init__(index, target)
        self.carried: dict[tuple[Stmt, int], Value | Seed] = {}
        """what the loops that are being written bring along of their sums"""

    # --- what is stored ---
    def element(self, value: Value, window: Window) -> Value:
        """A window of the sum, or of what is computed of it element by element; of another tile, where that is."""
        assert self.current is not None
        return self.once(("element", value, window), lambda: self._element(value, window))

    def _element(self, value: Value, window: Window) -> Value:
        plan = self.current
        assert plan is not None
        if self.index.temporary.get(value) is not None:
            return self.loaded(value, window)
        if value is plan.root:
            return self.total(plan.node, window)
        stmt = self.index.defs.get(value)
        op = stmt.value if isinstance(stmt, Let) else None
        if not isinstance(op, Op) or not isinstance(op.loops, Elementwise) or not self.follows(value):
            return self.other(value, window)
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

    def other(self, value: Value, window: Window) -> Value:
        """A window of a tile that is no part of the sum: loaded by itself where the whole would take much room."""
        plan, kind = self.current, value.type
        assert plan is not None and isinstance(kind, TileType)
        load = load_of(value, self.index, VEC)
        store = plan.sink.store if plan.sink.after is None else plan.sink.after[1]
        if load is not None and store is not None and isinstance(load.value, Op) and load.target is value:
            tensor = next(operand for _, operand in load.value.operand_items())
            large = ROOM * footprint(TileType(kind.static_shape, kind.dtype, VEC), self.target)
            unchanged = self.index.consumed.get(tensor, NEVER) > self.index.position[store]
            if large > self.target.capacity(VEC) and unchanged:
                return self.loaded(value, window)
        return sliced(self.value(value), window, self.placed)

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
    def total(self, node: Node, window: Window) -> Value:
        """A window of a whole sum of products."""
        found = self.sum(node, window)
        return self.seed(found, window) if isinstance(found, Seed) else found

    def sum(self, node: Node, window: Window) -> Value | Seed:
        """A window of a part of a sum; a seed while nothing has been added to it."""
        match node:
            case Seed():
                return node
            case Carried(stmt=stmt, index=at):
                return self.carried[stmt, at]
            case Product(acc=acc):
                return self.product(node, None if acc is None else self.sum(acc, window), window)
            case Loop():
                return self.loop(node, window)
            case Branch():
                return self.branch(node, window)

    def seed(self, node: Seed, window: Window) -> Value:
        """The tile that a sum starts from, where no product is known to come first."""
        stmt, kind = node.stmt, node.stmt.target.type
        assert isinstance(kind, TileType)
        four = zip(kind.valid, kind.shape, window.offsets, window.extents, strict=True)
        valid = tuple(part_of(self.scalar(v), p, o, e) for v, p, o, e in four)
        given = None if valid == window.extents else valid
        op: Op
        if node.zero:
            op = Full(window.extents, kind.dtype, constant(0, kind.dtype), given, level=Level.TILE, span=stmt.span)
        else:
            op = Create(window.extents, kind.dtype, kind.space, None, given, level=Level.TILE, span=stmt.span)
        return self.let(op, stmt.target.name, stmt.span)

    def loop(self, node: Loop, window: Window) -> Value | Seed:
        """The loop again, with a window of its accumulator, and of what else it carries what operands need. A first
        trip that is known to run and has nothing to add to stands in front of the loop."""
        stmt, plan = node.stmt, self.current
        assert plan is not None
        others = plan.slices.carries.get(stmt, [])
        start = self.sum(node.init, window)
        rest = tuple(self.scalar(stmt.inits[at]) for at in others)
        bounds = {name: self.scalar(getattr(stmt, name)) for name in ("start", "stop", "step")}
        if not isinstance(start, Seed):
            return self.trips(node, window, bounds, (start, *rest))
        count = stmt.replace(**bounds).trip_count
        if not count:
            return self.trips(node, window, bounds, (self.seed(start, window), *rest))
        replaced = dict(zip([stmt.iv, *(stmt.iter_args[at] for at in others)], [bounds["start"], *rest], strict=True))
        with self.copied(stmt.body, replaced, inline=True):
            self.carried[stmt, node.index] = start
            first = self.sum(node.body, window)
            rest = tuple(self.scalar(result_of(stmt.body)[at]) for at in others)
        if count == 1:
            return first
        first = self.seed(first, window) if isinstance(first, Seed) else first
        bounds["start"] = binary(BinaryKind.ADD, bounds["start"], bounds["step"])
        later = {binary(BinaryKind.EQ, stmt.iv, stmt.start): False, binary(BinaryKind.NE, stmt.iv, stmt.start): True}
        self.known.update(later)
        result = self.trips(node, window, bounds, (first, *rest))
        for condition in later:
            self.known.pop(condition, None)
        return result

    def trips(self, node: Loop, window: Window, bounds: dict[str, Scalar], inits: tuple[Scalar, ...]) -> Value:
        """The loop between `bounds`, carrying the sum and what else is needed, which start as `inits`."""
        stmt, plan = node.stmt, self.current
        assert plan is not None
        others = plan.slices.carries.get(stmt, [])
        iv = Value(stmt.iv.name, stmt.iv.type, stmt.iv.span)
        old = [stmt.iter_args[at] for at in (node.index, *others)]
        args = tuple(Value(arg.name, type_of(init), arg.span) for arg, init in zip(old, inits, strict=True))
        replaced = dict(zip([stmt.iv, *old[1:]], [iv, *args[1:]], strict=True))
        with self.copied(stmt.body, replaced) as body:
            self.carried[stmt, node.index] = args[0]
            total = self.total(node.body, window)
            rest = (self.scalar(result_of(stmt.body)[at]) for at in others)
            body.append(Yield((total, *rest), span=stmt.span))
        results = tuple(Value(stmt.results[node.index].name, type_of(init), stmt.span) for init in inits)
        self.emit(stmt.replace(**bounds, iv=iv, inits=inits, iter_args=args, body=tuple(body), results=results))
        return results[0]

    def branch(self, node: Branch, window: Window) -> Value | Seed:
        stmt = node.stmt
        decided = self.decided(stmt.condition)
        if decided is not None:
            block, inner = (stmt.then, node.then) if decided else (stmt.otherwise, node.otherwise)
            with self.copied(block, {}, inline=True):
                return self.sum(inner, window)
        for key, held in self.carried.items():
            if isinstance(held, Seed):  # each arm starts from the same tile
                self.carried[key] = self.seed(held, window)
        arms: list[Block] = []
        for block, inner in zip(stmt.blocks(), (node.then, node.otherwise), strict=True):
            with self.copied(block, {}) as body:
                body.append(Yield((self.total(inner, window),), span=stmt.span))
            arms.append(tuple(body))
        result = Value(stmt.results[node.index].name, type_of(result_of(arms[0])[0]), stmt.span)
        self.emit(If(self.scalar(stmt.condition), arms[0], arms[1], (result,), span=stmt.span))
        return result

    @contextmanager
    def copied(self, block: Block, replaced: Mapping[Value, Scalar], *, inline: bool = False) -> Generator[list[Stmt]]:
        """A new block (`inline`: no block) that begins with copies of what the plan says of `block`; `replaced` holds
        in there."""
        plan = self.current
        assert plan is not None
        needed = plan.slices.of(block[-1], self.index)
        inside = [v for stmt in walk(tuple(needed)) for v in (*stmt.defs(), *stmt.block_args())]
        before = {value: self.env.get(value) for value in (*replaced, *inside)}
        self.env.update(replaced)
        with nullcontext(self._out) if inline else self.nested() as body:
            if inline:
                self.made.append({})
            for stmt in needed:
                for copy in clone_block((stmt,), self.env):
                    self.emit(copy)
            yield body
            if inline:
                self.made.pop()
        for value, old in before.items():
            if old is None:
                self.env.pop(value, None)
            else:
                self.env[value] = old
