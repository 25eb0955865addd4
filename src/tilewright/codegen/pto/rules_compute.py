"""Rules of §2 and §5, with those of §6 that belong to the same operations: everything the vector unit computes."""

from __future__ import annotations

from tilewright.codegen.pto.facts import Context, differ, tiles
from tilewright.codegen.pto.syntax import Operation
from tilewright.codegen.pto.tables import (
    BINARY,
    CASTS,
    COL_EXPAND,
    COL_REDUCE,
    ROW_EXPAND,
    ROW_REDUCE,
    SCALAR,
    element_types,
    mask_shape,
    tmp_index,
)
from tilewright.codegen.pto.types import ScalarType, TileType

ENUMS: dict[str, tuple[str, ...]] = {
    "rmode": ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD", "CAST_RINT"),
    "sat_mode": ("ON", "OFF"),
    "cmpMode": ("eq", "ne", "lt", "le", "gt", "ge"),
    "atomicType": ("atomic_none", "atomic_add"),
    "reluPreMode": ("no_relu", "normal_relu"),
    "layout": ("nd", "dn", "nz"),
}
"""The words that each attribute may hold."""


def attributes(ctx: Context, op: Operation) -> None:
    for key, words in ENUMS.items():
        value = op.attributes.get(key)
        ctx.require(value is None or value in words, "§2 attribute", op, f"{key} cannot be `{value}`")


def _sources(op: Operation) -> list[TileType]:
    """The tiles that `op` reads, without its scratch."""
    skip = tmp_index(op.name.removeprefix("pto."), len(op.operands))
    return tiles(tuple(kind for i, kind in enumerate(op.operand_types) if i != skip))


def _common(ctx: Context, op: Operation) -> tuple[str, list[TileType], TileType] | None:
    """Everything in Vec, a legal element type; the name, the sources and the destination, or None when they lack."""
    name, sources, target = op.name.removeprefix("pto."), _sources(op), op.out_types[0]
    if not sources or not isinstance(target, TileType):
        ctx.report("§2 operand kind", op, "the operands must be tiles")
        return None
    section = "§6" if name in BINARY or name == "tcvt" else "§5"
    places = {kind.loc for kind in (*tiles(op.operand_types), target)}
    ctx.require(places == {"vec"}, f"{section} {name} loc", op, f"the vector unit works in vec, not {sorted(places)}")
    legal = element_types(name, ctx.arch)
    found = sources[-1].dtype
    ctx.require(
        legal is None or found in legal, f"§5 {name} dtype", op, f"{found} is not among {' '.join(legal or ())}"
    )
    return name, sources, target


def _alike(ctx: Context, op: Operation, name: str, sources: list[TileType], target: TileType) -> None:
    """One element type, one valid shape, row-major plain tiles."""
    for kind in sources:
        ctx.require(kind.dtype == target.dtype, f"§5 {name} type", op, f"{kind.dtype} becomes {target.dtype}")
        ctx.require(
            not differ(kind.valid, target.valid), f"§5 {name} valid", op, f"valid {kind.valid} becomes {target.valid}"
        )
    _row_major(ctx, op, name, [*sources, target])


def _row_major(ctx: Context, op: Operation, name: str, kinds: list[TileType]) -> None:
    for kind in kinds:
        plain = (kind.blayout, kind.slayout) == ("row_major", "none_box")
        ctx.require(plain, f"§5 {name} layout", op, f"{kind} is not row_major without boxes")


def elementwise(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    name, sources, target = found
    _alike(ctx, op, name, sources, target)
    if name in SCALAR:
        scalars = [kind for kind in op.operand_types if isinstance(kind, ScalarType)]
        same = len(scalars) == 1 and scalars[0].name == target.dtype
        ctx.require(same, f"§5 {name} scalar", op, f"the scalar must be one {target.dtype}")
        first = isinstance(op.operand_types[0], TileType)
        ctx.require(first or name == "tdivs", f"§5 {name} scalar", op, "the tile comes first")
    if name == "trecip" and ctx.arch == "a3":
        ctx.require(op.operands[0] != op.outs[0], "§5 trecip in-place a3", op, "source and destination must differ")


def texpands(ctx: Context, op: Operation) -> None:
    scalar, target = op.operand_types[0], op.out_types[0]
    if not isinstance(target, TileType) or not isinstance(scalar, ScalarType):
        ctx.report("§2 operand kind", op, "a fill takes a scalar into a tile")
        return
    ctx.require(target.loc in ("vec", "mat"), "§4 texpands", op, f"nothing fills {target.loc}")
    ctx.require(scalar.name == target.dtype, "§5 texpands type", op, f"{scalar} does not fill {target.dtype}")


def row_reduce(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    name, (source, *_), target = found
    _row_major(ctx, op, name, [source])
    ctx.require(source.dtype == target.dtype, f"§5 {name} type", op, f"{source.dtype} becomes {target.dtype}")
    ctx.require(
        target.slayout == "none_box" and target.v_col in (1, None),
        f"§5 {name} result",
        op,
        f"the result is one column without boxes, not {target}",
    )
    by_column = target.blayout == "row_major" or target.cols == 1
    ctx.require(by_column, f"§5 {name} result", op, f"a column-major result has one column, not {target.cols}")
    same = not differ((source.v_row,), (target.v_row,))
    ctx.require(same, f"§5 {name} valid", op, f"{source.v_row} rows become {target.v_row}")


def col_reduce(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    name, (source, *_), target = found
    _row_major(ctx, op, name, [source, target])
    ctx.require(source.dtype == target.dtype, f"§5 {name} type", op, f"{source.dtype} becomes {target.dtype}")
    ctx.require(target.v_row in (1, None), f"§5 {name} result", op, f"the result is one row, not {target}")
    same = not differ((source.v_col,), (target.v_col,))
    ctx.require(same, f"§5 {name} valid", op, f"{source.v_col} columns become {target.v_col}")
    if len(op.operands) == 2:
        ctx.require(op.attributes.get("isBinary") is True, "§2 tcolsum tmp", op, "a scratch tile goes with isBinary")


def expand(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    name, sources, target = found
    by_row = name.startswith("trow")
    _row_major(ctx, op, name, [target, *sources[:-1], *([] if by_row else sources[-1:])])
    vector = sources[-1]
    for kind in sources:
        ctx.require(kind.dtype == target.dtype, f"§5 {name} type", op, f"{kind.dtype} becomes {target.dtype}")
    for kind in sources[:-1]:
        ctx.require(not differ(kind.valid, target.valid), f"§5 {name} valid", op, "the valid shapes differ")
    wanted = (target.v_row, 1) if by_row else (1, target.v_col)
    ctx.require(
        not differ(vector.valid, wanted), f"§5 {name} valid", op, f"{vector.valid} is spread over {target.valid}"
    )


def tcvt(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    _, (source, *_), target = found
    same = source.shape == target.shape and not differ(source.valid, target.valid)
    ctx.require(same, "§5 tcvt shape", op, f"{source} becomes {target}")
    legal = (source.dtype, target.dtype) in CASTS
    ctx.require(legal, "§6 tcvt pair", op, f"no instruction makes {target.dtype} of {source.dtype}")


def ttrans(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    _, (source, *_), target = found
    ctx.require(source.dtype == target.dtype, "§5 ttrans type", op, f"{source.dtype} becomes {target.dtype}")
    if ctx.arch == "a3":
        _row_major(ctx, op, "ttrans", [source])
    ctx.require(not differ(source.valid[::-1], target.valid), "§5 ttrans valid", op, "the valid shape is not turned")


def compare(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    name, sources, mask = found
    source = sources[0]
    ctx.require(mask.dtype == "i8", f"§5 {name} mask", op, f"a mask is i8, not {mask.dtype}")
    for kind in op.operand_types[1:]:
        dtype = kind.dtype if isinstance(kind, TileType) else str(kind)
        ctx.require(dtype == source.dtype, f"§5 {name} type", op, f"{source.dtype} against {dtype}")
    for kind in sources[1:]:
        ctx.require(not differ(kind.valid, source.valid), f"§5 {name} valid", op, "the valid shapes differ")
    _packed(ctx, op, mask, source)


def _packed(ctx: Context, op: Operation, mask: TileType, of: TileType) -> None:
    """A mask has one bit for each element, its rows padded to 32 bytes."""
    shape, _ = mask_shape(*of.shape)
    rows, cols = of.valid
    valid = (rows, -(-cols // 8) if cols is not None else None)
    ctx.require(
        mask.dtype == "i8" and mask.shape == shape and not differ(mask.valid, valid),
        "traps packed mask",
        op,
        f"the mask of {of.shape} is i8 {shape} with valid {valid}, not {mask}",
    )


def select(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None or len(found[1]) < 2:
        return
    name, (mask, *sources), target = found
    _packed(ctx, op, mask, target)
    _alike(ctx, op, name, sources, target)
    for kind in op.operand_types:
        if isinstance(kind, ScalarType):
            ctx.require(kind.name == target.dtype, f"§5 {name} scalar", op, f"the scalar must be {target.dtype}")


def tfillpad(ctx: Context, op: Operation) -> None:
    found = _common(ctx, op)
    if found is None:
        return
    _, (source, *_), target = found
    ctx.require(target.pad in (1, 2, 3), "§2 tfillpad pad", op, "the destination needs pad=1, 2 or 3")
    same = source.shape == target.shape and source.dtype == target.dtype
    ctx.require(same, "§2 tfillpad shape", op, f"{source} becomes {target}")


def tci(ctx: Context, op: Operation) -> None:
    scalar, target = op.operand_types[0], op.out_types[0]
    row = isinstance(target, TileType) and target.rows == 1 and target.dtype in ("i32", "i16")
    same = isinstance(target, TileType) and str(scalar) == target.dtype
    ctx.require(row and same, "§2 tci", op, f"counting fills one row of integers from a scalar, not {target}")


RULES = {
    **dict.fromkeys(
        (*BINARY, *SCALAR, "texp", "tlog", "tsqrt", "trsqrt", "trecip", "tneg", "tabs", "trelu"), elementwise
    ),
    "texpands": texpands,
    **dict.fromkeys(ROW_REDUCE, row_reduce),
    **dict.fromkeys(COL_REDUCE, col_reduce),
    **dict.fromkeys((*ROW_EXPAND, *COL_EXPAND, "trowexpand", "tcolexpand"), expand),
    **dict.fromkeys(("tcmp", "tcmps"), compare),
    **dict.fromkeys(("tsel", "tsels"), select),
    "tcvt": tcvt,
    "ttrans": ttrans,
    "tfillpad": tfillpad,
    "tci": tci,
}
"""The rule of each vector operation, by its name without ``pto.``."""
