"""The rewriter shares what it leaves alone, and types anew what it changes."""

from __future__ import annotations

import pytest
from ir_builder import Builder, program
from meaning import outcome
from properties.judges import same
from properties.strategies import Seeded, generate

from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import For, If, Let, walk
from tilewright.ir.op import Level
from tilewright.ir.rewrite import Rewriter, clone_block, placed_like, type_of
from tilewright.ir.scalar import BinaryKind, Const, Value, binary
from tilewright.ir.types import MemRef, ScalarType, TileType, TileView
from tilewright.ir.verify import verify
from tilewright.ops import Load, Store
from tilewright.ops.elementwise import Add, Neg


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_nothing_overridden_nothing_changed(level: str, seed: int) -> None:
    drawn = generate(Seeded(seed), Level(level)).program
    assert Rewriter().program(drawn) is drawn


class Twice(Rewriter):
    """Every negation becomes two more negations in front of it: the same number, all values after it new."""

    def visit_let(self, stmt: Let) -> None:
        if isinstance(stmt.value, Neg):
            op = stmt.value.with_operands(self.get)
            assert isinstance(op, Neg)
            first = self.let(op, "first", stmt.span)
            second = self.let(Neg(first), "second", stmt.span)
            self.bind(stmt.target, self.let(Neg(second), "third", stmt.span))
        else:
            super().visit_let(stmt)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_a_change_is_followed_by_every_use(level: str, seed: int) -> None:
    drawn = generate(Seeded(seed), Level(level))
    after = Twice().program(drawn.program)
    verify(after)
    arguments = drawn.arguments()
    same(outcome(drawn.program, arguments), outcome(after, arguments), "rewritten")


class Smaller(Rewriter):
    """Loads half the rows: types change from there on, through loops and branches."""

    def visit_let(self, stmt: Let) -> None:
        if isinstance(stmt.value, Load):
            op = stmt.value.replace(shapes=(4, 8))
            self.emit(Let(self.retype(stmt.target, op.infer()), op, span=stmt.span))
        else:
            super().visit_let(stmt)


def test_a_new_type_goes_through_loops_and_branches() -> None:
    builder = Builder()
    n, a, out = builder.scalar("n", INDEX), builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))

    def body(iv: Value, acc: Value) -> tuple[Value, ...]:
        return (builder.let("y", Add(acc, x)),)

    (r,) = builder.loop(3, (x,), body)
    (phi,) = builder.branch(binary(BinaryKind.GT, n, 0), lambda: (r,), lambda: (builder.let("z", Neg(r)),))
    before = program(builder.returns(builder.let("o", Store(phi, (0, 0), out))))
    after = Smaller().program(before)
    verify(after)
    found = [v.type for stmt in walk(after.main.body) for v in (*stmt.defs(), *stmt.block_args())]
    tiles = [kind for kind in found if isinstance(kind, TileType)]
    assert tiles and all(kind.shape == (4, 8) for kind in tiles)


def test_what_is_untouched_is_shared() -> None:
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))

    def body(iv: Value, acc: Value) -> tuple[Value, ...]:
        return (builder.let("y", Add(acc, acc)),)

    (r,) = builder.loop(3, (x,), body)
    before = builder.returns(builder.let("o", Store(builder.let("z", Neg(r)), (0, 0), out)))
    after = Twice().function(before)
    assert after is not before
    assert after.body[0] is before.body[0] and after.body[1] is before.body[1]


@pytest.mark.parametrize("seed", range(40))
def test_clones_share_no_value(seed: int) -> None:
    main = generate(Seeded(seed), Level.TILE).program.main
    clone = clone_block(main.body, {})

    def defined(block: object) -> set[Value]:
        return {v for stmt in walk(block) for v in (*stmt.defs(), *stmt.block_args())}  # type: ignore[arg-type]

    assert not defined(clone) & defined(main.body)
    verify(Program((main.with_body(clone),), "main"))


def test_placed_like() -> None:
    vec = MemorySpace.VEC
    old = TileType((8, 8), FP32, vec, TileView(pad=Pad.ZERO), MemRef("b", 0, 256))
    bare = TileType((8, 8), FP32)
    assert placed_like(bare, old) is old
    narrowed = placed_like(TileType((8, 8), FP32, None, TileView((4, 8))), old)
    assert isinstance(narrowed, TileType)
    assert (narrowed.valid, narrowed.space, narrowed.memref) == ((4, 8), vec, old.memref)
    elsewhere = placed_like(TileType((8, 8), FP32, MemorySpace.MAT), old)
    assert isinstance(elsewhere, TileType)
    assert (elsewhere.space, elsewhere.memref) == (MemorySpace.MAT, None)
    assert placed_like(ScalarType(INDEX), old) is ScalarType(INDEX)


def test_types_of_scalars() -> None:
    assert type_of(3) is ScalarType(INDEX)
    assert type_of(Const(1.0, FP32)) is ScalarType(FP32)
    value = Value("n", ScalarType(INDEX))
    assert type_of(binary(BinaryKind.ADD, value, 1)) is ScalarType(INDEX)


def test_statements_keep_their_kind() -> None:
    drawn = generate(Seeded(3), Level.TILE, 14).program
    after = Twice().program(drawn)
    kinds = [[type(s) for s in walk(p.main.body) if isinstance(s, For | If)] for p in (drawn, after)]
    assert kinds[0] == kinds[1]
