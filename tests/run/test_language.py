"""The whole language: the same source gives the same numbers in the interpreter, natively, and as PTO text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from properties.judges import judge_pto
from pto.writing import MACHINES
from run.language import COLUMNS, KERNELS, NO_TEXT, ROWS
from support import exact_ints, poison

from tilewright.codegen.pto.writer import emit_pto
from tilewright.errors import UnsupportedError
from tilewright.targets import load_target

CASES = [pytest.param(*case, id=case[0].__name__) for case in KERNELS]
WRITTEN = [case for case in CASES if case.values[0] not in NO_TEXT]


@pytest.mark.parametrize(("kernel", "meaning", "numbers"), CASES)
def test_one_source_one_meaning(kernel: Any, meaning: Callable[[Any], Any], numbers: tuple[Any, ...]) -> None:
    a = exact_ints((ROWS, COLUMNS))
    wanted = meaning(a)
    for run in (kernel.reference, kernel):
        out = poison((ROWS, COLUMNS))
        run(a, out, *numbers)
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("kernel", "meaning", "numbers"), WRITTEN)
def test_as_text_for_the_assembler(
    kernel: Any, meaning: Callable[[Any], Any], numbers: tuple[Any, ...], machine: str
) -> None:
    a, out, target = exact_ints((ROWS, COLUMNS)), poison((ROWS, COLUMNS)), load_target(machine)
    program = kernel.lower(a, out, *numbers, target=machine)
    judge_pto(program, target, [a, out, *numbers], [meaning(a), a, meaning(a), *numbers])


@pytest.mark.parametrize("kernel", NO_TEXT)
def test_numbers_do_not_come_back_from_a_launch(kernel: Any) -> None:
    target = load_target("ascend910b")
    program = kernel.lower(exact_ints((ROWS, COLUMNS)), poison((ROWS, COLUMNS)), 3, target=target)
    with pytest.raises(UnsupportedError, match="returns a number"):
        emit_pto(program, target)
