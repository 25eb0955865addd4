"""Between DDR and the chip, and between memories of the chip.

Offsets, shapes and valid shapes of a load or store describe the region *of the tensor*. A region of fewer dimensions
than its tensor has extent 1 in the leading ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import DTypeError, ShapeError
from tilewright.ir.dtypes import BF16, FP16, FP32, INT32, DType
from tilewright.ir.layout import BLayout, Compact, Layout, MemorySpace, Pad, SLayout, implied_layout
from tilewright.ir.loops import Index, Update
from tilewright.ir.op import (
    Access,
    Array,
    FromAttribute,
    Op,
    Spelling,
    Work,
    attribute,
    operand,
    scalars,
    whole_access,
)  # fmt: skip
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, minimum, substitute
from tilewright.ir.types import TensorType, TileType, TileView, Type
from tilewright.ops.common import (
    ACC,
    MAT,
    TILE,
    VEC,
    box,
    check_box,
    check_index,
    check_lengths,
    check_operands,
    clip,
    count,
    elements_of,
    meaning_of,
    physical_of,
    rounded,
    same_extent,
    same_shape,
)  # fmt: skip

ONCHIP_FROM_DRAIN = {FP32: (FP16, BF16), INT32: (FP16,)}
"""Narrower element types that an accumulator may be stored as."""


def swapped(shape: Shape) -> Shape:
    """The last two extents exchanged."""
    return (*shape[:-2], shape[-1], shape[-2])


def shifted(offsets: Shape, ix: Shape) -> Shape:
    """The index `ix` of a region that starts at `offsets`; an index of fewer dimensions is one of the last ones."""
    ix = ix[-len(offsets) :]  # a vector as a row: its row index is 0
    lead = len(offsets) - len(ix)
    inner = zip(offsets[lead:], ix, strict=True)
    return (*offsets[:lead], *(binary(BinaryKind.ADD, offset, i) for offset, i in inner))


def identity(op: Op, *ix: Scalar) -> Shape:
    return ix


def _load_index(op: Load, *ix: Scalar) -> Shape:
    return shifted(op.offsets, swapped(ix) if op.transpose else ix)


def _store_index(op: Store, *ix: Scalar) -> Shape:
    return shifted(op.offsets, ix)


class Load(Op, name="load", levels=(TILE,), result_space=FromAttribute("target_memory")):
    """A region of a tensor becomes a tile of physical shape `shapes`.

    `valid_shape`: how much of it is read and has meaning (default: all). `clamp=True` cuts it to what lies inside the
    tensor, down to nothing. `transpose=True` exchanges the last two dimensions of the tile, whose physical and valid
    shapes are then those of the region exchanged. `pad_value` fills the rest of the physical shape with that value;
    without it the rest is undefined. `target_memory` unset: the compiler places the tile. `shapes` may also have more
    dimensions than the tensor, with extent 1: a vector becomes a row."""

    tensor: Value = operand(aliases=("src",))
    offsets: Shape = scalars()
    shapes: Shape = scalars()
    valid_shape: Shape | None = scalars(default=None)
    target_memory: MemorySpace | None = attribute(default=None)
    clamp: bool = attribute(default=False)
    transpose: bool = attribute(default=False)
    pad_value: Pad | None = attribute(default=None)
    spelling = Spelling()
    loops = Index(_load_index, "tensor")

    @property
    def region(self) -> Shape:
        """The extents that are read, per entry of `shapes`."""
        valid = self.shapes if self.valid_shape is None else self.valid_shape
        if not self.clamp:
            return valid
        limits, offsets = physical_of(self.tensor.type)[-len(valid) :], self.offsets[-len(valid) :]
        ones = len(valid) - len(limits)
        limits, offsets = (1,) * ones + limits, (0,) * ones + offsets
        rest = [binary(BinaryKind.SUB, limit, offset) for limit, offset in zip(limits, offsets, strict=True)]
        return tuple(clip(r, v) for r, v in zip(rest, valid, strict=True))

    @property
    def in_tensor(self) -> Shape:
        """The extents that are read, per dimension of the tensor."""
        lead = len(self.offsets) - len(self.shapes)
        return (1,) * lead + self.region if lead >= 0 else self.region[-lead:]

    def infer(self) -> Type:
        kind = self.tensor.type
        if not isinstance(kind, TensorType):
            raise ShapeError("tile.load takes a tensor", span=self.span, found=repr(kind), help="use pl.move for tiles")
        check_lengths(self, kind.rank, offsets=self.offsets)
        ones = len(self.shapes) - kind.rank
        if not self.shapes or any(extent != 1 for extent in (self.valid_shape or self.shapes)[: max(0, ones)]):
            check_lengths(self, kind.rank, shapes=self.shapes)
        check_lengths(self, len(self.shapes), valid_shape=self.valid_shape)
        check_index(self, "offsets", *self.offsets)
        if not self.clamp:
            check_box(self, "tensor", kind.shape, self.offsets, self.in_tensor)
        shape, valid = self.shapes, self.region
        if self.transpose:
            if len(shape) < 2:
                raise ShapeError("a transposed load needs two dimensions", span=self.span, found=str(list(shape)))
            shape, valid = swapped(shape), swapped(valid)
        return TileType(shape, kind.dtype, self.target_memory, TileView(valid, pad=self.pad_value or Pad.NULL))

    def evaluate(self, tensor: Array, offsets: Any, shapes: Any, valid_shape: Any) -> Array:
        extents = list(valid_shape or shapes)
        ones = max(0, len(extents) - tensor.ndim)
        tensor, offsets = tensor.reshape((1,) * ones + tensor.shape), (0,) * ones + tuple(offsets)
        lead = tensor.ndim - len(extents)
        if self.clamp:
            limits = zip(tensor.shape[lead:], offsets[lead:], extents, strict=True)
            extents = [max(0, min(limit - offset, extent)) for limit, offset, extent in limits]
        if 0 in extents:  # nothing is read, wherever that is
            out = np.zeros(extents, tensor.dtype)
        else:
            out = tensor[box(tensor, offsets, [1] * lead + extents)].reshape(extents)
        return out.swapaxes(-1, -2) if self.transpose else out

    def accesses(self) -> tuple[Access, ...]:
        read = Access("tensor", False, self.offsets, self.in_tensor)
        return (read, whole_access(None, self.infer(), writes=True))

    def work(self) -> Work:
        kind = self.infer()
        return Work("move", elements=elements_of(kind), nbytes=elements_of(kind) * kind.dtype.nbytes)

    def resized(self, shape: Shape) -> Op:
        region = self.shapes if self.valid_shape is None else self.valid_shape
        return self.replace(shapes=swapped(shape) if self.transpose else shape, valid_shape=region)

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        if len(op.shapes) == 1:
            valid = None if op.valid_shape is None else (1, *op.valid_shape)
            return op.replace(shapes=(1, *op.shapes), valid_shape=valid)
        lead = len(op.shapes) - 2
        return op.replace(shapes=op.shapes[lead:], valid_shape=op.valid_shape and op.valid_shape[lead:])

    def matrices(self) -> Shape:
        return _several(self.shapes, self.region)

    def matrix(self, index: tuple[int, ...]) -> Op:
        lead = len(self.shapes) - 2
        valid = self.valid_shape and self.valid_shape[lead:]
        return self.replace(offsets=_at(self.offsets, index), shapes=self.shapes[lead:], valid_shape=valid)


class Store(Op, name="store", levels=(TILE,), writes="output_tensor"):
    """The valid part of `tile` goes to the tensor at `offsets`; the result is the tensor's next version.

    `shapes`: the region of the tensor, where it has other dimensions than the tile. `atomic=1` adds to what is there
    instead. A tile in Acc may be stored to a narrower float tensor: each element is rounded half to even."""

    tile: Value = operand(spaces=(VEC, ACC, MAT), aliases=("source",))
    offsets: Shape = scalars()
    output_tensor: Value = operand(aliases=("tensor", "target"))
    shapes: Shape | None = scalars(default=None)
    atomic: int = attribute(default=0)
    spelling = Spelling()
    loops = Update(_store_index, "tile", "output_tensor")

    @property
    def region(self) -> Shape:
        """The extents that are written, per dimension of the tensor."""
        extents = meaning_of(self.tile.type) if self.shapes is None else self.shapes
        return (1,) * (len(physical_of(self.output_tensor.type)) - len(extents)) + extents

    def infer(self) -> Type:
        source, kind = self.tile.type, self.output_tensor.type
        if not isinstance(source, TileType) or not isinstance(kind, TensorType):
            raise ShapeError(
                "tile.store takes a tile and the tensor that it goes to",
                span=self.span,
                found=f"{source!r} and {kind!r}",
                help="inside a kernel on tensors, assign to a slice or use pl.assemble",
            )
        check_lengths(self, kind.rank, offsets=self.offsets)
        check_index(self, "offsets", *self.offsets)
        extents = meaning_of(source) if self.shapes is None else self.shapes
        if not 1 <= len(extents) <= kind.rank:
            check_lengths(self, kind.rank, shapes=extents)
        if self.shapes is not None and not same_shape(_no_ones(extents), _no_ones(meaning_of(source))):
            if all(isinstance(e, int) for e in (*extents, *meaning_of(source))) and (
                count(extents) != count(meaning_of(source))
            ):
                raise ShapeError(
                    "tile.store: the region is not as large as the valid part of the tile",
                    span=self.span,
                    required=str(list(meaning_of(source))),
                    found=str(list(extents)),
                )
        self._check_dtype(source, kind)
        check_box(self, "tensor", kind.shape, self.offsets, self.region)
        return kind

    def _check_dtype(self, source: TileType, kind: TensorType) -> None:
        narrows = source.space is ACC and kind.dtype in ONCHIP_FROM_DRAIN.get(source.dtype, ())
        if source.dtype is not kind.dtype and not narrows:
            raise DTypeError(
                "tile.store: tile and tensor have two dtypes",
                span=self.span,
                required=f"a tile of {kind.dtype}",
                found=f"tile {source!r} and output_tensor {kind!r}",
                help=f"cast the tile first: pl.cast(tile, pl.{kind.dtype})",
            )

    def evaluate(self, tile: Array, offsets: Any, output_tensor: Array, shapes: Any) -> Array:
        extents = tuple(shapes) if shapes is not None else tile.shape
        if 0 in extents:
            return output_tensor
        region = box(output_tensor, offsets, (1,) * (output_tensor.ndim - len(extents)) + extents)
        wanted = output_tensor[region].shape
        if output_tensor.dtype.kind == "b":  # masks of definedness come this way too
            output_tensor[region] = (tile & output_tensor[region] if self.atomic else tile).reshape(wanted)
            return output_tensor
        values = rounded(tile, self.output_tensor.dtype).reshape(wanted)
        output_tensor[region] = output_tensor[region] + values if self.atomic else values
        return output_tensor

    def accesses(self) -> tuple[Access, ...]:
        target = Access("output_tensor", True, self.offsets, self.region)
        if not self.atomic:
            return (whole_access("tile", self.tile.type), target)
        read = Access("output_tensor", False, self.offsets, self.region)
        return (whole_access("tile", self.tile.type), read, target)

    def work(self) -> Work:
        elements = elements_of(self.tile.type)
        return Work("move", elements=elements, nbytes=elements * self.output_tensor.dtype.nbytes)

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op, extents = self.with_operands(replace), self.shapes or meaning_of(self.tile.type)
        if len(extents) < 2:
            return op.replace(shapes=tuple(substitute(extent, replace) for extent in extents))
        return op.replace(shapes=op.shapes and op.shapes[-2:])

    def matrices(self) -> Shape:
        extents = self.shapes or meaning_of(self.tile.type)
        return _several(extents, extents)

    def matrix(self, index: tuple[int, ...]) -> Op:
        return self.replace(offsets=_at(self.offsets, index), shapes=None)


def _several(shapes: Shape, region: Shape) -> Shape:
    """The leading extents of a region of several matrices, all of them read or written."""
    lead = shapes[:-2]
    return lead if any(extent != 1 for extent in lead) and region[:-2] == lead else ()


def _at(offsets: Shape, index: tuple[int, ...]) -> Shape:
    """Offsets of the matrix at `index` of the region at `offsets`."""
    first = len(offsets) - 2 - len(index)
    moved = zip(offsets[first:-2], index, strict=True)
    return (*offsets[:first], *(binary(BinaryKind.ADD, offset, i) for offset, i in moved), *offsets[-2:])


def _no_ones(shape: Shape) -> Shape:
    return tuple(extent for extent in shape if extent != 1)


class Move(Op, name="move", levels=(TILE,), result_space=FromAttribute("target_memory")):
    """The same tile in another memory, layout or dtype. Unset layouts are those that the memory implies.

    `target_type`: each element is rounded to it, half to even. `pad_value`: as in `load`."""

    tile: Value = operand(aliases=("src",))
    target_memory: MemorySpace | None = attribute(default=None)
    blayout: BLayout | None = attribute(default=None)
    slayout: SLayout | None = attribute(default=None)
    target_type: DType | None = attribute(default=None, aliases=("to_dtype",))
    pad_value: Pad | None = attribute(default=None)
    spelling = Spelling()
    loops = Index(identity, "tile")

    def infer(self) -> Type:
        check_operands(self)
        kind = self.tile.type
        assert isinstance(kind, TileType)
        pad = kind.view.pad if self.pad_value is None else self.pad_value
        compact = kind.view.compact if self.target_memory is not None else Compact.NULL
        view = TileView(kind.view.valid_shape, layout=self._layout(kind), pad=pad, compact=compact)
        return TileType(kind.shape, self.target_type or kind.dtype, self.target_memory, view)

    def _layout(self, kind: TileType) -> Layout | None:
        if self.blayout is None and self.slayout is None:
            return None
        base = implied_layout(self.target_memory or VEC, kind.static_shape)
        return Layout(self.blayout or base.blayout, self.slayout or base.slayout, base.fractal)

    def evaluate(self, tile: Array) -> Array:
        if self.target_type is None or tile.dtype.kind == "b":
            return tile
        return rounded(tile, self.target_type)

    def work(self) -> Work:
        elements = elements_of(self.tile.type)
        return Work("move", elements=elements, nbytes=elements * self.tile.dtype.nbytes)


def whole_load(tensor: Value, space: MemorySpace | None = None, transpose: bool = False) -> Load:
    """A load of all of `tensor`."""
    shape = physical_of(tensor.type)
    return Load(tensor, (0,) * len(shape), shape, target_memory=space, transpose=transpose, span=tensor.span)


def upper_bound(extent: Scalar, limit: Scalar) -> Scalar:
    """`extent` kept within `limit`, visibly, so that shapes derived from it still go together with `limit`."""
    if isinstance(extent, int) or same_extent(extent, limit):
        return extent
    return minimum(extent, limit)
