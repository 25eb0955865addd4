"""`return` inside a loop: the loop is left, and the function returns after it.

Before:  for i in pl.range(n):         After:  left = False
             ...                               for i in pl.range(n):
             if found:                             ...
                 return out                        if found:
         return other                                  left = True
                                                       break
                                               if left:
                                                   return out
                                               return other

What is returned is evaluated after the loop, under the names that the last trip left: they are bound before the loop,
as for anything that is read after it. The rewriting is of the syntax tree and comes first; `break` is what
`frontend.jumps` knows. Refuses nothing itself: a loop without an order of trips refuses the `break`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.frontend.jumps import like, named, returns_of, set_name

Loop = ast.For | ast.While


def without_returns_in_loops(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """`body` with every `return` outside of its loops; the same statements where no loop has one."""
    return _Leaver().block(body)


@dataclass(slots=True)
class _Leaver:
    flags: int = 0
    found: list[tuple[str, ast.Return]] = field(default_factory=list[tuple[str, ast.Return]])
    """the returns of the loop that is being rewritten, with the flag that stands for each"""

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Loops inside have none left."""
        return [made for stmt in body for made in self.stmt(stmt)]

    def stmt(self, stmt: ast.stmt) -> list[ast.stmt]:
        if next(returns_of(stmt), None) is None:
            return [stmt]
        match stmt:
            case ast.If():
                return [like(stmt, ast.If(stmt.test, self.block(stmt.body), self.block(stmt.orelse)))]
            case ast.With():
                return [like(stmt, ast.With(stmt.items, self.block(stmt.body)))]
            case ast.For() | ast.While():
                return self.loop(stmt)
            case _:
                return [stmt]

    def loop(self, node: Loop) -> list[ast.stmt]:
        """The flags, the loop, and the returns after it."""
        inner = self.block(node.body)
        outer, self.found = self.found, []
        body = self.leaving(inner)
        found, self.found = self.found, outer
        if isinstance(node, ast.For):
            made: ast.stmt = like(node, ast.For(node.target, node.iter, body, node.orelse))
        else:
            made = like(node, ast.While(node.test, body, node.orelse))
        before = [set_name(flag, ast.Constant(False), stmt) for flag, stmt in found]
        after: list[ast.stmt] = []
        for index, (flag, stmt) in enumerate(reversed(found)):
            whole = like(stmt, ast.Return(stmt.value))
            only = index == 0 and _ends_only_by_jumps(node)
            after = [whole] if only else [like(stmt, ast.If(named(flag, stmt), [whole], after))]
        return [*before, made, *after]

    def leaving(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The loop's statements, with a flag and a `break` for each return."""
        out: list[ast.stmt] = []
        for stmt in body:
            if isinstance(stmt, ast.Return):
                self.flags += 1
                flag = f"left.{self.flags}"
                self.found.append((flag, stmt))
                return [*out, set_name(flag, ast.Constant(True), stmt), like(stmt, ast.Break())]
            if isinstance(stmt, ast.If):
                out.append(like(stmt, ast.If(stmt.test, self.leaving(stmt.body), self.leaving(stmt.orelse))))
            elif isinstance(stmt, ast.With):
                out.append(like(stmt, ast.With(stmt.items, self.leaving(stmt.body))))
            else:
                out.append(stmt)
        return out


def _ends_only_by_jumps(node: Loop) -> bool:
    """Whether the loop goes on until a return leaves it: nothing after it is reached otherwise."""
    if not isinstance(node, ast.While) or not isinstance(node.test, ast.Constant) or not node.test.value:
        return False
    return next(_breaks(node.body), None) is None


def _breaks(body: Sequence[ast.stmt]) -> Iterator[ast.Break]:
    """The breaks of a loop with this body, without those of loops inside it."""
    for stmt in body:
        if isinstance(stmt, ast.Break):
            yield stmt
        elif isinstance(stmt, ast.If):
            yield from _breaks([*stmt.body, *stmt.orelse])
        elif isinstance(stmt, ast.With):
            yield from _breaks(stmt.body)
