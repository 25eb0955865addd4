"""Reductions along one axis.

Where the reduced axis is the one along which memory runs, each row is reduced in vectors: lane by lane in up to four
accumulators, these pairwise, then the lanes pairwise. Elsewhere each vector holds as many results, and the elements of
each are taken in index order. Sums of narrow floats are FP32 until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.codegen.native.arithmetic import Arithmetic
from tilewright.codegen.native.builder import Index
from tilewright.codegen.native.elements import Lanes, constant_text, memory_type, register_type, tail_mask
from tilewright.codegen.native.nest import Cursor, Walk, lanes_for, nest
from tilewright.codegen.native.scope import Place, Scope
from tilewright.ir.dtypes import DType, widened
from tilewright.ir.loops import Reduce
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind
from tilewright.ops.common import identity

ACCUMULATORS = 4


def reduce(scope: Scope, op: Op, form: Reduce, out: Place, extents: tuple[Index, ...]) -> None:
    """`extents`: those of the operand. The result has extent 1 along the axis."""
    _, value = next(op.operand_items())
    source = scope.place(value)
    axis = len(extents) - 1 if form.axis == 1 else 0
    kept = [other for other in range(len(extents)) if other != axis]
    outer = tuple(extents[other] for other in kept)
    read = Walk(source.pointer, source.dtype, tuple(source.strides[other] for other in kept))
    write = Walk(out.pointer, out.dtype, tuple(out.strides[other] for other in kept), reads=False)
    run = _Reduction(scope, form.combine, source.dtype, extents[axis], source.strides[axis])
    dims = zip(read.strides, write.strides, outer, strict=True)
    vertical = any(r == 1 and w == 1 and extent != 1 for r, w, extent in dims)
    if (source.strides[axis] == 1 and extents[axis] != 1) or not vertical:
        nest(scope.b, scope.processor, outer, [replace(read, reads=False), write], run.row, lanes=1)
    else:
        nest(scope.b, scope.processor, outer, [replace(read, reads=False), write], run.column)


class _Reduction:
    """One reduction's loop along its axis."""

    def __init__(self, scope: Scope, kind: BinaryKind, dtype: DType, extent: Index, stride: Index) -> None:
        self.scope = scope
        self.kind = kind
        self.dtype = dtype
        self.wide = widened(dtype)
        self.extent = extent
        self.stride = stride

    def combine(self, at: Lanes, a: str, b: str) -> str:
        return Arithmetic(at, self.scope.register).combine(self.kind, a, b, self.wide)

    def element(self, at: Lanes, pointer: str, index: Index) -> str:
        place = at.b.address(pointer, memory_type(self.dtype), at.b.mul(index, self.stride))
        return at.load(place, self.dtype)

    def start(self, at: Lanes) -> str:
        return at.const(register_type(self.wide), constant_text(identity(self.kind, self.wide), self.wide))

    def run(self, at: Lanes, pointer: str, start: Index, stop: Index, step: int, total: tuple[str, str]) -> str:
        """The elements from `start` on combined with a (type, value), in index order."""

        def trip(index: str, totals: Sequence[str]) -> Sequence[str]:
            return [self.combine(at, totals[0], self.element(at, pointer, index))]

        return at.b.fold(start, stop, step, [total], trip)[0]

    def column(self, at: Lanes, cursors: Sequence[Cursor]) -> None:
        """As many results as there are lanes: element after element."""
        kind = at.type(register_type(self.wide))

        total = self.run(at, cursors[0].pointer, 0, self.extent, 1, (kind, self.start(at)))
        at.store(total, cursors[1].pointer, self.dtype)

    def row(self, at: Lanes, cursors: Sequence[Cursor]) -> None:
        """One result, its elements taken in vectors where they lie one after the other."""
        if self.stride != 1:
            self.column(at, cursors)
            return
        processor = self.scope.processor
        width = lanes_for(processor, self.dtype)
        vector = Lanes(at.b, processor, width)
        pointer = cursors[0].pointer
        full = at.b.rounded_down(self.extent, width)
        total = self.vectors(vector, pointer, full)
        if full != self.extent and processor.has_avx512:
            total = self.masked(vector, pointer, full, total)
        result = self.across(vector, total)
        if full != self.extent and not processor.has_avx512:
            kind = register_type(self.wide)
            result = self.run(at, pointer, full, self.extent, 1, (kind, result))
        at.store(result, cursors[1].pointer, self.dtype)

    def vectors(self, at: Lanes, pointer: str, stop: Index) -> str:
        """The full vectors, as one vector."""
        kind, width = at.type(register_type(self.wide)), at.lanes
        quad = width * ACCUMULATORS
        unrolled: Index = 0
        total = self.start(at)
        if not isinstance(stop, int) or stop >= 2 * quad:
            unrolled = at.b.rounded_down(stop, quad)

            def four(index: str, totals: Sequence[str]) -> Sequence[str]:
                return [
                    self.combine(at, value, self.element(at, pointer, at.b.add(index, part * width)))
                    for part, value in enumerate(totals)
                ]

            totals = at.b.fold(0, unrolled, quad, [(kind, total)] * ACCUMULATORS, four)
            pairs = [self.combine(at, totals[0], totals[1]), self.combine(at, totals[2], totals[3])]
            total = self.combine(at, *pairs)
        return self.run(at, pointer, unrolled, stop, width, (kind, total))

    def masked(self, at: Lanes, pointer: str, full: Index, total: str) -> str:
        """The last elements, fewer than a vector has lanes."""
        mask = tail_mask(at.b, at.b.sub(self.extent, full), at.lanes)
        some = Lanes(at.b, at.processor, at.lanes, mask)
        value = at.select(mask, register_type(self.wide), self.element(some, pointer, full), self.start(at))
        return self.combine(at, total, value)

    def across(self, at: Lanes, value: str) -> str:
        """The lanes of a vector, pairwise, as one element."""
        element, lanes = register_type(self.wide), at.lanes
        while lanes > 1:
            lanes //= 2
            kind = f"<{2 * lanes} x {element}>"
            halves: list[str] = []
            for first in (0, lanes):
                order = ", ".join(f"i32 {first + lane}" for lane in range(lanes))
                halves.append(at.b.value(f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{order}>"))
            if lanes == 1:
                singles = [at.b.value(f"extractelement <1 x {element}> {half}, i64 0") for half in halves]
                return self.combine(Lanes(at.b, at.processor, 1), *singles)
            value = self.combine(Lanes(at.b, at.processor, lanes), *halves)
        return value
