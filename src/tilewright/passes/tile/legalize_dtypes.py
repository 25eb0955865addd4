"""Legal element types: arithmetic and casts that the target lacks are made of those that it has.

Before (910B):  y = pl.tile.add(a, b)                                   # BF16: no such instruction
After:          a_fp32 = pl.tile.cast(a, pl.FP32)
                b_fp32 = pl.tile.cast(b, pl.FP32)
                y_fp32 = pl.tile.add(a_fp32, b_fp32)
                y = pl.tile.cast(y_fp32, pl.BF16)

The result is rounded back after every operation, never kept wide for the next one. A cast becomes the shortest chain
of the target's own casts that rounds once, as the cast itself would (`analysis.casts`). Integers pass through a wider
type only where the operation chooses among its operands, so that no overflow can differ.

Refuses: element types for which no such way exists (`UnsupportedError`, with those that the target takes)."""

from __future__ import annotations

import numpy as np

from tilewright.analysis.casts import cast_chain, holds
from tilewright.errors import Span, UnsupportedError
from tilewright.ir.dtypes import BOOL, FP32, INT32, DType
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.loops import Contract, Elementwise, Reduce
from tilewright.ir.nodes import Block, Let
from tilewright.ir.op import Field, Kind, Level, Op, is_array, operand_values
from tilewright.ir.rewrite import Rewriter, placed_like
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Scalar,
    Select,
    Value,
    cast,
    constant,
    constant_value,
    dtype_of,
)  # fmt: skip
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.cast import Cast
from tilewright.ops.create import Full
from tilewright.ops.select import COMPARISONS, Cmp, Sel
from tilewright.ops.shape import Slice
from tilewright.targets import Target

NOT_EQUAL = next(code for code, (kind, _) in enumerate(COMPARISONS) if kind is BinaryKind.NE)
CHOOSING = frozenset((BinaryKind.MIN, BinaryKind.MAX))


def legalize_dtypes(program: Program, target: Target) -> Program:
    """Requires a space on every tile. Ensures that every operation takes the element types that it is given."""
    return program.map(lambda f: _Legalizer(target).function(f) if f.kind is FunctionKind.INCORE else f)


class _Legalizer(Rewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.widened: list[dict[tuple[Value, DType], Value]] = []

    def block(self, block: Block) -> Block:
        self.widened.append({})
        try:
            return super().block(block)
        finally:
            self.widened.pop()

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op) or not isinstance(stmt.target.type, TileType):
            super().visit_let(stmt)
        elif isinstance(op.loops, Contract):
            self.contraction(stmt, op, op.loops)
        elif op.converts:
            self.conversion(stmt, op)
        else:
            self.arithmetic(stmt, op)

    # --- multiplications ---
    def contraction(self, stmt: Let, op: Op, form: Contract) -> None:
        lhs, rhs = getattr(op, form.lhs).dtype, getattr(op, form.rhs).dtype
        if self.target.matmul_acc(lhs, rhs) is None:
            taken = sorted({f"{types.lhs} and {types.rhs}" for types in self.target.dtypes.matmul})
            raise UnsupportedError(
                f"{self.target.name} does not multiply {lhs} by {rhs}",
                span=stmt.span,
                required=" or ".join(taken),
                found=f"{lhs} and {rhs}",
                help="cast the operands to a type that it multiplies",
            )
        super().visit_let(stmt)

    # --- conversions ---
    def conversion(self, stmt: Let, op: Op) -> None:
        source = self.converted(op)
        if source.dtype is stmt.target.dtype:
            self.same(stmt, source)
            return
        if BOOL in (source.dtype, stmt.target.dtype) and not self.target.native_cast(source.dtype, stmt.target.dtype):
            self.truth(stmt, source)
            return
        chain = cast_chain(source.dtype, stmt.target.dtype, self.target)
        if chain is None:
            raise UnsupportedError(
                f"{self.target.name} has no way from {source.dtype} to {stmt.target.dtype} that rounds once",
                span=stmt.span,
                found=f"{op.qualified_name} of {source.name!r}",
                help="cast in two steps, so that each rounding is yours, or use another dtype",
            )
        if len(chain) == 1:
            super().visit_let(stmt)
            return
        at = source
        for step in chain[:-1]:
            name = f"{source.name}_{step.dtype.name.lower()}"
            at = self.cast(at, step.dtype, name, stmt.span, op if step.rounds else None)
        last = self.cast_op(at, stmt.target.dtype, stmt.span, op if chain[-1].rounds else None)
        self.emit(Let(stmt.target, last, span=stmt.span))

    def same(self, stmt: Let, source: Value) -> None:
        """A conversion to the dtype that there is: the tile itself, or a view of it without what its type says of the
        elements outside the valid part, which the result does not."""
        kind, made = source.type, stmt.target.type
        assert isinstance(kind, TileType) and isinstance(made, TileType)
        if kind.view.pad is made.view.pad:
            self.bind(stmt.target, source)
            return
        view = Slice(source, kind.shape, (0,) * kind.rank, kind.valid, level=Level.TILE, span=stmt.span)
        self.emit(Let(self.retype(stmt.target, placed_like(view.infer(), made)), view, span=stmt.span))

    def truth(self, stmt: Let, source: Value) -> None:
        """To a mask: a comparison with 0. From a mask: 1 where it holds, else 0, of a type that can be filled with."""
        kind = stmt.target.type
        assert isinstance(kind, TileType)
        if kind.dtype is BOOL:
            self.arithmetic(stmt, Cmp(source, constant(0, source.dtype), NOT_EQUAL, span=stmt.span))
            return
        if kind.dtype not in self.target.vector_dtypes("fill") and self.target.native_cast(INT32, kind.dtype):
            number = Value(f"{stmt.target.name}_int32", kind.with_(dtype=INT32), stmt.span)
            self.truth(Let(number, Cast(source, INT32, span=stmt.span), span=stmt.span), source)
            self.emit(Let(stmt.target, self.cast_op(self.value(number), kind.dtype, stmt.span), span=stmt.span))
            return
        one, zero = constant(1, kind.dtype), constant(0, kind.dtype)
        fill = Full(kind.shape, kind.dtype, one, kind.view.valid_shape, level=Level.TILE, span=stmt.span)
        inferred = fill.infer()
        assert isinstance(inferred, TileType)
        placed = inferred if kind.space is None else inferred.with_(space=kind.space)
        ones = Value(f"{stmt.target.name}_one", placed, stmt.span)
        self.arithmetic(Let(ones, fill, span=stmt.span), fill)
        self.arithmetic(stmt, Sel(source, ones, zero, span=stmt.span))

    def converted(self, op: Op) -> Value:
        return self.value(next(value for _, value in op.operand_items()))

    def cast_op(self, value: Value, dtype: DType, span: Span, like: Op | None = None) -> Op:
        """A cast that rounds to nearest even, or as `like` does."""
        if like is None:
            return Cast(value, dtype, span=span)
        name = next(name for name, _ in like.operand_items())
        return like.replace(**{name: value, "target_type": dtype})

    def cast(self, value: Value, dtype: DType, name: str, span: Span, like: Op | None = None) -> Value:
        op = self.cast_op(value, dtype, span, like)
        inferred, kind = op.infer(), value.type
        assert isinstance(inferred, TileType) and isinstance(kind, TileType)
        placed = inferred if kind.space is None else inferred.with_(space=kind.space, layout=kind.view.layout)
        return self.let(op, name, span, placed)

    def convert(self, value: Value, dtype: DType, span: Span) -> Value:
        """`value` as `dtype`, by as many casts as it takes; made once per block."""
        for scope in self.widened:
            if (value, dtype) in scope:
                return scope[value, dtype]
        chain = cast_chain(value.dtype, dtype, self.target)
        if chain is None:
            raise UnsupportedError(f"{self.target.name} cannot cast {value.dtype} to {dtype}", span=span)
        at = value
        for step in chain:
            at = self.cast(at, step.dtype, f"{value.name}_{step.dtype.name.lower()}", span)
        self.widened[-1][value, dtype] = at
        return at

    # --- arithmetic ---
    def arithmetic(self, stmt: Let, op: Op) -> None:
        arrays = {name: v for name, v in op.operand_items() if not op.field(name).scratch and v.dtype is not BOOL}
        narrow = {value.dtype for value in arrays.values()} if arrays else {stmt.target.dtype}
        kind = op.work().kind
        taken = self.target.vector_dtypes(kind, op.is_scalar_form)
        if narrow <= taken or not arrays or len(narrow) > 1 or narrow == {BOOL}:
            if not narrow <= taken and narrow != {BOOL}:
                raise self.unsupported(stmt, op, narrow, taken)
            super().visit_let(stmt if op is stmt.value else Let(stmt.target, op, span=stmt.span))
            return
        (dtype,) = narrow
        wide = self.wide_type(op, dtype, taken)
        if wide is None or op.writes is not None:
            raise self.unsupported(stmt, op, narrow, taken)
        fields: dict[str, object] = {name: self.convert(self.value(v), wide, stmt.span) for name, v in arrays.items()}
        for field, value in operand_values(op):
            if is_number(field, value, dtype):
                fields[field.name] = widen_scalar(self.scalar(value), dtype, wide)
        new = op.with_operands(self.get).replace(**fields)
        inferred, old = new.infer(), stmt.target.type
        assert isinstance(inferred, TileType) and isinstance(old, TileType)
        placed = inferred if old.space is None else inferred.with_(space=old.space, layout=old.view.layout)
        if inferred.dtype is old.dtype:
            self.emit(Let(self.retype(stmt.target, placed), new, span=stmt.span))
            return
        result = self.let(new, f"{stmt.target.name}_{wide.name.lower()}", stmt.span, placed)
        self.round_back(stmt, result)

    def round_back(self, stmt: Let, wide: Value) -> None:
        """The result in the dtype that the program says."""
        chain = cast_chain(wide.dtype, stmt.target.dtype, self.target)
        assert chain is not None  # `wide_type` asked for the way back
        at = wide
        for step in chain[:-1]:
            at = self.cast(at, step.dtype, f"{stmt.target.name}_{step.dtype.name.lower()}", stmt.span)
        self.emit(Let(stmt.target, Cast(at, stmt.target.dtype, span=stmt.span), span=stmt.span))

    def wide_type(self, op: Op, dtype: DType, taken: frozenset[DType]) -> DType | None:
        """The type to compute in: FP32 for floats, in which narrow ones are computed anyway; for integers one that
        holds them, where the operation only chooses among its operands."""
        if dtype.is_float:
            options = [FP32] if FP32 in taken and holds(FP32, dtype) else []
        else:
            holding = sorted((t for t in taken if holds(t, dtype)), key=lambda t: (t.bits, t.name))
            options = holding if chooses(op, dtype) else []
        there_and_back = (
            wide for wide in options
            if cast_chain(dtype, wide, self.target) is not None and cast_chain(wide, dtype, self.target) is not None
        )  # fmt: skip
        return next(there_and_back, None)

    def unsupported(self, stmt: Let, op: Op, narrow: set[DType], taken: frozenset[DType]) -> UnsupportedError:
        found = " and ".join(sorted(dtype.name for dtype in narrow))
        return UnsupportedError(
            f"{self.target.name} has no {op.qualified_name} for {found}",
            span=stmt.span,
            required=" or ".join(sorted(dtype.name for dtype in taken)),
            found=found,
            help="cast the operands to one of these first",
        )


def is_number(field: Field, value: Scalar, dtype: DType) -> bool:
    """Whether the operand is one number of the elements' type, which becomes the wider one with them."""
    if field.kind is Kind.SCALAR:
        return not isinstance(value, int) and dtype_of(value) is dtype
    return field.kind is Kind.OPERAND and field.scalar and not is_array(value)


def widen_scalar(scalar: Scalar, narrow: DType, wide: DType) -> Scalar:
    """The scalar operand as `wide`. A constant is rounded to `narrow` first: that is the number it stands for."""
    value = constant_value(scalar)
    if value is None:
        return cast(scalar, wide)
    if dtype_of(scalar) is not narrow and not isinstance(scalar, int):
        return scalar
    rounded = np.asarray(value).astype(np.dtype(narrow.numpy))
    return constant(float(rounded) if narrow.is_float else int(rounded), wide)


def chooses(op: Op, dtype: DType) -> bool:
    """Whether every element of the result is one of the operands' elements, or the outcome of a comparison."""
    form = op.loops
    if isinstance(form, Reduce):
        return form.combine in CHOOSING
    if not isinstance(form, Elementwise):
        return False
    elements: list[Scalar] = []
    for field, value in operand_values(op):
        if value is not None and not field.scratch and field.kind in (Kind.OPERAND, Kind.SCALAR):
            elements.append(Value(field.name, ScalarType(value.dtype if is_array(value) else dtype)))
    return _only_chooses(form.expr(op, *elements))


def _only_chooses(scalar: Scalar) -> bool:
    if isinstance(scalar, Binary):
        if not (scalar.kind in CHOOSING or scalar.kind.is_comparison):
            return False
        return all(map(_only_chooses, scalar.children()))
    if isinstance(scalar, Select):
        return all(map(_only_chooses, scalar.children()))
    return isinstance(scalar, int) or not scalar.children()
