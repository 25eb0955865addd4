"""Tiles whose elements follow from their position: counting, triangles, random bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import OperandError
from tilewright.ir.dtypes import INDEX, INT32, INT64, UINT32, DType
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import Special
from tilewright.ir.op import Access, Array, Expanded, Needs, Op, Spelling, Work, attribute, scalars, whole_access
from tilewright.ir.op import scalar as scalar_field
from tilewright.ir.scalar import BinaryKind, Scalar, Select, Shape, Value, binary, cast, constant, dtype_of
from tilewright.ir.types import Type
from tilewright.ops.common import (
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_lengths,
    elements_of,
    meaning_of,
    rounded,
)  # fmt: skip
from tilewright.ops.single import ADD, MUL, SUB, each, put

ONE_BY_ONE = Expanded("a loop over single elements")


class GenerateOp(Op):
    """Base: no operand, so that everything is defined."""

    lowering = Needs()
    spelling = Spelling(pto=ONE_BY_ONE)

    def stated(self) -> tuple[Shape, DType]:
        """The shape and the dtype that the operation states."""
        raise AssertionError(f"{self.name} states no shape")

    def infer(self) -> Type:
        shape, dtype = self.stated()
        valid: Shape | None = getattr(self, "valid_shape", None)
        check_lengths(self, 2, shape=shape, valid_shape=valid)
        check_dtype(self, "dtype", dtype, self.dtypes)
        return array_type(self.level, shape, dtype, valid)

    def accesses(self) -> tuple[Access, ...]:
        return (whole_access(None, self.infer(), writes=True),)

    def work(self) -> Work:
        kind = self.infer()
        return Work("fill", elements=elements_of(kind), nbytes=elements_of(kind) * kind.dtype.nbytes)

    def filled(self, to: Expansion, value: Callable[[Scalar, Scalar], Scalar]) -> Value:
        """The result, of which element [i, j] is ``value(i, j)``."""
        kind = self.infer()
        rows, columns = meaning_of(kind)

        def one(i: Scalar, j: Scalar, out: Value) -> tuple[Value]:
            return (put(to, out, (i, j), value(i, j)),)

        return each(to, rows, columns, (to.room(kind),), one)[0]


class Ci(GenerateOp, name="ci", result_space=VEC):
    """``start``, ``start + 1``, …, counted along the rows; `descending`: ``start``, ``start - 1``, …"""

    start: Scalar = scalar_field()
    shape: Shape = scalars()
    dtype: DType = attribute(default=INT32)
    descending: bool = attribute(default=False)
    dtypes = NUMBERS
    loops = Special("all")

    def stated(self) -> tuple[Shape, DType]:
        return self.shape, self.dtype

    def evaluate(self, start: Any, shape: Any) -> Array:
        """Counted in INT32, then converted."""
        steps: Any = np.arange(shape[0] * shape[1], dtype=np.int64)
        counted: Any = np.int64(start) + (-steps if self.descending else steps)
        return rounded(counted.reshape(tuple(shape)).astype(np.int32), self.dtype)

    def defined(self, start: Any, shape: Any) -> Array:
        return np.ones(tuple(shape), np.bool_)

    def infer(self) -> Type:
        if dtype_of(self.start) is not INDEX and not dtype_of(self.start).is_integer:
            raise OperandError(f"{self.qualified_name} starts from an integer", span=self.span, found=repr(self.start))
        return super().infer()

    def expand(self, to: Expansion) -> Scalar:
        kind = SUB if self.descending else ADD
        start = to.named(cast(self.start, INDEX), "start")

        def value(i: Scalar, j: Scalar) -> Scalar:
            return cast(binary(kind, start, binary(ADD, binary(MUL, i, self.shape[1]), j)), INT32)

        return self.filled(to, value)


class Tri(GenerateOp, name="tri", result_space=VEC):
    """1 on and below the diagonal number `diagonal`, where ``j <= i + diagonal``, else 0; `upper`: 1 on and above it,
    where ``j >= i + diagonal``."""

    diagonal: Scalar = scalar_field()
    shape: Shape = scalars()
    valid_shape: Shape | None = scalars(default=None, levels=(TILE,))
    dtype: DType = attribute(default=INT32)
    upper: bool = attribute(default=False)
    dtypes = NUMBERS
    loops = Special("valid_shape")

    def stated(self) -> tuple[Shape, DType]:
        return self.shape, self.dtype

    def evaluate(self, diagonal: Any, shape: Any, valid_shape: Any) -> Array:
        i, j = np.indices(tuple(valid_shape or shape))
        edge = i + int(diagonal)
        return rounded(j >= edge if self.upper else j <= edge, self.dtype)

    def defined(self, diagonal: Any, shape: Any, valid_shape: Any) -> Array:
        return np.ones(tuple(valid_shape or shape), np.bool_)

    def expand(self, to: Expansion) -> Scalar:
        diagonal = to.named(cast(self.diagonal, INDEX), "diagonal")
        test = BinaryKind.GE if self.upper else BinaryKind.LE

        def value(i: Scalar, j: Scalar) -> Scalar:
            return Select(binary(test, j, binary(ADD, i, diagonal)), constant(1, INT32), constant(0, INT32))

        return self.filled(to, value)


# --- random bits ------------------------------------------------------------------------------------------------------
LOW = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
WORDS = 4
"""Words that one block of the generator has."""


class Random(GenerateOp, name="random", result_space=VEC):
    """Random bits from the counter-based generator Philox 4x32 (Salmon and others, 2011) with `rounds` rounds: the
    words of the blocks with the counters from (counter0, …, counter3) on, least word first, are dealt out along the
    rows. Equal keys and counters give equal bits."""

    key0: Scalar = scalar_field()
    key1: Scalar = scalar_field()
    counter0: Scalar = scalar_field()
    counter1: Scalar = scalar_field()
    counter2: Scalar = scalar_field()
    counter3: Scalar = scalar_field()
    shape: Shape = scalars()
    valid_shape: Shape | None = scalars(default=None, levels=(TILE,))
    dtype: DType = attribute(default=UINT32)
    rounds: int = attribute(default=10)
    dtypes = (UINT32, INT32)
    loops = Special("valid_shape")

    def stated(self) -> tuple[Shape, DType]:
        if not 1 <= self.rounds <= 16:
            raise OperandError(f"{self.qualified_name} has 1 to 16 rounds", span=self.span, found=str(self.rounds))
        return self.shape, self.dtype

    def evaluate(self, *given: Any) -> Array:
        (key0, key1, *counters), shape, valid = given[:6], given[6], given[7]
        extents = tuple(valid or shape)
        i, j = np.indices(extents)
        position = i * shape[1] + j
        block, word = position // WORDS, position % WORDS
        state = _counted([np.uint64(int(c) & LOW) for c in counters], block.astype(np.uint64))
        words = _philox(state, int(key0) & LOW, int(key1) & LOW, self.rounds)
        bits = np.choose(word, words).astype(np.uint32)
        return bits.view(np.dtype(self.dtype.numpy))

    def defined(self, *given: Any) -> Array:
        return np.ones(tuple(given[7] or given[6]), np.bool_)

    def expand(self, to: Expansion) -> Scalar:
        fields = (self.key0, self.key1, self.counter0, self.counter1, self.counter2, self.counter3)
        key0, key1, *counters = (_low(to, cast(field, INT64)) for field in fields)

        def value(i: Scalar, j: Scalar) -> Scalar:
            position = binary(ADD, binary(MUL, i, self.shape[1]), j)
            carry: Scalar = to.named(cast(binary(BinaryKind.FLOORDIV, position, WORDS), INT64), "block")
            state: list[Scalar] = []
            for counter in counters:
                total = to.named(binary(ADD, counter, carry), "counter")
                state.append(_low(to, total))
                carry = binary(BinaryKind.SHR, total, 32)
            words = self._rounds(to, state, key0, key1)
            word = to.named(cast(binary(BinaryKind.MOD, position, WORDS), INT64), "word")
            found = words[WORDS - 1]
            for number in reversed(range(WORDS - 1)):
                found = Select(binary(BinaryKind.EQ, word, number), words[number], found)
            return to.named(found, "bits")

        return self.filled(to, value)

    def _rounds(self, to: Expansion, state: list[Scalar], key0: Scalar, key1: Scalar) -> list[Scalar]:
        for number in range(self.rounds):
            keys = [
                _low(to, binary(ADD, key, (number * step) & LOW)) for key, step in zip((key0, key1), WEYL, strict=True)
            ]
            products = [
                to.named(binary(MUL, state[2 * k], constant(factor, INT64)), "product")
                for k, factor in enumerate(MULTIPLIERS)
            ]
            high = [_low(to, binary(BinaryKind.SHR, product, 32)) for product in products]
            low = [_low(to, product) for product in products]
            mixed = [
                to.named(
                    binary(BinaryKind.BIT_XOR, binary(BinaryKind.BIT_XOR, high[1 - k], state[2 * k + 1]), keys[k]), "x"
                )
                for k in range(2)
            ]
            state = [mixed[0], low[1], mixed[1], low[0]]
        return state


def _low(to: Expansion, value: Scalar) -> Scalar:
    """The low 32 bits of an INT64."""
    return to.named(binary(BinaryKind.BIT_AND, value, constant(LOW, INT64)), "word")


def _counted(counters: list[Any], block: Any) -> list[Any]:
    """The 128-bit counter plus `block`, as four words in uint64."""
    state: list[Any] = []
    carry = block
    for counter in counters:
        total = counter + carry
        state.append(total & np.uint64(LOW))
        carry = total >> np.uint64(32)
    return state


def _philox(state: list[Any], key0: int, key1: int, rounds: int) -> list[Any]:
    for number in range(rounds):
        keys = [np.uint64((key + number * step) & LOW) for key, step in zip((key0, key1), WEYL, strict=True)]
        with np.errstate(over="ignore"):
            products = [state[2 * k] * np.uint64(factor) for k, factor in enumerate(MULTIPLIERS)]
        high = [product >> np.uint64(32) for product in products]
        low = [product & np.uint64(LOW) for product in products]
        state = [high[1] ^ state[1] ^ keys[0], low[1], high[0] ^ state[3] ^ keys[1], low[0]]
    return state
