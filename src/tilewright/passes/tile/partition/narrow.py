"""Sums of FP16 and BF16 along a dimension that is cut: taken in FP32 over all blocks, and rounded once."""

from __future__ import annotations

from tilewright.ir.dtypes import FP32
from tilewright.ir.loops import Reduce
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind, Value
from tilewright.ops.cast import Cast
from tilewright.passes.tile.partition.plan import Part

EXACT = (BinaryKind.MAX, BinaryKind.MIN)
"""What rounds nothing, however it is put together."""


def widened(part: Part) -> tuple[Let, ...] | None:
    """The statements of `part` with its sums in passes made wide; None when there is nothing to widen."""
    passes = {cut.cls for cut in part.passes}
    narrow = {stmt for cls in passes for stmt in part.dims.summed.get(cls, ()) if _is_narrow(stmt)}
    if not narrow:
        return None
    lets: list[Let] = []
    for stmt in part.lets:
        op = stmt.value
        if stmt not in narrow or not isinstance(op, Op):
            lets.append(stmt)
            continue
        ((field, source),) = op.operand_items()
        wide = _made(f"{source.name}_fp32", Cast(source, FP32, span=stmt.span), lets, stmt)
        total = _made(f"{stmt.target.name}_fp32", op.replace(**{field: wide}), lets, stmt)
        lets.append(Let(stmt.target, Cast(total, stmt.target.dtype, span=stmt.span), span=stmt.span))
    return tuple(lets)


def _made(name: str, op: Op, lets: list[Let], stmt: Let) -> Value:
    made = Value(name, op.infer(), stmt.span)
    lets.append(Let(made, op, span=stmt.span))
    return made


def _is_narrow(stmt: Let) -> bool:
    op = stmt.value
    if not isinstance(op, Op) or not isinstance(op.loops, Reduce) or op.loops.combine in EXACT:
        return False
    dtype = stmt.target.dtype
    return dtype.is_float and dtype.bits < FP32.bits
