"""An operation by its loop form, one element at a time: what is left where no instruction says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, DType
from tilewright.ir.loops import Elementwise, Index, Map, Update
from tilewright.ir.op import Kind, Level, Op, is_array
from tilewright.ir.scalar import Scalar, Shape, Value, cast, constant, constant_value, dtype_of
from tilewright.ir.types import TileType
from tilewright.ops.parts import Read, Write
from tilewright.passes.tile.expand.builder import Builder

Element = Callable[[Value, Shape], Scalar]


def by_element(op: Op, to: Builder) -> Scalar:
    """The result of `op` as loops that read and write single elements. Raises `UnsupportedError`."""
    match op.loops:
        case Elementwise() as form:
            return _computed(op, form, to)
        case Index() as form:
            return _indexed(op, form, to)
        case Update() as form:
            return _updated(op, form, to)
        case _:
            raise UnsupportedError(f"{op.qualified_name} cannot be done element by element", span=op.span)


def each(extents: Shape, out: Value, to: Builder, store: Callable[[Shape, Value], Value]) -> Value:
    """`out` after `store(index, version of out)` for every index, in row-major order."""

    def nest(index: tuple[Scalar, ...], version: Value) -> Value:
        if len(index) == len(extents):
            return store(index, version)

        def trip(i: Value, made: Value) -> tuple[Value]:
            return (nest((*index, i), made),)

        return to.loop(extents[len(index)], (version,), trip, "ij"[len(index) % 2])[0]

    return nest((), out)


def _tile(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


def _read(to: Builder, value: Value, index: Shape) -> Value:
    return to.op(Read(value, index, level=Level.TILE, span=to.span), "element")


def _write(to: Builder, out: Value, index: Shape, element: Scalar) -> Value:
    value = cast(element, out.dtype)
    return to.op(Write(out, index, value, level=Level.TILE, span=to.span), out.name)


def wide(element: Scalar) -> Scalar:
    """Narrow floats in FP32, as loop forms want them."""
    return cast(element, FP32) if dtype_of(element) in (FP16, BF16) else element


def scalar_of(given: Scalar, dtype: DType) -> Scalar:
    """A scalar operand as an element of `dtype`: a plain number takes it."""
    value = constant_value(given)
    if value is not None and dtype_of(given) is INDEX:
        return constant(value, FP32 if dtype in (FP16, BF16) else dtype)
    return wide(given)


def _computed(op: Op, form: Elementwise, to: Builder) -> Value:
    kind = op.infer()
    assert isinstance(kind, TileType)
    dtype = next((value.dtype for _, value in op.operand_items() if value.dtype is not BOOL), kind.dtype)

    def store(index: Shape, version: Value) -> Value:
        elements: list[Scalar] = []
        arrays = 0
        for field in op.fields:
            given = getattr(op, field.name)
            if given is None or field.scratch or field.kind not in (Kind.OPERAND, Kind.SCALAR):
                continue
            if not is_array(given):
                elements.append(scalar_of(given, dtype))
                continue
            how = form.maps[arrays] if arrays < len(form.maps) else Map.FULL
            arrays += 1
            elements.append(wide(_read(to, given, _mapped(index, how))))
        return _write(to, version, index, form.expr(op, *elements))

    return each(kind.valid, to.room(kind), to, store)


def _mapped(index: Sequence[Scalar], how: Map) -> Shape:
    if how is Map.ROW:
        return (*index[:-1], 0)
    return (*index[:-2], 0, index[-1]) if how is Map.COLUMN else tuple(index)


def _indexed(op: Op, form: Index, to: Builder) -> Value:
    kind = op.infer()
    assert isinstance(kind, TileType)
    source: Value = getattr(op, form.source)
    return each(
        kind.valid,
        to.room(kind),
        to,
        lambda index, out: _write(to, out, index, _read(to, source, form.map(op, *index))),
    )


def _updated(op: Op, form: Update, to: Builder) -> Value:
    source: Value = getattr(op, form.source)
    target: Value = getattr(op, form.target)
    return each(
        _tile(source).valid,
        target,
        to,
        lambda index, out: _write(to, out, form.map(op, *index), _read(to, source, index)),
    )
