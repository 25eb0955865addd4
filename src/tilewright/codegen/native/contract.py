"""Multiplications: a register-blocked kernel over packed or plain operands.

One function per module, element type and orientation serves every multiplication of it; extents and strides are its
arguments. The micro-kernel keeps a block of rows by two vectors of the result in registers while k runs: broadcast one
element of a row, multiply it with two vectors of `rhs`, add. Around it stand the usual loops over blocks that fit the
caches. `rhs` is packed into panels as wide as the block where its rows do not lie in memory as the kernel reads them,
where it must be widened, or where enough rows use it to pay for that. `lhs` is read where it is, unless it must be
widened. Products of narrow floats are summed in FP32, those of INT8 in INT32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.codegen.native.builder import Builder, Index, vector_type
from tilewright.codegen.native.elements import Lanes, memory_type, register_type
from tilewright.codegen.native.forms import copy
from tilewright.codegen.native.llvm import Processor
from tilewright.codegen.native.scope import Place, Scope
from tilewright.ir.dtypes import FP32, INT32, DType

KC, NC, MC, PACK_ROWS = 384, 512, 96, 160
"""Extents of a block: a panel of `rhs` in the second cache (768 KiB), a widened block of `lhs` (144 KiB). From so many
rows on, packing `rhs` pays even where it could be read in place (measured: 128 rows do not)."""
BLOCKS = (
    (KC, NC, MC, PACK_ROWS), (KC, NC, MC, 32), (256, NC, MC, PACK_ROWS), (512, NC, MC, PACK_ROWS),
    (KC, 256, MC, PACK_ROWS), (KC, 1024, MC, PACK_ROWS), (KC, NC, 48, PACK_ROWS), (KC, NC, 192, PACK_ROWS),
    (192, 1024, MC, PACK_ROWS), (768, 256, MC, PACK_ROWS), (256, 256, MC, 32), (KC, NC, MC, 1 << 20),
)  # fmt: skip
"""What can be decided instead: caches differ. Rows are multiples of every micro-kernel's, columns of its width."""
FEW_ROWS, FEW_DEEP = 32, 32
"""So few rows use each element of `rhs` that it comes from memory: a block along k is then short, so that the rows of
`rhs` are read in long runs."""


def accumulator(dtype: DType) -> DType:
    return FP32 if dtype.is_float else INT32


@dataclass(slots=True)
class Multiplier:
    """The multiplication of one element type, and the shapes of micro-kernel that its callers need."""

    processor: Processor
    dtype: DType
    unit_lhs: bool
    """whether the elements of a row of `lhs` follow each other"""
    unit_rhs: bool
    row_sizes: set[int] = field(default_factory=set[int])
    ragged: bool = False
    """whether the last columns may be fewer than a block has"""

    @property
    def name(self) -> str:
        return f"multiply.{self.dtype.short}.{'n' if self.unit_lhs else 't'}{'n' if self.unit_rhs else 't'}"

    @property
    def lanes(self) -> int:
        return self.processor.vector_bytes // 4

    @property
    def width(self) -> int:
        """Columns of the block in registers."""
        return 2 * self.lanes

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of the block in registers, and of the smaller ones for what is left over."""
        return (8, 4, 2, 1) if self.processor.registers == 32 else (6, 4, 2, 1) if self.lanes == 8 else (4, 2, 1)

    @property
    def widens(self) -> bool:
        return self.dtype not in (FP32, INT32)

    def wants(self, m: Index, n: Index) -> None:
        """Take note of a call: which sizes of block it needs."""
        left = m
        for size in self.rows:
            if not isinstance(left, int):
                self.row_sizes.add(size)
            elif left >= size:
                self.row_sizes.add(size)
                left %= size
        self.ragged = self.ragged or not isinstance(n, int) or n % self.width != 0

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """k, columns and rows of a block, and the rows from which packing pays."""
        question = f"cache blocks of {self.dtype} products (k, columns, rows, rows from which to pack)"
        return self.processor.decisions.first(question, BLOCKS)[0]

    def scratch_bytes(self, m: Index, n: Index, k: Index) -> int:
        """Bytes of workspace for a call with these extents: none where `rhs` is surely not packed."""
        kc, nc, mc, pack_rows = self.blocks
        if self.unit_rhs and not self.widens and isinstance(m, int) and m < pack_rows:
            return 0
        depth = min(kc, k) if isinstance(k, int) else kc
        columns = min(nc, n) if isinstance(n, int) else nc
        columns = -(-columns // self.width) * self.width
        rows = min(mc, m) if isinstance(m, int) else mc
        return 4 * depth * (columns + (rows if self.widens else 0)) + 64

    def texts(self) -> list[str]:
        """The functions: micro-kernels, then the loops around them."""
        declarations: set[str] = set()
        found = [
            _MicroKernel(self, size, ragged).text(declarations)
            for size in self.rows
            if size in self.row_sizes
            for ragged in ((False, True) if self.ragged else (False,))
        ]
        found.append(_Blocks(self, Builder(declarations)).text())
        return [*sorted(declarations), *found]


class _MicroKernel:
    """`rows` by two vectors of the result; with `ragged`, only the first `columns` of them exist."""

    def __init__(self, owner: Multiplier, rows: int, ragged: bool) -> None:
        self.owner = owner
        self.rows = rows
        self.ragged = ragged
        self.wide = accumulator(owner.dtype)
        self.element = register_type(self.wide)
        self.kind = vector_type(self.element, owner.lanes)

    def text(self, declarations: set[str]) -> str:
        b = Builder(declarations)
        name = f"{self.owner.name}.{self.rows}{'r' if self.ragged else ''}"
        at = self._lanes(b)
        c = [self._row(b, "%c", "%cstep", row) for row in range(self.rows)]
        initial = self._initial(b, at, c)
        rows = [self._row(b, "%a", "%astep", row) for row in range(self.rows)]
        kinds = [(self.kind, value) for value in initial]
        totals = b.fold(0, "%k", 1, kinds, lambda p, held: self._step(b, at, rows, p, held))
        for row in range(self.rows):
            for part in range(2):
                at[part].store(totals[2 * row + part], self._part(b, c[row], part), self.wide)
        b.emit("ret void")
        header = (
            f"define internal void @{name}(ptr noalias %a, i64 %astep, i64 %anext, ptr noalias %b, i64 %bstep, "
            "ptr noalias %c, i64 %cstep, i64 %k, i1 %adds, i64 %columns)"
        )
        return b.text(header)

    def _lanes(self, b: Builder) -> list[Lanes]:
        """The two vectors of a row, with masks where they may be ragged."""
        owner = self.owner
        if not self.ragged:
            return [Lanes(b, owner.processor, owner.lanes)] * 2
        masks: list[str] = []
        for first in (0, owner.lanes):
            left = b.sub("%columns", first)
            negative = b.value(f"icmp slt i64 {left}, 0")
            left = b.minimum(b.value(f"select i1 {negative}, i64 0, i64 {left}"), owner.lanes)
            # One lane more than a mask has bits for: shifted in twice the width.
            bits = f"i{2 * owner.lanes}"
            shift = b.value(f"trunc i64 {left} to {bits}") if owner.lanes < 32 else str(left)
            ones = b.value(f"sub {bits} {b.value(f'shl {bits} 1, {shift}')}, 1")
            low = b.value(f"trunc {bits} {ones} to i{owner.lanes}")
            masks.append(b.value(f"bitcast i{owner.lanes} {low} to <{owner.lanes} x i1>"))
        return [Lanes(b, owner.processor, owner.lanes, mask) for mask in masks]

    def _row(self, b: Builder, pointer: str, step: str, row: int) -> str:
        return b.address(pointer, memory_type(self.wide), b.mul(step, row))

    def _part(self, b: Builder, pointer: str, part: int) -> str:
        return b.address(pointer, memory_type(self.wide), part * self.owner.lanes)

    def _initial(self, b: Builder, at: list[Lanes], c: list[str]) -> list[str]:
        """What the sums start from: the result so far, or zeros."""
        read, begin = b.label("read"), b.label("begin")
        before = b.block
        b.branch("%adds", read, begin)
        b.start(read)
        loaded = [at[part].load(self._part(b, c[row], part), self.wide) for row in range(self.rows) for part in (0, 1)]
        b.jump(begin)
        b.start(begin)
        return [b.value(f"phi {self.kind} [ zeroinitializer, %{before} ], [ {value}, %{read} ]") for value in loaded]

    def _step(self, b: Builder, at: list[Lanes], rows: list[str], p: str, held: Sequence[str]) -> list[str]:
        """One k: each row's element times two vectors of `rhs`."""
        start = b.address("%b", memory_type(self.wide), b.mul(p, "%bstep"))
        vectors = [at[part].load(self._part(b, start, part), self.wide) for part in (0, 1)]
        along: Index = b.mul(p, "%anext")
        totals: list[str] = []
        single = Lanes(b, self.owner.processor, 1)
        for row in range(self.rows):
            value = single.load(b.address(rows[row], memory_type(self.wide), along), self.wide)
            wide = Lanes(b, self.owner.processor, self.owner.lanes).broadcast(self.element, value)
            for part in (0, 1):
                totals.append(self._fused(at[part], wide, vectors[part], held[2 * row + part]))
        return totals

    def _fused(self, at: Lanes, a: str, b: str, total: str) -> str:
        if self.element != "float":
            return at.binary("add", self.element, at.binary("mul", self.element, a, b), total)
        if at.processor.has_fma:
            return at.intrinsic("fma", "float", a, b, total)
        return at.binary("fadd", "float", at.binary("fmul", "float", a, b), total)


class _Blocks:
    """The loops over blocks: columns, then k, then rows, then the panels of the block."""

    def __init__(self, owner: Multiplier, b: Builder) -> None:
        self.owner = owner
        self.b = b
        self.scope = Scope(b, owner.processor)
        self.wide = accumulator(owner.dtype)
        self.kc, self.nc, self.mc, self.pack_rows = owner.blocks

    def text(self) -> str:
        b = self.b
        self.packs, self.deepest = "true", str(self.kc)
        if self.owner.unit_rhs and not self.owner.widens:
            self.packs = b.value(f"icmp sge i64 %m, {self.pack_rows}")
            few = b.value(f"icmp sle i64 %m, {FEW_ROWS}")
            self.deepest = b.value(f"select i1 {few}, i64 {FEW_DEEP}, i64 {self.kc}")
        # k of 0 still makes zeros.
        depth = b.call("i64", "llvm.smax.i64", "i64 %k, i64 1", "i64, i64")
        b.loop(0, "%n", self.nc, lambda j: self._over_k(j, b.minimum(b.sub("%n", j), self.nc), depth))
        b.emit("ret void")
        header = (
            f"define internal void @{self.owner.name}(ptr noalias %a, i64 %astep, i64 %anext, ptr noalias %b, "
            "i64 %bstep, i64 %bnext, ptr noalias %c, i64 %cstep, i64 %m, i64 %n, i64 %k, i1 %adds, "
            "ptr noalias %scratch)"
        )
        return b.text(header)

    def _over_k(self, j: str, columns: Index, depth: str) -> None:
        b = self.b

        def trip(p: str) -> None:
            deep = b.minimum(b.sub("%k", p), self.deepest)
            later = b.value(f"icmp ne i64 {p}, 0")
            adds = b.value(f"or i1 {later}, %adds")
            corner = b.address("%b", memory_type(self.owner.dtype), b.add(b.mul(p, "%bstep"), b.mul(j, "%bnext")))
            self._packed(corner, columns, deep)
            b.loop(0, "%m", self.mc, lambda i: self._over_rows(i, j, p, columns, deep, adds, corner))

        b.loop(0, depth, self.deepest, trip)

    def _packed(self, corner: str, columns: Index, deep: Index) -> None:
        """The block of `rhs` as panels, in scratch."""
        b, width = self.b, self.owner.width

        def panel(j: str, count: Index) -> None:
            start = b.address(corner, memory_type(self.owner.dtype), b.mul(j, "%bnext"))
            steps: tuple[Index, Index] = ("%bstep", 1 if self.owner.unit_rhs else "%bnext")
            source = Place(start, self.owner.dtype, (deep, count), steps)
            out = Place(self._panel(j, deep), self.wide, (deep, width), (width, 1))
            copy(self.scope, source, out, (deep, count))

        def emit() -> None:
            full = b.rounded_down(columns, width)
            b.loop(0, full, width, lambda j: panel(j, width))
            if self.owner.ragged:
                b.loop(full, columns, width, lambda j: panel(j, b.sub(columns, j)))

        if self.packs == "true":
            emit()
        else:
            with b.when(self.packs):
                emit()

    def _panel(self, j: Index, deep: Index) -> str:
        return self.b.address("%scratch", memory_type(self.wide), self.b.mul(j, deep))

    def _over_rows(self, i: str, j: str, p: str, columns: Index, deep: Index, adds: str, corner: str) -> None:
        b = self.b
        count = b.minimum(b.sub("%m", i), self.mc)
        start = b.address("%a", memory_type(self.owner.dtype), b.add(b.mul(i, "%astep"), b.mul(p, "%anext")))
        lhs: tuple[str, Index, Index] = (start, "%astep", 1 if self.owner.unit_lhs else "%anext")
        if self.owner.widens:
            lhs = self._widened(start, count, deep)
        c = b.address("%c", memory_type(self.wide), b.add(b.mul(i, "%cstep"), j))
        full = b.rounded_down(columns, self.owner.width)

        def panel(jr: str, ragged: bool) -> None:
            where = b.address(corner, memory_type(self.wide), jr)
            if self.packs == "true":
                rhs, step = self._panel(jr, deep), str(self.owner.width)
            else:
                rhs = b.value(f"select i1 {self.packs}, ptr {self._panel(jr, deep)}, ptr {where}")
                step = b.value(f"select i1 {self.packs}, i64 {self.owner.width}, i64 %bstep")
            left = b.sub(columns, jr)
            self._over_blocks(lhs, count, rhs, step, b.address(c, memory_type(self.wide), jr), deep, adds, left, ragged)

        b.loop(0, full, self.owner.width, lambda jr: panel(jr, False))
        if self.owner.ragged:
            b.loop(full, columns, self.owner.width, lambda jr: panel(jr, True))

    def _widened(self, start: str, count: Index, deep: Index) -> tuple[str, Index, Index]:
        """The block of `lhs` as the kernel multiplies it, behind the panels in scratch."""
        b, owner = self.b, self.owner
        columns = b.minimum(self.nc, "%n")
        rounded = b.rounded_down(b.add(columns, owner.width - 1), owner.width)
        place = b.address("%scratch", memory_type(self.wide), b.mul(rounded, b.minimum("%k", self.kc)))
        steps: tuple[Index, Index] = ("%astep", 1 if owner.unit_lhs else "%anext")
        source = Place(start, owner.dtype, (count, deep), steps)
        copy(self.scope, source, Place(place, self.wide, (count, deep), (deep, 1)), (count, deep))
        return place, deep, 1

    def _over_blocks(
        self, lhs: tuple[str, Index, Index], count: Index, rhs: str, step: str, c: str, deep: Index, adds: str,
        left: Index, ragged: bool,
    ) -> None:  # fmt: skip
        """The micro-kernel down the rows: large blocks first."""
        b, owner = self.b, self.owner
        start: Index = 0
        pointer, row_step, along = lhs
        sizes = [size for size in owner.rows if size in owner.row_sizes]
        for size in sizes:
            rest = b.sub(count, start)
            whole = b.sub(rest, b.value(f"urem i64 {rest}, {size}")) if size > 1 else rest
            stop = b.add(start, whole)

            def trip(row: str, size: int = size) -> None:
                a = b.address(pointer, memory_type(self.wide), b.mul(row, row_step))
                out = b.address(c, memory_type(self.wide), b.mul(row, "%cstep"))
                b.emit(
                    f"call void @{owner.name}.{size}{'r' if ragged else ''}(ptr {a}, i64 {row_step}, i64 {along}, "
                    f"ptr {rhs}, i64 {step}, ptr {out}, i64 %cstep, i64 {deep}, i1 {adds}, i64 {left})"
                )

            b.loop(start, stop, size, trip)
            start = stop


def multiply(
    scope: Scope, owner: Multiplier, lhs: Place, rhs: Place, out: Place, extents: tuple[Index, Index, Index],
    adds: str, scratch: str,
) -> None:  # fmt: skip
    """``out[i, j] (+)= sum_k lhs[i, k] * rhs[k, j]``; `adds` is an i1. `out` must have step 1 along its columns."""
    m, n, k = extents
    owner.wants(m, n)
    arguments = (
        f"ptr {lhs.pointer}, i64 {lhs.strides[0]}, i64 {lhs.strides[1]}, ptr {rhs.pointer}, i64 {rhs.strides[0]}, "
        f"i64 {rhs.strides[1]}, ptr {out.pointer}, i64 {out.strides[0]}, i64 {m}, i64 {n}, i64 {k}, i1 {adds}, "
        f"ptr {scratch}"
    )
    scope.b.emit(f"call void @{owner.name}({arguments})")
