"""A target: what one machine has, as data, and the questions that the compiler asks of it.

A memory space of the language is a *role*. A target resolves each role to one of its memories, and several roles may
share a memory, in which case a move between them disappears. Everything else is the machine's graph (which memory
feeds which, over which engine, at what price), the shapes that its memories want, the element types that its engines
take, and what work costs. Targets are compared by identity: loading one file twice gives one object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import lcm

from tilewright.errors import NoRouteError, Span, TargetError
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import COL_MAJOR, ROW_MAJOR, BLayout, Layout, MemorySpace, SLayout, implied_layout
from tilewright.targets import routing
from tilewright.targets.decisions import Decisions, Value
from tilewright.targets.parts import CastTable, Drain, DTypeRules, Edge, Engine, MatmulPrice, Memory, Route, VectorPrice

NOMINAL = 16384
"""Bytes for which a route is chosen when the caller does not say: a 64 x 64 tile of f32."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One machine. Made by `tilewright.targets.load_target`."""

    name: str
    description: str
    family: str
    """``ascend`` (PTO text), ``cpu`` (native code) or ``custom``"""
    memories: Mapping[str, Memory]
    """by name; ``DDR`` is always there"""
    roles: Mapping[MemorySpace, str]
    """the memory that each role stands for"""
    edges: tuple[Edge, ...]
    engines: Mapping[str, Engine]
    cores: Mapping[str, int]
    """how many there are of each kind of core"""
    dtypes: DTypeRules
    casts: CastTable
    matmul: MatmulPrice
    vector: VectorPrice
    ddr_granule: int
    """bytes; a row of DDR shorter than this costs as much as this"""
    operand_spaces: Mapping[str, Mapping[str, tuple[MemorySpace, ...]]]
    """operands that this machine reads elsewhere than the operation says: operation, operand, spaces preferred first"""
    pto_arch: str | None
    """``a3`` or ``a5`` where the Ascend assembler serves the machine"""
    llvm_cpu: str | None
    """LLVM's name of the processor, where native code runs on it"""
    llvm_features: str
    vector_bytes: int
    """bytes of one vector register; 0 where the machine has none that matter"""
    vector_registers: int
    path: str
    fingerprint: str
    """hash of all that was read: equal fingerprints, equal targets"""
    notes: tuple[str, ...] = field(default=())
    """what the host was found to have or to lack"""
    ddr_bytes_per_cycle: float | None = None
    """what all cores together get from DDR, reads and writes; None: each core as much as its edges carry"""
    decisions: Decisions = field(default_factory=Decisions)
    """what was decided for one program on this machine: see `tilewright.targets.decisions`"""

    def __repr__(self) -> str:
        return f"<Target {self.name}>"

    # --- memories -------------------------------------------------------------------------------------------------
    def has(self, space: MemorySpace) -> bool:
        """Whether some memory plays the role."""
        return space in self.roles

    @property
    def spaces(self) -> tuple[MemorySpace, ...]:
        """The roles that the machine has, in the language's order."""
        return tuple(space for space in MemorySpace if space in self.roles)

    def memory(self, space: MemorySpace) -> Memory:
        """The memory that plays the role `space`; `TargetError` when none does."""
        name = self.roles.get(space)
        if name is None:
            raise TargetError(
                f"{self.name} has no memory for {space.value}",
                required=f"a memory in the role {space.value}",
                found="roles " + ", ".join(have.value for have in self.spaces),
                help=f'name one under [roles] in the target file: {space.value} = "..."',
            )
        return self.memories[name]

    def capacity(self, space: MemorySpace) -> int:
        """Bytes that tiles in `space` may occupy together (unbounded: 2**62)."""
        found = self.memory(space).capacity
        return 1 << 62 if found is None else found

    def same_memory(self, a: MemorySpace, b: MemorySpace) -> bool:
        """Whether two roles are one memory, so that a move between them, its layout unchanged, disappears."""
        return a is b or (self.has(a) and self.roles[a] == self.roles.get(b))

    def roles_of(self, memory: str) -> tuple[MemorySpace, ...]:
        """The roles that `memory` plays, in the language's order."""
        return routing.roles_of(self.roles, memory)

    def core_of_space(self, space: MemorySpace) -> str | None:
        """The kind of core that the memory belongs to; None for DDR."""
        return self.memory(space).core

    def with_capacity(self, **capacities: int) -> Target:
        """The same machine with other capacities, in bytes, by role (``Vec=4096``): for what-if questions, tests."""
        memories = dict(self.memories)
        for role, capacity in capacities.items():
            name = self.roles[MemorySpace(role)]
            memories[name] = replace(memories[name], capacity=capacity)
        changed = "".join(f"+{role}={capacity}" for role, capacity in sorted(capacities.items()))
        return replace(self, memories=memories, fingerprint=self.fingerprint + changed)

    def with_decisions(self, made: Mapping[str, Value], asked: dict[str, tuple[Value, ...]] | None = None) -> Target:
        """The same machine (with the same fingerprint) with decisions for one program; questions that passes ask are
        noted in `asked`."""
        return replace(self, decisions=Decisions(dict(made), asked))

    # --- shapes ---------------------------------------------------------------------------------------------------
    def layout(self, space: MemorySpace, shape: tuple[int, ...]) -> Layout:
        """How a tile of `shape` lies in `space` unless its type says otherwise. In a row-major memory a column vector
        [M, 1] is column-major, so that its elements stay together."""
        fixed = self.memory(space).layout
        if fixed is None:
            return implied_layout(space, shape)
        column = len(shape) >= 2 and shape[-1] == 1 and shape[-2] != 1
        return COL_MAJOR if fixed is ROW_MAJOR and column else fixed

    def box(
        self, space: MemorySpace, layout: Layout, dtype: DType, shape: tuple[int, ...] | None = None
    ) -> tuple[int, int]:
        """Multiples, in elements, that the physical (rows, columns) of a tile must have. With `shape`, a vector in an
        unboxed layout is spared the multiple across it, since nothing but its one row or column is ever read."""
        memory = self.memory(space)
        rows, cols = _box(memory, layout, dtype)
        if shape is not None and len(shape) >= 2 and layout.slayout is SLayout.NONE_BOX:
            rows = 1 if shape[-2] == 1 and layout.blayout is BLayout.ROW_MAJOR else rows
            cols = 1 if shape[-1] == 1 and layout.blayout is BLayout.COL_MAJOR else cols
        return lcm(rows, memory.row_multiple.get(dtype, 1)), cols

    def physical_shape(
        self, space: MemorySpace, shape: tuple[int, ...], dtype: DType, layout: Layout | None = None
    ) -> tuple[int, ...]:
        """`shape` with its last two dimensions rounded up to the box; leading ones stay. `layout` None: the implied."""
        if len(shape) < 2:
            return self.physical_shape(space, (1, *shape), dtype, layout)[-len(shape) :] if shape else ()
        rows, cols = self.box(space, layout or self.layout(space, shape), dtype, shape)
        return (*shape[:-2], -(-shape[-2] // rows) * rows, -(-shape[-1] // cols) * cols)

    # --- moves ----------------------------------------------------------------------------------------------------
    def edge(self, src: MemorySpace, dst: MemorySpace) -> Edge | None:
        """The edge straight from one role to another. For two roles of one memory: its copy to itself, if it has one,
        which is what a change of layout in place needs."""
        if not (self.has(src) and self.has(dst)):
            return None
        names = self.roles[src], self.roles[dst]
        return next((edge for edge in self.edges if (edge.src, edge.dst) == names), None)

    def route(
        self,
        src: MemorySpace,
        dst: MemorySpace,
        dtype: DType,
        to_dtype: DType | None = None,
        nbytes: int = NOMINAL,
    ) -> Route | None:
        """The cheapest legal path of `nbytes` (of `dtype`) over any number of hops, DDR among them; None if there is
        none. The element type changes at most once, on an edge that offers just that conversion. Cost: the sum over
        hops of latency + bytes / bandwidth, in cycles; ties go to fewer hops, then to names."""
        return _route(self, src, dst, dtype, to_dtype or dtype, nbytes)

    def edges_text(self) -> str:
        """The edges that exist, grouped by source: ``DDR -> Mat, Vec; Mat -> Left, Right``."""
        return routing.edges_text(self.edges, self.roles)

    def no_route(
        self,
        src: MemorySpace,
        dst: MemorySpace,
        dtype: DType | None = None,
        to_dtype: DType | None = None,
        *,
        producer: str | None = None,
        consumer: str | None = None,
        span: Span | None = None,
    ) -> NoRouteError:
        """The error for a move that no path serves; it names both spaces and the edges that exist. To be raised."""
        return routing.no_route(
            self.name, self.edges, self.roles, (src, dst), (dtype, to_dtype),
            producer=producer, consumer=consumer, span=span,
        )  # fmt: skip

    # --- work -----------------------------------------------------------------------------------------------------
    def engine_for(self, work: str) -> Engine:
        """The engine for a class of work: ``matmul``, ``scalar``, or ``vector`` (as is every other kind)."""
        wanted = work if work in ("matmul", "scalar") else "vector"
        for engine in self.engines.values():
            if wanted in engine.does:
                return engine
        if wanted == "scalar":  # a file may leave scalar work to whatever does the rest
            return self.engine_for("vector")
        raise TargetError(
            f"{self.name} has no engine for {wanted} work",
            found="engines " + ", ".join(self.engines),
            help=f'give one of the engines does = ["{wanted}"]',
        )

    def core_for(self, work: str) -> str:
        """The kind of core on which a class of work runs."""
        return self.engine_for(work).cores[0]

    @property
    def matmul_cores(self) -> int:
        """How many cores multiply matrices."""
        return self.cores.get(self.core_for("matmul"), 1)

    @property
    def vector_cores(self) -> int:
        """How many cores do vector work."""
        return self.cores.get(self.core_for("vector"), 1)

    @property
    def has_separate_cores(self) -> bool:
        """Whether matrix and vector work run on different kinds of core."""
        return len(self.cores) > 1

    def vector_dtypes(self, kind: str, scalar: bool = False) -> frozenset[DType]:
        """Element types that vector work of `kind` takes; `DTypeRules.vector_dtypes`."""
        return self.dtypes.vector_dtypes(kind, scalar)

    def matmul_acc(self, lhs: DType, rhs: DType, scaled: bool = False) -> DType | None:
        """The accumulator's type for two operand types; None when the matrix engine does not take them."""
        for types in self.dtypes.matmul:
            if (types.lhs, types.rhs, types.scaled) == (lhs, rhs, scaled):
                return types.acc
        return None

    def native_cast(self, src: DType, dst: DType) -> bool:
        """Whether one instruction casts `src` to `dst`."""
        return self.casts.is_native(src, dst)

    def cast_chain(self, src: DType, dst: DType) -> list[DType] | None:
        """The shortest chain of native casts; `CastTable.chain`."""
        return self.casts.chain(src, dst)

    # --- prices ---------------------------------------------------------------------------------------------------
    def drain(self) -> Drain | None:
        """The formula for moving an accumulator out, where the machine has one."""
        name = self.roles.get(MemorySpace.ACC)
        return next((edge.drain for edge in self.edges if edge.src == name and edge.drain is not None), None)

    def drain_cycles(self, m: int, n: int, nbytes: int = 4) -> float:
        """Cycles of moving an m x n accumulator out, by the formula or else the fastest edge's bandwidth."""
        formula = self.drain()
        if formula is not None:
            return formula.cycles(m, n, nbytes)
        name = self.roles.get(MemorySpace.ACC)
        return min((edge.cycles(m * n * nbytes) for edge in self.edges if edge.src == name), default=0.0)

    def bandwidth(self, src: MemorySpace, dst: MemorySpace) -> float | None:
        """Bytes per cycle of the edge between two roles. None: no such edge, or a drain; one memory: infinity."""
        if self.same_memory(src, dst):
            return float("inf")
        edge = self.edge(src, dst)
        return edge.bytes_per_cycle if edge else None

    def matmul_cycles(self, m: int, n: int, k: int, dtype: DType) -> float:
        """Cycles of one issue of the matrix engine on operands of `dtype`."""
        return self.matmul.cycles(m, n, k, dtype)

    def vector_cycles(self, kind: str, nbytes: float, dtype: DType) -> float:
        """Cycles of one vector operation; `VectorPrice.cycles`."""
        return self.vector.cycles(kind, nbytes, dtype)


@lru_cache(maxsize=4096)
def _route(
    target: Target, src: MemorySpace, dst: MemorySpace, dtype: DType, to_dtype: DType, nbytes: int
) -> Route | None:
    return routing.find_route(target.edges, target.roles, (src, dst), (dtype, to_dtype), nbytes)


def _box(memory: Memory, layout: Layout, dtype: DType) -> tuple[int, int]:
    """The multiples that the memory's own box, else the layout, asks for."""
    if memory.box is not None:
        return memory.box[0].elements(dtype), memory.box[1].elements(dtype)
    if layout.slayout is SLayout.NONE_BOX:
        side = max(1, memory.row_bytes * 8 // dtype.bits)
        return (1, side) if layout.blayout is BLayout.ROW_MAJOR else (side, 1)
    by_row = layout.slayout is SLayout.ROW_MAJOR
    match layout.fractal:
        case 1024:
            return 16, 16
        case 32:
            return (16, 2) if by_row else (2, 16)
        case _:
            side = 32 * 8 // dtype.bits
            return (16, side) if by_row else (side, 16)
