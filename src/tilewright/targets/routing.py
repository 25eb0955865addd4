"""Routes: the cheapest legal path of a tile through a target's memories.

A machine has few paths between its memories, and a compiler that emits a move along one that is not there is refused
by the assembler, much later and much less clearly. So every move is asked for here. Paths are found over states
(memory, element type): a conversion is a property of an edge, and happens at most once.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from tilewright.errors import NoRouteError, Span
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.targets.parts import DDR, Edge, Hop, Route

Roles = Mapping[MemorySpace, str]
Step = tuple[Edge, DType, DType]
"""An edge, the element type that goes in, the one that comes out."""


def find_route(
    edges: Sequence[Edge],
    roles: Roles,
    ends: tuple[MemorySpace, MemorySpace],
    dtypes: tuple[DType, DType],
    nbytes: int,
) -> Route | None:
    """The cheapest path of `nbytes` (of the first of `dtypes`) between two roles; see `Target.route`."""
    if ends[0] not in roles or ends[1] not in roles:
        return None
    (dtype, to_dtype), goal = dtypes, (roles[ends[1]], dtypes[1])
    if (roles[ends[0]], dtype) == goal:
        return Route((), 0.0)
    # Ordered by cost, then hops, then the names passed through, so that the answer never depends on the file's order.
    queue: list[tuple[float, int, tuple[str, ...], int]] = [(0.0, 0, (roles[ends[0]],), 0)]
    paths: list[tuple[Step, ...]] = [()]
    done: set[tuple[str, DType]] = set()
    while queue:
        cost, hops, names, index = heapq.heappop(queue)
        now = paths[index][-1][2] if hops else dtype
        if (names[-1], now) == goal:
            return Route(_hops(roles, ends, paths[index]), cost)
        if (names[-1], now) in done:
            continue
        done.add((names[-1], now))
        price = nbytes * now.bits / dtype.bits
        for edge in edges:
            if edge.src != names[-1] or edge.dst == edge.src:
                continue
            for after in (now,) if now is to_dtype else (now, to_dtype):
                if edge.carries(now, after):
                    paths.append((*paths[index], (edge, now, after)))
                    heapq.heappush(queue, (cost + edge.cycles(price), hops + 1, (*names, edge.dst), len(paths) - 1))
    return None


def _hops(roles: Roles, ends: tuple[MemorySpace, MemorySpace], path: tuple[Step, ...]) -> tuple[Hop, ...]:
    """The steps as moves between roles. A memory on the way that plays several roles goes by its first."""
    hops: list[Hop] = []
    at = ends[0]
    for position, (edge, dtype, to_dtype) in enumerate(path):
        to = ends[1] if position == len(path) - 1 else roles_of(roles, edge.dst)[0]
        hops.append(Hop(at, to, edge, dtype, to_dtype))
        at = to
    return tuple(hops)


def roles_of(roles: Roles, memory: str) -> tuple[MemorySpace, ...]:
    """The roles that `memory` plays, in the language's order."""
    return tuple(space for space in MemorySpace if roles.get(space) == memory)


def edges_text(edges: Sequence[Edge], roles: Roles) -> str:
    """The edges that exist, grouped by source, by role where a memory has just one."""

    def label(memory: str) -> str:
        plays = [space.value for space in roles_of(roles, memory)]
        return plays[0] if len(plays) == 1 else f"{memory} ({', '.join(plays)})" if plays else memory

    grouped: dict[str, list[str]] = {}
    for edge in edges:
        grouped.setdefault(edge.src, []).append(label(edge.dst))
    return "; ".join(f"{label(src)} -> {', '.join(to)}" for src, to in grouped.items())


def no_route(
    name: str,
    edges: Sequence[Edge],
    roles: Roles,
    ends: tuple[MemorySpace, MemorySpace],
    dtypes: tuple[DType | None, DType | None],
    *,
    producer: str | None = None,
    consumer: str | None = None,
    span: Span | None = None,
) -> NoRouteError:
    """The error for a move that no path serves. Not raised here: the caller knows where."""
    src, dst = ends
    dtype, to_dtype = dtypes
    made = f" ({producer})" if producer else ""
    used = f" ({consumer})" if consumer else ""
    change = f" -> {to_dtype}" if to_dtype is not None and to_dtype is not dtype else ""
    what = f" for {dtype}{change}" if dtype is not None else ""
    return NoRouteError(
        f"{name} has no route from {src.value}{made} to {dst.value}{used}{what}",
        span=span,
        required=f"a path from {src.value} to {dst.value}{what}",
        found="edges " + edges_text(edges, roles),
        help=_way_out(name, edges, roles, ends, dtypes),
    )


def _way_out(
    name: str,
    edges: Sequence[Edge],
    roles: Roles,
    ends: tuple[MemorySpace, MemorySpace],
    dtypes: tuple[DType | None, DType | None],
) -> str:
    """What the user can do: name the role, cast, reload from DDR, compute elsewhere."""
    for space in ends:
        if space not in roles:
            have = ", ".join(role.value for role in MemorySpace if role in roles)
            return f"{name} has no memory for {space.value}; it has {have}"
    dtype = dtypes[0]
    if dtype is not None:
        casts = sorted({to.name for edge in edges for (at, to) in edge.convert if at is dtype})
        by_name = {to.name: to for edge in edges for (_, to) in edge.convert}
        fits = [to for to in casts if find_route(edges, roles, ends, (dtype, by_name[to]), 1) is not None]
        if fits:
            return f"the way exists for {dtype} -> {' or '.join(fits)}: cast the value to that"
    if any(edge.src == DDR and edge.dst == roles[ends[1]] for edge in edges):
        return f"load it from DDR straight to {ends[1].value}, or compute it where {ends[1].value} can be reached"
    return f"compute the value in a space that reaches {ends[1].value}"
