"""What inlining refuses, and how far it reaches."""

from __future__ import annotations

import pytest
from ir_builder import Builder, program
from tilewright.errors import UnsupportedError
from tilewright.ir.function import FunctionKind
from tilewright.ir.nodes import Call, Return
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType
from tilewright.ir.verify import verify
from tilewright.ops.elementwise import Neg
from tilewright.passes.tensor.inline import inline


def calling(name: str, callee: str, kind: FunctionKind = FunctionKind.INLINE):
    b = Builder(name, kind)
    x = b.tensor("x", 8, 8)
    y = Value("y", TensorType((8, 8), x.dtype))
    return b.returns(y).with_body((Call((y,), callee, (x,)), Return((y,))))


@pytest.mark.parametrize("ring", [("f",), ("f", "g"), ("f", "g", "h")])
def test_rings_of_calls_are_refused(ring: tuple[str, ...]) -> None:
    functions = [calling(name, after) for name, after in zip(ring, (*ring[1:], ring[0]), strict=True)]
    main = calling("main", ring[0], FunctionKind.ORCHESTRATION)
    with pytest.raises(UnsupportedError, match="ring") as caught:
        inline(program(*functions, main))
    assert " -> ".join((*ring, ring[0])) in str(caught.value)


def test_a_program_without_inline_functions_is_returned_itself() -> None:
    b = Builder()
    x = b.tensor("x", 8, 8)
    before = program(b.returns(b.let("y", Neg(x))))
    assert inline(before) is before


def test_a_chain_of_inline_functions_leaves_one_function() -> None:
    b = Builder("last", FunctionKind.INLINE)
    x = b.tensor("x", 8, 8)
    last = b.returns(b.let("y", Neg(x)))
    chain = [calling(f"f{i}", f"f{i + 1}") for i in range(20)]
    main = calling("main", "f0", FunctionKind.ORCHESTRATION)
    after = inline(program(last, *chain, calling("f20", "last"), main))
    verify(after)
    assert [f.name for f in after.functions] == ["main"]
    assert [type(stmt).__name__ for stmt in after.main.body] == ["Let", "Return"]


def test_a_function_called_twice_is_copied_twice() -> None:
    b = Builder("f", FunctionKind.INLINE)
    x = b.tensor("x", 8, 8)
    f = b.returns(b.let("y", Neg(x)))
    m = Builder("main", FunctionKind.ORCHESTRATION)
    a = m.tensor("a", 8, 8)
    (y,) = m.call(("y",), f, a)
    (z,) = m.call(("z",), f, y)
    after = inline(program(f, m.returns(y, z)))
    verify(after)
    assert len(after.main.body) == 3
