"""A placed program becomes PTO text: one file for each kernel that is launched, and a manifest that says how.

    placed program ──▶ plan the grid, and what crosses between cores ──▶ text and manifest

Only the part of the format is used that the assembler of every release accepts. The text of a kernel states in its
header which flags of the assembler it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.analysis.cores import cores_of
from tilewright.codegen.pto import special as _special
from tilewright.codegen.pto import transfers as _transfers
from tilewright.codegen.pto.flags import plan_flags
from tilewright.codegen.pto.grid import Grid, plan_grid
from tilewright.codegen.pto.kernel import PIPES, Kernel, Options
from tilewright.codegen.pto.manifest import Emitted, assembler_flags, make_manifest
from tilewright.codegen.pto.sections import Sections
from tilewright.errors import OperandError, UnsupportedError
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Call
from tilewright.ir.rewrite import type_of
from tilewright.ir.types import TensorType
from tilewright.targets import Target

REGISTERED = (_special, _transfers)
"""The modules whose import registers the operations' functions."""


@dataclass(frozen=True, slots=True)
class PTOModule:
    """`texts` by file name; `manifest` as it is written to ``manifest.json``: plain data."""

    texts: dict[str, str]
    manifest: dict[str, Any]


def emit_pto(
    program: Program, target: Target, *, level: int = 3, sync: str = "auto", dialect: str = "current"
) -> PTOModule:
    """The text and manifest of a placed program.

    Args:
        target: an Ascend machine; `program` went through all passes for it.
        level: of the assembler. 3: tiles are at the addresses of our plan. 2: the assembler plans.
        sync: who orders the pipes of a core: ``auto``, the assembler; ``explicit``, flags in the text.
        dialect: how a part of a tile is spelled: ``current`` (`pto.subset`) or ``newer`` (`pto.subview`).

    Raises `UnsupportedError` for a target without the assembler, and for what the format cannot say, with its place.
    """
    if target.pto_arch is None:
        raise UnsupportedError(
            f"{target.name} has no PTO assembler", required="a target with pto_arch", help="use ascend910b or ascend950"
        )
    for name, value, allowed in (
        ("level", level, (2, 3)), ("sync", sync, ("auto", "explicit")), ("dialect", dialect, ("current", "newer"))
    ):  # fmt: skip
        if value not in allowed:
            raise OperandError(
                f"there is no {name} {value!r}", required=" or ".join(map(str, allowed)), found=repr(value)
            )
    if sync == "explicit" and level != 3:
        raise OperandError("flags need to know the addresses", required="level=3 with sync='explicit'")
    options = Options(level, sync, dialect)
    emitted = {f.name: emit_function(f, target, options) for f in launched(program)}
    texts = {each.file: each.text for each in emitted.values()}
    return PTOModule(texts, make_manifest(program, target, options, emitted))


def launched(program: Program) -> tuple[Function, ...]:
    """The kernels of a program: what its entry calls, or the entry itself."""
    if program.main.kind is FunctionKind.INCORE:
        return (program.main,)
    called = {stmt.callee for stmt in program.main.walk() if isinstance(stmt, Call)}
    return tuple(f for f in program.functions if f.name in called)


def emit_function(function: Function, target: Target, options: Options) -> Emitted:
    """The text of one kernel."""
    if not all(isinstance(type_of(value), TensorType) for value in function.results):
        raise UnsupportedError(
            f"{function.name} returns a number, and a kernel returns nothing",
            span=function.span,
            help="write it into an output tensor",
        )
    grid = plan_grid(function, target)
    mixed = len(cores_of(function, target)) > 1
    flags = plan_flags(function, target, PIPES, within=options.sync == "explicit", between=mixed)
    kernel = Kernel(function, target, options, grid, flags, Sections(function, target, flags) if mixed else None)
    body = kernel.emit()
    head = _header(function, target, options, grid, mixed)
    module = f'module attributes {{pto.target_arch = "{target.pto_arch}"}} {{\n{body}}}\n'
    return Emitted(f"{function.name}.pto", function, head + module, grid, mixed)


def _header(function: Function, target: Target, options: Options, grid: Grid, mixed: bool) -> str:
    core = "cube and vector cores together" if mixed else f"{grid.core} core"
    ways = {"auto": "the assembler orders the pipes of a core", "explicit": "flags below order the pipes of a core"}
    plans = {3: "every tile has its address", 2: "the assembler plans the addresses"}
    lines = [
        f"{function.name}: a kernel for {target.name}, {core}, at most {grid.blocks} blocks",
        f"assemble with {' '.join(assembler_flags(target, options))}",
        f"level {options.level}: {plans[options.level]}; {ways[options.sync]}",
    ]
    if grid.reason:
        lines.append(f"one block, because {grid.reason}")
    return "".join(f"// {line}\n" for line in lines)
