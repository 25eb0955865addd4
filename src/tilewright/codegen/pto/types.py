"""The types of PTO text: scalars, GM pointers and views, and the tile buffer in its long and short spelling.

Both spellings of a tile buffer give the same `TileType`, so that two types are equal exactly when the assembler
would call them equal. A type that cannot be read raises `PTOTextError` with the clause that it breaks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from tilewright.errors import PTOError, Span

LOCATIONS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
ELEMENT_TYPES = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
SCALAR_TYPES = (*ELEMENT_TYPES, "i1", "index")
ITEM_BYTES = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4,
    "f8E4M3FN": 1, "f8E5M2": 1, "index": 8,
}  # fmt: skip
"""Bytes of one element."""

LONG_KEYS = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad", "compact")
SHORT_KEYS = ("valid", "blayout", "slayout", "fractal", "pad", "compact")
CHOICES: dict[str, tuple[str, ...]] = {
    "blayout": ("row_major", "col_major"),
    "slayout": ("none_box", "row_major", "col_major"),
    "fractal": ("512", "1024", "32"),
    "pad": ("0", "1", "2", "3"),
    "compact": ("0", "1", "2"),
}


class PTOTextError(PTOError):
    """Text that breaks a clause of the format; `clause` is its id, as in ``§1 loc``."""

    def __init__(
        self,
        clause: str,
        message: str,
        *,
        span: Span | None = None,
        required: str | None = None,
        found: str | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(f"{message} ({clause})", span=span, required=required, found=found, help=help)
        self.clause = clause


@dataclass(frozen=True, slots=True)
class ScalarType:
    """`i1`, `i32`, `f32`, `index`, …"""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class PtrType:
    """A pointer into GM, to elements of `dtype`."""

    dtype: str

    def __str__(self) -> str:
        return f"!pto.ptr<{self.dtype}>"


@dataclass(frozen=True, slots=True)
class ViewType:
    """A GM tensor view, or a partition of one; an extent that is not static is None."""

    shape: tuple[int | None, ...]
    dtype: str
    partition: bool

    def __str__(self) -> str:
        word = "partition_tensor_view" if self.partition else "tensor_view"
        dims = "x".join("?" if d is None else str(d) for d in self.shape)
        return f"!pto.{word}<{dims}x{self.dtype}>"


@dataclass(frozen=True, slots=True)
class TileType:
    """A local tile: physical shape in elements, valid shape (None where it is dynamic), layout."""

    loc: str
    dtype: str
    rows: int
    cols: int
    v_row: int | None
    v_col: int | None
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return ITEM_BYTES[self.dtype]

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def valid(self) -> tuple[int | None, int | None]:
        return self.v_row, self.v_col

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of one fractal box; (1, 1) when the tile has none."""
        if self.slayout == "none_box":
            return 1, 1
        if self.fractal == 1024:
            return 16, 16
        inner = 2 if self.fractal == 32 else 32 // self.itemsize
        return (16, inner) if self.slayout == "row_major" else (inner, 16)

    def for_arch(self, arch: str) -> TileType:
        """The type that the assembler keeps: it rewrites the block layout of `left`, whatever was written."""
        if self.loc != "left":
            return self
        return replace(self, blayout="row_major" if arch == "a3" else "col_major")

    def __str__(self) -> str:
        parts = [self.loc, f"{self.rows}x{self.cols}x{self.dtype}"]
        if self.valid != self.shape:
            parts.append("valid=" + "x".join("?" if v is None else str(v) for v in self.valid))
        for key, default in (("blayout", "row_major"), ("slayout", "none_box"), ("fractal", 512)):
            if getattr(self, key) != default:
                parts.append(f"{key}={getattr(self, key)}")
        parts += [f"{key}={value}" for key, value in (("pad", self.pad), ("compact", self.compact)) if value]
        return f"!pto.tile_buf<{', '.join(parts)}>"


@dataclass(frozen=True, slots=True)
class MemRefType:
    """A memref, kept as text: only the cross-core flag table of the a3 is one."""

    text: str

    def __str__(self) -> str:
        return self.text


Type = ScalarType | PtrType | ViewType | TileType | MemRefType


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """The type spelled by `text`. Raises `PTOTextError` (without a span: the reader adds it)."""
    if text in SCALAR_TYPES:
        return ScalarType(text)
    if text.startswith("memref<"):
        return MemRefType(text)
    match = re.fullmatch(r"!pto\.(\w+)<(.*)>", text, re.DOTALL)
    if match is None:
        raise PTOTextError("§1 type", f"`{text}` is not a type", help="write one of " + ", ".join(SCALAR_TYPES))
    word, body = match.group(1), match.group(2).strip()
    if word == "ptr":
        return PtrType(_element(body.split(",")[0].strip(), text))
    if word in ("tensor_view", "partition_tensor_view"):
        shape, dtype = _dims(body, text)
        if not 1 <= len(shape) <= 5:
            raise PTOTextError("§1 type", "a view has one to five dimensions", found=text)
        return ViewType(shape, dtype, word == "partition_tensor_view")
    if word == "tile_buf":
        return _long(body, text) if "=" in body.split(",")[0] else _short(body, text)
    raise PTOTextError("§1 type", f"there is no type `!pto.{word}`", found=text)


def _element(name: str, text: str) -> str:
    if name not in ELEMENT_TYPES:
        raise PTOTextError(
            "§1 element type", f"`{name}` is not an element type", required=" ".join(ELEMENT_TYPES), found=text
        )
    return name


def _dims(body: str, text: str) -> tuple[tuple[int | None, ...], str]:
    match = re.fullmatch(r"((?:(?:\d+|\?)x)+)(\w+)", body)
    if match is None:
        raise PTOTextError("§1 type", "a shape is written 32x128xf32", found=text)
    dims = match.group(1)[:-1].split("x")
    return tuple(None if d == "?" else int(d) for d in dims), _element(match.group(2), text)


def _pairs(parts: list[str], text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in parts:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key in pairs:
            raise PTOTextError("§1 tile_buf keys", f"`{part.strip()}` is not key=value, or comes twice", found=text)
        pairs[key] = value
    return pairs


def _long(body: str, text: str) -> TileType:
    pairs = _pairs(body.split(","), text)
    keys = tuple(pairs)
    if keys not in (LONG_KEYS, LONG_KEYS[:-1]):
        raise PTOTextError(
            "§1 tile_buf keys",
            "the long spelling has every key, in one order",
            required=", ".join(LONG_KEYS[:-1]) + " and, optionally, compact",
            found=", ".join(keys),
        )
    rows, cols = (_integer(pairs[key], text) for key in ("rows", "cols"))
    v_row, v_col = (None if pairs[key] == "?" else _integer(pairs[key], text) for key in ("v_row", "v_col"))
    return _tile(pairs["loc"], pairs["dtype"], (rows, cols), (v_row, v_col), pairs, text)


def _short(body: str, text: str) -> TileType:
    loc, *rest = (part.strip() for part in body.split(","))
    if not rest:
        raise PTOTextError("§1 type", "a tile needs a shape", found=text)
    dims, dtype = _dims(rest[0], text)
    if len(dims) != 2 or dims[0] is None or dims[1] is None:
        raise PTOTextError("§5 rank", "a tile has two static dimensions", found=text)
    pairs = _pairs(rest[1:], text)
    unknown = [key for key in pairs if key not in SHORT_KEYS]
    if unknown:
        raise PTOTextError(
            "§1 tile_buf keys", f"`{unknown[0]}` is no key of the short spelling", required=", ".join(SHORT_KEYS)
        )
    valid = pairs.get("valid", f"{dims[0]}x{dims[1]}")
    if re.fullmatch(r"(\d+|\?)x(\d+|\?)", valid) is None:
        raise PTOTextError("§1 tile_buf keys", "valid is written 32x128, 32x? or ?x?", found=valid)
    v_row, v_col = (None if v == "?" else int(v) for v in valid.split("x"))
    return _tile(loc, dtype, (dims[0], dims[1]), (v_row, v_col), pairs, text)


def _integer(value: str, text: str) -> int:
    if not value.isdigit():
        raise PTOTextError("§5 rank", f"`{value}` is not a static extent", found=text)
    return int(value)


def _tile(
    loc: str,
    dtype: str,
    shape: tuple[int, int],
    valid: tuple[int | None, int | None],
    pairs: dict[str, str],
    text: str,
) -> TileType:
    if loc not in LOCATIONS:
        raise PTOTextError("§1 loc", f"`{loc}` is not a location", required=" ".join(LOCATIONS), found=text)
    for key, allowed in CHOICES.items():
        if pairs.get(key, allowed[0]) not in allowed:
            raise PTOTextError(f"§1 {key}", f"{key} cannot be `{pairs[key]}`", required=" ".join(allowed), found=text)
    return TileType(
        loc,
        _element(dtype, text),
        *shape,
        *valid,
        blayout=pairs.get("blayout", "row_major"),
        slayout=pairs.get("slayout", "none_box"),
        fractal=int(pairs.get("fractal", "512")),
        pad=int(pairs.get("pad", "0")),
        compact=int(pairs.get("compact", "0")),
    )
