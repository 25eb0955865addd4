"""Whatever the IR can say reads back from its text as an equal program, and prints the same again."""

from __future__ import annotations

import math

import pytest

from tilewright import parse
from tilewright.ir.dtypes import ALL, BF16, BOOL, FP32, INDEX, INT32, DType
from tilewright.ir.function import Direction, Function, FunctionKind, Param, Program
from tilewright.ir.layout import NZ, BLayout, Compact, Layout, MemorySpace, Pad, SLayout
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, Return, Scope, Yield
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Const, Scalar, Value, binary, cast
from tilewright.ir.types import MemRef, ScalarType, TensorType, TileType, TileView, Type
from tilewright.ops.create import Create
from tilewright.ops.elementwise import Add, Exp
from tilewright.ops.movement import Load, Move, Store
from tilewright.text.names import Level as SectionLevel
from tilewright.text.printer import print_program

TILE = TileType((64, 64), FP32)
TENSOR = TensorType((64, 64), FP32)


def index(name: str) -> Value:
    return Value(name, ScalarType(INDEX))


def function(params: tuple[Value, ...], *body: object, name: str = "main", **fields: object) -> Function:
    block: Block = body  # pyright: ignore[reportAssignmentType]
    return Function(name, tuple(map(Param, params)), block).with_(**fields)


def check(*functions: Function) -> str:
    """The text of a program, after holding that it reads back and that printing is stable."""
    program = Program(functions, "main")
    text = print_program(program)
    again = parse(text)
    assert again == program, text
    assert print_program(again) == text
    explicit = program.as_python(explicit_layout=True)
    assert parse(explicit) == program, explicit
    return text


def test_the_whole_text() -> None:
    a, out, n = Value("a", TENSOR), Value("out", TENSOR), index("n")
    x, y, stored = Value("x", TILE), Value("x", TILE), Value("out", TENSOR)
    main = Function(
        "main",
        (Param(n), Param(a), Param(out, Direction.OUT)),
        (
            Let(x, Load(a, (0, n * 8), (64, 64))),
            Let(y, Exp(x)),
            Let(stored, Store(y, (0, 0), out)),
            Return((stored,)),
        ),
    )
    assert check(main) == (
        "import tilewright.language as pl\n"
        "\n"
        '@pl.program(entry="main")\n'
        "class Program:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 64], pl.FP32], "
        "out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):\n"
        "        x = pl.tile.load(a, [0, n * 8], [64, 64])\n"
        "        x_1 = pl.tile.exp(x)\n"
        "        out_1 = pl.tile.store(x_1, [0, 0], out)\n"
        "        return out_1\n"
    )


@pytest.mark.parametrize(
    "type",
    [
        TileType((64, 64), FP32, MemorySpace.VEC),
        TileType((64, 64), FP32, MemorySpace.ACC, TileView(valid_shape=(3, 64))),
        TileType((64, 1), BF16, MemorySpace.VEC, TileView(layout=NZ)),
        TileType((64, 64), FP32, None, TileView(layout=Layout(BLayout.ROW_MAJOR, SLayout.COL_MAJOR, 32))),
        TileType((64, 64), INT32, MemorySpace.MAT, TileView(pad=Pad.MIN, compact=Compact.ROW_PLUS_ONE)),
        TileType((64, 64), INT32, MemorySpace.LEFT_SCALE, TileView(stride=(64, 1), start_offset=12)),
        TileType((64, 64), FP32, MemorySpace.VEC, memref=MemRef("b 0")),
        TileType((64, 64), FP32, MemorySpace.VEC, memref=MemRef("b", 0, 16384, 2)),
        TileType((64, 64), FP32, None, memref=MemRef("b", nbytes=3)),
        TensorType((64, 64), FP32, (128, 1)),
        TensorType((2, 3, 4, 5), INT32),
        *(ScalarType(dtype) for dtype in ALL),
        *(TileType((8, 8), dtype) for dtype in ALL if dtype is not INDEX),
    ],
    ids=repr,
)
def test_types(type: Type) -> None:
    value = Value("x", type)
    check(function((value,), Return((value,))))


def test_types_that_mention_scalars() -> None:
    n, m = index("n"), index("m")
    a = Value("a", TensorType((n, binary(BinaryKind.MIN, m + 3, 8)), FP32, (m * 2, 1)))
    valid = (binary(BinaryKind.MIN, n, 64), m - n)
    x = Value("x", TileType((64, 64), FP32, view=TileView(valid, (n, 1), n * 64 + 2)))
    check(function((n, m, a, x), Return((x,))))


def test_a_type_is_written_exactly_where_the_operation_does_not_give_it() -> None:
    a = Value("a", TENSOR)
    x, y, z = Value("x", TILE), Value("y", TILE.with_(space=MemorySpace.VEC, memref=MemRef("b", 64))), Value("z", TILE)
    text = check(function((a,), Let(x, Load(a, (0, 0), (64, 64))), Let(y, Exp(x)), Let(z, Add(x, x)), Return((y, z))))
    assert "x = pl.tile.load" in text
    assert 'y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("b", addr=64), pl.Mem.Vec] = pl.tile.exp(x)' in text
    assert "z = pl.tile.add" in text


@pytest.mark.parametrize("kind", list(LoopKind))
@pytest.mark.parametrize("bounds", [(0, 8, 1), (2, 8, 1), (0, 8, 2)])
def test_loops(kind: LoopKind, bounds: tuple[int, int, int]) -> None:
    x, i = Value("x", TILE), index("i")
    acc, s, x1 = Value("acc", TILE), index("s"), Value("x", TILE)
    r, q = Value("r", TILE), index("q")
    body = (Let(x1, Add(acc, x)), Yield((x1, s + i)))
    stage = 2 if kind is LoopKind.PIPELINE else 1
    loop = For(i, *bounds, kind, (x, 0), (acc, s), body, (r, q), stage)
    check(function((x,), loop, Return((r, q))))


def test_loops_with_run_time_bounds_and_one_or_no_carried_value() -> None:
    n, i, j, x = index("n"), index("i"), index("j"), Value("x", TILE)
    acc, r, t = Value("acc", TILE), Value("r", TILE), Value("t", TILE)
    one = For(i, n, n * 2, n + 1, LoopKind.SEQUENTIAL, (x,), (acc,), (Let(t, Exp(acc)), Yield((t,))), (r,))
    none = For(j, 0, n, 1, LoopKind.PARALLEL, (), (), (Yield(()),), ())
    text = check(function((n, x), one, none, Return((r,))))
    assert "for i, (acc,) in pl.range(n, n * 2, n + 1, init_values=(x,)):" in text
    assert "            pass\n" in text


def test_nested_loops_and_branches() -> None:
    n, x, i, j = index("n"), Value("x", TILE), index("i"), index("i")
    outer, inner, r, q, b, t = (Value("x", TILE) for _ in range(6))
    branch = If(binary(BinaryKind.LT, i + j, n), (Let(t, Exp(inner)), Yield((t,))), (Yield((inner,)),), (b,))
    innermost = For(j, 0, 4, 1, LoopKind.SEQUENTIAL, (outer,), (inner,), (branch, Yield((b,))), (q,))
    loop = For(i, 0, 4, 1, LoopKind.SEQUENTIAL, (x,), (outer,), (innermost, Yield((q,))), (r,))
    check(function((n, x), loop, Return((r,))))


def test_branches() -> None:
    n, x, r, s = index("n"), Value("x", TILE), Value("r", TILE), index("s")
    condition = binary(BinaryKind.AND, binary(BinaryKind.LT, n, 3), binary(BinaryKind.NE, n, 1))
    t = Value("t", TILE)
    check(
        function((n, x), If(condition, (Let(t, Exp(x)), Yield((t, 0))), (Yield((x, n + 1)),), (r, s)), Return((r, s)))
    )
    check(function((n, x), If(condition, (Yield(()),), (Yield(()),), ()), Return(())))
    u = Value("u", TILE)
    check(function((n, x), If(condition, (Yield(()),), (Let(u, Exp(x)), Yield(())), ()), Return(())))
    check(function((x,), If(Const(True, BOOL), (Yield((x,)),), (Yield((x,)),), (r,)), Return((r,))))


def test_carried_values_and_results_in_other_buffers() -> None:
    def buffer(name: str) -> TileType:
        return TILE.with_(space=MemorySpace.VEC, memref=MemRef(name))

    n, x, i = index("n"), Value("x", buffer("a")), index("i")
    acc, t, r = Value("acc", buffer("b")), Value("t", buffer("c")), Value("r", buffer("d"))
    loop = For(i, 0, 4, 1, LoopKind.SEQUENTIAL, (x,), (acc,), (Let(t, Exp(acc)), Yield((t,))), (r,))
    text = check(function((x,), loop, Return((r,))))
    assert 'acc: pl.Tile[[64, 64], pl.FP32, pl.MemRef("b"), pl.Mem.Vec]\n' in text
    y, s, q = Value("y", buffer("e")), Value("s", buffer("f")), Value("q", buffer("g"))
    arms = If(binary(BinaryKind.LT, n, 3), (Yield((x, y)),), (Yield((y, x)),), (s, q))
    check(function((n, x, y), arms, Return((s, q))))
    whole = Scope("at", (), (Yield((x,)),), (s,))
    check(function((x,), whole, Return((s,))))


def test_scopes() -> None:
    x, t, r = Value("x", TILE), Value("t", TILE), Value("r", TILE)
    options = (("level", SectionLevel.CORE_GROUP), ("name_hint", "first"))
    text = check(function((x,), Scope("at", options, (Let(t, Exp(x)), Yield((t,))), (r,)), Return((r,))))
    assert 'with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):' in text
    check(function((x,), Scope("at", (), (Yield(()),), ()), Return(())))


def test_calls() -> None:
    n, a, out = index("n"), Value("a", TENSOR), Value("out", TENSOR)
    x, stored, doubled = Value("x", TILE), Value("out", TENSOR), index("d")
    callee = Function(
        "section",
        (Param(n), Param(a), Param(out, Direction.OUT)),
        (
            Let(x, Load(a, (0, 0), (64, 64))),
            Let(stored, Store(x, (0, 0), out)),
            Let(doubled, n * 2),
            Return((stored, doubled)),
        ),
    )
    nothing = function((index("k"),), Return(()), name="nothing")
    b, made, filled, count = Value("b", TENSOR), Value("t", TENSOR), Value("t", TENSOR), index("count")
    main = function(
        (b,),
        Let(made, Create((64, 64), FP32, level=Level.TENSOR)),
        Call((), "nothing", (4,)),
        Call((filled, count), "section", (3, b, made)),
        Return((filled, count)),
        kind=FunctionKind.ORCHESTRATION,
        attrs=(("implicit_outputs", 1), ("note", ("a", 2, None)), ("dtype", BF16)),
    )
    text = check(main, nothing, callee)
    assert "t_1, count = self.section(3, b, t)" in text
    assert 'attrs={"implicit_outputs": 1, "note": ["a", 2, None], "dtype": pl.BF16}' in text


def test_the_dependent_type_of_a_call_is_given_by_its_arguments() -> None:
    n = index("n")
    a = Value("a", TensorType((n, 8), FP32))
    callee = function((n, a), Return((a,)), name="same")
    m = index("m")
    b, c = Value("b", TensorType((m * 2, 8), FP32)), Value("c", TensorType((m * 2, 8), FP32))
    main = function((m, b), Call((c,), "same", (m * 2, b)), Return((c,)))
    assert "        c = self.same(m * 2, b)\n" in check(main, callee)


@pytest.mark.parametrize("kind", list(FunctionKind))
def test_kinds_of_functions_and_directions(kind: FunctionKind) -> None:
    a, b, c = (Value(name, TENSOR) for name in "abc")
    params = (Param(a), Param(b, Direction.OUT), Param(c, Direction.INOUT))
    check(Function("main", params, (Return((b, c)),), kind))


def test_scalars_that_have_names_keep_them() -> None:
    n, x = index("n"), Value("x", TILE)
    values: list[Scalar] = [n * 8 + 1, 4, n, Const(1.5, FP32), Const(3, INT32), Const(True, BOOL)]
    values += [binary(BinaryKind.LT, n, 3), cast(n, INT32), -n]
    lets: list[Let] = []
    for value in values:
        kind = value.type if isinstance(value, Value) else ScalarType(INDEX if isinstance(value, int) else value.dtype)
        lets.append(Let(Value("k", kind), value))
    text = check(function((n, x), *lets, Return(tuple(let.target for let in lets))))
    assert "k_1: pl.Scalar[pl.INDEX] = 4" in text


def test_a_second_name_of_a_tile_stays_one() -> None:
    x, y = Value("x", TILE), Value("y", TILE)
    assert "y: pl.Tile[[64, 64], pl.FP32] = x" in check(function((x,), Let(y, x), Return((y,))))


@pytest.mark.parametrize("value", [0.1, -0.0, math.inf, -math.inf, math.nan, 3.4028234663852886e38, 1e-45, 16777217.0])
@pytest.mark.parametrize("dtype", [FP32, BF16])
def test_constants_keep_every_bit(value: float, dtype: DType) -> None:
    x, y = Value("x", TileType((8, 8), dtype)), Value("y", TileType((8, 8), dtype))
    check(function((x,), Let(y, Add(x, Const(value, dtype))), Return((y, Const(value, dtype)))))


def test_values_whose_names_are_no_names() -> None:
    hints = ("and", "pl", "self", "a.b", "3", "x", "x", "x_1", "float", "None", "range", "exp")
    values = tuple(Value(hint, TILE) for hint in hints)
    check(function(values, Return(values)))


def test_a_hundred_thousand_statements_print() -> None:
    x = Value("x", TILE)
    body: list[Let] = []
    last = x
    for _ in range(100_000):
        target = Value("x", TILE)
        body.append(Let(target, Add(last, x)))
        last = target
    text = print_program(Program((function((x,), *body, Return((last,))),), "main"))
    assert text.endswith("x_100000 = pl.tile.add(x_99999, x)\n        return x_100000\n")


def test_a_move_says_where_to() -> None:
    x = Value("x", TILE.with_(space=MemorySpace.MAT))
    op = Move(x, target_memory=MemorySpace.LEFT)
    y = Value("y", op.infer())
    assert "y = pl.tile.move(x, target_memory=pl.Mem.Left)" in check(function((x,), Let(y, op), Return((y,))))


def test_a_wrong_program_can_be_looked_at() -> None:
    x, y, z = Value("x", TILE), Value("y", TileType((3, 3), FP32)), Value("z", TILE)
    text = print_program(Program((function((x, y), Let(z, Add(x, y)), Call((), "gone", (x,)), Return((z,))),), "main"))
    assert "z: pl.Tile[[64, 64], pl.FP32] = pl.tile.add(x, y)" in text
    assert "self.gone(x)" in text
