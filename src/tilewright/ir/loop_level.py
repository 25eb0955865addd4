"""The loop level: loops over buffers, what a tile program becomes before it is machine code.

State lies in buffers; nothing is carried. `Let` names a scalar for the rest of its block and `If` has no results;
both are those of the other levels. Two forms share these nodes:

    structured   `ComputeBlock`s: a predicate, the regions read and written, their own allocations, matched buffers
    lowered      `Allocate` anywhere, predicates as `If`, thread bindings as `Launch`, matched buffers as `Alias`,
                 vector lanes as `Ramp`

`passes/loop/lower_blocks` goes from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import cast

from tilewright.errors import UNKNOWN, Span
from tilewright.ir.buffers import DimAlign, Extern, Region, Replace, replaced, values_of
from tilewright.ir.dtypes import BOOL
from tilewright.ir.equality import equal_loop_functions, hash_loop_function
from tilewright.ir.nodes import Block, Stmt, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import Const, Scalar, Shape, Value, substitute

Annotations = tuple[tuple[str, object], ...]
ALWAYS = Const(True, BOOL)


@dataclass(frozen=True, slots=True)
class Match:
    """`buffer` is another name, inside one block, for the `source` region."""

    buffer: Value
    source: Region


class LoopKind(Enum):
    """How the trips of a loop run; the value is its name in the text."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    THREAD = "thread"


class Allocate(Stmt):
    """`buffer` exists from here to the end of the block. The annotation ``dim_align`` holds (dim, factor, offset)s."""

    buffer: Value
    annotations: Annotations = ()

    def defs(self) -> tuple[Value, ...]:
        return (self.buffer,)

    @property
    def dim_align(self) -> DimAlign:
        """What its annotation of that name says."""
        return cast("DimAlign", dict(self.annotations).get("dim_align", ()))


class Alias(Stmt):
    """`buffer` is the memory of `source` from element `offset` on, seen as another array. Lowered form only."""

    buffer: Value
    source: Value
    offset: Scalar = 0

    def uses(self) -> Iterator[Value]:
        return values_of((self.source, self.offset))

    def defs(self) -> tuple[Value, ...]:
        return (self.buffer,)

    def substitute(self, replace: Replace) -> Stmt:
        source, offset = replaced((self.source, self.offset), replace)
        return self.replace(source=source, offset=offset)


class Loop(Stmt):
    """`for iv in kind(start, stop, step)`. A THREAD loop is bound to `thread`, a name of the target's."""

    iv: Value
    start: Scalar
    stop: Scalar
    step: Scalar
    body: Block
    kind: LoopKind = LoopKind.SERIAL
    thread: str | None = None
    annotations: Annotations = ()

    def uses(self) -> Iterator[Value]:
        return values_of((self.start, self.stop, self.step))

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def block_args(self) -> tuple[Value, ...]:
        return (self.iv,)

    def with_blocks(self, blocks: tuple[Block, ...]) -> Loop:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])

    def substitute(self, replace: Replace) -> Stmt:
        start, stop, step = replaced((self.start, self.stop, self.step), replace)
        return self.replace(start=start, stop=stop, step=step)


class Launch(Stmt):
    """The lowered form of a thread loop: `iv` runs over the threads called `thread`. `extent` None: as many as another
    launch of them states, in the same function."""

    thread: str
    iv: Value
    extent: Scalar | None
    body: Block

    def uses(self) -> Iterator[Value]:
        return values_of(() if self.extent is None else (self.extent,))

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def block_args(self) -> tuple[Value, ...]:
        return (self.iv,)

    def with_blocks(self, blocks: tuple[Block, ...]) -> Launch:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])

    def substitute(self, replace: Replace) -> Stmt:
        return self if self.extent is None else self.replace(extent=substitute(self.extent, replace))


class While(Stmt):
    """Repeats `body` while `condition` holds; the condition is evaluated before each trip."""

    condition: Scalar
    body: Block

    def uses(self) -> Iterator[Value]:
        return values_of((self.condition,))

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def with_blocks(self, blocks: tuple[Block, ...]) -> While:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])

    def substitute(self, replace: Replace) -> Stmt:
        return self.replace(condition=substitute(self.condition, replace))


class Store(Stmt):
    """`buffer[indices] = value`, lane by lane where an index is a vector."""

    buffer: Value
    indices: Shape
    value: Scalar

    def uses(self) -> Iterator[Value]:
        return values_of((self.buffer, *self.indices, self.value))

    def substitute(self, replace: Replace) -> Stmt:
        buffer, value, *indices = replaced((self.buffer, self.value, *self.indices), replace)
        return Store(buffer, tuple(indices), value, span=self.span)  # pyright: ignore[reportArgumentType]


class Evaluate(Stmt):
    """A call made for its effect."""

    call: Extern

    def uses(self) -> Iterator[Value]:
        return values_of((self.call,))

    def substitute(self, replace: Replace) -> Stmt:
        return self.replace(call=substitute(self.call, replace))


class OpCall(Stmt):
    """An operation without loops, whole: `bindings` say in which region each tile of `op` lies, `result` where its
    result does. It touches what the operation's `accesses` say of those tiles."""

    op: Op
    bindings: tuple[tuple[Value, Region], ...]
    result: Region | None

    def uses(self) -> Iterator[Value]:
        bound = {tile for tile, _ in self.bindings}
        yield from (value for value in self.op.uses() if value not in bound)
        for _, region in self.bindings:
            yield from region.uses()
        if self.result is not None:
            yield from self.result.uses()

    def block_args(self) -> tuple[Value, ...]:
        """The tiles: names for the regions, known to the operation alone."""
        return tuple(tile for tile, _ in self.bindings)

    def substitute(self, replace: Replace) -> Stmt:
        bound = {tile for tile, _ in self.bindings}
        op = self.op.with_operands(lambda value: value if value in bound else replace(value))
        bindings = tuple((tile, region.substitute(replace)) for tile, region in self.bindings)
        return OpCall(op, bindings, self.result and self.result.substitute(replace), span=self.span)


class ComputeBlock(Stmt):
    """A unit of the structured form: `body`, run where `where` holds. `reads` and `writes` are the regions touched;
    `allocs` and `matches` exist inside. The annotations ``explicit_read_region`` and ``explicit_write_region`` name
    buffers (by position in `reads` and `writes`) whose regions stand whatever the body does."""

    name: str
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    body: Block
    where: Scalar = ALWAYS
    allocs: tuple[Allocate, ...] = ()
    matches: tuple[Match, ...] = ()
    annotations: Annotations = ()

    def uses(self) -> Iterator[Value]:
        yield from values_of((self.where,))
        own = set(self.block_args())
        for region in (*self.reads, *self.writes, *(match.source for match in self.matches)):
            yield from (value for value in region.uses() if value not in own)

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def block_args(self) -> tuple[Value, ...]:
        return (*(alloc.buffer for alloc in self.allocs), *(match.buffer for match in self.matches))

    def with_blocks(self, blocks: tuple[Block, ...]) -> ComputeBlock:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])

    def substitute(self, replace: Replace) -> Stmt:
        return self.replace(
            where=substitute(self.where, replace),
            reads=tuple(region.substitute(replace) for region in self.reads),
            writes=tuple(region.substitute(replace) for region in self.writes),
            matches=tuple(Match(match.buffer, match.source.substitute(replace)) for match in self.matches),
        )


class Attribute(Stmt):
    """A fact about `node`, a buffer or a scalar, that holds inside `body`."""

    key: str
    node: Value
    value: object
    body: Block

    def uses(self) -> Iterator[Value]:
        return iter((self.node,))

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def with_blocks(self, blocks: tuple[Block, ...]) -> Attribute:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])

    def substitute(self, replace: Replace) -> Stmt:
        return self.replace(node=replace(self.node))


@dataclass(frozen=True, slots=True, eq=False)
class LoopFunction:
    """One function at the loop level: `params` are buffers and scalars; extents may be free symbols. Its blocks have no
    terminator. Equality is structural (see `ir.equality`)."""

    name: str
    params: tuple[Value, ...]
    body: Block
    span: Span = UNKNOWN

    @property
    def symbols(self) -> tuple[Value, ...]:
        """The free symbols: values in the types of the parameters that are no parameters, in order."""
        given = set(self.params)
        return tuple(dict.fromkeys(v for param in self.params for v in param.type.values() if v not in given))

    def walk(self) -> Iterator[Stmt]:
        """Every statement, nested ones included, in order."""
        return walk(self.body)

    def with_body(self, body: Block) -> LoopFunction:
        return self if body is self.body else replace(self, body=body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopFunction) and equal_loop_functions(self, other)

    def __hash__(self) -> int:
        return hash_loop_function(self)

    def __str__(self) -> str:
        return LOOP_PRINTER[0](self) if LOOP_PRINTER else f"<loop function {self.name}>"


LOOP_PRINTER: list[Callable[[LoopFunction], str]] = []
"""The printer, filled when the text layer is imported; the IR itself knows no syntax."""
