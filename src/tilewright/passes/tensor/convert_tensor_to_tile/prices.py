"""What it costs to have a value in several forms: the cheapest tree of loads, moves and transpositions.

A value starts in one form (in DDR, or where it is computed), and each form that consumers want is reached from there
or from another form. Prices are the target's (`Target.route`, cycles); ties go to fewer bytes over DDR, then to fewer
moves, then to the names of the spaces, so the answer depends on what is wanted and never on the order of the program.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import pairwise, permutations
from math import prod

from tilewright.ir.layout import COL_MAJOR, MemorySpace, SLayout
from tilewright.ir.types import TensorType
from tilewright.ops.shape import Transpose
from tilewright.passes.tensor.convert_tensor_to_tile.consumers import Form
from tilewright.targets import NOMINAL, Target

Price = tuple[float, int, int, int]
"""Cycles, bytes over DDR, moves, steps (views, which cost nothing, counted too)."""
FREE: Price = (0.0, 0, 0, 0)
Tree = dict[Form, Form | None]
"""Each form and the one that it is made from, parents first; None: it is made where the value is."""

IN_DDR = Form(MemorySpace.DDR)
NO_ROUTE = 1e12
"""Cycles of a move that the target has no path for: taken only when there is nothing else, and refused later with
the line of the move (`legalize_moves`)."""
BOX_BYTES = 512
"""Bytes of a box that may be read either way (Ascend: 16 x 32 B; pto-isa)."""
EVERY_ELEMENT = "fill"
"""The class of work whose price a transposition has: every element is written once."""
ORDERS_UP_TO = 4
"""Forms whose every order of making is tried; there are hardly ever more than two."""


class Prices:
    """Prices on one target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._trees: dict[tuple[Form, frozenset[Form], TensorType], tuple[Tree, Price]] = {}

    def tree(self, start: Form, wants: Iterable[Form], kind: TensorType) -> tuple[Tree, Price]:
        """The cheapest way to have all of `wants`, starting from `start`, for a value of type `kind`."""
        key = (start, frozenset(wants), kind)
        if key not in self._trees:
            self._trees[key] = self._cheapest(start, sorted(key[1], key=str), kind)
        return self._trees[key]

    def path(self, start: Form, want: Form, kind: TensorType) -> Price:
        """The price of one form."""
        return self.tree(start, (want,), kind)[1]

    def is_view(self, space: MemorySpace | None) -> bool:
        """Whether a transposed tile in `space` is another view of the same bytes: where they lie in boxes that can
        stand either way, which those of an accumulator cannot."""
        if space is None or not self.target.has(space):
            return True
        layout = self.target.layout(space, (16, 16))
        return layout.slayout is not SLayout.NONE_BOX and layout.fractal == BOX_BYTES

    def is_transposed_in(self, space: MemorySpace | None) -> bool:
        """Whether an operation transposes tiles in `space`."""
        spaces = Transpose.field("tile").spaces
        return space is not None and any(self.target.same_memory(space, other) for other in spaces)

    def _cheapest(self, start: Form, wants: list[Form], kind: TensorType) -> tuple[Tree, Price]:
        orders = permutations(wants) if len(wants) <= ORDERS_UP_TO else (tuple(wants),)
        found = [self._grow(start, order, kind) for order in orders]
        return min(found, key=lambda each: (each[1], sorted(map(str, each[0]))))

    def _grow(self, start: Form, order: tuple[Form, ...], kind: TensorType) -> tuple[Tree, Price]:
        """Reach the wanted forms one after another, each from whatever is there already."""
        tree: Tree = {} if start == IN_DDR else {start: None}
        nodes = {start, start.flipped(), *order, *(form.flipped() for form in order)}
        if any(form.transposed for form in order):
            nodes.update(Form(space, turned) for space in Transpose.field("tile").spaces for turned in (False, True))
        nodes.discard(IN_DDR.flipped())
        total = FREE
        for want in order:
            if want in tree:
                continue
            # What inference places may be anywhere: nothing that is loaded too is made from it.
            have = {form for form in (start, *tree) if form.space is not None or start.space is None}
            price, way = self._shortest(have, want, nodes, kind)
            total = plus(total, price)
            for parent, form in pairwise(way):
                tree[form] = None if parent == IN_DDR else parent
        return tree, total

    def _shortest(self, have: set[Form], want: Form, nodes: set[Form], kind: TensorType) -> tuple[Price, list[Form]]:
        queue: list[tuple[Price, list[str], list[Form]]] = [(FREE, [str(form)], [form]) for form in have]
        heapq.heapify(queue)
        done: set[Form] = set()
        while True:
            price, names, way = heapq.heappop(queue)
            if way[-1] == want:
                return price, way
            if way[-1] in done:
                continue
            done.add(way[-1])
            for form in nodes - done:
                step = self._step(way[-1], form, kind)
                passes_anywhere = way[-1].space is None and form.space is not None and len(way) > 1
                if step is not None and not passes_anywhere:
                    heapq.heappush(queue, (plus(price, step), [*names, str(form)], [*way, form]))

    def _step(self, a: Form, b: Form, kind: TensorType) -> Price | None:
        """The price of one load, move or transposition; None when it takes more than one."""
        nbytes = size_of(kind)
        if b == IN_DDR:
            return None
        if a == IN_DDR:
            return self._load(b, nbytes, kind)
        if a.space is b.space:
            if self.is_view(a.space):
                return (0.0, 0, 0, 1)
            cycles = self.target.vector_cycles(EVERY_ELEMENT, nbytes, kind.dtype)
            return (cycles if self.is_transposed_in(a.space) else NO_ROUTE, 0, 1, 1)
        if a.transposed is not b.transposed:
            return None
        return self._route(a.space, b.space, nbytes, kind)

    def _load(self, form: Form, nbytes: int, kind: TensorType) -> Price | None:
        """A load; transposed only where the edge turns columns into the layout of the memory."""
        if form.transposed and form.space is not None:
            edge = self.target.edge(MemorySpace.DDR, form.space)
            if edge is not None and not edge.rearranges(COL_MAJOR, self.target.layout(form.space, (16, 16))):
                return None
        return self._route(MemorySpace.DDR, form.space, nbytes, kind)

    def _route(self, a: MemorySpace | None, b: MemorySpace | None, nbytes: int, kind: TensorType) -> Price:
        if a is None or b is None:
            loads = a is MemorySpace.DDR
            return (0.0, nbytes if loads else 0, 0 if loads else 1, 1)
        route = self.target.route(a, b, kind.dtype, nbytes=nbytes)
        if route is None:
            return (NO_ROUTE, nbytes, 1, 1)
        ends = [space for hop in route.hops for space in (hop.src, hop.dst)]
        return (route.cost, nbytes * ends.count(MemorySpace.DDR), len(route.hops), 1)


def plus(a: Price, b: Price) -> Price:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


def size_of(kind: TensorType) -> int:
    """Bytes of a value of type `kind`; `NOMINAL` when an extent is not known when compiling."""
    extents = [extent for extent in kind.shape if isinstance(extent, int)]
    return prod(extents) * kind.dtype.nbytes if len(extents) == len(kind.shape) else NOMINAL
