"""Buffers as large as what is touched of them.

Before:  for i in pl.loop.serial(0, 4):
             B = pl.loop.alloc([64], pl.FP32)
             for j in pl.loop.serial(0, 8):
                 B[i * 8 + j] = A[i * 8 + j]
             for j in pl.loop.serial(0, 8):
                 C[i * 8 + j] = B[i * 8 + j]
After:   for i in pl.loop.serial(0, 4):
             B = pl.loop.alloc([8], pl.FP32)
             for j in pl.loop.serial(0, 8):
                 B[j] = A[i * 8 + j]
             for j in pl.loop.serial(0, 8):
                 C[i * 8 + j] = B[j]

`analysis/buffer_regions` decides; here each access moves by the minimum of its dimension. Both forms are alike.
With ``strict=False`` an access outside of its buffer counts as well: the buffer then grows to hold it, so programs that
have such accesses change their meaning.
"""

from __future__ import annotations

from tilewright.analysis.buffer_regions import Compaction, plan_buffers
from tilewright.ir.buffers import Broadcast, BufferType, Load, Ramp, Region, buffer_type
from tilewright.ir.loop_level import ComputeBlock, LoopFunction, OpCall, Store
from tilewright.ir.loop_rewrite import LoopRewriter, rebuilt
from tilewright.ir.nodes import Stmt
from tilewright.ir.scalar import BinaryKind, Expr, Scalar, Shape, Value, binary
from tilewright.passes.loop.simplify import simplify


def compact_buffers(function: LoopFunction, strict: bool = True) -> LoopFunction:
    """`function`, simple, with every buffer it allocates as large as the box of what is touched; a second run changes
    nothing."""
    function = simplify(function)
    plan = {made.buffer: made for made in plan_buffers(function, strict) if made.changes}
    return simplify(_Compactor(plan).function(function)) if plan else function


class _Compactor(LoopRewriter):
    def __init__(self, plan: dict[Value, Compaction]) -> None:
        super().__init__()
        self.plan = plan

    def define(self, value: Value) -> None:
        if value not in self.plan:
            super().define(value)
            return
        old = buffer_type(value)
        self.env[value] = Value(value.name, BufferType(self.plan[value].shape, old.dtype, old.space), value.span)

    def stmt(self, stmt: Stmt) -> None:
        if isinstance(stmt, Store) and stmt.buffer in self.plan:
            stmt = stmt.replace(indices=self.moved(stmt.buffer, stmt.indices))
        elif isinstance(stmt, ComputeBlock):
            for alloc in stmt.allocs:
                self.define(alloc.buffer)
            reads, writes = (tuple(self.declared(region) for region in part) for part in (stmt.reads, stmt.writes))
            stmt = stmt.replace(reads=reads, writes=writes)
        elif isinstance(stmt, OpCall):
            bindings = tuple((tile, self.touched(region)) for tile, region in stmt.bindings)
            stmt = stmt.replace(bindings=bindings, result=stmt.result and self.touched(stmt.result))
        self.keep(stmt)

    def scalar(self, scalar: Scalar) -> Scalar:
        return super().scalar(rebuilt(scalar, self.read))

    def read(self, scalar: Expr) -> Scalar:
        if isinstance(scalar, Load) and scalar.buffer in self.plan:
            return Load(scalar.buffer, self.moved(scalar.buffer, scalar.indices))
        return scalar

    def moved(self, buffer: Value, indices: Shape) -> Shape:
        """The indices, seen from the new first element."""
        return tuple(_less(index, least) for index, least in zip(indices, self.plan[buffer].minima, strict=True))

    def touched(self, region: Region) -> Region:
        """A region that an operation touches: it lies in the box."""
        if region.buffer not in self.plan:
            return region
        return Region(region.buffer, self.moved(region.buffer, region.offsets), region.extents)

    def declared(self, region: Region) -> Region:
        """A region that a block declares. It may be larger than what is touched: then it is the whole of the box."""
        if region.buffer not in self.plan:
            return region
        shape = self.plan[region.buffer].shape
        return Region(region.buffer, (0,) * len(shape), shape)


def _less(index: Scalar, least: Scalar) -> Scalar:
    if least == 0:
        return index
    if isinstance(index, Ramp):
        return Ramp(_less(index.base, least), index.stride, index.lanes)
    if isinstance(index, Broadcast):
        return Broadcast(_less(index.value, least), index.lanes)
    return binary(BinaryKind.SUB, index, least)
