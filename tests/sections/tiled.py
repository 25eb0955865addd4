# pyright: reportPossiblyUnboundVariable=false
"""Kernels on tiles that their user chose: two functions with a loop over blocks each."""

from __future__ import annotations

import tilewright.language as pl


@pl.program(entry="main")
class Blocks:
    """Both walk the same blocks in the same order."""

    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self,
        x: pl.Tensor[[128, 64], pl.FP32],
        y: pl.Tensor[[128, 64], pl.FP32],
        t: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ):
        for i, (t1,) in pl.parallel(0, 128, 32, init_values=(t,)):
            a = pl.load(x, [i, 0], [32, 64])
            b = pl.load(y, [i, 0], [32, 64])
            t2 = pl.store(pl.add(a, b), [i, 0], t1)
            t3 = pl.yield_(t2)
        return t3

    @pl.function(type=pl.FunctionType.InCore)
    def double(self, t: pl.Tensor[[128, 64], pl.FP32], out: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
        for i, (o1,) in pl.parallel(0, 128, 32, init_values=(out,)):
            a = pl.load(t, [i, 0], [32, 64])
            o2 = pl.store(pl.muls(a, 2.0), [i, 0], o1)
            o3 = pl.yield_(o2)
        return o3

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[128, 64], pl.FP32],
        y: pl.Tensor[[128, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ):
        t = pl.tensor.create([128, 64], pl.FP32)
        t1 = self.add(x, y, t)
        out1 = self.double(t1, out)
        return out1


@pl.program(entry="main")
class Epilogue:
    """A product over a grid of blocks, and what is done to each of its blocks (S6)."""

    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[128, 64], pl.FP16],
        b: pl.Tensor[[64, 128], pl.FP16],
        t: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ):
        for i, (t1,) in pl.parallel(0, 8, 1, init_values=(t,)):
            x = pl.load(a, [i // 2 * 32, 0], [32, 64])
            y = pl.load(b, [0, i % 2 * 64], [64, 64])
            t2 = pl.store(pl.matmul(x, y), [i // 2 * 32, i % 2 * 64], t1)
            t3 = pl.yield_(t2)
        return t3

    @pl.function(type=pl.FunctionType.InCore)
    def activate(self, t: pl.Tensor[[128, 128], pl.FP32], out: pl.Out[pl.Tensor[[128, 128], pl.FP32]]):
        for i, (o1,) in pl.parallel(0, 8, 1, init_values=(out,)):
            x = pl.load(t, [i // 2 * 32, i % 2 * 64], [32, 64])
            o2 = pl.store(pl.relu(x), [i // 2 * 32, i % 2 * 64], o1)
            o3 = pl.yield_(o2)
        return o3

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[128, 64], pl.FP16],
        b: pl.Tensor[[64, 128], pl.FP16],
        out: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ):
        t = pl.tensor.create([128, 128], pl.FP32)
        t1 = self.product(a, b, t)
        out1 = self.activate(t1, out)
        return out1


@pl.program(entry="main")
class Rows:
    """The producer walks blocks of columns, and a reduction needs whole rows."""

    @pl.function(type=pl.FunctionType.InCore)
    def double(self, x: pl.Tensor[[32, 128], pl.FP32], t: pl.Out[pl.Tensor[[32, 128], pl.FP32]]):
        for i, (t1,) in pl.parallel(0, 128, 32, init_values=(t,)):
            a = pl.load(x, [0, i], [32, 32])
            t2 = pl.store(pl.muls(a, 2.0), [0, i], t1)
            t3 = pl.yield_(t2)
        return t3

    @pl.function(type=pl.FunctionType.InCore)
    def largest(self, t: pl.Tensor[[32, 128], pl.FP32], out: pl.Out[pl.Tensor[[32, 1], pl.FP32]]):
        for i, (o1,) in pl.parallel(0, 32, 8, init_values=(out,)):
            a = pl.load(t, [i, 0], [8, 128])
            o2 = pl.store(pl.row_max(a), [i, 0], o1)
            o3 = pl.yield_(o2)
        return o3

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 128], pl.FP32], out: pl.Out[pl.Tensor[[32, 1], pl.FP32]]):
        t = pl.tensor.create([32, 128], pl.FP32)
        t1 = self.double(x, t)
        out1 = self.largest(t1, out)
        return out1


@pl.program(entry="main")
class Deep:
    """A product over a grid of blocks, added up along K, and what is done to each of its blocks."""

    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[128, 256], pl.FP16],
        b: pl.Tensor[[256, 128], pl.FP16],
        t: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ):
        for i, (t1,) in pl.parallel(0, 8, 1, init_values=(t,)):
            x = pl.load(a, [i // 2 * 32, 0], [32, 64])
            y = pl.load(b, [0, i % 2 * 64], [64, 64])
            first = pl.matmul(x, y)
            for k, (acc,) in pl.range(64, 256, 64, init_values=(first,)):
                u = pl.load(a, [i // 2 * 32, k], [32, 64])
                v = pl.load(b, [k, i % 2 * 64], [64, 64])
                more = pl.matmul_acc(acc, u, v)
                total = pl.yield_(more)
            t2 = pl.store(total, [i // 2 * 32, i % 2 * 64], t1)
            t3 = pl.yield_(t2)
        return t3

    @pl.function(type=pl.FunctionType.InCore)
    def activate(self, t: pl.Tensor[[128, 128], pl.FP32], out: pl.Out[pl.Tensor[[128, 128], pl.FP32]]):
        for i, (o1,) in pl.parallel(0, 8, 1, init_values=(out,)):
            x = pl.load(t, [i // 2 * 32, i % 2 * 64], [32, 64])
            o2 = pl.store(pl.relu(x), [i // 2 * 32, i % 2 * 64], o1)
            o3 = pl.yield_(o2)
        return o3

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[128, 256], pl.FP16],
        b: pl.Tensor[[256, 128], pl.FP16],
        out: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
    ):
        t = pl.tensor.create([128, 128], pl.FP32)
        t1 = self.product(a, b, t)
        out1 = self.activate(t1, out)
        return out1
