"""Explanations: every tile once, figures that add up by hand, and reasons read off the program."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as pl
from tilewright.ir.nodes import Let
from tilewright.ir.types import TileType
from tilewright.report import Explanation, explain
from tilewright.report.render import time_bar
from tilewright.report.tables import Column, Table, human_bytes, percent

ROWS = 200


@pl.jit
def layer(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    for start in pl.parallel(0, rows, 64):
        valid = pl.min(64, rows - start)
        block = pl.slice(x, [64, 64], [start, 0], valid_shape=[valid, 64])
        out = pl.assemble(out, pl.relu(block @ w + b), [start, 0])
    return out


@pl.jit
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
        out = pl.store(tile * 2.0, [0, 0], out)
    return out


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def of_layer(target: str) -> Explanation:
    return layer.explain(zeros(ROWS, 64), zeros(64, 32), zeros(1, 32), zeros(ROWS, 32), target=target)


@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "x86_avx512", "host"])
def test_every_tile_is_listed_once_with_its_place(target: str) -> None:
    placed = layer.lower(zeros(ROWS, 64), zeros(64, 32), zeros(1, 32), zeros(ROWS, 32), target=target)
    found = of_layer(target)
    for report in found.functions:
        kinds = [
            value.type
            for stmt in placed.function(report.name).walk()
            for value in (*stmt.block_args(), *stmt.defs())
            if isinstance(value.type, TileType)
        ]
        expected = [(k.space and k.space.value, k.memref and (k.memref.name, k.memref.addr)) for k in kinds]
        assert [(tile.space, (tile.buffer, tile.address)) for tile in report.tiles] == expected
        assert all(tile.why and tile.line for tile in report.tiles)


def test_a_launch_of_both_cores_has_its_workspace() -> None:
    found = of_layer("ascend910b")
    assert [launch.core for launch in found.launches] == ["cube and vector"]
    assert [function.name for function in found.functions] == [launch.function for launch in found.launches]
    assert {tile.core for tile in found.functions[0].tiles} == {"cube", "vector"}
    (workspace,) = found.workspaces
    assert workspace.name in found.launches[0].arguments


def test_a_hop_through_ddr_says_which_edge_is_missing() -> None:
    (function,) = of_layer("ascend910b").functions
    assert any("through DDR: ascend910b has no edge Acc -> Vec" in tile.why for tile in function.tiles)
    assert not any("through DDR" in tile.why for f in of_layer("ascend950").functions for tile in f.tiles)


def test_reasons_name_the_operation_and_its_operand() -> None:
    why = {tile.name: tile.why for tile in of_layer("ascend910b").functions[0].tiles if tile.core == "cube"}
    assert why["block_left"] == "matmul reads lhs in Left"
    assert why["block"] == "on the way to Left, which only Mat feeds"
    assert why["matmul"] == "matmul leaves its result in Acc"


def test_a_place_that_the_user_wrote_is_said_to_be_written() -> None:
    tiles = scaled.explain(zeros(32, 64), zeros(32, 64), target="ascend910b").functions[0].tiles
    assert tiles[0].why == "written: target_memory=Vec"
    assert tiles[1].why == "mul leaves its result in Vec"


def test_bytes_through_ddr_count_tails_as_long_as_they_are() -> None:
    (function,) = of_layer("ascend910b").functions
    trips = math.ceil(ROWS / 64)
    assert function.exact
    assert function.ddr_in == 4 * (ROWS * 64 + trips * 64 * 32) + 4 * (ROWS * 32 + trips * 32)
    assert function.ddr_out == 2 * 4 * ROWS * 32
    assert {move.times for move in function.moves} == {trips}


def test_trips_known_only_at_run_time_are_not_called_exact() -> None:
    program = tw.parse("""
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.INDEX, a: pl.Tensor[[256, 64], pl.FP32], out: pl.Out[pl.Tensor[[256, 64], pl.FP32]]):
        for i, (out_1,) in pl.range(0, n, 16, init_values=(out,)):
            x = pl.tile.load(a, [i, 0], [16, 64])
            out_2 = pl.tile.store(pl.tile.exp(x), [i, 0], out_1)
            out_3 = pl.yield_(out_2)
        return out_3
""")
    (report,) = explain(program, "ascend910b").functions
    assert not report.exact
    assert (report.ddr_in, report.ddr_out) == (16 * 64 * 4, 16 * 64 * 4)


def test_peaks_cover_every_buffer_and_stay_within_the_memory() -> None:
    for target in ("ascend910b", "ascend950"):
        for report in of_layer(target).functions:
            for use in report.memories:
                ends = [bar.address + bar.nbytes for bar in use.buffers if bar.address is not None]
                assert use.peak == max(ends) and 0 < use.share <= 1


def test_routes_tell_the_way_and_its_price() -> None:
    route = next(r for r in of_layer("ascend910b").routes if r.dst == "Vec")
    assert route.route == "Acc -> DDR -> Vec" and not route.edge
    target = tw.load_target("ascend910b")
    found = target.route(pl.Mem.Acc, pl.Mem.Vec, pl.FP32, nbytes=64 * 32 * 4)
    assert found is not None and route.cycles == found.cost


@pl.jit
def wanted_twice(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [64, 64])
        out = pl.store(pl.matmul(x, pl.load(b, [0, 0], [64, 64])), [0, 0], out)
        out = pl.store(x + 1.0, [64, 0], out)
    return out


def test_a_tile_that_is_loaded_twice_is_said_to_be() -> None:
    found = wanted_twice.explain(zeros(64, 64), zeros(64, 64), zeros(128, 64), target="ascend910b")
    (again,) = [route for route in found.routes if route.route.startswith("loaded again")]
    assert {again.src, again.dst} == {"Mat", "Vec"} and again.route == f"loaded again: DDR -> {again.dst}"
    assert not again.edge and again.cycles > 0


def test_json_holds_the_same_figures() -> None:
    found = of_layer("ascend910b")
    read = json.loads(json.dumps(found.to_json()))
    assert read["target"] == "ascend910b"
    assert read["ddr_in"] == found.ddr_in == sum(f["ddr_in"] for f in read["functions"])
    assert [t["name"] for t in read["functions"][0]["tiles"]] == [t.name for t in found.functions[0].tiles]


def test_plain_text_and_the_terminal_say_the_same() -> None:
    from rich.console import Console

    found = of_layer("ascend910b")
    text = str(found)
    assert "\x1b" not in text
    terminal = io.StringIO()
    Console(file=terminal, width=220, force_terminal=False).print(found)
    for word in ("block_left", "matmul reads lhs in Left", "Acc -> DDR -> Vec", "0x000000", "cube and vector"):
        assert word in text and word in terminal.getvalue()


def test_a_narrow_terminal_keeps_the_reasons() -> None:
    from rich.console import Console

    terminal = io.StringIO()
    Console(file=terminal, width=80, force_terminal=False).print(of_layer("ascend910b"))
    assert max(map(len, terminal.getvalue().splitlines())) <= 80
    assert "why there" in terminal.getvalue() and "layout" not in terminal.getvalue()


def test_explaining_imports_no_terminal_library() -> None:
    import subprocess
    import sys

    code = "import sys, tilewright.report; sys.exit(bool({'rich', 'typer'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_program_is_left_as_it_was() -> None:
    program = scaled.program(zeros(32, 64), zeros(32, 64))
    before = str(program)
    explain(program, "ascend910b")
    assert str(program) == before
    assert all(isinstance(stmt, Let) for stmt in program.main.walk() if stmt.defs() and not stmt.blocks())


# --- words --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (188416, "184 KiB"), (1 << 30, "1 GiB")],
)
def test_bytes_as_people_read_them(count: int, text: str) -> None:
    assert human_bytes(count) == text


def test_a_little_is_not_nothing() -> None:
    assert [percent(share) for share in (0, 0.004, 0.5, 1)] == ["0 %", "<1 %", "50 %", "100 %"]


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 7), (7, 7), (0, 9)])
def test_bars_have_one_width_and_are_never_empty(first: int, last: int) -> None:
    bar = time_bar(first, last, 7)
    assert len(bar) == len(time_bar(1, 7, 7)) and "█" in bar


def test_a_table_leaves_out_columns_that_say_nothing() -> None:
    table = Table("t", (Column("a"), Column("b"), Column("n", right=True)), (("x", "", "1"), ("yy", "", "10")))
    assert str(table) == "t\na    n\n--  --\nx    1\nyy  10"
