"""Carried tiles change in place where nobody reads an older version, and are copied where somebody does."""

from __future__ import annotations

import numpy as np
from native.building import host

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.codegen.native.storage import plan_storage
from tilewright.execute import interpret

HEADER = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 8], pl.INT32], out: pl.Out[pl.Tensor[[4, 8], pl.INT32]]):
        start = pl.tile.full([4, 8], pl.INT32, pl.const(0, pl.INT32))
        for i, (a,) in pl.range(4, init_values=(start,)):
"""
FOOTER = """
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1
"""
ONE = """
            for j, (b,) in pl.range(8, init_values=(a,)):
                e = pl.tensor.read(x, [i, j])
                c = pl.tile.write(b, [i, j], e)
                d, = pl.yield_(c)
            r, = pl.yield_(d)
"""
OLDER = """
            for j, (b,) in pl.range(8, init_values=(a,)):
                e = pl.tensor.read(x, [i, j])
                c = pl.tile.write(b, [i, j], e)
                f = pl.tile.add(c, b)
                d, = pl.yield_(f)
            r, = pl.yield_(d)
"""
VIEW = """
            v = pl.tile.slice(a, [1, 8], [0, 0])
            e = pl.tensor.read(x, [i, 1])
            c = pl.tile.write(a, [0, i], e)
            g = pl.tile.assemble(c, v, [3, 0])
            r, = pl.yield_(g)
"""
OUTER = """
            for j, (b,) in pl.range(8, init_values=(a,)):
                e = pl.tile.read(a, [i, 0])
                c = pl.tile.write(b, [i, j], e + 1)
                d, = pl.yield_(c)
            r, = pl.yield_(d)
"""


def run(body: str) -> int:
    """Compares with the interpreter; returns how many tiles of the program's storages are as large as the carried."""
    program = tw.parse(HEADER + body + FOOTER)
    x = np.arange(32, dtype=np.int32).reshape(4, 8) * 7 - 50
    wanted, found = np.zeros((4, 8), np.int32), np.zeros((4, 8), np.int32)
    interpret(program, [x, wanted])
    compile_native(program, host()).run([x, found])
    np.testing.assert_array_equal(found, wanted)
    plan = plan_storage(program.function("main"), program, False)
    return sum(storage.nbytes == 4 * 8 * 4 for storage in plan.storages)


def test_nested_loops_write_one_storage() -> None:
    assert run(ONE) == 1


def test_an_older_version_that_is_read_is_kept() -> None:
    assert run(OLDER) > 1


def test_a_view_of_an_older_version_is_kept() -> None:
    assert run(VIEW) > 1


def test_what_an_inner_loop_reads_from_outside_is_kept() -> None:
    assert run(OUTER) > 1
