"""Pruning keeps what the results depend on, and nothing else."""

from __future__ import annotations

import pytest
from ir_builder import Builder, program
from meaning import outcome
from properties.judges import same
from properties.strategies import Seeded, generate

from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Program
from tilewright.ir.nodes import Call, For, If, Let, walk
from tilewright.ir.op import Level
from tilewright.ir.prune import prune
from tilewright.ir.scalar import BinaryKind, Value, binary
from tilewright.ir.verify import verify
from tilewright.ops import Load, Read, Store
from tilewright.ops.elementwise import Add, Neg


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_random_programs_mean_the_same(level: str, seed: int) -> None:
    drawn = generate(Seeded(seed), Level(level))
    pruned = Program((prune(drawn.program.main),), "main")
    verify(pruned)
    arguments = drawn.arguments()
    same(outcome(drawn.program, arguments), outcome(pruned, arguments), "pruned")
    assert prune(pruned.main) is pruned.main
    before, after = (sum(1 for _ in walk(p.main.body)) for p in (drawn.program, pruned))
    assert after <= before


def test_what_nothing_needs_goes() -> None:
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))
    dead = builder.let("dead", Neg(x))
    builder.let("dead2", Add(dead, x))
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    pruned = prune(function)
    assert [stmt.target.name for stmt in pruned.body if isinstance(stmt, Let)] == ["x", "o"]


def test_a_function_without_dead_code_stays_itself() -> None:
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))
    function = builder.returns(builder.let("o", Store(x, (0, 0), out)))
    assert prune(function) is function


def test_carries_and_results_that_nothing_needs_go_one_by_one() -> None:
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))

    def body(iv: Value, p: Value, q: Value) -> tuple[Value, ...]:
        return builder.let("y", Neg(p)), builder.let("z", Add(q, p))

    r, _ = builder.loop(3, (x, x), body)
    pruned = prune(builder.returns(builder.let("o", Store(r, (0, 0), out))))
    (loop,) = (stmt for stmt in pruned.body if isinstance(stmt, For))
    assert (len(loop.inits), len(loop.iter_args), len(loop.results), len(loop.body)) == (1, 1, 1, 2)
    verify(program(pruned))


def test_a_carry_that_another_carry_needs_stays() -> None:
    """A swap: one result is needed, and so both carries are."""
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))
    y = builder.let("y", Neg(x))

    def body(iv: Value, p: Value, q: Value) -> tuple[Value, ...]:
        return q, p

    r, _ = builder.loop(3, (x, y), body)
    pruned = prune(builder.returns(builder.let("o", Store(r, (0, 0), out))))
    (loop,) = (stmt for stmt in pruned.body if isinstance(stmt, For))
    assert len(loop.inits) == 2


def test_a_branch_result_and_a_condition_that_is_read() -> None:
    builder = Builder()
    n, a, out = builder.scalar("n", INDEX), builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))
    number = builder.let("s", Read(x, (0, 0)))
    y = builder.let("y", Add(x, number))
    r, _ = builder.branch(
        binary(BinaryKind.GT, n, 0),
        lambda: (y, builder.let("u", Neg(x))),
        lambda: (x, builder.let("v", Neg(y))),
    )
    pruned = prune(builder.returns(builder.let("o", Store(r, (0, 0), out))))
    (branch,) = (stmt for stmt in pruned.body if isinstance(stmt, If))
    assert [len(block) for block in branch.blocks()] == [1, 1] and len(branch.results) == 1
    verify(program(pruned))


def test_a_call_keeps_all_its_targets() -> None:
    inner = Builder("f")
    a, o, p = inner.tensor("a", 8, 8), inner.out("o", 8, 8), inner.out("p", 8, 8)
    x = inner.let("x", Load(a, (0, 0), (8, 8)))
    callee = inner.returns(inner.let("o1", Store(x, (0, 0), o)), inner.let("p1", Store(x, (0, 0), p)))
    main = Builder()
    a, o, p = main.tensor("a", 8, 8), main.out("o", 8, 8), main.out("p", 8, 8)
    made = main.call(("s", "t"), callee, a, o, p)
    pruned = prune(main.returns(made[0]))
    (call,) = (stmt for stmt in pruned.body if isinstance(stmt, Call))
    assert len(call.targets) == 2
