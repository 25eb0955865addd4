"""The memory graphs against what the Ascend assembler accepts (spaces R16).

`ACCEPTED` is the assembler's table of address spaces and element types, written down from its manual's tables and not
from the target files. Every edge must be in it; everything in it must be an edge or stand in `EXCLUDED` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tilewright.ir.dtypes import BF16, FP8E4M3FN, FP8E5M2, FP16, FP32, INT8, INT16, INT32, INT64, UINT8, DType
from tilewright.ir.layout import MemorySpace
from tilewright.targets import load_target

S = MemorySpace
MULTIPLIED = (INT8, FP16, BF16, FP32, FP8E4M3FN, FP8E5M2)
TYPES = (INT8, INT16, INT32, INT64, FP16, BF16, FP32)
FP8 = (FP8E4M3FN, FP8E5M2)
LOCATION = {
    S.DDR: "gm",
    S.VEC: "vec",
    S.MAT: "mat",
    S.LEFT: "left",
    S.RIGHT: "right",
    S.ACC: "acc",
    S.BIAS: "bias",
    S.LEFT_SCALE: "scaling",
    S.RIGHT_SCALE: "scaling",
}
Pairs = frozenset[tuple[DType, DType]]


def same(*types: DType) -> Pairs:
    return frozenset((dtype, dtype) for dtype in types)


NARROW: Pairs = frozenset({(FP32, FP16), (FP32, BF16)})
STORE_OF_ACC: Pairs = frozenset(product((INT32, FP32), (INT32, FP32, FP16, BF16)))
ANY3, ANY5 = same(*TYPES, UINT8), same(*TYPES, *FP8, UINT8)

# operation, source, destinations, (element type in, element type out)
ACCEPTED: dict[str, list[tuple[str, str, tuple[str, ...], Pairs]]] = {
    "a3": [
        ("tload", "gm", ("vec", "mat"), ANY3),
        ("tstore", "vec", ("gm",), ANY3),
        ("tstore", "mat", ("gm",), ANY3),
        ("tstore", "acc", ("gm",), STORE_OF_ACC),
        ("tmov", "mat", ("left", "right", "bias", "scaling"), ANY3),
        ("tmov", "vec", ("vec",), ANY3),
        ("tmov", "acc", ("vec",), same(FP32, INT32) | NARROW),
        ("textract", "mat", ("left", "right"), same(INT8, FP16, BF16, FP32)),
        ("tinsert", "acc", ("mat",), NARROW),
    ],
    "a5": [
        ("tload", "gm", ("vec", "mat", "left", "right", "acc", "bias", "scaling"), ANY5),
        ("tstore", "vec", ("gm",), ANY5),
        ("tstore", "acc", ("gm",), STORE_OF_ACC),
        ("tmov", "mat", ("left", "right", "bias", "scaling"), ANY5),
        ("tmov", "vec", ("vec", "mat"), ANY5),
        ("tmov", "acc", ("vec",), same(FP32, INT32) | NARROW),
        ("textract", "mat", ("left", "right", "scaling"), same(INT8, FP16, BF16, FP32, *FP8)),
        ("textract", "vec", ("mat", "vec"), same(INT8, FP16, BF16, FP32)),
        ("tinsert", "acc", ("mat",), same(FP32, INT32) | NARROW),
        ("tinsert", "vec", ("mat", "vec"), ANY5),
    ],
}

Case = tuple[str, MemorySpace, MemorySpace, DType, DType]
EXCLUDED: list[tuple[str, Callable[[Case], bool]]] = [
    (
        "a3, acc to vec: the vector unit is another core, which cannot be reached on chip",
        lambda case: case[:3] == ("a3", S.ACC, S.VEC),
    ),
    (
        "a5, a load straight to an operand, the accumulator, bias or scales: accepted only because nothing checks it",
        lambda case: case[0] == "a5" and case[1] is S.DDR and case[2] not in (S.VEC, S.MAT),
    ),
    (
        "mat to an operand: an element type that the matrix engine does not multiply",
        lambda case: case[1] is S.MAT and case[2] in (S.LEFT, S.RIGHT) and case[3] not in MULTIPLIED,
    ),
    (
        "mat to bias: the bias is added to an accumulator, which is f32 or i32",
        lambda case: case[2] is S.BIAS and case[3] not in (FP32, INT32),
    ),
    (
        "mat to scales: a scale of MX blocks is one byte, an exponent",
        lambda case: case[2] in (S.LEFT_SCALE, S.RIGHT_SCALE) and case[3] is not UINT8,
    ),
    (
        "acc to gm, between i32 and a float: a requantisation, which wants a scale, or no cast at all",
        lambda case: case[1:3] == (S.ACC, S.DDR) and (INT32 in case[3:]) and case[3] is not case[4],
    ),
]  # fmt: skip


def cases(name: str) -> list[Case]:
    target = load_target(name)
    assert target.pto_arch is not None
    types = [dtype for dtype in (*TYPES, UINT8, *FP8) if dtype in target.dtypes.held]
    return [
        (target.pto_arch, src, dst, dtype, to)
        for src, dst in product(target.spaces, target.spaces)
        for dtype, to in product(types, types)
    ]


def accepts(case: Case) -> bool:
    arch, src, dst, dtype, to = case
    return any(
        LOCATION[src] == source and LOCATION[dst] in destinations and (dtype, to) in pairs
        for _, source, destinations, pairs in ACCEPTED[arch]
    )


def reasons(case: Case) -> list[str]:
    return [reason for reason, covers in EXCLUDED if covers(case)]


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
def test_spaces_r16_every_edge_is_accepted(name: str) -> None:
    target = load_target(name)
    refused: list[Case] = []
    for case in cases(name):
        edge = target.edge(case[1], case[2])
        if edge is not None and edge.carries(case[3], case[4]) and not accepts(case):
            refused.append(case)
    assert refused == []


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
def test_spaces_r16_every_accepted_pair_is_an_edge_or_excluded(name: str) -> None:
    target = load_target(name)
    missing: list[Case] = []
    for case in filter(accepts, cases(name)):
        edge = target.edge(case[1], case[2])
        if not (edge is not None and edge.carries(case[3], case[4])) and not reasons(case):
            missing.append(case)
    assert missing == []


def test_spaces_r16_no_exclusion_is_idle_or_hides_an_edge() -> None:
    used: set[str] = set()
    for name in ("ascend910b", "ascend950"):
        target = load_target(name)
        for case in filter(accepts, cases(name)):
            edge = target.edge(case[1], case[2])
            carried = edge is not None and edge.carries(case[3], case[4])
            assert not (carried and reasons(case)), case
            used.update(reasons(case))
    assert used == {reason for reason, _ in EXCLUDED}


def test_the_scaling_buffer_of_the_910b_has_no_role() -> None:
    # mat to scaling is accepted there: the scales of a requantising fix-pipe, which no move of ours is.
    assert not any(load_target("ascend910b").has(space) for space in (S.LEFT_SCALE, S.RIGHT_SCALE))


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
def test_every_hop_of_every_route_is_accepted(name: str) -> None:
    target = load_target(name)
    for case in cases(name):
        route = target.route(*case[1:])
        for hop in route.hops if route else ():
            assert accepts((case[0], hop.src, hop.dst, hop.dtype, hop.to_dtype)), (case, hop)
