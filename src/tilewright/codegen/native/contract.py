"""Multiplications: a register-blocked kernel over packed or plain operands.

One function per module, element type and orientation serves every multiplication of it; extents and strides are its
arguments. The micro-kernel keeps a block of rows by two vectors of the result in registers while k runs: broadcast one
element of a row, multiply it with two vectors of `rhs`, add. Around it stand the usual loops over blocks that fit the
caches. `rhs` is packed into panels as wide as the block where its rows do not lie in memory as the kernel reads them,
where it must be widened, where enough rows use it to pay for that, or where its rows lie so far apart that they meet in
the same lines of a cache. `lhs` is read where it is, unless it must be widened or its rows lie so. Products of narrow
floats are summed in FP32, those of INT8 in INT32.
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

LARGE_ROWS, SMALL_ROWS = 160, 8
"""From LARGE_ROWS on, packing `rhs` pays even where it could be read in place (measured: 128 rows do not); from
SMALL_ROWS on where its rows lie far apart."""
BLOCKS = {
    16: (
        (256, 1024, 96, LARGE_ROWS), (256, 512, 192, LARGE_ROWS), (384, 512, 96, LARGE_ROWS), (256, 512, 96, 32),
        (512, 256, 96, LARGE_ROWS), (192, 1024, 96, LARGE_ROWS), (256, 2048, 72, LARGE_ROWS), (256, 512, 96, 1 << 20),
        (256, 1024, 192, LARGE_ROWS), (384, 256, 192, 32),
    ),
    32: (
        (384, 1024, 168, LARGE_ROWS), (512, 512, 56, LARGE_ROWS), (384, 512, 112, 32), (256, 512, 112, LARGE_ROWS),
        (512, 2048, 168, LARGE_ROWS), (384, 256, 112, LARGE_ROWS), (768, 256, 56, LARGE_ROWS), (384, 512, 112, 1 << 20),
        (192, 1024, 112, LARGE_ROWS), (256, 256, 112, 32),
    ),
}  # fmt: skip
"""By registers: (k, columns, rows) of a block, and the rows from which packing pays. The first is the model's, the
others what can be decided instead, since caches differ. Rows are multiples of the largest micro-kernel's, columns of
its width. One panel of `rhs` and the rows that meet it fit the first cache, the block of `lhs` the second."""
UNROLL = {16: 4, 32: 1}
"""By registers: steps along k in one trip of the large micro-kernels. A trip's own instructions count where a step has
few others (measured with AVX2: 5 to 10 %). With 28 sums LLVM would keep some of them in memory."""
LINE = 64
"""Bytes of a cache line."""
FAR = 1024
"""Rows so many elements apart or more (4 KiB) meet in the same few lines of the first cache: they are packed, both
operands'."""
FEW_ROWS, FEW_DEEP = 32, 64
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
        return (14, 8, 4, 2, 1) if self.processor.registers == 32 else (6, 4, 2, 1) if self.lanes == 8 else (4, 2, 1)

    @property
    def widens(self) -> bool:
        return self.dtype not in (FP32, INT32)

    @property
    def shared(self) -> int:
        """Rows left over which the last large block shares evenly: two blocks of the second size instead of a large
        one and a small one, which would wait for its own sums. 0: none."""
        return max(0, 2 * self.rows[1] - self.rows[0])

    def wants(self, m: Index, n: Index) -> None:
        """Take note of a call: which sizes of block it needs."""
        if isinstance(m, int):
            mc = self.blocks[2]
            for count in (min(m, mc), m % mc):
                self.row_sizes.update(self.cover(count))
        else:
            self.row_sizes.update(self.rows)
        self.ragged = self.ragged or not isinstance(n, int) or n % self.width != 0

    def cover(self, count: int) -> list[int]:
        """The sizes of blocks that make up `count` rows, as `_Blocks` takes them."""
        found: list[int] = []
        for size in self.rows:
            whole = count - count % size
            if size == self.rows[0] and self.shared and count > size and count % size == self.shared:
                whole -= size
            found += [size] * (whole > 0)
            count -= whole
        return found

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """k, columns and rows of a block, and the rows from which packing pays."""
        question = f"cache blocks of {self.dtype} products (k, columns, rows, rows from which to pack)"
        return self.processor.decisions.first(question, BLOCKS[self.processor.registers])[0]

    def scratch_bytes(self, m: Index, n: Index, k: Index) -> int:
        """Bytes of workspace for a call with these extents: none where nothing is surely packed."""
        kc, nc, mc, _ = self.blocks
        if self.unit_rhs and not self.widens and isinstance(m, int) and m < SMALL_ROWS:
            return 0
        depth = min(kc, k) if isinstance(k, int) else kc
        columns = min(nc, n) if isinstance(n, int) else nc
        columns = -(-columns // self.width) * self.width
        rows = min(mc, m) if isinstance(m, int) else mc
        return 4 * depth * (columns + (rows if self.widens or self.unit_lhs else 0)) + 64

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
        """The sums start from zeros, so that nothing waits for the result so far: it is fetched meanwhile."""
        b, owner = Builder(declarations), self.owner
        name = f"{self.owner.name}.{self.rows}{'r' if self.ragged else ''}"
        at = self._lanes(b)
        c = [self._row(b, "%c", "%cstep", row) for row in range(self.rows)]
        for row in c:
            for line in range(0, owner.width * 4, LINE):
                where = b.address(row, "i8", line)
                b.call("void", "llvm.prefetch.p0", f"ptr {where}, i32 1, i32 3, i32 1", "ptr, i32, i32, i32")
        rows = [self._row(b, "%a", "%astep", row) for row in range(self.rows)]
        kinds = [(self.kind, "zeroinitializer")] * (2 * self.rows)
        start: Index = 0
        totals: Sequence[str] = [initial for _, initial in kinds]
        unroll = UNROLL[owner.processor.registers]
        if unroll > 1 and owner.unit_lhs and not self.ragged and self.rows in owner.rows[:2]:
            start = b.rounded_down("%k", unroll)
            totals = b.fold(0, start, unroll, kinds, lambda p, held: self._steps(b, at, rows, p, held, unroll))
        kinds = [(self.kind, total) for total in totals]
        totals = b.fold(start, "%k", 1, kinds, lambda p, held: self._steps(b, at, rows, p, held, 1))
        places = [(at[part], self._part(b, row, part)) for row in c for part in (0, 1)]
        add, write, done = b.label("add"), b.label("write"), b.label("done")
        b.branch("%adds", add, write)
        b.start(add)
        for total, (lanes, place) in zip(totals, places, strict=True):
            before = lanes.load(place, self.wide)
            sums = lanes.binary("fadd" if self.element == "float" else "add", self.element, before, total)
            lanes.store(sums, place, self.wide)
        b.jump(done)
        b.start(write)
        for total, (lanes, place) in zip(totals, places, strict=True):
            lanes.store(total, place, self.wide)
        b.jump(done)
        b.start(done)
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

    def _steps(
        self, b: Builder, at: list[Lanes], rows: list[str], p: str, held: Sequence[str], count: int
    ) -> Sequence[str]:
        """So many k: each row's element times two vectors of `rhs`. Those of one row follow each other in memory."""
        kind, single = memory_type(self.wide), Lanes(b, self.owner.processor, 1)
        everywhere = Lanes(b, self.owner.processor, self.owner.lanes)
        along: Index = p if self.owner.unit_lhs else b.mul(p, "%anext")
        starts = [b.address(row, kind, along) for row in rows]
        vectors_at = b.address("%b", kind, b.mul(p, "%bstep"))
        for step in range(count):
            vectors = [at[part].load(self._part(b, vectors_at, part), self.wide) for part in (0, 1)]
            totals: list[str] = []
            for row in range(self.rows):
                value = single.load(b.address(starts[row], kind, step), self.wide)
                wide = everywhere.broadcast(self.element, value)
                totals += [self._fused(at[part], wide, vectors[part], held[2 * row + part]) for part in (0, 1)]
            held = totals
            if step + 1 < count:
                vectors_at = b.address(vectors_at, kind, "%bstep")
        return held

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
            many = b.value(f"icmp sge i64 %m, {self.pack_rows}")
            self.packs = b.value(f"or i1 {many}, {self._far(SMALL_ROWS, '%bstep')}")
            few = b.value(f"icmp sle i64 %m, {FEW_ROWS}")
            self.deepest = b.value(f"select i1 {few}, i64 {FEW_DEEP}, i64 {self.kc}")
        self.packs_lhs = "true" if self.owner.widens else "false"
        if self.owner.unit_lhs and not self.owner.widens:
            self.packs_lhs = self._far(SMALL_ROWS, "%astep")
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

    def _far(self, rows: int, step: str) -> str:
        """Whether at least so many rows use an operand whose own rows lie far apart."""
        b = self.b
        used, far = b.value(f"icmp sge i64 %m, {rows}"), b.value(f"icmp sge i64 {step}, {FAR}")
        return b.value(f"and i1 {used}, {far}")

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
        steps: tuple[Index, Index] = ("%bstep", 1 if self.owner.unit_rhs else "%bnext")

        def panel(j: str, count: Index) -> None:
            start = b.address(corner, memory_type(self.owner.dtype), b.mul(j, steps[1]))
            out = Place(self._panel(j, deep), self.wide, (deep, width), (width, 1))
            copy(self.scope, Place(start, self.owner.dtype, (deep, count), steps), out, (deep, count))

        def emit() -> None:
            full = b.rounded_down(columns, width)
            if self.owner.unit_rhs:
                b.loop(0, deep, 1, lambda p: self._packed_row(corner, p, full, deep))
            else:
                b.loop(0, full, width, lambda j: panel(j, width))
            if self.owner.ragged:
                b.loop(full, columns, width, lambda j: panel(j, b.sub(columns, j)))

        if self.packs == "true":
            emit()
        else:
            with b.when(self.packs):
                emit()

    def _packed_row(self, corner: str, p: str, full: Index, deep: Index) -> None:
        """A row of the block into all whole panels: rows are read from end to end, as memory likes it, also where they
        lie so far apart that few of them fit a cache at once."""
        b, owner = self.b, self.owner
        dtype, at = owner.dtype, Lanes(b, owner.processor, owner.lanes)
        row = b.address(corner, memory_type(dtype), b.mul(p, "%bstep"))
        out = b.address("%scratch", memory_type(self.wide), b.mul(p, owner.width))

        def trip(j: str) -> None:
            source = b.address(row, memory_type(dtype), j)
            place = b.address(out, memory_type(self.wide), b.mul(j, deep))
            for part in (0, owner.lanes):
                value = at.load(b.address(source, memory_type(dtype), part), dtype)
                if dtype is not self.wide and not dtype.is_float:
                    value = at.convert("sext", register_type(dtype), value, register_type(self.wide))
                at.store(value, b.address(place, memory_type(self.wide), part), self.wide)

        b.loop(0, full, owner.width, trip)

    def _panel(self, j: Index, deep: Index) -> str:
        return self.b.address("%scratch", memory_type(self.wide), self.b.mul(j, deep))

    def _over_rows(self, i: str, j: str, p: str, columns: Index, deep: Index, adds: str, corner: str) -> None:
        b = self.b
        count = b.minimum(b.sub("%m", i), self.mc)
        start = b.address("%a", memory_type(self.owner.dtype), b.add(b.mul(i, "%astep"), b.mul(p, "%anext")))
        lhs: tuple[str, Index, Index] = (start, "%astep", 1 if self.owner.unit_lhs else "%anext")
        if self.packs_lhs != "false":
            lhs = self._packed_lhs(start, count, deep)
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

    def _packed_lhs(self, start: str, count: Index, deep: Index) -> tuple[str, Index, Index]:
        """The block of `lhs` as the kernel multiplies it, behind the panels in scratch; or where it is."""
        b, owner = self.b, self.owner
        columns = b.minimum(self.nc, "%n")
        rounded = b.rounded_down(b.add(columns, owner.width - 1), owner.width)
        place = b.address("%scratch", memory_type(self.wide), b.mul(rounded, b.minimum("%k", self.kc)))
        steps: tuple[Index, Index] = ("%astep", 1 if owner.unit_lhs else "%anext")
        source = Place(start, owner.dtype, (count, deep), steps)
        out = Place(place, self.wide, (count, deep), (deep, 1))
        if self.packs_lhs == "true":
            copy(self.scope, source, out, (count, deep))
            return place, deep, 1
        with b.when(self.packs_lhs):
            copy(self.scope, source, out, (count, deep))
        pointer = b.value(f"select i1 {self.packs_lhs}, ptr {place}, ptr {start}")
        return pointer, b.value(f"select i1 {self.packs_lhs}, i64 {deep}, i64 %astep"), 1

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
            whole = self._whole(rest, size)
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

    def _whole(self, rest: Index, size: int) -> Index:
        """How many of the `rest` rows blocks of `size` take, see `Multiplier.cover`."""
        b, owner = self.b, self.owner
        if size == 1:
            return rest
        over = b.value(f"urem i64 {rest}, {size}")
        whole = b.sub(rest, over)
        if size != owner.rows[0] or not owner.shared or owner.rows[1] not in owner.row_sizes:
            return whole
        large, even = b.value(f"icmp sgt i64 {rest}, {size}"), b.value(f"icmp eq i64 {over}, {owner.shared}")
        back = b.value(f"select i1 {b.value(f'and i1 {large}, {even}')}, i64 {size}, i64 0")
        return b.sub(whole, back)


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
