"""What must stand between the producer's buffer and the consumer's, when one cannot simply be the other.

Before:  [o: Acc FP32] -> store t (BF16);  load t -> [i: Mat BF16]
After:   [o: Acc FP32] -> move(target_memory=Mat, target_type=BF16) -> [i: Mat BF16]
Refuses: buffers that meet only in DDR (S13), and conversions that no operation on chip would do alike (36, S4).

The rounding of a converting store is kept, also where the load widens again. One statement moves; its hops are made
by the passes that legalize moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilewright.errors import TilewrightError
from tilewright.ir.dtypes import DType
from tilewright.ir.function import Function, Param
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Let, Return, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType, Type
from tilewright.ops.cast import Cast
from tilewright.ops.movement import ONCHIP_FROM_DRAIN, Move
from tilewright.sections.refusals import Converts, Crossing, DTypesDiffer, Malformed, Refusal, ShapesDiffer
from tilewright.sections.section import Bind, Body, Buffer, Compute, Load, Role, Tensor
from tilewright.targets import NOMINAL, Target
from tilewright.targets.parts import DDR
from tilewright.targets.routing import find_route


@dataclass(frozen=True, slots=True)
class Bridge:
    """The stage between the two buffers; None: they are one."""

    kind: Compute | None
    body: Body | None = None


DIRECT = Bridge(None)


def bridge(o: Buffer, i: Buffer, tensor: Tensor, load: Load, made: Type | None, target: Target) -> Bridge | Refusal:
    """How `o`, whose tiles are of type `made` where that is known, becomes what a load of `tensor` would put in `i`."""
    at = f"second.buffers.{i.name}"
    if o.dtype is not i.dtype and i.dtype is not tensor.dtype:
        return Refusal("36", DTypesDiffer(o.name, i.name, o.dtype, i.dtype), f"{at}.dtype")
    if o.page is not None and i.page is not None and o.page != i.page:
        return Refusal("S3", ShapesDiffer(o.name, i.name, str(list(o.page)), str(list(i.page))), f"{at}.page")
    rounds = o.dtype is not tensor.dtype
    if rounds and not _keeps_rounding(o.dtype, tensor.dtype, i.dtype):
        return Refusal("S4", Converts(tensor.name, o.dtype, tensor.dtype, i.dtype), f"{at}.dtype")
    moves = o.kind is not None and i.kind is not None and o.kind is not i.kind
    if not rounds and not moves and load.pad is Pad.NULL:
        return DIRECT
    to = i.kind or o.kind
    plan = _moved(o, i, tensor, target) if moves else _cast(o, i, tensor, target)
    if isinstance(plan, Refusal):
        return plan
    on_the_way, casts = plan
    return _stage(made, to if moves or on_the_way or load.pad is not Pad.NULL else None, on_the_way, casts, load.pad)


def _keeps_rounding(dtype: DType, through: DType, back: DType) -> bool:
    """Whether moves and casts round as the store and the load do: a store narrows accumulators only, and what comes
    back must be wider, so that nothing is rounded a second time."""
    widens = back is through or (through.is_float and back.is_float and back.bits > through.bits)
    return through in ONCHIP_FROM_DRAIN.get(dtype, ()) and widens


Plan = tuple[DType | None, tuple[DType, ...]]
"""The type that the move converts to on its way, and the casts after it."""


def _moved(o: Buffer, i: Buffer, tensor: Tensor, target: Target) -> Plan | Refusal:
    """A move between two memories (S13), with the rounding on the way or after it (S4)."""
    assert o.kind is not None and i.kind is not None
    at = f"second.buffers.{i.name}"
    if not on_chip(target, o.kind, i.kind, o.dtype, o.dtype):
        if o.dtype is tensor.dtype or not on_chip(target, o.kind, i.kind, o.dtype, tensor.dtype):
            return Refusal("S13", Crossing(o.name, i.name, o.kind, i.kind), f"{at}.kind")
    if o.dtype is tensor.dtype:
        return None, ()
    back = () if i.dtype is tensor.dtype else (i.dtype,)
    direct = on_chip(target, o.kind, i.kind, o.dtype, tensor.dtype)
    casts = back if direct else (tensor.dtype, *back)
    if not _casts(target, i.kind, o.dtype, casts):
        return Refusal("S4", Converts(tensor.name, o.dtype, tensor.dtype, i.dtype), f"{at}.dtype")
    return tensor.dtype if direct else None, casts


def _cast(o: Buffer, i: Buffer, tensor: Tensor, target: Target) -> Plan | Refusal:
    """Roundings in one memory (S4)."""
    if o.dtype is tensor.dtype:
        return None, ()
    casts = (tensor.dtype,) if i.dtype is tensor.dtype else (tensor.dtype, i.dtype)
    if not _casts(target, i.kind or o.kind, o.dtype, casts):
        return Refusal("S4", Converts(tensor.name, o.dtype, tensor.dtype, i.dtype), f"second.buffers.{i.name}.dtype")
    return None, casts


@lru_cache(maxsize=4096)
def on_chip(target: Target, source: MemorySpace, destination: MemorySpace, dtype: DType, to: DType) -> bool:
    """Whether a path leads from one memory to the other, converting on its way, that does not pass DDR."""
    edges = [edge for edge in target.edges if DDR not in (edge.src, edge.dst)]
    return find_route(edges, target.roles, (source, destination), (dtype, to), NOMINAL) is not None


def _casts(target: Target, space: MemorySpace | None, dtype: DType, casts: tuple[DType, ...]) -> bool:
    """Whether tiles in `space` can be cast so: where vector work is done, by casts that the target has."""
    if casts and space not in (None, MemorySpace.VEC):
        return False
    for to in casts:
        if target.cast_chain(dtype, to) is None:
            return False
        dtype = to
    return True


def _stage(
    made: Type | None, to: MemorySpace | None, on_the_way: DType | None, casts: tuple[DType, ...], pad: Pad
) -> Bridge | Refusal:
    """The stage, with its statements where the type of what comes in is known."""
    moves = to is not None
    kind = Compute("move" if moves else "cast")
    if not isinstance(made, TileType):
        return Bridge(kind)
    source = Value("x", made)
    statements: list[Stmt] = []

    def emit(op: Op, name: str) -> Value:
        result = Value(name, op.infer())
        statements.append(Let(result, op))
        return result

    try:
        value = source
        if moves:
            padding = None if pad is Pad.NULL else pad
            value = emit(Move(value, target_memory=to, target_type=on_the_way, pad_value=padding), "moved")
        for dtype in casts:
            value = emit(Cast(value, dtype), "cast")
    except TilewrightError as error:
        return Refusal("S13", Malformed(error.message), "first.buffers")
    body = (*statements, Return((value,)))
    return Bridge(kind, Body(Function("bridge", (Param(source),), body), (Bind(Role.INPUT),)))
