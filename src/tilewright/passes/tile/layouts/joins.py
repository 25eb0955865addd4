"""Where paths join, tiles agree in what they promise about the elements outside their valid parts.

Before:  if n > 0:                       # x was loaded among zeros, which a product wants; y was computed
             r = pl.yield_(y)
         else:
             r = pl.yield_(x)
After:   ...
         else:
             x_part = pl.tile.slice(x, [16, 16], [0, 0], valid_shape=[5, 5])
             r = pl.yield_(x_part)

A view of all of a tile promises nothing about the rest. Only promises that not all values make are given up."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir.function import Function
from tilewright.ir.layout import Pad
from tilewright.ir.nodes import For, If, Scope, Stmt, Yield, result_of
from tilewright.ir.op import Level
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType, Type
from tilewright.ops.shape import Slice


def agree_on_padding(function: Function) -> Function:
    """`function` in which the values that become one value are of one padding."""
    pads = _settled(function)
    agreed = (
        _own(joined) is pads[joined] and all(_own(value) is pads[joined] for value in values)
        for joined, values in _joins(function)
    )
    if all(agreed):
        return function
    return _Agreeing(pads).function(function)


def _own(value: Value) -> Pad:
    assert isinstance(value.type, TileType)
    return value.type.view.pad


def _joins(function: Function) -> Iterator[tuple[Value, list[Value]]]:
    """Each tile at which paths join, with the values that become it."""
    for stmt in function.walk():
        rows: list[tuple[Value, tuple[Scalar, ...]]] = []
        if isinstance(stmt, For):
            rows = [*zip(stmt.iter_args, zip(stmt.inits, result_of(stmt.body), strict=True), strict=True)]
            rows += [(result, (arg,)) for result, arg in zip(stmt.results, stmt.iter_args, strict=True)]
        elif isinstance(stmt, If | Scope):
            rows = [*zip(stmt.defs(), zip(*(result_of(block) for block in stmt.blocks()), strict=True), strict=True)]
        for joined, values in rows:
            if isinstance(joined.type, TileType):
                yield joined, [value for value in values if isinstance(value, Value)]


def _settled(function: Function) -> dict[Value, Pad]:
    """The padding of each joined tile: that of all its values, or none."""
    joins = list(_joins(function))
    pads = {joined: _own(values[0]) for joined, values in joins}
    changed = True
    while changed:
        changed = False
        for joined, values in joins:
            found = {pads[value] if value in pads else _own(value) for value in values}
            if pads[joined] is not Pad.NULL and found != {pads[joined]}:
                pads[joined], changed = Pad.NULL, True
    return pads


class _Agreeing(Rewriter):
    def __init__(self, pads: dict[Value, Pad]) -> None:
        super().__init__()
        self.pads = pads
        self.into: list[tuple[Value, ...]] = []
        """what the values that the open blocks end with become"""

    def promising(self, values: tuple[Scalar, ...], into: tuple[Value, ...], stmt: Stmt) -> tuple[Scalar, ...]:
        return tuple(self.one(value, joined, stmt) for value, joined in zip(values, into, strict=True))

    def one(self, value: Scalar, joined: Value, stmt: Stmt) -> Scalar:
        """`value`, or a view of it that promises nothing."""
        new = self.get(value) if isinstance(value, Value) else value
        if not isinstance(new, Value) or joined not in self.pads or _own(new) is self.pads[joined]:
            return value
        kind = new.type
        assert isinstance(kind, TileType)
        part = Slice(new, kind.shape, (0,) * kind.rank, kind.valid, level=Level.TILE, span=stmt.span)
        return self.let(part, f"{new.name}_part", stmt.span)

    def carried_type(self, arg: Value, init: Scalar) -> Type:
        kind = super().carried_type(arg, init)
        return kind.with_(pad=self.pads[arg]) if isinstance(kind, TileType) and arg in self.pads else kind

    def visit_for(self, stmt: For) -> None:
        inits = self.promising(stmt.inits, stmt.iter_args, stmt)
        same = all(a is b for a, b in zip(inits, stmt.inits, strict=True))
        new = stmt if same else stmt.replace(inits=inits)
        self.into.append(stmt.iter_args)
        super().visit_for(new)
        self.into.pop()

    def visit_if(self, stmt: If) -> None:
        self.into.append(stmt.results)
        super().visit_if(stmt)
        self.into.pop()

    def visit_scope(self, stmt: Scope) -> None:
        self.into.append(stmt.results)
        super().visit_scope(stmt)
        self.into.pop()

    def visit_terminator(self, stmt: Yield) -> None:
        into = self.into[-1] if self.into else ()
        if len(into) == len(stmt.values):
            values = self.promising(stmt.values, into, stmt)
            if any(a is not b for a, b in zip(values, stmt.values, strict=True)):
                stmt = stmt.replace(values=values)
        super().visit_terminator(stmt)
