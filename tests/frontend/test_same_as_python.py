"""A kernel means what Python means by its source: random control flow, read by the frontend and run by Python itself.

The same text is compiled and interpreted, and executed with NumPy arrays behind `pl`. Values are small integers, so
that results are equal to the last bit.
"""

from __future__ import annotations

import os
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tilewright.errors import LanguageError
from tilewright.execute.interpreter import interpret
from tilewright.frontend import parse
from tilewright.ir.verify import verify

TENSORS, INTS = ("x", "y", "z", "out", "w"), ("s", "t")
TENSOR = "pl.Tensor[[4, 4], pl.FP32]"
HEAD = f"""import tilewright.language as pl

@pl.jit
def f(a: {TENSOR}, b: {TENSOR}, w: pl.InOut[{TENSOR}], out: pl.Out[{TENSOR}]):
"""
START = ("out[:] = a", "x = a", "y = b + 1.0", "z = out", "s = 0", "t = 1", "q = (b - 1.0, 2)")
END = ("return x + 0, y + z, s, t, q[0] + 0.0, q[1]",)

EXAMPLES = 150 * int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
"""Programs drawn in one run."""

REFUSED = ("one tensor before the loop", "is read after", "stands for tensor", "may be parameter", "is an input")
"""What Python allows and a kernel refuses: reading a tensor under a name that a write left behind."""


class Source:
    """Draws the statements of a kernel."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.budget = 14
        self.loops = 0
        self.counters = 0

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def array(self) -> str:
        return self.pick("a", "b", "q[0]", *TENSORS)

    def number(self) -> str:
        return self.pick(*INTS, "i", "q[1]", "0", "1", "2", "3")

    def expression(self) -> str:
        form = self.pick("{0}", "{0} + {1}", "pl.minimum({0} - {1}, b)", "pl.minimum({0}, 2.0)", "{0} + 1", "{0} - 2")
        return form.format(self.array(), self.array())

    def simple(self) -> list[str]:
        target, number = self.pick("out", "w"), self.number()
        return [
            self.pick(
                f"{self.pick('x', 'y', 'z')} = {self.expression()}",
                f"{self.pick(*INTS)} = ({number} + {self.number()}) % 5",
                f"q = ({self.expression()}, ({number} + 1) % 4)",
                f"{target}[:] = {self.array()} + 1.0",
                f"{target}[{number} % 3 : {number} % 3 + 2, :] = b[0:2, :]",
                f"{target}[1, {number} % 4] = a[1, {self.number()} % 4]",
            )
        ]

    def body(self, depth: int) -> list[str]:
        lines = self.block(depth + 1, self.draw(st.integers(1, 3)))
        return [f"    {line}" for line in lines]

    def looped(self, depth: int, first: list[str]) -> list[str]:
        self.loops += 1
        lines = self.body(depth)
        self.loops -= 1
        return [*(f"    {line}" for line in first), *lines]

    def statement(self, depth: int) -> list[str]:
        self.budget -= 1
        kinds = ("simple", "if", "else", "for", "while", "at", *(("jump", "jump") if self.loops else ("leave",)))
        kind = self.pick(*kinds) if depth < 3 and self.budget > 0 else "simple"
        match kind:
            case "if":
                return [f"if {self.number()} {self.pick('<', '==')} {self.number()}:", *self.body(depth)]
            case "else":
                return [f"if {self.number()} < {self.number()}:", *self.body(depth), "else:", *self.body(depth)]
            case "for":
                over = self.pick("range(3)", "range(0, 5, 2)", "unroll(2)", "static_range(2)", "range(s)")
                return [f"for i in pl.{over}:", *self.looped(depth, []), "i = 1"]
            case "while":
                self.counters += 1
                count = f"k{self.counters}"
                test = self.pick(f"{count} < 3", f"{count} < 3 and {self.number()} < {self.number()}", "True")
                stop = [f"if {count} > 2:", "    break"] if test == "True" else []
                return [f"{count} = 0", f"while {test}:", *self.looped(depth, [f"{count} = {count} + 1", *stop])]
            case "jump":
                return [
                    f"if {self.number()} < {self.number()}:",
                    *self.body(depth),
                    f"    {self.pick('break', 'continue', END[0])}",
                ]
            case "leave":
                return [f"if {self.number()} < {self.number()}:", *self.body(depth), f"    {END[0]}"]
            case "at":
                return ["with pl.at(level=pl.Level.CORE_GROUP):", *self.body(depth)]
            case _:
                return self.simple()

    def block(self, depth: int, count: int) -> list[str]:
        return [line for _ in range(count) for line in self.statement(depth)]


@st.composite
def programs(draw: Any) -> list[str]:
    return Source(draw).block(0, draw(st.integers(1, 7)))


class Section:
    def __enter__(self) -> None:
        """A section has no meaning of its own."""

    def __exit__(self, *_: object) -> None:
        """A section has no meaning of its own."""


def section(**_: Any) -> Section:
    return Section()


def unchanged(function: Any) -> Any:
    return function


def expected(text: str, arguments: list[Any]) -> tuple[list[Any], list[Any]]:
    """What Python makes of the source: results, and the written arguments."""
    pl = SimpleNamespace(
        range=range, unroll=range, static_range=range, at=section, minimum=np.minimum,
        Level=SimpleNamespace(CORE_GROUP=0), jit=unchanged,
    )  # fmt: skip
    scope: dict[str, Any] = {"pl": pl}
    source = text.replace("import tilewright.language as pl\n", "from __future__ import annotations\n")
    exec(compile(source, "<python>", "exec"), scope)
    given = [array.copy() for array in arguments]
    results = scope["f"](*given)
    return [np.array(result) for result in results], given[2:]


def check(statements: list[str]) -> None:
    """Raises what the frontend refuses; else compares what is compiled with what Python does."""
    lines = [*START, "i = 1", *statements, *END]
    text = HEAD + "".join(f"    {line}\n" for line in lines)
    program = parse(text)
    verify(program)
    assert parse(str(program)) == program
    rng = np.random.default_rng(1)
    arguments = [rng.integers(-3, 4, (4, 4)).astype(np.float32) for _ in range(4)]
    results, written = expected(text, arguments)
    got = interpret(program, [array.copy() for array in arguments])
    for index, value in enumerate(results):
        np.testing.assert_array_equal(np.asarray(got[index]), value)
    for array, value in zip(got[len(results) :], written, strict=True):
        np.testing.assert_array_equal(np.asarray(array), value)


@settings(max_examples=EXAMPLES, deadline=None)
@given(programs())
def test_random_control_flow(statements: list[str]) -> None:
    try:
        check(statements)
    except LanguageError as error:
        assume(not any(reason in str(error) for reason in REFUSED))
        raise


UNKNOWN = ["for i in pl.range(3):", "    s = (s + 1) % 5", "    t = (t + 2) % 5"]
"""Makes the numbers ones that are known only when the kernel runs."""


@pytest.mark.parametrize(
    "statements",
    [
        # `z` is `out` or `a`: it is not handed on as the version of `out` that the loop makes.
        """
        k = 0
        while True:
            k = k + 1
            if k > 2:
                break
            if s < s:
                s = (s + s) % 5
            else:
                z = b
        """,
        # A condition with a part that is known only after what the loop carries is.
        """
        for i in pl.range(3):
            k = 0
            while k < 3 and s < s:
                k = k + 1
                x = a
        """,
        """
        for i in pl.range(4):
            if i == t:
                continue
            for j in pl.range(3):
                if j == s:
                    break
                w[1, j] = a[1, i % 4]
            if i == 3:
                break
            x = x + 1.0
        """,
    ],
)
def test_kept_cases(statements: str) -> None:
    check([*UNKNOWN, *dedent(statements).strip("\n").split("\n")])


@pytest.mark.parametrize(
    "statements",
    [
        # In the second trip `z` may be what the first one made of `out`, which this one overwrites.
        """
        for i in pl.static_range(2):
            if s < t:
                out[:] = a + 1.0
            else:
                z = a
        """,
        # `x` is `z`, which the loop carries as it is, and which is `out`.
        """
        for i in pl.range(3):
            if i < 0:
                z = a
            if s < i:
                x = z
        out[:] = a + 1.0
        """,
    ],
)
def test_stale_names_are_refused(statements: str) -> None:
    with pytest.raises(LanguageError, match="is read after its tensor was written"):
        check([*UNKNOWN, *dedent(statements).strip("\n").split("\n")])
