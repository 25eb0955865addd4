"""Programs drawn at random: loops with carried values, branches, views, tails, mixed spaces. Every pass keeps their
meaning, verifies, and does nothing the second time; what it refuses it refuses with an error of the user's."""

from __future__ import annotations

from random import Random

import pytest
from building import Builder
from passes.checking import legalized

from tilewright.errors import NoRouteError, UnsupportedError
from tilewright.ir.dtypes import BF16, FP16, FP32, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.scalar import BinaryKind, Value, binary, constant
from tilewright.ir.types import TileType
from tilewright.ops.broadcast import ColExpandAdd, RowExpandAdd
from tilewright.ops.cast import Cast
from tilewright.ops.elementwise import Add, Maximum, Minimum, Sub
from tilewright.ops.matmul import Matmul
from tilewright.ops.reduce import ColMax, RowMax, RowSum
from tilewright.ops.select import Cmp, Sel
from tilewright.ops.shape import Reshape, SetValidShape, Slice, TransposeView

SIZES = (1, 8, 15, 16, 17, 32, 33, 40)
ONCE_WRONG = (25, 36, 108, 114, 241, 274, 299, 335, 356, 477)
"""Seeds whose programs a pass once got wrong."""

TARGETS = ("ascend910b", "ascend950", "x86_amx", "generic")


class Drawer:
    """Draws one program. `pool` holds the tiles that may be used where it stands."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.b = Builder()
        self.n = self.b.index("n")
        self.inputs = 0
        self.names = 0
        self.size = [self.random.choice(SIZES) for _ in range(3)]

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def dtype(self) -> DType:
        return self.random.choice((FP32, FP16, BF16))

    def extent(self) -> int:
        return self.random.choice(self.size)

    def load(self) -> Value:
        self.inputs += 1
        shape = (self.extent(), self.extent())
        tensor = self.b.tensor(f"t{self.inputs}", shape, self.dtype())
        space = self.random.choice((None, None, None, None, MemorySpace.VEC, MemorySpace.MAT))
        transpose = self.random.random() < 0.15
        return self.b.load(self.name("x"), tensor, space=space, transpose=transpose)

    def bounded(self, tile: Value) -> Value:
        """`tile` with elements from -4 to 4, so that no sum is ever inexact."""
        low = self.b.let(self.name("lo"), Maximum(tile, constant(-4, tile.dtype)))
        return self.b.let(self.name("hi"), Minimum(low, constant(4, tile.dtype)))

    def pick(self, pool: list[Value], like: Value | None = None, rows: object = None) -> Value | None:
        fitting = [
            value for value in pool
            if (like is None or (kind(value).shape, value.dtype) == (kind(like).shape, like.dtype))
            and (rows is None or (kind(value).shape[0], kind(value).valid[0]) == rows)
        ]  # fmt: skip
        return self.random.choice(fitting) if fitting else None

    # --- steps ---
    def step(self, pool: list[Value], depth: int) -> None:
        x = self.random.choice(pool)
        kinds = [self.add, self.add, self.product, self.product, self.cast, self.view, self.vector, self.mask]
        if depth < 2:
            kinds += [self.loop, self.branch]
        made = self.random.choice(kinds)(x, pool, depth)
        if made is not None:
            pool.append(made)

    def add(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        y = self.pick(pool, like=x)
        assert y is not None
        op = self.random.choice((Add, Sub, Maximum))
        return self.bounded(self.b.let(self.name("s"), op(x, y)))

    def product(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        k = (kind(x).shape[1], kind(x).valid[1])
        fitting = [y for y in pool if (kind(y).shape[0], kind(y).valid[0]) == k and y.dtype is x.dtype]
        if not fitting or (x.dtype is FP32 and self.random.random() < 0.5):
            return None
        made = self.b.let(self.name("p"), Matmul(x, self.random.choice(fitting)))
        if self.random.random() < 0.5:
            return self.b.let(self.name("h"), Cast(self.bounded(made), BF16))
        return self.bounded(made) if self.random.random() < 0.5 else None

    def cast(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        return self.b.let(self.name("c"), Cast(x, self.dtype()))

    def view(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        rows, cols = kind(x).static_shape
        whole = kind(x).valid == kind(x).shape
        which = self.random.randrange(4)
        if which == 0:
            r, c = self.random.randint(1, rows), self.random.randint(1, cols)
            at = (self.random.randint(0, rows - r), self.random.randint(0, cols - c))
            return self.b.let(self.name("w"), Slice(x, (r, c), at)) if whole else None
        if which == 1:
            return self.b.let(self.name("t"), TransposeView(x))
        if which == 2 and whole:
            v = (self.random.randint(1, rows), self.random.randint(1, cols))
            return self.b.let(self.name("v"), SetValidShape(x, *v))
        factors = [r for r in range(1, rows * cols + 1) if rows * cols % r == 0 and r <= 64 and rows * cols // r <= 64]
        if which == 3 and whole and factors:
            r = self.random.choice(factors)
            return self.b.let(self.name("r"), Reshape(x, (r, rows * cols // r)))
        return None

    def vector(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        if self.random.random() < 0.5:
            reduce = self.random.choice((RowMax, RowSum))
            m = self.bounded(self.b.let(self.name("m"), reduce(x)))
            return self.bounded(self.b.let(self.name("e"), RowExpandAdd(x, m)))
        m = self.b.let(self.name("m"), ColMax(x))
        return self.bounded(self.b.let(self.name("e"), ColExpandAdd(x, m)))

    def mask(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        y = self.pick(pool, like=x)
        assert y is not None
        m = self.b.let(self.name("k"), Cmp(x, y, self.random.randrange(6)))
        return self.b.let(self.name("z"), Sel(m, x, y))

    def loop(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        def body(iv: Value, arg: Value) -> tuple[Value, ...]:
            inner = [*pool, arg]
            for _ in range(self.random.randint(1, 3)):
                self.step(inner, depth + 1)
            fitting = [v for v in inner if v.type is arg.type]
            return (self.random.choice(fitting),)

        return self.b.loop(self.random.randint(0, 3), (x,), body)[0]

    def branch(self, x: Value, pool: list[Value], depth: int) -> Value | None:
        def arm() -> tuple[Value, ...]:
            inner = list(pool)
            for _ in range(self.random.randint(0, 3)):
                self.step(inner, depth + 1)
            return (self.random.choice([v for v in inner if v.type is x.type]),)

        return self.b.branch(binary(BinaryKind.GT, self.n, self.random.randint(0, 4)), arm, arm)[0]

    def program(self) -> Program:
        pool = [self.load() for _ in range(self.random.randint(2, 4))]
        for _ in range(self.random.randint(3, 9)):
            self.step(pool, 0)
        results: list[Value] = []
        for index, tile in enumerate(self.random.sample(pool, min(3, len(pool)))):
            out = self.b.tensor(f"out{index}", kind(tile).valid, tile.dtype, out=True)
            results.append(self.b.store(tile, out))
        return self.b.program(*results)


def kind(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", (*range(12), *ONCE_WRONG))
def test_random_programs(target: str, seed: int) -> None:
    program = Drawer(seed).program()
    try:
        legalized(program, target, (seed % 5,))
    except (NoRouteError, UnsupportedError) as error:
        assert error.help is not None and error.found is not None
