"""Sections as JSON, for tools that are not this compiler.

Every record is an object whose ``type`` names its class and whose other keys are that class's fields; the statements
of a stage are `pl` text. Text is read back by whoever reads programs, who passes `read`; without it a section comes
back without statements, which is enough to join it and to verify it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from tilewright.errors import TilewrightError, VerifyError
from tilewright.ir.dtypes import DType, by_name
from tilewright.ir.function import Function, Program
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import LoopKind
from tilewright.sections import claims, patterns, section
from tilewright.sections.section import Section

VERSION = 1
"""Of the format; a reader refuses others."""

Read = Callable[[str], Function]
"""Reads `pl` text of one function."""

_RECORDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for module in (section, patterns, claims)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
}
_ENUMS: dict[str, type[Enum]] = {
    kind.__name__: kind for kind in (MemorySpace, Pad, LoopKind, section.Role, section.Phase, patterns.Axis)
}


def to_json(section: Section) -> str:
    """The section as JSON text, keys in the order of the fields."""
    return json.dumps({"version": VERSION, "section": _encode(section)}, indent=1) + "\n"


def from_json(text: str, read: Read | None = None) -> Section:
    """The section in `text`. Raises `VerifyError` for text that is none."""
    try:
        return _section(json.loads(text), read)
    except (ValueError, RecursionError) as error:
        raise VerifyError("this is not JSON", found=str(error), help="pass what to_json wrote") from None


def _section(document: Any, read: Read | None) -> Section:
    entries = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if entries.get("version") != VERSION:
        raise VerifyError("this is not a section", required=f"version {VERSION}", help="pass what to_json wrote")
    found = _decode(entries.get("section"), "section", read)
    if not isinstance(found, Section):
        raise VerifyError("this is not a section", found=type(found).__name__, help="pass what to_json wrote")
    return found


def _encode(value: Any) -> Any:
    match value:
        case None | bool() | int() | str() | float():
            return value
        case tuple():
            return [_encode(item) for item in cast("tuple[Any, ...]", value)]
        case frozenset():
            return {"type": "set", "items": sorted(cast("frozenset[str]", value))}
        case DType():
            return {"type": "dtype", "name": value.name}
        case Enum():
            return {"type": type(value).__name__, "value": value.value}
        case Fraction():
            return {"type": "fraction", "value": str(value)}
        case Function():
            return {"type": "function", "text": str(Program((value,), value.name))}
        case _ if type(value).__name__ in _RECORDS:
            named = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
            return {"type": type(value).__name__, **named}
        case _:
            raise VerifyError("a section has an attribute that JSON cannot hold", found=repr(value))


def _decode(value: Any, where: str, read: Read | None) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return tuple(_decode(item, f"{where}[{k}]", read) for k, item in enumerate(items))
    if not isinstance(value, dict):
        return value
    entries = dict(cast("dict[str, Any]", value))
    kind = entries.pop("type", None)
    try:
        return _record(str(kind), entries, where, read)
    except VerifyError:
        raise
    except (KeyError, TypeError, ValueError, ZeroDivisionError, TilewrightError) as error:
        raise VerifyError(f"the {kind} at {where} cannot be read", found=str(error)) from None


def _record(kind: str, entries: dict[str, Any], where: str, read: Read | None) -> Any:
    match kind:
        case "set":
            return frozenset(entries["items"])
        case "dtype":
            return by_name(entries["name"])
        case "fraction":
            return Fraction(entries["value"])
        case "function":
            return None if read is None else read(entries["text"])
        case _ if kind in _ENUMS:
            return _ENUMS[kind](entries["value"])
        case "Body" if read is None:
            return None
        case _:
            record = _RECORDS[kind]
            known = {field.name: field for field in fields(record)}
            missing = [name for name, field in known.items() if name not in entries and field.default is MISSING]
            if missing or entries.keys() - known.keys():
                raise ValueError(f"fields {sorted(entries.keys() ^ set(known))} do not fit")
            hints = _hints(record)
            made = {name: _decode(entry, f"{where}.{name}", read) for name, entry in entries.items()}
            wrong = [name for name, item in made.items() if not _fits(item, hints[name])]
            if wrong:
                raise ValueError(f"{wrong[0]} is {made[wrong[0]]!r}")
            return record(**made)


@lru_cache(maxsize=64)
def _hints(record: type[Any]) -> dict[str, Any]:
    return get_type_hints(record)


def _fits(value: Any, hint: Any) -> bool:
    """Whether `value` is of the type that a field says, as far as records use types."""
    if hint is object:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType or origin is Union:
        return any(_fits(value, argument) for argument in arguments)
    if origin is frozenset:
        return isinstance(value, frozenset) and all(_fits(item, arguments[0]) for item in cast("frozenset[Any]", value))
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = cast("tuple[Any, ...]", value)
        if arguments[-1] is Ellipsis:
            return all(_fits(item, arguments[0]) for item in items)
        return len(items) == len(arguments) and all(map(_fits, items, arguments))
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
