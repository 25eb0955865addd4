"""Which definition of a name reaches here: the names of one function while it is read, block by block.

Each nested block keeps a journal of the names that it binds, so that leaving it costs what it did, not what there is.
Tensors in DDR are linear: when one is written, every name that stood for it stands for the next version. Each output
parameter has one more, hidden name for that reason: whatever the user binds, its last version is known at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from tilewright.errors import Span, TilewrightError, UndefinedNameError
from tilewright.frontend.bindings import MISSING, Missing, Undefined
from tilewright.frontend.versions import End, Versions
from tilewright.ir.op import is_array
from tilewright.ir.scalar import Value


def hidden_name(parameter: str) -> str:
    """The hidden name that follows an output parameter's versions."""
    return "%" + parameter


def is_hidden(name: str) -> bool:
    return name.startswith("%")


@dataclass(slots=True)
class Journal:
    """What one block did: the bindings that it found, by name in order of first binding, and the tensors it wrote."""

    before: dict[str, object] = field(default_factory=dict[str, object])
    ended: dict[Value, End] = field(default_factory=dict[Value, End])


class Scope:
    """Names to bindings, with journals for nested blocks."""

    def __init__(self) -> None:
        self._names: dict[str, object] = {}
        self._journals: list[Journal] = []
        self._aliases: dict[Value, dict[str, None]] = {}
        self.versions = Versions()
        self.outputs: dict[str, Value] = {}
        """the output parameters by name"""

    # --- names ---
    def get(self, name: str) -> object:
        """The binding of a name; `MISSING` when it has none here."""
        return self._names.get(name, MISSING)

    def set(self, name: str, binding: object) -> None:
        old = self._names.get(name, MISSING)
        if old is binding:
            return
        if self._journals:
            self._journals[-1].before.setdefault(name, old)
        self._replace(name, old, binding)

    def _replace(self, name: str, old: object, binding: object) -> None:
        if isinstance(old, Value) and old in self._aliases:
            self._aliases[old].pop(name, None)
        if isinstance(binding, Missing):
            self._names.pop(name, None)
            return
        self._names[name] = binding
        if is_array(binding) and isinstance(binding, Value):
            self._aliases.setdefault(binding, {})[name] = None

    def aliases(self, value: Value) -> list[str]:
        """Every name that stands for `value`, a tensor or tile."""
        return list(self._aliases.get(value, ()))

    def known(self) -> list[str]:
        """The names that have a value."""
        return [name for name, found in self._names.items() if not isinstance(found, Undefined) and name[0] != "%"]

    # --- blocks ---
    def open(self) -> None:
        self._journals.append(Journal())

    def close(self) -> tuple[dict[str, object], dict[Value, End]]:
        """Leave the innermost block: its names go back to what they were. Returns what it bound them to, and the
        tensors whose versions it ended."""
        journal = self._journals.pop()
        after = {name: self._names.get(name, MISSING) for name in journal.before}
        for name, old in journal.before.items():
            self._replace(name, self._names.get(name, MISSING), old)
        for value in journal.ended:
            self.versions.ended.pop(value, None)
        return after, journal.ended

    # --- tensors in DDR ---
    def end(self, value: Value, end: End) -> None:
        """`value` may not be read from here on, nor what it is inside of the blocks that it came out of."""
        for version in self.versions.also(value):
            if version in self.versions.ended:
                continue
            if self._journals:
                self._journals[-1].ended[version] = end
            self.versions.ended[version] = end

    def advance(self, old: Value, new: Value, span: Span) -> None:
        """A write made `new` out of `old`: every name of `old` is a name of `new`."""
        self.versions.follows(new, old)
        self.end(old, End(span))
        for name in self.aliases(old):
            self.set(name, new)

    def rebind(self, old: Value, new: Value) -> None:
        """Every name of `old`, a tile that was written by a statement of its own, is a name of `new`."""
        for name in self.aliases(old):
            self.set(name, new)


def undefined(name: str, binding: object, span: Span, known: Iterable[str] = ()) -> TilewrightError:
    """The error for the use of a name without a value; `known` are the names that have one."""
    if isinstance(binding, Undefined):
        return UndefinedNameError(
            f"{name!r} {binding.reason}",
            span=span,
            help=binding.help,
            notes=(f"assigned at {binding.span}",),
        )
    near = get_close_matches(name, known, 1, 0.7)
    return UndefinedNameError(
        f"{name!r} is used before it is defined",
        span=span,
        help=f"did you mean {near[0]}?" if near else "assign it before, or define it outside the kernel as a constant",
    )
