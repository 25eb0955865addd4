"""Buffers and addresses (matmul R17, R18; capacity errors): who shares, what is refused, and how well things pack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from run.running import ASCEND, everywhere, incore
from support import exact_ints, poison

from tilewright import parse
from tilewright.compiler import lower
from tilewright.errors import AccumulatorError, CapacityError
from tilewright.ir.layout import MemorySpace
from tilewright.ir.types import TileType
from tilewright.passes.memory.assign_buffers import assign_buffers
from tilewright.passes.memory.place_buffers import plan_addresses
from tilewright.targets import load_target

# --- accumulators -------------------------------------------------------------------------------------------------
PARAMETERS = (
    "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 16], pl.FP16], "
    "o0: pl.Out[pl.Tensor[[16, 16], pl.FP32]], o1: pl.Out[pl.Tensor[[16, 16], pl.FP32]]"
)
BEGIN = """
x = pl.tile.load(a, [0, 0], [16, 64])
y = pl.tile.load(b, [0, 0], [64, 16])
p0 = pl.tile.matmul(x, y)
"""
END = """
s0 = pl.tile.store(r, [0, 0], o0)
s1 = pl.tile.store(s, [0, 0], o1)
return s0, s1
"""
SEEDED = """
seed = pl.tile.create([16, 16], pl.FP32)
part = pl.tile.set_validshape(seed, 13, 11)
xs = pl.tile.load(a, [0, 0], [16, 64], valid_shape=[13, 64])
ys = pl.tile.load(b, [0, 0], [64, 16], valid_shape=[64, 11])
for i, (p,) in pl.{loop}, init_values=(part,)):
    m = pl.tile.matmul_acc(p, xs, ys, init_cond=i == 0)
    r = pl.yield_(m)
s = p0
"""
TWO = """
q0 = pl.tile.matmul(x, y)
for i, (p, q) in pl.{loop}, init_values=(p0, q0)):
    p1 = pl.tile.matmul_acc(p, x, y)
    r, s = pl.yield_(p1, q)
"""
CONDITIONAL = """
q0 = pl.tile.matmul(x, y)
for i, (p, q) in pl.{loop}, init_values=(p0, q0)):
    if i % 2 == 0:
        m = pl.tile.matmul_acc(p, x, y)
        p1 = pl.yield_(m)
    else:
        p1 = pl.yield_(p)
    r, s = pl.yield_(p1, q)
"""
NESTED = """
q0 = pl.tile.matmul(x, y)
for i, (p, q) in pl.{loop}, init_values=(p0, q0)):
    for j, (w,) in pl.range(0, 3, 1, init_values=(p,)):
        m = pl.tile.matmul_acc(w, x, y)
        p1 = pl.yield_(m)
    q1 = pl.tile.matmul_acc(q, x, y)
    r, s = pl.yield_(p1, q1)
"""
LOOPS = ("range(0, n, 1", "pipeline(0, n, 1, stage=1", "pipeline(0, n, 1, stage=2", "pipeline(0, n, 1, stage=3")


def kernel(body: str) -> str:
    return incore(PARAMETERS, BEGIN.strip("\n") + body + END.strip("\n"))


SUMS: dict[str, tuple[str, Callable[[int], tuple[int, int]]]] = {
    "two": (TWO, lambda n: (n + 1, 1)),
    "conditional": (CONDITIONAL, lambda n: (1 + (n + 1) // 2, 1)),
    "nested": (NESTED, lambda n: (1 + 3 * n, 1 + n)),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("form", SUMS)
def test_accumulators_through_branches_and_loops(form: str, loop: str) -> None:
    a, b = exact_ints((16, 64), np.float16, seed=1), exact_ints((64, 16), np.float16, seed=2)
    product = a.astype(np.float32) @ b.astype(np.float32)
    body, counts = SUMS[form]
    for n in (0, 1, 4):
        wanted = [product * count for count in counts(n)]
        everywhere(kernel(body.format(loop=loop)), [n, a, b, poison((16, 16)), poison((16, 16))], wanted, ASCEND)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_seed_with_a_valid_shape_is_the_reduction_s_buffer(loop: str) -> None:
    a, b = exact_ints((16, 64), np.float16, seed=1), exact_ints((64, 16), np.float16, seed=2)
    product = a.astype(np.float32) @ b.astype(np.float32)
    wanted = poison((16, 16))
    wanted[:13, :11] = 3 * product[:13, :11]
    text = kernel(SEEDED.format(loop=loop))
    everywhere(text, [3, a, b, poison((16, 16)), poison((16, 16))], [wanted, product], ASCEND)
    for name in ASCEND:
        placed = lower(parse(text), load_target(name))
        types = {v.name: v.type for s in placed.main.walk() for v in (*s.defs(), *s.block_args())}
        seed, part, carried = types["seed"], types["part"], types["p"]
        assert isinstance(seed, TileType) and isinstance(part, TileType) and isinstance(carried, TileType)
        assert seed.memref == part.memref == carried.memref
        assert part.valid == carried.valid == (13, 11) and part.shape == (16, 16)


REFUSED = {
    "the start is read again": ("""
for i, (p,) in pl.range(0, n, 1, init_values=(p0,)):
    p1 = pl.tile.matmul_acc(p, x, y)
    r = pl.yield_(p1)
s = pl.tile.matmul_acc(p0, x, y)
""", "p0", "for i, (p,)"),
    "a swap": ("""
q0 = pl.tile.matmul(x, y)
for i, (p, q) in pl.range(0, n, 1, init_values=(p0, q0)):
    r, s = pl.yield_(q, p)
""", "q", "pl.yield_(q, p)"),
    "an arm hands out what lives on": ("""
q0 = pl.tile.matmul(x, y)
if n == 3:
    r = pl.yield_(p0)
else:
    r = pl.yield_(q0)
s = pl.tile.matmul_acc(p0, x, y)
""", "p0", "pl.yield_(p0)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("target", ASCEND)
def test_a_copy_of_an_accumulator_is_refused_where_paths_join(case: str, target: str) -> None:
    body, name, line = REFUSED[case]
    text = kernel(body)
    with pytest.raises(AccumulatorError) as caught:
        lower(parse(text), load_target(target), after="assign_buffers")
    error = caught.value
    assert f"'{name}' would have to be copied within Acc" in error.message
    assert error.span is not None and line in text.splitlines()[error.span.line - 1]
    assert error.required and error.found and error.help


# --- capacity -----------------------------------------------------------------------------------------------------
BY_HAND = """
x = pl.tile.load(a, [0, 0], [64, 256], target_memory=pl.Mem.Mat)
weights = pl.tile.load(b, [0, 0], [256, 256], target_memory=pl.Mem.Mat)
left = pl.tile.move(x, target_memory=pl.Mem.Left)
held = pl.tile.move(weights{space})
c = pl.tile.matmul(left, held)
return pl.tile.store(c, [0, 0], out)
"""
VECTORS = """
for i, (o,) in pl.range(0, 127, {rows}, init_values=(out,)):
    x = pl.tile.load(a, [i, 0], [{rows}, 250], clamp={clamp})
    y = pl.tile.load(b, [i, 0], [{rows}, 250], clamp={clamp})
    z = pl.tile.add(x, y)
    w = pl.tile.mul(z, x)
    v = pl.tile.sub(w, y)
    u = pl.tile.mul(v, z)
    o_1 = pl.tile.store(u, [i, 0], o)
    o_2 = pl.yield_(o_1)
return o_2
"""
BIAS = """
for j, (o,) in pl.range(0, 2048, {columns}, init_values=(out,)):
    x = pl.tile.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
    y = pl.tile.load(b, [0, j], [16, {columns}], target_memory=pl.Mem.Mat)
    long = pl.tile.load(c, [0, j], [1, {columns}], target_memory=pl.Mem.Mat)
    row = pl.tile.move(long, target_memory=pl.Mem.Bias)
    left = pl.tile.move(x, target_memory=pl.Mem.Left)
    right = pl.tile.move(y, target_memory=pl.Mem.Right)
    d = pl.tile.matmul_bias(left, right, row)
    o_1 = pl.tile.store(d, [0, j], o)
    o_2 = pl.yield_(o_1)
return o_2
"""


def tensors(**shapes: tuple[tuple[int, int], str]) -> str:
    """Parameters; the last one is the output."""
    names = [f"{name}: pl.Tensor[{list(shape)}, pl.{dtype}]" for name, (shape, dtype) in shapes.items()]
    last = names[-1].partition(": ")
    return ", ".join([*names[:-1], f"{last[0]}: pl.Out[{last[2]}]"])


def refused(text: str, target: str, after: str | None = None) -> CapacityError:
    with pytest.raises(CapacityError) as caught:
        lower(parse(text), load_target(target), after=after)
    return caught.value


@pytest.mark.parametrize("target", ASCEND)
def test_an_operand_too_large_for_right(target: str) -> None:
    given = tensors(a=((64, 256), "FP16"), b=((256, 256), "FP16"), out=((64, 256), "FP32"))
    error = refused(incore(given, BY_HAND.format(space=", target_memory=pl.Mem.Right")), target)
    said = str(error)
    assert "'held'" in said and "131,072" in said and "65,536" in said and "Right" in said
    assert error.span is not None and "held = " in said
    assert "leave out target_memory=pl.Mem.Right" in (error.help or "")
    a, b = exact_ints((64, 256), np.float16, seed=1), exact_ints((256, 256), np.float16, seed=2)
    proposed = BY_HAND.replace("held = pl.tile.move(weights{space})\n", "").replace("held", "weights")
    proposed = proposed.replace("left = pl.tile.move(x, target_memory=pl.Mem.Left)\n", "").replace("left", "x")
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    everywhere(incore(given, proposed), [a, b, poison((64, 256))], [wanted], (target,))


@pytest.mark.parametrize("target", ASCEND)
def test_a_set_of_tiles_too_large_for_vec(target: str) -> None:
    given = tensors(a=((127, 250), "FP32"), b=((127, 250), "FP32"), out=((127, 250), "FP32"))
    error = refused(incore(given, VECTORS.format(rows=127, clamp=False)), target)
    assert error.message.startswith("'x' and 2 more do not fit Vec")
    assert error.span is not None and "x = " in str(error).splitlines()[1]
    assert f"{load_target(target).capacity(MemorySpace.VEC):,} bytes" in (error.required or "")
    assert [note.split(":")[1].split()[0] for note in error.notes] == ["x", "y", "z"]
    line = error.span.line
    assert f"x [127, 250] FP32 (line {line}): 127,000 bytes logical, 130,048 physical" in error.notes[0]
    assert (error.help or "").startswith("loop over tiles of ")
    rows = int((error.help or "").split()[4])
    a, b = exact_ints((127, 250), seed=1), exact_ints((127, 250), seed=2)
    wanted = ((a + b) * a - b) * (a + b)
    text = incore(given, VECTORS.format(rows=rows, clamp=True))
    everywhere(text, [a, b, poison((127, 250))], [wanted], (target,))


@pytest.mark.parametrize("target", ASCEND)
def test_a_bias_that_is_too_long(target: str) -> None:
    given = tensors(a=((16, 16), "FP16"), b=((16, 2048), "FP16"), c=((1, 2048), "FP32"), out=((16, 2048), "FP32"))
    error = refused(incore(given, BIAS.format(columns=2048)), target)
    assert "'row' does not fit Bias" in error.message
    assert error.span is not None and "row = " in str(error).splitlines()[1]
    assert error.found == "8,192 bytes" and f"{load_target(target).capacity(MemorySpace.BIAS):,}" in str(error)
    columns = int((error.help or "").split()[4])
    a, b = exact_ints((16, 16), np.float16, seed=1), exact_ints((16, 2048), np.float16, seed=2)
    c = exact_ints((1, 2048), seed=3)
    wanted = a.astype(np.float32) @ b.astype(np.float32) + c
    everywhere(incore(given, BIAS.format(columns=columns)), [a, b, c, poison((16, 2048))], [wanted], (target,))


PINNED = """
x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("m", addr={addr}), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64])
return pl.tile.store(x, [0, 0], out)
"""


def test_a_pinned_tile_that_leaves_its_memory() -> None:
    given = tensors(a=((16, 64), "FP32"), out=((16, 64), "FP32"))
    error = refused(incore(given, PINNED.format(addr=188_416 - 2048)), "ascend910b")
    assert "'x' does not fit Vec" in error.message
    assert error.found == "'x' pinned to 186,368 to 190,464"
    lower(parse(incore(given, PINNED.format(addr=188_416 - 4096))), load_target("ascend910b"))


# --- planning --------------------------------------------------------------------------------------------------------
def test_a_long_program_is_planned() -> None:
    lines = ["x0 = pl.tile.load(a, [0, 0], [16, 64])"]
    for i in range(10_000):
        lines.append(f"x{i + 1} = pl.tile.{'exp' if i % 3 else 'neg'}(x{i})")
    lines.append("return pl.tile.store(x10000, [0, 0], out)")
    given = tensors(a=((16, 64), "FP32"), out=((16, 64), "FP32"))
    machine = load_target("ascend910b")
    placed = lower(parse(incore(given, "\n".join(lines))), machine, after="materialize_scratch")
    assigned = assign_buffers(placed, machine)
    plan = plan_addresses(assigned.main, machine)
    assert plan.peaks == {"UB": 4096}
