"""Boxes of tensors in DDR, as one trip of a loop sees those of another, and whether two of them may meet.

A box speaks of loop variables. Seen from a later trip it stands for what some earlier trip touched: its variable
becomes a new one, which takes the values below that of the present trip, and whatever else the body made becomes
something unknown. Seen from after the loop, its variable takes any value of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.certify.affine import Known, Place, Prover, SetText, Sum, is_empty
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, substitute, values_in
from tilewright.ir.types import ScalarType, TensorType


@dataclass(frozen=True, slots=True)
class Box:
    """Offsets and extents, and loops that give the range of the variables that only this box speaks of."""

    offsets: Shape
    extents: Shape
    loops: tuple[For, ...] = ()

    @property
    def is_constant(self) -> bool:
        return all(isinstance(scalar, int) for scalar in (*self.offsets, *self.extents))

    def put(self, given: dict[Value, Scalar]) -> Box:
        """The box with values replaced, in the ranges of its own variables too."""
        return Box(_put(self.offsets, given), _put(self.extents, given), tuple(_put_loop(x, given) for x in self.loops))


def _put(shape: Shape, given: dict[Value, Scalar]) -> Shape:
    return tuple(substitute(scalar, lambda value: given.get(value, value)) for scalar in shape)


def _put_loop(loop: For, given: dict[Value, Scalar]) -> For:
    start, stop, step = _put((loop.start, loop.stop, loop.step), given)
    return loop.replace(start=start, stop=stop, step=step)


class Homes:
    """Which loops each value of a function is made in: what changes from trip to trip."""

    def __init__(self, function: Function) -> None:
        self.loops: dict[Value, tuple[For, ...]] = {}
        self._block(function.body, ())

    def _block(self, block: Block, loops: tuple[For, ...]) -> None:
        for stmt in block:
            inside = (*loops, stmt) if isinstance(stmt, For) else loops
            for value in stmt.defs():
                self.loops[value] = loops
            for value in stmt.block_args():
                self.loops[value] = inside
            for inner in stmt.blocks():
                self._block(inner, inside)

    def changes(self, value: Value, loop: For) -> bool:
        """Whether `value` is another one in each trip of `loop`."""
        return loop in self.loops.get(value, ())

    def earlier(self, box: Box, loop: For) -> Box:
        """The box of some earlier trip of `loop`, as the present one sees it."""
        return self._renamed(box, loop, before=True)

    def any_trip(self, box: Box, loop: For) -> Box:
        """The box of some trip of `loop`, seen from outside."""
        return self._renamed(box, loop, before=False)

    def _renamed(self, box: Box, loop: For, *, before: bool) -> Box:
        given: dict[Value, Scalar] = {
            value: Value(value.name, ScalarType(value.dtype))
            for value in _mentioned(box)
            if value is not loop.iv and self.changes(value, loop)
        }
        bounds = (loop.start, loop.stop, loop.step)
        if loop.iv not in _mentioned(box):
            return box.put(given) if given else box
        then = Value(f"{loop.iv.name}_before", ScalarType(INDEX))
        given[loop.iv] = then
        start, stop, step = bounds
        if before:  # not beyond the trip before this one
            stop = binary(BinaryKind.ADD, binary(BinaryKind.SUB, loop.iv, step), 1)
        moved = box.put(given)
        return Box(
            moved.offsets, moved.extents, (loop.replace(iv=then, start=start, stop=stop, step=step), *moved.loops)
        )


def _mentioned(box: Box) -> dict[Value, None]:
    ranges = (scalar for loop in box.loops for scalar in (loop.start, loop.stop, loop.step))
    scalars = (*box.offsets, *box.extents, *ranges)
    return {value: None for scalar in scalars if not isinstance(scalar, int) for value in values_in(scalar)}


def known_of(function: Function) -> Known:
    """What the call of a function gives: scalars, and the sizes of tensors."""
    values = [param.value for param in function.params]
    shapes: Iterable[Scalar] = (e for v in values if isinstance(v.type, TensorType) for e in v.type.shape)
    sizes = frozenset(extent for extent in shapes if isinstance(extent, Value))
    return Known(sizes, sizes | frozenset(value for value in values if isinstance(value.type, ScalarType)))


def apart(a: Box, b: Box, place: Place, known: Known) -> bool:
    """Whether the two have no element in common, whatever the values in them are. `place`: where the present access
    stands, whose loop variables both boxes may speak of."""
    if len(a.offsets) != len(b.offsets):
        return False
    for one, two in ((a, b), (b, a)):
        for low, size, other in zip(one.offsets, one.extents, two.offsets, strict=True):
            gap = binary(BinaryKind.SUB, other, binary(BinaryKind.ADD, low, size))
            if isinstance(gap, int) and gap >= 0:
                return True
    if a.is_constant and b.is_constant:
        empty = (isinstance(size, int) and size <= 0 for size in (*a.extents, *b.extents))
        return any(empty)
    around = Place((*place.loops, *a.loops, *b.loops), place.guards)
    prover = Prover(around, known.sizes, guarded=True)
    for one, two in ((a, b), (b, a)):
        for low, size, other in zip(one.offsets, one.extents, two.offsets, strict=True):
            if prover.at_least_zero(Sum.of(binary(BinaryKind.SUB, other, binary(BinaryKind.ADD, low, size)))):
                return True
    return _share_nothing(a, b, around, known)


def apart_across(a: Box, b: Box, place: Place, known: Known, loop: For, blocks: int) -> bool:
    """Whether the present trip, whose box is `a`, misses what an earlier trip of `loop` touched, `b`, unless both run
    on one of `blocks` that take the trips in turn, and so one after the other."""
    own = (each for each in b.loops if not isinstance(each.stop, int) and loop.iv in values_in(each.stop))
    earlier = next((each.iv for each in own), None)  # the one that stays below the present trip
    if earlier is None or not isinstance(loop.step, int):
        return False
    around = Place((*place.loops, *a.loops, *b.loops), place.guards)
    return _share_nothing(a, b, around, known, (loop.iv, earlier, blocks * loop.step))


def _share_nothing(a: Box, b: Box, around: Place, known: Known, turn: tuple[Value, Value, int] | None = None) -> bool:
    """Whether no element is in both. `turn`: two loop variables that are not a multiple of so much apart."""
    text = SetText()
    where = text.place(around, guarded=True)
    if turn is not None:
        one, two = (text.text(value) for value in turn[:2])
        where.append(f"({one} - {two}) mod {turn[2]} != 0")
    elements = tuple(f"x{axis}" for axis in range(len(a.offsets)))
    for box in (a, b):
        for element, low, size in zip(elements, box.offsets, box.extents, strict=True):
            start = text.text(low)
            where.append(f"{start} <= {element} < {start} + {text.text(size)}")
    where += text.sizes(known.sizes)
    return bool(is_empty(text.set(where, elements)))
