"""From a tile-level function to a section, or the reason why it is none.

    def f(self, x, y_out):                          f: load x -> [x_1] -> exp -> [y] -> store y_out
        x_1 = pl.tile.load(x, [0, 0], [64, 64])
        y = pl.tile.exp(x_1)
        y_out_1 = pl.tile.store(y, [0, 0], y_out)
        return y_out_1

A section is straight-line code of loads, computations and stores, with at most one loop along K that adds to one tile;
or one parallel loop around such code, whose trips are its items. Each stage keeps its one statement; scalars are
spelled out where they are used. What is loaded and stored again goes through a stage of its own that does nothing,
since a join looks for readers that compute.
Refused, with the statement: branches, other loops, room made in DDR, elements read or written one by one, what must
be done once, scalar results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.analysis.spaces import fixed_space, inherited_field, tile_operands
from tilewright.ir.function import Direction, Function, Param
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Block, For, Let, LoopKind, Return, Stmt, Yield
from tilewright.ir.op import Access, Effect, Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Shape, Value
from tilewright.ir.storage import Roots, roots_of, written_operand
from tilewright.ir.types import ScalarType, TensorType, TileType
from tilewright.ops.collective import AllReduce as AllReduceOp
from tilewright.ops.collective import Recv as RecvOp
from tilewright.ops.movement import Load as LoadOp
from tilewright.ops.movement import Store as StoreOp
from tilewright.sections.addresses import Loops, extent_of
from tilewright.sections.claims import EXACT
from tilewright.sections.patterns import AffinePattern, Extent, Pattern
from tilewright.sections.refusals import Reason, Refusal
from tilewright.sections.section import (
    AllReduce,
    Bind,
    Body,
    Buffer,
    Compute,
    Edge,
    Item,
    KLoop,
    Load,
    Loop,
    Numerics,
    Phase,
    Recv,
    Requires,
    Role,
    ScalarParam,
    Section,
    Stage,
    StageKind,
    Store,
    Tensor,
    TensorLayout,
    Work,
)  # fmt: skip
from tilewright.text.printer import identifier

FED = (MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.BIAS)
"""Memories that nothing but the one for matrices fills."""


@dataclass(frozen=True, slots=True)
class NoSection(Reason):
    """The function is more, or other, than loads, computations and stores in a row."""

    function: str
    why: str

    def __str__(self) -> str:
        return f"{self.function} is no section: {self.why}"


class _Refused(Exception):
    """Carries a refusal out of the walk."""

    def __init__(self, why: str, stmt: Stmt | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.stmt = stmt


def lift(function: Function, phase: Phase = Phase.TEMPLATE) -> Section | Refusal:
    """The section that `function` is, with the names of its parameters. Linear in its size."""
    try:
        return _Lifter(function, phase).section()
    except _Refused as refused:
        return Refusal("lift", NoSection(function.name, refused.why), function.name, refused.stmt)


class _Lifter:
    def __init__(self, function: Function, phase: Phase) -> None:
        self.function = function = _Spelled().function(function)
        self.phase = phase
        self.roots: Roots = roots_of(function)
        self.grid: For | None = None
        self.depth: For | None = None
        """the loop along K, while it is walked"""
        self.k_loop: KLoop | None = None
        self.tensors: dict[Value, int] = {}
        self.buffers: list[Buffer] = []
        self.of: dict[Value, int] = {}
        """the buffer of each tile"""
        self.stages: list[Stage] = []
        self.names: set[str] = set()
        self.readers: list[list[int]] = []
        self.received: dict[Value, Let] = {}
        """messages of other sites that nothing has loaded yet"""

    # --- the whole ---
    def section(self) -> Section:
        function = self.function
        scalars: list[ScalarParam] = []
        for param in function.params:
            kind = param.value.type
            if isinstance(kind, TensorType):
                self.tensors[param.value] = len(self.tensors)
            elif isinstance(kind, ScalarType):
                scalars.append(ScalarParam(param.value.name, kind.dtype))
            else:
                raise _Refused(f"its parameter {param.value.name} is neither tensor nor scalar")
        self.results()
        for stmt in self.items():
            self.stmt(stmt)
        if self.received:
            raise _Refused("a message of another site is not loaded, or by several", next(iter(self.received.values())))
        self.demands()
        loops = (self.loop(self.grid),) if self.grid is not None else ()
        items = tuple(Item((value,)) for loop in loops for value in loop.values) or (Item(()),)
        tensors = tuple(self.tensor(value) for value in self.tensors)
        return Section(
            function.name, tensors, tuple(self.stages), tuple(self.buffers), self.edges(), tuple(scalars),
            self.work(items, loops), self.trips(), tuple(loop.step for loop in loops), 1, Numerics(), self.phase,
            function.attrs, EXACT, self.requires(), sum(b.kind is MemorySpace.ACC for b in self.buffers),
        )  # fmt: skip

    def edges(self) -> tuple[Edge, ...]:
        """Who reads what: of a tile that is added to, what the first stage wrote until the second has added to it."""
        writers: dict[int, list[int]] = {}
        for at, stage in enumerate(self.stages):
            for buffer in stage.outs:
                writers.setdefault(buffer, []).append(at)
        found: list[Edge] = []
        for at, stage in enumerate(self.stages):
            for buffer in stage.outs:
                end = next((other for other in writers[buffer] if other > at), len(self.stages))
                readers = tuple(reader for reader in self.readers[buffer] if at < reader <= end)
                found += [Edge(at, buffer, readers)] if readers else []
        return tuple(found)

    def work(self, items: tuple[Item, ...], loops: tuple[Loop, ...]) -> Work:
        if self.k_loop is None:
            return Work(items, grid=loops)
        return Work(items, *self.trips(), *self.trips(), grid=loops, k_loop=self.k_loop)

    def trips(self) -> tuple[int, ...]:
        return () if self.k_loop is None else (len(self.k_loop.loop.values),)

    def requires(self) -> Requires:
        """The links to other sites that the section uses."""
        links = [s.kind.group for s in self.stages if isinstance(s.kind, AllReduce)]
        links += [s.kind.channel for s in self.stages if isinstance(s.kind, Recv)]
        return Requires(interconnect=frozenset(links))

    def results(self) -> None:
        """What is returned must be the last version of an output."""
        outputs = {param.value for param in self.function.params if param.is_output}
        for value in self.function.results:
            if not isinstance(value, Value) or self.roots.get(value) not in outputs:
                raise _Refused("it returns something else than its outputs")

    def items(self) -> Block:
        """The statements of one item; finds the grid."""
        inside = self.function.body[:-1]
        if len(inside) == 1 and isinstance(inside[0], For):
            return self.enter(inside[0])
        return inside

    def enter(self, stmt: For) -> Block:
        """Takes a loop as the grid. It carries outputs and nothing else."""
        if stmt.kind is not LoopKind.PARALLEL:
            raise _Refused("its trips depend on each other", stmt)
        if not stmt.trip_count:
            raise _Refused("how many items it has is known at run time only", stmt)
        last = stmt.body[-1]
        assert isinstance(last, Yield)
        for arg, given in zip(stmt.iter_args, last.values, strict=True):
            if not isinstance(given, Value) or self.roots.get(given) is not self.roots.get(arg):
                raise _Refused("its items hand on something else than their outputs", stmt)
        self.grid = stmt
        return stmt.body[:-1]

    def loop(self, stmt: For) -> Loop:
        start, stop, step = stmt.start, stmt.stop, stmt.step
        assert isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
        return Loop(start, stop, step, stmt.kind, stmt.stage)

    def tensor(self, value: Value) -> Tensor:
        kind = value.type
        assert isinstance(kind, TensorType)
        strides = None if kind.strides is None else self.extents(value, kind.strides)
        layout = TensorLayout(self.extents(value, kind.shape), strides)
        return Tensor(value.name, layout.elems, self.tiles(value), kind.dtype, layout)

    def tiles(self, value: Value) -> int:
        """The number of tiles that the items cut a tensor into: one for each item that has a place of its own there."""
        at = self.tensors[value]
        patterns = [s.kind.pattern for s in self.stages if isinstance(s.kind, Load | Store) and s.kind.tensor == at]
        moves = any(isinstance(p, AffinePattern) and (p.steps or any(o.terms for o in p.offsets)) for p in patterns)
        return (self.grid.trip_count or 1) if self.grid is not None and moves else 1

    def extents(self, value: Value, shape: Shape) -> tuple[Extent, ...]:
        found = tuple(extent_of(scalar) for scalar in shape)
        if None in found:
            raise _Refused(f"an extent of {value.name} is no number and no name")
        return tuple(extent for extent in found if extent is not None)

    # --- statements ---
    def stmt(self, stmt: Stmt) -> None:
        if isinstance(stmt, For):
            self.along_k(stmt)
            return
        if not isinstance(stmt, Let):
            raise _Refused("it has loops or branches of its own", stmt)
        op, made = stmt.value, stmt.target
        assert isinstance(op, Op)
        if isinstance(op, AllReduceOp):
            self.append(AllReduce(self.root(op.tensor), op.group), stmt, op, ())
            return
        if isinstance(op, RecvOp):
            self.received[made] = stmt
            return
        if op.effect is not Effect.PURE:
            raise _Refused(f"{op.qualified_name} must be done once, and in order", stmt)
        written = written_operand(op)
        tensors = [value for _, value in op.operand_items() if isinstance(value.type, TensorType)]
        if isinstance(op, StoreOp):
            self.store(stmt, op)
        elif written is not None or isinstance(made.type, TensorType) or not isinstance(made.type, TileType):
            raise _Refused(f"{op.qualified_name} is no load, computation or store", stmt)
        elif isinstance(op, LoadOp):
            self.load(stmt, op)
        elif tensors:
            raise _Refused(f"{op.qualified_name} reads memory where its operands say", stmt)
        else:
            self.compute(stmt, op)

    def along_k(self, stmt: For) -> None:
        """A loop that adds to one tile, trip by trip: the one loop that an item may have."""
        if self.k_loop is not None or self.depth is not None:
            raise _Refused("it has several loops along K", stmt)
        if stmt.kind is LoopKind.PARALLEL or not stmt.trip_count or len(stmt.iter_args) != 1:
            raise _Refused("it has loops or branches of its own", stmt)
        last, start, (arg,) = stmt.body[-1], stmt.inits[0], stmt.iter_args
        assert isinstance(last, Yield)
        given = last.values[0]
        if not isinstance(start, Value) or start not in self.of or not isinstance(given, Value):
            raise _Refused("its loop carries something else than a tile", stmt)
        self.depth, self.of[arg] = stmt, self.of[start]
        for inner in stmt.body[:-1]:
            self.stmt(inner)
        sums = [s for s in self.stages if isinstance(s.kind, Compute) and s.kind.accumulator == self.of[arg]]
        if len(sums) != 1 or self.of.get(given) != self.of[arg] or arg.type is not start.type:
            raise _Refused("its loop does not add to the tile that it carries", stmt)
        self.depth, self.of[stmt.results[0]] = None, self.of[arg]
        self.k_loop = KLoop(self.loop(stmt), self.of[arg])

    def load(self, stmt: Let, op: LoadOp) -> None:
        message = self.received.pop(op.tensor, None)
        if message is not None:
            self.receive(stmt, op, message)
            return
        tensor = self.root(op.tensor)
        pattern = self.pattern(op, next(a for a in op.accesses() if a.field == "tensor"), stepping=False)
        trips = self.depth.trip_count if self.depth is not None else None
        kind = Load(tensor, pattern, trips or 1, transposed=op.transpose, pad=op.pad_value or Pad.NULL)
        self.append(kind, stmt, op, ())

    def receive(self, stmt: Let, op: LoadOp, message: Let) -> None:
        """What another site sends fills a buffer: the message is made in DDR, and loaded from there at once."""
        assert isinstance(message.value, RecvOp)
        scalars = tuple(
            dict.fromkeys(v for let in (message, stmt) for v in (*_scalars(let), *let.target.type.values()))
        )
        statements = (message, stmt, Return((stmt.target,), span=stmt.span))
        function = Function(op.name, tuple(Param(v) for v in scalars), statements, span=stmt.span)
        self.of[stmt.target] = buffer = self.buffer(stmt.target, self.kind(op))
        self.stage(Recv(message.value.channel), (), (buffer,), Body(function, self.binds(scalars)))

    def store(self, stmt: Let, op: StoreOp) -> None:
        tensor = self.root(op.output_tensor)
        given = op.tile
        if any(isinstance(s.kind, Load) and self.of[given] in s.outs for s in self.stages):
            self.hand_on(given)
        stepping = any(isinstance(s.kind, Compute) and s.kind.sub_blocks for s in self.stages)
        access = next(a for a in op.accesses() if a.field == "output_tensor" and a.writes)
        pattern = self.pattern(op, access, stepping=stepping)
        keeps = next(p.direction is Direction.INOUT for p in self.function.params if p.value is self.param(tensor))
        self.append(Store(tensor, pattern, adds=bool(op.atomic), keeps=keeps), stmt, op, (given,))

    def compute(self, stmt: Let, op: Op) -> None:
        ins = tuple(dict.fromkeys(value for _, value in tile_operands(op)))
        blocks = (1, 1) if isinstance(op.loops, Contract) else None
        carried = self.of[self.depth.iter_args[0]] if self.depth is not None else None
        added = carried if any(self.of[value] == carried for value in ins) else None
        self.append(Compute(op.work().kind, blocks, added), stmt, op, ins)

    def hand_on(self, tile: Value) -> None:
        """A stage without statements, between a load and the store of what it loaded."""
        source = self.of[tile]
        params = (*dict.fromkeys(tile.type.values()), tile)
        made = Function("same", tuple(Param(p) for p in params), (Return((tile,)),))
        buffer = self.buffer(tile, self.buffers[source].kind)
        self.stage(Compute("none"), (source,), (buffer,), Body(made, (*self.binds(params[:-1]), Bind(Role.INPUT, 0))))
        self.of[tile] = buffer

    # --- stages ---
    def append(self, kind: StageKind, stmt: Let, op: Op, ins: tuple[Value, ...]) -> None:
        """A stage for one statement, whose function reads its inputs, its tensor, and scalars."""
        made = stmt.target
        tensors = tuple(dict.fromkeys(v for v in op.uses() if isinstance(v.type, TensorType)))
        needed = dict.fromkeys(v for v in op.uses() if isinstance(v.type, ScalarType))
        for value in (*ins, *tensors, made):
            needed |= dict.fromkeys(value.type.values())
        tensor = tuple(Bind(Role.TENSOR) for _ in tensors)
        inputs = tuple(Bind(Role.INPUT, at) for at in range(len(ins)))
        written = Direction.INOUT if isinstance(kind, Store) else Direction.IN
        # Scalars first: types of the others may name them.
        params = (*map(Param, needed), *map(Param, ins), *(Param(v, written) for v in tensors))
        function = Function(
            identifier(op.name), params, (stmt, Return((made,), span=stmt.span)), span=stmt.span,
        )  # fmt: skip
        body = Body(function, (*self.binds(tuple(needed)), *inputs, *tensor))
        outs: tuple[int, ...] = ()
        buffers = tuple(self.of[value] for value in ins)
        if isinstance(made.type, TileType):
            added = kind.accumulator if isinstance(kind, Compute) else None
            outs = (self.buffer(made, self.kind(op)) if added is None else added,)
            self.of[made] = outs[0]
        self.stage(kind, buffers, outs, body)

    def stage(self, kind: StageKind, ins: tuple[int, ...], outs: tuple[int, ...], body: Body) -> None:
        for buffer in ins:
            self.readers[buffer].append(len(self.stages))
        self.stages.append(Stage(kind, ins, outs, body, self.depth is not None))

    def binds(self, scalars: tuple[Value, ...]) -> tuple[Bind, ...]:
        """What each scalar stands for."""
        return tuple(map(self.bind, scalars))

    def bind(self, value: Value) -> Bind:
        if self.grid is not None and value is self.grid.iv:
            return Bind(Role.COORD, 0)
        if self.depth is not None and value is self.depth.iv:
            return Bind(Role.TRIP)
        return Bind(Role.SCALAR, name=value.name)

    def buffer(self, value: Value, kind: MemorySpace | None) -> int:
        name, count = value.name, 0
        while name in self.names:
            count += 1
            name = f"{value.name}_{count}"
        self.names.add(name)
        tile = value.type
        assert isinstance(tile, TileType)
        page = tuple(extent for e in tile.shape if (extent := extent_of(e)) is not None)
        self.buffers.append(
            Buffer(name, name, kind, tile.dtype, page=page if len(page) == len(tile.shape) else None)
        )  # fmt: skip
        self.readers.append([])
        return len(self.buffers) - 1

    def kind(self, op: Op) -> MemorySpace | None:
        """The memory in which the operation leaves its result, by its own facts; None where nothing fixes one."""
        space = fixed_space(op)
        if op.converts:
            return None
        if space is not None:
            return space
        followed = inherited_field(op)
        return self.buffers[self.of[getattr(op, followed)]].kind if followed is not None else None

    def demands(self) -> None:
        """Gives what is loaded to no memory in particular the one that all of its readers ask for."""
        for stage in self.stages:
            for buffer in stage.outs if isinstance(stage.kind, Load) else ():
                asked = {self.asked(self.stages[reader], buffer) for reader in self.readers[buffer]}
                if self.buffers[buffer].kind is None and len(asked) == 1:
                    self.buffers[buffer] = replace(self.buffers[buffer], kind=asked.pop())

    def asked(self, stage: Stage, buffer: int) -> MemorySpace | None:
        """The memory in which a stage reads a buffer, by the facts of its operation; the matrix engine's own memories
        are filled from the one before them."""
        assert stage.body is not None
        let = stage.body.function.body[0]
        if not isinstance(let, Let) or not isinstance(let.value, Op):
            return None
        param = stage.body.function.params[stage.ins.index(buffer)].value
        spaces = [let.value.field(name).spaces for name, value in tile_operands(let.value) if value is param]
        first = {found[0] if found else None for found in spaces}
        if len(first) != 1:
            return None
        space = first.pop()
        return MemorySpace.MAT if space in FED else space

    # --- tensors and patterns ---
    def root(self, value: Value) -> int:
        return self.tensors[self.roots[value]]

    def param(self, tensor: int) -> Value:
        return list(self.tensors)[tensor]

    def pattern(self, op: Op, access: Access, *, stepping: bool) -> Pattern:
        tensor = getattr(op, access.field) if access.field else None
        assert isinstance(tensor, Value) and isinstance(tensor.type, TensorType)
        return Loops(self.grid, self.depth).pattern(op, access, tensor.type.shape, stepping=stepping)


def _scalars(stmt: Let) -> list[Value]:
    """The scalars that a statement reads."""
    return [value for value in stmt.uses() if isinstance(value.type, ScalarType)]


class _Spelled(Rewriter):
    """Puts what named scalars stand for in their places, types included, so that a statement mentions nothing but
    parameters and the variables of loops."""

    def visit_let(self, stmt: Let) -> None:
        if isinstance(stmt.value, Op):
            super().visit_let(stmt)
        else:
            self.bind(stmt.target, self.scalar(stmt.value))
