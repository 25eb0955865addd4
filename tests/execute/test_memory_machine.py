"""The memory machine: right programs give the interpreter's bits, wrong addresses and missing waits are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from meaning import outcome
from properties.judges import DECLINED, TARGETS, same
from properties.strategies import Seeded, generate
from run.running import incore
from support import TAILS, exact_ints, poison

from tilewright import parse
from tilewright.analysis.hazards import Hazard, hazards
from tilewright.compiler import lower
from tilewright.errors import MemoryFault, OutOfBoundsError, TilewrightError, UndefinedReadError, VerifyError
from tilewright.execute import instructions
from tilewright.execute.memory import run_placed
from tilewright.execute.memory.positions import positions
from tilewright.ir.dtypes import BOOL, FP16, FP32
from tilewright.ir.function import Function, Program
from tilewright.ir.layout import Compact, MemorySpace
from tilewright.ir.op import Level
from tilewright.ir.types import TileType, TileView
from tilewright.targets import Target, load_target

A3 = load_target("ascend910b")
A5 = load_target("ascend950")
A = "a: pl.Tensor[[32, 64], pl.FP32]"
OUT = "out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]"


def agrees(program: Program, target: Target, arguments: Sequence[Any], seeds: Sequence[int] = (0, 1, 2)) -> None:
    """Holds the placed program on the machine against `program` in the interpreter."""
    wanted = outcome(program, list(arguments))
    placed = lower(program, target)
    implicit = placed.main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    for seed in seeds:
        own = deepcopy(list(arguments))
        results = run_placed(placed, target, own, seed=seed)
        same(wanted, [*results[: len(results) - implicit], *own], f"{target.name}, seed {seed}")


def tile(name: str, at: int, op: str, rows: int = 16, columns: int = 64, nbytes: int = 4096) -> str:
    buffer = f'pl.MemRef("{name}", addr={at}, nbytes={nbytes})'
    return f"{name}: pl.Tile[[{rows}, {columns}], pl.FP32, {buffer}, pl.Mem.Vec] = pl.tile.{op}"


def load(name: str, at: int, row: int = 0) -> str:
    return tile(name, at, f"load(a, [{row}, 0], [16, 64], target_memory=pl.Mem.Vec)")


def placed(lines: Sequence[str], parameters: str = f"{A}, {OUT}") -> Program:
    return parse(incore(parameters, "\n".join(lines)))


def run(lines: Sequence[str], seed: int = 0, target: Target = A3) -> np.ndarray[Any, Any]:
    out = poison((32, 64))
    run_placed(placed(lines), target, [exact_ints((32, 64)), out], seed=seed)
    return out


SUM = (
    load("x", 0),
    load("y", 4096, 16),
    tile("z", 8192, "add(x, y)"),
    "o = pl.tile.store(z, [0, 0], out)",
    tile("w", 8192, "sub(x, y)"),
    "o1 = pl.tile.store(w, [16, 0], o)",
    "return o1",
)


def changed(at: int, line: str) -> list[str]:
    lines = list(SUM)
    lines[at] = line
    return lines


# --- right programs -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_right_numbers_however_late_the_engines_are(seed: int) -> None:
    a = exact_ints((32, 64))
    np.testing.assert_array_equal(run(SUM, seed), np.concatenate([a[:16] + a[16:], a[:16] - a[16:]]))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("size", [1, 17, 65])
def test_products_with_tails(name: str, size: int) -> None:
    """Boxes, the accumulator's pitch and compact parts: every extent is the awkward one."""
    text = incore(
        f"a: pl.Tensor[[{size}, {size}], pl.FP16], b: pl.Tensor[[{size}, {size}], pl.FP16], "
        f"out: pl.Out[pl.Tensor[[{size}, {size}], pl.FP32]]",
        f"""
        x = pl.tile.load(a, [0, 0], [{size}, {size}])
        y = pl.tile.load(b, [0, 0], [{size}, {size}])
        z = pl.tile.matmul(x, y)
        s = pl.tile.relu(z)
        o = pl.tile.store(s, [0, 0], out)
        return o
        """,
    )
    inputs = [exact_ints((size, size), np.float16, seed) for seed in (0, 1)]
    agrees(parse(text), load_target(name), [*inputs, poison((size, size))], [size])


@pytest.mark.parametrize("name", TARGETS)
def test_pipelines_branches_and_carries(name: str) -> None:
    text = incore(
        f"n: pl.Scalar[pl.INDEX], {A}, {OUT}",
        """
        s = pl.tile.full([8, 64], pl.FP32, 0.0)
        t = pl.tile.load(a, [0, 0], [8, 64])
        for i, (p, q, o) in pl.pipeline(0, 4, 1, stage=2, init_values=(s, t, out)):
            x = pl.tile.load(a, [i * 8, 0], [8, 64])
            if i < n:
                y = pl.tile.add(x, q)
                r = pl.yield_(y)
            else:
                r = pl.yield_(p)
            o_1 = pl.tile.store(r, [i * 8, 0], o)
            p_1, q_1, o_2 = pl.yield_(q, r, o_1)
        return o_2
        """,
    )
    agrees(parse(text), load_target(name), [2, exact_ints((32, 64)), poison((32, 64))])


@pytest.mark.parametrize("seed", range(6))
def test_work_items_on_any_number_of_cores_in_any_order(seed: int) -> None:
    text = incore(
        f"{A}, {OUT}",
        """
        for i, (o,) in pl.parallel(0, 32, 4, init_values=(out,)):
            x = pl.tile.load(a, [i, 0], [4, 64])
            y = pl.tile.neg(x)
            o_1 = pl.tile.store(y, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2
        """,
    )
    agrees(parse(text), A3, [exact_ints((32, 64)), poison((32, 64))], [seed])


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("name", TARGETS)
def test_random_programs(name: str, level: Level) -> None:
    target, taken = load_target(name), 0
    for seed in range(8000, 8002):
        drawn = generate(Seeded(seed), level)
        try:
            agrees(drawn.program, target, drawn.arguments(), [seed])
            taken += 1
        except DECLINED as error:
            assert error.message
    assert taken or target.pto_arch is not None


def test_a_filter_of_one_bit_per_element() -> None:
    """Masks are packed on the way: 5 of the 8 bits of a byte are written, and the others stay as they are."""
    text = incore(
        "a: pl.Tensor[[5, 13], pl.FP32], out: pl.Out[pl.Tensor[[5, 13], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [5, 13])
        m = pl.tile.cmps(x, 0.0, cmp_type=4)
        y = pl.tile.neg(x)
        z = pl.tile.sel(m, x, y)
        o = pl.tile.store(z, [0, 0], out)
        return o
        """,
    )
    agrees(parse(text), A3, [exact_ints((5, 13)), poison((5, 13))])


# --- wrong addresses ------------------------------------------------------------------------------------------------
def test_two_tiles_overlap_by_one_unit() -> None:
    with pytest.raises(MemoryFault) as found:
        run(changed(1, load("y", 4064, 16)))
    text = str(found.value)
    assert "'x' is read after something else was put where it lies in UB" in text
    assert "byte 4064 as it was left by line 7: x = tile.load (MTE2)" in text
    assert "line 9: z = tile.add (VECTOR) finds there what was left by line 8: y = tile.load (MTE2)" in text


@pytest.mark.parametrize(
    ("line", "at", "says"),
    [
        (1, load("y", 4096 + 8, 16), "'y' is not aligned in UB"),
        (1, load("y", 192 * 1024 - 32, 16), "'y' does not lie within its buffer in UB"),
        (1, tile("y", 4096, "load(a, [16, 0], [16, 64], target_memory=pl.Mem.Vec)", nbytes=4064), "within its buffer"),
        (4, tile("w", 0, "row_expand_sub(x, x)"), "does not fit"),
        (4, tile("w", 16384, "sub(w0, y)"), "w0"),
    ],
)
def test_places_that_do_not_exist(line: int, at: str, says: str) -> None:
    with pytest.raises(TilewrightError, match=says):
        run(changed(line, at))


def test_a_result_over_an_operand_that_is_still_read() -> None:
    row = tile("r", 12288, "row_max(x, tmp=y)", 16, 1, 64)
    lines = [load("x", 0), load("y", 4096, 16), row, tile("z", 12288, "row_expand_sub(x, r)"), *SUM[3:4], "return o"]
    with pytest.raises(MemoryFault, match="writes over 'r', which it still reads"):
        run(lines)


def test_scratch_is_lost() -> None:
    """The reduction's scratch is a tile that is read afterwards."""
    lines = [
        load("x", 0),
        load("y", 4096, 16),
        tile("r", 12288, "row_max(x, tmp=y)", 16, 1, 64),
        tile("z", 8192, "row_expand_sub(y, r)"),
        "o = pl.tile.store(z, [0, 0], out)",
        "return o",
    ]
    with pytest.raises(MemoryFault, match="'y' is read after something else was put where it lies"):
        run(lines)


def test_what_a_loop_hands_on_lies_elsewhere() -> None:
    lines = [
        load("x", 0),
        "for i, (c,) in pl.range(0, 3, 1, init_values=(x,)):",
        "    " + tile("y", 4096, "neg(c)"),
        "    c_1, = pl.yield_(y)",
        "o = pl.tile.store(c_1, [0, 0], out)",
        "return o",
    ]
    with pytest.raises((MemoryFault, VerifyError), match=r"elsewhere|two types"):
        run(lines)


def test_an_undefined_element_is_stored() -> None:
    lines = [tile("x", 0, "create([16, 64], pl.FP32, target_memory=pl.Mem.Vec)"), "o = pl.tile.store(x, [0, 0], out)"]
    with pytest.raises(UndefinedReadError, match="'x'"):
        run([*lines, "return o"])


def test_an_access_outside_a_tensor() -> None:
    text = incore(
        f"n: pl.Scalar[pl.INDEX], {A}, {OUT}",
        f"{load('x', 0).replace('[0, 0]', '[n, 0]')}\no = pl.tile.store(x, [0, 0], out)\nreturn o",
    )
    with pytest.raises(OutOfBoundsError, match="outside 'a'"):
        run_placed(parse(text), A3, [17, exact_ints((32, 64)), poison((32, 64))])


# --- missing waits --------------------------------------------------------------------------------------------------
def without(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Hazard], bool]) -> None:
    """The machine's list of hazards lacks those that are `wanted`."""

    def some(function: Function, target: Target) -> list[Hazard]:
        found = hazards(function, target)
        assert any(map(wanted, found))
        return [hazard for hazard in found if not wanted(hazard)]

    monkeypatch.setattr(instructions, "hazards", some)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("y", "z", "line 9: z = tile.add .VECTOR. after line 8: y = tile.load .MTE2."),
        ("z", "o", "line 10: o = tile.store .MTE3. after line 9: z = tile.add .VECTOR."),
        ("o", "w", "line 11: w = tile.sub .VECTOR. after line 10: o = tile.store .MTE3."),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_missing_wait(monkeypatch: pytest.MonkeyPatch, before: str, after: str, says: str, seed: int) -> None:
    """Read of unwritten, and write after read; found however the run happens to go."""
    without(monkeypatch, lambda h: (h.before.target.name, h.after.target.name) == (before, after))
    with pytest.raises(MemoryFault, match=r"race in UB") as found:
        run(SUM, seed)
    assert re.search(says, str(found.value)), found.value


def test_a_missing_wait_for_the_trip_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "for i, (o,) in pl.range(0, 2, 1, init_values=(out,)):",
        "    " + load("x", 0).replace("[0, 0]", "[i * 16, 0]"),
        "    o_1 = pl.tile.store(x, [i * 16, 0], o)",
        "    o_2, = pl.yield_(o_1)",
        "return o_2",
    ]
    np.testing.assert_array_equal(run(lines), exact_ints((32, 64)))
    without(monkeypatch, lambda h: h.distance == 1)
    with pytest.raises(MemoryFault, match=r"x = tile.load \(MTE2, i = 1\) after .*o_1 = tile.store \(MTE3, i = 0\)"):
        run(lines)


def test_two_work_items_write_one_element() -> None:
    lines = [
        "for i, (o,) in pl.parallel(0, 2, 1, init_values=(out,)):",
        "    " + load("x", 0),
        "    o_1 = pl.tile.store(x, [i * 15, 0], o)",
        "    o_2, = pl.yield_(o_1)",
        "return o_2",
    ]
    with pytest.raises(MemoryFault, match="work items of two cores"):
        run(lines)


def test_engines_of_two_cores_are_two() -> None:
    """On the 950 a FIXPIPE of the cube fills a tile that a FIXPIPE of the vector core reads: one name, no order."""
    text = incore(
        "a: pl.Tensor[[32, 32], pl.FP16], b: pl.Tensor[[32, 32], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]",
        """
        x = pl.tile.move(pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        y = pl.tile.move(pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        m = pl.tile.matmul(x, y)
        v = pl.tile.move(m, target_memory=pl.Mem.Vec, target_type=pl.FP16)
        w = pl.tile.move(v, target_memory=pl.Mem.Mat)
        z = pl.tile.matmul(pl.tile.move(w, target_memory=pl.Mem.Left), y)
        o = pl.tile.store(z, [0, 0], out)
        return o
        """,
    )
    inputs = [np.eye(32, dtype=np.float16), exact_ints((32, 32), np.float16)]
    agrees(parse(text), A5, [*inputs, poison((32, 32))])


# --- positions ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("space", [MemorySpace.MAT, MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC])
@pytest.mark.parametrize("size", TAILS)
def test_every_element_has_a_place_of_its_own(name: str, space: MemorySpace, size: int) -> None:
    target = load_target(name)
    if not target.has(space):
        return
    dtype = FP32 if space is MemorySpace.ACC else FP16
    kind = TileType((size, 33), dtype, space)
    found = positions(kind, target, (size, 33))
    assert found.min() == 0 and len(np.unique(found)) == found.size and not (found % dtype.nbytes).any()


def test_a_compact_part_is_packed_by_its_valid_shape() -> None:
    kind = TileType((64, 64), FP16, MemorySpace.LEFT, TileView((17, 40), compact=Compact.NORMAL))
    found = positions(kind, A3, (17, 40))
    assert found[:17, :40].max() < 32 * 48 * 2 and (found[32:, 0] == -1).all() and found[0, 16] == 32 * 16 * 2


def test_masks_are_bits() -> None:
    found = positions(TileType((3, 13), BOOL, MemorySpace.VEC), A3, (3, 13))
    assert found[0].tolist() == list(range(13)) and found[1, 0] == 32 * 8


def test_a_loop_that_its_condition_ends() -> None:
    text = incore(
        f"n: pl.Scalar[pl.INDEX], {A}, {OUT}",
        """
        x = pl.tile.load(a, [0, 0], [32, 64])
        i = 0
        while i < n:
            x = pl.tile.neg(x)
            i = i + 1
        o = pl.tile.store(x, [0, 0], out)
        return o
        """,
    )
    agrees(parse(text), A3, [3, exact_ints((32, 64)), poison((32, 64))])
