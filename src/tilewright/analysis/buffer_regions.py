"""How large each buffer has to be: the exact box of what a program touches, seen from where the buffer is allocated.

    for i in serial(0, 4):                  B: (64) -> (8), from i * 8
        B = alloc([64])                     (i is fixed where B exists: it may be in the minimum, never in the extent;
        for j in serial(0, 8):               j is relaxed: all its trips count)
            B[i * 8 + j] = 1.0

`plan_buffers` decides and says why; `passes/loop/compact_buffers` rewrites. A buffer whose address is taken, that has
another name, or that a block says it touches whatever its body does, stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tilewright.analysis.loop_sets import Encoder
from tilewright.analysis.region_lines import extent_of, lines_of, plain_lines
from tilewright.analysis.scalar_ranges import Facts, Range, range_of, trip_range
from tilewright.ir.buffers import AddressOf, IfThenElse, Load, VectorType, buffer_type
from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.loop_level import Alias, Allocate, ComputeBlock, Launch, Loop, LoopFunction, LoopKind, OpCall, Store
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Expr, Scalar, Shape, Value, constant_value
from tilewright.ir.types import ScalarType

if TYPE_CHECKING:
    from tilewright.analysis.region_lines import Line

Frame = tuple["Known", ...]


@dataclass(frozen=True, slots=True)
class Known:
    """One fact that holds at a statement: a loop's variable, a name, or a condition that holds (or does not)."""

    value: Value | None
    source: Loop | Launch | Let | Scalar
    holds: bool = True

    @property
    def shared(self) -> bool:
        """Whether other threads run with other values at the same time, and may see the same memory."""
        loop = self.source
        return isinstance(loop, Launch) or (isinstance(loop, Loop) and loop.kind is LoopKind.THREAD)


@dataclass(frozen=True, slots=True)
class Access:
    """The box of `extents` elements at `offsets`, under `frame`."""

    offsets: Shape
    extents: Shape
    frame: Frame


@dataclass(frozen=True, slots=True)
class Compaction:
    """What becomes of one buffer: its new shape and the old index of its new first element. `why` it stays, else ''."""

    buffer: Value
    shape: Shape
    minima: Shape
    why: str = ""

    @property
    def changes(self) -> bool:
        return self.shape != buffer_type(self.buffer).shape or any(least != 0 for least in self.minima)

    def __str__(self) -> str:
        old = buffer_type(self.buffer).shape
        return f"{self.buffer.name}: {old} -> {self.shape} from {self.minima}{self.why and '; ' + self.why}"


def plan_buffers(function: LoopFunction, strict: bool = True) -> list[Compaction]:
    """What becomes of each buffer that is allocated, in order. `strict`: what lies outside of a buffer does not count;
    otherwise the box covers all accesses, and may be larger than the buffer was."""
    found = _Collector(function)
    return [_planned(buffer, frame, found, strict) for buffer, frame in found.allocated.items()]


class _Collector:
    """Every access to a buffer, with what is known there."""

    def __init__(self, function: LoopFunction) -> None:
        self.allocated: dict[Value, Frame] = {}
        self.accesses: dict[Value, list[Access]] = {}
        self.whole: dict[Value, str] = {}
        self.ranges: dict[Value, Range] = dict.fromkeys(function.symbols, (0, None))
        self.named: dict[Value, Scalar] = {}
        free = (*function.symbols, *function.params)
        self.free = {v: f"p{n}" for n, v in enumerate(free) if isinstance(v.type, ScalarType) and v.dtype is INDEX}
        self.block(function.body, ())

    def block(self, block: Block, frame: Frame) -> None:
        for stmt in block:
            if isinstance(stmt, Let):
                frame = self.let(stmt, frame)
            else:
                self.stmt(stmt, frame)

    def let(self, stmt: Let, frame: Frame) -> Frame:
        assert not isinstance(stmt.value, Op)
        self.scalar(stmt.value, frame)
        if stmt.target.dtype is INDEX and isinstance(stmt.target.type, ScalarType):
            self.ranges[stmt.target] = range_of(stmt.value, Facts(self.ranges))
            return (*frame, Known(stmt.target, stmt))
        if stmt.target.dtype is BOOL or isinstance(stmt.target.type, VectorType):
            self.named[stmt.target] = stmt.value
        return frame

    def stmt(self, stmt: Stmt, frame: Frame) -> None:
        for scalar in _own_scalars(stmt):
            self.scalar(scalar, frame)
        match stmt:
            case Allocate():
                self.allocated[stmt.buffer] = frame
            case Store():
                self.access(stmt.buffer, stmt.indices, frame)
            case Alias():
                self.whole[stmt.source] = "it has another name"
            case OpCall():
                for region in (*(region for _, region in stmt.bindings), *([stmt.result] if stmt.result else [])):
                    self.accesses.setdefault(region.buffer, []).append(Access(region.offsets, region.extents, frame))
            case If():
                self.block(stmt.then, (*frame, Known(None, stmt.condition)))
                self.block(stmt.otherwise, (*frame, Known(None, stmt.condition, False)))
            case Loop() | Launch():
                self.loop(stmt, frame)
            case ComputeBlock():
                self.compute(stmt, frame)
            case _:
                for block in stmt.blocks():
                    self.block(block, frame)

    def loop(self, loop: Loop | Launch, frame: Frame) -> None:
        if isinstance(loop, Loop):
            self.ranges[loop.iv] = trip_range(loop.start, loop.stop, loop.step, Facts(self.ranges))
        elif loop.extent is not None:
            self.ranges[loop.iv] = trip_range(0, loop.extent, 1, Facts(self.ranges))
        else:
            self.ranges[loop.iv] = (0, None)
        self.block(loop.body, (*frame, Known(loop.iv, loop)))

    def compute(self, stmt: ComputeBlock, frame: Frame) -> None:
        inner = frame if constant_value(stmt.where) else (*frame, Known(None, stmt.where))
        if any(key.startswith("explicit_") for key, _ in stmt.annotations):
            for region in (*stmt.reads, *stmt.writes):
                self.whole[region.buffer] = f"block {stmt.name} states what it touches"
        for match in stmt.matches:
            self.whole[match.source.buffer] = f"block {stmt.name} has another name for it"
        for alloc in stmt.allocs:
            self.allocated[alloc.buffer] = inner
        self.block(stmt.body, inner)

    def access(self, buffer: Value, indices: Shape, frame: Frame) -> None:
        self.accesses.setdefault(buffer, []).append(Access(indices, (1,) * len(indices), frame))

    def scalar(self, scalar: Scalar, frame: Frame) -> None:
        if isinstance(scalar, int):
            return
        if isinstance(scalar, Load):
            self.access(scalar.buffer, scalar.indices, frame)
        elif isinstance(scalar, AddressOf):
            self.whole[scalar.buffer] = "its address is taken"
        elif isinstance(scalar, IfThenElse):
            self.scalar(scalar.condition, frame)
            self.scalar(scalar.then, (*frame, Known(None, scalar.condition)))
            self.scalar(scalar.otherwise, (*frame, Known(None, scalar.condition, False)))
            return
        for child in scalar.children():
            self.scalar(child, frame)


def _own_scalars(stmt: Stmt) -> Iterator[Scalar]:
    """The expressions in the fields of a statement; regions that a block only declares are no accesses."""
    if isinstance(stmt, ComputeBlock):
        yield stmt.where
        yield from (part for match in stmt.matches for part in (*match.source.offsets, *match.source.extents))
        return
    if isinstance(stmt, OpCall):
        regions = [region for _, region in stmt.bindings] + ([stmt.result] if stmt.result else [])
        yield from (part for region in regions for part in (*region.offsets, *region.extents))
        return
    blocks = stmt.blocks()
    for name in stmt.node_fields:
        held = getattr(stmt, name)
        if isinstance(held, Expr):
            yield held
        elif isinstance(held, tuple) and not any(held is block for block in blocks):
            yield from (part for part in cast("tuple[object, ...]", held) if isinstance(part, Expr))


# --- one buffer ---------------------------------------------------------------------------------------------------
def _planned(buffer: Value, frame: Frame, found: _Collector, strict: bool) -> Compaction:
    old = buffer_type(buffer).shape
    origin = (0,) * len(old)
    accesses = found.accesses.get(buffer, [])
    if buffer in found.whole or not accesses:
        return Compaction(buffer, old, origin, found.whole.get(buffer, "nothing touches it"))
    if not old:
        return Compaction(buffer, old, origin)
    lines, values = _lines(buffer, frame, accesses, found, strict)
    if not lines:
        if strict and _lines(buffer, frame, accesses, found, False)[0]:
            return Compaction(buffer, old, origin, "all that touches it is out of bounds")
        return Compaction(buffer, (1,) * len(old), origin)
    made = [extent_of(line, old[dim], values, strict) for dim, line in enumerate(zip(*lines, strict=True))]
    why = "; ".join(f"dim {dim} {why}" for dim, (_, _, why) in enumerate(made) if why)
    return Compaction(buffer, tuple(extent for extent, _, _ in made), tuple(least for _, least, _ in made), why)


def _lines(
    buffer: Value, fixed: Frame, accesses: list[Access], found: _Collector, strict: bool
) -> tuple[list[tuple[Line, ...]], dict[str, Value]]:
    """What each access touches, dimension by dimension, and the values of the parameters of the sets."""
    values: dict[str, Value] = {}
    parts: dict[tuple[Line, ...], None] = {}
    texts: dict[str, None] = {}
    shape = buffer_type(buffer).shape if strict else None
    for access in accesses:
        trips = _trips(access.frame, set(_fixed(access.frame[: len(fixed)])))
        plain = None if trips is None else plain_lines(access.offsets, access.extents, shape, trips)
        if plain is not None:
            parts[plain] = None
            continue
        text, named = _text(buffer, len(fixed), access, found, strict)
        texts[text] = None
        values |= named
    found_lines = [*parts, *(lines for text in texts if (lines := lines_of(text)) is not None)]
    return found_lines, values


def _trips(frame: Frame, fixed: set[Value]) -> dict[Value, tuple[int, int]] | None:
    """The first and last value of each relaxed loop. None where a statement may not run, or not for each of them."""
    trips: dict[Value, tuple[int, int]] = {}
    for known in frame:
        source = known.source
        if isinstance(source, Let):
            continue
        if isinstance(source, Loop):
            bounds = source.start, source.stop, source.step
        elif isinstance(source, Launch):
            bounds = 0, source.extent, 1
        else:
            return None
        start, stop, step = bounds
        if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step):
            return None
        run = range(start, stop, step)
        if not run:
            return None
        if known.value is not None and known.value not in fixed:
            trips[known.value] = run[0], run[-1]
    return trips


def _text(buffer: Value, fixed: int, access: Access, found: _Collector, strict: bool) -> tuple[str, dict[str, Value]]:
    """The set of one access as text, the same for accesses of the same shape, and the values of its parameters."""
    names = {known.value: f"v{at}" for at, known in enumerate(access.frame) if known.value is not None}
    encoder = Encoder({**found.free, **names}, found.ranges, found.named)
    terms: list[str] = []
    for dim, (offset, extent) in enumerate(zip(access.offsets, access.extents, strict=True)):
        start = encoder.term(offset)
        same = extent == 1 and isinstance(extent, int)
        terms.append(f"x{dim} = {start}" if same else f"{start} <= x{dim} < {start} + {encoder.term(extent)}")
        if strict:
            terms.append(f"0 <= x{dim} < {encoder.term(buffer_type(buffer).shape[dim])}")
    for at in reversed(range(len(access.frame))):
        known = access.frame[at]
        if not isinstance(known.source, Let) or f"v{at}" in encoder.used:
            terms.append(_constraint(known, encoder))
    outer = {names[value] for value in _fixed(access.frame[:fixed])} | set(found.free.values())
    params = sorted(name for name in encoder.used if name in outer)
    relaxed = sorted(name for name in encoder.used if name not in outer) + encoder.fresh
    body = " and ".join([*terms, *encoder.facts])
    if relaxed:
        body = f"exists ({', '.join(relaxed)} : {body})"
    index = ", ".join(f"x{dim}" for dim in range(len(access.offsets)))
    return f"[{', '.join(params)}] -> {{ [{index}] : {body} }}", {name: encoder.used[name] for name in params}


def _fixed(frame: Frame) -> list[Value]:
    """The values that are one number while a buffer exists, for all threads that see it: no thread's own number, and no
    name given where threads run apart."""
    fixed: list[Value] = []
    apart = False
    for known in frame:
        apart = apart or known.shared
        if known.value is not None and not known.shared and not (apart and isinstance(known.source, Let)):
            fixed.append(known.value)
    return fixed


def _constraint(known: Known, encoder: Encoder) -> str:
    source = known.source
    if known.value is None:
        assert isinstance(source, (int, Expr))
        return encoder.formula(source, known.holds)
    name = encoder.term(known.value)
    if isinstance(source, Let):
        assert not isinstance(source.value, Op)
        return f"{name} = {encoder.term(source.value)}"
    if isinstance(source, Launch):
        return f"{name} >= 0" if source.extent is None else f"0 <= {name} < {encoder.term(source.extent)}"
    assert isinstance(source, Loop)
    if not isinstance(source.step, int) or source.step == 0:
        return f"{name} = {name}"
    start, stop = encoder.term(source.start), encoder.term(source.stop)
    if source.step > 0:
        bounds, distance = f"{start} <= {name} < {stop}", f"({name} - {start})"
    else:
        bounds, distance = f"{stop} < {name} <= {start}", f"({start} - {name})"
    return bounds if abs(source.step) == 1 else f"{bounds} and {distance} mod {abs(source.step)} = 0"
