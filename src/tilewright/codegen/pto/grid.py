"""Which loops are spread over the blocks of a launch, and how many blocks there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.analysis.work_items import work_items
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Function
from tilewright.ir.nodes import For
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, maximum
from tilewright.ir.types import ScalarType
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel


@dataclass(slots=True)
class Grid:
    """`loops` are spread over the blocks; `core` is the kind of core that runs a block (None: one of each)."""

    loops: tuple[For, ...]
    core: str | None
    cores: int
    reason: str | None = None
    """why the function has parallel loops and still runs as one block"""

    def head(self, kernel: Kernel, loop: For) -> tuple[str, str]:
        """The loop over the items of this block, and the name of its step."""
        numbers, text = kernel.numbers, kernel.text
        block, blocks = text.memo("block", lambda: _block(kernel))
        items = numbers.index(trips(loop))
        item = text.fresh("item")
        text.memo(("item", loop), lambda: item)
        return f"scf.for {item} = {block} to {items} step {blocks}", blocks

    def bind(self, kernel: Kernel, loop: For) -> None:
        """Gives the loop variable its value in terms of the item."""
        numbers = kernel.numbers
        item = Value("item", ScalarType(INDEX))
        numbers.bind(item, kernel.text.memo(("item", loop), lambda: "%item"))
        numbers.not_negative.add(item)
        value = binary(BinaryKind.ADD, binary(BinaryKind.MUL, item, loop.step), loop.start)
        numbers.bind(loop.iv, numbers.index(value))

    @property
    def items(self) -> Scalar:
        """The most items that one of the loops has, where that is a constant; else the number of cores."""
        counts = [trips(loop) for loop in self.loops]
        known = [count for count in counts if isinstance(count, int)]
        return max(known) if known and len(known) == len(counts) else self.cores

    @property
    def blocks(self) -> int:
        """How many blocks to launch: no more than there are cores, or items."""
        items = self.items
        return max(1, min(items, self.cores)) if self.loops and isinstance(items, int) else 1


def trips(loop: For) -> Scalar:
    """The number of trips."""
    length = binary(BinaryKind.SUB, loop.stop, loop.start)
    up = binary(BinaryKind.ADD, length, binary(BinaryKind.SUB, loop.step, 1))
    count = binary(BinaryKind.FLOORDIV, up, loop.step)
    return max(0, count) if isinstance(count, int) else maximum(count, 0)


def _block(kernel: Kernel) -> tuple[str, str]:
    names: list[str] = []
    for word, stem in (("get_block_idx", "block"), ("get_block_num", "blocks")):
        wide, name = kernel.text.fresh(f"{stem}_i64"), kernel.text.fresh(stem)
        kernel.text.line(f"{wide} = pto.{word}")
        kernel.text.line(f"{name} = arith.index_cast {wide} : i64 to index")
        names.append(name)
    return names[0], names[1]


def plan_grid(function: Function, target: Target) -> Grid:
    """What `function` spreads over blocks: its work items."""
    found = work_items(function, target)
    return Grid(found.loops, found.core, found.cores, found.reason)
