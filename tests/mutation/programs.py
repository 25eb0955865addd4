"""Correct programs to plant faults in: small, and between them with everything that a final program can hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from meaning import draw_arguments
from properties.judges import ASCEND, DECLINED, SCRATCHPAD
from run.running import incore

from tilewright import parse
from tilewright.compiler import lower
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.targets import Target, load_target

TARGETS = (*ASCEND, SCRATCHPAD)

F32 = "pl.Tensor[[{}, {}], pl.FP32]"
F16 = "pl.Tensor[[{}, {}], pl.FP16]"


def parameters(inputs: dict[str, tuple[int, int]], outputs: dict[str, tuple[int, int]], kind: str = F32) -> str:
    given = [f"{name}: {kind.format(*shape)}" for name, shape in inputs.items()]
    made = [f"{name}: pl.Out[{F32.format(*shape)}]" for name, shape in outputs.items()]
    return ", ".join(["n: pl.Scalar[pl.INDEX]", *given, *made])


SOURCES: dict[str, str] = {
    "rows": incore(
        parameters({"a": (16, 40), "b": (16, 40)}, {"out": (16, 40), "sums": (16, 1)}),
        """
        x = pl.tile.load(a, [0, 0], [16, 40])
        y = pl.tile.load(b, [0, 0], [16, 40])
        z = pl.tile.sub(x, y)
        m = pl.tile.row_max(z)
        e = pl.tile.row_expand_sub(z, m)
        s = pl.tile.row_sum(e)
        w = pl.tile.muls(e, 2.0)
        v = pl.tile.add(w, x)
        o = pl.tile.store(v, [0, 0], out)
        q = pl.tile.store(s, [0, 0], sums)
        return o, q
        """,
    ),
    "product": incore(
        parameters({"a": (33, 64), "b": (64, 24)}, {"out": (33, 24)}, F16),
        """
        acc = pl.tile.create([33, 24], pl.FP32)
        for k, (c,) in pl.range(0, 64, 16, init_values=(acc,)):
            x = pl.tile.load(a, [0, k], [33, 16])
            y = pl.tile.load(b, [k, 0], [16, 24])
            c_1 = pl.tile.matmul_acc(c, x, y, init_cond=k == 0)
            c_2, = pl.yield_(c_1)
        r = pl.tile.relu(c_2)
        o = pl.tile.store(r, [0, 0], out)
        return o
        """,
    ),
    "pipeline": incore(
        parameters({"a": (80, 32), "b": (1, 32)}, {"out": (80, 32)}),
        """
        v = pl.tile.load(b, [0, 0], [1, 32])
        for i, (o,) in pl.pipeline(0, 5, 1, stage=2, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 32])
            y = pl.tile.col_expand_add(x, v)
            z = pl.tile.sub(y, x)
            w = pl.tile.add(z, x)
            o_1 = pl.tile.store(w, [i * 16, 0], o)
            o_2, = pl.yield_(o_1)
        return o_2
        """,
    ),
    "carries": incore(
        parameters({"a": (16, 32), "b": (16, 32)}, {"out": (16, 32), "more": (16, 32)}),
        """
        x = pl.tile.load(a, [0, 0], [16, 32])
        y = pl.tile.load(b, [0, 0], [16, 32])
        s = pl.tile.full([16, 32], pl.FP32, 0.0)
        for i, (p, q, t) in pl.range(0, 3, 1, init_values=(x, y, s)):
            u = pl.tile.add(t, p)
            p_1, q_1, t_1 = pl.yield_(q, p, u)
        d = pl.tile.sub(p_1, q_1)
        o = pl.tile.store(d, [0, 0], out)
        w = pl.tile.store(t_1, [0, 0], more)
        return o, w
        """,
    ),
    "branch": incore(
        parameters({"a": (32, 32), "b": (16, 32)}, {"out": (32, 32)}),
        """
        y = pl.tile.load(b, [0, 0], [16, 32])
        for i, (o,) in pl.range(0, 2, 1, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 32])
            if i + n < 3:
                z = pl.tile.mul(x, y)
                w = pl.tile.sub(z, x)
                r = pl.yield_(w)
            else:
                v = pl.tile.neg(x)
                r = pl.yield_(v)
            t = pl.tile.add(r, y)
            o_1 = pl.tile.store(t, [i * 16, 0], o)
            o_2, = pl.yield_(o_1)
        return o_2
        """,
    ),
    "views": incore(
        parameters({"a": (32, 32), "b": (8, 32)}, {"out": (16, 32), "more": (32, 32)}),
        """
        x = pl.tile.load(a, [0, 0], [32, 32])
        y = pl.tile.load(b, [0, 0], [8, 32])
        h = pl.tile.slice(x, [16, 32], [8, 0])
        g = pl.tile.neg(h)
        f = pl.tile.slice(x, [16, 32], [16, 0])
        k = pl.tile.sub(g, f)
        w = pl.tile.assemble(x, y, [8, 0])
        t = pl.tile.transpose(w)
        o = pl.tile.store(k, [0, 0], out)
        m = pl.tile.store(t, [0, 0], more)
        return o, m
        """,
    ),
    "items": incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[n, 24], pl.FP32], out: pl.Out[pl.Tensor[[n, 24], pl.FP32]]",
        """
        for i, (o,) in pl.parallel(0, n, 8, init_values=(out,)):
            x = pl.tile.load(a, [i, 0], [8, 24], valid_shape=[pl.min(8, n - i), 24])
            y = pl.tile.abs(x)
            z = pl.tile.sub(y, x)
            o_1 = pl.tile.store(z, [i, 0], o)
            o_2, = pl.yield_(o_1)
        return o_2
        """,
    ),
    "choice": incore(
        parameters({"a": (16, 32), "b": (16, 32)}, {"out": (16, 32)}),
        """
        x = pl.tile.load(a, [0, 0], [16, 32])
        y = pl.tile.load(b, [0, 0], [16, 32])
        m = pl.tile.cmp(x, y, cmp_type=2)
        s = pl.tile.sel(m, x, y)
        h = pl.tile.muls(s, 0.5)
        i = pl.tile.cast(h, pl.INT32, mode="floor")
        f = pl.tile.cast(i, pl.FP32)
        e = pl.tile.adds(f, 513.0)
        g = pl.tile.cast(e, pl.FP16)
        w = pl.tile.cast(g, pl.FP32)
        d = pl.tile.add(w, x)
        o = pl.tile.store(d, [0, 0], out)
        return o
        """,
    ),
    "bias": incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[17, 20], pl.FP16], b: pl.Tensor[[20, 40], pl.FP16], "
        "c: pl.Tensor[[1, 40], pl.FP32], out: pl.Out[pl.Tensor[[17, 40], pl.FP32]], "
        "more: pl.Out[pl.Tensor[[17, 40], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [17, 20])
        y = pl.tile.load(b, [0, 0], [20, 40])
        v = pl.tile.load(c, [0, 0], [1, 40])
        m = pl.tile.matmul_bias(x, y, v)
        k = pl.tile.matmul(x, y)
        o = pl.tile.store(m, [0, 0], out)
        p = pl.tile.store(k, [0, 0], more)
        return o, p
        """,
    ),
    "reuse": incore(
        parameters({"a": (48, 32)}, {"out": (48, 32)}),
        """
        x = pl.tile.load(a, [0, 0], [16, 32])
        u = pl.tile.neg(x)
        o = pl.tile.store(u, [0, 0], out)
        y = pl.tile.load(a, [16, 0], [16, 32])
        v = pl.tile.abs(y)
        p = pl.tile.store(v, [16, 0], o)
        z = pl.tile.load(a, [32, 0], [16, 32])
        w = pl.tile.neg(z)
        q = pl.tile.store(w, [32, 0], p)
        return q
        """,
    ),
    "packed": incore(
        parameters({"a": (20, 40), "b": (40, 40)}, {"out": (15, 24)}, F16),
        """
        x = pl.tile.load(a, [0, 0], [48, 64], valid_shape=[15, 40])
        y = pl.tile.load(b, [0, 0], [64, 64], valid_shape=[40, 24])
        z = pl.tile.matmul(x, y)
        o = pl.tile.store(z, [0, 0], out)
        return o
        """,
    ),
    "numbers": incore(
        parameters({"a": (16, 32), "b": (16, 32)}, {"out": (16, 32)}),
        """
        x = pl.tile.load(a, [0, 0], [16, 32])
        y = pl.tile.load(b, [0, 0], [16, 32])
        r = pl.tile.read(x, [1, 2])
        z = pl.tile.adds(y, r)
        w = pl.tile.write(z, [3, 4], r)
        o = pl.tile.store(w, [0, 0], out)
        return o
        """,
    ),
    "tails": incore(
        parameters({"a": (20, 40), "b": (5, 33)}, {"out": (13, 40), "more": (5, 33)}),
        """
        x = pl.tile.load(a, [8, 0], [16, 40], clamp=True)
        y = pl.tile.load(b, [0, 0], [8, 40], valid_shape=[5, 33], pad_value=pl.PadValue.zero)
        t = pl.tile.load(a, [0, 0], [16, 40], valid_shape=[13, 40])
        f = pl.tile.set_validshape(y, 8, 40)
        s = pl.tile.col_sum(f)
        e = pl.tile.col_expand_sub(t, s)
        u = pl.tile.neg(x)
        p = pl.tile.set_validshape(u, 5, 33)
        o = pl.tile.store(e, [0, 0], out)
        m = pl.tile.store(p, [0, 0], more)
        return o, m
        """,
    ),
    "atomic": incore(
        parameters({"a": (64, 24)}, {"out": (16, 24)}),
        """
        z = pl.tile.full([16, 24], pl.FP32, 0.0)
        o = pl.tile.store(z, [0, 0], out)
        for k, (p,) in pl.range(0, 64, 16, init_values=(o,)):
            x = pl.tile.load(a, [k, 0], [16, 24])
            y = pl.tile.neg(x)
            p_1 = pl.tile.store(y, [0, 0], p, atomic=1)
            p_2, = pl.yield_(p_1)
        return p_2
        """,
    ),
}
"""By name, as tile functions before the compiler placed anything."""

TIGHT = {"reuse": 2048}
"""Programs for which Vec has no more bytes than this, so that tiles take over one another's place."""

SECTIONS = """import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 32], pl.FP16], b: pl.Tensor[[32, 32], pl.FP16], c: pl.Tensor[[32, 32], pl.FP16], out: pl.Out[pl.Tensor[[16, 32], pl.FP16]]):
        x = pl.tensor.matmul(a, b)
        y = pl.tensor.relu(x)
        z = pl.tensor.matmul(y, c)
        w = pl.tensor.sub(z, y)
        o = pl.tensor.assemble(out, w, [0, 0])
        return o
"""  # noqa: E501
SOURCES["sections"] = SECTIONS


@dataclass(frozen=True, eq=False)
class Base:
    """A correct final program, and three sets of arguments for it."""

    name: str
    program: Program
    target: Target
    arguments: tuple[tuple[Any, ...], ...]

    @property
    def where(self) -> str:
        return f"{self.name} on {self.target.name}"


@cache
def bases() -> tuple[Base, ...]:
    """Every program on every target that takes it."""
    return tuple(_bases())


def _bases() -> Iterator[Base]:
    for name, text in SOURCES.items():
        source = parse(text)
        for target in map(load_target, TARGETS):
            if name in TIGHT:
                target = target.with_capacity(Vec=TIGHT[name])
            try:
                final = lower(source, target)
            except DECLINED:
                continue
            # Read back, so that every statement has a line.
            program = parse(str(final))
            yield Base(name, program, target, tuple(_arguments(source, draw) for draw in range(3)))


def _arguments(source: Program, draw: int) -> tuple[Any, ...]:
    shapes = [p.value.type.shape for p in source.main.params if isinstance(p.value.type, TensorType)]
    run_time = any(not isinstance(extent, int) for shape in shapes for extent in shape)
    n = (20, 17, 8)[draw] if run_time else (2, 1, 3)[draw]
    return tuple(draw_arguments(source, {"n": n}, draw))
