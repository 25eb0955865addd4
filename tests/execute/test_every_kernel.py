"""What holds for every kernel of the repository on both Ascend machines: each example on its file's arguments, and each
kernel of the model's benchmark in its small size."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from execute.toy import program, tile, toy
from properties.judges import ASCEND, EXAMPLES, load_example

from tilewright.execute.simulation import SimulationResult
from tilewright.execute.simulator import simulate
from tilewright.ir.function import FunctionKind
from tilewright.runtime.jit import JitFunction

BENCH = Path(__file__).parents[2] / "bench" / "model.py"
DIGITS = ((1797, 64), (64, 128), (1, 128), (128, 10), (1, 10), (1797, 10))


@cache
def bench() -> Any:
    """The module of the benchmark."""
    spec = importlib.util.spec_from_file_location("bench_model", BENCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernels() -> Iterator[tuple[str, JitFunction, list[Any]]]:
    """Every kernel that can be called, with arguments."""
    for path in sorted(EXAMPLES.glob("*.py")):
        module = load_example(path.name)
        for kernel in vars(module).values():
            if isinstance(kernel, JitFunction) and kernel.source.kind is FunctionKind.ORCHESTRATION:
                yield f"{path.stem}.{kernel.source.name}", kernel, list(module.arguments())
    digits = load_example("digits/kernel.py").classify
    yield "digits.classify", digits, [np.zeros(shape, np.float32) for shape in DIGITS]
    for kernel, dtype, result, small, _ in bench().CASES:
        *inputs, out = small
        yield f"bench.{kernel.source.name}", kernel, [np.zeros(s, dtype) for s in inputs] + [np.zeros(out, result)]


KERNELS = {name: (kernel, arguments) for name, kernel, arguments in kernels()}


def test_there_are_many() -> None:
    assert len(KERNELS) >= 24
    assert "flash_attention.flash_attention" in KERNELS


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("name", KERNELS)
def test_cycles_lie_between_the_busiest_engine_and_all_of_them(name: str, target: str) -> None:
    kernel, arguments = KERNELS[name]
    found: SimulationResult = kernel.simulate(*arguments, target=target)
    assert max(use.busiest for use in found.engines) <= found.cycles * (1 + 1e-9)
    for launch in found.launches:
        assert launch.cycles <= launch.serial * (1 + 1e-9), "one thing after another would be slower"
    assert found.cycles == pytest.approx(sum(launch.cycles for launch in found.launches))
    assert 0 < found.limit <= found.cycles * (1 + 1e-9)
    assert sum(step.cycles for step in found.critical_path) == pytest.approx(found.cycles)
    for use in found.engines:
        assert use.busy + sum(use.stalls.values()) + use.idle == pytest.approx(found.cycles * use.cores)


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("size", [(128, 128, 128), (256, 512, 384), (512, 512, 512)], ids=str)
def test_a_pipelined_product_is_never_slower(target: str, size: tuple[int, int, int]) -> None:
    """Two steps of K in flight against one."""
    m, k, n = size
    arguments = [np.zeros((m, k), bench().BF16), np.zeros((k, n), bench().BF16), np.zeros((m, n), np.float32)]
    plain = bench().matmul.simulate(*arguments, target=target).cycles
    piped = bench().matmul_piped.simulate(*arguments, target=target).cycles
    assert piped <= plain
    if k > 256:
        assert piped < plain, "loads of the next step overlap the product of this one"


@pytest.mark.slow
def test_the_benchmark_covers_24_kernels_and_says_what_holds_the_worst_back() -> None:
    rows = bench().simulated("ascend950")
    assert len(rows) == 24
    name, worst = max(rows, key=lambda row: row[1].ratio)
    assert bench().held_back(worst).startswith("work for 1 of 72 vector cores; path: VECTOR"), name
    assert all(found.ratio >= 1 - 1e-9 for _, found in rows)


@pytest.mark.slow
def test_a_hundred_thousand_instructions_take_under_five_seconds(tmp_path: Path) -> None:
    """In seconds of this process; four times as many take less than eight times as long."""
    seconds: list[float] = []
    for trips in (6_250, 25_000):
        long = program(f"""
for i, (o,) in pl.range(0, {trips}, 1, init_values=(out,)):
    x: {tile(0)} = pl.tile.load(a, [i * 8, 0], [8, 8], target_memory=pl.Mem.Vec)
    y: {tile(1)} = pl.tile.exp(x)
    z: {tile(1)} = pl.tile.neg(y)
    o_1 = pl.tile.store(z, [i * 8, 0], o)
    last = pl.yield_(o_1)
""", shape=f"[{8 * trips}, 8]")  # fmt: skip
        machine = toy(tmp_path, cores=1, shared=32)
        started = time.process_time()
        assert simulate(long, machine).instructions == 4 * trips
        seconds.append(time.process_time() - started)
    assert seconds[1] < 5
    assert seconds[1] < 8 * seconds[0]
