"""The table that `codegen.native.fastcall` compares a call's arguments with, and the builtin function over it.

A call of a `FastCall` with four arrays took 20 µs in Python (a busy machine); as the builtin function that
`direct_call` makes of the same expectations it took 0.14 µs. The table holds addresses of this process and is never
stored.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.dtypes import FP32, DType
from tilewright.runtime.bind import MISS
from tilewright.runtime.memory import address_of

if TYPE_CHECKING:
    from tilewright.runtime.fast import ArrayArgument
    from tilewright.runtime.native import NativeRunner

_METH_FASTCALL = 0x80
_ALIGNED, _WRITEABLE = 0x100, 0x400

_API = {
    "incref": "Py_IncRef",
    "as_integer": "PyLong_AsLongLongAndOverflow",
    "save": "PyEval_SaveThread",
    "restore": "PyEval_RestoreThread",
    "as_bytes": "PyBytes_FromStringAndSize",
    "new_tuple": "PyTuple_New",
    "set_item": "PyTuple_SetItem",
}
"""Words of the table that are functions of CPython."""


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class DirectCall:
    """`function` takes a kernel's arguments: see `codegen.native.fastcall`. It keeps alive what it uses."""

    def __init__(self, runner: NativeRunner, expected: Sequence[ArrayArgument | DType], shown: Sequence[int]) -> None:
        from tilewright.codegen.native import fastcall

        extents = [
            (ctypes.c_int64 * (2 * len(e.shape)))(*e.shape, *e.strides) if not isinstance(e, DType) else None
            for e in expected
        ]
        rows = [_row(e, block) for e, block in zip(expected, extents, strict=True)]
        workspace = runner.new_workspace()
        head = _process() | {
            "count": len(expected),
            "entry": runner.kernel.address,
            "workspace": 0 if workspace is None else address_of(workspace),
            "busy": 0,
            "shown": len(shown),
            "slots": runner.slot_count,
        }
        words = [head[name] for name in fastcall.HEAD]
        words += [row[name] for row in rows for name in fastcall.PARAMETER]
        words += shown
        table = (ctypes.c_int64 * len(words))(*words)
        # The function's module is a reference that it holds: so that what it uses lives as long as it does.
        kept = (runner, tuple(expected), extents, workspace, table)
        at = ctypes.addressof(table).to_bytes(8, sys.byteorder)
        make: Any = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
        self.function: Callable[..., Any] = make(ctypes.addressof(_definition()), at, kept)


def direct_call(
    runner: NativeRunner, expected: Sequence[ArrayArgument | DType], shown: Sequence[int]
) -> DirectCall | None:
    """The call in machine code; None where this interpreter or kernel does not offer what it needs."""
    if runner.kernel.address == 0 or not is_known_interpreter():
        return None
    return DirectCall(runner, expected, shown)


def _row(expected: ArrayArgument | DType, extents: Any) -> dict[str, int]:
    """The words for one parameter."""
    from tilewright.codegen.native import fastcall

    row = dict.fromkeys(fastcall.PARAMETER, 0)
    if isinstance(expected, DType):
        return row | {"kind": fastcall.FLOAT if expected is FP32 else fastcall.INTEGER}
    return row | {
        "kind": fastcall.ARRAY,
        "output": int(expected.is_output),
        "descr": id(expected.dtype),
        "rank": len(expected.shape),
        "flags": _ALIGNED | (_WRITEABLE if expected.is_output else 0),
        "misaligned": expected.alignment - 1,
        "span": expected.span,
        "extents": ctypes.addressof(extents),
    }


@cache
def _process() -> dict[str, int]:
    """The words that are the same for all kernels of this process."""
    words = {"array_type": np.ndarray, "float_type": float, "int_type": int, "miss": MISS, "none": None}
    found = {word: id(value) for word, value in words.items()}
    for word, name in _API.items():
        found[word] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return found


@cache
def _definition() -> _MethodDef:
    from tilewright.codegen.native import fastcall

    return _MethodDef(b"kernel", fastcall.address(), _METH_FASTCALL, None)


@cache
def is_known_interpreter() -> bool:
    """Whether objects of this interpreter lie as the machine code reads them, tried on objects with known values."""
    from tilewright.codegen.native import fastcall

    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False
    base = np.zeros((4, 10), np.float32)
    read_only = base[1:, ::2]
    read_only.flags.writeable = False
    number, text = 12345.678, b"tilewright"
    if ctypes.string_at(id(text) + fastcall.BYTES_AT, len(text)) != text:
        return False
    if ctypes.c_double.from_address(id(number) + fastcall.FLOAT_AT).value != number:
        return False
    return all(_lies_as_known(array) for array in (base, read_only, base.T))


def _lies_as_known(array: np.ndarray[Any, Any]) -> bool:
    from tilewright.codegen.native import fastcall

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(id(array) + offset).value

    def half(offset: int) -> int:
        return ctypes.c_int32.from_address(id(array) + offset).value

    if (word(8), word(fastcall.ARRAY_DESCR)) != (id(type(array)), id(array.dtype)):
        return False
    if word(fastcall.ARRAY_DATA) != address_of(array) or half(fastcall.ARRAY_RANK) != array.ndim:
        return False
    lists = ctypes.c_int64 * array.ndim
    extents = tuple(lists.from_address(word(fastcall.ARRAY_EXTENTS)))
    strides = tuple(lists.from_address(word(fastcall.ARRAY_STRIDES)))
    flags = half(fastcall.ARRAY_FLAGS) & (_ALIGNED | _WRITEABLE)
    wanted = (_ALIGNED if array.flags.aligned else 0) | (_WRITEABLE if array.flags.writeable else 0)
    return (extents, strides, flags) == (array.shape, array.strides, wanted)
