"""After every pass, for every machine, a program's text reads back as an equal program."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright import load_target, parse
from tilewright.compiler import stages
from tilewright.ir.function import Program

KERNELS = {
    "elementwise": """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[200, 64], pl.FP32], n: pl.INDEX, out: pl.Out[pl.Tensor[[200, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(n):
                x = pl.tensor.slice(a, [64, 64], [i * 64, 0], clamp=True)
                out = pl.tensor.assemble(out, pl.exp(x * 2.0), [i * 64, 0])
        return out
""",
    "matmul": """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[65, 17], pl.BF16], b: pl.Tensor[[17, 33], pl.BF16]):
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.matmul(a, b, out_dtype=pl.FP32)
            d = pl.maximum(c, 0.0)
        return d
""",
    "carried": """
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[128, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        acc = pl.tile.full([64, 64], pl.FP32, 0.0)
        for i, (total,) in pl.range(2, init_values=(acc,)):
            x = pl.tile.load(a, [i * 64, 0], [64, 64])
            if i < 1:
                y = pl.yield_(x)
            else:
                y = pl.yield_(pl.tile.neg(x))
            summed = pl.yield_(pl.tile.add(total, y))
        out = pl.tile.store(summed, [0, 0], out)
        return out
""",
}


def program_of(name: str) -> Program:
    return pl.parse(f'import tilewright.language as pl\n\n@pl.program(entry="main")\nclass Program:\n{KERNELS[name]}')


@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "x86_amx", "generic"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_reads_back(name: str, target: str) -> None:
    seen: list[str] = []
    for stage, program in stages(program_of(name), load_target(target)):
        text = program.as_python()
        assert parse(text) == program, f"after {stage}:\n{text}"
        assert parse(program.as_python(explicit_layout=True)) == program, f"after {stage}, layouts written out"
        seen.append(stage)
    assert seen[0] == "frontend"
    assert seen[-1] == "place_buffers"
