"""The whole pipeline on one page.

A program goes down a list of passes; each takes a program and returns one. The order is written here and nowhere
else, with the reason for each constraint beside it. `stages` is a generator, so that a caller may stop after any
pass, print what stands there, or time it; `lower` runs it to the end, or to a named pass.

    kernel ── tensor level ── tile level ──┬── placed: every tile has an address ── PTO text, emulator, reports
                                           └── unplaced ── native code for this CPU
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from time import perf_counter

from tilewright.analysis.legality import check_legal, check_spaces
from tilewright.analysis.parallel import check_parallel
from tilewright.errors import OperandError, TilewrightError
from tilewright.ir.collector import collector_paused
from tilewright.ir.function import Function, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.verify import verify
from tilewright.ir.verify_loops import verify_loops
from tilewright.passes.loop.compact_buffers import compact_buffers
from tilewright.passes.loop.fuse_loops import fuse_loops
from tilewright.passes.loop.lower_blocks import lower_blocks
from tilewright.passes.loop.partition_loops import partition_loops
from tilewright.passes.loop.simplify import simplify
from tilewright.passes.memory.assign_buffers import assign_buffers
from tilewright.passes.memory.fitting import misfit
from tilewright.passes.memory.place_buffers import place_buffers
from tilewright.passes.tensor.convert_tensor_to_tile import convert_tensor_to_tile
from tilewright.passes.tensor.inline import inline
from tilewright.passes.tensor.outline_sections import outline_sections
from tilewright.passes.tensor.unroll import unroll
from tilewright.passes.tile.expand import expand
from tilewright.passes.tile.flatten_tiles import flatten_tiles
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_dtypes import legalize_dtypes
from tilewright.passes.tile.legalize_layouts import legalize_layouts
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.passes.tile.materialize_scratch import materialize_scratch
from tilewright.passes.tile.partition import hand_tiled, partition
from tilewright.passes.tile.pipeline import pipeline
from tilewright.passes.tile.split_engines import split_engines
from tilewright.passes.tile.tile_matmul import tile_matmul
from tilewright.sections.driver import Judge, forward_sections
from tilewright.sections.price import Price, native_price, price_of
from tilewright.sections.section import Phase
from tilewright.targets import Target

Stage = tuple[str, Program]


def unplaced(program: Program, target: Target, forward: bool = True) -> Iterator[Stage]:
    """Tensor level to tile level: what native code is made from. No tile has a space that it did not ask for."""
    yield "frontend", program
    program = inline(program)
    yield "inline", program
    # After inline, else loops inside spliced bodies would stay rolled.
    program = unroll(program)
    yield "unroll", program
    # After unroll, else a section inside an unrolled loop would be one function called with a constant it needs.
    program = outline_sections(program)
    yield "outline_sections", program
    written = hand_tiled(program)
    # Needs functions that are one section each: a section's results are what goes back to DDR.
    program = convert_tensor_to_tile(program, target)
    yield "convert_tensor_to_tile", program
    if forward:
        # Before partition, else two sections would be cut into blocks that do not match. Sections whose tiles their
        # user chose have their blocks already.
        program = forward_sections(program, target, judge(target), leave=written)
    yield "forward_templates", program
    # After conversion, which says what is loaded where; before tiles are flattened, since a batch is cut by its leading
    # dimension. Tiles that the user wrote stay, and are told apart before conversion makes more of them.
    program = partition(program, target, written)
    yield "partition", program
    # After partition, which knows how to cut operations and not the loops that they are made of; before tiles are
    # flattened, since matrices of a batch are told apart by their leading dimension.
    program = expand(program, target)
    yield "expand", program
    # Before any space is chosen: memories are laid out in two dimensions.
    program = flatten_tiles(program)
    yield "flatten_tiles", program
    if forward:
        # What has blocks by now, of its user or by partition, is joined block by block. Before tile_matmul, which
        # makes loops of what is one product here; and for native code as for placed programs.
        program = forward_sections(program, target, judge_plan(target), Phase.TILED)
    yield "forward_plans", program


def placed(program: Program, target: Target) -> Iterator[Stage]:
    """Tile level to addresses, from the last program of `unplaced`."""
    # Before spaces: what is cut out of an operand asks for Left or Right itself, and results that do not fit an
    # accumulator must not be put into one. After flatten_tiles: rows and columns are what is cut.
    program = tile_matmul(program, target)
    yield "tile_matmul", program
    program = infer_spaces(program, target)
    yield "infer_spaces", program
    # Right after spaces: a hop through DDR makes new loads and stores, which everything below must see.
    program = legalize_moves(program, target)
    yield "legalize_moves", program
    # Before layouts: a tile of another dtype has another box.
    program = legalize_dtypes(program, target)
    yield "legalize_dtypes", program
    program = legalize_layouts(program, target)
    yield "legalize_layouts", program
    # With every move in place, since they show what crosses between cores, and what fits depends on them; before the
    # split, so that what crosses through DDR has a tensor of its own in each slot.
    program = pipeline(program, target)
    yield "pipeline", program
    # Before scratch, which belongs to one function.
    program = split_engines(program, target)
    yield "split_engines", program
    program = materialize_scratch(program, target)
    yield "materialize_scratch", program
    # Last: every tile that will ever exist does now.
    program = assign_buffers(program, target)
    yield "assign_buffers", program
    program = place_buffers(program, target)
    yield "place_buffers", program


def stages(program: Program, target: Target, forward: bool = True) -> Iterator[Stage]:
    """Every stage in order: the name of the pass that ran, and the program after it. `forward`: whether a section's
    result may stay on chip for the next one."""
    for name, after in unplaced(program, target, forward):
        program = after
        yield name, program
    yield from placed(program, target)


def judge(target: Target) -> Judge:
    """What forwarding asks of one section without blocks: its price on `target`, or why the passes refuse it."""
    return _judge(target, lambda section: flatten_tiles(expand(partition(section, target), target)))


def judge_plan(target: Target) -> Judge:
    """The same of a section that has its blocks."""
    return _judge(target, lambda section: section)


def _judge(target: Target, prepared: Callable[[Program], Program]) -> Judge:
    """Sections that are alike are priced once."""
    known: dict[Function, Price | str] = {}

    def judged(function: Function) -> Price | str:
        alone = function.with_(name="alone")
        found = known.get(alone)
        if found is None:
            found = known[alone] = _judged(alone, target, prepared)
        return found

    return judged


def _judged(function: Function, target: Target, prepared: Callable[[Program], Program]) -> Price | str:
    after = given = Program((function,), function.name)
    found = Price()
    try:
        blocks = prepared(given)
        registers = bool(target.memory(MemorySpace.ACC).register_bytes)
        found = native_price(blocks, target) if registers else found
        for name, after in placed(blocks, target):
            if name == "legalize_moves" and not registers:
                found = price_of(after, target)
            if name == "split_engines":
                break
        # Whether everything has room is asked without looking for the best places.
        unfit = next((error for f in after.functions if (error := misfit(f, target)) is not None), None)
    except TilewrightError as error:
        unfit = error
    return found if unfit is None else unfit.message


PASSES: dict[str, Callable[[Program, Target], Program]] = {
    "inline": lambda program, _: inline(program),
    "unroll": lambda program, _: unroll(program),
    "outline_sections": lambda program, _: outline_sections(program),
    "convert_tensor_to_tile": convert_tensor_to_tile,
    "forward_templates": lambda program, target: forward_sections(program, target, judge(target)),
    "partition": partition,
    "expand": expand,
    "flatten_tiles": lambda program, _: flatten_tiles(program),
    "forward_plans": lambda program, target: forward_sections(program, target, judge_plan(target), Phase.TILED),
    "tile_matmul": tile_matmul,
    "infer_spaces": infer_spaces,
    "legalize_moves": legalize_moves,
    "legalize_dtypes": legalize_dtypes,
    "legalize_layouts": legalize_layouts,
    "pipeline": pipeline,
    "split_engines": split_engines,
    "materialize_scratch": materialize_scratch,
    "assign_buffers": assign_buffers,
    "place_buffers": place_buffers,
}
"""Each pass by name, for tools that run one alone."""

UNPLACED = "forward_plans"
PLACED = "place_buffers"


def lower(
    program: Program,
    target: Target,
    *,
    after: str | None = None,
    check: bool = True,
    forward: bool = True,
    observe: Callable[[str, Program, float], None] | None = None,
) -> Program:
    """The program after the pass named `after`; by default after the last one, with every tile placed.

    `forward`: whether sections are joined, so that results of one that only the next needs stay on chip.
    `check` verifies where levels meet and at the end. `observe` is called after each pass with its name, the program
    and the seconds it took. Raises what the passes raise, and `OperandError` for a pass that does not exist."""
    wanted = after or PLACED
    if wanted != "frontend" and wanted not in PASSES:
        near = get_close_matches(wanted, PASSES, 1)
        raise OperandError(
            f"there is no pass called {wanted!r}",
            help=f"did you mean {near[0]}?" if near else "the passes are " + ", ".join(PASSES),
        )
    with collector_paused():
        started = perf_counter()
        for name, stage in stages(program, target, forward):
            program = stage
            if observe is not None:
                observe(name, program, perf_counter() - started)
            if check and name in ("frontend", UNPLACED, PLACED, wanted):
                verify(program)
            if check and name == UNPLACED:
                check_parallel(program)
            if check and name == "legalize_moves":
                check_spaces(program, target)
            if name == wanted:
                break
            started = perf_counter()
    if check and wanted == PLACED:
        check_legal(program, target)
    return program


def run_passes(program: Program, target: Target, names: list[str]) -> Program:
    """`program` after the named passes, in the order given."""
    for name in names:
        if name not in PASSES:
            lower(program, target, after=name)
        program = PASSES[name](program, target)
        verify(program)
    return program


LOOP_PASSES: dict[str, Callable[[LoopFunction], LoopFunction]] = {
    "simplify": simplify,
    "partition_loops": partition_loops,
    "lower_blocks": lower_blocks,
    "fuse_loops": fuse_loops,
    "compact_buffers": compact_buffers,
}
"""What runs on loop functions by name, in any order."""


def run_loop_passes(
    function: LoopFunction, names: list[str], observe: Callable[[str, LoopFunction, float], None] | None = None
) -> LoopFunction:
    """`function` after the named passes, verified after each. `observe` gets each name, result and its seconds."""
    for name in names:
        if name not in LOOP_PASSES:
            near = get_close_matches(name, LOOP_PASSES, 1)
            help = f"did you mean {near[0]}?" if near else "the passes on loops are " + ", ".join(LOOP_PASSES)
            raise OperandError(f"there is no pass on loops called {name!r}", help=help)
        started = perf_counter()
        function = LOOP_PASSES[name](function)
        verify_loops(function)
        if observe is not None:
            observe(name, function, perf_counter() - started)
    return function
