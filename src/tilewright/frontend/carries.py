"""What a loop carries, one value at a time: what a trip hands to the next, and what turns out to stay the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from tilewright.errors import DTypeError, LanguageError, Span
from tilewright.frontend.bindings import Undefined, as_scalar, describe
from tilewright.frontend.context import Context, PendingYield
from tilewright.frontend.kernels import as_one
from tilewright.frontend.scope import is_hidden
from tilewright.ir.nodes import Block, LoopKind, Yield
from tilewright.ir.op import is_array
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import Scalar, Value, dtype_of
from tilewright.ir.types import TensorType, Type
from tilewright.ir.verify import same_type


@dataclass(slots=True)
class Carried:
    """One value that a loop carries: the names that stand for it, where it starts, and its value inside."""

    names: list[str]
    init: Scalar
    arg: Value
    explicit: bool = False
    written: bool = False
    """it is a tensor in DDR that the body writes"""


def yielded(
    context: Context, carried: list[Carried], pending: PendingYield | None, span: Span
) -> tuple[list[Scalar], list[str], list[Type | None]]:
    """What a trip hands to the next, per carried value, and the names and types of the results."""
    explicit = [item for item in carried if item.explicit]
    given = pending or _reassigned(context, explicit, span)
    if len(given.values) != len(explicit):
        raise LanguageError(
            "a loop with init_values yields one value for each of them",
            span=given.span,
            required=f"{len(explicit)}: " + ", ".join(item.names[0] for item in explicit),
            found=str(len(given.values)),
            help="end the body with x = pl.yield_(...), or carry by re-assignment without init_values",
        )
    yields: list[Scalar] = []
    names: list[str] = []
    types: list[Type | None] = []
    handed = iter(zip(given.values, given.names, given.types, strict=True))
    for item in carried:
        value, name, type = next(handed) if item.explicit else (_rebound(context, item, span), item.arg.name, None)
        check_carried(item.names[0], item.arg.type, value, given.span if item.explicit else span)
        yields.append(value)
        names.append(name)
        types.append(type)
    return yields, names, types


def _rebound(context: Context, item: Carried, span: Span) -> Scalar:
    """What a trip leaves under the names of a value that is carried by re-assignment."""
    after = {id(context.scope.get(name)): context.scope.get(name) for name in item.names}
    binding = as_one(context.scope.get(item.names[0]))
    if len(after) > 1:
        raise LanguageError(
            f"{' and '.join(repr(n) for n in item.names if not is_hidden(n))} are one tensor before the loop "
            "and two after a trip",
            span=span,
            help="use another name for the second tensor",
        )
    value = cast("Scalar", binding) if is_array(binding) else as_scalar(binding, _number_dtype(binding, item))
    if value is None or isinstance(binding, Undefined):
        raise LanguageError(
            f"{item.names[0]!r} is carried by the loop, and a trip leaves it without a value",
            span=span,
            found=describe(binding),
            help="give it a value on every path of the body",
        )
    return value


def _reassigned(context: Context, explicit: list[Carried], span: Span) -> PendingYield:
    """What the names of the carried values stand for at the end of a trip that hands nothing on by `pl.yield_`."""
    names = [item.names[0] for item in explicit]
    found = [as_one(context.scope.get(name)) for name in names]
    values = [
        cast("Scalar", v) if is_array(v) else as_scalar(v, _number_dtype(v, i))
        for v, i in zip(found, explicit, strict=True)
    ]
    changed = any(value is not item.arg for value, item in zip(values, explicit, strict=True))
    if not changed or any(value is None for value in values):
        return PendingYield([], [], [], span)
    return PendingYield(names, cast("list[Scalar]", values), [None] * len(names), span)


def _number_dtype(binding: object, item: Carried) -> Any:
    """A number that a trip leaves in a carried float is a float of its dtype."""
    dtype = dtype_of(item.arg)
    fits = isinstance(binding, int | float) and not isinstance(binding, bool)
    return dtype if fits and (dtype.is_float or isinstance(binding, int)) and dtype.kind != "bool" else None


def check_carried(name: str, required: Type, value: Scalar, span: Span) -> None:
    found = type_of(value)
    if same_type(required, found):
        return
    at = value.span if isinstance(value, Value) and value.span.line else span
    raise DTypeError(
        f"{name!r} changes its type from one trip of the loop to the next",
        span=at,
        required=f"{required!r}, as before the loop",
        found=repr(found),
        help="start it with the type that a trip gives it, for example with pl.const or pl.cast, or use another name",
    )


def check_independent(kind: LoopKind, carried: list[Carried], span: Span) -> None:
    """The trips of a parallel loop may write parts of one tensor, and hand each other nothing else."""
    for item in carried:
        tensor = isinstance(item.init, Value) and isinstance(item.init.type, TensorType)
        if kind is LoopKind.PARALLEL and not item.explicit and not tensor:
            raise LanguageError(
                f"the trips of a parallel loop are independent, and {item.names[0]!r} goes from one to the next",
                span=span,
                help="use pl.range, or another name inside the loop",
            )


def without_unchanged(
    carried: list[Carried], results: list[Value], block: Block
) -> tuple[list[Carried], list[Value], Block]:
    """Leave out what turned out to be the same after each trip."""
    yields = cast("Yield", block[-1]).values
    same = [not item.explicit and given is item.arg for item, given in zip(carried, yields, strict=True)]
    if not any(same):
        return carried, results, block
    rewriter = Rewriter()
    for item, unchanged in zip(carried, same, strict=True):
        if unchanged:
            rewriter.bind(item.arg, item.init)
    body = rewriter.block(block[:-1])
    kept = [index for index, unchanged in enumerate(same) if not unchanged]
    last = Yield(tuple(rewriter.scalar(yields[i]) for i in kept), span=block[-1].span)
    return [carried[i] for i in kept], [results[i] for i in kept], (*body, last)
