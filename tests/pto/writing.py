"""From a kernel to PTO text, and what the text does: checked, executed, and compared with the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import PTOModule, emit_pto
from tilewright.compiler import lower
from tilewright.execute import interpret
from tilewright.frontend import read_program
from tilewright.ir.dtypes import from_numpy
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.targets import load_target

Array = npt.NDArray[Any]
MACHINES = ("ascend910b", "ascend950")


def placed(kernel: Any, args: list[Any], machine: str) -> Program:
    """`kernel` read for arguments like `args`, and lowered for `machine`."""
    kinds = [a if isinstance(a, int | float) else _type(a) for a in args]
    return lower(read_program(kernel.source, kinds), load_target(machine))


def _type(array: Array) -> TensorType:
    return TensorType(array.shape, from_numpy(array.dtype))


def runtime(args: list[Any]) -> list[Any]:
    """The arguments that stay when a kernel is specialised: the arrays."""
    return [a for a in args if isinstance(a, np.ndarray)]


def execute(module: PTOModule, args: list[Array], *, sync: Any = None) -> list[Array]:
    """The arrays after the launches of `module`."""
    own = [a.copy() for a in args]
    names = [argument["name"] for argument in module.manifest["arguments"]]
    launch(module.manifest, module.texts, dict(zip(names, own, strict=True)), sync=sync or module.manifest["sync"])
    return own


def findings(module: PTOModule) -> list[str]:
    """Every rule that a text of `module` breaks."""
    level, dialect = module.manifest["level"], module.manifest["dialect"]
    return [str(f) for text in module.texts.values() for f in check(text, level=level, dialect=dialect)]


def interpreted(program: Program, args: list[Array]) -> list[Array]:
    """The arrays after the interpreter ran `program`."""
    own = [a.copy() for a in args]
    interpret(program, own)
    return own


def agree(program: Program, args: list[Array], machine: str, *, tolerance: float = 0.0, **options: Any) -> PTOModule:
    """Emit, check, execute; the arrays must be those that the interpreter leaves, to the bit unless `tolerance`."""
    module = emit_pto(program, load_target(machine), **options)
    assert findings(module) == []
    wanted, found = interpreted(program, args), execute(module, args)
    for left, right in zip(wanted, found, strict=True):
        if tolerance:
            np.testing.assert_allclose(right.astype(np.float64), left.astype(np.float64), tolerance, tolerance)
        else:
            np.testing.assert_array_equal(right, left)
    return module


def same(kernel: Any, args: list[Any], machine: str, *, tolerance: float = 0.0, **options: Any) -> PTOModule:
    """`agree`, from the kernel on."""
    return agree(placed(kernel, args, machine), runtime(args), machine, tolerance=tolerance, **options)
