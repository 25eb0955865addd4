"""Writes small PTO kernels for the emulator's tests, so that a test says only what it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.codegen.pto.check import assert_legal
from tilewright.codegen.pto.emulate import Sync, emulate
from tilewright.codegen.pto.memory import DTYPES

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Name:
    """A name of the text with its type."""

    name: str
    type: str


def vec(rows: int, cols: int, dtype: str = "f32", extra: str = "") -> str:
    return f"!pto.tile_buf<vec, {rows}x{cols}x{dtype}{', ' + extra if extra else ''}>"


def column(rows: int, dtype: str = "f32", valid: int | None = None) -> str:
    extra = "blayout=col_major" if valid is None else f"valid={valid}x1, blayout=col_major"
    return vec(rows, 1, dtype, extra)


def boxed(loc: str, rows: int, cols: int, dtype: str = "f16", extra: str = "") -> str:
    """A tile in the layout that its space implies (`mat` is NZ, `zn` an L1 tile for a transposed operand)."""
    layout = {
        "mat": "blayout=col_major, slayout=row_major",
        "zn": "slayout=col_major",
        "left": "blayout=col_major, slayout=row_major",
        "right": "slayout=col_major",
        "acc": "blayout=col_major, slayout=row_major, fractal=1024",
        "bias": "blayout=row_major",
    }[loc]
    place = "mat" if loc == "zn" else loc
    return f"!pto.tile_buf<{place}, {rows}x{cols}x{dtype}, {layout}{', ' + extra if extra else ''}>"


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Kernel:
    """Lines of one function. Pointer parameters are `%p0`, `%p1`, …, of the given element types."""

    def __init__(self, *pointers: str, kind: str | None = "vector", arch: str = "a3", scalars: str = "") -> None:
        self.pointers = pointers
        self.kind = kind
        self.arch = arch
        self.scalars = scalars
        self.lines: list[str] = []
        self.constants: dict[str, str] = {}
        self.count = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"%{stem}{self.count}"

    def const(self, value: int, kind: str = "index") -> str:
        name = f"%{kind}_{value}".replace("-", "m")
        self.constants[name] = f"{name} = arith.constant {value} : {kind}"
        return name

    def scalar(self, value: float, kind: str) -> Name:
        name = self.fresh("s")
        spelled = float(value) if kind.startswith(("f", "bf")) else int(value)
        self.lines.append(f"{name} = arith.constant {spelled} : {kind}")
        return Name(name, kind)

    def tile(self, kind: str, addr: int | None = None, valid: tuple[str, str] | None = None) -> Name:
        name = self.fresh("t")
        where = "" if addr is None else f" addr = {self.const(addr, 'i64')}"
        where += "" if valid is None else f" valid_row = {valid[0]} valid_col = {valid[1]}"
        self.lines.append(f"{name} = pto.alloc_tile{where} : {kind}")
        return Name(name, kind)

    def view(
        self,
        pointer: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        at: tuple[int, ...] | None = None,
        sizes: tuple[int, ...] | None = None,
        layout: str | None = None,
    ) -> Name:
        """A partition (`sizes` at `at`; by default everything) of a view of a pointer."""
        dtype = self.pointers[pointer]
        if strides is None:
            strides = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        sizes, at = sizes or shape, at or (0,) * len(shape)

        def names(values: tuple[int, ...]) -> str:
            return "[" + ", ".join(self.const(v) for v in values) + "]"

        whole, part = ("x".join(map(str, s)) + "x" + dtype for s in (shape, sizes))
        view, partition = self.fresh("w"), self.fresh("v")
        suffix = f" {{layout = #pto.layout<{layout}>}}" if layout else ""
        self.lines.append(
            f"{view} = pto.make_tensor_view %p{pointer}, shape = {names(shape)}, strides = {names(strides)}{suffix}"
            f" : !pto.tensor_view<{whole}>"
        )
        kind = f"!pto.partition_tensor_view<{part}>"
        self.lines.append(
            f"{partition} = pto.partition_view {view}, offsets = {names(at)}, sizes = {names(sizes)}"
            f" : !pto.tensor_view<{whole}> -> {kind}"
        )
        return Name(partition, kind)

    def op(self, name: str, ins: list[Name], out: Name, inner: str = "", outer: str = "") -> None:
        """`inner` are attributes inside `ins(…)`, `outer` those after `outs(…)`."""
        names = ", ".join(value.name for value in ins) + (f" {{{inner}}}" if inner else "")
        types = ", ".join(value.type for value in ins)
        tail = f" {{{outer}}}" if outer else ""
        self.lines.append(f"pto.{name} ins({names} : {types}) outs({out.name} : {out.type}){tail}")

    def line(self, text: str) -> None:
        self.lines.append(text)

    def load(self, pointer: int, shape: tuple[int, int], kind: str, addr: int | None = None) -> Name:
        """A tile loaded with a whole row-major array."""
        tile = self.tile(kind, addr)
        self.op("tload", [self.view(pointer, shape)], tile)
        return tile

    def store(self, tile: Name, pointer: int, shape: tuple[int, int], outer: str = "") -> None:
        self.op("tstore", [tile], self.view(pointer, shape), outer=outer)

    def text(self) -> str:
        arguments = ", ".join(f"%p{i}: !pto.ptr<{dtype}>" for i, dtype in enumerate(self.pointers))
        arguments += (", " if arguments and self.scalars else "") + self.scalars
        kind = f" attributes {{pto.kernel_kind = #pto.kernel_kind<{self.kind}>}}" if self.kind else ""
        body = "\n".join(f"    {line}" for line in [*self.constants.values(), *self.lines])
        return (
            f'module attributes {{pto.target_arch = "{self.arch}"}} {{\n  func.func @k({arguments}){kind} {{\n'
            f"{body}\n    return\n  }}\n}}\n"
        )

    def run(self, *args: Array | int | float, sync: Sync = "auto", legal: bool = True, **options: Any) -> None:
        """Check (unless told that the text is on purpose not legal), then execute."""
        text = self.text()
        if legal:
            assert_legal(text)
        emulate(text, list(args), sync=sync, **options)


def integers(shape: tuple[int, ...], dtype: str = "f32", low: int = -4, high: int = 5, seed: int = 0) -> Array:
    """Small integers, so that any order of summation is exact."""
    return np.random.default_rng(seed + sum(shape)).integers(low, high, shape).astype(DTYPES[dtype])


def zeros(shape: tuple[int, ...], dtype: str = "f32") -> Array:
    return np.zeros(shape, DTYPES[dtype])
