"""How many bytes of each memory straight-line code needs at once, whole or cut into blocks.

An estimate on the safe side, made before spaces, dtypes and layouts are decided: results are where their operation
leaves them, a column vector takes whole boxes, scratch tiles and the wide copies of element types that the machine
lacks are counted at the operation that wants them. Registers are not counted: what goes through them is cut again
(`tile_matmul`, native code)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import lcm

from tilewright.analysis.footprint import footprint
from tilewright.analysis.liveness import shareable
from tilewright.analysis.spaces import fixed_space, inherited_field, tile_operands
from tilewright.ir.dtypes import BOOL, FP32
from tilewright.ir.layout import COL_MAJOR, MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.ops.flat import flat_shape
from tilewright.passes.tile.partition.dimensions import Dim, Dimensions, tile_of
from tilewright.passes.tile.partition.products import in_registers
from tilewright.passes.tile.partition.stages import is_leaf
from tilewright.targets import Target

Blocks = Mapping[Dim, int]
"""The extent of the blocks of each class that is cut."""
Bytes = dict[str, int]
"""Bytes by the name of the memory."""
UNBOUNDED = 1 << 60
"""What a tile counts whose extent is known at run time only."""
BOX = 16
"""Extents of a tile of which a memory's layout is asked."""
STEP = 16
"""Elements along the inner dimension of a product in one step, at least: a box of every matrix engine. Of operands that
stream, four are there at once: two steps of two."""
MATRICES = 64
"""Matrices that one transfer may move (`flatten_tiles`)."""


@dataclass(slots=True)
class Section:
    """Straight-line code and what is known of it."""

    lets: tuple[Let, ...]
    dims: Dimensions
    target: Target
    spaces: dict[Value, MemorySpace] = field(default_factory=dict[Value, MemorySpace])
    last: dict[Value, int] = field(default_factory=dict[Value, int])
    """the last statement that reads a tile"""
    open: set[Value] = field(default_factory=set[Value])
    """what is loaded to wherever its readers want it"""
    chained: bool = False
    """whether a product reads what is computed from another"""
    streams: dict[Value, Dim] = field(default_factory=dict[Value, Dim])
    """of what is loaded for products alone: the class along which it may come step by step (`tile_matmul`)"""
    multiples: dict[Dim, int] = field(default_factory=dict[Dim, int])
    """what the extent of a class is a multiple of, for the sake of its tiles' boxes"""


def section_of(lets: tuple[Let, ...], dims: Dimensions, target: Target) -> Section:
    """Linear."""
    found = Section(lets, dims, target, chained=_has_chain(lets))
    for position, stmt in enumerate(lets):
        op = stmt.value
        if not isinstance(op, Op):
            continue
        for name, value in tile_operands(op):
            found.last[value] = position
            if value in found.open and isinstance(op.loops, Contract) and name in (op.loops.lhs, op.loops.rhs):
                found.spaces[value] = MemorySpace.MAT
        if isinstance(stmt.target.type, TileType):
            if not tile_operands(op) and fixed_space(op) is None:
                found.open.add(stmt.target)
            found.spaces[stmt.target] = _space_of(op, stmt.target, found)
            found.last.setdefault(stmt.target, position)
    if found.chained and not in_registers(target):
        found.streams = _streams(lets, dims)
    for value in dims.tiles:
        for cls, multiple in _boxes(value, found):
            found.multiples[cls] = lcm(found.multiples.get(cls, 1), multiple)
    return found


def _has_chain(lets: tuple[Let, ...]) -> bool:
    products: set[Value] = set()
    for stmt in lets:
        op = stmt.value
        if isinstance(op, Op):
            after = any(value in products for _, value in tile_operands(op))
            if after and isinstance(op.loops, Contract):
                return True
            if after or isinstance(op.loops, Contract):
                products.add(stmt.target)
    return False


def _streams(lets: tuple[Let, ...], dims: Dimensions) -> dict[Value, Dim]:
    """What is loaded for the same side of products alone, with the class that they sum along."""
    found: dict[Value, Dim] = {}
    other: set[Value] = set()
    for stmt in lets:
        op = stmt.value
        if not isinstance(op, Op):
            continue
        form = op.loops
        sides = {form.lhs: 1, form.rhs: 0} if isinstance(form, Contract) else {}
        for name, value in tile_operands(op):
            cls = dims.root(value, sides[name]) if name in sides and tile_of(value).rank == 2 else None
            if cls is None or found.setdefault(value, cls) != cls:
                other.add(value)
    made = {stmt.target for stmt in lets if is_leaf(stmt)}
    return {value: cls for value, cls in found.items() if value in made and value not in other}


def _boxes(value: Value, section: Section) -> list[tuple[Dim, int]]:
    """The multiples that one tile wants of its last two dimensions. The elements of a column vector lie together."""
    space, kind, target = section.spaces[value], tile_of(value), section.target
    if kind.rank < 2 or not _counts(space, target) or kind.dtype is BOOL:
        return []
    classes = section.dims.classes_of(value)[-2:]
    vector = kind.shape[-1] == 1 and space is MemorySpace.VEC
    layout = COL_MAJOR if vector else target.layout(space, (BOX, BOX))
    box = target.box(space, layout, kind.dtype)
    if vector:
        return [(classes[0], box[0])]
    return [(cls, side) for cls, side, extent in zip(classes, box, kind.shape[-2:], strict=True) if extent != 1]


def _space_of(op: Op, made: Value, found: Section) -> MemorySpace:
    space = tile_of(made).space or fixed_space(op)
    if space is not None:
        return space
    followed = inherited_field(op)
    source = getattr(op, followed) if followed else None
    return found.spaces.get(source, MemorySpace.VEC) if isinstance(source, Value) else MemorySpace.VEC


def peaks(section: Section, blocks: Blocks, passes: tuple[Dim, ...] = ()) -> Bytes:
    """The most bytes alive at once, per memory, in `blocks`; `passes` are those of their classes that are done in
    passes. What is summed is alive from the beginning, and so is what is loaded once for all blocks of a pass; what is
    computed for all of them stays."""
    dims = section.dims
    now: Bytes = {}
    most: Bytes = {}
    dying: dict[int, list[Value]] = {}
    for value, position in section.last.items():
        dying.setdefault(position, []).append(value)
    streams = {} if passes else section.streams
    sizes = {value: bytes_of(value, section, _stepped(streams.get(value), blocks, section, 4)) for value in dims.tiles}
    early, kept = _outlasting(section, passes)
    for value in early:
        _add(now, sizes[value], 1)
    for position, stmt in enumerate(section.lets):
        op, made = stmt.value, stmt.target
        if not isinstance(op, Op):
            continue
        dead = [value for value in dying.get(position, ()) if value not in early and value not in kept]
        shared = shareable(op, made) if made in sizes and _is_static(op, made) else frozenset[Value]()
        given = [value for value in dead if value in shared and value is not made][:1]
        for value in given:
            _add(now, sizes[value], -1)
        if made in sizes and made not in early:
            _add(now, sizes[made], 1)
        for name, nbytes in now.items():
            extra = _extra(op, section, sizes) if name == _vector_memory(section.target) else 0
            most[name] = max(most.get(name, 0), nbytes + extra)
        for name, nbytes in _chained(op, section, blocks, not passes):
            most[name] = max(most.get(name, 0), nbytes)
        for value in dead:
            if value not in given:
                _add(now, sizes[value], -1)
    return most


def _outlasting(section: Section, passes: tuple[Dim, ...]) -> tuple[set[Value], set[Value]]:
    """What is alive from the beginning, and what stays alive once it is made."""
    dims = section.dims
    early = {stmt.target for cls in passes for stmt in dims.summed.get(cls, ())}
    kept = {value for value in dims.tiles if any(cls not in dims.classes_of(value) for cls in passes)}
    early |= {stmt.target for stmt in section.lets if is_leaf(stmt) and stmt.target in kept}
    return early, kept


def _is_static(op: Op, made: Value) -> bool:
    tiles = (made, *(value for _, value in tile_operands(op)))
    return all(isinstance(extent, int) for value in tiles for extent in tile_of(value).shape)


def _add(now: Bytes, size: tuple[str, int], sign: int) -> None:
    name, nbytes = size
    if name:
        now[name] = now.get(name, 0) + sign * nbytes


def _vector_memory(target: Target) -> str:
    return target.memory(MemorySpace.VEC).name if target.has(MemorySpace.VEC) else ""


def bytes_of(value: Value, section: Section, blocks: Blocks) -> tuple[str, int]:
    """The memory of a tile, and its bytes there; no name for registers and memories that the target has not."""
    return _bytes_in(section.spaces[value], value, section, blocks)


def _bytes_in(space: MemorySpace, value: Value, section: Section, blocks: Blocks) -> tuple[str, int]:
    target = section.target
    if not _counts(space, target):
        return "", 0
    shape: list[int] = []
    for cls, extent in zip(section.dims.classes_of(value), tile_of(value).shape, strict=True):
        size = blocks.get(cls, extent)
        if not isinstance(size, int):
            return target.memory(space).name, UNBOUNDED
        multiple = section.multiples.get(cls, 1)
        shape.append(-(-size // multiple) * multiple)
    lead = 1
    for extent in shape[:-2]:
        lead *= extent
    if lead > MATRICES:
        return target.memory(space).name, UNBOUNDED
    return target.memory(space).name, _footprint(tuple(shape), value, space, target)


def _chained(op: Op, section: Section, blocks: Blocks, steps: bool) -> list[tuple[str, int]]:
    """What a product takes of the matrix engine's own memories, where one product reads what another gave: cut again
    into parts of its result, it would have the other computed again for each of them. Where it stands in no pass, it
    may still be done in `steps` along its inner dimension."""
    form = op.loops
    if not isinstance(form, Contract) or not section.chained:
        return []
    found: list[tuple[str, int]] = []
    for name, space, axis in ((form.lhs, MemorySpace.LEFT, 1), (form.rhs, MemorySpace.RIGHT, 0)):
        value: Value = getattr(op, name)
        cls = section.dims.root(value, axis) if steps else None
        size = _bytes_in(space, value, section, _stepped(cls, blocks, section, 1))
        found += [size] if size[0] else []
    return found


def _stepped(cls: Dim | None, blocks: Blocks, section: Section, copies: int) -> Blocks:
    """`blocks`, of the class no more than what `copies` steps of a product take."""
    if cls is None:
        return blocks
    extent = blocks.get(cls, section.dims.extents[cls])
    return {**blocks, cls: min(extent, copies * STEP)} if isinstance(extent, int) else blocks


def _counts(space: MemorySpace, target: Target) -> bool:
    """Whether tiles in `space` take room: not in registers, nor where a product's operands stream on to registers."""
    if not target.has(space) or target.memory(space).capacity is None:
        return False
    return not target.memory(space).register_bytes and not (space is MemorySpace.MAT and in_registers(target))


def _footprint(shape: tuple[int, ...], value: Value, space: MemorySpace, target: Target) -> int:
    """Of a column vector as of a tile of whole boxes: its other readers may want it so."""
    rows, columns = flat_shape(shape)
    vector = columns == 1 and space is MemorySpace.VEC
    kind = TileType((rows, BOX if vector else columns), tile_of(value).dtype, space)
    return footprint(kind, target)


def _extra(op: Op, section: Section, sizes: Mapping[Value, tuple[str, int]]) -> int:
    """Bytes that only the operation itself needs: scratch, and copies in FP32."""
    if op.level.value != "tile" or isinstance(op.loops, Contract):
        return 0
    tiles = tile_operands(op)
    total = 0
    for scratch in op.scratch().values():
        like = [sizes[value][1] for _, value in tiles if tile_of(value).shape == scratch.shape]
        total += max(like, default=0)
    work = op.work()
    if not work.is_arithmetic:
        return total
    taken = section.target.vector_dtypes(work.kind)
    for _, value in tiles:
        dtype = tile_of(value).dtype
        if dtype not in taken and sizes[value][1] < UNBOUNDED:
            total += 2 * sizes[value][1] * max(1, FP32.bits // max(8, dtype.bits))
    return total
