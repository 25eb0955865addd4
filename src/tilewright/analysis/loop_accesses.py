"""What the statements of plain loops touch: each element read or written, by buffer and indices.

y[i, j] = exp(x[i, j])          reads x at [i, j], writes y at [i, j]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.ir.buffers import Load
from tilewright.ir.loop_level import Allocate, Loop, Store
from tilewright.ir.nodes import Stmt, walk
from tilewright.ir.scalar import Expr, Scalar, Shape, Value


@dataclass(frozen=True, slots=True)
class Access:
    """An element read or written."""

    buffer: Value
    indices: Shape
    writes: bool


def loads_in(scalar: Scalar) -> Iterable[Load]:
    """The elements that an expression reads."""
    todo: list[Scalar] = [scalar]
    seen: set[int] = set()
    while todo:
        part = todo.pop()
        if isinstance(part, Load):
            yield part
            todo += part.indices
        elif isinstance(part, Expr) and not isinstance(part, Value) and id(part) not in seen:
            seen.add(id(part))
            todo += part.children()


def own_accesses(stmt: Stmt) -> list[Access]:
    """What a statement itself touches, those inside it left out."""
    if isinstance(stmt, Store):
        read = [load for scalar in (stmt.value, *stmt.indices) for load in loads_in(scalar)]
        return [*(Access(load.buffer, load.indices, False) for load in read), Access(stmt.buffer, stmt.indices, True)]
    bounds = (stmt.start, stmt.stop, stmt.step) if isinstance(stmt, Loop) else ()
    return [Access(load.buffer, load.indices, False) for bound in bounds for load in loads_in(bound)]


def accesses_in(stmt: Stmt) -> list[Access]:
    """What a statement and those inside it touch."""
    inner = [access for block in stmt.blocks() for inner in block for access in accesses_in(inner)]
    return inner + own_accesses(stmt)


def is_plain(stmt: Stmt) -> bool:
    """Whether the statement is loops over stores and nothing else, so that `accesses_in` says all that it does."""
    return all(isinstance(inner, (Loop, Store, Allocate)) for inner in walk((stmt,)))
