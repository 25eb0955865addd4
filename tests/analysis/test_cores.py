"""Which kind of core runs a statement."""

from __future__ import annotations

from ir_builder import Builder

from tilewright.analysis.cores import core_of, cores_of, crosses_on_chip
from tilewright.ir.dtypes import FP32
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType
from tilewright.ops import Create, Load, Matmul, Move, Store
from tilewright.ops.elementwise import Neg
from tilewright.targets import load_target

VEC, MAT, ACC = MemorySpace.VEC, MemorySpace.MAT, MemorySpace.ACC
A3, A5 = load_target("ascend910b"), load_target("ascend950")
TENSOR = Value("t", TensorType((16, 16), FP32))


def stmt(op: Op, space: MemorySpace | None = None) -> Let:
    kind = op.infer()
    return Let(Value("r", kind.with_(space=space) if space and isinstance(kind, TileType) else kind), op)


def tile(space: MemorySpace) -> Value:
    return Value("x", TileType((16, 16), FP32, space))


def test_where_things_run() -> None:
    assert core_of(stmt(Load(TENSOR, (0, 0), (16, 16), target_memory=VEC)), A3) == "vector"
    assert core_of(stmt(Load(TENSOR, (0, 0), (16, 16), target_memory=MAT)), A3) == "cube"
    assert core_of(stmt(Store(tile(ACC), (0, 0), TENSOR)), A3) == "cube"
    assert core_of(stmt(Store(tile(VEC), (0, 0), TENSOR)), A3) == "vector"
    assert core_of(stmt(Neg(tile(VEC)), VEC), A3) == "vector"
    product = Matmul(tile(MemorySpace.LEFT), tile(MemorySpace.RIGHT))
    assert core_of(stmt(product, ACC), A3) == "cube"


def test_what_any_core_may_do() -> None:
    assert core_of(Let(Value("n", TENSOR.type), TENSOR), A3) is None
    create = Create((16, 16), FP32, level=Load.levels[0].TENSOR)
    assert core_of(stmt(create), A3) is None


def test_a_move_between_cores_runs_on_its_edge() -> None:
    edge = A5.edge(VEC, MAT)
    assert edge is not None
    assert core_of(stmt(Move(tile(VEC), target_memory=MAT)), A5) == (edge.core or "cube")


def test_cores_of_a_function() -> None:
    builder = Builder()
    a, out = builder.tensor("a", 16, 16), builder.out("out", 16, 16)
    x = builder.let("x", Load(a, (0, 0), (16, 16), target_memory=VEC))
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    assert cores_of(function, A3) == {"vector"}


def test_which_machines_cross_on_chip() -> None:
    assert crosses_on_chip(A5)
    assert not crosses_on_chip(A3)
    assert not crosses_on_chip(load_target("generic"))
