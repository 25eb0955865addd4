"""One function as source: its syntax tree, its file, the names that it sees. Where they come from is hidden."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from tilewright.errors import LanguageError, Span
from tilewright.ir.dtypes import DType
from tilewright.ir.function import Direction, FunctionKind

ParameterKind = Literal["tensor", "scalar", "constant", "any"]


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter as it is declared. `kind` is "any" where there is no annotation; `dtype` is that of a declared
    scalar; `default` is `MISSING` where there is none."""

    name: str
    kind: ParameterKind
    direction: Direction
    default: object
    dtype: DType | None = None


class Names(Protocol):
    """The names that a kernel sees from outside."""

    def lookup(self, name: str) -> object:
        """The binding of a name, `MISSING` when there is none. Raises `LanguageError` for an unusable object."""
        ...

    def member(self, owner: Any, name: str, path: str) -> object:
        """The binding of an attribute of a module or enum that a name stands for."""
        ...


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """One function as source: what the reader of functions needs of it."""

    name: str
    node: ast.FunctionDef
    file: str
    kind: FunctionKind
    names: Names
    methods: dict[str, FunctionSource] | None = None
    """the functions that `self.` reaches, for a method of a program"""

    @property
    def arguments(self) -> list[ast.arg]:
        """The parameters, without `self`. Raises `LanguageError` for a list of unknown length."""
        given = self.node.args
        for extra in (given.vararg, given.kwarg):
            if extra is not None:
                raise LanguageError(
                    f"kernel {self.name} takes a variable number of arguments",
                    span=span_of(self.file, extra),
                    help="name each parameter",
                )
        found = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        return found[1:] if self.methods is not None else found

    @property
    def defaults(self) -> dict[str, ast.expr]:
        """The default of each parameter that has one."""
        given = self.node.args
        positional = [*given.posonlyargs, *given.args]
        count = len(given.defaults)
        found = dict(zip([a.arg for a in positional[len(positional) - count :]], given.defaults, strict=True))
        found |= {a.arg: d for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is not None}
        return found


def span_of(file: str, node: ast.AST) -> Span:
    """The stretch of `file` that `node` was read from."""
    at = cast("ast.expr", node)
    return Span(file, at.lineno, at.col_offset, at.end_lineno or at.lineno, at.end_col_offset or at.col_offset + 1)


def choose_entry(functions: dict[str, FunctionSource], entry: str | None, program: str) -> FunctionSource:
    """The function called `entry`; without one the only one, else the first `Orchestration` one, else `main`, else
    the last."""
    if entry is not None:
        if entry not in functions:
            raise LanguageError(
                f"program {program} has no function {entry!r} to start with", found=", ".join(functions) or "none"
            )
        return functions[entry]
    if not functions:
        raise LanguageError(f"{program} has no functions", help="give it a function decorated with @pl.function")
    for function in functions.values():
        if function.kind is FunctionKind.ORCHESTRATION:
            return function
    return functions.get("main") or list(functions.values())[-1]
