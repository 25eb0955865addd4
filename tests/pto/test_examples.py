"""The two example kernels of the format: legal on both machines, right numbers, in every mode of the emulator."""

from pathlib import Path

import numpy as np
import pytest
from pto.kernels import integers, zeros

from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.emulate import emulate
from tilewright.codegen.pto.reader import read

EXAMPLES = Path(__file__).parent / "examples"


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("name", ["elementwise", "matmul"])
def test_the_example_is_legal(name: str, arch: str) -> None:
    assert check((EXAMPLES / f"{name}.pto").read_text(), arch, level=2) == []


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_elementwise(arch: str) -> None:
    a, b, o = integers((64, 128)), integers((64, 128), seed=1), zeros((64, 128))
    emulate((EXAMPLES / "elementwise.pto").read_text(), [a, b, o], arch=arch)
    np.testing.assert_array_equal(o, np.exp(a + b) * np.float32(0.5))


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_matmul(arch: str) -> None:
    a, b, c = integers((32, 256), "f16"), integers((256, 32), "f16"), zeros((32, 32))
    emulate((EXAMPLES / "matmul.pto").read_text(), [a, b, c], arch=arch)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_both_spellings_of_a_tile_are_one_type() -> None:
    text = (EXAMPLES / "elementwise.pto").read_text()
    long = (
        "!pto.tile_buf<loc=vec, dtype=f32, rows=32, cols=128, v_row=32, v_col=128, blayout=row_major, "
        "slayout=none_box, fractal=512, pad=0>"
    )
    assert check(text.replace("!pto.tile_buf<vec, 32x128xf32>", long)) == []
    assert check(text.replace("!pto.tile_buf<vec, 32x128xf32>", long, 3)) == []


def test_the_reader_gives_lines() -> None:
    module = read((EXAMPLES / "matmul.pto").read_text())
    (function,) = module.functions
    assert (function.name, function.kind, function.span.line) == ("mm", "cube", 3)
    assert function.body.operations[0].line == 5
