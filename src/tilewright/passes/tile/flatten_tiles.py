"""Flattening: every tile has two dimensions, as every memory of the chip has.

Before:  x = pl.tile.load(a, [i, 0, 0], [1, 16, 64])           # a [8, 16, 64]
         y = pl.tile.reshape(x, [16, 64])
         v = pl.tile.load(b, [0], [64])                        # b [64]
Ensures: a tile [N] is [1, N], and leading dimensions are multiplied into rows: [B, M, N] is [B * M, N]. Tensors keep
         their dimensions. A reshape that this makes the identity is gone.
After:   x = pl.tile.load(a, [i, 0, 0], [16, 64])
         v = pl.tile.load(b, [0], [1, 64])
Several matrices that are loaded or stored at once are so one by one, at most `MAX_MATRICES`.
Refuses: what rows and columns cannot say: a part of a tile that is no run of its rows, a valid part that is no box of
         rows and columns, a number of matrices that is not constant."""

from __future__ import annotations

from itertools import product
from math import prod

from tilewright.analysis.views import Orientation, orientation, viewed
from tilewright.errors import TilewrightError, UnsupportedError
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.storage import written_operand
from tilewright.ir.types import TileType
from tilewright.ops.create import Create
from tilewright.ops.flat import flat_type
from tilewright.ops.parts import Assemble
from tilewright.ops.shape import Slice

MAX_MATRICES = 64
"""Matrices of one transfer: each is an instruction of its own."""


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
        if op.matrices():
            self._one_by_one(stmt, op, op.matrices())
            return
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

    def _one_by_one(self, stmt: Let, op: Op, lead: Shape) -> None:
        """A transfer of several matrices: they stand below one another in the tile."""
        count = prod(extent if isinstance(extent, int) else MAX_MATRICES + 1 for extent in lead)
        if count > MAX_MATRICES:
            raise UnsupportedError(
                "too many matrices are moved between DDR and the chip at once",
                required=f"a constant number, at most {MAX_MATRICES}",
                found=f"{list(lead)}",
                help="loop over the leading dimensions, and move one matrix in each trip",
            )
        moves = [op.matrix(index) for index in product(*(range(e) for e in lead if isinstance(e, int)))]
        if written_operand(op) is None:
            self._load(stmt, moves)
        else:
            self._store(stmt, op, moves)

    def _load(self, stmt: Let, moves: list[Op]) -> None:
        old = stmt.target.type
        assert isinstance(old, TileType)
        kind = flat_type(old)
        name, span = stmt.target.name, stmt.span
        valid = None if kind.valid == kind.shape else kind.valid
        room = Create(kind.shape, kind.dtype, kind.space, None, valid, level=Level.TILE, span=span)
        whole = self.let(room, name, span)
        row: Scalar = 0
        for move in moves:
            part = self.let(move.with_operands(self.get), name, span)
            whole = self.let(Assemble(whole, part, (row, 0), level=Level.TILE, span=span), name, span)
            assert isinstance(part.type, TileType)
            row = binary(BinaryKind.ADD, row, part.type.shape[0])
        self.bind(stmt.target, whole)

    def _store(self, stmt: Let, op: Op, moves: list[Op]) -> None:
        name, span = stmt.target.name, stmt.span
        ((field, tile),) = ((name, value) for name, value in op.operand_items() if isinstance(value.type, TileType))
        assert isinstance(tile.type, TileType)
        window, row = tile.type.valid[-2:], 0
        out = self.value(written_operand(op) or tile)
        for move in moves:
            part = Slice(self.value(tile), window, (row, 0), level=Level.TILE, span=span)
            fields = {field: self.let(part, tile.name, span), move.writes or field: out}
            out = self.let(move.with_operands(self.get).replace(**fields), name, span)
            row = binary(BinaryKind.ADD, row, tile.type.shape[-2])
        self.bind(stmt.target, out)


def _is_flat(value: Value) -> bool:
    return not isinstance(value.type, TileType) or value.type.rank == 2
