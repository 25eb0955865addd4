"""What a copy of a loop needs besides its products: the statements, and the values carried, that operands depend on."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.nodes import Call, For, If, Let, Stmt, result_of, walk
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Scalar, Value, values_in
from tilewright.ir.types import TensorType, TileType
from tilewright.passes.tile.tile_matmul.forms import Branch, Index, Loop, Node, Product, Unchained, nodes_of
from tilewright.passes.tile.tile_matmul.operands import Bring, view_chain

NEVER = 1 << 60


@dataclass(slots=True)
class Slices:
    """Of each block that is copied: the statements copied with it, in order; of each loop: the other values that it
    has to carry."""

    statements: dict[int, list[Stmt]] = field(default_factory=dict[int, list[Stmt]])
    carries: dict[For, list[int]] = field(default_factory=dict[For, list[int]])

    def of(self, stmt: Stmt, index: Index) -> list[Stmt]:
        """The statements to copy of the block that ends in `stmt`."""
        return self.statements.get(index.block[stmt], [])


def slices_of(
    node: Node, brings: dict[tuple[Stmt, str], Bring], index: Index, position: int, more: tuple[Value, ...] = ()
) -> Slices:
    """What is needed to compute the sum `node` anew at `position`; `more` are values read there besides.
    Raises `Unchained` where a copy would not mean the same."""
    slicer = _Slicer(node, index, position)
    for part in nodes_of(node):
        slicer.of_node(part, brings)
    slicer.todo += more
    return slicer.run()


class _Slicer:
    def __init__(self, node: Node, index: Index, position: int) -> None:
        self.index = index
        self.position = position
        self.todo: list[Value] = []
        self.found: dict[int, set[Stmt]] = {}
        self.carries: dict[For, set[int]] = {}
        self.own: dict[Stmt, set[int]] = {}
        """the statements of the sum itself, loops with the positions of its accumulators"""
        self.scopes: set[int] = set()
        for part in nodes_of(node):
            if isinstance(part, Product):
                self.own[part.stmt] = set()
            if isinstance(part, (Loop, Branch)):
                self.own.setdefault(part.stmt, set()).add(part.index)
                self.scopes |= {index.block[block[-1]] for block in part.stmt.blocks()}

    def of_node(self, node: Node, brings: dict[tuple[Stmt, str], Bring]) -> None:
        match node:
            case Product(stmt=stmt, op=op, form=form):
                self.scalars(op)
                for name, value in op.operand_items():
                    if name == form.acc and node.acc is not None:
                        continue
                    if brings.get((stmt, name), Bring.WHOLE) is Bring.WHOLE:
                        self.todo.append(value)
                        continue
                    for let in view_chain(value, self.index):
                        assert isinstance(let.value, Op)
                        self.scalars(let.value)
            case Loop(stmt=stmt):
                if stmt.conditional:
                    raise Unchained("a condition may end the loop with the accumulator")
                self.need(stmt.start, stmt.stop, stmt.step)
            case Branch(stmt=stmt):
                self.need(stmt.condition)
            case _:
                pass

    def scalars(self, op: Op) -> None:
        self.todo += [value for value in op.uses() if not isinstance(value.type, TileType)]

    def need(self, *scalars: Scalar) -> None:
        for scalar in scalars:
            self.todo += [] if isinstance(scalar, int) else list(values_in(scalar))

    def run(self) -> Slices:
        seen: set[Value] = set()
        while self.todo:
            value = self.todo.pop()
            if value not in seen:
                seen.add(value)
                self.follow(value)
        statements = {
            block: sorted(found, key=lambda stmt: self.index.position[stmt]) for block, found in self.found.items()
        }
        return Slices(statements, {loop: sorted(carried) for loop, carried in self.carries.items()})

    def follow(self, value: Value) -> None:
        stmt = self.index.defs.get(value)
        if isinstance(stmt, For) and stmt in self.own and value in stmt.block_args():
            if value is not stmt.iv:
                self.carry(stmt, stmt.iter_args.index(value))
            return
        while stmt is not None and self.index.block[stmt] not in self.scopes:
            stmt = self.index.parent.get(stmt)
        if stmt is None:
            if isinstance(value.type, TensorType) and self.index.consumed.get(value, NEVER) <= self.position:
                raise Unchained(f"the tensor {value.name!r} is written before the product's result is stored")
            return
        self.copy(stmt)

    def carry(self, loop: For, at: int) -> None:
        if at in self.own[loop]:
            raise Unchained(f"the accumulator {loop.iter_args[at].name!r} is also read elsewhere in the loop")
        if isinstance(loop.iter_args[at].type, TensorType):
            raise Unchained(f"the loop also writes {loop.iter_args[at].name!r}, which it reads")
        self.carries.setdefault(loop, set()).add(at)
        self.need(loop.inits[at], result_of(loop.body)[at])

    def copy(self, stmt: Stmt) -> None:
        found = self.found.setdefault(self.index.block[stmt], set())
        if stmt in found:
            return
        if stmt in self.own:
            raise Unchained("another result of the loop with the accumulator is needed for an operand")
        found.add(stmt)
        for inner in walk((stmt,)):
            if isinstance(inner, Call) or (isinstance(inner, Let) and isinstance(inner.value, Op) and _acts(inner)):
                raise Unchained("an operand depends on a write to memory in the loop")
            self.todo += inner.uses()
            for made in inner.defs():
                self.todo += made.type.values()


def _acts(stmt: Let) -> bool:
    assert isinstance(stmt.value, Op)
    return stmt.value.effect is not Effect.PURE or isinstance(stmt.target.type, TensorType)


def arms_of(stmt: For | If) -> tuple[Stmt, ...]:
    """The terminators of the blocks of `stmt`."""
    return tuple(block[-1] for block in stmt.blocks())
