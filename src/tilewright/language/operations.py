"""The operations as names to import: one `Word` for each operation of the registry, made when it is asked for.

``pl.add`` picks the form by its operands; ``pl.tensor.add`` and ``pl.tile.add`` name it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tilewright.language.words import Word


@cache
def operation_word(path: str) -> Word | None:
    """The operation ``pl.<path>``; None when the language has none of that name."""
    names = _names()
    found = names.operation(path)
    return None if found is None else Word(path, names.registry()[found[0]].__doc__)


def member_of(prefix: str, name: str) -> Any:
    """What ``pl.<prefix>.<name>`` is. Raises `AttributeError` with the nearest names that exist, as modules do."""
    if name.startswith("__"):
        raise AttributeError(name)
    path = f"{prefix}.{name}" if prefix else name
    word = operation_word(path)
    if word is not None:
        return word
    names = _names()
    if not prefix and name in names.UNSUPPORTED_WORDS:
        return Word(name, names.UNSUPPORTED_WORDS[name])
    found = names.member(names.LanguageName(prefix), name)
    if found is None:
        error = names.unknown(names.LanguageName(prefix), name)
        raise AttributeError(f"{error.message}; {error.help}")
    if isinstance(found, names.LanguageName):
        return _Namespace(found.path)
    return found


def operation_names(level_name: str | None) -> list[str]:
    """The names of all operations of one level, or of both."""
    registry = _names().registry()
    return sorted(
        f"{name}_" if _is_reserved(name) else name
        for name, cls in registry.items()
        if level_name is None or any(level.value == level_name for level in cls.levels)
    )


class _Namespace:
    """A group of names that the operations bring along, such as an enum of comparison kinds."""

    def __init__(self, pl_name: str) -> None:
        self.pl_name = pl_name

    def __getattr__(self, name: str) -> Any:
        return member_of(self.pl_name, name)


def _is_reserved(name: str) -> bool:
    from keyword import iskeyword

    return iskeyword(name)


@cache
def _names() -> Any:
    """The reader's table of names. Imported late: it brings every operation along."""
    import tilewright.ops  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from tilewright.frontend import names

    return names
