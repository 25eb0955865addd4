"""Rewriting programs: one walker that substitutes, re-types and shares.

A pass subclasses `Rewriter` and overrides what it cares about. The base walks a function in order; when a value has
been replaced, its uses follow; when a replacement has another type, the results of operations, loop carries and
branches are typed anew; a statement that nothing touched is the same object afterwards.
"""

from __future__ import annotations

from dataclasses import replace as dataclass_replace

from tilewright.errors import UNKNOWN, Span
from tilewright.ir.function import Function, Param, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Probe, Return, Scope, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value, dtype_of, substitute
from tilewright.ir.types import DEFAULT_VIEW, ScalarType, TileType, TileView, Type


def type_of(scalar: Scalar) -> Type:
    """The type of a value, or of a scalar expression."""
    return scalar.type if isinstance(scalar, Value) else ScalarType(dtype_of(scalar))


def placed_like(inferred: Type, old: Type) -> Type:
    """`inferred`, with the placement (space, layout, pad, compact, buffer) that `old` had and it leaves open."""
    if not isinstance(inferred, TileType) or not isinstance(old, TileType):
        return inferred
    view, before = inferred.view, old.view
    space = inferred.space or old.space
    keeps = old.space is None or old.space is space
    if view == before and space is inferred.space and inferred.memref is not None:
        return inferred
    return TileType(
        inferred.shape,
        inferred.dtype,
        space,
        TileView(
            view.valid_shape,
            view.stride if view.stride is not None else before.stride,
            view.start_offset if view.start_offset is not None else before.start_offset,
            view.layout or (before.layout if keeps else None),
            view.pad if view.pad is not DEFAULT_VIEW.pad else before.pad,
            view.compact if view.compact is not DEFAULT_VIEW.compact else before.compact,
        ),
        inferred.memref or (old.memref if keeps else None),
    )


class Rewriter:
    """Rewrites one function at a time. `env` maps values of the old program to what stands for them in the new one.

    Override `let`, `call`, `loop`, `branch`, `scope` or `terminator`; each must `emit` whatever stands for its
    statement and `bind` whatever stands for its values. `super()` does the plain thing."""

    def __init__(self) -> None:
        self.env: dict[Value, Scalar] = {}
        self._out: list[Stmt] = []

    # --- entry points ---
    def program(self, program: Program) -> Program:
        return program.map(self.function)

    def function(self, function: Function) -> Function:
        params = tuple(self.param(param) for param in function.params)
        body = self.block(function.body)
        if body is function.body and all(a is b for a, b in zip(params, function.params, strict=True)):
            return function
        return dataclass_replace(function, params=params, body=body)

    def param(self, param: Param) -> Param:
        """A parameter; override to give it another type (and `bind` the old value to the new)."""
        return param

    def block(self, block: Block) -> Block:
        """The rewritten block; the same object when every statement stayed itself."""
        outer, self._out = self._out, []
        try:
            for stmt in block:
                self.stmt(stmt)
            new = self._out
        finally:
            self._out = outer
        if len(new) == len(block) and all(a is b for a, b in zip(new, block, strict=True)):
            return block
        return tuple(new)

    # --- building ---
    def emit(self, stmt: Stmt) -> None:
        self._out.append(stmt)

    def let(self, op: Op | Scalar, name: str, span: Span = UNKNOWN, type: Type | None = None) -> Value:
        """Append `name = op` and return its value. `type` places the result; the default is what `op` infers."""
        inferred = op.infer() if isinstance(op, Op) else type_of(op)
        value = Value(name, type or inferred, span)
        self.emit(Let(value, op, span=span))
        return value

    def bind(self, old: Value, new: Scalar) -> None:
        """From here on `new` stands for `old`."""
        if new is not old:
            self.env[old] = new

    def get(self, value: Value) -> Scalar:
        """What stands for `value`."""
        return self.env.get(value, value)

    def value(self, old: Value) -> Value:
        """What stands for `old`, which is known to be a value and not an expression."""
        new = self.get(old)
        assert isinstance(new, Value)
        return new

    def scalar(self, scalar: Scalar) -> Scalar:
        return substitute(scalar, self.get) if self.env else scalar

    def retype(self, old: Value, type: Type) -> Value:
        """`old` when it has `type` already; else a new value of that type, bound to it."""
        if old.type is type:
            return old
        new = Value(old.name, type, old.span)
        self.bind(old, new)
        return new

    # --- statements ---
    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self.visit_let(stmt)
            case Call():
                self.visit_call(stmt)
            case For():
                self.visit_for(stmt)
            case If():
                self.visit_if(stmt)
            case Scope():
                self.visit_scope(stmt)
            case Yield():
                self.visit_terminator(stmt)
            case Probe():
                self.emit(stmt.substitute(self.get) if self.env else stmt)
            case _:
                raise AssertionError(f"unknown statement {type(stmt).__name__}")

    def visit_let(self, stmt: Let) -> None:
        new = stmt.substitute(self.get) if self.env else stmt
        assert isinstance(new, Let)
        target = stmt.target
        if new is not stmt:
            inferred = new.value.infer() if isinstance(new.value, Op) else type_of(new.value)
            target = self.retype(target, placed_like(inferred, target.type.substitute(self.get)))
        self.emit(new if target is stmt.target else Let(target, new.value, span=stmt.span))

    def visit_call(self, stmt: Call) -> None:
        new = stmt.substitute(self.get) if self.env else stmt
        assert isinstance(new, Call)
        targets = tuple(self.retype(t, t.type.substitute(self.get)) for t in stmt.targets)
        same = all(a is b for a, b in zip(targets, stmt.targets, strict=True))
        self.emit(new if same else new.replace(targets=targets))

    def visit_for(self, stmt: For) -> None:
        new = stmt.substitute(self.get) if self.env else stmt
        assert isinstance(new, For)
        iter_args = tuple(
            self.retype(arg, self.carried_type(arg, init)) for arg, init in zip(stmt.iter_args, new.inits, strict=True)
        )
        body = self.block(stmt.body)
        results = tuple(self.retype(result, arg.type) for result, arg in zip(stmt.results, iter_args, strict=True))
        unchanged = (
            new is stmt
            and body is stmt.body
            and all(a is b for a, b in zip(iter_args, stmt.iter_args, strict=True))
            and all(a is b for a, b in zip(results, stmt.results, strict=True))
        )
        self.emit(stmt if unchanged else new.replace(iter_args=iter_args, body=body, results=results))

    def carried_type(self, arg: Value, init: Scalar) -> Type:
        """The type of a loop-carried value, given what it starts from."""
        return placed_like(type_of(init), arg.type.substitute(self.get)) if init is not arg else arg.type

    def visit_if(self, stmt: If) -> None:
        condition = self.scalar(stmt.condition)
        then = self.block(stmt.then)
        otherwise = self.block(stmt.otherwise)
        results = self._results(stmt.results, then)
        same = all(a is b for a, b in zip(results, stmt.results, strict=True))
        if condition is stmt.condition and then is stmt.then and otherwise is stmt.otherwise and same:
            self.emit(stmt)
        else:
            self.emit(If(condition, then, otherwise, results, span=stmt.span))

    def visit_scope(self, stmt: Scope) -> None:
        body = self.block(stmt.body)
        results = self._results(stmt.results, body)
        same = all(a is b for a, b in zip(results, stmt.results, strict=True))
        self.emit(stmt if body is stmt.body and same else Scope(stmt.kind, stmt.options, body, results, span=stmt.span))

    def _results(self, results: tuple[Value, ...], block: Block) -> tuple[Value, ...]:
        """Results of a branch or scope, typed as what its block yields."""
        last = block[-1]
        assert isinstance(last, Yield)
        return tuple(self.retype(result, type_of(given)) for result, given in zip(results, last.values, strict=True))

    def visit_terminator(self, stmt: Yield | Return) -> None:
        self.emit(stmt.substitute(self.get) if self.env else stmt)


def clone_block(block: Block, env: dict[Value, Scalar]) -> Block:
    """A copy of `block` in which every value defined inside is new, so that it may stand beside the original.
    `env` maps values from outside to what stands for them, and receives the copies."""
    return _Cloner(env).block(block)


class _Cloner(Rewriter):
    def __init__(self, env: dict[Value, Scalar]) -> None:
        super().__init__()
        self.env = env

    def retype(self, old: Value, type: Type) -> Value:
        new = Value(old.name, type, old.span)
        self.bind(old, new)
        return new

    def visit_let(self, stmt: Let) -> None:
        new = stmt.substitute(self.get)
        assert isinstance(new, Let)
        self.emit(Let(self.retype(stmt.target, stmt.target.type.substitute(self.get)), new.value, span=stmt.span))

    def visit_for(self, stmt: For) -> None:
        new = stmt.substitute(self.get)
        assert isinstance(new, For)
        iv = self.retype(stmt.iv, stmt.iv.type)
        iter_args = tuple(self.retype(arg, arg.type.substitute(self.get)) for arg in stmt.iter_args)
        body = self.block(stmt.body)
        results = tuple(self.retype(result, result.type.substitute(self.get)) for result in stmt.results)
        self.emit(new.replace(iv=iv, iter_args=iter_args, body=body, results=results))
