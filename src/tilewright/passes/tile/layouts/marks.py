"""What a type has to say of how its tile lies: a layout that the space does not imply, and compactness.

The matrix engine packs operands and accumulators by their valid shape. A tile there whose valid part ends before its
last box is therefore marked compact, so that whoever reads it expects the pitch with which it was written."""

from __future__ import annotations

from tilewright.ir.function import Function
from tilewright.ir.layout import Compact, Layout, MemorySpace, SLayout, implied_layout
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Scalar
from tilewright.ir.types import TileType, Type
from tilewright.targets import Target

ENGINE = (MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC)
"""The memories that the matrix engine itself reads and writes."""


def mark_layouts(function: Function, target: Target) -> Function:
    """`function` with layouts and compactness written into the types that need it."""
    return _Marker(target).function(function)


class _Marker(Rewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def marked(self, kind: Type) -> Type:
        if not isinstance(kind, TileType) or kind.space is None:
            return kind
        shape, layout = kind.static_shape, None
        if kind.view.layout is None:
            own = self.target.layout(kind.space, shape)
            layout = None if own == implied_layout(kind.space, shape) else own
        compact = Compact.NORMAL if self.ends_early(kind, kind.layout) else None
        if layout is None and (compact is None or compact is kind.view.compact):
            return kind
        return kind.with_(layout=layout, compact=compact)

    def ends_early(self, kind: TileType, layout: Layout | None) -> bool:
        """Whether the engine would lay the valid part out with another pitch than the physical shape has."""
        assert kind.space is not None
        if kind.space not in ENGINE or layout is None or layout.slayout is SLayout.NONE_BOX or kind.rank < 2:
            return False
        box = self.target.box(kind.space, layout, kind.dtype, kind.static_shape)
        sides = zip(kind.valid[-2:], kind.shape[-2:], box, strict=True)
        return any(_rounded(valid, side) != size for valid, size, side in sides)

    def visit_let(self, stmt: Let) -> None:
        op, old = stmt.value, stmt.target.type
        if not isinstance(op, Op) or not isinstance(old, TileType):
            super().visit_let(stmt)
            return
        new = op.with_operands(self.get)
        kind = self.marked(old if new is op else placed_like(new.infer(), old.substitute(self.get)))
        target = self.retype(stmt.target, kind)
        self.emit(stmt if new is op and target is stmt.target else Let(target, new, span=stmt.span))


def _rounded(valid: Scalar, side: int) -> Scalar:
    return -(-valid // side) * side if isinstance(valid, int) else valid
