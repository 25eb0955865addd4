"""Which tensor in DDR a value is a version of.

DDR tensors are linear: a store yields the next version of its tensor. The *root* of a version is the parameter, or the
operation that creates the tensor, at the start of its chain of versions.
"""

from __future__ import annotations

from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Scope, Yield
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TensorType

Roots = dict[Value, Value]


def roots_of(function: Function, program: Program | None = None) -> Roots:
    """The root of every DDR tensor value in `function`. `program` resolves the functions that it calls."""
    roots: Roots = {p.value: p.value for p in function.params if isinstance(p.value.type, TensorType)}
    _block(function.body, roots, program)
    return roots


def output_positions(function: Function, program: Program | None = None) -> tuple[int | None, ...]:
    """For each value that `function` returns: the index of the output parameter whose last version it is, or None."""
    roots = roots_of(function, program)
    outputs = {p.value: index for index, p in enumerate(function.params) if p.is_output}
    return tuple(outputs.get(roots[v]) if isinstance(v, Value) and v in roots else None for v in function.results)


def written_operand(op: Op) -> Value | None:
    """The DDR tensor whose next version `op` yields, if any."""
    written = getattr(op, op.writes) if op.writes else None
    return written if isinstance(written, Value) and isinstance(written.type, TensorType) else None


def _block(block: Block, roots: Roots, program: Program | None) -> None:
    for stmt in block:
        match stmt:
            case Let(target=target, value=value) if isinstance(target.type, TensorType):
                roots[target] = _root_of_op(target, value, roots)
            case Call():
                _call(stmt, roots, program)
            case For():
                for arg, init in zip(stmt.iter_args, stmt.inits, strict=True):
                    _same(arg, init, roots)
                _block(stmt.body, roots, program)
                last = stmt.body[-1]
                assert isinstance(last, Yield)
                for result, arg, given in zip(stmt.results, stmt.iter_args, last.values, strict=True):
                    if isinstance(result.type, TensorType):
                        # A loop that yields another tensor than it got hands out that, not a version of its start.
                        same = isinstance(given, Value) and roots.get(given) is roots.get(arg)
                        roots[result] = roots[arg] if same else result
            case If() | Scope():
                for inner in stmt.blocks():
                    _block(inner, roots, program)
                last = stmt.blocks()[0][-1]
                assert isinstance(last, Yield)
                for result, given in zip(stmt.defs(), last.values, strict=True):
                    _same(result, given, roots)
            case _:
                pass


def _root_of_op(target: Value, value: Op | Scalar, roots: Roots) -> Value:
    if isinstance(value, Op):
        source = written_operand(value) or (getattr(value, value.view_of) if value.view_of else None)
        if isinstance(source, Value):
            return roots.get(source, source)
    return target


def _same(value: Value, other: Scalar, roots: Roots) -> None:
    if isinstance(value.type, TensorType) and isinstance(other, Value):
        roots[value] = roots.get(other, other)


def _call(stmt: Call, roots: Roots, program: Program | None) -> None:
    positions: tuple[int | None, ...] = (None,) * len(stmt.targets)
    if program is not None and stmt.callee in program.by_name:
        positions = output_positions(program.function(stmt.callee), program)
    for target, position in zip(stmt.targets, positions, strict=True):
        if isinstance(target.type, TensorType):
            roots[target] = target
            if position is not None:
                _same(target, stmt.args[position], roots)
