"""Blocks of a product: rows and columns of the result as work items, the inner dimension in passes.

Every block of the result reads its rows of the left operand and its columns of the right one whole, so larger blocks
read less; more blocks keep more cores busy. The price of a choice is the time of the busiest core: rounds of work
items, each of them its loads, its multiplications and the way out, one after another (`targets`: latency and bytes per
cycle from DDR, cycles of the matrix engine, drain). They overlap in part; but the cores share DDR, of which a target
states what one of them gets, so that a choice should not hang on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.passes.tile.partition.dimensions import Dim, Dimensions
from tilewright.targets import Target

ROUND = 16
"""Multiple of the rows and columns of a block: a box of every matrix engine."""
STEP = 64
"""Elements of the inner dimension in a block, at least."""
SLOW = 32.0
"""Bytes per cycle from DDR, where the machine states none (assumed)."""


@dataclass(frozen=True, slots=True)
class Product:
    """The one product of a part: the classes of its rows, columns and inner dimension, with their extents."""

    classes: tuple[Dim, Dim, Dim]
    extents: tuple[int, int, int]
    lhs: Value

    def blocks(self, sizes: tuple[int, int, int]) -> dict[Dim, int]:
        return dict(zip(self.classes, sizes, strict=True))


def product_of(lets: tuple[Let, ...], dims: Dimensions) -> Product | None:
    """The product, if there is exactly one, of extents known when compiling."""
    found = [s for s in lets if isinstance(s.value, Op) and isinstance(s.value.loops, Contract)]
    if len(found) != 1:
        return None
    stmt = found[0]
    op = stmt.value
    assert isinstance(op, Op) and isinstance(op.loops, Contract)
    lhs: Value = getattr(op, op.loops.lhs)
    classes = (dims.root(stmt.target, 0), dims.root(stmt.target, 1), dims.root(lhs, 1))
    extents = tuple(extent for cls in classes if isinstance(extent := dims.extents[cls], int))
    if len(extents) != 3 or len(set(classes)) != 3:
        return None
    return Product(classes, extents, lhs)


def in_registers(target: Target) -> bool:
    """Whether accumulators are registers: then a product is cut again by whoever makes code of it, and its operands
    stream through caches, however long they are."""
    return target.has(MemorySpace.ACC) and bool(target.memory(MemorySpace.ACC).register_bytes)


def sizes_of(product: Product, whole: tuple[bool, bool, bool], target: Target) -> list[tuple[int, int, int]]:
    """Blocks to try, cheapest first; along a dimension that is `whole` there is one."""
    ranges = [
        [extent] if is_whole else list(_doubling(extent, least))
        for extent, is_whole, least in zip(product.extents, whole, (ROUND, ROUND, STEP), strict=True)
    ]
    found = [
        (m, n, k) for m in ranges[0] for n in ranges[1] for k in ranges[2] if _has_room(product, (m, n, k), target)
    ]
    return sorted(found, key=lambda sizes: (_price(product, sizes, target), -sizes[0] * sizes[1], -sizes[2], sizes))


def _doubling(extent: int, least: int) -> Iterator[int]:
    size = least
    while size < extent:
        yield size
        size *= 2
    yield extent


def _has_room(product: Product, sizes: tuple[int, int, int], target: Target) -> bool:
    """A first look at the accumulator and the operands alone."""
    if in_registers(target):
        return True
    m, n, k = sizes
    operands = (m + n) * k * product.lhs.dtype.bits // 8
    return operands <= target.capacity(MemorySpace.MAT) and m * n * 4 <= target.capacity(MemorySpace.ACC)


def _price(product: Product, sizes: tuple[int, int, int], target: Target) -> float:
    (rows, columns, depth), (m, n, k) = product.extents, sizes
    items = -(-rows // m) * -(-columns // n)
    rounds = -(-items // target.matmul_cores)
    steps = -(-depth // k)
    nbytes = (m + n) * depth * product.lhs.dtype.bits / 8
    edge = target.edge(MemorySpace.DDR, MemorySpace.MAT)
    latency = 2 * steps * edge.latency if edge is not None else 0.0
    load = latency + nbytes / (target.bandwidth(MemorySpace.DDR, MemorySpace.MAT) or SLOW)
    multiply = steps * target.matmul_cycles(m, n, k, product.lhs.dtype)
    return rounds * (load + multiply + target.drain_cycles(m, n))
