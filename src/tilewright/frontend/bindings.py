"""What a name or an expression stands for while a kernel is read.

A kernel is read, never run: an expression is either known now (a Python number, a string, a dtype, a name of the
language, another kernel) or an IR value or scalar expression. These are the classes for what is neither plain Python
nor IR, and the gate through which objects of the user's Python come in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, EnumMeta
from types import ModuleType
from typing import Any, Final, cast

import numpy as np

from tilewright.errors import Span
from tilewright.ir.dtypes import BOOL, FP32, INDEX, DType
from tilewright.ir.layout import Layout
from tilewright.ir.scalar import Expr, Scalar, constant
from tilewright.ir.types import MemRef, Type

LANGUAGE_MODULE = "tilewright.language"


class Missing:
    """The absence of a binding or a default; `MISSING` is its one instance."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class LanguageName:
    """A name of the language: `path` is what follows ``pl.``, empty for `pl` itself. `module` is the module in which
    it was looked up, where there is one: kernels that the language itself defines are found there."""

    path: str
    module: Any = None


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A module of the user's, whose constants and kernels may be read."""

    module: ModuleType


@dataclass(frozen=True, slots=True)
class EnumClass:
    """An enum of the user's, whose members may be read."""

    cls: EnumMeta


@dataclass(frozen=True, slots=True)
class Builtin:
    """One of the few Python builtins that a kernel may call on what is known when it is read."""

    name: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """Another kernel, found by name: anything that carries a `source`."""

    source: Any


@dataclass(frozen=True, slots=True)
class SelfName:
    """The first parameter of a program's methods."""


@dataclass(frozen=True, slots=True)
class Method:
    """`self.name`: another function of the program."""

    name: str


@dataclass(frozen=True, slots=True)
class Task:
    """The name of a section or call that others may be told to wait for."""

    name: str


@dataclass(frozen=True, slots=True)
class DynamicSymbol:
    """`pl.dynamic("n")`: an extent that each call binds to what its argument has."""

    name: str


@dataclass(frozen=True, slots=True)
class Undefined:
    """A name that has no value here, why, and where it was last assigned."""

    reason: str
    span: Span
    help: str = "assign it before, so that it has a value on every path"


BUILTINS = frozenset(
    ("min", "max", "len", "abs", "int", "float", "bool", "range", "print", "round", "enumerate", "zip", "breakpoint")
)


def from_python(value: Any) -> object:
    """The binding for an object of the user's Python; `MISSING` when a kernel may not use such an object."""
    for matches, convert in _GATE:
        if matches(value):
            return convert(value)
    return MISSING


def _sequence(value: Any) -> object:
    items = tuple(from_python(item) for item in value)
    return MISSING if any(item is MISSING for item in items) else items


def _module(value: ModuleType) -> object:
    name = value.__name__
    if name == LANGUAGE_MODULE:
        return LanguageName("", value)
    if name.startswith(LANGUAGE_MODULE + "."):
        return LanguageName(name[len(LANGUAGE_MODULE) + 1 :], value)
    return PythonModule(value)


def _plain(value: Any) -> bool:
    kinds = (int, float, str, DType, Enum, Expr, MemRef, Layout, Type, DynamicSymbol)
    return value is None or isinstance(value, kinds)


_GATE: tuple[tuple[Callable[[Any], bool], Callable[[Any], object]], ...] = (
    (_plain, lambda value: value),
    (lambda value: isinstance(value, np.generic), lambda value: value.item()),
    (lambda value: isinstance(value, list | tuple), _sequence),
    (lambda value: isinstance(value, ModuleType), _module),
    (lambda value: isinstance(value, EnumMeta), EnumClass),
    (lambda value: isinstance(getattr(value, "pl_name", None), str), lambda value: LanguageName(value.pl_name)),
    (lambda value: hasattr(value, "source"), lambda value: Kernel(value.source)),
)


# --- questions about bindings -------------------------------------------------------------------------------------
def is_number(binding: object) -> bool:
    """A Python number: known now, and of no dtype yet."""
    return isinstance(binding, int | float)


def is_scalar(binding: object) -> bool:
    """A number, or a scalar expression that is not a tensor or tile."""
    if isinstance(binding, int | float):
        return True
    return isinstance(binding, Expr) and not hasattr(getattr(binding, "type", None), "shape")


def as_scalar(binding: object, dtype: DType | None = None) -> Scalar | None:
    """`binding` as a scalar expression; None when it is none. A Python number becomes a constant of `dtype`; without
    one an int is an INDEX, a float FP32, a bool BOOL."""
    if isinstance(binding, bool):
        return constant(binding, dtype or BOOL)
    if isinstance(binding, int):
        return constant(binding, dtype or INDEX)
    if isinstance(binding, float):
        return constant(binding, dtype or FP32)
    return binding if isinstance(binding, Expr) and is_scalar(binding) else None


def describe(binding: object) -> str:
    """What `binding` is, in the user's words."""
    if isinstance(binding, Expr):
        kind = getattr(binding, "type", None)
        return repr(kind) if kind is not None else f"a scalar of {binding.dtype}"
    if isinstance(binding, LanguageName):
        return f"pl.{binding.path}" if binding.path else "pl"
    if isinstance(binding, Kernel | Task):
        return "a kernel" if isinstance(binding, Kernel) else "a task"
    if isinstance(binding, tuple):
        return "(" + ", ".join(describe(item) for item in cast("tuple[object, ...]", binding)) + ")"
    if isinstance(binding, int | float | str | DType) or binding is None:
        return repr(binding)
    return type(binding).__name__
