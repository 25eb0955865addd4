"""Physical shapes become whole boxes; valid shapes, and so the meaning, stay.

A reshape is a view only while both shapes hold the same bytes in row-major order, and a window only while it starts at
a whole box. Where a box gets in the way the elements go through a temporary tensor in DDR: stored as they are, loaded
as they are wanted."""

from __future__ import annotations

from tilewright.analysis.extents import Extents, box_of, extents_of, plain_layout, tile_type
from tilewright.analysis.footprint import MASK_ROW_BYTES, packs_masks
from tilewright.analysis.spaces import DDR, nbytes_of, placing_attribute, read_tensor, tile_operands
from tilewright.analysis.uses import Uses, definitions_of, uses_of
from tilewright.errors import NoRouteError, Span, UnsupportedError
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.function import Function
from tilewright.ir.layout import COL_MAJOR, ROW_MAJOR, MemorySpace, SLayout
from tilewright.ir.loops import Reduce
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Scalar, Value, linear_terms
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.create import Create
from tilewright.ops.movement import Load, Store
from tilewright.ops.shape import Reshape, SetValidShape, Slice, Transpose
from tilewright.targets import Target


def resize(function: Function, target: Target) -> Function:
    """`function` with every tile's physical shape as `analysis.extents` plans it."""
    found = extents_of(function, target)
    moved = {made for made, source, _ in found.windows if is_cut(made, source, found)}
    moved |= {made for made, op in found.views.items() if isinstance(op, Reshape) and _must_move(made, op.tile, found)}
    if not moved and not any(found.changed(value) or _is_relaid(value, found) for value in found.tiles):
        return function
    return _Resizer(found, moved, target, definitions_of(function), uses_of(function)).function(function)


def _must_move(made: Value, source: Value, found: Extents) -> bool:
    """Whether a reshape cannot be a view. It is one into the same shape; from a row to a column that lies column by
    column, and back; and where both shapes stay what they were and lie row by row."""
    old, new = tile_type(source).static_shape, tile_type(made).static_shape
    was, becomes = found.shapes[source], found.shapes[made]
    if old == new:
        return was != becomes
    layouts = [plain_layout(value, found) for value in (made, source)]
    if any(layout.slayout is not SLayout.NONE_BOX for layout in layouts):
        return True
    if len(old) == 2 and old[::-1] == new and 1 in old:
        column = becomes if new[1] == 1 else was
        return was[::-1] != becomes or column[1] != 1
    wide = any(layout == COL_MAJOR and shape[-1] != 1 for shape, layout in zip((new, old), layouts, strict=True))
    return wide or was != old or becomes != new


def is_cut(made: Value, source: Value, found: Extents) -> bool:
    """Whether a window starts within a box, or within the bytes that must stay together, so that it has no address.
    Asked of windows that operations state as a view of a tile."""
    op = found.views.get(made)
    if not isinstance(op, Slice) or op.drop_dims:
        return False
    kind = tile_type(source)
    assert kind.space is not None
    if found.target.memory(kind.space).row_bytes <= 1:
        return False
    packed = kind.dtype is BOOL and packs_masks(found.target)
    box = (1, 8 * MASK_ROW_BYTES) if packed else box_of(source, found)
    return not all(_is_multiple(offset, side) for offset, side in zip(op.offset[-2:], box, strict=True))


def _is_multiple(offset: Scalar, side: int) -> bool:
    terms, constant = linear_terms(offset)
    return constant % side == 0 and all(factor % side == 0 for factor in terms.values())


def _is_relaid(value: Value, found: Extents) -> bool:
    """Whether a tile is a plain row in a memory of boxes, which its type has to say."""
    kind = tile_type(value)
    assert kind.space is not None
    implied = found.target.layout(kind.space, kind.static_shape)
    return value in found.rows and kind.view.layout is None and implied.slayout is not SLayout.NONE_BOX


def column_reduced(stmt: Let, op: Op, target: Target) -> UnsupportedError:
    """A reduction of what lies column by column, which instructions do not read."""
    return UnsupportedError(
        f"{target.name} has no {op.qualified_name} on a column vector",
        span=stmt.span,
        found=", ".join(repr(value.type) for _, value in tile_operands(op)),
        help="reshape it to a row [1, M] and reduce that",
    )


class _Resizer(Rewriter):
    def __init__(
        self, found: Extents, moved: set[Value], target: Target, defined: dict[Value, Stmt], uses: Uses
    ) -> None:
        super().__init__()
        self.uses = uses
        self.found = found
        self.moved = moved
        self.target = target
        self.defined = defined

    def visit_let(self, stmt: Let) -> None:
        op, made = stmt.value, stmt.target
        if not isinstance(op, Op) or not isinstance(made.type, TileType):
            super().visit_let(stmt)
            return
        if made in self.moved:
            self.through_memory(stmt, op)
            return
        wanted = self.found.shapes[made]
        new = op.with_operands(self.get)
        if isinstance(new, Reshape) and new.shape != wanted:  # a vector turned over, or nothing changed
            new = new.replace(shape=wanted, valid_shape=tuple(self.scalar(extent) for extent in made.type.valid))
        inferred = new.infer()
        assert isinstance(inferred, TileType)
        if inferred.shape != wanted:
            new = new.resized(wanted)
            inferred = new.infer()
            assert isinstance(inferred, TileType)
        if inferred.shape != wanted:
            if isinstance(op.loops, Reduce) and any(v in self.found.vectors for _, v in tile_operands(op)):
                raise column_reduced(stmt, op, self.target)
            raise UnsupportedError(
                f"{op.qualified_name} cannot give a tile of whole boxes",
                span=stmt.span,
                required=f"{list(wanted)} on {self.target.name}",
                found=repr(inferred),
                help="use shapes that are multiples of the box, and valid_shape for the part that has meaning",
            )
        relaid = _is_relaid(made, self.found)
        if new is op and not relaid:
            self.emit(stmt)
            return
        before = made.type.substitute(self.get)
        kind = placed_like(inferred, before)
        assert isinstance(kind, TileType)
        kind = kind.with_(layout=ROW_MAJOR) if relaid else kind
        if kind.shape != before.shape and inferred.valid == inferred.shape != before.valid == before.shape:
            # An operation that fills its whole tile now fills what was added too, which has no meaning.
            whole = self.let(new, f"{made.name}_whole", stmt.span, kind)
            new = SetValidShape(whole, *before.valid, span=stmt.span)
            kind = placed_like(new.infer(), kind)
        self.emit(Let(self.retype(made, kind), new, span=stmt.span))

    # --- reshapes ---
    def through_memory(self, stmt: Let, op: Op) -> None:
        """A view that cannot stay one: the source is stored, and the result loaded from what was stored."""
        made, old = tile_type(stmt.target), getattr(op, op.view_of or "")
        source, shape = self.stored_source(stmt, old), tile_type(old).static_shape
        name, span = stmt.target.name, stmt.span
        create = Create(shape, made.dtype, level=Level.TENSOR, span=span)
        space = self.let(create, f"{name}_space", span, TensorType(shape, made.dtype))
        held = self.let(Store(source, (0,) * len(shape), space, span=span), f"{name}_ddr", span)
        offsets: tuple[Scalar, ...] = (0,) * made.rank
        seen = made.static_shape
        if isinstance(op, Slice):
            offsets, seen = tuple(self.scalar(offset) for offset in op.offset), shape
        valid = tuple(self.scalar(extent) for extent in made.valid)
        wanted = self.found.shapes[stmt.target]
        column = stmt.target in self.found.vectors and wanted[-1] == 1
        if column:  # it comes as a row, and is a column by a view alone
            offsets, seen, valid, wanted = offsets[::-1], seen[::-1], valid[::-1], wanted[::-1]
        if seen != shape:
            held = self.let(Reshape(held, seen, level=Level.TENSOR, span=span), f"{name}_view", span)
        last: Op = Load(held, offsets, wanted, valid, self.back_in(stmt, made), span=span)
        if column:
            row = self.let(last, f"{name}_row", span)
            last = Reshape(row, wanted[::-1], valid[::-1], level=Level.TILE, span=span)
        self.emit(Let(self.retype(stmt.target, placed_like(last.infer(), made)), last, span=span))

    def back_in(self, stmt: Let, made: TileType) -> MemorySpace:
        """Where the elements come back to: the tile's own memory; where DDR has no way there, as to an accumulator, one
        from which its readers can store."""
        assert made.space is not None
        if self.carries(DDR, made.space, made.dtype, made.dtype):
            return made.space
        stores = [use.stmt.value for use in self.uses.get(stmt.target, ()) if isinstance(use.stmt, Let)]
        if len(stores) == len(self.uses.get(stmt.target, ())):
            for space in (MemorySpace.VEC, MemorySpace.MAT):
                leaves = all(
                    isinstance(op, Store) and self.carries(space, DDR, made.dtype, op.output_tensor.dtype)
                    for op in stores
                )
                if leaves and self.carries(DDR, space, made.dtype, made.dtype):
                    return space
        raise NoRouteError(
            f"a window of a product in {made.space.value} starts within a box, and has no way back to there",
            span=stmt.span,
            required=f"offsets at whole boxes of {self.target.name}, or readers that only store the window",
            found=f"{made!r} of {stmt.value.qualified_name}" if isinstance(stmt.value, Op) else repr(made),
            help="store the product, and load the window from there",
        )

    def carries(self, src: MemorySpace, dst: MemorySpace, dtype: DType, to: DType) -> bool:
        edge = self.target.edge(src, dst)
        return edge is not None and edge.carries(dtype, to)

    def stored_source(self, stmt: Let, source: Value) -> Value:
        """The source where it can be stored from: where it is, or loaded once more to a memory that DDR follows."""
        now = self.value(source)
        kind = tile_type(now)
        assert kind.space is not None
        if self.leaves(kind.space, kind):
            return now
        definition = self.defined.get(source)
        op = definition.value if isinstance(definition, Let) else None
        if isinstance(op, Op) and read_tensor(op) is not None and placing_attribute(op) is not None:
            for space in (MemorySpace.VEC, *self.target.spaces):
                edge = self.target.edge(DDR, space) if self.leaves(space, kind) else None
                if edge is not None and edge.carries(kind.dtype, kind.dtype):
                    again = op.with_operands(self.get).replace(**{placing_attribute(op) or "": space})
                    return self.loaded_again(again, source, space, stmt.span)
        raise self.target.no_route(
            kind.space, DDR, kind.dtype, producer=source.name, consumer=stmt.target.name, span=stmt.span
        )

    def loaded_again(self, load: Op, source: Value, space: MemorySpace, span: Span) -> Value:
        """`source` loaded to `space`; transposed there, since nothing turns on the way into plain rows."""
        name, kind = f"{source.name}_{space.value.lower()}", tile_type(source)
        turns = isinstance(load, Load) and load.transpose
        shape = self.target.physical_shape(space, kind.static_shape, kind.dtype)
        if turns:  # whole rows both before and after
            before = self.target.physical_shape(space, kind.static_shape[::-1], kind.dtype)
            shape = tuple(map(max, before, shape[::-1]))
        plain = load.replace(transpose=False) if turns else load
        made = self.let(plain.resized(shape), name, span)
        return self.let(Transpose(made, 0, 1, span=span), f"{name}_t", span) if turns else made

    def leaves(self, space: MemorySpace, kind: TileType) -> bool:
        edge = self.target.edge(space, DDR)
        return edge is not None and edge.carries(kind.dtype, kind.dtype) and nbytes_of(kind) > 0
