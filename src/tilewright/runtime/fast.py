"""The short way into native code, for a call like the one before it: same shapes, dtypes and strides.

A call through `bind` answers every question about its arguments; most calls ask the same ones again and get the same
answers. A `FastCall` remembers them for NumPy arrays and numbers, compares, and falls back at the first difference.
From its second call on it compares in machine code, see `tilewright.runtime.direct`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.dtypes import FP32, DType
from tilewright.ir.function import Direction
from tilewright.runtime.arrays import Argument, Array, is_walkable
from tilewright.runtime.bind import MISS, Bound, Number
from tilewright.runtime.direct import DirectCall, direct_call
from tilewright.runtime.memory import address_of

if TYPE_CHECKING:
    from tilewright.errors import TilewrightError
    from tilewright.runtime.native import NativeRunner

LARGEST = 3.4028234663852886e38
"""The largest float32: what rounds to infinity goes the long way."""


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """One array argument: `span` is the bytes from its first element to the end of its last."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    span: int
    alignment: int
    is_output: bool


class FastCall:
    """Made from a call that went the long way; called with the arguments of later ones. `function` takes them as they
    are, and returns bytes for `failure` after a check failed."""

    __slots__ = ("_arrays", "_direct", "_expected", "_outputs", "_runner", "_shown", "_used", "function")

    def __init__(
        self, runner: NativeRunner, expected: tuple[ArrayArgument | DType, ...], shown: tuple[int, ...]
    ) -> None:
        self._runner = runner
        self._expected = expected
        self._shown = shown
        self._outputs = tuple(
            (i, e.span) for i, e in enumerate(expected) if isinstance(e, ArrayArgument) and e.is_output
        )
        self._arrays = tuple((i, e.span) for i, e in enumerate(expected) if isinstance(e, ArrayArgument))
        self._used = False
        self._direct: DirectCall | None = None
        self.function: Callable[..., Any] = self._in_python

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """What the kernel returns, or `MISS` without having done anything."""
        result = self.function(*args)
        if result is MISS and self._direct is not None:
            return self._compared(args)
        if result.__class__ is bytes:
            raise self.failure(result)
        return result

    def failure(self, message: bytes) -> TilewrightError:
        """The error for what `function` returned after a check failed."""
        return self._runner.failure(message)

    def _in_python(self, *args: Any) -> Any:
        """The first call, and later ones where there is no machine code: compiling it, once for the process, takes
        longer than a call, so that a kernel which is called once does not ask for it."""
        if self._used and self._direct is None:
            self._direct = direct_call(self._runner, self._expected, self._shown)
            if self._direct is not None:
                self.function = self._direct.function
        result = self._compared(args)
        self._used = self._used or result is not MISS
        return result

    def _compared(self, args: tuple[Any, ...]) -> Any:
        """The call with the comparison in Python, also while another call has the workspace."""
        expected = self._expected
        if len(args) != len(expected):
            return MISS
        slots: list[int] = []
        for arg, wanted in zip(args, expected, strict=True):
            if wanted.__class__ is not ArrayArgument:
                slot = _number(arg, wanted)
            else:
                slot = _address(arg, wanted)
            if slot is None:
                return MISS
            slots.append(slot)
        for output, size in self._outputs:
            low, high = slots[output], slots[output] + size
            for index, span in self._arrays:
                if index != output and slots[index] < high and low < slots[index] + span:
                    return MISS
        self._runner.run(slots)
        shown = self._shown
        if not shown:
            return None
        return args[shown[0]] if len(shown) == 1 else tuple(args[index] for index in shown)


def _address(arg: Any, wanted: Any) -> int | None:
    """The address of an array that is as expected; None for any other argument."""
    if arg.__class__ is not np.ndarray or arg.dtype is not wanted.dtype or arg.shape != wanted.shape:
        return None
    if arg.strides != wanted.strides:
        return None
    address = address_of(arg)
    if address % wanted.alignment or (wanted.is_output and not arg.flags.writeable):
        return None
    return address


def _number(arg: Any, dtype: Any) -> int | None:
    """A number in a slot; None for any other argument. The long way knows the other dtypes."""
    if dtype is FP32:
        if arg.__class__ is not float or abs(arg) > LARGEST:
            return None
        return int.from_bytes(struct.pack("<f", arg), "little")
    return arg if arg.__class__ is int and -(2**63) <= arg < 2**63 else None


def fast_call(runner: NativeRunner, bound: Bound) -> FastCall | None:
    """The short way for calls like the one that `bound` was; None when there is none for it."""
    signature = runner.signature
    outputs = [result.index for result in signature.results]
    if None in outputs or signature.symbols:
        return None
    expected: list[ArrayArgument | DType] = []
    for spec, item in zip(bound.specs, bound.given, strict=True):
        if isinstance(item, Argument) and item.kind == "numpy" and is_walkable(item.view):
            view = item.view
            is_output = spec.direction is not Direction.IN
            made = ArrayArgument(view.dtype, view.shape, view.strides, _span(view), view.dtype.alignment, is_output)
            expected.append(made)
        elif isinstance(item, Number) and (item.dtype is FP32 or (item.dtype.bits == 64 and item.dtype.kind == "int")):
            expected.append(item.dtype)
        else:
            return None
    last = len(outputs) - signature.implicit
    return FastCall(runner, tuple(expected), tuple(index for index in outputs[:last] if index is not None))


def _span(view: Array) -> int:
    return sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True)) + view.itemsize
