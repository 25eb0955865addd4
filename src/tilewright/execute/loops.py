"""The interpreter of the loop level, in either form: what a loop program means, and the judge of every pass on it.

It is as hostile as the interpreter of tiles. Memory that nothing wrote is poison with a shadow bit per byte; loading
and computing on it is fine, and it is an error when the result reaches a parameter, an index, a condition, a bound or
an argument of a function outside. Every access is checked in every dimension, every alias against its memory.

    loops        in order; parallel ones last to first, since no order may matter
    threads      loops; inside a loop over the same threads, the thread that runs already
    vectors      lane by lane; all lanes of a store are computed before the first is written
    conditions   `x` means `x != 0`; `and`, `or` and `select` evaluate both sides, `if_then_else` the one it takes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np

from tilewright.errors import ArgumentError, OutOfBoundsError, TilewrightError, UndefinedReadError, VerifyError
from tilewright.execute.interpreter import Data, Environment, Interpreter
from tilewright.execute.loop_memory import Memory, Pointer, View
from tilewright.execute.scalars import BINARY, UNARY, number
from tilewright.ir.buffers import (
    AddressOf,
    Broadcast,
    BufferType,
    DimAlign,
    Extern,
    IfThenElse,
    Likely,
    Load,
    Ramp,
    Region,
    buffer_type,
    lanes_of,
    row_strides,
)
from tilewright.ir.dtypes import INDEX, DType
from tilewright.ir.function import Program
from tilewright.ir.loop_level import (
    Alias,
    Allocate,
    Attribute,
    ComputeBlock,
    Evaluate,
    Launch,
    Loop,
    LoopFunction,
    LoopKind,
    OpCall,
    Store,
    While,
)
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.scalar import Binary, BinaryKind, Const, Scalar, Select, Shape, Unary, UnaryKind, Value

Known = tuple[Any, bool]
"""A number, and whether it is defined."""
Externs = Mapping[str, Callable[..., Any]]


Observer = Callable[[Value, View, tuple[int, ...], bool], None]
"""Called with each element that a statement touches: buffer, the memory that it names now, index, whether written."""


def interpret_loops(
    function: LoopFunction, args: Sequence[Any], externs: Externs | None = None, observe: Observer | None = None
) -> None:
    """Runs `function` on NumPy arrays, written in place, and numbers. `externs` are the functions that it calls by
    name; they get numbers, and a `Pointer` for each address. `observe` sees each access to a buffer, except those
    through pointers.

    Raises `ArgumentError`, `OutOfBoundsError`, `UndefinedReadError`, `VerifyError`, placed at the statement; the
    arrays are then as they were."""
    if len(args) != len(function.params):
        raise ArgumentError(
            f"{function.name} takes {len(function.params)} arguments",
            found=str(len(args)),
            help="pass " + ", ".join(param.name for param in function.params),
        )
    machine = _Machine(function, externs or {}, observe)
    with np.errstate(all="ignore"):
        views = machine.bind(args)
        machine.block(function.body)
    for given, view in views:
        given[...] = view.array


@dataclass(slots=True)
class _Machine:
    """The values, buffers and running threads of one execution."""

    function: LoopFunction
    externs: Externs
    observe: Observer | None = None
    scalars: dict[Value, Any] = field(default_factory=dict[Value, Any])
    """a `Known`, a `Pointer`, or a list of lanes, each `Known`"""
    views: dict[Value, View] = field(default_factory=dict[Value, View])
    threads: dict[str, int] = field(default_factory=dict[str, int])

    # --- arguments ---
    def bind(self, args: Sequence[Any]) -> list[tuple[Any, View]]:
        """Binds the parameters; the arrays with what will be written back to them."""
        pairs = list(zip(self.function.params, args, strict=True))
        for param, given in pairs:
            if not isinstance(param.type, BufferType):
                self.scalars[param] = (number(given, param.dtype), True)
                continue
            kind = param.type
            if np.ndim(given) == kind.rank:
                for extent, actual in zip(kind.shape, np.shape(given), strict=True):
                    if isinstance(extent, Value) and extent not in self.function.params:
                        self.scalars.setdefault(extent, (actual, True))
        found: list[tuple[Any, View]] = []
        for param, given in pairs:
            if isinstance(param.type, BufferType):
                found.append((given, self._argument(param, param.type, given)))
        return found

    def _argument(self, param: Value, kind: BufferType, given: Any) -> View:
        dtype = np.dtype(kind.dtype.numpy)
        shape = self.integers(kind.shape)
        found = np.shape(given), getattr(given, "dtype", type(given).__name__)
        if found != (shape, dtype):
            raise ArgumentError(
                f"argument {param.name!r} does not match its parameter",
                required=f"an array of {list(shape)} {dtype}",
                found=f"{list(found[0])} of {found[1]}",
            )
        view = self._view(param.name, Memory.of(given), kind.dtype, shape)
        self.views[param] = view
        return view

    @staticmethod
    def _view(
        name: str, memory: Memory, dtype: DType, shape: tuple[int, ...], align: DimAlign = (), at: int = 0
    ) -> View:
        size = np.dtype(dtype.numpy).itemsize
        return View(name, memory, dtype, shape, tuple(size * stride for stride in row_strides(shape, align)), at)

    # --- statements ---
    def block(self, block: Block) -> None:
        for stmt in block:
            try:
                self.stmt(stmt)
            except TilewrightError as error:
                raise error.at(stmt.span) from None

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Store():
                self.store(stmt)
            case Loop():
                self.loop(stmt)
            case ComputeBlock():
                self.compute(stmt)
            case If():
                self.block(stmt.then if self.holds(stmt.condition) else stmt.otherwise)
            case Let():
                assert not hasattr(stmt.value, "operand_items"), "operations stand in an OpCall"
                self.scalars[stmt.target] = self.named(cast("Scalar", stmt.value))
            case Allocate():
                self.allocate(stmt)
            case Alias():
                self.alias(stmt)
            case Launch():
                self.launch(stmt)
            case While():
                while self.holds(stmt.condition):
                    self.block(stmt.body)
            case Evaluate():
                self.extern(stmt.call, 0)
            case OpCall():
                self.op(stmt)
            case Attribute():
                self.block(stmt.body)
            case _:
                raise VerifyError(f"{type(stmt).__name__} is no statement of the loop level")

    def store(self, stmt: Store) -> None:
        lanes = max(map(lanes_of, (*stmt.indices, stmt.value)))
        view = self.view(stmt.buffer)
        values = [self.scalar(stmt.value, lane) for lane in range(lanes)]
        places = [self.index(stmt.indices, lane) for lane in range(lanes)]
        for place, (value, defined) in zip(places, values, strict=True):
            self.seen(stmt.buffer, view, place, True)
            view.write(place, value, defined)

    def seen(self, buffer: Value, view: View, index: tuple[int, ...], written: bool) -> None:
        if self.observe is not None:
            self.observe(buffer, view, index, written)

    def loop(self, stmt: Loop) -> None:
        start, stop, step = self.integers((stmt.start, stmt.stop, stmt.step))
        if step == 0:
            raise OutOfBoundsError("a loop's step is 0")
        trips = range(start, stop, step)
        if stmt.kind is LoopKind.THREAD:
            self.run_threads(stmt.thread or "", stmt.iv, trips, stmt.body)
            return
        for trip in reversed(trips) if stmt.kind is LoopKind.PARALLEL else trips:
            self.scalars[stmt.iv] = (trip, True)
            self.block(stmt.body)

    def launch(self, stmt: Launch) -> None:
        extent = stmt.extent
        if extent is None:
            launches = (other for other in self.function.walk() if isinstance(other, Launch))
            extent = next((o.extent for o in launches if o.thread == stmt.thread and o.extent is not None), None)
        if extent is None:
            raise VerifyError(f"no launch says how many threads {stmt.thread!r} has", help="give one of them an extent")
        self.run_threads(stmt.thread, stmt.iv, range(self.integer(extent)), stmt.body)

    def run_threads(self, thread: str, iv: Value, trips: range, body: Block) -> None:
        """The body for each thread; once, as the thread that runs already, inside a loop over the same threads."""
        running = self.threads.get(thread)
        for trip in trips if running is None else (running,):
            if trip not in trips:
                continue
            self.threads[thread] = trip
            self.scalars[iv] = (trip, True)
            self.block(body)
        if running is None:
            self.threads.pop(thread, None)

    def compute(self, stmt: ComputeBlock) -> None:
        if not self.holds(stmt.where):
            return
        for match in stmt.matches:
            source, shape = match.source, self.integers(buffer_type(match.buffer).shape)
            offsets, extents = self.integers(source.offsets), self.integers(source.extents)
            window = self.view(source.buffer).window(match.buffer.name, offsets, extents, shape)
            self.views[match.buffer] = window
        for alloc in stmt.allocs:
            self.allocate(alloc)
        self.block(stmt.body)

    def allocate(self, stmt: Allocate) -> None:
        kind = buffer_type(stmt.buffer)
        shape = self.integers(kind.shape)
        if any(extent < 0 for extent in shape):
            raise OutOfBoundsError(f"{stmt.buffer.name!r} has a negative extent", found=str(list(shape)))
        elements = shape[0] * row_strides(shape, stmt.dim_align)[0] if shape else 1
        elements = max(elements, prod(shape))
        memory = Memory.fresh(elements, kind.dtype)
        self.views[stmt.buffer] = self._view(stmt.buffer.name, memory, kind.dtype, shape, stmt.dim_align)

    def alias(self, stmt: Alias) -> None:
        kind, source = buffer_type(stmt.buffer), self.view(stmt.source)
        at = source.offset + self.integer(stmt.offset) * source.array.itemsize
        shape = self.integers(kind.shape)
        self.views[stmt.buffer] = self._view(stmt.buffer.name, source.memory, kind.dtype, shape, (), at)

    def op(self, stmt: OpCall) -> None:
        """The operation on copies of the regions of its tiles."""
        env: Environment = {}
        for tile, region in stmt.bindings:
            view, box = self.region(region, "read")
            rank = len(getattr(tile.type, "shape", ()))
            array, defined = view.array[box], np.asarray(view.defined[box].all(axis=-1))
            shape = array.shape[array.ndim - rank :]
            env[tile] = Data(array.reshape(shape).copy(), defined.reshape(shape))
        kind = stmt.op.infer()
        result = _Operations(self).op(stmt.op, kind, env)
        if stmt.result is None:
            return
        view, box = self.region(stmt.result, "written")
        data = result if isinstance(result, Data) else Data(np.asarray(result), np.asarray(True))
        crop = tuple(slice(0, part.stop - part.start) for part in box[len(box) - data.array.ndim :])
        array, defined = data.array[crop], data.defined[crop]
        if view.memory.parameter and not defined.all():
            raise UndefinedReadError(
                f"an undefined element of {stmt.op.qualified_name} reaches the parameter {view.name!r}"
            )
        view.array[box] = array
        view.defined[box] = np.asarray(defined)[..., None]

    def region(self, region: Region, verb: str) -> tuple[View, tuple[slice, ...]]:
        view = self.view(region.buffer)
        offsets, extents = self.integers(region.offsets), self.integers(region.extents)
        for place in product(*(range(o, o + e) for o, e in zip(offsets, extents, strict=True))):
            self.seen(region.buffer, view, place, verb == "written")
        return view, view.box(offsets, extents, verb)

    # --- expressions ---
    def view(self, buffer: Value) -> View:
        found = self.views.get(buffer)
        if found is None:
            raise VerifyError(f"the buffer {buffer.name!r} does not exist here", help="allocate it around its uses")
        return found

    def named(self, scalar: Scalar) -> Any:
        """What a name stands for: a number, a pointer, or one number per lane."""
        lanes = lanes_of(scalar)
        if lanes > 1:
            return [self.scalar(scalar, lane) for lane in range(lanes)]
        return self.scalar(scalar)

    def holds(self, condition: Scalar) -> bool:
        return bool(self.certain(condition, "a condition") != 0)

    def integer(self, scalar: Scalar, lane: int = 0) -> int:
        return scalar if isinstance(scalar, int) else int(self.certain(scalar, "an index or a bound", lane))

    def integers(self, scalars: Shape) -> tuple[int, ...]:
        return tuple(self.integer(scalar) for scalar in scalars)

    def index(self, indices: Shape, lane: int) -> tuple[int, ...]:
        return tuple(self.integer(scalar, lane) for scalar in indices)

    def certain(self, scalar: Scalar, what: str, lane: int = 0) -> Any:
        """The number that `scalar` is. Raises `UndefinedReadError` when it depends on memory that nothing wrote."""
        value, defined = self.scalar(scalar, lane)
        if not defined:
            names = ", ".join(sorted(load.buffer.name for load in _loads(scalar)))
            raise UndefinedReadError(
                f"{what} depends on an undefined element" + (f" of {names}" if names else ""),
                help="write it before it is read",
            )
        return value

    def scalar(self, scalar: Scalar, lane: int = 0) -> Known:
        """The number that `scalar` is in one lane."""
        if isinstance(scalar, int):
            return scalar, True
        match scalar:
            case Value():
                found = self.scalars.get(scalar)
                if found is None:
                    raise VerifyError(f"{scalar.name!r} does not exist here")
                return cast("list[Known]", found)[lane] if isinstance(found, list) else cast("Known", found)
            case Const():
                return number(scalar.value, scalar.dtype), True
            case Load():
                view, place = self.view(scalar.buffer), self.index(scalar.indices, lane)
                self.seen(scalar.buffer, view, place, False)
                return view.read(place)
            case Binary():
                return self.binary(scalar, lane)
            case Unary():
                value, defined = self.scalar(scalar.operand, lane)
                result = value if scalar.kind is UnaryKind.CAST else UNARY[scalar.kind](value)
                return number(result, scalar.dtype), defined
            case Ramp():
                return self.integer(scalar.base, lane) + lane * self.integer(scalar.stride, lane), True
            case Broadcast():
                return self.scalar(scalar.value)
            case IfThenElse():
                taken = self.certain(scalar.condition, "a condition", lane) != 0
                return self.scalar(scalar.then if taken else scalar.otherwise, lane)
            case Select():
                arms = self.scalar(scalar.otherwise, lane), self.scalar(scalar.then, lane)
                return arms[int(self.certain(scalar.condition, "a condition", lane) != 0)]
            case Likely():
                value, defined = self.scalar(scalar.condition, lane)
                return value != 0, defined
            case AddressOf():
                offset = 0 if scalar.offset is None else self.integer(scalar.offset, lane)
                extent = None if scalar.extent is None else self.integer(scalar.extent, lane)
                return Pointer(self.view(scalar.buffer), offset, extent), True
            case Extern():
                return self.extern(scalar, lane), True
            case _:
                raise VerifyError(f"{type(scalar).__name__} is no expression of the loop level")

    def binary(self, scalar: Binary, lane: int) -> Known:
        left, right = self.scalar(scalar.lhs, lane), self.scalar(scalar.rhs, lane)
        kind = scalar.kind
        if kind in (BinaryKind.FLOORDIV, BinaryKind.MOD) and right[0] == 0:
            raise OutOfBoundsError("an integer is divided by 0", help="guard the division with if_then_else")
        return number(BINARY[kind](left[0], right[0]), scalar.dtype), left[1] and right[1]

    def extern(self, call: Extern, lane: int) -> Any:
        function = self.externs.get(call.name)
        if function is None:
            raise ArgumentError(
                f"there is no function {call.name!r} to call", help="pass it in externs, as a Python function"
            )
        result = function(*(self.certain(arg, f"an argument of {call.name}", lane) for arg in call.args))
        return None if result is None else number(result, call.dtype)


class _Operations(Interpreter):
    """Operations whose scalars are those of the loop level."""

    def __init__(self, machine: _Machine) -> None:
        super().__init__(Program((), ""))
        self.machine = machine

    def scalar(self, scalar: Scalar, env: Environment) -> Any:
        if isinstance(scalar, Value) and scalar in env:
            return env[scalar]
        value = self.machine.certain(scalar, "an operand")
        return int(value) if isinstance(scalar, int) or scalar.dtype is INDEX else value


def _loads(scalar: Scalar) -> list[Load]:
    if isinstance(scalar, int):
        return []
    inner = [load for child in scalar.children() for load in _loads(child)]
    return [scalar, *inner] if isinstance(scalar, Load) else inner
