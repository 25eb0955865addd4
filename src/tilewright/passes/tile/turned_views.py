"""Transposed views that more than the matrix engine reads.

Before:  t = pl.tile.transpose_view(x)
         r = pl.tile.matmul(y, t)
         s = pl.tile.add(t, t)
After:   t_vec = pl.tile.transpose(x, 0, 1)
         t = pl.tile.transpose_view(x)
         r = pl.tile.matmul(y, t)
         s = pl.tile.add(t_vec, t_vec)

A transposed view costs nothing, but its tile lies turned over, which only the way into the matrix engine takes. Other
readers, and whatever a loop or branch hands on, get a transposition of the elements instead."""

from __future__ import annotations

from tilewright.analysis.spaces import accepted, is_transfer, placing_attribute, transposes
from tilewright.analysis.uses import Use, Uses, uses_of
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import For, Let, Yield
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType
from tilewright.ops.movement import Load
from tilewright.ops.shape import Transpose, TransposeView
from tilewright.targets import Target


def settle_turned_views(function: Function, target: Target) -> Function:
    """Requires a function on tiles. Ensures that what a transposed view becomes goes to the matrix engine only."""
    splitter = _Splitter(target, uses_of(function))
    if not any(isinstance(stmt, Let) and splitter.is_read_elsewhere(stmt) for stmt in function.walk()):
        return function
    return splitter.function(function)


class _Splitter(Rewriter):
    def __init__(self, target: Target, uses: Uses) -> None:
        super().__init__()
        self.target = target
        self.uses = uses
        self.plain: dict[Value, Value] = {}
        """the transposition that stands beside a view"""
        self.joined: dict[Value, Value] = {}
        """those of them that stand for it where paths join"""

    def is_read_elsewhere(self, stmt: Let) -> bool:
        """Whether `stmt` makes a transposed view that something but the matrix engine reads, or a transposing load that
        a loop or branch hands on, beside tiles that lie otherwise."""
        uses = self.uses.get(stmt.target, ())
        if isinstance(stmt.value, TransposeView):
            return any(not self.for_matrix(use) for use in uses if self.hands_on(stmt.target, use))
        return transposes(stmt.value, stmt.target) and any(map(self.joins, uses))

    def hands_on(self, value: Value, use: Use) -> bool:
        """Whether a use counts: where paths join, a view of a tile that its user placed has the type that all have."""
        return use.op is not None or (isinstance(value.type, TileType) and value.type.space is None)

    def joins(self, use: Use) -> bool:
        """Whether the use, or that of a view of the value, is where paths join."""
        op = use.op
        if op is None or not isinstance(use.stmt, Let):
            return True
        return op.view_of == use.field and any(map(self.joins, self.uses.get(use.stmt.target, ())))

    def for_matrix(self, use: Use) -> bool:
        """Whether the use is on the way into the matrix engine, through views or not."""
        op = use.op
        if op is None or use.field is None or not isinstance(use.stmt, Let):
            return False
        if op.view_of == use.field:
            return all(self.for_matrix(after) for after in self.uses.get(use.stmt.target, ()))
        if is_transfer(op):
            return getattr(op, placing_attribute(op) or "") in (MemorySpace.LEFT, MemorySpace.RIGHT)
        spaces = accepted(op, use.field, self.target)
        return bool(spaces) and MemorySpace.VEC not in spaces

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            super().visit_let(stmt)
            return
        if self.is_read_elsewhere(stmt):
            self.transpose(stmt, op)
            if not any(self.keeps(stmt.target, use) for use in self.uses[stmt.target]):
                return
        found = {field: self.plain.get(value) for field, value in op.operand_items()}
        changed = {f: v for f, v in found.items() if v is not None and not self.for_matrix(self.use(stmt, f))}
        if not changed:
            super().visit_let(stmt)
            return
        new = op.with_operands(self.get).replace(**changed)
        made = self.retype(stmt.target, placed_like(new.infer(), stmt.target.type.substitute(self.get)))
        self.emit(Let(made, new, span=stmt.span))

    def keeps(self, value: Value, use: Use) -> bool:
        """Whether a use stays one of the view itself."""
        return self.for_matrix(use) or (use.op is None and value not in self.joined)

    def use(self, stmt: Let, field: str) -> Use:
        return Use(getattr(stmt.value, field), stmt, field)

    def transpose(self, stmt: Let, op: Op) -> None:
        """The elements exchanged, for those who do not take them turned over."""
        kind = stmt.target.type
        assert isinstance(kind, TileType)
        if isinstance(op, TransposeView):
            source = self.plain.get(op.tile) or self.value(op.tile)
        else:
            assert isinstance(op, Load)
            plain = op.with_operands(self.get).replace(transpose=False, target_memory=None)
            source = self.let(plain, f"{stmt.target.name}_t", stmt.span)
        turned = Transpose(source, kind.rank - 2, kind.rank - 1, span=stmt.span)
        inferred = turned.infer()
        assert isinstance(inferred, TileType)
        # The transposition is vector work, wherever its operand is now; placement brings that there.
        made = self.let(turned, f"{stmt.target.name}_vec", stmt.span, inferred.with_(space=MemorySpace.VEC))
        self.plain[stmt.target] = made
        if kind.space is None or not isinstance(op, TransposeView):
            self.joined[stmt.target] = made

    def plainly(self, values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return tuple(self.joined.get(value, value) if isinstance(value, Value) else value for value in values)

    def visit_for(self, stmt: For) -> None:
        super().visit_for(stmt.replace(inits=self.plainly(stmt.inits)) if self.plain else stmt)

    def visit_terminator(self, stmt: Yield) -> None:
        super().visit_terminator(stmt.replace(values=self.plainly(stmt.values)) if self.plain else stmt)
