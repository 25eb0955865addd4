"""Tuples that a loop carries: each element is carried under a name of its own, and the tuple is made of them again.

Before:  pair = (x, y)                    After:  for i, (x_1, y_1) in pl.range(3, init_values=(x, y)):
         for i in pl.range(3):                        x_2, y_2 = pl.yield_(y_1, x_1)
             pair = (pair[1], pair[0])

The names cannot be written in a program: ``pair.0`` is the first element of `pair`, ``pair.0.1`` one of a tuple inside.
Refuses a tuple that has another number of elements after a trip, or something in it that no loop carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from tilewright.errors import LanguageError, Span
from tilewright.frontend.bindings import MISSING, as_scalar, describe
from tilewright.frontend.context import Context
from tilewright.frontend.kernels import as_one
from tilewright.ir.op import is_array

Names = str | tuple["Names", ...]
"""The name of an element, or those of the elements of a tuple."""
Tuples = dict[str, object]
"""For each name that stands for a tuple, its `Names`."""


def taken_apart(context: Context, names: Sequence[str]) -> Tuples:
    """Those of `names` that stand for tuples of what a loop carries, each element bound to a name of its own."""
    found: Tuples = {}
    for name in names:
        binding = as_one(context.scope.get(name))
        if isinstance(binding, tuple) and binding and _is_carried(cast("tuple[object, ...]", binding)):
            found[name] = _bound(context, name, cast("tuple[object, ...]", binding))
    return found


def _is_carried(binding: object) -> bool:
    if isinstance(binding, tuple):
        return all(map(_is_carried, cast("tuple[object, ...]", binding)))
    return is_array(binding) or as_scalar(binding) is not None


def _bound(context: Context, name: str, binding: object) -> Names:
    if isinstance(binding, tuple):
        items = cast("tuple[object, ...]", binding)
        return tuple(_bound(context, f"{name}.{i}", as_one(item)) for i, item in enumerate(items))
    context.scope.set(name, binding)
    return name


def leaves(tuples: Tuples) -> Iterator[str]:
    """The names of the elements."""
    for names in tuples.values():
        yield from _leaves(cast("Names", names))


def _leaves(names: Names) -> Iterator[str]:
    if isinstance(names, str):
        yield names
        return
    for item in names:
        yield from _leaves(item)


def gather(context: Context, tuples: Tuples) -> None:
    """Bind each tuple to what its elements' names stand for now."""
    for name, names in tuples.items():
        context.scope.set(name, _gathered(context, cast("Names", names)))


def _gathered(context: Context, names: Names) -> object:
    return context.scope.get(names) if isinstance(names, str) else tuple(_gathered(context, item) for item in names)


def forget(context: Context, tuples: Tuples) -> None:
    """The names of the elements have no value any more."""
    for name in leaves(tuples):
        context.scope.set(name, MISSING)


def spread(context: Context, tuples: Tuples, span: Span) -> None:
    """Bind the names of the elements to those of the tuple that a trip leaves."""
    for name, names in tuples.items():
        _spread(context, name, cast("Names", names), context.scope.get(name), span)


def _spread(context: Context, name: str, names: Names, binding: object, span: Span) -> None:
    found = as_one(binding)
    if isinstance(names, str):
        context.scope.set(names, found)
        return
    if not isinstance(found, tuple) or len(cast("tuple[object, ...]", found)) != len(names):
        raise LanguageError(
            f"{name!r} is another kind of thing after a trip of the loop",
            span=span,
            required=f"a tuple of {len(names)} elements, as before the loop",
            found=describe(binding),
            help="give it as many elements in each trip, or use another name",
        )
    for inner, item in zip(names, cast("tuple[object, ...]", found), strict=True):
        _spread(context, name, inner, item, span)
