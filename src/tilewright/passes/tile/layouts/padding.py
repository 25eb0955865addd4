"""Products of which K is no multiple of the box: what lies beyond the valid K is zero on both operands.

The matrix engine multiplies whole boxes. Zeros times NaN is NaN, so one operand is not enough. The zeros are asked of
the load, or of the move, that brings an operand to where whole boxes are taken from."""

from __future__ import annotations

from tilewright.analysis.spaces import is_transfer, read_tensor, tile_operands
from tilewright.analysis.uses import definitions_of
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import For, If, Let, Scope, Stmt, result_of
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType

PAD = "pad_value"


def pad_products(function: Function) -> Function:
    """`function` with zeros around the operands of products whose valid K is smaller than the physical one."""
    finder = _Finder(definitions_of(function))
    for stmt in function.walk():
        if isinstance(stmt, Let) and isinstance(stmt.value, Op) and isinstance(stmt.value.loops, Contract):
            finder.product(stmt.value, stmt.value.loops)
    if finder.found:
        finder.agree(function)
    return _Padder(finder.found).function(function) if finder.found else function


class _Finder:
    """Finds the operations that have to fill with zeros. `found` holds their results."""

    def __init__(self, defined: dict[Value, Stmt]) -> None:
        self.defined = defined
        self.found: set[Value] = set()

    def product(self, op: Op, form: Contract) -> None:
        operands: tuple[Value, Value] = (getattr(op, form.lhs), getattr(op, form.rhs))
        if any(_is_partial(value, axis) for value, axis in zip(operands, (-1, -2), strict=True)):
            for value in operands:
                assert isinstance(value.type, TileType) and value.type.space is not None
                self.found |= self.fillers(value, value.type.space, set()) or set()

    def agree(self, function: Function) -> None:
        """Where paths join, either all values are filled or none: those that could be follow those that are."""
        joins = [join for stmt in function.walk() for join in _joins(stmt)]
        for _ in joins:
            before = len(self.found)
            for values in joins:
                parts = [self.fillers(value, MemorySpace.LEFT, set()) for value in values]
                if any(part and part <= self.found for part in parts):
                    self.found = self.found.union(*(part for part in parts if part))
            if len(self.found) == before:
                return

    def fillers(self, value: Scalar, own: MemorySpace, seen: set[Value]) -> set[Value] | None:
        """The operations that must fill for `value`, an operand in the space `own`; None when it cannot be done."""
        if not isinstance(value, Value) or value in seen:
            return set()
        seen.add(value)
        stmt = self.defined.get(value)
        match stmt:
            case Let(value=Op() as op):
                return self.of_op(value, op, own, seen)
            case For():
                names = stmt.results if value in stmt.results else stmt.iter_args
                index = names.index(value)
                return self.all_of((stmt.inits[index], result_of(stmt.body)[index]), own, seen)
            case If() | Scope():
                index = stmt.defs().index(value)
                return self.all_of(tuple(result_of(block)[index] for block in stmt.blocks()), own, seen)
            case _:
                return None

    def all_of(self, values: tuple[Scalar, ...], own: MemorySpace, seen: set[Value]) -> set[Value] | None:
        parts = [self.fillers(value, own, seen) for value in values]
        return None if any(part is None for part in parts) else set[Value]().union(*(p for p in parts if p))

    def of_op(self, value: Value, op: Op, own: MemorySpace, seen: set[Value]) -> set[Value] | None:
        fills = any(field.name == PAD for field in op.fields)
        if read_tensor(op) is not None:
            return {value} if fills else None
        tiles = tile_operands(op)
        if is_transfer(op):
            assert isinstance(value.type, TileType)
            above = self.fillers(tiles[0][1], own, seen) if value.type.space is own else None
            return above if above is not None else {value} if fills else None
        return self.fillers(getattr(op, op.view_of), own, seen) if op.view_of else None


def _joins(stmt: Stmt) -> list[tuple[Scalar, ...]]:
    """The tiles that become one value: of each carried value what it starts and goes on from, of each result of a
    branch what the arms give."""
    if isinstance(stmt, For):
        rows = list(zip(stmt.inits, result_of(stmt.body), strict=True))
    else:
        rows = list(zip(*(result_of(block) for block in stmt.blocks()), strict=True)) if isinstance(stmt, If) else []
    return [row for row in rows if isinstance(row[0], Value) and isinstance(row[0].type, TileType)]


def _is_partial(value: Value, axis: int) -> bool:
    assert isinstance(value.type, TileType)
    return value.type.shape[axis] != value.type.valid[axis]


class _Padder(Rewriter):
    def __init__(self, found: set[Value]) -> None:
        super().__init__()
        self.found = found

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if stmt.target not in self.found or not isinstance(op, Op) or getattr(op, PAD) is not None:
            super().visit_let(stmt)
            return
        new = op.with_operands(self.get).replace(**{PAD: Pad.ZERO})
        kind = placed_like(new.infer(), stmt.target.type.substitute(self.get))
        self.emit(Let(self.retype(stmt.target, kind), new, span=stmt.span))
