"""Loop functions, as `vectorize` leaves them, as LLVM instructions.

    for j in serial(0, 96, 8):                 one loop; the address of x[i, 0] is computed before it
        for l in vectorized(0, 8):             8 lanes
            t[0, 0] = exp(x[i, j + l])         a register
            y[i, j + l] = t[0, 0] + 1          one store

A buffer of one element, and one that `vectorize` has said to be, is a register: loops carry it where their trips change
it. Other allocations lie in the scratch memory that the caller gives. In a trip each element is loaded once, and what
was stored is not loaded again. Elements that a loop does not move away from are loaded before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.analysis.loop_accesses import Access, accesses_in
from tilewright.codegen.native.arithmetic import Arithmetic
from tilewright.codegen.native.builder import Index
from tilewright.codegen.native.elements import Lanes, memory_type, register_type, tail_mask
from tilewright.codegen.native.scope import Place, Scope
from tilewright.ir.buffers import BufferType, Load, buffer_type
from tilewright.ir.dtypes import FP32, UINT8, UINT16, UINT32, UINT64
from tilewright.ir.loop_level import Allocate, Loop, LoopFunction, LoopKind, Store
from tilewright.ir.nodes import Stmt, walk
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Scalar,
    Select,
    Shape,
    Unary,
    UnaryKind,
    Value,
    binary,
    dtype_of,
    linear_terms,
    substitute,
    values_in,
)

ALIGNMENT = 64
_BITS = {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}
Key = tuple[Value, Shape]
Register = tuple[str, int]
"""The name, and how many lanes it has."""


def is_register(stmt: Allocate) -> bool:
    """Whether the buffer is never in memory."""
    return ("registers", True) in stmt.annotations or all(extent == 1 for extent in buffer_type(stmt.buffer).shape)


def scratch_plan(function: LoopFunction) -> tuple[dict[Value, int], int]:
    """Where each allocation lies in scratch memory, and how many bytes there are. Two that are used by different
    statements of the function's body, one all before the other, may share their place."""
    uses: dict[Value, list[int]] = {}
    for number, stmt in enumerate(function.body):
        for access in accesses_in(stmt):
            uses.setdefault(access.buffer, []).append(number)
    placed: list[tuple[int, int, list[int]]] = []
    offsets: dict[Value, int] = {}
    for stmt in walk(function.body):
        if not isinstance(stmt, Allocate) or is_register(stmt) or stmt.buffer not in uses:
            continue
        needed, own = _bytes_of(stmt.buffer), uses[stmt.buffer]
        offset = 0
        for begin, end, others in sorted(placed, key=lambda entry: entry[:2]):
            together = own[0] <= others[-1] and others[0] <= own[-1]
            if together and begin - offset < needed:
                offset = max(offset, end)
        offsets[stmt.buffer] = offset
        placed.append((offset, offset + needed, own))
    return offsets, max((end for _, end, _ in placed), default=0)


def _bytes_of(buffer: Value) -> int:
    kind = buffer_type(buffer)
    needed = kind.dtype.nbytes
    for extent in kind.shape:
        assert isinstance(extent, int)
        needed *= extent
    return -(-needed // ALIGNMENT) * ALIGNMENT


def scalars_of(function: LoopFunction) -> list[Value]:
    """The numbers that the loops read: bounds, parts of indices, operands."""
    found: dict[Value, None] = {}
    for stmt in walk(function.body):
        if isinstance(stmt, Loop):
            found.update(dict.fromkeys(stmt.uses()))
        elif isinstance(stmt, Store):
            found.update(
                dict.fromkeys(v for s in (*stmt.indices, stmt.value) if not isinstance(s, int) for v in values_in(s))
            )
    return [value for value in found if not isinstance(value.type, BufferType)]


@dataclass(slots=True)
class _Moving:
    """An access in a loop: the address where the loop's variables are 0, and the step of each in elements."""

    pointer: str
    steps: dict[Value, Index]


@dataclass(slots=True)
class LoopEmitter:
    """Emits one loop function. `places`: where its parameters lie; `classes`: which of them may overlap."""

    scope: Scope
    places: dict[Value, Place]
    scratch: str
    offsets: dict[Value, int]
    classes: dict[Value, object]
    registers: dict[Key, Register] = field(default_factory=dict[Key, Register])
    in_registers: set[Value] = field(default_factory=set[Value])
    numbers: dict[Value, int] = field(default_factory=dict[Value, int])
    """variables of unrolled loops"""
    lane: tuple[Value, Scalar] | None = None
    """the variable of the vectorized loop, and its first value"""
    moving: dict[Key, _Moving] = field(default_factory=dict[Key, _Moving])
    fixed: dict[Key, str] = field(default_factory=dict[Key, str])
    """elements that the loop does not move away from, one lane"""
    loaded: dict[Key, str] = field(default_factory=dict[Key, str])
    """elements of this trip"""

    def block(self, stmts: Iterable[Stmt], at: Lanes) -> None:
        for stmt in stmts:
            match stmt:
                case Allocate():
                    self.allocate(stmt)
                case Store():
                    self.store(stmt, at)
                case Loop(kind=LoopKind.VECTORIZED):
                    self.lanes(stmt)
                case Loop(kind=LoopKind.UNROLLED):
                    self.unrolled(stmt, at)
                case Loop():
                    self.loop(stmt, at)
                case _:
                    raise AssertionError(f"unknown statement {type(stmt).__name__}")

    def allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        if is_register(stmt):
            self.in_registers.add(buffer)
            return
        kind = buffer_type(buffer)
        strides: list[Index] = []
        step = 1
        for extent in reversed(kind.shape):
            assert isinstance(extent, int)
            strides.append(step)
            step *= extent
        pointer = self.scope.b.address(self.scratch, "i8", self.offsets[buffer])
        self.places[buffer] = Place(pointer, kind.dtype, self.scope.indices(kind.shape), tuple(reversed(strides)))

    # --- loops ----------------------------------------------------------------------------------------------------
    def loop(self, stmt: Loop, at: Lanes) -> None:
        start, stop, step = self.scope.indices((stmt.start, stmt.stop, stmt.step))
        leaf = not any(isinstance(inner, Loop) and inner.kind is LoopKind.SERIAL for inner in walk(stmt.body))
        if leaf:
            self.enter(stmt)
        written = {s.buffer for s in walk(stmt.body) if isinstance(s, Store)}
        carried = [key for key in self.registers if key[0] in written]
        given = [(self.type(key), self.registers[key][0]) for key in carried]

        def trip(index: str, values: Sequence[str]) -> Sequence[str]:
            self.scope.registers[stmt.iv] = index
            for key, value in zip(carried, values, strict=True):
                self.registers[key] = value, self.registers[key][1]
            self.scope.memo.append({})
            self.loaded.clear()
            self.block(stmt.body, at)
            self.scope.memo.pop()
            return [self.registers[key][0] for key in carried]

        results = self.scope.b.fold(start, stop, step, given, trip)
        for key, value in zip(carried, results, strict=True):
            self.registers[key] = value, self.registers[key][1]
        self.loaded.clear()
        if leaf:
            self.leave()

    def type(self, key: Key) -> str:
        lanes = self.registers[key][1]
        element = register_type(key[0].dtype)
        return element if lanes == 1 else f"<{lanes} x {element}>"

    def unrolled(self, stmt: Loop, at: Lanes) -> None:
        assert isinstance(stmt.start, int) and isinstance(stmt.stop, int) and isinstance(stmt.step, int)
        for number in range(stmt.start, stmt.stop, stmt.step):
            self.numbers[stmt.iv] = number
            self.loaded.clear()
            self.block(stmt.body, at)

    def lanes(self, stmt: Loop) -> None:
        b, processor = self.scope.b, self.scope.processor
        given = dict(stmt.annotations).get("lanes")
        count = _difference(stmt.stop, stmt.start)
        lanes = given if isinstance(given, int) else count
        assert isinstance(lanes, int)
        mask = None
        if count != lanes:
            rest = count if isinstance(count, int) else b.sub(*self.scope.indices((stmt.stop, stmt.start)))
            mask = tail_mask(b, rest, lanes)
        alone = not self.moving
        self.lane = stmt.iv, stmt.start
        if alone:
            self.enter(stmt)
        self.loaded.clear()
        self.block(stmt.body, Lanes(b, processor, lanes, mask))
        self.lane = None
        self.loaded.clear()
        if alone:
            self.leave()

    # --- addresses ------------------------------------------------------------------------------------------------
    def enter(self, loop: Loop) -> None:
        """Before an innermost loop: where each of its accesses begins."""
        variables = {loop.iv} | {inner.iv for inner in walk(loop.body) if isinstance(inner, Loop)}
        touched = [access for stmt in walk((loop,)) if isinstance(stmt, Store) for access in accesses_in(stmt)]
        written = {self.classes.get(access.buffer, access.buffer) for access in touched if access.writes}
        runs = isinstance(loop.start, int) and isinstance(loop.stop, int) and loop.start < loop.stop
        for access in touched:
            key = access.buffer, access.indices
            if access.buffer not in self.places or key in self.moving:
                continue
            found = self.moving[key] = self.split(access, variables)
            stays = runs and not any(found.steps.values()) and not access.writes
            if stays and self.classes.get(access.buffer, access.buffer) not in written:
                self.fixed[key] = self.scope.single.load(found.pointer, access.buffer.dtype)

    def leave(self) -> None:
        self.moving.clear()
        self.fixed.clear()

    def split(self, access: Access, variables: set[Value]) -> _Moving:
        """The address without the loop's variables, and their steps."""
        b, place = self.scope.b, self.places[access.buffer]
        position: Index = 0
        steps: dict[Value, Index] = {}
        for index, stride in zip(access.indices, place.strides, strict=True):
            terms, constant = linear_terms(index)
            for term, factor in terms.items():
                if isinstance(term, Value) and term in variables:
                    steps[term] = b.add(steps.get(term, 0), b.mul(stride, factor))
                else:
                    position = b.add(position, b.mul(b.mul(self.scope.index(term), factor), stride))
            position = b.add(position, b.mul(stride, constant))
        return _Moving(b.address(place.pointer, memory_type(place.dtype), position), steps)

    def address(self, buffer: Value, indices: Shape) -> tuple[str, Index]:
        """Where an access is in this trip, and the step from lane to lane."""
        b = self.scope.b
        found = self.moving.get((buffer, indices)) or self.split(Access(buffer, indices, False), set())
        position: Index = 0
        step: Index = 0
        for variable, stride in found.steps.items():
            value: Index
            if self.lane is not None and variable is self.lane[0]:
                step, value = stride, self.scope.index(self.lane[1])
            else:
                known = self.numbers.get(variable)
                value = self.scope.register(variable) if known is None else known
            position = b.add(position, b.mul(value, stride))
        return b.address(found.pointer, memory_type(buffer.dtype), position), step

    # --- elements -------------------------------------------------------------------------------------------------
    def load(self, load: Load, at: Lanes) -> str:
        """An element, or one for each lane, as it is computed with."""
        buffer, key = load.buffer, (load.buffer, load.indices)
        if buffer in self.in_registers:
            return self.register(load, at)
        if key not in self.loaded:
            if key in self.fixed:
                self.loaded[key] = at.broadcast(register_type(buffer.dtype), self.fixed[key])
            else:
                self.loaded[key] = self.from_memory(key, at)
        return self.loaded[key]

    def from_memory(self, key: Key, at: Lanes) -> str:
        buffer = key[0]
        pointer, step = self.address(*key)
        if at.lanes == 1 and at.mask is None:
            return at.load(pointer, buffer.dtype)
        if step == 0:
            single = replace(at, lanes=1, mask=None)
            return at.broadcast(register_type(buffer.dtype), single.load(pointer, buffer.dtype))
        if step == 1:
            return at.load(pointer, buffer.dtype)
        return at.from_memory(at.gather_raw(pointer, buffer.dtype, step), buffer.dtype)

    def part(self, buffer: Value, indices: Shape) -> tuple[Key, int]:
        """Which register an access means, and the first lane."""
        if all(extent == 1 for extent in buffer_type(buffer).shape):
            return (buffer, ()), 0
        known = tuple(substitute(index, self._number) for index in indices)
        first = known[-1]
        if self.lane is not None:
            iv, start = self.lane
            first = substitute(first, lambda value: start if value is iv else value)
        assert isinstance(first, int)
        return (buffer, known[:-1]), first

    def _number(self, value: Value) -> Scalar:
        return self.numbers.get(value, value)

    def register(self, load: Load, at: Lanes) -> str:
        key, first = self.part(load.buffer, load.indices)
        text, lanes = self.registers[key]
        element = register_type(load.buffer.dtype)
        if lanes == at.lanes and first == 0:
            return text
        if lanes == 1:
            return at.broadcast(element, text)
        kind = f"<{lanes} x {element}>"
        if at.lanes == 1:
            return at.b.value(f"extractelement {kind} {text}, i64 {first}")
        order = ", ".join(f"i32 {first + lane}" for lane in range(at.lanes))
        return at.b.value(f"shufflevector {kind} {text}, {kind} poison, <{at.lanes} x i32> <{order}>")

    def store(self, stmt: Store, at: Lanes) -> None:
        buffer, value = stmt.buffer, stmt.value
        if buffer in self.in_registers:
            key, _ = self.part(buffer, stmt.indices)
            text = _Expression(self, at)(value)
            if at.mask is not None and key in self.registers and self.registers[key][1] == at.lanes:
                text = at.select(at.mask, register_type(buffer.dtype), text, self.registers[key][0])
            self.registers[key] = text, at.lanes
            return
        if isinstance(value, Load) and value.buffer not in self.in_registers and self.copied(stmt, value, at):
            return
        raw = at.to_memory(self.unrounded(value, at), buffer.dtype)
        pointer, step = self.address(buffer, stmt.indices)
        if step in (0, 1):
            at.store_raw(raw, pointer, buffer.dtype)
        else:
            at.scatter_raw(raw, pointer, buffer.dtype, step)
        self.forget(buffer)
        self.loaded[buffer, stmt.indices] = at.from_memory(raw, buffer.dtype)

    def unrounded(self, value: Scalar, at: Lanes) -> str:
        """A value that is stored next: a last conversion between floats is left to the store, which rounds."""
        compute = _Expression(self, at)
        if isinstance(value, Unary) and value.kind is UnaryKind.CAST and value.dtype.is_float:
            if dtype_of(value.operand) is FP32:
                return compute(value.operand)
        return compute(value)

    def copied(self, stmt: Store, value: Load, at: Lanes) -> bool:
        """An element of the same dtype is moved as bytes: no NaN changes."""
        key = value.buffer, value.indices
        if value.buffer.dtype is not stmt.buffer.dtype or key in self.loaded or key in self.fixed:
            return False
        bits = _BITS[value.buffer.dtype.nbytes]
        source, apart = self.address(*key)
        target, step = self.address(stmt.buffer, stmt.indices)
        if at.lanes > 1 and (apart != 1 or step != 1):
            return False
        at.store_raw(at.load_raw(source, bits), target, bits)
        self.forget(stmt.buffer)
        return True

    def forget(self, written: Value) -> None:
        """What may have been changed by a store is loaded anew."""
        kind = self.classes.get(written, written)
        for key in [key for key in self.loaded if self.classes.get(key[0], key[0]) == kind]:
            del self.loaded[key]


class _Expression(Arithmetic):
    """An expression over elements; parts that it has twice are computed once."""

    def __init__(self, emitter: LoopEmitter, at: Lanes) -> None:
        super().__init__(at, self._value)
        self.emitter = emitter
        self.memo: dict[int, str] = {}

    def _value(self, value: Value) -> str:
        return self.at.broadcast(register_type(value.dtype), self.emitter.scope.register(value))

    def __call__(self, scalar: Scalar) -> str:
        if isinstance(scalar, Load):
            return self.emitter.load(scalar, self.at)
        if not isinstance(scalar, (Binary, Unary, Select, Value)):
            return super().__call__(scalar)
        found = self.memo.get(id(scalar))
        if found is None:
            found = self.memo[id(scalar)] = super().__call__(scalar)
        return found


def _difference(a: Scalar, b: Scalar) -> Scalar:
    difference = binary(BinaryKind.SUB, a, b)
    terms, constant = linear_terms(difference)
    return difference if terms else constant
