"""A program as PTO text, executed by the emulator on byte arrays: what an Ascend machine would be given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.cli.arguments import is_array
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import lower
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Program
from tilewright.runtime.tuned import tuned_target
from tilewright.targets import load_target


def emulated(program: Program, target: str, forward: bool = True) -> Callable[[Sequence[Any]], Any]:
    """Runs `program` on arrays, one for each parameter of its entry; outputs are written in place. Raises
    `UnsupportedError` for results that are no output parameter, and what emitting and emulating raise."""
    machine = tuned_target(program, load_target(target))
    module = emit_pto(lower(program, machine, forward=forward), machine)
    names = [param.value.name for param in program.main.params]

    def run(values: Sequence[Any]) -> None:
        given = dict(zip(names, values, strict=False))
        wanted = [argument["name"] for argument in module.manifest["arguments"]]
        missing = [name for name in wanted if name not in given]
        if missing:
            raise UnsupportedError(
                f"the emulator needs an array for {', '.join(missing)}",
                required="outputs as parameters",
                help="declare the result as a pl.Out parameter, and pass it",
            )
        arrays = {name: np.ascontiguousarray(given[name]) if is_array(given[name]) else given[name] for name in wanted}
        launch(module.manifest, module.texts, arrays)
        for name, array in arrays.items():
            if is_array(array) and array is not given[name]:
                given[name][...] = array

    return run
