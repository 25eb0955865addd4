"""What each instruction of the vector unit computes.

Every instruction works on the valid shape of its destination, rounds once to its element type, and destroys its
scratch operand before and after: a scratch tile that shares bytes with a live one shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.codegen.pto.machine import Core, Value, number_of, tile_of
from tilewright.codegen.pto.memory import DTYPES, Array, Tile
from tilewright.codegen.pto.rounding import convert, divide, is_float, narrow, widen
from tilewright.codegen.pto.syntax import Operation
from tilewright.codegen.pto.tables import COL_EXPAND, ROW_EXPAND, tmp_index
from tilewright.errors import PTOError

Handler = Callable[[Core, Operation, Sequence[Value], Sequence[Value]], None]


def require_valid(op: Operation, what: str, found: tuple[int, int], required: tuple[int, int]) -> None:
    """Refuse an operand whose valid shape at run time is not the one that the instruction works on."""
    if found != required:
        raise PTOError(
            f"{op.name}: {what} has another valid shape", span=op.span, required=str(required), found=str(found)
        )


def combine(what: str, a: Array, b: Array, dtype: str) -> Array:
    """`a` and `b` (broadcast) by one of add sub mul div max min expdif, rounded to `dtype`."""
    if what == "div":
        return divide(a, b, dtype)
    a, b = widen(a), widen(b)
    with np.errstate(all="ignore"):
        match what:
            case "add":
                result = np.add(a, b)
            case "sub":
                result = np.subtract(a, b)
            case "mul":
                result = np.multiply(a, b)
            case "max":
                result = np.maximum(a, b)
            case "min":
                result = np.minimum(a, b)
            case _:
                result = np.exp(np.subtract(a, b))
    return narrow(result, dtype)


def _scalar(value: Value, dtype: str) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(number_of(value)).astype(DTYPES[dtype])


def binary(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, b, d = tile_of(ins[0]), tile_of(ins[1]), tile_of(outs[0])
    for tile in (a, b):
        require_valid(op, "a source", tile.valid, d.valid)
    core.guard(op, d, ins, elementwise=True)
    core.write(d, combine(op.name.removeprefix("pto.t"), core.read(a), core.read(b), d.kind.dtype))


def scalar(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    d = tile_of(outs[0])
    a = next(value for value in ins if isinstance(value, Tile))
    require_valid(op, "the source", a.valid, d.valid)
    core.guard(op, d, ins, elementwise=True)
    dtype = d.kind.dtype
    left, right = (core.read(v) if isinstance(v, Tile) else _scalar(v, dtype) for v in ins)
    if op.name == "pto.tlrelu":
        values = np.where(widen(left) > 0, left, combine("mul", left, right, dtype))
    else:
        values = combine(op.name.removeprefix("pto.t").removesuffix("s"), left, right, dtype)
    core.write(d, values)


def _unary_of(what: str, x: Array) -> Array:
    match what:
        case "exp":
            return np.exp(x)
        case "log":
            return np.log(x)
        case "sqrt":
            return np.sqrt(x)
        case "rsqrt":
            return np.divide(np.float32(1), np.sqrt(x))
        case "recip":
            return np.divide(np.float32(1), x)
        case "neg":
            return np.negative(x)
        case "abs":
            return np.abs(x)
        case _:
            return np.maximum(x, np.zeros((), x.dtype))


def unary(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, d = tile_of(ins[0]), tile_of(outs[0])
    require_valid(op, "the source", a.valid, d.valid)
    in_place = not (op.name == "pto.trecip" and core.arch == "a3")
    core.guard(op, d, ins, elementwise=in_place)
    with np.errstate(all="ignore"):
        values = _unary_of(op.name.removeprefix("pto.t"), widen(core.read(a)))
    core.write(d, narrow(values, d.kind.dtype))


def fill(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    d = tile_of(outs[0])
    core.write(d, np.full(d.valid, _scalar(ins[0], d.kind.dtype)))


def _reduce(what: str, values: Array, axis: int, dtype: str) -> Array:
    if not values.size:
        raise PTOError("there is nothing to reduce: the source's valid shape is empty")
    # Sums of narrow floats are kept in f32 and rounded once; sums of integers wrap at the end.
    wide = widen(values) if is_float(dtype) else values.astype(np.int64)
    with np.errstate(all="ignore"):
        match what:
            case "sum":
                result = np.sum(wide, axis=axis, keepdims=True)
            case "prod":
                result = np.prod(wide, axis=axis, keepdims=True)
            case "max":
                result = np.max(wide, axis=axis, keepdims=True)
            case _:
                result = np.min(wide, axis=axis, keepdims=True)
    return narrow(result, dtype)


def _with_scratch(core: Core, op: Operation, ins: Sequence[Value]) -> tuple[list[Value], Tile | None]:
    """The operands without the scratch tile, which is destroyed, and that tile."""
    position = tmp_index(op.name.removeprefix("pto."), len(ins))
    if position is None:
        return list(ins), None
    tmp = tile_of(ins[position])
    core.scratch(tmp)
    return [value for i, value in enumerate(ins) if i != position], tmp


def _finish(core: Core, d: Tile, values: Array, tmp: Tile | None) -> None:
    core.write(d, values)
    if tmp is not None:
        core.scratch(tmp)


def row_reduce(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    rest, tmp = _with_scratch(core, op, ins)
    a, d = tile_of(rest[0]), tile_of(outs[0])
    require_valid(op, "the destination", d.valid, (a.v_row, 1))
    core.guard(op, d, rest, elementwise=False)
    _finish(core, d, _reduce(op.name.removeprefix("pto.trow"), core.read(a), 1, d.kind.dtype), tmp)


def col_reduce(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    rest, tmp = _with_scratch(core, op, ins)
    a, d = tile_of(rest[0]), tile_of(outs[0])
    require_valid(op, "the destination", d.valid, (1, a.v_col))
    core.guard(op, d, rest, elementwise=False)
    _finish(core, d, _reduce(op.name.removeprefix("pto.tcol"), core.read(a), 0, d.kind.dtype), tmp)


def expand(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    c, d = tile_of(ins[0]), tile_of(outs[0])
    by_row = op.name == "pto.trowexpand"
    require_valid(op, "the source", c.valid, (d.v_row, 1) if by_row else (1, d.v_col))
    core.guard(op, d, ins, elementwise=False)
    core.write(d, np.broadcast_to(core.read(c), d.valid))


def expand_combine(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    rest, tmp = _with_scratch(core, op, ins)
    a, c, d = tile_of(rest[0]), tile_of(rest[1]), tile_of(outs[0])
    by_row = op.name.startswith("pto.trow")
    require_valid(op, "the first source", a.valid, d.valid)
    require_valid(op, "the vector", c.valid, (d.v_row, 1) if by_row else (1, d.v_col))
    core.guard(op, d, [a], elementwise=True)
    core.guard(op, d, [c], elementwise=False)
    what = op.name.removeprefix("pto.trowexpand").removeprefix("pto.tcolexpand")
    _finish(core, d, combine(what, core.read(a), core.read(c), d.kind.dtype), tmp)


def convert_tile(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    rest, tmp = _with_scratch(core, op, ins)
    a, d = tile_of(rest[0]), tile_of(outs[0])
    require_valid(op, "the source", a.valid, d.valid)
    core.guard(op, d, rest, elementwise=True)
    mode = str(op.attributes.get("rmode", "CAST_RINT"))
    saturate = {"ON": True, "OFF": False}.get(str(op.attributes.get("sat_mode")))
    _finish(core, d, convert(core.read(a), a.kind.dtype, d.kind.dtype, mode, saturate), tmp)


def compare(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, d = tile_of(ins[0]), tile_of(outs[0])
    b = ins[1]
    if isinstance(b, Tile):
        require_valid(op, "the second source", b.valid, a.valid)
    require_valid(op, "the mask", d.valid, (a.v_row, -(-a.v_col // 8)))
    core.guard(op, d, ins, elementwise=False)
    x, y = core.read(a), core.read(b) if isinstance(b, Tile) else _scalar(b, a.kind.dtype)
    test = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
        "ge": np.greater_equal,
    }[str(op.attributes.get("cmpMode", "eq"))]  # fmt: skip
    with np.errstate(all="ignore"):
        holds = test(widen(x), widen(y))
    # The bits past the last column have no meaning; they are set, so that a reader of them goes wrong.
    bits = np.ones((a.v_row, d.v_col * 8), np.bool_)
    bits[:, : a.v_col] = holds
    core.write(d, np.packbits(bits, axis=1, bitorder="little").view(np.int8))


def select(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    rest, tmp = _with_scratch(core, op, ins)
    m, a, b = tile_of(rest[0]), tile_of(rest[1]), rest[2]
    d = tile_of(outs[0])
    require_valid(op, "the bit-packed mask", m.valid, (d.v_row, -(-d.v_col // 8)))
    for tile in (a, b):
        if isinstance(tile, Tile):
            require_valid(op, "a source", tile.valid, d.valid)
    core.guard(op, d, [m], elementwise=False)
    core.guard(op, d, [a, b], elementwise=True)
    bits = np.unpackbits(core.read(m).view(np.uint8), axis=1, count=d.v_col, bitorder="little").astype(np.bool_)
    other = core.read(b) if isinstance(b, Tile) else _scalar(b, d.kind.dtype)
    _finish(core, d, np.where(bits, core.read(a), other), tmp)


def pad_value(dtype: str, pad: int) -> Array:
    """What pad mode 1 (zero), 2 (greatest) or 3 (least) writes."""
    if is_float(dtype):
        return np.asarray((0.0, np.inf, -np.inf)[pad - 1]).astype(DTYPES[dtype])
    half = 1 << (8 * DTYPES[dtype].itemsize - 1)
    return np.asarray((0, half - 1, -half)[pad - 1]).astype(DTYPES[dtype])


def fill_pad(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, d = tile_of(ins[0]), tile_of(outs[0])
    if not d.kind.pad or a.v_row > d.v_row or a.v_col > d.v_col:
        raise PTOError("tfillpad needs a destination with a pad mode that holds the source", span=op.span)
    core.guard(op, d, ins, elementwise=True)
    values = np.full(d.valid, pad_value(d.kind.dtype, d.kind.pad))
    values[: a.v_row, : a.v_col] = core.read(a)
    core.write(d, values)


def count(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    d = tile_of(outs[0])
    steps = np.arange(d.v_col, dtype=np.int64)
    if op.attributes.get("descending"):
        steps = -steps
    core.write(d, narrow((steps + int(number_of(ins[0])))[None, :], d.kind.dtype))


def transpose(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    rest, tmp = _with_scratch(core, op, ins)
    a, d = tile_of(rest[0]), tile_of(outs[0])
    require_valid(op, "the destination", d.valid, (a.v_col, a.v_row))
    core.guard(op, d, rest, elementwise=False)
    _finish(core, d, core.read(a).T, tmp)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin"), binary),
    **dict.fromkeys(("tadds", "tsubs", "tmuls", "tdivs", "tmaxs", "tmins", "tlrelu"), scalar),
    **dict.fromkeys(("texp", "tlog", "tsqrt", "trsqrt", "trecip", "tneg", "tabs", "trelu"), unary),
    **dict.fromkeys(("trowsum", "trowmax", "trowmin", "trowprod"), row_reduce),
    **dict.fromkeys(("tcolsum", "tcolmax", "tcolmin", "tcolprod"), col_reduce),
    **dict.fromkeys((*ROW_EXPAND, *COL_EXPAND), expand_combine),
    **dict.fromkeys(("trowexpand", "tcolexpand"), expand),
    **dict.fromkeys(("tcmp", "tcmps"), compare),
    **dict.fromkeys(("tsel", "tsels"), select),
    "texpands": fill,
    "tcvt": convert_tile,
    "tfillpad": fill_pad,
    "tci": count,
    "ttrans": transpose,
}
"""The function for each vector instruction, by its name without ``pto.``."""
