"""What an operation may use while it is replaced by simpler ones: operations, loops that carry values, choices.

An operation that no machine has as an instruction (a gather, a sort, an index of a maximum) says in `Op.expand` what it
is made of, once for every backend:

    def expand(self, to: Expansion) -> Scalar:
        out = to.room(self.infer())
        return to.loop(rows, (out,), lambda i, made: (write(made, i, read(self.src, i)),))[0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tilewright.ir.scalar import Scalar, Value

if TYPE_CHECKING:
    from tilewright.ir.op import Op
    from tilewright.ir.types import Type

Body = Callable[..., Sequence[Scalar]]
"""From a loop's index and the values that it carries to the values that the next trip gets."""


class Expansion(Protocol):
    """Appends statements where the operation stood."""

    def op(self, op: Op, name: str | None = None) -> Value:
        """Append `op`, and return its result."""
        ...

    def plain(self, op: Op, name: str | None = None) -> Value:
        """As `op`, for one that would be expanded itself and must stand as it is."""
        ...

    def named(self, scalar: Scalar, name: str) -> Scalar:
        """`scalar` worked out here, once, however often it is used."""
        ...

    def room(self, kind: Type) -> Value:
        """A new tile (or tensor) of type `kind`, in the memory that the operation's result was given."""
        ...

    def loop(self, stop: Scalar, carried: Sequence[Scalar], body: Body, name: str = "i") -> tuple[Value, ...]:
        """``for name in range(stop)``, carrying values: `body(index, *values)` gives the next ones. Returns the last
        ones."""
        ...

    def choose(
        self, condition: Scalar, then: Callable[[], Sequence[Scalar]], otherwise: Callable[[], Sequence[Scalar]]
    ) -> tuple[Value, ...]:
        """What `then` gives where `condition` holds, else what `otherwise` does; only one of them is executed."""
        ...
