"""Costs follow the target's tables: what moves is priced by its edge, what computes by its work."""

from __future__ import annotations

import pytest

from tilewright.analysis.cost import cost_of, edge_of, transfer_ends
from tilewright.ir.dtypes import FP16, FP32
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType, Type
from tilewright.ops import Load, Matmul, Move, Store
from tilewright.ops.elementwise import Add, Exp
from tilewright.ops.shape import Slice
from tilewright.targets import load_target

VEC, MAT, ACC = MemorySpace.VEC, MemorySpace.MAT, MemorySpace.ACC
TARGET = load_target("ascend910b")
TENSOR = Value("t", TensorType((256, 256), FP32))


def tile(space: MemorySpace, *shape: int) -> Value:
    return Value("x", TileType(shape or (64, 64), FP32, space))


def placed(op: Op, space: MemorySpace) -> Type:
    kind = op.infer()
    return kind.with_(space=space) if isinstance(kind, TileType) else kind


def test_a_load_costs_latency_and_bandwidth() -> None:
    load = Load(TENSOR, (0, 0), (64, 128), target_memory=VEC)
    cost = cost_of(load, load.infer(), TARGET)
    assert (cost.engine, cost.ddr_bytes) == ("MTE2", 64 * 128 * 4)
    assert cost.cycles == 100 + 64 * 128 * 4 / 128


def test_a_short_row_costs_a_granule() -> None:
    """512 bytes on the 910B, however little of them is wanted."""
    load = Load(TENSOR, (0, 0), (64, 8), target_memory=VEC)
    assert cost_of(load, load.infer(), TARGET).ddr_bytes == 64 * 512


def test_a_store_from_the_accumulator_is_a_drain() -> None:
    store = Store(tile(ACC), (0, 0), TENSOR)
    cost = cost_of(store, store.infer(), TARGET)
    assert cost.engine == "FIXPIPE"
    assert cost.cycles == pytest.approx(100 + TARGET.drain_cycles(64, 64))  # pyright: ignore[reportUnknownMemberType]


def test_a_product_is_priced_by_the_matrix_engine() -> None:
    matmul = Matmul(tile(MemorySpace.LEFT, 64, 32), tile(MemorySpace.RIGHT, 32, 48))
    cost = cost_of(matmul, placed(matmul, ACC), TARGET)
    assert (cost.engine, cost.cycles) == ("CUBE", 21 + 2 * 4 * 3 * 4)


def test_vector_work() -> None:
    add = Add(tile(VEC), tile(VEC))
    cost = cost_of(add, placed(add, VEC), TARGET)
    assert (cost.engine, cost.cycles, cost.ddr_bytes) == ("VECTOR", 18 + 64 * 2 + 19, 0)
    assert cost_of(Exp(tile(VEC)), placed(Exp(tile(VEC)), VEC), TARGET).cycles == 18 + 64 * 8 + 27


def test_a_view_is_free() -> None:
    view = Slice(tile(VEC), (32, 64), (0, 0))
    assert cost_of(view, view.infer(), TARGET).cycles == 0
    assert edge_of(view, view.infer(), TARGET) is None


def test_ends_of_a_move() -> None:
    move = Move(tile(ACC), target_memory=MAT, target_type=FP16)
    assert transfer_ends(move, move.infer()) == (ACC, MAT)
    edge = edge_of(move, move.infer(), TARGET)
    assert edge is not None and (edge.src, edge.dst, edge.engine) == ("L0C", "L1", "FIXPIPE")
    unplaced = Move(Value("x", TileType((64, 64), FP32)), target_memory=MAT)
    assert transfer_ends(unplaced, unplaced.infer()) is None
