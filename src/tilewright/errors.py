"""What goes wrong, said so that its reader can mend it.

Every rejection is a `TilewrightError` subclass with a stable code. It carries the source span, what was required,
what was found and a way out, and renders them with carets under the user's own line:

    TW201 kernel.py:7:12: the inner sizes of matmul differ
        7 |     c = pl.matmul(a, b)
          |         ^^^^^^^^^^^^^^^
      required: a[m, k] and b[k, n]
      found:    [64, 32] and [64, 16]
      help:     transpose b with b_trans=True, or pass b.T
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source: 1-based lines, 0-based columns, the end exclusive (as in Python's `ast`)."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"


UNKNOWN = Span("<unknown>", 0, 0, 0, 0)
"""The span of a node that no source line stands behind."""


def register_source(name: str, text: str) -> None:
    """Make `text` available to caret rendering under `name`, for programs that were never a file."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def render_carets(span: Span, indent: str = "    ") -> list[str]:
    """The source line of `span` and a line of carets under it; empty when the line cannot be read."""
    source = linecache.getline(span.file, span.line).rstrip("\n")
    if not source.strip():
        return []
    last = span.end_column if span.end_line == span.line else len(source)
    # Columns of `ast` count UTF-8 bytes; a reader counts characters.
    start = len(source.encode()[: span.column].decode(errors="replace"))
    stop = len(source.encode()[:last].decode(errors="replace"))
    gutter = f"{indent}{span.line} | "
    blank = " " * (len(gutter) - 2) + "| "
    return [gutter + source, blank + " " * start + "^" * max(1, stop - start)]


class TilewrightError(Exception):
    """Base of every error that Tilewright raises on purpose. `code` is stable across versions."""

    code = "TW000"

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        required: str | None = None,
        found: str | None = None,
        help: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.required = required
        self.found = found
        self.help = help
        self.notes = notes

    def __str__(self) -> str:
        where = f" {self.span}" if self.span is not None and self.span.line else ""
        lines = [f"{self.code}{where}: {self.message}"]
        if self.span is not None and self.span.line:
            lines += render_carets(self.span)
        lines += [
            f"  {label + ':':<9} {text}"
            for label, text in (("required", self.required), ("found", self.found), ("help", self.help))
            if text is not None
        ]
        lines += [f"  note:     {note}" for note in self.notes]
        return "\n".join(lines)

    def at(self, span: Span) -> TilewrightError:
        """The same error, placed at `span` unless it already has a place."""
        if self.span is None or not self.span.line:
            self.span = span
        return self


# --- reading a kernel ---------------------------------------------------------------------------------------------
class LanguageError(TilewrightError):
    """Something that is Python but not the kernel language."""

    code = "TW101"


class UndefinedNameError(TilewrightError):
    """A name used before it is defined, or defined on one path only."""

    code = "TW102"


class ReturnError(TilewrightError):
    """A missing `return`, or one that does not match the declared results."""

    code = "TW103"


class ReboundOutError(TilewrightError):
    """An output parameter re-bound to a value that writes nothing to it."""

    code = "TW104"


class CallError(TilewrightError):
    """A call with the wrong number, names or kinds of arguments."""

    code = "TW105"


class UnknownOpError(TilewrightError):
    """An operation that does not exist; the message suggests the nearest name."""

    code = "TW106"


class UnknownDTypeError(TilewrightError):
    """A dtype that does not exist."""

    code = "TW107"


class NonConstantShapeError(TilewrightError):
    """A shape that must be known when the kernel is compiled, and is not."""

    code = "TW108"


class SliceError(TilewrightError):
    """A slice or index that does not fit its tensor or tile."""

    code = "TW109"


# --- types --------------------------------------------------------------------------------------------------------
class ShapeError(TilewrightError):
    """Operands whose shapes do not go together."""

    code = "TW201"


class DTypeError(TilewrightError):
    """Operands whose dtypes do not go together, or that an operation does not take."""

    code = "TW202"


class ValidShapeError(TilewrightError):
    """A valid shape larger than its physical shape, or dropped on the way."""

    code = "TW203"


class OperandError(TilewrightError):
    """An operand or attribute of the wrong kind for an operation."""

    code = "TW204"


class VerifyError(TilewrightError):
    """A program that breaks an invariant of the IR."""

    code = "TW210"


# --- placement ----------------------------------------------------------------------------------------------------
class CapacityError(TilewrightError):
    """Tiles that are live together and do not fit their memory."""

    code = "TW301"


class NoRouteError(TilewrightError):
    """A move between two memories that the target has no path for."""

    code = "TW302"


class UnsupportedError(TilewrightError):
    """Something that a target or backend cannot do, with the reason."""

    code = "TW303"


class AccumulatorError(TilewrightError):
    """An accumulator that is copied, undefined or shared where it must not be."""

    code = "TW304"


# --- running ------------------------------------------------------------------------------------------------------
class ArgumentError(TilewrightError):
    """An argument of a call that does not match the kernel's parameter."""

    code = "TW401"


class UndefinedReadError(TilewrightError):
    """An undefined element that reached a result, an index or a condition."""

    code = "TW402"


class OutOfBoundsError(TilewrightError):
    """An access outside its tensor or tile."""

    code = "TW403"


class MemoryFault(TilewrightError):
    """A placed program that goes wrong at its addresses: a race, a tile written over, an access outside a memory."""

    code = "TW404"


# --- machines and backends ----------------------------------------------------------------------------------------
class CheckFailed(TilewrightError):
    """A `pl.assert_` of the kernel does not hold."""

    code = "TW405"


class TargetError(TilewrightError):
    """A target file that is malformed, or a target that does not exist."""

    code = "TW501"


class PTOError(TilewrightError):
    """PTO text that breaks a clause of the format, or cannot be executed."""

    code = "TW601"


class CodegenError(TilewrightError):
    """Native code that could not be made or loaded."""

    code = "TW602"


# --- proofs -------------------------------------------------------------------------------------------------------
class CertificateError(TilewrightError):
    """A certificate that is none: a file of another form, or of another version."""

    code = "TW603"


# --- the command line ---------------------------------------------------------------------------------------------
class CommandError(TilewrightError):
    """A command that cannot be carried out as given: a file without kernels, an argument of no known form."""

    code = "TW701"
