"""`pl.split_aiv`: what the two vector cores of a group do, each with its half of a tile.

Before:  for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
             half = pl.aiv_shard(acc)
             out[lane * 32 : lane * 32 + 32, :] = half + 1.0
After:   half = pl.slice(acc, [32, 64], [0, 0])
         out[0:32, :] = half + 1.0
         half_1 = pl.slice(acc, [32, 64], [32, 0])
         out[32:64, :] = half_1 + 1.0

The body is read for each lane, up to each `pl.aic_gather`, which puts the lanes' parts together: a whole tile that both
go on with. A body that does not ask which lane it is does the same on both, and is read once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import cast

from tilewright.errors import LanguageError, ShapeError, Span
from tilewright.frontend.bindings import Undefined, describe
from tilewright.frontend.context import Context
from tilewright.frontend.decorators import language_path
from tilewright.frontend.operations import Arguments
from tilewright.frontend.operators import level_of, make, shape_of
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import is_array
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, maximum, minimum
from tilewright.ir.types import TensorType, TileType
from tilewright.text.names import SplitMode

LANES = 2
GATHERS = ("aic_gather", "tile.aic_gather", "tensor.aic_gather")


@dataclass(slots=True)
class Lane:
    """One lane: its number, and what it has bound names to."""

    number: int
    names: dict[str, object] = field(default_factory=dict[str, object])


def read_lanes(context: Context, node: ast.For, arguments: Arguments) -> None:
    """`for lane in pl.split_aiv(2, mode=...)`."""
    count, mode = arguments.simple("num_lanes", "mode")
    if count != LANES or not isinstance(mode, SplitMode) or not isinstance(node.target, ast.Name):
        raise LanguageError(
            "pl.split_aiv shares work between the two vector cores of a group",
            span=arguments.span,
            required="for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN)",
            found=context.text(arguments.node),
            help="a mode is one of " + ", ".join(f"pl.SplitMode.{each.value}" for each in SplitMode),
        )
    if context.lane is not None:
        raise LanguageError("pl.split_aiv stands inside another one", span=arguments.span, help="use one of them")
    name = node.target.id
    asks = name in {n.id for stmt in node.body for n in ast.walk(stmt) if isinstance(n, ast.Name)}
    shares = any(_word(context, n) in _OF_LANES for stmt in node.body for n in ast.walk(stmt))
    if mode is SplitMode.NONE and not asks and not shares:
        context.statements(node.body)
        return
    lanes = [Lane(number) for number in range(LANES)]
    assigned = [each for each in context.facts[node].assigned if each != name]
    before = {each: context.scope.get(each) for each in assigned}
    try:
        for stmt in _stretches(context, node.body):
            for lane in lanes:
                _enter(context, name, lane, mode)
                if isinstance(stmt, list):
                    context.statements(stmt)
                    lane.names = {each: context.scope.get(each) for each in assigned if not _in_ddr(context, each)}
            if isinstance(stmt, ast.Assign):
                _gather(context, name, stmt, lanes, mode)
    finally:
        context.lane = None
    _leave(context, name, lanes, before, context.span(node))


def _enter(context: Context, name: str, lane: Lane, mode: SplitMode) -> None:
    context.lane = (lane.number, mode)
    context.scope.set(name, lane.number)
    for each, value in lane.names.items():
        context.scope.set(each, value)


def _in_ddr(context: Context, name: str) -> bool:
    """Whether a name stands for a tensor in DDR, which the lanes share."""
    found = context.scope.get(name)
    return isinstance(found, Value) and isinstance(found.type, TensorType)


def _leave(context: Context, name: str, lanes: list[Lane], before: dict[str, object], span: Span) -> None:
    """After the lanes, a name has a value where both agree on it."""
    context.scope.set(name, Undefined("is the number of a lane", span))
    first, second = (lane.names for lane in lanes)
    for each, value in first.items():
        if value is not second.get(each) and value is not before.get(each):
            help = "put the parts together with pl.aic_gather, or write them to a tensor"
            context.scope.set(each, Undefined("is another value in each lane", span, help))


# --- parts and wholes ---------------------------------------------------------------------------------------------
def _word(context: Context, node: ast.AST) -> str | None:
    """The name of the language that is called at `node`."""
    return language_path(node.func, context.source.names) if isinstance(node, ast.Call) else None


def _stretches(context: Context, body: list[ast.stmt]) -> list[list[ast.stmt] | ast.Assign]:
    """The body in stretches that a lane may do by itself, and the assignments that gather between them."""
    found: list[list[ast.stmt] | ast.Assign] = []
    for stmt in body:
        if isinstance(stmt, ast.Assign) and _word(context, stmt.value) in GATHERS:
            found.append(stmt)
        elif any(_word(context, inner) in GATHERS for inner in ast.walk(stmt)):
            raise LanguageError(
                "pl.aic_gather is assigned, at the top of the body of pl.split_aiv",
                span=context.span(stmt),
                required="whole = pl.aic_gather(part)",
                found=context.text(stmt),
            )
        elif found and isinstance(found[-1], list):
            found[-1].append(stmt)
        else:
            found.append([stmt])
    return found


def _gather(context: Context, name: str, stmt: ast.Assign, lanes: list[Lane], mode: SplitMode) -> None:
    """`whole = pl.aic_gather(part)`: the parts of all lanes side by side."""
    target, node = stmt.targets[0], cast("ast.Call", stmt.value)
    if not isinstance(target, ast.Name) or len(stmt.targets) != 1:
        raise LanguageError("pl.aic_gather is assigned to a name", span=context.span(stmt), found=context.text(stmt))
    parts: list[Value] = []
    for lane in lanes:
        _enter(context, name, lane, mode)
        (part,) = Arguments(context, node).simple("x")
        if not is_array(part):
            raise LanguageError("pl.aic_gather takes a tensor or tile", span=context.span(node), found=describe(part))
        parts.append(cast("Value", part))
    span, axis = context.span(node), _axis(mode)
    whole = parts[0]
    if axis is not None:
        level = level_of(parts[0])
        extents = shape_of(parts[0])
        full = tuple(binary(BinaryKind.MUL, e, LANES) if i == axis else e for i, e in enumerate(extents))
        whole = context.emit(make("create", level, full, parts[0].dtype, span=span), target.id)
        for lane, part in zip(lanes, parts, strict=True):
            offsets = _offsets(extents, axis, lane.number)
            whole = context.emit(make("assemble", level, whole, part, offsets, span=span), target.id)
    context.scope.set(target.id, whole)
    for lane in lanes:
        lane.names[target.id] = whole


def shard(context: Context, arguments: Arguments) -> object:
    """`pl.aiv_shard(x)`: this lane's half of `x`; all of it where the lanes do not share tiles."""
    (given,) = arguments.simple("x")
    if context.lane is None or not is_array(given):
        raise LanguageError(
            "pl.aiv_shard takes a part for one of two vector cores",
            span=arguments.span,
            required="a tensor or tile, inside for lane in pl.split_aiv(2, mode=...)",
            found=describe(given),
        )
    (lane, mode), value = context.lane, cast("Value", given)
    axis, extents = _axis(cast("SplitMode", mode)), shape_of(value)
    if axis is None:
        return value
    extent = extents[axis]
    if not isinstance(extent, int) or extent % LANES:
        raise ShapeError(
            "a tile that two vector cores share has an even extent", span=arguments.span, found=repr(value.type)
        )
    part = tuple(e // LANES if i == axis and isinstance(e, int) else e for i, e in enumerate(extents))
    offsets = _offsets(part, axis, lane)
    valid: dict[str, object] = {}
    if isinstance(value.type, TileType) and value.type.valid != value.type.shape:
        rest = maximum(binary(BinaryKind.SUB, value.type.valid[axis], offsets[axis]), 0)
        clipped = minimum(rest, part[axis])
        valid["valid_shape"] = tuple(clipped if i == axis else v for i, v in enumerate(value.type.valid))
    level = level_of(value)
    if isinstance(value.type, TileType) and value.type.space is not MemorySpace.VEC:
        # Parts are taken where vector cores work: what a product leaves is laid out for all of its rows.
        value = context.emit(make("move", level, value, MemorySpace.VEC, span=arguments.span), value.name)
    return context.emit(make("slice", level, value, part, offsets, **valid, span=arguments.span))


def _offsets(extents: tuple[Scalar, ...], axis: int, lane: int) -> tuple[Scalar, ...]:
    return tuple(binary(BinaryKind.MUL, e, lane) if i == axis else 0 for i, e in enumerate(extents))


def _axis(mode: SplitMode) -> int | None:
    """The axis along which the lanes share a matrix."""
    return {SplitMode.UP_DOWN: 0, SplitMode.LEFT_RIGHT: 1}.get(mode)


_OF_LANES = frozenset(
    (
        *GATHERS,
        "aiv_shard",
        "tile.aiv_shard",
        "tensor.aiv_shard",
        "get_subblock_idx",
        "tile.get_subblock_idx",
        "system.get_subblock_idx",
    )
)
"""Words whose meaning depends on the lane."""
