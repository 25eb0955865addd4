"""Loops as functions of their own: what one operation does, given where its arrays lie.

LLVM's time for one function grows faster than its length: a function with a thousand loops takes minutes. So a
statement's loops become a function whose arguments are the addresses, the extents that are known only when running, and
the scalars; equal functions are emitted once, and the statement is a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tilewright.codegen.native.builder import Builder, Index
from tilewright.codegen.native.elements import register_type
from tilewright.codegen.native.scope import Place, Scope
from tilewright.ir.scalar import Value

Emit = Callable[[Scope, list[Place]], None]


@dataclass(slots=True)
class Library:
    """The functions of a module that statements call: text without the name, and the name."""

    declarations: set[str]
    names: dict[str, str] = field(default_factory=dict[str, str])

    def texts(self) -> list[str]:
        return [f"define internal void @{name}{text}" for text, name in self.names.items()]

    def outlined(
        self, scope: Scope, places: list[Place], operands: Mapping[Value, Place], values: Iterable[Value], emit: Emit
    ) -> None:
        """Call a function that does what `emit(inner scope, places there)` emits. The inner scope knows `operands`
        and the scalars `values`, as far as `scope` does."""
        outline = _Outline(Scope(Builder(self.declarations), scope.processor))
        inside = [outline.place(place) for place in places]
        outline.inner.places.update((value, outline.place(place)) for value, place in operands.items())
        for value in dict.fromkeys(values):
            known = scope.registers.get(value)
            if known is not None:
                outline.inner.registers[value] = outline.argument(register_type(value.dtype), known)
        emit(outline.inner, inside)
        b = outline.inner.b
        b.emit("ret void")
        parameters = ", ".join(f"{kind} {name}" for (kind, _), name in outline.arguments.items())
        text = b.text(f"({parameters})", "noinline ")
        name = self.names.setdefault(text, f"loops.{len(self.names)}")
        given = ", ".join(f"{kind} {outer}" for kind, outer in outline.arguments)
        scope.b.emit(f"call void @{name}({given})")


@dataclass(slots=True)
class _Outline:
    inner: Scope
    arguments: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(type, value outside): name inside"""

    def argument(self, kind: str, outer: str) -> str:
        """The name inside of a value outside; a constant is itself."""
        if not outer.startswith("%"):
            return outer
        return self.arguments.setdefault((kind, outer), f"%arg.{len(self.arguments)}")

    def index(self, index: Index) -> Index:
        return index if isinstance(index, int) else self.argument("i64", index)

    def place(self, place: Place) -> Place:
        pointer = self.argument("ptr", place.pointer)
        shape, strides = (tuple(map(self.index, given)) for given in (place.shape, place.strides))
        return Place(pointer, place.dtype, shape, strides)
