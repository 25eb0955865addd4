"""Text of LLVM IR, one function at a time: names, blocks, loops, and index arithmetic that folds.

An index is a Python int where it is known and the name of an i64 otherwise, so that what is constant when compiling
is constant in the text, and loops whose count is known need no guard.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

Index = int | str
"""An i64: a constant, or the name of an SSA value of LLVM."""


Fold = Callable[[str, Sequence[str]], Sequence[str]]
"""The body of a loop that carries values: from the index and the values to the next values."""


def float_text(value: float) -> str:
    """A constant rounded to FP32, as LLVM reads it exactly: the bits of the double."""
    single = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def vector_type(element: str, lanes: int) -> str:
    """``float`` for one lane, else ``<16 x float>``."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def splat(element: str, constant: str, lanes: int) -> str:
    """A constant in every lane."""
    return constant if lanes == 1 else f"splat ({element} {constant})"


class Builder:
    """The body of one function. `declare` is told each intrinsic's declaration."""

    def __init__(self, declarations: set[str]) -> None:
        self.lines: list[str] = []
        self.entry_lines: list[str] = []
        self.block = "entry"
        self._declarations = declarations
        self._count = 0

    # --- text -----------------------------------------------------------------------------------------------------
    def name(self, hint: str = "v") -> str:
        self._count += 1
        return f"%{hint}{self._count}"

    def emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def value(self, expression: str, hint: str = "v") -> str:
        """``%v = expression``."""
        name = self.name(hint)
        self.lines.append(f"  {name} = {expression}")
        return name

    def hoisted(self, expression: str, hint: str = "h") -> str:
        """A value computed once, where the function begins: an `alloca`."""
        name = self.name(hint)
        self.entry_lines.append(f"  {name} = {expression}")
        return name

    def call(self, result: str, function: str, arguments: str, types: str) -> str:
        """A call of an intrinsic or a helper that is declared on the way."""
        self._declarations.add(f"declare {result} @{function}({types})")
        text = f"call {result} @{function}({arguments})"
        if result == "void":
            self.emit(text)
            return ""
        return self.value(text)

    def text(self, header: str, attributes: str = "") -> str:
        """The function: its header line, and everything emitted."""
        return "\n".join([f"{header} {attributes}{{", "entry:", *self.entry_lines, *self.lines, "}"])

    # --- blocks ---------------------------------------------------------------------------------------------------
    def label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def start(self, label: str) -> None:
        """Begin the block `label`."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.emit(f"br i1 {condition}, label %{then}, label %{otherwise}")

    @contextmanager
    def when(self, condition: str) -> Generator[None]:
        """What is emitted inside runs only while `condition`, an i1, holds. It can hand out no value."""
        then, after = self.label("then"), self.label("after")
        self.branch(condition, then, after)
        self.start(then)
        yield
        self.jump(after)
        self.start(after)

    def either(self, condition: str, kind: str, then: Callable[[], str], otherwise: Callable[[], str]) -> str:
        """The value that `then` emits where `condition`, an i1, holds, else the one that `otherwise` does."""
        labels = self.label("then"), self.label("else")
        after = self.label("after")
        self.branch(condition, *labels)
        values: list[str] = []
        for label, emit in zip(labels, (then, otherwise), strict=True):
            self.start(label)
            value = emit()
            values.append(f"[ {value}, %{self.block} ]")
            self.jump(after)
        self.start(after)
        return self.value(f"phi {kind} {', '.join(values)}")

    def loop(self, start: Index, stop: Index, step: Index, body: Callable[[str], object]) -> None:
        """``for i in range(start, stop, step): body(i)``, upwards."""

        def trip(index: str, _: Sequence[str]) -> Sequence[str]:
            body(index)
            return ()

        self.fold(start, stop, step, (), trip)

    def fold(
        self,
        start: Index,
        stop: Index,
        step: Index,
        carried: Sequence[tuple[str, str]],
        body: Fold,
        *,
        descending: bool = False,
        conditional: bool = False,
    ) -> list[str]:
        """A loop that carries values: `carried` are (type, initial value), and `body(i, values)` returns the next
        ones. Returns the last ones. A loop that is known not to run emits nothing. A `conditional` one also ends when
        the first of its values, an i1, does not hold."""
        if isinstance(start, int) and isinstance(stop, int) and start >= stop and not descending:
            return [initial for _, initial in carried]
        head, inside, out = self.label("head"), self.label("body"), self.label("out")
        before = self.block
        self.jump(head)
        self.start(head)
        i = self.name("i")
        names = [self.name("c") for _ in carried]
        place = len(self.lines)
        test = self.value(f"icmp {'sgt' if descending else 'slt'} i64 {i}, {stop}")
        if conditional:
            test = self.value(f"and i1 {test}, {names[0]}")
        self.branch(test, inside, out)
        self.start(inside)
        results = list(body(i, names))
        following = self.value(f"add i64 {i}, {step}")
        latch = self.block
        self.jump(head)
        phis = [f"  {i} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]"]
        phis += [
            f"  {name} = phi {kind} [ {initial}, %{before} ], [ {result}, %{latch} ]"
            for name, (kind, initial), result in zip(names, carried, results, strict=True)
        ]
        self.lines[place:place] = phis
        self.start(out)
        return names

    # --- indices --------------------------------------------------------------------------------------------------
    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.value(f"add i64 {a}, {b}", "x")

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.value(f"sub i64 {a}, {b}", "x")

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.value(f"mul i64 {a}, {b}", "x")

    def minimum(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        test = self.value(f"icmp slt i64 {a}, {b}")
        return self.value(f"select i1 {test}, i64 {a}, i64 {b}", "x")

    def rounded_down(self, a: Index, unit: int) -> Index:
        """The largest multiple of `unit`, a power of two, that is at most `a`."""
        return a - a % unit if isinstance(a, int) else self.value(f"and i64 {a}, {-unit}", "x")

    def address(self, pointer: str, element: str, index: Index) -> str:
        """The address of element `index`."""
        if index == 0:
            return pointer
        return self.value(f"getelementptr {element}, ptr {pointer}, i64 {index}", "p")
