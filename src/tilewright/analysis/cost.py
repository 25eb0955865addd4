"""What statements cost, in cycles: moves by the target's edges, operations by their `work()`.

These prices decide between spaces, are shown by `explain`, and serve whatever later compares two programs. They are
latency plus throughput of one execution on one core, nothing overlapped: a schedule is the simulator's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.analysis.footprint import footprint
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Access, Op
from tilewright.ir.scalar import Scalar
from tilewright.ir.types import TensorType, TileType, Type
from tilewright.targets import Edge, Target


@dataclass(frozen=True, slots=True)
class Cost:
    """Cycles of one execution on `engine`; `ddr_bytes` is what DDR transfers, short rows counted as whole granules."""

    cycles: float
    engine: str
    ddr_bytes: int = 0


def space_of(type: Type) -> MemorySpace | None:
    """Where a value of `type` lies: DDR for tensors, a tile's space, None for scalars and unplaced tiles."""
    if isinstance(type, TensorType):
        return MemorySpace.DDR
    return type.space if isinstance(type, TileType) else None


def cost_of(op: Op, result: Type, target: Target) -> Cost:
    """The cost of one execution of `op`, whose result has type `result`."""
    work = op.work()
    edge = edge_of(op, result, target, work.kind)
    if edge is not None:
        return _transfer(op, result, edge, target)
    if work.kind == "none":
        return Cost(0.0, target.engine_for("scalar").name)
    engine = target.engine_for(work.kind).name
    if work.macs is not None:
        _, operand = next(item for item in op.operand_items() if item[0] == getattr(op.loops, "lhs", item[0]))
        return Cost(target.matmul_cycles(*work.macs, operand.dtype), engine)
    if engine == target.engine_for("scalar").name and work.kind == "scalar":
        return Cost(target.vector.scalar, engine)
    # The widest element that the operation handles: a cast reads or writes as many bytes as its wider side.
    dtypes = [value.dtype for _, value in op.operand_items()] + [result.dtype]
    dtype = max(dtypes, key=lambda kind: kind.bits)
    return Cost(target.vector_cycles(work.kind, work.elements * dtype.nbytes, dtype), engine)


def edge_of(op: Op, result: Type, target: Target, kind: str | None = None) -> Edge | None:
    """The edge that `op` goes over, if it moves data between two spaces: from the operand that it reads most of.
    `kind` is that of its work, where the caller knows it."""
    if op.view_of is not None:
        return None
    ends = transfer_ends(op, result, kind)
    return None if ends is None else target.edge(*ends)


def transfer_ends(op: Op, result: Type, kind: str | None = None) -> tuple[MemorySpace, MemorySpace] | None:
    """The two spaces between which `op` moves data; None when it computes, or is not placed yet."""
    if (op.work().kind if kind is None else kind) != "move":
        return None
    spaces = [space_of(value.type) for name, value in op.operand_items() if name != op.writes]
    end = space_of(result)
    if not spaces or spaces[0] is None or end is None:
        return None
    return spaces[0], end


def _transfer(op: Op, result: Type, edge: Edge, target: Target) -> Cost:
    # What is written into another tile, or to DDR, is as large as it is, and not as what it is written into.
    parts = [v.type for name, v in op.operand_items() if name != op.writes] if op.writes is not None else []
    tile = parts[0] if parts else result
    nbytes = footprint(tile, target) if isinstance(tile, TileType) and tile.space else 0
    ddr = _ddr_bytes(op, result, tile, target)
    shape = tile.static_shape if isinstance(tile, TileType) else ()
    rows = prod(shape[:-1]) if shape else 1
    return Cost(edge.cycles(max(nbytes, ddr), (rows, shape[-1]) if shape else None), edge.engine, ddr)


def _ddr_bytes(op: Op, result: Type, tile: Type, target: Target) -> int:
    """Bytes that DDR transfers: whole rows, each at least the target's granule."""
    for access in op.accesses():
        kind = result if access.field is None else getattr(op, access.field).type
        if isinstance(kind, TensorType) and (access.writes or access.field != op.writes):
            return _row_bytes(access, kind, tile, target)
    return 0


def _row_bytes(access: Access, kind: TensorType, tile: Type, target: Target) -> int:
    extents = tuple(_bound(e, limit, tile) for e, limit in zip(access.extents, kind.shape, strict=True))
    if not extents:
        return kind.dtype.nbytes
    row = extents[-1] * kind.dtype.nbytes
    return prod(extents[:-1]) * max(row, target.ddr_granule if row else 0)


def _bound(extent: Scalar, limit: Scalar, tile: Type) -> int:
    """The extent; where it is known at run time only, what the tile that it is valid in has room for."""
    if isinstance(extent, int):
        return extent
    room = limit
    if isinstance(tile, TileType):
        room = next((most for valid, most in zip(tile.valid, tile.shape, strict=True) if valid == extent), limit)
    return room if isinstance(room, int) else 1
