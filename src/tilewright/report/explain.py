"""Where each tile of a program lives on a target, what moves, what it costs, and why.

    explain(program, "ascend910b")  ->  an `Explanation`

The program is lowered as for any other use, and the explanation is read off what came out, together with two programs
on the way there: as its user wrote it (what was demanded) and after `infer_spaces` (what changes memory, before each
change becomes hops).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilewright.analysis.buffers import Buffer, collect_buffers
from tilewright.analysis.cores import cores_of
from tilewright.analysis.footprint import layout_on
from tilewright.analysis.liveness import Liveness, live_ranges
from tilewright.analysis.space_plan import SpacePlan
from tilewright.analysis.spaces import is_transfer, nbytes_of, tile_operands
from tilewright.compiler import judge, judge_plan, lower
from tilewright.errors import Span
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import Layout, MemorySpace
from tilewright.ir.nodes import Block, Call, For, Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TensorType, TileType
from tilewright.passes.memory.place_buffers import AddressPlan, plan_addresses
from tilewright.passes.tile.expand import plan_expansion
from tilewright.passes.tile.infer_spaces import plan_of
from tilewright.passes.tile.partition import hand_tiled
from tilewright.passes.tile.pipeline import plan_pipelines
from tilewright.passes.tile.tile_matmul import plan_tiles
from tilewright.report.model import (
    BufferBar,
    Explanation,
    FunctionReport,
    HandRow,
    Launch,
    MemoryUse,
    MoveRow,
    RouteRow,
    TileRow,
    Workspace,
)  # fmt: skip
from tilewright.report.reasons import Crossings, Reasons, Written, crossings_of, written_places
from tilewright.report.traffic import Traffic, traffic_of
from tilewright.sections.driver import plan_forwarding
from tilewright.sections.section import Phase
from tilewright.targets import Target, load_target
from tilewright.targets.parts import LAYOUTS
from tilewright.text.scalars import print_scalar

TEMPLATES, PLANS = "forward_templates", "forward_plans"
SPACES = "infer_spaces"
"""The stage at which every tile has a space, and each change of space is one move."""


def explain(program: Program, target: str | Target, forward: bool = True) -> Explanation:
    """Lowers `program` for `target`, with `forward` as for `lower`, and says what became of it. Raises what the passes
    raise."""
    machine = load_target(target)
    stages: dict[str, Program] = {}
    final = lower(program, machine, forward=forward, observe=lambda name, after, _: stages.__setitem__(name, after))
    written, crossings = written_places(program), crossings_of(final)
    launches = _launches(final, machine)
    known = _known_scalars(final)
    order = list(dict.fromkeys(launch.function for launch in launches))
    placed = [f for f in final.functions if f.kind is not FunctionKind.ORCHESTRATION]
    placed.sort(key=lambda f: order.index(f.name) if f.name in order else len(order))
    assigned = stages["assign_buffers"]
    functions = tuple(
        _Builder(
            f, machine, written, crossings, traffic_of(f, machine, known.get(f.name)),
            plan_addresses(assigned.function(f.name), machine),
        ).report()
        for f in placed
    )  # fmt: skip
    before = stages[list(stages)[list(stages).index(SPACES) - 1]]
    plans = [plan_of(f, machine) for f in before.functions if f.kind is FunctionKind.INCORE]
    return Explanation(
        program.entry,
        machine.name,
        machine.description,
        functions,
        launches,
        _workspaces(final),
        (*_routes(stages[SPACES], machine), *_loaded_again(plans, machine)),
        tuple(dict.fromkeys(choice for plan in plans for choice in plan.choices)),
        machine.notes,
        _hands(stages, machine) if forward else (),
        _hints(stages, machine),
    )


def _hands(stages: dict[str, Program], target: Target) -> tuple[HandRow, ...]:
    """What forwarding decided: of whole tensors, then block by block for what still went through DDR."""
    names = list(stages)
    given = [stages[names[names.index(name) - 1]] for name in (TEMPLATES, PLANS)]
    templates = plan_forwarding(given[0], target, judge(target), leave=hand_tiled(stages["outline_sections"]))
    plans = plan_forwarding(given[1], target, judge_plan(target), Phase.TILED)
    joined = {(join.tensor, join.producer, join.consumer) for join in plans.joins}
    first = [d for d in templates.declines if (d.tensor, d.producer, d.consumer) not in joined]
    tried = {(d.tensor, d.span) for d in first}
    later = [d for d in plans.declines if (d.tensor, d.span) not in tried]
    rows = [
        HandRow(j.tensor, j.span.line, j.producer, j.consumer, j.function, j.kept, j.nbytes, "")
        for j in (*templates.joins, *plans.joins)
    ]
    rows += [HandRow(d.tensor, d.span.line, d.producer, d.consumer, "", True, d.nbytes, str(d.refusal))
             for d in (*first, *later)]  # fmt: skip
    return tuple(rows)


def _hints(stages: dict[str, Program], target: Target) -> tuple[str, ...]:
    """What the passes that give hints say of the programs that they got."""
    names = list(stages)

    def given_to(name: str) -> Program:
        return stages[names[names.index(name) - 1]]

    found = (
        *plan_expansion(given_to("expand"), target).hints,
        *plan_tiles(given_to("tile_matmul"), target).hints,
        *plan_pipelines(given_to("pipeline"), target).hints,
    )
    return tuple(dict.fromkeys(map(str, found)))


# --- one function -------------------------------------------------------------------------------------------------
class _Builder:
    def __init__(
        self,
        function: Function,
        target: Target,
        written: Written,
        crossings: Crossings,
        traffic: Traffic,
        addresses: AddressPlan,
    ) -> None:
        self.function = function
        self.target = target
        self.reasons = Reasons(function, target, written, crossings)
        self.traffic = traffic
        self.addresses = addresses
        self.live: Liveness = live_ranges(function)

    def report(self) -> FunctionReport:
        function = self.function
        return FunctionReport(
            function.name,
            _core(function, self.target),
            function.span.file,
            function.span.line,
            max(self.live.ends.values(), default=0),
            tuple(self.tiles()),
            tuple(self.moves()),
            tuple(self.memories()),
            self.traffic.ddr_in,
            self.traffic.ddr_out,
            dict(sorted(self.traffic.cycles.items())),
            self.traffic.exact,
        )

    def tiles(self) -> list[TileRow]:
        rows: list[TileRow] = []
        for stmt in self.function.walk():
            made_by = stmt.value.name if isinstance(stmt, Let) and isinstance(stmt.value, Op) else _kind(stmt)
            rows += [
                self.tile(value, made_by, stmt.span)
                for value in (*stmt.block_args(), *stmt.defs())
                if isinstance(value.type, TileType)
            ]
        return rows

    def tile(self, value: Value, made_by: str, span: Span) -> TileRow:
        kind = value.type
        assert isinstance(kind, TileType) and kind.space is not None and kind.memref is not None
        first, last = self.live.range_of(value)
        return TileRow(
            name=value.name,
            made_by=made_by,
            file=span.file,
            line=span.line,
            shape=shape_text(kind.shape),
            valid="" if kind.valid == kind.shape else shape_text(kind.valid),
            dtype=str(kind.dtype),
            space=kind.space.value,
            memory=self.target.memory(kind.space).name,
            core=(self.target.core_of_space(kind.space) or "") if len(self.target.cores) > 1 else "",
            layout=layout_name(layout_on(kind, self.target)),
            nbytes=kind.memref.nbytes or 0,
            buffer=kind.memref.name,
            address=kind.memref.addr,
            first=first // 2,
            last=last // 2,
            why=self.reasons.why(value),
        )

    def moves(self) -> list[MoveRow]:
        rows: list[MoveRow] = []
        for stmt, moved in self.traffic.moves.items():
            op = stmt.value
            assert isinstance(op, Op)
            source = next(value for name, value in op.operand_items() if name != op.writes)
            written = getattr(op, op.writes) if op.writes else stmt.target
            ends = [v.type.space if isinstance(v.type, TileType) else MemorySpace.DDR for v in (source, stmt.target)]
            src, dst = (end.value if end is not None else "" for end in ends)
            rows.append(
                MoveRow(
                    stmt.span.line, source.name, written.name, src, dst,
                    moved.cost.engine, moved.cost.cycles, moved.times, moved.nbytes,
                )
            )  # fmt: skip
        return rows

    def memories(self) -> list[MemoryUse]:
        by_memory: dict[str, list[Buffer]] = {}
        for buffer in collect_buffers(self.function).values():
            by_memory.setdefault(self.target.memory(buffer.space).name, []).append(buffer)
        found: list[MemoryUse] = []
        for name, buffers in by_memory.items():
            spaces = tuple(dict.fromkeys(buffer.space.value for buffer in buffers))
            peak = max((b.addr + b.nbytes for b in buffers if b.addr is not None), default=0)
            bars = sorted((_bar(buffer) for buffer in buffers), key=lambda bar: (bar.address or 0, bar.first))
            verdict = self.addresses.memories[name].verdict()
            found.append(MemoryUse(name, spaces, peak, self.target.capacity(buffers[0].space), tuple(bars), verdict))
        order = list(self.target.memories)
        return sorted(found, key=lambda use: order.index(use.memory))


def _bar(buffer: Buffer) -> BufferBar:
    tiles = tuple(dict.fromkeys(value.name for value in buffer.tiles))
    return BufferBar(buffer.name, buffer.addr, buffer.nbytes, max(0, buffer.first // 2), buffer.last // 2, tiles)


def _kind(stmt: object) -> str:
    return "loop" if isinstance(stmt, For) else "branch"


# --- the whole program --------------------------------------------------------------------------------------------
def _launches(program: Program, target: Target) -> tuple[Launch, ...]:
    """The calls of tile functions, in the order in which the entry makes them."""
    found: list[Launch] = []
    if program.main.kind is FunctionKind.ORCHESTRATION:
        _calls(program.main, program.main.body, 0, program, found, {program.entry})
    else:
        found.append(Launch(program.entry, "", 0, tuple(param.value.name for param in program.main.params)))
    cores = {function.name: _core(function, target) for function in program.functions}
    return tuple(replace(launch, core=cores[launch.function]) for launch in found)


def _calls(caller: Function, block: Block, depth: int, program: Program, found: list[Launch], above: set[str]) -> None:
    names = _tensor_names(caller, program)
    for stmt in block:
        if isinstance(stmt, Call):
            callee = program.function(stmt.callee)
            if callee.kind is FunctionKind.ORCHESTRATION and callee.name not in above:
                _calls(callee, callee.body, depth, program, found, above | {callee.name})
            else:
                args = tuple(names.get(arg, "") or scalar_text(arg) for arg in stmt.args)
                found.append(Launch(callee.name, "", depth, args))
        for inner in stmt.blocks():
            _calls(caller, inner, depth + isinstance(stmt, For), program, found, above)


def _tensor_names(function: Function, program: Program) -> dict[Scalar, str]:
    """A name for each version of a tensor: that of its root, told apart from other tensors of that name."""
    names: dict[Scalar, str] = {}
    taken: dict[str, int] = {}
    roots = roots_of(function, program)
    for root in dict.fromkeys(roots.values()):
        number = taken[root.name] = taken.get(root.name, 0) + 1
        names[root] = root.name if number == 1 else f"{root.name}_{number}"
    return {value: names[root] for value, root in roots.items()}


def _core(function: Function, target: Target) -> str:
    """The kinds of core that run `function`; empty where there is one kind."""
    return " and ".join(sorted(cores_of(function, target))) if len(target.cores) > 1 else ""


def _known_scalars(program: Program) -> dict[str, dict[Value, int]]:
    """For each function the scalar parameters that are the same constant in all of its calls."""
    given: dict[str, dict[Value, set[Scalar]]] = {}
    for function in program.functions:
        for stmt in function.walk():
            if isinstance(stmt, Call):
                params = program.function(stmt.callee).params
                for param, arg in zip(params, stmt.args, strict=True):
                    given.setdefault(stmt.callee, {}).setdefault(param.value, set()).add(arg)
    return {
        name: {value: arg for value, args in params.items() for arg in args if isinstance(arg, int) and len(args) == 1}
        for name, params in given.items()
    }


def _workspaces(program: Program) -> tuple[Workspace, ...]:
    """Tensors in DDR that the program makes for itself."""
    found: list[Workspace] = []
    for function in program.functions:
        names = _tensor_names(function, program)
        for stmt in function.walk():
            if not isinstance(stmt, Let) or not isinstance(stmt.value, Op) or any(stmt.value.operand_items()):
                continue
            kind = stmt.target.type
            if isinstance(kind, TensorType):
                count = prod(extent for extent in kind.shape if isinstance(extent, int))
                nbytes = -(-count * kind.dtype.bits // 8)
                found.append(Workspace(names[stmt.target], shape_text(kind.shape), str(kind.dtype), nbytes))
    return tuple(found)


def _routes(program: Program, target: Target) -> tuple[RouteRow, ...]:
    """Every change of memory that the program needs, before each becomes the hops of its way."""
    rows: list[RouteRow] = []
    for function in program.functions:
        for stmt in function.walk():
            if not isinstance(stmt, Let) or not isinstance(stmt.value, Op) or not is_transfer(stmt.value):
                continue
            source, made = tile_operands(stmt.value)[0][1], stmt.target
            before, after = source.type, made.type
            assert isinstance(before, TileType) and isinstance(after, TileType)
            if before.space is None or after.space is None:
                continue
            route = target.route(before.space, after.space, before.dtype, after.dtype, nbytes_of(before))
            if route is not None and route.hops:
                rows.append(
                    RouteRow(
                        function.name, stmt.span.line, source.name, before.space.value, after.space.value,
                        str(route), route.cost, target.edge(before.space, after.space) is not None,
                    )
                )  # fmt: skip
    return tuple(rows)


def _loaded_again(plans: list[SpacePlan], target: Target) -> list[RouteRow]:
    """Changes of memory that a second load from DDR serves, because that is cheaper or the only way."""
    rows: dict[tuple[Value, MemorySpace], RouteRow] = {}
    for plan in plans:
        for (stmt, _), bridge in plan.bridges.items():
            if bridge.chain:
                home = plan.homes[bridge.value]
                rows[bridge.value, bridge.space] = RouteRow(
                    plan.function, stmt.span.line, bridge.value.name, home.value, bridge.space.value,
                    f"loaded again: DDR -> {bridge.space.value}", bridge.cycles,
                    target.edge(home, bridge.space) is not None,
                )  # fmt: skip
    return list(rows.values())


# --- words --------------------------------------------------------------------------------------------------------
def shape_text(shape: Shape) -> str:
    """``64x128``; extents known at run time by name."""
    return "x".join(scalar_text(extent) for extent in shape)


def scalar_text(scalar: Scalar) -> str:
    return print_scalar(scalar, lambda value: value.name).replace("pl.", "")


def layout_name(layout: Layout) -> str:
    """The name that target files use; the fields, where there is none."""
    known = next((name for name, named in LAYOUTS.items() if named == layout), None)
    return known or f"{layout.blayout.value}/{layout.slayout.value}/{layout.fractal}"
