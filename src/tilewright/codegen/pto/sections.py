"""Functions that two kinds of core run together: a section for each, and what passes between them.

Both sections walk the same control flow and leave out the statements of the other core. What one core does to memory
that the other one uses is a hazard between them, and `flags` orders it by signals. Two things are particular here. A
scalar is computed by both cores, so neither may read one from a tensor that the other writes. And zeros around a tile
that the other core is about to write are filled in by the core that has the memory, which meets the other one there.
Only the first vector core of a cluster works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.analysis.cores import core_of
from tilewright.codegen.pto.flags import SIDES, Flags
from tilewright.codegen.pto.transfers import fill_around
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Let, Stmt, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import roots_of, written_operand
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel


class Sections:
    """The two sections of one function."""

    def __init__(self, function: Function, target: Target, flags: Flags) -> None:
        self.function = function
        self.target = target
        self.flags = flags
        self.roots = roots_of(function)
        self._refuse_shared_scalars()
        for stmt in walk(function.body):
            if isinstance(stmt, Let):
                self._prepare(stmt)

    # --- deciding ---
    def _tensors(self, stmt: Let) -> list[tuple[Value, bool]]:
        """The tensors that `stmt` accesses, by root, and whether it writes them."""
        if not isinstance(stmt.value, Op):
            return []
        written = written_operand(stmt.value)
        found = [value for _, value in stmt.value.operand_items() if isinstance(value.type, TensorType)]
        return [(self.roots.get(value, value), value is written) for value in found]

    def _refuse_shared_scalars(self) -> None:
        """Both cores compute every scalar: what one of them writes cannot be read as one, nor written."""
        lets = [stmt for stmt in walk(self.function.body) if isinstance(stmt, Let) and isinstance(stmt.value, Op)]
        written = {root for stmt in lets for root, writes in self._tensors(stmt) if writes}
        for stmt in lets:
            op = stmt.value
            assert isinstance(op, Op)
            if core_of(stmt, self.target) is not None or op.view_of is not None:
                continue
            if any(root in written for root, _ in self._tensors(stmt)):
                raise UnsupportedError(
                    f"{op.qualified_name} reaches a tensor that two kinds of core use",
                    span=stmt.span,
                    help="load it into a tile, or split the section",
                )

    def _prepare(self, stmt: Let) -> None:
        """Zeros around what is about to arrive are filled in by the core that has the memory."""
        kind, core = stmt.target.type, core_of(stmt, self.target)
        if core is None or not isinstance(kind, TileType) or kind.space is not MemorySpace.MAT:
            return
        owner = self.target.core_of_space(kind.space)
        padded = kind.view.pad is not Pad.NULL and kind.valid != kind.shape
        if owner in (None, core) or not padded or getattr(stmt.value, "pad_value", None) is None:
            return
        assert owner is not None

        def fill(kernel: Kernel) -> None:
            # What lay here before was used by several pipes.
            kernel.text.line("pto.barrier <PIPE_ALL>")
            fill_around(kernel, stmt.target)

        self.flags.meet(stmt, owner, core, fill)

    def touches(self, stmt: Stmt, side: str) -> bool:
        """Whether anything inside `stmt` is emitted for `side`."""
        for inner in walk((stmt,)):
            if isinstance(inner, Let) and core_of(inner, self.target) == side:
                return True
            if self.flags.concerns(inner, side):
                return True
        return False

    # --- emitting ---
    def emit(self, kernel: Kernel) -> None:
        """Both sections, the vector one for the first vector core only."""
        for side in SIDES:
            kernel.side = side
            kernel.tiles.places.clear()
            names = dict(kernel.numbers.names)
            with kernel.text.region(f"pto.section.{side} {{", prelude=True):
                if side == "cube":
                    kernel.body()
                else:
                    with kernel.text.region(f"scf.if {_first_lane(kernel)} {{", prelude=True):
                        kernel.body()
            kernel.numbers.names = names
        kernel.side = None


def _first_lane(kernel: Kernel) -> str:
    """The condition that this is the first vector core of its cluster."""
    text, numbers = kernel.text, kernel.numbers
    wide, lane, first = (text.fresh(stem) for stem in ("lane_i64", "lane", "is_first"))
    text.line(f"{wide} = pto.get_subblock_idx")
    text.line(f"{lane} = arith.index_cast {wide} : i64 to index")
    text.line(f"{first} = arith.cmpi eq, {lane}, {numbers.index(0)} : index")
    return first
