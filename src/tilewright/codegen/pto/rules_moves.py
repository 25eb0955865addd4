"""Rules of §4, with those of §5 and §6 that belong to the same operations: loads, stores, moves, matmul."""

from __future__ import annotations

from tilewright.codegen.pto.facts import Context, differ
from tilewright.codegen.pto.syntax import Operation
from tilewright.codegen.pto.tables import (
    FP8,
    INSERT_TYPES,
    LOADS,
    MATMUL_LIMIT,
    MATMUL_TYPES,
    MOVES,
    STORE_COLUMNS_LIMIT,
    STORES,
    acc_row_unit,
)
from tilewright.codegen.pto.types import ITEM_BYTES, TileType, ViewType


def _extents(kind: ViewType) -> tuple[int | None, int | None]:
    """Rows and columns of a view as a tile sees it: leading dimensions fold into rows."""
    rows: int | None = 1
    for extent in kind.shape[:-1]:
        rows = rows * extent if rows is not None and extent is not None else None
    return rows, kind.shape[-1]


def tload(ctx: Context, op: Operation) -> None:
    view, tile = op.operand_types[0], op.out_types[0]
    if not isinstance(view, ViewType) or not view.partition or not isinstance(tile, TileType):
        ctx.report("§2 operand kind", op, "a load takes a partition_tensor_view into a tile")
        return
    ctx.require(tile.loc in LOADS[ctx.arch], "§4 tload", op, f"nothing loads GM into {tile.loc}")
    same = ITEM_BYTES[view.dtype] == tile.itemsize
    ctx.require(same, "§4 tload element size", op, f"{view.dtype} and {tile.dtype} differ in size")
    fact = ctx.scope.get(op.operands[0])
    layout = fact.layout if fact is not None else None
    if layout == "nz":
        return
    found = _extents(view)
    ctx.require(
        not differ(found, tile.valid), "§6 tload shape", op, f"the view is {found}, the tile holds {tile.valid}"
    )
    if layout is not None and 1 not in found:
        # A row-major view goes into rows or NZ, a column-major one into columns or ZN (the tile library's assertion).
        by_row = tile.blayout == "row_major" if tile.slayout == "none_box" else tile.slayout == "row_major"
        fits = (layout == "nd") == by_row or (ctx.arch == "a5" and tile.loc == "mat" and layout == "dn")
        ctx.require(fits, "§4 tload layout", op, f"a view that lies {layout} cannot be loaded into {tile}")


def _acc_pitch(ctx: Context, op: Operation, tile: TileType) -> None:
    """Out of the accumulator: the pitch that the cube wrote must be the one that is read."""
    name, unit = op.operands[0], acc_row_unit(tile.dtype, ctx.arch)
    if tile.compact == 1 or tile.cols <= 16 or tile.rows <= unit or name not in ctx.acc_rows:
        return
    rows = ctx.acc_rows[name]
    written = -(-rows // unit) * unit if rows is not None else None
    ctx.require(
        written == tile.rows,
        "R15 acc pitch",
        op,
        f"the cube wrote {rows if rows is not None else 'a dynamic number of'} rows with a pitch of their own, "
        f"this reads with {tile.rows}: mark the tile compact=1",
    )


def tstore(ctx: Context, op: Operation) -> None:
    tile, view = op.operand_types[0], op.out_types[0]
    if not isinstance(view, ViewType) or not view.partition or not isinstance(tile, TileType):
        ctx.report("§2 operand kind", op, "a store takes a tile into a partition_tensor_view")
        return
    ctx.require(tile.loc in STORES[ctx.arch], "§4 tstore", op, f"nothing stores {tile.loc} to GM on the {ctx.arch}")
    if tile.loc == "acc":
        wanted = ("i32", "f32", "f16", "bf16")
        legal = tile.dtype in ("i32", "f32") and view.dtype in wanted
        legal = legal and (tile.dtype == "f32" or view.dtype == "i32") and (view.dtype != "i32" or tile.dtype == "i32")
        ctx.require(legal, "§4 tstore acc dtype", op, f"{tile.dtype} does not leave the accumulator as {view.dtype}")
        narrow = ctx.arch == "a5" or tile.cols <= STORE_COLUMNS_LIMIT
        ctx.require(narrow, "§4 tstore acc cols a3", op, f"more than {STORE_COLUMNS_LIMIT} columns")
        _acc_pitch(ctx, op, tile)
    else:
        same = ITEM_BYTES[view.dtype] == tile.itemsize
        ctx.require(same, "§4 tstore element size", op, f"{tile.dtype} and {view.dtype} differ in size")
    fact = ctx.scope.get(op.outs[0])
    if fact is None or fact.layout != "nz":
        found = _extents(view)
        ctx.require(not differ(found, tile.valid), "§4 tstore count", op, f"the view is {found}, the tile {tile.valid}")


def _pair(ctx: Context, op: Operation) -> tuple[TileType, TileType] | None:
    source, target = op.operand_types[0], op.out_types[0]
    name = op.name.removeprefix("pto.")
    if not isinstance(source, TileType) or not isinstance(target, TileType):
        ctx.report("§2 operand kind", op, "both ends of a move are tiles")
        return None
    legal = (source.loc, target.loc) in MOVES[name][ctx.arch]
    ctx.require(legal, f"§4 {name}", op, f"the {ctx.arch} has no {source.loc} to {target.loc}")
    return source.for_arch(ctx.arch), target.for_arch(ctx.arch)


def tmov(ctx: Context, op: Operation) -> None:
    pair = _pair(ctx, op)
    if pair is None:
        return
    source, target = pair
    if ctx.arch == "a3" or source.loc == "mat":
        ctx.require(source.shape == target.shape, "§4 tmov shape", op, f"{source.shape} becomes {target.shape}")
    if source.loc != "acc":
        ctx.require(source.dtype == target.dtype, "§4 tmov dtype", op, f"{source.dtype} becomes {target.dtype}")
        if source.loc == "vec":
            ctx.require(not differ(source.valid, target.valid), "§5 tmov valid", op, "the valid shapes differ")
        return
    ctx.require(not differ(source.valid, target.valid), "§5 tmov valid", op, "the valid shapes differ")
    _acc_pitch(ctx, op, source)
    if (target.loc, ctx.arch) == ("vec", "a3"):
        ctx.report("§6 tmov acc to vec a3", op, "on the a3 the accumulator and Vec belong to different cores")
        return
    legal = (source.dtype, target.dtype) in INSERT_TYPES[ctx.arch]
    ctx.require(legal, "§4 tmov dtype", op, f"{source.dtype} does not leave the accumulator as {target.dtype}")
    if target.loc == "mat" and ctx.arch == "a3":
        ctx.require(target.fractal == 512, "§4 tmov fractal a3", op, f"fractal {target.fractal}, 512 is needed")


def textract(ctx: Context, op: Operation) -> None:
    pair = _pair(ctx, op)
    if pair is None:
        return
    source, target = pair
    legal = source.dtype == target.dtype and source.dtype in ("i8", "f16", "bf16", "f32", *FP8)
    ctx.require(legal, "§4 textract dtype", op, f"{source.dtype} becomes {target.dtype}")
    plain = (source.loc, target.loc) != ("vec", "vec") or source.slayout == target.slayout == "none_box"
    ctx.require(plain, "§4 textract vec", op, "Vec to Vec takes plain tiles")
    at = ctx.integers(op.operands[1:3])
    for start, size, whole, box in zip(at, target.shape, source.shape, source.box, strict=True):
        inside = (start or 0) >= 0 and (start or 0) + size <= whole
        ctx.require(inside, "§4 textract bounds", op, f"{size} at {start} leaves the extent {whole}")
        ctx.require((start or 0) % box == 0, "§6 textract offset", op, f"{start} cuts a box of {box}")


def tinsert(ctx: Context, op: Operation) -> None:
    pair = _pair(ctx, op)
    if pair is None:
        return
    source, target = pair
    if source.loc == "acc":
        nz = all((kind.blayout, kind.slayout) == ("col_major", "row_major") for kind in pair)
        ctx.require(nz, "§4 tinsert layout", op, "both tiles must be col_major/row_major")
        legal = (source.dtype, target.dtype) in INSERT_TYPES[ctx.arch]
        _acc_pitch(ctx, op, source)
    else:
        legal = source.dtype == target.dtype
    ctx.require(legal, "§4 tinsert dtype", op, f"{source.dtype} does not go into {target.dtype}")
    at = ctx.integers(op.operands[1:3])
    for start, size, valid, whole, box in zip(at, source.shape, source.valid, target.shape, target.box, strict=True):
        extent = valid if valid is not None else min(size, 1)
        ctx.require((start or 0) + extent <= whole, "§4 tinsert bounds", op, f"{extent} at {start} leaves {whole}")
        ctx.require((start or 0) % box == 0, "§6 tinsert offset", op, f"{start} cuts a box of {box}")


def tmatmul(ctx: Context, op: Operation) -> None:
    accumulate, biased = op.name.endswith(".acc"), op.name.endswith(".bias")
    kinds = op.operand_types[1:3] if accumulate else op.operand_types[:2]
    places = [kind.loc if isinstance(kind, TileType) else str(kind) for kind in (*kinds, op.out_types[0])]
    if places != ["left", "right", "acc"]:
        ctx.report("§4 tmatmul", op, f"left times right gives acc, not {' '.join(places)}")
        return
    left, right, acc = (kind for kind in (*kinds, op.out_types[0]) if isinstance(kind, TileType))
    ctx.acc_rows[op.outs[0]] = left.v_row
    agree = left.shape == (acc.rows, right.rows) and right.cols == acc.cols
    ctx.require(agree, "§5 tmatmul shape", op, f"{left.shape} times {right.shape} gives {acc.shape}")
    inner = differ((left.v_col,), (right.v_row,)) or differ((left.v_row, right.v_col), acc.valid)
    ctx.require(not inner, "§5 tmatmul valid", op, f"valid {left.valid} times {right.valid} gives {acc.valid}")
    sizes = [size for size in (*left.valid, *right.valid) if size is not None]
    legal = all(1 <= size <= MATMUL_LIMIT for size in sizes)
    ctx.require(legal, "§5 tmatmul range", op, f"an extent is outside 1 to {MATMUL_LIMIT}: {left.valid} {right.valid}")
    triple = (acc.dtype, left.dtype, right.dtype)
    fp8 = ctx.arch == "a5" and acc.dtype == "f32" and left.dtype in FP8 and right.dtype in FP8
    ctx.require(triple in MATMUL_TYPES or fp8, "§5 tmatmul dtype", op, f"{left.dtype} by {right.dtype} to {acc.dtype}")
    for kind in (left.for_arch(ctx.arch), right):
        _operand_pitch(ctx, op, kind)
    if accumulate:
        start = op.operand_types[0]
        same = isinstance(start, TileType) and (start.loc, start.dtype, start.shape) == (acc.loc, acc.dtype, acc.shape)
        ctx.require(same, "§5 tmatmul.acc", op, f"{start} is not what {acc} continues")
    if biased:
        bias = op.operand_types[2]
        fits = isinstance(bias, TileType) and (bias.loc, bias.dtype, bias.shape) == ("bias", acc.dtype, (1, acc.cols))
        ctx.require(fits, "§5 tmatmul.bias", op, f"{bias} is not one row of {acc.cols} {acc.dtype} in bias")


def _operand_pitch(ctx: Context, op: Operation, kind: TileType) -> None:
    """The cube believes that blocks are packed by the valid shape; along the inner block axis that moves them."""
    if kind.compact == 1:
        return
    rows_inner = kind.blayout == "col_major"
    inner, outer = (0, 1) if rows_inner else (1, 0)
    valid, size, box = kind.valid[inner], kind.shape[inner], kind.box[inner]
    across = kind.valid[outer]
    if kind.shape[outer] <= kind.box[outer] or (across is not None and across <= kind.box[outer]) or size <= box:
        return
    packed = -(-valid // box) * box if valid is not None else None
    ctx.require(
        packed == size,
        "R15 operand pitch",
        op,
        f"the cube expects the blocks of {kind} packed by its valid shape: mark it compact=1",
    )
