"""Programs drawn at random: loops that carry tiles, branches, slices, stores in between, little memory.

Each is legal and leaves what the interpreter leaves, with the assembler's flags and with ours; small integers keep
every result exact. Little memory makes addresses shared, which is where a missing flag shows.
"""

from __future__ import annotations

import numpy as np
import pytest
from pto.writing import MACHINES, Array, execute, findings, interpreted

from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import lower
from tilewright.frontend import parse
from tilewright.targets import Target, load_target

COLUMNS, REGIONS = 32, 6


def head(rows: int) -> str:
    return f"""
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[{rows * REGIONS}, {COLUMNS}], pl.FP32],
             out: pl.InOut[pl.Tensor[[{rows * REGIONS}, {COLUMNS}], pl.FP32]]):
"""


class Drawn:
    """The source of one program. `names` are the tiles that are defined where the next statement stands. `products`:
    tiles are square and may be multiplied, so that both kinds of core work; everything stays between -3 and 3."""

    def __init__(self, seed: int, *, products: bool = False) -> None:
        self.products = products
        self.rows = COLUMNS if products else 16
        self.random = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.names: list[str] = ["t0", "t1"]
        self.count = 2
        self.valid = self.rows if products else int(self.random.choice([16, 16, 1, 15]))
        for name, at in (("t0", 0), ("t1", self.rows)):
            self.line(2, f"{name} = {self.load(str(at))}")
        for _ in range(int(self.random.integers(3, 7))):
            self.statement(2, 0)
        for region, name in enumerate(self.names[-3:]):
            self.line(2, f"out = pl.store({name}, [{region * self.rows}, 0], out)")
        self.line(2, "return out")

    def load(self, row: str) -> str:
        shape = f"[{self.rows}, {COLUMNS}]"
        return f"pl.load(a, [{row}, 0], {shape}, valid_shape=[{self.valid}, {COLUMNS}])"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def pick(self) -> str:
        return str(self.random.choice(self.names))

    def expression(self, index: str | None) -> str:
        if not self.products:
            return self.plain(index)
        product = f"pl.matmul({self.pick()}, {self.pick()})"
        return f"pl.minimum(pl.maximum({product if self.random.integers(3) == 0 else self.plain(index)}, -3.0), 3.0)"

    def plain(self, index: str | None) -> str:
        x, y = self.pick(), self.pick()
        region = f"({index} % {REGIONS}) * {self.rows}" if index else "32"
        ways = [
            f"{x} + {y}", f"{x} - {y}", f"pl.maximum({x}, {y})", f"pl.minimum({x}, {y})", f"{x} + 1.0",
            f"pl.minimum(pl.maximum({x} * 2.0, -50.0), 50.0)", f"pl.neg({x})", f"pl.relu({x})",
            f"pl.row_expand_sub({x}, pl.row_max({y}))", f"pl.col_expand_add({x}, pl.col_min({y}))",
            f"pl.sel(pl.cmp({x}, {y}, cmp_type=4), {x}, {y})", self.load(region),
        ]  # fmt: skip
        return ways[int(self.random.integers(len(ways)))]

    def statement(self, depth: int, nesting: int) -> None:
        index = f"i{nesting - 1}" if nesting else None
        kind = int(self.random.integers(8))
        if kind == 0 and nesting < 2:
            self.loop(depth, nesting)
        elif kind == 1 and index is not None:
            self.branch(depth, nesting, index)
        elif kind == 2:
            region = str(int(self.random.integers(REGIONS))) if index is None else f"({index} % {REGIONS})"
            row = f"{region} * {self.rows}"
            self.line(depth, f"out = pl.store({self.pick()}, [{row}, 0], out)")
        elif kind == 3 and nesting:
            self.line(depth, f"{self.pick()} = {self.expression(index)}")
        else:
            expression = self.expression(index)
            name = f"t{self.count}"
            self.count += 1
            self.line(depth, f"{name} = {expression}")
            self.names.append(name)

    def loop(self, depth: int, nesting: int) -> None:
        self.line(depth, f"for i{nesting} in pl.range({int(self.random.integers(1, 5))}):")
        kept = list(self.names)
        for _ in range(int(self.random.integers(2, 5))):
            self.statement(depth + 1, nesting + 1)
        self.line(depth + 1, f"{kept[0]} = {kept[0]} + {self.pick()}")
        self.line(depth + 1, f"{kept[0]} = pl.minimum(pl.maximum({kept[0]}, -99.0), 99.0)")
        self.names = kept

    def branch(self, depth: int, nesting: int, index: str) -> None:
        name, kept = self.pick(), list(self.names)
        self.line(depth, f"if {index} % 2 == {int(self.random.integers(2))}:")
        self.line(depth + 1, f"{name} = {self.expression(index)}")
        self.names = list(kept)
        self.line(depth, "else:")
        self.line(depth + 1, f"{name} = {self.expression(index)}")
        self.names = kept

    @property
    def source(self) -> str:
        return head(self.rows) + "\n".join(self.lines) + "\n"


def arguments(seed: int, rows: int = 16) -> list[Array]:
    random = np.random.default_rng(seed)
    shape = (rows * REGIONS, COLUMNS)
    return [random.integers(-3, 4, shape).astype(np.float32) for _ in range(2)]


def check_program(source: str, args: list[Array], target: Target) -> None:
    after = lower(parse(source), target)
    wanted = interpreted(after, args)
    for sync in ("auto", "explicit"):
        module = emit_pto(after, target, sync=sync)
        assert findings(module) == []
        for left, right in zip(wanted, execute(module, args), strict=True):
            np.testing.assert_array_equal(right, left)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(25))
def test_vector_programs(seed: int, machine: str) -> None:
    source, target = Drawn(seed).source, load_target(machine)
    check_program(source, arguments(seed), target)
    check_program(source, arguments(seed), target.with_capacity(Vec=48 * 1024))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("seed", range(25))
def test_programs_of_both_cores(seed: int, machine: str) -> None:
    drawn = Drawn(seed, products=True)
    check_program(drawn.source, arguments(seed, drawn.rows), load_target(machine))


def test_what_one_arm_of_a_loop_reads_is_there_in_the_next_trip() -> None:
    source = (
        head(16)
        + """
        t0 = pl.load(a, [0, 0], [16, 32])
        for i in pl.range(2):
            if i % 2 == 0:
                t1 = t0 * 2.0
                out = pl.store(t1, [0, 0], out)
            else:
                out = pl.store(t0, [32, 0], out)
        return out
"""
    )
    check_program(source, arguments(0), load_target("ascend910b"))


def test_two_tiles_one_after_the_other_into_the_same_bytes_of_the_other_core() -> None:
    """On the 950: the zeros around the second come after the first has been read, which another pipe waited for."""
    source = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[5, 5], pl.FP32], b: pl.Tensor[[5, 5], pl.FP32],
             out: pl.Out[pl.Tensor[[5, 5], pl.FP32]]):
        x = pl.tile.neg(pl.tile.load(a, [0, 0], [5, 5]))
        y = pl.tile.neg(pl.tile.load(b, [0, 0], [5, 5]))
        r = pl.tile.matmul(x, y)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1
"""
    given = [np.arange(25, dtype=np.float32).reshape(5, 5) % 7 for _ in range(2)]
    check_program(source, [*given, np.zeros((5, 5), np.float32)], load_target("ascend950"))
