"""Whether what is read of a buffer was ever written: buffers that start with nothing in them, and are filled by parts.

A tile that collects parts (the result of one section on its way to the next, the tiles of a cut product) must have been
written wherever it is read. All versions of such a buffer are taken together: what it starts as, what parts make of it,
copies, what loops carry and branches give. If one of them is computed as a whole, nothing is asked. Otherwise every
read must lie within the union of all writes, over all trips of the loops around them; an element that is in none of
them is read without ever having been written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.certify.affine import Known, Place, SetText, is_empty, is_never_empty
from tilewright.certify.definitions import Definitions
from tilewright.certify.facts import is_copy
from tilewright.certify.regions import Box, known_of
from tilewright.certify.render import spelled_box
from tilewright.certify.verdict import Notes
from tilewright.ir.function import Function
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import Block, Call, For, If, Let, Return, Scope, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TensorType, TileType

PARTS = 64
"""Writes up to which a union is worked out; buffers that are written in more places are left alone."""


@dataclass(frozen=True, slots=True)
class _Touch:
    stmt: Let
    value: Value
    box: Box
    place: Place


@dataclass(slots=True)
class _Buffer:
    """All versions of one buffer."""

    starts: list[Let] = field(default_factory=list[Let])
    reads: list[_Touch] = field(default_factory=list[_Touch])
    writes: list[_Touch] = field(default_factory=list[_Touch])
    whole: bool = False
    """something is known to fill it, or to come from outside"""


def check_coverage(function: Function) -> Notes:
    """Every read of a buffer that starts with nothing lies within what is written to it."""
    walker = _Walker(function)
    walker.unite(function.body)
    walker.block(function.body, Place())
    for made, source in reversed(walker.views):
        if walker.buffer(made).writes:  # written through the view, in places that only the view knows
            walker.buffer(source).whole = True
    for buffer in walker.buffers.values():
        if buffer.starts and not buffer.whole and len(buffer.writes) <= PARTS:
            for read in buffer.reads:
                walker.ask(buffer, read)
    return walker.notes


class _Walker:
    def __init__(self, function: Function) -> None:
        self.notes = Notes(function.name)
        self.known: Known = known_of(function)
        self.parent: dict[Value, Value] = {}
        self.definitions = Definitions()
        self.spelled = self.definitions.spelled
        self.buffers: dict[Value, _Buffer] = {}
        self.views: list[tuple[Value, Value]] = []
        for param in function.params:
            self.buffer(param.value).whole = True

    # --- versions ---
    def root(self, value: Value) -> Value:
        while (above := self.parent.get(value, value)) is not value:
            self.parent[value] = self.parent.get(above, above)
            value = above
        return value

    def buffer(self, value: Value) -> _Buffer:
        return self.buffers.setdefault(self.root(value), _Buffer())

    def join(self, a: Scalar, b: Scalar) -> None:
        if isinstance(a, Value) and isinstance(b, Value) and isinstance(a.type, TileType | TensorType):
            one, two = self.root(a), self.root(b)
            if one is not two:
                self.parent[two] = one
                held = self.buffers.pop(two, None)
                if held is not None and held.whole:
                    self.buffer(one).whole = True

    def unite(self, block: Block) -> None:
        """Takes together the versions of each buffer."""
        for stmt in block:
            match stmt:
                case Let(value=Op() as op):
                    if op.writes is not None:
                        self.join(getattr(op, op.writes), stmt.target)
                    elif (copied := is_copy(op, stmt.target)) is not None:
                        self.join(copied, stmt.target)
                case For():
                    for values in zip(stmt.inits, stmt.iter_args, result_of(stmt.body), stmt.results, strict=True):
                        for value in values[1:]:
                            self.join(values[0] if isinstance(values[0], Value) else values[1], value)
                case If() | Scope():
                    for inner in stmt.blocks():
                        for given, result in zip(result_of(inner), stmt.defs(), strict=True):
                            self.join(given, result)
                case _:
                    pass
            for inner in stmt.blocks():
                self.unite(inner)

    # --- accesses ---
    def block(self, block: Block, place: Place) -> None:
        for stmt in block:
            match stmt:
                case Let(value=Op() as op):
                    self.operation(stmt, op, place)
                case Let():
                    self.definitions.define(stmt)
                case For():
                    self.block(stmt.body, place.inside(stmt))
                case Call():
                    for value in (*stmt.uses(), *stmt.targets):
                        self.buffer(value).whole = True
                case Return():
                    return
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, place)

    def operation(self, stmt: Let, op: Op, place: Place) -> None:
        accesses = op.accesses()
        made = stmt.target
        if is_copy(op, made) is not None:
            return  # what was never written may be copied, and is no more there than here
        if isinstance(made.type, TileType | TensorType) and op.writes is None:
            if not any(access.writes for access in accesses) and not any(op.operand_items()):
                self.buffer(made).starts.append(stmt)
            else:
                self.buffer(made).whole = True
        if op.view_of is not None:
            self.views.append((made, getattr(op, op.view_of)))
        form = op.loops
        conditional = (
            form.acc if isinstance(form, Contract) and form.unless and getattr(op, form.unless) is not None else None
        )
        for access in accesses:
            value = made if access.field is None else getattr(op, access.field)
            if not isinstance(value, Value) or (access.field == conditional and not access.writes):
                continue
            if access.field is not None and op.field(access.field).scratch:
                continue
            if op.view_of is not None:  # nothing is read before the view is; what is asked is asked of whole buffers
                continue
            box = Box(tuple(map(self.spelled, access.offsets)), tuple(map(self.spelled, access.extents)))
            touch = _Touch(stmt, value, box, place)
            (self.buffer(value).writes if access.writes else self.buffer(value).reads).append(touch)

    # --- the question ---
    def ask(self, buffer: _Buffer, read: _Touch) -> None:
        """Whether some element of the read is in no write, for all arguments."""
        self.notes.count += 1
        if any(write.box == read.box for write in buffer.writes):
            return
        text = SetText()
        where = text.place(read.place, guarded=True)
        elements = tuple(f"x{axis}" for axis in range(len(read.box.offsets)))
        where += _within(text, read.box, elements)
        for write in buffer.writes:
            where.append(f"not ({_some_trip(text, write, elements)})")
        where += text.sizes(self.known.sizes)
        left = text.set(where, elements)
        exact = not text.unknown and all(value in self.known.arguments for value in text.free)
        if is_empty(left) is not False or not exact:
            return
        sizes = " and ".join(text.sizes(self.known.sizes)) or "0 = 0"
        if is_never_empty(left, f"[{', '.join(text.free.values())}] -> {{ : {sizes} }}"):
            start = buffer.starts[0]
            self.notes.fail(
                "coverage",
                f"{read.value.name!r} is read where nothing was ever written",
                read.stmt.span,
                start.span,
                required=f"what {start.target.name!r} collects: "
                + ("; ".join(spelled_box(w.box.offsets, w.box.extents, None) for w in buffer.writes[:8]) or "nothing"),
                found=f"a read of {spelled_box(read.box.offsets, read.box.extents, None)}",
            )


def _within(text: SetText, box: Box, elements: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for element, low, size in zip(elements, box.offsets, box.extents, strict=True):
        start = text.text(low)
        found.append(f"{start} <= {element} < {start} + {text.text(size)}")
    return found


def _some_trip(text: SetText, write: _Touch, elements: tuple[str, ...]) -> str:
    """That an element lies in the write in some trip of the loops around it."""
    inner = SetText(f"w{len(text.free)}_", {}, text.free, text.unknown)
    where = inner.place(write.place, guarded=False)
    where += _within(inner, write.box, elements)
    bound = ", ".join(inner.variables.values())
    return f"exists {bound} : {' and '.join(where)}" if bound else " and ".join(where)
