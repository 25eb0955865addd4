"""What became of each result that one section hands to another: joined, or not, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.errors import Span
from tilewright.ir.function import Program
from tilewright.sections.price import Price
from tilewright.sections.refusals import Reason, Refusal


@dataclass(frozen=True, slots=True)
class Slower(Reason):
    """The target's prices say that the joined section would take longer."""

    apart: Price
    joined: Price

    def __str__(self) -> str:
        return f"joined it would take {self.joined}, and apart it takes {self.apart}"


@dataclass(frozen=True, slots=True)
class NoRoom(Reason):
    """The joined section cannot be compiled for the target."""

    message: str

    def __str__(self) -> str:
        return f"the joined section does not compile: {self.message}"


@dataclass(frozen=True, slots=True)
class Apart(Reason):
    """What stands between the two sections cannot go before or after both of them."""

    between: str

    def __str__(self) -> str:
        return f"{self.between} stands between them and depends on both"


@dataclass(frozen=True, slots=True)
class Join:
    """`tensor` goes from `producer` to `consumer`, two functions that became `function`, and is never loaded. `kept`:
    somebody else reads it, so it is stored all the same. `nbytes` of the tensor, None where its extents are names."""

    function: str
    tensor: str
    producer: str
    consumer: str
    span: Span
    kept: bool
    nbytes: int | None

    def __str__(self) -> str:
        stays = "stays on chip" if not self.kept else "is stored for others, and not loaded"
        return f"{self.tensor} {stays} from {self.producer} to {self.consumer}, in {self.function}"


@dataclass(frozen=True, slots=True)
class Decline:
    """`tensor` goes through DDR from `producer` to `consumer`."""

    tensor: str
    producer: str
    consumer: str
    span: Span
    refusal: Refusal
    nbytes: int | None = None

    def __str__(self) -> str:
        return f"{self.tensor} goes through DDR from {self.producer} to {self.consumer}: {self.refusal}"


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What was decided for a program, and `program` as it then is. Prints one line per tensor handed on."""

    program: Program
    joins: tuple[Join, ...] = ()
    declines: tuple[Decline, ...] = ()
    prices: tuple[tuple[str, Price, Price], ...] = field(default=())
    """of each joined function: its name, the price of its parts before, and its own"""

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.joins, *self.declines)))
