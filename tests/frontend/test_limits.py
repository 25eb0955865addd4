"""Text is read within bounds, executes nothing, and whatever it is, the answer is a program or a placed error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import LanguageError, TilewrightError
from tilewright.frontend import parse
from tilewright.ir.nodes import Let

HEAD = """import tilewright.language as pl

@pl.jit.incore
def f(a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import os\n",
        "import tilewright.language\n",
        "import tilewright.language as pl\nimport os\n",
        "from os import system\n",
        "print('x')\n",
        "x = __import__('os')\n",
        HEAD + "    __import__('os').system('true')\n",
        HEAD + "    x = pl.__class__\n",
        HEAD + "    x = a.__class__.__mro__\n",
        HEAD + "    x = pl.FP32.numpy\n",
        HEAD + "    x = (1).bit_length()\n",
        HEAD + "    exec('x = 1')\n",
        HEAD + "    x = open('/etc/passwd')\n",
        HEAD + "    x = pl.tensor.add.infer(a)\n",
        HEAD + "    x = 'a' * 10 ** 9\n",
        HEAD + "    x = 1 << 10 ** 9\n",
        HEAD + "    x = [0] * 10 ** 9\n",
        HEAD + "    for i in pl.static_range(10 ** 9):\n        x = i\n",
        "import tilewright.language as pl\nclass A:\n    x = 1\n",
        "import tilewright.language as pl\n@pl.jit\ndef f(*a):\n    return a\n",
        "def f(:\n",
        "\x00",
        "é = (\n",
    ],
)
def test_what_is_not_the_language_is_refused(text: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        parse(text)
    assert str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "x = " + "(" * 5000 + "n" + ")" * 5000,
        "x = " + "n + " * 5000 + "n",
        "x = " + "-" * 5000 + "n",
        "x = a" + "[0:64]" * 3000,
        "x = " + "pl.exp(" * 150 + "a" + ")" * 150,
        "x = " + "n if n < 1 else " * 2000 + "n",
    ],
)
def test_nesting_is_bounded(line: str) -> None:
    with pytest.raises(LanguageError, match=r"nests too deeply|not Python syntax"):
        parse(HEAD + f"    {line}\n")


def test_nested_statements_are_bounded() -> None:
    arms = "".join(f"    elif n < {i}:\n        out[:] = a\n" for i in range(500))
    with pytest.raises(LanguageError, match="nests too deeply"):
        parse(HEAD + "    if n < 1:\n        out[:] = a\n" + arms)


def test_a_long_program_is_read_in_linear_time() -> None:
    lines = ["    x0 = a + 1.0"]
    for i in range(1, 10_000):
        if i % 50 == 0:
            lines.append(
                f"    for i{i} in pl.range(4):\n        x{i} = x{i - 1} + 1.0\n        pl.store(t, [0, 0], out)"
            )
            lines.append(f"    x{i} = x{i - 1} * 2.0")
        elif i % 50 == 25:
            lines.append(f"    if n < {i}:\n        x{i} = x{i - 1} - 1.0\n    else:\n        x{i} = x{i - 1}")
        else:
            lines.append(f"    x{i} = x{i - 1} + {i}")
    text = HEAD + "    t = pl.load(a, [0, 0], [64, 64])\n" + "\n".join(lines) + f"\n    out[:] = x{9_999}\n"
    started = time.process_time()
    program = parse(text)
    elapsed = time.process_time() - started
    count = sum(isinstance(stmt, Let) for stmt in program.main.walk())
    assert count > 10_000
    assert elapsed / count < 0.001, f"{1000 * elapsed / count:.3f} ms for each statement"


WORDS = st.sampled_from(
    [
        "a", "n", "out", "x", "pl", ".", "load", "store", "exp", "add", "(", ")", "[", "]", ",", ":", "=", "+", "-",
        "*", "@", "0", "1", "64", "2.5", "True", "None", "if", "else", "for", "in", "range", "return", "\n    ", " ",
        "yield_", "Tensor", "FP32", "at", "with", "T", "shape", "'s'", "not", "lambda", "slice", "T", "==", "max",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=24))
def test_any_words_give_a_program_or_a_placed_error(words: list[str]) -> None:
    try:
        program = parse(HEAD + "    " + " ".join(words) + "\n")
    except TilewrightError as error:
        assert str(error)
    else:
        assert parse(str(program)) == program
