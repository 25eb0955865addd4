"""A target file as it is read: values taken by key and kind, and every complaint placed on its line.

`tomllib` gives no positions, so the text is scanned once more for where keys stand. A reader takes what it knows and
then calls `finish`: what is left over is a mistake, most often a misspelling, and is refused with the nearest key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import cast

from tilewright.errors import Span, TargetError
from tilewright.ir.dtypes import BY_NAME, BY_SHORT, DType

Path = tuple[str | int, ...]
_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r'^\s*([A-Za-z0-9_-]+|"[^"]*")\s*=')
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB)$")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def suggest(word: str, known: Iterable[str]) -> str:
    """A way out of an unknown word: the nearest known one, or all of them."""
    names = list(known)
    near = get_close_matches(word, names, 1, 0.5 if len(word) <= 3 else 0.6)  # one letter of two is half a word
    return f"did you mean {near[0]}?" if near else "one of " + ", ".join(names)


LONGEST_LINE = 1_000
LONGEST_FILE = 256 * 1024
"""Characters: what somebody writes about a machine is far shorter."""


class Document:
    """The text of one target file, its path, and where its keys stand."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        long = next((number for number, line in enumerate(self.lines, 1) if len(line) > LONGEST_LINE), None)
        if long is not None or len(text) > LONGEST_FILE:
            # The TOML reader takes quadratic time for a key of many parts.
            raise TargetError(
                "the target file is too long",
                span=self._span(long or 1, ""),
                required=f"at most {LONGEST_LINE:,} characters in a line and {LONGEST_FILE:,} in all",
                found=f"{len(text):,} characters" if long is None else f"{len(self.lines[long - 1]):,} in one line",
            )
        self.places = dict(_places(self.lines))
        try:
            self.data: dict[str, object] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"line (\d+)", str(error))
            line = int(at[1]) if at else len(self.lines)
            raise TargetError(
                "the target file is not TOML", span=self._span(line, ""), found=str(error), help="mend that line"
            ) from None
        except (ValueError, RecursionError) as error:
            # Numbers of thousands of digits and brackets hundreds deep, about which the TOML reader says no line.
            reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
            raise TargetError("the target file cannot be read", span=self._span(1, ""), found=reason) from None

    def root(self) -> Section:
        """The whole file."""
        return Section(self, (), self.data)

    def span(self, path: Path) -> Span:
        """Where the key `path` stands; where its table does if it is missing."""
        for length in range(len(path), 0, -1):
            line = self.places.get(path[:length])
            if line is not None:
                return self._span(line, str(path[-1]))
        return self._span(1, "")

    def _span(self, line: int, word: str) -> Span:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        found = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) if word else None
        start, end = found.span() if found else (len(text) - len(text.lstrip()), max(1, len(text)))
        return Span(self.path, line, len(text[:start].encode()), line, len(text[:end].encode()))


def _places(lines: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """The line of each table, key and element of an array that is spread over lines, by path."""
    table: Path = ()
    counts: dict[Path, int] = {}
    array: Path | None = None
    for number, line in enumerate(lines, 1):
        if array is not None:
            stripped = line.strip()
            if stripped.startswith("]"):
                array = None
            elif stripped and not stripped.startswith("#"):
                yield (*array, counts[array]), number
                counts[array] += 1
            continue
        if header := _HEADER.match(line):
            table = tuple(part.strip().strip('"') for part in header[2].split("."))
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                table = (*table, index)
            yield table, number
        elif key := _KEY.match(line):
            path = (*table, key[1].strip('"'))
            yield path, number
            if re.search(r"=\s*\[\s*(#.*)?$", line):
                array, counts[path] = path, 0


class Section:
    """One table of a target file, from which known keys are taken."""

    def __init__(self, document: Document, path: Path, data: dict[str, object]) -> None:
        self.document = document
        self.path = path
        self._data = data
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._data

    @property
    def name(self) -> str:
        """The table as a file spells it."""
        return ".".join(map(str, self.path)) or "the file"

    def __iter__(self) -> Iterator[str]:
        """The keys present, for tables whose keys are names that the file makes up."""
        return iter(self._data)

    def fail(
        self,
        key: str | None,
        message: str,
        *,
        required: str | None = None,
        found: object = None,
        help: str | None = None,
    ) -> TargetError:
        """A `TargetError` on the line of `key` (None: of the table). To be raised by the caller."""
        return TargetError(
            message,
            span=self.document.span(self.path if key is None else (*self.path, key)),
            required=required,
            found=None if found is None else found if isinstance(found, str) else repr(found),
            help=help,
        )

    def finish(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._data:
            if key not in self._known:
                raise self.fail(
                    key,
                    f"{self.name} has no key {key!r}",
                    required="one of " + ", ".join(self._known),
                    found=key,
                    help=suggest(key, self._known),
                )

    def _take(self, key: str, what: str, required: bool) -> object:
        if key not in self._known:
            self._known.append(key)
        value = self._data.get(key)
        if value is None and required:
            raise self.fail(
                key, f"{self.name} lacks the key {key!r}", required=what, found="nothing", help=f"add {key} = ..."
            )
        return value

    def _wrong(self, key: str, what: str, value: object) -> TargetError:
        return self.fail(
            key, f"{key} of {self.name} must be {what}", required=what, found=value, help=f"write {key} as {what}"
        )

    def text(self, key: str, default: str | None = None, choices: Iterable[str] = ()) -> str:
        """A string, one of `choices` if there are any; required unless `default` is given."""
        known = list(choices)
        value = self._take(key, "a string", default is None)
        if value is None:
            return default or ""
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        if known and value not in known:
            raise self.fail(
                key,
                f"{key} of {self.name} cannot be {value!r}",
                required="one of " + ", ".join(known),
                found=value,
                help=suggest(value, known),
            )
        return value

    def number(self, key: str, default: float | None = None, *, positive: bool = False) -> float:
        """A number, not negative, above zero if `positive`; required unless `default` is given."""
        what = "a number above 0" if positive else "a number, 0 or more"
        value = self._take(key, what, default is None)
        if value is None:
            assert default is not None  # _take demands the key otherwise
            return default
        return self._number(key, value, what, positive)

    def _number(self, key: str, value: object, what: str, positive: bool) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, what, value)
        if not (0 < value < float("inf") or (value == 0 and not positive)):
            raise self._wrong(key, what, value)
        return value

    def whole(self, key: str, default: int | None = None, *, positive: bool = False) -> int:
        """A whole number, 0 or more."""
        value = self.number(key, default, positive=positive)
        if value != int(value):
            raise self._wrong(key, "a whole number", value)
        return int(value)

    def whole_or_none(self, key: str) -> int | None:
        """A whole number, 0 or more; None when absent."""
        return None if self._take(key, "a whole number", False) is None else self.whole(key)

    def size(self, key: str, default: int | None = None) -> int:
        """Bytes: a whole number, or a string such as ``"512 KiB"``; above zero."""
        what = 'a number of bytes, or text like "512 KiB"'
        value = self._take(key, what, default is None)
        if value is None:
            assert default is not None  # _take demands the key otherwise
            return default
        if isinstance(value, str):
            match = _SIZE.match(value)
            if match is None:
                raise self._wrong(key, what, value)
            value = float(match[1]) * _UNITS[match[2]]
        number = self._number(key, value, what, positive=True)
        if number != int(number):
            raise self._wrong(key, what, value)
        return int(number)

    def flag(self, key: str) -> bool:
        """True or false; false when absent."""
        value = self._take(key, "true or false", False)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def items(self, key: str) -> list[object] | None:
        """A list of anything; None when absent."""
        value = self._take(key, "a list", False)
        if value is not None and not isinstance(value, list):
            raise self._wrong(key, "a list", value)
        return cast("list[object] | None", value)

    def texts(self, key: str) -> list[str] | None:
        """A list of strings; None when absent."""
        found = self.items(key)
        if found is not None and not all(isinstance(item, str) for item in found):
            raise self._wrong(key, "a list of strings", found)
        return cast("list[str] | None", found)

    def dtypes(self, key: str) -> list[DType] | None:
        """A list of element types; None when absent."""
        names = self.texts(key)
        return None if names is None else [self.dtype(key, name) for name in names]

    def dtype(self, key: str, name: str) -> DType:
        """The element type called `name`, which stands under `key`."""
        found = BY_SHORT.get(name) or BY_NAME.get(name)
        if found is None:
            raise self.fail(
                key,
                f"there is no element type {name!r}",
                required="one of " + ", ".join(BY_SHORT),
                found=name,
                help=suggest(name, [*BY_SHORT, *BY_NAME]),
            )
        return found

    def pairs(self, key: str) -> list[tuple[str, str]]:
        """A list of ``"from -> to"``; empty when absent."""
        made: list[tuple[str, str]] = []
        for item in self.texts(key) or ():
            left, arrow, right = item.partition("->")
            if not arrow or not left.strip() or not right.strip():
                raise self._wrong(key, 'a list of "from -> to"', item)
            made.append((left.strip(), right.strip()))
        return made

    def table(self, key: str) -> Section:
        """A table; an empty one when absent."""
        value = self._take(key, "a table", False)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self._wrong(key, "a table", value)
        return Section(self.document, (*self.path, key), cast("dict[str, object]", value))

    def tables(self, key: str) -> list[Section]:
        """An array of tables; empty when absent."""
        made: list[Section] = []
        for index, item in enumerate(self.items(key) or ()):
            if not isinstance(item, dict):
                raise self._wrong(key, "a list of tables", item)
            made.append(Section(self.document, (*self.path, key, index), cast("dict[str, object]", item)))
        return made

    def value(self, key: str) -> object:
        """Whatever stands under `key`, for keys that take several kinds."""
        return self._take(key, "a value", False)
