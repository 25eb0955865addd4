"""Rules of §1, §5, §6 and §7 on a tile by itself, and on GM views: layouts, alignment, capacity, bounds."""

from __future__ import annotations

from tilewright.codegen.pto.facts import Context, Fact
from tilewright.codegen.pto.syntax import Operation
from tilewright.codegen.pto.tables import CAPACITY, FP8, START_ALIGNMENT, acc_row_unit, footprint
from tilewright.codegen.pto.types import PtrType, TileType, Type, ViewType


def alloc_tile(ctx: Context, op: Operation) -> None:
    """Everything about an allocation."""
    kind = op.result_types[0]
    if not isinstance(kind, TileType):
        ctx.report("§1 type", op, f"an allocation makes a tile, not {kind}")
        return
    kind = kind.for_arch(ctx.arch)
    for key, static in (("valid_row", kind.v_row), ("valid_col", kind.v_col)):
        ctx.require(
            (key in op.named) == (static is None),
            "§5 alloc_tile valid operands",
            op,
            f"{key} is given exactly where the type says `?`",
        )
    if ctx.level is not None:
        ctx.require(
            ("addr" in op.named) == (ctx.level == 3),
            "§2 alloc_tile addr",
            op,
            "level 3 gives every tile its address, levels 1 and 2 none",
        )
    _shape(ctx, op, kind)
    _layout(ctx, op, kind)
    _place(ctx, op, kind)


def _shape(ctx: Context, op: Operation, kind: TileType) -> None:
    for valid, physical in zip(kind.valid, kind.shape, strict=True):
        ctx.require(valid is None or valid <= physical, "§5 valid", op, f"the valid shape exceeds the shape of {kind}")
    ctx.require(kind.dtype not in FP8 or ctx.arch == "a5", "§1 fp8 a3", op, "the a3 has no fp8")
    if kind.slayout == "none_box":
        by_row = kind.blayout == "row_major"
        run = (kind.cols if by_row else kind.rows) * kind.itemsize
        word = "row" if by_row else "column"
        ctx.require(
            run % 32 == 0 and run > 0, "§6 row alignment", op, f"a {word} of {run} bytes is no multiple of 32: {kind}"
        )
        return
    box_rows, box_cols = kind.box
    rows_fit = kind.rows % box_rows == 0 or (kind.rows == 1 and (kind.loc == "vec" or kind.fractal == 32))
    fits = rows_fit and kind.cols % box_cols == 0 and kind.rows > 0 and kind.cols > 0
    ctx.require(fits, "§6 box alignment", op, f"{kind} is not made of whole boxes of {box_rows} x {box_cols}")


_BOXED = {
    "left": (None, "row_major"),
    "right": ("row_major", "col_major"),
    "acc": ("col_major", "row_major"),
}
"""Block and box layout of the cube's memories; the assembler rewrites the block layout of `left`."""


def _layout(ctx: Context, op: Operation, kind: TileType) -> None:
    if kind.loc in _BOXED:
        blayout, slayout = _BOXED[kind.loc]
        clause = f"§6 {kind.loc} layout" if kind.loc == "right" else f"§1 layout {kind.loc}"
        ctx.require(
            kind.slayout == slayout and blayout in (None, kind.blayout),
            clause,
            op,
            f"{kind.loc} is {blayout or 'any'}/{slayout}, not {kind.blayout}/{kind.slayout}",
        )
        ctx.require(
            (kind.fractal == 1024) == (kind.loc == "acc"),
            "§6 acc fractal" if kind.loc == "acc" else f"§1 layout {kind.loc}",
            op,
            "an accumulator has fractal 1024, nothing else has",
        )
    elif kind.loc == "mat":
        zn_or_nz = (kind.blayout, kind.slayout) in (("col_major", "row_major"), ("row_major", "col_major"))
        one_row = kind.slayout == "none_box" and kind.blayout == "row_major" and kind.rows == 1
        ctx.require(zn_or_nz or one_row, "§1 layout mat", op, f"L1 holds NZ, ZN, or one plain row, not {kind}")
    elif kind.loc in ("bias", "scaling"):
        plain = kind.rows == 1 and kind.slayout == "none_box" and kind.blayout == "row_major"
        ctx.require(plain, f"§1 layout {kind.loc}", op, f"{kind.loc} holds one plain row, not {kind}")
    if kind.loc == "acc":
        ctx.require(
            kind.dtype in ("f32", "i32"), "§1 layout acc", op, f"an accumulator is f32 or i32, not {kind.dtype}"
        )
        unit = acc_row_unit(kind.dtype, ctx.arch)
        ctx.require(
            kind.rows % unit == 0 or kind.compact == 1,
            "§7 acc rows",
            op,
            f"the cube writes this accumulator with a row pitch of {unit}s; {kind.rows} rows would be misread",
        )


def _place(ctx: Context, op: Operation, kind: TileType) -> None:
    nbytes, capacity = footprint(kind, ctx.arch), CAPACITY[ctx.arch][kind.loc]
    address = ctx.integers(op.named.get("addr", ("",)))[0]
    start = address or 0
    if address is not None:
        alignment = START_ALIGNMENT[kind.loc]
        ctx.require(address >= 0, "§6 address", op, f"the address {address} is negative")
        ctx.require(
            address % alignment == 0,
            f"§7 start alignment {kind.loc}",
            op,
            f"the address {address} is no multiple of {alignment}",
        )
    ctx.require(
        start + nbytes <= capacity,
        f"§7 {kind.loc} capacity {ctx.arch}",
        op,
        f"bytes {start} to {start + nbytes} do not fit {kind.loc}, which has {capacity}",
    )


def make_tensor_view(ctx: Context, op: Operation) -> None:
    pointer, kind = ctx.scope.get(op.operands[0]), op.result_types[0]
    if not isinstance(kind, ViewType) or kind.partition:
        ctx.report("§1 type", op, f"make_tensor_view makes a tensor_view, not {kind}")
        return
    if pointer is not None:
        same = isinstance(pointer.type, PtrType) and pointer.type.dtype == kind.dtype
        ctx.require(same, "§5 make_tensor_view element", op, f"{pointer.type} gives no view of {kind.dtype}")
    shape, strides = op.named["shape"], op.named["strides"]
    ctx.require(
        len(shape) == len(strides) == len(kind.shape),
        "§5 make_tensor_view rank",
        op,
        f"{len(shape)} extents and {len(strides)} strides for {kind}",
    )
    for static, known in zip(kind.shape, ctx.integers(shape), strict=False):
        wrong = static is not None and known is not None and static != known
        ctx.require(not wrong, "§5 make_tensor_view shape", op, f"the extent {known} is not the type's {static}")


def view_layout(ctx: Context, op: Operation) -> str | None:
    """The layout of a view, said or inferred from constant strides; None when several fit."""
    if "layout" in op.attributes:
        return str(op.attributes["layout"])
    shape, strides = ctx.integers(op.named["shape"]), ctx.integers(op.named["strides"])
    if len(shape) < 2 or len(strides) < 2 or 1 in shape[-2:] or None in strides[-2:]:
        return None
    if strides[-1] == 1:
        return "nd"
    return "dn" if strides[-2] == 1 else None


def partition_view(ctx: Context, op: Operation) -> None:
    source, kind = op.operand_types[0], op.result_types[0]
    if not isinstance(source, ViewType) or not isinstance(kind, ViewType) or not kind.partition:
        ctx.report("§1 type", op, "partition_view makes a partition_tensor_view of a tensor_view")
        return
    at, sizes = ctx.integers(op.named["offsets"]), ctx.integers(op.named["sizes"])
    if not len(at) == len(sizes) == len(kind.shape) == len(source.shape) or kind.dtype != source.dtype:
        ctx.report("§5 partition_view shape", op, f"{kind} is no part of {source}")
        return
    for start, size, static, whole in zip(at, sizes, kind.shape, source.shape, strict=True):
        extent = static if static is not None else size
        wrong = size is not None and static is not None and size != static
        ctx.require(not wrong, "§5 partition_view shape", op, f"the size {size} is not the type's {static}")
        least = start or 0
        outside = least < 0 or (whole is not None and extent is not None and least + extent > whole)
        ctx.require(not outside, "§5 partition_view bounds", op, f"{extent} at {least} leaves the extent {whole}")


def set_validshape(ctx: Context, op: Operation) -> None:
    kind = op.operand_types[0]
    dynamic = isinstance(kind, TileType) and kind.valid == (None, None)
    ctx.require(dynamic, "§2 set_validshape", op, "the tile's type must say valid=?x?")
    ctx.require(op.operands[0] not in ctx.arguments, "§2 set_validshape", op, "a function's argument keeps its shape")
    if isinstance(kind, TileType):
        for known, physical in zip(ctx.integers(op.operands[1:3]), kind.shape, strict=False):
            ctx.require(known is None or 0 <= known <= physical, "§5 valid", op, f"valid {known} exceeds {kind}")


def _both(ctx: Context, op: Operation) -> tuple[TileType, TileType] | None:
    source, target = op.operand_types[0], op.result_types[0]
    if isinstance(source, TileType) and isinstance(target, TileType):
        return source.for_arch(ctx.arch), target.for_arch(ctx.arch)
    ctx.report("§1 type", op, "a view of a tile is a tile")
    return None


def reinterpret(ctx: Context, op: Operation) -> None:
    pair = _both(ctx, op)
    if pair is None:
        return
    source, target = pair
    name = op.name.removeprefix("pto.")
    ctx.require(source.loc == target.loc, f"§4 {name}", op, f"from {source.loc} to {target.loc}")
    old, new = (kind.rows * kind.cols * kind.itemsize for kind in pair)
    ctx.require(old == new, f"§2 {name} bytes", op, f"{old} bytes become {new}")
    boxed = (source.slayout == "none_box") == (target.slayout == "none_box")
    ctx.require(boxed, f"§2 {name} box", op, "boxed and unboxed tiles do not lie alike")
    _shape(ctx, op, target)


def subset(ctx: Context, op: Operation) -> None:
    wanted = "pto.subset" if ctx.dialect == "current" else "pto.subview"
    ctx.require(op.name == wanted, "§2 dialect", op, f"the {ctx.dialect} dialect spells this {wanted}")
    pair = _both(ctx, op)
    if pair is None:
        return
    source, target = pair
    ctx.require(source.loc == target.loc, "§4 subset", op, f"from {source.loc} to {target.loc}")
    for start, size, whole in zip(ctx.integers(op.named["offsets"]), target.shape, source.shape, strict=False):
        inside = (start or 0) >= 0 and (start or 0) + size <= whole
        ctx.require(inside, "§4 subset", op, f"{size} at {start} leaves the extent {whole}")


def result_fact(ctx: Context, op: Operation, kind: Type) -> Fact:
    """What is known of the (one) result of `op`."""
    layout = None
    if op.name == "pto.make_tensor_view":
        layout = view_layout(ctx, op)
    elif op.name == "pto.partition_view":
        source = ctx.scope.get(op.operands[0])
        layout = source.layout if source is not None else None
    return Fact(kind, ctx.fold(op), op, layout)
