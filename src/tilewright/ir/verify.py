"""What every program satisfies, at every level, before and after every pass.

Values
  - A value is defined once, and used only where its definition has been passed.
  - A loop variable or carried value is used inside its loop only.
Types
  - A result has the type that its operation infers, possibly placed (space, layout, buffer) where that leaves it open.
  - A loop with a condition carries it, a BOOL, as its first value, and runs its trips in order.
  - What a loop carries has one type: initial value, carried value, yielded value and result. The same for branches.
  - A call's arguments and targets have the types of the callee's parameters and results.
  - The valid shape of every tile has its rank, and lies within the physical shape.
Blocks
  - Nested blocks end in a `Yield` of as many values as the statement has results; functions end in a `Return`.
Tensors in DDR
  - A version is not used after a later version exists (stores are linear).
  - A loop that writes a tensor carries it.
  - Each output parameter's last version is returned, once; an input is never written.

What a program must satisfy on a target is `analysis.legality`'s concern.
"""

from __future__ import annotations

from collections.abc import Set

from tilewright.errors import Span, VerifyError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, Probe, Return, Scope, Stmt, Yield, result_of, walk
from tilewright.ir.op import Op
from tilewright.ir.rewrite import placed_like, type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import output_positions, roots_of, written_operand
from tilewright.ir.types import ScalarType, TensorType, TileType, Type


def verify(program: Program) -> None:
    """Raises `VerifyError`, placed at the guilty statement, unless every invariant above holds."""
    if program.entry not in program.by_name:
        raise VerifyError(f"the program's entry {program.entry!r} is not among its functions")
    if len(program.by_name) != len(program.functions):
        raise VerifyError("two functions have one name", found=", ".join(f.name for f in program.functions))
    for function in program.functions:
        _check_structure(function, program)
    for function in program.functions:
        _FunctionVerifier(function, program).run()


def _check_structure(function: Function, program: Program) -> None:
    """Blocks end as they must, and as many values are handed over as are taken: what every other question relies on."""
    if not function.body or not isinstance(function.body[-1], Return):
        raise VerifyError(f"function {function.name} does not end in a return", span=function.span)
    for stmt in walk(function.body):
        for block in stmt.blocks():
            if not block or not isinstance(block[-1], Yield) or isinstance(block[-1], Return):
                raise VerifyError("a block ends in the wrong statement", span=stmt.span, required="a yield")
            given, taken = len(block[-1].values), len(stmt.defs())
            if given != taken:
                raise VerifyError(f"a block yields {given} values for {taken} results", span=block[-1].span)
        if isinstance(stmt, For) and not len(stmt.inits) == len(stmt.iter_args) == len(stmt.results):
            raise VerifyError("a loop carries unequal numbers of values", span=stmt.span)
        if isinstance(stmt, For) and stmt.conditional:
            _check_conditional(stmt)
        if isinstance(stmt, Call):
            callee = program.by_name.get(stmt.callee)
            if callee is None:
                raise VerifyError(f"there is no function {stmt.callee!r} to call", span=stmt.span)
            if len(callee.params) != len(stmt.args) or len(callee.results) != len(stmt.targets):
                raise VerifyError(
                    f"the call of {stmt.callee} has the wrong number of arguments or results", span=stmt.span
                )


def _check_conditional(loop: For) -> None:
    condition = loop.iter_args[0].type if loop.iter_args else None
    if not isinstance(condition, ScalarType) or condition.dtype is not BOOL:
        raise VerifyError(
            "a conditional loop carries its condition first", span=loop.span, required="BOOL", found=repr(condition)
        )
    if loop.kind not in (LoopKind.SEQUENTIAL, LoopKind.UNROLL):
        raise VerifyError(
            "the trips of a conditional loop follow each other", span=loop.span, required="pl.range",
            found=f"pl.{loop.kind.value}",
        )  # fmt: skip


def same_type(left: Type, right: Type) -> bool:
    """Equal, buffers aside: a carry may start in another buffer than the one it lives in."""
    if left is right:
        return True
    if isinstance(left, TileType) and isinstance(right, TileType):
        return left.without_memref() is right.without_memref()
    return False


class _FunctionVerifier:
    def __init__(self, function: Function, program: Program) -> None:
        self.function = function
        self.program = program
        self.visible: set[Value] = set()
        self.scopes: list[list[Value]] = [[]]
        self.ever: set[Value] = set()
        # A version of a tensor may have several names: what paths hand on keeps the versions that it may be.
        self.versions: dict[Value, frozenset[Value]] = {}
        self.consumed: dict[Value, Span] = {}
        self.roots = roots_of(function, program)
        self.inputs = {p.value for p in function.params if not p.is_output}

    def run(self) -> None:
        for param in self.function.params:
            self.define(param.value, self.function.span)
        self.block(self.function.body, None)
        self.outputs()

    def outputs(self) -> None:
        returned = [p for p in output_positions(self.function, self.program) if p is not None]
        for index, param in enumerate(self.function.params):
            count = returned.count(index)
            if param.is_output and isinstance(param.value.type, TensorType) and count != 1:
                raise VerifyError(
                    f"{self.function.name} returns the last version of output {param.value.name!r} {count} times",
                    span=self.function.span,
                    required="exactly once",
                )

    # --- values ---
    def define(self, value: Value, span: Span) -> None:
        if value in self.ever:
            raise VerifyError(f"value {value.name!r} is defined twice", span=span)
        for other in value.type.values():
            self.use(other, span)
        self.visible.add(value)
        self.scopes[-1].append(value)
        self.ever.add(value)

    def versions_of(self, value: Scalar) -> frozenset[Value]:
        """The tensor versions that `value` may be."""
        if not isinstance(value, Value):
            return frozenset()
        return self.versions.get(value) or frozenset((value,))

    def use(self, value: Value, span: Span) -> None:
        if value not in self.visible:
            raise VerifyError(f"value {value.name!r} is used where it is not defined", span=span)
        for version in self.versions_of(value) & self.consumed.keys() if isinstance(value.type, TensorType) else ():
            raise VerifyError(
                f"{value.name!r} is read after a later version of its tensor was stored",
                span=span,
                help="read the new version, or read before the store",
                notes=(f"stored at {self.consumed[version]}",),
            )

    def consume(self, value: Scalar, span: Span) -> None:
        """`value` is used up: its next version exists from here on."""
        if not isinstance(value, Value) or not isinstance(value.type, TensorType):
            return
        if self.roots.get(value) in self.inputs:
            raise VerifyError(
                f"{value.name!r} is an input and is written",
                span=span,
                help="declare the parameter pl.Out[...] or pl.InOut[...]",
            )
        self.consumed.update(dict.fromkeys(self.versions_of(value), span))

    # --- statements ---
    def block(self, block: Block, results: tuple[Value, ...] | None) -> tuple[Scalar, ...]:
        """Checks a block in its own scope; returns what it yields. `results` None: a function's body."""
        self.scopes.append([])
        for stmt in block:
            for value in stmt.uses():
                self.use(value, stmt.span)
            self.stmt(stmt)
        inside = self.scopes.pop()
        if results is not None:
            self.visible.difference_update(inside)
        return result_of(block)

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self.let(stmt)
            case Call():
                self.call(stmt)
            case For():
                self.loop(stmt)
            case If() | Scope():
                self.arms(stmt)
            case Yield() | Probe():
                return
            case _:
                raise VerifyError(f"unknown statement {type(stmt).__name__}", span=stmt.span)
        for value in stmt.defs():
            self.define(value, stmt.span)

    def let(self, stmt: Let) -> None:
        value, found = stmt.value, stmt.target.type
        inferred = value.infer() if isinstance(value, Op) else type_of(value)
        if not same_type(placed_like(inferred, found), found):
            raise VerifyError(
                f"{stmt.target.name!r} has not the type that its operation gives",
                span=stmt.span,
                required=repr(inferred),
                found=repr(found),
            )
        if isinstance(value, Op):
            self.consume(written_operand(value) or 0, stmt.span)

    def call(self, stmt: Call) -> None:
        callee = self.program.function(stmt.callee)
        binding = {param.value: arg for param, arg in zip(callee.params, stmt.args, strict=True)}
        for param, arg in zip(callee.params, stmt.args, strict=True):
            self.expect(
                type_of(arg), param.value.type.substitute(lambda v: binding.get(v, v)), param.value.name, stmt.span
            )
            if param.is_output:
                self.consume(arg, stmt.span)

    def loop(self, stmt: For) -> None:
        before = set(self.consumed)
        self.scopes.append([])
        self.define(stmt.iv, stmt.span)
        written = self.carried(stmt)
        carried = {version for init in stmt.inits for version in self.versions_of(init)}
        values = self.block(stmt.body, stmt.results)
        self.visible.difference_update(self.scopes.pop())
        for value in self.consumed.keys() - before:
            if value in self.visible and value not in carried:
                raise VerifyError(f"the loop writes {value.name!r} without carrying it", span=self.consumed[value])
        for value, init, arg, result in zip(values, stmt.inits, stmt.iter_args, stmt.results, strict=True):
            self.expect(type_of(value), arg.type, arg.name, stmt.span)
            self.expect(result.type, arg.type, arg.name, stmt.span)
            start = frozenset[Value]() if arg in written else self.versions_of(init)
            self.joined(result, self.versions_of(value) | start)

    def carried(self, stmt: For) -> set[Value]:
        """Defines the carried values; returns those that the loop writes. What starts as one version stays one."""
        written: set[Value] = set()
        first: dict[Scalar, Value] = {}
        for init, arg in zip(stmt.inits, stmt.iter_args, strict=True):
            self.expect(type_of(init), arg.type, arg.name, stmt.span)
            if self.consume_carried(init, stmt):
                written.add(arg)
                self.versions[arg] = frozenset((first.setdefault(init, arg),))
            else:
                self.versions[arg] = self.versions_of(init)
            self.define(arg, stmt.span)
        return written

    def consume_carried(self, init: Scalar, stmt: For) -> bool:
        """A carried tensor is used up by a loop that writes it; whether this one does."""
        root = self.roots.get(init) if isinstance(init, Value) else None
        if root is None or not any(self.writes(inner, root) for inner in walk(stmt.body)):
            return False
        self.consume(init, stmt.span)
        return True

    def writes(self, stmt: Stmt, root: Value) -> bool:
        """Whether `stmt` itself makes a later version of the tensor `root`."""
        match stmt:
            case Let() if isinstance(stmt.value, Op):
                written = written_operand(stmt.value)
                return written is not None and self.roots.get(written) is root
            case Call():
                callee = self.program.by_name.get(stmt.callee)
                params = callee.params if callee else ()
                outputs = (arg for param, arg in zip(params, stmt.args, strict=False) if param.is_output)
                return any(isinstance(arg, Value) and self.roots.get(arg) is root for arg in outputs)
            case _:
                return False

    def arms(self, stmt: If | Scope) -> None:
        before = dict(self.consumed)
        after = dict(before)
        given: dict[Value, set[Value]] = {}
        for block in stmt.blocks():
            self.consumed = dict(before)
            values = self.block(block, stmt.defs())
            after.update(self.consumed)
            for value, result in zip(values, stmt.defs(), strict=True):
                self.expect(type_of(value), result.type, result.name, stmt.span)
                given.setdefault(result, set()).update(self.versions_of(value))
        self.consumed = after
        for result, versions in given.items():
            self.joined(result, versions)

    def joined(self, result: Value, versions: Set[Value]) -> None:
        """`result` is one of `versions`, those still current, or one that was made on the way."""
        self.versions[result] = frozenset({result, *(v for v in versions if v not in self.consumed)})

    def expect(self, found: Type, required: Type, name: str, span: Span) -> None:
        if not same_type(found, required):
            raise VerifyError(
                f"{name!r} has two types where paths join", span=span, required=repr(required), found=repr(found)
            )
