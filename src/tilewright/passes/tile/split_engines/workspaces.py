"""Workspaces: tensors that a tile function makes for itself become parameters, since a kernel cannot allocate DDR.

A workspace inside a parallel loop needs a part for each work item that runs at the same time. Items are dealt out in
turn, so that items a whole number of rounds apart run on one core, one after another, and may share a part. The parts
lie one behind another along the first dimension."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Scope, Stmt, Yield, result_of, walk
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary
from tilewright.ir.storage import Roots, written_operand
from tilewright.ir.types import TensorType
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Workspace:
    """One tensor that the function creates. `param` takes it, large enough for all parts; `part` is the first row of
    the part that a work item uses, in terms of the loop around the creation."""

    created: Let
    param: Value
    part: Scalar


def plan_workspaces(function: Function, target: Target) -> dict[Value, Workspace]:
    """The workspaces by the value that the function's `create` makes."""
    most = lcm(*target.cores.values())
    found: dict[Value, Workspace] = {}

    def visit(block: Block, items: For | None) -> None:
        for stmt in block:
            if isinstance(stmt, Let) and creates_tensor(stmt):
                found[stmt.target] = _workspace(stmt, items, most)
            for inner in stmt.blocks():
                visit(inner, items)

    for stmt in function.body:
        visit((stmt,), stmt if isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL else None)
    return found


def creates_tensor(stmt: Let) -> bool:
    """Whether `stmt` makes a new tensor in DDR."""
    op = stmt.value
    makes = isinstance(op, Op) and isinstance(stmt.target.type, TensorType)
    return makes and isinstance(op, Op) and op.writes is None and op.view_of is None


def _workspace(stmt: Let, items: For | None, most: int) -> Workspace:
    """`most` work items run at the same time, or a divisor of that."""
    kind = stmt.target.type
    assert isinstance(kind, TensorType)
    parts, part = (1, 0) if items is None else _part(items, most)
    shape = (binary(BinaryKind.MUL, kind.shape[0], parts), *kind.shape[1:])
    value = Value(stmt.target.name, TensorType(shape, kind.dtype), stmt.target.span)
    return Workspace(stmt, value, binary(BinaryKind.MUL, part, kind.shape[0]))


def _part(items: For, most: int) -> tuple[int, Scalar]:
    """How many parts the items of a loop need, and which one an item uses."""
    number = binary(BinaryKind.FLOORDIV, binary(BinaryKind.SUB, items.iv, items.start), items.step)
    count = items.trip_count
    if count is not None and count <= most:
        return max(count, 1), number
    return most, binary(BinaryKind.MOD, number, most)


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
