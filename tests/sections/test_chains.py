"""Random chains of sections mean the same with and without forwarding: interpreted after all passes, and natively."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from sections.chains import program_text
from support import exact_ints

from tilewright import parse
from tilewright.codegen.native import compile_native
from tilewright.compiler import UNPLACED, lower
from tilewright.execute.interpreter import interpret
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.runtime.native import native_executable
from tilewright.targets import load_target

COUNT = 15 * int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
TARGETS = ("ascend910b", "ascend950", "host")


def arguments(program: Program) -> list[Any]:
    found: list[Any] = []
    for at, param in enumerate(program.main.params):
        kind = param.value.type
        assert isinstance(kind, TensorType)
        shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
        found.append(exact_ints(shape, np.float32, at) if not param.is_output else np.zeros(shape, np.float32))
    return found


def outcome(program: Program, outputs: int) -> list[Any]:
    values = arguments(program)
    interpret(program, values)
    return values[-outputs:]


@pytest.mark.parametrize("seed", range(COUNT))
def test_fused_equals_unfused(seed: int) -> None:
    text, outputs = program_text(seed)
    source, machine = parse(text), load_target(TARGETS[seed % len(TARGETS)])
    expected = outcome(source, outputs)
    joined = lower(source, machine)
    for found, wanted in zip(outcome(joined, outputs), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    host = load_target("host")
    for forward in (True, False):
        kernel = native_executable(compile_native(lower(source, host, after=UNPLACED, forward=forward), host))
        values = arguments(source)
        kernel.run(values)
        for found, wanted in zip(values[-outputs:], expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
