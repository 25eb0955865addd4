"""What a program must satisfy on a target, asked at the borders between levels. `ir.verify` asks the rest.

Spaces (`check_spaces`: after `legalize_moves`)
  - Every tile has a space, which the target has. (Whether all tiles fit is for the planner of addresses to say.)
  - Every operand is in a space from which its operation reads.
  - Every move, load, store, extract and assembly goes along an edge of the target's graph, for its element types.
Everything (`check_legal`: before addresses are planned)
  - Element types are ones that the target's instructions take; casts are single instructions.
  - Physical shapes are whole boxes of the tile's layout.

A violation is a fault of a pass, not of a user: users' mistakes are refused earlier, by the pass that meets them."""

from __future__ import annotations

from tilewright.analysis.footprint import physical
from tilewright.analysis.spaces import (
    DDR,
    accepts,
    inherited_field,
    is_transfer,
    read_tensor,
    stores_tile,
    tile_operands,
)  # fmt: skip
from tilewright.errors import Span, VerifyError
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target


def check_legal(program: Program, target: Target) -> None:
    """Raises `VerifyError` unless everything above holds."""
    _check(program, target, everything=True)


def check_spaces(program: Program, target: Target) -> None:
    """Raises `VerifyError` unless what stands above under spaces holds."""
    _check(program, target, everything=False)


def _check(program: Program, target: Target, *, everything: bool) -> None:
    for function in program.functions:
        if function.kind is not FunctionKind.INCORE:
            continue
        checker = _Checker(target)
        for stmt in function.walk():
            for value in (*stmt.block_args(), *stmt.defs()):
                if isinstance(value.type, TileType):
                    checker.tile(value, value.type, stmt.span, boxes=everything)
            if isinstance(stmt, Let) and isinstance(stmt.value, Op):
                checker.operands(stmt.value, stmt.target, stmt.span)
                checker.paths(stmt.value, stmt.target, stmt.span)
                if everything:
                    checker.dtypes(stmt.value, stmt.target, stmt.span)


class _Checker:
    def __init__(self, target: Target) -> None:
        self.target = target

    def tile(self, value: Value, kind: TileType, span: Span, *, boxes: bool) -> None:
        if kind.space is None:
            raise VerifyError(f"{value.name!r} has no memory space", span=span, found=repr(kind))
        self.target.memory(kind.space)
        if boxes and physical(kind, self.target) != kind.static_shape:
            raise VerifyError(
                f"{value.name!r} is not made of whole boxes of its layout",
                span=span,
                required=str(list(physical(kind, self.target))),
                found=repr(kind),
            )

    def operands(self, op: Op, made: Value, span: Span) -> None:
        for name, value in tile_operands(op):
            space, kind = _space(value), value.type
            assert isinstance(kind, TileType)
            if not accepts(op, name, kind, self.target):
                raise VerifyError(
                    f"{op.qualified_name} does not read {name} from {space.value}",
                    span=span,
                    required=" or ".join(s.value for s in op.field(name).spaces),
                    found=f"{value.name!r} in {space.value}",
                )

    def paths(self, op: Op, made: Value, span: Span) -> None:
        stored = stores_tile(op)
        if stored is not None:
            tile: Value = getattr(op, stored)
            self.edge(op, _space(tile), DDR, (tile.dtype, made.dtype), span)
        elif not isinstance(made.type, TileType):
            return
        elif read_tensor(op) is not None:
            self.edge(op, DDR, _space(made), (made.dtype, made.dtype), span)
        elif is_transfer(op):
            source = tile_operands(op)[0][1]
            self.edge(op, _space(source), _space(made), (source.dtype, made.dtype), span)
        elif inherited_field(op) is not None and op.view_of is None:
            followed = inherited_field(op)
            for name, source in tile_operands(op):
                if name != followed and not op.field(name).spaces:
                    self.edge(op, _space(source), _space(made), (source.dtype, made.dtype), span)

    def edge(self, op: Op, src: MemorySpace, dst: MemorySpace, dtypes: tuple[DType, DType], span: Span) -> None:
        edge = self.target.edge(src, dst)
        if edge is not None and edge.carries(*dtypes):
            return
        change = "" if dtypes[0] is dtypes[1] else f" -> {dtypes[1]}"
        raise VerifyError(
            f"{op.qualified_name} goes from {src.value} to {dst.value} for {dtypes[0]}{change}, which is no edge",
            span=span,
            required="an edge of the target",
            found=self.target.edges_text(),
        )

    def dtypes(self, op: Op, made: Value, span: Span) -> None:
        form = op.loops
        if not isinstance(made.type, TileType):
            return
        arrays = [v for n, v in op.operand_items() if not op.field(n).scratch and not isinstance(v.type, TensorType)]
        if isinstance(form, Contract):
            pair: tuple[DType, DType] = (getattr(op, form.lhs).dtype, getattr(op, form.rhs).dtype)
            legal = self.target.matmul_acc(*pair) is made.dtype
        elif op.converts:
            legal = self.target.native_cast(arrays[0].dtype, made.dtype)
        else:
            used = {v.dtype for v in arrays} or {made.dtype}
            legal = used - {BOOL} <= self.target.vector_dtypes(op.work().kind, op.is_scalar_form)
        if not legal:
            raise VerifyError(
                f"{self.target.name} has no {op.qualified_name} for these element types",
                span=span,
                found=", ".join(repr(value.type) for value in (*arrays, made)),
            )


def _space(value: Value) -> MemorySpace:
    assert isinstance(value.type, TileType)
    if value.type.space is None:
        raise VerifyError(f"{value.name!r} has no memory space", found=repr(value.type))
    return value.type.space
