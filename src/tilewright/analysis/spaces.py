"""What operations ask of a target's memories: where an operand may be read, where a result comes out.

Everything is read from the op classes and the target; nothing here knows a particular operation. Inference places
tiles by these facts, and legality checks the outcome against the same ones.
"""

from __future__ import annotations

from tilewright.ir.dtypes import INDEX
from tilewright.ir.layout import MemorySpace, SLayout
from tilewright.ir.loops import Index
from tilewright.ir.op import Effect, FromAttribute, Inherit, Kind, Op
from tilewright.ir.scalar import Scalar, Value, linear_terms, values_in
from tilewright.ir.types import ScalarType, TensorType, TileType
from tilewright.targets import Target

Spaces = tuple[MemorySpace, ...]
DDR = MemorySpace.DDR


def accepted(op: Op, field: str, target: Target) -> Spaces:
    """The spaces in which `op` reads the tile in `field`, preferred first; empty when any will do. A target may name
    others than the op. Raises `TargetError` when the machine has none of them."""
    override = target.operand_spaces.get(op.name, {}).get(field)
    spaces = override if override is not None else op.field(field).spaces
    there = tuple(space for space in spaces if target.has(space))
    if stores_tile(op) == field:
        there = tuple(space for space in there or on_chip(target) if target.edge(space, DDR) is not None) or there
    if spaces and not there:
        target.memory(spaces[0])
    return there


def accepts(op: Op, field: str, tile: TileType, target: Target) -> bool:
    """Whether `op` reads a tile of type `tile` in `field`, be it from a role that is the same memory."""
    spaces, space = accepted(op, field, target), tile.space
    return space is not None and (not spaces or any(same_place(target, space, other, tile) for other in spaces))


def fixed_space(op: Op) -> MemorySpace | None:
    """Where the result comes out by the op's own nature, or as its user wrote; None when that is open."""
    where = op.result_space
    if isinstance(where, MemorySpace):
        return where
    if isinstance(where, FromAttribute):
        return getattr(op, where.field)
    return None


def inherited_field(op: Op) -> str | None:
    """The tile operand in whose space the result is: the one that it writes, views, or is said to follow."""
    where = op.result_space
    names = (op.writes, op.view_of, where.field if isinstance(where, Inherit) else None)
    for name in names:
        held = getattr(op, name) if name else None
        if isinstance(held, Value) and isinstance(held.type, TileType):
            return name
    return None


def placing_attribute(op: Op) -> str | None:
    """The attribute that says where the result goes, if the op has one."""
    return op.result_space.field if isinstance(op.result_space, FromAttribute) else None


def tile_operands(op: Op) -> list[tuple[str, Value]]:
    """(field, value) of the tiles among the operands."""
    return [(name, value) for name, value in op.operand_items() if isinstance(value.type, TileType)]


def read_tensor(op: Op) -> Value | None:
    """The DDR tensor that the op reads into a tile, if it does that (a load) and writes none."""
    if op.writes is not None or op.effect is not Effect.PURE:
        return None
    return next((value for _, value in op.operand_items() if isinstance(value.type, TensorType)), None)


def stores_tile(op: Op) -> str | None:
    """The field of the tile that the op writes to a DDR tensor, if it does."""
    written = getattr(op, op.writes) if op.writes else None
    if not (isinstance(written, Value) and isinstance(written.type, TensorType)):
        return None
    tiles = [name for name, _ in tile_operands(op)]
    return tiles[0] if len(tiles) == 1 else None


def is_transfer(op: Op) -> bool:
    """Whether the op takes a tile from one space to another that an attribute names (a move, an extract)."""
    return placing_attribute(op) is not None and bool(tile_operands(op)) and read_tensor(op) is None


def rearranges(op: Op, made: TileType) -> bool:
    """Whether a view reads its source in row-major order in another shape (a reshape), rather than a window of it or
    its dimensions exchanged: then both must lie row by row. Asked of the index map."""
    form = op.loops
    if op.view_of is None or not isinstance(form, Index):
        return False
    source: Value = getattr(op, op.view_of)
    if not isinstance(source.type, TileType) or source.type.shape == made.shape:
        return False
    indices = tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(made.rank))
    mapped = form.map(op, *indices)
    if any(index_of(scalar, indices) is None and _reads(scalar, indices) for scalar in mapped):
        return True
    if len(mapped) != len(indices) or not states_shape(op):
        return False
    # A vector turned over by a reshape: the bytes stay, and the layout becomes the space's.
    return any(index_of(s, indices) not in (None, index) for s, index in zip(mapped, indices, strict=True))


def transposes(op: object, made: Value) -> bool:
    """Whether a load exchanges the last two dimensions: asked of its index map."""
    kind = made.type
    if not (isinstance(op, Op) and isinstance(op.loops, Index) and isinstance(kind, TileType)) or kind.rank < 2:
        return False
    if read_tensor(op) is None:
        return False
    indices = tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(kind.rank))
    last = op.loops.map(op, *indices)[-1]
    return not isinstance(last, int) and indices[-2] in values_in(last)


def states_shape(op: Op) -> bool:
    """Whether the op says the shape of its result, rather than having it follow from the operand's."""
    made = op.infer()
    stated = (getattr(op, field.name) for field in op.fields if field.kind is Kind.SCALARS)
    return isinstance(made, TileType) and any(shape == made.shape for shape in stated)


def index_of(scalar: Scalar, indices: tuple[Value, ...]) -> Value | None:
    """`i` when `scalar` is `i` plus something that mentions no index."""
    if isinstance(scalar, int):
        return None
    terms, _ = linear_terms(scalar)
    inside = [index for index in indices if index in terms]
    if len(inside) != 1 or terms[inside[0]] != 1:
        return None
    rest = (term for term in terms if term is not inside[0])
    return None if any(_reads(term, indices) for term in rest) else inside[0]


def _reads(scalar: Scalar, indices: tuple[Value, ...]) -> bool:
    return not isinstance(scalar, int) and any(value in indices for value in values_in(scalar))


def unboxed(target: Target, spaces: Spaces) -> Spaces:
    """Those of `spaces` in which a tile is a plain matrix."""
    return tuple(space for space in spaces if target.layout(space, (16, 16)).slayout is SLayout.NONE_BOX)


def fills(op: Op) -> bool:
    """Whether the op computes a tile out of nothing, as vector work does."""
    makes = any(access.field is None and access.writes for access in op.accesses())
    return makes and not any(True for _ in op.operand_items())


def on_chip(target: Target) -> Spaces:
    """The spaces that tiles may live in."""
    return tuple(space for space in target.spaces if space is not DDR)


def homes(op: Op, tile: TileType, target: Target) -> Spaces:
    """Where a result whose place is open may be put: for a load, where an edge from DDR leads."""
    spaces = on_chip(target)
    if fills(op) and target.has(MemorySpace.VEC):
        return (MemorySpace.VEC,)
    if read_tensor(op) is not None:
        spaces = tuple(space for space in spaces if leads(target, DDR, space, tile))
    return spaces


def writable(op: Op, tile: TileType, target: Target) -> Spaces:
    """Where `op` can write parts into a tile: spaces that an edge leads to, for each part; all when it writes none."""
    followed = inherited_field(op)
    if followed is None or followed != op.writes:
        return on_chip(target)
    parts = [value for name, value in tile_operands(op) if name != followed and not accepted(op, name, target)]
    return tuple(space for space in on_chip(target) if all(_reachable(target, part, space, tile) for part in parts))


def _reachable(target: Target, part: Value, space: MemorySpace, tile: TileType) -> bool:
    edges = (target.edge(source, space) for source in on_chip(target))
    return any(edge is not None and edge.carries(part.dtype, tile.dtype) for edge in edges)


def same_place(target: Target, a: MemorySpace, b: MemorySpace, tile: TileType) -> bool:
    """Whether a tile in `a` is as good as one in `b`: one memory, and one layout in it."""
    if a is b:
        return True
    if not target.same_memory(a, b):
        return False
    shape = tuple(extent if isinstance(extent, int) else 2 for extent in tile.shape)
    return target.layout(a, shape) == target.layout(b, shape)


def leads(target: Target, src: MemorySpace, dst: MemorySpace, tile: TileType) -> bool:
    """Whether one edge carries a tile of this dtype unchanged from `src` to `dst`."""
    edge = target.edge(src, dst)
    return edge is not None and edge.carries(tile.dtype, tile.dtype)


def sources_of(target: Target, dst: MemorySpace, tile: TileType) -> Spaces:
    """The spaces from which one edge leads to `dst`, itself first when it can copy within itself."""
    found = [space for space in on_chip(target) if leads(target, space, dst, tile)]
    return tuple(sorted(found, key=lambda space: space is not dst)) or (dst,)


def default_rounding(op: Op, dtype_fields: tuple[str, ...] = ("target_type",)) -> bool:
    """Whether every attribute of a converting op, its target dtype aside, stands at its default: the rounding is then
    the one that moves do on their way."""
    return all(
        getattr(op, field.name) == field.default
        for field in op.fields
        if field.kind is Kind.ATTRIBUTE and field.name not in dtype_fields
    )


def nbytes_of(tile: TileType) -> int:
    """Bytes of the elements of `tile`, for comparing routes; extents known only at run time count as 128."""
    total = tile.dtype.bits
    for extent in tile.shape:
        total *= extent if isinstance(extent, int) else 128
    return max(1, total // 8)
