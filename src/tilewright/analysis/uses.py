"""Who reads a value: every use, in order, with the statement and the operand at which it stands."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.function import Function
from tilewright.ir.nodes import For, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value


@dataclass(frozen=True, slots=True)
class Use:
    """One use of `value`: the statement, and the field of its operation that holds the value (None: it is no
    operand there)."""

    value: Value
    stmt: Stmt
    field: str | None

    @property
    def op(self) -> Op | None:
        """The operation that reads the value, if it is one."""
        stmt = self.stmt
        return stmt.value if isinstance(stmt, Let) and isinstance(stmt.value, Op) else None


Uses = dict[Value, list[Use]]


def uses_of(function: Function) -> Uses:
    """Every use of every value in `function`, in program order. Values that nothing reads have no entry."""
    found: Uses = {}
    for stmt in function.walk():
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            _of_op(stmt, stmt.value, found)
            continue
        for value in stmt.uses():
            found.setdefault(value, []).append(Use(value, stmt, None))
    return found


def _of_op(stmt: Let, op: Op, found: Uses) -> None:
    arrays = dict(op.operand_items())
    for field, value in arrays.items():
        found.setdefault(value, []).append(Use(value, stmt, field))
    held = set(arrays.values())
    for value in op.uses():
        if value not in held:
            found.setdefault(value, []).append(Use(value, stmt, None))


def definitions_of(function: Function) -> dict[Value, Stmt]:
    """The statement that defines each value; loop variables and carried values are defined by their loop."""
    found: dict[Value, Stmt] = {}
    for stmt in function.walk():
        for value in stmt.defs():
            found[value] = stmt
        if isinstance(stmt, For):
            for value in stmt.block_args():
                found[value] = stmt
    return found
