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

I, J, N = (Value(name, ScalarType(INDEX)) for name in "ijn")
RANGES: dict[Value, Range] = {I: (0, 5), J: (0, 7)}
FACTS = Facts(RANGES, {I: 0, J: 1, N: 2})


def made(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    return binary(kind, lhs, rhs)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (J + I - (I - 1), J + 1),
        (J + I, I + J),
        ((I + J) * 8 - J * 8, I * 8),
        ((I * 8 + J) // 8, I),
        ((I * 8 + J) % 8, J),
        ((I * 8 + J + 16) // 8, I + 2),
        ((N * 8 + I) // 4, I // 4 + N * 2),
        ((N // 4) // 8, N // 32),
        ((N % 32) % 8, N % 8),
        (made(BinaryKind.MIN, I + 3, 16), I + 3),
        (made(BinaryKind.MAX, I - J - 9, 0), 0),
        (made(BinaryKind.LT, I + 1, 5), made(BinaryKind.LT, I, 4)),
        (made(BinaryKind.LT, I * 4, 10), made(BinaryKind.LT, I, 3)),
        (made(BinaryKind.GT, 4, I), made(BinaryKind.LT, I, 4)),
        (made(BinaryKind.EQ, I * 2, 3), Const(False, BOOL)),
        (made(BinaryKind.LT, I, 6), Const(True, BOOL)),
        (made(BinaryKind.GE, I, 6), Const(False, BOOL)),
        (Unary(UnaryKind.NOT, made(BinaryKind.LT, N, J), BOOL), made(BinaryKind.GE, N, J)),
        (5 - I, 5 - I),
    ],
)
def test_forms(before: Scalar, after: Scalar) -> None:
    assert simplify_scalar(before, FACTS) == after
    assert simplify_scalar(after, FACTS) is after


def draw(random: Random, depth: int) -> Scalar:
    """An INDEX over i, j and n."""
    if depth == 0 or random.random() < 0.2:
        return random.choice([I, J, N, random.randint(-4, 9)])
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
                env = {I: i, J: j, N: n}
                value = evaluate_scalar(scalar, env)
                assert evaluate_scalar(simple, env) == value, (scalar, simple, env)
                if dtype_of(scalar) is INDEX:
                    assert (low is None or low <= value) and (high is None or value <= high)


def test_conditions_narrow_ranges() -> None:
    both = made(BinaryKind.AND, made(BinaryKind.LT, I, J - 4), made(BinaryKind.GE, I, 2))
    assert narrowed(both, FACTS) == {I: (2, 2), J: (5, 7)}
    assert narrowed(made(BinaryKind.EQ, N, 3), FACTS) == {N: (3, 3)}


def test_ranges_of_loop_variables() -> None:
    assert trip_range(0, 16, 4, FACTS) == (0, 12)
    assert trip_range(7, -1, -2, FACTS) == (1, 7)
    assert trip_range(I, J, 1, FACTS) == (0, 6)
    assert trip_range(0, N, 1, FACTS) == (0, None)
