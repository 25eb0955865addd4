"""What the certificate claims, beside what was found: tiles and when they are needed, moves, bounds, peaks, text."""

from __future__ import annotations

from tilewright.certify.bounds import ASSUMED, GUARDED, PROVED, Bounds
from tilewright.certify.certificate import FunctionClaim, TileClaim
from tilewright.certify.facts import moving_edge, space_of, work_kind
from tilewright.certify.lifetimes import Lifetimes, Piece, peaks_of
from tilewright.certify.render import Names, digests
from tilewright.certify.verdict import Notes
from tilewright.ir.function import Function, FunctionKind
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.types import TileType
from tilewright.targets import Target

STRENGTH = {PROVED: 2, GUARDED: 1, ASSUMED: 0}


def check_claims(
    function: Function,
    target: Target,
    claim: FunctionClaim,
    live: Lifetimes,
    names: Names,
    bounds: Bounds,
    pieces: dict[str, list[Piece]],
    *,
    bind: bool,
) -> Notes:
    """Every claim of one function; `bind`: that it was made of this very text, too."""
    comparer = _Comparer(function, target, claim, live, names)
    if function.kind is FunctionKind.INCORE:
        comparer.tiles()
        comparer.peaks(pieces)
    comparer.moves()
    comparer.bounds(bounds)
    if bind:
        comparer.text()
    return comparer.notes


class _Comparer:
    def __init__(self, function: Function, target: Target, claim: FunctionClaim, live: Lifetimes, names: Names) -> None:
        self.function = function
        self.target = target
        self.claim = claim
        self.live = live
        self.names = names
        self.notes = Notes(function.name)
        self.statements: dict[int, Stmt] = {live.begins[stmt]: stmt for stmt in function.walk()}

    def differs(self, what: str, stmt: Stmt | None, claimed: object, found: object) -> None:
        span = self.function.span if stmt is None else stmt.span
        self.notes.fail(
            "certificate", f"the certificate says otherwise of {what}", span, required=str(found), found=str(claimed)
        )

    def tiles(self) -> None:
        claimed = {tile.value: tile for tile in self.claim.tiles}
        for value, intervals in self.live.alive.items():
            kind, tile, stmt = value.type, claimed.pop(self.names[value], None), self.live.made_by.get(value)
            assert isinstance(kind, TileType) and kind.space is not None
            self.notes.count += 1
            memref = kind.memref
            if tile is None:
                self.differs(f"{value.name!r}", stmt, "nothing", "a tile")
                continue
            found = (kind.space.value, self.target.memory(kind.space).name)
            stated = (tile.space, tile.memory)
            if memref is not None:
                found = (*found, memref.name, memref.addr, memref.nbytes)
                stated = (*stated, tile.buffer, tile.address, tile.bytes)
            if found != stated:
                self.differs(f"where {value.name!r} lies", stmt, stated, found)
            if not _within([(first // 2, last // 2) for first, last in intervals], tile):
                shown = [(first // 2, last // 2) for first, last in intervals]
                self.differs(f"when {value.name!r} is needed", stmt, list(tile.live), shown)
        for tile in claimed.values():
            self.differs(f"the tile {tile.name!r}", None, tile.value, "no such tile")

    def moves(self) -> None:
        claimed = {move.statement: move for move in self.claim.moves}
        for number, stmt in self.statements.items():
            op = stmt.value if isinstance(stmt, Let) else None
            if not isinstance(stmt, Let) or not isinstance(op, Op) or op.view_of is not None or work_kind(op) != "move":
                continue
            edge = moving_edge(op, stmt.target, self.target)
            if edge is None:
                continue
            self.notes.count += 1
            move = claimed.pop(number, None)
            moved = next(value for name, value in op.operand_items() if name != op.writes)
            start, end = space_of(moved.type), space_of(stmt.target.type)
            assert start is not None and end is not None
            found = (self.names[moved], start.value, end.value, f"{edge.src} -> {edge.dst}", edge.engine)
            found = (*found, moved.dtype.name, stmt.target.dtype.name)
            stated = None
            if move is not None:
                stated = (move.value, move.source, move.target, move.edge, move.engine, move.dtype, move.to_dtype)
            if stated != found:
                self.differs(f"what {op.qualified_name} moves", stmt, stated, found)
        for number in claimed:
            self.differs(f"statement {number}", self.statements.get(number), "a move", "none")

    def bounds(self, bounds: Bounds) -> None:
        """The accesses are those that the certificate knows; it may claim less of them than holds, and not more."""
        claimed = [(bound.statement, bound.box, bound.dims) for bound in self.claim.bounds]
        found = [(self.live.begins[bound.stmt], bound.box, bound.dims) for bound in bounds.found]
        self.notes.count += len(found)
        if len(claimed) != len(found):
            self.differs("how many accesses there are", None, len(claimed), len(found))
            return
        for one, two, bound in zip(claimed, found, bounds.found, strict=True):
            weaker = len(one[2]) == len(two[2]) and all(
                STRENGTH.get(said, 3) <= STRENGTH[holds] for said, holds in zip(one[2], two[2], strict=True)
            )
            if one[:2] != two[:2] or not weaker:
                self.differs(bound.what, bound.stmt, one[1:], two[1:])

    def peaks(self, pieces: dict[str, list[Piece]]) -> None:
        """No memory is filled further than claimed, and no plan needs as little as claimed to be impossible."""
        claimed = {peak.memory: peak for peak in self.claim.peaks}
        for memory, peak in peaks_of(pieces).items():
            self.notes.count += 1
            stated = claimed.pop(memory, None)
            if stated is None or stated.bytes != peak.nbytes:
                self.differs(f"how far {memory} is filled", None, None if stated is None else stated.bytes, peak.nbytes)
            elif stated.bound > peak.bound:
                self.differs(f"what {memory} must hold at least", None, stated.bound, peak.bound)
        for memory, stated in claimed.items():
            self.differs(f"the memory {memory}", None, stated.bytes, 0)

    def text(self) -> None:
        found, lines = digests(self.function, self.names), [None, *self.statements.values()]
        for index, digest in enumerate(found):
            if index >= len(self.claim.digests) or digest != self.claim.digests[index]:
                stmt = lines[index]
                span = self.function.span if stmt is None else stmt.span
                what = f"the head of {self.function.name}" if stmt is None else f"statement {self.live.begins[stmt]}"
                message = f"the certificate was written for another program: {what} differs"
                self.notes.fail("program", message, span)
                return
        if len(found) != len(self.claim.digests):
            self.notes.fail("program", "the certificate was written for a longer program", self.function.span)


def _within(needed: list[tuple[int, int]], tile: TileClaim) -> bool:
    """Whether every stretch in which the tile is needed lies in one that the certificate states."""
    stated = sorted(tile.live)
    return all(any(first <= begin and end <= last for first, last in stated) for begin, end in needed)
