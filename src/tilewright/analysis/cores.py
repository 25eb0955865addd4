"""On which kind of core each statement runs, where a machine has several."""

from __future__ import annotations

from tilewright.analysis.cost import edge_of, space_of
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.targets import Target

CORE = "core"
"""The function attribute that names the kind of core which runs it; absent: every kind that its statements need."""


def core_of(stmt: Let, target: Target) -> str | None:
    """The kind of core that executes `stmt`; None for what any core may do (scalars, tensors in DDR).

    A move runs where its edge's engine is; everything else where the tile that it makes, or reads, lies."""
    op = stmt.value
    if not isinstance(op, Op):
        return None
    types = (stmt.target.type, *(value.type for _, value in op.operand_items()))
    spaces = [space for space in map(space_of, types) if space is not None]
    on_chip = [space for space in spaces if space is not MemorySpace.DDR]
    if not on_chip:
        return None
    # Only what goes from one space to another can be a move, and have an edge.
    edge = edge_of(op, stmt.target.type, target) if len(set(spaces)) > 1 else None
    if edge is not None and edge.core is not None:
        return edge.core
    return target.core_of_space(on_chip[0])


def cores_of(function: Function, target: Target) -> set[str]:
    """The kinds of core that the statements of `function` need."""
    found = {core_of(stmt, target) for stmt in function.walk() if isinstance(stmt, Let)}
    return {core for core in found if core is not None}


def crosses_on_chip(target: Target) -> bool:
    """Whether tiles go from one kind of core to another without DDR."""
    for edge in target.edges:
        ends = (target.memories[edge.src].core, target.memories[edge.dst].core)
        if None not in ends and ends[0] != ends[1]:
            return True
    return False
