"""Hazards: which accesses must wait for which, where engines run beside each other.

A tile program means its statements one after another; on the machine each engine runs its own in order and the engines
run in parallel (those of two kinds of core are two, whatever they are called). For each access this lists, per *other*
engine, the latest earlier accesses that touch the same bytes of a memory, or the same elements of one DDR tensor, at
least one of the two writing. Later accesses of an engine wait
for its earlier ones anyway, and what a covering write had to wait for need not be waited for again, so nothing else is
listed. Explicit synchronisation, schedules and certificates are made from this list.

    x = load(a)        MTE2
    y = exp(x)         VECTOR   after MTE2: x is written                              (distance 0)
    o1 = store(y, o)   MTE3     after VECTOR: y is written
                       MTE2 of the next trip: after VECTOR: x is still being read     (distance 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tilewright.analysis.cores import core_of
from tilewright.analysis.cost import cost_of
from tilewright.analysis.footprint import footprint
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, Stmt
from tilewright.ir.op import Access, Op
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, linear_terms, substitute, values_in
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes [first, last) of a memory, or a box of a DDR tensor (None: some part of it, unknown) or of a tile that is
    streamed and has no address: `root` is what tells it from others."""

    memory: str
    first: int = 0
    last: int = 0
    root: Value | None = None
    offsets: Shape | None = None
    extents: Shape | None = None

    def meets(self, other: Region) -> bool:
        """Whether the two may touch."""
        if self.root is not other.root or self.memory != other.memory:
            return False
        if self.root is None:
            return self.first < other.last and other.first < self.last
        return not _apart(self, other)

    def covers(self, other: Region) -> bool:
        """Whether `other` lies within this one, for certain."""
        if self.root is not None or other.root is not None or self.memory != other.memory:
            return False
        return self.first <= other.first and other.last <= self.last


@dataclass(frozen=True, slots=True)
class Hazard:
    """`after` (on `after_engine`) must not start before `before` is done. `distance` trips of `loop` lie between
    them: 0 within one trip, 1 when `before` belongs to the trip before."""

    before: Let
    after: Let
    before_engine: str
    after_engine: str
    kind: str
    """``read after write``, ``write after read`` or ``write after write``"""
    memory: str
    loop: For | None = None
    distance: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """An access that later ones may have to wait for."""

    stmt: Let
    engine: tuple[str | None, str]
    """a kind of core and its engine: engines of two cores share names, and no order"""
    region: Region
    writes: bool
    loop: For | None = None


@dataclass(slots=True)
class _State:
    """The latest accesses, per memory or tensor, so that each is compared only with what it can touch."""

    entries: dict[object, list[_Entry]] = field(default_factory=dict[object, list[_Entry]])

    def copy(self) -> _State:
        return _State({key: list(found) for key, found in self.entries.items()})

    def all(self) -> Iterator[_Entry]:
        for found in self.entries.values():
            yield from found

    def of(self, region: Region) -> list[_Entry]:
        return self.entries.setdefault(region.root or region.memory, [])


def hazards(function: Function, target: Target) -> list[Hazard]:
    """The hazards of a placed function in the order of their later statements."""
    finder = _Finder(function, target)
    finder.block(function.body, _State())
    return list(finder.found)


def engine_of(stmt: Let, target: Target) -> str | None:
    """The engine that executes `stmt`; None for views, workspaces and scalar expressions, which no engine does."""
    op = stmt.value
    if not isinstance(op, Op) or op.view_of is not None:
        return None
    if not any(isinstance(value.type, TileType) for value in (stmt.target, *(v for _, v in op.operand_items()))):
        return target.engine_for("scalar").name if op.work().kind == "scalar" else None
    return cost_of(op, stmt.target.type, target).engine


class _Finder:
    def __init__(self, function: Function, target: Target) -> None:
        self.target = target
        self.roots = roots_of(function)
        self.known = {param.value for param in function.params}
        self.found: dict[Hazard, None] = {}
        self.streamed: dict[str, Value] = {}
        """tiles without an address, which native code streams through registers, by the name of their buffer"""

    # --- control flow ---
    def block(self, block: Block, state: _State) -> _State:
        for stmt in block:
            state = self.stmt(stmt, state)
        return state

    def stmt(self, stmt: Stmt, state: _State) -> _State:
        match stmt:
            case Let():
                self.let(stmt, state)
                return state
            case For():
                return self.loop(stmt, state)
            case If():
                then, otherwise = (self.block(arm, state.copy()) for arm in stmt.blocks())
                return _joined(then, otherwise)
            case _:
                for inner in stmt.blocks():
                    state = self.block(inner, state)
                return state

    def loop(self, stmt: For, state: _State) -> _State:
        """The body twice: once as the first trip, once behind itself, which shows what crosses from trip to trip."""
        self.known.add(stmt.iv)
        once = self.block(stmt.body, state.copy())
        again = _State()
        before = set(state.all())
        for key, found in once.entries.items():
            again.entries[key] = [e if e in before else _carried(e, stmt) for e in found]
        after = self.block(stmt.body, again)
        self.known.discard(stmt.iv)
        skipped = once if stmt.trip_count else _joined(state, once)
        left = _joined(skipped, after)
        for key, found in left.entries.items():
            left.entries[key] = list(dict.fromkeys(_outside(entry, stmt) for entry in found))
        return left

    # --- accesses ---
    def let(self, stmt: Let, state: _State) -> None:
        name = engine_of(stmt, self.target)
        if name is None:
            return
        engine = core_of(stmt, self.target), name
        mine = [_Entry(stmt, engine, region, writes) for region, writes in self.accesses(stmt)]
        for access in mine:
            for entry in state.of(access.region):
                if entry.engine != engine and (entry.writes or access.writes) and entry.region.meets(access.region):
                    self.report(entry, access)
        for access in mine:
            held = state.of(access.region)
            held[:] = [e for e in held if not _superseded(e, access)]
            held.append(access)

    def report(self, entry: _Entry, access: _Entry) -> None:
        first, second = ("write" if side.writes else "read" for side in (access, entry))
        hazard = Hazard(
            entry.stmt, access.stmt, entry.engine[1], access.engine[1], f"{first} after {second}", access.region.memory,
            entry.loop, 0 if entry.loop is None else 1,
        )  # fmt: skip
        self.found[hazard] = None

    def accesses(self, stmt: Let) -> list[tuple[Region, bool]]:
        """The regions that `stmt` touches; reads before writes."""
        op = stmt.value
        assert isinstance(op, Op)
        found: list[tuple[Region, bool]] = []
        for name, value in op.operand_items():
            if isinstance(value.type, TileType):
                found.append((self.tile(value), False))
            else:
                boxes = [a for a in op.accesses() if a.field == name]
                found += [(self.box(value, box), box.writes) for box in boxes]
        if isinstance(stmt.target.type, TileType):
            found.append((self.tile(stmt.target), True))
        return sorted(dict.fromkeys(found), key=lambda item: item[1])

    def tile(self, value: Value) -> Region:
        """The bytes of a tile; of a view that shares its parent's rows, those from its first element on."""
        kind = value.type
        assert isinstance(kind, TileType) and kind.space is not None
        memory = self.target.memory(kind.space).name
        memref = kind.memref
        assert memref is not None and memref.nbytes is not None, f"{value.name} has no buffer"
        if memref.addr is None:
            return Region(memory, root=self.streamed.setdefault(memref.name, value))
        offset = kind.view.start_offset
        if offset is None or not isinstance(offset, int) or kind.view.stride is not None:
            return Region(memory, memref.addr, memref.addr + memref.nbytes)
        first = memref.addr + offset * kind.dtype.bits // 8
        return Region(memory, first, min(first + footprint(kind, self.target), memref.addr + memref.nbytes))

    def box(self, value: Value, access: Access) -> Region:
        kind = value.type
        assert isinstance(kind, TensorType)
        mentioned = {v for s in (*access.offsets, *access.extents) if not isinstance(s, int) for v in values_in(s)}
        box = (access.offsets, access.extents) if mentioned <= self.known else (None, None)
        return Region("DDR", root=self.roots.get(value, value), offsets=box[0], extents=box[1])


def _apart(a: Region, b: Region) -> bool:
    """Whether two boxes of one tensor are apart in some dimension, for every value of what they mention."""
    if a.offsets is None or b.offsets is None or a.extents is None or b.extents is None:
        return False
    for ao, ae, bo, be in zip(a.offsets, a.extents, b.offsets, b.extents, strict=True):
        if _at_most(_plus(ao, ae), bo) or _at_most(_plus(bo, be), ao):
            return True
    return False


def _plus(a: Scalar, b: Scalar) -> Scalar:
    return binary(BinaryKind.ADD, a, _upper(b))


def _upper(extent: Scalar) -> Scalar:
    """A bound above an extent: the constant in a minimum, where there is one."""
    if not isinstance(extent, int) and getattr(extent, "kind", None) in (BinaryKind.MIN, BinaryKind.MAX):
        bounds = [_upper(child) for child in extent.children()]
        numbers = [bound for bound in bounds if isinstance(bound, int)]
        if getattr(extent, "kind", None) is BinaryKind.MIN and numbers:
            return min(numbers)
        if len(numbers) == len(bounds):
            return max(numbers)
    return extent


def _at_most(a: Scalar, b: Scalar) -> bool:
    """Whether `a <= b` whatever the values in them are."""
    terms, constant = linear_terms(binary(BinaryKind.SUB, a, b))
    return not terms and constant <= 0


def _carried(entry: _Entry, loop: For) -> _Entry:
    """The access as the next trip sees it: its loop variable is one step behind."""
    region = entry.region
    if region.offsets is not None and region.extents is not None:
        earlier = binary(BinaryKind.SUB, loop.iv, loop.step)

        def back(shape: Shape) -> Shape:
            return tuple(substitute(s, lambda value: earlier if value is loop.iv else value) for s in shape)

        region = replace(region, offsets=back(region.offsets), extents=back(region.extents))
    return replace(entry, region=region, loop=entry.loop or loop)


def _outside(entry: _Entry, loop: For) -> _Entry:
    """The access as seen after the loop: a box that depends on the loop variable is somewhere, and no trip of this loop
    lies between. A trip of a loop around it still does."""
    region = entry.region
    shapes = (*(region.offsets or ()), *(region.extents or ()))
    if any(loop.iv in values_in(scalar) for scalar in shapes if not isinstance(scalar, int)):
        region = replace(region, offsets=None, extents=None)
    return replace(entry, region=region, loop=None if entry.loop is loop else entry.loop)


def _superseded(entry: _Entry, access: _Entry) -> bool:
    """Whether waiting for `access` is waiting for `entry` too."""
    if access.writes and access.region.covers(entry.region):
        return True
    return entry.engine == access.engine and entry.writes == access.writes and entry.region == access.region


def _joined(a: _State, b: _State) -> _State:
    keys = dict.fromkeys((*a.entries, *b.entries))
    return _State({key: list(dict.fromkeys((*a.entries.get(key, ()), *b.entries.get(key, ())))) for key in keys})
