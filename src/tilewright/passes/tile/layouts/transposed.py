"""Loads that transpose. Into boxes the tile arrives turned over: its boxes and their contents lie the other way round,
which the matrix engine's operand buffers take as well. Into plain rows nothing turns on the way, so the tile is loaded
as it stands and transposed there."""

from __future__ import annotations

from tilewright.analysis.spaces import read_tensor
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Function
from tilewright.ir.layout import SLayout
from tilewright.ir.loops import Index
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Value, values_in
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.movement import Load
from tilewright.ops.shape import Transpose, turned
from tilewright.targets import Target


def turn_loads(function: Function, target: Target) -> Function:
    """`function` in which every transposing load says how its tile lies, or is a load and a transposition."""
    if not any(isinstance(stmt, Let) and transposes(stmt.value, stmt.target) for stmt in function.walk()):
        return function
    return _Turner(target).function(function)


def transposes(op: object, made: Value) -> bool:
    """Whether a load exchanges the last two dimensions: asked of its index map."""
    kind = made.type
    if not (isinstance(op, Op) and isinstance(op.loops, Index) and isinstance(kind, TileType)) or kind.rank < 2:
        return False
    if read_tensor(op) is None:
        return False
    indices = tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(kind.rank))
    last = op.loops.map(op, *indices)[-1]
    return not isinstance(last, int) and indices[-2] in values_in(last)


class _Turner(Rewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def visit_let(self, stmt: Let) -> None:
        op, kind = stmt.value, stmt.target.type
        if not transposes(op, stmt.target):
            super().visit_let(stmt)
            return
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
