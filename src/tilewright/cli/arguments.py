"""Arguments as they are written in a shell, and arrays for them.

64x128:f32      an array of that shape: small random integers for an input, poison for an output
input.npy       an array from a file
3, 0.5, true    a number or a bool
alpha=0.5       any of them, for the parameter of that name
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from tilewright.cli.kernels import Parameter, Subject
from tilewright.errors import CommandError
from tilewright.ir import dtypes
from tilewright.ir.dtypes import FP32, DType
from tilewright.ir.function import Direction
from tilewright.ir.types import ScalarType, TensorType

Array = npt.NDArray[Any]

SMALL = 4
"""Inputs are integers from -4 to 4, so that sums of products are exact, whatever their order."""

LONGEST_NUMBER = 200
"""Characters of a number, or of a shape: longer ones are neither."""

_SHAPE = re.compile(r"(\d+(?:x\d+)*)(?::(\w+))?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|nan)", re.IGNORECASE)


def build_arguments(subject: Subject, specs: Sequence[str], seed: int) -> list[Any]:
    """A value for each parameter. Without `specs`: the file's own `arguments()`, else arrays of the declared types.
    Raises `CommandError` for too few, too many, or what has no known form."""
    draw = np.random.default_rng(seed)
    if not specs and subject.examples is not None:
        return copies(subject.examples())
    given = _matched(subject, specs)
    values: list[Any] = []
    for parameter in subject.parameters:
        spec = given.get(parameter.name)
        if spec is not None:
            values.append(_parsed(spec, parameter, draw))
        elif parameter.is_optional:
            break
        else:
            values.append(_declared(parameter, subject, draw))
    return values


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a value is a NumPy array."""
    return isinstance(value, np.ndarray)


def copies(values: Sequence[Any]) -> list[Any]:
    """The values, arrays copied: what a kernel writes does not reach them."""
    return [value.copy() if is_array(value) else value for value in values]


def _matched(subject: Subject, specs: Sequence[str]) -> dict[str, str]:
    """The text for each parameter, by position or by name."""
    names = [parameter.name for parameter in subject.parameters]
    found: dict[str, str] = {}
    for position, spec in enumerate(specs):
        name, equals, text = spec.partition("=")
        if not equals:
            if position >= len(names):
                raise CommandError(
                    f"{subject.name} takes {len(names)} arguments", found=str(len(specs)), help=usage(subject)
                )
            name, text = names[position], spec
        if name not in names or name in found:
            what = f"has no parameter {name!r}" if name not in names else f"got {name!r} twice"
            raise CommandError(f"{subject.name} {what}", found=spec, help=usage(subject))
        found[name] = text
    return found


def usage(subject: Subject) -> str:
    """How the arguments of a kernel are written."""
    example = " ".join("64x64:f32" for _ in subject.parameters)
    names = ", ".join(
        parameter.name if parameter.direction is Direction.IN else f"{parameter.name} ({parameter.direction.value})"
        for parameter in subject.parameters
    )
    return f"one for each of {names}, such as: {example}"


# --- one argument -------------------------------------------------------------------------------------------------
def _parsed(text: str, parameter: Parameter, draw: np.random.Generator) -> Any:
    if text.endswith(".npy"):
        return _loaded(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    shape = _SHAPE.fullmatch(text)
    if shape is not None and ("x" in text or ":" in text) and len(text) <= LONGEST_NUMBER:
        extents = tuple(int(extent) for extent in shape[1].split("x"))
        dtype = FP32 if shape[2] is None else dtype_called(shape[2])
        return _array(extents, dtype, parameter.direction, draw)
    if len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None:
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    raise CommandError(
        f"cannot read the argument {text!r} for {parameter.name!r}",
        required="a shape such as 64x128:f32, a file such as input.npy, a number, or true or false",
    )


MAGIC = b"\x93NUMPY"
"""How an .npy file begins."""

UNREADABLE = (
    OSError, ValueError, EOFError, MemoryError, TypeError, OverflowError, RecursionError, KeyError, TokenError,
    SyntaxError,
)  # fmt: skip
"""What NumPy lets through of files that are none of its own."""


def _loaded(text: str) -> Array:
    """The array in a file. It is mapped first: a header that promises more than the file holds costs no memory."""
    path = Path(text)
    try:
        if path.exists() and not path.is_file():
            raise OSError("no regular file")
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("no .npy file")
        mapped: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise CommandError(f"{text} cannot be read as an array", found=reason) from None
    assert is_array(mapped)
    if mapped.dtype.kind not in "biuf":
        raise CommandError(
            f"{text} is no array that a kernel takes", required="numbers or bools", found=f"elements of {mapped.dtype}"
        )
    return np.array(mapped)


def dtype_called(name: str) -> DType:
    """An element type by any of its usual names: ``f32``, ``FP32``, ``float32``. Raises `UnknownDTypeError`."""
    for dtype in dtypes.ALL:
        if name.lower() in (dtype.name.lower(), dtype.short.lower(), str(np.dtype(dtype.numpy))):
            return dtype
    return dtypes.by_name(name)


def _declared(parameter: Parameter, subject: Subject, draw: np.random.Generator) -> Any:
    """A value of the type that the parameter declares."""
    kind = parameter.type
    if isinstance(kind, TensorType) and all(isinstance(extent, int) for extent in kind.shape):
        extents = tuple(extent for extent in kind.shape if isinstance(extent, int))
        return _array(extents, kind.dtype, parameter.direction, draw)
    what = "a number" if isinstance(kind, ScalarType) else "an array"
    raise CommandError(f"{subject.name} needs {what} for {parameter.name!r}", help=usage(subject))


def _array(shape: tuple[int, ...], dtype: DType, direction: Direction, draw: np.random.Generator) -> Array:
    """Small integers for what is read; for an output, what no right kernel leaves there."""
    kind = np.dtype(dtype.numpy)
    if prod(shape) * WIDEST > memory_bytes():
        raise CommandError(
            "an array that large cannot be made",
            required=f"at most {memory_bytes() // WIDEST:,} elements, which fill the memory of this machine",
            found="x".join(map(str, shape)),
        )
    try:
        if direction is Direction.OUT:
            return poison(shape, kind)
        low = 0 if kind.kind in "ub" else -SMALL
        high = 1 if kind.kind == "b" else SMALL
        return draw.integers(low, high + 1, shape).astype(kind)
    except (MemoryError, ValueError) as error:
        raise CommandError("an array that large cannot be made", found=f"{shape}: {error}") from None


WIDEST = 8
"""Bytes of an element while it is drawn."""


def memory_bytes() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def poison(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    """NaN, or the lowest integer: seen at once in a result."""
    if kind.kind in "iu":
        return np.full(shape, np.iinfo(kind).min if kind.kind == "i" else np.iinfo(kind).max, kind)
    return np.full(shape, kind.kind == "b" or np.nan).astype(kind)
