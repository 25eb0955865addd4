"""Tiles of the program as tiles of the text: types, places, allocations.

A tile of the program is a value; what stands for it in the text is a second, third, … `alloc_tile` at the address of
its buffer, with the type that the value has there. So a view costs nothing, an operation in place writes the buffer of
its operand, and what a loop carries needs no copy. A part of a tile whose rows lie as far apart as those of the whole
is a *window*: `subset` of the whole, or an offset of the move that takes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.analysis.footprint import layout_on, physical
from tilewright.codegen.pto.arithmetic import Arithmetic, element_name
from tilewright.codegen.pto.tables import acc_row_unit, mask_shape
from tilewright.codegen.pto.text import Name, Text
from tilewright.codegen.pto.types import TileType as PTOTile
from tilewright.errors import UnsupportedError, VerifyError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.layout import BLayout, Compact, Layout, MemorySpace, SLayout
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Block, Let, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, linear_terms
from tilewright.ir.types import TileType
from tilewright.targets import Target

LOCATIONS = {
    MemorySpace.VEC: "vec", MemorySpace.MAT: "mat", MemorySpace.LEFT: "left", MemorySpace.RIGHT: "right",
    MemorySpace.ACC: "acc", MemorySpace.BIAS: "bias",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tile lies: `offset` bytes into its buffer; or, as a window, at (row, column) of the tile `whole`. `bits`:
    the tile of another element type whose bytes they are."""

    buffer: str
    address: int
    layout: Layout
    offset: Scalar = 0
    whole: Value | None = None
    row: Scalar = 0
    col: Scalar = 0
    bits: Value | None = None


class Tiles:
    """The tiles of one function."""

    def __init__(self, text: Text, numbers: Arithmetic, target: Target, *, level: int, dialect: str) -> None:
        self.text = text
        self.numbers = numbers
        self.target = target
        self.level = level
        self.dialect = dialect
        self.arch = target.pto_arch or "a3"
        self.places: dict[Value, Place] = {}
        self.pitches: dict[str, list[Scalar]] = {}
        self.bases: dict[tuple[object, ...], TileType] = {}

    def collect(self, body: Block) -> None:
        """Learns with which row pitches each accumulator is written, and the first type that each buffer has."""
        for stmt in walk(body):
            for value in (*stmt.block_args(), *stmt.defs()):
                kind = value.type
                if isinstance(kind, TileType) and kind.memref is not None:
                    self.bases.setdefault(self._base_key(kind), kind)
            if isinstance(stmt, Let) and isinstance(stmt.value, Op) and isinstance(stmt.value.loops, Contract):
                lhs: Value = getattr(stmt.value, stmt.value.loops.lhs)
                self.pitches.setdefault(_buffer(stmt.target), []).append(_tile(lhs).valid[0])

    def _base_key(self, kind: TileType) -> tuple[object, ...]:
        """Tiles of one buffer that may be reinterpreted as each other: as large, boxed or not alike."""
        assert kind.memref is not None
        boxed = layout_on(kind, self.target).slayout is not SLayout.NONE_BOX
        return kind.memref.name, _bytes(kind), boxed, kind.dtype is BOOL

    # --- places ---
    def place(self, value: Value) -> Place:
        """Where `value` lies."""
        found = self.places.get(value)
        if found is None:
            kind = _tile(value)
            memref = kind.memref
            if memref is None or (memref.addr is None and self.level == 3):
                raise VerifyError(f"{value.name!r} has no address: PTO text is made from a placed program")
            found = self.places[value] = Place(memref.name, memref.addr or 0, layout_on(kind, self.target))
        return found

    def alias(self, made: Value, source: Value, layout: Layout | None = None) -> None:
        """`made` lies exactly where `source` does."""
        place = self.place(source)
        if place.whole is not None and _tile(made).shape != _tile(source).shape:
            raise self.no_view(made, "a view of a part whose rows are not next to each other")
        bits = source if _tile(made).dtype is not _tile(source).dtype else place.bits
        self.places[made] = replace(place, layout=layout or layout_on(_tile(made), self.target), bits=bits)

    def window(self, made: Value, source: Value, row: Scalar, col: Scalar) -> None:
        """`made` is the part of `source` that starts at (row, col)."""
        place, kind, part = replace(self.place(source), bits=None), _tile(source), _tile(made)
        if place.whole is not None:
            row, col = _sum(place.row, row), _sum(place.col, col)
            self.places[made] = replace(place, row=row, col=col)
            return
        step = self._step(place, kind, part, row, col)
        if step is None or self.level != 3:
            self.places[made] = replace(place, whole=source, row=row, col=col)
        else:
            self.places[made] = replace(place, offset=_sum(place.offset, step))

    def _step(self, place: Place, kind: TileType, part: TileType, row: Scalar, col: Scalar) -> Scalar | None:
        """Bytes from the start of `kind` to a part of it that has the pitch of the whole; None when it has not."""
        (rows, cols), (part_rows, part_cols) = kind.static_shape, part.static_shape
        size, layout = kind.dtype.nbytes, place.layout
        if row == 0 and col == 0 and (rows, cols) == (part_rows, part_cols):
            return 0
        if kind.dtype is BOOL:
            return None
        by_row = layout.blayout is BLayout.ROW_MAJOR
        outer, inner = (row, col) if by_row else (col, row)
        pitch = cols if by_row else rows
        same: bool = cols == part_cols if by_row else rows == part_rows
        lines = part_rows if by_row else part_cols
        if layout.slayout is SLayout.NONE_BOX:
            if same and inner == 0:
                return self._aligned(_product(outer, pitch * size))
            return self._aligned(_product(_sum(_product(outer, pitch), inner), size)) if lines == 1 else None
        if not same or inner != 0:
            return None
        box = self.target.box(part.space or MemorySpace.MAT, layout, kind.dtype)[0 if by_row else 1]
        return _product(outer, pitch * size) if _multiple(outer, box) else None

    @staticmethod
    def _aligned(step: Scalar) -> Scalar | None:
        return step if _multiple(step, 32) else None

    def no_view(self, value: Value, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"{what} has no form in PTO text",
            span=value.span,
            found=f"{value.name!r}, {value.type!r}",
            help="copy the part to a tile of its own, or load it once more",
        )

    def check_apart(self, made: Value, source: Value) -> None:
        """An instruction may work in place, but not from one part of a buffer into another that meets it. Raises
        `VerifyError`: sharing a buffer so is a fault of the planner."""
        one, two = self.place(made), self.place(source)
        if one.buffer != two.buffer or self.same_place(made, source):
            return
        ends = [(p.offset, _sum(p.offset, _bytes(_tile(v)))) for p, v in ((one, made), (two, source))]
        (a0, a1), (b0, b1) = ends
        if two.whole is None and any(isinstance(e, int) and e <= 0 for e in (_less(a1, b0), _less(b1, a0))):
            return
        raise VerifyError(
            f"{made.name!r} shares a buffer with {source.name!r}, of which it is read from another place",
            span=made.span,
            found=f"bytes {a0} to {a1} from bytes {b0} to {b1} of {one.buffer}",
        )

    def same_place(self, a: Value, b: Value) -> bool:
        """Whether equal indices of both lie at the same bytes."""
        one, two = self.place(a), self.place(b)
        return one == two or (
            one.whole is None
            and two.whole is None
            and (one.buffer, one.address, one.offset, one.layout) == (two.buffer, two.address, two.offset, two.layout)
        )

    # --- types ---
    def kind(
        self, value: Value, *, valid: Shape | None = None, pad: int = 0, shape: tuple[int, int] | None = None,
        layout: Layout | None = None, packed: bool = True,
    ) -> tuple[PTOTile, Shape]:  # fmt: skip
        """The type of `value` in the text, and its valid extents. `packed` False: blocks at their physical pitch."""
        kind = _tile(value)
        location = LOCATIONS.get(kind.space or MemorySpace.DDR)
        if location is None:
            raise UnsupportedError(f"PTO text has no tiles in {kind.space}", span=value.span, found=repr(kind))
        whole = physical(kind, self.target)
        if len(whole) != 2 or whole != kind.static_shape:
            raise VerifyError(f"{value.name!r} is not made of whole boxes", span=value.span, found=repr(kind))
        rows, cols = shape or (whole[0], whole[1])
        extents = kind.valid if valid is None else valid
        layout = layout or self.place(value).layout
        if kind.dtype is BOOL:
            (rows, cols), _ = mask_shape(rows, cols)
            extents = (extents[0], binary(BinaryKind.FLOORDIV, _sum(extents[1], 7), 8))
        dtype = "i8" if kind.dtype is BOOL else element_name(kind.dtype)
        v_row, v_col = (extent if isinstance(extent, int) else None for extent in extents)
        made = PTOTile(
            location, dtype, rows, cols, v_row, v_col, layout.blayout.value, layout.slayout.value, layout.fractal, pad
        )
        return replace(made, compact=self._compact(value, kind, made, extents) if packed else 0), extents

    def _compact(self, value: Value, kind: TileType, made: PTOTile, extents: Shape) -> int:
        """Whether the blocks are packed by the valid shape (1): in the cube's memories where it is not the whole."""
        if made.loc in ("left", "right"):
            return int(made.valid != made.shape or kind.view.compact is Compact.NORMAL)
        if made.loc != "acc":
            return 0
        unit = acc_row_unit(made.dtype, self.arch)
        pitches = self.pitches.get(_buffer(value), [])
        if all(isinstance(p, int) and -(-p // unit) * unit == made.rows for p in pitches):
            return 0
        if all(_same(pitch, extents[0]) for pitch in pitches):
            return 1
        raise UnsupportedError(
            f"the accumulator {value.name!r} is read with another row pitch than it was written with",
            span=value.span,
            required=f"valid rows {pitches[0]}, as in the product",
            found=str(extents[0]),
            help="narrow the valid shape of the product's operands instead",
        )

    # --- handles ---
    def name(
        self, value: Value, *, valid: Shape | None = None, pad: int = 0, shape: tuple[int, int] | None = None,
        layout: Layout | None = None,
    ) -> Name:  # fmt: skip
        """What stands for `value` in the text, allocated here unless it is visible already."""
        place = self.place(value)
        if place.whole is not None:
            return self._subset(value, place, valid)
        kind, extents = self.kind(value, valid=valid, pad=pad, shape=shape, layout=layout)
        if self.level != 3:
            return self._unplaced(value, place, kind, extents)
        if place.bits is not None:
            return self._bits(value, place.bits, kind, extents)
        address = _sum(place.address, place.offset)
        key = ("tile", kind, address, tuple(e for e in extents if not isinstance(e, int)))
        if isinstance(address, int) and None not in kind.valid:
            with self.text.hoisted():
                return self.text.memo(key, lambda: self._allocate(value, kind, address, extents))
        return self.text.memo(key, lambda: self._allocate(value, kind, address, extents))

    def _bits(self, value: Value, source: Value, kind: PTOTile, extents: Shape) -> Name:
        """The bytes of `source` as elements of another type."""
        base = self.name(source, valid=extents if _tile(source).shape == _tile(value).shape else None)

        def make() -> Name:
            name = Name(self.text.fresh(value.name), str(kind))
            self.text.line(f"{name.name} = pto.bitcast {base.name} : {base.type} -> {kind}")
            return name

        return self.text.memo(("bits", kind, base.name), make)

    def _allocate(self, value: Value, kind: PTOTile, address: Scalar | None, extents: Shape) -> Name:
        operands = ""
        if isinstance(address, int):
            operands += f" addr = {self.numbers.address(address)}"
        elif address is not None:
            at = self.numbers.index(address)
            wide = self.text.memo(("i64", at), lambda: self._wide(at))
            operands += f" addr = {wide}"
        for word, static, extent in zip(("valid_row", "valid_col"), kind.valid, extents, strict=True):
            if static is None:
                operands += f" {word} = {self.numbers.index(extent)}"
        name = self.text.fresh(value.name)
        self.text.line(f"{name} = pto.alloc_tile{operands} : {kind}")
        return Name(name, str(kind))

    def _wide(self, at: str) -> str:
        name = self.text.fresh("addr")
        self.text.line(f"{name} = arith.index_cast {at} : index to i64")
        return name

    def _unplaced(self, value: Value, place: Place, kind: PTOTile, extents: Shape) -> Name:
        """At levels 1 and 2 a buffer is allocated once, without an address; other types of it are reinterpretations."""
        base, _ = self._base(value, place)
        if str(kind) == base.type:
            return base
        key = ("tile", kind, place.buffer, tuple(e for e in extents if not isinstance(e, int)))

        def make() -> Name:
            dynamic = None in kind.valid
            wanted = replace(kind, v_row=None, v_col=None) if dynamic else kind
            name = Name(self.text.fresh(value.name), str(wanted))
            self.text.line(f"{name.name} = pto.treshape {base.name} : {base.type} -> {wanted}")
            if dynamic:
                row, col = (self.numbers.index(extent) for extent in extents)
                self.text.line(f"pto.set_validshape {name.name}, {row}, {col} : {wanted}")
            return name

        if None in kind.valid:
            return self.text.memo(key, make)
        with self.text.hoisted():
            return self.text.memo(key, make)

    def _base(self, value: Value, place: Place) -> tuple[Name, PTOTile]:
        key = ("buffer", *self._base_key(_tile(value)))
        held = Value(value.name, self.bases[key[1:]], value.span)
        self.places[held] = Place(place.buffer, place.address, layout_on(_tile(held), self.target))
        kind, _ = self.kind(held, valid=_tile(held).static_shape, packed=False)
        # At the top of the function: where it has a section for each core, both use one allocation.
        with self.text.hoisted(to_function=True):
            return self.text.memo(key, lambda: (self._allocate(held, kind, None, _tile(held).shape), kind))

    def valid_part(self, value: Value) -> Name:
        """The valid part of `value` as a tile whose shape it is."""
        place = self.place(value)
        return self._subset(value, place if place.whole is not None else replace(place, whole=value))

    def _subset(self, value: Value, place: Place, valid: Shape | None = None) -> Name:
        """A window as a part of its whole. The part is as large as what is valid of it, which must be constant."""
        assert place.whole is not None
        kind, extents = self.kind(value, valid=valid)
        if kind.loc != "vec" or kind.slayout != "none_box" or _tile(value).dtype is BOOL:
            raise self.no_view(value, f"a part of a tile in {kind.loc} outside a move")
        if None in kind.valid:
            raise self.no_view(value, "a part of a tile's columns with an extent known at run time")
        inner = place.col if place.layout.blayout is BLayout.ROW_MAJOR else place.row
        if not _multiple(_product(inner, kind.itemsize), 32):
            raise self.no_view(value, "a part of a tile that does not start at a multiple of 32 bytes")
        whole = self.name(place.whole, valid=_tile(place.whole).shape)
        sizes = tuple(extent for extent in extents if isinstance(extent, int))
        part = replace(kind, rows=sizes[0], cols=sizes[1])

        def make() -> Name:
            row, col = self.numbers.index(place.row), self.numbers.index(place.col)
            name = self.text.fresh(value.name)
            word = "subset" if self.dialect == "current" else "subview"
            extents = ", ".join(map(str, sizes))
            self.text.line(f"{name} = pto.{word} {whole.name}[{row}, {col}] sizes [{extents}] : {whole.type}")
            return Name(name, str(part))

        return self.text.memo(("part", whole.name, place.row, place.col, sizes), make)


# --- helpers ---------------------------------------------------------------------------------------------------------
def _tile(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


def _buffer(value: Value) -> str:
    memref = _tile(value).memref
    return memref.name if memref is not None else value.name


def _bytes(kind: TileType) -> int:
    rows, cols = (*kind.static_shape, 1, 1)[:2]
    return rows * cols * kind.dtype.nbytes


def _sum(a: Scalar, b: Scalar) -> Scalar:
    return binary(BinaryKind.ADD, a, b)


def _less(a: Scalar, b: Scalar) -> Scalar:
    return binary(BinaryKind.SUB, a, b)


def _product(a: Scalar, b: int) -> Scalar:
    return binary(BinaryKind.MUL, a, b)


def _same(a: Scalar, b: Scalar) -> bool:
    return a == b or linear_terms(binary(BinaryKind.SUB, a, b)) == ({}, 0)


def _multiple(scalar: Scalar, of: int) -> bool:
    """Whether `scalar` is a multiple of `of` for certain."""
    terms, constant = linear_terms(scalar)
    return constant % of == 0 and all(factor % of == 0 for factor in terms.values())
