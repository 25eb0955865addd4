"""Operations whose text is more than a mnemonic: fills, reductions with scratch, casts, masks, views, elements."""

from __future__ import annotations

from tilewright.codegen.pto.arithmetic import element_name
from tilewright.codegen.pto.kernel import Kernel, aligned
from tilewright.codegen.pto.registry import special
from tilewright.codegen.pto.text import Name
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.layout import BLayout, MemorySpace, SLayout
from tilewright.ir.op import Op, is_array
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.types import TensorType, TileType
from tilewright.ops import (
    Cast,
    Cmp,
    ColExpand,
    Create,
    Expands,
    Full,
    Read,
    Reshape,
    RowExpand,
    Sel,
    SetValidShape,
    Slice,
    TransposeView,
    Write,
)
from tilewright.ops.bits import ReinterpretView
from tilewright.ops.cast import NEAREST
from tilewright.ops.reduce import RowMax, RowMin, RowProd, RowSum

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""By `cmp_type`."""
REDUCTIONS: dict[type[Op], str] = {RowSum: "trowsum", RowMax: "trowmax", RowMin: "trowmin", RowProd: "trowprod"}
EXPANSIONS: dict[type[Op], str] = {RowExpand: "trowexpand", ColExpand: "tcolexpand"}


# --- fills -----------------------------------------------------------------------------------------------------------
def fill(kernel: Kernel, target: Value, value: Scalar, valid: Shape | None = None) -> None:
    """`value` in every valid element of `target`."""
    kind = tile_type(target)
    if kind.space not in (MemorySpace.VEC, MemorySpace.MAT) or kind.dtype is BOOL:
        raise UnsupportedError(
            f"nothing fills {kind.dtype} tiles in {kind.space}",
            span=target.span,
            help="let the first product of an accumulator overwrite it: matmul, or init_cond",
        )
    made = kernel.tiles.name(target, valid=valid)
    kernel.line("texpands", [kernel.numbers.typed(value, kind.dtype)], made)


@special(Create)
def create(kernel: Kernel, op: Create, target: Value) -> None:
    if isinstance(target.type, TensorType):
        raise UnsupportedError(
            f"{target.name!r}: a kernel cannot allocate DDR", span=op.span, help="create the tensor outside"
        )
    if op.init_value is not None:
        fill(kernel, target, op.init_value)


@special(Full)
def full(kernel: Kernel, op: Full, target: Value) -> None:
    fill(kernel, target, op.value)


@special(Expands)
def expands(kernel: Kernel, op: Expands, target: Value) -> None:
    fill(kernel, target, op.scalar)


# --- rows and columns ------------------------------------------------------------------------------------------------
@special(RowSum, RowMax, RowMin, RowProd)
def reduce_rows(kernel: Kernel, op: RowSum, target: Value) -> None:
    if op.tmp_tile is None:
        raise UnsupportedError(
            f"{op.qualified_name} needs a scratch tile on Ascend", span=op.span, help="pass tmp_tile, or run the passes"
        )
    kernel.line(
        REDUCTIONS[type(op)], [kernel.tiles.name(op.tile), kernel.tiles.name(op.tmp_tile)], kernel.tiles.name(target)
    )


@special(RowExpand, ColExpand)
def spread(kernel: Kernel, op: RowExpand | ColExpand, target: Value) -> None:
    field = "row_vec" if isinstance(op, RowExpand) else "col_vec"
    vector = kernel.tiles.name(getattr(op, field), valid=aligned(op, target)[field])
    kernel.line(EXPANSIONS[type(op)], [vector], kernel.tiles.name(target))


# --- casts and masks -------------------------------------------------------------------------------------------------
@special(Cast)
def cast(kernel: Kernel, op: Cast, target: Value) -> None:
    """To BOOL it is a comparison with zero. Integers that become narrower wrap, so saturation is switched off."""
    source: DType = op.tile.dtype
    if source is BOOL:
        raise UnsupportedError(
            "a mask is one bit for each element, and no instruction makes numbers of it",
            span=op.span,
            help="use pl.sel(mask, 1, 0) on tiles of numbers",
        )
    tile, made = kernel.tiles.name(op.tile, valid=aligned(op, target)["tile"]), kernel.tiles.name(target)
    if op.target_type is BOOL:
        zero = kernel.numbers.typed(0, source)
        kernel.line("tcmps", [tile, zero], made, inner="cmpMode = #pto<cmp ne>")
        return
    mode = "RINT" if op.mode in NEAREST else op.mode.upper()
    inner = f"rmode = #pto<round_mode {mode}>"
    if source.is_integer and op.target_type.is_integer and op.target_type.bits < source.bits:
        inner += ", sat_mode = #pto<saturation_mode OFF>"
    kernel.line("tcvt", [tile], made, inner=inner)


@special(Cmp)
def compare(kernel: Kernel, op: Cmp, target: Value) -> None:
    extents = aligned(op, target)
    lhs, made = kernel.tiles.name(op.lhs, valid=extents["lhs"]), kernel.tiles.name(target)
    inner = f"cmpMode = #pto<cmp {COMPARISONS[op.cmp_type]}>"
    if is_array(op.rhs) and isinstance(op.rhs, Value):
        kernel.line("tcmp", [lhs, kernel.tiles.name(op.rhs, valid=extents["rhs"])], made, inner=inner)
    else:
        kernel.line("tcmps", [lhs, kernel.numbers.typed(op.rhs, op.lhs.dtype)], made, inner=inner)


@special(Sel)
def select(kernel: Kernel, op: Sel, target: Value) -> None:
    if op.tmp is None:
        raise UnsupportedError(f"{op.qualified_name} needs a scratch tile on Ascend", span=op.span)
    extents = aligned(op, target)
    mask, lhs = (kernel.tiles.name(value, valid=extents[name]) for name, value in (("mask", op.mask), ("lhs", op.lhs)))
    tmp, made = kernel.tiles.name(op.tmp), kernel.tiles.name(target)
    if is_array(op.rhs) and isinstance(op.rhs, Value):
        kernel.line("tsel", [mask, lhs, kernel.tiles.name(op.rhs, valid=extents["rhs"]), tmp], made)
    else:
        kernel.line("tsels", [mask, lhs, tmp, kernel.numbers.typed(op.rhs, op.lhs.dtype)], made)


# --- views -----------------------------------------------------------------------------------------------------------
@special(SetValidShape)
def set_valid_shape(kernel: Kernel, op: SetValidShape, target: Value) -> None:
    """Nothing is written: the value has another type at the same place."""
    kernel.tiles.alias(target, op.tile, kernel.tiles.place(op.tile).layout)


@special(TransposeView)
def transpose_view(kernel: Kernel, op: TransposeView, target: Value) -> None:
    kernel.tiles.alias(target, op.tile)


@special(ReinterpretView)
def reinterpret(kernel: Kernel, op: ReinterpretView, target: Value) -> None:
    """A second allocation at the same place, with elements of another type."""
    kernel.tiles.alias(target, op.data)


@special(Reshape)
def reshape(kernel: Kernel, op: Reshape, target: Value) -> None:
    if isinstance(target.type, TensorType):  # another view of the same pointer, made where a load or store wants it
        return
    old, new = tile_type(op.tile), tile_type(target)
    boxed = any(kernel.tiles.place(v).layout.slayout is not SLayout.NONE_BOX for v in (op.tile, target))
    if old.shape != new.shape and (boxed or old.dtype is BOOL):
        raise kernel.tiles.no_view(target, "a reshape of a boxed or packed tile")
    kernel.tiles.alias(target, op.tile)


@special(Slice)
def slice_(kernel: Kernel, op: Slice, target: Value) -> None:
    if op.drop_dims or op.pad_value is not None:
        raise UnsupportedError("PTO text has no slice that drops or pads", span=op.span, help="slice, then reshape")
    row, col = op.offset
    kernel.tiles.window(target, op.tile, row, col)


# --- single elements -------------------------------------------------------------------------------------------------
def _position(kernel: Kernel, tile: Value, indices: Shape) -> tuple[Name, Name]:
    """The tile, and the position of one of its elements in it."""
    kind, place = tile_type(tile), kernel.tiles.place(tile)
    if place.layout.slayout is not SLayout.NONE_BOX or kind.dtype is BOOL or place.whole is not None:
        raise UnsupportedError(f"single elements of {tile.name!r} cannot be reached", span=tile.span, found=repr(kind))
    row, col = indices
    rows, cols = kind.static_shape
    by_row = place.layout.blayout is BLayout.ROW_MAJOR
    major, minor, pitch = (row, col, cols) if by_row else (col, row, rows)
    flat = binary(BinaryKind.ADD, binary(BinaryKind.MUL, major, pitch), minor)
    return kernel.tiles.name(tile), Name(kernel.numbers.index(flat), "index")


@special(Read)
def read(kernel: Kernel, op: Read, target: Value) -> None:
    name = kernel.text.fresh(target.name)
    element = element_name(target.dtype)
    if target.dtype is BOOL:
        raise UnsupportedError("a single BOOL cannot be read", span=op.span)
    if isinstance(op.tile.type, TensorType):
        pointer = kernel.tensors.pointer(op.tile)
        index = kernel.tensors.flat_index(op.tile, op.indices)
        kernel.text.line(f"{name} = pto.load_scalar {pointer.name}[{index}] : {pointer.type} -> {element}")
    else:
        tile, index = _position(kernel, op.tile, op.indices)
        kernel.text.line(
            f"{name} = pto.tgetval ins({tile.name}, {index.name} : {tile.type}, {index.type}) outs : {element}"
        )
    kernel.numbers.bind(target, name)


@special(Write)
def write(kernel: Kernel, op: Write, target: Value) -> None:
    value = kernel.numbers.typed(op.value, op.tile.dtype)
    if isinstance(op.tile.type, TensorType):
        pointer = kernel.tensors.pointer(op.tile)
        index = kernel.tensors.flat_index(op.tile, op.indices)
        kernel.text.line(f"pto.store_scalar {value.name}, {pointer.name}[{index}] : {pointer.type}, {value.type}")
        return
    tile, index = _position(kernel, op.tile, op.indices)
    kernel.line("tsetval", [index, value], tile)


def tile_type(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type
