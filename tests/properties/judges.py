"""Who says whether numbers are right: the interpreter at each stage, native code, and the emulated assembler text.

`outcomes` of a program are what its user can see: the values returned, then every array argument afterwards. A
reason that the compiler states for not compiling a program (`DECLINED`) is no fault; anything else that is raised, and
any bit that differs, is one.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from meaning import MeaningError, draw_arguments, first_difference, outcome
from properties.addresses import check_addresses
from support import poison

from tilewright import parse
from tilewright.analysis.legality import check_legal
from tilewright.certify.checker import check as check_certificate
from tilewright.certify.writer import certify
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import stages, unplaced
from tilewright.errors import AccumulatorError, CapacityError, NoRouteError, UnsupportedError
from tilewright.execute.memory import run_placed
from tilewright.ir.dtypes import BOOL
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType
from tilewright.ir.verify import verify
from tilewright.targets import Target, load_target

DECLINED = (UnsupportedError, CapacityError, NoRouteError, AccumulatorError)
EXAMPLES = Path(__file__).parents[2] / "examples"
SCRATCHPAD = str(EXAMPLES / "targets/scratchpad.toml")
ASCEND = ("ascend910b", "ascend950")
TARGETS = (*ASCEND, SCRATCHPAD, "x86_avx512")


def load_example(file: str) -> ModuleType:
    """The module of an example, executed once."""
    name = "example_" + file.removesuffix(".py").replace("/", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def same(wanted: Sequence[Any], found: Sequence[Any], where: str, tolerance: float = 0.0) -> None:
    """Raises `MeaningError` at the first bit that differs, or the first number that is off by more than `tolerance`."""
    if len(wanted) != len(found):
        raise MeaningError(f"{where}: {len(wanted)} outputs wanted, {len(found)} found")
    for position, (left, right) in enumerate(zip(wanted, found, strict=True)):
        difference = first_difference(left, right)
        if difference is not None and not (tolerance and _close(left, right, tolerance)):
            raise MeaningError(f"{where}: output {position} differs: {difference}")


def _close(left: Any, right: Any, tolerance: float) -> bool:
    a, b = np.asarray(left).astype(np.float64), np.asarray(right).astype(np.float64)
    return a.shape == b.shape and np.allclose(a, b, tolerance, tolerance, equal_nan=True)


def judge_passes(
    program: Program,
    target: Target,
    arguments: list[Any],
    wanted: Sequence[Any],
    *,
    tolerance: float = 0.0,
    text: bool = True,
) -> Program:
    """Every prefix of the pipeline: verified, of the same meaning (sums that are cut may round within `tolerance`),
    and, if `text`, read back from its text; at the end legal, with addresses that no two live buffers share. A stage
    that equals the one before is only verified: two in three of a random program do. Returns the placed program.
    Raises what the compiler raises."""
    after, judged = program, None
    for name, after in stages(program, target):
        verify(after)
        if after == judged:
            continue
        judged = after
        same(wanted, outcome(after, arguments), f"{target.name} after {name}", tolerance)
        if text:
            _reads_back(after, f"{target.name} after {name}")
    check_legal(after, target)
    check_addresses(after, target)
    return after


def _reads_back(program: Program, where: str) -> None:
    """The text of a program is the program."""
    again = parse(str(program))
    assert again == program, f"{where}: the text reads back as another program"
    assert hash(again) == hash(program), f"{where}: equal programs have two hashes"


def judge_machine(placed: Program, target: Target, arguments: list[Any], wanted: Sequence[Any], seed: int = 0) -> None:
    """The placed program at its addresses, each engine as late as its hazards allow."""
    own = deepcopy(arguments)
    results = run_placed(placed, target, own, seed=seed)
    implicit = placed.main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    same(wanted, [*results[: len(results) - implicit], *own], f"{target.name}, memory machine")


def judge_certificate(placed: Program, target: Target) -> None:
    """The checker accepts what the compiler certifies."""
    verdict = check_certificate(placed, certify(placed, target), target)
    assert verdict.accepted, f"{target.name}: {verdict}"


def judge_native(program: Program, arguments: list[Any], wanted: Sequence[Any]) -> None:
    """Machine code for this processor."""
    host = load_target("host")
    *_, (_, tiles) = unplaced(program, host)
    own = deepcopy(arguments)
    results = compile_native(tiles, host).run(own)
    implicit = program.main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    same(wanted, [*results[: len(results) - implicit], *own], "native code")


def judge_pto(
    placed: Program,
    target: Target,
    arguments: list[Any],
    wanted: Sequence[Any],
    *,
    tolerance: float = 0.0,
    **options: Any,
) -> None:
    """The assembler's text: without a finding, and executed by the emulator (which may sum in another order). Outputs
    that the entry makes itself are workspaces of the manifest, and given here as arguments."""
    module = emit_pto(placed, target, **options)
    manifest = dict(module.manifest)
    for name, text in module.texts.items():
        found = [str(f) for f in check(text, level=manifest["level"], dialect=manifest["dialect"], name=name)]
        assert not found, f"{name}: {found[0]}"
    own = deepcopy(arguments)
    named = dict(zip((a["name"] for a in manifest["arguments"] if a["kind"] != "extent"), own, strict=True))
    memory: dict[str, Any] = dict(named)
    for extent in manifest["arguments"]:
        if extent["kind"] == "extent":
            memory[extent["name"]] = named[extent["argument"]].shape[extent["axis"]]
    results: list[Any] = []
    types = [value.type for value in placed.main.results if isinstance(value, Value)]
    for name, kind in zip(manifest["results"], types, strict=placed.main.kind is FunctionKind.ORCHESTRATION):
        if name not in memory:
            assert isinstance(kind, TensorType)
            shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
            assert len(shape) == kind.rank, "a result whose size is known at run time only"
            memory[name] = poison(shape, np.dtype(kind.dtype.numpy))
            manifest["workspaces"] = {k: v for k, v in manifest["workspaces"].items() if k != name}
        results.append(memory[name])
    launch(manifest, module.texts, memory, sync=options.get("sync", manifest["sync"]))
    if placed.main.kind is FunctionKind.INCORE:  # what a kernel returns are its outputs
        same(wanted[len(wanted) - len(own) :], own, f"{target.name} emulated", tolerance)
        return
    implicit = placed.main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    same(wanted, [*results[: len(results) - implicit], *own], f"{target.name} emulated", tolerance)


def has_masks(program: Program) -> bool:
    """Whether masks go to or from DDR, where Ascend packs them into bits."""
    values = [*(param.value for param in program.main.params), *program.main.results]
    return any(getattr(value, "dtype", None) is BOOL for value in values)


def judge(program: Program, symbols: dict[str, int] | None = None, arguments: list[Any] | None = None) -> list[str]:
    """Everything above on every target. Returns, for each target that declines the program, its reason."""
    verify(program)
    given = draw_arguments(program, symbols) if arguments is None else arguments
    wanted = outcome(program, given)
    declined: list[str] = []
    for name in TARGETS:
        target = load_target(name)
        try:
            placed = judge_passes(program, target, given, wanted)
            judge_machine(placed, target, given, wanted)
            judge_certificate(placed, target)
            if target.pto_arch is not None and not has_masks(program):
                judge_pto(placed, target, given, wanted)
        except DECLINED as error:
            declined.append(f"{target.name}: {error.message}")
    try:
        judge_native(program, given, wanted)
    except DECLINED as error:
        declined.append(f"native: {error.message}")
    return declined
