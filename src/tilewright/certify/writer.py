"""Writes the certificate of a placed program: from the analyses that the compiler itself goes by.

Live ranges, edges, engines and hazards come from `analysis`; the checker derives its own and compares. Bounds, which
no pass needs, are worked out here as the checker does.
"""

from __future__ import annotations

from tilewright.analysis.cost import transfer_ends
from tilewright.analysis.footprint import footprint
from tilewright.analysis.hazards import hazards
from tilewright.analysis.liveness import Liveness, live_ranges
from tilewright.certify.bounds import Bounds, check_bounds
from tilewright.certify.certificate import (
    FORMAT,
    BoundClaim,
    Certificate,
    FunctionClaim,
    HazardClaim,
    MoveClaim,
    PeakClaim,
    TileClaim,
)
from tilewright.certify.render import Names, digests
from tilewright.certify.sequence import callees_first
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.targets import Target


def certify(program: Program, target: Target) -> Certificate:
    """The certificate of `program`, which is placed for `target`."""
    done: dict[str, tuple[Function, Bounds]] = {}
    claims: dict[str, FunctionClaim] = {}
    for function in callees_first(program):
        claims[function.name] = _claim(function, target, done)
    functions = tuple(claims[function.name] for function in program.functions)
    return Certificate(FORMAT, target.name, target.fingerprint, program.entry, functions)


def _claim(function: Function, target: Target, done: dict[str, tuple[Function, Bounds]]) -> FunctionClaim:
    live = live_ranges(function)
    names = Names(function, live.begins)
    bounds = check_bounds(function, names, done)
    done[function.name] = (function, bounds)
    placed = function.kind is FunctionKind.INCORE
    found = tuple(
        BoundClaim(live.begins[bound.stmt], bound.stmt.span.line, bound.what, bound.box, bound.dims)
        for bound in bounds.found
    )
    tiles = _tiles(function, target, live, names) if placed else ()
    return FunctionClaim(
        function.name,
        tiles,
        _moves(function, target, live, names),
        found,
        _peaks(function, target, live) if placed else (),
        _hazards(function, target, live) if placed else (),
        tuple(str(assumption) for assumption in bounds.assumptions),
        tuple(digests(function, names)),
    )


def _made(function: Function) -> list[tuple[Value, Stmt]]:
    """Every tile, with the statement that makes it."""
    return [
        (value, stmt)
        for stmt in function.walk()
        for value in (*stmt.block_args(), *stmt.defs())
        if isinstance(value.type, TileType)
    ]


def _tiles(function: Function, target: Target, live: Liveness, names: Names) -> tuple[TileClaim, ...]:
    found: list[TileClaim] = []
    for value, stmt in _made(function):
        kind = value.type
        assert isinstance(kind, TileType) and kind.space is not None and kind.memref is not None
        memref, memory = kind.memref, target.memory(kind.space)
        stretches = tuple((first // 2, last // 2) for first, last in live.ranges[value])
        nbytes = footprint(kind, target) if memref.nbytes is None else memref.nbytes
        found.append(
            TileClaim(
                value.name, names[value], stmt.span.line, kind.space.value, memory.name, memref.name, memref.addr,
                nbytes, stretches,
            )
        )  # fmt: skip
    return tuple(found)


def _moves(function: Function, target: Target, live: Liveness, names: Names) -> tuple[MoveClaim, ...]:
    found: list[MoveClaim] = []
    for stmt in function.walk():
        op = stmt.value if isinstance(stmt, Let) else None
        if not isinstance(op, Op) or not isinstance(stmt, Let) or op.view_of is not None:
            continue
        ends = transfer_ends(op, stmt.target.type)
        edge = None if ends is None else target.edge(*ends)
        if ends is None or edge is None:
            continue
        moved = next(value for name, value in op.operand_items() if name != op.writes)
        found.append(
            MoveClaim(
                live.begins[stmt], stmt.span.line, op.qualified_name, names[moved], ends[0].value, ends[1].value,
                f"{edge.src} -> {edge.dst}", edge.engine, moved.dtype.name, stmt.target.dtype.name,
            )
        )  # fmt: skip
    return tuple(found)


def _peaks(function: Function, target: Target, live: Liveness) -> tuple[PeakClaim, ...]:
    """Up to where each memory is filled; at least so much is needed as buffers are alive together."""
    ends: dict[str, int] = {}
    capacities: dict[str, int | None] = {}
    changes: dict[str, list[tuple[int, int]]] = {}
    buffers: dict[tuple[str, str], list[tuple[int, int]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for value, _ in _made(function):
        kind = value.type
        assert isinstance(kind, TileType) and kind.space is not None and kind.memref is not None
        if kind.memref.addr is None or kind.memref.nbytes is None:
            continue
        memory = target.memory(kind.space)
        capacities[memory.name] = memory.capacity
        ends[memory.name] = max(ends.get(memory.name, 0), kind.memref.addr + kind.memref.nbytes)
        key = (memory.name, kind.memref.name)
        buffers.setdefault(key, []).extend(live.ranges[value])
        sizes[key] = kind.memref.nbytes
    for (memory, name), ranges in buffers.items():
        for first, last in _apart(ranges):
            changes.setdefault(memory, []).extend(((first, sizes[memory, name]), (last + 1, -sizes[memory, name])))
    return tuple(PeakClaim(m, ends[m], _highest(changes.get(m, [])), capacities[m]) for m in ends)


def _apart(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


def _highest(changes: list[tuple[int, int]]) -> int:
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _hazards(function: Function, target: Target, live: Liveness) -> tuple[HazardClaim, ...]:
    return tuple(
        HazardClaim(
            live.begins[h.before], live.begins[h.after], h.before_engine, h.after_engine, h.kind, h.memory,
            None if h.loop is None else live.begins[h.loop], h.distance,
        )
        for h in hazards(function, target)
    )  # fmt: skip
