"""Vectors that are rounded up like the matrices they meet, although an operation takes, or makes, one row or column.

Before:  c = pl.tile.row_max(x)                 # [16, 1]; a product reads it too, so that it becomes [16, 16]
         y = pl.tile.row_expand_sub(x, v)       # v: [16, 1], which becomes [16, 16] for the same reason
After:   c_thin = pl.tile.row_max(x)
         c_any = pl.tile.create([16, 1], pl.FP32, target_memory=pl.Mem.Vec)
         c = pl.tile.row_expand(c_any, c_thin)
         v_thin = pl.tile.row_max(v)            # of one element per row: the element itself
         y = pl.tile.row_expand_sub(x, v_thin)

A tile that is a vector by its valid shape alone is made, or read, beside the vector itself; that is tied to nothing."""

from __future__ import annotations

from tilewright.analysis.extents import Extents, extents_of, tile_type
from tilewright.analysis.spaces import tile_operands
from tilewright.ir.function import Function
from tilewright.ir.loops import Elementwise, Map, Reduce
from tilewright.ir.nodes import Block, Let
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.ops.broadcast import ColExpand, RowExpand
from tilewright.ops.create import Create
from tilewright.ops.reduce import ColMax, RowMax
from tilewright.targets import Target

ALONG = {Map.ROW: -1, Map.COLUMN: -2}
"""The axis along which a vector operand has one element."""


def keep_vectors_apart(function: Function, target: Target) -> Function:
    """`function` in which no vector that an operation wants as one, or makes, is to grow across."""
    apart = _Apart(extents_of(function, target), target)
    if not any(isinstance(stmt, Let) and (apart.grown(stmt) or apart.makes_grown(stmt)) for stmt in function.walk()):
        return function
    return apart.function(function)


class _Apart(Rewriter):
    def __init__(self, found: Extents, target: Target) -> None:
        super().__init__()
        self.found = found
        self.target = target
        self.thin: list[dict[tuple[Value, Map], Value]] = []
        """the vector that a tile is, per open block"""

    def block(self, block: Block) -> Block:
        self.thin.append({})
        try:
            return super().block(block)
        finally:
            self.thin.pop()

    # --- asking ---
    def grown(self, stmt: Let) -> dict[str, Map]:
        """The vector operands of `stmt` that are to have more than one element across."""
        op = stmt.value
        if not isinstance(op, Op) or op.level is not Level.TILE or not isinstance(op.loops, Elementwise):
            return {}
        maps = op.loops.maps
        tiles = [(name, value) for name, value in tile_operands(op) if not op.field(name).scratch]
        return {
            name: how
            for (name, value), how in zip(tiles, maps, strict=False)
            if how in ALONG and self.grows(value, ALONG[how]) and self.reducible(value)
        }

    def makes_grown(self, stmt: Let) -> bool:
        """Whether `stmt` reduces to a vector that is to have more than one element across."""
        op = stmt.value
        if not isinstance(op, Op) or op.level is not Level.TILE or not isinstance(op.loops, Reduce):
            return False
        return isinstance(stmt.target.type, TileType) and self.grows(stmt.target, op.loops.axis)

    def grows(self, value: Value, axis: int) -> bool:
        kind = tile_type(value)
        return kind.rank == 2 and kind.shape[axis] == 1 and self.found.shapes[value][axis] != 1

    def reducible(self, value: Value) -> bool:
        return value.dtype in self.target.vector_dtypes("reduce", False)

    # --- rewriting ---
    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            super().visit_let(stmt)
        elif self.makes_grown(stmt):
            self.widen(stmt, op)
        else:
            thin = {name: self.thinned(self.value(getattr(op, name)), how) for name, how in self.grown(stmt).items()}
            if not thin:
                super().visit_let(stmt)
                return
            new = op.with_operands(self.get).replace(**thin)
            kind = placed_like(new.infer(), stmt.target.type.substitute(self.get))
            self.emit(Let(self.retype(stmt.target, kind), new, span=stmt.span))

    def thinned(self, value: Value, how: Map) -> Value:
        """The vector that `value` is by its valid shape, made once per block."""
        for scope in self.thin:
            if (value, how) in scope:
                return scope[value, how]
        op = RowMax(value, span=value.span) if how is Map.ROW else ColMax(value, span=value.span)
        made = self.let(op, f"{value.name}_thin", value.span, self.placed(op, tile_type(value)))
        self.thin[-1][value, how] = made
        return made

    def widen(self, stmt: Let, op: Op) -> None:
        """The vector, and a tile of the same valid shape that may grow."""
        kind = tile_type(stmt.target)
        assert isinstance(op.loops, Reduce)
        new = op.with_operands(self.get)
        thin = self.let(new, f"{stmt.target.name}_thin", stmt.span, placed_like(new.infer(), kind))
        create = Create(
            kind.shape, kind.dtype, kind.space, None, kind.view.valid_shape, level=Level.TILE, span=stmt.span
        )
        held = self.let(create, f"{stmt.target.name}_any", stmt.span)
        across = op.loops.axis % kind.rank == kind.rank - 1
        last = RowExpand(held, thin, span=stmt.span) if across else ColExpand(held, thin, span=stmt.span)
        self.emit(Let(self.retype(stmt.target, placed_like(last.infer(), kind)), last, span=stmt.span))

    def placed(self, op: Op, like: TileType) -> TileType:
        inferred = op.infer()
        assert isinstance(inferred, TileType) and like.space is not None
        return inferred.with_(space=like.space)
