"""Workspaces: tensors that a tile function makes for itself become parameters, since a kernel cannot allocate DDR.

A workspace inside a parallel loop needs a part for each work item, and one that crosses from one phase to the next a
part for each trip of every loop around it. The parts lie one behind another along the first dimension."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Scope, Stmt, Yield, result_of, walk
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, values_in
from tilewright.ir.storage import Roots, written_operand
from tilewright.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Workspace:
    """One tensor that the function creates. `param` takes it, large enough for all parts; `part` is the first row of
    the part that a trip uses, in terms of the loops around the creation."""

    created: Let
    param: Value
    part: Scalar


def plan_workspaces(function: Function, *, crossing: bool) -> dict[Value, Workspace]:
    """The workspaces by the value that the function's `create` makes. `crossing`: every loop around one multiplies it,
    not only parallel loops. Raises `UnsupportedError` where the number of trips is not known to the caller."""
    params = {param.value for param in function.params}
    found: dict[Value, Workspace] = {}

    def visit(block: Block, loops: tuple[For, ...]) -> None:
        for stmt in block:
            if isinstance(stmt, Let) and creates_tensor(stmt):
                found[stmt.target] = _workspace(stmt, loops, params)
            multiplies = isinstance(stmt, For) and (crossing or stmt.kind is LoopKind.PARALLEL)
            for inner in stmt.blocks():
                visit(inner, (*loops, stmt) if multiplies and isinstance(stmt, For) else loops)

    visit(function.body, ())
    return found


def creates_tensor(stmt: Let) -> bool:
    """Whether `stmt` makes a new tensor in DDR."""
    op = stmt.value
    makes = isinstance(op, Op) and isinstance(stmt.target.type, TensorType)
    return makes and isinstance(op, Op) and op.writes is None and op.view_of is None


def _workspace(stmt: Let, loops: tuple[For, ...], params: set[Value]) -> Workspace:
    kind = stmt.target.type
    assert isinstance(kind, TensorType)
    rows: Scalar = kind.shape[0]
    part: Scalar = 0
    for loop in loops:
        if loop.conditional:
            raise UnsupportedError(
                f"{stmt.target.name!r} needs a part for each trip of a loop that a condition may end",
                span=loop.span,
                required="loops without break, and no while, around work of both kinds of core",
                help="run all trips, and guard what they do with if; or end the section before the loop",
            )
        trips = _trips(loop)
        for value in values_in(trips) if not isinstance(trips, int) else ():
            if value not in params:
                raise UnsupportedError(
                    f"{stmt.target.name!r} needs a part for each trip of a loop whose bounds the caller does not know",
                    span=loop.span,
                    required="bounds made of constants and parameters",
                    found=f"bounds that depend on {value.name!r}",
                    help="make the loop run to a constant, and narrow what is valid in the last trips",
                )
        number = binary(BinaryKind.FLOORDIV, binary(BinaryKind.SUB, loop.iv, loop.start), loop.step)
        part = binary(BinaryKind.ADD, binary(BinaryKind.MUL, part, trips), number)
        rows = binary(BinaryKind.MUL, rows, trips)
    shape = (rows, *kind.shape[1:])
    value = Value(stmt.target.name, TensorType(shape, kind.dtype), stmt.target.span)
    return Workspace(stmt, value, binary(BinaryKind.MUL, part, kind.shape[0]))


def _trips(loop: For) -> Scalar:
    """The number of trips, at least 0."""
    length = binary(BinaryKind.SUB, loop.stop, loop.start)
    up = binary(BinaryKind.ADD, length, binary(BinaryKind.SUB, loop.step, 1))
    return binary(BinaryKind.MAX, binary(BinaryKind.FLOORDIV, up, loop.step), 0)


class Hoist(Rewriter):
    """Puts parameters in place of the tensors created, shifts what accesses them to the trip's part, and carries their
    versions through the loops and branches that store to them. `latest` holds the last version of each."""

    def __init__(self, plan: dict[Value, Workspace], roots: Roots) -> None:
        super().__init__()
        self.plan = plan
        self.roots = roots
        self.latest: dict[Value, Value] = {space.param: space.param for space in plan.values()}

    def visit_let(self, stmt: Let) -> None:
        space = self.plan.get(stmt.target)
        if space is not None:
            self.bind(stmt.target, self.latest[space.param])
            return
        op = stmt.value
        touched = self._touched(op) if isinstance(op, Op) else None
        if touched is None or not isinstance(op, Op):
            super().visit_let(stmt)
            return
        if op.view_of is not None and touched.part == 0:  # a whole workspace seen in another shape
            super().visit_let(stmt)
            return
        moved = op.with_operands(self.get)
        offsets: tuple[Scalar, ...] = getattr(moved, "offsets", ())
        if not offsets:
            raise UnsupportedError(f"{op.qualified_name} cannot use a workspace", span=stmt.span)
        first = binary(BinaryKind.ADD, offsets[0], self.scalar(touched.part))
        moved = moved.replace(offsets=(first, *offsets[1:]))
        if written_operand(op) is None:
            self.emit(stmt.replace(value=moved))
            return
        made = self.let(moved, stmt.target.name, stmt.span)
        self.bind(stmt.target, made)
        self.latest[touched.param] = made

    def _touched(self, op: Op) -> Workspace | None:
        for _, value in op.operand_items():
            found = self.space_of(value)
            if found is not None:
                return found
        return None

    def space_of(self, value: Scalar) -> Workspace | None:
        """The workspace that `value`, of the original function, is a version of."""
        root = self.roots.get(value) if isinstance(value, Value) else None
        return self.plan.get(root) if root is not None else None

    def written_in(self, stmt: Stmt) -> list[Workspace]:
        """The workspaces that are created and stored to inside `stmt`."""
        inside = [s for block in stmt.blocks() for s in walk(block) if isinstance(s, Let)]
        created = {let.target for let in inside if let.target in self.plan}
        stored: dict[Value, Workspace] = {}
        for let in inside:
            if isinstance(let.value, Op) and written_operand(let.value) is not None:
                root = self.roots.get(let.target)
                if root in created:
                    stored[self.plan[root].param] = self.plan[root]
        return list(stored.values())

    def _adopt(self, stmt: Stmt) -> None:
        """Workspaces created outside `stmt` come out of it as its own results."""
        for value in stmt.defs():
            space = self.space_of(value)
            if space is not None:
                self.latest[space.param] = self.value(value)

    # --- versions through control flow ---
    def visit_for(self, stmt: For) -> None:
        spaces = self.written_in(stmt)
        new = stmt.substitute(self.get)
        assert isinstance(new, For)
        args = tuple(
            self.retype(arg, self.carried_type(arg, init)) for arg, init in zip(stmt.iter_args, new.inits, strict=True)
        )
        inits = tuple(self.latest[space.param] for space in spaces)
        before = dict(self.latest)
        versions = self._fresh(spaces)
        body = self._handing_over(stmt.body, spaces)
        results = tuple(self.retype(r, arg.type) for r, arg in zip(stmt.results, args, strict=True))
        self.latest = before  # what was made inside is not there outside
        self.emit(
            new.replace(
                inits=(*new.inits, *inits),
                iter_args=(*args, *versions),
                results=(*results, *self._fresh(spaces)),
                body=body,
            )
        )
        self._adopt(stmt)

    def visit_if(self, stmt: If) -> None:
        self._arms(stmt, self.scalar(stmt.condition))

    def visit_scope(self, stmt: Scope) -> None:
        self._arms(stmt, None)

    def _arms(self, stmt: If | Scope, condition: Scalar | None) -> None:
        spaces = self.written_in(stmt)
        before = dict(self.latest)
        blocks: list[Block] = []
        for block in stmt.blocks():
            self.latest = dict(before)
            blocks.append(self._handing_over(block, spaces))
        self.latest = before
        new = stmt.with_blocks(tuple(blocks))
        given = result_of(blocks[0])
        results = tuple(self.retype(r, type_of(v)) for r, v in zip(stmt.results, given, strict=False))
        results = (*results, *self._fresh(spaces))
        changed = {"results": results} if condition is None else {"results": results, "condition": condition}
        self.emit(new.replace(**changed))
        self._adopt(stmt)

    def _fresh(self, spaces: list[Workspace]) -> tuple[Value, ...]:
        """New versions, the latest from here on."""
        made = tuple(Value(space.param.name, space.param.type, space.param.span) for space in spaces)
        self.latest.update(zip((space.param for space in spaces), made, strict=True))
        return made

    def _handing_over(self, block: Block, spaces: list[Workspace]) -> Block:
        """The block rewritten, its terminator handing over the versions too."""
        new = self.block(block)
        last = new[-1]
        assert isinstance(last, Yield)
        versions = (self.latest[space.param] for space in spaces)
        return (*new[:-1], type(last)((*last.values, *versions), span=last.span))
