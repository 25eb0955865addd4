"""Work items: whether no trip of a parallel loop touches what another one writes.

Items run on several cores at once and in any order. For each tensor that the loop writes, every access is compared
with what any earlier trip did there, one of the two writing; both ways round, that is every pair of trips. Additions
that the machine makes in one piece (atomic) may meet each other. So may trips that one core runs one after another:
the trips of a loop at the top of a function are dealt out to the cores in turn, and what a core's own trips leave to
each other is a matter of order. Where there is one core, those are all trips:

    for i in pl.parallel(0, 64, 16):                   # one core: the items take turns with one part of `space`
        space_2 = pl.tile.store(x, [0, 0], space_1)
        y = pl.tile.load(space_2, [0, 0], [16, 16])    # two cores or more: refused
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.certify.affine import Place, Sum, greatest, least
from tilewright.certify.definitions import Definitions
from tilewright.certify.facts import engine_of, written_tensor
from tilewright.certify.regions import Box, Homes, apart, apart_across, known_of
from tilewright.certify.render import spelled_box
from tilewright.certify.verdict import Notes
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, LoopKind
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TensorType
from tilewright.targets import Target

CORE = "core"
"""The attribute of a function that names the kind of core which runs it."""


@dataclass(frozen=True, slots=True)
class _Touch:
    stmt: Let
    root: Value
    writes: bool
    atomic: bool
    box: Box
    place: Place


def check_parallel_loops(function: Function, target: Target) -> Notes:
    """Every pair of accesses of different trips of every parallel loop."""
    notes = Notes(function.name)
    if any(isinstance(stmt, For) and stmt.kind is LoopKind.PARALLEL for stmt in function.walk()):
        _Walker(function, notes, blocks_of(function, target)).run()
    return notes


def blocks_of(function: Function, target: Target) -> int:
    """How many cores of `target` take the trips of a parallel loop of `function`: those of the kind that runs it, or
    clusters with one of each kind. 0: it is not known which kind runs it."""
    stated = function.attr(CORE)
    units = (engine_of(stmt, target) for stmt in function.walk() if isinstance(stmt, Let))
    kinds = {unit.core for unit in units if unit is not None and unit.core is not None}
    if stated is None and len(target.cores) == 1:
        return next(iter(target.cores.values()))
    if stated is not None or len(kinds) == 1:
        return target.cores.get(str(stated or next(iter(kinds))), 0)
    return min(target.cores.values()) if kinds else 0


class _Walker:
    def __init__(self, function: Function, notes: Notes, blocks: int) -> None:
        self.function = function
        self.notes = notes
        self.blocks = blocks
        self.roots = roots_of(function)
        self.homes = Homes(function)
        self.known = known_of(function)
        self.definitions = Definitions()
        self.spelled = self.definitions.spelled
        self.touches: list[_Touch] = []

    def run(self) -> None:
        self.block(self.function.body, Place())
        by_loop: dict[For, list[_Touch]] = {}
        for touch in self.touches:
            for loop in touch.place.loops:
                if loop.kind is LoopKind.PARALLEL:
                    by_loop.setdefault(loop, []).append(touch)
        for loop, touches in by_loop.items():
            self.loop(loop, touches)

    def block(self, block: Block, place: Place) -> None:
        for stmt in block:
            match stmt:
                case Let(value=Op() as op):
                    self.operation(stmt, op, place)
                case Let():
                    self.definitions.define(stmt)
                case For():
                    self.block(stmt.body, place.inside(stmt))
                case If():
                    condition = self.spelled(stmt.condition)
                    self.block(stmt.then, place.given(condition, True))
                    self.block(stmt.otherwise, place.given(condition, False))
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, place)

    def operation(self, stmt: Let, op: Op, place: Place) -> None:
        if not place.loops or not any(isinstance(v.type, TensorType) for _, v in op.operand_items()):
            return
        written = written_tensor(op)
        for access in op.accesses():
            value = None if access.field is None else getattr(op, access.field)
            if isinstance(value, Value) and isinstance(value.type, TensorType):
                atomic = value is written and bool(getattr(op, "atomic", 0))
                box = Box(tuple(map(self.spelled, access.offsets)), tuple(map(self.spelled, access.extents)))
                root = self.roots.get(value, value)
                self.touches.append(_Touch(stmt, root, access.writes, atomic, box, place))

    def loop(self, loop: For, touches: list[_Touch]) -> None:
        if loop.trip_count is not None and loop.trip_count < 2:
            return
        written = {touch.root for touch in touches if touch.writes}
        shared = [t for t in touches if t.root in written and not self.homes.changes(t.root, loop)]
        self.notes.count += len(shared)
        lanes = {root for root in written if _in_lanes(loop, [touch for touch in shared if touch.root is root])}
        shared = [touch for touch in shared if touch.root not in lanes]
        for now in shared:
            for other in shared:
                pair = other.root is now.root and (now.writes or other.writes) and not (now.atomic and other.atomic)
                if pair and not self.independent(loop, now, other):
                    verbs = ["writes" if touch.writes else "reads" for touch in (now, other)]
                    self.notes.fail(
                        "parallel",
                        f"two work items of the loop over {loop.iv.name!r} may meet in {now.root.name!r}",
                        now.stmt.span,
                        None if other.stmt is now.stmt else other.stmt.span,
                        required="no trip touches what another trip writes",
                        found=f"one {verbs[0]} {spelled_box(now.box.offsets, now.box.extents, None)}, "
                        f"an earlier one {verbs[1]} {spelled_box(other.box.offsets, other.box.extents, None)}",
                    )

    def independent(self, loop: For, now: _Touch, other: _Touch) -> bool:
        """Whether `now` misses what `other` touched in any earlier trip of `loop` that ran on another core."""
        dealt = self.blocks > 0 and loop in self.function.body
        if dealt and self.blocks == 1:
            return True
        box = other.box
        loops = other.place.loops
        for inner in reversed(loops[loops.index(loop) + 1 :]):
            box = self.homes.any_trip(box, inner)
        earlier = self.homes.earlier(box, loop)
        if apart(now.box, earlier, now.place, self.known):
            return True
        return dealt and apart_across(now.box, earlier, now.place, self.known, loop, self.blocks)


# --- at a glance --------------------------------------------------------------------------------------------------
def _in_lanes(loop: For, touches: list[_Touch]) -> bool:
    """Whether, along some axis, each trip keeps to a lane of its own: all offsets move by one pace with the loop, and
    what every box adds to that stays within the pace. Asked of all accesses together: a long body is no matter."""
    if not isinstance(loop.step, int) or loop.step <= 0 or not touches:
        return not touches
    return any(_lane(loop, loop.step, touches, axis) for axis in range(min(len(t.box.offsets) for t in touches)))


def _lane(loop: For, step: int, touches: list[_Touch], axis: int) -> bool:
    paces: set[int] = set()
    low = high = None
    for touch in touches:
        offset, extent = Sum.of(touch.box.offsets[axis]), Sum.of(touch.box.extents[axis])
        paces.add(offset.terms.get(loop.iv, 0) * step)
        rest = Sum({term: factor for term, factor in offset.terms.items() if term is not loop.iv}, offset.constant)
        first, last, most = least(rest, touch.place), greatest(rest, touch.place), greatest(extent, touch.place)
        if first is None or last is None or most is None:
            return False
        low = first if low is None else min(low, first)
        high = last + most if high is None else max(high, last + most)
    if len(paces) != 1 or low is None or high is None:
        return False
    return 0 < high - low <= abs(paces.pop())
