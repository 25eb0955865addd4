"""A compiled kernel: object code, how it is called, and the call.

The C entry is ``int64_t entry(int64_t *slots, void *workspace)``. Slots have 8 bytes: first one per parameter (the
address of a tensor's element 0; an integer, sign-extended; 0 or 1; the bits of a float in the low bytes), then one per
symbol (an extent), one per result (the address of memory for a tensor, or where a number comes back), and four that a
failing check writes. It returns 0, or the number of the check. It keeps no state: calls may run at the same time, each
with its own workspace.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tilewright.codegen.native.guards import REPORT
from tilewright.codegen.native.llvm import Entry, Loaded, Processor, runs_here
from tilewright.codegen.native.signature import Parameter, Signature, number_bits, number_of
from tilewright.errors import ArgumentError, CodegenError, TilewrightError

Array = npt.NDArray[Any]

MAGIC = b"tilewright native 1\n"
WORKSPACE_ALIGNMENT = 64
_HEAD = struct.Struct("<QQQ")


def pack(signature: Signature, processor: Processor, code: bytes) -> bytes:
    """Signature, processor and object code as one piece of bytes."""
    parts = [signature.as_json().encode(), f"{processor.cpu} {processor.features}".encode(), code]
    return MAGIC + _HEAD.pack(*map(len, parts)) + b"".join(parts)


def unpack(content: bytes) -> tuple[Signature, str, bytes]:
    """What `pack` put together. Raises `CodegenError` for anything else."""
    start = len(MAGIC) + _HEAD.size
    if content[: len(MAGIC)] != MAGIC or len(content) < start:
        raise CodegenError("this is no compiled kernel", found=repr(content[:20]))
    lengths = _HEAD.unpack(content[len(MAGIC) : start])
    if len(content) != start + sum(lengths):
        raise CodegenError("a compiled kernel is cut short", required=f"{sum(lengths)} bytes", found=str(len(content)))
    first, second = start + lengths[0], start + lengths[0] + lengths[1]
    try:
        signature = Signature.from_json(content[start:first].decode())
        return signature, content[first:second].decode(), content[second:]
    except (KeyError, ValueError, TypeError) as error:
        raise CodegenError("the head of a compiled kernel is malformed", found=str(error)) from None


class NativeKernel:
    """Code for one program. `runnable`: whether this machine can execute it; if not, it can be stored only."""

    def __init__(self, object_code: bytes) -> None:
        self.object_code = object_code
        self.signature, processor, code = unpack(object_code)
        self.processor, _, features = processor.partition(" ")
        self.runnable = runs_here(self.processor, features)
        self.address = 0
        if self.runnable:
            self._loaded = Loaded(code, ("entry",))
            self.address = self._loaded.address("entry")
            self._entry = Entry(self.address)

    def __call__(self, slots: int, workspace: int) -> int:
        """The entry itself: addresses as numbers. 0, or the number of the check that failed."""
        if not self.runnable:
            raise CodegenError(
                f"this machine cannot execute code for {self.processor}", help="compile for host instead"
            )
        return self._entry(slots, workspace)

    def failure(self, code: int, report: Sequence[int]) -> TilewrightError:
        """The error for a check that failed, from its number and the four numbers that it reported."""
        return self.signature.guards[code - 1].error(report)

    @property
    def slot_count(self) -> int:
        signature = self.signature
        return len(signature.params) + len(signature.symbols) + len(signature.results) + REPORT

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Call with one array or number per parameter. Outputs are written in place; returns what the program returns.

        Raises `ArgumentError` for arguments that do not match, and what a failing check stands for."""
        signature = self.signature
        if len(arguments) != len(signature.params):
            raise ArgumentError(
                f"{signature.name} takes {len(signature.params)} arguments",
                found=str(len(arguments)),
                help="pass " + ", ".join(p.name for p in signature.params),
            )
        given = [a if p.shape is None else np.asarray(a) for p, a in zip(signature.params, arguments, strict=True)]
        slots = [self._slot(p, a) for p, a in zip(signature.params, given, strict=True)]
        slots += [int(given[position].shape[axis]) for position, axis in signature.symbols]
        for parameter, argument in zip(signature.params, given, strict=True):
            _check(parameter, argument, signature, slots)
        made: list[Any] = []
        for result in signature.results:
            kind = np.dtype(result.numpy)
            shape = signature.extents(result.shape or (), slots)
            made.append(np.empty(shape, kind) if result.kind == "tensor" else None)
            slots.append(made[-1].ctypes.data if result.kind == "tensor" else 0)
        buffer = (ctypes.c_int64 * self.slot_count)(*(s - 2**64 if s >= 2**63 else s for s in slots))
        workspace = np.empty(signature.workspace_bytes + WORKSPACE_ALIGNMENT, np.uint8)
        aligned = -(-workspace.ctypes.data // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
        code = self(ctypes.addressof(buffer), aligned)
        if code:
            raise self.failure(code, buffer[-REPORT:])
        return self._results(given, made, buffer)

    @staticmethod
    def _slot(parameter: Parameter, argument: Any) -> int:
        if parameter.shape is None:
            return number_bits(argument, np.dtype(parameter.numpy))
        array = cast(Array, argument)
        if array.dtype != np.dtype(parameter.numpy) or array.ndim != len(parameter.shape):
            raise ArgumentError(
                f"argument {parameter.name!r} does not match its parameter",
                required=f"{len(parameter.shape)} dimensions of {parameter.dtype}",
                found=f"{list(array.shape)} of {array.dtype}",
            )
        return array.ctypes.data

    def _results(self, given: Sequence[Any], made: Sequence[Any], buffer: Any) -> tuple[Any, ...]:
        signature = self.signature
        first = len(signature.params) + len(signature.symbols)
        found: list[Any] = []
        for position, result in enumerate(signature.results):
            if result.index is not None:
                found.append(given[result.index])
            elif result.kind == "tensor":
                found.append(made[position])
            else:
                number = number_of(buffer[first + position], np.dtype(result.numpy))
                found.append(int(number) if result.dtype == "INDEX" else number)
        return tuple(found)


def _check(parameter: Parameter, argument: Any, signature: Signature, slots: Sequence[int]) -> None:
    """Shape and strides of an array are those of its parameter."""
    if parameter.shape is None:
        return
    array = cast(Array, argument)
    shape = signature.extents(parameter.shape, slots)
    size = array.dtype.itemsize
    if parameter.strides is None:
        steps: tuple[int, ...] = ()
        total = 1
        for extent in reversed(shape):
            steps = (total, *steps)
            total *= extent
    else:
        steps = signature.extents(parameter.strides, slots)
    lies = (
        all(n <= 1 or have == want * size for n, have, want in zip(array.shape, array.strides, steps, strict=True))
        or 0 in array.shape
    )
    if array.shape != shape or not lies or array.ctypes.data % min(size, 8):
        raise ArgumentError(
            f"argument {parameter.name!r} does not match its parameter",
            required=f"{list(shape)} of {parameter.dtype}, strides {list(steps)} elements",
            found=f"{list(array.shape)} of {array.dtype}, strides {[s / size for s in array.strides]} elements",
        )
    if parameter.is_output and not array.flags.writeable:
        raise ArgumentError(f"argument {parameter.name!r} is written, and is read-only")
