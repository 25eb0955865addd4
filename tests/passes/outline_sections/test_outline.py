"""Sections made of what the reader of text refuses to make, and what outlining refuses itself."""

from __future__ import annotations

import pytest
import tilewright as tw
from ir_builder import Builder, program
from meaning import check_same_meaning
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Direction, FunctionKind
from tilewright.ir.nodes import Call
from tilewright.ir.verify import verify
from tilewright.ops.elementwise import Add, Exp, Neg
from tilewright.ops import Assemble, Load, Store
from tilewright.ops.shape import Reshape
from tilewright.passes.tensor.inline import inline
from tilewright.passes.tensor.outline_sections import outline_sections

OUTER = FunctionKind.ORCHESTRATION


def outlined(before: tw.Program) -> tw.Program:
    verify(before)
    after = outline_sections(before)
    verify(after)
    check_same_meaning(before, after)
    return after


def calls(after: tw.Program) -> list[Call]:
    return [stmt for stmt in after.main.walk() if isinstance(stmt, Call)]


def test_a_view_read_after_a_write_elsewhere_stays_a_view() -> None:
    b = Builder(kind=OUTER)
    a, out = b.tensor("a", 8, 8), b.out("out", 8, 8)
    v = b.let("v", Reshape(a, (64,)))
    x = b.let("x", Neg(a))
    out_1 = b.let("out_1", Assemble(out, x, (0, 0)))
    y = b.let("y", Exp(v))
    after = outlined(program(b.returns(out_1, y)))
    assert [len(f.body) for f in after.functions[:-1]] == [2, 2, 3]


def test_a_value_used_by_nothing_is_not_returned() -> None:
    b = Builder(kind=OUTER)
    a = b.tensor("a", 8, 8)

    def body():
        x = b.let("x", Exp(a))
        return x, b.let("y", Neg(x))

    _, y = b.scope(body)
    after = outlined(program(b.returns(y)))
    assert [len(call.targets) for call in calls(after)] == [1]


def test_a_written_output_is_returned_even_when_nothing_uses_it() -> None:
    b = Builder(kind=OUTER)
    a, io = b.tensor("a", 8, 8), b.tensor("io", 8, 8, direction=Direction.INOUT)
    (io_1,) = b.scope(lambda: (b.let("io_1", Assemble(io, b.let("x", Neg(a)), (0, 0))),))
    after = outlined(program(b.returns(io_1)))
    section = after.functions[0]
    assert [p.direction for p in section.params] == [Direction.IN, Direction.INOUT]
    assert len(section.results) == 1


def test_what_passes_a_scope_unchanged_is_not_returned() -> None:
    b = Builder(kind=OUTER)
    a = b.tensor("a", 8, 8)
    same, x = b.scope(lambda: (a, b.let("x", Neg(a))))
    after = outlined(program(b.returns(b.let("y", Add(same, x)))))
    assert [call.args for call in calls(after)][1][0] is after.main.params[0].value


def test_calls_beside_tiles_are_refused() -> None:
    f = Builder("f")
    x = f.tensor("x", 8, 8)
    callee = f.returns(f.let("y", Neg(x)))
    b = Builder(kind=OUTER)
    a, out = b.tensor("a", 8, 8), b.out("out", 8, 8)
    b.call(("y",), callee, a)
    t = b.let("t", Load(a, (0, 0), (8, 8)))
    with pytest.raises(UnsupportedError, match="holds tiles and also calls") as caught:
        outline_sections(program(callee, b.returns(b.let("o", Store(t, (0, 0), out)))))
    assert "pl.at" in str(caught.value)


def test_names_of_sections_are_new() -> None:
    text = """import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[8, 8], pl.FP32]):
        x = pl.tensor.neg(a)
        return x

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32]):
        x = self.main_0(a)
        with pl.at(name_hint="main"):
            y = pl.tensor.exp(x)
            y_1 = pl.yield_(y)
        z = pl.tensor.neg(y_1)
        return z
"""
    after = outlined(inline(tw.parse(text)))
    assert sorted(f.name for f in after.functions) == ["main", "main_0", "main_1", "main_2"]
    assert outline_sections(after) is after
