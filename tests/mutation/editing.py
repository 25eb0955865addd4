"""Final programs as lines of text, taken apart just far enough to plant a fault in one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

_LET = re.compile(r"^(\s*)(\w+)(: .+?)? = pl\.(tile|tensor)\.(\w+)\((.*)\)$")
_ADDRESS = re.compile(r'pl\.MemRef\("(\w+)"(?:, addr=(\d+))?, nbytes=(\d+)\)')


@dataclass(frozen=True)
class Statement:
    """``name: annotation = pl.level.op(args)``, at line `at`."""

    at: int
    indent: str
    name: str
    annotation: str
    level: str
    op: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.indent}{self.name}{self.annotation} = pl.{self.level}.{self.op}({', '.join(self.args)})"

    @property
    def buffer(self) -> tuple[str, int, int] | None:
        """Name, address and bytes of the buffer of its tile."""
        found = _ADDRESS.search(self.annotation)
        return (found[1], int(found[2] or 0), int(found[3])) if found else None

    @property
    def space(self) -> str:
        found = re.search(r"pl\.Mem\.(\w+)", self.annotation)
        return found[1] if found else ""

    @property
    def shape(self) -> tuple[int, ...]:
        found = re.search(r"pl\.Tile\[\[([\d, ]+)\]", self.annotation)
        return tuple(map(int, found[1].split(", "))) if found else ()

    def moved(self, addr: int) -> Statement:
        """Its tile at another address."""
        return replace(self, annotation=re.sub(r"addr=\d+", f"addr={addr}", self.annotation))

    def argument(self, name: str) -> int | None:
        """The position of a keyword argument."""
        return next((i for i, arg in enumerate(self.args) if arg.startswith(name + "=")), None)

    def given(self, at: int, value: str) -> Statement:
        """With another argument at position `at`."""
        return replace(self, args=(*self.args[:at], value, *self.args[at + 1 :]))

    def without(self, at: int) -> Statement:
        return replace(self, args=self.args[:at] + self.args[at + 1 :])

    def keyword(self, name: str, change: Callable[[str], str | None]) -> Statement | None:
        """With the keyword argument `name` changed; None where there is none, or `change` knows nothing."""
        at = self.argument(name)
        if at is None:
            return None
        value = change(self.args[at].removeprefix(name + "="))
        return None if value is None else self.given(at, f"{name}={value}")


def split(args: str) -> tuple[str, ...]:
    """Arguments apart, at the commas that no bracket encloses."""
    found, depth, start = list[str](), 0, 0
    for at, char in enumerate(args):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            found.append(args[start:at].strip())
            start = at + 1
    rest = args[start:].strip()
    return (*found, rest) if rest else tuple(found)


class Lines:
    """The text of a program, and what its lines are."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.statements = [s for at, line in enumerate(self.lines) if (s := _statement(at, line)) is not None]
        self.by_name: dict[str, list[Statement]] = {}
        for stmt in self.statements:
            self.by_name.setdefault(stmt.name, []).append(stmt)

    def function_of(self, at: int) -> int:
        """The line at which the function around line `at` begins."""
        while at and not self.lines[at].lstrip().startswith("def "):
            at -= 1
        return at

    def end_of(self, at: int) -> int:
        """The line after the function around line `at`."""
        at += 1
        while at < len(self.lines) and not self.lines[at].lstrip().startswith(("def ", "@pl")):
            at += 1
        return at

    def uses_after(self, stmt: Statement) -> list[int]:
        """Lines of the same function after `stmt` that mention its name."""
        return [at for at in range(stmt.at + 1, self.end_of(stmt.at)) if mentions(self.lines[at], stmt.name)]

    def operand(self, stmt: Statement, position: int) -> Statement | None:
        """The statement of the same function that makes an argument."""
        if position >= len(stmt.args):
            return None
        made = self.by_name.get(stmt.args[position], [])
        first = self.function_of(stmt.at)
        return next((s for s in reversed(made) if first < s.at < stmt.at), None)

    def tiles(self) -> Iterator[Statement]:
        """Statements that make a tile with an address."""
        return (s for s in self.statements if s.buffer is not None)

    # --- planting ---
    def text(self, changes: dict[int, str | None]) -> str:
        """The text with some lines replaced, or left out."""
        new = [changes.get(at, line) for at, line in enumerate(self.lines)]
        return "\n".join(line for line in new if line is not None) + "\n"

    def put(self, *statements: Statement) -> str:
        return self.text({s.at: str(s) for s in statements})

    def dropped(self, stmt: Statement, instead: str) -> str:
        """Without `stmt`, what used it using `instead`."""
        changes: dict[int, str | None] = {
            at: renamed(self.lines[at], stmt.name, instead) for at in self.uses_after(stmt)
        }
        return self.text({**changes, stmt.at: None})

    def swapped(self, a: int, b: int) -> str:
        return self.text({a: self.lines[b], b: self.lines[a]})


def _statement(at: int, line: str) -> Statement | None:
    found = _LET.match(line)
    if found is None:
        return None
    return Statement(at, found[1], found[2], found[3] or "", found[4], found[5], split(found[6]))


def mentions(line: str, name: str) -> bool:
    return re.search(rf"(?<![\w\".]){name}(?![\w\"=])", line) is not None


def renamed(line: str, old: str, new: str) -> str:
    return re.sub(rf"(?<![\w\".]){old}(?![\w\"=])", new, line)


def number_changed(text: str, by: int, at: int = 0) -> str | None:
    """A list like ``[i * 16, 0]`` with the entry `at` increased by `by`."""
    if not text.startswith("["):
        return None
    entries = list(split(text[1:-1]))
    if at >= len(entries):
        return None
    entries[at] = str(int(entries[at]) + by) if re.fullmatch(r"-?\d+", entries[at]) else f"{entries[at]} + {by}"
    return f"[{', '.join(entries)}]" if not entries[at].startswith("-") else None
