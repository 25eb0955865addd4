"""Expressions: from a syntax tree to a binding. What is known is computed; what is not becomes operations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

from tilewright.errors import CallError, LanguageError, TilewrightError, UndefinedNameError
from tilewright.frontend import names as language
from tilewright.frontend.arithmetic import as_condition, both, combine, compute, invert, is_static, negate
from tilewright.frontend.bindings import (
    Builtin,
    EnumClass,
    Kernel,
    LanguageName,
    Method,
    Missing,
    PythonModule,
    SelfName,
    Task,
    as_scalar,
    describe,
    from_python,
    is_number,
    is_scalar,
)  # fmt: skip
from tilewright.frontend.context import Context
from tilewright.frontend.forms import FORMS, call_builtin, condition
from tilewright.frontend.jumps import Condition
from tilewright.frontend.kernels import as_one, call_kernel
from tilewright.frontend.launches import LAUNCH_FORMS, bind_dynamic
from tilewright.frontend.operations import Arguments
from tilewright.frontend.operators import operate, unary
from tilewright.frontend.options import check_deps
from tilewright.frontend.probes import probe_kind, read_probe
from tilewright.frontend.spellings import call_spelled
from tilewright.frontend.subscripts import array_attribute, subscript
from tilewright.frontend.syntax import FunctionSource
from tilewright.ir.op import is_array
from tilewright.ir.scalar import BinaryKind, Scalar, Select, Value, constant_value

Evaluator = Callable[[Context, Any], object]


def evaluate(context: Context, node: ast.expr) -> object:
    """What `node` stands for. Every error is placed at the innermost expression that is to blame."""
    reader = _READERS.get(type(node))
    if reader is None:
        raise unsupported(context, node)
    try:
        return reader(context, node)
    except TilewrightError as error:
        raise error.at(context.span(node)) from None


def unsupported(context: Context, node: ast.expr) -> LanguageError:
    """The error for an expression that is Python but not the language."""
    what, instead = _UNSUPPORTED.get(type(node), (type(node).__name__, "write it with operations of pl"))
    return LanguageError(
        f"{what} is not part of the language", span=context.span(node), found=context.text(node), help=instead
    )


_UNSUPPORTED: dict[type[ast.expr], tuple[str, str]] = {
    ast.ListComp: ("a comprehension", "write the elements out, or use pl.static_range in a loop"),
    ast.GeneratorExp: ("a generator", "write the elements out, or use pl.static_range in a loop"),
    ast.SetComp: ("a comprehension", "write the elements out"),
    ast.DictComp: ("a comprehension", "write the elements out"),
    ast.Lambda: ("a lambda", "define a kernel with @pl.jit.inline and call it"),
    ast.JoinedStr: ("an f-string", "compute the string outside the kernel"),
    ast.NamedExpr: ("an assignment inside an expression", "assign on a line of its own"),
    ast.Await: ("await", "kernels run to their end"),
    ast.Yield: ("Python's yield", "pl.yield_(...) hands out the values of a loop or branch"),
    ast.YieldFrom: ("Python's yield", "pl.yield_(...) hands out the values of a loop or branch"),
    ast.Set: ("a set", "use a tuple"),
    ast.Starred: ("a starred expression", "write the elements out"),
}


# --- names and literals -------------------------------------------------------------------------------------------
def _constant(context: Context, node: ast.Constant) -> object:
    if isinstance(node.value, bytes | complex) or node.value is Ellipsis:
        raise LanguageError(f"{type(node.value).__name__} is not part of the language", found=context.text(node))
    if isinstance(node.value, int) and abs(node.value) >= 2**64:
        raise LanguageError("this integer does not fit 64 bits", required="below 2 ** 64 in magnitude")
    return node.value


def _name(context: Context, node: ast.Name) -> object:
    return context.name(node)


def _sequence(context: Context, node: ast.Tuple | ast.List) -> object:
    items: list[object] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            spread = context.evaluate(item.value)
            if not isinstance(spread, tuple):
                raise unsupported(context, item)
            items += cast("tuple[object, ...]", spread)
        else:
            items.append(as_one(context.evaluate(item)))
    return tuple(items)


def _dict(context: Context, node: ast.Dict) -> object:
    """A dict as a tuple of pairs: attributes of functions are its only use."""
    pairs: list[tuple[object, object]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise LanguageError("the keys of a dict are strings", found=context.text(node))
        pairs.append((key.value, context.evaluate(value)))
    return tuple(pairs)


def _attribute(context: Context, node: ast.Attribute) -> object:
    owner = as_one(context.evaluate(node.value))
    match owner:
        case LanguageName():
            found = language.member(owner, node.attr)
            if found is None:
                raise language.unknown(owner, node.attr)
            return found
        case PythonModule(module):
            found = context.source.names.member(module, node.attr, ast.unparse(node))
        case EnumClass(cls):
            found = context.source.names.member(cls, node.attr, ast.unparse(node))
        case SelfName():
            return _method(context, node.attr)
        case Enum() if node.attr in ("name", "value"):
            found = from_python(owner.name if node.attr == "name" else owner.value)
        case Value() if is_array(owner):
            return array_attribute(context, owner, node)
        case _:
            raise LanguageError(
                "this has no attributes that a kernel may read",
                found=f"{context.text(node.value)}, which is {describe(owner)}",
                help="read it outside, into a name of its own",
            )
    if isinstance(found, Missing):
        raise UndefinedNameError(f"{context.text(node)} does not exist")
    return found


def _method(context: Context, name: str) -> Method:
    methods = context.source.methods or {}
    if name not in methods:
        raise UndefinedNameError(
            f"the program has no function {name!r}", required=", ".join(methods) or "none", found=f"self.{name}"
        )
    return Method(name)


def _subscript(context: Context, node: ast.Subscript) -> object:
    return subscript(context, as_one(context.evaluate(node.value)), node)


# --- operators ----------------------------------------------------------------------------------------------------
def binary(context: Context, operator: ast.AST, lhs: Any, rhs: Any, node: ast.AST) -> object:
    """`lhs operator rhs` for any two bindings."""
    if is_array(lhs) or is_array(rhs):
        return operate(context, operator, lhs, rhs, context.span(node))
    if is_number(lhs) and is_number(rhs):
        return compute(operator, lhs, rhs)
    if is_scalar(lhs) and is_scalar(rhs):
        return combine(operator, lhs, rhs)
    if isinstance(operator, ast.Add) and isinstance(lhs, tuple) and isinstance(rhs, tuple):
        return cast("tuple[object, ...]", lhs) + cast("tuple[object, ...]", rhs)
    raise LanguageError(
        "this operator takes scalars, tensors and tiles",
        found=f"{describe(cast('object', lhs))} and {describe(cast('object', rhs))}",
    )


def _binary(context: Context, node: ast.BinOp) -> object:
    lhs, rhs = as_one(context.evaluate(node.left)), as_one(context.evaluate(node.right))
    return binary(context, node.op, lhs, rhs, node)


def _unary(context: Context, node: ast.UnaryOp) -> object:
    value = as_one(context.evaluate(node.operand))
    if isinstance(node.op, ast.Not):
        decided = condition(context, node.operand) if is_array(value) else value
        return invert(decided if is_static(decided) else as_condition(cast("Scalar", as_scalar(decided))))
    if isinstance(node.op, ast.Invert):
        if is_array(value):
            return unary(context, "not", cast("Value", value), context.span(node))
        if isinstance(value, int):
            return ~value
        raise LanguageError("~ takes integers that are known, tensors and tiles", found=describe(value))
    if is_array(value):
        assert isinstance(value, Value)
        return unary(context, "neg", value, context.span(node)) if isinstance(node.op, ast.USub) else value
    if not is_scalar(value):
        raise LanguageError("a sign takes a number, tensor or tile", found=describe(value))
    return negate(value) if isinstance(node.op, ast.USub) else value


def _logic(context: Context, node: ast.BoolOp) -> object:
    """`and`, `or`: what is known decides at once; the rest is computed, both sides of it."""
    kind = BinaryKind.AND if isinstance(node.op, ast.And) else BinaryKind.OR
    result: object = kind is BinaryKind.AND
    for part in node.values:
        value = condition(context, part)
        if not is_static(value) and (known := constant_value(cast("Scalar", value))) is not None:
            value = bool(known)
        if isinstance(result, bool):
            if result is (kind is BinaryKind.OR):
                return result
            result = value
        elif isinstance(value, bool):
            if value is (kind is BinaryKind.OR):
                return value
        else:
            result = both(kind, cast("Scalar", result), cast("Scalar", value))
    return result


def _compare(context: Context, node: ast.Compare) -> object:
    values = [as_one(context.evaluate(part)) for part in (node.left, *node.comparators)]
    result: object = None
    for operator, lhs, rhs in zip(node.ops, values[:-1], values[1:], strict=True):
        one = _compare_two(context, operator, lhs, rhs, node)
        if result is None:
            result = one
        elif is_static(result) and is_static(one):
            result = bool(result) and bool(one)
        elif is_scalar(result) and is_scalar(one):
            result = both(BinaryKind.AND, cast("Scalar", as_scalar(result)), cast("Scalar", as_scalar(one)))
        else:
            raise LanguageError("comparisons of tensors and tiles do not chain", found=context.text(node))
    return result


def _compare_two(context: Context, operator: ast.cmpop, lhs: object, rhs: object, node: ast.Compare) -> object:
    if isinstance(operator, ast.Is | ast.IsNot):
        return (lhs is rhs) is isinstance(operator, ast.Is)
    if isinstance(operator, ast.In | ast.NotIn):
        if is_static(lhs) and isinstance(rhs, tuple):
            return (lhs in cast("tuple[object, ...]", rhs)) is isinstance(operator, ast.In)
        raise LanguageError("`in` looks among constants only", found=context.text(node))
    known = is_static(lhs) and is_static(rhs) and not (is_number(lhs) and is_number(rhs))
    if known and isinstance(operator, ast.Eq | ast.NotEq):
        return (lhs == rhs) is isinstance(operator, ast.Eq)
    return binary(context, operator, lhs, rhs, node)


def _condition(context: Context, node: Condition) -> object:
    return condition(context, node.test)


def _conditional(context: Context, node: ast.IfExp) -> object:
    decided = condition(context, node.test)
    if isinstance(decided, bool):
        return context.evaluate(node.body if decided else node.orelse)
    then, otherwise = context.evaluate(node.body), context.evaluate(node.orelse)
    left, right = as_scalar(then), as_scalar(otherwise)
    if left is None or right is None:
        raise LanguageError(
            "a conditional expression chooses between scalars",
            found=f"{describe(then)} and {describe(otherwise)}",
            help="use if/else, or pl.sel for tensors and tiles",
        )
    return Select(cast("Scalar", decided), left, right)


# --- calls --------------------------------------------------------------------------------------------------------
def call(context: Context, node: ast.Call, statement: bool = False) -> object:
    """What a call returns. `statement`: it stands on a line of its own."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "bind_dynamic":
        owner = as_one(context.evaluate(node.func.value))
        if is_array(owner):
            bind_dynamic(context, cast("Value", owner), Arguments(context, node))
            return None
    called = context.evaluate(node.func)
    probe = probe_kind(called)
    if probe is not None:
        read_probe(context, probe, node)
        return None
    match called:
        case LanguageName(path) if path in FORMS or path in LAUNCH_FORMS:
            return (FORMS.get(path) or LAUNCH_FORMS[path])(context, Arguments(context, node))
        case LanguageName("submit"):
            return _submit(context, Arguments(context, node))
        case LanguageName(path):
            return _call_language(context, path, node, statement)
        case Builtin(name):
            return call_builtin(context, name, Arguments(context, node))
        case Kernel(source):
            return call_kernel(context, _entry(source), Arguments(context, node))
        case Method(name):
            assert context.source.methods is not None
            return call_kernel(context, context.source.methods[name], Arguments(context, node))
        case _:
            raise CallError(
                f"{context.text(node.func)} cannot be called in a kernel",
                found=describe(called),
                help="call operations of pl, and functions decorated with @pl.jit.incore or @pl.jit.inline",
            )


def _submit(context: Context, arguments: Arguments) -> object:
    """``result, task = pl.submit(kernel, a, b, deps=[...])``: a call, and the name of what it runs."""
    deps = arguments.keywords.pop("deps", None)
    if deps is not None:
        check_deps(deps[0], deps[1])
    called = arguments.positional.pop(0)[0] if arguments.positional else None
    match called:
        case Kernel(source):
            found = call_kernel(context, _entry(source), arguments)
        case Method(name):
            assert context.source.methods is not None
            found = call_kernel(context, context.source.methods[name], arguments)
        case _:
            raise CallError(
                "pl.submit takes a kernel and its arguments",
                span=arguments.span,
                required="result, task = pl.submit(kernel, a, out)",
                found=describe(called),
            )
    found = as_one(found)
    results = cast("tuple[object, ...]", found) if isinstance(found, tuple) else () if found is None else (found,)
    return (*results, Task("task"))


def _entry(source: Any) -> FunctionSource:
    entry = source.entry()
    assert isinstance(entry, FunctionSource)
    return entry


def _call_language(context: Context, path: str, node: ast.Call, statement: bool) -> object:
    found = language.operation(path)
    if found is not None:
        return call_spelled(context, path, *found, Arguments(context, node), statement)
    instead = language.UNSUPPORTED_WORDS.get(path)
    if instead is None and path == "yield_":
        instead = "assign it as the last statement of a loop or branch: x = pl.yield_(y)"
    if instead is None and path == "cond":
        instead = "it is the first statement of a loop over pl.while_"
    if instead is None and path == "while_":
        instead = "write for (x,) in pl.while_(init_values=(0,)): and pl.cond(x < n) first in its body"
    if instead is None and path in language.LOOP_WORDS:
        instead = f"write for i in pl.{path}(...):"
    raise LanguageError(f"pl.{path} does not stand here", found=context.text(node), help=instead)


_READERS: dict[type[ast.expr], Evaluator] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logic,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Call: call,
    Condition: _condition,
}
