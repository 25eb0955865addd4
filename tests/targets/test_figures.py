"""Every figure of the machines, typed by hand a second time, so that a slip in a file is a failing row here."""

from __future__ import annotations

import pytest

from tilewright.ir.dtypes import (
    BF16,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    DType,
)
from tilewright.ir.layout import MemorySpace
from tilewright.targets import Drain, load_target

KIB = 1024
MAT, LEFT, RIGHT, ACC = MemorySpace.MAT, MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC
VEC, BIAS, DDR = MemorySpace.VEC, MemorySpace.BIAS, MemorySpace.DDR
SCALE_A, SCALE_B = MemorySpace.LEFT_SCALE, MemorySpace.RIGHT_SCALE

# space: usable KiB on the 910B, on the 950, physical KiB on each, start alignment in bytes
MEMORIES = [
    (MAT, 512, 512, 512, 512, 128),
    (LEFT, 64, 64, 64, 64, 512),
    (RIGHT, 64, 64, 64, 64, 512),
    (ACC, 128, 256, 128, 256, 512),
    (BIAS, 1, 4, 1, 4, 32),
    (VEC, 184, 240, 192, 248, 32),
]


@pytest.mark.parametrize(("space", "use_910b", "use_950", "have_910b", "have_950", "align"), MEMORIES)
def test_memories(space: MemorySpace, use_910b: int, use_950: int, have_910b: int, have_950: int, align: int) -> None:
    for name, usable, physical in (("ascend910b", use_910b, have_910b), ("ascend950", use_950, have_950)):
        memory = load_target(name).memory(space)
        assert (memory.capacity, memory.physical, memory.alignment) == (usable * KIB, physical * KIB, align)


@pytest.mark.parametrize("space", [SCALE_A, SCALE_B])
def test_scale_memories(space: MemorySpace) -> None:
    memory = load_target("ascend950").memory(space)
    assert (memory.capacity, memory.alignment) == (4 * KIB, 32)
    assert not load_target("ascend910b").has(space)


@pytest.mark.parametrize(
    ("name", "src", "dst", "rate", "latency", "assumed"),
    [
        ("ascend910b", DDR, MAT, 256, 100, False),
        ("ascend910b", DDR, VEC, 128, 100, False),
        ("ascend910b", VEC, VEC, 128, 20, False),
        ("ascend910b", VEC, DDR, 128, 100, True),
        ("ascend910b", MAT, DDR, 128, 100, True),
        ("ascend910b", MAT, LEFT, 129.7, 20, False),
        ("ascend910b", MAT, RIGHT, 85.4, 20, False),
        ("ascend910b", MAT, BIAS, 128, 20, True),
        ("ascend950", DDR, MAT, 256, 100, True),
        ("ascend950", DDR, VEC, 128, 100, True),
        ("ascend950", VEC, VEC, 128, 20, True),
        ("ascend950", VEC, DDR, 128, 100, True),
        ("ascend950", VEC, MAT, 128, 20, True),
        ("ascend950", MAT, LEFT, 206.3, 20, False),
        ("ascend950", MAT, RIGHT, 223.8, 20, False),
        ("ascend950", MAT, BIAS, 128, 20, True),
        ("ascend950", MAT, SCALE_A, 128, 20, True),
        ("ascend950", MAT, SCALE_B, 128, 20, True),
    ],
)
def test_bandwidths(name: str, src: MemorySpace, dst: MemorySpace, rate: float, latency: float, assumed: bool) -> None:
    edge = load_target(name).edge(src, dst)
    assert edge is not None
    assert (edge.bytes_per_cycle, edge.latency, edge.assumed) == (rate, latency, assumed)
    assert edge.cycles(1280) == pytest.approx(latency + 1280 / rate)


GRAPHS = {
    "ascend910b": {DDR: {VEC, MAT}, VEC: {DDR, VEC}, MAT: {LEFT, RIGHT, BIAS, DDR}, ACC: {MAT, DDR}},
    "ascend950": {
        DDR: {VEC, MAT},
        VEC: {VEC, MAT, DDR},
        MAT: {LEFT, RIGHT, BIAS, SCALE_A, SCALE_B},
        ACC: {VEC, MAT, DDR},
    },
}
CPU_GRAPH = {  # beside it, L2 -> Vec, DDR and the copies in place, which a cache offers
    DDR: {MAT, VEC, LEFT},
    MAT: {LEFT, RIGHT},
    ACC: {VEC, MAT, DDR},
    VEC: {DDR, MAT},
}


@pytest.mark.parametrize("name", list(GRAPHS))
def test_memory_graph_is_exactly(name: str) -> None:
    target = load_target(name)
    for src in target.spaces:
        found = {dst for dst in target.spaces if target.edge(src, dst) is not None}
        assert found == GRAPHS[name].get(src, set()), src


@pytest.mark.parametrize("name", ["x86_amx", "x86_avx512", "x86_avx2", "generic"])
def test_cpu_graph(name: str) -> None:
    target = load_target(name)
    extra = {(MAT, MAT), (MAT, VEC), (MAT, DDR), (VEC, VEC)}
    spaces = [space for space in target.spaces if space is not BIAS]  # Bias shares the memory of Mat
    found = {(src, dst) for src in spaces for dst in spaces if target.edge(src, dst) is not None}
    assert found == {(src, dst) for src, ends in CPU_GRAPH.items() for dst in ends} | extra
    assert target.same_memory(MAT, BIAS)


@pytest.mark.parametrize(
    ("name", "cores", "granule", "arch"),
    [
        ("ascend910b", {"cube": 24, "vector": 48}, 512, "a3"),
        ("ascend950", {"cube": 2 * 18, "vector": 2 * 18 * 2}, 128, "a5"),
    ],
)
def test_cores_and_granularity(name: str, cores: dict[str, int], granule: int, arch: str) -> None:
    target = load_target(name)
    assert dict(target.cores) == cores
    assert target.ddr_granule == granule
    assert target.pto_arch == arch
    assert target.has_separate_cores
    assert target.matmul.max_extent == 4095


PLAIN_MATMULS = {(INT32, INT8, INT8), (FP32, FP16, FP16), (FP32, BF16, BF16), (FP32, FP32, FP32)}
FP8 = (FP8E4M3FN, FP8E5M2)


def test_matmul_types() -> None:
    old, new = load_target("ascend910b"), load_target("ascend950")
    assert {(t.acc, t.lhs, t.rhs) for t in old.dtypes.matmul} == PLAIN_MATMULS
    fp8 = {(FP32, lhs, rhs) for lhs in FP8 for rhs in FP8}
    assert {(t.acc, t.lhs, t.rhs) for t in new.dtypes.matmul if not t.scaled} == PLAIN_MATMULS | fp8
    assert {(t.acc, t.lhs, t.rhs) for t in new.dtypes.matmul if t.scaled} == fp8
    assert new.matmul_acc(INT8, INT8) is INT32
    assert new.matmul_acc(FP8E5M2, FP8E4M3FN) is FP32
    assert old.matmul_acc(FP8E5M2, FP8E4M3FN) is None
    assert old.matmul_acc(FP16, BF16) is None


@pytest.mark.parametrize(
    ("name", "kind", "scalar", "takes"),
    [
        ("ascend910b", "add", False, {INT16, INT32, FP16, FP32}),
        ("ascend910b", "max", False, {INT16, INT32, FP16, FP32}),
        ("ascend910b", "div", False, {FP16, FP32}),
        ("ascend910b", "mul", True, {INT16, INT32, FP16, FP32}),
        ("ascend910b", "transcendental", False, {FP16, FP32}),
        ("ascend910b", "sqrt", False, {FP16, FP32}),
        ("ascend910b", "abs", False, {FP16, FP32}),
        ("ascend910b", "neg", False, {INT16, INT32, FP16, FP32}),
        ("ascend910b", "relu", False, {INT32, FP16, FP32}),
        ("ascend910b", "reduce", False, {INT16, INT32, FP16, FP32}),
        ("ascend910b", "expand", False, {INT16, INT32, FP16, FP32}),
        ("ascend950", "add", False, {INT8, INT16, INT32, FP16, BF16, FP32}),
        ("ascend950", "sub", False, {INT8, INT16, INT32, FP16, FP32}),
        ("ascend950", "mul", False, {INT16, INT32, FP16, FP32}),
        ("ascend950", "div", False, {INT16, INT32, FP16, FP32}),
        ("ascend950", "mul", True, {INT8, INT16, INT32, FP16, BF16, FP32}),
        ("ascend950", "div", True, {INT16, INT32, FP16, FP32}),
        ("ascend950", "max", True, {INT16, INT32, FP16, FP32}),
        ("ascend950", "expand", False, {INT8, INT16, INT32, FP16, FP32}),
        ("ascend950", "expand_div", False, {FP16, FP32}),
    ],
)
def test_vector_dtypes(name: str, kind: str, scalar: bool, takes: set[DType]) -> None:
    assert load_target(name).vector_dtypes(kind, scalar) == takes


CASTS = {
    FP32: [FP16, BF16, INT16, INT32, INT64],
    FP16: [FP32, INT32, INT16, INT8, UINT8, INT4],
    BF16: [FP32, INT32],
    INT16: [FP16, FP32],
    INT32: [FP32, INT16, INT64, FP16],
    INT64: [FP32, INT32],
    UINT8: [FP16],
    INT8: [FP16],
    INT4: [FP16],
}


@pytest.mark.parametrize(("name", "assumed"), [("ascend910b", False), ("ascend950", True)])
def test_native_casts(name: str, assumed: bool) -> None:
    target = load_target(name)
    for src, results in CASTS.items():
        for dst in CASTS:
            assert target.native_cast(src, dst) == (dst is src or dst in results), (src, dst)
    assert target.casts.assumed is assumed


@pytest.mark.parametrize(
    ("src", "dst", "chain"),
    [
        (FP32, FP32, []),
        (FP32, FP16, [FP16]),
        (BF16, FP16, [FP32, FP16]),
        (FP16, BF16, [FP32, BF16]),
        (INT8, FP32, [FP16, FP32]),
        (INT8, INT32, [FP16, INT32]),
        (UINT8, INT4, [FP16, INT4]),
        (INT8, BF16, [FP16, FP32, BF16]),
        (INT64, FP16, [FP32, FP16]),  # as short through INT32, but an i64 is nearer to f32: first in the table
        (INT8, INT64, [FP16, FP32, INT64]),
        (BF16, INT64, [FP32, INT64]),
        (INT4, UINT8, [FP16, UINT8]),
        (FP8E5M2, FP32, None),
    ],
)
def test_cast_chains(src: DType, dst: DType, chain: list[DType] | None) -> None:
    assert load_target("ascend910b").cast_chain(src, dst) == chain


def test_casts_are_free_where_no_table_says_otherwise() -> None:
    assert load_target("generic").cast_chain(INT8, BF16) == [BF16]


@pytest.mark.parametrize(
    ("name", "drain"), [("ascend910b", Drain(164, 4.45, 118, 2.6)), ("ascend950", Drain(343.4, 4.59, 30, 0.26))]
)
def test_drain_constants(name: str, drain: Drain) -> None:
    target = load_target(name)
    assert target.drain() == drain
    leaving = [edge for edge in target.edges if edge.src == target.memory(ACC).name]
    assert all(edge.drain == drain for edge in leaving)


@pytest.mark.parametrize(
    ("name", "m", "n", "cycles"),
    [
        ("ascend910b", 16, 16, 164 + 16 * 4.45),
        ("ascend910b", 16, 128, 164 + 16 * 4.45),
        ("ascend910b", 160, 128, 164 + 160 * 4.45),
        ("ascend910b", 64, 256, 164 + 64 * (4 * 256 / 118)),
        ("ascend910b", 16, 48, 164 + 16 * 4.45 + 2.6 * 16 * (3 - 1)),
        ("ascend910b", 16, 20, 164 + 16 * 4.45 + 2.6 * 16 * (3 - 1)),  # 20 columns are 3 blocks of 8
        ("ascend950", 16, 64, 343.4 + 16 * (4 * 64 / 30)),
        ("ascend950", 16, 16, 343.4 + 16 * 4.59),
        ("ascend950", 32, 40, 343.4 + 32 * (160 / 30) + 0.26 * 32 * (5 - 1)),
    ],
)
def test_drain_cycles(name: str, m: int, n: int, cycles: float) -> None:
    assert load_target(name).drain_cycles(m, n) == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("name", "m", "n", "k", "dtype", "cycles"),
    [
        ("ascend910b", 16, 16, 16, FP16, 21 + 1),
        ("ascend910b", 160, 128, 64, BF16, 21 + 10 * 8 * 4),
        ("ascend910b", 64, 128, 64, FP32, 21 + 2 * 4 * 8 * 8),
        ("ascend910b", 1, 17, 17, FP16, 21 + 1 * 2 * 2),
        ("ascend950", 16, 16, 32, INT8, 25 + 1),
        ("ascend950", 16, 16, 16, FP32, 25 + 8 * 2),
        ("x86_amx", 16, 16, 32, BF16, 16),
        ("x86_avx512", 2, 16, 1, FP32, 1),
        ("x86_avx2", 2, 8, 1, FP32, 1),
    ],
)
def test_matmul_cycles(name: str, m: int, n: int, k: int, dtype: DType, cycles: float) -> None:
    assert load_target(name).matmul_cycles(m, n, k, dtype) == cycles


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(
    ("kind", "nbytes", "dtype", "cycles"),
    [
        ("unary", 256, FP32, 18 + 1 + 17),
        ("unary", 257, FP32, 18 + 2 + 17),
        ("scalar", 1024, FP32, 18 + 4 + 17),
        ("binary", 1024, FP32, 18 + 4 * 2 + 19),
        ("add", 1024, FP32, 18 + 4 * 2 + 19),
        ("select", 1024, FP32, 18 + 4 * 2 + 19),
        ("cast", 1024, FP32, 18 + 4 * 2 + 19),
        ("transcendental", 1024, FP16, 18 + 4 * 4 + 27),
        ("exp", 1024, FP32, 18 + 4 * 8 + 27),
        ("div", 1024, FP32, 18 + 4 * 8 + 27),
        ("reduce", 1024, FP32, 18 + 4 * 2 + 27),
        ("none", 1024, FP32, 0),
    ],
)
def test_vector_cycles(name: str, kind: str, nbytes: int, dtype: DType, cycles: float) -> None:
    target = load_target(name)
    assert target.vector_cycles(kind, nbytes, dtype) == cycles
    assert target.vector.scalar == 1


@pytest.mark.parametrize(
    ("edge", "engine", "core"),
    [
        ((DDR, MAT), "MTE2", "cube"),
        ((DDR, VEC), "MTE2", "vector"),
        ((MAT, LEFT), "MTE1", "cube"),
        ((ACC, MAT), "FIXPIPE", "cube"),
        ((ACC, DDR), "FIXPIPE", "cube"),
        ((VEC, VEC), "VECTOR", "vector"),
        ((VEC, DDR), "MTE3", "vector"),
    ],
)
@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
def test_engines_of_edges(name: str, edge: tuple[MemorySpace, MemorySpace], engine: str, core: str) -> None:
    found = load_target(name).edge(*edge)
    assert found is not None
    assert (found.engine, found.core) == (engine, core)


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
def test_engines_of_work(name: str) -> None:
    target = load_target(name)
    found = {work: (target.engine_for(work).name, target.core_for(work)) for work in ("matmul", "reduce", "scalar")}
    assert found == {"matmul": ("CUBE", "cube"), "reduce": ("VECTOR", "vector"), "scalar": ("SCALAR", "cube")}
    assert set(target.engines) == {"MTE1", "MTE2", "MTE3", "CUBE", "FIXPIPE", "VECTOR", "SCALAR"}
    assert [target.core_of_space(space) for space in (MAT, ACC, VEC, DDR)] == ["cube", "cube", "vector", None]


REGISTERS: list[tuple[str, MemorySpace, int, int, int, int]] = [
    # target, space, registers, bytes of one, first, capacity
    ("x86_amx", LEFT, 2, 1024, 4, 2 * KIB),
    ("x86_amx", RIGHT, 2, 1024, 6, 2 * KIB),
    ("x86_amx", ACC, 4, 1024, 0, 4 * KIB),
    ("x86_avx512", LEFT, 1, 64, 31, 64),
    ("x86_avx512", RIGHT, 3, 64, 28, 192),
    ("x86_avx512", ACC, 28, 64, 0, 1792),
    ("x86_avx2", LEFT, 1, 32, 15, 32),
    ("x86_avx2", RIGHT, 3, 32, 12, 96),
    ("x86_avx2", ACC, 12, 32, 0, 384),
    ("generic", LEFT, 1, 16, 15, 16),
    ("generic", RIGHT, 3, 16, 12, 48),
    ("generic", ACC, 12, 16, 0, 192),
]


@pytest.mark.parametrize(("name", "space", "count", "size", "first", "capacity"), REGISTERS)
def test_cpu_registers(name: str, space: MemorySpace, count: int, size: int, first: int, capacity: int) -> None:
    memory = load_target(name).memory(space)
    assert memory.capacity == capacity == count * size
    assert (memory.register_base, memory.register_bytes, memory.rank) == (first, size, 2)


@pytest.mark.parametrize("name", ["x86_amx", "x86_avx512", "x86_avx2", "generic"])
def test_cpu_facts(name: str) -> None:
    target = load_target(name)
    assert [target.matmul_acc(dtype, dtype) for dtype in (BF16, FP16, FP32, INT8)] == [FP32, FP32, FP32, INT32]
    assert (target.family, target.ddr_granule, target.has_separate_cores) == ("cpu", 64, False)
    assert (target.matmul.moving_buffers, target.matmul.max_accumulators) == (1, 1)
