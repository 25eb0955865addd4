"""Why a join, a lift or a lowering is refused: the rule, a typed reason, and the stage or field at which it failed.

A refusal is an answer, not an error: nothing is raised, nothing is half-joined, and `explain` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Stmt


class Reason:
    """Base of reasons; each prints as one clause."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """`rule` is the number of the rule that does not hold (``28``, ``S13``), `where` the stage or field, seen from
    the two sections (``first.stages[2].pattern``), `statement` the one that a lift stopped at."""

    rule: str
    reason: Reason
    where: str
    statement: Stmt | None = None

    def __str__(self) -> str:
        return f"{self.reason} ({self.where}; rule {self.rule})"


# --- phases and agreement -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Phases(Reason):
    first: str
    second: str

    def __str__(self) -> str:
        return f"sections in phase {self.first} and {self.second} do not join"


@dataclass(frozen=True, slots=True)
class Planned(Reason):
    """A plan where there must be none: of a template, or of a consumer that runs under its producer's plan."""

    field: str

    def __str__(self) -> str:
        return f"it brings its own plan: {self.field}"


@dataclass(frozen=True, slots=True)
class Disagree(Reason):
    """A field in which the two sections, or the two declarations of a tensor, must agree."""

    field: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.field} is {self.first} in the producer and {self.second} in the consumer"


@dataclass(frozen=True, slots=True)
class NoItems(Reason):
    def __str__(self) -> str:
        return "there is no work item"


# --- the tensor, its store and its load ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Undeclared(Reason):
    tensor: str

    def __str__(self) -> str:
        return f"{self.tensor} is not declared"


@dataclass(frozen=True, slots=True)
class Live(Reason):
    tensor: str

    def __str__(self) -> str:
        return f"{self.tensor} is still read after the consumer"


@dataclass(frozen=True, slots=True)
class Count(Reason):
    """There must be exactly one of something."""

    what: str
    found: int

    def __str__(self) -> str:
        return f"there must be one {self.what}, and there are {self.found}"


@dataclass(frozen=True, slots=True)
class NotStored(Reason):
    tensor: str

    def __str__(self) -> str:
        return f"the producer does not store {self.tensor}"


@dataclass(frozen=True, slots=True)
class Adds(Reason):
    tensor: str

    def __str__(self) -> str:
        return f"the store adds to what is in {self.tensor}, which the page alone does not know"


@dataclass(frozen=True, slots=True)
class AlsoRead(Reason):
    """The buffer that would carry the tensor is read by another stage too."""

    buffer: str
    stage: int

    def __str__(self) -> str:
        return f"stage {self.stage} also reads {self.buffer}"


@dataclass(frozen=True, slots=True)
class AlsoNamed(Reason):
    tensor: str
    stage: int

    def __str__(self) -> str:
        return f"stage {self.stage} also names {self.tensor}"


@dataclass(frozen=True, slots=True)
class Blocks(Reason):
    found: int

    def __str__(self) -> str:
        return f"the load reads {self.found} blocks per item"


@dataclass(frozen=True, slots=True)
class Multicast(Reason):
    group: str

    def __str__(self) -> str:
        return f"the load is shared by the group {self.group}"


@dataclass(frozen=True, slots=True)
class Transposed(Reason):
    tensor: str

    def __str__(self) -> str:
        return f"{self.tensor} is loaded transposed"


@dataclass(frozen=True, slots=True)
class Unread(Reason):
    buffer: str

    def __str__(self) -> str:
        return f"nothing reads {self.buffer}"


@dataclass(frozen=True, slots=True)
class NotComputed(Reason):
    buffer: str
    stage: int

    def __str__(self) -> str:
        return f"stage {self.stage}, which reads {self.buffer}, does not compute"


# --- tiles --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Unlisted(Reason):
    """The tiles cannot be listed for the item at `coord`."""

    coord: tuple[int, ...]
    why: str

    def __str__(self) -> str:
        return f"the tiles of item {list(self.coord)} cannot be listed: {self.why}"


@dataclass(frozen=True, slots=True)
class TilesDiffer(Reason):
    stored: str
    loaded: str

    def __str__(self) -> str:
        return f"the store writes {self.stored} where the load reads {self.loaded}"


@dataclass(frozen=True, slots=True)
class Overwritten(Reason):
    tensor: str

    def __str__(self) -> str:
        return f"tiles of {self.tensor} are written more than once, and the load would have read the last"


@dataclass(frozen=True, slots=True)
class ManyItems(Reason):
    items: int

    def __str__(self) -> str:
        return f"the store steps with the item, and there are {self.items}"


@dataclass(frozen=True, slots=True)
class NotOneBlock(Reason):
    why: str

    def __str__(self) -> str:
        return f"the joined plan is more than one item packed once: {self.why}"


@dataclass(frozen=True, slots=True)
class PagesDiffer(Reason):
    packed: int
    read: int
    tiles: int

    def __str__(self) -> str:
        return f"an item packs {self.packed} pages, its reader holds {self.read}, and {self.tiles} tiles are stored"


# --- buffers ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class DTypesDiffer(Reason):
    o: str
    i: str
    first: DType
    second: DType

    def __str__(self) -> str:
        return f"{self.o} holds {self.first} and {self.i} holds {self.second}"


@dataclass(frozen=True, slots=True)
class ShapesDiffer(Reason):
    o: str
    i: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"a page of {self.o} is {self.first} and one of {self.i} is {self.second}"


@dataclass(frozen=True, slots=True)
class Crossing(Reason):
    """Every way from the memory of `o` to that of `i` passes DDR."""

    o: str
    i: str
    source: MemorySpace
    destination: MemorySpace

    def __str__(self) -> str:
        return f"{self.o} is in {self.source.value} and {self.i} in {self.destination.value}, which meet only in DDR"


@dataclass(frozen=True, slots=True)
class Converts(Reason):
    """The store or the load rounds, and the target has no conversion that would do the same on chip."""

    tensor: str
    source: DType
    through: DType
    destination: DType

    def __str__(self) -> str:
        kinds = f"{self.source} to {self.through} to {self.destination}"
        return f"{self.tensor} converts {kinds}, which cannot be done on the way"


@dataclass(frozen=True, slots=True)
class OverBudget(Reason):
    """Bytes that are live together at `stage` of the joined section."""

    memory: str
    needed: int
    capacity: int

    def __str__(self) -> str:
        return f"the joined section needs {self.needed} bytes of {self.memory}, which has {self.capacity}"


@dataclass(frozen=True, slots=True)
class NoMemory(Reason):
    buffer: str
    space: MemorySpace

    def __str__(self) -> str:
        return f"the target has no {self.space.value} for {self.buffer}"


# --- both sections ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Shared(Reason):
    """A tensor that both sections use and one of them writes."""

    tensor: str
    why: str

    def __str__(self) -> str:
        return f"both sections use {self.tensor}, one of them writes it, and {self.why}"


@dataclass(frozen=True, slots=True)
class Malformed(Reason):
    fault: str

    def __str__(self) -> str:
        return f"malformed section: {self.fault}"


@dataclass(frozen=True, slots=True)
class NoBody(Reason):
    """A stage that came without statements, so that no program can be made of it."""

    stage: int

    def __str__(self) -> str:
        return f"stage {self.stage} came without statements"
