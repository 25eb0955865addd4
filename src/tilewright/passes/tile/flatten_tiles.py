"""Flattening: every tile has two dimensions, as every memory of the chip has.

Before:  x = pl.tile.load(a, [i, 0, 0], [1, 16, 64])           # a [8, 16, 64]
         y = pl.tile.reshape(x, [16, 64])
         v = pl.tile.load(b, [0], [64])                        # b [64]
Ensures: a tile [N] is [1, N], and leading dimensions are multiplied into rows: [B, M, N] is [B * M, N]. Tensors keep
         their dimensions. A reshape that this makes the identity is gone.
After:   x = pl.tile.load(a, [i, 0, 0], [16, 64])
         v = pl.tile.load(b, [0], [1, 64])
Refuses: what rows and columns cannot say: a load or store of several matrices at once, a part of a tile that is no
         run of its rows, a valid part that is no box of rows and columns."""

from __future__ import annotations

from tilewright.analysis.views import Orientation, orientation, viewed
from tilewright.errors import TilewrightError, UnsupportedError
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.ops.flat import flat_type


def flatten_tiles(program: Program) -> Program:
    """Requires the tile level. Linear in the size of the program. Raises `UnsupportedError`, `ValidShapeError`."""
    return program.map(_flatten)


def _flatten(function: Function) -> Function:
    return _Flattener().function(function)


class _Flattener(Rewriter):
    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op) or all(_is_flat(v) for v in (stmt.target, *(v for _, v in op.operand_items()))):
            super().visit_let(stmt)
            return
        try:
            self._flat(stmt, op)
        except TilewrightError as error:
            raise error.at(stmt.span) from None

    def _flat(self, stmt: Let, op: Op) -> None:
        flat = op.flattened(self.get)
        old = stmt.target.type
        if not isinstance(old, TileType):
            self.emit(Let(self.retype(stmt.target, flat.infer()), flat, span=stmt.span))
            return
        wanted = flat_type(old)
        kind = wanted.substitute(self.get)
        if placed_like(flat.infer(), kind) is not kind:
            raise UnsupportedError(
                f"{op.qualified_name} has no form on tiles of two dimensions",
                span=stmt.span,
                required=repr(kind),
                found=repr(flat.infer()),
                help="loop over the leading dimensions, or reshape to two first",
            )
        below = viewed(flat)
        if below is not None and below.type is kind and orientation(flat) is not Orientation.TRANSPOSED:
            self.bind(stmt.target, below)
            return
        self.emit(Let(self.retype(stmt.target, kind), flat, span=stmt.span))


def _is_flat(value: Value) -> bool:
    return not isinstance(value.type, TileType) or value.type.rank == 2
