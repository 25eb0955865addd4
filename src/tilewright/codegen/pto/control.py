"""Runs the operations of a function on one core, as a coroutine that pauses where it waits for the other core."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np

from tilewright.codegen.pto import movement, vector
from tilewright.codegen.pto.machine import (
    Core,
    Pointer,
    Value,
    View,
    integer_of,
    number_of,
    pointer_of,
    tile_of,
    view_of,
)
from tilewright.codegen.pto.memory import DTYPES, Layout, Tile
from tilewright.codegen.pto.scalars import arith
from tilewright.codegen.pto.syntax import Function, Operation, Region
from tilewright.codegen.pto.tables import ARITY, EVENT_IDS, EVENT_PIPES
from tilewright.codegen.pto.types import TileType, Type, ViewType
from tilewright.errors import PTOError

Environment = dict[str, Value]
Waiting = Generator[Operation, None, list[Value]]
"""Yields an operation that must be tried again later; returns the values of the region's terminator."""

INSTRUCTIONS = {f"pto.{name}": handler for name, handler in (vector.HANDLERS | movement.HANDLERS).items()}
_TERMINATORS = frozenset(("scf.yield", "scf.condition", "return", "func.return"))


def run_function(core: Core, function: Function, arguments: Sequence[Value]) -> Waiting:
    """Execute `function` on `core`."""
    names = [name for name, _ in function.arguments]
    return run_region(core, function.body, dict(zip(names, arguments, strict=True)))


def run_region(core: Core, region: Region, env: Environment) -> Waiting:
    """Execute a region; names that it binds are added to `env`."""
    for op in region.operations:
        if op.name in _TERMINATORS:
            return [env[name] for name in op.operands]
        try:
            if op.regions or op.name in ("func.call", "call", "pto.sync.wait"):
                results = yield from _control(core, op, env)
            else:
                results = _simple(core, op, env)
        except PTOError as error:
            raise error.at(op.span) from None
        except KeyError as error:
            raise PTOError(f"{error.args[0]} is not defined here", span=op.span) from None
        env.update(zip(op.results, results, strict=True))
    return []


# --- control ---------------------------------------------------------------------------------------------------------
def _control(core: Core, op: Operation, env: Environment) -> Waiting:
    match op.name:
        case "scf.for":
            return (yield from _for(core, op, env))
        case "scf.while":
            return (yield from _while(core, op, env))
        case "scf.if":
            arm = 0 if env[op.operands[0]] else 1
            if arm < len(op.regions):
                return (yield from run_region(core, op.regions[arm], env))
            return []
        case "pto.section.cube" | "pto.section.vector":
            if op.name.endswith(core.side) or core.side == "core":
                yield from run_region(core, op.regions[0], env)
            return []
        case "pto.sync.wait":
            while not core.accept(integer_of(_integer(op, "event")), _pipe(op, "pipe")):
                yield op
            return []
        case _:
            name = op.attributes["callee"]
            callee = next((f for f in core.machine.module.functions if f.name == name), None)
            if callee is None:
                raise PTOError(f"there is no function @{name}", span=op.span)
            return (yield from run_function(core, callee, [env[v] for v in op.operands]))


def _for(core: Core, op: Operation, env: Environment) -> Waiting:
    low, high, step = (integer_of(env[name]) for name in op.operands[:3])
    if step <= 0:
        raise PTOError("a loop's step must be positive", span=op.span, found=str(step))
    body = op.regions[0]
    (induction, _), *carried = body.arguments
    values = [env[name] for name in op.operands[3:]]
    for trip in range(low, high, step):
        env[induction] = trip
        env.update(zip((name for name, _ in carried), values, strict=True))
        values = yield from run_region(core, body, env)
    return values


def _while(core: Core, op: Operation, env: Environment) -> Waiting:
    before, after = op.regions
    values = [env[name] for name in op.operands]
    while True:
        env.update(zip((name for name, _ in before.arguments), values, strict=True))
        condition, *values = yield from run_region(core, before, env)
        if not condition:
            return values
        env.update(zip((name for name, _ in after.arguments), values, strict=True))
        values = yield from run_region(core, after, env)


# --- everything else -------------------------------------------------------------------------------------------------
def _simple(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    arity = ARITY.get(op.name.removeprefix("pto."))
    if arity is not None and not (arity.least <= len(op.operands) <= arity.most and len(op.outs) == arity.outs):
        raise PTOError(
            f"{op.name} has another number of operands",
            span=op.span,
            required=f"{arity.least} to {arity.most}, and {arity.outs} destinations",
            found=f"{len(op.operands)}, and {len(op.outs)}",
        )
    handler = INSTRUCTIONS.get(op.name)
    if handler is not None:
        ins, outs = [env[name] for name in op.operands], [env[name] for name in op.outs]
        source = next((value for value in ins if isinstance(value, Tile)), None)
        core.begin(op, source, outs[0])
        handler(core, op, ins, outs)
        return ()
    if op.name.startswith("arith."):
        return (arith(op, [env[name] for name in op.operands]),)
    if op.name in _SYNC:
        _synchronise(core, op, env)
        return ()
    known = _PLAIN.get(op.name)
    if known is None:
        raise PTOError(f"`{op.name}` is not modelled", span=op.span)
    return known(core, op, env)


_SYNC = frozenset(
    f"pto.{name}"
    for name in (
        *("set_flag", "wait_flag", "set_flag_dyn", "wait_flag_dyn", "record_event", "wait_event"),
        *("barrier", "barrier_sync", "sync.set", "set_ffts"),
    )
)


def _integer(op: Operation, key: str) -> int:
    value = op.attributes.get(key)
    return value if isinstance(value, int) else int(str(value).removeprefix("EVENT_ID"))


def _pipe(op: Operation, key: str) -> str:
    name = str(op.attributes.get(key))
    return EVENT_PIPES[name] if name in EVENT_PIPES else name.removeprefix("PIPE_")


def _synchronise(core: Core, op: Operation, env: Environment) -> None:
    name, tracker = op.name.removeprefix("pto."), core.tracker
    if name == "sync.set":
        core.signal(_integer(op, "event"), _pipe(op, "pipe"))
        return
    if tracker is None or name == "set_ffts":
        return
    if name.startswith("barrier"):
        tracker.barrier(core.side, _pipe(op, "pipe"))
        return
    event = integer_of(env[op.operands[0]]) if op.operands else _integer(op, "event")
    if not 0 <= event < EVENT_IDS:
        raise PTOError(f"event id {event} does not exist", required=f"0 to {EVENT_IDS - 1}", span=op.span)
    act = tracker.set_flag if name.startswith(("set", "record")) else tracker.wait_flag
    act(core.side, _pipe(op, "source"), _pipe(op, "target"), event, op.span)


def _extents(op: Operation, group: str, env: Environment) -> tuple[int, ...]:
    return tuple(integer_of(env[name]) for name in op.named.get(group, ()))


def _make_view(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    pointer = pointer_of(env[op.operands[0]])
    shape, strides = _extents(op, "shape", env), _extents(op, "strides", env)
    kind = op.result_types[0]
    layout = str(op.attributes.get("layout", "nd"))
    if not isinstance(kind, ViewType) or len(shape) != len(strides) or len(shape) != len(kind.shape):
        raise PTOError("a view needs a shape and strides of its rank", span=op.span)
    if layout == "nz" and len(shape) != 5:
        raise PTOError("an nz view has five dimensions", span=op.span, found=str(kind))
    if any(static is not None and static != extent for static, extent in zip(kind.shape, shape, strict=True)):
        raise PTOError("the shape is not the type's", span=op.span, required=str(kind), found=str(shape))
    return (View(pointer, shape, strides, layout),)


def _partition(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    view = view_of(env[op.operands[0]])
    at, sizes = _extents(op, "offsets", env), _extents(op, "sizes", env)
    if not len(at) == len(sizes) == len(view.shape):
        raise PTOError("a partition has offsets and sizes of its view's rank", span=op.span)
    inside = all(o >= 0 and s >= 0 and o + s <= n for o, s, n in zip(at, sizes, view.shape, strict=True))
    if not inside:
        raise PTOError(
            "a partition leaves its view",
            span=op.span,
            required=f"inside {view.shape}",
            found=f"{sizes} at {at}",
        )
    shift = sum(o * stride for o, stride in zip(at, view.strides, strict=True))
    pointer = view.pointer
    moved = Pointer(pointer.data, pointer.dtype, pointer.offset + shift, pointer.name)
    return (View(moved, sizes, view.strides, view.layout),)


def _view_dim(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    view = view_of(env[op.operands[0]])
    return (view.shape[integer_of(env[op.operands[1]])],)


def _add_pointer(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    pointer, steps = pointer_of(env[op.operands[0]]), integer_of(env[op.operands[1]])
    return (Pointer(pointer.data, pointer.dtype, pointer.offset + steps, pointer.name),)


def _tile_type(op: Operation, kind: Type) -> TileType:
    if not isinstance(kind, TileType):
        raise PTOError("a tile type is required here", span=op.span, found=str(kind))
    return kind


def _allocate(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    kind = _tile_type(op, op.result_types[0])
    address = _extents(op, "addr", env)
    row, col = _extents(op, "valid_row", env), _extents(op, "valid_col", env)
    if bool(row) != (kind.v_row is None) or bool(col) != (kind.v_col is None):
        raise PTOError("valid_row and valid_col are given exactly where the type says `?`", span=op.span)
    valid = (kind.v_row if kind.v_row is not None else row[0], kind.v_col if kind.v_col is not None else col[0])
    return (core.machine.allocate(op, kind, address[0] if address else None, valid),)


def _set_valid(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    tile, row, col = tile_of(env[op.operands[0]]), env[op.operands[1]], env[op.operands[2]]
    row, col = integer_of(row), integer_of(col)
    if not (0 <= row <= tile.kind.rows and 0 <= col <= tile.kind.cols):
        raise PTOError(f"the valid shape ({row}, {col}) exceeds the tile", span=op.span, found=str(tile.kind))
    tile.v_row, tile.v_col = row, col
    return ()


def _subset(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    tile, (row, col) = tile_of(env[op.operands[0]]), _extents(op, "offsets", env)
    kind = _tile_type(op, op.result_types[0])
    if row < 0 or col < 0 or row + kind.rows > tile.kind.rows or col + kind.cols > tile.kind.cols:
        raise PTOError(f"{op.name} leaves its tile", span=op.span, found=f"{kind.shape} at ({row}, {col})")
    valid = tuple(max(0, min(n, v - o)) for n, v, o in zip(kind.shape, tile.valid, (row, col), strict=True))
    place = tile.row0 + row, tile.col0 + col
    return (Tile(kind, tile.space, tile.address, tile.layout, valid[0], valid[1], *place),)


def _reinterpret(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    tile = tile_of(env[op.operands[0]])
    kind = _tile_type(op, op.result_types[0]).for_arch(core.arch)
    old, new = (t.rows * t.cols * t.itemsize for t in (tile.kind, kind))
    if old != new or kind.loc != tile.kind.loc or (tile.row0, tile.col0) != (0, 0):
        raise PTOError(
            f"{op.name} needs the same bytes in the same space", span=op.span, found=f"{tile.kind} to {kind}"
        )
    if tile.layout != Layout.of(tile.kind):
        raise PTOError(f"{op.name} of a part of a tile is not modelled", span=op.span)
    row = kind.v_row if kind.v_row is not None else tile.v_row
    col = kind.v_col if kind.v_col is not None else tile.v_col
    return (Tile(kind, tile.space, tile.address, Layout.of(kind), row, col),)


def _load_scalar(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    pointer, (index,) = pointer_of(env[op.operands[0]]), _extents(op, "index", env)
    core.begin(op)
    return (core.load(pointer, np.array([pointer.offset + index]), op.name)[0].item(),)


def _store_scalar(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    pointer, (index,) = pointer_of(env[op.operands[0]]), _extents(op, "index", env)
    value = np.asarray([number_of(env[op.operands[1]])]).astype(DTYPES[pointer.dtype])
    core.begin(op)
    core.store(pointer, np.array([pointer.offset + index]), value, op.name)
    return ()


def _element(op: Operation, tile: Tile, index: int) -> Tile:
    """The one element at physical position `index` of `tile`, as a tile of its own."""
    if not 0 <= index < tile.layout.rows * tile.layout.cols:
        raise PTOError(f"{op.name}: element {index} leaves the tile", span=op.span, found=str(tile.kind))
    flat = Layout(1, tile.layout.rows * tile.layout.cols, (1, 1), False, False)
    return Tile(tile.kind, tile.space, tile.address, flat, 1, 1, 0, index)


def _get_value(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    tile = tile_of(env[op.operands[0]])
    core.begin(op, tile)
    return (core.read(_element(op, tile, integer_of(env[op.operands[1]])))[0, 0].item(),)


def _set_value(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    tile = tile_of(env[op.outs[0]])
    core.begin(op, tile)
    value = np.asarray([[number_of(env[op.operands[1]])]]).astype(DTYPES[tile.kind.dtype])
    core.write(_element(op, tile, integer_of(env[op.operands[0]])), value)
    return ()


def _block(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    machine = core.machine
    found = {"pto.get_block_idx": machine.block_idx, "pto.get_block_num": machine.block_num}
    return (found.get(op.name, 0),)


def _print(core: Core, op: Operation, env: Environment) -> Sequence[Value]:
    return ()


_PLAIN: dict[str, Callable[[Core, Operation, Environment], Sequence[Value]]] = {
    "pto.make_tensor_view": _make_view,
    "pto.partition_view": _partition,
    "pto.get_tensor_view_dim": _view_dim,
    "pto.addptr": _add_pointer,
    "pto.alloc_tile": _allocate,
    "pto.set_validshape": _set_valid,
    "pto.subset": _subset,
    "pto.subview": _subset,
    "pto.treshape": _reinterpret,
    "pto.bitcast": _reinterpret,
    "pto.load_scalar": _load_scalar,
    "pto.store_scalar": _store_scalar,
    "pto.tgetval": _get_value,
    "pto.tsetval": _set_value,
    "pto.tprint": _print,
    # Subblock 0 is the only vector lane that is modelled.
    **dict.fromkeys(("pto.get_block_idx", "pto.get_block_num", "pto.get_subblock_idx"), _block),
}
