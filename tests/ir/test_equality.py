"""Structural equality: renaming values changes nothing, anything else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ir_builder import Builder, program
from properties.strategies import Seeded, generate

from tilewright.errors import Span
from tilewright.ir.dtypes import FP16, FP32, INDEX
from tilewright.ir.function import Direction, Function, FunctionKind, Program
from tilewright.ir.nodes import Let, LoopKind
from tilewright.ir.op import Level
from tilewright.ir.rewrite import clone_block
from tilewright.ir.scalar import BinaryKind, Const, Value, binary
from tilewright.ops import Load, Store
from tilewright.ops.elementwise import Add, Neg, Sub


def kernel(
    *,
    offset: int = 0,
    number: float = 1.0,
    swapped: bool = False,
    names: str = "xyz",
    kind: LoopKind = LoopKind.SEQUENTIAL,
    trips: int = 3,
    minus: bool = False,
    first: int = 0,
) -> Function:
    builder = Builder()
    n, a, out = builder.scalar("n", INDEX), builder.tensor("a", 16, 8), builder.out("out", 8, 8)
    x = builder.let(names[0], Load(a, (offset, 0), (8, 8)))
    y = builder.let(names[1], Add(x, Const(number, FP32)))

    def body(iv: Value, p: Value, q: Value) -> tuple[Value, ...]:
        z = builder.let(names[2], Sub(p, q) if minus else Add(p, q))
        return (q, z) if swapped else (z, q)

    results = builder.loop(trips, (x, y), body, kind)
    condition = binary(BinaryKind.GT, n, 0)
    (phi,) = builder.branch(condition, lambda: (results[first],), lambda: (builder.let("w", Neg(y)),))
    return builder.returns(builder.let("o", Store(phi, (0, 0), out)))


def test_names_and_places_do_not_count() -> None:
    one, two = kernel(), kernel(names="uvw")
    assert one == two and hash(one) == hash(two)
    moved = one.with_(span=Span("elsewhere.py", 3, 1, 3, 9))
    assert moved == one and hash(moved) == hash(one)


@pytest.mark.parametrize(
    "other",
    [
        lambda: kernel(offset=4),
        lambda: kernel(number=2.0),
        lambda: kernel(number=-0.0),
        lambda: kernel(swapped=True),
        lambda: kernel(kind=LoopKind.PIPELINE),
        lambda: kernel(trips=4),
        lambda: kernel(minus=True),
        lambda: kernel(first=1),
        lambda: kernel().with_(name="other"),
        lambda: kernel().with_(kind=FunctionKind.INLINE),
        lambda: kernel().with_(attrs=(("core", "cube"),)),
        lambda: kernel().with_body(kernel().body[1:]),
    ],
)
def test_everything_else_does(other: Callable[[], Function]) -> None:
    assert kernel() != other()


def test_zero_and_minus_zero_are_two_constants_and_nan_is_itself() -> None:
    assert kernel(number=0.0) != kernel(number=-0.0)
    assert kernel(number=float("nan")) == kernel(number=float("nan"))


def test_directions_dtypes_and_order_count() -> None:
    def two(direction: Direction = Direction.OUT, dtype: object = FP32, reverse: bool = False) -> Program:
        builder = Builder()
        a = builder.tensor("a", 8, 8, dtype=FP32 if dtype is FP32 else FP16)
        out = builder.tensor("out", 8, 8, dtype=a.dtype, direction=direction)
        names = ("x", "y")
        values = [builder.let(name, Load(a, (0, 0), (8, 8))) for name in names]
        x, y = reversed(values) if reverse else values
        return program(builder.returns(builder.let("o", Store(builder.let("z", Sub(x, y)), (0, 0), out))))

    assert two() == two()
    assert two() != two(Direction.INOUT)
    assert two() != two(dtype=FP16)
    assert two() != two(reverse=True)


def test_a_value_stands_for_one_value_only() -> None:
    """x - x is not x - y, although every use on its own could be matched."""

    def difference(same: bool) -> Function:
        builder = Builder()
        a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
        x, y = (builder.let(name, Load(a, (0, 0), (8, 8))) for name in "xy")
        return builder.returns(builder.let("o", Store(builder.let("z", Sub(x, x if same else y)), (0, 0), out)))

    assert difference(True) != difference(False)
    assert difference(False) != difference(True)


@pytest.mark.parametrize("seed", range(30))
def test_a_clone_is_equal_and_a_program_without_a_statement_is_not(seed: int) -> None:
    drawn = generate(Seeded(seed), Level.TILE).program
    main = drawn.main
    clone = Program((main.with_body(clone_block(main.body, {})),), "main")
    assert clone == drawn and hash(clone) == hash(drawn)
    lets = [i for i, stmt in enumerate(main.body) if isinstance(stmt, Let)]
    for index in lets[:: max(1, len(lets) // 4)]:
        assert Program((main.with_body((*main.body[:index], *main.body[index + 1 :])),), "main") != drawn
