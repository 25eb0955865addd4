"""Deciding: which products are cut, into what, and where the parts of each result go."""

from __future__ import annotations

from dataclasses import replace

from tilewright.analysis.footprint import footprint
from tilewright.analysis.hints import PerfHint
from tilewright.analysis.liveness import live_ranges
from tilewright.analysis.spaces import accepted
from tilewright.analysis.tile_chooser import L0Tile, Problem, Stationary, alignment, choose_l0_tile
from tilewright.errors import CapacityError, NoRouteError, Span, TargetError
from tilewright.ir.function import Function
from tilewright.ir.layout import ROW_MAJOR, MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType, TileView
from tilewright.passes.tile.tile_matmul.forms import (
    Branch,
    Loop,
    Node,
    Product,
    Unchained,
    bias_field,
    check_defined,
    index_of,
    nodes_of,
    products_of,
    root_of,
    sum_of,
)  # fmt: skip
from tilewright.passes.tile.tile_matmul.levels import Choice, Operand, choose
from tilewright.passes.tile.tile_matmul.operands import Bring, is_turned, load_of
from tilewright.passes.tile.tile_matmul.plan import FunctionTiles, ProductPlan, Sink, SumPlan
from tilewright.passes.tile.tile_matmul.sinks import Sinks, tile_type
from tilewright.passes.tile.tile_matmul.slices import NEVER, Slices, slices_of
from tilewright.targets import Target

ACC, MAT = MemorySpace.ACC, MemorySpace.MAT


def decide(function: Function, target: Target) -> FunctionTiles:
    """The plan for one function. Raises `AccumulatorError`, and `CapacityError` where not even one box fits or an
    operand that its user placed does not."""
    decider = _Decider(function, target)
    products = [
        (stmt, stmt.value)
        for stmt in function.walk()
        if isinstance(stmt, Let) and isinstance(stmt.value, Op) and isinstance(stmt.value.loops, Contract)
    ]
    for _, op in products:
        decider.hold(op)
    for stmt, op in products:
        decider.product(stmt, op)
    return decider.tiles


class _Decider:
    def __init__(self, function: Function, target: Target) -> None:
        self.target = target
        self.index = index_of(function)
        self.tiles = FunctionTiles(function.name)
        self.seen: set[Stmt] = set()
        self.live = live_ranges(function)
        self.sinks = Sinks(self.index, target)
        self.held: dict[Value, int] = {}
        """operands that are taken to be on chip as a whole, with their bytes in the big memory"""

    def operands_of(self, op: Op) -> list[Value]:
        """The tiles that are loaded, or made, for the operands of a product."""
        form = op.loops
        assert isinstance(form, Contract)
        values: list[Value] = [getattr(op, form.lhs), getattr(op, form.rhs)]
        loads = [load_of(value, self.index) for value in values]
        return [value if load is None else load.target for value, load in zip(values, loads, strict=True)]

    def hold(self, op: Op) -> None:
        for value in self.operands_of(op):
            kind = tile_type(value)
            if all(isinstance(extent, int) for extent in kind.shape) and kind.space in (None, MAT):
                self.held[value] = footprint(TileType(kind.static_shape, kind.dtype, MAT), self.target)

    def taken(self, product: Product) -> int:
        """Bytes of the big memory that other operands hold while a product runs."""
        own = self.operands_of(product.op)
        first, last = 2 * self.live.begins[product.stmt], 2 * self.live.begins[product.stmt] + 1
        return sum(
            nbytes
            for value, nbytes in self.held.items()
            if value not in own and any(a <= last and first <= b for a, b in self.live.ranges.get(value, ()))
        )

    def product(self, stmt: Let, op: Op) -> None:
        """Decides for the sum that a product belongs to, once."""
        if stmt in self.seen:
            return
        root = root_of(stmt.target, self.index)
        try:
            node = sum_of(root, self.index)
        except Unchained as reason:
            self.seen.add(stmt)
            self.alone(stmt, op, str(reason))
            return
        check_defined(node)
        found = products_of(node)
        self.seen |= {part.stmt for part in found}
        if any(self.is_fixed(part) for part in found):
            return
        chosen = [self.tile_of(part) for part in found]
        if not all(chosen):
            return
        pairs = [(part, *tile) for part, tile in zip(found, chosen, strict=True) if tile]
        self.whole_sum(root, node, pairs)

    # --- one product ---
    def is_fixed(self, product: Product) -> bool:
        """Whether an operand was placed in the matrix engine's own memory: its user's tile is left alone, and must
        fit."""
        fixed = False
        for field in (product.form.lhs, product.form.rhs):
            value: Value = getattr(product.op, field)
            space = value.type.space if isinstance(value.type, TileType) else None
            if space is None or space not in accepted(product.op, field, self.target):
                continue
            if not self.target.same_memory(space, MAT):
                fixed = True
                self.check_fits(value, space, self.index.defs[value].span)
        return fixed

    def check_fits(self, value: Value, space: MemorySpace, span: Span) -> None:
        kind = value.type
        assert isinstance(kind, TileType)
        if not all(isinstance(extent, int) for extent in kind.shape):
            return
        nbytes, capacity = footprint(kind, self.target), self.target.capacity(space)
        if nbytes > capacity:
            raise CapacityError(
                f"the tile {value.name!r} does not fit {space.value} of {self.target.name}",
                span=span,
                required=f"at most {capacity:,} bytes",
                found=f"{list(kind.shape)} {kind.dtype}, {nbytes:,} bytes physical",
                help=f"leave out target_memory=pl.Mem.{space.value} and let the compiler cut the product",
            )

    def tile_of(self, product: Product) -> tuple[Problem, L0Tile] | None:
        """The problem and its tile; None, with a hint, for what the machine's matrix engine does not do."""
        op, form = product.op, product.form
        lhs, rhs = tile_type(getattr(op, form.lhs)), tile_type(getattr(op, form.rhs))
        span = product.stmt.span
        if not all(isinstance(extent, int) for extent in (*lhs.shape, *rhs.shape)):
            self.hint("PH-AT-005", "the physical shape of an operand is known only at run time", span)
            return None
        if min(lhs.dtype.bits, rhs.dtype.bits) < 8:
            self.hint("PH-AT-003", f"a product of {lhs.dtype} and {rhs.dtype} stays whole", span)
            return None
        problem = Problem(
            logical(lhs, 0), logical(rhs, 1), min(logical(lhs, 1), logical(rhs, 0)), lhs.dtype,
            product.stmt.target.dtype, bias_field(op) is not None, rhs_dtype=rhs.dtype,
            a_trans=self.turned(getattr(op, form.lhs)), b_trans=self.turned(getattr(op, form.rhs)),
        )  # fmt: skip
        try:
            return problem, choose_l0_tile(problem, self.target)
        except CapacityError as error:
            raise error.at(span) from None
        except (NoRouteError, TargetError) as error:
            self.hint("PH-AT-005", f"a product of {lhs.dtype} and {rhs.dtype} stays whole: {error.message}", span)
            return None

    def turned(self, value: Value) -> bool:
        return load_of(value, self.index) is not None and is_turned(value, self.index)

    def hint(self, code: str, message: str, span: Span) -> None:
        self.tiles.hints.append(PerfHint(code, message, span))

    # --- a whole sum ---
    def whole_sum(self, root: Value, node: Node, found: list[tuple[Product, Problem, L0Tile]]) -> None:
        first, problem, tile = found[0]
        m, n = min(t.m for _, _, t in found), min(t.n for _, _, t in found)
        gridded = m < problem.m or n < problem.n
        if not gridded:
            for part in found:
                self.in_place(*part)
            return
        inner = tuple(part.stmt for part in nodes_of(node) if isinstance(part, (Loop, Branch)))
        if self.sinks.of(root).store is None and self.fits_whole(found):
            return
        plans: dict[Stmt, ProductPlan] = {
            product.stmt: self.plan(product, p, replace(t, m=m, n=n), inner, in_place=False) for product, p, t in found
        }
        rows_outside = plans[first.stmt].choice.rows_outside
        try:
            plan = self.grid(root, node, (m, n), plans, rows_outside)
        except Unchained as reason:
            for product, p, t in found:
                self.forced(product, p, t, str(reason))
            return
        if plan.sink.store is None and plan.sink.space is None:
            self.index.temporary[plan.sink.value] = None
            self.tiles.hints += self.sinks.hints(root, plan.sink)
        self.tiles.sums.append(plan)
        self.tiles.chosen += plans.values()
        self.fallback_hint(first, tile)
        for product, _, _ in found:
            bias = bias_field(product.op)
            if bias is not None and n < problem.n and load_of(getattr(product.op, bias), self.index) is None:
                name = getattr(product.op, bias).name
                message = f"the bias {name!r} is computed: its parts are taken from it on chip"
                self.hint("PH-AT-011", message, product.stmt.span)

    def fits_whole(self, found: list[tuple[Product, Problem, L0Tile]]) -> bool:
        """Decides for K steps alone where the result fits: a reader on chip takes it from the accumulator, and parts
        would have to be collected for it first."""
        wholes = [self.whole_tile(problem, tile) for _, problem, tile in found]
        if not all(wholes):
            return False
        for (product, problem, _), whole in zip(found, wholes, strict=True):
            assert whole is not None
            self.in_place(product, problem, whole)
        return True

    def grid(
        self, root: Value, node: Node, extents: tuple[int, int], plans: dict[Stmt, ProductPlan], rows_outside: bool
    ) -> SumPlan:
        brings = {
            (stmt, field): plan.bring(field)
            for stmt, plan in plans.items()
            for field in (plan.product.form.lhs, plan.product.form.rhs)
        }
        sink = self.sinks.of(root)
        try:
            slices = self.slices(node, brings, sink)
        except Unchained:
            if sink.store is None:
                raise
            sink = self.sinks.collected(root)  # where the sum ends, before what was written in between
            slices = self.slices(node, brings, sink)
        return SumPlan(root, node, *extents, rows_outside, plans, sink, slices)

    def slices(self, node: Node, brings: dict[tuple[Stmt, str], Bring], sink: Sink) -> Slices:
        return slices_of(node, brings, self.index, self.index.position[sink.at])

    def in_place(self, product: Product, problem: Problem, tile: L0Tile) -> None:
        """A product whose result fits is at most cut along K, where it stands. It keeps its physical shape, as what it
        adds to and what reads it has that, too."""
        rows, columns = tile_type(product.stmt.target).static_shape
        if (problem.m, problem.n) != (rows, columns):
            problem = replace(problem, m=rows, n=columns)
            whole = self.whole_tile(problem, tile)
            if whole is None:
                return
            tile = whole
        plan = self.plan(product, problem, tile, (), in_place=True)
        self.tiles.chosen.append(plan)
        if plan.is_cut:
            self.tiles.products[product.stmt] = plan
            self.fallback_hint(product, tile)

    def fallback_hint(self, product: Product, tile: L0Tile) -> None:
        if tile.fallback:
            self.hint("PH-AT-008", f"the tile {tile} has room for single buffers only", product.stmt.span)

    def alone(self, stmt: Let, op: Op, reason: str) -> None:
        """A product of a sum that cannot be computed part by part."""
        assert isinstance(op.loops, Contract)
        product = Product(stmt, op, op.loops, None)
        if self.is_fixed(product):
            return
        tile = self.tile_of(product)
        if tile is not None:
            self.forced(product, *tile, reason)

    def forced(self, product: Product, problem: Problem, tile: L0Tile, reason: str) -> None:
        """The whole result at once, K in steps that fit."""
        rows, cols, _ = tile.grid(problem)
        if rows * cols > 1:
            whole = self.whole_tile(problem, tile)
            shape = f"[{problem.m}, {problem.n}]"
            self.hint("PH-AT-006", f"the sum {shape} is not cut into tiles of {tile.m} x {tile.n}: {reason}",
                      product.stmt.span)  # fmt: skip
            if whole is None:
                return
            tile = whole
        self.in_place(product, problem, tile)

    def whole_tile(self, problem: Problem, tile: L0Tile) -> L0Tile | None:
        """The tile that covers the result, with the largest k that fits; None when the result itself does not."""
        am, an, ak = alignment(problem, self.target)
        m, n = -(-problem.m // am) * am, -(-problem.n // an) * an
        if footprint(TileType((m, n), problem.acc_dtype, ACC), self.target) > self.target.capacity(ACC):
            return None
        largest = min(-(-problem.k // ak) * ak, self.target.matmul.max_extent or NEVER)
        for buffers in range(self.target.matmul.moving_buffers, 0, -1):
            for k in range(largest, 0, -ak):
                whole = k >= problem.k
                if self.operands_fit(problem, (m, n, k), 1 if whole else buffers):
                    held = Stationary.A if whole else Stationary.OUTPUT
                    copies = 1 if whole else buffers
                    return replace(
                        tile, m=m, n=n, k=k, stationary=held, accumulators=1, lhs_buffers=copies, rhs_buffers=copies,
                        runner_up=None,
                    )  # fmt: skip
        return None

    def operands_fit(self, problem: Problem, tile: tuple[int, int, int], copies: int) -> bool:
        m, n, k = tile
        if max(tile) > (self.target.matmul.max_extent or NEVER):
            return False
        sides = (((m, k), problem.dtype, MemorySpace.LEFT), ((k, n), problem.rhs, MemorySpace.RIGHT))
        return all(
            copies * footprint(TileType(shape, dtype, at), self.target) <= self.target.capacity(at)
            for shape, dtype, at in sides
        )

    # --- operands ---
    def plan(
        self, product: Product, problem: Problem, tile: L0Tile, inner: tuple[Stmt, ...], *, in_place: bool
    ) -> ProductPlan:
        op, form = product.op, product.form
        sides = [self.operand(getattr(op, field), product.stmt, inner) for field in (form.lhs, form.rhs)]
        if in_place and tile.grid(problem)[2] == 1:
            choice = Choice(Bring.WHOLE, Bring.WHOLE, True)
        else:
            taken = self.taken(product) + self.bias_bytes(op)
            choice = choose(problem, tile, (sides[0], sides[1]), self.target, taken, in_place=in_place)
            for value, bring in zip(self.operands_of(op), (choice.lhs, choice.rhs), strict=True):
                if bring is not Bring.WHOLE:
                    self.held.pop(value, None)
        return ProductPlan(product, problem, tile, choice)

    def bias_bytes(self, op: Op) -> int:
        """Bytes of the big memory that the bias takes on its way: one plain row."""
        field = bias_field(op)
        if field is None:
            return 0
        kind = tile_type(getattr(op, field))
        return footprint(TileType(kind.static_shape, kind.dtype, MAT, TileView(layout=ROW_MAJOR)), self.target)

    def operand(self, value: Value, at: Stmt, inner: tuple[Stmt, ...]) -> Operand:
        kind, load = tile_type(value), load_of(value, self.index)
        in_loop = any(self.index.inside(value, stmt) for stmt in inner)
        if load is not None and load.target not in self.index.temporary:
            assert isinstance(load.value, Op)
            tensor = next(v for _, v in load.value.operand_items())
            if self.index.consumed.get(tensor, NEVER) <= self.index.position[at]:
                load = None
        return Operand(kind.dtype, kind.static_shape, load is not None, in_loop)


def logical(kind: TileType, axis: int) -> int:
    """The extent that has meaning, where it is known when compiling; else the physical one."""
    valid, physical = kind.valid[axis], kind.static_shape[axis]
    return max(1, valid) if isinstance(valid, int) else physical
