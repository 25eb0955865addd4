"""Native code as an `Executable`: slots for the entry, workspace that each thread keeps, results to write into."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tilewright.errors import CodegenError, TilewrightError
from tilewright.ir import dtypes
from tilewright.ir.dtypes import DType
from tilewright.runtime.arrays import Array
from tilewright.runtime.executable import Executable
from tilewright.runtime.fast import fast_call
from tilewright.runtime.memory import ALIGNMENT, address_of, fresh

if TYPE_CHECKING:
    from tilewright.codegen.native import NativeKernel

REPORT = 4
"""Slots at the end in which a failed guard says what it found."""


def native_executable(kernel: NativeKernel) -> Executable:
    """`kernel` for calls. Its shapes are known: every extent is a constant or a scalar parameter."""
    if not kernel.runnable:
        raise CodegenError(
            "the kernel was compiled for another processor and cannot run here", help="call it without target="
        )
    signature = kernel.signature
    outputs = tuple(result.index for result in signature.results)
    runner = NativeRunner(kernel)
    return Executable(runner, outputs, signature.implicit, runner.allocate, lambda bound: fast_call(runner, bound))


class NativeRunner:
    """Calls the entry. Arguments are checked already; what is wrong inside a run is reported by guards."""

    def __init__(self, kernel: NativeKernel) -> None:
        self.kernel = kernel
        self.signature = kernel.signature
        self._dtypes = [dtypes.by_name(param.dtype) for param in self.signature.params]
        self._result_dtypes = [None if r.index is not None else dtypes.by_name(r.dtype) for r in self.signature.results]
        count = len(self._dtypes) + len(self.signature.symbols) + len(self._result_dtypes) + REPORT
        self.slot_count = count
        self._slots = ctypes.c_int64 * count
        self._local = threading.local()

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        given = [
            address_of(cast("Array", value)) if isinstance(value, np.ndarray) else encoded(value, dtype)
            for value, dtype in zip(values, self._dtypes, strict=True)
        ]
        given += [values[param].shape[axis] for param, axis in self.signature.symbols]
        slots, first = self._slots(*given), len(given)
        made: list[Array | None] = []
        for result, dtype in zip(self.signature.results, self._result_dtypes, strict=True):
            array = None
            if result.kind == "tensor" and dtype is not None:
                array = fresh(self.signature.extents(result.shape or (), slots[:first]), np.dtype(dtype.numpy))
                slots[first + len(made)] = address_of(array)
            made.append(array)
        self._enter(slots)
        return tuple(self._result(values, slots, first + i, array) for i, array in enumerate(made))

    def _result(self, values: Sequence[Any], slots: Any, at: int, array: Array | None) -> Any:
        """The result whose slot is `at`: an output, the new array, or the number in the slot."""
        index = at - (len(slots) - REPORT - len(self._result_dtypes))
        dtype = self._result_dtypes[index]
        if dtype is None:
            return values[self.signature.results[index].index or 0]
        return decoded(slots[at], dtype) if array is None else array

    def run(self, given: Sequence[int]) -> None:
        """Run on the slots of the parameters alone, where all results are outputs."""
        self._enter(self._slots(*given))

    def _enter(self, slots: Any) -> None:
        code = self.kernel(ctypes.addressof(slots), self._workspace())
        if code:
            raise self.kernel.failure(code, slots[-REPORT:])

    def failure(self, message: bytes) -> TilewrightError:
        """The error for a check that failed in a direct call: its number and what it reports, as 8-byte integers."""
        code, *report = struct.unpack(f"{1 + REPORT}q", message)
        return self.kernel.failure(code, report)

    def allocate(self, index: int) -> Array:
        """The array of a parameter that the caller left out; its extents are constants."""
        param = self.signature.params[index]
        return fresh(self.signature.extents(param.shape or (), ()), np.dtype(self._dtypes[index].numpy))

    def _workspace(self) -> int:
        """The address of this thread's workspace."""
        if self.signature.workspace_bytes == 0:
            return 0
        found: Array | None = getattr(self._local, "workspace", None)
        if found is None:
            found = self._local.workspace = self.new_workspace()
        return 0 if found is None else address_of(found)

    def new_workspace(self) -> Array | None:
        """Workspace for one call at a time; None where the kernel needs none."""
        size = self.signature.workspace_bytes
        return fresh((size + ALIGNMENT,), np.dtype(np.uint8)) if size else None


def encoded(value: float, dtype: DType) -> int:
    """A number in a slot: integers as they are, floats as their bits."""
    if not dtype.is_float:
        number = int(value)
        return number - 2**64 if number >= 2**63 else number
    return int.from_bytes(np.array(value, np.dtype(dtype.numpy)).tobytes(), "little")


def decoded(slot: int, dtype: DType) -> int | float | bool:
    """The number in a slot, as a Python number."""
    numpy = np.dtype(dtype.numpy)
    raw = (slot & (2**64 - 1)).to_bytes(8, "little")[: numpy.itemsize]
    return np.frombuffer(raw, numpy)[0].item()
