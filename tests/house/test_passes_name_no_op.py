"""What a pass knows of an op it reads from the op's class: a set of op names in a pass misses the next op."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from tilewright.ir.op import registry

PASSES = Path(__file__).parents[2] / "src" / "tilewright" / "passes"


def op_names() -> set[str]:
    """The name of every registered op, once the package that holds them all is imported."""
    importlib.import_module("tilewright.ops")
    return set(registry())


def strings_of(source: str) -> list[tuple[int, str]]:
    """Line and value of each string constant, f-string pieces left out: those are text for a reader."""
    tree = ast.parse(source)
    prose = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def test_no_pass_holds_the_name_of_an_op() -> None:
    names = op_names()
    assert names, "no op is registered"
    found = [
        f"{path.relative_to(PASSES)}:{line}: {text!r}"
        for path in sorted(PASSES.rglob("*.py"))
        for line, text in strings_of(path.read_text())
        if text in names
    ]
    assert not found, "names of ops in passes; ask the op's class instead:\n" + "\n".join(found)


def test_a_name_in_a_set_is_found_and_one_in_a_message_is_not() -> None:
    assert strings_of('FUSED = {"matmul", "add"}\n') == [(1, "matmul"), (1, "add")]
    assert strings_of('def f(x: int) -> str:\n    return f"{x}add"\n') == []
