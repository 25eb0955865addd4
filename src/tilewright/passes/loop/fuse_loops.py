"""Loops that follow each other made one, and what lies between them made small.

    for i in serial(0, 8):                        for i in serial(0, 8):
        for j in serial(0, 64):                       for j in serial(0, 64):
            y[i, j] = exp(x[i, j])                        y = alloc([1, 1])
    for i in serial(0, 8):                                y[0, 0] = exp(x[i, j])
        for j in serial(0, 64):                           z[i, j] = y[0, 0] + 1
            z[i, j] = y[i, j] + 1

Two loops over the same range become one where no trip of the second needs what a later trip of the first does. One
moves over the statements between them that do not depend on it. Outer loops first, then what is in their bodies: rows
become one loop, then the elements of a row as far as no statistic of the row stands between.

A dependence is followed through indices that are sums: where both accesses have the same coefficient of the loop's
variable in a dimension and differ by a number, they meet at that distance only; where two numbers differ, never.
Everything else may meet.

A buffer that is used inside one loop only keeps one element of each dimension that the loop runs along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.analysis.loop_accesses import Access, is_plain, own_accesses
from tilewright.ir.buffers import BufferType, Load, buffer_type
from tilewright.ir.loop_level import Alias, Allocate, Loop, LoopFunction, LoopKind, Store
from tilewright.ir.loop_rewrite import rebuilt, substituted
from tilewright.ir.nodes import Block, Stmt, walk
from tilewright.ir.scalar import Expr, Scalar, Shape, Value, linear_terms, values_in

Classes = Mapping[Value, object]
"""Buffers that may overlap have equal classes; a buffer that is left out is alone."""


@dataclass(slots=True)
class _Item:
    """A statement, and what it touches."""

    stmt: Stmt
    accesses: list[Access]
    plain: bool
    reads: set[object] = field(default_factory=set[object])
    writes: set[object] = field(default_factory=set[object])


def fuse_loops(function: LoopFunction, classes: Classes | None = None) -> LoopFunction:
    """The function with its loops joined. `classes` says which parameters may overlap."""
    fused = _Fusion(_with_aliases(function, classes or {}))
    allocations = [stmt for stmt in function.body if isinstance(stmt, Allocate)]
    rest = [stmt for stmt in function.body if not isinstance(stmt, Allocate)]
    body = fused.block(rest)
    return shrink(LoopFunction(function.name, function.params, (*allocations, *body), function.span))


def _with_aliases(function: LoopFunction, classes: Classes) -> Classes:
    """The classes with other names of a buffer's memory in its class."""
    found = dict(classes)
    for stmt in walk(function.body):
        if isinstance(stmt, Alias):
            found[stmt.buffer] = found.setdefault(stmt.source, stmt.source)
    return found


class _Fusion:
    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.known: dict[int, tuple[Stmt, list[Access]]] = {}
        """by identity, what a statement touches: loops are looked at on every level"""

    def accesses(self, stmt: Stmt) -> list[Access]:
        found = self.known.get(id(stmt))
        if found is None:
            inner = [access for block in stmt.blocks() for s in block for access in self.accesses(s)]
            found = self.known[id(stmt)] = stmt, inner + own_accesses(stmt)
        return found[1]

    def item(self, stmt: Stmt, plain: bool | None = None) -> _Item:
        found = _Item(stmt, self.accesses(stmt), is_plain(stmt) if plain is None else plain)
        if isinstance(stmt, Allocate):
            found.writes.add(stmt.buffer)
        for access in found.accesses:
            kind = self.classes.get(access.buffer, access.buffer)
            (found.writes if access.writes else found.reads).add(kind)
        return found

    def block(self, stmts: Iterable[Stmt]) -> Block:
        """The statements with loops joined, and those in their bodies."""
        items: list[_Item] = []
        for stmt in stmts:
            item = self.item(stmt)
            if not isinstance(stmt, Loop) or not item.plain or not self.join(items, item, stmt):
                items.append(item)
        done = [item.stmt for item in items]
        return tuple(s.replace(body=self.block(s.body)) if isinstance(s, Loop) else s for s in done)

    def join(self, items: list[_Item], second: _Item, loop: Loop) -> bool:
        """Make `loop` part of an earlier loop; whether there was one."""
        for position in reversed(range(len(items))):
            first = items[position]
            between = items[position + 1 :]
            if isinstance(first.stmt, Loop) and first.plain and _same_range(first.stmt, loop):
                hoists = not any(_depend(other, second) for other in between)
                sinks = not hoists and not any(_depend(first, other) for other in between)
                if (hoists or sinks) and self.legal(first, first.stmt, second, loop):
                    merged = self.merged(first.stmt, loop)
                    if hoists:
                        items[position] = merged
                    else:
                        del items[position]
                        items.append(merged)
                    return True
        return False

    def merged(self, a: Loop, b: Loop) -> _Item:
        def iv(value: Value) -> Scalar:
            return a.iv if value is b.iv else value

        body = tuple(substituted(stmt, iv) for stmt in b.body)
        return self.item(a.replace(body=(*a.body, *body)), True)

    def legal(self, first: _Item, a: Loop, second: _Item, b: Loop) -> bool:
        """Whether no trip of `b` needs what a later trip of `a` does, or the other way round."""
        if not _depend(first, second):
            return True
        inner = _variables(a) | _variables(b)
        for x in first.accesses:
            for y in second.accesses:
                if not (x.writes or y.writes):
                    continue
                if x.buffer is y.buffer:
                    if _meets_later(x.indices, a.iv, y.indices, b.iv, inner):
                        return False
                elif x.buffer in self.classes and self.classes[x.buffer] == self.classes.get(y.buffer):
                    return False
        return True


def _same_range(a: Loop, b: Loop) -> bool:
    upwards = isinstance(a.step, int) and a.step > 0 and a.kind is LoopKind.SERIAL
    return upwards and (a.start, a.stop, a.step, a.kind) == (b.start, b.stop, b.step, b.kind)


def _depend(a: _Item, b: _Item) -> bool:
    """Whether the order of two statements matters. Nothing is known of one that is not plain."""
    if not (a.plain and b.plain):
        return True
    return not (a.writes.isdisjoint(b.reads | b.writes) and a.reads.isdisjoint(b.writes))


def _variables(loop: Loop) -> set[Value]:
    """The variables of the loops inside."""
    found: set[Value] = set()
    todo: list[Stmt] = list(loop.body)
    while todo:
        stmt = todo.pop()
        if isinstance(stmt, Loop):
            found.add(stmt.iv)
        for block in stmt.blocks():
            todo += block
    return found


def _meets_later(x: Shape, i: Value, y: Shape, j: Value, inner: set[Value]) -> bool:
    """Whether the element `x` in trip `i` may be the element `y` in an earlier trip `j` of the same range."""
    for a, b in zip(x, y, strict=True):
        if a is i and b is j:
            return False
        left, low = linear_terms(a)
        right, high = linear_terms(b)
        step = left.pop(i, 0)
        if step != right.pop(j, 0) or left != right or any(v in inner for term in left for v in values_in(term)):
            continue
        if step == 0 and low != high:
            return False  # two numbers
        if step and ((high - low) % step or (high - low) // step <= 0):
            return False  # step * (i - j) == high - low: never, or at no later trip
    return True


# --- what lies between ------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Use:
    """Where a buffer is used: the loops around all uses, and the index that they have in common per dimension."""

    path: tuple[Loop, ...]
    indices: list[Scalar | None]


def shrink(function: LoopFunction) -> LoopFunction:
    """The function with each allocation of its body in the innermost loop that has all its uses, one element long in
    each dimension in which all uses have one index. Each element is written before it is read, trip by trip."""
    if not all(is_plain(stmt) for stmt in function.body):
        return function
    allocations = {stmt.buffer: stmt for stmt in function.body if isinstance(stmt, Allocate)}
    uses: dict[Value, _Use] = {}
    _collect(function.body, (), allocations, uses)
    placed: dict[Loop | None, list[Stmt]] = {}
    smaller: dict[Value, tuple[Value, list[bool]]] = {}
    for buffer, use in uses.items():
        loop = use.path[-1] if use.path else None
        flat = [_is_one(index, use.path) for index in use.indices]
        kind = buffer_type(buffer)
        shape = tuple(1 if one else extent for one, extent in zip(flat, kind.shape, strict=True))
        small = Value(buffer.name, BufferType(shape, kind.dtype, kind.space), buffer.span)
        smaller[buffer] = small, flat
        placed.setdefault(loop, []).append(allocations[buffer].replace(buffer=small))
    body = _rewritten([s for s in function.body if not isinstance(s, Allocate)], smaller, placed)
    return LoopFunction(function.name, function.params, (*placed.get(None, ()), *body), function.span)


def _is_one(index: Scalar | None, path: Sequence[Loop]) -> bool:
    """Whether the index is one number, or the variable of a loop around all uses: no two trips have the same."""
    return isinstance(index, int) or any(index is loop.iv for loop in path)


def _collect(
    block: Iterable[Stmt], path: tuple[Loop, ...], wanted: Mapping[Value, object], uses: dict[Value, _Use]
) -> None:
    for stmt in block:
        if isinstance(stmt, Store):
            for access in own_accesses(stmt):
                if access.buffer in wanted:
                    _merge(uses, access, path)
        elif isinstance(stmt, Loop):
            _collect(stmt.body, (*path, stmt), wanted, uses)


def _merge(uses: dict[Value, _Use], access: Access, path: tuple[Loop, ...]) -> None:
    known = uses.get(access.buffer)
    if known is None:
        uses[access.buffer] = _Use(path, list(access.indices))
        return
    depth = 0
    while depth < min(len(path), len(known.path)) and path[depth] is known.path[depth]:
        depth += 1
    known.path = path[:depth]
    known.indices = [a if a == b else None for a, b in zip(known.indices, access.indices, strict=True)]


def _rewritten(
    block: Iterable[Stmt],
    smaller: Mapping[Value, tuple[Value, list[bool]]],
    placed: Mapping[Loop | None, list[Stmt]],
) -> Block:
    def moved(part: Expr) -> Scalar:
        return Load(*_moved(part.buffer, part.indices, smaller)) if isinstance(part, Load) else part

    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Loop):
            inner = _rewritten(stmt.body, smaller, placed)
            out.append(stmt.replace(body=(*placed.get(stmt, ()), *inner)))
        elif isinstance(stmt, Store):
            buffer, indices = _moved(stmt.buffer, stmt.indices, smaller)
            out.append(Store(buffer, indices, rebuilt(stmt.value, moved), span=stmt.span))
        else:
            out.append(stmt)
    return tuple(out)


def _moved(buffer: Value, indices: Shape, smaller: Mapping[Value, tuple[Value, list[bool]]]) -> tuple[Value, Shape]:
    if buffer not in smaller:
        return buffer, indices
    small, flat = smaller[buffer]
    return small, tuple(0 if one else index for one, index in zip(flat, indices, strict=True))
