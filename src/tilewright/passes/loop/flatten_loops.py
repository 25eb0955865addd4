"""Two loops over arrays without gaps as one.

    for i in serial(0, 64):                       for k in serial(0, 768):
        for j in serial(0, 12):                       y[k] = x[k] + 1
            y[i, j] = x[i, j] + 1

Rows of 12 elements leave 4 of each row over in vectors of 8; the 768 elements together leave none. The caller says
which buffers have no gaps between their rows: that is known when they have their places.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from tilewright.analysis.loop_accesses import accesses_in
from tilewright.ir.buffers import BufferType, Load, buffer_type
from tilewright.ir.dtypes import INDEX
from tilewright.ir.loop_level import Allocate, Loop, LoopFunction, LoopKind, Store
from tilewright.ir.nodes import Stmt
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType

Flat = dict[Value, Value]
"""Each buffer, and the same with one dimension."""


def flatten_loops(function: LoopFunction, dense: Collection[Value]) -> tuple[LoopFunction, Flat]:
    """The function as one loop, and the new parameters by the old ones; as it is where it is more than a nest of two
    loops over whole rows of `dense` buffers, element by element."""
    nest = _nest(function)
    if nest is None:
        return function, {}
    outer, inner, extents = nest
    private = {stmt.buffer for stmt in inner.body if isinstance(stmt, Allocate)}
    touched = [access for access in accesses_in(inner) if access.buffer not in private]
    for access in touched:
        whole = buffer_type(access.buffer).shape == extents and access.indices == (outer.iv, inner.iv)
        if not whole or access.buffer not in dense:
            return function, {}
    flat: Flat = {}
    for access in touched:
        kind = BufferType((prod(extents),), access.buffer.dtype)
        flat.setdefault(access.buffer, Value(access.buffer.name, kind))
    k = Value("k", ScalarType(INDEX))
    body = tuple(_one_dimension(stmt, flat, k) for stmt in inner.body)
    loop = Loop(k, 0, prod(extents), 1, body, span=outer.span)
    params = tuple(flat.get(param, param) for param in function.params)
    return LoopFunction(function.name, params, (loop,), function.span), flat


def _nest(function: LoopFunction) -> tuple[Loop, Loop, tuple[int, int]] | None:
    """The two loops that the function is, from 0 in steps of 1 to known ends."""
    outer = function.body[0] if len(function.body) == 1 else None
    inner = outer.body[0] if isinstance(outer, Loop) and len(outer.body) == 1 else None
    if not isinstance(outer, Loop) or not isinstance(inner, Loop):
        return None
    for loop in (outer, inner):
        if (loop.start, loop.step, loop.kind) != (0, 1, LoopKind.SERIAL):
            return None
    if not all(isinstance(stmt, (Store, Allocate)) for stmt in inner.body):
        return None
    if not isinstance(outer.stop, int) or not isinstance(inner.stop, int):
        return None
    return outer, inner, (outer.stop, inner.stop)


def _one_dimension(stmt: Stmt, flat: Flat, k: Value) -> Stmt:
    if not isinstance(stmt, Store):
        return stmt
    value = _reading(stmt.value, flat, k)
    if stmt.buffer in flat:
        return Store(flat[stmt.buffer], (k,), value, span=stmt.span)
    return stmt.replace(value=value)


def _reading(scalar: Scalar, flat: Flat, k: Value) -> Scalar:
    if isinstance(scalar, Load):
        return Load(flat[scalar.buffer], (k,)) if scalar.buffer in flat else scalar
    if isinstance(scalar, (int, Value)) or not scalar.children():
        return scalar
    return scalar.with_children(tuple(_reading(child, flat, k) for child in scalar.children()))
