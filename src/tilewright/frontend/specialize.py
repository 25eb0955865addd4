"""From source to a program: each function read once for each set of argument types and constants it is called with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from tilewright.errors import ArgumentError, DTypeError, LanguageError, ReturnError, Span
from tilewright.frontend import names as language
from tilewright.frontend.annotations import read_declared
from tilewright.frontend.bindings import Kernel, LanguageName, Method, Missing, SelfName, from_python
from tilewright.frontend.context import Context
from tilewright.frontend.decorators import (
    decorator,
    language_path,
    parameter_specs,
    parse_annotation,
    resolve,
    unwrap_direction,
)
from tilewright.frontend.expressions import evaluate
from tilewright.frontend.jumps import with_one_return, without_jumps
from tilewright.frontend.limits import check_nesting, guarded
from tilewright.frontend.liveness import analyse
from tilewright.frontend.parameters import Parameters
from tilewright.frontend.returns import without_returns_in_loops
from tilewright.frontend.scope import hidden_name
from tilewright.frontend.source import KernelSource
from tilewright.frontend.statements import read_statements, returned
from tilewright.frontend.syntax import FunctionSource
from tilewright.ir.function import Direction, Function, Program
from tilewright.ir.nodes import Return
from tilewright.ir.op import lookup
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType, TupleType, Type
from tilewright.ir.verify import same_type

DEEPEST_CALL = 24
"""How deep kernels may call kernels."""


def read_program(source: KernelSource, arguments: Sequence[object] | None = None, *, probes: bool = False) -> Program:
    """The program of a kernel for these arguments: a type for each parameter of the program, a constant for each that
    is compiled in, None where the annotation says everything. Without `arguments`, all annotations must.
    `probes`: with what the author prints and checks, for the interpreter; else that is left out.
    Raises `ArgumentError` where they disagree, and the errors of the language."""
    return guarded(lambda: _read_program(source, arguments, probes))


def _read_program(source: KernelSource, arguments: Sequence[object] | None, probes: bool) -> Program:
    functions = Functions(probes)
    arguments = None if arguments is None else [_constant(argument) for argument in arguments]
    entry, span = source.entry(), Span(source.file, 0, 0, 0, 0)
    functions.entry = entry.node
    if source.kind is None:
        return functions.read_all(source.functions(), entry, arguments)
    main, _ = functions.specialise(entry, arguments, span)
    return Program(functions.in_order(()), main.name)


def _constant(argument: object) -> object:
    """An argument in the form in which it is compiled in. Raises `ArgumentError` for what cannot be."""
    found = from_python(argument)
    if isinstance(found, Missing):
        raise ArgumentError(
            "an argument is neither a type nor a constant",
            required="a tensor or scalar type, a number, bool, string, tuple, enum or dtype",
            found=type(argument).__name__,
        )
    return found


class Functions:
    """The functions of one program, by source and arguments."""

    def __init__(self, probes: bool = False) -> None:
        self.probes = probes
        self.entry: ast.FunctionDef | None = None
        """the function that a call of the program runs, which nobody launches"""
        self._made: dict[Any, tuple[Function, tuple[Value, ...]]] = {}
        self._sources: list[tuple[FunctionSource, Function]] = []
        self._own: dict[str, ast.FunctionDef] = {}
        self._reading: list[FunctionSource] = []
        self._positions: dict[str, tuple[int | None, ...]] = {}
        self._taken: set[str] = set()

    def read_all(
        self, sources: dict[str, FunctionSource], entry: FunctionSource, arguments: Sequence[object] | None = None
    ) -> Program:
        """Every function of a program class whose declaration is complete, and what the others are called with."""
        self._own = {source.name: source.node for source in sources.values()}
        at = Span(entry.file, 0, 0, 0, 0)
        for source in sources.values():
            if source is not entry and declares_everything(source):
                self.specialise(source, None, at)
        main, _ = self.specialise(entry, arguments, at)
        return Program(self.in_order(tuple(sources.values())), main.name)

    def in_order(self, sources: tuple[FunctionSource, ...]) -> tuple[Function, ...]:
        """The functions in the order of their sources; those of one source in the order in which they were read."""
        place = {id(source.node): index for index, source in enumerate(sources)}
        ordered = sorted(self._sources, key=lambda item: place.get(id(item[0].node), -1))
        return tuple(function for _, function in ordered)

    def results(self, function: Function) -> tuple[int | None, ...]:
        return self._positions[function.name]

    def specialise(
        self, source: FunctionSource, arguments: Sequence[object] | None, span: Span
    ) -> tuple[Function, tuple[Value, ...]]:
        """The function for these arguments, read if it is new, and the caller's values for its leading parameters."""
        if arguments is not None and source.methods is not None and declares_everything(source):
            if all(isinstance(argument, Type) for argument in arguments) and self._reading:
                arguments = None
        key = (id(source.node), None if arguments is None else tuple((type(a).__name__, a) for a in arguments))
        found = self._made.get(key)
        if found is not None:
            return found
        if any(source.node is reading.node for reading in self._reading) or len(self._reading) >= DEEPEST_CALL:
            again = any(source.node is reading.node for reading in self._reading)
            raise LanguageError(
                f"kernel {source.name} calls itself" if again else "kernels call kernels too deeply",
                span=span,
                found=" calls ".join([*(reading.name for reading in self._reading), source.name]),
                help="write a loop with pl.range" if again else f"at most {DEEPEST_CALL} deep",
            )
        self._reading.append(source)
        try:
            function, leading = read_function(self, source, arguments, self._name(source))
        finally:
            self._reading.pop()
        self._made[key] = function, leading
        self._sources.append((source, function))
        program = Program(tuple(f for _, f in self._sources), function.name)
        self._positions[function.name] = output_positions(function, program)
        return function, leading

    def _name(self, source: FunctionSource) -> str:
        """A name of its own for another function made from `source`."""
        name, count = source.name, 0
        while name in self._taken or self._own.get(name, source.node) is not source.node:
            count += 1
            name = f"{source.name}_{count}"
        self._taken.add(name)
        return name


def declares_everything(source: FunctionSource) -> bool:
    """Whether the annotations of a program's method say all shapes and dtypes, so that one reading serves all calls."""
    for spec, node in zip(parameter_specs(source), source.arguments, strict=True):
        annotation, _ = unwrap_direction(parse_annotation(node.annotation, source.file), source.names)
        if spec.kind not in ("tensor", "scalar") or annotation is None:
            return False
        if spec.kind == "tensor" and not isinstance(annotation, ast.Subscript):
            return False
    return True


# --- one function -------------------------------------------------------------------------------------------------
def read_function(
    functions: Functions, source: FunctionSource, arguments: Sequence[object] | None, name: str
) -> tuple[Function, tuple[Value, ...]]:
    """Read one function for these arguments. Returns it with the caller's values for its leading parameters."""
    check_nesting(source.node, source.file)
    context = Context(source, functions)
    context.evaluate = partial(evaluate, context)
    context.statements = partial(read_statements, context)
    if source.methods is not None:
        context.scope.set(source.node.args.args[0].arg, SelfName())
    parameters = Parameters(context, arguments)
    parameters.bind()
    if source.node is not functions.entry:
        context.block_of_caller = parameters.block
    body, last = _split(without_returns_in_loops(source.node.body))
    body = without_jumps(body, source.file, lambda node: language_path(node, source.names))
    body, last = with_one_return(body, last, source.file)
    context.facts = analyse(
        [*body, last] if last is not None else body, partial(_writes, source), context.scope.outputs
    )
    context.statements(body)
    if context.pending is not None:
        raise LanguageError(
            "pl.yield_ ends a loop, a branch or a scope", span=context.pending.span, help="use return in a kernel"
        )
    results = returned(context, last)
    _check_results(context, results, last)
    implicit = _implicit(context, results, last)
    attrs = _declared_attrs(context) | context.attrs
    if implicit:
        already = attrs.get("implicit_outputs", 0)
        attrs["implicit_outputs"] = len(implicit) + (already if isinstance(already, int) else 0)
    span = context.span(last) if last is not None else context.span(source.node.body[-1])
    block = (*context.out, Return((*results, *implicit), span=span))
    at = _head(context)
    return Function(name, parameters.all, block, source.kind, tuple(attrs.items()), at), tuple(parameters.leading)


def _head(context: Context) -> Span:
    """The line of the `def`."""
    node = context.source.node
    return Span(context.source.file, node.lineno, node.col_offset, node.lineno, node.col_offset + 4 + len(node.name))


def _split(body: list[ast.stmt]) -> tuple[list[ast.stmt], ast.Return | None]:
    """The body without its docstring, and its final `return`."""
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        if isinstance(body[0].value.value, str):
            body = body[1:]
    if body and isinstance(body[-1], ast.Return):
        return body[:-1], body[-1]
    return body, None


def _declared_attrs(context: Context) -> dict[str, object]:
    """The attributes that the function's decorator gives."""
    source = context.source
    for given in source.node.decorator_list:
        if isinstance(given, ast.Call) and language_path(given.func, source.names) == "func_attr":
            context.evaluate(given)
    found = decorator(source.node, source.names)
    node = found[1].get("attrs") if found is not None else None
    if node is None:
        return {}
    given = context.evaluate(node)
    if not isinstance(node, ast.Dict):
        raise LanguageError("attrs is a dict of constants", span=context.span(node), found=context.text(node))
    return dict(cast("tuple[tuple[str, object], ...]", given))


def _implicit(context: Context, results: list[Scalar], last: ast.Return | None) -> list[Scalar]:
    """The last versions of the output parameters that the user does not return. Raises `ReturnError`."""
    scope = context.scope
    versions = [scope.versions.root(r) for r in results if isinstance(r, Value) and isinstance(r.type, TensorType)]
    found: list[Scalar] = []
    for name, param in context.scope.outputs.items():
        count = versions.count(param)
        if count > 1 and last is not None:
            raise ReturnError(f"output {name!r} is returned twice", span=context.span(last))
        newest = cast("Value", scope.get(hidden_name(name)))
        if count and newest not in results and last is not None:
            raise ReturnError(
                f"something that stands for part of output {name!r}, or for an old version of it, is returned",
                span=context.span(last),
                help=f"return {name} itself, or a tensor of its own",
            )
        if not count:
            scope.versions.check_read(newest, name, _head(context))
            found.append(newest)
    return found


def _check_results(context: Context, results: list[Scalar], last: ast.Return | None) -> None:
    """What is returned against what is declared, or expected. Raises `ReturnError`."""
    source = context.source
    declared = _declared_results(context)
    at = context.span(last) if last is not None else _head(context)
    if declared is None:
        if not results and not context.scope.outputs and source.methods is None and context.out:
            raise ReturnError(
                f"kernel {source.name} computes something, and neither returns it nor has an output",
                span=at,
                required="return value, or a parameter pl.Out[pl.Tensor] that is written",
                found="no return",
                help="end the kernel with return and the values",
            )
        return
    if len(results) != len(declared):
        raise ReturnError(
            f"kernel {source.name} declares {_results(len(declared))} and returns {len(results) or 'none'}",
            span=at,
            required="return " + ", ".join(repr(type) if type else "pl.Tensor" for type in declared),
            found=_results(len(results)) if last is not None else "no return",
            help="end the kernel with return and the values",
        )
    for result, type in zip(results, declared, strict=True):
        if type is not None and not same_type(type_of(result), type):
            raise DTypeError(
                f"kernel {source.name} returns another type than it declares",
                span=at,
                required=repr(type),
                found=repr(type_of(result)),
            )


def _results(count: int) -> str:
    return f"{count} result" if count == 1 else f"{count} results"


def _declared_results(context: Context) -> list[Type | None] | None:
    """The types of the return annotation, None for a bare one; None altogether when there is no annotation."""
    node = parse_annotation(context.source.node.returns, context.source.file)
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    items = [node]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and _is_tuple(node.value, context):
        items = list(node.slice.elts)
    found_types: list[Type | None] = []
    for item in items:
        inner, _ = unwrap_direction(item, context.source.names)
        declared = None if inner is None else read_declared(context, inner)
        found_types += list(declared.elements) if isinstance(declared, TupleType) else [_complete(declared)]
    return found_types


def _is_tuple(head: ast.expr, context: Context) -> bool:
    """Whether the head of an annotation is `tuple` or `pl.Tuple`."""
    if isinstance(head, ast.Name) and head.id == "tuple":
        return True
    found = resolve(head, context.source.names)
    return isinstance(found, LanguageName) and found.path == "Tuple"


def _complete(declared: object) -> Type | None:
    return declared if isinstance(declared, Type) else None


# --- what calls write ---------------------------------------------------------------------------------------------
def _writes(source: FunctionSource, node: ast.Call) -> Iterable[str]:
    """The names of the arguments that a call writes, as far as the called thing says so before types are known."""
    called = _called(source, node.func)
    if isinstance(called, LanguageName) and called.path == "submit" and node.args:
        return _writes(source, ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node))
    if isinstance(called, LanguageName):
        return list(_written_by_operation(called, node))
    if isinstance(called, FunctionSource):
        return list(_written_by_kernel(called, node))
    return ()


def _called(source: FunctionSource, node: ast.expr) -> object:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and source.methods is not None:
        if node.value.id == source.node.args.args[0].arg:
            return source.methods.get(node.attr)
    found = resolve(node, source.names)
    if isinstance(found, Kernel):
        entry = found.source.entry()
        return entry if isinstance(entry, FunctionSource) else None
    return None if isinstance(found, Method) else found


def _written_by_operation(called: LanguageName, node: ast.Call) -> Iterator[str]:
    operation = language.operation(called.path)
    if operation is None:
        return
    cls = lookup(operation[0])
    if cls.writes is None:
        return
    fields = [field for field in cls.fields if operation[1] is None or operation[1] in field.levels]
    names = (cls.writes, *cls.field(cls.writes).aliases)
    for field, given in zip(fields, node.args, strict=False):
        if field.name == cls.writes and isinstance(given, ast.Name):
            yield given.id
    for keyword in node.keywords:
        if keyword.arg in names and isinstance(keyword.value, ast.Name):
            yield keyword.value.id


def _written_by_kernel(called: FunctionSource, node: ast.Call) -> Iterator[str]:
    specs = parameter_specs(called)
    outputs = {spec.name for spec in specs if spec.direction is not Direction.IN}
    for spec, given in zip(specs, node.args, strict=False):
        if spec.name in outputs and isinstance(given, ast.Name):
            yield given.id
    for keyword in node.keywords:
        if keyword.arg in outputs and isinstance(keyword.value, ast.Name):
            yield keyword.value.id
