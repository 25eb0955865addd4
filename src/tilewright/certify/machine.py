"""Whether a placed program is one for this machine: spaces, layouts, edges, element types, sizes.

Spaces: every tile is in a memory that the target has, and every operand where its operation reads it.
Layouts: a tile lies as its memory lays it out, unless its operation turns it over, says another layout, or it is one
plain row; the matrix engine's tiles are marked compact where it packs them closer than their physical shape.
Edges: whatever moves goes along an edge of the target's graph, which takes its element types and layouts.
Element types: the engine that computes takes them; a cast is one instruction.
Footprints: tiles are whole boxes, and their buffers hold them.
"""

from __future__ import annotations

from tilewright.certify.facts import (
    boxed_shape,
    is_boxed,
    layout_of,
    readable_spaces,
    stands_for,
    tile_bytes,
    tiles_of,
    transfer,
    turns,
    work_kind,
)
from tilewright.certify.verdict import Notes
from tilewright.errors import Span, TilewrightError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.function import Function
from tilewright.ir.layout import Compact, Layout, MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Edge, Target

MATRIX = (MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC)
"""What the matrix engine itself reads and writes, packed by valid shapes."""


def check_machine(function: Function, target: Target) -> Notes:
    """Every fact above, of every statement of `function`."""
    checker = _Machine(function, target)
    for stmt in function.walk():
        for value in (*stmt.block_args(), *stmt.defs()):
            if isinstance(value.type, TileType):
                checker.tile(value, value.type, stmt.span)
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            checker.operation(stmt, stmt.value)
    return checker.notes


class _Machine:
    def __init__(self, function: Function, target: Target) -> None:
        self.target = target
        self.notes = Notes(function.name)
        self.sound: dict[TileType, bool] = {}
        """types are interned: each is asked about once"""

    # --- tiles ---
    def tile(self, value: Value, kind: TileType, span: Span) -> None:
        known = self.sound.get(kind)
        if known is None:
            known = self.sound[kind] = self.first_seen(value, kind, span)
        self.notes.count += 1

    def first_seen(self, value: Value, kind: TileType, span: Span) -> bool:
        notes, target, name = self.notes, self.target, repr(value.name)
        if not all(isinstance(extent, int) for extent in kind.shape):
            notes.fail("footprints", f"the physical shape of {name} is not constant", span, found=repr(kind))
            return False
        if kind.space is None or kind.space is MemorySpace.DDR or not target.has(kind.space):
            where = "no memory space" if kind.space is None else f"{kind.space.value}, where tiles cannot be"
            notes.fail("spaces", f"{name} has {where} on {target.name}", span, found=repr(kind))
            return False
        if kind.dtype not in target.dtypes.held:
            notes.fail("dtypes", f"{target.name} holds no tiles of {kind.dtype}", span, found=f"{name}: {kind!r}")
        self.buffer(value, kind, span)
        whole = boxed_shape(kind, target)
        if whole != kind.static_shape:
            notes.fail(
                "footprints",
                f"{name} is not made of whole boxes of its layout",
                span,
                required=str(list(whole)),
                found=repr(kind),
            )
        self.compact(value, kind, span)
        return True

    def buffer(self, value: Value, kind: TileType, span: Span) -> None:
        """The tile has room in its buffer, at an aligned address inside its memory."""
        assert kind.space is not None
        notes, memref, memory = self.notes, kind.memref, self.target.memory(kind.space)
        if memref is None or memref.nbytes is None:
            notes.fail("buffers", f"{value.name!r} has no buffer", span, found=repr(kind))
            return
        needed = tile_bytes(kind, self.target)
        if memref.nbytes < needed:
            notes.fail(
                "footprints",
                f"{value.name!r} does not fit its buffer {memref.name!r}",
                span,
                required=f"{needed:,} bytes",
                found=f"{memref.nbytes:,} bytes",
            )
        if memref.addr is None:
            if not memory.register_bytes:
                notes.fail("buffers", f"{value.name!r} has no address", span, found=f"buffer {memref.name!r}")
            return
        end, capacity = memref.addr + max(memref.nbytes, needed), self.target.capacity(kind.space)
        if memref.addr < 0 or end > capacity:
            notes.fail(
                "capacity",
                f"{value.name!r} leaves {kind.space.value} ({memory.name} of {self.target.name})",
                span,
                required=f"bytes 0 to {capacity:,}",
                found=f"bytes {memref.addr:,} to {end:,}",
            )
        if memref.addr % memory.alignment:
            notes.fail(
                "buffers",
                f"the address of {value.name!r} is not aligned",
                span,
                required=f"a multiple of {memory.alignment}",
                found=str(memref.addr),
            )

    def compact(self, value: Value, kind: TileType, span: Span) -> None:
        """The engine's own pitch is that of the physical shape, or the type says that it is not."""
        layout = layout_of(kind, self.target)
        if kind.space not in MATRIX or not is_boxed(layout) or kind.rank < 2 or kind.view.compact is not Compact.NULL:
            return
        box = self.target.box(kind.space, layout, kind.dtype, kind.static_shape)
        sides = zip(kind.valid[-2:], kind.static_shape[-2:], box, strict=True)
        if any(_rounded_up(valid, side) != size for valid, size, side in sides):
            self.notes.fail(
                "layouts",
                f"{value.name!r} is packed by its valid shape, and its type does not say so",
                span,
                required="compact=pl.CompactMode.normal",
                found=repr(kind),
            )

    # --- operations ---
    def operation(self, stmt: Let, op: Op) -> None:
        made = stmt.target
        kinds = (value.type for value in (made, *(value for _, value in op.operand_items())))
        if not all(self.sound.get(kind, True) for kind in kinds if isinstance(kind, TileType)):
            return  # said of the tile itself
        self.operands(stmt, op)
        ways = transfer(op, made)
        for value, start, end in ways:
            self.way(stmt, op, value, start, end)
        if isinstance(made.type, TileType) and made.type.space is not None:
            self.layout(stmt, op, made.type)
            self.dtypes(stmt, op, made)

    def operands(self, stmt: Let, op: Op) -> None:
        for field, value in tiles_of(op):
            kind, spaces = value.type, readable_spaces(op, field, self.target)
            assert isinstance(kind, TileType)
            space = kind.space
            assert space is not None
            there = not spaces or any(stands_for(self.target, space, wanted, kind) for wanted in spaces)
            self.notes.ask(
                there,
                "spaces",
                f"{op.qualified_name} does not read {field} from {space.value}",
                stmt.span,
                required=" or ".join(wanted.value for wanted in spaces),
                found=f"{value.name!r} in {space.value}",
            )

    def way(self, stmt: Let, op: Op, value: Value, start: MemorySpace, end: MemorySpace) -> None:
        made = stmt.target
        edge = self.target.edge(start, end)
        change = "" if value.dtype is made.dtype else f" -> {made.dtype}"
        self.notes.ask(
            edge is not None and edge.carries(value.dtype, made.dtype),
            "edges",
            f"{op.qualified_name} goes from {start.value} to {end.value} for {value.dtype}{change}",
            stmt.span,
            required="an edge of the target: " + self.target.edges_text(),
            found="no such edge" if edge is None else "an edge that does not take these element types",
        )
        if edge is not None and op.writes is None:
            self.rearrangement(stmt, edge, value, made)

    def rearrangement(self, stmt: Let, edge: Edge, value: Value, made: Value) -> None:
        """The edge can deliver the layout that arrives."""
        if not isinstance(value.type, TileType) or not isinstance(made.type, TileType) or edge.layouts is None:
            return
        old, new = layout_of(value.type, self.target), layout_of(made.type, self.target)
        self.notes.ask(
            old == new or edge.rearranges(old, new),
            "layouts",
            f"the edge {edge.src} -> {edge.dst} does not rearrange {value.name!r}",
            stmt.span,
            required=f"one of {sorted(f'{_spelled(a)} to {_spelled(b)}' for a, b in edge.layouts)}",
            found=f"{_spelled(old)} to {_spelled(new)}",
        )

    def layout(self, stmt: Let, op: Op, kind: TileType) -> None:
        """A layout that is not the memory's own has its reason in the operation."""
        assert kind.space is not None
        if not self.target.has(kind.space):
            return
        found, own = layout_of(kind, self.target), self.target.layout(kind.space, kind.static_shape)
        wanted = _turned(own) if is_boxed(own) and turns(op, kind) else own
        self.notes.count += 1
        if found == wanted:
            return
        try:
            inferred = op.infer()
        except TilewrightError:
            return  # said under structure
        stated = inferred.view.layout if isinstance(inferred, TileType) else None
        plain_row = kind.shape[-2:-1] == (1,) and not is_boxed(found) and is_boxed(own)
        if found != stated and not plain_row:
            self.notes.fail(
                "layouts",
                f"{stmt.target.name!r} does not lie as {kind.space.value} of {self.target.name} lays it out",
                stmt.span,
                required=_spelled(wanted),
                found=_spelled(found),
            )

    def dtypes(self, stmt: Let, op: Op, made: Value) -> None:
        form, target = op.loops, self.target
        read = [v for n, v in op.operand_items() if not op.field(n).scratch and not isinstance(v.type, TensorType)]
        if isinstance(form, Contract):
            legal = target.matmul_acc(getattr(op, form.lhs).dtype, getattr(op, form.rhs).dtype) is made.dtype
        elif op.converts:
            legal = target.native_cast(read[0].dtype, made.dtype)
        else:
            used = {value.dtype for value in read} or {made.dtype}
            legal = used - {BOOL} <= target.vector_dtypes(work_kind(op), op.is_scalar_form)
        self.notes.ask(
            legal,
            "dtypes",
            f"{target.name} has no {op.qualified_name} for these element types",
            stmt.span,
            found=", ".join(repr(value.type) for value in (*read, made)),
        )


def _rounded_up(extent: Scalar, side: int) -> Scalar:
    return -(-extent // side) * side if isinstance(extent, int) else extent


def _turned(layout: Layout) -> Layout:
    """The same boxes with rows and columns exchanged, of the boxes and within them."""
    blocks, boxes = type(layout.blayout), type(layout.slayout)
    other = blocks.COL_MAJOR if layout.blayout is blocks.ROW_MAJOR else blocks.ROW_MAJOR
    inner = {boxes.ROW_MAJOR: boxes.COL_MAJOR, boxes.COL_MAJOR: boxes.ROW_MAJOR}.get(layout.slayout, layout.slayout)
    return Layout(other, inner, layout.fractal)


def _spelled(layout: Layout) -> str:
    box = "" if not is_boxed(layout) else f" boxes, {layout.slayout.value} in boxes of {layout.fractal} bytes"
    return f"{layout.blayout.value}{box}"
