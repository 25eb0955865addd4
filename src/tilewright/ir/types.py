"""Types of SSA values. Interned: equal types are one object, so comparing two is comparing two pointers.

A tile's *physical shape* is what it occupies; its *valid shape* is the part that has meaning. The two are never
confused: `shape` is physical, `valid` is meaning. Whatever a view leaves out is what the tile's space implies, and a
view that only repeats that is the same type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tilewright.errors import ShapeError, ValidShapeError
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import Compact, Layout, MemorySpace, Pad, implied_layout
from tilewright.ir.scalar import Expr, Scalar, Shape, Value, substitute, values_in

T = TypeVar("T", bound="Type")
_INTERNED: WeakValueDictionary[tuple[Any, ...], Type] = WeakValueDictionary()


class Type:
    """Base of all types."""

    __slots__ = ("__weakref__", "_key")
    _key: tuple[Any, ...]

    @property
    def dtype(self) -> DType:
        """The dtype of the scalar, or of the elements. Tuples have none."""
        raise AssertionError(f"{self!r} has no dtype")

    def scalars(self) -> Iterator[Scalar]:
        """Every scalar in the type: extents, valid extents, strides."""
        return iter(())

    def values(self) -> Iterator[Value]:
        """The SSA values that the type depends on."""
        for scalar in self.scalars():
            if not isinstance(scalar, int):
                yield from values_in(scalar)

    def substitute(self, replace: Callable[[Value], Scalar]) -> Type:
        """The type with every SSA value in it replaced."""
        return self


def interned(cls: type[T], key: tuple[Any, ...]) -> tuple[T, bool]:
    """The one object of `cls` for `key`, and whether it is new (its slots are then still to be filled)."""
    found = _INTERNED.get((cls, *key))
    if found is not None:
        return found, False  # type: ignore[return-value]
    made = object.__new__(cls)
    object.__setattr__(made, "_key", key)
    _INTERNED[(cls, *key)] = made
    return made, True


def _substitute_all(scalars: Shape, replace: Callable[[Value], Scalar]) -> Shape:
    return tuple(substitute(scalar, replace) for scalar in scalars)


class ScalarType(Type):
    """A scalar of `dtype`."""

    __slots__ = ("_dtype",)
    _dtype: DType

    def __new__(cls, dtype: DType) -> ScalarType:
        self, new = interned(cls, (dtype,))
        if new:
            self._dtype = dtype
        return self

    @property
    def dtype(self) -> DType:
        return self._dtype

    def __repr__(self) -> str:
        return f"pl.Scalar[{self._dtype}]"


class TupleType(Type):
    """Several values returned together."""

    __slots__ = ("elements",)
    elements: tuple[Type, ...]

    def __new__(cls, elements: tuple[Type, ...]) -> TupleType:
        self, new = interned(cls, (elements,))
        if new:
            self.elements = elements
        return self

    def scalars(self) -> Iterator[Scalar]:
        for element in self.elements:
            yield from element.scalars()

    def substitute(self, replace: Callable[[Value], Scalar]) -> TupleType:
        return TupleType(tuple(element.substitute(replace) for element in self.elements))

    def __repr__(self) -> str:
        return f"pl.Tuple[{', '.join(map(repr, self.elements))}]"


class TensorType(Type):
    """A tensor in DDR. `strides` are in elements; None means C-contiguous."""

    __slots__ = ("_dtype", "shape", "strides")
    shape: Shape
    strides: Shape | None
    _dtype: DType

    def __new__(cls, shape: Shape, dtype: DType, strides: Shape | None = None) -> TensorType:
        self, new = interned(cls, (shape, dtype, strides))
        if new:
            if strides is not None and len(strides) != len(shape):
                raise ShapeError("a tensor needs one stride per dimension", found=f"{strides} for {shape}")
            self.shape = shape
            self.strides = strides
            self._dtype = dtype
        return self

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    def scalars(self) -> Iterator[Scalar]:
        yield from self.shape
        yield from self.strides or ()

    def substitute(self, replace: Callable[[Value], Scalar]) -> TensorType:
        strides = None if self.strides is None else _substitute_all(self.strides, replace)
        return TensorType(_substitute_all(self.shape, replace), self._dtype, strides)

    def __repr__(self) -> str:
        return f"pl.Tensor[{list(self.shape)}, {self._dtype}]"


@dataclass(frozen=True, slots=True)
class MemRef:
    """The buffer that a tile occupies. Tiles with one name share it. `addr` and `nbytes` are bytes within the tile's
    memory, None until planned; `slots` > 1 is a ring of equal buffers, `nbytes` each."""

    name: str
    addr: int | None = None
    nbytes: int | None = None
    slots: int = 1


@dataclass(frozen=True, slots=True)
class TileView:
    """How a tile looks at its buffer. A field left at its default means what the tile's space implies.

    `start_offset` counts elements from the buffer's start and `stride` elements between rows and columns: a slice
    that shares its parent's buffer has both; otherwise they are None."""

    valid_shape: Shape | None = None
    stride: Shape | None = None
    start_offset: Scalar | None = None
    layout: Layout | None = None
    pad: Pad = Pad.NULL
    compact: Compact = Compact.NULL


DEFAULT_VIEW = TileView()


class TileType(Type):
    """A tile on chip: physical `shape`, element dtype, memory space (None until placed), view, buffer (None until
    assigned). Canonical: a valid shape equal to the shape, or a layout that the space implies, is left out."""

    __slots__ = ("_dtype", "memref", "shape", "space", "view")
    shape: Shape
    space: MemorySpace | None
    view: TileView
    memref: MemRef | None
    _dtype: DType

    def __new__(
        cls,
        shape: Shape,
        dtype: DType,
        space: MemorySpace | None = None,
        view: TileView = DEFAULT_VIEW,
        memref: MemRef | None = None,
    ) -> TileType:
        view = _canonical(view, shape, space)
        self, new = interned(cls, (shape, dtype, space, view, memref))
        if new:
            self.shape = shape
            self.space = space
            self.view = view
            self.memref = memref
            self._dtype = dtype
        return self

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def valid(self) -> Shape:
        """The part that has meaning, per dimension."""
        return self.shape if self.view.valid_shape is None else self.view.valid_shape

    @property
    def layout(self) -> Layout | None:
        """The layout written in the view, else the one that the space implies; None while unplaced."""
        if self.view.layout is not None or self.space is None:
            return self.view.layout
        return implied_layout(self.space, self.static_shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The physical shape, which placement requires to be constant."""
        if all(isinstance(extent, int) for extent in self.shape):
            return self.shape  # type: ignore[return-value]
        raise ShapeError(
            "the physical shape of a tile must be constant",
            found=str(list(self.shape)),
            help="give a constant shape and say the run-time extent with valid_shape",
        )

    def scalars(self) -> Iterator[Scalar]:
        yield from self.shape
        yield from self.view.valid_shape or ()
        yield from self.view.stride or ()
        if self.view.start_offset is not None:
            yield self.view.start_offset

    def with_(
        self,
        *,
        shape: Shape | None = None,
        dtype: DType | None = None,
        space: MemorySpace | None = None,
        valid: Shape | None = None,
        layout: Layout | None = None,
        pad: Pad | None = None,
        compact: Compact | None = None,
        memref: MemRef | None = None,
        stride: Shape | None = None,
        start_offset: Scalar | None = None,
    ) -> TileType:
        """The type with the given fields replaced. A new space or shape drops a layout that is not given too."""
        view = self.view
        keeps_layout = space is None or space is self.space
        return TileType(
            shape or self.shape,
            dtype or self._dtype,
            space or self.space,
            TileView(
                valid if valid is not None else (view.valid_shape or (None if shape is None else self.valid)),
                stride if stride is not None else view.stride,
                start_offset if start_offset is not None else view.start_offset,
                layout if layout is not None else (view.layout if keeps_layout else None),
                pad if pad is not None else view.pad,
                compact if compact is not None else view.compact,
            ),
            memref or self.memref,
        )

    def without_memref(self) -> TileType:
        return TileType(self.shape, self._dtype, self.space, self.view, None)

    def substitute(self, replace: Callable[[Value], Scalar]) -> TileType:
        if not any(isinstance(scalar, Expr) for scalar in self.scalars()):
            return self
        view = self.view
        return TileType(
            _substitute_all(self.shape, replace),
            self._dtype,
            self.space,
            TileView(
                None if view.valid_shape is None else _substitute_all(view.valid_shape, replace),
                None if view.stride is None else _substitute_all(view.stride, replace),
                None if view.start_offset is None else substitute(view.start_offset, replace),
                view.layout,
                view.pad,
                view.compact,
            ),
            self.memref,
        )

    def __repr__(self) -> str:
        valid = "" if self.view.valid_shape is None else f", valid {list(self.valid)}"
        space = "" if self.space is None else f", {self.space.value}"
        return f"pl.Tile[{list(self.shape)}, {self._dtype}{space}{valid}]"


def _canonical(view: TileView, shape: Shape, space: MemorySpace | None) -> TileView:
    """The view without what the shape and the space say already. Raises `ValidShapeError`."""
    valid, layout = view.valid_shape, view.layout
    if valid is not None:
        if len(valid) != len(shape):
            raise ValidShapeError("a valid shape needs one extent per dimension", found=f"{valid} for {shape}")
        for extent, limit in zip(valid, shape, strict=True):
            if isinstance(extent, int) and isinstance(limit, int) and not 0 <= extent <= limit:
                raise ValidShapeError(
                    "the valid shape is larger than the tile",
                    required=f"at most {list(shape)}",
                    found=str(list(valid)),
                    help="make the tile larger, or the valid part smaller",
                )
        if valid == shape:
            valid = None
    if layout is not None and space is not None and all(isinstance(extent, int) for extent in shape):
        static: tuple[int, ...] = shape  # type: ignore[assignment]
        if layout == implied_layout(space, static):
            layout = None
    if valid is view.valid_shape and layout is view.layout:
        return view
    return TileView(valid, view.stride, view.start_offset, layout, view.pad, view.compact)
