"""Cuts PTO text into tokens. Types and `#pto` attributes stay whole: nothing looks inside them but their own parser."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from tilewright.codegen.pto.types import PTOTextError
from tilewright.errors import Span

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*)
    |(?P<value>%[A-Za-z0-9_$.]+(?:\#\d+)?)
    |(?P<symbol>@[A-Za-z0-9_$.]+)
    |(?P<type>!pto\.\w+(?:<[^<>]*>)?|memref<(?:[^<>]|<[^<>]*>)*>)
    |(?P<attr>\#pto(?:\.\w+)?<[^<>]*>)
    |(?P<angle><[^<>\n]*>)
    |(?P<string>"[^"\n]*")
    |(?P<number>-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    |(?P<word>[A-Za-z_][\w$.]*)
    |(?P<block>\^\w+)
    |(?P<punct>->|[(){}\[\],:=])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `kind` is a group name of the pattern above, or ``end``."""

    kind: str
    text: str
    start: int
    end: int


class Source:
    """A text with its name; turns offsets into spans."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self._starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def span(self, start: int, end: int) -> Span:
        """The stretch from `start` to `end`, cut at the end of the first line."""
        line = bisect_right(self._starts, start)
        begin = self._starts[line - 1]
        stop = self.text.find("\n", start)
        end = min(end, len(self.text) if stop < 0 else stop)
        return Span(self.name, line, start - begin, line, max(end - begin, start - begin + 1))


def tokenize(source: Source) -> list[Token]:
    """All tokens of `source` but blanks and comments, then one of kind ``end``."""
    tokens: list[Token] = []
    position, size = 0, len(source.text)
    while position < size:
        match = _TOKEN.match(source.text, position)
        if match is None or match.lastgroup is None:
            raise PTOTextError(
                "§2 syntax",
                f"`{source.text[position]}` starts nothing that PTO text knows",
                span=source.span(position, position + 1),
            )
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup, match.group(), position, match.end()))
        position = match.end()
    tokens.append(Token("end", "end of the text", size, size))
    return tokens
