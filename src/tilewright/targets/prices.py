"""The part of a target file that says what work costs and which element types it takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.targets.document import Section
from tilewright.targets.parts import CastTable, Drain, MatmulPrice, MatmulType, VectorPrice

_MATMUL_TYPES = (
    MatmulType(FP32, FP32, FP32),
    MatmulType(FP32, FP16, FP16),
    MatmulType(FP32, BF16, BF16),
    MatmulType(INT32, INT8, INT8),
)
"""What the matrix engine takes unless the file says otherwise."""

UNBOUNDED_EXTENT = 1 << 30


def read_matmul(section: Section) -> tuple[MatmulPrice, tuple[MatmulType, ...]]:
    """``[matmul]``: the price of one issue, and the element types."""
    box = section.items("box") or [1, 1]
    if len(box) != 2 or not all(isinstance(side, int) and side > 0 for side in box):
        raise section.fail(
            "box",
            "box of matmul must be [m, n]",
            required="two whole numbers above 0",
            found=box,
            help="the rows and columns of one step of the engine, such as [16, 16]",
        )
    box_m, box_n = (int(str(side)) for side in box)
    passes, default = _rates(section, "passes", 1.0)
    price = MatmulPrice(
        head=section.number("head", 0.0),
        box_m=box_m,
        box_n=box_n,
        box_k_bytes=section.size("k_bytes", 4),
        passes=MappingProxyType({dtype: rate for dtype, rate in passes.items() if dtype is not None}),
        default_passes=default,
        moving_buffers=section.whole("moving_buffers", 2, positive=True),
        max_accumulators=section.whole("max_accumulators", 1, positive=True),
        max_extent=section.whole("max_extent", UNBOUNDED_EXTENT, positive=True),
    )
    plain = _types(section, "types", False)
    types = (_MATMUL_TYPES if plain is None else plain) + (_types(section, "scaled_types", True) or ())
    section.finish()
    return price, types


def _types(section: Section, key: str, scaled: bool) -> tuple[MatmulType, ...] | None:
    """``["f32 <- f16, f16", ...]``: accumulator, left and right operand; None when absent."""
    spelled = section.texts(key)
    if spelled is None:
        return None
    made: list[MatmulType] = []
    for item in spelled:
        acc, arrow, operands = item.partition("<-")
        lhs, comma, rhs = operands.partition(",")
        if not arrow or not comma:
            raise section.fail(
                key,
                f"{item!r} does not name three element types",
                required='"accumulator <- left, right"',
                found=item,
                help='for example "f32 <- f16, f16"',
            )
        names = (acc, lhs, rhs)
        made.append(MatmulType(*(section.dtype(key, name.strip()) for name in names), scaled=scaled))
    return tuple(made)


def _rates(section: Section, key: str, default: float) -> tuple[Mapping[DType | None, float], float]:
    """A number for every element type, or a table of numbers by element type and, for the rest, ``other``."""
    if not isinstance(section.value(key), dict):
        rate = section.number(key, default, positive=True)
        return {None: rate}, rate
    table = section.table(key)
    made: dict[DType | None, float] = {
        None if name == "other" else table.dtype(name, name): table.number(name, positive=True) for name in table
    }
    return made, made.get(None, max(made.values(), default=default))


def read_vector(section: Section) -> tuple[VectorPrice, Mapping[str, frozenset[DType]]]:
    """``[vector]``: the price of one operation, and the element types by kind of work."""
    repeat, completion, dtypes = (section.table(key) for key in ("repeat", "completion", "dtypes"))
    price = VectorPrice(
        start=section.number("start", 0.0),
        width=section.size("width", 32),
        repeat=MappingProxyType({kind: MappingProxyType(_rates(repeat, kind, 1.0)[0]) for kind in repeat}),
        completion=MappingProxyType({kind: completion.number(kind) for kind in completion}),
        scalar=section.number("scalar", 1.0),
    )
    rules = {kind: frozenset(dtypes.dtypes(kind) or ()) for kind in dtypes}
    section.finish()
    return price, MappingProxyType(rules)


def read_drain(section: Section) -> Drain | None:
    """``[drain]``: the price of moving an accumulator out; None when absent."""
    if not list(section):
        return None
    drain = Drain(
        start=section.number("start"),
        row=section.number("row"),
        bytes_per_cycle=section.number("bytes_per_cycle", positive=True),
        odd=section.number("odd", 0.0),
        columns=section.whole("columns", 8, positive=True),
    )
    section.finish()
    return drain


def read_casts(section: Section) -> CastTable:
    """``[casts]``: for each element type, those that one instruction turns it into. Absent: any into any."""
    if not list(section):
        return CastTable()
    assumed = section.flag("assumed")
    names = [name for name in section if name != "assumed"]
    native = {section.dtype(name, name): tuple(section.dtypes(name) or ()) for name in names}
    return CastTable(MappingProxyType(native), assumed)
