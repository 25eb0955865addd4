"""How products are cut, as printed: the chosen point, its cycles, its limit and the runner-up are the chooser's."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from rich.console import Console

import tilewright.language as pl
from tilewright.analysis.tile_chooser import Problem, choose_l0_tile
from tilewright.frontend import parse
from tilewright.ir.dtypes import BF16, FP32
from tilewright.report import explain_tiles
from tilewright.report.tiles import TilePoint
from tilewright.targets import load_target

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.BF16], b: pl.Tensor[[64, 320], pl.BF16],
             out: pl.Out[pl.Tensor[[320, 320], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [320, 64])
        y = pl.tile.load(b, [0, 0], [64, 320])
        product = pl.tile.matmul(x, y)
        out_1 = pl.tile.store(product, [0, 0], out)
        return out_1
"""


@pl.jit
def multiply(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return out


def given(m: int, n: int, k: int) -> tuple[Any, ...]:
    kind = ml_dtypes.bfloat16
    return np.zeros((m, k), kind), np.zeros((k, n), kind), np.zeros((m, n), np.float32)


@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "x86_avx512", "host"])
def test_what_is_printed_is_what_the_chooser_says(target: str) -> None:
    found = explain_tiles(parse(TEXT, "kernel.pl"), target)
    (function,) = found.functions
    (product,) = function.products
    tile = choose_l0_tile(Problem(320, 320, 64, BF16, FP32), load_target(target))
    assert (product.name, product.line) == ("product", 11)
    assert (product.m, product.n, product.k, product.dtype, product.acc_dtype) == (320, 320, 64, "BF16", "FP32")
    assert product.grid == (-(-320 // product.chosen.m), -(-320 // product.chosen.n), -(-64 // product.chosen.k))
    assert point(product.chosen) == (tile.m, tile.n, tile.k, tile.cycles.wall) and product.chosen.limit == tile.limit
    assert product.runner_up is not None and tile.runner_up is not None
    assert product.runner_up.wall == tile.runner_up.cycles.wall >= product.chosen.wall
    terms = (product.chosen.load, product.chosen.multiply, product.chosen.drain)
    assert product.chosen.limit == ("load", "multiply", "drain")[terms.index(max(terms))]


def point(chosen: TilePoint) -> tuple[int, int, int, float]:
    return chosen.m, chosen.n, chosen.k, chosen.wall


def test_the_text_names_the_point_its_cycles_the_limit_and_the_runner_up() -> None:
    text = str(explain_tiles(parse(TEXT, "kernel.pl"), "ascend910b"))
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0].startswith("Tiles of main on ascend910b")
    assert "== main, from kernel.pl" in lines and "product (line 11)" in lines
    assert any(line.startswith("tile       112 x 128 x 64, B held, 2 accumulators") for line in lines)
    assert any(re.fullmatch(r"cycles +load [\d,]+, multiply [\d,]+, drain [\d,]+", line) for line in lines)
    assert any(re.fullmatch(r"limit +drain", line) for line in lines)
    assert any(re.fullmatch(r"runner-up +80 x 128 x 64, B held, .* cycles \(\+3\.5%\)", line) for line in lines)


def test_a_result_that_the_accumulator_cannot_hold_is_reported_with_its_padding() -> None:
    """32 rows of boxes for 16 rows of INT32."""
    sizes = (("[320, 64]", "[16, 128]"), ("[64, 320]", "[128, 1152]"), ("[320, 320]", "[16, 1152]"))
    text = TEXT.replace("BF16", "INT8").replace("FP32", "INT32")
    for before, after in sizes:
        text = text.replace(before, after)
    found = explain_tiles(parse(text), "ascend910b")
    (product,) = found.functions[0].products
    assert (product.result_bytes, product.acc_capacity) == (147_456, 131_072) and product.grid[1] > 1
    assert "product, whole: 147,456 bytes physical, Acc holds 131,072" in str(found)


def test_a_program_without_a_product_says_so() -> None:
    text = TEXT.replace("pl.tile.matmul(x, y)", "pl.tile.relu(x)").replace("[320, 320], pl.FP32", "[320, 64], pl.BF16")
    found = explain_tiles(parse(text), "ascend910b")
    assert "it has no matrix product" in str(found)
    assert [function.products for function in found.functions] == [()]


def test_a_terminal_shows_the_same_words() -> None:
    found = explain_tiles(parse(TEXT, "kernel.pl"), "ascend910b")
    stream = io.StringIO()
    Console(file=stream, width=200).print(found, highlight=False, markup=False)
    assert stream.getvalue().split() == str(found).split()


def test_json_holds_every_figure() -> None:
    found = explain_tiles(parse(TEXT), "ascend950").to_json()
    assert json.loads(json.dumps(found))["functions"][0]["products"][0]["chosen"]["m"] > 0


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_whole_tensors_larger_than_the_chip_have_their_tiles_explained(target: str) -> None:
    program = multiply.compile(*given(1000, 1000, 1000), target=target).source
    found = explain_tiles(program, target)
    products = [product for function in found.functions for product in function.products]
    assert products and all(product.chosen.wall > 0 for product in products)
    assert "runner-up" in str(found)
