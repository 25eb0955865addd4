"""Operations that move: loads, stores, moves between memories, parts taken out and put in; products that sum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.codegen.pto.registry import special
from tilewright.codegen.pto.special import fill, tile_type
from tilewright.codegen.pto.text import Name
from tilewright.codegen.pto.views import tensor_type
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.layout import COL_MAJOR, NZ, ROW_MAJOR, ZN, MemorySpace, Pad
from tilewright.ir.op import Op
from tilewright.ir.scalar import (
    BinaryKind,
    Scalar,
    Shape,
    Value,
    binary,
    constant,
    constant_value,
    linear_terms,
    minimum,
)
from tilewright.ir.types import TileType
from tilewright.ops import Assemble, Extract, Load, MatmulAcc, Move, Store
from tilewright.ops.pad import pad_value_of

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel

VEC, MAT, ACC = MemorySpace.VEC, MemorySpace.MAT, MemorySpace.ACC
INTO_VEC = "accToVecMode = #pto.acc_to_vec_mode<single_mode_vec0>"
"""The accumulator goes whole to the first vector core."""


# --- DDR -------------------------------------------------------------------------------------------------------------
@special(Load)
def load(kernel: Kernel, op: Load, target: Value) -> None:
    """A transposing load reads a view whose columns lie together; where the rest of the tile has a value, the whole is
    filled before the part arrives."""
    kind = tile_type(target)
    _refuse_masks(op, kind)
    lead = len(op.offsets) - len(op.shapes)
    sizes: Shape = (*(1,) * lead, *op.region)
    offsets = op.offsets
    if op.clamp:  # a region that is cut to nothing may start anywhere, but no view may start outside its tensor
        limits = zip(offsets, tensor_type(op.tensor).shape, strict=True)
        offsets = tuple(minimum(offset, limit) for offset, limit in limits)
    turned = op.transpose and 1 not in sizes[-2:]
    if turned:
        _turned_layout(kernel, op, target)
    part = kernel.tensors.part(op.tensor, offsets, sizes, transposed=op.transpose)
    if kind.view.pad is not Pad.NULL and kind.valid != kind.shape:
        kernel.fence()
        fill_around(kernel, target)
        kernel.fence()
    kernel.line("tload", [part.name], kernel.tiles.name(target))


def fill_around(kernel: Kernel, target: Value) -> None:
    """The value of `target`'s padding in all of it."""
    kind = tile_type(target)
    fill(kernel, target, constant(pad_value_of(kind.view.pad, kind.dtype), kind.dtype), valid=kind.shape)


def _turned_layout(kernel: Kernel, op: Load, target: Value) -> None:
    """A tile that a transposing load fills lies turned in L1; nothing else can take it."""
    kind = tile_type(target)
    if kind.space is not MAT:
        raise UnsupportedError(
            f"a transposing load goes to Mat, not to {kind.space.value if kind.space else 'nowhere'}",
            span=op.span,
            help="load it as it lies, and transpose the tile",
        )
    layout = kernel.tiles.place(target).layout
    if layout == NZ:
        rows, cols = kernel.target.physical_shape(MAT, kind.static_shape, kind.dtype, ZN)
        if (rows, cols) != kind.static_shape:
            raise UnsupportedError(
                "the tile of a transposing load is not made of whole turned boxes",
                span=op.span,
                required=f"[{rows}, {cols}]",
                found=repr(kind),
            )
        kernel.tiles.places[target] = replace(kernel.tiles.place(target), layout=ZN)


def _refuse_masks(op: Op, kind: TileType) -> None:
    if kind.dtype is BOOL:
        raise UnsupportedError(
            f"{op.qualified_name}: a mask is one bit for each element on chip and a byte in memory",
            span=op.span,
            help="keep numbers in memory and compare them on chip",
        )


@special(Store)
def store(kernel: Kernel, op: Store, target: Value) -> None:
    kind = tile_type(op.tile)
    _refuse_masks(op, kind)
    part = kernel.tensors.part(op.output_tensor, op.offsets, op.region)
    outer = "atomicType = #pto<atomic_type atomic_add>" if op.atomic else ""
    kernel.line("tstore", [_as_region(kernel, op, (part.rows, part.cols))], part.name, outer=outer)


def _as_region(kernel: Kernel, op: Store, region: tuple[Scalar, Scalar]) -> Name:
    """The tile with the rows and columns of the region that it is stored to: the same, or another view of its bytes."""
    kind = tile_type(op.tile)
    if all(map(_same, kind.valid, region)):
        return kernel.tiles.name(op.tile)
    plain = kernel.tiles.place(op.tile).layout.slayout.value == "none_box"
    if plain and 1 in kind.static_shape and 1 in region:  # a vector turned over: its elements stay where they are
        rows, cols = kind.static_shape
        layout = ROW_MAJOR if region[0] == 1 else COL_MAJOR
        return kernel.tiles.name(op.tile, valid=region, shape=(cols, rows), layout=layout)
    static = tuple(extent for extent in region if isinstance(extent, int))
    dense = kind.valid == kind.shape and len(static) == 2 and static[0] * static[1] == _count(kind)
    if plain and dense:
        return kernel.tiles.name(op.tile, valid=static, shape=(static[0], static[1]), layout=ROW_MAJOR)
    raise UnsupportedError(
        "the tile has not the rows and columns of the region that it is stored to",
        span=op.span,
        required=f"{list(region)}",
        found=repr(kind),
        help="reshape the tile first",
    )


def _count(kind: TileType) -> int:
    rows, cols = kind.static_shape
    return rows * cols


def _same(a: Scalar, b: Scalar) -> bool:
    return a == b or linear_terms(binary(BinaryKind.SUB, a, b)) == ({}, 0)


# --- between memories ------------------------------------------------------------------------------------------------
@special(Move)
def move(kernel: Kernel, op: Move, target: Value) -> None:
    """A part of a tile in L1 is taken by an extraction; everything else moves whole."""
    place = kernel.tiles.place(op.tile)
    if place.whole is not None and tile_type(op.tile).space is MAT:
        take(kernel, op.tile, 0, 0, target)
        return
    _move(kernel, op.tile, kernel.tiles.name(target), target)


def _move(kernel: Kernel, source: Value, made: Name, target: Value) -> None:
    spaces = tile_type(source).space, tile_type(target).space
    outer = INTO_VEC if spaces == (ACC, VEC) and kernel.sections is not None else ""
    kernel.line("tmov", [kernel.tiles.name(source)], made, outer=outer)


@special(Extract)
def extract(kernel: Kernel, op: Extract, target: Value) -> None:
    if (tile_type(op.src).space, tile_type(target).space) != (VEC, VEC):
        take(kernel, op.src, op.index_row, op.index_col, target)
        return
    made = tile_type(target)
    part = Value(f"{target.name}_part", tile_type(op.src).with_(shape=made.shape, valid=made.valid))
    kernel.tiles.window(part, op.src, op.index_row, op.index_col)
    _move(kernel, part, kernel.tiles.name(target), target)


def take(kernel: Kernel, source: Value, row: Scalar, col: Scalar, target: Value) -> None:
    """The part of `source` at (row, col) goes to `target`; windows add up."""
    place = kernel.tiles.place(source)
    if place.whole is not None:
        row, col = binary(BinaryKind.ADD, place.row, row), binary(BinaryKind.ADD, place.col, col)
        source = place.whole
    whole = kernel.tiles.name(source, valid=tile_type(source).shape)
    ins = [whole, Name(kernel.numbers.index(row), "index"), Name(kernel.numbers.index(col), "index")]
    kernel.line("textract", ins, kernel.tiles.name(target))


@special(Assemble)
def assemble(kernel: Kernel, op: Assemble, target: Value) -> None:
    """Within Vec the part of the target is a tile of its own, and the source moves there; into L1 it is inserted."""
    if not isinstance(op.target.type, TileType):
        raise UnsupportedError(f"{op.qualified_name} stands in no kernel", span=op.span)
    row, col = op.offset
    source, whole = tile_type(op.source), tile_type(op.target)
    if whole.space is not VEC:
        ins = [kernel.tiles.name(op.source), Name(kernel.numbers.index(row), "index")]
        ins.append(Name(kernel.numbers.index(col), "index"))
        kernel.line("tinsert", ins, kernel.tiles.name(target, valid=whole.shape))
        return
    part = Value(f"{target.name}_part", whole.with_(shape=source.shape, valid=source.valid))
    kernel.tiles.window(part, target, row, col)
    windowed = kernel.tiles.place(part).whole is not None and source.valid != source.shape
    given = kernel.tiles.valid_part(op.source) if windowed else kernel.tiles.name(op.source)
    kernel.line("tmov", [given], kernel.tiles.name(part))


# --- products --------------------------------------------------------------------------------------------------------
@special(MatmulAcc)
def matmul_acc(kernel: Kernel, op: MatmulAcc, target: Value) -> None:
    """While `init_cond` holds, the product alone is what the accumulator gets."""
    valid = (tile_type(op.lhs).valid[0], tile_type(op.rhs).valid[1])
    lhs, rhs = kernel.tiles.name(op.lhs), kernel.tiles.name(op.rhs)
    made = kernel.tiles.name(target, valid=valid)
    first = None if op.init_cond is None else constant_value(op.init_cond)
    if first:
        kernel.line("tmatmul", [lhs, rhs], made)
    elif op.init_cond is None or first is not None:
        kernel.line("tmatmul.acc", [made, lhs, rhs], made)
    else:
        with kernel.text.region(f"scf.if {kernel.numbers.name(op.init_cond)} {{", None):
            kernel.line("tmatmul", [lhs, rhs], made)
        with kernel.text.region("} else {"):
            kernel.line("tmatmul.acc", [made, lhs, rhs], made)
