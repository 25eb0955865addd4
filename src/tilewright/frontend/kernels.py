"""Calls of other kernels: `f(a, out)` by name, `self.f(a, out)` in a program.

The callee is specialised for the types of the arguments, and becomes a function of the program. Its results are those
that it returns, then the last versions of the output parameters that it does not return; every name that stood for an
argument which the callee writes stands for the next version afterwards.
"""

from __future__ import annotations

import ast
from typing import Any, cast

from tilewright.errors import CallError, LanguageError, Span, TilewrightError
from tilewright.frontend.bindings import MISSING, as_scalar, describe
from tilewright.frontend.context import Context
from tilewright.frontend.decorators import parameter_specs
from tilewright.frontend.operations import Arguments
from tilewright.frontend.parameters import BLOCK
from tilewright.frontend.syntax import FunctionSource, ParameterSpec
from tilewright.frontend.versions import End
from tilewright.ir.function import Function
from tilewright.ir.nodes import Call
from tilewright.ir.op import is_array
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Expr, Scalar, Value
from tilewright.ir.types import ScalarType, TensorType, Type
from tilewright.ir.verify import same_type


class Results(tuple[object, ...]):
    """What a call returned: the explicit results, then the implicit outputs."""

    explicit: int = 0


def call_kernel(context: Context, source: FunctionSource, arguments: Arguments) -> object:
    """The result of a call: one value, several as `Results`, or None."""
    given = _match(context, source, arguments)
    signature = tuple(_signature(spec, value) for spec, value, _ in given)
    function, leading = context.functions.specialise(source, signature, arguments.span)
    values = [value for (_, value, _), kind in zip(given, signature, strict=True) if isinstance(kind, Type)]
    first = _leading(context, leading, arguments.span)
    args = [*_extents(function, len(first), values, arguments.span), *first, *values]
    passed: list[Scalar] = []
    for param, value in zip(function.params, args, strict=True):
        dtype = param.value.dtype if isinstance(param.value.type, ScalarType) else None
        scalar = value if is_array(value) else as_scalar(value, dtype)
        assert scalar is not None
        passed.append(cast("Scalar", scalar))
    _check(function, passed, arguments.span)
    return _emit(context, function, passed, arguments)


def block_of(context: Context, span: Span) -> tuple[Scalar, Scalar]:
    """The number of the block that this is, and how many there are. Raises where nothing is launched."""
    if context.grid is not None:
        return context.grid
    if context.block_of_caller is not None:
        return context.block_of_caller()
    raise LanguageError(
        "there is no launch here whose blocks have numbers",
        span=span,
        required="a use inside with pl.spmd(n): or for i in pl.spmd(n):, or in a kernel that is called there",
    )


def _leading(context: Context, leading: tuple[Value, ...], span: Span) -> list[Scalar]:
    """What this call passes for the parameters that the callee's source does not name."""
    if BLOCK[0] not in leading:
        return [*leading]
    given = dict(zip(BLOCK, block_of(context, span), strict=True))
    return [given.get(value, value) for value in leading]


def _extents(function: Function, leading: int, values: list[object], span: Span) -> list[Scalar]:
    """What this call passes for the symbols in the declared shapes of `function`, which are its first parameters."""
    count = len(function.params) - leading - len(values)
    found: dict[Value, Scalar] = {}
    for param, value in zip(function.params[count + leading :], values, strict=True):
        declared, given = param.value.type, type_of(cast("Scalar", value)) if is_array(value) else None
        if isinstance(declared, TensorType) and isinstance(given, TensorType) and declared.rank == given.rank:
            for extent, actual in zip(declared.shape, given.shape, strict=True):
                if isinstance(extent, Value):
                    found.setdefault(extent, actual)
    symbols = [param.value for param in function.params[:count]]
    for symbol in symbols:
        if symbol not in found:
            raise CallError(
                f"{function.name} takes another type than this call gives", span=span,
                required=f"an argument that has the extent {symbol.name!r}",
            )  # fmt: skip
    return [found[symbol] for symbol in symbols]


def _match(
    context: Context, source: FunctionSource, arguments: Arguments
) -> list[tuple[ParameterSpec, object, ast.expr | None]]:
    """Each parameter with what is given for it. Raises `CallError`."""
    try:
        specs = parameter_specs(source)
    except TilewrightError as error:
        raise error.at(arguments.span) from None
    names = [spec.name for spec in specs]
    required = f"{source.name}({', '.join(names)})"
    if len(arguments.positional) > len(specs):
        raise CallError(
            f"{source.name} takes {len(specs)} arguments",
            span=arguments.span,
            required=required,
            found=f"{len(arguments.positional)} arguments",
        )
    found: dict[str, tuple[object, ast.expr | None]] = {
        spec.name: (value, node) for spec, (value, _, node) in zip(specs, arguments.positional, strict=False)
    }
    for name, (value, span, node) in arguments.keywords.items():
        if name not in names or name in found:
            raise CallError(
                f"{source.name} has no argument {name!r}, or is given it twice", span=span, required=required
            )
        found[name] = (value, node)
    for spec in specs:
        if spec.name not in found:
            if spec.default is MISSING:
                raise CallError(
                    f"{source.name} lacks the argument {spec.name!r}",
                    span=arguments.span,
                    required=required,
                    found=f"{len(found)} of {len(specs)} arguments",
                )
            found[spec.name] = (spec.default, None)
    return [(spec, *found[spec.name]) for spec in specs]


def _signature(spec: ParameterSpec, value: object) -> object:
    """What the callee is specialised for: a type, or a constant that it is compiled with."""
    if isinstance(value, Expr):
        return type_of(value)
    if spec.kind == "scalar" and isinstance(value, int | float):
        return ScalarType(spec.dtype) if spec.dtype is not None else type_of(cast("Scalar", as_scalar(value)))
    return value


def _check(function: Function, args: list[Scalar], span: Span) -> None:
    """Raises `CallError` unless each argument has its parameter's type."""
    binding: dict[Value, Scalar] = {p.value: a for p, a in zip(function.params, args, strict=True)}
    for param, argument in zip(function.params, args, strict=True):
        required = param.value.type.substitute(lambda value: binding.get(value, value))
        if not same_type(type_of(argument), required):
            raise CallError(
                f"{function.name} takes another type as {param.value.name!r}",
                span=span,
                required=repr(required),
                found=repr(type_of(argument)),
            )


def _emit(context: Context, function: Function, args: list[Scalar], arguments: Arguments) -> object:
    binding: dict[Value, Scalar] = {p.value: a for p, a in zip(function.params, args, strict=True)}
    targets: list[Value] = []
    positions = context.functions.results(function)
    span = arguments.span
    for result, position in zip(function.results, positions, strict=True):
        type = type_of(result).substitute(lambda value: binding.get(value, value))
        free = [v for v in type.values() if v not in binding.values()]
        if any(v in binding or _inside(v, function) for v in free):
            raise LanguageError(
                f"the shape of what {function.name} returns is known only inside it",
                span=span,
                help="return tensors of constant shape, or of extents that are its parameters",
            )
        argument = args[position] if position is not None else None
        name = argument.name if isinstance(argument, Value) else function.name
        targets.append(context.made(Value(name, type, span)))
    for param, argument in zip(function.params, args, strict=True):
        if param.is_output and isinstance(argument, Value):
            for other in context.scope.versions.check_written(argument, span):
                context.scope.end(other, End(span))
    context.out.append(Call(tuple(targets), function.name, tuple(args), span=span))
    for target, position in zip(targets, positions, strict=True):
        argument = args[position] if position is not None else None
        if isinstance(argument, Value) and isinstance(argument.type, TensorType):
            context.scope.advance(argument, target, span)
        elif isinstance(target.type, TensorType):
            context.scope.versions.born(target)
    implicit = function.attr("implicit_outputs", 0)
    explicit = len(targets) - (implicit if isinstance(implicit, int) else 0)
    if not targets:
        return None
    if len(targets) == 1:
        return targets[0]
    if explicit == 1:
        return _with_rest(targets)
    results = Results(targets)
    results.explicit = explicit
    return results


def _with_rest(targets: list[Value]) -> Results:
    results = Results(targets)
    results.explicit = 1
    return results


def _inside(value: Value, function: Function) -> bool:
    return any(value in stmt.defs() for stmt in function.walk())


def unpacked(results: Results, count: int) -> tuple[object, ...] | None:
    """The results for `count` names: all, or the explicit ones; None when neither fits."""
    if count == len(results):
        return tuple(results)
    if count == results.explicit or (results.explicit == 0 and count == 1):
        return tuple(results[:count])
    return None


def as_one(value: Any) -> object:
    """The results of a call as one binding."""
    if not isinstance(value, Results):
        return value
    if value.explicit == 1:
        return value[0]
    return tuple(value[: value.explicit]) if value.explicit else tuple(value)


def describe_results(value: object) -> str:
    return describe(as_one(value))
