"""Carried tensors of which a trip hands on the address, and not the elements.

    for i, (p, q) in pl.range(3, init_values=(x, y)):
        r = pl.tensor.assemble(p, v, [0, 0])
        s, t = pl.yield_(q, r)              # p and q are x or y in every trip: their addresses change places

A carried tensor that a trip takes from elsewhere, if only on one path, has memory of its own instead, into which the
elements are copied at the end of each trip: what a trip creates is gone when the next one is running.
"""

from __future__ import annotations

from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Scope, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import output_positions, written_operand
from tilewright.ir.types import TensorType

Origins = frozenset[Value]
"""Parameters, creations, and carried values with memory of their own: where a tensor may lie."""


def passed_tensors(function: Function, program: Program) -> dict[For, set[Value]]:
    """For each loop, the carried tensors of which it hands on the address."""
    search = _Search(program)
    search.block(function.body)
    return search.passed


class _Search:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.passed: dict[For, set[Value]] = {}
        self.origins: dict[Value, Origins] = {}

    def of(self, value: Scalar) -> Origins:
        if not isinstance(value, Value):
            return frozenset()
        return self.origins.get(value) or frozenset((value,))

    def block(self, block: Block) -> None:
        for stmt in block:
            match stmt:
                case Let(target=target, value=Op() as op) if isinstance(target.type, TensorType):
                    source = written_operand(op) or (getattr(op, op.view_of) if op.view_of else None)
                    if isinstance(source, Value):
                        self.origins[target] = self.of(source)
                case Call():
                    positions = output_positions(self.program.function(stmt.callee), self.program)
                    for target, position in zip(stmt.targets, positions, strict=True):
                        if position is not None:
                            self.origins[target] = self.of(stmt.args[position])
                case For():
                    self.loop(stmt)
                case If() | Scope():
                    for inner in stmt.blocks():
                        self.block(inner)
                    for result, *given in zip(stmt.defs(), *map(result_of, stmt.blocks()), strict=True):
                        if isinstance(result.type, TensorType):
                            self.origins[result] = frozenset[Value]().union(*map(self.of, given))
                case _:
                    pass

    def loop(self, stmt: For) -> None:
        """Assumes that all carried tensors are handed on by address, until none is that a trip takes from elsewhere."""
        starts = {
            arg: self.of(init)
            for arg, init in zip(stmt.iter_args, stmt.inits, strict=True)
            if isinstance(arg.type, TensorType) and isinstance(init, Value)
        }
        found = set(starts)
        while True:
            anywhere = frozenset[Value]().union(*(starts[arg] for arg in found))
            for arg in starts:
                self.origins[arg] = anywhere if arg in found else frozenset((arg,))
            self.block(stmt.body)
            given = dict(zip(stmt.iter_args, result_of(stmt.body), strict=True))
            kept = {arg for arg in found if self.of(given[arg]) <= anywhere}
            if kept == found:
                break
            found = kept
        self.passed[stmt] = found
        for arg, result in zip(stmt.iter_args, stmt.results, strict=True):
            if arg in starts:
                self.origins[result] = self.origins[arg]
