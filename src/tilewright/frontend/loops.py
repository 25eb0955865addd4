"""Loops: which values they carry from trip to trip.

Before:  for i in pl.range(4):            After:  for i, (acc,) in pl.range(4, init_values=(acc,)):
             acc = acc + x                            acc_1 = acc + x
                                                      acc_2 = pl.yield_(acc_1)

A name that a loop binds is carried when it is read after the loop, or by the next trip. A tensor in DDR that the loop
writes is carried under all of its names. Explicit `init_values=` comes first; what it leaves is carried all the same.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, cast

from tilewright.errors import DTypeError, LanguageError, Span
from tilewright.frontend.bindings import LanguageName, Missing, Undefined, as_scalar, describe
from tilewright.frontend.context import Context, LoopFacts, PendingYield
from tilewright.frontend.kernels import as_one
from tilewright.frontend.liveness import yield_targets
from tilewright.frontend.operations import Arguments
from tilewright.frontend.ranges import KINDS, bounds, stage_of, targets
from tilewright.frontend.scope import is_hidden
from tilewright.frontend.versions import End
from tilewright.ir.dtypes import INDEX
from tilewright.ir.nodes import Block, For, LoopKind, Yield
from tilewright.ir.op import is_array
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import Scalar, Value, dtype_of
from tilewright.ir.types import ScalarType, TensorType, Type
from tilewright.ir.verify import same_type

TAKEN_OVER = "a loop took its tensor over under another name"
STATIC_TRIPS = 4096
"""The most trips of a `pl.static_range`, whose body is read once for each."""


@dataclass(slots=True)
class Carried:
    """One value that a loop carries: the names that stand for it, where it starts, and its value inside."""

    names: list[str]
    init: Scalar
    arg: Value
    explicit: bool = False
    written: bool = False
    """it is a tensor in DDR that the body writes"""


def read_for(context: Context, node: ast.For) -> None:
    """`for i in pl.range(...)`, with what it carries."""
    if node.orelse:
        raise LanguageError("a loop has no else", span=context.span(node.orelse[0]), help="write it after the loop")
    word = context.evaluate(node.iter.func) if isinstance(node.iter, ast.Call) else None
    path = word.path if isinstance(word, LanguageName) else ""
    if path not in KINDS and path != "static_range":
        raise LanguageError(
            "a loop runs over a range of the language",
            span=context.span(node.iter),
            required="pl.range, pl.parallel, pl.unroll, pl.pipeline or pl.static_range",
            found=context.text(node.iter),
            help="write for i in pl.range(...)",
        )
    arguments = Arguments(context, cast("ast.Call", node.iter))
    if path == "static_range":
        _static_loop(context, node, arguments)
        return
    _loop(context, node, KINDS[path], arguments)


def _static_loop(context: Context, node: ast.For, arguments: Arguments) -> None:
    """`pl.static_range`: the body is read once for each trip, its variable a known number."""
    limits, (name, carried) = bounds(context, arguments), targets(context, node)
    if carried or not all(isinstance(bound, int) for bound in limits):
        raise LanguageError("pl.static_range takes numbers, and carries by re-assignment", span=arguments.span)
    trips = range(*cast("tuple[int, int, int]", limits))
    if len(trips) > STATIC_TRIPS:
        raise LanguageError(
            "this static_range is too long to be written out",
            span=arguments.span,
            required=f"at most {STATIC_TRIPS} trips",
            found=str(len(trips)),
            help="use pl.range",
        )
    for trip in trips:
        context.scope.set(name, trip)
        context.statements(node.body)


def _loop(context: Context, node: ast.For, kind: LoopKind, arguments: Arguments) -> None:
    span = context.span(node)
    start, stop, step = bounds(context, arguments)
    stage = stage_of(kind, arguments)
    variable, explicit = targets(context, node)
    iv = Value(variable, ScalarType(INDEX), context.span(node.target))
    carried = _carried_explicitly(context, explicit, arguments)
    carried += _carried_by_name(context, node, variable, explicit)
    outer, context.pending = context.pending, None
    context.scope.open()
    clock = context.scope.versions.clock
    for item in carried:
        _enter(context, item, item.names[0] in context.facts[node].written, span)
    context.scope.set(variable, iv)
    context.carried |= {item.arg for item in carried}
    body = context.collect(node.body)
    pending, context.pending = context.pending, outer
    yields, names, types = _yielded(context, carried, pending, span)
    bound, ended = context.scope.close()
    results = [Value(name, type or item.arg.type, span) for item, name, type in zip(carried, names, types, strict=True)]
    block: Block = (*body, Yield(tuple(yields), span=pending.span if pending else span))
    everything = carried
    carried, results, block = _without_unchanged(carried, results, block)
    _check_independent(kind, carried, span)
    inits, args = tuple(item.init for item in carried), tuple(item.arg for item in carried)
    context.out.append(For(iv, start, stop, step, kind, inits, args, block, tuple(results), stage, span=span))
    for value, end in ended.items():
        context.scope.end(value, end)
    unchanged = {item.arg for item in everything if item not in carried}
    given = cast("Yield", block[-1]).values
    _check_shared(context, carried, given, ended, clock, span)
    _bind_results(context, carried, results, given, span)
    handed = {name for item in carried for name in item.names if not item.explicit} | {r.name for r in results}
    for name, after in bound.items():
        if name not in handed and not is_hidden(name) and after not in unchanged:
            before = context.scope.get(name)
            if name != variable and (after is before or _read_again(context, node, name, before, after, span)):
                continue
            why = "is the variable of a loop that has ended" if name == variable else "is assigned only inside a loop"
            context.scope.set(name, Undefined(why, span))


def _enter(context: Context, item: Carried, written: bool, span: Span) -> None:
    """Bind the names of a carried value inside the loop. What starts an explicit one is used up if the body writes
    it; an output that is carried is followed under its hidden name."""
    scope, init = context.scope, item.init
    if item.explicit and isinstance(init, Value) and isinstance(init.type, TensorType):
        if written:
            scope.end(init, End(span, TAKEN_OVER, is_write=False))
        for name in scope.aliases(init):
            if is_hidden(name):
                scope.set(name, item.arg)
    for name in item.names:
        scope.set(name, item.arg)


def _check_shared(
    context: Context,
    carried: list[Carried],
    yields: tuple[Scalar, ...],
    ended: dict[Value, End],
    clock: int,
    span: Span,
) -> None:
    """Raises when a name is handed to the next trip that stands for a tensor which the loop writes under another."""
    versions = context.scope.versions
    written = {versions.root(v) for v, end in ended.items() if end.is_write and versions.older(v, clock)}
    for item, given in zip(carried, yields, strict=True):
        if not isinstance(given, Value) or not isinstance(given.type, TensorType):
            continue
        shared = [root for root in map(versions.root, versions.origins(given, item.arg)) if root in written]
        if shared:
            raise LanguageError(
                f"{item.names[0]!r} stands for tensor {shared[0].name!r} in the next trip, and the loop writes that",
                span=span,
                help="use one name for the tensor, or a copy of it",
            )


def _read_again(context: Context, node: ast.For, name: str, before: object, after: object, span: Span) -> bool:
    """Whether a trip leaves a name that is not carried as it was. Raises when it does not, and the next trip or the
    code after the loop reads it: a tuple, or something that is known when the kernel is read."""
    if isinstance(before, Missing | Undefined):
        return False
    if type(before) is type(after) and not is_array(after) and before == after:
        return True
    facts = context.facts[node]
    if name in facts.exposed or name in facts.live:
        raise LanguageError(
            f"{name!r} changes from trip to trip, and is nothing that a loop carries",
            span=span,
            required="a tensor, tile or scalar",
            found=describe(before),
            help="give each of its elements a name, or use pl.static_range",
        )
    return False


def _carried_explicitly(context: Context, names: list[str], arguments: Arguments) -> list[Carried]:
    """What `init_values=` starts."""
    given = arguments.keywords.get("init_values", ((), arguments.span, None))
    values = cast("tuple[object, ...]", given[0]) if isinstance(given[0], tuple) else (given[0],)
    if len(values) != len(names):
        raise LanguageError(
            "init_values= and the names of the carried values go together",
            span=given[1],
            required=f"{len(names)} values",
            found=str(len(values)),
            help="write for i, (x, y) in pl.range(..., init_values=(a, b))",
        )
    found: list[Carried] = []
    for name, value in zip(names, values, strict=True):
        init = cast("Scalar", value) if is_array(value) else as_scalar(value)
        if init is None:
            raise LanguageError("a loop carries tensors, tiles and scalars", span=given[1], found=describe(value))
        arg = _argument(context, name, init)
        found.append(Carried([name], init, arg, explicit=True))
    return found


def _argument(context: Context, name: str, init: Scalar) -> Value:
    arg = Value(name, type_of(init), init.span if isinstance(init, Value) else context.span(context.source.node))
    if isinstance(init, Value) and isinstance(arg.type, TensorType):
        context.scope.versions.follows(arg, init)
    return arg


def _carried_by_name(context: Context, node: ast.For, variable: str, explicit: list[str]) -> list[Carried]:
    """What the body re-binds, and is read in the next trip or after the loop; every name of a tensor it writes."""
    facts, skip = context.facts[node], {variable, *explicit, *yield_targets(node.body)}
    found: list[Carried] = []
    seen: set[str] = set()
    for name in facts.assigned:
        binding = as_one(context.scope.get(name))
        if name in skip or name in seen or isinstance(binding, Missing | Undefined):
            continue
        aliases = _written_names(context, name, binding, facts, skip)
        needed = any(is_hidden(alias) or alias in facts.live or alias in facts.exposed for alias in aliases)
        needed = needed or any(alias not in facts.assigned for alias in aliases)
        init = cast("Scalar", binding) if is_array(binding) else as_scalar(binding)
        if not needed or init is None:
            continue
        seen |= set(aliases)
        if isinstance(init, Value):
            context.scope.versions.check_read(init, name, context.span(node))
        written = isinstance(init, Value) and any(alias in facts.written for alias in aliases)
        shown = init.name if written and isinstance(init, Value) else name
        found.append(Carried(aliases, init, _argument(context, shown, init), written=written))
    return found


def _written_names(context: Context, name: str, binding: object, facts: LoopFacts, skip: set[str]) -> list[str]:
    """The names that are carried together with `name`: all those of a tensor in DDR that the body writes."""
    if not isinstance(binding, Value) or not isinstance(binding.type, TensorType):
        return [name]
    aliases = [name, *(other for other in context.scope.aliases(binding) if other != name and other not in skip)]
    return aliases if any(alias in facts.written for alias in aliases) else [name]


def _yielded(
    context: Context, carried: list[Carried], pending: PendingYield | None, span: Span
) -> tuple[list[Scalar], list[str], list[Type | None]]:
    """What a trip hands to the next, per carried value, and the names and types of the results."""
    explicit = [item for item in carried if item.explicit]
    given = pending or PendingYield([], [], [], span)
    if len(given.values) != len(explicit):
        raise LanguageError(
            "a loop with init_values yields one value for each of them",
            span=given.span,
            required=f"{len(explicit)}: " + ", ".join(item.names[0] for item in explicit),
            found=str(len(given.values)),
            help="end the body with x = pl.yield_(...), or carry by re-assignment without init_values",
        )
    yields, names, types = list(given.values), list(given.names), list(given.types)
    for item, value in zip(explicit, given.values, strict=True):
        _check_carried(item.names[0], item.arg.type, value, given.span)
    for item in carried[len(explicit) :]:
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
        _check_carried(item.names[0], item.arg.type, value, span)
        yields.append(value)
        names.append(item.arg.name)
        types.append(None)
    return yields, names, types


def _number_dtype(binding: object, item: Carried) -> Any:
    """A number that a trip leaves in a carried float is a float of its dtype."""
    dtype = dtype_of(item.arg)
    fits = isinstance(binding, int | float) and not isinstance(binding, bool)
    return dtype if fits and (dtype.is_float or isinstance(binding, int)) and dtype.kind != "bool" else None


def _check_carried(name: str, required: Type, value: Scalar, span: Span) -> None:
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


def _check_independent(kind: LoopKind, carried: list[Carried], span: Span) -> None:
    """The trips of a parallel loop may write parts of one tensor, and hand each other nothing else."""
    for item in carried:
        tensor = isinstance(item.init, Value) and isinstance(item.init.type, TensorType)
        if kind is LoopKind.PARALLEL and not item.explicit and not tensor:
            raise LanguageError(
                f"the trips of a parallel loop are independent, and {item.names[0]!r} goes from one to the next",
                span=span,
                help="use pl.range, or another name inside the loop",
            )


def _without_unchanged(
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


def _bind_results(
    context: Context, carried: list[Carried], results: list[Value], yields: tuple[Scalar, ...], span: Span
) -> None:
    """Bind what the loop hands out. A tensor that was written is the next version under all of its names; one that
    was re-bound is one of those that the name stood for."""
    scope = context.scope
    for item, result, given in zip(carried, results, yields, strict=True):
        init = item.init
        if isinstance(init, Value) and isinstance(result.type, TensorType):
            root = scope.versions.root(init)
            is_output = root in scope.versions.params and root not in scope.versions.inputs
            # What each trip hands on as it got it is not written; an output goes on under its last name all the same.
            if scope.versions.descends(given, item.arg) and (given is not item.arg or is_output):
                scope.advance(init, result, span)
            else:
                others = (given,) if isinstance(given, Value) and given is not item.arg else ()
                # What the loop used up is read under the result's name alone from here on.
                starts = () if init in scope.versions.ended else (init,)
                scope.versions.belongs(result, init)
                scope.versions.joins(result, (*starts, *others))
        for name in [result.name] if item.explicit else item.names:
            scope.set(name, result)
