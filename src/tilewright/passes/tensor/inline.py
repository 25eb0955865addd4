"""Inlining: no function marked inline is left, and a section calls nothing.

Before:  def scale(self, x): return pl.tensor.muls(x, 2.0)          # Inline
         y = self.scale(a)
Ensures: every call of an `INLINE` function is replaced by the function's statements, and these functions are gone.
         A call inside a section (a scope, a parallel loop, an `INCORE` function) is replaced too, whatever it calls:
         what a section does is then in one place. A function that this leaves without a caller is gone as well.
After:   y = pl.tensor.muls(a, 2.0)
Refuses: functions that call each other in a ring, since their statements would never end."""

from __future__ import annotations

from tilewright.errors import UNKNOWN, Span, UnsupportedError
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Call, For, LoopKind, Scope, Yield
from tilewright.ir.rewrite import Rewriter, clone_block
from tilewright.ir.scalar import Scalar, Value


def inline(program: Program) -> Program:
    """Requires SSA. Linear in the size of the result. Raises `UnsupportedError` for recursion."""
    _refuse_rings(program)
    spliced: dict[str, Function] = {}
    inliner = _Inliner(spliced)
    for name in _callees_first(program):
        spliced[name] = inliner.function(program.function(name))
    functions = tuple(spliced[function.name] for function in program.functions)
    kept = tuple(function for function in functions if not _is_gone(function, program, functions, inliner.replaced))
    if len(kept) == len(functions) and all(a is b for a, b in zip(kept, program.functions, strict=True)):
        return program
    return program.with_functions(kept)


def _calls(function: Function) -> list[Call]:
    return [stmt for stmt in function.walk() if isinstance(stmt, Call)]


def _is_gone(function: Function, program: Program, functions: tuple[Function, ...], replaced: set[str]) -> bool:
    """Whether `function` is only a memory: inlined wherever it was called."""
    if function.name == program.entry:
        return False
    if function.kind is FunctionKind.INLINE:
        return True
    if function.name not in replaced:
        return False
    return not any(call.callee == function.name for other in functions for call in _calls(other))


def _callees_first(program: Program) -> list[str]:
    """Names of the functions, each after those that it calls."""
    order: dict[str, None] = {}
    for function in program.functions:
        todo = [function.name]
        while todo:
            name = todo[-1]
            ahead = [c.callee for c in _calls(program.function(name)) if c.callee not in order]
            if ahead:
                todo += dict.fromkeys(ahead)
                continue
            order[name] = None
            todo.pop()
    return list(order)


def _refuse_rings(program: Program) -> None:
    """Raises at the call that closes a ring."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...], span: Span) -> None:
        if name in path:
            ring = " -> ".join((*path[path.index(name) :], name))
            raise UnsupportedError(
                "functions that call each other in a ring cannot be compiled",
                span=span,
                required="a call that does not lead back to its own function",
                found=ring,
                help="write the repetition as a loop",
            )
        if name in done:
            return
        for call in _calls(program.function(name)):
            visit(call.callee, (*path, name), call.span)
        done.add(name)

    for function in program.functions:
        visit(function.name, (), UNKNOWN)


class _Inliner(Rewriter):
    """Puts the statements of callees, themselves inlined already, in the place of calls."""

    def __init__(self, done: dict[str, Function]) -> None:
        super().__init__()
        self.done = done
        self.replaced: set[str] = set()
        self.in_section = False

    def function(self, function: Function) -> Function:
        self.env.clear()
        self.in_section = function.kind is FunctionKind.INCORE
        return super().function(function)

    def visit_call(self, stmt: Call) -> None:
        callee = self.done[stmt.callee]
        if callee.kind is not FunctionKind.INLINE and not self.in_section:
            super().visit_call(stmt)
            return
        self.replaced.add(stmt.callee)
        env: dict[Value, Scalar] = {
            param.value: self.scalar(arg) for param, arg in zip(callee.params, stmt.args, strict=True)
        }
        body = clone_block(callee.body, env)
        last = body[-1]
        assert isinstance(last, Yield)
        for inner in body[:-1]:
            if self.in_section:
                self.stmt(inner)  # the callee may call where it stands outside of sections
            else:
                self.emit(inner)
        for target, value in zip(stmt.targets, last.values, strict=True):
            self.bind(target, self.scalar(value))

    def visit_for(self, stmt: For) -> None:
        outer, self.in_section = self.in_section, self.in_section or stmt.kind is LoopKind.PARALLEL
        super().visit_for(stmt)
        self.in_section = outer

    def visit_scope(self, stmt: Scope) -> None:
        outer, self.in_section = self.in_section, True
        super().visit_scope(stmt)
        self.in_section = outer
