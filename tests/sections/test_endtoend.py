"""Whole programs with and without forwarding: equal results everywhere, and the tensors between sections gone exactly
where the machine has a way on chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sections.kernels import CASES, TARGETS, Array

from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.execute.interpreter import interpret
from tilewright.ir.function import Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.types import TensorType
from tilewright.runtime.native import native_executable
from tilewright.targets import load_target

NAMES = tuple(CASES)


def source(name: str) -> Program:
    case = CASES[name]
    return case.kernel.program(*case.arguments())


def tensors_made(program: Program) -> set[str]:
    """The tensors that the orchestration makes, and those that the passes added."""
    return {
        stmt.target.name
        for function in program.functions
        for stmt in function.walk()
        if isinstance(stmt, Let)
        and isinstance(stmt.value, Op)
        and isinstance(stmt.target.type, TensorType)
        and not any(stmt.value.operand_items())
    }


def interpreted(program: Program, name: str) -> list[Array]:
    values: list[Any] = [value.copy() for value in CASES[name].arguments()]
    interpret(program, values)
    return [values[at] for at in CASES[name].outputs]


def same(left: list[Array], right: list[Array], exact: bool) -> None:
    for a, b in zip(left, right, strict=True):
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6 * float(np.abs(b).max() + 1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_what_goes_and_what_stays(name: str, target: str) -> None:
    case, machine = CASES[name], load_target(target)
    apart, joined = (lower(source(name), machine, forward=forward) for forward in (False, True))
    before, after = tensors_made(apart), tensors_made(joined)
    assert case.gone[target] <= before
    assert not case.gone[target] & after
    assert after == case.stays[target]
    same(interpreted(apart, name), interpreted(joined, name), case.exact)
    same(interpreted(source(name), name), interpreted(joined, name), case.exact)


@pytest.mark.parametrize("name", NAMES)
def test_native_code_is_the_same(name: str) -> None:
    machine, found = load_target("host"), list[list[Array]]()
    for forward in (False, True):
        kernel = compile_native(lower(source(name), machine, after=UNPLACED, forward=forward), machine)
        values: list[Any] = [value.copy() for value in CASES[name].arguments()]
        native_executable(kernel).run(values)
        found.append([values[at] for at in CASES[name].outputs])
    same(found[0], found[1], CASES[name].exact)
    same(interpreted(source(name), name), found[1], CASES[name].exact)


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("name", NAMES)
def test_the_emulated_text_is_the_same(name: str, target: str) -> None:
    machine, program, case = load_target(target), source(name), CASES[name]
    module = emit_pto(lower(program, machine), machine)
    names = [param.value.name for param in program.main.params]
    values = dict(zip(names, (value.copy() for value in case.arguments()), strict=True))
    launch(module.manifest, module.texts, values)
    same(interpreted(program, name), [values[names[at]] for at in case.outputs], case.exact)
