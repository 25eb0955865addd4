"""Scratch tiles: operands that instructions want and users leave out are made before addresses are planned.

Before (910B):  s = pl.tile.row_sum(x)
After:          s_tmp_tile = pl.tile.create([64, 64], pl.FP32, target_memory=pl.Mem.Vec)
                s = pl.tile.row_sum(x, tmp_tile=s_tmp_tile)

Which operands, and of what type, the operation says (`Op.scratch`). Machines that are not programmed in instructions
of that kind need none, and the program stays itself.

Refuses: nothing."""

from __future__ import annotations

from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.types import TileType
from tilewright.ops.create import Create
from tilewright.targets import Target


def materialize_scratch(program: Program, target: Target) -> Program:
    """Requires legal layouts. Ensures that no operation lacks a scratch operand that `target` wants."""
    if target.pto_arch is None:
        return program
    return program.map(lambda f: _Materializer(target).function(f) if f.kind is FunctionKind.INCORE else f)


class _Materializer(Rewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        missing: dict[str, TileType] = {}
        if isinstance(op, Op) and op.level is Level.TILE:
            missing = {n: t for n, t in op.scratch().items() if getattr(op, n) is None}
        if not isinstance(op, Op) or not missing:
            super().visit_let(stmt)
            return
        made = {}
        for name, kind in missing.items():
            assert kind.space is not None
            shape = self.target.physical_shape(kind.space, kind.static_shape, kind.dtype)
            create = Create(shape, kind.dtype, target_memory=kind.space, level=Level.TILE, span=stmt.span)
            made[name] = self.let(create, f"{stmt.target.name}_{name}", stmt.span)
        new = op.with_operands(self.get).replace(**made)
        self.emit(Let(stmt.target, new, span=stmt.span))
