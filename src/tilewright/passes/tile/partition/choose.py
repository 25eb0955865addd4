"""Which classes of dimensions are cut, and into blocks of what size.

A part is tried in a fixed order, each time with blocks as small as they may be: work items along its first dimension,
along more of them, then passes over what is summed, one class, then two. The first way whose working set fits `SHARE`
of each memory is taken (work items alone may take `MOST`; if nothing fits: the least blocks that fit all of it), and
its blocks grow by doubling, innermost first, while they fit. Then the work items are made more until each core has
one. Products have a search of their own (`products`). Every way is a function of the part and the target alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

from tilewright.analysis.spaces import tile_operands
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import Roots, written_operand
from tilewright.ops.movement import Load, Store
from tilewright.passes.tile.partition.dimensions import Dim, dimensions_of, region_axes, tile_of
from tilewright.passes.tile.partition.overlaps import conflict
from tilewright.passes.tile.partition.plan import Cut, Part
from tilewright.passes.tile.partition.products import in_registers, product_of, sizes_of
from tilewright.passes.tile.partition.stages import is_passable, stages_of
from tilewright.passes.tile.partition.working_set import Section, peaks, section_of
from tilewright.targets import Target

SHARE = 0.5
"""How much of a memory the blocks of one work item may take: the next one's loads find room beside them (assumed)."""
SHARES = (SHARE, 0.25, 0.125, 0.75)
"""What can be decided instead."""
MOST = 0.9
"""How much they may take where that saves reading everything again in another pass (assumed)."""
ROWS = 8
"""Rows of a block that is also cut along its columns, at least, where there are so many."""
DEPTH = 64
"""Elements of a block along the inner dimension of a product, at least."""
BOX = 16
"""Multiple of the extents of a product's blocks."""


def budget(target: Target, share: float) -> dict[str, int]:
    """Bytes of each memory that is counted."""
    found: dict[str, int] = {}
    for space in target.spaces:
        memory = target.memory(space)
        if memory.capacity is not None:
            part = 1.0 if space is MemorySpace.ACC else share
            found[memory.name] = max(found.get(memory.name, 0), int(memory.capacity * part))
    return found


def fits(section: Section, blocks: Mapping[Dim, int], share: float, passes: tuple[Dim, ...] = ()) -> bool:
    """Whether the working set, in blocks, is within `share` of every memory."""
    room = budget(section.target, share)
    return all(nbytes <= room[name] for name, nbytes in peaks(section, blocks, passes).items())


def choose(lets: tuple[Let, ...], roots: Roots, target: Target) -> Part:
    """How one part is cut."""
    dims = dimensions_of(lets)
    section = section_of(lets, dims, target)
    if fits(section, {}, 1.0):
        return Part(lets, dims)
    return _Chooser(section, roots).run()


class _Chooser:
    def __init__(self, section: Section, roots: Roots) -> None:
        self.section = section
        self.dims = section.dims
        self.target = section.target
        self.roots = roots
        self.stores = [s.value for s in section.lets if isinstance(s.value, Op) and written_operand(s.value)]
        free = [c for c in self.dims.classes() if c not in self.dims.held]
        self.grid = sorted((c for c in free if self._is_grid(c)), key=self._order)
        self.share, self.least = SHARE, False
        self.rest = [c for c in free if c not in self.grid]
        self.products = [s for s in section.lets if isinstance(s.value, Op) and isinstance(s.value.loops, Contract)]

    def _is_grid(self, cls: Dim) -> bool:
        """Whether blocks of the class are independent: nothing is summed along it, and every store has it."""
        if cls in self.dims.summed:
            return False
        return all(
            isinstance(op, Store)
            and any(c == cls and a >= 0 for c, a in zip(self._of(op), region_axes(op), strict=True))
            for op in self.stores
        )

    def _of(self, op: Store) -> tuple[Dim, ...]:
        return self.dims.classes_of(op.tile)

    def _order(self, cls: Dim) -> int:
        """Leading dimensions first."""
        op = self.stores[0]
        assert isinstance(op, Store)
        return self._of(op).index(cls)

    def fits(self, blocks: Mapping[Dim, int], passes: tuple[Dim, ...]) -> bool:
        return fits(self.section, blocks, self.share, passes)

    # --- the ways, in order ---
    def run(self) -> Part:
        found = self._product()
        if found is not None:
            return found
        reasons: list[str] = []
        half = self.target.decisions.first("share of a memory for the blocks of a work item", SHARES)[0]
        if self.section.chained and in_registers(self.target):
            half = MOST  # no load runs ahead there, and every item packs its right operands anew
        tries = ((half, False, False), (MOST, False, False), (half, False, True), (1.0, True, True))
        for self.share, self.least, several in tries:
            for grid, passes in self._ways(several):
                smallest = {c: self.smallest(c, bool(passes)) for c in (*grid, *passes)}
                if not self.fits(smallest, passes):
                    continue
                reason = self._refused((*grid, *passes), passes)
                if reason is not None:
                    reasons.append(reason)
                    continue
                blocks = self._shared_out(self._grown(smallest, grid, passes), grid)
                return self._part(blocks, grid, passes)
        held = [self.dims.held[c] for c in self.dims.classes() if c in self.dims.held]
        why = [*reasons, *held, "not even the smallest blocks fit"]
        return Part(self.section.lets, self.dims, reason=why[0])

    def _product(self) -> Part | None:
        """The cheapest blocks of the one product that fit; None where the part is no plain product."""
        product = product_of(self.section.lets, self.dims)
        if product is None:
            return None
        rows, columns, inner = product.classes
        other = {c for c in self.dims.classes() if c not in product.classes and self.dims.extents[c] != 1}
        if other & set(self.grid):
            return None
        whole = (rows not in self.grid, columns not in self.grid, inner not in self.rest or in_registers(self.target))
        question = "blocks of " + " x ".join(map(str, product.extents)) + f" {product.lhs.dtype}"
        for sizes in self.target.decisions.first(question, sizes_of(product, whole, self.target)):
            blocks = product.blocks(sizes)
            cut = {c for c, extent in zip(product.classes, product.extents, strict=True) if blocks[c] < extent}
            grid, passes = tuple(c for c in self.grid if c in cut), (inner,) if inner in cut else ()
            if self.fits({c: blocks[c] for c in cut}, passes) and self._refused((*grid, *passes), passes) is None:
                for cls, extent in zip(product.classes[:2], product.extents[:2], strict=True):
                    blocks[cls] = even(extent, blocks[cls])
                return self._part(blocks, grid, passes)
        return None

    def _ways(self, several: bool) -> Iterator[tuple[tuple[Dim, ...], tuple[Dim, ...]]]:
        unknown = {c for c in self.dims.classes() if not isinstance(self.dims.extents[c], int)}
        long = sorted(self.rest, key=self._length, reverse=True)
        passes = [(), *((c,) for c in long), *permutations(long, 2)] if several else [()]
        for inner in passes:
            first = 1 if not inner else len(self.grid)
            for count in range(min(first, len(self.grid)), len(self.grid) + 1):
                if unknown <= {*self.grid[:count], *inner} and (count or inner):
                    yield tuple(self.grid[:count]), inner

    def _length(self, cls: Dim) -> int:
        extent = self.dims.extents[cls]
        return extent if isinstance(extent, int) else 1 << 40

    def _refused(self, cuts: tuple[Dim, ...], passes: tuple[Dim, ...]) -> str | None:
        """Why the classes cannot be cut so."""
        apart = conflict(self.section.lets, cuts, self.dims, self.roots)
        if apart is not None or not passes:
            return apart
        if not is_passable(self.section.lets, passes, self.dims):
            return "sums along two dimensions need each other's blocks"
        return next((r for cls in passes if (r := self._read_late(cls)) is not None), None)

    def _read_late(self, cls: Dim) -> str | None:
        """A tensor that is read and written in passes: every write must come with the last pass."""
        lets = self.section.lets
        stages = stages_of(lets, cls, self.dims)
        written = {
            self.roots[out]: at
            for at, s in enumerate(lets)
            if isinstance(s.value, Op) and (out := written_operand(s.value))
        }
        for stmt in lets:
            if isinstance(stmt.value, Load) and self.roots[stmt.value.tensor] in written:
                at = written[self.roots[stmt.value.tensor]]
                if stages.of[lets[at].target] < stages.count:
                    return f"{stmt.value.tensor.name!r} is written before the last pass that reads it"
        return None

    # --- sizes ---
    def smallest(self, cls: Dim, passes: bool) -> int:
        """The smallest block of a class that makes sense."""
        places = [(v, a) for v in self.dims.tiles for a, c in enumerate(self.dims.classes_of(v)) if c == cls]
        last = any(a == tile_of(v).rank - 1 for v, a in places)
        lead = all(a < tile_of(v).rank - 2 for v, a in places)
        if self.least:
            return min(1 if not last and not any(self._meets_product(v) for v, _ in places) else BOX, self._length(cls))
        size = 1 if lead or not passes else ROWS
        if last:
            nbytes = min(max(8, tile_of(v).dtype.bits) // 8 for v, _ in places)
            size = max(BOX, self.target.ddr_granule // nbytes)
        if any(self._meets_product(v) for v, _ in places):
            size = DEPTH if cls in self.dims.summed else max(BOX, size if last else BOX)
        return min(size, self._length(cls))

    def _meets_product(self, value: Value) -> bool:
        return any(value is s.target or value in [v for _, v in tile_operands(s.value)] for s in self.products)  # type: ignore[arg-type]

    def _grown(self, blocks: dict[Dim, int], grid: tuple[Dim, ...], passes: tuple[Dim, ...]) -> dict[Dim, int]:
        """Doubled while they fit: what lies along rows of memory first, then what is summed, then the first of all."""
        blocks = dict(blocks)
        for cls in (*passes, *reversed(grid)):
            limit = self._length(cls)
            if all(
                a < tile_of(v).rank - 2
                for v in self.dims.tiles
                for a, c in enumerate(self.dims.classes_of(v))
                if c == cls
            ):
                continue
            while blocks[cls] < limit:
                larger = {**blocks, cls: min(2 * blocks[cls], limit)}
                if not self.fits(larger, passes):
                    break
                blocks = larger
        return blocks

    def _shared_out(self, blocks: dict[Dim, int], grid: tuple[Dim, ...]) -> dict[Dim, int]:
        """Smaller along the first dimension until there is a work item for every core, and about equal ones."""
        cores = self.target.matmul_cores if self.products else self.target.vector_cores
        # Products of products read their right operands anew in every item: half the block in two rounds is no gain.
        least = cores // 2 + 1 if self.section.chained else cores
        for cls in grid:
            extent = self.dims.extents[cls]
            if not isinstance(extent, int):
                continue
            floor = min(max(ROWS, self.smallest(cls, True)), blocks[cls])
            while self._items(blocks, grid) < least and blocks[cls] > floor:
                blocks[cls] = max(floor, blocks[cls] // 2)
            blocks[cls] = even(extent, blocks[cls])
        return blocks

    def _items(self, blocks: Mapping[Dim, int], grid: tuple[Dim, ...]) -> int:
        total = 1
        for cls in grid:
            extent = self.dims.extents[cls]
            total *= -(-extent // blocks[cls]) if isinstance(extent, int) else 1 << 20
        return total

    def _part(self, blocks: Mapping[Dim, int], grid: tuple[Dim, ...], passes: tuple[Dim, ...]) -> Part:
        def cuts(classes: tuple[Dim, ...]) -> tuple[Cut, ...]:
            found = (Cut(c, self.dims.extents[c], blocks[c]) for c in classes)
            return tuple(cut for cut in found if cut.extent != cut.block)

        return Part(self.section.lets, self.dims, cuts(grid), cuts(passes))


def even(extent: int, block: int) -> int:
    """A block no larger than `block` that makes as many blocks, about equal ones, of a round size."""
    if block >= extent:
        return extent
    count = -(-extent // block)
    equal = -(-extent // count)
    step = 16 if equal >= 16 else 8 if equal >= 8 else 1
    return min(block, -(-equal // step) * step)
