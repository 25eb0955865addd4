"""Runs passes on built programs, and holds each step to what it promises: verified, legal, and of the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support import exact_ints, poison

from tilewright.analysis.legality import check_legal, check_spaces
from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.emulate import emulate
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import placed
from tilewright.execute.interpreter import interpret
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.types import TensorType
from tilewright.ir.verify import verify
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_dtypes import legalize_dtypes
from tilewright.passes.tile.legalize_layouts import legalize_layouts
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.passes.tile.materialize_scratch import materialize_scratch
from tilewright.targets import Target, load_target

Pass = Callable[[Program, Target], Program]
PASSES: tuple[Pass, ...] = (
    infer_spaces, legalize_moves, legalize_dtypes, legalize_layouts, materialize_scratch,
)  # fmt: skip


def arguments(program: Program, scalars: Sequence[int] = ()) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
    """Arguments for the program, small integers, and those among them that it writes; run-time extents take the first
    scalar."""
    args: list[Any] = []
    outputs: list[np.ndarray[Any, Any]] = []
    given = iter(scalars)
    for index, param in enumerate(program.main.params):
        kind = param.value.type
        if not isinstance(kind, TensorType):
            args.append(next(given))
            continue
        shape = tuple(extent if isinstance(extent, int) else scalars[0] for extent in kind.shape)
        args.append(exact_ints(shape, np.dtype(kind.dtype.numpy), seed=index))
        if param.is_output:
            outputs.append(args[-1])
    return args, outputs


def run(program: Program, scalars: Sequence[int] = ()) -> list[np.ndarray[Any, Any]]:
    """What the program leaves in its output tensors."""
    args, outputs = arguments(program, scalars)
    interpret(program, args)
    return outputs


def legalized(
    program: Program, target: str | Target, scalars: Sequence[int] = (), passes: Sequence[Pass] = PASSES
) -> Program:
    """`program` after `passes` on `target`; raises unless each step is verified, keeps the meaning, and does nothing
    the second time."""
    machine = load_target(target)
    verify(program)
    wanted = run(program, scalars)
    for step in passes:
        program = step(program, machine)
        verify(program)
        if step is legalize_moves:
            check_spaces(program, machine)
        for a, b in zip(wanted, run(program, scalars), strict=True):
            np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64), err_msg=str(step))
        assert step(program, machine) == program, f"{step} changes what it made itself"
    if passes is PASSES:
        check_legal(program, machine)
    return program


def emulated(program: Program, target: str) -> None:
    """Holds the text of the one kernel that `program` becomes against the program's meaning, on the emulated machine;
    workspaces start as poison."""
    machine = load_target(target)
    final = [stage for _, stage in placed(program, machine)][-1]
    (text,) = emit_pto(final, machine).texts.values()
    assert not check(text)
    args, outputs = arguments(program)
    (kernel,) = (function for function in final.functions if function.kind is FunctionKind.INCORE)
    for param in kernel.params[len(args) :]:
        kind = param.value.type
        assert isinstance(kind, TensorType)
        shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
        args.append(poison(shape, np.dtype(kind.dtype.numpy)))
    emulate(text, args)
    for wanted, found in zip(run(program), outputs, strict=True):
        np.testing.assert_array_equal(np.asarray(wanted, np.float64), np.asarray(found, np.float64))


def count(program: Program, kind: type[Op]) -> int:
    """How many operations of class `kind` the program holds."""
    return sum(1 for stmt in program.main.walk() if isinstance(stmt, Let) and isinstance(stmt.value, kind))
