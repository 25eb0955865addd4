"""A placed function as the simulator sees it: per statement an engine, a price, and what it has to wait for.

Engines and prices are those of `analysis.cost`, and waits those of `analysis.hazards`: nothing is decided here. Prices
whose sizes are known when the kernel runs (a tail of 8 rows in a tile of 16) are worked out with the values at hand,
once for each combination of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from tilewright.analysis.cores import core_of
from tilewright.analysis.cost import cost_of, edge_of
from tilewright.analysis.footprint import footprint
from tilewright.analysis.hazards import engine_of, hazards
from tilewright.analysis.work_items import CLUSTER, WorkItems, work_items
from tilewright.errors import TilewrightError
from tilewright.execute.scalars import evaluate_scalar
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value, values_in
from tilewright.ir.types import ScalarType, TileType, Type
from tilewright.targets import Edge, Target
from tilewright.targets.parts import DDR

Env = dict[Value, int]
"""The scalars whose values are known."""


@dataclass(frozen=True, slots=True)
class Price:
    """One execution of a statement. Bytes, and cycles of its core."""

    cycles: float
    """for which it holds its engine, as long as it has DDR for itself"""
    latency: float = 0.0
    """of them, those before the first byte of DDR flows"""
    rate: float = 0.0
    """bytes per cycle that it asks of DDR from then on; 0: it does not go to DDR"""
    edge: tuple[str, str] | None = None
    """the memories between which it moves data"""
    nbytes: int = 0
    """moved over the edge; of DDR whole granules"""
    full: float = 0.0
    """cycles that the same work takes at the full rate of its edge or engine, without start, latency and completion"""
    operations: float = 0.0
    """computed: two for a multiply-add, one for an element of other arithmetic; 0 for what only moves or sets"""


@dataclass(frozen=True, slots=True)
class Wait:
    """An instruction that must have ended: number `before`, its latest execution in this trip of the loop number
    `common` (`slot` None), or what the memory `slot` of a loop holds from trips before."""

    before: int
    common: int
    slot: int | None
    kinds: tuple[str, ...]
    """``read after write of UB``, ..."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a loop remembers of its trips before: where instruction `before` ran last, `distance` trips ago."""

    slot: int
    before: int
    distance: int


@dataclass(slots=True, eq=False)
class Instruction:
    """One statement that an engine executes."""

    number: int
    stmt: Let
    op: Op
    engine: str
    """the queue that it is in: in a cluster, each core has engines of its own"""
    hardware: str
    """the target's name of the engine"""
    sizes: tuple[Scalar, ...]
    """what its price depends on and is not known before it runs"""
    waits: tuple[Wait, ...] = ()
    priced: dict[tuple[int | None, ...], int] = field(default_factory=dict[tuple[int | None, ...], int])
    """the number of the price, by the values of `sizes`"""

    @property
    def line(self) -> int:
        return self.stmt.span.line

    def kinds_of(self, before: int) -> str:
        """Why it waits for the instruction `before`."""
        return ", ".join(dict.fromkeys(kind for wait in self.waits if wait.before == before for kind in wait.kinds))


class Prices:
    """The prices of a simulation, each there once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.table: list[Price] = []
        self._numbers: dict[Price, int] = {}

    def number(self, instruction: Instruction, env: Env) -> int:
        """The number of the price of `instruction` where the scalars in `env` are known."""
        key = tuple(number_of(size, env) for size in instruction.sizes)
        found = instruction.priced.get(key)
        if found is None:
            price = self._price(instruction, env)
            found = self._numbers.setdefault(price, len(self.table))
            if found == len(self.table):
                self.table.append(price)
            instruction.priced[key] = found
        return found

    def _price(self, instruction: Instruction, env: Env) -> Price:
        op, kind = instruction.op, instruction.stmt.target.type
        if not instruction.sizes:
            return price_of(op, kind, self.target)
        try:
            return price_of(*_known(op, kind, env), self.target)
        except TilewrightError:
            # An arm that is taken by assumption may have sizes that no run of the kernel has.
            return price_of(op, kind, self.target)


def number_of(scalar: Scalar, env: Mapping[Value, int]) -> int | None:
    """The value of an integer scalar; None where it is not known."""
    if isinstance(scalar, int):
        return scalar
    if any(value not in env for value in values_in(scalar)):
        return None
    return int(evaluate_scalar(scalar, env))


def _known(op: Op, kind: Type, env: Env) -> tuple[Op, Type]:
    """The operation and the type of its result with every known scalar in them replaced by its value."""
    made: dict[Value, Value] = {}

    def replace(value: Value) -> Scalar:
        if value in env:
            return env[value]
        if isinstance(value.type, ScalarType):
            return value
        if value not in made:
            made[value] = Value(value.name, value.type.substitute(replace), value.span)
        return made[value]

    return op.with_operands(replace), kind.substitute(replace)


def price_of(op: Op, kind: Type, target: Target) -> Price:
    """The price of `op`, whose result has type `kind`, from the cost model."""
    cost = cost_of(op, kind, target)
    edge = edge_of(op, kind, target)
    if edge is not None:
        return _transfer(cost.cycles, cost.ddr_bytes, kind, edge, target)
    work = op.work()
    start, operations = 0.0, float(work.elements) if work.is_arithmetic else 0.0
    if work.macs is not None:
        start, operations = target.matmul.head, 2.0 * prod(work.macs)
    elif work.kind not in ("none", "scalar"):
        start = target.vector_cycles(work.kind, 0, kind.dtype)
    return Price(cost.cycles, full=max(0.0, cost.cycles - start), operations=operations)


def _transfer(cycles: float, ddr_bytes: int, kind: Type, edge: Edge, target: Target) -> Price:
    """The price of a move over `edge`."""
    data = cycles - edge.latency
    from_ddr = DDR in (edge.src, edge.dst)
    nbytes = ddr_bytes if from_ddr else footprint(kind, target) if isinstance(kind, TileType) else 0
    full = nbytes / edge.bytes_per_cycle if edge.bytes_per_cycle else data
    if edge.drain is not None:
        full = min(data, nbytes / edge.drain.bytes_per_cycle)
    rate = ddr_bytes / data if from_ddr and data > 0 else 0.0
    return Price(cycles, edge.latency if rate else 0.0, rate, (edge.src, edge.dst), nbytes, full)


# --- a function ---------------------------------------------------------------------------------------------------
class Code:
    """A placed function, prepared to be executed trip by trip."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target
        self.items: WorkItems = work_items(function, target)
        self.instructions: dict[Let, Instruction] = {}
        self.listed: list[Instruction] = []
        self.loops: dict[For, int] = {}
        """loops by number; 0 stands for the function"""
        self.memories: dict[For, list[Memory]] = {}
        self._around: dict[Let, tuple[For, ...]] = {}
        self._block(function.body, (), target)
        self._waits(function, target)

    def _block(self, block: Block, around: tuple[For, ...], target: Target) -> None:
        for stmt in block:
            if isinstance(stmt, Let):
                engine = engine_of(stmt, target)
                if engine is not None and isinstance(stmt.value, Op):
                    sizes = tuple(dict.fromkeys(s for s in _sizes(stmt.value, stmt) if not isinstance(s, int)))
                    made = Instruction(len(self.listed), stmt, stmt.value, self._queue(stmt, engine), engine, sizes)
                    self.instructions[stmt] = made
                    self.listed.append(made)
                    self._around[stmt] = around
            elif isinstance(stmt, For):
                self.loops[stmt] = len(self.loops) + 1
                self._block(stmt.body, (*around, stmt), target)
            else:
                for inner in stmt.blocks():
                    self._block(inner, around, target)

    def _queue(self, stmt: Let, engine: str) -> str:
        """The engine's name, with that of its core where cores of two kinds have one each."""
        core = core_of(stmt, self.target) if self.items.place == CLUSTER else None
        return engine if core is None or len(self.target.engines[engine].cores) < 2 else f"{engine} {core}"

    def _waits(self, function: Function, target: Target) -> None:
        slots: dict[tuple[For, int, int], int] = {}
        found: dict[Instruction, dict[tuple[int, int, int | None], list[str]]] = {}
        for hazard in hazards(function, target):
            before, after = self.instructions[hazard.before], self.instructions[hazard.after]
            common, slot = 0, None
            if hazard.loop is None:
                for a, b in zip(self._around[hazard.before], self._around[hazard.after], strict=False):
                    if a is not b:
                        break
                    common = self.loops[a]
            else:
                key = (hazard.loop, before.number, hazard.distance)
                slot = slots.setdefault(key, len(slots))
                remembered = self.memories.setdefault(hazard.loop, [])
                if all(memory.slot != slot for memory in remembered):
                    remembered.append(Memory(slot, before.number, hazard.distance))
            kinds = found.setdefault(after, {}).setdefault((before.number, common, slot), [])
            kinds.append(f"{hazard.kind} of {hazard.memory}")
        for after, waits in found.items():
            after.waits = tuple(Wait(*key, tuple(dict.fromkeys(kinds))) for key, kinds in waits.items())
        self.slots = len(slots)


def _sizes(op: Op, stmt: Let) -> Iterator[Scalar]:
    """The extents on which the price of a statement depends."""
    for access in op.accesses():
        yield from access.extents
    for kind in (stmt.target.type, *(value.type for _, value in op.operand_items())):
        if isinstance(kind, TileType):
            yield from kind.valid
