"""Loads that transpose. Into boxes the tile arrives turned over: its boxes and their contents lie the other way round,
which the matrix engine's operand buffers take as well. Into plain rows nothing turns on the way, so the tile is loaded
as it stands and transposed there.

A part of a tile that is seen turned over becomes a part of the tile seen turned over: a part has no layout of its own
that could be turned."""

from __future__ import annotations

from tilewright.analysis.spaces import transposes
from tilewright.analysis.uses import definitions_of
from tilewright.ir.function import Function
from tilewright.ir.layout import SLayout
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.op import Level
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType, Type
from tilewright.ops.movement import Load
from tilewright.ops.shape import Slice, Transpose, TransposeView, turned
from tilewright.targets import Target


def turn_loads(function: Function, target: Target) -> Function:
    """`function` in which every transposing load says how its tile lies, or is a load and a transposition."""
    turner = _Turner(target, definitions_of(function))
    lets = [stmt for stmt in function.walk() if isinstance(stmt, Let)]
    if not any(transposes(stmt.value, stmt.target) or turner.turned_part(stmt) is not None for stmt in lets):
        return function
    return turner.function(function)


class _Turner(Rewriter):
    def __init__(self, target: Target, defined: dict[Value, Stmt]) -> None:
        super().__init__()
        self.target = target
        self.defined = defined

    def turned_part(self, stmt: Let) -> Slice | None:
        """The part that `stmt` turns over, if it does that and the part is one of two dimensions."""
        if not isinstance(stmt.value, TransposeView):
            return None
        definition = self.defined.get(stmt.value.tile)
        part = definition.value if isinstance(definition, Let) else None
        if not isinstance(part, Slice) or part.drop_dims or part.pad_value is not None or len(part.shape) != 2:
            return None
        return part

    def turn_whole(self, stmt: Let, part: Slice) -> None:
        """The whole turned over, and the part of that."""
        source = self.value(part.tile)
        whole = self.let(TransposeView(source, span=stmt.span), f"{source.name}_t", stmt.span)
        shape, offset, region = (
            tuple(self.scalar(extent) for extent in reversed(extents))
            for extents in (part.shape, part.offset, part.region)
        )
        new = Slice(whole, shape, offset, region, level=Level.TILE, span=stmt.span)
        target = self.retype(stmt.target, placed_like(new.infer(), stmt.target.type.substitute(self.get)))
        self.emit(Let(target, new, span=stmt.span))

    def visit_let(self, stmt: Let) -> None:
        op, kind = stmt.value, stmt.target.type
        part = self.turned_part(stmt)
        if part is not None:
            self.turn_whole(stmt, part)
        elif not transposes(op, stmt.target):
            super().visit_let(stmt)
        else:
            self.turn_load(stmt, op, kind)

    def turn_load(self, stmt: Let, op: object, kind: Type) -> None:
        assert isinstance(op, Load) and isinstance(kind, TileType) and kind.space is not None
        layout = self.target.layout(kind.space, kind.static_shape)
        if layout.slayout is not SLayout.NONE_BOX:
            placed = kind if kind.view.layout is not None else kind.with_(layout=turned(layout))
            new = op.with_operands(self.get)
            target = self.retype(stmt.target, placed)
            self.emit(stmt if new is op and target is stmt.target else Let(target, new, span=stmt.span))
        elif self.target.memory(kind.space).row_bytes > 1:
            plain = self.let(op.with_operands(self.get).replace(transpose=False), f"{stmt.target.name}_t", stmt.span)
            last = Transpose(plain, kind.rank - 2, kind.rank - 1, span=stmt.span)
            self.emit(Let(self.retype(stmt.target, last.infer()), last, span=stmt.span))
        else:
            super().visit_let(stmt)
