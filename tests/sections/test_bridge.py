"""What a join puts between two buffers that cannot be one: moves between memories (S13), roundings (S4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sections.cases import (
    ACC,
    COMPUTE,
    LOAD,
    MAT,
    SHAPE,
    VEC,
    consumer,
    producer,
    tiled,
    with_buffer,
    with_kind,
    with_stage,
    with_tensor,
)
from sections.joining import TARGET, join, names, refused, works

from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Direction, Function, Param, Program
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Let, Return
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.cast import Cast
from tilewright.ops.movement import Load as LoadOp
from tilewright.ops.movement import Move
from tilewright.ops.movement import Store as StoreOp
from tilewright.sections import refusals
from tilewright.sections.forward import Joint
from tilewright.sections.section import (
    Bind,
    Body,
    Compute,
    Edge,
    Role,
    Section,
)
from tilewright.targets import load_target

A2 = load_target("ascend910b")
PAGE = 16 * 128 * 4
"""Bytes of one page of a tiled section."""


# --- S4, S13: what stands between ---------------------------------------------------------------------------------
def stored_as(section: Section, dtype: DType) -> Section:
    """The section with its tensor `t` of another dtype."""
    at = names(section.tensors).index("t")
    return with_tensor(section, at, dtype=dtype)


def matmul(kind: MemorySpace | None = ACC, dtype: DType = FP32, valid: tuple[int, int] = SHAPE) -> Section:
    """A producer whose matmul leaves `t` in `kind`, with the statements of that stage."""
    made = Value("made", TileType(SHAPE, dtype, kind).with_(valid=valid))
    body = Body(Function("made", (Param(made),), (Return((made,)),)), (Bind(Role.INPUT),))
    first = with_stage(producer(), COMPUTE, kind=Compute("matmul", (1, 1)), body=body)
    return with_buffer(first, 1, kind=kind, dtype=dtype)


def ops(joint: Joint) -> list[Any]:
    """The operations of the stage that a join has put between."""
    body = next(s.body for s in joint.section.stages if s.body is not None and s.body.function.name == "bridge")
    assert body is not None
    assert body.binds == (Bind(Role.INPUT),)
    return [stmt.value for stmt in body.function.body if isinstance(stmt, Let)]


def test_s13_a_move_between_memories() -> None:
    joint = join(matmul(), consumer())
    assert works(joint.section) == ["Load", "matmul", "move", "exp", "Store"]
    assert joint.carrier == 1
    assert names(joint.section.buffers) == ["in", "out", "in_f1", "out_f1"]
    assert joint.section.edges[1:3] == (Edge(1, 1, (2,)), Edge(2, 2, (3,)))
    assert [(type(op), op.target_memory, op.target_type) for op in ops(joint)] == [(Move, VEC, None)]


def test_s13_memories_that_meet_only_in_ddr() -> None:
    refusal = refused("S13", refusals.Crossing, "second.buffers.in.kind", matmul(), consumer(), target=A2)
    assert refusal.reason == refusals.Crossing("out", "in", ACC, VEC)
    refused(
        "S13", refusals.Crossing, "second.buffers.in.kind", producer(), with_buffer(consumer(), 0, kind=MAT), target=A2
    )
    reader = with_buffer(stored_as(consumer(), BF16), 0, kind=MAT, dtype=BF16)
    join(stored_as(matmul(), BF16), reader, target=A2)


def test_s13_a_move_has_bytes_at_both_ends() -> None:
    first = with_buffer(tiled(producer()), 1, kind=ACC)
    first = with_buffer(first, 0, kind=MAT)
    join(first, tiled(consumer()), target=TARGET.with_capacity(Vec=2 * PAGE))
    tight = TARGET.with_capacity(Vec=2 * PAGE - 1)
    assert refused("S3", refusals.OverBudget, "joined.buffers in UB", first, tiled(consumer()), target=tight)
    tight = TARGET.with_capacity(Acc=PAGE - 1)
    assert refused("S3", refusals.OverBudget, "joined.buffers in L0C", first, tiled(consumer()), target=tight)


def test_s13_padding_is_kept() -> None:
    joint = join(matmul(VEC), with_kind(consumer(), LOAD, pad=Pad.ZERO))
    assert [(op.target_memory, op.pad_value) for op in ops(joint)] == [(VEC, Pad.ZERO)]


def test_s4_a_store_that_rounds_on_the_way() -> None:
    reader = with_buffer(stored_as(consumer(), BF16), 0, kind=MAT, dtype=BF16)
    joint = join(stored_as(matmul(), BF16), reader)
    assert [(type(op), op.target_memory, op.target_type) for op in ops(joint)] == [(Move, MAT, BF16)]


@pytest.mark.parametrize("kind", [ACC, None])
def test_s4_a_bf16_store_of_f32_and_an_f32_reader(kind: MemorySpace | None) -> None:
    """The value is rounded to BF16 as the store did, and is FP32 again for its reader."""
    joint = join(stored_as(matmul(kind), BF16), stored_as(consumer(), BF16))
    assert [(type(op), op.target_type) for op in ops(joint)] == (
        [(Move, BF16), (Cast, FP32)] if kind else [(Cast, BF16), (Cast, FP32)]
    )
    values = (np.arange(64 * 128, dtype=np.float32) / 3).reshape(SHAPE)
    expected = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(_run(joint), expected)
    assert not np.array_equal(values, expected)


def _run(joint: Joint) -> Any:
    """What the stage between makes of counting thirds, run as a program."""
    function = next(s.body.function for s in joint.section.stages if s.body and s.body.function.name == "bridge")
    x, out = Value("x", TensorType(SHAPE, FP32)), Value("out", TensorType(SHAPE, FP32))
    loaded, param = Value("loaded", TileType(SHAPE, FP32)), function.params[0].value
    lets = [stmt.substitute(lambda value: loaded if value is param else value) for stmt in function.body[:-1]]
    result = function.results[0]
    assert isinstance(result, Value)
    stored = Value("stored", out.type)
    body = (Let(loaded, LoadOp(x, (0, 0), SHAPE)), *lets, Let(stored, StoreOp(result, (0, 0), out)), Return((stored,)))
    main = Function("main", (Param(x), Param(out, Direction.OUT)), body)
    values = (np.arange(64 * 128, dtype=np.float32) / 3).reshape(SHAPE)
    results: Any = interpret(Program((main,), "main"), [values, np.zeros(SHAPE, np.float32)])
    return results[0]


def test_s4_rounding_after_the_move_where_no_edge_converts() -> None:
    joint = join(stored_as(matmul(dtype=INT32), FP16), with_buffer(stored_as(consumer(), FP16), 0, dtype=FP16))
    assert [(type(op), op.target_type) for op in ops(joint)] == [(Move, None), (Cast, FP16)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (stored_as(matmul(dtype=INT32), INT8), with_buffer(stored_as(consumer(), INT8), 0, dtype=INT8)),
        (stored_as(matmul(dtype=INT32), FP16), with_buffer(stored_as(consumer(), FP16), 0, dtype=INT32)),
        (stored_as(matmul(dtype=INT32), FP16), with_buffer(stored_as(consumer(), FP16), 0, kind=MAT, dtype=FP16)),
        (stored_as(matmul(), BF16), with_buffer(stored_as(consumer(), BF16), 0, kind=MAT)),
        (stored_as(matmul(), BF16), with_buffer(stored_as(consumer(), BF16), 0, kind=ACC)),
    ],
    ids=["requantises", "back to integers", "no cast in Mat", "no widening in Mat", "no cast in Acc"],
)
def test_s4_conversions_that_nothing_does_on_chip(first: Section, second: Section) -> None:
    refused("S4", refusals.Converts, "second.buffers.in.dtype", first, second)


def test_s4_casts_are_the_targets() -> None:
    without = replace(TARGET, casts=replace(TARGET.casts, native={}))
    first, second = stored_as(matmul(None), BF16), with_buffer(stored_as(consumer(), BF16), 0, dtype=BF16)
    join(first, second)
    refused("S4", refusals.Converts, "second.buffers.in.dtype", first, second, target=without)


def test_s4_without_statements_the_stage_comes_without_them() -> None:
    joint = join(with_buffer(producer(), 1, kind=ACC), consumer())
    assert works(joint.section)[2] == "move"
    assert joint.section.stages[2].body is None
