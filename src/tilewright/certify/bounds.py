"""Every access within its tensor or tile, and every valid shape within its tile: proved, guarded or assumed.

Asked per dimension, of the boxes that operations state. ``proved``: in every trip, for all arguments. ``guarded``: an
`if` of the program around the access sees to it. ``assumed``: it rests on the arguments of the call, or on what the
run reads; the condition is listed. What fails in some trip whatever the arguments are is a finding.

    for i in pl.range(0, 64, 16):
        x = pl.tile.load(a, [i, 0], [16, 64])        # proved where a has 64 rows; a finding where it has 60
        y = pl.tile.load(a, [start, 0], [16, 64])    # assumed: 0 <= start and start + 16 <= 64
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.certify.affine import Answer, Known, Place, never_negative
from tilewright.certify.definitions import Definitions
from tilewright.certify.render import Names, spelled_box, spelled_scalar
from tilewright.certify.verdict import Assumption, Notes
from tilewright.errors import Span
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, Call, For, If, Let, Stmt
from tilewright.ir.op import Access, Op
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, substitute, values_in
from tilewright.ir.types import ScalarType, TensorType, TileType

PROVED, GUARDED, ASSUMED = "proved", "guarded", "assumed"


@dataclass(frozen=True, slots=True)
class Bound:
    """What holds of one access: `dims` has ``proved``, ``guarded`` or ``assumed`` per dimension."""

    stmt: Stmt
    what: str
    """``reads x``, ``writes out``, ``valid shape of y``"""
    box: str
    dims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """``0 <= low`` and ``end <= limit``, unless one of `unless` is 0 or less: what must hold of a function's arguments,
    in every trip of the loops of `place`."""

    low: Scalar
    end: Scalar
    limit: Scalar
    unless: Shape
    place: Place
    reason: str
    span: Span

    @property
    def scalars(self) -> Shape:
        """What must be at least 0."""
        return self.low, binary(BinaryKind.SUB, self.limit, self.end)

    @property
    def condition(self) -> str:
        """The demand for people, by names, with the loops that it is asked in."""
        low, end, limit = (_bare(spelled_scalar(scalar, None)) for scalar in (self.low, self.end, self.limit))
        sides = [f"0 <= {low}"] * (not _holds(self.low)) + [f"{end} <= {limit}"]
        text = f"0 <= {low} <= {limit}" if low == end else " and ".join(sides)
        scalars = (self.low, self.end, self.limit, *self.unless)
        named = {value for s in scalars if not isinstance(s, int) for value in values_in(s)}
        around = ", ".join(_range(loop) for loop in self.place.loops if loop.iv in named)
        return f"{text} for every {around}" if around else text


def _range(loop: For) -> str:
    """``i in range(0, n, 1)``"""
    bounds = (_bare(spelled_scalar(scalar, None)) for scalar in (loop.start, loop.stop, loop.step))
    return f"{loop.iv.name} in range({', '.join(bounds)})"


def _bare(text: str) -> str:
    """Without the brackets around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if index == len(text) - 1 else text
    return text


def _holds(scalar: Scalar) -> bool:
    return isinstance(scalar, int) and scalar >= 0


@dataclass(slots=True)
class Bounds:
    """The bounds of one function, in order, and what it demands of its arguments."""

    notes: Notes
    found: list[Bound] = field(default_factory=list[Bound])
    demands: list[Demand] = field(default_factory=list[Demand])

    @property
    def assumptions(self) -> list[Assumption]:
        """What is demanded of the arguments, once each."""
        listed = {d.condition: Assumption(d.condition, d.reason, d.span, self.notes.function) for d in self.demands}
        return list(listed.values())


def check_bounds(function: Function, names: Names, callees: Mapping[str, tuple[Function, Bounds]]) -> Bounds:
    """The bounds of `function`; what the functions that it calls demand is asked of the arguments of each call."""
    walker = _Walker(function, names, callees)
    walker.block(function.body, Place())
    return walker.bounds


class _Walker:
    def __init__(self, function: Function, names: Names, callees: Mapping[str, tuple[Function, Bounds]]) -> None:
        self.names = names
        self.callees = callees
        self.bounds = Bounds(Notes(function.name))
        self.definitions = Definitions()
        self.spelled = self.definitions.spelled
        values = [param.value for param in function.params]
        shapes = [extent for v in values if isinstance(v.type, TensorType) for extent in v.type.shape]
        sizes = frozenset(extent for extent in shapes if isinstance(extent, Value))
        self.known = Known(sizes, sizes | frozenset(v for v in values if isinstance(v.type, ScalarType)))
        self.asked: dict[tuple[Shape, Shape, Place], str | None] = {}

    # --- statements ---
    def block(self, block: Block, place: Place) -> None:
        for stmt in block:
            match stmt:
                case Let(value=Op() as op):
                    self.operation(stmt, op, place)
                case Let():
                    self.definitions.define(stmt)
                case For():
                    bounds = (self.spelled(stmt.start), self.spelled(stmt.stop), self.spelled(stmt.step))
                    same = bounds == (stmt.start, stmt.stop, stmt.step)
                    loop = stmt if same else stmt.replace(start=bounds[0], stop=bounds[1], step=bounds[2])
                    self.block(stmt.body, place.inside(loop))
                case If():
                    condition = self.spelled(stmt.condition)
                    self.block(stmt.then, place.given(condition, True))
                    self.block(stmt.otherwise, place.given(condition, False))
                case Call():
                    self.call(stmt, place)
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, place)

    def operation(self, stmt: Let, op: Op, place: Place) -> None:
        for access in op.accesses():
            if access.field is not None:
                value: Value = getattr(op, access.field)
                self.access(stmt, op, value, access, place)
        kind = stmt.target.type
        if isinstance(kind, TileType) and kind.view.valid_shape is not None:
            extents = enumerate(zip(kind.valid, kind.shape, strict=True))
            dims = [self.valid(stmt, axis, valid, size, place) for axis, (valid, size) in extents]
            box = spelled_box((0,) * kind.rank, kind.valid, self.names)
            self.bounds.found.append(Bound(stmt, f"valid shape of {stmt.target.name}", box, tuple(dims)))

    def access(self, stmt: Let, op: Op, value: Value, access: Access, place: Place) -> None:
        kind = value.type
        assert isinstance(kind, TensorType | TileType)
        verb = "writes" if access.writes else "reads"
        dims: list[str] = []
        for axis, (offset, extent, limit) in enumerate(zip(access.offsets, access.extents, kind.shape, strict=True)):
            low, size = self.spelled(offset), self.spelled(extent)
            end = binary(BinaryKind.ADD, low, size)
            reason = f"{op.qualified_name} {verb} axis {axis} of {value.name!r}"
            demand = Demand(low, end, limit, (size,), place, reason, stmt.span)
            dims.append(self.ask("bounds", demand, f"{op.qualified_name} {verb} outside {value.name!r}"))
        box = spelled_box(access.offsets, access.extents, self.names)
        self.bounds.found.append(Bound(stmt, f"{verb} {value.name}", box, tuple(dims)))

    def valid(self, stmt: Let, axis: int, valid: Scalar, size: Scalar, place: Place) -> str:
        name = stmt.target.name
        extent = self.spelled(valid)
        reason = f"the valid shape of {name!r} in dimension {axis}"
        demand = Demand(extent, extent, size, (), place, reason, stmt.span)
        return self.ask("valid shapes", demand, f"the valid shape of {name!r} does not lie within the tile")

    def call(self, stmt: Call, place: Place) -> None:
        """What the callee demands of its arguments, asked of those that are given."""
        callee = self.callees.get(stmt.callee)
        if callee is None:
            return
        function, bounds = callee
        given: dict[Value, Scalar] = {}
        for param, arg in zip(function.params, stmt.args, strict=True):
            given[param.value] = self.spelled(arg)
            if isinstance(param.value.type, TensorType) and isinstance(arg, Value) and isinstance(arg.type, TensorType):
                for extent, actual in zip(param.value.type.shape, arg.type.shape, strict=True):
                    if isinstance(extent, Value):
                        given[extent] = self.spelled(actual)
        for demand in bounds.demands:
            asked = _asked_with(demand, given, place)
            self.ask("bounds", asked, f"{demand.reason} goes outside, called with these arguments")

    # --- questions ---
    def ask(self, fact: str, demand: Demand, message: str) -> str:
        """How it is known that the demand holds; a finding where it does not."""
        self.bounds.notes.count += 1
        scalars = demand.scalars
        if all(_holds(scalar) for scalar in scalars):
            return PROVED
        key = (scalars, demand.unless, demand.place)
        if key not in self.asked:
            self.asked[key] = self.answer(demand)
        answer = self.asked[key]
        if answer == ASSUMED:
            self.bounds.demands.append(demand)
        if answer is None:
            self.bounds.notes.fail(fact, message, demand.span, required=demand.condition, found="it fails in some trip")
        return answer or ASSUMED

    def answer(self, demand: Demand) -> str | None:
        place = demand.place
        plain = never_negative(demand.scalars, demand.unless, place, self.known, guarded=False)
        if plain is Answer.PROVED:
            return PROVED
        if place.guards:
            plain = never_negative(demand.scalars, demand.unless, place, self.known, guarded=True)
            if plain is Answer.PROVED:
                return GUARDED
        return None if plain is Answer.FAILS else ASSUMED


def _asked_with(demand: Demand, given: Mapping[Value, Scalar], place: Place) -> Demand:
    """What a callee demands, of the arguments of one call."""

    def put(scalar: Scalar) -> Scalar:
        return substitute(scalar, lambda value: given.get(value, value))

    inside = tuple(
        loop.replace(start=put(loop.start), stop=put(loop.stop), step=put(loop.step)) for loop in demand.place.loops
    )
    guards = tuple((put(condition), holds) for condition, holds in demand.place.guards)
    around = Place((*place.loops, *inside), (*place.guards, *guards))
    return Demand(
        put(demand.low), put(demand.end), put(demand.limit), tuple(map(put, demand.unless)), around,
        demand.reason, demand.span,
    )  # fmt: skip
