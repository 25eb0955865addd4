"""Kernels from their source through the pipeline to native code."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from golden import Golden, program_goldens
from meaning import draw_arguments, outcome
from native.building import compare, compiled, host, is_array

from tilewright.compiler import lower
from tilewright.frontend import parse
from tilewright.ir.function import Program
from tilewright.ir.loops import Contract, Elementwise, Index, Reduce, Update
from tilewright.ir.op import Level, Op, registry
from tilewright.targets import load_target

PASSES = Path(__file__).parents[1] / "passes"
GOLDEN = [golden for golden in program_goldens() if golden.run]

ATTENTION = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, q: pl.Tensor[[48, 64], pl.BF16], k: pl.Tensor[[80, 64], pl.BF16], v: pl.Tensor[[80, 32], pl.BF16],
             out: pl.Out[pl.Tensor[[48, 32], pl.FP32]]):
        s = pl.tensor.matmul(q, k, out_dtype=pl.FP32, b_trans=True)
        m = pl.tensor.row_max(s)
        e = pl.tensor.row_expand_expdif(s, m)
        t = pl.tensor.row_sum(e)
        p = pl.tensor.cast(e, pl.BF16)
        o = pl.tensor.matmul(p, v, out_dtype=pl.FP32)
        d = pl.tensor.row_expand_div(o, t)
        out_1 = pl.tensor.assemble(out, d, [0, 0])
        return out_1
"""


def check(program: Program, lowered: Program, ulp: float = 0, symbols: Mapping[str, int] | None = None) -> None:
    arguments = draw_arguments(program, symbols)
    expected = outcome(program, arguments)
    own = deepcopy(arguments)
    results = compiled(lowered).run(own)
    implicit = lowered.main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    for found, wanted in zip([*results[: len(results) - implicit], *own], expected, strict=True):
        compare(found, wanted, ulp)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda g: f"{g.path.parent.name}-{g.path.stem}")
def test_what_passes_are_tested_on_runs_natively(golden: Golden) -> None:
    program = parse(golden.source, golden.path.name)
    # some take powers, and sum them
    check(program, lower(program, host(), after="flatten_tiles"), ulp=4, symbols=golden.symbols)


@pytest.mark.parametrize("target", ["ascend910b", "x86_avx512"])
@pytest.mark.parametrize("name", ["matmul_chain", "scaled_between_matmuls", "through_loop_and_phi"])
def test_placed_programs_run_too(name: str, target: str) -> None:
    """Spaces, moves and hops through memory are copies, or nothing, to native code."""
    program = parse((PASSES / "convert_tensor_to_tile" / f"{name}.py").read_text().split("# -----")[0], name)
    check(program, lower(program, load_target(target)))


def test_attention() -> None:
    program = parse(ATTENTION)
    lowered = lower(program, host(), after="flatten_tiles")
    arguments = draw_arguments(program)
    (expected,) = [a for a in outcome(program, arguments)[-1:] if is_array(a)]
    own = deepcopy(arguments)
    compiled(lowered).run(own)
    # A power one unit off may round to the neighbouring BF16, whose distance is 2**-8 of it.
    np.testing.assert_allclose(own[-1], expected, rtol=2**-7, atol=2**-7)


def test_every_operation_has_a_form_or_a_function() -> None:
    """Nothing is left out: what has no loop form is registered, or made of other operations."""
    from tilewright.codegen.native.special import supported

    forms = (Elementwise, Reduce, Index, Update, Contract)
    others = [c for c in registry().values() if not isinstance(c.loops, forms)]
    left: list[type[Op]] = [c for c in others if not supported(c) and c.expand is Op.expand and Level.TILE in c.levels]
    assert left == []
