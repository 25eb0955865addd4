"""The lines of one function: unique names, constants and hoisted definitions at the top, and what is defined where.

A *prelude* is a place to which definitions that depend on nothing inside are moved: the top of the function, and the
top of each section of it. `memo` gives a definition that is visible here already instead of making it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the text with the spelling of its type."""

    name: str
    type: str


@dataclass(slots=True)
class _Chunk:
    depth: int
    items: list[str | _Chunk] = field(default_factory=list["str | _Chunk"])


class Text:
    """Appends lines to the innermost open region."""

    def __init__(self, depth: int) -> None:
        self._chunk = _Chunk(depth)
        self._all = self._chunk
        self._scopes: list[dict[object, object]] = [{}]
        self._used: set[str] = set()
        self._preludes: list[tuple[_Chunk, int]] = []
        self._open_prelude()

    def _open_prelude(self) -> None:
        chunk = _Chunk(self._chunk.depth)
        self._chunk.items.append(chunk)
        self._preludes.append((chunk, len(self._scopes)))

    # --- names ---
    def fresh(self, stem: str) -> str:
        """A name that nothing in the function has, close to `stem`."""
        stem = re.sub(r"\W", "_", stem) or "v"
        name, count = stem, 0
        while name in self._used:
            count += 1
            name = f"{stem}_{count}"
        self._used.add(name)
        return f"%{name}"

    # --- lines ---
    def line(self, text: str) -> None:
        self._chunk.items.append("  " * self._chunk.depth + text)

    @contextmanager
    def region(self, head: str, tail: str | None = "}", *, prelude: bool = False) -> Generator[None]:
        """Lines between `head` and `tail`, one step deeper; what they define is not visible afterwards."""
        self.line(head)
        outer = self._chunk
        self._chunk = _Chunk(outer.depth + 1)
        outer.items.append(self._chunk)
        self._scopes.append({})
        if prelude:
            self._open_prelude()
        yield
        if prelude:
            self._preludes.pop()
        self._scopes.pop()
        self._chunk = outer
        if tail is not None:
            self.line(tail)

    @contextmanager
    def hoisted(self, *, to_function: bool = False) -> Generator[None]:
        """What is written inside goes to the innermost prelude, or to that of the function."""
        chunk, depth = self._preludes[0 if to_function else -1]
        kept, scopes = self._chunk, self._scopes
        self._chunk, self._scopes = chunk, scopes[:depth]
        yield
        self._chunk, self._scopes = kept, scopes

    def memo(self, key: object, make: Callable[[], T]) -> T:
        """What `make` defined under `key` where it is still visible; else made here."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]  # pyright: ignore[reportReturnType]
        made = make()
        self._scopes[-1][key] = made
        return made

    def forget(self, keep: Callable[[object], bool]) -> None:
        """Drop definitions of the innermost region that `keep` does not want."""
        scope = self._scopes[-1]
        for key in [key for key in scope if not keep(key)]:
            del scope[key]

    def __str__(self) -> str:
        return "".join(line + "\n" for line in _lines(self._all))


def _lines(chunk: _Chunk) -> Iterator[str]:
    for item in chunk.items:
        if isinstance(item, str):
            yield item
        else:
            yield from _lines(item)
