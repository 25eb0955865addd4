"""Scalar expressions: folding keeps values, and equal extents become equal numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.execute.scalars import evaluate_scalar
from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.scalar import Binary, BinaryKind, Const, Scalar, Value, binary, linear_terms, substitute, values_in
from tilewright.ir.types import ScalarType

IV = Value("i", ScalarType(INDEX))
JV = Value("j", ScalarType(INDEX))
KINDS = (
    BinaryKind.ADD,
    BinaryKind.SUB,
    BinaryKind.MUL,
    BinaryKind.MIN,
    BinaryKind.MAX,
    BinaryKind.FLOORDIV,
    BinaryKind.MOD,
)


def trees() -> st.SearchStrategy[Scalar]:
    leaves: st.SearchStrategy[Scalar] = st.one_of(st.integers(-4, 9), st.sampled_from([IV, JV]))

    def extend(inner: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        division = st.sampled_from([BinaryKind.FLOORDIV, BinaryKind.MOD])
        by_constant = st.builds(_raw, division, inner, st.integers(1, 7))
        plain = st.builds(_raw, st.sampled_from(KINDS[:5]), inner, inner)
        return st.one_of(plain, by_constant)

    return st.recursive(leaves, extend, max_leaves=12)


def _raw(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    return Binary(kind, lhs, rhs, INDEX)


def fold(scalar: Scalar) -> Scalar:
    """The same expression, built again through the folding constructor."""
    if isinstance(scalar, Binary):
        return binary(scalar.kind, fold(scalar.lhs), fold(scalar.rhs))
    return scalar


@given(trees(), st.integers(-20, 20), st.integers(-20, 20))
def test_folding_keeps_the_value(tree: Scalar, i: int, j: int) -> None:
    env = {IV: i, JV: j}
    assert evaluate_scalar(fold(tree), env) == evaluate_scalar(tree, env)


@given(trees(), st.integers(-20, 20), st.integers(-20, 20))
def test_substitution_is_evaluation(tree: Scalar, i: int, j: int) -> None:
    replaced = substitute(fold(tree), lambda value: i if value is IV else j)
    assert replaced == evaluate_scalar(tree, {IV: i, JV: j})


@given(trees(), st.integers(-20, 20), st.integers(-20, 20))
def test_linear_terms_sum_to_the_value(tree: Scalar, i: int, j: int) -> None:
    env = {IV: i, JV: j}
    terms, constant = linear_terms(fold(tree))
    total = constant + sum(factor * evaluate_scalar(term, env) for term, factor in terms.items())
    assert total == evaluate_scalar(tree, env)


def test_extent_of_a_slice_is_a_number() -> None:
    assert (IV + 64) - IV == 64
    assert (IV + 1) * 64 - IV * 64 == 64
    assert (IV * 64 + 64) - 64 * IV == 64


def test_constants_compare_by_bits() -> None:
    nan = float("nan")
    assert Const(nan, FP32) == Const(nan, FP32)
    assert Const(0.0, FP32) != Const(-0.0, FP32)


def test_a_float_constant_is_one_however_it_was_made() -> None:
    assert Const(1, FP32) == Const(1.0, FP32)


def test_what_is_shared_is_visited_once() -> None:
    x = Value("x", ScalarType(FP32))
    tree: Scalar = x
    for _ in range(100):  # 2 ** 100 paths
        tree = binary(BinaryKind.ADD, tree, tree)
    assert set(values_in(tree)) == {x}
    y = Value("y", ScalarType(FP32))
    assert set(values_in(substitute(tree, lambda _: y))) == {y}
