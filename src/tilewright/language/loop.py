"""``pl.loop``: programs as loops over buffers, written by hand. See `docs/loops.md`.

    @pl.loop.function
    def copy(A: pl.loop.Buffer[[16], pl.FP32], B: pl.loop.Buffer[[16], pl.FP32]):
        for i in pl.loop.serial(0, 16):
            B[i] = A[i]

`copy` is then a `LoopFunction`. Its body is read and never executed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.frontend import loops_of
from tilewright.frontend import parse_loops as parse
from tilewright.ir.loop_level import LoopFunction
from tilewright.language.annotations import Array
from tilewright.language.words import Word


class Buffer(Array):
    """``pl.loop.Buffer[[16, n], pl.FP32, pl.Mem.Vec]``: an array in memory, row by row."""

    pl_name = "loop.Buffer"


class Vector(Array):
    """``pl.loop.Vector[pl.FP32, 8]``: a scalar of several lanes."""

    pl_name = "loop.Vector"


class Handle(Array):
    """``pl.loop.Handle[pl.FP32]``: a pointer, for functions that are not the compiler's."""

    pl_name = "loop.Handle"


class _FunctionDecorator:
    """`pl.loop.function`."""

    pl_name = "loop.function"

    def __call__(self, function: Callable[..., Any]) -> LoopFunction:
        """The loop function that `function` says. Raises what is wrong with its source."""
        return loops_of(function)


function = _FunctionDecorator()
alloc: Any = Word("loop.alloc", "``B = pl.loop.alloc([16], pl.FP32, pl.Mem.Vec)``: a buffer to the end of the block.")
local: Any = Word("loop.local", "The same at the start of a `block`: a buffer that belongs to it.")
alias: Any = Word("loop.alias", "``C = pl.loop.alias(B, [8], pl.INT32, offset=4)``: the same memory as another array.")
match: Any = Word("loop.match", "``W = pl.loop.match(A[i, 0:16])``: a name for a region, inside one block.")
region: Any = Word("loop.region", "``pl.loop.region(A, [i, 0], [1, n])``: a region by offsets and extents.")
op: Any = Word("loop.op", "``with pl.loop.op(B[0:16, 0:16])``: one operation, whole, on regions.")
attribute: Any = Word("loop.attribute", "``with pl.loop.attribute(key, node, value)``: a fact that holds inside.")
serial: Any = Word("loop.serial", "``for i in pl.loop.serial(0, 16)``: trips in order.")
parallel: Any = Word("loop.parallel", "Trips in any order.")
vectorized: Any = Word("loop.vectorized", "Trips that become lanes.")
unrolled: Any = Word("loop.unrolled", "Trips that are written out.")
thread: Any = Word("loop.thread", '``for c in pl.loop.thread("core", 0, 20)``: a trip for each thread of that name.')
launch: Any = Word("loop.launch", '``for c in pl.loop.launch("core", 20)``: the lowered form of `thread`.')
block: Any = Word("loop.block", '``with pl.loop.block("update")``: a unit of the structured form.')
where: Any = Word("loop.where", "The predicate of a block.")
reads: Any = Word("loop.reads", "The regions that a block reads.")
writes: Any = Word("loop.writes", "The regions that a block writes.")
ramp: Any = Word("loop.ramp", "``pl.loop.ramp(base, stride, lanes)``: a vector of indices.")
broadcast: Any = Word("loop.broadcast", "``pl.loop.broadcast(x, lanes)``: one value in each lane.")
if_then_else: Any = Word("loop.if_then_else", "``pl.loop.if_then_else(c, a, b)``: evaluates the one it takes.")
likely: Any = Word("loop.likely", "A condition that holds nearly always.")
address_of: Any = Word("loop.address_of", "``pl.loop.address_of(B, offset=4, extent=8)``: a pointer for `extern`.")
extern: Any = Word("loop.extern", '``pl.loop.extern("f", x, dtype=pl.FP32)``: a call of what is not the compiler\'s.')

__all__ = [
    "Buffer", "Handle", "Vector", "address_of", "alias", "alloc", "attribute", "block", "broadcast", "extern",
    "function", "if_then_else", "launch", "likely", "local", "match", "op", "parallel", "parse", "ramp", "reads",
    "region", "serial", "thread", "unrolled", "vectorized", "where", "writes",
]  # fmt: skip
