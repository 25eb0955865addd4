"""Innermost loops in vectors.

    for j in serial(0, 100):              for j in serial(0, 96, 8):
        y[0, j] = exp(x[0, j])                for l in vectorized(0, 8):
                                                  y[0, j + l] = exp(x[0, j + l])
                                          for j in serial(96, 100):
                                              y[0, j] = exp(x[0, j])

A vectorized loop's trips run side by side, one in each lane; what is allocated in it each lane has for itself. Where
the machine can leave lanes out, the elements left over are one vectorized loop with fewer trips than there are lanes
(`lanes` in its annotations).

A reduction in the loop gets `parts` totals for each lane, which are registers: they are combined pairwise, then the
lanes are, then the result is combined with what was there. Its elements are therefore not taken in index order.

A loop stays serial where one trip may need what another one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.analysis.loop_accesses import accesses_in, loads_in
from tilewright.ir.buffers import BufferType, Load
from tilewright.ir.dtypes import INDEX, widened
from tilewright.ir.loop_level import Allocate, Loop, LoopFunction, LoopKind, Store
from tilewright.ir.loop_rewrite import substituted
from tilewright.ir.nodes import Block, Stmt
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Expr,
    Scalar,
    Select,
    Shape,
    Unary,
    UnaryKind,
    Value,
    binary,
    constant,
    linear_terms,
    values_in,
)
from tilewright.ir.types import ScalarType
from tilewright.ops.common import identity

PARTS = 4
"""Totals per lane: an addition takes so many times as long as the machine needs to begin the next one."""
LIGHT = 12
"""Operations of a trip up to which it is worth its text to have several totals: a longer trip hides the additions."""
POLYNOMIALS = (UnaryKind.EXP, UnaryKind.LOG)
LONG = 20
"""Operations of a polynomial."""
COMBINES = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.MAX)
REGISTERS = (("registers", True),)
"""Annotation of an allocation that is never in memory: its elements are found by numbers and lanes."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """What a machine has: vectors of so many bytes, and whether lanes can be left out of a vector."""

    nbytes: int
    masked: bool


def vectorize(function: LoopFunction, vectors: Vectors) -> LoopFunction:
    """The function with its innermost loops from 0 in steps of 1 in vectors, as far as they hold nothing but stores."""
    body = _block(function.body, vectors)
    return LoopFunction(function.name, function.params, body, function.span)


def _block(block: Block, vectors: Vectors) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        if not isinstance(stmt, Loop):
            out.append(stmt)
        elif not all(isinstance(inner, (Store, Allocate)) for inner in stmt.body):
            out.append(stmt.replace(body=_block(stmt.body, vectors)))
        elif (stmt.start, stmt.step, stmt.kind) == (0, 1, LoopKind.SERIAL):
            out += _Innermost(stmt, vectors).loops()
        else:
            out.append(stmt)
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Total:
    """A reduction in a loop: `store` combines what it writes with one more element."""

    store: Store
    kind: BinaryKind


class _Innermost:
    """One loop without loops in it."""

    def __init__(self, loop: Loop, vectors: Vectors) -> None:
        self.loop = loop
        self.vectors = vectors
        self.stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
        self.private = {stmt.buffer for stmt in loop.body if isinstance(stmt, Allocate)}
        self.totals = list(self.found_totals())

    def loops(self) -> list[Stmt]:
        if not self.independent():
            return [self.loop]
        loop, lanes = self.loop, self.lanes()
        if isinstance(loop.stop, int):
            while lanes > loop.stop:
                lanes //= 2
        if lanes <= 1:
            return [loop]
        if not self.totals:
            full = _rounded_down(loop.stop, lanes)
            return [*self.steps(0, full, lanes), *self.rest(full, lanes)]
        return self.reduction(lanes)

    # --- what can be done -----------------------------------------------------------------------------------------
    def found_totals(self) -> Iterator[Total]:
        iv = self.loop.iv
        for store in self.stores:
            value = store.value
            if store.buffer in self.private or iv in (v for index in store.indices for v in _values(index)):
                continue
            touched = sum(a.buffer is store.buffer for stmt in self.stores for a in accesses_in(stmt))
            own = Load(store.buffer, store.indices)
            if touched == 2 and isinstance(value, Binary) and value.kind in COMBINES and value.lhs == own:
                yield Total(store, value.kind)

    def independent(self) -> bool:
        """Whether no trip needs what another one does, totals aside."""
        iv = self.loop.iv
        totals = {total.store.buffer for total in self.totals}
        accesses = [access for store in self.stores for access in accesses_in(store)]
        for buffer in {store.buffer for store in self.stores} - self.private - totals:
            own = [access.indices for access in accesses if access.buffer is buffer]
            if not any(_apart(column, iv) for column in zip(*own, strict=True)):
                return False
        return True

    def lanes(self) -> int:
        """How many lanes hold one element each of every dtype that is computed with."""
        dtypes = {store.buffer.dtype for store in self.stores}
        dtypes |= {load.buffer.dtype for store in self.stores for load in loads_in(store.value)}
        dtypes |= {part.dtype for store in self.stores for part in _casts(store.value)}
        return self.vectors.nbytes // max(widened(dtype).nbytes for dtype in dtypes)

    # --- loops ----------------------------------------------------------------------------------------------------
    def trip(self, index: Scalar, totals: Mapping[Value, tuple[Value, Shape]]) -> Block:
        """The body at `index`, with the totals kept elsewhere."""
        iv = self.loop.iv
        body = self.loop.body
        fresh = {s.buffer: Value(s.buffer.name, s.buffer.type) for s in body if isinstance(s, Allocate)}
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, Allocate):
                out.append(stmt.replace(buffer=fresh[stmt.buffer]))
                continue
            if isinstance(stmt, Store) and stmt.buffer in totals:
                value = stmt.value
                assert isinstance(value, Binary)
                buffer, where = totals[stmt.buffer]
                stmt = Store(
                    buffer, where, Binary(value.kind, Load(buffer, where), value.rhs, value.dtype), span=stmt.span
                )
            out.append(substituted(stmt, lambda v: index if v is iv else fresh.get(v, v)))
        return tuple(out)

    def steps(
        self, start: Scalar, stop: Scalar, lanes: int, parts: int = 1, totals: dict[Value, Value] | None = None
    ) -> list[Stmt]:
        """Full vectors, `parts` in a trip."""
        if start == stop:
            return []
        j, lane, u = _index("j"), _index("l"), _index("u")
        part: Scalar = u if parts > 1 else 0
        kept = {old: (new, (part, lane)) for old, new in (totals or {}).items()}
        at = j + lane if parts == 1 else j + u * lanes + lane
        body: Block = (_lanes(lane, 0, lanes, self.trip(at, kept)),)
        if parts > 1:
            body = (Loop(u, 0, parts, 1, body, LoopKind.UNROLLED),)
        return [Loop(j, start, stop, lanes * parts, body)]

    def rest(self, full: Scalar, lanes: int, totals: dict[Value, Value] | None = None) -> list[Stmt]:
        """The elements after the full vectors: in some lanes, or one after the other."""
        stop = self.loop.stop
        if full == stop:
            return []
        if self.vectors.masked and self.runs_along():
            lane = _index("l")
            kept = {old: (new, (0, lane - full)) for old, new in (totals or {}).items()}
            return [_lanes(lane, full, stop, self.trip(lane, kept), lanes)]
        if totals is not None:
            return []
        return self.singles(full)

    def singles(self, full: Scalar) -> list[Stmt]:
        j = _index("j")
        return [Loop(j, full, self.loop.stop, 1, self.trip(j, {}))]

    def runs_along(self) -> bool:
        """Whether every access outside of registers moves by one element in its last dimension, or not at all."""
        iv = self.loop.iv
        accesses = [access for store in self.stores for access in accesses_in(store)]
        for access in accesses:
            steps = [linear_terms(index)[0].get(iv, 0) for index in access.indices]
            if access.buffer not in self.private and (any(steps[:-1]) or steps[-1] not in (0, 1)):
                return False
        return True

    def reduction(self, lanes: int) -> list[Stmt]:
        """Totals in registers, then combined."""
        stop = self.loop.stop
        light = sum(_size(store.value) for store in self.stores) <= LIGHT
        many = light and (not isinstance(stop, int) or stop >= 2 * lanes * PARTS)
        parts = PARTS if many else 1
        own = {
            total.store.buffer: Value("totals", BufferType((parts, lanes), total.store.buffer.dtype))
            for total in self.totals
        }
        out: list[Stmt] = [Allocate(buffer, REGISTERS) for buffer in own.values()]
        for total in self.totals:
            buffer = own[total.store.buffer]
            start = constant(identity(total.kind, buffer.dtype), buffer.dtype)
            for part in range(parts):
                lane = _index("l")
                out.append(_lanes(lane, 0, lanes, (Store(buffer, (part, lane), start),)))
        begin, full = _rounded_down(stop, lanes * parts), _rounded_down(stop, lanes)
        out += self.steps(0, begin, lanes, parts, own)
        for total in self.totals:
            distance = parts // 2
            while distance:
                out += [_combined(total, own, part, distance, lanes, 0) for part in range(distance)]
                distance //= 2
        if parts > 1:
            out += self.steps(begin, full, lanes, 1, own)
        after = self.rest(full, lanes, own)
        out += after
        for total in self.totals:
            width = lanes // 2
            while width:
                out.append(_combined(total, own, 0, 0, width, width))
                width //= 2
            store = total.store
            value = binary(total.kind, Load(store.buffer, store.indices), Load(own[store.buffer], (0, 0)))
            out.append(store.replace(value=value))
        return out if after or full == stop else [*out, *self.singles(full)]


def _combined(total: Total, own: dict[Value, Value], part: int, distance: int, lanes: int, beyond: int) -> Stmt:
    """The first `lanes` lanes of a part, combined with those of the part `distance` on, or with those `beyond`."""
    buffer, lane = own[total.store.buffer], _index("l")
    other = Load(buffer, (part + distance, lane + beyond))
    value = binary(total.kind, Load(buffer, (part, lane)), other)
    return _lanes(lane, 0, lanes, (Store(buffer, (part, lane), value),))


def _lanes(lane: Value, start: Scalar, stop: Scalar, body: Block, lanes: int | None = None) -> Loop:
    annotations = () if lanes is None else (("lanes", lanes),)
    return Loop(lane, start, stop, 1, body, LoopKind.VECTORIZED, None, annotations)


def _rounded_down(stop: Scalar, unit: int) -> Scalar:
    return binary(BinaryKind.MUL, binary(BinaryKind.FLOORDIV, stop, unit), unit)


def _index(name: str) -> Value:
    return Value(name, ScalarType(INDEX))


def _values(scalar: Scalar) -> Iterator[Value]:
    return iter(()) if isinstance(scalar, int) else values_in(scalar)


def _apart(indices: Sequence[Scalar], iv: Value) -> bool:
    """Whether the indices, those of all accesses in one dimension, are one, and another in each trip."""
    first = indices[0]
    return all(index == first for index in indices) and linear_terms(first)[0].get(iv, 0) != 0


def _parts(scalar: Scalar) -> Iterator[Expr]:
    """The operations of an expression, each once; those inside of indices are none."""
    todo = [scalar]
    seen: set[int] = set()
    while todo:
        part = todo.pop()
        if isinstance(part, (Binary, Unary, Select)) and id(part) not in seen:
            seen.add(id(part))
            yield part
            todo += part.children()


def _casts(scalar: Scalar) -> Iterator[Expr]:
    return (part for part in _parts(scalar) if isinstance(part, Unary) and part.kind is UnaryKind.CAST)


def _size(scalar: Scalar) -> int:
    """About how many instructions an expression takes."""
    return sum(LONG if isinstance(part, Unary) and part.kind in POLYNOMIALS else 1 for part in _parts(scalar))
