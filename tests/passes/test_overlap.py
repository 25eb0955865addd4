"""Trips that cross between cores: two slots, an order in which they overlap, and what finds a slot reused too early."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from meaning import outcome
from numpy.typing import NDArray
from properties.judges import judge_pto, load_example
from run.running import ASCEND, everywhere, incore
from support import poison

from tilewright import parse
from tilewright.analysis.hazards import Hazard, hazards
from tilewright.certify.certificate import HazardClaim
from tilewright.certify.checker import check
from tilewright.certify.writer import certify
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import lower
from tilewright.errors import MemoryFault, PTOError
from tilewright.execute import instructions
from tilewright.execute.memory import run_placed
from tilewright.execute.simulator import simulate
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import For, Let, LoopKind
from tilewright.ir.op import Op
from tilewright.passes.tile import pipeline as passes
from tilewright.targets import Target, load_target

PARAMETERS = (
    "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[{m}, 64], pl.FP16], b: pl.Tensor[[64, 320], pl.FP16], "
    "c: pl.Tensor[[320, {w}], pl.FP16], out: pl.Out[pl.Tensor[[{m}, {w}], pl.FP32]]"
)
BOTH = """
left = pl.tile.load(a, [0, 0], [{m}, 64], target_memory=pl.Mem.Mat)
seed = pl.tile.full([{m}, {w}], pl.FP32, 0.0)
for k, (sum,) in pl.{loop}(0, n, 64{stage}, init_values=(seed,)):
    rows = pl.min(64, n - k)
    x = pl.tile.load(b, [0, k], [64, 64], valid_shape=[64, rows], target_memory=pl.Mem.Mat, pad_value=pl.PadValue.zero)
    y = pl.tile.load(c, [k, 0], [64, {w}], valid_shape=[rows, {w}], target_memory=pl.Mem.Mat,
                     pad_value=pl.PadValue.zero)
    s = pl.tile.matmul(left, x)
    p = pl.tile.cast(pl.tile.relu(s), pl.FP16)
    t = pl.tile.matmul(p, y)
    sum_1 = pl.tile.add(sum, t)
    sum_2 = pl.yield_(sum_1)
out_1 = pl.tile.store(sum_2, [0, 0], out)
return out_1
"""
"""Cube, vector, cube, vector in each trip. Small integers: exact."""


def both(m: int = 32, w: int = 32, loop: str = "range", stage: str = "") -> str:
    return incore(PARAMETERS.format(m=m, w=w), BOTH.format(m=m, w=w, loop=loop, stage=stage))


def given(n: int, m: int = 32, w: int = 32) -> list[Any]:
    draw = np.random.default_rng(n)
    return [n, *(draw.integers(-1, 2, s).astype(np.float16) for s in ((m, 64), (64, 320), (320, w))), poison((m, w))]


def wanted(arguments: list[Any]) -> NDArray[np.float32]:
    n, a, b, c = (np.asarray(each).astype(np.float32) for each in arguments[:4])
    return np.maximum(a @ b[:, : int(n)], 0) @ c[: int(n)]


def main(program: Program) -> Function:
    return next(f for f in program.functions if any(isinstance(s, For) for s in f.walk()))


def names(function: Function) -> list[str]:
    """The operations of the first pipelined loop in order."""
    loop = next(s for s in function.walk() if isinstance(s, For) and s.kind is LoopKind.PIPELINE)
    return [s.value.name for s in loop.body if isinstance(s, Let) and isinstance(s.value, Op)]


# --- results ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 15, 63, 64, 65, 128, 200, 320])
def test_every_number_of_trips(n: int) -> None:
    arguments = given(n)
    everywhere(both(), arguments, [wanted(arguments)], ASCEND, native=n in (1, 200))


@pytest.mark.parametrize(("m", "w"), [(16, 64), (17, 32)])
@pytest.mark.parametrize("stage", [1, 3])
def test_a_depth_that_was_asked_for(m: int, w: int, stage: int) -> None:
    arguments = given(200, m, w)
    text = both(m, w, "pipeline", f", stage={stage}")
    everywhere(text, arguments, [wanted(arguments)], ASCEND, native=False)


@pytest.mark.parametrize("target", ASCEND)
def test_signals_alone_order_it(target: str) -> None:
    """With explicit synchronisation nothing else does, and the emulator finds no race."""
    machine, program, arguments = load_target(target), parse(both()), given(200)
    judge_pto(lower(program, machine), machine, arguments, outcome(program, arguments), sync="explicit")


# --- the order ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ASCEND)
def test_the_second_trip_begins_before_the_first_one_has_its_answer(target: str) -> None:
    found = names(main(lower(parse(both()), load_target(target))))
    products = [index for index, name in enumerate(found) if name == "matmul"]
    assert len(products) == 4
    between = [found[a:b] for a, b in pairwise(products)]
    assert "relu" not in between[0], "both first products come before any work on them"
    assert between[1].count("relu") == 2
    assert "add" not in between[2]


@pytest.mark.parametrize("target", ASCEND)
def test_what_a_trip_needs_from_its_very_beginning_keeps_its_order(target: str) -> None:
    """Every trip starts from the answer of the one before: nothing may be taken forward."""
    text = both().replace("s = pl.tile.matmul(left, x)", "s = pl.tile.matmul(pl.tile.cast(sum, pl.FP16), x)")
    text = text.replace("seed = pl.tile.full([32, 32]", "seed = pl.tile.full([32, 64]").replace(
        "32], pl.FP", "64], pl.FP"
    )
    text = text.replace("[64, 32]", "[64, 64]").replace("[rows, 32]", "[rows, 64]")
    found = names(main(lower(parse(text), load_target(target))))
    work = [name for name in found if name in ("matmul", "relu", "add")]
    assert work == ["matmul", "relu", "matmul", "add"] * 2


READ_THEN_WRITTEN = """
state = pl.tensor.create([64, 64], pl.FP32)
first = pl.tile.full([64, 64], pl.FP32, 1.0)
state_0 = pl.tile.store(first, [0, 0], state)
for k, (o, held) in pl.range(0, 256, 64, init_values=(out, state_0)):
    old = pl.tile.load(held, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
    x = pl.tile.load(a, [k, 0], [64, 64], target_memory=pl.Mem.Mat)
    s = pl.tile.matmul(x, x)
    v = pl.tile.muls(s, 2.0)
    w = pl.tile.add(v, old)
    held_1 = pl.tile.store(v, [0, 0], held)
    o_1 = pl.tile.store(w, [k, 0], o)
    o_2, held_2 = pl.yield_(o_1, held_1)
return o_2
"""


def test_what_reads_a_tensor_stays_before_what_overwrites_it() -> None:
    a = np.random.default_rng(1).integers(-1, 2, (256, 64)).astype(np.float16)
    out, old = poison((256, 64)), np.ones((64, 64), np.float32)
    for k in range(0, 256, 64):
        x = a[k : k + 64].astype(np.float32)
        out[k : k + 64], old = 2 * (x @ x) + old, 2 * (x @ x)
    text = incore("a: pl.Tensor[[256, 64], pl.FP16], out: pl.Out[pl.Tensor[[256, 64], pl.FP32]]", READ_THEN_WRITTEN)
    everywhere(text, [a, poison((256, 64))], [out], ASCEND, native=False)


# --- what it gains ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ASCEND)
def test_attention_takes_two_thirds_of_the_time(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, example = load_target(target), load_example("flash_attention.py")
    arguments = example.arguments()
    named: dict[str, Any] = dict(zip(("q", "k", "v", "out"), arguments, strict=True))
    program = example.flash_attention.lower(*arguments, target=target, after="frontend")

    def simulated() -> float:
        return simulate(lower(program, machine), machine, named).cycles

    overlapped = simulated()
    monkeypatch.setattr(passes, "CROSSING", 1)
    assert overlapped < 0.67 * simulated()


def test_a_loop_without_room_for_two_slots_stays_as_it_is() -> None:
    machine = load_target("ascend910b").with_capacity(Vec=32 * 1024)
    loops = [s for s in main(lower(parse(both()), machine)).walk() if isinstance(s, For)]
    assert [loop.kind for loop in loops] == [LoopKind.SEQUENTIAL]


# --- a slot that is reused too early ------------------------------------------------------------------------------
ONE_WAY = """
left = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
for k, (o,) in pl.range(0, n, 64, init_values=(out,)):
    x = pl.tile.load(b, [0, k], [64, 64], target_memory=pl.Mem.Mat)
    s = pl.tile.matmul(left, x)
    p = pl.tile.relu(s)
    o_1 = pl.tile.store(p, [0, k], o)
    o_2 = pl.yield_(o_1)
return o_2
"""
"""The cube never hears of the vector core but that a slot is free."""


def one_way() -> tuple[str, list[Any]]:
    parameters = (
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 640], pl.FP16], "
        "out: pl.Out[pl.Tensor[[64, 640], pl.FP32]]"
    )
    draw = np.random.default_rng(1)
    arrays = (draw.integers(-1, 2, shape).astype(np.float16) for shape in ((64, 64), (64, 640)))
    return incore(parameters, ONE_WAY), [640, *arrays, poison((64, 640))]


def reuse(hazard: Hazard | HazardClaim) -> bool:
    """Whether it makes the cube wait until the slot that it drains into is free: in DDR once it has been loaded, on
    chip once it has been worked on."""
    vector = hazard.before_engine in ("MTE2", "VECTOR", "MTE3")
    return hazard.distance == 1 and hazard.after_engine == "FIXPIPE" and vector


@pytest.mark.parametrize("target", ASCEND)
def test_the_memory_machine_finds_it(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = load_target(target)
    text, arguments = one_way()
    placed = lower(parse(text), machine)
    run_placed(placed, machine, [*arguments[:-1], poison((64, 640))])
    dropped: list[Hazard] = []

    def some(function: Function, target: Target) -> list[Hazard]:
        found = hazards(function, target)
        dropped.extend(filter(reuse, found))
        return [hazard for hazard in found if not reuse(hazard)]

    monkeypatch.setattr(instructions, "hazards", some)
    with pytest.raises(MemoryFault, match="race"):
        run_placed(placed, machine, arguments)
    assert dropped


@pytest.mark.parametrize("target", ASCEND)
def test_the_checker_finds_it(target: str) -> None:
    machine = load_target(target)
    placed = lower(parse(one_way()[0]), machine)
    certificate = certify(placed, machine)
    assert not check(placed, certificate, machine).findings
    claim = next(each for each in certificate.functions if each.hazards)
    left = tuple(each for each in claim.hazards if not reuse(each))
    assert left != claim.hazards
    functions = tuple(replace(each, hazards=left) if each is claim else each for each in certificate.functions)
    assert "order" in check(placed, replace(certificate, functions=functions), machine).facts


@pytest.mark.parametrize("target", ASCEND)
def test_the_emulator_finds_a_signal_that_is_not_waited_for(target: str) -> None:
    machine = load_target(target)
    source, arguments = one_way()
    module = emit_pto(lower(parse(source), machine), machine, sync="explicit")
    ((name, text),) = module.texts.items()
    named: dict[str, Any] = dict(zip(("n", "a", "b", "out"), arguments, strict=True))
    launch(module.manifest, {name: text}, named, sync="explicit")
    numbers = "|".join(set(re.findall(r"pto\.sync\.wait <PIPE_FIX>, (\d+)", text)))
    left = re.sub(rf"pto\.sync\.(set|wait) <PIPE_\w+>, ({numbers})\n", "\n", text)
    assert left != text
    with pytest.raises(PTOError, match="race"):
        launch(module.manifest, {name: left}, named, sync="explicit")
