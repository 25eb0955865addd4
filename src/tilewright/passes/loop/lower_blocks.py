"""From the structured form of loops to the lowered one.

Before:  for c in pl.loop.thread("core", 0, 4):
             with pl.loop.block("update"):
                 pl.loop.where(c < n)
                 row = pl.loop.match(A[c, 0:16], shape=[16])
                 t = pl.loop.local([16], pl.FP32, dim_align=[[0, 8, 0]])
                 t[0] = row[1]
After:   for c in pl.loop.launch("core", 4):
             if c < n:
                 t = pl.loop.alloc([16], pl.FP32, dim_align=[[0, 8, 0]])
                 t[0] = A[c, 1]

What a block owns is allocated where its body begins; alignment stays with the allocation. A matched buffer is its
source at shifted indices. One whose address is taken, or of which an attribute speaks, becomes an alias where its
elements lie one after the other; else its pointers become pointers into the source. The regions that blocks state, and
their annotations, are gone afterwards: nothing in the lowered form holds them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.analysis.scalar_ranges import Facts, gathered
from tilewright.ir.buffers import AddressOf, DimAlign, Load, Ramp, Region, buffer_type
from tilewright.ir.loop_level import (
    ALWAYS,
    Alias,
    Allocate,
    Attribute,
    ComputeBlock,
    Launch,
    Loop,
    LoopFunction,
    LoopKind,
    Match,
    OpCall,
    Store,
)
from tilewright.ir.loop_rewrite import LoopRewriter, map_own, rebuilt
from tilewright.ir.nodes import Block, If, Stmt, walk
from tilewright.ir.scalar import BinaryKind, Expr, Scalar, Shape, Value, binary, substitute


def lower_blocks(function: LoopFunction) -> LoopFunction:
    """`function` in the lowered form; itself when it is that already."""
    return _Lowering().function(function)


@dataclass(frozen=True, slots=True)
class _Window:
    """What a matched buffer is: the source from `offsets` on. Its own dimensions are the last ones of the source."""

    source: Value
    offsets: Shape
    rank: int

    def index(self, indices: Shape) -> Shape:
        leading = len(self.offsets) - self.rank
        shifted = (_plus(o, i) for o, i in zip(self.offsets[leading:], indices, strict=True))
        return (*self.offsets[:leading], *shifted)


class _Lowering(LoopRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.windows: dict[Value, _Window] = {}
        self.aligned: dict[Value, DimAlign] = {}
        self.extents: dict[Value, Shape] = {}

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case ComputeBlock():
                self.compute(stmt)
            case Loop(kind=LoopKind.THREAD):
                made = self.outside(stmt)
                launch = Launch(made.thread or "", made.iv, made.stop, made.body, span=stmt.span)
                self.emit(self.inside(launch))
            case Store() if stmt.buffer in self.windows:
                window = self.windows[stmt.buffer]
                indices = tuple(self.scalar(index) for index in stmt.indices)
                self.emit(Store(window.source, window.index(indices), self.scalar(stmt.value), span=stmt.span))
            case OpCall():
                self.emit(self.operation(stmt))
            case Attribute() if stmt.node in self.windows:
                made = stmt.replace(node=self.windows[stmt.node].source)
                self.emit(self.inside(made))
            case Allocate():
                self.aligned[stmt.buffer] = stmt.dim_align
                self.keep(stmt)
            case _:
                self.keep(stmt)

    # --- blocks ---
    def compute(self, stmt: ComputeBlock) -> None:
        for alloc in stmt.allocs:
            self.aligned[alloc.buffer] = alloc.dim_align
        head: list[Stmt] = []
        for match in stmt.matches:
            head += self.matched(match, stmt.body)
        head += [map_own(alloc, self.scalar) for alloc in stmt.allocs]
        body = (*head, *self.block(stmt.body))
        where = self.scalar(stmt.where)
        if where == ALWAYS:
            self.emit(*body)
        else:
            self.emit(If(where, body, (), (), span=stmt.span))

    def matched(self, match: Match, body: Block) -> list[Stmt]:
        """The alias that stands for a matched buffer, if one must; else its uses will be those of its source."""
        region = self.region(match.source)
        kind = buffer_type(match.buffer)
        if _is_named(match.buffer, body) and self.contiguous(region):
            return [Alias(match.buffer, region.buffer, self.flat(region.buffer, region.offsets))]
        self.windows[match.buffer] = _Window(region.buffer, region.offsets, kind.rank)
        self.extents[match.buffer] = region.extents
        return []

    def contiguous(self, region: Region) -> bool:
        """Whether the elements of a region lie one after the other."""
        shape = buffer_type(region.buffer).shape
        first = next((dim for dim, extent in enumerate(region.extents) if extent != 1), len(shape))
        return not self.aligned.get(region.buffer) and region.extents[first + 1 :] == shape[first + 1 :]

    def strides(self, buffer: Value) -> Shape:
        """Elements from one index to the next, as scalars."""
        kind = buffer_type(buffer)
        align = {dim: (factor, offset) for dim, factor, offset in self.aligned.get(buffer, ())}
        strides: list[Scalar] = []
        stride: Scalar = 1
        for dim in reversed(range(kind.rank)):
            if dim in align:
                factor, offset = align[dim]
                gap = binary(BinaryKind.MOD, binary(BinaryKind.SUB, offset, stride), factor)
                stride = _plus(stride, gap)
            strides.insert(0, stride)
            stride = binary(BinaryKind.MUL, stride, kind.shape[dim])
        return tuple(strides)

    def flat(self, buffer: Value, indices: Shape) -> Scalar:
        """How many elements after the start of a buffer an element lies."""
        total: Scalar = 0
        for index, stride in zip(indices, self.strides(buffer), strict=True):
            total = _plus(total, binary(BinaryKind.MUL, index, stride))
        return total

    # --- uses of matched buffers ---
    def region(self, region: Region) -> Region:
        offsets, extents = (tuple(map(self.scalar, part)) for part in (region.offsets, region.extents))
        window = self.windows.get(region.buffer)
        if window is None:
            return (
                region
                if (offsets, extents) == (region.offsets, region.extents)
                else Region(region.buffer, offsets, extents)
            )
        leading = len(window.offsets) - window.rank
        return Region(window.source, window.index(offsets), ((1,) * leading) + extents)

    def operation(self, stmt: OpCall) -> OpCall:
        bindings = tuple((tile, self.region(region)) for tile, region in stmt.bindings)
        result = None if stmt.result is None else self.region(stmt.result)
        same = result == stmt.result and bindings == stmt.bindings
        return stmt if same else OpCall(stmt.op, bindings, result, span=stmt.span)

    def scalar(self, scalar: Scalar) -> Scalar:
        return rebuilt(substitute(scalar, self.get), self.moved) if self.windows else super().scalar(scalar)

    def moved(self, scalar: Expr) -> Scalar:
        """A read of a matched buffer, or a pointer into it, as one of its source."""
        if isinstance(scalar, Load) and scalar.buffer in self.windows:
            window = self.windows[scalar.buffer]
            return Load(window.source, window.index(scalar.indices))
        if isinstance(scalar, AddressOf) and scalar.buffer in self.windows:
            window = self.windows[scalar.buffer]
            start = self.flat(window.source, window.offsets)
            extent = scalar.extent
            if extent is None:
                steps = zip(self.extents[scalar.buffer], self.strides(window.source), strict=True)
                extent = 1
                for count, stride in steps:
                    extent = _plus(extent, binary(BinaryKind.MUL, _plus(count, -1), stride))
                extent = extent if scalar.offset is None else binary(BinaryKind.SUB, extent, scalar.offset)
            return AddressOf(window.source, _plus(start, scalar.offset or 0), extent)
        return scalar


def _plus(left: Scalar, right: Scalar) -> Scalar:
    if isinstance(right, Ramp):
        return Ramp(_plus(left, right.base), right.stride, right.lanes)
    return gathered(binary(BinaryKind.ADD, left, right), Facts())


def _is_named(buffer: Value, body: Block) -> bool:
    """Whether the address of a buffer is taken in `body`, or an attribute speaks of it."""
    for stmt in walk(body):
        if isinstance(stmt, Attribute) and stmt.node is buffer:
            return True
        found: list[Expr] = []

        def look(scalar: Expr, found: list[Expr] = found) -> Scalar:
            if isinstance(scalar, AddressOf) and scalar.buffer is buffer:
                found.append(scalar)
            return scalar

        map_own(stmt, lambda scalar, look=look: rebuilt(scalar, look))
        if found:
            return True
    return False
