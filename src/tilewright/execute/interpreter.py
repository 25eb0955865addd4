"""The reference interpreter: what a program means, at every level, and the judge of every pass and backend.

It is hostile. Memory that nothing wrote holds NaN (integers: the value of 0x80 in every byte), and a shadow bit per
element says whether it is defined. Moving or computing on undefined elements is fine; it is an error when one reaches
a valid element stored to DDR, a scalar, an index or a condition. An access outside its tensor or tile is an error.

Meaning is on valid data: operands are cropped to their valid shapes, and a result fills the top left of a fresh,
undefined physical array. Views see whole physical arrays instead. Tensors in DDR are linear, so a store overwrites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from tilewright.errors import (
    ArgumentError,
    CheckFailed,
    OutOfBoundsError,
    TilewrightError,
    UndefinedReadError,
    ValidShapeError,
    VerifyError,
)
from tilewright.execute.debugging import is_traced, stop, visit
from tilewright.execute.scalars import evaluate_scalar, number
from tilewright.ir.function import Function, Program
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Contract, Elementwise, Index, Reduce, Update
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, Probe, Scope, Stmt, Yield
from tilewright.ir.op import Array, Kind, Op, is_array, operand_values
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import TensorType, TileType, Type

Environment = dict[Value, Any]
Observer = Callable[[Value, "Data | Any"], None]


@dataclass(slots=True)
class Data:
    """The elements of a tensor or tile (its physical shape) and which of them are defined."""

    array: Array
    defined: Array


def poison(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Memory that nothing wrote: NaN, or 0x80 in every byte of an integer."""
    if dtype.kind in "iu":
        return np.frombuffer(b"\x80" * dtype.itemsize, dtype)[0] + np.zeros(shape, dtype)
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    return np.full(shape, np.nan, dtype)


def pad_constant(pad: Pad, dtype: np.dtype[Any]) -> Any:
    """The element that stands for `pad`: zero, or the largest or smallest value of the dtype."""
    if pad is Pad.ZERO:
        return dtype.type(0)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if pad is Pad.MAX else info.min
    return dtype.type(np.inf if pad is Pad.MAX else -np.inf)


def interpret(
    program: Program, args: Sequence[Any], *, entry: str | None = None, observe: Observer | None = None
) -> tuple[Any, ...]:
    """Run `program` on NumPy arrays and numbers; returns what the entry returns.

    Output parameters are arrays that are written in place. `observe` is called with each value that a statement
    defines. Raises `ArgumentError`, `OutOfBoundsError`, `UndefinedReadError`."""
    return Interpreter(program, observe).run(program.function(entry or program.entry), args)


def _shown(value: Any) -> Any:
    """A value as its author looks at it: an array in place of its storage."""
    return value.array if isinstance(value, Data) else value


def _is_mask(value: Any) -> TypeGuard[npt.NDArray[np.bool_]]:
    return isinstance(value, np.ndarray)


class Interpreter:
    """Executes functions of one program."""

    def __init__(self, program: Program, observe: Observer | None = None) -> None:
        self.program = program
        self.observe = observe
        self.named: dict[str, Any] | None = None
        """what the kernel's names stand for, while somebody looks"""

    def run(self, function: Function, args: Sequence[Any]) -> tuple[Any, ...]:
        """`function` on NumPy arrays and numbers; arrays come back as arrays."""
        if len(args) != len(function.params):
            raise ArgumentError(
                f"{function.name} takes {len(function.params)} arguments",
                found=f"{len(args)}",
                help="pass " + ", ".join(p.value.name for p in function.params),
            )
        given = [
            self._argument(p.value, p.is_output and p.direction.value == "Out", a)
            for p, a in zip(function.params, args, strict=True)
        ]
        probes = any(isinstance(stmt, Probe) for each in self.program.functions for stmt in each.walk())
        if probes or is_traced():
            self.named = {p.value.name: _shown(value) for p, value in zip(function.params, given, strict=True)}
        with np.errstate(all="ignore"):
            results = self.call(function, given)
        return tuple(r.array if isinstance(r, Data) else r for r in results)

    @staticmethod
    def _argument(parameter: Value, fresh: bool, given: Any) -> Any:
        kind = parameter.type
        if not isinstance(kind, TensorType):
            return np.dtype(kind.dtype.numpy).type(given) if kind.dtype.is_float else int(given)
        array = np.asarray(given)
        static = [e if isinstance(e, int) else n for e, n in zip(kind.shape, array.shape, strict=False)]
        if list(array.shape) != static or array.ndim != kind.rank or array.dtype != np.dtype(kind.dtype.numpy):
            raise ArgumentError(
                f"argument {parameter.name!r} does not match its parameter",
                required=repr(kind),
                found=f"{list(array.shape)} of {array.dtype}",
            )
        return Data(array, np.full(array.shape, not fresh))

    def call(self, function: Function, args: Sequence[Any]) -> tuple[Any, ...]:
        """`function` on `Data` and numbers."""
        env: Environment = {}
        for param, arg in zip(function.params, args, strict=True):
            env[param.value] = arg
            if isinstance(param.value.type, TensorType):
                for extent, actual in zip(param.value.type.shape, arg.array.shape, strict=True):
                    if isinstance(extent, Value):
                        env.setdefault(extent, actual)
        return self.block(function.body, env)

    # --- statements ---
    def block(self, block: Block, env: Environment) -> tuple[Any, ...]:
        """Runs the statements; returns what the terminator hands out."""
        for stmt in block:
            if self.named is not None and is_traced():
                visit(stmt.span, self.named)
            try:
                if isinstance(stmt, Let):
                    self.let(stmt, env)
                elif isinstance(stmt, Yield):
                    return tuple(self.scalar(value, env) for value in stmt.values)
                else:
                    self.structured(stmt, env)
            except TilewrightError as error:
                raise error.at(stmt.span) from None
        raise VerifyError("a block without a terminator")

    def let(self, stmt: Let, env: Environment) -> None:
        value = stmt.value
        result = self.op(value, stmt.target.type, env) if isinstance(value, Op) else self.scalar(value, env)
        self._bind((stmt.target,), (result,), env)

    def structured(self, stmt: Stmt, env: Environment) -> None:
        match stmt:
            case For():
                self._bind(stmt.results, self.loop(stmt, env), env)
            case If():
                arm = stmt.then if self.scalar(stmt.condition, env) else stmt.otherwise
                self._bind(stmt.results, self.block(arm, env), env)
            case Scope():
                self._bind(stmt.results, self.block(stmt.body, env), env)
            case Call():
                args = [self.scalar(arg, env) for arg in stmt.args]
                self._bind(stmt.targets, self.call(self.program.function(stmt.callee), args), env)
            case Probe():
                self.probe(stmt, env)
            case _:
                raise AssertionError(f"unknown statement {type(stmt).__name__}")

    def _bind(self, targets: tuple[Value, ...], results: tuple[Any, ...], env: Environment) -> None:
        for target, result in zip(targets, results, strict=True):
            env[target] = result
            if self.observe is not None:
                self.observe(target, result)
            if self.named is not None:
                self.named[target.name] = _shown(result)

    def probe(self, stmt: Probe, env: Environment) -> None:
        """What the author watches."""
        parts = [part if isinstance(part, str) else _shown(self.scalar(part, env)) for part in stmt.parts]
        match stmt.kind:
            case "print":
                print(*parts)
            case "break":
                stop(stmt.span, self.named or {})
            case _:
                if not parts[0]:
                    said = " ".join(str(part) for part in parts[1:])
                    raise CheckFailed(
                        "a pl.assert_ does not hold" + (f": {said}" if said else ""), span=stmt.span,
                        help="look at the values with pl.print, or stop there with breakpoint()",
                    )  # fmt: skip

    def loop(self, stmt: For, env: Environment) -> tuple[Any, ...]:
        """Runs the trips in order; those of a parallel loop last to first, since no order may matter."""
        start, stop, step = (self.scalar(bound, env) for bound in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            raise OutOfBoundsError("a loop's step is 0", span=stmt.span)
        carried = tuple(self.scalar(init, env) for init in stmt.inits)
        trips = range(int(start), int(stop), int(step))
        for trip in reversed(trips) if stmt.kind is LoopKind.PARALLEL else trips:
            if stmt.conditional and not carried[0]:
                break
            env[stmt.iv] = trip
            if self.named is not None:
                self.named[stmt.iv.name] = trip
            self._bind(stmt.iter_args, carried, env)
            carried = self.block(stmt.body, env)
        return carried

    def scalar(self, scalar: Scalar, env: Environment) -> Any:
        """The number, or the `Data`, that `scalar` stands for."""
        if isinstance(scalar, int):
            return scalar
        return env[scalar] if isinstance(scalar, Value) else evaluate_scalar(scalar, env)

    def extents(self, shape: Shape, env: Environment) -> tuple[int, ...]:
        return tuple(e if isinstance(e, int) else int(self.scalar(e, env)) for e in shape)

    # --- operations ---
    def op(self, op: Op, result: Type, env: Environment) -> Any:
        """Executes one operation; `result` is the type of its target."""
        self._check_bounds(op, env)
        arrays: list[Any] = []
        masks: list[Any] = []
        for field, value in operand_values(op):
            array, mask = self._operand(op, field.name, field.kind, value, env)
            arrays.append(array)
            masks.append(mask)
        if isinstance(result, TensorType) and op.writes is not None:
            self._require_defined(op, masks)
        out = op.evaluate(*arrays)
        if not isinstance(result, TensorType | TileType):
            return self._scalar_result(op, out, masks)
        defined = self._defined(op, masks, np.shape(out))
        if op.writes is not None:
            return Data(out, defined)
        if op.view_of is not None:
            return Data(np.array(out), np.array(defined))
        return self._place(np.asarray(out), defined, result, env)

    def _operand(self, op: Op, name: str, kind: Kind, value: Any, env: Environment) -> tuple[Any, Any]:
        """What `evaluate` takes for one field, and what stands for it where masks are evaluated."""
        if value is None:
            return None, None
        if kind is Kind.SCALARS:
            numbers = self.extents(value, env)
            return numbers, numbers
        if not is_array(value):
            number = self.scalar(value, env)
            return number, number if kind is Kind.SCALAR else True
        data: Data = env[value]
        if name == op.writes:
            if isinstance(value.type, TensorType):
                return data.array, data.defined
            return data.array.copy(), data.defined.copy()
        if op.view_of is not None or not isinstance(value.type, TileType):
            return data.array, data.defined
        crop = tuple(slice(0, extent) for extent in self.extents(value.type.valid, env))
        return data.array[crop], data.defined[crop]

    def _place(self, out: Array, defined: Array, result: TensorType | TileType, env: Environment) -> Data:
        """A fresh physical array with `out` at its top left, padded when the type says so."""
        shape = self.extents(result.shape, env)
        valid = self.extents(result.valid, env) if isinstance(result, TileType) else shape
        if any(not 0 <= v <= s for v, s in zip(valid, shape, strict=True)):
            raise ValidShapeError("a valid shape does not fit its tile", required=f"at most {shape}", found=f"{valid}")
        if out.shape != valid:
            raise VerifyError(
                "an operation gave another shape than its type says", required=f"{valid}", found=f"{out.shape}"
            )
        dtype = np.dtype(result.dtype.numpy)
        padded = isinstance(result, TileType) and result.view.pad is not Pad.NULL
        data = Data(poison(shape, dtype), np.zeros(shape, np.bool_))
        if padded and isinstance(result, TileType):
            data = Data(np.full(shape, pad_constant(result.view.pad, dtype), dtype), np.ones(shape, np.bool_))
        corner = tuple(slice(0, extent) for extent in valid)
        data.array[corner] = out
        data.defined[corner] = defined
        return data

    def _scalar_result(self, op: Op, out: Any, masks: list[Any]) -> Any:
        if any(_is_mask(mask) for mask in masks) and not np.all(op.evaluate(*masks)):
            raise UndefinedReadError(f"{op.qualified_name} reads an undefined element into a scalar")
        return number(out, op.infer().dtype)

    # --- definedness and bounds ---
    def _defined(self, op: Op, masks: list[Any], shape: tuple[int, ...]) -> Array:
        """Which elements of the result are defined."""
        special = op.defined(*masks)
        if special is not None:
            return special
        given = [mask for mask in masks if _is_mask(mask)]
        match op.loops:
            case Index() | Update():
                return np.asarray(op.evaluate(*masks))
            case Elementwise():
                out = np.ones(shape, np.bool_)
                for mask in given:
                    out &= mask
                return out
            case Reduce(axis=axis):
                return np.asarray(given[0].all(axis=axis, keepdims=True))
            case Contract() as form:
                names = [field.name for field, _ in operand_values(op)]
                lhs, rhs = masks[names.index(form.lhs)], masks[names.index(form.rhs)]
                out = lhs.all(axis=-1, keepdims=True) & rhs.all(axis=-2, keepdims=True)
                return out if form.acc is None else out & masks[names.index(form.acc)]
            case _:
                raise AssertionError(f"{op.name} must state defined()")

    @staticmethod
    def _require_defined(op: Op, masks: list[Any]) -> None:
        """Nothing undefined may be stored to DDR."""
        for (field, value), mask in zip(operand_values(op), masks, strict=True):
            if _is_mask(mask) and field.name != op.writes and not mask.all():
                where = tuple(int(i) for i in np.argwhere(~mask)[0])
                name = getattr(value, "name", field.name)
                raise UndefinedReadError(
                    f"an undefined element of {name!r} is stored to memory",
                    found=f"element {list(where)} of {list(mask.shape)} valid ones was never written",
                    help="write it first, or narrow the valid shape",
                )

    def _check_bounds(self, op: Op, env: Environment) -> None:
        for access in op.accesses():
            if access.field is None:
                continue
            value = getattr(op, access.field)
            limits = env[value].array.shape
            offsets, extents = self.extents(access.offsets, env), self.extents(access.extents, env)
            for axis, (offset, extent, limit) in enumerate(zip(offsets, extents, limits, strict=True)):
                if extent and not 0 <= offset <= offset + extent <= limit:
                    verb = "writes" if access.writes else "reads"
                    raise OutOfBoundsError(
                        f"{op.qualified_name} {verb} outside {value.name!r}",
                        required=f"axis {axis} has {limit} elements",
                        found=f"elements {offset} to {offset + extent - 1}",
                        help="clamp the region, or say how much of it is valid with valid_shape",
                    )
