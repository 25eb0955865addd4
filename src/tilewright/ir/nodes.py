"""Statements. A block is a tuple of them; its last one is a `Yield` (nested blocks) or a `Return` (functions).

Values are SSA. Loops carry values through `iter_args`; branches and scopes hand out theirs through `Yield`. Nodes are
immutable: a pass builds new ones and shares what it leaves alone. Every statement has the same five questions
answered (`uses`, `defs`, `blocks`, `with_blocks`, `substitute`), so that a walker needs no case per kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, ClassVar, dataclass_transform

from tilewright.errors import UNKNOWN, Span
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value, substitute, values_in

Block = tuple["Stmt", ...]
Replace = Callable[[Value], Scalar]


def _keyword(*, default: Any, kw_only: bool = True) -> Any:
    """A field of every node, given by keyword only."""
    return default


@dataclass_transform(frozen_default=True, field_specifiers=(_keyword,))
class NodeMeta(type):
    """Slots and `__init__` from the annotations; every node also takes `span`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> NodeMeta:
        own = tuple(key for key, kind in namespace.get("__annotations__", {}).items() if "ClassVar" not in str(kind))
        defaults = {key: namespace.pop(key) for key in own if key in namespace}
        namespace["__slots__"] = own
        if bases:
            parameters = "".join(f"{key}=_d[{key!r}], " if key in defaults else f"{key}, " for key in own)
            body = "".join(f"\n    _set(self, {key!r}, {key})" for key in (*own, "span"))
            scope: dict[str, Any] = {"_d": defaults, "_set": object.__setattr__, "UNKNOWN": UNKNOWN}
            exec(f"def __init__(self, {parameters}*, span=UNKNOWN):{body}", scope)
            namespace["__init__"] = scope["__init__"]
            namespace["node_fields"] = own
        return super().__new__(mcls, name, bases, namespace)


class Stmt(metaclass=NodeMeta):
    """Base of statements."""

    node_fields: ClassVar[tuple[str, ...]] = ()
    span: Span = _keyword(default=UNKNOWN, kw_only=True)

    def uses(self) -> Iterator[Value]:
        """Values that the statement itself reads; not those read inside its blocks."""
        return iter(())

    def defs(self) -> tuple[Value, ...]:
        """Values that the statement makes available to the statements after it."""
        return ()

    def blocks(self) -> tuple[Block, ...]:
        """Nested blocks."""
        return ()

    def block_args(self) -> tuple[Value, ...]:
        """Values that are available inside the blocks only: loop variable and carried values."""
        return ()

    def with_blocks(self, blocks: tuple[Block, ...]) -> Stmt:
        """The statement with its nested blocks replaced."""
        return self

    def substitute(self, replace: Replace) -> Stmt:
        """The statement with the values that it reads itself replaced (blocks are left alone)."""
        return self

    def replace(self, **fields: Any) -> Any:
        """The statement with the named fields replaced."""
        names = self.node_fields
        values = {name: fields.get(name, getattr(self, name)) for name in names}
        return type(self)(**values, span=fields.get("span", self.span))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"statements are immutable; use replace({name}=...)")

    def __repr__(self) -> str:
        names = self.node_fields
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


def _in_all(items: tuple[Scalar, ...]) -> Iterator[Value]:
    for item in items:
        if not isinstance(item, int):
            yield from values_in(item)


def _replace_all(items: tuple[Scalar, ...], replace: Replace) -> tuple[Scalar, ...]:
    new = tuple(substitute(item, replace) for item in items)
    return items if all(a is b for a, b in zip(items, new, strict=True)) else new


class Let(Stmt):
    """`target = value`: an operation, or a scalar expression that has a name."""

    target: Value
    value: Op | Scalar

    def uses(self) -> Iterator[Value]:
        if isinstance(self.value, Op):
            return iter(self.value.uses())
        return _in_all((self.value,))

    def defs(self) -> tuple[Value, ...]:
        return (self.target,)

    def substitute(self, replace: Replace) -> Stmt:
        value = self.value
        new = value.with_operands(replace) if isinstance(value, Op) else substitute(value, replace)
        return self if new is value else Let(self.target, new, span=self.span)


class Call(Stmt):
    """`targets = callee(args)`: one target for each value that the callee returns. An argument that the callee writes
    (`Out`, `InOut`) is used up; its next version is the target at the position where the callee returns it."""

    targets: tuple[Value, ...]
    callee: str
    args: tuple[Scalar, ...]

    def uses(self) -> Iterator[Value]:
        return _in_all(self.args)

    def defs(self) -> tuple[Value, ...]:
        return self.targets

    def substitute(self, replace: Replace) -> Stmt:
        args = _replace_all(self.args, replace)
        return self if args is self.args else Call(self.targets, self.callee, args, span=self.span)


class LoopKind(Enum):
    """How the trips of a loop relate. PARALLEL: independent work items, over the cores. UNROLL: replicated at compile
    time. PIPELINE: sequential meaning, trips overlapped."""

    SEQUENTIAL = "range"
    PARALLEL = "parallel"
    UNROLL = "unroll"
    PIPELINE = "pipeline"


UNBOUNDED = 2**63 - 1
"""The bound of a loop that its condition alone ends."""


class For(Stmt):
    """`for iv in kind(start, stop, step)`, carrying `iter_args`: they start as `inits`, each trip's `Yield` gives the
    next, and `results` are the last ones. `stage` is the depth of a PIPELINE.

    A `conditional` loop also ends before a trip for which the first of its `iter_args`, a BOOL, does not hold. A
    `while` loop is one whose bound is `UNBOUNDED`."""

    iv: Value
    start: Scalar
    stop: Scalar
    step: Scalar
    kind: LoopKind
    inits: tuple[Scalar, ...]
    iter_args: tuple[Value, ...]
    body: Block
    results: tuple[Value, ...]
    stage: int = 1
    conditional: bool = False

    def uses(self) -> Iterator[Value]:
        return _in_all((self.start, self.stop, self.step, *self.inits))

    def defs(self) -> tuple[Value, ...]:
        return self.results

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def block_args(self) -> tuple[Value, ...]:
        return (self.iv, *self.iter_args)

    def with_blocks(self, blocks: tuple[Block, ...]) -> For:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])

    def substitute(self, replace: Replace) -> Stmt:
        old = (self.start, self.stop, self.step, *self.inits)
        new = _replace_all(old, replace)
        if new is old:
            return self
        return self.replace(start=new[0], stop=new[1], step=new[2], inits=new[3:])

    @property
    def trip_count(self) -> int | None:
        """The number of trips, when it is constant."""
        return None if self.conditional else self.most_trips

    @property
    def most_trips(self) -> int | None:
        """The number of trips that the bounds allow, when they are constant."""
        start, stop, step = self.start, self.stop, self.step
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step > 0:
            return max(0, -(-(stop - start) // step))
        return None

    @property
    def is_while(self) -> bool:
        """Whether the condition alone ends the loop."""
        return self.conditional and self.stop == UNBOUNDED


class If(Stmt):
    """`if condition`; both arms end in a `Yield` of equally many values, which are `results` afterwards."""

    condition: Scalar
    then: Block
    otherwise: Block
    results: tuple[Value, ...]

    def uses(self) -> Iterator[Value]:
        return _in_all((self.condition,))

    def defs(self) -> tuple[Value, ...]:
        return self.results

    def blocks(self) -> tuple[Block, ...]:
        return (self.then, self.otherwise)

    def with_blocks(self, blocks: tuple[Block, ...]) -> If:
        same = blocks[0] is self.then and blocks[1] is self.otherwise
        return self if same else self.replace(then=blocks[0], otherwise=blocks[1])

    def substitute(self, replace: Replace) -> Stmt:
        new = substitute(self.condition, replace)
        return self if new is self.condition else self.replace(condition=new)


class Scope(Stmt):
    """`with pl.at(...)`: one section. Its body yields what is used after it. `options` are static."""

    kind: str
    options: tuple[tuple[str, Any], ...]
    body: Block
    results: tuple[Value, ...]

    def defs(self) -> tuple[Value, ...]:
        return self.results

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def with_blocks(self, blocks: tuple[Block, ...]) -> Scope:
        return self if blocks[0] is self.body else self.replace(body=blocks[0])


class Probe(Stmt):
    """What the author watches while the program is interpreted: `kind` is "print", "assert" (its condition comes first)
    or "break"; `parts` are texts and values. Programs that are compiled have none."""

    kind: str
    parts: tuple[str | Scalar, ...]

    def uses(self) -> Iterator[Value]:
        return _in_all(tuple(part for part in self.parts if not isinstance(part, str)))

    def substitute(self, replace: Replace) -> Stmt:
        parts = tuple(part if isinstance(part, str) else substitute(part, replace) for part in self.parts)
        return Probe(self.kind, parts, span=self.span)


class Yield(Stmt):
    """Ends a nested block and hands out its values."""

    values: tuple[Scalar, ...]

    def uses(self) -> Iterator[Value]:
        return _in_all(self.values)

    def substitute(self, replace: Replace) -> Stmt:
        values = _replace_all(self.values, replace)
        return self if values is self.values else type(self)(values, span=self.span)


class Return(Yield):
    """Ends a function."""

    values: tuple[Scalar, ...]


def walk(block: Block) -> Iterator[Stmt]:
    """Every statement of `block` and of the blocks inside it, in order, a statement before its blocks."""
    stack: list[Iterator[Stmt]] = [iter(block)]
    while stack:
        for stmt in stack[-1]:
            yield stmt
            nested = stmt.blocks()
            if nested:
                stack.extend(iter(inner) for inner in reversed(nested))
                break
        else:
            stack.pop()


def result_of(block: Block) -> tuple[Scalar, ...]:
    """What the block's terminator hands out."""
    last = block[-1] if block else None
    return last.values if isinstance(last, Yield) else ()
