"""Reading what stands around a function: its decorators, and the declarations of its parameters."""

from __future__ import annotations

import ast

from tilewright.errors import LanguageError, TilewrightError
from tilewright.frontend import names as language
from tilewright.frontend.bindings import MISSING, LanguageName, Missing, PythonModule
from tilewright.frontend.syntax import FunctionSource, Names, ParameterKind, ParameterSpec, span_of
from tilewright.ir.dtypes import DType
from tilewright.ir.function import Direction, FunctionKind

JIT_KINDS = {
    "jit": FunctionKind.ORCHESTRATION,
    "jit.incore": FunctionKind.INCORE,
    "jit.inline": FunctionKind.INLINE,
    "jit.opaque": FunctionKind.OPAQUE,
}


def resolve(node: ast.expr, names: Names) -> object:
    """What a dotted name stands for, without evaluating anything; `MISSING` when it is not one, or unknown."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return MISSING
    try:
        found, path = names.lookup(node.id), node.id
        for attribute in reversed(attributes):
            path = f"{path}.{attribute}"
            if isinstance(found, LanguageName):
                found = language.member(found, attribute) or MISSING
            elif isinstance(found, PythonModule):
                found = names.member(found.module, attribute, path)
            else:
                return MISSING
    except TilewrightError:
        return MISSING
    return found


def language_path(node: ast.expr, names: Names) -> str | None:
    """The path of the language's name that `node` is, if it is one."""
    found = resolve(node, names)
    return found.path if isinstance(found, LanguageName) else None


def decorator(node: ast.FunctionDef | ast.ClassDef, names: Names) -> tuple[str, dict[str, ast.expr]] | None:
    """The first decorator that is a name of the language: its path, and its keywords."""
    for given in node.decorator_list:
        called = given.func if isinstance(given, ast.Call) else given
        path = language_path(called, names)
        if path in language.DECORATOR_WORDS:
            keywords = given.keywords if isinstance(given, ast.Call) else []
            return path, {keyword.arg: keyword.value for keyword in keywords if keyword.arg is not None}
    return None


def method_kind(node: ast.FunctionDef, names: Names, file: str) -> FunctionKind:
    """The kind of a program's method: `type=` of its `@pl.function`; an `Opaque` function without it."""
    found = decorator(node, names)
    if found is None or found[0] != "function":
        raise LanguageError(
            f"method {node.name} of a program is not marked as a function",
            span=span_of(file, node),
            help="decorate it with @pl.function(type=pl.FunctionType.InCore)",
        )
    given = found[1].get("type")
    if given is None:
        return FunctionKind.ORCHESTRATION
    kind = resolve(given, names)
    if not isinstance(kind, FunctionKind):
        raise LanguageError(
            "the type of a function is one of pl.FunctionType", span=span_of(file, given), found=ast.unparse(given)
        )
    return kind


# --- parameters ---------------------------------------------------------------------------------------------------
def parse_annotation(annotation: ast.expr | None, file: str) -> ast.expr | None:
    """The annotation itself; one written as a string is read (its places are then those of the string). `Any` and
    `object` say nothing, as no annotation does."""
    if isinstance(annotation, ast.Name | ast.Attribute):
        said = annotation.id if isinstance(annotation, ast.Name) else annotation.attr
        return None if said in ("Any", "object") else annotation
    if not isinstance(annotation, ast.Constant) or not isinstance(annotation.value, str):
        return annotation
    try:
        inner = ast.parse(annotation.value.strip(), mode="eval").body
    except SyntaxError:
        raise LanguageError("this annotation is not an expression", span=span_of(file, annotation)) from None
    for node in ast.walk(inner):
        if hasattr(node, "lineno"):
            ast.copy_location(node, annotation)
    return inner


def parameter_specs(source: FunctionSource) -> tuple[ParameterSpec, ...]:
    """The parameters of a function as declared. Reads only names of the annotations."""
    defaults = source.defaults
    return tuple(_spec(source, argument, defaults.get(argument.arg)) for argument in source.arguments)


def _spec(source: FunctionSource, argument: ast.arg, default: ast.expr | None) -> ParameterSpec:
    annotation, direction = unwrap_direction(parse_annotation(argument.annotation, source.file), source.names)
    kind, dtype = _kind(annotation, source.names)
    return ParameterSpec(argument.arg, kind, direction, _default(source, default), dtype)


def _default(source: FunctionSource, node: ast.expr | None) -> object:
    if node is None:
        return MISSING
    try:
        return ast.literal_eval(node)
    except ValueError:
        found = resolve(node, source.names)
    if isinstance(found, Missing):
        raise LanguageError(
            "the default of a parameter must be a constant",
            span=span_of(source.file, node),
            found=ast.unparse(node),
            help="use a number, a string, a name of one, or a dtype",
        )
    return found


def unwrap_direction(annotation: ast.expr | None, names: Names) -> tuple[ast.expr | None, Direction]:
    """The annotation inside `pl.Out[...]` or `pl.InOut[...]`, and the direction."""
    if isinstance(annotation, ast.Subscript):
        path = language_path(annotation.value, names)
        if path in ("Out", "InOut"):
            return annotation.slice, Direction(path)
    if annotation is not None and language_path(annotation, names) in ("Out", "InOut"):
        return None, Direction(language_path(annotation, names))
    return annotation, Direction.IN


def _kind(annotation: ast.expr | None, names: Names) -> tuple[ParameterKind, DType | None]:
    if annotation is None:
        return "any", None
    if isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "bool", "str"):
        return "constant", None
    head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    found = resolve(head, names)
    if isinstance(found, DType):
        return "scalar", found
    path = found.path if isinstance(found, LanguageName) else ""
    if path == "Scalar":
        dtype = resolve(annotation.slice, names) if isinstance(annotation, ast.Subscript) else None
        return "scalar", dtype if isinstance(dtype, DType) else None
    return ("tensor", None) if path in ("Tensor", "Tile") else ("any", None)
