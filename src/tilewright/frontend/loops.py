"""Loops: which values they carry from trip to trip.

Before:  for i in pl.range(4):            After:  for i, (acc,) in pl.range(4, init_values=(acc,)):
             acc = acc + x                            acc_1 = acc + x
                                                      acc_2 = pl.yield_(acc_1)

A name that a loop binds is carried when it is read after the loop, or by the next trip. A tensor in DDR that the loop
writes is carried under all of its names. Explicit `init_values=` comes first; what it leaves is carried all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from tilewright.errors import LanguageError, Span
from tilewright.frontend.bindings import LanguageName, Missing, Undefined, as_scalar, describe
from tilewright.frontend.carries import Carried, check_independent, without_unchanged, yielded
from tilewright.frontend.context import Context, LoopFacts
from tilewright.frontend.forms import condition
from tilewright.frontend.jumps import guard_of
from tilewright.frontend.kernels import as_one
from tilewright.frontend.lanes import read_lanes
from tilewright.frontend.liveness import yield_targets
from tilewright.frontend.operations import Arguments
from tilewright.frontend.options import section_options
from tilewright.frontend.ranges import KINDS, bounds, split_condition, stage_of, targets, while_targets
from tilewright.frontend.scope import is_hidden
from tilewright.frontend.tuples import forget, gather, leaves, spread, taken_apart
from tilewright.frontend.versions import End
from tilewright.ir.dtypes import INDEX
from tilewright.ir.nodes import UNBOUNDED, Block, For, LoopKind, Yield
from tilewright.ir.op import is_array
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Scalar, Value, constant_value
from tilewright.ir.types import ScalarType, TensorType

Loop = ast.For | ast.While | ast.With
"""The statements that loops are written as."""
TAKEN_OVER = "a loop took its tensor over under another name"
TRIP = "trip"
"""The name of the variable of a loop that has none of the user's."""
STATIC_TRIPS = 4096
"""The most trips of a `pl.static_range`, whose body is read once for each."""


@dataclass(slots=True)
class Head:
    """What stands in the first line of a loop, and the `pl.cond` after it."""

    kind: LoopKind
    bounds: tuple[Scalar, Scalar, Scalar]
    stage: int
    variable: str
    explicit: list[Carried]
    body: list[ast.stmt]
    condition: ast.expr | None = None
    is_launch: bool = False
    """its trips are the blocks of a launch"""


def read_for(context: Context, node: ast.For) -> None:
    """`for i in pl.range(...)`, with what it carries."""
    word = context.evaluate(node.iter.func) if isinstance(node.iter, ast.Call) else None
    path = word.path if isinstance(word, LanguageName) else ""
    if path == "split_aiv":
        read_lanes(context, node, Arguments(context, cast("ast.Call", node.iter)))
        return
    if path not in KINDS and path not in ("static_range", "while_"):
        raise LanguageError(
            "a loop runs over a range of the language",
            span=context.span(node.iter),
            required="pl.range, pl.parallel, pl.unroll, pl.pipeline, pl.static_range or pl.while_",
            found=context.text(node.iter),
            help="write for i in pl.range(...)",
        )
    arguments = Arguments(context, cast("ast.Call", node.iter))
    if path == "static_range":
        _static_loop(context, node, arguments)
        return
    body, asked = split_condition(context, node.body)
    if path == "while_":
        names = while_targets(context, node, arguments, asked)
        explicit = _carried_explicitly(context, names, arguments)
        head = Head(LoopKind.SEQUENTIAL, (0, UNBOUNDED, 1), 1, TRIP, explicit, body, asked)
    else:
        if path == "spmd":
            section_options(path, arguments, also=("init_values",))
        limits, stage = bounds(context, arguments), stage_of(path, arguments)
        variable, names = targets(context, node)
        explicit = _carried_explicitly(context, names, arguments)
        head = Head(KINDS[path], limits, stage, variable, explicit, body, asked, is_launch=path == "spmd")
    read_loop(context, node, head)


def read_while(context: Context, node: ast.While) -> None:
    """`while condition`, which `jumps` made into the name of a flag."""
    if context.scope.get(guard_of(node) or "") is not False:
        read_loop(context, node, Head(LoopKind.SEQUENTIAL, (0, UNBOUNDED, 1), 1, TRIP, [], node.body))


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


def read_loop(context: Context, node: Loop, head: Head) -> None:
    """A loop, with what it carries."""
    span, facts = context.span(node), context.facts[node]
    iv = Value(head.variable.rstrip("."), ScalarType(INDEX), context.span(_first(node)))
    tuples = _tuples(context, node, head)
    carried = head.explicit + _carried_by_name(context, node, head, tuples)
    carried, guard = _with_guard(context, node, head, carried)
    outer, context.pending = context.pending, None
    context.scope.open()
    clock = context.scope.versions.clock
    for item in carried:
        _enter(context, item, item.names[0] in facts.written, span)
    gather(context, tuples)
    context.scope.set(head.variable, iv)
    context.carried |= {item.arg for item in carried}
    grid = context.grid
    context.grid = (iv, head.bounds[1]) if head.is_launch else grid
    body = context.collect(head.body, lambda: _ask_again(context, head, guard))
    context.grid = grid
    pending, context.pending = context.pending, outer
    spread(context, tuples, span)
    yields, names, types = yielded(context, carried, pending, span)
    bound, ended = context.scope.close()
    for item in carried:
        if isinstance(item.init, Value) and isinstance(item.init.type, TensorType):
            context.scope.versions.enters(item.arg, item.init)
    results = [Value(name, type or item.arg.type, span) for item, name, type in zip(carried, names, types, strict=True)]
    block: Block = (*body, Yield(tuple(yields), span=pending.span if pending else span))
    everything = carried
    carried, results, block = without_unchanged(carried, results, block)
    conditional = guard in carried
    if isinstance(node, ast.While) and (not conditional or constant_value(yields[0]) is True):
        raise LanguageError(
            "nothing in this loop changes its condition", span=context.span(node.test), help="change it, or break"
        )
    kind = LoopKind.SEQUENTIAL if conditional and head.kind is LoopKind.PIPELINE else head.kind
    stage = head.stage if kind is head.kind else 1
    check_independent(kind, carried, span)
    inits, args = tuple(item.init for item in carried), tuple(item.arg for item in carried)
    context.out.append(For(iv, *head.bounds, kind, inits, args, block, tuple(results), stage, conditional, span=span))
    for value, end in ended.items():
        context.scope.end(value, end)
    unchanged = {item.arg for item in everything if item not in carried}
    given = cast("Yield", block[-1]).values
    _check_shared(context, carried, given, ended, clock, span)
    _bind_results(context, carried, results, given, span)
    gather(context, tuples)
    forget(context, tuples)
    handed = {name for item in carried for name in item.names if not item.explicit} | {r.name for r in results}
    handed |= tuples.keys()
    left = {name: after for name, after in bound.items() if name not in handed and after not in unchanged}
    _leave(context, node, head.variable, left)


def _first(node: Loop) -> ast.expr:
    """What stands first after the keyword."""
    match node:
        case ast.For():
            return node.target
        case ast.While():
            return node.test
        case ast.With():
            return node.items[0].context_expr


def _leave(context: Context, node: Loop, variable: str, bound: dict[str, object]) -> None:
    """Names that the loop bound and does not hand out have no value after it."""
    span = context.span(node)
    for name, after in bound.items():
        if is_hidden(name):
            continue
        before = context.scope.get(name)
        if name != variable and (after is before or _read_again(context, node, name, before, after)):
            continue
        why = "is the variable of a loop that has ended" if name == variable else "is assigned only inside a loop"
        context.scope.set(name, Undefined(why, span))


def _with_guard(
    context: Context, node: Loop, head: Head, carried: list[Carried]
) -> tuple[list[Carried], Carried | None]:
    """What is carried with the condition first, and which that is."""
    asked, flag = head.condition, guard_of(node)
    if asked is None:
        guard = next((item for item in carried if flag is not None and flag in item.names), None)
    elif isinstance(asked, ast.Name) and carried and carried[0].explicit and carried[0].names == [asked.id]:
        return carried, carried[0]
    else:
        init = _asked(context, asked, [item.names[0] for item in head.explicit], [item.init for item in head.explicit])
        flag = f"go.{node.lineno}.{node.col_offset}"
        guard = Carried([flag], init, Value("go", type_of(init), context.span(asked)))
        carried = [*carried, guard]
    return carried if guard is None else [guard, *(item for item in carried if item is not guard)], guard


def _asked(context: Context, node: ast.expr, names: list[str], values: Sequence[object]) -> Scalar:
    """The condition where `names` stand for `values`."""
    context.scope.open()
    for name, value in zip(names, values, strict=True):
        context.scope.set(name, value)
    decided = as_scalar(condition(context, node))
    context.scope.close()
    assert decided is not None
    return decided


def _ask_again(context: Context, head: Head, guard: Carried | None) -> None:
    """At the end of a trip: the condition of `pl.cond` for the next one."""
    if head.condition is None or guard is None or guard.explicit:
        return
    given = context.pending
    names = [item.names[0] for item in head.explicit]
    values = given.values if given is not None else [context.scope.get(name) for name in names]
    if len(values) == len(names):
        context.scope.set(guard.names[0], _asked(context, head.condition, names, values))


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
    """Raises when two names may stand for one tensor in the next trip, and the loop writes it; for a parameter, also
    when another name than its own may."""
    versions = context.scope.versions
    written = {versions.root(v) for v, end in ended.items() if end.is_write and versions.older(v, clock)}
    if not written:
        return
    tensors = [
        (item, given)
        for item, given in zip(carried, yields, strict=True)
        if isinstance(given, Value) and isinstance(given.type, TensorType)
    ]
    others = [set(map(versions.root, versions.origins(given, item.arg))) for item, given in tensors]
    own = [{versions.root(item.arg)} if versions.may_be(given, item.arg) else set[Value]() for item, given in tensors]
    for index, (item, _) in enumerate(tensors):
        elsewhere = set[Value]().union(*(others[i] | own[i] for i in range(len(tensors)) if i != index))
        shared = [root for root in others[index] & written if root in versions.params or root in elsewhere]
        if shared:
            raise LanguageError(
                f"{item.names[0]!r} stands for tensor {shared[0].name!r} in the next trip, and the loop writes that",
                span=span,
                help="use one name for the tensor, or a copy of it",
            )


def _read_again(context: Context, node: Loop, name: str, before: object, after: object) -> bool:
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
            span=context.span(node),
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


def _tuples(context: Context, node: Loop, head: Head) -> dict[str, object]:
    """The tuples that the body re-binds, and that are read in the next trip or after the loop."""
    facts, skip = context.facts[node], _named(node, head)
    again = [name for name in facts.assigned if name not in skip and (name in facts.exposed or name in facts.live)]
    return taken_apart(context, again)


def _named(node: Loop, head: Head) -> set[str]:
    """The names that the loop itself binds."""
    return {head.variable, *(item.names[0] for item in head.explicit), *yield_targets(node.body)}


def _carried_by_name(context: Context, node: Loop, head: Head, tuples: dict[str, object]) -> list[Carried]:
    """What the body re-binds, and is read in the next trip or after the loop; every name of a tensor it writes."""
    facts, skip = context.facts[node], _named(node, head)
    found: list[Carried] = []
    seen: set[str] = set()
    elements = dict.fromkeys(leaves(tuples))
    for name in [*facts.assigned, *elements]:
        binding = as_one(context.scope.get(name))
        if name in skip or name in seen or isinstance(binding, Missing | Undefined):
            continue
        aliases = _written_names(context, name, binding, facts, skip)
        needed = any(is_hidden(alias) or alias in facts.live or alias in facts.exposed for alias in aliases)
        needed = needed or name in elements or any(alias not in facts.assigned for alias in aliases)
        init = cast("Scalar", binding) if is_array(binding) else as_scalar(binding)
        if not needed or init is None:
            continue
        seen |= set(aliases)
        if isinstance(init, Value):
            context.scope.versions.check_read(init, name, context.span(node))
        written = isinstance(init, Value) and any(alias in facts.written for alias in aliases)
        shown = init.name if written and isinstance(init, Value) else name.partition(".")[0]
        found.append(Carried(aliases, init, _argument(context, shown, init), written=written))
    return found


def _written_names(context: Context, name: str, binding: object, facts: LoopFacts, skip: set[str]) -> list[str]:
    """The names that are carried together with `name`: all those of a tensor in DDR that the body writes."""
    if not isinstance(binding, Value) or not isinstance(binding.type, TensorType):
        return [name]
    aliases = [name, *(other for other in context.scope.aliases(binding) if other != name and other not in skip)]
    return aliases if any(alias in facts.written for alias in aliases) else [name]


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
