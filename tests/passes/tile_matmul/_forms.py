"""Programs with one sum of products, in every way in which a sum may be written."""

from __future__ import annotations

from building import Builder

from tilewright.ir.dtypes import BF16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, constant
from tilewright.ops.broadcast import ColExpandAdd
from tilewright.ops.cast import Cast
from tilewright.ops.create import Create, Full
from tilewright.ops.elementwise import Add, Relu
from tilewright.ops.matmul import Matmul, MatmulAcc, MatmulBias

FORMS = ("plain", "trans_a", "trans_b", "bias", "split")
SIZES = (1, 15, 16, 17, 31, 33, 63, 64, 65, 72, 100, 127, 128, 200, 257, 320, 512, 1000)


def sums_in(dtype: DType) -> DType:
    return INT32 if dtype is INT8 else FP32


def product(form: str, dtype: DType, m: int, n: int, k: int) -> Program:
    """One product; `split`: in blocks along K, the last of which may reach beyond K."""
    if form == "split":
        block = min(max(1, -(-k // 4)), 128)
        return split_k(dtype, m, n, block, -(-k // block))
    b = Builder()
    acc = sums_in(dtype)
    turned_a, turned_b = form == "trans_a", form == "trans_b"
    x = b.load("x", b.tensor("a", (k, m) if turned_a else (m, k), dtype), transpose=turned_a)
    y = b.load("y", b.tensor("b", (n, k) if turned_b else (k, n), dtype), transpose=turned_b)
    if form == "bias":
        row = b.load("row", b.tensor("c", (1, n), acc))
        made = b.let("made", MatmulBias(x, y, row))
    else:
        made = b.let("made", Matmul(x, y))
    return b.program(b.store(made, b.tensor("out", (m, n), acc, out=True)))


def split_k(
    dtype: DType, m: int, n: int, block: int, trips: int, start: str = "full", step: str = "acc", turned: bool = False
) -> Program:
    """A loop over blocks of K. `start`: full, create_zero, create (nothing yet), product (the first block stands in
    front of the loop). `step`: acc, cond (`init_cond`), branch (two arms that load), shared (two arms, one load),
    read (the loop also reads the sum). `turned`: the right operand is stored transposed."""
    b = Builder()
    acc = sums_in(dtype)
    left = b.tensor("a", (m, block * trips), dtype)
    right = b.tensor("b", (n, block * trips) if turned else (block * trips, n), dtype)
    out = b.tensor("out", (m, n), acc, out=True)

    def blocks(k: Scalar) -> tuple[Value, Value]:
        at = binary(BinaryKind.MUL, k, block)
        x = b.load("x", left, (m, block), offsets=(0, at))
        if turned:
            return x, b.load("y", right, (n, block), offsets=(0, at), transpose=True)
        return x, b.load("y", right, (block, n), offsets=(at, 0))

    zero = constant(0, acc)
    match start:
        case "full":
            seed = b.let("seed", Full((m, n), acc, zero, level=Level.TILE))
        case "create_zero":
            seed = b.let("seed", Create((m, n), acc, init_value=zero, level=Level.TILE))
        case "create":
            seed = b.let("seed", Create((m, n), acc, level=Level.TILE))
        case _:
            seed = b.let("seed", Matmul(*blocks(0)))

    def body(k: Value, total: Value) -> tuple[Value, ...]:
        at = k if start != "product" else k + 1
        first = binary(BinaryKind.EQ, at, 0)
        if step == "branch":
            return b.branch(
                first,
                lambda: (b.let("one", Matmul(*blocks(at))),),
                lambda: (b.let("more", MatmulAcc(total, *blocks(at))),),
            )
        x, y = blocks(at)
        if step == "shared":
            return b.branch(
                first, lambda: (b.let("one", Matmul(x, y)),), lambda: (b.let("more", MatmulAcc(total, x, y)),)
            )
        if step == "cond":
            return (b.let("more", MatmulAcc(total, x, y, init_cond=first)),)
        if step == "read":
            return (b.let("more", MatmulAcc(b.let("twice", Add(total, total)), x, y)),)
        return (b.let("more", MatmulAcc(total, x, y)),)

    (total,) = b.loop(trips - (start == "product"), (seed,), body)
    return b.program(b.store(total, out))


def two_sums(dtype: DType, m: int, n: int, other: int, block: int, trips: int) -> Program:
    """Two accumulators in one loop, with one left operand."""
    b = Builder()
    acc = sums_in(dtype)
    left = b.tensor("a", (m, block * trips), dtype)
    rights = [b.tensor(name, (block * trips, size), dtype) for name, size in (("b", n), ("c", other))]
    outs = [b.tensor(name, (m, size), acc, out=True) for name, size in (("o1", n), ("o2", other))]
    seeds = [b.let("seed", Full((m, size), acc, constant(0, acc), level=Level.TILE)) for size in (n, other)]

    def body(k: Value, *totals: Value) -> tuple[Value, ...]:
        x = b.load("x", left, (m, block), offsets=(0, k * block))
        both = zip(rights, (n, other), strict=True)
        ys = [b.load("y", right, (block, size), offsets=(k * block, 0)) for right, size in both]
        return tuple(b.let("more", MatmulAcc(total, x, y)) for total, y in zip(totals, ys, strict=True))

    results = b.loop(trips, tuple(seeds), body)
    return b.program(*(b.store(result, out) for result, out in zip(results, outs, strict=True)))


def chain(dtype: DType, m: int, k: int, n: int, p: int, *, cast: bool = True) -> Program:
    """a @ b @ c, the middle rounded."""
    b = Builder()
    x, y, z = (
        b.load(name, b.tensor(t, shape, dtype))
        for name, t, shape in (("x", "a", (m, k)), ("y", "b", (k, n)), ("z", "c", (n, p)))
    )
    out = b.tensor("out", (m, p), FP32, out=True)
    middle = b.let("ab", Matmul(x, y))
    middle = b.let("rounded", Cast(middle, dtype)) if cast else middle
    return b.program(b.store(b.let("abc", Matmul(middle, z)), out))


def layer(m: int, n: int, k: int, dtype: DType = BF16) -> Program:
    """relu(a @ b + row)."""
    b = Builder()
    x, y = b.load("x", b.tensor("a", (m, k), dtype)), b.load("y", b.tensor("b", (k, n), dtype))
    row = b.load("row", b.tensor("c", (1, n), FP32))
    out = b.tensor("out", (m, n), FP32, out=True)
    shifted = b.let("shifted", ColExpandAdd(b.let("made", Matmul(x, y)), row))
    return b.program(b.store(b.let("kept", Relu(shifted)), out))


def shared_panel(dtype: DType, m: int, n: int, k: int, other: int) -> Program:
    """Two products of different sizes with one weight panel."""
    b = Builder()
    weights = b.load("w", b.tensor("w", (k, n), dtype))
    stored: list[Value] = []
    for name, rows in (("a", m), ("b", other)):
        x = b.load(name, b.tensor(name, (rows, k), dtype))
        stored.append(b.store(b.let("made", Matmul(x, weights)), b.tensor(f"{name}_out", (rows, n), FP32, out=True)))
    return b.program(*stored)


def runtime_rows(dtype: DType, box: int, n: int, k: int) -> Program:
    """A box of `box` rows, of which as many have meaning as the program is told when it runs."""
    b = Builder()
    rows = b.index("rows")
    x = b.load("x", b.tensor("a", (box, k), dtype), valid_shape=(rows, k))
    y = b.load("y", b.tensor("b", (k, n), dtype))
    made = b.let("made", Matmul(x, y))
    return b.program(b.store(made, b.tensor("out", (box, n), sums_in(dtype), inout=True)))
