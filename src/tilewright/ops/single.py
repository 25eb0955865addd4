"""Single elements and rows, for operations that are made of them: reading and writing at indices that are worked out.

Each function appends to an expansion. An array may be a tile, or a tensor in DDR, of which only what is asked for is
touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.dtypes import INDEX
from tilewright.ir.expansion import Body, Expansion
from tilewright.ir.op import Op, Work
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, cast
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.common import TENSOR, TILE, VEC, elements_of, meaning_of, physical_of
from tilewright.ops.movement import Load, Move, Store
from tilewright.ops.parts import Assemble, Read, Write
from tilewright.ops.shape import Slice

ADD, SUB, MUL = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL
FLOORDIV, MOD = BinaryKind.FLOORDIV, BinaryKind.MOD


def element(to: Expansion, array: Value, index: Shape) -> Value:
    """One element of a tile or tensor as a scalar."""
    level = TILE if isinstance(array.type, TileType) else TENSOR
    return to.op(Read(array, index, level=level, span=array.span), "element")


def index_at(to: Expansion, array: Value, index: Shape) -> Scalar:
    """One element of a tile or tensor of integers, as an index."""
    return to.named(cast(element(to, array, index), INDEX), "index")


def put(to: Expansion, array: Value, index: Shape, value: Scalar) -> Value:
    """The next version of `array`, in which one element is `value`, converted to its dtype."""
    level = TILE if isinstance(array.type, TileType) else TENSOR
    return to.op(Write(array, index, cast(value, array.dtype), level=level, span=array.span), array.name)


def each(to: Expansion, rows: Scalar, columns: Scalar, start: Sequence[Scalar], body: Body) -> tuple[Value, ...]:
    """Carries `start` through ``body(i, j, *carried)`` for every row and column, in order; the last values."""

    def row(i: Value, *outer: Value) -> Sequence[Scalar]:
        def column(j: Value, *inner: Value) -> Sequence[Scalar]:
            return body(i, j, *inner)

        return to.loop(columns, outer, column, "j")

    return to.loop(rows, start, row)


def row_of(to: Expansion, array: Value, row: Scalar, column: Scalar, columns: Scalar) -> Value:
    """[1, columns] of a tile or tensor with two dimensions, from (row, column) on."""
    width = columns if isinstance(columns, int) else physical_of(array.type)[-1]
    if isinstance(array.type, TensorType):
        return to.op(Load(array, (row, column), (1, width), (1, columns), span=array.span), "row")
    return to.op(Slice(array, (1, width), (row, column), (1, columns), level=TILE, span=array.span), "row")


def put_row(to: Expansion, array: Value, part: Value, row: Scalar, column: Scalar = 0) -> Value:
    """The next version of `array`, in which the tile `part` stands at (row, column)."""
    if isinstance(array.type, TensorType):
        return to.op(Store(part, (row, column), array, span=array.span), array.name)
    return to.op(Assemble(array, part, (row, column), level=TILE, span=array.span), array.name)


def in_vector_memory(to: Expansion, array: Value) -> Value:
    """A tile where its elements can be reached one by one; a tensor in DDR as it is."""
    if isinstance(array.type, TensorType):
        return array
    return to.op(Move(array, VEC, span=array.span), array.name)


def unravelled(flat: Scalar, columns: Scalar) -> Shape:
    """The row and column of the element at position `flat` of rows of `columns`."""
    return (binary(FLOORDIV, flat, columns), binary(MOD, flat, columns))


def rows_and_columns(array: Value) -> tuple[Scalar, Scalar]:
    """The extents that have meaning of a tile or tensor with two dimensions."""
    rows, columns = meaning_of(array.type)
    return rows, columns


def columns_of(array: Value) -> Scalar:
    """How many columns lie between two rows."""
    return physical_of(array.type)[-1]


def work_of(op: Op) -> Work:
    """What an operation costs that reads and writes its result's elements one by one."""
    kind = op.infer()
    elements = elements_of(kind)
    return Work("move", elements=elements, nbytes=2 * elements * kind.dtype.nbytes)
