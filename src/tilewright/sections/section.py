"""A section: the dataflow of one kernel, which is what joining two kernels needs to see, and no more.

    load x -> [x0] -> exp -> [y0] -> store y

Stages pass pages to each other through buffers; edges say who reads what. Tensors, buffers, stages and edges are
numbered by their position, so an id cannot contradict its place. A stage carries the statements that it stands for
(`Body`), so that lowering splices them and never has to make them up; a section read from elsewhere may lack them, and
can then be joined and verified, but not lowered.

Everything is immutable and compared by structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from tilewright.ir.dtypes import FP32, DType
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import LoopKind
from tilewright.sections.claims import Claim
from tilewright.sections.patterns import ONE_BLOCK, Blocks, Coord, Extent, Pattern

TensorId = int
BufferId = int
StageId = int
EdgeId = int


# --- tensors and buffers ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class TensorLayout:
    """How a tensor lies in DDR: extents per dimension, and strides in elements (None: C order)."""

    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...] | None = None

    @property
    def elems(self) -> int | None:
        """The number of elements; None while an extent is a name."""
        sizes = [extent for extent in self.shape if isinstance(extent, int)]
        return prod(sizes) if len(sizes) == len(self.shape) else None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in DDR, known by its name in the whole program. `elems` is None where an extent is a name; `tiles` is
    the number of tiles that the section's items cut it into (1: taken whole)."""

    name: str
    elems: int | None
    tiles: int
    dtype: DType
    layout: TensorLayout


@dataclass(frozen=True, slots=True)
class Buffer:
    """What one stage hands to others on chip: `pages` tiles of `page` elements each.

    `kind` is the memory that the operations at both ends ask for, None where nothing asks (``any``, which agrees with
    every kind). `name` is unique in its section; `origin` is the name before any joining, from which names are made
    anew at every join. `page` is the physical shape of one page, None where nobody knows it."""

    name: str
    origin: str
    kind: MemorySpace | None
    dtype: DType
    pages: int = 1
    page: tuple[Extent, ...] | None = None

    @property
    def nbytes(self) -> int | None:
        """Bytes of all pages; None while the page's shape is not a plain number."""
        if self.page is None:
            return None
        sizes = [extent for extent in self.page if isinstance(extent, int)]
        if len(sizes) != len(self.page):
            return None
        return self.pages * -(-prod(sizes) * self.dtype.bits // 8)


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A scalar that the kernel is called with, known by its name in the whole program."""

    name: str
    dtype: DType


# --- stages -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Load:
    """Tiles of a tensor fill the stage's one output. `num_blocks` tiles are read per item, in a row; `multicast`
    names the group that shares one read. `transposed`: each tile arrives with its last two dimensions exchanged.
    `pad` fills what the tile has beyond its box."""

    tensor: TensorId
    pattern: Pattern
    num_blocks: int = 1
    multicast: str | None = None
    transposed: bool = False
    pad: Pad = Pad.NULL


@dataclass(frozen=True, slots=True)
class Store:
    """The stage's one input goes to tiles of a tensor, `sub_blocks` of them per item. `adds`: each is added to what
    is there. `keeps`: what the stores leave alone keeps its old content (an InOut parameter)."""

    tensor: TensorId
    pattern: Pattern
    sub_blocks: Blocks = ONE_BLOCK
    adds: bool = False
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class AllReduce:
    """A tensor is summed over the sites of `group`, in place."""

    tensor: TensorId
    group: str


@dataclass(frozen=True, slots=True)
class Recv:
    """What another site sent over `channel` fills the stage's output."""

    channel: str


@dataclass(frozen=True, slots=True)
class Compute:
    """Buffers in, buffers out. `work` is the class of work in the target's terms (``matmul``, ``add``, ``move``, ...),
    for people and prices. A matmul packs `sub_blocks` tiles per item (None: not a matmul) and may add to a buffer,
    `accumulator`, which it then both reads and writes."""

    work: str
    sub_blocks: Blocks | None = None
    accumulator: BufferId | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """Scalar work: it has no result on chip that a join would follow. `work` as for `Compute`."""

    work: str


StageKind = Load | Store | AllReduce | Recv | Compute | Scalar


class Role(Enum):
    """What a parameter of a stage's statements stands for."""

    INPUT = "input"  # the stage's input number `index`
    TENSOR = "tensor"  # the tensor that the stage loads, stores or reduces, in its newest version
    COORD = "coord"  # number `index` of the item's coordinate: the variable of that grid loop
    TRIP = "trip"  # the variable of the K loop
    SCALAR = "scalar"  # the section's scalar `name`


@dataclass(frozen=True, slots=True)
class Bind:
    """One parameter of a stage's statements."""

    role: Role
    index: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The statements of a stage, as a function that reads nothing but its parameters; `binds` says of each, in order,
    what it stands for. Its results are the stage's outputs in order; a `Store` or `AllReduce` returns the tensor's
    next version alone. No id of the section occurs in it, so that joining leaves it as it is."""

    function: Function
    binds: tuple[Bind, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step. `ins` and `outs` are the buffers that it reads and writes; `in_loop`: it runs once per trip of the K
    loop. `body` is None for a section that was read without statements."""

    kind: StageKind
    ins: tuple[BufferId, ...]
    outs: tuple[BufferId, ...]
    body: Body | None = None
    in_loop: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """What stage `source` writes to `buffer` is read by the stages `to`, in stage order."""

    source: StageId
    buffer: BufferId
    to: tuple[StageId, ...]


# --- work and plan ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Item:
    """One work item. `coord` has the value of each grid loop's variable."""

    coord: Coord


@dataclass(frozen=True, slots=True)
class Loop:
    """``for variable in kind(start, stop, step)``; `stage` is the depth of a pipeline."""

    start: int
    stop: int
    step: int
    kind: LoopKind
    stage: int = 1

    @property
    def values(self) -> range:
        return range(self.start, self.stop, self.step)


@dataclass(frozen=True, slots=True)
class KLoop:
    """The loop along K. `accumulator` is the buffer that it carries: written before the loop, read and written in
    every trip, read after it. None: nothing is carried."""

    loop: Loop
    accumulator: BufferId | None


@dataclass(frozen=True, slots=True)
class Work:
    """What is walked: the `items` in order, and for each, `k_tiles` tiles along K. `grid` has the loops whose product,
    the last one fastest, the items are; () for one item without a loop, or items that no loops make. `k_trip` is how
    many trips along K a plan chose (None: no plan), and `k_loop` the loop that makes them."""

    items: tuple[Item, ...]
    k_tiles: int = 1
    k_trip: int | None = None
    grid: tuple[Loop, ...] = ()
    k_loop: KLoop | None = None


class Phase(Enum):
    """How far a section has come."""

    TEMPLATE = "template"
    TILED = "tiled"
    PLACED = "placed"
    SCHEDULED = "scheduled"
    CERTIFIED = "certified"


@dataclass(frozen=True, slots=True)
class Numerics:
    """How numbers are kept on the way: the accumulator's type, and rounding, which is half to even everywhere."""

    accumulate: DType = FP32
    rounding: str = "half_to_even"


@dataclass(frozen=True, slots=True)
class Requires:
    """What the machine must offer beside memories: handshakes between cores, links between sites."""

    handshakes: frozenset[str] = frozenset()
    interconnect: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Section:
    """One kernel. Fields from `work` on describe its plan, except the last five.

    `tile` is the geometry that items are laid out for: what one item advances by, per grid loop (() without a grid).
    `trips` are the trip counts that a plan chose, () before. `attrs` are the function's attributes.
    `acc_tiles_used` counts accumulator tiles."""

    name: str
    tensors: tuple[Tensor, ...]
    stages: tuple[Stage, ...]
    buffers: tuple[Buffer, ...]
    edges: tuple[Edge, ...]
    scalars: tuple[ScalarParam, ...]
    work: Work
    trips: tuple[int, ...]
    tile: tuple[int, ...]
    mem_banks: int
    numerics: Numerics
    phase: Phase
    attrs: tuple[tuple[str, object], ...]
    claim: Claim
    requires: Requires
    acc_tiles_used: int


ONE_ITEM = Work((Item(()),))
"""The work of a template: one item, which is everything."""


def tensor_of(kind: StageKind) -> TensorId | None:
    """The tensor that a stage of this kind names."""
    return kind.tensor if isinstance(kind, Load | Store | AllReduce) else None
