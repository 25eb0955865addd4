"""Tensors in DDR: a view of each as the program knows it, and the part of it that a load or store touches."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.pto.arithmetic import Arithmetic, element_name
from tilewright.codegen.pto.text import Name, Text
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.storage import Roots
from tilewright.ir.types import TensorType

MOST_DIMENSIONS = 5
"""Dimensions of a GM view."""


@dataclass(frozen=True, slots=True)
class Part:
    """A partition of a tensor: its name, and rows and columns as a tile sees them (leading extents multiplied)."""

    name: Name
    rows: Scalar
    cols: Scalar


class Tensors:
    """The tensors of one function, by root: every version of a tensor is one pointer."""

    def __init__(self, text: Text, numbers: Arithmetic, roots: Roots) -> None:
        self.text = text
        self.numbers = numbers
        self.roots = roots
        self.pointers: dict[Value, Name] = {}

    def pointer(self, tensor: Value) -> Name:
        """The pointer to the tensor that `tensor` is a version of."""
        found = self.pointers.get(self.roots.get(tensor, tensor))
        if found is None:
            raise UnsupportedError(
                f"{tensor.name!r} is made inside a kernel, which cannot allocate DDR", span=tensor.span
            )
        return found

    def part(self, tensor: Value, offsets: Shape, sizes: Shape, *, transposed: bool = False) -> Part:
        """The box `sizes` at `offsets`, the last two dimensions exchanged if `transposed`."""
        kind = tensor_type(tensor)
        shape, steps = kind.shape, strides(kind)
        sizes = sizes[-len(shape) :]  # a vector in DDR is a row on chip: the leading extent of its region is 1
        if len(shape) == 1:
            shape, steps, offsets, sizes = (1, *shape), (shape[0], *steps), (0, *offsets), (1, *sizes)
        if len(shape) > MOST_DIMENSIONS:
            raise UnsupportedError(
                f"PTO text has no views of {len(shape)} dimensions",
                span=tensor.span,
                required=f"at most {MOST_DIMENSIONS}",
                help="reshape the tensor",
            )
        if transposed:
            shape, steps, offsets, sizes = map(_turned, (shape, steps, offsets, sizes))
        whole = self._view(tensor, shape, steps, transposed)
        element = whole.type.rpartition("x")[2].removesuffix(">")
        wanted = f"!pto.partition_tensor_view<{_dims(sizes)}x{element}>"

        def make() -> Name:
            box = f"offsets = {self._list(offsets)}, sizes = {self._list(sizes)}"
            name = self.text.fresh(f"{tensor.name}_part")
            self.text.line(f"{name} = pto.partition_view {whole.name}, {box} : {whole.type} -> {wanted}")
            return Name(name, wanted)

        name = self.text.memo(("part", whole.name, offsets, sizes), make)
        rows: Scalar = 1
        for extent in sizes[:-1]:
            rows = binary(BinaryKind.MUL, rows, extent)
        return Part(name, rows, sizes[-1])

    def _view(self, tensor: Value, shape: Shape, steps: Shape, transposed: bool) -> Name:
        pointer = self.pointer(tensor)
        element = pointer.type.removeprefix("!pto.ptr<").removesuffix(">")
        kind = f"!pto.tensor_view<{_dims(shape)}x{element}>"
        layout = " {layout = #pto.layout<dn>}" if transposed else ""

        def make() -> Name:
            name = self.text.fresh(f"{pointer.name.removeprefix('%')}_view")
            extents, jumps = self._list(shape), self._list(steps)
            self.text.line(
                f"{name} = pto.make_tensor_view {pointer.name}, shape = {extents}, strides = {jumps}{layout} : {kind}"
            )
            return Name(name, kind)

        with self.text.hoisted():
            return self.text.memo(("view", pointer.name, shape, steps, transposed), make)

    def _list(self, scalars: Shape) -> str:
        return "[" + ", ".join(self.numbers.index(scalar) for scalar in scalars) + "]"

    def flat_index(self, tensor: Value, indices: Shape) -> str:
        """The position of one element, counted from the pointer."""
        flat: Scalar = 0
        for index, step in zip(indices, strides(tensor_type(tensor)), strict=True):
            flat = binary(BinaryKind.ADD, flat, binary(BinaryKind.MUL, index, step))
        return self.numbers.index(flat)


def tensor_type(tensor: Value) -> TensorType:
    assert isinstance(tensor.type, TensorType)
    return tensor.type


def pointer_type(kind: TensorType) -> str:
    """The type of a pointer to the elements of a tensor; a BOOL is a byte."""
    return f"!pto.ptr<{'i8' if kind.dtype is BOOL else element_name(kind.dtype)}>"


def strides(kind: TensorType) -> Shape:
    """Strides in elements, those of a C-contiguous tensor where the type states none."""
    if kind.strides is not None:
        return kind.strides
    found: list[Scalar] = [1]
    for extent in reversed(kind.shape[1:]):
        found.append(binary(BinaryKind.MUL, found[-1], extent))
    return tuple(reversed(found))


def _turned(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def _dims(shape: Shape) -> str:
    return "x".join(str(extent) if isinstance(extent, int) else "?" for extent in shape)
