"""Space inference: every tile gets a memory space, and whoever wants it elsewhere gets one move.

Before:  x = pl.tile.load(a, [0, 0], [64, 64])
         y = pl.tile.load(b, [0, 0], [64, 64])
         c = pl.tile.matmul(x, y)
After:   x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
         y = pl.tile.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
         x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
         y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
         c: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x_left, y_right)

The plan (`analysis.space_plan`) says where each tile lives; this pass writes it down. There is one bridge per value,
space and enclosing block, as late as its first consumer, and outside a loop that does not change the value where the
capacity allows. A rounding of an accumulator becomes part of the move or store that follows it.

Refuses: zeros that start an accumulator and that a first product may not overwrite (`AccumulatorError`). A move without
a route is refused where routes are made (`legalize_moves`)."""

from __future__ import annotations

from tilewright.analysis.space_constraints import Slot, constraints_of
from tilewright.analysis.space_hoisting import hoisted_bridges
from tilewright.analysis.space_plan import Bridge, SpacePlan, plan_spaces
from tilewright.analysis.spaces import placing_attribute
from tilewright.analysis.uses import uses_of
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, Let, Stmt, Yield
from tilewright.ir.op import Effect, Op
from tilewright.ir.rewrite import Rewriter, placed_like, type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType, Type
from tilewright.ops.movement import Move
from tilewright.passes.tile.accumulators import start_accumulators
from tilewright.passes.tile.turned_views import settle_turned_views
from tilewright.targets import Target


def infer_spaces(program: Program, target: Target) -> Program:
    """Requires SSA at the tile level. Ensures that every tile has a space and every operand is where it is read."""
    return program.map(lambda function: place_function(function, target))


def place_function(function: Function, target: Target) -> Function:
    """One function placed; itself when it holds no tile that lacks a space, and no operand stands elsewhere."""
    if function.kind is not FunctionKind.INCORE:
        return function
    function = prepared(function, target)
    placer = _Placer(plan_spaces(constraints_of(function, target)), function, target)
    placed = placer.function(function)
    return placed if placed is function else _without_unread(placed, {placer.get(value) for value in uses_of(function)})


def plan_of(function: Function, target: Target) -> SpacePlan:
    """Where every tile of `function` goes; what `--explain` shows."""
    return plan_spaces(constraints_of(prepared(function, target), target))


def prepared(function: Function, target: Target) -> Function:
    """The function with the forms that no placement could serve put into others."""
    return start_accumulators(settle_turned_views(function, target), target)


Key = tuple[Value, MemorySpace]


def _without_unread(function: Function, read: set[Scalar]) -> Function:
    """`function` without the loads and views that were read before, and of which every reader got another."""
    uses = uses_of(function)
    dead: set[Value] = set()
    for stmt in reversed(list(function.walk())):
        if isinstance(stmt, Let) and isinstance(stmt.value, Op) and isinstance(stmt.target.type, TileType):
            readers = [use.stmt for use in uses.get(stmt.target, ())]
            unread = all(isinstance(reader, Let) and reader.target in dead for reader in readers)
            if unread and stmt.target in read and stmt.value.effect is Effect.PURE:
                dead.add(stmt.target)
    return _Dropper(dead).function(function) if dead else function


class _Dropper(Rewriter):
    def __init__(self, dead: set[Value]) -> None:
        super().__init__()
        self.dead = dead

    def visit_let(self, stmt: Let) -> None:
        if stmt.target not in self.dead:
            super().visit_let(stmt)


class _Placer(Rewriter):
    def __init__(self, plan: SpacePlan, function: Function, target: Target) -> None:
        super().__init__()
        self.plan = plan
        self.target = target
        self.made: list[dict[Key, Value]] = [{}]
        self.hoisted = hoisted_bridges(plan, function, target)

    # --- bridges ---
    def bridge(self, bridge: Bridge, span_of: Stmt) -> Value:
        """The value in the space that its consumer wants: the bridge of an enclosing block, or a new one here."""
        key = (bridge.value, bridge.space)
        for scope in reversed(self.made):
            if key in scope:
                return scope[key]
        name = f"{bridge.value.name}_{bridge.space.value.lower()}"
        if bridge.chain:
            made = self.load_again(bridge, name)
        else:
            op = Move(self.value(bridge.value), target_memory=bridge.space, span=span_of.span)
            made = self.let(op, name, span_of.span, self.placed(op.infer(), None, bridge.space))
        self.made[-1][key] = made
        return made

    def load_again(self, bridge: Bridge, name: str) -> Value:
        """The load and its views once more, in another space."""
        again: dict[Value, Value] = {}
        for stmt in bridge.chain:
            op = stmt.value
            assert isinstance(op, Op)
            op = op.with_operands(lambda value: again[value] if value in again else self.get(value))
            attribute = placing_attribute(op)
            if attribute is not None:
                op = op.replace(**{attribute: bridge.space})
            again[stmt.target] = self.let(op, name, stmt.span, self.placed(op.infer(), None, bridge.space))
        return again[bridge.value]

    def placed(self, inferred: Type, old: Type | None, space: MemorySpace) -> Type:
        """`inferred`, in `space`; what else the old type said stays, if the space was the same."""
        if not isinstance(inferred, TileType):
            return inferred
        result = inferred if old is None else placed_like(inferred, old)
        assert isinstance(result, TileType)
        return result if result.space is space else result.with_(space=space)

    def served(self, slot: Slot, value: Scalar) -> Scalar:
        """What the consumer at `slot` reads in place of `value`."""
        stored = self.plan.stored.get(slot)
        if stored is not None:
            return self.get(stored)
        bridge = self.plan.bridges.get(slot)
        if bridge is not None:
            return self.bridge(bridge, slot[0])
        return self.get(value) if isinstance(value, Value) else self.scalar(value)

    # --- statements ---
    def block(self, block: Block) -> Block:
        self.made.append({})
        try:
            return super().block(block)
        finally:
            self.made.pop()

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            super().visit_let(stmt)
            return
        converted = self.plan.converted.get(stmt.target)
        if stmt.target in self.plan.dropped:
            return
        if converted is not None:
            self.convert(stmt, converted)
            return
        new = op.with_operands(self.get)
        other = {n: self.served((stmt, n), v) for n, v in op.operand_items() if self.differs((stmt, n))}
        space = self.plan.homes.get(stmt.target)
        attribute = placing_attribute(op)
        if attribute is not None and space is not None and getattr(op, attribute) is None:
            other[attribute] = space  # type: ignore[assignment]
        new = new.replace(**other) if other else new
        inferred, old = new.infer(), stmt.target.type.substitute(self.get)
        wanted = placed_like(inferred, old) if space is None else self.placed(inferred, old, space)
        if new is op and wanted is stmt.target.type:
            self.emit(stmt)
        else:
            target = self.retype(stmt.target, wanted)
            self.emit(Let(target, new, span=stmt.span))

    def differs(self, slot: Slot) -> bool:
        return slot in self.plan.bridges or slot in self.plan.stored

    def convert(self, stmt: Let, source: Value) -> None:
        """The conversion becomes part of a move."""
        space = self.plan.homes[stmt.target]
        op = Move(self.value(source), target_memory=space, target_type=stmt.target.dtype, span=stmt.span)
        made = self.let(op, stmt.target.name, stmt.span, self.placed(op.infer(), None, space))
        self.bind(stmt.target, made)

    def visit_for(self, stmt: For) -> None:
        for bridge in self.hoisted.get(stmt, ()):
            self.bridge(bridge, stmt)
        inits = tuple(self.served((stmt, index), init) for index, init in enumerate(stmt.inits))
        changed = any(a is not b for a, b in zip(inits, stmt.inits, strict=True))
        carried = zip(stmt.iter_args, stmt.results, inits, strict=True)
        iter_args = tuple(self.retype(arg, self.joint(arg, type_of(init))) for arg, _, init in carried)
        body = self.block(stmt.body)
        results = tuple(self.retype(r, arg.type) for r, arg in zip(stmt.results, iter_args, strict=True))
        bounds = {name: self.scalar(getattr(stmt, name)) for name in ("start", "stop", "step")}
        same = all(a is getattr(stmt, name) for name, a in bounds.items()) and body is stmt.body and not changed
        if same and iter_args == stmt.iter_args and results == stmt.results:
            self.emit(stmt)
        else:
            self.emit(stmt.replace(**bounds, inits=inits, iter_args=iter_args, body=body, results=results))

    def joint(self, arg: Value, given: Type) -> Type:
        """The type of a carried value: that of its initial value, which is in the space that the plan gives both."""
        return placed_like(given, arg.type.substitute(self.get))

    def visit_terminator(self, stmt: Yield) -> None:
        values = tuple(self.served((stmt, index), value) for index, value in enumerate(stmt.values))
        same = all(a is b for a, b in zip(values, stmt.values, strict=True))
        self.emit(stmt if same else stmt.replace(values=values))
