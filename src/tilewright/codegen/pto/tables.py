"""What the assembler, its tile library and the two Ascend cores accept, as data.

Sources: the assembler's verifier (address spaces, element types), the tile library's static assertions (boxes, real
buffer sizes), the machine's buffers. Where the assembler believes in more memory than there is, the machine's stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.codegen.pto.types import TileType

KIB = 1024
ARCHES = ("a3", "a5")
CAPACITY: dict[str, dict[str, int]] = {
    "a3": {
        "vec": 192 * KIB,
        "mat": 512 * KIB,
        "left": 64 * KIB,
        "right": 64 * KIB,
        "acc": 128 * KIB,
        "bias": 1 * KIB,
        "scaling": 2 * KIB,
    },
    "a5": {
        "vec": 248 * KIB,
        "mat": 512 * KIB,
        "left": 64 * KIB,
        "right": 64 * KIB,
        "acc": 256 * KIB,
        "bias": 4 * KIB,
        "scaling": 4 * KIB,
    },
}
"""Bytes of each space: the smaller of what the assembler's planner and the tile library allow."""

START_ALIGNMENT = {"vec": 32, "mat": 32, "left": 512, "right": 512, "acc": 512, "bias": 32, "scaling": 32}
"""Bytes to a multiple of which a tile's address must be."""

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "MTE4", "MTE5", "V2", "FIX")
EVENT_PIPES = {
    "TLOAD": "MTE2", "TSTORE_VEC": "MTE3", "TSTORE_ACC": "FIX", "TMOV_M2L": "MTE1", "TMOV_M2B": "MTE1",
    "TMOV_M2S": "FIX", "TMOV_M2V": "V", "TMOV_V2M": "FIX", "TMATMUL": "M", "TVEC": "V", "TVECWAIT_EVENT": "V",
}  # fmt: skip
"""The pipe behind each event name of `record_event`, `wait_event` and `barrier_sync`."""
EVENT_IDS = 8
"""Flags of one pair of pipes."""
CROSS_CORE_IDS = 16
"""Flags between the cores (assumed: the text's format states no limit, the flag register has four bits)."""

_TO_CUBE = frozenset(("mat", place) for place in ("left", "right", "bias", "scaling"))
MOVES: dict[str, dict[str, frozenset[tuple[str, str]]]] = {
    "tmov": {
        "a3": _TO_CUBE | {("vec", "vec"), ("acc", "mat"), ("acc", "vec")},
        "a5": _TO_CUBE | {("vec", "vec"), ("acc", "mat"), ("acc", "vec"), ("vec", "mat")},
    },
    "textract": {
        "a3": frozenset({("mat", "left"), ("mat", "right")}),
        "a5": frozenset({("mat", "left"), ("mat", "right"), ("mat", "scaling"), ("vec", "mat"), ("vec", "vec")}),
    },
    "tinsert": {
        "a3": frozenset({("acc", "mat")}),
        "a5": frozenset({("acc", "mat"), ("vec", "mat"), ("vec", "vec")}),
    },
}
"""The (source, destination) spaces that each move accepts."""
LOADS = {"a3": ("vec", "mat"), "a5": ("vec", "mat")}
"""Where a load may go. On the a5 the verifier lets any space pass; only these two exist in the machine."""
STORES = {"a3": ("vec", "mat", "acc"), "a5": ("vec", "acc")}
INSERT_TYPES = {
    "a3": frozenset({("f32", "f16"), ("f32", "bf16")}),
    "a5": frozenset({("f32", "f16"), ("f32", "bf16"), ("f32", "f32"), ("i32", "i32")}),
}
"""Element types of an accumulator and of the L1 tile that it may be put into."""

MATMUL_TYPES = frozenset(
    {("i32", "i8", "i8"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "f32", "f32")}
)  # fmt: skip
"""(accumulator, left, right), on both machines."""
FP8 = ("f8E4M3FN", "f8E5M2")
MATMUL_LIMIT = 4095
STORE_COLUMNS_LIMIT = 4095

CASTS = frozenset(
    (source, target)
    for source, targets in {
        "f32": "f16 bf16 i16 i32 i64",
        "f16": "f32 i32 i16 i8",
        "bf16": "f32 i32",
        "i16": "f16 f32",
        "i32": "f32 i16 i64 f16",
        "i64": "f32 i32",
        "i8": "f16",
    }.items()
    for target in targets.split()
)
"""Conversions that the 910B does in one instruction; taken for the 950 too (assumed)."""

BINARY = ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin")
SCALAR = ("tadds", "tsubs", "tmuls", "tdivs", "tmaxs", "tmins", "tlrelu")
UNARY = ("texp", "tlog", "tsqrt", "trsqrt", "trecip", "tneg", "tabs", "trelu")
ROW_REDUCE = ("trowsum", "trowmax", "trowmin", "trowprod")
COL_REDUCE = ("tcolsum", "tcolmax", "tcolmin", "tcolprod")
_COMBINE = ("mul", "div", "sub", "add", "max", "min", "expdif")
ROW_EXPAND = tuple(f"trowexpand{what}" for what in _COMBINE)
COL_EXPAND = tuple(f"tcolexpand{what}" for what in _COMBINE)
VECTOR = frozenset(
    (
        *(*BINARY, *SCALAR, *UNARY, *ROW_REDUCE, *COL_REDUCE, *ROW_EXPAND, *COL_EXPAND, "trowexpand", "tcolexpand"),
        *("tcvt", "tcmp", "tcmps", "tsel", "tsels", "tfillpad", "tci", "ttrans"),
    )
)
"""Operations of the vector unit."""
MATMUL = frozenset(("tmatmul", "tmatmul.acc", "tmatmul.bias"))

_WORDS = ("i16", "i32", "f16", "f32")
_FLOATS = ("f16", "f32")


def element_types(op: str, arch: str) -> tuple[str, ...] | None:
    """The element types that vector operation `op` takes on `arch`; None when nothing limits them."""
    a5 = arch == "a5"
    if op == "tdiv":
        return (*_FLOATS, "i16", "i32") if a5 else _FLOATS
    if op in BINARY:
        extra = (*(() if op == "tmul" else ("i8",)), *(("bf16",) if op == "tadd" else ()))
        return (*_WORDS, *extra) if a5 else _WORDS
    if op in SCALAR:
        return (*_WORDS, "i8", *(() if op in ("tdivs", "tmaxs") else ("bf16",))) if a5 else _WORDS
    if op == "tneg":
        return _WORDS
    if op == "trelu":
        return ("i32", "f16", "f32")
    if op in UNARY:
        return _FLOATS
    if op.endswith(("expanddiv", "expandexpdif")):
        return _FLOATS
    if op in ROW_REDUCE:
        return _WORDS
    if op in ROW_EXPAND or op == "trowexpand":
        return (*_WORDS, "i8") if a5 else _WORDS
    return _WORDS if op in (*COL_REDUCE, *COL_EXPAND) else None


@dataclass(frozen=True, slots=True)
class Arity:
    """How many operands `ins` (least, most) and `outs` take."""

    least: int
    most: int
    outs: int = 1


ARITY: dict[str, Arity] = {
    **dict.fromkeys(("tload", "tstore", "tmov", "tfillpad", "tcolexpand", "trowexpand"), Arity(1, 1)),
    **dict.fromkeys(("texpands", "tci"), Arity(1, 1)),
    **dict.fromkeys(("textract", "tinsert", "tmatmul.acc", "tmatmul.bias"), Arity(3, 3)),
    **dict.fromkeys((*BINARY, *SCALAR, "tmatmul", "tcmp", "tcmps", *COL_EXPAND), Arity(2, 2)),
    **dict.fromkeys(UNARY, Arity(1, 1)),
    **dict.fromkeys((*ROW_REDUCE, "ttrans"), Arity(2, 2)),
    **dict.fromkeys(COL_REDUCE, Arity(1, 1)),
    **dict.fromkeys(ROW_EXPAND, Arity(2, 2)),
    **dict.fromkeys(("trowexpandmul", "trowexpanddiv", "trowexpandsub"), Arity(2, 3)),
    **dict.fromkeys(("tcvt", "tcolsum"), Arity(1, 2)),
    **dict.fromkeys(("tsel", "tsels"), Arity(4, 4)),
    "tgetval": Arity(2, 2, 0),
    "tsetval": Arity(2, 2),
    "tprint": Arity(1, 1, 0),
}
TMP_OPERAND: dict[str, int] = {**dict.fromkeys((*ROW_REDUCE, "ttrans"), 1), "tsel": 3, "tsels": 2}
"""Where the scratch tile stands that an operation must be given."""
OPTIONAL_TMP: dict[str, int] = {
    **dict.fromkeys(("trowexpandmul", "trowexpanddiv", "trowexpandsub"), 2),
    **dict.fromkeys(("tcvt", "tcolsum"), 1),
}
"""Where the scratch tile stands that an operation may be given."""


def tmp_index(op: str, operands: int) -> int | None:
    """The position of the scratch operand of `op` when it has `operands` operands, or None."""
    if op in TMP_OPERAND:
        return TMP_OPERAND[op]
    position = OPTIONAL_TMP.get(op)
    return position if position is not None and position < operands else None


def pipe_of(op: str, source: str | None, target: str | None) -> str:
    """The pipe that executes `op` (without its ``pto.``) moving from space `source` to `target`; None is GM."""
    if op == "tload":
        return "MTE2"
    if op == "tstore":
        return "FIX" if source == "acc" else "MTE3"
    if op in ("tmov", "textract", "tinsert"):
        if source == "mat":
            return "MTE1"
        return "V" if (source, target) == ("vec", "vec") else "FIX"
    if op in MATMUL:
        return "M"
    if op in ("tgetval", "tsetval", "load_scalar", "store_scalar"):
        return "S"
    # Filling L1 has no vector unit to run on; it is a DMA (assumed).
    return "MTE2" if op == "texpands" and target == "mat" else "V"


def core_of(op: str, source: str | None, target: str | None) -> str | None:
    """``cube`` or ``vector``: the core that has the unit for `op`; None when both have."""
    if op in VECTOR:
        return "vector"
    if op in MATMUL:
        return "cube"
    places = {source, target}
    if op in ("tload", "tstore", "tmov", "textract", "tinsert", "texpands"):
        if places & {"left", "right", "acc", "bias", "scaling"}:
            return "cube"
        if "vec" in places:
            return "vector"
        return "cube" if "mat" in places else None
    return "vector" if op in ("tgetval", "tsetval") else None


def acc_row_unit(dtype: str, arch: str) -> int:
    """Rows to a multiple of which the cube rounds the pitch of an accumulator."""
    return 32 if dtype == "i32" and arch == "a3" else 16


def footprint(tile: TileType, arch: str) -> int:
    """Bytes that `tile` occupies: its physical shape, an accumulator's rows rounded to the cube's unit."""
    rows = tile.rows
    if tile.loc == "acc":
        unit = acc_row_unit(tile.dtype, arch)
        rows = -(-rows // unit) * unit
    return rows * tile.cols * tile.itemsize


def mask_shape(rows: int, cols: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Physical and valid shape of the i8 tile that holds a comparison of `rows` x `cols`, one bit an element."""
    taken = -(-cols // 8)
    return (rows, 32 * -(-taken // 32)), (rows, taken)
