"""Operations without a loop form, by class. Each function emits the valid part of the result into `out`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.codegen.native.builder import Index
from tilewright.codegen.native.elements import constant_text
from tilewright.codegen.native.forms import copy, fill, margins
from tilewright.codegen.native.scope import Place, Scope
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import widened
from tilewright.ir.op import Op
from tilewright.ops import Create, Read, Write
from tilewright.ops.collective import NEEDS_SITES, AllReduce, Recv
from tilewright.ops.common import meaning_of
from tilewright.ops.pad import Fillpad, FillpadExpand, PadOp

ArrayEmitter = Callable[[Scope, Any, Place, tuple[Index, ...]], None]
ScalarEmitter = Callable[[Scope, Any], str]

_ARRAYS: dict[type[Op], ArrayEmitter] = {}
_SCALARS: dict[type[Op], ScalarEmitter] = {}


def register(op: type[Op]) -> Callable[[ArrayEmitter], ArrayEmitter]:
    """Make the decorated function the code of `op`: ``emit(scope, op, out, valid extents of the result)``."""

    def add(function: ArrayEmitter) -> ArrayEmitter:
        _ARRAYS[op] = function
        return function

    return add


def supported(op: type[Op]) -> bool:
    """Whether there is code for the class."""
    return op in _ARRAYS or op in _SCALARS


def array_emitter(op: Op) -> ArrayEmitter:
    found = _ARRAYS.get(type(op))
    if found is None:
        raise UnsupportedError(
            f"native code has no form of {op.qualified_name}",
            span=op.span,
            help="run it in the interpreter, or write it with other operations",
        )
    return found


def scalar_emitter(op: Op) -> ScalarEmitter:
    found = _SCALARS.get(type(op))
    if found is None:
        raise UnsupportedError(f"native code has no form of {op.qualified_name}", span=op.span)
    return found


@register(Create)
def _create(scope: Scope, op: Create, out: Place, extents: tuple[Index, ...]) -> None:
    if op.init_value is not None:
        fill(scope, out, extents, scope.element(op.init_value, out.dtype))


@register(Write)
def _write(scope: Scope, op: Write, out: Place, extents: tuple[Index, ...]) -> None:
    where = scope.indices(op.indices)
    scope.single.store(scope.element(op.value, out.dtype), scope.at(out, where), out.dtype)


def _pad(scope: Scope, op: PadOp, out: Place, extents: tuple[Index, ...]) -> None:
    source = scope.place(op.tile)
    valid = scope.indices(meaning_of(op.tile.type))
    inner = tuple(scope.b.minimum(extent, limit) for extent, limit in zip(valid, extents, strict=True))
    copy(scope, source, out, inner)
    margins(scope, out, inner, extents, constant_text(op.value(), widened(out.dtype)))


register(Fillpad)(_pad)
register(FillpadExpand)(_pad)


def _no_sites(scope: Scope, op: Op, out: Place, extents: tuple[Index, ...]) -> None:
    raise UnsupportedError(f"native code has no form of {op.qualified_name}: {NEEDS_SITES}", span=op.span)


register(AllReduce)(_no_sites)
register(Recv)(_no_sites)


def _read(scope: Scope, op: Read) -> str:
    place = scope.place(op.tile)
    return scope.single.load(scope.at(place, scope.indices(op.indices)), place.dtype)


_SCALARS[Read] = _read
