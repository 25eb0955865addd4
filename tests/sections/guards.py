"""Does each guard matter? Removes the guards of joining one at a time, and runs the tests of sections on what is left.

    python tests/sections/guards.py              every guard, about two minutes
    python tests/sections/guards.py bridge 40    the guards of one module, from one line on

A guard is an `if` that returns or raises a refusal, or yields a fault, or one of several checks tried in turn. Each
mutant runs in a forked process, in which one function has other code: the tests are collected once. A guard that no
test misses is a survivor; the exit status is the number of survivors that `EXPECTED` does not explain."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

HERE = Path(__file__).parent
JOINING = (
    "test_rules.py",
    "test_rules_result.py",
    "test_stronger.py",
    "test_bridge.py",
    "test_verify.py",
    "test_maps.py",
    "test_algebra.py",
)
PROGRAMS = ("test_refused_lifts.py", "test_lift.py", "test_driver.py", "test_sites.py")
TESTS = {
    **dict.fromkeys(("agreement", "bridge", "budget", "ends", "forward", "tiles", "verify"), JOINING),
    **dict.fromkeys(("lift", "lower", "fold"), PROGRAMS),
}
"""By module, the tests that must miss its guards."""
SLOW = ("test_a_long_chain_joins_in_linear_time",)
EXPECTED: dict[str, str] = {
    "lift: op.effect is not Effect.PURE": "no operation of tiles must be done once, and collective ones are told first",
}
"""Survivors by ``module: text of the condition``, and why no test can miss them."""


@dataclass(frozen=True)
class Guard:
    """One guard: the function that it stands in, its line, what it asks, and the module without it."""

    module: str
    function: tuple[str, ...]
    line: int
    text: str
    without: ast.Module

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {'.'.join(self.function)}: {self.text}"


def guards(module: str) -> Iterator[Guard]:
    """Every guard of a module of sections, in order."""
    source = Path(importlib.import_module(f"tilewright.sections.{module}").__file__ or "").read_text()
    for k, _ in enumerate(_places(ast.parse(source))):
        tree = ast.parse(source)
        function, node, remove = _places(tree)[k]
        text = ast.unparse(node.test if isinstance(node, ast.If) else node)
        remove()
        yield Guard(module, function, node.lineno, text, ast.fix_missing_locations(tree))


def _places(tree: ast.Module) -> list[tuple[tuple[str, ...], Any, Any]]:
    """The guards of a tree: the function's path, the node, and what removes it."""
    found: list[tuple[tuple[str, ...], Any, Any]] = []

    def visit(node: ast.AST, path: tuple[str, ...]) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            path = (*path, node.name)
        if isinstance(node, ast.If) and _refuses(node):
            found.append((path, node, lambda: setattr(node, "test", ast.Constant(False))))
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and all(map(_is_call, node.values)):
            for k, value in enumerate(node.values):
                found.append((path, value, lambda k=k: node.values.__setitem__(k, ast.Constant(None))))
        for child in ast.iter_child_nodes(node):
            visit(child, path)

    visit(tree, ())
    return found


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _refuses(node: ast.If) -> bool:
    """Whether the branch ends in a refusal, a fault, or one that was passed up."""
    last = node.body[-1]
    if isinstance(last, ast.Raise) and last.exc is not None:
        return ast.unparse(last.exc).startswith("_Refused(")
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield):
        return True
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    made = isinstance(last.value, ast.Call) and ast.unparse(last.value.func) == "Refusal"
    return made or "Refusal)" in ast.unparse(node.test) or ast.unparse(node.test) == "refused is not None"


def _install(guard: Guard) -> None:
    """Gives the function the code that it has without the guard."""
    code: CodeType = compile(guard.without, guard.module, "exec")
    target: object = importlib.import_module(f"tilewright.sections.{guard.module}")
    for name in guard.function:
        inner = (const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name)
        code, target = next(inner), getattr(target, name)
    assert isinstance(target, FunctionType)
    target.__code__ = code


class Mutants:
    """A plugin of pytest that runs the collected tests once for each guard, each time until one fails."""

    def __init__(self, chosen: list[Guard]) -> None:
        self.chosen = chosen
        self.survivors: list[Guard] = []
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        # Tests that draw at random come last: most guards are missed by a test of their own.
        items = sorted(session.items, key=lambda item: hasattr(item.obj, "hypothesis"))
        assert not self._run(items), "the tests fail as they are"
        for guard in self.chosen:
            child = os.fork()
            if child == 0:
                try:
                    _silence()
                    _install(guard)
                    os._exit(0 if self._run(items) else 1)
                finally:
                    os._exit(2)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, 1), f"the run without {guard} broke off"
            survived = status == 1
            self.survivors += [guard] if survived else []
            print(f"{'SURVIVES' if survived else 'caught'}  {guard}", flush=True)
        return True

    def _run(self, items: list[Any]) -> bool:
        """Whether a test fails."""
        for item in items:
            if item.name not in SLOW:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                return True
        return False


def _silence() -> None:
    """A child's reports are of no use."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def main(arguments: list[str]) -> int:
    modules = arguments[:1] or list(TESTS)
    start = int(arguments[1]) if len(arguments) > 1 else 0
    count, survivors = 0, list[Guard]()
    for tests in dict.fromkeys(TESTS[module] for module in modules):
        chosen = [g for m in modules if TESTS[m] == tests for g in guards(m) if g.line >= start]
        plugin = Mutants(chosen)
        pytest.main(["-q", "-p", "no:cacheprovider", *(str(HERE / name) for name in tests)], plugins=[plugin])
        count, survivors = count + len(chosen), survivors + plugin.survivors
    unexplained = 0
    for guard in survivors:
        reason = EXPECTED.get(f"{guard.module}: {guard.text}")
        unexplained += reason is None
        print(f"survivor {guard}\n  {reason or 'no reason is known: write the test'}")
    print(f"{count} guards, {len(survivors)} survivors, {unexplained} of them without a reason")
    return unexplained


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
