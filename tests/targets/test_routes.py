"""Routes over the memories of each machine (spaces R12 to R15)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest

from tilewright.errors import NoRouteError, Span
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.layout import COL_MAJOR, NZ, ROW_MAJOR, MemorySpace
from tilewright.targets import Target, load_target, target_names

S = MemorySpace
SCRATCHPAD = str(Path(__file__).parents[2] / "examples/targets/scratchpad.toml")
CPUS = ("x86_amx", "x86_avx512", "x86_avx2", "generic", "host")


def spelled(target: Target, src: MemorySpace, dst: MemorySpace, dtype: DType, to: DType | None = None) -> str:
    return str(target.route(src, dst, dtype, to))


@pytest.mark.parametrize(
    ("name", "src", "dst", "dtype", "to", "path"),
    [
        ("ascend910b", S.ACC, S.LEFT, FP32, FP16, "Acc -> Mat -> Left"),
        ("ascend910b", S.ACC, S.LEFT, FP32, BF16, "Acc -> Mat -> Left"),
        ("ascend910b", S.ACC, S.RIGHT, FP32, BF16, "Acc -> Mat -> Right"),
        ("ascend910b", S.ACC, S.LEFT, FP32, None, "Acc -> DDR -> Mat -> Left"),
        ("ascend910b", S.ACC, S.MAT, FP32, None, "Acc -> DDR -> Mat"),
        ("ascend910b", S.ACC, S.MAT, INT32, None, "Acc -> DDR -> Mat"),
        ("ascend910b", S.ACC, S.VEC, FP32, None, "Acc -> DDR -> Vec"),
        ("ascend910b", S.ACC, S.VEC, FP32, BF16, "Acc -> DDR -> Vec"),
        ("ascend910b", S.VEC, S.MAT, FP16, None, "Vec -> DDR -> Mat"),
        ("ascend910b", S.VEC, S.LEFT, FP16, None, "Vec -> DDR -> Mat -> Left"),
        ("ascend910b", S.MAT, S.VEC, FP16, None, "Mat -> DDR -> Vec"),
        ("ascend910b", S.DDR, S.LEFT, FP16, None, "DDR -> Mat -> Left"),
        ("ascend910b", S.DDR, S.BIAS, FP32, None, "DDR -> Mat -> Bias"),
        ("ascend910b", S.VEC, S.VEC, FP32, None, "in place"),
        ("ascend910b", S.VEC, S.VEC, FP32, FP16, "None"),
        ("ascend910b", S.VEC, S.LEFT, FP32, FP16, "None"),
        ("ascend910b", S.LEFT, S.MAT, FP16, None, "None"),
        ("ascend910b", S.DDR, S.ACC, FP32, None, "None"),
        ("ascend910b", S.DDR, S.LEFT_SCALE, INT8, None, "None"),
        ("ascend950", S.ACC, S.VEC, FP32, None, "Acc -> Vec"),
        ("ascend950", S.ACC, S.VEC, FP32, BF16, "Acc -> Vec"),
        ("ascend950", S.ACC, S.LEFT, FP32, None, "Acc -> Mat -> Left"),
        ("ascend950", S.ACC, S.LEFT, FP32, FP16, "Acc -> Mat -> Left"),
        ("ascend950", S.VEC, S.MAT, FP16, None, "Vec -> Mat"),
        ("ascend950", S.VEC, S.RIGHT, BF16, None, "Vec -> Mat -> Right"),
        ("ascend950", S.MAT, S.VEC, FP16, None, "None"),
        ("ascend950", S.MAT, S.DDR, FP16, None, "None"),
    ],
)
def test_spaces_r12_routes(
    name: str, src: MemorySpace, dst: MemorySpace, dtype: DType, to: DType | None, path: str
) -> None:
    assert spelled(load_target(name), src, dst, dtype, to) == path


def test_spaces_r14_the_conversion_happens_on_the_edge_that_offers_it() -> None:
    route = load_target("ascend910b").route(S.ACC, S.LEFT, FP32, BF16)
    assert route is not None
    assert [(hop.src, hop.dst, hop.dtype, hop.to_dtype) for hop in route.hops] == [
        (S.ACC, S.MAT, FP32, BF16),
        (S.MAT, S.LEFT, BF16, BF16),
    ]


def test_spaces_r14_a_requantisation_is_never_part_of_a_route() -> None:
    target = load_target("ascend910b")
    edge = target.edge(S.ACC, S.MAT)
    assert edge is not None
    assert (INT32, INT8) in edge.rescale
    assert target.route(S.ACC, S.MAT, INT32, INT8) is None


def test_cost_is_latency_and_bytes_over_bandwidth() -> None:
    route = load_target("ascend910b").route(S.DDR, S.LEFT, FP16, nbytes=8192)
    assert route is not None
    assert route.cost == pytest.approx(100 + 8192 / 256 + 20 + 8192 / 129.7)
    # After a conversion to half the width, half the bytes go on; the drain is that of 128 columns of f32.
    narrowed = load_target("ascend910b").route(S.ACC, S.LEFT, FP32, FP16, nbytes=8192)
    assert narrowed is not None
    assert narrowed.cost == pytest.approx(20 + 164 + 16 * 4.45 + 20 + 4096 / 129.7)


def path_cost(target: Target, path: tuple[str, ...], types: list[DType], nbytes: int) -> float | None:
    """What a path costs whose tile has `types` at each memory of it; None where some edge refuses."""
    cost = 0.0
    for at, ends in enumerate(pairwise(path)):
        edge = next((edge for edge in target.edges if (edge.src, edge.dst) == ends), None)
        if edge is None or not edge.carries(types[at], types[at + 1]):
            return None
        cost += edge.cycles(nbytes * types[at].bits / types[0].bits)
    return cost


def brute_force(
    target: Target, src: MemorySpace, dst: MemorySpace, dtype: DType, to: DType, nbytes: int
) -> float | None:
    """The cheapest of all simple paths: every order of every few memories between, every place for the conversion."""
    start, goal = target.roles[src], target.roles[dst]
    if start == goal:
        return 0.0 if dtype is to else None
    costs: list[float] = []
    between = [name for name in target.memories if name not in (start, goal)]
    for middle in (middle for length in range(4) for middle in permutations(between, length)):
        path = (start, *middle, goal)
        for turn in range(1, len(path)):
            cost = path_cost(target, path, [dtype] * turn + [to] * (len(path) - turn), nbytes)
            costs += [] if cost is None else [cost]
    return min(costs, default=None)


@pytest.mark.parametrize("name", ["ascend910b", "ascend950", "x86_avx512", SCRATCHPAD])
@pytest.mark.parametrize(("dtype", "to"), [(FP32, FP32), (FP32, BF16), (FP16, FP16), (INT32, INT32)])
def test_routes_are_the_cheapest(name: str, dtype: DType, to: DType) -> None:
    target = load_target(name)
    for src, dst in product(target.spaces, target.spaces):
        route = target.route(src, dst, dtype, to, 4096)
        expected = brute_force(target, src, dst, dtype, to, 4096)
        assert (route is None) == (expected is None), (src, dst)
        if route is not None and expected is not None:
            assert route.cost == pytest.approx(expected)
            assert all(a.dst == b.src for a, b in pairwise(route.hops))


def test_the_number_of_bytes_decides_between_low_latency_and_high_bandwidth() -> None:
    target = load_target("ascend950")
    slow = tuple(
        replace(edge, bytes_per_cycle=1.0) if (edge.src, edge.dst) == ("UB", "L1") else edge for edge in target.edges
    )
    changed = replace(target, edges=slow)
    assert str(changed.route(S.VEC, S.MAT, FP16, nbytes=64)) == "Vec -> Mat"
    assert str(changed.route(S.VEC, S.MAT, FP16, nbytes=1 << 16)) == "Vec -> DDR -> Mat"


def test_ties_go_to_fewer_hops_then_to_names_whatever_the_order_in_the_file() -> None:
    target = load_target("ascend950")
    free = tuple(replace(edge, bytes_per_cycle=float("inf"), latency=0.0, drain=None) for edge in target.edges)
    for edges in (free, free[::-1]):
        changed = replace(target, edges=edges)
        assert str(changed.route(S.ACC, S.LEFT, FP32)) == "Acc -> Mat -> Left"
        assert str(changed.route(S.VEC, S.MAT, FP32)) == "Vec -> Mat"


@pytest.mark.parametrize("name", CPUS)
def test_every_need_of_vector_work_can_be_met_on_a_cpu(name: str) -> None:
    target = load_target(name)
    for src in (S.DDR, S.MAT, S.ACC, S.VEC, S.BIAS):
        for dst in (S.DDR, S.MAT, S.LEFT, S.RIGHT, S.VEC, S.BIAS):
            for dtype in (FP32, INT32):
                assert target.route(src, dst, dtype) is not None, (src, dst)


def test_spaces_r15_no_route_names_both_ends_and_the_edges_that_exist() -> None:
    target = load_target("ascend950")
    span = Span("kernel.py", 7, 4, 7, 20)
    error = target.no_route(S.MAT, S.VEC, FP32, producer="a = load", consumer="b = add", span=span)
    assert isinstance(error, NoRouteError)
    text = str(error)
    assert text.startswith("TW302 kernel.py:7:5: ascend950 has no route from Mat (a = load) to Vec (b = add) for FP32")
    assert "edges DDR -> Mat, Vec; Vec -> DDR, Vec, Mat; Mat -> Left" in text
    assert "load it from DDR straight to Vec" in text


def test_no_route_says_when_a_cast_would_open_one() -> None:
    target = load_target("ascend910b")
    edges = tuple(edge for edge in target.edges if (edge.src, edge.dst) != ("L0C", "DDR"))
    cut = replace(target, edges=edges)
    assert cut.route(S.ACC, S.LEFT, FP32) is None
    assert cut.no_route(S.ACC, S.LEFT, FP32).help == "the way exists for FP32 -> BF16 or FP16: cast the value to that"


def test_no_route_says_when_the_role_is_wanting() -> None:
    error = load_target("ascend910b").no_route(S.MAT, S.LEFT_SCALE, INT8)
    assert error.help == "ascend910b has no memory for LeftScale; it has DDR, Mat, Left, Right, Acc, Vec, Bias"
    assert error.required == "a path from Mat to LeftScale for INT8"


def test_no_route_without_an_edge_from_ddr() -> None:
    assert load_target("ascend910b").no_route(S.DDR, S.ACC).help == "compute the value in a space that reaches Acc"


def test_vector_copies_keep_their_layout() -> None:
    edge = load_target("ascend910b").edge(S.VEC, S.VEC)
    assert edge is not None
    assert edge.rearranges(ROW_MAJOR, ROW_MAJOR)
    assert edge.rearranges(COL_MAJOR, COL_MAJOR)
    assert not edge.rearranges(ROW_MAJOR, NZ)
    load = load_target("ascend910b").edge(S.DDR, S.MAT)
    assert load is not None
    assert load.rearranges(ROW_MAJOR, NZ)


@pytest.mark.parametrize("name", target_names())
def test_every_edge_of_a_built_in_target_has_a_price(name: str) -> None:
    for edge in load_target(name).edges:
        assert edge.cycles(4096) > edge.latency
        assert edge.cycles(4096, (32, 32)) > edge.latency
