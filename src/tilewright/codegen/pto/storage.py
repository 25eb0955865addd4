"""Rules of §6 on memory over time: a tile that is read before anything wrote it, or after something else did.

Two tiles with constant addresses may share bytes. A tile whose bytes another tile overwrote may be read again only if
the sharing is deliberate: plain tiles of one element type, one inside the other (slices, reshapes, valid shapes), and
tiles of two element types of which the text says, by a bitcast, that one is the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.codegen.pto.facts import Context
from tilewright.codegen.pto.syntax import Function, Operation, Region, walk
from tilewright.codegen.pto.tables import footprint, tmp_index
from tilewright.codegen.pto.types import TileType

_ALIASES = frozenset(("pto.subset", "pto.subview", "pto.treshape", "pto.bitcast"))


@dataclass(frozen=True, slots=True)
class _Root:
    """An allocation: its type and, if constant, its bytes. One whose address is computed may be anywhere."""

    kind: TileType
    start: int | None
    end: int
    computed: bool

    def overlaps(self, other: _Root) -> bool:
        return (
            self.start is not None
            and other.start is not None
            and self.kind.loc == other.kind.loc
            and self.start < other.end
            and other.start < self.end
        )

    def deliberate(self, other: _Root) -> bool:
        """Whether sharing bytes with `other` is a way to name a part, or another shape, of the same values."""
        if self.start is None or other.start is None or self.kind.dtype != other.kind.dtype:
            return False
        inside = (self.start <= other.start and other.end <= self.end) or (
            other.start <= self.start and self.end <= other.end
        )
        if "none_box" in (self.kind.slayout, other.kind.slayout):
            return inside and self.kind.slayout == other.kind.slayout
        same = (self.kind.blayout, self.kind.slayout) == (other.kind.blayout, other.kind.slayout)
        pitch = (k.rows if k.blayout == "col_major" else k.cols for k in (self.kind, other.kind))
        opposite = self.kind.blayout != other.kind.blayout and self.kind.slayout != other.kind.slayout
        turned = opposite and self.kind.shape == other.kind.shape[::-1]  # boxes, and what is in them, seen transposed
        return inside and (turned or (same and len(set(pitch)) == 1))


def _bare(kind: TileType) -> str:
    """What a type says of its bytes: element type and physical shape."""
    return f"{kind.dtype} {kind.shape}"


@dataclass(slots=True)
class _State:
    """Per root: whether it may have been written, and the line where it may have been overwritten."""

    written: set[str] = field(default_factory=set[str])
    lost: dict[str, int] = field(default_factory=dict[str, int])

    def copy(self) -> _State:
        return _State(set(self.written), dict(self.lost))

    def join(self, other: _State) -> None:
        self.written |= other.written
        self.lost |= other.lost


def storage_rules(ctx: Context, function: Function, addresses: dict[int, int | None]) -> None:
    """Check one function. `addresses` maps the id of each allocating operation to its address, None if unknown."""
    analysis = _Storage(ctx, addresses)
    analysis.collect(function)
    analysis.region(function.body, _State())


class _Storage:
    def __init__(self, ctx: Context, addresses: dict[int, int | None]) -> None:
        self.ctx = ctx
        self.addresses = addresses
        self.roots: dict[str, _Root] = {}
        self.names: dict[str, str] = {}
        self.anywhere: frozenset[str] = frozenset()
        self.neighbours: dict[str, tuple[str, ...]] = {}
        self.beside: frozenset[str] = frozenset()
        self.constants: dict[str, int] = {}
        self.bitcasts: set[tuple[int, frozenset[str]]] = set()
        """for each address, the pairs of types between which a tile there is reinterpreted"""

    def collect(self, function: Function) -> None:
        for op in walk(function.body):
            kind = op.result_types[0] if op.result_types else None
            value = op.attributes.get("value")
            if op.name == "arith.constant" and isinstance(value, int):
                self.constants[op.results[0]] = value
            if op.name == "pto.alloc_tile" and isinstance(kind, TileType):
                start = self.addresses.get(id(op))
                key = f"{op.results[0]}@{op.line}"
                self.roots[key] = _Root(
                    kind, start, (start or 0) + footprint(kind, self.ctx.arch), "addr" in op.named and start is None
                )
        self._reinterpreted(function)
        self.beside = self._written_in_sections(function)
        for key, root in self.roots.items():
            near = [k for k, other in self.roots.items() if k != key and root.overlaps(other)]
            self.neighbours[key] = tuple(near)

    def _reinterpreted(self, function: Function) -> None:
        starts = {key.partition("@")[0]: root.start for key, root in self.roots.items()}
        for op in walk(function.body):
            start = starts.get(op.operands[0]) if op.name in _ALIASES else None
            if start is None:
                continue
            starts[op.results[0]] = start
            if op.name == "pto.bitcast":
                kinds = (*op.operand_types, *op.result_types)
                self.bitcasts.add((start, frozenset(_bare(kind) for kind in kinds if isinstance(kind, TileType))))

    def deliberate(self, one: _Root, other: _Root) -> bool:
        """Whether two allocations share bytes on purpose."""
        same = one.start is not None and one.start == other.start and one.end == other.end
        if same and (one.start or 0, frozenset((_bare(one.kind), _bare(other.kind)))) in self.bitcasts:
            return True
        return one.deliberate(other)

    def _written_in_sections(self, function: Function) -> frozenset[str]:
        """The allocations that sections of both cores write: they run side by side, so either may be the earlier."""
        sections = [op for op in walk(function.body) if op.name.startswith("pto.section.")]
        found: set[str] = set()
        aliases: dict[str, str] = {}
        for op in walk(function.body):
            if op.name == "pto.alloc_tile" and op.results:
                aliases[op.results[0]] = f"{op.results[0]}@{op.line}"
            elif op.name in _ALIASES and op.operands[0] in aliases:
                aliases[op.results[0]] = aliases[op.operands[0]]
        for section in sections if len(sections) > 1 else ():
            outs = {name for region in section.regions for op in walk(region) for name in op.outs}
            found |= {aliases[name] for name in outs if name in aliases}
        return frozenset(found)

    def region(self, region: Region, state: _State) -> _State:
        for op in region.operations:
            state = self.operation(op, state)
        return state

    def operation(self, op: Operation, state: _State) -> _State:
        if op.name == "pto.alloc_tile" and op.results:
            self.names[op.results[0]] = f"{op.results[0]}@{op.line}"
        elif op.name in _ALIASES and op.operands[0] in self.names:
            self.names[op.results[0]] = self.names[op.operands[0]]
        elif op.name in ("scf.for", "scf.while"):
            return self.loop(op, state)
        elif op.name == "pto.sync.wait":
            self.arrived(state)
        elif op.name == "scf.if":
            arms = [self.region(region, state.copy()) for region in op.regions]
            if len(arms) == 1:
                arms.append(state)
            arms[0].join(arms[1])
            return arms[0]
        elif op.regions:
            for region in op.regions:
                state = self.region(region, state)
        elif op.name.startswith("pto.t"):
            self.access(op, state)
        return state

    def arrived(self, state: _State) -> None:
        """After a signal of the other core, what that core writes may be there again."""
        for key in list(state.lost):
            same = (near for near in self.neighbours[key] if self.deliberate(self.roots[near], self.roots[key]))
            if key in self.beside or any(near in self.beside for near in same):
                del state.lost[key]

    def loop(self, op: Operation, state: _State) -> _State:
        """Two trips, so that what the end of the body did reaches its start; writes of the body count from the first
        trip on, since a guard inside it may well skip the read that precedes them."""
        kept = self.anywhere
        self.anywhere = kept | {name for region in op.regions for inner in walk(region) for name in inner.outs}
        bounds = [self.constants[name] for name in op.operands[:2] if name in self.constants]
        runs = op.name == "scf.for" and len(bounds) == 2 and bounds[0] < bounds[1]
        for trip in range(2):
            after = state.copy()
            for region in op.regions:
                after = self.region(region, after)
            if trip == 0 and runs:
                state = after
            else:
                state.join(after)
        self.anywhere = kept
        return state

    def access(self, op: Operation, state: _State) -> None:
        name = op.name.removeprefix("pto.")
        tmp = tmp_index(name, len(op.operands))
        for i, value in enumerate(op.operands):
            if i != tmp and value in self.names:
                self.read(op, value, state)
        for value in (*op.outs, *([op.operands[tmp]] if tmp is not None and tmp < len(op.operands) else [])):
            if value in self.names:
                self.write(op, self.names[value], state)

    def read(self, op: Operation, value: str, state: _State) -> None:
        key = self.names[value]
        root = self.roots[key]
        later = {self.names[name] for name in self.anywhere if name in self.names}
        seen = state.written | later | self.beside
        known = key in seen or root.computed or any(near in seen for near in self.neighbours[key])
        known = known or any(self.roots[k].computed and self.roots[k].kind.loc == root.kind.loc for k in seen)
        self.ctx.require(known, "§6 never written", op, f"{value} is read, but nothing wrote it")
        if key in state.lost:
            self.ctx.report(
                "§6 overlap", op, f"{value} is read, but line {state.lost[key]} wrote another tile over its bytes"
            )

    def write(self, op: Operation, key: str, state: _State) -> None:
        state.written.add(key)
        state.lost.pop(key, None)
        for near in self.neighbours[key]:
            if self.deliberate(self.roots[near], self.roots[key]):
                state.lost.pop(near, None)
            else:
                state.lost[near] = op.line
