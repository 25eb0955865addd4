"""Whole programs: manifests, grids, scalars and extents known at run time, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pto.writing import MACHINES, Array, agree, execute, findings, placed, same

import tilewright.language as pl
from tilewright.codegen.pto.emulate import emulate, launch
from tilewright.codegen.pto.reader import read
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import lower
from tilewright.errors import OperandError, UnsupportedError
from tilewright.frontend import parse, read_program
from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.function import Program
from tilewright.ir.scalar import Value
from tilewright.ir.types import ScalarType, TensorType
from tilewright.targets import load_target

CORE = pl.Level.CORE_GROUP


def integers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(dtype)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, x.shape[0], 16):
        valid = pl.min(16, x.shape[0] - i)
        out = pl.store(pl.load(x, [i, 0], [16, 64], valid_shape=[valid, 64]) * 2.0, [i, 0], out)
    return out


@pl.jit
def two_sections(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    tmp = pl.create_tensor([64, 64], pl.FP32)
    with pl.at(level=CORE):
        tmp[:] = a * 2.0
    with pl.at(level=CORE):
        o[:] = tmp + a
    return o


@pl.jit
def summed(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    x = a * 2.0
    y = x
    for _ in pl.range(3):
        y = y + a
    o[:] = x + y
    return o


@pl.jit.incore
def block(a: pl.Tensor, out: pl.Out[pl.Tensor], k: pl.Scalar[pl.INDEX]):
    out = pl.store(pl.load(a, [k * 16, 0], [16, 64]) + 1.0, [k * 16, 0], out)
    return out


@pl.jit
def trips(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for k in pl.range(4):
        out = block(a, out, k)
    return out


@pl.jit
def later_reads_earlier(a: pl.Tensor, o: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        for i in pl.parallel(0, 64, 16):
            o = pl.store(pl.load(a, [i, 0], [16, 64]) + 1.0, [i, 0], o)
        for i in pl.parallel(0, 64, 16):
            q = pl.store(pl.load(o, [48 - i, 0], [16, 64]) + 1.0, [i, 0], q)
    return o, q


@pl.jit
def two_grids(a: pl.Tensor, o: pl.Out[pl.Tensor], q: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        for i in pl.parallel(0, 64, 16):
            o = pl.store(pl.load(a, [i, 0], [16, 64]) + 1.0, [i, 0], o)
        for i in pl.parallel(16, 80, 32):
            q = pl.store(pl.load(a, [i - 16, 0], [16, 64]) + 2.0, [i - 16, 0], q)
    return o, q


class TestManifest:
    def test_is_plain_data(self) -> None:
        module = same(two_sections, [integers(64, 64), zeros(64, 64)], "ascend910b")
        assert json.loads(json.dumps(module.manifest)) == module.manifest

    def test_workspaces_and_order(self) -> None:
        kinds = [TensorType((64, 64), FP32)] * 2
        target = load_target("ascend910b")
        manifest = emit_pto(lower(read_program(two_sections.source, kinds), target, forward=False), target).manifest
        (name,) = manifest["workspaces"]
        assert manifest["workspaces"][name] == manifest["workspace_bytes"] == 64 * 64 * 4
        first, second = manifest["kernels"]
        assert name in first["arguments"] and name in second["arguments"]
        assert manifest["results"] == ["o"]

    def test_a_loop_that_launches_is_unrolled(self) -> None:
        kernels = same(trips, [integers(64, 64), zeros(64, 64)], "ascend910b").manifest["kernels"]
        assert [kernel["trips"] for kernel in kernels] == [[["k", k]] for k in range(4)]
        assert len({kernel["file"] for kernel in kernels}) == 1

    @pytest.mark.parametrize("options", [{}, {"level": 2}, {"sync": "explicit"}], ids=str)
    def test_flags_of_the_assembler_stand_in_text_and_manifest(self, options: dict[str, Any]) -> None:
        module = same(doubled, [integers(40, 64), zeros(40, 64)], "ascend950", **options)
        wanted = ["--pto-arch=a5", f"--pto-level=level{options.get('level', 3)}"]
        wanted += [] if options.get("sync") else ["--enable-insert-sync"]
        assert module.manifest["assembler_flags"] == wanted
        (text,) = module.texts.values()
        assert f"// assemble with {' '.join(wanted)}\n" in text

    def test_an_incore_entry_is_its_own_kernel(self) -> None:
        program = placed(doubled, [integers(40, 64), zeros(40, 64)], "ascend910b")
        kernel = next(f for f in program.functions if f.name != program.entry)
        module = emit_pto(Program((kernel,), kernel.name), load_target("ascend910b"))
        assert [k["entry"] for k in module.manifest["kernels"]] == [kernel.name]


BESIDE = """
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        t: pl.Tile[[16, 64], pl.FP32, pl.MemRef("t", 0, 4096), pl.Mem.Vec] = pl.tile.load(
            a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        first = pl.tile.store(t, [0, 0], out)
        for i, (o,) in pl.parallel(16, 64, 16, init_values=(first,)):
            x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("x", 4096, 4096), pl.Mem.Vec] = pl.tile.load(
                a, [i, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2
"""


class TestGrid:
    @pytest.mark.parametrize("blocks", [1, 2, 3, 13, 40])
    def test_any_number_of_blocks_does_all_items(self, blocks: int) -> None:
        args = [integers(200, 64), zeros(200, 64)]
        module = emit_pto(placed(doubled, list(args), "ascend910b"), load_target("ascend910b"))
        (text,) = module.texts.values()
        names = [name.removeprefix("%") for name, _ in read(text).functions[0].arguments]
        by_name: dict[str, Array] = {"x": args[0], "out": args[1]}
        emulate(text, [by_name[name] for name in names], block_num=blocks)
        np.testing.assert_array_equal(args[1], args[0] * 2)

    @pytest.mark.parametrize("machine", MACHINES)
    def test_no_more_blocks_than_items_or_cores(self, machine: str) -> None:
        for rows in (16, 200, 16 * 500):
            program = placed(doubled, [integers(rows, 64), zeros(rows, 64)], machine)
            (kernel,) = emit_pto(program, load_target(machine)).manifest["kernels"]
            assert kernel["blocks"] == min(-(-rows // 16), load_target(machine).cores["vector"])

    def test_loops_that_depend_on_each_other_are_two_launches(self) -> None:
        module = same(later_reads_earlier, [integers(64, 64), zeros(64, 64), zeros(64, 64)], "ascend910b")
        assert [kernel["blocks"] for kernel in module.manifest["kernels"]] == [4, 4]

    def test_a_function_that_stores_outside_its_loop_is_one_block(self) -> None:
        module = emit_pto(parse(BESIDE), load_target("ascend910b"))
        (kernel,) = module.manifest["kernels"]
        assert kernel["blocks"] == 1
        assert any("one block" in line for line in module.manifest["assumptions"])

    def test_independent_loops_share_the_blocks(self) -> None:
        module = same(two_grids, [integers(64, 64), zeros(64, 64), zeros(64, 64)], "ascend910b")
        (kernel,) = module.manifest["kernels"]
        assert kernel["blocks"] == 4


SCALED = """
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.FP32], a: pl.Tensor[[n, 64], pl.FP32],
             out: pl.Out[pl.Tensor[[n, 64], pl.FP32]]):
        for i, (o,) in pl.parallel(0, n, 16, init_values=(out,)):
            half = pl.max((n - 3) // 2 - 100 % (n + 1), 1)
            rows = pl.min(16, n - i)
            x = pl.tile.load(a, [i, 0], [16, 64], valid_shape=[rows, 64], target_memory=pl.Mem.Vec)
            y = pl.tile.muls(x, s * pl.cast(half, pl.FP32))
            o1 = pl.tile.store(y, [i, 0], o)
            o2 = pl.yield_(o1)
        return o2
"""


class TestRunTime:
    @pytest.mark.parametrize("rows", [1, 15, 16, 17, 100])
    def test_scalars(self, rows: int) -> None:
        target = load_target("ascend910b")
        program = lower(parse(SCALED), target)
        module = emit_pto(program, target)
        assert findings(module) == []
        a, out = integers(rows, 64), zeros(rows, 64)
        launch(module.manifest, module.texts, {"n": rows, "s": 3.0, "a": a, "out": out})
        half = max((rows - 3) // 2 - 100 % (rows + 1), 1)
        np.testing.assert_array_equal(out, a * (np.float32(3) * np.float32(half)))

    @pytest.mark.parametrize("machine", MACHINES)
    @pytest.mark.parametrize("rows", [1, 16, 65])
    def test_extents(self, rows: int, machine: str) -> None:
        n = Value("n", ScalarType(INDEX))
        kind = TensorType((n, 64), FP32)
        program = lower(read_program(doubled.source, [kind, kind]), load_target(machine))
        module = emit_pto(program, load_target(machine))
        assert findings(module) == []
        x, out = integers(rows, 64), zeros(rows, 64)
        launch(module.manifest, module.texts, {"x": x, "out": out, "n": rows})
        np.testing.assert_array_equal(out, x * 2)

    def test_strides(self) -> None:
        program = lower(
            read_program(doubled.source, [TensorType((40, 64), FP32, (80, 1)), TensorType((40, 64), FP32)]),
            load_target("ascend910b"),
        )
        module = emit_pto(program, load_target("ascend910b"))
        wide, out = integers(40, 80), zeros(40, 64)
        execute_into = {"x": wide, "out": out}
        launch(module.manifest, module.texts, execute_into)
        np.testing.assert_array_equal(out, wide[:, :64] * 2)
        assert module.manifest["arguments"][0]["strides"] == [80, 1]


@pytest.mark.parametrize("machine", MACHINES)
def test_each_trip_makes_a_tensor_of_its_own(machine: str) -> None:
    """A trip reads what the trip before it made, and the code behind the loop what stood before it."""
    module = same(summed, [integers(16, 64), zeros(16, 64)], machine)
    trips = [kernel["arguments"] for kernel in module.manifest["kernels"] if "trips" in kernel]
    made = [names[-1] for names in trips]
    assert len(set(made)) == 3
    assert [names[1] for names in trips][1:] == made[:-1]


class TestRefusals:
    def test_a_machine_without_the_assembler(self) -> None:
        program = placed(doubled, [integers(40, 64), zeros(40, 64)], "ascend910b")
        with pytest.raises(UnsupportedError, match="no PTO assembler"):
            emit_pto(program, load_target("generic"))

    @pytest.mark.parametrize("options", [{"level": 1}, {"sync": "none"}, {"dialect": "old"}], ids=str)
    def test_options_that_do_not_exist(self, options: dict[str, Any]) -> None:
        program = placed(doubled, [integers(40, 64), zeros(40, 64)], "ascend910b")
        with pytest.raises(OperandError, match="there is no"):
            emit_pto(program, load_target("ascend910b"), **options)

    def test_flags_without_addresses(self) -> None:
        program = placed(doubled, [integers(40, 64), zeros(40, 64)], "ascend910b")
        with pytest.raises(OperandError, match="addresses"):
            emit_pto(program, load_target("ascend910b"), level=2, sync="explicit")

    def test_launches_that_depend_on_a_number(self) -> None:
        text = """
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def part(self, k: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 64], pl.FP32],
             out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        x = pl.tile.load(a, [k, 0], [16, 64], target_memory=pl.Mem.Vec)
        out_1 = pl.tile.store(x, [k, 0], out)
        return out_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 64], pl.FP32],
             out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        for k, (o,) in pl.range(0, n, 1, init_values=(out,)):
            o_1 = self.part(k, a, o)
            o_2 = pl.yield_(o_1)
        return o_2
"""
        target = load_target("ascend910b")
        with pytest.raises(UnsupportedError, match="how often kernels run"):
            emit_pto(lower(parse(text), target), target)


def test_flags_are_in_pairs_and_need_no_assembler() -> None:
    args = [integers(40, 64), zeros(40, 64)]
    program = placed(doubled, list(args), "ascend910b")
    module = agree(program, args, "ascend910b", sync="explicit")
    (text,) = module.texts.values()
    assert text.count("pto.set_flag[") == text.count("pto.wait_flag[") > 0
    assert "--enable-insert-sync" not in text
    bare = "\n".join(line for line in text.splitlines() if "_flag[" not in line and "barrier" not in line) + "\n"
    module.texts[next(iter(module.texts))] = bare
    with pytest.raises(Exception, match="race"):
        execute(module, args)
