"""What the consumers of each value require of it: found once, before anything is rewritten.

`ConsumerSpaceCollector` walks a function and records, for every value, the spaces in which its consumers want it and
whether transposed. What is wanted of a view is wanted of what it looks at; what is wanted of a loop-carried value or
of a branch's result is wanted of everything that flows into it. Only the registry and the facts of the op classes are
asked, so an operation that is added tomorrow is looked through as well.

Values come in two kinds. Some *stay in memory*: parameters, versions made by stores, created tensors that leave the
function. All others become tiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.analysis.views import Orientation, creates, orientation, viewed
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, result_of
from tilewright.ir.op import FromAttribute, Level, Op, is_array
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import Roots, roots_of
from tilewright.ir.types import TensorType
from tilewright.passes.tensor.convert_tensor_to_tile.registry import OpConversionRegistry, input_fields

LOOP_WEIGHT = 8
"""Trips that a loop is taken to make when its count is not constant (assumed)."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form in which a value may be had: where it is (None: wherever the compiler places it), and whether its last
    two dimensions are exchanged."""

    space: MemorySpace | None
    transposed: bool = False

    def flipped(self, flip: bool = True) -> Form:
        return Form(self.space, self.transposed is not flip)

    def __str__(self) -> str:
        return (self.space.value if self.space else "anywhere") + (" transposed" if self.transposed else "")


Wants = dict[Form, int]
"""The forms that consumers want, with how often each is wanted (loops counted)."""


@dataclass(slots=True)
class Web:
    """Values that must live in one place because they flow into one another: carried values, branch results,
    updates of them, and rooms created for them. `producers` are the other values that flow in, with weights."""

    members: list[Value] = field(default_factory=list[Value])
    producers: list[tuple[Value, int]] = field(default_factory=list[tuple[Value, int]])
    wants: Wants = field(default_factory=dict[Form, int])


class ConsumerSpaceCollector:
    """The survey of one function; read its attributes after construction. Linear in the size of the function."""

    def __init__(self, function: Function, program: Program, registry: OpConversionRegistry) -> None:
        self.function = function
        self.registry = registry
        self.roots: Roots = roots_of(function, program)
        self.in_memory: set[Value] = set()
        self.definitions: dict[Value, Op] = {}
        self.order: list[Value] = []
        """values made by tensor operations, in the order in which they are made"""
        self.aliases: dict[Value, tuple[Value, bool]] = {}
        """transposed views: another value, and whether it is seen transposed"""
        self.sources: dict[Value, Value] = {}
        """views and updates: what they look at or write"""
        self.below: dict[Value, Value] = {}
        """versions: the one that was written over, or that flowed in"""
        self.origins: dict[Value, Value] = {}
        """below all views: where a value comes from"""
        self.fixed: dict[Value, MemorySpace | None] = {}
        """values that come out in a space of their own"""
        self.wants: dict[Value, Wants] = {}
        self.plain: set[Value] = set()
        """values that somebody reads as they are, with no wish but that they are not transposed"""
        self.invariant: dict[For, dict[tuple[Value, Form], None]] = {}
        """inputs that every trip of a loop wants whole, in which forms: they are the same in each trip"""
        self._webs: dict[Value, Web] = {}
        self._links: dict[Value, Value] = {}
        self._inputs = {p.value for p in function.params if not p.is_output}
        self._loop: For | None = None
        self._classify()
        self._collect(function.body, 1)
        for value in function.results:
            self._read_plainly(value)
        self._gather_webs()

    # --- what stays in memory ---
    def _classify(self) -> None:
        """Optimistic: every version of what is in memory is in memory, until something computed flows into it."""
        flows: dict[Value, list[Value]] = {}
        computed: list[Value] = []
        created: list[Value] = []
        by_tiles: set[Value] = set()
        self.in_memory.update(p.value for p in self.function.params if isinstance(p.value.type, TensorType))
        for stmt in self.function.walk():
            match stmt:
                case Let(target=target, value=Op() as op) if isinstance(target.type, TensorType):
                    self.in_memory.add(target)
                    self._classify_op(target, op, flows, computed, created)
                case Call():
                    self.in_memory.update(t for t in stmt.targets if isinstance(t.type, TensorType))
                    by_tiles.update(v for v in stmt.uses() if isinstance(v.type, TensorType))
                case For():
                    ends = result_of(stmt.body)
                    for init, arg, end, result in zip(stmt.inits, stmt.iter_args, ends, stmt.results, strict=True):
                        self.below.update({arg: init, result: init} if isinstance(init, Value) else {})
                        self._join((arg, result), (init, end), flows, computed)
                case If():
                    arms = zip(result_of(stmt.then), result_of(stmt.otherwise), strict=True)
                    for result, given in zip(stmt.results, arms, strict=True):
                        self.below.update({result: given[0]} if isinstance(given[0], Value) else {})
                        self._join((result,), given, flows, computed)
                case _:
                    pass
            if isinstance(stmt, Let) and isinstance(stmt.value, Op) and stmt.value.level is Level.TILE:
                by_tiles.update(v for _, v in stmt.value.operand_items() if isinstance(v.type, TensorType))
        self._spread(computed, flows)
        kept = by_tiles.union(v for v in self.function.results if isinstance(v, Value))
        leaving = {self.roots.get(v) for v in kept if v in self.in_memory}
        self._spread([value for value in created if value not in leaving], flows)

    def _classify_op(
        self, target: Value, op: Op, flows: dict[Value, list[Value]], computed: list[Value], created: list[Value]
    ) -> None:
        if op.level is Level.TILE:
            return
        written = getattr(op, op.writes) if op.writes else None
        if isinstance(written, Value):
            self.below[target] = written
        reads = any(access.field == op.writes and not access.writes for access in op.accesses())
        # What has no form on tiles updates its target where that is.
        if isinstance(written, Value) and (not reads or Level.TILE not in op.levels):
            flows.setdefault(written, []).append(target)
        elif creates(op):
            created.append(target)
        else:
            computed.append(target)

    def _join(
        self,
        joined: tuple[Value, ...],
        given: tuple[Scalar, ...],
        flows: dict[Value, list[Value]],
        computed: list[Value],
    ) -> None:
        if not isinstance(joined[0].type, TensorType):
            return
        self.in_memory.update(joined)
        values = [value for value in given if isinstance(value, Value)]
        for value in values:
            flows.setdefault(value, []).extend(joined)
        if len({self.roots.get(value) for value in values}) > 1:
            computed.extend(joined)

    def _spread(self, seeds: Iterable[Value], flows: dict[Value, list[Value]]) -> None:
        todo = list(seeds)
        while todo:
            value = todo.pop()
            if value in self.in_memory:
                self.in_memory.discard(value)
                todo += flows.get(value, ())

    # --- one walk in program order ---
    def _collect(self, block: Block, weight: int) -> None:
        for stmt in block:
            if isinstance(stmt, Let) and isinstance(stmt.value, Op):
                self._op(stmt.target, stmt.value, weight)
            elif isinstance(stmt, For):
                joined = self._joined(stmt.iter_args, stmt.results)
                trips = stmt.trip_count
                inside = weight * (LOOP_WEIGHT if trips is None else max(1, trips))
                self._flow_in(joined, stmt.inits, weight)
                outer = self._loop
                if outer is None and stmt.kind is not LoopKind.PARALLEL:
                    self._loop = stmt
                self._collect(stmt.body, inside)
                self._loop = outer
                self._flow_in(joined, result_of(stmt.body), inside)
            elif isinstance(stmt, If):
                joined = self._joined(stmt.results)
                outer, self._loop = self._loop, None  # what an arm wants is not wanted in every trip
                for arm in stmt.blocks():
                    self._collect(arm, weight)
                    self._flow_in(joined, result_of(arm), weight)
                self._loop = outer

    def _op(self, target: Value, op: Op, weight: int) -> None:
        if op.level is Level.TILE:
            return
        self._requirements(op, weight)
        if not isinstance(target.type, TensorType) or target in self.in_memory:
            return
        self.definitions[target] = op
        self.order.append(target)
        looked_at = viewed(op)
        written = getattr(op, op.writes) if op.writes else None
        if looked_at is not None and orientation(op) is Orientation.TRANSPOSED:
            value, flip = self.resolve(looked_at)
            self.aliases[target] = (value, not flip)
            self.origins[target] = self.origin(value)
        elif looked_at is not None:
            self.sources[target] = looked_at
            self.origins[target] = self.origin(looked_at)
        elif isinstance(op.result_space, MemorySpace):
            self.fixed[target] = op.space_when_lowered()
            if isinstance(written, Value):
                self.want(written, Form(op.result_space), weight)
        elif isinstance(written, Value):
            self._update(target, op, written, weight)
        elif isinstance(op.result_space, FromAttribute):
            self._new_web(target)
        else:
            self.fixed[target] = None

    def _requirements(self, op: Op, weight: int) -> None:
        reqs = self.registry.get_input_reqs(op)
        looked_at = viewed(op)
        for index, input in enumerate(input_fields(type(op))):
            value = getattr(op, input.name)
            if not is_array(value):
                continue
            if index not in reqs and value is not looked_at and input.name != op.writes:
                self._read_plainly(value)
            if index in reqs:
                req = reqs[index]
                transposed = bool(req.trans_kwarg and getattr(op, req.trans_kwarg))
                self.want(value, Form(req.space, transposed), weight)
                old, flip = self.resolve(value)
                if self._loop is not None and old in self._inputs:
                    self.invariant.setdefault(self._loop, {})[old, Form(req.space, transposed is not flip)] = None

    def _read_plainly(self, value: Scalar) -> None:
        if isinstance(value, Value) and isinstance(value.type, TensorType):
            old, flip = self.resolve(value)
            self.plain.update(() if flip else (old,))

    def _update(self, target: Value, op: Op, written: Value, weight: int) -> None:
        """An update happens where its target is, so the two share a web."""
        if self.roots.get(written) in self.in_memory and self.origin(written) in self.in_memory:
            raise UnsupportedError(
                "a view of a tensor cannot be written through",
                span=op.span,
                required="the tensor itself as target",
                found=f"{written.name}, a view of {self.origin(written).name}",
                help="write to the tensor at the offset of the view",
            )
        self._new_web(target)
        self._flow_in((target,), (written,), weight)

    # --- webs ---
    def _new_web(self, value: Value) -> None:
        self._webs[value] = Web([value])
        self._links[value] = value

    def _joined(self, *groups: tuple[Value, ...]) -> tuple[Value, ...]:
        """The first group's values, each in one web with those of the other groups at the same position."""
        for values in zip(*groups, strict=True):
            if isinstance(values[0].type, TensorType) and values[0] not in self.in_memory:
                for value in values:
                    self._new_web(value)
                    self._union(values[0], value)
        return groups[0]

    def _flow_in(self, joined: tuple[Value, ...], given: tuple[Scalar, ...], weight: int) -> None:
        for target, value in zip(joined, given, strict=True):
            if target not in self._links or not isinstance(value, Value):
                continue
            origin = self.origin(value)
            if origin in self._links:
                self._union(target, origin)
            else:
                self._find(target)[1].producers.append((value, weight))

    def _find(self, value: Value) -> tuple[Value, Web]:
        root = value
        while self._links[root] is not root:
            root = self._links[root]
        while self._links[value] is not root:
            self._links[value], value = root, self._links[value]
        return root, self._webs[root]

    def _union(self, a: Value, b: Value) -> None:
        (root, web), (other, absorbed) = self._find(a), self._find(b)
        if root is other:
            return
        if len(web.members) < len(absorbed.members):
            root, web, other, absorbed = other, absorbed, root, web
        self._links[other] = root
        web.members += absorbed.members
        web.producers += absorbed.producers
        del self._webs[other]

    def _gather_webs(self) -> None:
        for value, wants in self.wants.items():
            origin = self.origin(value)
            if origin in self._links:
                web = self._find(origin)[1]
                for form, weight in wants.items():
                    web.wants[form] = web.wants.get(form, 0) + weight

    # --- answers ---
    @property
    def webs(self) -> list[Web]:
        """Every web once."""
        return list(self._webs.values())

    def resolve(self, value: Value) -> tuple[Value, bool]:
        """The value behind a transposed view, and whether it is seen transposed."""
        return self.aliases.get(value, (value, False))

    def origin(self, value: Value) -> Value:
        """What is below all the views of `value`: something in memory, computed, carried or created."""
        return self.origins.get(value, value)

    def version_in_memory(self, value: Value) -> Value:
        """The last version of the tensor of `value` that is in memory."""
        while value not in self.in_memory:
            value = self.below[value]
        return value

    def is_loaded(self, value: Value) -> bool:
        """Whether `value` is a view of memory, or is memory itself: a load can put it anywhere."""
        return self.origin(value) in self.in_memory

    def want(self, value: Value, form: Form, weight: int = 1) -> None:
        """Record that a consumer wants `value` in `form`."""
        value, flip = self.resolve(value)
        wants = self.wants.setdefault(value, {})
        wants[form.flipped(flip)] = wants.get(form.flipped(flip), 0) + weight
