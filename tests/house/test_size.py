"""Size is a budget: what grows past it is split, or the budget is raised here by a deliberate commit."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
FILE_LINES = 500
FUNCTION_LINES = 60


def test_files_are_short() -> None:
    lengths = {path.relative_to(SOURCE): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    too_long = [f"{path}: {lines} lines" for path, lines in sorted(lengths.items()) if lines > FILE_LINES]
    assert lengths and not too_long, f"files over {FILE_LINES} lines:\n" + "\n".join(too_long)


def test_functions_are_short() -> None:
    too_long: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    too_long.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}: {lines} lines")
    assert not too_long, f"functions over {FUNCTION_LINES} lines:\n" + "\n".join(too_long)
