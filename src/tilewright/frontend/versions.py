"""Versions of tensors in DDR: which tensor a value belongs to, what it may share storage with, what was overwritten.

Tensors in DDR are linear: a write makes the next version, and the last one may not be read any more. Python's names
know nothing of that; these tables do, so that a stale read is an error at the line that reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import LanguageError, Span
from tilewright.ir.scalar import Value


@dataclass(frozen=True, slots=True)
class End:
    """Where and why a version ended."""

    span: Span
    reason: str = "its tensor was written"
    is_write: bool = True


class Versions:
    """The versions of one function's tensors."""

    def __init__(self) -> None:
        self.params: set[Value] = set()
        """every tensor among the parameters"""
        self.inputs: set[Value] = set()
        """those of them that may not be written"""
        self.ended: dict[Value, End] = {}
        self._roots: dict[Value, Value] = {}
        self._previous: dict[Value, Value] = {}
        self._slices: dict[Value, Value] = {}
        self._joins: dict[Value, tuple[Value, ...]] = {}
        self._inside: dict[Value, tuple[Value, ...]] = {}
        self._born: dict[Value, int] = {}

    def root(self, value: Value) -> Value:
        """The parameter or creation that `value` is a version of, as `ir.storage` sees it."""
        return self._roots.get(value, value)

    def belongs(self, value: Value, source: Value) -> None:
        """`value` is a version of the tensor that `source` is a version of."""
        self._roots[value] = self.root(source)

    def follows(self, value: Value, previous: Value) -> None:
        """`value` is the next version after `previous`."""
        self.belongs(value, previous)
        self._previous[value] = previous

    def descends(self, value: object, ancestor: Value) -> bool:
        """Whether `value` is `ancestor` or a later version of it."""
        while isinstance(value, Value):
            if value is ancestor:
                return True
            value = self._previous.get(value)
        return False

    def origins(self, value: Value, ancestor: Value) -> list[Value]:
        """The tensors, other than that of `ancestor`, of which `value` may be a version, by their first versions."""
        return [item for item in self._before(value, ancestor) if item is not ancestor and not self._nearer(item)]

    def may_be(self, value: Value, ancestor: Value) -> bool:
        """Whether `value` may be `ancestor` or a later version of it."""
        return ancestor in self._before(value, ancestor)

    def _nearer(self, item: Value) -> tuple[Value, ...]:
        return self._joins.get(item) or ((self._previous[item],) if item in self._previous else ())

    def _before(self, value: Value, ancestor: Value) -> dict[Value, None]:
        """`value` and every version that it may come from, as far back as `ancestor`."""
        found: dict[Value, None] = {value: None}
        todo = [value]
        while todo:
            item = todo.pop()
            for other in self._nearer(item) if item is not ancestor else ():
                if other not in found:
                    found[other] = None
                    todo.append(other)
        return found

    def slices(self, value: Value, source: Value) -> None:
        """`value` looks at part of `source`."""
        self.belongs(value, source)
        self._slices[value] = source

    def joins(self, value: Value, sources: tuple[Value, ...]) -> None:
        """`value` is one of `sources`, which one is known when the program runs. It belongs to the first, unless
        said otherwise."""
        if value not in self._roots:
            self.belongs(value, sources[0])
        self._joins[value] = sources

    def passes(self, value: Value, sources: tuple[Value, ...]) -> None:
        """`value` is what one of `sources`, versions of one tensor, is outside of their block."""
        self.follows(value, sources[0])
        self._inside[value] = sources
        looking = tuple(source for source in sources if source in self._slices or source in self._joins)
        if looking:
            self._joins[value] = looking

    def enters(self, value: Value, outer: Value) -> None:
        """`value` is what `outer` is inside of a loop that has been read."""
        self._inside[outer] = (*self._inside.get(outer, ()), value)

    def also(self, value: Value) -> list[Value]:
        """`value`, and the versions inside of blocks that it is outside of them: what another name may stand for."""
        found = [value]
        for item in found:
            found += [source for source in self._inside.get(item, ()) if source not in found]
        return found

    def born(self, value: Value) -> None:
        """`value` is a new tensor."""
        self._born[value] = len(self._born)

    @property
    def clock(self) -> int:
        """How many tensors were made so far."""
        return len(self._born)

    def older(self, value: Value, clock: int) -> bool:
        """Whether the tensor of `value` existed at `clock`."""
        return self._born.get(self.root(value), -1) < clock

    # --- checks ---
    def check_written(self, value: Value, span: Span) -> tuple[Value, ...]:
        """Raises unless `value` may be written. Returns the other tensors that the write may change."""
        if value in self._slices:
            raise LanguageError(
                "a slice of a tensor is written through another name",
                span=span,
                help="write the tensor itself: out[i:i+8, :] = value, or pl.store(tile, offsets, out)",
            )
        if self.root(value) in self.inputs and not self._joins.get(value):
            raise LanguageError(
                f"parameter {self.root(value).name!r} is an input, and is written here",
                span=span,
                required="pl.Out[pl.Tensor] or pl.InOut[pl.Tensor]",
                help="declare the parameter as pl.Out[...], or pl.InOut[...] if it is read too",
            )
        sources = self._sources(value)
        joined = self.is_joined(value)
        shared = [source for source in sources if joined and self.root(source) in self.params]
        if shared:
            raise LanguageError(
                f"{value.name!r} may be parameter {self.root(shared[0]).name!r} or another tensor, and is written here",
                span=span,
                help="write each tensor under its own name, in the branch that chooses it",
            )
        return tuple(source for source in sources if source is not value)

    def is_joined(self, value: object) -> bool:
        """Whether `value` may be a version of one tensor or of another."""
        while isinstance(value, Value):
            if value in self._joins:
                return True
            value = self._previous.get(value)
        return False

    def _sources(self, value: Value) -> list[Value]:
        """Every value whose storage `value` may share without being a version of it, itself included."""
        found, seen = [value], {value}
        for item in found:
            nearer = (self._slices.get(item), *self._joins.get(item, ()))
            for other in nearer:
                if other is not None and other not in seen:
                    seen.add(other)
                    found.append(other)
        return found

    def check_read(self, value: Value, name: str, span: Span) -> None:
        """Raises when what `value` stands for has ended."""
        if not self.ended:
            return
        for source in self._sources(value):
            end = self.ended.get(source)
            if end is not None:
                raise LanguageError(
                    f"{name!r} is read after {end.reason}",
                    span=span,
                    help="read it before, or under the name that was written; take a slice again after the write",
                    notes=(f"at {end.span}",),
                )
