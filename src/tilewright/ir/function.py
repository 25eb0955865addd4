"""Functions and programs.

A program is a set of functions with one entry. A function's kind says what it may hold: an `ORCHESTRATION` function
calls others and holds tensors in DDR; an `INCORE` function is one section, run by the cores; an `INLINE` function is
spliced into its callers. Printing belongs to a higher layer, which fills `PRINTER` when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from tilewright.errors import UNKNOWN, Span
from tilewright.ir.equality import equal_functions, equal_programs, hash_function
from tilewright.ir.nodes import Block, Return, Stmt, result_of, walk
from tilewright.ir.scalar import Scalar, Value


class Direction(Enum):
    """Whether a parameter is read, written, or both. Scalars are always IN."""

    IN = "In"
    OUT = "Out"
    INOUT = "InOut"


class FunctionKind(Enum):
    """What a function is for; the value is its name in the language."""

    ORCHESTRATION = "Orchestration"
    INCORE = "InCore"
    INLINE = "Inline"
    OPAQUE = "Opaque"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter."""

    value: Value
    direction: Direction = Direction.IN

    @property
    def is_output(self) -> bool:
        return self.direction is not Direction.IN


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One function; its body ends in a `Return`. Equality is structural (see `ir.equality`).

    The last version of each output parameter is among the values returned, once, so that data flow alone says what
    is alive. The attribute ``implicit_outputs`` counts those at the end of the `Return` that the user's source does
    not return itself."""

    name: str
    params: tuple[Param, ...]
    body: Block
    kind: FunctionKind = FunctionKind.INCORE
    attrs: tuple[tuple[str, object], ...] = ()
    span: Span = UNKNOWN

    @property
    def results(self) -> tuple[Scalar, ...]:
        """The values that the function returns."""
        return result_of(self.body)

    def walk(self) -> Iterator[Stmt]:
        """Every statement, nested ones included, in order."""
        return walk(self.body)

    def with_body(self, body: Block) -> Function:
        return self if body is self.body else replace(self, body=body)

    def with_(self, **fields: object) -> Function:
        return replace(self, **fields)  # type: ignore[arg-type]

    def attr(self, key: str, default: object = None) -> object:
        return dict(self.attrs).get(key, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and equal_functions(self, other)

    def __hash__(self) -> int:
        return hash_function(self)

    def __str__(self) -> str:
        return print_with(Program((self,), self.name))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Functions, the entry named. Equality is structural."""

    functions: tuple[Function, ...]
    entry: str
    by_name: dict[str, Function] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {function.name: function for function in self.functions})

    def function(self, name: str) -> Function:
        return self.by_name[name]

    @property
    def main(self) -> Function:
        """The entry."""
        return self.by_name[self.entry]

    def map(self, transform: Callable[[Function], Function]) -> Program:
        """The program with each function transformed; itself when none changes."""
        functions = tuple(transform(function) for function in self.functions)
        if all(a is b for a, b in zip(functions, self.functions, strict=True)):
            return self
        return Program(functions, self.entry)

    def with_functions(self, functions: tuple[Function, ...]) -> Program:
        return Program(functions, self.entry)

    def as_python(self, explicit_layout: bool = False) -> str:
        """The program as text that parses back to it. `explicit_layout` also prints layouts that spaces imply."""
        return print_with(self, explicit_layout=explicit_layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and equal_programs(self, other)

    def __hash__(self) -> int:
        return hash(tuple(hash_function(function) for function in self.functions))

    def __str__(self) -> str:
        return print_with(self)


PRINTER: list[Callable[[Program, bool], str]] = []
"""The printer, filled when the text layer is imported; the IR itself knows no syntax."""


def print_with(program: Program, explicit_layout: bool = False) -> str:
    if not PRINTER:
        return f"<program {program.entry}: {len(program.functions)} functions>"
    return PRINTER[0](program, explicit_layout)


def ends_in_return(block: Block) -> bool:
    return bool(block) and isinstance(block[-1], Return)
