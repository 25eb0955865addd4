"""The statements that random programs are made of: one method draws one kind, if it is possible where it stands."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from hypothesis import strategies as st
from ir_builder import Builder
from support import exact_bound

from tilewright.errors import TilewrightError
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, INT8, INT32, DType
from tilewright.ir.function import FunctionKind
from tilewright.ir.op import Level, Op, lookup
from tilewright.ir.scalar import Scalar, Value, constant, minimum
from tilewright.ir.types import TensorType, TileType

LIMITS = {FP32: 1 << 22, FP16: 2048, BF16: 256, INT32: 1 << 28, INT8: 127}
"""The largest integer up to which every one is exact."""
SIZES = (16, 1, 32, 5, 15, 17, 64, 40)
ROWS = (16, 1, 2, 15, 17, 5, 33, 64)
"""Run-time extents."""
TAMED = 8
"""What carried values are clamped to."""


class Choices(Protocol):
    """Where the generator's decisions come from."""

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1; 0 is the simplest."""
        ...


class Seeded:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self.random.randrange(bound)


class Drawn:
    """Choices that Hypothesis draws, and shrinks."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self.draw = draw

    def below(self, bound: int) -> int:
        return self.draw(st.integers(0, bound - 1))


@dataclass
class Pool:
    """The values that may be used where the generator stands, with their bounds."""

    arrays: list[tuple[Value, int]] = field(default_factory=list[tuple[Value, int]])
    scalars: list[Scalar] = field(default_factory=list[Scalar])

    def copy(self) -> Pool:
        return Pool(list(self.arrays), list(self.scalars))


class Statements:
    """Draws statements into a builder, and keeps what may be used where it stands."""

    def __init__(self, choices: Choices, level: Level) -> None:
        self.choices = choices
        self.level = level
        kind = FunctionKind.INCORE if level is Level.TILE else FunctionKind.ORCHESTRATION
        self.builder = Builder(kind=kind)
        self.n = self.builder.scalar("n", INDEX)
        self.trips = self.builder.scalar("t", INDEX)
        self.symbols = {"n": self.pick(ROWS), "t": self.pick((2, 0, 1, 3))}
        self.dims = [self.pick(SIZES) for _ in range(3)]
        self.dtypes = [FP32, self.pick((FP32, FP16, BF16, INT32, INT8))]
        self.pool = Pool(scalars=[self.n])
        self.depth = 0
        self.turns: list[Value] = []
        """the variables of the loops around"""
        self.inputs = 0
        self.names: int = 0
        self.own: set[Value] = set()
        """tensors that were made in the block where the generator stands, so that they may be written there"""
        self.shared: set[Value] = set()
        """tensors that have a second name (a slice, a result of a branch), so that they may not be written any more"""
        self.began: dict[Value, Value] = {}
        """what results of loops started as"""

    # --- choices ---
    def pick(self, options: Any) -> Any:
        return options[self.choices.below(len(options))]

    def maybe(self, one_in: int) -> bool:
        return self.choices.below(one_in) == one_in - 1

    # --- values ---
    def let(self, op: Op, bound: int) -> Value | None:
        """`op` as a statement, unless it refuses its operands."""
        try:
            op.infer()
        except TilewrightError:
            return None
        self.names += 1
        value = self.builder.let(f"v{self.names}", op)
        if op.writes is not None:
            self.use_up(getattr(op, op.writes))
        if op.view_of is None:
            self.own.add(value)
        else:
            self.shared.add(getattr(op, op.view_of))
        if isinstance(value.type, (TileType, TensorType)):
            self.pool.arrays.append((value, min(bound, LIMITS.get(value.dtype, 1))))
        return value

    def use_up(self, value: Value) -> None:
        """A tensor of which a later version exists may not be read any more."""
        if isinstance(value.type, TensorType):
            self.pool.arrays = [item for item in self.pool.arrays if item[0] is not value]
            self.own.discard(value)

    def array(self, wanted: Callable[[Value], bool] = lambda value: True) -> tuple[Value, int] | None:
        """Some array of the pool, the latest first."""
        found = [item for item in self.pool.arrays if item[0].dtype is not BOOL and wanted(item[0])]
        return None if not found else found[-1 - self.choices.below(len(found))]

    def tamed(self, item: tuple[Value, int], bound: int = TAMED) -> tuple[Value, int]:
        """The value clamped to `bound`."""
        value, old = item
        if old <= bound:
            return item
        limits = [constant(limit, value.dtype) for limit in (bound, -bound)]
        low = self.let(lookup("minimum")(value, limits[0]), old)  # type: ignore[call-arg]
        assert low is not None
        high = self.let(lookup("maximum")(low, limits[1]), bound)  # type: ignore[call-arg]
        assert high is not None
        self.pool.arrays[-1] = (high, bound)
        return high, bound

    def fitted(
        self, items: list[tuple[Value, int]], bound: Callable[[list[int]], int], limit: int
    ) -> list[tuple[Value, int]]:
        """`items`, tamed where what is made of them could pass `limit`."""
        if bound([b for _, b in items]) <= limit:
            return items
        for small in (TAMED, 2, 1):
            items = [self.tamed(item, small) for item in items]
            if bound([b for _, b in items]) <= limit:
                break
        return items

    def dtype(self) -> DType:
        return self.pick(self.dtypes)

    def tensor(self, shape: tuple[Scalar, ...], dtype: DType) -> Value:
        self.inputs += 1
        return self.builder.tensor(f"a{self.inputs}", *shape, dtype=dtype)

    # --- statements ---
    def load(self) -> None:
        dtype = self.dtype()
        rows, columns = self.pick(self.dims), self.pick(self.dims)
        bound = exact_bound(dtype.numpy)
        if self.level is Level.TENSOR:
            self.pool.arrays.append((self.tensor((rows, columns), dtype), bound))
            if self.maybe(3):
                value = self.pool.arrays[-1][0]
                self.let(self.op("slice", value, (max(1, rows // 2), columns), (rows // 4, 0)), bound)
            return
        way = self.choices.below(6)
        if self.turns and self.maybe(2):  # another part in each trip; a loop variable is at most 4
            source = self.tensor((rows + 4, columns), dtype)
            self.let(self.op("load", source, (self.pick(self.turns), 0), (rows, columns)), bound)
            return
        if way == 1:  # a tail known at run time
            source = self.tensor((self.n, columns), dtype)
            self.let(self.op("load", source, (0, 0), (rows, columns), (minimum(self.n, rows), columns)), bound)
        elif way == 2:
            source = self.tensor((rows, columns), dtype)
            valid = (max(1, rows - 1), max(1, columns - self.choices.below(3)))
            pad = self.pick((None, lookup("fillpad").field("pad_value").default))
            self.let(self.op("load", source, (0, 0), (rows, columns), valid, pad_value=pad), bound)
        elif way == 3:
            source = self.tensor((rows + 3, columns + 2), dtype)
            self.let(self.op("load", source, (3, 1), (rows, columns)), bound)
        elif way == 4:
            source = self.tensor((rows + 3, columns), dtype)
            self.let(self.op("load", source, (3 if rows == 1 else 4, 0), (rows, columns), clamp=True), bound)
        else:
            source = self.tensor((rows, columns), dtype)
            self.let(self.op("load", source, (0, 0), (rows, columns)), bound)

    def op(self, name: str, *operands: Any, **fields: Any) -> Op:
        made: Any = lookup(name)
        if not any(hasattr(getattr(o, "type", None), "shape") for o in operands):
            fields.setdefault("level", self.level)
        return made(*operands, **fields)

    def pair(self) -> list[tuple[Value, int]] | None:
        first = self.array()
        if first is None:
            return None
        kind: Any = first[0].type
        second = self.array(lambda v: v.dtype is first[0].dtype and shape_of(v) == kind.shape)
        return [first, second or first]

    BOUNDS: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a + b, "mul": lambda a, b: a * b, "maximum": max, "minimum": max,
    }  # fmt: skip

    def binary(self) -> None:
        pair = self.pair()
        if pair is None:
            return
        name = self.pick(("add", "sub", "mul", "maximum", "minimum"))
        bound = self.BOUNDS[name]
        (a, x), (b, y) = self.fitted(pair, lambda b: bound(*b), LIMITS[pair[0][0].dtype])
        self.let(self.op(name, a, b), bound(x, y))

    def with_number(self) -> None:
        item = self.array()
        if item is None:
            return
        name, number = self.pick(("add", "sub", "mul", "maximum", "minimum")), self.pick((1, 2, 0, -3))
        bound = self.BOUNDS[name]
        ((a, x),) = self.fitted([item], lambda b: bound(b[0], 3), LIMITS[item[0].dtype])
        self.let(self.op(name, a, constant(number, a.dtype)), bound(x, 3))

    def unary(self) -> None:
        item = self.array()
        if item is not None:
            self.let(self.op(self.pick(("neg", "abs", "relu")), item[0]), item[1])

    def select(self) -> None:
        pair = self.pair()
        if pair is None:
            return
        (a, x), (b, y) = pair
        mask = self.let(self.op("cmp", a, b, cmp_type=self.choices.below(6)), 1)
        if mask is not None:
            self.let(self.op("sel", mask, a, b), max(x, y))

    def reduce(self) -> None:
        item = self.array()
        if item is None:
            return
        name = self.pick(("row_sum", "row_max", "col_sum", "row_min", "col_max", "col_min"))
        ((a, x),) = self.fitted([item], lambda b: 64 * b[0], LIMITS[item[0].dtype]) if "sum" in name else [item]
        # The maximum of no elements is no small integer, so it is tamed at once.
        self.let(self.op(name, a), 64 * x if "sum" in name else LIMITS[a.dtype])

    def expand(self) -> None:
        item = self.array()
        if item is None:
            return
        shape = shape_of(item[0])
        rows = self.maybe(2)
        if len(shape) != 2 or shape[1 if rows else 0] == 1:
            return
        wanted = (shape[0], 1) if rows else (1, shape[1])
        vector = self.array(lambda v: v.dtype is item[0].dtype and shape_of(v) == wanted)
        if vector is None:
            return
        name = self.pick(("add", "sub", "mul", "max", "min"))
        bound = self.BOUNDS.get(name, max)
        (a, x), (b, y) = self.fitted([item, vector], lambda b: bound(*b), LIMITS[item[0].dtype])
        self.let(self.op(f"{'row' if rows else 'col'}_expand_{name}", a, b), bound(x, y))

    def cast(self) -> None:
        item = self.array()
        if item is None:
            return
        to = self.pick((FP32, FP16, BF16, INT32, INT8))
        ((a, x),) = self.fitted([item], lambda b: b[0], LIMITS[to])
        self.let(self.op("cast", a, to), x)

    def view(self) -> None:
        item = self.array()
        if item is None:
            return
        value, bound = item
        shape = shape_of(value)
        if len(shape) != 2 or not all(isinstance(extent, int) for extent in shape):
            return
        rows, columns = shape
        match self.choices.below(5):
            case 0:
                self.let(self.op("slice", value, (max(1, rows // 2), columns), (rows // 4, 0)), bound)
            case 1:
                self.let(self.op("slice", value, (rows, max(1, columns // 2)), (0, columns // 4)), bound)
            case 2:
                self.let(self.op("reshape", value, (columns, rows)), bound)
            case 3:
                self.let(self.op("transpose", value), bound)
            case _:
                valid = valid_of(value)
                if all(isinstance(extent, int) and extent > 0 for extent in valid):
                    self.let(self.op("set_validshape", value, max(1, valid[0] - 1), valid[1]), bound)

    def part(self) -> None:
        """A part written into a whole, and the whole used afterwards."""
        whole = self.array(self.may_write)
        if whole is None:
            return
        extents = valid_of(whole[0])

        def goes_in(value: Value) -> bool:
            shape = shape_of(value)
            alike = value.dtype is whole[0].dtype and value is not whole[0] and len(shape) == len(extents)
            return alike and all(map(fits, shape, extents))

        part = self.array(goes_in)
        if part is None or not all(isinstance(extent, int) for extent in extents):
            return
        inner: Any = part[0].type
        offset = tuple((extent - size) // 2 for extent, size in zip(extents, inner.shape, strict=True))
        self.let(self.op("assemble", whole[0], part[0], offset), max(whole[1], part[1]))

    def may_write(self, value: Value) -> bool:
        """Whether a next version of `value` may be made here: of a tile anywhere, of a tensor where it was made."""
        return self.level is Level.TILE or (value in self.own and value not in self.shared)

    def element(self) -> None:
        item = self.array(lambda v: v.dtype is FP32)
        if item is None:
            return
        valid = valid_of(item[0])
        if not all(isinstance(extent, int) and extent > 0 for extent in valid):
            return
        index = tuple(extent - 1 for extent in valid)
        if self.maybe(2) and self.may_write(item[0]):
            self.let(self.op("write", item[0], index, constant(3, FP32)), max(3, item[1]))
            return
        number = self.let(self.op("read", item[0], index), item[1])
        other = self.array(lambda v: v.dtype is FP32)
        if number is not None and other is not None and item[1] + other[1] < LIMITS[FP32]:
            self.let(self.op("add", other[0], number), item[1] + other[1])

    def fill(self) -> None:
        dtype = self.dtype()
        shape = (self.pick(self.dims), self.pick(self.dims))
        if self.maybe(3):
            item = self.array()
            if item is not None and self.level is Level.TILE:
                self.let(self.op("fillpad", item[0]), item[1])
            return
        self.let(self.op("full", shape, dtype, constant(2, dtype)), 2)


def shape_of(value: Value) -> tuple[Any, ...]:
    """The physical shape of a tile, the shape of a tensor."""
    kind: Any = value.type
    return kind.shape


def valid_of(value: Value) -> tuple[Any, ...]:
    kind: Any = value.type
    return kind.valid if isinstance(kind, TileType) else kind.shape


def fits(part: Scalar, whole: Scalar) -> bool:
    return isinstance(part, int) and isinstance(whole, int) and part <= whole
