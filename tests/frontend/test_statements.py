"""Each kind of statement: source on the left, the text of the program that it becomes on the right."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from tilewright.errors import DTypeError, LanguageError, ReboundOutError, ReturnError, UndefinedNameError
from tilewright.frontend import parse
from tilewright.ir.function import Program
from tilewright.ir.nodes import For, If, Let, Scope
from tilewright.ir.verify import verify

HEADER = "import tilewright.language as pl\n\n"
PARAMETERS = (
    "a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
)


def read(body: str, parameters: str = PARAMETERS, kind: str = "incore") -> Program:
    """The program of one kernel; it satisfies the verifier, and its text reads back as itself."""
    program = parse(f"{HEADER}@pl.jit.{kind}\ndef f({parameters}):\n{indent(dedent(body).strip(), '    ')}\n")
    verify(program)
    text = str(program)
    assert parse(text) == program, text
    return program


def body_of(program: Program) -> str:
    """The statements of the entry as text, without decorator and head."""
    lines = str(program).split("def f(")[1].splitlines()[1:]
    return dedent("\n".join(lines)).strip()


def becomes(body: str, expected: str, parameters: str = PARAMETERS) -> None:
    assert body_of(read(body, parameters)) == dedent(expected).strip()


def test_assignment_and_reassignment() -> None:
    becomes(
        """
        x = pl.load(a, [0, 0], [64, 64])
        x = pl.exp(x)
        x = pl.neg(x)
        pl.store(x, [0, 0], out)
        """,
        """
        x = pl.tile.load(a, [0, 0], [64, 64])
        x_1 = pl.tile.exp(x)
        x_2 = pl.tile.neg(x_1)
        out_1 = pl.tile.store(x_2, [0, 0], out)
        return out_1
        """,
    )


def test_several_targets_and_tuples() -> None:
    becomes(
        """
        x, y = pl.load(a, [0, 0], [64, 64]), pl.load(b, [0, 0], [64, 64])
        x, y = y, x
        z = w = x - y
        pl.store(z + w, [0, 0], out)
        """,
        """
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 64])
        z = pl.tile.sub(y, x)
        add = pl.tile.add(z, z)
        out_1 = pl.tile.store(add, [0, 0], out)
        return out_1
        """,
    )


def test_constants_are_seen_through_and_expressions_are_named() -> None:
    becomes(
        """
        rows = 16
        cols = rows * 4
        for i in pl.range(4):
            start = i * rows
            stop = start + rows
            out[start:stop, :] = a[start:stop, 0:cols]
        """,
        """
        for i, (out_1,) in pl.range(4, init_values=(out,)):
            start = i * 16
            stop = start + 16
            slice = pl.tensor.slice(a, [16, 64], [start, 0])
            out_2 = pl.tensor.assemble(out_1, slice, [start, 0])
            out_3 = pl.yield_(out_2)
        return out_3
        """,
    )


def test_augmented_assignment_of_names_and_outputs() -> None:
    becomes(
        """
        x = a + b
        x *= 2
        out[:] = x
        out += 1.0
        """,
        """
        x = pl.tensor.add(a, b)
        x_1 = pl.tensor.muls(x, 2.0)
        out_1 = pl.tensor.assemble(out, x_1, [0, 0])
        add = pl.tensor.adds(out_1, 1.0)
        out_2 = pl.tensor.assemble(out_1, add, [0, 0])
        return out_2
        """,
    )


def test_annotated_assignment_places_a_tile() -> None:
    becomes(
        """
        x: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.load(a, [0, 0], [64, 64])
        n: pl.Scalar[pl.INDEX] = 4
        y = x
        pl.store(y, [0, 0], out)
        """,
        """
        x: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(a, [0, 0], [64, 64])
        n: pl.Scalar[pl.INDEX] = 4
        out_1 = pl.tile.store(x, [0, 0], out)
        return out_1
        """,
    )


def test_an_annotation_that_does_not_hold_is_refused() -> None:
    with pytest.raises(DTypeError, match="'x' is not of the type"):
        read("x: pl.Tensor[[64, 32], pl.FP32] = a + b\nout[:] = a")


def test_branches_hand_out_what_is_read_later() -> None:
    becomes(
        """
        x = a + b
        if a[0, 0] > 0.0:
            x = x + 1.0
            unused = x * 2.0
        elif a[0, 1] > 0.0:
            x = x - 1.0
        out[:] = x
        """,
        """
        x = pl.tensor.add(a, b)
        read = pl.tensor.read(a, [0, 0])
        if read > 0.0:
            x_1 = pl.tensor.adds(x, 1.0)
            unused = pl.tensor.muls(x_1, 2.0)
            x_2 = pl.yield_(x_1)
        else:
            read_1 = pl.tensor.read(a, [0, 1])
            if read_1 > 0.0:
                x_3 = pl.tensor.subs(x, 1.0)
                x_4 = pl.yield_(x_3)
            else:
                x_4 = pl.yield_(x)
            x_2 = pl.yield_(x_4)
        out_1 = pl.tensor.assemble(out, x_2, [0, 0])
        return out_1
        """,
    )


def test_an_output_written_in_a_branch_is_handed_out() -> None:
    becomes(
        """
        if a[0, 0] > 0.0:
            out[:] = a
        else:
            out[:] = b
        """,
        """
        read = pl.tensor.read(a, [0, 0])
        if read > 0.0:
            out_1 = pl.tensor.assemble(out, a, [0, 0])
            out_2 = pl.yield_(out_1)
        else:
            out_3 = pl.tensor.assemble(out, b, [0, 0])
            out_2 = pl.yield_(out_3)
        return out_2
        """,
    )


def test_explicit_yields_of_branches() -> None:
    becomes(
        """
        if a[0, 0] > 0.0:
            x, n = pl.yield_(a + b, 1)
        else:
            x, n = pl.yield_(a - b, 2)
        out[:] = x * a[n, n]
        """,
        """
        read = pl.tensor.read(a, [0, 0])
        if read > 0.0:
            add = pl.tensor.add(a, b)
            x, n = pl.yield_(add, 1)
        else:
            sub = pl.tensor.sub(a, b)
            x, n = pl.yield_(sub, 2)
        read_1 = pl.tensor.read(a, [n, n])
        mul = pl.tensor.muls(x, read_1)
        out_1 = pl.tensor.assemble(out, mul, [0, 0])
        return out_1
        """,
    )


def test_a_condition_that_is_known_leaves_one_arm() -> None:
    becomes(
        """
        bias = None
        if bias is None and 3 < 4:
            x = a
        else:
            x = nonsense
        out[:] = x
        """,
        """
        out_1 = pl.tensor.assemble(out, a, [0, 0])
        return out_1
        """,
    )


def test_loops_carry_what_the_next_trip_or_the_code_after_reads() -> None:
    becomes(
        """
        acc = a
        last = b
        for i in pl.range(0, 8, 2):
            t = acc + 1.0
            acc = t
            last = t
        out[:] = last
        """,
        """
        for i, (acc, last) in pl.range(0, 8, 2, init_values=(a, b)):
            t = pl.tensor.adds(acc, 1.0)
            acc_1, last_1 = pl.yield_(t, t)
        out_1 = pl.tensor.assemble(out, last_1, [0, 0])
        return out_1
        """,
    )


def test_loops_with_init_values() -> None:
    becomes(
        """
        for i, (x, n) in pl.pipeline(4, stage=3, init_values=(a, 0)):
            y = x + b
            x, n = pl.yield_(y, n + i)
        out[:] = x
        """,
        """
        for i, (x, n) in pl.pipeline(4, stage=3, init_values=(a, 0)):
            y = pl.tensor.add(x, b)
            x_1, n_1 = pl.yield_(y, n + i)
        out_1 = pl.tensor.assemble(out, x_1, [0, 0])
        return out_1
        """,
    )


def test_every_name_of_a_tensor_follows_its_writes() -> None:
    becomes(
        """
        same = out
        for i in pl.range(4):
            pl.store(pl.load(a, [i * 16, 0], [16, 64]), [i * 16, 0], same)
        x = pl.load(out, [0, 0], [64, 64])
        pl.store(x, [0, 0], output_tensor=out)
        """,
        """
        for i, (out_1,) in pl.range(4, init_values=(out,)):
            load = pl.tile.load(a, [i * 16, 0], [16, 64])
            out_2 = pl.tile.store(load, [i * 16, 0], out_1)
            out_3 = pl.yield_(out_2)
        x = pl.tile.load(out_3, [0, 0], [64, 64])
        out_4 = pl.tile.store(x, [0, 0], out_3)
        return out_4
        """,
    )


def test_nested_loops_carry_through_both() -> None:
    becomes(
        """
        for i in pl.range(4):
            for j in pl.parallel(4):
                out[i * 16 : i * 16 + 16, j * 16 : j * 16 + 16] = a[i * 16 : i * 16 + 16, j * 16 : j * 16 + 16]
        """,
        """
        for i, (out_1,) in pl.range(4, init_values=(out,)):
            for j, (out_2,) in pl.parallel(4, init_values=(out_1,)):
                slice = pl.tensor.slice(a, [16, 16], [i * 16, j * 16])
                out_3 = pl.tensor.assemble(out_2, slice, [i * 16, j * 16])
                out_4 = pl.yield_(out_3)
            out_5 = pl.yield_(out_4)
        return out_5
        """,
    )


def test_static_range_is_written_out() -> None:
    program = read(
        """
        x = a
        for i in pl.static_range(3):
            if i != 1:
                x = x + i
        out[:] = x
        """
    )
    assert body_of(program).count("pl.tensor.adds") == 2
    assert not any(isinstance(stmt, For | If) for stmt in program.main.walk())


def test_a_scope_is_one_section_and_hands_out_its_values() -> None:
    program = read(
        """
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="sum"):
            x = a + b
            y = x * 2.0
        out[:] = y
        """,
        kind="inline",
    )
    scope = next(stmt for stmt in program.main.walk() if isinstance(stmt, Scope))
    assert scope.kind == "at" and dict(scope.options)["name_hint"] == "sum"
    assert [result.name for result in scope.results] == ["y"]


def test_a_statement_that_writes_a_tile_rebinds_it() -> None:
    becomes(
        """
        x = pl.load(a, [0, 0], [64, 64])
        y = pl.load(b, [0, 0], [64, 64])
        acc = pl.matmul(x, y)
        pl.tile.matmul_acc(acc, x, y)
        pl.store(acc, [0, 0], out)
        """,
        """
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 64])
        acc = pl.tile.matmul(x, y)
        acc_1 = pl.tile.matmul_acc(acc, x, y)
        out_1 = pl.tile.store(acc_1, [0, 0], out)
        return out_1
        """,
    )


EXCHANGED = """
    x = a + b
    y = a * 2.0
    for i, (p, q) in pl.range(3, init_values=(x, y)):
        for j, (r, s) in pl.range(3, init_values=(p, q)):
            t = s + a
            r_1, s_1 = pl.yield_(t, s)
        p_1, q_1 = pl.yield_(s_1, r_1)
"""


def test_tensors_that_nested_loops_exchange_and_nothing_writes() -> None:
    """What a loop hands on as it got it is not written, so that its start may be read under any name."""
    program = read(EXCHANGED + "    u = p_1 + y\n    out[:] = u + x\n    return out")
    assert len([stmt for stmt in program.main.walk() if isinstance(stmt, For)]) == 2


def test_a_written_tensor_or_a_new_one_goes_to_the_next_trip() -> None:
    """Which one depends on the trips of the inner loop; both are the name's own."""
    read("""
        x = a + b
        for i, (p,) in pl.range(3, init_values=(x,)):
            q = pl.tensor.write(p, [0, 0], 3.0)
            for j, (r,) in pl.range(i, init_values=(q,)):
                t = r + a
                r_1 = pl.yield_(t)
            p_1 = pl.yield_(r_1)
        out[:] = p_1
        return out
    """)


def test_two_names_of_a_tensor_that_a_loop_writes_are_refused() -> None:
    body = """
        x = a + b
        y = a * 2.0
        for i, (p, q) in pl.range(3, init_values=(x, y)):
            r = pl.tensor.write(p, [0, 0], 3.0)
            s, t = pl.yield_(r, r)
        out[:] = s + t
    """
    with pytest.raises(LanguageError, match="in the next trip, and the loop writes that"):
        read(body)


def test_what_a_loop_hands_on_is_written_later() -> None:
    body = """
        x = a + b
        for i, (p,) in pl.range(3, init_values=(x,)):
            q = pl.yield_(p)
        q[0:1, :] = a[0:1, :]
        out[:] = x + q
    """
    with pytest.raises(LanguageError, match="'x' is read after its tensor was written"):
        read(body)


def test_every_statement_knows_its_line_and_column() -> None:
    program = read("x = a + b\ny = (x\n    * 2.0)\nout[:] = y")
    lets = [stmt for stmt in program.main.walk() if isinstance(stmt, Let)]
    assert [(stmt.span.line, stmt.span.column) for stmt in lets] == [(5, 8), (6, 9), (8, 4)]
    assert all(stmt.span.file == "<text>" and stmt.span.line for stmt in program.main.walk())


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("out[:] = x", UndefinedNameError, "'x' is used before it is defined"),
        ("if a[0, 0] > 0.0:\n    x = a + b\nout[:] = x", UndefinedNameError, "'x' is assigned on one path only"),
        ("for i in pl.range(4):\n    x = a + b\nout[:] = x", UndefinedNameError, "'x' is assigned only inside a loop"),
        ("for i in pl.range(4):\n    out[:] = a\nn = i", UndefinedNameError, "variable of a loop that has ended"),
        ("out = a + b", ReboundOutError, "output 'out' is re-bound"),
        ("out = a", ReboundOutError, "output 'out' is re-bound"),
        ("a[:] = b", LanguageError, "parameter 'a' is an input"),
        ("x = out[0:8, :]\nx[:] = a[0:8, :]", LanguageError, "a slice of a tensor is written"),
        ("x = out[0:8, :]\nout[:] = a\nout[0:8, :] = x", LanguageError, "'x' is read after its tensor was written"),
        ("n = 0\nfor i in pl.range(4):\n    n = n + 0.5\nout[:] = a * n", DTypeError, "meets an integer scalar"),
        ("x = a\nfor i in pl.range(4):\n    x = x[0:8, :]\nout[0:8, :] = x", DTypeError, "'x' changes its type"),
        ("if a[0, 0] > 0.0:\n    return a\nout[:] = a", ReturnError, "some paths through the kernel return more"),
        ("for i in pl.parallel(3):\n    if a[i, 0] > 0.0:\n        return a\nreturn a", LanguageError, "have no order"),
        ("for i in pl.range(3):\n    x = a + b\n    return x\nreturn a", UndefinedNameError, "only inside a loop"),
        ("for i in pl.range(3):\n    return a\nout[:] = a", ReturnError, "some paths through the kernel return more"),
        ("out[:] = a\nreturn out, out", ReturnError, "returned twice"),
        ("while True:\n    out[:] = a", LanguageError, "this loop never ends"),
        ("for i in range(4):\n    out[:] = a", LanguageError, "a loop runs over a range of the language"),
        ("a + b", LanguageError, "this value is not used"),
        ("x, y = a + b", LanguageError, "2 names, and not as many values"),
        ("def g(x):\n    return x\nout[:] = a", LanguageError, "a nested function is not part"),
        ("out[:] = a\nbreak", LanguageError, "break outside of a loop"),
        ("for i in pl.spmd(4):\n    break", LanguageError, "have no order"),
        ("with open('x'):\n    out[:] = a", UndefinedNameError, "'open' is used before"),
    ],
)
def test_what_is_refused(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read(body)


def test_a_parallel_loop_does_not_carry_tiles() -> None:
    with pytest.raises(LanguageError, match="trips of a parallel loop are independent"):
        read("n = 0\nfor i in pl.parallel(4):\n    n = n + i\nout[0:1, 0:n] = a[0:1, 0:n]")
