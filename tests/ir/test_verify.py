"""Each invariant of the verifier, broken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ir_builder import Builder, program
from properties.strategies import Seeded, generate

from tilewright.errors import VerifyError
from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.function import Direction, Function, FunctionKind, Program
from tilewright.ir.nodes import Call, For, If, Let, LoopKind, Return, Yield
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Value, binary
from tilewright.ir.types import ScalarType, TensorType, TileType
from tilewright.ir.verify import verify
from tilewright.ops import Load, Store
from tilewright.ops.elementwise import Neg


def simple() -> tuple[Builder, Value, Value, Value]:
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    return builder, a, out, builder.let("x", Load(a, (0, 0), (8, 8)))


def broken(function: Function, match: str) -> None:
    with pytest.raises(VerifyError, match=match):
        verify(program(function))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_random_programs_hold(level: str, seed: int) -> None:
    assert verify(generate(Seeded(seed), Level(level)).program) is None


def test_defined_twice() -> None:
    builder, _, out, x = simple()
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    broken(function.with_body((function.body[0], *function.body)), "defined twice")


def test_used_before_it_is_defined() -> None:
    builder, _, out, x = simple()
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    broken(function.with_body((function.body[1], function.body[0], function.body[2])), "not defined")


def test_a_carried_value_used_outside_its_loop() -> None:
    builder, _, out, x = simple()
    inside: list[Value] = []

    def body(iv: Value, acc: Value) -> tuple[Value, ...]:
        inside.append(builder.let("y", Neg(acc)))
        return (inside[0],)

    builder.loop(2, (x,), body)
    broken(builder.returns(builder.let("o", Store(inside[0], (0, 0), out))), "not defined")


def test_a_result_of_another_type_than_its_operation_gives() -> None:
    builder, _, out, x = simple()
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    first = function.body[0]
    assert isinstance(first, Let)
    wrong = Let(Value("x", TileType((8, 4), FP32)), first.value)
    broken(function.with_body((wrong, *function.body[1:])), "type that its operation gives|not defined")


def test_a_loop_that_changes_the_type_of_what_it_carries() -> None:
    builder, a, out, x = simple()
    other = builder.let("y", Load(a, (0, 0), (4, 8)))

    def body(iv: Value, acc: Value) -> tuple[Value, ...]:
        return (other,)

    builder.loop(2, (x,), body)
    broken(builder.returns(builder.let("o", Store(x, (0, 0), out))), "two types")


def test_arms_of_two_types() -> None:
    builder, a, out, x = simple()
    n = builder.scalar("n", INDEX)
    other = builder.let("y", Load(a, (0, 0), (4, 8)))
    builder.branch(binary(BinaryKind.GT, n, 0), lambda: (x,), lambda: (other,))
    broken(builder.returns(builder.let("o", Store(x, (0, 0), out))), "two types")


def test_numbers_of_values_handed_out() -> None:
    builder, _, out, x = simple()
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    condition = binary(BinaryKind.GT, Value("n", ScalarType(INDEX)), 0)
    empty = If(condition, (Yield(()),), (Yield((x,)),), ())
    builder = Builder()
    broken(function.with_body((function.body[0], empty, *function.body[1:])), "not defined|yields")
    iv, arg = Value("i", ScalarType(INDEX)), Value("c", x.type)
    loop = For(iv, 0, 2, 1, LoopKind.SEQUENTIAL, (x,), (arg,), (Yield(()),), (Value("r", x.type),))
    broken(function.with_body((function.body[0], loop, *function.body[1:])), "yields 0 values")


def test_blocks_end_as_they_must() -> None:
    builder, _, out, x = simple()
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    broken(function.with_body(function.body[:-1]), "does not end in a return")
    returned = function.body[-1]
    assert isinstance(returned, Return)
    condition = binary(BinaryKind.EQ, Value("n", ScalarType(INDEX)), 0)
    assert not isinstance(condition, int)
    n = builder.scalar("n", INDEX)
    arm = If(binary(BinaryKind.GT, n, 0), (Return(()),), (Yield(()),), ())
    with_n = builder.returns(*returned.values)
    broken(with_n.with_body((*function.body[:-1], arm, returned)), "wrong statement")


def test_a_version_that_was_overwritten() -> None:
    builder, _, out, x = simple()
    builder.let("o", Store(x, (0, 0), out))
    again = builder.let("p", Store(x, (0, 0), out))
    broken(builder.returns(again), "later version|read after")


def test_a_loop_that_writes_a_tensor_without_carrying_it() -> None:
    builder, _, out, x = simple()

    def body(iv: Value, acc: Value) -> tuple[Value, ...]:
        builder.let("o", Store(acc, (0, 0), out))
        return (acc,)

    builder.loop(2, (x,), body)
    broken(builder.returns(out), "without carrying|later version|read after|times")


def test_an_input_that_is_written() -> None:
    builder, a, out, x = simple()
    builder.let("w", Store(x, (0, 0), a))
    broken(builder.returns(builder.let("o", Store(x, (0, 0), out))), "input")


@pytest.mark.parametrize("times", [0, 2])
def test_outputs_are_returned_once(times: int) -> None:
    builder, _, out, x = simple()
    last = builder.let("o", Store(x, (0, 0), out))
    broken(builder.returns(*(last,) * times), "times")


def caller(arguments: Callable[[Value, Value], tuple[Value, ...]], targets: int = 1) -> Program:
    builder, _, out, x = simple()
    callee = builder.returns(builder.let("o", Store(x, (0, 0), out))).with_(name="f")
    main = Builder(kind=FunctionKind.ORCHESTRATION)
    a, out = main.tensor("a", 8, 8), main.out("out", 8, 8)
    made = tuple(Value(f"t{i}", TensorType((8, 8), FP32)) for i in range(targets))
    call = Call(made, "f", arguments(a, out))
    return program(callee, main.returns(*(made or (out,))).with_body((call, Return(made or (out,)))))


def test_calls() -> None:
    verify(caller(lambda a, out: (a, out)))
    with pytest.raises(VerifyError, match="wrong number"):
        verify(caller(lambda a, out: (a,)))
    with pytest.raises(VerifyError, match="wrong number"):
        verify(caller(lambda a, out: (a, out), 0))
    with pytest.raises(VerifyError, match="input"):
        verify(caller(lambda a, out: (out, a)))
    good = caller(lambda a, out: (a, out))
    with pytest.raises(VerifyError, match="no function 'f'"):
        verify(Program(good.functions[1:], "main"))


def test_the_entry_and_the_names() -> None:
    good = caller(lambda a, out: (a, out))
    with pytest.raises(VerifyError, match="entry"):
        verify(Program(good.functions, "nowhere"))
    with pytest.raises(VerifyError, match="one name"):
        verify(Program((*good.functions, good.functions[0]), "main"))


def test_directions_are_told_apart() -> None:
    assert Direction.IN is not Direction.OUT
    builder = Builder()
    a = builder.tensor("a", 8, 8, direction=Direction.INOUT)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))
    verify(program(builder.returns(builder.let("o", Store(x, (0, 0), a)))))
