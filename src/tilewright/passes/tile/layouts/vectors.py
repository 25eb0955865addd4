"""Column vectors around operations that work on rows: turned over without a copy, and back.

A column vector [M, 1] lies column by column, so its bytes are those of the row [1, M]. Elementwise instructions want
rows; so their operands are reshaped to rows, and the result back to a column, unless only such operations read it."""

from __future__ import annotations

from tilewright.analysis.extents import tile_type
from tilewright.analysis.spaces import tile_operands
from tilewright.analysis.uses import Uses, uses_of
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function
from tilewright.ir.layout import COL_MAJOR
from tilewright.ir.loops import Elementwise, Map, Reduce
from tilewright.ir.nodes import Block, Let
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.ops.shape import Reshape
from tilewright.passes.tile.layouts.resize import column_reduced
from tilewright.targets import Target


def turn_vectors(function: Function, target: Target) -> Function:
    """`function` in which no elementwise operation works on a column that lies column by column."""
    turner = _Turner(target, uses_of(function))
    if not any(isinstance(stmt, Let) and turner.works_on_column(stmt) for stmt in function.walk()):
        return function
    return turner.function(function)


class _Turner(Rewriter):
    def __init__(self, target: Target, uses: Uses) -> None:
        super().__init__()
        self.target = target
        self.uses = uses
        self.rows: list[dict[Value, Value]] = []
        """the row that a column is, per open block"""

    def is_column(self, kind: TileType) -> bool:
        """Whether a tile lies column by column where the machine cares about rows."""
        if kind.space is None or kind.rank != 2 or kind.shape[1] != 1 or kind.shape[0] == 1:
            return False
        layout = kind.view.layout or self.target.layout(kind.space, kind.static_shape)
        return layout == COL_MAJOR and self.target.memory(kind.space).row_bytes > 1

    def works_on_column(self, stmt: Let) -> bool:
        """Whether an operation that wants rows is given a column, or makes one."""
        op, kind = stmt.value, stmt.target.type
        if not isinstance(op, Op) or op.level is not Level.TILE or not isinstance(kind, TileType):
            return False
        if isinstance(op.loops, Reduce):
            source = tile_operands(op)[0][1]
            if self.is_column(tile_type(source)):
                raise column_reduced(stmt, op, self.target)
            return False
        return isinstance(op.loops, Elementwise) and self.is_column(kind)

    def block(self, block: Block) -> Block:
        self.rows.append({})
        try:
            return super().block(block)
        finally:
            self.rows.pop()

    def visit_let(self, stmt: Let) -> None:
        if not self.works_on_column(stmt):
            super().visit_let(stmt)
            return
        op, kind = stmt.value, tile_type(stmt.target)
        assert isinstance(op, Op) and isinstance(op.loops, Elementwise)
        maps = op.loops.maps
        given = [(name, value) for name, value in tile_operands(op) if not op.field(name).scratch]
        for index, (_, value) in enumerate(given):
            if (index < len(maps) and maps[index] is not Map.FULL) or not self.is_column(tile_type(value)):
                raise self.unsupported(stmt, op, "use the plain elementwise operation on two vectors of one shape")
        fields: dict[str, object] = {name: self.row(self.value(value), stmt) for name, value in given}
        if not given:  # made of nothing: stated as a row at once
            fields["shape"] = (1, kind.shape[0])
            fields["valid_shape"] = (1, kind.valid[0]) if kind.view.valid_shape is not None else None
        new = op.with_operands(self.get).replace(**fields)
        inferred = new.infer()
        assert isinstance(inferred, TileType) and kind.space is not None
        row = self.let(new, f"{stmt.target.name}_row", stmt.span, inferred.with_(space=kind.space))
        column = Reshape(row, kind.shape, level=Level.TILE, span=stmt.span)
        made = self.retype(stmt.target, placed_like(column.infer(), kind.substitute(self.get)))
        self.rows[-1][made] = row
        if any(not (isinstance(u.stmt, Let) and self.works_on_column(u.stmt)) for u in self.uses.get(stmt.target, ())):
            self.emit(Let(made, column, span=stmt.span))

    def row(self, column: Value, stmt: Let) -> Value:
        """The row that `column` is, made once per block."""
        for scope in reversed(self.rows):
            if column in scope:
                return scope[column]
        kind = tile_type(column)
        op = Reshape(column, (1, kind.shape[0]), level=Level.TILE, span=stmt.span)
        made = self.let(op, f"{column.name}_row", stmt.span)
        self.rows[-1][column] = made
        return made

    def unsupported(self, stmt: Let, op: Op, help: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.target.name} has no {op.qualified_name} on a column vector",
            span=stmt.span,
            found=repr(stmt.target.type),
            help=help,
        )
