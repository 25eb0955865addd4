"""Loop forms as loops: elementwise, copies by an index map, updates, and filling.

Each function computes valid elements only, in any order: forms whose elements depend on each other do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.analysis.index_maps import AffineMap, affine_map, counters
from tilewright.codegen.native.arithmetic import Arithmetic
from tilewright.codegen.native.builder import Index
from tilewright.codegen.native.elements import Lanes, register_type
from tilewright.codegen.native.nest import Cursor, Walk, nest
from tilewright.codegen.native.scope import Place, Scope, window
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL, INDEX, UINT8, UINT16, UINT32, UINT64, widened
from tilewright.ir.loops import COLUMN, ROW, Elementwise, Map, Update
from tilewright.ir.loops import Index as IndexForm
from tilewright.ir.op import Kind, Op, is_array
from tilewright.ir.scalar import BinaryKind, Scalar, Value, dtype_of
from tilewright.ir.types import ScalarType

Extents = tuple[Index, ...]


def walk_of(place: Place, reads: bool = True) -> Walk:
    return Walk(place.pointer, place.dtype, place.strides, reads)


def mapped(place: Place, how: Map) -> Walk:
    """A walk in which the dimension that the map leaves out does not move."""
    strides = list(place.strides)
    if how is ROW:
        strides[-1] = 0
    elif how is COLUMN:
        strides[-2] = 0
    return Walk(place.pointer, place.dtype, tuple(strides))


def elementwise(scope: Scope, op: Op, form: Elementwise, out: Place, extents: Extents) -> None:
    """``out[i] = expr(elements)``, rounded to the dtype of `out` once."""
    elements: list[Scalar] = []
    walks: list[Walk] = []
    streamed: list[Value] = []
    fixed: dict[Value, str] = {}
    # A plain number takes the dtype of the elements that are computed with, which a mask is not.
    dtype = next((value.dtype for _, value in op.operand_items() if value.dtype is not BOOL), out.dtype)
    for field in op.fields:
        given = getattr(op, field.name)
        if given is None or field.scratch or field.kind not in (Kind.OPERAND, Kind.SCALAR):
            continue
        if is_array(given):
            how = form.maps[len(walks)] if len(walks) < len(form.maps) else Map.FULL
            walks.append(mapped(scope.place(given), how))
            streamed.append(Value(field.name, ScalarType(widened(given.dtype))))
            elements.append(streamed[-1])
        else:
            own = dtype if dtype_of(given) is INDEX else dtype_of(given)
            fixed[Value(field.name, ScalarType(widened(own)))] = scope.element(given, own)
            elements.append(next(reversed(fixed)))
    expression = form.expr(op, *elements)

    def body(at: Lanes, cursors: Sequence[Cursor]) -> None:
        loaded: dict[Value, str] = {}

        def lookup(value: Value) -> str:
            if value in loaded:
                return loaded[value]
            if value in streamed:
                loaded[value] = cursors[streamed.index(value)].load(at)
            else:
                single = fixed[value] if value in fixed else scope.register(value)
                loaded[value] = at.broadcast(register_type(value.dtype), single)
            return loaded[value]

        compute = Arithmetic(at, lookup)
        result = compute.cast(compute(expression), dtype_of(expression), widened(out.dtype))
        at.store(result, cursors[-1].pointer, out.dtype)

    used = {value for value in streamed if _mentions(expression, value)}
    walks = [Walk(w.pointer, w.dtype, w.strides, v in used) for w, v in zip(walks, streamed, strict=True)]
    nest(scope.b, scope.processor, extents, [*walks, walk_of(out, False)], body)


def _mentions(expression: Scalar, value: Value) -> bool:
    if isinstance(expression, int):
        return False
    return expression is value or any(_mentions(child, value) for child in expression.children())


_BITS = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}


def copy(scope: Scope, source: Place, out: Place, extents: Extents, combine: BinaryKind | None = None) -> None:
    """``out[ix] = source[ix]``, converted to the dtype of `out`; with `combine`, on top of what is there."""
    if source.dtype is out.dtype and combine is None:
        bits = _BITS[source.dtype.nbytes]  # moved as bytes: no NaN changes, no denormal number counts as zero
        source, out = replace(source, dtype=bits), replace(out, dtype=bits)

    def body(at: Lanes, cursors: Sequence[Cursor]) -> None:
        compute = Arithmetic(at, scope.register)
        value = compute.cast(cursors[0].load(at), source.dtype, out.dtype)
        if combine is not None:
            value = compute.combine(combine, cursors[1].load(at), value, out.dtype)
        at.store(value, cursors[1].pointer, out.dtype)

    nest(scope.b, scope.processor, extents, [walk_of(source), walk_of(out, combine is not None)], body)


def fill(scope: Scope, out: Place, extents: Extents, value: str) -> None:
    """``out[ix] = value``, a register or constant of one lane."""
    element = register_type(out.dtype)

    def body(at: Lanes, cursors: Sequence[Cursor]) -> None:
        at.store(at.broadcast(element, value), cursors[0].pointer, out.dtype)

    nest(scope.b, scope.processor, extents, [walk_of(out, False)], body)


def margins(scope: Scope, out: Place, inner: Extents, outer: Extents, value: str) -> None:
    """Fill what lies in `outer` and not in `inner`, one slab per dimension."""
    for axis, (extent, limit) in enumerate(zip(inner, outer, strict=True)):
        if extent == limit:
            continue
        offsets = [extent if other == axis else 0 for other in range(len(outer))]
        slab = tuple(
            inner[other] if other < axis else scope.b.sub(limit, extent) if other == axis else outer[other]
            for other in range(len(outer))
        )
        fill(scope, replace(out, pointer=scope.at(out, offsets)), slab, value)


def index(scope: Scope, op: Op, form: IndexForm, out: Place, extents: Extents) -> None:
    """``out[ix] = source[map(ix)]``."""
    source = scope.place(getattr(op, form.source))
    found = affine_map(op, form.map, len(extents))
    if found is not None:
        copy(scope, window(scope, found, source, extents), out, extents)
        return
    ix = counters(len(extents))

    def element() -> None:
        read = tuple(scope.scalar(expression) for expression in form.map(op, *ix))
        single = scope.single
        value = single.load(scope.at(source, read), source.dtype)
        value = Arithmetic(single, scope.register).cast(value, source.dtype, out.dtype)
        single.store(value, scope.at(out, [scope.register(i) for i in ix]), out.dtype)

    _each(scope, ix, extents, element)


def _each(scope: Scope, ix: tuple[Value, ...], extents: Extents, element: Callable[[], None]) -> None:
    """Plain loops with the indices at hand, for maps that are no sums."""
    if not ix:
        element()
        return

    def trip(i: str) -> None:
        scope.registers[ix[0]] = i
        _each(scope, ix[1:], extents[1:], element)

    scope.b.loop(0, extents[0], 1, trip)


def update(scope: Scope, op: Op, form: Update, target: Place, extents: Extents) -> None:
    """``target[map(ix)] = source[ix]``; added to what is there where the operation also reads its target."""
    accesses = [access for access in op.accesses() if access.field == form.target]
    combine = BinaryKind.ADD if any(not access.writes for access in accesses) else None
    given = getattr(op, form.source)
    if not is_array(given):
        place = scope.at(target, scope.indices(form.map(op)))
        scope.single.store(scope.element(given, target.dtype), place, target.dtype)
        return
    source = scope.place(given)
    found = affine_map(op, form.map, len(extents))
    written = next((access for access in accesses if access.writes), None)
    region = None if written is None else scope.indices(written.extents)
    steps = found is not None and any(step not in (0, 1) for row in found.coefficients for step in row)
    if found is not None and (region is None or steps or _covers(found, extents, region)):
        copy(scope, source, window(scope, found, target, extents), extents, combine)
        return
    if region is None or written is None:
        raise UnsupportedError(f"native code cannot follow the index map of {op.qualified_name}", span=op.span)
    part = replace(target, pointer=scope.at(target, scope.indices(written.offsets)))
    _deal(scope, source, part, extents, region, combine)


def _covers(found: AffineMap, extents: Extents, region: Extents) -> bool:
    """Whether the map sends each dimension of the source to one of the region with the same extent."""
    reached: list[int] = []
    for axis, extent in enumerate(extents):
        if extent == 1:
            continue
        hits = [d for d, row in enumerate(found.coefficients) if row[axis]]
        if len(hits) != 1 or region[hits[0]] != extent:
            return False
        reached += hits
    return all(extent == 1 or d in reached for d, extent in enumerate(region))


def _deal(
    scope: Scope, source: Place, window: Place, extents: Extents, region: Extents, combine: BinaryKind | None
) -> None:
    """The elements of the source, in row-major order, fill the region of the target in row-major order."""
    dims = common_refinement(extents, region)
    if dims is None:
        raise UnsupportedError(
            f"native code cannot deal a tile of {list(extents)} out to a region of {list(region)}",
            help="reshape the tile to the region first",
        )
    b = scope.b
    shape = tuple(extent for extent, _, _ in dims)
    here = tuple(b.mul(source.strides[axis], factor) for _, (axis, factor), _ in dims)
    there = tuple(b.mul(window.strides[axis], factor) for _, _, (axis, factor) in dims)
    copy(scope, replace(source, shape=shape, strides=here), replace(window, shape=shape, strides=there), shape, combine)


Part = tuple[int, int]
"""A dimension, and how many of its elements one step moves."""


def common_refinement(a: Extents, b: Extents) -> list[tuple[Index, Part, Part]] | None:
    """Dimensions of which both row-major shapes are made: (extent, part of `a`, part of `b`), outermost first. None
    where there are none, or where they depend on extents that are not known."""
    left = [(axis, extent) for axis, extent in enumerate(a) if extent != 1]
    right = [(axis, extent) for axis, extent in enumerate(b) if extent != 1]
    dims: list[tuple[Index, Part, Part]] = []
    factors = [1, 1]
    while left and right:
        (i, m), (j, n) = left.pop(), right.pop()
        part = ((i, factors[0]), (j, factors[1]))
        if m == n:
            dims.append((m, *part))
            factors = [1, 1]
            continue
        if not (isinstance(m, int) and isinstance(n, int)):
            return None
        small, large = min(m, n), max(m, n)
        if small == 0 or large % small:
            return None
        dims.append((small, *part))
        (left if m == large else right).append((i if m == large else j, large // small))
        factors = [factors[0] * small, 1] if m == large else [1, factors[1] * small]
    return None if left or right else dims[::-1]
