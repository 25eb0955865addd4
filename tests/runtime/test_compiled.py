"""Programs compiled for this CPU and called; and code that a second process takes from disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import TAILS, exact_ints, poisoned, surroundings_intact

import tilewright as tw
import tilewright.language as pl
from tilewright.errors import ArgumentError, OperandError, UnsupportedError

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[ROWS, 17], pl.FP32], b: pl.Tensor[[17, 33], pl.FP32],
             out: pl.Out[pl.Tensor[[ROWS, 33], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.matmul(a, b)
            out = pl.tensor.assemble(out, c, [0, 0])
            d = c + 1.0
        return d
"""


@pytest.mark.parametrize("rows", TAILS)
def test_a_program_is_compiled_and_called(rows: int) -> None:
    compiled = tw.compile(tw.parse(TEXT.replace("ROWS", str(rows))))
    a, b = exact_ints((rows, 17), seed=1), exact_ints((17, 33), seed=2)
    out = np.zeros((rows, 33), np.float32)
    d = compiled(a, b, out)
    np.testing.assert_array_equal(out, a @ b)
    np.testing.assert_array_equal(d, a @ b + 1)


def test_arguments_of_a_compiled_program_are_checked() -> None:
    compiled = tw.compile(tw.parse(TEXT.replace("ROWS", "8")))
    a, b, out = exact_ints((8, 17)), exact_ints((17, 33)), np.zeros((8, 33), np.float32)
    locked = out.copy()
    locked.flags.writeable = False
    wrong: list[tuple[tuple[Any, ...], str]] = [
        ((a, b), "main takes 3 arguments"),
        ((a, b, locked), "'out' is read-only"),
        ((a[:4], b, out), "'a' does not match"),
        ((a.astype(np.float16), b, out), "'a' does not match"),
        ((3, b, out), "'a' is not an array"),
    ]
    for args, message in wrong:
        with pytest.raises(ArgumentError, match=message):
            compiled(*args)
    square = tw.compile(tw.parse(TEXT.replace("ROWS", "17")))
    shared = exact_ints((17, 33))
    with pytest.raises(ArgumentError, match="do not alias"):
        square(exact_ints((17, 17)), shared, shared)


def test_a_program_for_another_machine_is_placed_and_not_called() -> None:
    compiled = tw.compile(tw.parse(TEXT.replace("ROWS", "8")), target="ascend910b")
    assert "pl.Mem.Left" in str(compiled.program)
    with pytest.raises(UnsupportedError):
        compiled(exact_ints((8, 17)), exact_ints((17, 33)), np.zeros((8, 33), np.float32))


def test_the_public_functions_take_programs_and_classes() -> None:
    @pl.program
    class Copy:
        @pl.function(type=pl.FunctionType.InCore)
        def main(self, a: pl.Tensor[[16, 16], pl.BF16], out: pl.Out[pl.Tensor[[16, 16], pl.BF16]]):
            out = pl.store(pl.load(a, [0, 0], [16, 16]), [0, 0], out)
            return out

    a, out = poisoned((16, 16), ml_dtypes.bfloat16, seed=1), np.zeros((16, 16), ml_dtypes.bfloat16)
    assert tw.compile(Copy)(a.copy(), out) is out
    np.testing.assert_array_equal(out, a)
    assert surroundings_intact(a)
    tw.verify(tw.lower(Copy, target="ascend950", after="infer_spaces"))
    assert tw.load_target("ascend950").name == "ascend950"
    assert tw.lower(Copy, target="host", after="frontend") == Copy.program
    assert Copy.lower("ascend910b") == tw.compile(Copy, target="ascend910b").program


def test_a_kernel_without_arguments_is_no_program() -> None:
    @pl.jit
    def kernel(a: pl.Tensor):
        return a + a

    for function in (tw.compile, tw.lower):
        with pytest.raises(OperandError, match="is no program") as raised:
            function(kernel)
        assert "kernel.compile(*args)" in (raised.value.help or "")
    a = exact_ints((8, 8))
    np.testing.assert_array_equal(kernel.compile(a)(a), a + a)


KERNEL = """
import sys
import numpy as np
import tilewright.language as pl

@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a * 3.0 + 1.0

from tilewright import compiler
from tilewright.codegen import native
lower, compile_native = compiler.lower, native.compile_native
done = []
compiler.lower = lambda *args, **named: (done.append("lower"), lower(*args, **named))[1]
native.compile_native = lambda *args: (done.append("compile"), compile_native(*args))[1]
a, out = np.arange(1000, dtype=np.float32).reshape(20, 50), np.zeros((20, 50), np.float32)
kernel(a, out)
assert (out == a * 3 + 1).all()
print(*done)
"""


def test_a_second_process_takes_the_code_from_disk(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(tmp_path / "cache")}

    def process() -> str:
        command = [sys.executable, str(tmp_path / "kernel.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert process() == "lower compile"
    assert process() == ""
    for entry in (tmp_path / "cache").glob("*.twc"):
        entry.write_bytes(entry.read_bytes()[:-3])
    assert process() == "lower compile"
    assert process() == ""
