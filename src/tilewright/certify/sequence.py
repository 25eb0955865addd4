"""The functions of a program in the order in which what they demand is known: callees before their callers."""

from __future__ import annotations

from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Call


def callees_first(program: Program) -> list[Function]:
    """Every function once; a cycle of calls is broken where it is entered."""
    done: dict[str, Function] = {}
    entered: set[str] = set()
    stack: list[tuple[Function, bool]] = [(function, False) for function in reversed(program.functions)]
    while stack:
        function, ready = stack.pop()
        if ready:
            done[function.name] = function
            continue
        if function.name in entered:
            continue
        entered.add(function.name)
        stack.append((function, True))
        called = (stmt.callee for stmt in function.walk() if isinstance(stmt, Call))
        stack += [(program.by_name[name], False) for name in called if name in program.by_name and name not in entered]
    return list(done.values())
