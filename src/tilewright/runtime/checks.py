"""What must hold of arguments before a kernel may write: outputs that can be written, and that nothing else shares."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import ArgumentError
from tilewright.runtime.arrays import Argument, overlaps, repeats_elements


def check_output(name: str, argument: Argument) -> None:
    """Raises `ArgumentError` when output `name` cannot be written."""
    if not argument.writable:
        raise ArgumentError(
            f"output {name!r} is read-only",
            required="an array that may be written",
            help="jax arrays never are: return the result instead of writing it" if argument.kind == "jax" else None,
        )
    if repeats_elements(argument.view):
        raise ArgumentError(
            f"output {name!r} has elements that share memory",
            found=f"shape {argument.view.shape}, strides {argument.view.strides}",
            help="a broadcast view cannot be written: pass a full array",
        )


def check_aliasing(arrays: Sequence[tuple[str, bool, Argument]]) -> None:
    """Raises `ArgumentError` when an output shares memory with another argument. Each array comes with the name of
    its parameter, and whether that is an output."""
    for index, (name, is_output, argument) in enumerate(arrays):
        for other, other_is_output, against in arrays[:index]:
            if (is_output or other_is_output) and overlaps(argument.view, against.view):
                output, shared = (name, other) if is_output else (other, name)
                raise ArgumentError(
                    f"output {output!r} shares memory with argument {shared!r}",
                    required="parameters do not alias",
                    help=f"pass a copy of {shared}, or declare one pl.InOut parameter for both",
                )
