"""Loops, branches, calls, created tensors, storage that is shared, and checks that fail when running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from native.building import Building, compiled, draw, host, same
from support import poison

from tilewright.codegen.native import emit_llvm, load_object
from tilewright.errors import ArgumentError, CodegenError, OutOfBoundsError, TilewrightError, ValidShapeError
from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import FP32, INDEX, INT32
from tilewright.ir.function import Direction, Function, FunctionKind, Param, Program
from tilewright.ir.nodes import Call, For, If, Let, LoopKind, Return, Yield
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, cast, constant, minimum
from tilewright.ir.types import ScalarType, TensorType
from tilewright.ops import Assemble, Create, Full, Load, Matmul, MatmulAcc, Read, Slice, Store, TransposeView
from tilewright.ops.elementwise import Add, Exp, Maximum, Mul, Sub
from tilewright.ops.reduce import RowMax, RowSum


def index(name: str) -> Value:
    return Value(name, ScalarType(INDEX))


def like(value: Value, name: str) -> Value:
    return Value(name, value.type)


class Body(Building):
    """A nested block: statements in a list of their own."""

    def __init__(self, outer: Building) -> None:
        super().__init__()
        self.outer = outer

    def yields(self, *values: Scalar) -> tuple[Any, ...]:
        return (*self.body, Yield(values))


def loop(
    b: Building, bounds: tuple[Scalar, Scalar, Scalar], inits: Sequence[Scalar], body: Any,
    kind: LoopKind = LoopKind.SEQUENTIAL,
) -> list[Value]:  # fmt: skip
    """A loop whose `body(inner, iv, *carried)` returns what it yields."""
    iv = index("i")
    types = [v.type if isinstance(v, Value) else ScalarType(INDEX) for v in inits]
    args = tuple(Value(f"c{k}", t) for k, t in enumerate(types))
    inner = Body(b)
    given = body(inner, iv, *args)
    results = tuple(Value(f"r{k}", t) for k, t in enumerate(types))
    b.body.append(For(iv, *bounds, kind, tuple(inits), args, inner.yields(*given), results))
    return list(results)


def test_a_loop_carries_tiles_and_numbers() -> None:
    b = Building()
    n = b.scalar("n")
    a, out = b.tensor("a", 64, 48), b.tensor("out", 8, 48, out=True)
    zero = b.let(Full((8, 48), FP32, constant(0, FP32), level=Level.TILE))

    def body(inner: Body, i: Value, total: Value, count: Value) -> tuple[Scalar, ...]:
        x = inner.let(Load(a, (i, 0), (8, 48)))
        return inner.let(Add(total, x)), count + 3

    total, count = loop(b, (0, n, 8), (zero, 5), body)
    b.store(total, out)
    program = b.program(count)
    for rows in (0, 8, 16, 64):
        assert same(program, [rows, draw((64, 48), FP32), draw((8, 48), FP32)])[0] == 5 + 3 * (rows // 8)


def test_carried_tiles_change_places() -> None:
    """What is yielded lies where another carried value is about to be written."""
    b = Building()
    n = b.scalar("n")
    a, out = b.tensor("a", 16, 16), b.tensor("out", 48, 16, out=True)
    x, y = b.let(Add(b.load(a), b.load(a))), b.let(Mul(b.load(a), b.load(a)))
    z = b.let(Sub(x, y))

    def body(inner: Body, i: Value, p: Value, q: Value, r: Value) -> tuple[Scalar, ...]:
        return q, inner.let(TransposeView(r)), inner.let(Add(p, q))

    for k, value in enumerate(loop(b, (0, n, 1), (x, y, z), body)):
        b.store(value, out, (16 * k, 0))
    program = b.program()
    for trips in (0, 1, 2, 5):
        same(program, [trips, draw((16, 16), FP32), draw((48, 16), FP32)])


def test_the_first_values_of_a_loop_live_on() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 40), b.tensor("out", 16, 40, out=True)
    start = b.let(Add(b.load(a), b.load(a)))

    def body(inner: Body, i: Value, total: Value) -> tuple[Scalar, ...]:
        return (inner.let(Add(inner.let(Mul(total, start)), total)),)

    (total,) = loop(b, (0, 3, 1), (start,), body)
    b.store(total, out)
    b.store(start, out, (8, 0))
    same(b.program(), [draw((8, 40), FP32), draw((16, 40), FP32)])


def test_nested_loops_accumulate_products() -> None:
    """Blocks of a product with run-time tails; the accumulator is carried in place."""
    b = Building()
    m, k = b.scalar("m"), b.scalar("k")
    a, c, out = b.tensor("a", m, k), b.tensor("c", k, 24), b.tensor("out", m, 24, out=True)

    def rows(inner: Body, i: Value, written: Value) -> tuple[Scalar, ...]:
        height = minimum(m - i, 16)
        zero = inner.let(Full((16, 24), FP32, constant(0, FP32), (height, 24), level=Level.TILE))

        def depth(deeper: Body, p: Value, total: Value) -> tuple[Scalar, ...]:
            wide = minimum(k - p, 32)
            x = deeper.let(Load(a, (i, p), (16, 32), (height, wide)))
            y = deeper.let(Load(c, (p, 0), (32, 24), (wide, 24)))
            return (deeper.let(MatmulAcc(total, x, y)),)

        (total,) = loop(inner, (0, k, 32), (zero,), depth)
        return (inner.let(Store(total, (i, 0), written)),)

    (last,) = loop(b, (0, m, 16), (out,), rows, LoopKind.PARALLEL)
    b.last[out] = last
    program = b.program()
    assert "fail" not in emit_llvm(program, host()), "every access is proved to lie inside"
    kernel = compiled(program)
    for height, deep in ((1, 1), (16, 32), (17, 33), (63, 65), (40, 200)):
        arrays = [draw(shape, FP32) for shape in ((height, deep), (deep, 24), (height, 24))]
        same(program, [height, deep, *arrays], kernel)


def test_branches_hand_out_tiles_and_numbers() -> None:
    b = Building()
    n = b.scalar("n")
    a, out = b.tensor("a", 8, 33), b.tensor("out", 16, 33, out=True)
    x = b.let(Add(b.load(a), b.load(a)))
    then, otherwise = Body(b), Body(b)
    results = (like(x, "t"), index("k"))
    b.body.append(
        If(
            binary(BinaryKind.LT, n, 5),
            then.yields(then.let(Mul(x, x)), n * 2),
            otherwise.yields(x, 7),
            results,
        )
    )
    b.store(results[0], out)
    b.store(b.let(Add(results[0], x)), out, (8, 0))
    program = b.program(results[1])
    for number in (3, 9):
        assert same(program, [number, draw((8, 33), FP32), draw((16, 33), FP32)])[0] == (6 if number == 3 else 7)


def test_steps_of_every_sign() -> None:
    """Down, up, and known only when running; 0 is an error."""
    b = Building()
    start, stop, step = b.scalar("start"), b.scalar("stop"), b.scalar("step")
    out = b.tensor("out", 1, 40, dtype=INT32, out=True)

    def body(inner: Body, i: Value, count: Value) -> tuple[Scalar, ...]:
        return (count * 3 + i,)

    (first,) = loop(b, (start, stop, step), (1,), body)
    (second,) = loop(b, (stop, start, -2), (1,), body)
    b.store(b.let(Full((1, 40), INT32, constant(1, INT32), level=Level.TILE)), out)
    program = b.program(first, second)
    for bounds in ((0, 10, 3), (10, 0, -3), (5, 5, 1), (0, 5, -1), (-3, 4, 2)):
        same(program, [*bounds, draw((1, 40), INT32)])
    with pytest.raises(OutOfBoundsError, match="step is 0"):
        compiled(program).run([0, 3, 0, draw((1, 40), INT32)])


def test_orchestration_creates_calls_and_returns_tensors() -> None:
    """A created tensor goes through two sections in a loop, and is returned; another is returned by a callee."""
    a, o = Value("a", TensorType((16, 20), FP32)), Value("o", TensorType((16, 20), FP32))
    section = Building("section")
    section.params = [Param(a), Param(o, Direction.OUT)]
    section.last[o] = o
    section.store(section.let(Add(section.load(a), section.load(a))), o)
    n, x = index("n"), Value("x", TensorType((16, 20), FP32))
    kind = x.type
    made, second, i = Value("made", kind), Value("second", kind), index("i")
    carried, fresh, next_ = Value("carried", kind), Value("fresh", kind), Value("next", kind)
    result = Value("result", kind)
    create = Create((16, 20), FP32, level=Level.TENSOR)
    body = (
        Let(made, create),
        Call((second,), "section", (x, made)),
        For(
            i, 0, n, 1, LoopKind.SEQUENTIAL, (second,), (carried,),
            (Let(fresh, create), Call((next_,), "section", (carried, fresh)), Yield((next_,))),
            (result,),
        ),
        Return((result, second, n + 1)),
    )  # fmt: skip
    main = Function("main", (Param(n), Param(x)), body, FunctionKind.ORCHESTRATION)
    program = Program((section.function(), main), "main")
    for trips in (0, 1, 4):
        given = draw((16, 20), FP32)
        result_array, second_array, count = same(program, [trips, given])
        np.testing.assert_array_equal(result_array, given * 2 ** (trips + 1))
        np.testing.assert_array_equal(second_array, given * 2)
        assert count == trips + 1


def test_tensors_of_run_time_size() -> None:
    """Their memory comes from the heap, in a loop too."""
    n = index("n")
    shape = (n, 8)
    a, o = Value("a", TensorType(shape, FP32)), Value("o", TensorType(shape, FP32))
    i = index("i")
    section = Building("section")
    section.params = [Param(n), Param(a), Param(o, Direction.OUT)]
    section.last[o] = o

    def body(inner: Body, row: Value, written: Value) -> tuple[Scalar, ...]:
        x = inner.let(Load(a, (row, 0), (1, 8)))
        return (inner.let(Store(inner.let(Add(x, x)), (row, 0), written)),)

    (section.last[o],) = loop(section, (0, n, 1), (o,), body)
    m = index("m")
    x = Value("x", TensorType((m, 8), FP32))
    kind = x.type
    c, t, u, v = (Value(name, kind) for name in "ctuv")
    create = Create((m, 8), FP32, level=Level.TENSOR)
    statements = (
        For(
            i, 0, 3, 1, LoopKind.SEQUENTIAL, (x,), (c,),
            (Let(t, create), Call((u,), "section", (m, c, t)), Yield((u,))), (v,),
        ),
        Return((v,)),
    )  # fmt: skip
    main = Function("main", (Param(m), Param(x)), statements, FunctionKind.ORCHESTRATION)
    program = Program((section.function(), main), "main")
    for rows in (1, 5, 1000):
        given = draw((rows, 8), FP32)
        (found,) = same(program, [rows, given])
        np.testing.assert_array_equal(found, given * 8)


def test_symbols_are_read_from_the_arrays() -> None:
    n = index("n")
    a, out = Value("a", TensorType((n, 4), FP32)), Value("out", TensorType((n, 4), FP32))
    b = Building()
    b.params = [Param(a), Param(out, Direction.OUT)]
    b.last[out] = out
    x = b.let(Load(a, (0, 0), (64, 4), (n, 4)))
    b.store(b.let(Add(x, x)), out)
    program = b.program()
    kernel = compiled(program)
    assert kernel.signature.symbols == ((0, 0),)
    for rows in (1, 17, 64):
        given, found = draw((rows, 4), FP32), poison((rows, 4))
        kernel.run([given, found])
        np.testing.assert_array_equal(found, 2 * given)
    with pytest.raises(ValidShapeError):
        kernel.run([draw((65, 4), FP32), poison((65, 4))])
    with pytest.raises(ArgumentError, match="out"):
        kernel.run([draw((17, 4), FP32), poison((18, 4))])


def test_a_softmax_of_online_form() -> None:
    """Carried maxima and sums, a rescaled accumulator: the shape of attention."""
    b = Building()
    n = b.scalar("n")
    a, v, out = b.tensor("a", 16, 96), b.tensor("v", 96, 32), b.tensor("out", 16, 32, out=True)
    top = b.let(Full((16, 1), FP32, constant(-100, FP32), level=Level.TILE))
    total = b.let(Full((16, 32), FP32, constant(0, FP32), level=Level.TILE))

    def body(inner: Body, i: Value, high: Value, sum_: Value) -> tuple[Scalar, ...]:
        s = inner.let(Load(a, (0, i), (16, 32)))
        now = inner.let(Maximum(high, inner.let(RowMax(s))))
        scale = inner.let(Exp(inner.let(Sub(high, now))))
        from tilewright.ops.broadcast import RowExpandMul, RowExpandSub

        p = inner.let(RowExpandSub(s, now))
        scaled = inner.let(RowExpandMul(sum_, inner.let(Add(scale, inner.let(RowSum(p))))))
        return now, inner.let(MatmulAcc(scaled, p, inner.let(Load(v, (i, 0), (32, 32)))))

    _, last = loop(b, (0, n, 32), (top, total), body)
    b.store(last, out)
    ones = np.zeros((16, 96), np.float32)
    ones[:, ::7] = 1
    same(b.program(), [96, ones, draw((96, 32), FP32), draw((16, 32), FP32)], ulp=4)


def test_a_window_is_not_changed_under_its_reader() -> None:
    """An addition whose operands are a tile and a window on the same memory may not be done in place."""
    b = Building()
    a, out = b.tensor("a", 16, 32), b.tensor("out", 16, 32, out=True)
    x = b.let(Add(b.load(a), b.load(a)))
    window = b.let(Slice(x, (8, 32), (4, 0)))
    head = b.let(Slice(x, (8, 32), (0, 0)))
    y = b.let(Add(head, window))
    z = b.let(Assemble(x, y, (2, 0)))
    turned = b.let(TransposeView(b.let(Slice(x, (16, 16), (0, 16)))))
    square = b.let(Slice(z, (16, 16), (0, 0)))
    b.store(z, out)
    b.store(b.let(Add(turned, square)), out, (0, 16))
    same(b.program(), [draw((16, 32), FP32), draw((16, 32), FP32)])


def test_a_load_before_a_store_to_its_tensor_keeps_what_it_read() -> None:
    b = Building()
    a = b.tensor("a", 8, 16)
    out = b.tensor("out", 8, 16)
    b.params[-1] = Param(out, Direction.INOUT)
    b.last[out] = out
    before = b.load(out)
    b.store(b.load(a), out)
    b.store(b.let(Add(before, b.let(Load(b.last[out], (0, 0), (8, 16))))), out)
    same(b.program(), [draw((8, 16), FP32, 1), draw((8, 16), FP32, 2)])


def failing(run: Any) -> TilewrightError:
    with pytest.raises(TilewrightError) as caught:
        run()
    return caught.value


@pytest.mark.parametrize("offset", (-1, 41, 57, 10**9))
def test_an_access_outside_is_the_interpreters_error(offset: int) -> None:
    b = Building()
    i = b.scalar("i")
    a, out = b.tensor("a", 56, 20), b.tensor("out", 16, 20, out=True)
    x = b.let(Load(a, (i, 0), (16, 20)))
    b.store(x, out)
    program = b.program()
    given = [offset, draw((56, 20), FP32), draw((16, 20), FP32)]
    ours = failing(lambda: compiled(program).run(given))
    theirs = failing(lambda: interpret(program, given))
    assert type(ours) is type(theirs) is OutOfBoundsError
    assert (ours.message, ours.required, ours.found) == (theirs.message, theirs.required, theirs.found)
    same(program, [40, *given[1:]])


def test_a_store_outside_writes_nothing() -> None:
    b = Building()
    i = b.scalar("i")
    a, out = b.tensor("a", 16, 20), b.tensor("out", 16, 20, out=True)
    b.store(b.let(Add(b.load(a), b.load(a))), out, (0, i))
    target = poison((16, 20))
    with pytest.raises(OutOfBoundsError, match="store writes outside 'out'"):
        compiled(b.program()).run([1, draw((16, 20), FP32), target])
    assert np.isnan(target).all()


def test_nothing_is_read_where_the_extent_is_none() -> None:
    b = Building()
    i = b.scalar("i")
    a, out = b.tensor("a", 8, 20), b.tensor("out", 8, 20, out=True)
    x = b.let(Load(a, (0, i), (8, 20), clamp=True))
    b.store(b.let(Add(x, x)), out)
    program = b.program()
    for offset in (0, 5, 19, 20, 25):
        same(program, [offset, draw((8, 20), FP32), draw((8, 20), FP32)])


def test_arguments_are_checked() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 20), b.tensor("out", 8, 20, out=True)
    b.store(b.load(a), out)
    kernel = compiled(b.program())
    good, target = draw((8, 20), FP32), np.empty((8, 20), np.float32)
    kernel.run([good, target])
    for wrong in (good.astype(np.float64), good[:4], good[0], good.T, np.zeros((8, 40), np.float32)[:, ::2]):
        with pytest.raises(ArgumentError, match="'a'"):
            kernel.run([wrong, target])
    with pytest.raises(ArgumentError, match="takes 2"):
        kernel.run([good])
    target.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        kernel.run([good, target])


def test_scalars_of_every_dtype_go_in_and_out() -> None:
    from tilewright.ir.dtypes import BF16, BOOL, FP16, INT8

    b = Building()
    values = {d: b.scalar(d.name.lower(), d) for d in (FP32, FP16, BF16, INT32, INT8, INDEX, BOOL)}
    out = b.tensor("out", 1, 4, out=True)
    b.store(b.let(Full((1, 4), FP32, constant(1, FP32), level=Level.TILE)), out)
    doubled = [binary(BinaryKind.ADD, v, v) for d, v in values.items() if d is not BOOL]
    program = b.program(*doubled, values[BOOL], cast(values[INDEX], INT32))
    given = [np.dtype(d.numpy).type(-3) if d is not BOOL else True for d in values]
    same(program, [*given, draw((1, 4), FP32)])


def test_a_kernel_goes_through_the_disk() -> None:
    b = Building("stored")
    a, out = b.tensor("a", 8, 20), b.tensor("out", 8, 20, out=True)
    b.store(b.let(Add(b.load(a), b.load(a))), out)
    kernel = compiled(b.program())
    again = load_object(kernel.object_code)
    assert again.signature == kernel.signature
    given, target = draw((8, 20), FP32), np.empty((8, 20), np.float32)
    again.run([given, target])
    np.testing.assert_array_equal(target, 2 * given)
    for broken in (b"", b"x" * 200, kernel.object_code[:-1], kernel.object_code + b"x"):
        with pytest.raises(CodegenError):
            load_object(broken)


def test_text_is_the_same_each_time() -> None:
    def text() -> str:
        b = Building()
        a, out = b.tensor("a", 8, 20), b.tensor("out", 8, 20, out=True)
        x, y = b.load(a), b.load(a)
        u, v = b.let(Add(x, y)), b.let(Mul(x, y))
        w = b.let(Sub(u, v))
        b.store(b.let(Add(w, b.let(Exp(w)))), out)
        return emit_llvm(b.program(), host())

    assert len({text() for _ in range(5)}) == 1


def test_one_element_is_read_after_a_product() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 8), b.tensor("out", 8, 8, out=True)
    z = b.let(Matmul(b.load(a), b.load(a)))
    corner = b.let(Read(z, (7, 7)))
    b.store(z, out)
    same(b.program(corner), [draw((8, 8), FP32), draw((8, 8), FP32)])


def test_equal_loops_are_emitted_once() -> None:
    """Statements add calls to the text; loops that are there already are not written again."""

    def text(count: int) -> str:
        b = Building()
        a, out = b.tensor("a", 8, 20), b.tensor("out", 8, 20, out=True)
        x = y = b.let(Add(b.load(a), b.load(a)))
        for _ in range(count):
            y = b.let(Sub(b.let(Mul(y, x)), x))
        b.store(y, out)
        return emit_llvm(b.program(), host())

    few, many = text(52), text(228)  # whole groups more
    assert few.count("define") == many.count("define")
    assert (many.count("\n") - few.count("\n")) <= 2 * 400


def test_a_view_outside_its_tile_is_an_error() -> None:
    """Its valid part lies inside, but another view could look at the rest."""
    b = Building()
    i = b.scalar("i")
    a, out = b.tensor("a", 16, 20), b.tensor("out", 4, 20, out=True)
    window = b.let(Slice(b.load(a), (8, 20), (i, 0), (4, 20)))
    b.store(window, out)
    program = b.program()
    given = [draw((16, 20), FP32), draw((4, 20), FP32)]
    same(program, [8, *given])
    with pytest.raises(OutOfBoundsError, match="slice reads outside"):
        compiled(program).run([9, *given])
    assert isinstance(failing(lambda: interpret(program, [9, *given])), OutOfBoundsError)


def test_a_callee_sees_the_tensor_as_it_lies() -> None:
    a, o = Value("a", TensorType((4, 8), FP32)), Value("o", TensorType((4, 8), FP32))
    section = Building("section")
    section.params = [Param(a), Param(o, Direction.OUT)]
    section.last[o] = o
    section.store(section.load(a), o)
    x, y = Value("x", TensorType((4, 8), FP32, (16, 1))), Value("y", TensorType((4, 8), FP32))
    z = Value("z", y.type)
    body = (Call((z,), "section", (x, y)), Return((z,)))
    main = Function("main", (Param(x), Param(y, Direction.OUT)), body, FunctionKind.ORCHESTRATION)
    assert "strides" in str(failing(lambda: compiled(Program((section.function(), main), "main"))))
