"""One block's machine: the memories of a cube core and its vector core, and the values that a kernel computes with.

A `Core` reads and writes tiles and GM. Each access goes through the race tracker when there is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.codegen.pto.memory import (
    DTYPES,
    Array,
    Indices,
    Layout,
    Space,
    Tile,
    check_inside,
    granules,
    offsets,
    overlaps,
    poisoned,
    same_place,
    window,
)
from tilewright.codegen.pto.races import Clock, Tracker
from tilewright.codegen.pto.syntax import Module, Operation, walk
from tilewright.codegen.pto.tables import CAPACITY, footprint, pipe_of
from tilewright.codegen.pto.types import TileType, ViewType
from tilewright.errors import PTOError, Span


@dataclass(frozen=True, slots=True)
class Pointer:
    """A GM pointer: a flat array, typed as the kernel sees it, and an offset in elements."""

    data: Array
    dtype: str
    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """A GM view: extents and strides in elements."""

    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str

    def matrix(self) -> Indices:
        """Index into the pointer's array of each element, as the matrix [rows, cols] that a tile sees.

        Leading dimensions fold into rows. An ``nz`` view has five: column blocks (two), row blocks, row, column.
        """
        return _matrix(self.shape, self.strides, self.layout) + self.pointer.offset


@lru_cache(maxsize=1024)
def _matrix(shape: tuple[int, ...], strides: tuple[int, ...], layout: str) -> Indices:
    found = np.zeros((1,) * len(shape), np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent, dtype=np.int64) * stride
        found = found + steps.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    if layout == "nz":
        g0, g1, g2, g3, g4 = shape
        return found.transpose(2, 3, 0, 1, 4).reshape(g2 * g3, g0 * g1 * g4)
    return found.reshape(-1, shape[-1]) if len(shape) > 1 else found.reshape(1, -1)


Box = tuple[int, int, int, int]
"""Row, column, rows, columns."""
Value = int | float | bool | Tile | Pointer | View | None
"""What a name of the text stands for at run time."""


def bounds(pointer: Pointer, where: Indices, what: str) -> None:
    """Refuse indices outside the array that stands for the memory behind `pointer`."""
    if where.size and (int(where.min()) < 0 or int(where.max()) >= pointer.data.size):
        raise PTOError(
            f"{what} leaves the memory of {pointer.name}",
            required=f"elements 0 to {pointer.data.size - 1}",
            found=f"elements {int(where.min())} to {int(where.max())}",
        )


class Machine:
    """The memories of one block, fresh and poisoned, and the signals between its two cores."""

    def __init__(self, module: Module, arch: str, block: tuple[int, int], tracker: Tracker | None) -> None:
        self.module = module
        self.arch = arch
        self.block_idx, self.block_num = block
        self.tracker = tracker
        self.capacity = CAPACITY[arch]
        self.signals: dict[tuple[str, int], deque[Clock | None]] = {}
        self.progress = 0
        """Signals sent and taken so far; while it stands still, nobody gets on."""
        self._automatic: dict[int, int] = {}
        ends = dict(self.capacity)
        for function in module.functions:
            for op in walk(function.body):
                kind = op.result_types[0] if op.name == "pto.alloc_tile" else None
                if isinstance(kind, TileType) and "addr" not in op.named:
                    # Without an address each allocation gets bytes of its own, past the real ones: nothing is reused
                    # and capacity does not count, as the assembler's planner is not what is tested here.
                    self._automatic[id(op)] = ends[kind.loc]
                    ends[kind.loc] += -(-footprint(kind, arch) // 512) * 512
        self.spaces = {name: Space(name, nbytes) for name, nbytes in ends.items()}

    def allocate(self, op: Operation, kind: TileType, address: int | None, valid: tuple[int, int]) -> Tile:
        """The tile that `op` allocates, at `address` or where there is room."""
        kind = kind.for_arch(self.arch)
        if not (0 <= valid[0] <= kind.rows and 0 <= valid[1] <= kind.cols):
            raise PTOError(f"the valid shape {valid} exceeds the tile", found=str(kind), span=op.span)
        if kind.compact == 2:
            raise PTOError("compact=2 is not modelled", found=str(kind), span=op.span, help="use compact=0 or 1")
        automatic = address is None
        tile = Tile(
            kind,
            self.spaces[kind.loc],
            self._automatic[id(op)] if address is None else address,
            Layout.of(kind),
            *valid,
        )
        if not automatic:
            check_inside(tile, self.arch, self.capacity[kind.loc])
        if tile.address % max(32, kind.itemsize):
            raise PTOError(f"address {tile.address} is not a multiple of 32 bytes", found=str(kind), span=op.span)
        return tile


class Core:
    """One core of a block: `side` is ``cube``, ``vector`` or ``core`` (a kernel that does not say)."""

    def __init__(self, machine: Machine, side: str) -> None:
        self.machine = machine
        self.side = side
        self.arch = machine.arch
        self.tracker = machine.tracker

    def begin(self, op: Operation, source: Value = None, target: Value = None) -> None:
        """Start an instruction that moves or computes from `source` to `target`."""
        if self.tracker is not None:
            places = [v.kind.loc if isinstance(v, Tile) else None for v in (source, target)]
            self.tracker.begin((self.side, pipe_of(op.name.removeprefix("pto."), places[0], places[1])), op.span)

    # --- tiles ---
    def _touch(self, tile: Tile, layout: Layout, box: Box, write: bool) -> None:
        if self.tracker is not None:
            where = granules(layout, *box, tile.kind.itemsize, tile.address)
            self.tracker.touch(tile.space.name, tile.space.data.size // 32, where, write=write)

    def _flat(self, tile: Tile, layout: Layout) -> Array:
        """The elements of the space from the tile's address on; at least as many as `layout` spans."""
        flat = tile.space.view(tile.kind.dtype)[tile.address // tile.kind.itemsize :]
        if flat.size < layout.rows * layout.cols:
            raise PTOError(f"an access leaves {tile.kind.loc}", found=str(tile.kind))
        return flat

    def read(self, tile: Tile, box: Box | None = None, layout: Layout | None = None) -> Array:
        """A copy of the valid elements of `tile`, or of a box (row, column, rows, columns) of it."""
        layout = layout or tile.layout
        row, col, rows, cols = box or (0, 0, tile.v_row, tile.v_col)
        place = (row + tile.row0, col + tile.col0, rows, cols)
        self._touch(tile, layout, place, write=False)
        flat = self._flat(tile, layout)
        view = window(flat, layout, place)
        return flat[offsets(layout, *place)] if view is None else view.copy().reshape(rows, cols)

    def write(self, tile: Tile, values: Array, at: tuple[int, int] = (0, 0), layout: Layout | None = None) -> None:
        """Put the matrix `values` into `tile` from element `at` on."""
        layout = layout or tile.layout
        place = (at[0] + tile.row0, at[1] + tile.col0, *values.shape)
        self._touch(tile, layout, place, write=True)
        flat = self._flat(tile, layout)
        view = window(flat, layout, place)
        if view is None:
            flat[offsets(layout, *place)] = values
        else:
            view[...] = values.reshape(view.shape)

    def poison(self, tile: Tile, box: Box, layout: Layout) -> None:
        """Destroy a box of `tile`: an instruction left there something that has no meaning."""
        pattern = poisoned(max(2, tile.kind.itemsize)).view(DTYPES[tile.kind.dtype])
        self.write(tile, np.full(box[2:], pattern[0]), box[:2], layout)

    def scratch(self, tile: Tile) -> None:
        """Destroy a scratch tile whole: what it held is lost, and what it holds afterwards means nothing."""
        self.poison(tile, (0, 0, tile.kind.rows, tile.kind.cols), tile.layout)

    def guard(self, op: Operation, target: Tile, sources: Sequence[Value], *, elementwise: bool) -> None:
        """Refuse a destination that overlaps a source, unless both lie alike and the instruction is elementwise."""
        for source in sources:
            if not isinstance(source, Tile) or (elementwise and same_place(target, source)):
                continue
            if not overlaps(target, source):
                continue
            raise PTOError(
                f"{op.name} writes over an operand that it still reads",
                span=op.span,
                required="a destination apart from every source"
                + (", or one that lies exactly as it" if elementwise else ""),
                found=f"{target.kind} at {target.address} over {source.kind} at {source.address}",
            )

    # --- GM ---
    def _touch_memory(self, pointer: Pointer, where: Indices, write: bool) -> None:
        if self.tracker is not None:
            key = pointer.data.__array_interface__["data"][0], pointer.data.itemsize
            self.tracker.touch(key, pointer.data.size, where.reshape(-1), write=write)

    def load(self, pointer: Pointer, where: Indices, what: str) -> Array:
        """Elements of GM."""
        bounds(pointer, where, what)
        self._touch_memory(pointer, where, write=False)
        return pointer.data[where]

    def store(self, pointer: Pointer, where: Indices, values: Array, what: str) -> None:
        """Put elements into GM."""
        bounds(pointer, where, what)
        self._touch_memory(pointer, where, write=True)
        pointer.data[where] = values

    # --- signals between cores ---
    def signal(self, event: int, pipe: str) -> None:
        """Tell the other core that all work of `pipe` so far is done."""
        other = "vector" if self.side == "cube" else "cube"
        clock = self.tracker.clock((self.side, pipe)) if self.tracker is not None else None
        self.machine.signals.setdefault((other, event), deque()).append(clock)
        self.machine.progress += 1

    def accept(self, event: int, pipe: str) -> bool:
        """Take a signal of the other core for `pipe`; False when there is none yet."""
        queue = self.machine.signals.get((self.side, event))
        if not queue:
            return False
        clock = queue.popleft()
        self.machine.progress += 1
        if self.tracker is not None and clock is not None:
            self.tracker.join((self.side, pipe), clock)
        return True


def tile_of(value: Value, span: Span | None = None) -> Tile:
    """`value`, which must be a tile."""
    if not isinstance(value, Tile):
        raise PTOError("a tile is required here", found=type(value).__name__, span=span)
    return value


def integer_of(value: Value) -> int:
    """`value`, which must be an integer."""
    if not isinstance(value, int):
        raise PTOError("an integer is required here", found=type(value).__name__)
    return int(value)


def number_of(value: Value) -> int | float:
    """`value`, which must be a number."""
    if not isinstance(value, int | float):
        raise PTOError("a number is required here", found=type(value).__name__)
    return value


def pointer_of(value: Value) -> Pointer:
    """`value`, which must be a GM pointer."""
    if not isinstance(value, Pointer):
        raise PTOError("a GM pointer is required here", found=type(value).__name__)
    return value


def view_of(value: Value, kind: object = ViewType) -> View:
    """`value`, which must be a GM view; `kind` names what was asked for in the message."""
    if not isinstance(value, View):
        raise PTOError("a GM view is required here", required=str(kind), found=type(value).__name__)
    return value
