"""Parameters: what a function declares against what it is given, extents that calls bind, and constants.

A parameter's type is its annotation where that is complete; where it leaves something open (a bare `pl.Tensor`, an
extent `pl.dynamic("n")`, no annotation), the argument decides. A constant argument is compiled in, and the parameter
disappears. Extents of argument types that are values of the caller become leading INDEX parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tilewright.errors import ArgumentError, LanguageError, NonConstantShapeError, Span
from tilewright.frontend.annotations import Declared, TensorPattern, read_declared
from tilewright.frontend.bindings import DynamicSymbol, describe
from tilewright.frontend.context import Context
from tilewright.frontend.decorators import parse_annotation, unwrap_direction
from tilewright.frontend.scope import hidden_name
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Direction, Param
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import ScalarType, TensorType, TileType, Type

CONSTANTS = {"int": int, "float": (int, float), "bool": bool, "str": str}


BLOCK = (Value("block_idx", ScalarType(INDEX)), Value("block_num", ScalarType(INDEX)))
"""What a caller passes for the number of the block that it is in, and how many there are."""


class Parameters:
    """Binds the parameters of one function as it is read. `arguments` None: the annotations say everything."""

    def __init__(self, context: Context, arguments: Sequence[object] | None) -> None:
        self.context = context
        self.arguments = arguments
        self.params: list[Param] = []
        self.leading: dict[Value, Value] = {}
        """values of the caller in argument types, and the parameters that stand for them"""
        self.hidden: list[Param] = []

    @property
    def all(self) -> tuple[Param, ...]:
        """Every parameter in order, those that the source does not name first."""
        return (*self.hidden, *self.params)

    def block(self) -> tuple[Scalar, Scalar]:
        """The number of the block of a launch that calls this function, and how many there are."""
        index, count = map(self._lead, BLOCK)
        return index, count

    def bind(self) -> None:
        """Bind every parameter in the scope. Raises `ArgumentError`, `LanguageError` and its kin."""
        nodes = self.context.source.arguments
        given = [None] * len(nodes) if self.arguments is None else list(self.arguments)
        if len(given) != len(nodes):
            raise ArgumentError(
                f"kernel {self.context.source.name} takes {len(nodes)} arguments",
                span=self.context.span(self.context.source.node),
                required=", ".join(node.arg for node in nodes),
                found=f"{len(given)} arguments",
            )
        for node, argument in zip(nodes, given, strict=True):
            self._one(node, argument)

    def _one(self, node: ast.arg, argument: object) -> None:
        source = self.context.source
        annotation, direction = unwrap_direction(parse_annotation(node.annotation, source.file), source.names)
        constant = annotation.id if isinstance(annotation, ast.Name) and annotation.id in CONSTANTS else None
        declared: Declared = None
        if annotation is not None and constant is None:
            declared = read_declared(self.context, annotation)
        default = source.defaults.get(node.arg)
        if argument is None and isinstance(default, ast.Constant) and default.value is None:
            self.context.scope.set(node.arg, None)
            return
        if argument is not None and not isinstance(argument, Type):
            self._constant(node, argument, declared, constant)
            return
        type = self._type(node, declared, argument)
        if direction is not Direction.IN and not isinstance(type, TensorType | TileType):
            raise LanguageError("only tensors are outputs", span=self.context.span(node), found=repr(type))
        self._declare(node.arg, type, direction, self.context.span(node))

    def _declare(self, name: str, type: Type, direction: Direction, span: Span) -> None:
        value = Value(name, type, span)
        self.params.append(Param(value, direction))
        scope = self.context.scope
        scope.set(name, value)
        if not isinstance(type, TensorType):
            return
        scope.versions.params.add(value)
        if direction is Direction.IN:
            scope.versions.inputs.add(value)
        else:
            scope.outputs[name] = value
            scope.set(hidden_name(name), value)

    def _constant(self, node: ast.arg, argument: object, declared: Declared, constant: str | None) -> None:
        """A constant that the kernel is compiled with."""
        wanted: Any = CONSTANTS.get(constant or "", object)
        fits = isinstance(argument, wanted) and not (constant in ("int", "float") and isinstance(argument, bool))
        if isinstance(declared, TensorType | TileType | TensorPattern) or not fits:
            raise ArgumentError(
                f"argument {node.arg!r} is not what the kernel declares",
                span=self.context.span(node),
                required=constant or repr(declared),
                found=describe(argument),
            )
        self.context.scope.set(node.arg, argument)

    def _type(self, node: ast.arg, declared: Declared, argument: Type | None) -> Type:
        span = self.context.span(node)
        if argument is None:
            if isinstance(declared, TensorPattern):
                return TensorType(self._symbols(declared), declared.dtype, declared.strides)
            if declared is None:
                raise NonConstantShapeError(
                    f"parameter {node.arg!r} does not say its shape and dtype",
                    span=span,
                    required="pl.Tensor[[64, 64], pl.FP32]",
                    found=self.context.text(node),
                    help="annotate it in full, or call the kernel with arguments",
                )
            return declared
        found = argument.substitute(self._lead) if any(True for _ in argument.values()) else argument
        if declared is None:
            return found
        if isinstance(declared, TensorPattern):
            self._match(declared, found, node.arg, span)
            return found
        return self._agreed(declared, found, node.arg, span)

    def _lead(self, value: Value) -> Scalar:
        """The parameter that stands for a value of the caller."""
        known = self.leading.get(value)
        if known is None:
            known = self.leading[value] = Value(value.name, ScalarType(INDEX), value.span)
            self.hidden.append(Param(known))
        return known

    def _symbols(self, pattern: TensorPattern) -> Shape:
        """The extents of a declared tensor; each symbol is a leading parameter."""
        extents: list[Scalar] = []
        for extent in pattern.shape:
            if isinstance(extent, DynamicSymbol):
                known = self.context.symbols.get(extent.name)
                if known is None:
                    known = Value(extent.name, ScalarType(INDEX), self.context.span(self.context.source.node))
                    self.context.symbols[extent.name] = known
                    self.hidden.append(Param(known))
                extents.append(known)
            else:
                extents.append(extent)
        return tuple(extents)

    def _match(self, pattern: TensorPattern, found: Type, name: str, span: Span) -> None:
        """Bind the symbols of a declared tensor to the extents of an argument. Raises `ArgumentError`."""
        if not isinstance(found, TensorType | TileType) or len(found.shape) != len(pattern.shape):
            raise self._wrong(name, repr(pattern), found, span)
        for extent, actual in zip(pattern.shape, found.shape, strict=True):
            wanted: Scalar = actual
            if isinstance(extent, DynamicSymbol):
                wanted = self.context.symbols.setdefault(extent.name, actual)
            else:
                wanted = extent
            if wanted != actual:
                label = f"{extent.name} = {wanted}" if isinstance(extent, DynamicSymbol) else repr(wanted)
                raise self._wrong(name, f"{pattern!r} with extent {label}", found, span)
        if found.dtype is not pattern.dtype:
            raise self._wrong(name, repr(pattern), found, span)

    def _agreed(self, declared: Type, found: Type, name: str, span: Span) -> Type:
        """The type that declaration and argument agree on. Raises `ArgumentError`."""
        if isinstance(declared, TensorType) and isinstance(found, TensorType):
            strides = declared.strides or found.strides
            if declared.shape == found.shape and declared.dtype is found.dtype and strides == found.strides:
                return found
        elif isinstance(declared, TileType) and isinstance(found, TileType):
            if declared.shape == found.shape and declared.dtype is found.dtype:
                return found
        elif declared is found:
            return found
        raise self._wrong(name, repr(declared), found, span)

    def _wrong(self, name: str, required: str, found: Type, span: Span) -> ArgumentError:
        return ArgumentError(
            f"argument {name!r} is not what kernel {self.context.source.name} declares",
            span=span,
            required=required,
            found=repr(found),
            help="pass what is declared, or write a bare pl.Tensor to accept any shape and dtype",
        )
