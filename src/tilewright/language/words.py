"""Words of the language that are read and never executed.

A kernel's body is compiled from its source, so that nothing here runs while a kernel does. Each word knows its dotted
name after ``pl.`` (`pl_name`), by which the reader recognises it however it was imported.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import LanguageError
from tilewright.ir.dtypes import DType
from tilewright.ir.scalar import Scalar, constant


class Word:
    """A statement, scope or operation of the language."""

    def __init__(self, pl_name: str, doc: str | None = None) -> None:
        self.pl_name = pl_name
        self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises `LanguageError`: calling a word outside of a kernel means nothing."""
        raise LanguageError(
            f"pl.{self.pl_name} was called as a Python function",
            required="a use inside a kernel: kernels are read, not executed",
            help="decorate the function around it with @pl.jit, and call that",
        )

    def __repr__(self) -> str:
        return f"<pl.{self.pl_name}>"


class ConstWord(Word):
    """``pl.const(3, pl.INT32)``: a typed constant, which may also be made outside of a kernel and read from inside."""

    def __call__(self, value: float | str, dtype: DType) -> Scalar:
        """`value` as a constant of `dtype`; ``"inf"``, ``"-inf"`` and ``"nan"`` are understood."""
        return constant(float(value) if isinstance(value, str) else value, dtype)


class FuncAttr(Word):
    """``pl.func_attr({...})``: static attributes of a function, as a decorator or a statement."""

    def __call__(self, attributes: dict[str, Any] | None = None, **named: Any) -> Any:
        """A decorator that leaves its function alone; the reader takes the attributes from the source."""
        return _unchanged


def _unchanged(function: Any) -> Any:
    return function


range = Word("range", "``for i in pl.range(start, stop, step, init_values=(x,))``: trips one after the other.")
parallel = Word("parallel", "``for i in pl.parallel(n)``: independent trips, shared out over the cores.")
unroll = Word("unroll", "``for i in pl.unroll(n)``: trips replicated when the kernel is compiled.")
pipeline = Word("pipeline", "``for i in pl.pipeline(n, stage=2)``: sequential meaning, trips overlapped.")
spmd = Word("spmd", "``for i in pl.spmd(n)`` or ``with pl.spmd(n)``: `n` instances of one section.")
static_range = Word("static_range", "``for i in pl.static_range(n)``: like `unroll`, with `i` a constant.")
while_ = Word("while_", "A loop while a condition holds, carrying `init_values`.")
cond = Word("cond", "The condition of a `while_` loop.")
yield_ = Word("yield_", "``x = pl.yield_(v)``: hands `v` out of a branch, loop or scope as `x`.")
at = Word("at", "``with pl.at(level=pl.Level.CORE_GROUP)``: one section; what it makes stays on chip where it can.")
cluster = Word("cluster", "``with pl.cluster()``: one section on a group of cores.")
split_aiv = Word("split_aiv", "``with pl.split_aiv(2)``: one section shared by the vector cores of a group.")
static_print = Word("static_print", "Prints while the kernel is compiled.")
static_assert = Word("static_assert", "Refuses the kernel when a static condition does not hold.")
bind_dynamic = Word("bind_dynamic", "``t.bind_dynamic(0, n)``: names an extent of a tensor.")
min = Word("min", "The smaller of two scalars.")
max = Word("max", "The larger of two scalars.")
const = ConstWord("const", "``pl.const(3, pl.INT32)``: a constant with a dtype.")
func_attr = FuncAttr("func_attr", "Static attributes of a function.")
