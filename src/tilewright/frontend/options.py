"""The options of sections and launches: those that the program keeps, and those that its order already honours."""

from __future__ import annotations

from typing import Any, cast

from tilewright.errors import LanguageError, Span
from tilewright.frontend.bindings import Task, describe
from tilewright.frontend.operations import Arguments
from tilewright.ir.op import is_array
from tilewright.ir.scalar import Value

KEPT = ("level", "optimizations", "name_hint")
"""Options that a section has in the program."""
SCHEDULING = ("deps", "sync_start", "allow_early_resolve")
"""Options of the caller that the order of the program, or a run to the end, already honours."""
OPTIONS = {"at": (*KEPT, *SCHEDULING), "cluster": ("name_hint", *SCHEDULING), "spmd": (*KEPT, *SCHEDULING)}


def section_options(path: str, arguments: Arguments, also: tuple[str, ...] = ()) -> tuple[tuple[str, Any], ...]:
    """The options that the program keeps; `also` names keywords that are none. Raises for one that there is not."""
    found: list[tuple[str, Any]] = []
    for name, (value, span, _) in arguments.keywords.items():
        if name in also:
            continue
        if name not in OPTIONS[path]:
            raise LanguageError(
                f"pl.{path} has no option {name!r}", span=span, required=", ".join(OPTIONS[path]), found=name
            )
        if name == "deps":
            check_deps(value, span)
        elif is_array(value) or isinstance(value, Value):
            raise LanguageError(f"an option of pl.{path} is a constant", span=span, found=describe(value))
        elif name in KEPT:
            found.append((name, value))
    return tuple(found)


def check_deps(value: object, span: Span) -> None:
    """Raises unless `value` is a list of tasks."""
    tasks = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
    if not all(isinstance(task, Task | None) for task in tasks):
        raise LanguageError(
            "deps= lists tasks",
            span=span,
            required="names from `with pl.at(...) as task`, or the last result of pl.submit",
            found=describe(tasks),
        )
