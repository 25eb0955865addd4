"""Loop nests over arrays: the dimensions put in order, run together where memory does, and cut into vectors.

The nest knows nothing of what its body computes. It drops dimensions of extent 1, joins those that follow each other
in memory for every array, makes one innermost along which every array has step 1 or 0, and emits full vectors, then
the rest: masked with AVX-512, one at a time elsewhere. Where no dimension serves all arrays it goes one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilewright.codegen.native.builder import Builder, Index
from tilewright.codegen.native.elements import Lanes, memory_type, register_type, tail_mask
from tilewright.codegen.native.llvm import Processor
from tilewright.ir.dtypes import DType, widened


@dataclass(frozen=True, slots=True)
class Walk:
    """How one array is walked: the address of its first element, and per dimension of the nest the step in elements."""

    pointer: str
    dtype: DType
    strides: tuple[Index, ...]
    reads: bool = True


@dataclass(slots=True)
class Cursor:
    """Where one array is in the innermost body."""

    pointer: str
    dtype: DType
    held: str | None = None

    def load(self, at: Lanes) -> str:
        """The elements here, as they are computed with."""
        return self.held if self.held is not None else at.load(self.pointer, self.dtype)


Body = Callable[[Lanes, Sequence[Cursor]], None]


def lanes_for(processor: Processor, *dtypes: DType) -> int:
    """How many lanes hold one element each of every dtype, as computed with."""
    return processor.vector_bytes // max(1, *(widened(dtype).nbytes for dtype in dtypes))


def nest(
    b: Builder,
    processor: Processor,
    extents: Sequence[Index],
    walks: Sequence[Walk],
    body: Body,
    *,
    lanes: int | None = None,
) -> None:
    """Run `body` over every element of `extents`; `lanes` limits the vector (1: one element at a time)."""
    if any(extent == 0 for extent in extents):
        return
    order = [axis for axis, extent in enumerate(extents) if extent != 1]
    order = _joined_order(order, walks)
    dims, arrays = _join([extents[axis] for axis in order], [_permuted(walk, order) for walk in walks])
    width = lanes_for(processor, *(walk.dtype for walk in walks)) if lanes is None else lanes
    if not dims or any(walk.strides[-1] not in (0, 1) for walk in arrays):
        width = 1
    _Nest(b, processor, dims, body, width).outer(0, arrays)


def _permuted(walk: Walk, order: list[int]) -> Walk:
    return replace(walk, strides=tuple(walk.strides[axis] for axis in order))


def _joined_order(order: list[int], walks: Sequence[Walk]) -> list[int]:
    """The dimensions with one last along which every array has step 1 or 0, if there is one."""
    for axis in reversed(order):
        if all(walk.strides[axis] in (0, 1) for walk in walks):
            return [*(other for other in order if other != axis), axis]
    return order


def _join(extents: list[Index], walks: list[Walk]) -> tuple[list[Index], list[Walk]]:
    """Neighbouring dimensions made one where every array runs through both with one step."""
    axis = len(extents) - 1
    while axis > 0:
        inner = extents[axis]
        steps = [(walk.strides[axis - 1], walk.strides[axis]) for walk in walks]
        outer = extents[axis - 1]
        joins = isinstance(inner, int) and all(isinstance(s, int) and o == s * inner for o, s in steps)
        if joins and isinstance(inner, int) and isinstance(outer, int):
            extents = [*extents[: axis - 1], outer * inner, *extents[axis + 1 :]]
            walks = [replace(w, strides=(*w.strides[: axis - 1], *w.strides[axis:])) for w in walks]
        axis -= 1
    return extents, walks


@dataclass(slots=True)
class _Nest:
    b: Builder
    processor: Processor
    extents: Sequence[Index]
    body: Body
    width: int

    def moved(self, walk: Walk, index: Index, stride: Index) -> str:
        return self.b.address(walk.pointer, memory_type(walk.dtype), self.b.mul(index, stride))

    def outer(self, axis: int, walks: list[Walk]) -> None:
        """The loop over dimension `axis`, or the innermost one."""
        if axis >= len(self.extents) - 1:
            self.inner(walks)
            return

        def trip(index: str) -> None:
            here = [
                walk if walk.strides[axis] == 0 else replace(walk, pointer=self.moved(walk, index, walk.strides[axis]))
                for walk in walks
            ]
            self.outer(axis + 1, here)

        self.b.loop(0, self.extents[axis], 1, trip)

    def inner(self, walks: list[Walk]) -> None:
        if not self.extents:
            self.step(Lanes(self.b, self.processor, 1), [Cursor(w.pointer, w.dtype) for w in walks])
            return
        extent = self.extents[-1]
        width = self.width
        if width == 1:
            self.stretch(walks, 0, extent, 1)
            return
        full = self.b.rounded_down(extent, width)
        if full != 0:
            self.stretch(walks, 0, full, width)
        if isinstance(extent, int) and extent == full:
            return
        if not self.processor.has_avx512:
            self.stretch(walks, full, extent, 1)
            return
        rest = self.b.sub(extent, full)
        if isinstance(rest, int):
            self.masked(walks, full, rest)
            return
        with self.b.when(self.b.value(f"icmp ne i64 {rest}, 0")):
            self.masked(walks, full, rest)

    def stretch(self, walks: list[Walk], start: Index, stop: Index, width: int) -> None:
        """The innermost loop from `start` to `stop`, `width` elements a trip."""
        at = Lanes(self.b, self.processor, width)
        held = [self.held(at, walk) for walk in walks]

        def trip(index: Index) -> None:
            self.step(at, [self.cursor(walk, value, index) for walk, value in zip(walks, held, strict=True)])

        if isinstance(start, int) and isinstance(stop, int) and stop - start == width:
            trip(start)
        else:
            self.b.loop(start, stop, width, trip)

    def masked(self, walks: list[Walk], start: Index, rest: Index) -> None:
        at = Lanes(self.b, self.processor, self.width, tail_mask(self.b, rest, self.width))
        self.step(at, [self.cursor(walk, self.held(at, walk), start) for walk in walks])

    def held(self, at: Lanes, walk: Walk) -> str | None:
        """An element that the innermost loop does not move away from, in every lane."""
        if walk.strides[-1] != 0 or not walk.reads:
            return None
        single = Lanes(self.b, self.processor, 1)
        value = single.load(walk.pointer, walk.dtype)
        element = register_type(walk.dtype)
        return at.broadcast(element, value)

    def cursor(self, walk: Walk, held: str | None, index: Index) -> Cursor:
        if held is not None:
            return Cursor(walk.pointer, walk.dtype, held)
        return Cursor(self.moved(walk, index, walk.strides[-1]), walk.dtype)

    def step(self, at: Lanes, cursors: Sequence[Cursor]) -> None:
        self.body(at, cursors)
