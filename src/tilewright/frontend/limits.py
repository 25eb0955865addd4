"""Bounds on what is read, so that no source text, however odd, keeps the reader busy or breaks its stack."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from tilewright.errors import UNKNOWN, LanguageError
from tilewright.frontend.syntax import span_of
from tilewright.ir.collector import collector_paused

T = TypeVar("T")
DEEPEST_NESTING = 120
"""How deep statements and expressions may nest, counted in nodes of the syntax tree."""
LONGEST_TEXT = 64 * 2**20
"""The longest text that is parsed, in characters."""


def check_nesting(node: ast.AST, file: str) -> None:
    """Raises `LanguageError` when `node` nests deeper than the reader goes."""
    todo: list[tuple[ast.AST, int]] = [(node, 0)]
    while todo:
        inner, depth = todo.pop()
        if depth > DEEPEST_NESTING:
            raise LanguageError(
                "this nests too deeply",
                span=span_of(file, inner) if hasattr(inner, "lineno") else UNKNOWN,
                required=f"at most {DEEPEST_NESTING} levels",
                help="give the parts names, one statement each",
            )
        todo += [(child, depth + 1) for child in ast.iter_child_nodes(inner)]


def guarded(read: Callable[[], T]) -> T:
    """What `read` returns. Nesting that no count foresaw is a `LanguageError` too."""
    try:
        with collector_paused():
            return read()
    except RecursionError:
        raise LanguageError("this nests too deeply", help="give the parts names, one statement each") from None
