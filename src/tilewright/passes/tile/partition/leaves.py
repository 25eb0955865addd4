"""A load for each reader: what is one tile then need not be cut one way for all of them.

Of `x @ x.T` the rows of the result are the rows of `x`, and so are its columns: as long as there is one tile `x`, they
are one class, which cannot be cut along both. Loaded twice, they are two."""

from __future__ import annotations

from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.passes.tile.partition.stages import is_leaf


def separated(lets: tuple[Let, ...]) -> tuple[Let, ...] | None:
    """The statements with every tile that is made of no tile made again for each further operand that it is; None when
    each is read once."""
    made = {stmt.target: stmt for stmt in lets if is_leaf(stmt)}
    read: set[Value] = set()
    found: list[Let] = []
    for stmt in lets:
        op = stmt.value
        fields: dict[str, Value] = {}
        for name, value in op.operand_items() if isinstance(op, Op) else ():
            if value in made and value in read:
                again = Value(value.name, value.type, value.span)
                found.append(Let(again, made[value].value, span=made[value].span))
                fields[name] = again
            read.add(value)
        found.append(Let(stmt.target, op.replace(**fields), span=stmt.span) if isinstance(op, Op) and fields else stmt)
    return tuple(found) if len(found) > len(lets) else None
