"""Lifting and lowering: what is a section, what is none, and that one becomes the other without loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sections.kernels import CASES
from sections.tiled import Blocks, Deep, Epilogue, Rows

from tilewright import parse
from tilewright.compiler import lower
from tilewright.execute.interpreter import interpret
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.types import TensorType
from tilewright.ir.verify import verify
from tilewright.sections.lift import NoSection, lift
from tilewright.sections.lower import lower as lowered
from tilewright.sections.patterns import AffinePattern, OpaquePattern
from tilewright.sections.refusals import NoBody, Refusal
from tilewright.sections.section import Compute, Load, Phase, Section, Store
from tilewright.sections.verify import faults
from tilewright.targets import load_target

TARGET = load_target("ascend950")


def sections_of(program: Program) -> list[Function]:
    return [function for function in program.functions if function.kind is FunctionKind.INCORE]


def tensors_first(function: Function) -> Function:
    """The function with the order of parameters that lowering gives."""
    params = sorted(function.params, key=lambda param: not isinstance(param.value.type, TensorType))
    return function.with_(params=tuple(params))


def lifted(function: Function, phase: Phase = Phase.TEMPLATE) -> Section:
    found = lift(function, phase)
    assert isinstance(found, Section), found
    assert not faults(found)
    return found


PARAMS = "x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"


def body(text: str, params: str = PARAMS) -> Function:
    lines = "\n".join("        " + line for line in text.strip().split("\n"))
    head = f"    @pl.function(type=pl.FunctionType.InCore)\n    def main(self, {params}):\n"
    program = parse(f'import tilewright.language as pl\n\n@pl.program(entry="main")\nclass P:\n{head}{lines}\n')
    return program.main


@pytest.mark.parametrize("name", sorted(CASES))
def test_lowering_what_was_lifted_gives_it_back(name: str) -> None:
    source = CASES[name].kernel.program(*CASES[name].arguments())
    for function in sections_of(lower(source, TARGET, after="convert_tensor_to_tile")):
        again = lowered(lifted(function))
        assert isinstance(again, Function)
        verify(Program((again,), again.name))
        assert again == tensors_first(function)


@pytest.mark.parametrize("owner", [Blocks, Deep, Epilogue, Rows])
def test_a_grid_comes_back_with_its_items(owner: type) -> None:
    for function in sections_of(owner.program):  # type: ignore[attr-defined]
        section = lifted(function, Phase.TILED)
        assert len(section.work.items) > 1 and section.tile
        assert lowered(section) == function


def test_names_and_scalars_are_spelled_out_where_they_are_used() -> None:
    function = body("""
row = 8
half = row * 4
t = pl.tile.load(x, [half, 0], [32, 64])
out_1 = pl.tile.store(pl.tile.exp(t), [half, 0], out)
return out_1""")
    section = lifted(function)
    load = next(stage.kind for stage in section.stages if isinstance(stage.kind, Load))
    assert isinstance(load.pattern, AffinePattern) and load.pattern.offsets[0].constant == 32
    again = lowered(section)
    assert isinstance(again, Function)
    values = [np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096, np.zeros((64, 64), np.float32)]
    interpret(Program((again,), "main"), values)
    np.testing.assert_allclose(values[1][32:], np.exp(values[0][32:]), rtol=1e-6)
    assert not values[1][:32].any()


def test_kinds_are_what_operations_fix() -> None:
    function = body("""
t = pl.tile.load(x, [0, 0], [64, 64])
u = pl.tile.load(x, [0, 0], [64, 64])
m = pl.tile.matmul(t, u)
e = pl.tile.exp(m)
out_1 = pl.tile.store(e, [0, 0], out)
return out_1""")
    kinds = {buffer.name: buffer.kind for buffer in lifted(function).buffers}
    assert kinds["t"] is MemorySpace.MAT and kinds["m"] is MemorySpace.ACC and kinds["e"] is MemorySpace.VEC


def test_a_copy_has_a_stage_that_does_nothing() -> None:
    function = body("""
t = pl.tile.load(x, [0, 0], [64, 64])
out_1 = pl.tile.store(t, [0, 0], out)
return out_1""")
    section = lifted(function)
    assert [type(stage.kind) for stage in section.stages] == [Load, Compute, Store]
    assert lowered(section) == function


def test_an_address_that_only_the_run_knows_is_opaque() -> None:
    function = body(
        """
t = pl.tile.load(x, [n, 0], [32, 64])
out_1 = pl.tile.store(pl.tile.exp(t), [n, 0], out)
return out_1""",
        "n: pl.Scalar[pl.INDEX], " + PARAMS,
    )
    section = lifted(function)
    assert all(isinstance(s.kind.pattern, OpaquePattern) for s in section.stages if isinstance(s.kind, Load | Store))
    again = lowered(section)
    assert isinstance(again, Function) and [p.value.name for p in again.params] == ["x", "out", "n"]


def test_extents_at_run_time_are_names() -> None:
    function = body(
        """
t = pl.tile.load(x, [0, 0], [n, 64])
out_1 = pl.tile.store(pl.tile.exp(t), [0, 0], out)
return out_1""",
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[n, 64], pl.FP32], out: pl.Out[pl.Tensor[[n, 64], pl.FP32]]",
    )
    section = lifted(function)
    assert section.tensors[0].elems is None and section.tensors[0].layout.shape == ("n", 64)
    assert isinstance(lowered(section), Function)


def test_a_loop_whose_trips_depend_on_each_other_is_refused() -> None:
    found = lift(
        body("""
for i, (o,) in pl.range(2, init_values=(out,)):
    t = pl.tile.load(x, [i * 32, 0], [32, 64])
    o_1 = pl.tile.store(pl.tile.exp(t), [i * 32, 0], o)
    o_2 = pl.yield_(o_1)
return o_2""")
    )
    assert isinstance(found, Refusal) and isinstance(found.reason, NoSection)
    assert found.rule == "lift" and found.statement is not None and "depend on each other" in str(found)


def test_room_in_memory_is_refused() -> None:
    found = lift(
        body("""
w = pl.tensor.create([64, 64], pl.FP32)
t = pl.tile.load(x, [0, 0], [64, 64])
w_1 = pl.tile.store(t, [0, 0], w)
u = pl.tile.load(w_1, [0, 0], [64, 64])
out_1 = pl.tile.store(u, [0, 0], out)
return out_1""")
    )
    assert isinstance(found, Refusal) and "tensor.create" in str(found)


def test_a_branch_is_refused() -> None:
    found = lift(
        body(
            """
t = pl.tile.load(x, [0, 0], [64, 64])
if n > 1:
    e = pl.tile.exp(t)
    u = pl.yield_(e)
else:
    r = pl.tile.relu(t)
    u = pl.yield_(r)
out_1 = pl.tile.store(u, [0, 0], out)
return out_1""",
            "n: pl.Scalar[pl.INDEX], " + PARAMS,
        )
    )
    assert isinstance(found, Refusal) and "loops or branches" in str(found)


def test_a_section_without_statements_is_not_lowered() -> None:
    section = lifted(sections_of(Blocks.program)[0], Phase.TILED)
    bare = replace(section, stages=tuple(replace(stage, body=None) for stage in section.stages))
    found = lowered(bare)
    assert isinstance(found, Refusal) and found.reason == NoBody(0)


def test_a_loop_along_k_adds_to_one_buffer() -> None:
    section = lifted(sections_of(Deep.program)[0], Phase.TILED)
    loop = section.work.k_loop
    assert loop is not None and loop.accumulator is not None and section.trips == (3,) == (section.work.k_tiles,)
    assert section.buffers[loop.accumulator].kind is MemorySpace.ACC
    inside = [stage for stage in section.stages if stage.in_loop]
    assert len(inside) == 3 and inside[-1].outs == (loop.accumulator,) and loop.accumulator in inside[-1].ins
    load = inside[0].kind
    assert isinstance(load, Load) and load.num_blocks == 3
    tiles = load.pattern.tiles_at((2,), (1, 3))
    assert tiles is not None and [tile.offsets for tile in tiles] == [(32, 64), (32, 128), (32, 192)]


def test_what_is_cut_at_an_edge_that_is_not_the_tensors_is_known_at_run_time_only() -> None:
    text = """
for i, (o,) in pl.parallel(0, 64, 32, init_values=(out,)):
    t = pl.tile.load(x, [i, 0], [32, 64], valid_shape=[pl.min(32, EDGE - i), 64])
    o_1 = pl.tile.store(pl.tile.exp(t), [i, 0], o)
    o_2 = pl.yield_(o_1)
return o_2"""
    patterns: list[type] = []
    for edge in ("64", "60"):
        loads = [stage.kind for stage in lifted(body(text.replace("EDGE", edge)), Phase.TILED).stages]
        patterns += [type(kind.pattern) for kind in loads if isinstance(kind, Load)]
    assert patterns == [AffinePattern, OpaquePattern]


SUM = """
x_1 = pl.tile.load(x, [0, 0], [64, 32])
y_1 = pl.tile.load(x, [0, 0], [32, 64])
first = pl.tile.matmul(x_1, y_1)
for k, (acc,) in pl.range(1, 2, init_values=(first,)):
    x_2 = pl.tile.load(x, [0, k * 32], [64, 32])
    y_2 = pl.tile.load(x, [k * 32, 0], [32, 64])
    more = pl.tile.matmul_acc(acc, x_2, y_2)
    total = pl.yield_(more)
out_1 = pl.tile.store(total, [0, 0], out)
return out_1"""
AGAIN = """for k, (acc,) in pl.range(1, 2, init_values=(total,)):
    x_3 = pl.tile.load(x, [0, k * 32], [64, 32])
    y_3 = pl.tile.load(x, [k * 32, 0], [32, 64])
    still = pl.tile.matmul_acc(acc, x_3, y_3)
    last = pl.yield_(still)
out_1 = pl.tile.store(last,"""


STORED = SUM.replace("    total =", "    stored = pl.tile.store(x_2, [0, 0], out)\n    total =")
MORE = "    total = pl.yield_(more)"
TWICE = SUM.replace(MORE, "    twice = pl.tile.matmul_acc(more, x_2, y_2)\n" + MORE.replace("more", "twice"))


def test_a_sum_along_k_is_lifted() -> None:
    section = lifted(body(SUM))
    assert section.work.k_loop is not None and lowered(section) == body(SUM)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SUM.replace("out_1 = pl.tile.store(total,", AGAIN), "several loops along K"),
        (SUM.replace("pl.range(1, 2", "pl.range(1, 1"), "loops or branches"),
        (SUM.replace("pl.range(1, 2", "pl.range(1, n"), "loops or branches"),
        (STORED, "loops or branches"),
        (
            """
for k, (o,) in pl.range(0, 2, init_values=(out,)):
    t = pl.tile.load(x, [k * 32, 0], [32, 64])
    o_1 = pl.tile.store(pl.tile.exp(t), [k * 32, 0], o)
    o_2 = pl.yield_(o_1)
u = pl.tile.load(x, [0, 0], [64, 64])
out_1 = pl.tile.store(u, [0, 0], o_2)
return out_1""",
            "something else than a tile",
        ),
        (SUM.replace("more = pl.tile.matmul_acc(acc, x_2, y_2)", "more = pl.tile.matmul(x_2, y_2)"), "does not add"),
        (TWICE, "does not add"),
    ],
)  # fmt: skip
def test_other_loops_are_refused(text: str, why: str) -> None:
    found = lift(body(text, "n: pl.Scalar[pl.INDEX], " + PARAMS))
    assert isinstance(found, Refusal) and why in str(found), found
    assert found.statement is not None
