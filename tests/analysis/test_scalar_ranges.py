"""Simple scalars: the forms that sums, quotients and comparisons take, and equality with what they were by trial."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from tilewright.analysis.scalar_ranges import Facts, Range, narrowed, range_of, simplify_scalar, trip_range
from tilewright.execute.scalars import evaluate_scalar
from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.scalar import Binary, BinaryKind, Const, Scalar, Unary, UnaryKind, Value, binary, dtype_of
from tilewright.ir.types import ScalarType

M, J, N = (Value(name, ScalarType(INDEX)) for name in "ijn")
RANGES: dict[Value, Range] = {M: (0, 5), J: (0, 7)}
FACTS = Facts(RANGES, {M: 0, J: 1, N: 2})


def made(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    return binary(kind, lhs, rhs)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (J + M - (M - 1), J + 1),
        (J + M, M + J),
        ((M + J) * 8 - J * 8, M * 8),
        ((M * 8 + J) // 8, M),
        ((M * 8 + J) % 8, J),
        ((M * 8 + J + 16) // 8, M + 2),
        ((N * 8 + M) // 4, M // 4 + N * 2),
        ((N // 4) // 8, N // 32),
        ((N % 32) % 8, N % 8),
        (made(BinaryKind.MIN, M + 3, 16), M + 3),
        (made(BinaryKind.MAX, M - J - 9, 0), 0),
        (made(BinaryKind.LT, M + 1, 5), made(BinaryKind.LT, M, 4)),
        (made(BinaryKind.LT, M * 4, 10), made(BinaryKind.LT, M, 3)),
        (made(BinaryKind.GT, 4, M), made(BinaryKind.LT, M, 4)),
        (made(BinaryKind.EQ, M * 2, 3), Const(False, BOOL)),
        (made(BinaryKind.LT, M, 6), Const(True, BOOL)),
        (made(BinaryKind.GE, M, 6), Const(False, BOOL)),
        (Unary(UnaryKind.NOT, made(BinaryKind.LT, N, J), BOOL), made(BinaryKind.GE, N, J)),
        (5 - M, 5 - M),
    ],
)
def test_forms(before: Scalar, after: Scalar) -> None:
    assert simplify_scalar(before, FACTS) == after
    assert simplify_scalar(after, FACTS) is after


def draw(random: Random, depth: int) -> Scalar:
    """An INDEX over i, j and n."""
    if depth == 0 or random.random() < 0.2:
        return random.choice([M, J, N, random.randint(-4, 9)])
    kind = random.choice([BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.MAX,
                          BinaryKind.FLOORDIV, BinaryKind.MOD])  # fmt: skip
    left = draw(random, depth - 1)
    right = random.randint(1, 6) if kind in (BinaryKind.FLOORDIV, BinaryKind.MOD) else draw(random, depth - 1)
    return Binary(kind, left, right, INDEX) if random.random() < 0.5 else binary(kind, left, right)


@pytest.mark.parametrize("seed", range(60))
def test_simple_expressions_are_equal_and_within_their_range(seed: int) -> None:
    random = Random(seed)
    for _ in range(12):
        index = draw(random, 4)
        compare = random.choice([kind for kind in BinaryKind if kind.is_comparison])
        for scalar in (index, Binary(compare, index, draw(random, 2), BOOL)):
            simple = simplify_scalar(scalar, FACTS)
            low, high = range_of(index, FACTS)
            for i, j, n in product(range(6), range(8), (-7, 0, 3)):
                env = {M: i, J: j, N: n}
                value = evaluate_scalar(scalar, env)
                assert evaluate_scalar(simple, env) == value, (scalar, simple, env)
                if dtype_of(scalar) is INDEX:
                    assert (low is None or low <= value) and (high is None or value <= high)


def test_conditions_narrow_ranges() -> None:
    both = made(BinaryKind.AND, made(BinaryKind.LT, M, J - 4), made(BinaryKind.GE, M, 2))
    assert narrowed(both, FACTS) == {M: (2, 2), J: (5, 7)}
    assert narrowed(made(BinaryKind.EQ, N, 3), FACTS) == {N: (3, 3)}


def test_ranges_of_loop_variables() -> None:
    assert trip_range(0, 16, 4, FACTS) == (0, 12)
    assert trip_range(7, -1, -2, FACTS) == (1, 7)
    assert trip_range(M, J, 1, FACTS) == (0, 6)
    assert trip_range(0, N, 1, FACTS) == (0, None)
