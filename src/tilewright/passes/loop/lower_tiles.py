"""Tile operations that follow each other, as loops: each by the loop form of its class.

    y = pl.tile.exp(x)                for i in serial(0, 8):
                                          for j in serial(0, 64):
                                              y[i, j] = exp(x[i, j])
    m = pl.tile.row_max(y)            for i in serial(0, 8):
                                          total[i, 0] = -inf
                                          for j in serial(0, 64):
                                              total[i, 0] = max(total[i, 0], y[i, j])
                                          m[i, 0] = total[i, 0]

Only valid elements are computed. Every operation rounds to its dtype where its loops store; narrow floats are computed
in FP32, and a reduction keeps its total in FP32. Arrays from outside are parameters: tiles as they are, tensors as the
window that a load or a store touches. A tile that nothing outside reads is an `Allocate`. Joining the loops is left to
`fuse_loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.analysis.index_maps import AffineMap, affine_map
from tilewright.ir.buffers import BufferType, Load
from tilewright.ir.dtypes import BOOL, INDEX, DType, widened
from tilewright.ir.layout import Pad
from tilewright.ir.loop_level import Allocate, Loop, LoopFunction, Store
from tilewright.ir.loops import COLUMN, ROW, Elementwise, Index, Map, Reduce, Update
from tilewright.ir.nodes import Block, Let, Stmt
from tilewright.ir.op import Kind, Level, Op, is_array
from tilewright.ir.scalar import (
    BinaryKind,
    Const,
    Scalar,
    Shape,
    Value,
    binary,
    cast,
    constant,
    constant_value,
    dtype_of,
)
from tilewright.ir.storage import written_operand
from tilewright.ir.types import ScalarType, TensorType, TileType
from tilewright.ops.common import identity


@dataclass(frozen=True, slots=True)
class Window:
    """The part of `tensor`, at `map`, that `buffer` is."""

    buffer: Value
    tensor: Value
    map: AffineMap
    shape: Shape


@dataclass(slots=True)
class Lowered:
    """`function`: the loops. Its parameters are `tiles` (tile: buffer), the buffers of `windows`, and scalars:
    `numbers` are operands, rounded to the dtype in which they are read (number: (operand, dtype))."""

    function: LoopFunction
    tiles: dict[Value, Value] = field(default_factory=dict[Value, Value])
    windows: list[Window] = field(default_factory=list[Window])
    numbers: dict[Value, tuple[Scalar, DType]] = field(default_factory=dict[Value, tuple[Scalar, DType]])


def has_loops(stmt: Let) -> bool:
    """Whether the statement is an operation on tiles that `lower_tiles` knows the loops of."""
    op, target = stmt.value, stmt.target
    if not isinstance(op, Op) or op.level is not Level.TILE or not is_array(target):
        return False
    form = op.loops
    if isinstance(form, Update):
        return written_operand(op) is not None and _stores_whole(op, form)
    kind = target.type
    if not isinstance(kind, TileType) or kind.view.pad is not Pad.NULL or op.writes is not None:
        return False
    if isinstance(form, Index):
        return affine_map(op, form.map, kind.rank) is not None
    if isinstance(form, Reduce):
        return form.combine in (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.MAX)
    return isinstance(form, Elementwise)


def _stores_whole(op: Op, form: Update) -> bool:
    """Whether the map alone says where each element goes: nothing is dealt out in another order."""
    given = getattr(op, form.source)
    if not is_array(given):
        return False
    extents = extents_of(given)
    found = affine_map(op, form.map, len(extents))
    written = [access for access in op.accesses() if access.field == form.target and access.writes]
    return found is not None and all(found.covers(extents, access.extents) for access in written)


def extents_of(value: Value) -> Shape:
    """The valid extents of a tile, the extents of a tensor."""
    kind = value.type
    assert isinstance(kind, (TensorType, TileType))
    return kind.valid if isinstance(kind, TileType) else kind.shape


def lower_tiles(stmts: Sequence[Let], kept: Collection[Value], name: str = "tiles") -> Lowered:
    """The statements, each of which `has_loops`, as a loop function. `kept`: tiles that are read elsewhere."""
    return _Lowering(kept).run(stmts, name)


class _Lowering:
    def __init__(self, kept: Collection[Value]) -> None:
        self.kept = kept
        self.params: list[Value] = []
        self.body: list[Stmt] = []
        self.buffers: dict[Value, Value] = {}
        """where each tile lies"""
        self.versions: dict[Value, Value] = {}
        """the tensor that a store of these statements made: the one that it wrote, before all of them"""
        self.out = Lowered(LoopFunction("", (), ()))

    def run(self, stmts: Sequence[Let], name: str) -> Lowered:
        for stmt in stmts:
            assert isinstance(stmt.value, Op)
            self.lower(stmt.value, stmt.target)
        self.out.function = LoopFunction(name, (*self.params, *self.out.numbers), tuple(self.body))
        return self.out

    # --- arrays ---------------------------------------------------------------------------------------------------
    def read(self, tile: Value) -> Value:
        """The buffer of a tile, a parameter where no statement here makes it."""
        if tile not in self.buffers:
            self.parameter(tile)
        return self.buffers[tile]

    def parameter(self, tile: Value) -> Value:
        kind = tile.type
        assert isinstance(kind, (TensorType, TileType))
        buffer = Value(tile.name, BufferType(kind.shape, kind.dtype))
        self.params.append(buffer)
        self.buffers[tile] = self.out.tiles[tile] = buffer
        return buffer

    def make(self, target: Value) -> Value:
        """The buffer of a result."""
        kind = target.type
        assert isinstance(kind, TileType)
        if target in self.kept:
            return self.parameter(target)
        self.buffers[target] = self.allocate(target.name, kind.shape, kind.dtype)
        return self.buffers[target]

    def allocate(self, name: str, shape: Shape, dtype: DType) -> Value:
        buffer = Value(name, BufferType(shape, dtype))
        self.body.append(Allocate(buffer))
        return buffer

    def window(self, tensor: Value, found: AffineMap, shape: Shape) -> Value:
        """The part of a tensor that an iteration over `shape` sees; the same part is the same buffer."""
        base = self.versions.get(tensor, tensor)
        for known in self.out.windows:
            if known.tensor is base and known.map == found and known.shape == shape:
                return known.buffer
        buffer = Value(tensor.name, BufferType(shape, tensor.dtype))
        self.params.append(buffer)
        self.out.windows.append(Window(buffer, base, found, shape))
        return buffer

    # --- operations -----------------------------------------------------------------------------------------------
    def lower(self, op: Op, target: Value) -> None:
        match op.loops:
            case Elementwise() as form:
                self.elementwise(op, form, target)
            case Reduce() as form:
                self.reduce(op, form, target)
            case Index() as form:
                self.index(op, form, target)
            case Update() as form:
                self.update(op, form, target)
            case _:
                raise AssertionError(f"{op.qualified_name} has no loops")

    def nest(self, extents: Shape, innermost: Callable[[Shape], Block]) -> None:
        """Loops over `extents`, outermost first; a dimension of one element has no loop."""
        self.body += loops(extents, innermost)

    def elementwise(self, op: Op, form: Elementwise, target: Value) -> None:
        sources = list(self.elements(op, form, target.dtype))
        out = self.make(target)

        def element(ix: Shape) -> Block:
            value = form.expr(op, *(source(ix) for source in sources))
            return (Store(out, ix, cast(value, out.dtype), span=op.span),)

        self.nest(extents_of(target), element)

    def elements(self, op: Op, form: Elementwise, result: DType) -> Iterator[Callable[[Shape], Scalar]]:
        """For each operand that the form takes: its element at an index."""
        # A plain number takes the dtype of the elements that are computed with, which a mask is not.
        dtype = next((value.dtype for _, value in op.operand_items() if value.dtype is not BOOL), result)
        arrays = 0
        for fact in op.fields:
            given = getattr(op, fact.name)
            if given is None or fact.scratch or fact.kind not in (Kind.OPERAND, Kind.SCALAR):
                continue
            if is_array(given):
                yield _reader(self.read(given), form.maps[arrays] if arrays < len(form.maps) else Map.FULL)
                arrays += 1
            else:
                yield _always(self.number(fact.name, given, dtype if dtype_of(given) is INDEX else dtype_of(given)))

    def number(self, name: str, given: Scalar, dtype: DType) -> Scalar:
        """A scalar operand as it is computed with."""
        known = constant_value(given)
        if known is not None:
            return cast(Const(known, dtype) if dtype is not INDEX else int(known), widened(dtype))
        for value, number in self.out.numbers.items():
            if number == (given, dtype):
                return value
        value = Value(name, ScalarType(widened(dtype)))
        self.out.numbers[value] = (given, dtype)
        return value

    def reduce(self, op: Op, form: Reduce, target: Value) -> None:
        _, source = next(op.operand_items())
        given, out = self.read(source), self.make(target)
        extents, axis = extents_of(source), len(extents_of(source)) - 1 if form.axis == 1 else 0
        total = self.allocate("total", self.out_shape(target), widened(target.dtype))
        start = constant(identity(form.combine, total.dtype), total.dtype)

        def at(ix: Shape) -> Shape:
            return (*ix[:axis], 0, *ix[axis:])

        def more(ix: Shape) -> Block:
            where = (*ix[:axis], 0, *ix[axis + 1 :])
            value = cast(Load(given, ix), total.dtype)
            return (Store(total, where, binary(form.combine, Load(total, where), value), span=op.span),)

        def begin(ix: Shape) -> Block:
            return (Store(total, at(ix), start, span=op.span),)

        def end(ix: Shape) -> Block:
            return (Store(out, at(ix), cast(Load(total, at(ix)), out.dtype), span=op.span),)

        kept = (*extents[:axis], *extents[axis + 1 :])
        self.nest(kept, begin)
        self.nest(extents, more)
        self.nest(kept, end)

    def out_shape(self, target: Value) -> Shape:
        kind = target.type
        assert isinstance(kind, TileType)
        return kind.shape

    def index(self, op: Op, form: Index, target: Value) -> None:
        source: Value = getattr(op, form.source)
        extents = extents_of(target)
        found = affine_map(op, form.map, len(extents))
        assert found is not None
        if isinstance(source.type, TensorType):
            given, reads = self.window(source, found, extents), _same_index
        else:
            given, reads = self.read(source), found.at
        out = self.make(target)
        self.nest(extents, lambda ix: (Store(out, ix, cast(Load(given, reads(ix)), out.dtype), span=op.span),))

    def update(self, op: Op, form: Update, target: Value) -> None:
        source: Value = getattr(op, form.source)
        tensor: Value = getattr(op, form.target)
        extents = extents_of(source)
        found = affine_map(op, form.map, len(extents))
        assert found is not None
        adds = any(access.field == form.target and not access.writes for access in op.accesses())
        given, out = self.read(source), self.window(tensor, found, extents)
        self.versions[target] = self.versions.get(tensor, tensor)

        def element(ix: Shape) -> Block:
            value = cast(Load(given, ix), out.dtype)
            if adds:
                kind = widened(out.dtype)
                value = cast(binary(BinaryKind.ADD, cast(Load(out, ix), kind), cast(value, kind)), out.dtype)
            return (Store(out, ix, value, span=op.span),)

        self.nest(extents, element)


def _same_index(ix: Shape) -> Shape:
    return ix


def _always(number: Scalar) -> Callable[[Shape], Scalar]:
    return lambda ix: number


def _reader(buffer: Value, how: Map) -> Callable[[Shape], Scalar]:
    """The element of an operand at an index, as it is computed with."""

    def element(ix: Shape) -> Scalar:
        if how is ROW:
            ix = (*ix[:-1], 0)
        elif how is COLUMN:
            ix = (*ix[:-2], 0, ix[-1])
        return cast(Load(buffer, ix), widened(buffer.dtype))

    return element


def loops(extents: Shape, innermost: Callable[[Shape], Block]) -> Block:
    """Loops over `extents` around what `innermost` gives for their indices."""
    ix = tuple(
        0 if extent == 1 else Value("ijklmn"[axis % 6], ScalarType(INDEX)) for axis, extent in enumerate(extents)
    )
    body = innermost(ix)
    for i, extent in reversed(list(zip(ix, extents, strict=True))):
        if isinstance(i, Value):
            body = (Loop(i, 0, extent, 1, body),)
    return body
