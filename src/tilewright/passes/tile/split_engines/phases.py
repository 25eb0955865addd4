"""Phases: which stores happen in one launch, and the function that performs just those.

The work items of a parallel loop are dealt out to cores, and only the end of a launch makes them meet again. So what
reads the result of all items of one loop waits for another launch:

    phase of a store  >=  that of every store whose tensor it (through its operands) loads, later from another loop
    phase of a store  >=  that of every store that loads what this one overwrites

Stores to DDR are all that a section leaves behind, so a phase is a set of stores, and its function is the original
with every other store left out and everything that then serves nothing pruned.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.analysis.cores import CORE, cores_of
from tilewright.ir.function import Direction, Function, Param
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Return, Stmt, Yield, result_of
from tilewright.ir.op import Op
from tilewright.ir.prune import prune
from tilewright.ir.rewrite import Rewriter, clone_block
from tilewright.ir.scalar import Scalar, Value, values_in
from tilewright.ir.storage import roots_of, written_operand
from tilewright.ir.types import TensorType
from tilewright.passes.tile.split_engines.workspaces import Hoist, Workspace
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Phase:
    """The work of one launch: the targets of the stores that it performs; None: all."""

    stores: frozenset[Value] | None
    written: frozenset[Value] = frozenset()
    """the tensors stored to: parameters, or what the function's `create` made"""

    def roots(self, plan: dict[Value, Workspace]) -> set[Value]:
        """The tensors stored to, workspaces as the parameters that they become."""
        return {plan[root].param if root in plan else root for root in self.written}


ALL = Phase(None)


@dataclass(slots=True)
class _Store:
    """One store, with what decides when it may happen. `unit` is the parallel loop whose items perform it; None: it is
    outside every such loop."""

    stmt: Let
    root: Value
    unit: For | None
    position: int
    loops: tuple[For, ...]
    guards: tuple[Scalar, ...]
    """bounds of the loops and conditions of the branches around it"""
    loads: list[_Load] = field(default_factory=list["_Load"])
    phase: int = 0


@dataclass(frozen=True, slots=True)
class _Load:
    root: Value
    position: int
    loops: tuple[For, ...]


def plan_phases(function: Function) -> list[Phase]:
    """The phases in the order in which they are launched."""
    stores = _Stores(function).found
    if len({store.unit for store in stores}) < 2:
        return [ALL]
    _settle(stores)
    made: list[Phase] = []
    for number in sorted({store.phase for store in stores}):
        group = [store for store in stores if store.phase == number]
        made.append(Phase(frozenset(s.stmt.target for s in group), frozenset(s.root for s in group)))
    return made


def _settle(stores: list[_Store]) -> None:
    """Gives each store the earliest phase that its dependences allow: an even one where items are dealt out to cores,
    an odd one where work runs once. What depends on a store of its own loop, or of the rest, may share its phase."""
    for store in stores:
        store.phase = 0 if store.unit is not None else 1
    for _ in range(2 * len(stores) + 2):
        changed = False
        for store in stores:
            for other in stores:
                if other is store or not _after(store, other):
                    continue
                least = other.phase if store.unit is other.unit else other.phase + 1
                least += (least - store.phase) % 2
                if least > store.phase:
                    store.phase, changed = least, True
        if not changed:
            return
    raise AssertionError("statements of a block depend on each other in a circle")


def _after(store: _Store, other: _Store) -> bool:
    """Whether `store` must not happen in an earlier phase than `other`."""
    if any(load.root is other.root and _reaches(other, load.position, load.loops) for load in store.loads):
        return True
    overwritten = any(load.root is store.root and _follows(store, load) for load in other.loads)
    same = store.root is other.root and (other.position < store.position or bool(_carrying(store, other.loops)))
    return overwritten or same


def _reaches(store: _Store, position: int, loops: tuple[For, ...]) -> bool:
    """Whether a load at `position` may read what `store` wrote: in this trip, or in an earlier one."""
    return store.position < position or bool(_carrying(store, loops))


def _follows(store: _Store, load: _Load) -> bool:
    """Whether `store` may overwrite what `load` read."""
    return store.position > load.position or bool(_carrying(store, load.loops))


def _carrying(store: _Store, loops: tuple[For, ...]) -> list[For]:
    """The loops around both that carry the tensor: it outlives a trip of them."""
    shared = [loop for loop in store.loops if loop in loops]
    return [loop for loop in shared if not _inside(store.root, loop)]


def _inside(value: Value, loop: For) -> bool:
    """Whether `value` is made within a trip of `loop`."""
    todo: list[Block] = [loop.body]
    while todo:
        for stmt in todo.pop():
            if value in stmt.defs():
                return True
            todo += stmt.blocks()
    return False


class _Stores:
    """Collects the stores of a function, each with the loads that it depends on."""

    def __init__(self, function: Function) -> None:
        self.roots = roots_of(function)
        self.defs: dict[Value, list[Scalar]] = {}
        self.reads: dict[Value, list[_Load]] = {}
        self.found: list[_Store] = []
        self.position = 0
        self._block(function.body, (), ())
        for store in self.found:
            store.loads = self._loads(store)

    def _block(self, block: Block, loops: tuple[For, ...], guards: tuple[Scalar, ...]) -> None:
        for stmt in block:
            self.position += 1
            if isinstance(stmt, Let):
                self._let(stmt, loops, guards)
            inner = (*loops, stmt) if isinstance(stmt, For) else loops
            for nested in stmt.blocks():
                self._block(nested, inner, (*guards, *_guards(stmt)))
            self._join(stmt)

    def _let(self, stmt: Let, loops: tuple[For, ...], guards: tuple[Scalar, ...]) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            self.defs[stmt.target] = [op]
            return
        written = written_operand(op)
        tensors = [value for _, value in op.operand_items() if isinstance(value.type, TensorType)]
        read = [value for value in tensors if value is not written]
        self.reads[stmt.target] = [_Load(self.roots[value], self.position, loops) for value in read]
        self.defs[stmt.target] = [value for value in op.uses() if value not in tensors]
        if written is not None:
            unit = loops[0] if loops and loops[0].kind is LoopKind.PARALLEL else None
            self.found.append(_Store(stmt, self.roots[written], unit, self.position, loops, guards))

    def _join(self, stmt: Stmt) -> None:
        """What carried values and branch results depend on, bounds and conditions included."""
        outer = [value for value in stmt.uses() if not isinstance(value.type, TensorType)]
        for value in stmt.block_args():
            self.defs.setdefault(value, []).extend(outer)
        for block in stmt.blocks():
            last = block[-1]
            assert isinstance(last, Yield)
            for index, (result, given) in enumerate(zip(stmt.defs(), last.values, strict=True)):
                if isinstance(result.type, TensorType):
                    continue
                self.defs.setdefault(result, []).extend([given, *outer])
                if isinstance(stmt, For):
                    self.defs[stmt.iter_args[index]] += [given]

    def _loads(self, store: _Store) -> list[_Load]:
        """The loads that `store` depends on through values, loop bounds and the conditions around it."""
        seen: set[Value] = set()
        todo: list[Scalar] = [*self.defs[store.stmt.target], *store.guards]
        loads: list[_Load] = []
        while todo:
            scalar = todo.pop()
            for value in values_in(scalar) if not isinstance(scalar, int) else ():
                if value not in seen:
                    seen.add(value)
                    loads += self.reads.get(value, [])
                    todo += self.defs.get(value, [])
        return loads


def _guards(stmt: Stmt) -> tuple[Scalar, ...]:
    match stmt:
        case For():
            return (stmt.start, stmt.stop, stmt.step, *stmt.iter_args[: stmt.conditional])
        case If():
            return (stmt.condition,)
        case _:
            return ()


# --- cutting ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Piece:
    """A function cut out of another one. `sources` names, for each of its parameters, the original parameter or the
    workspace that it takes; `outputs`, for each value that it returns, whose next version that is (None: a result
    of the original's own)."""

    function: Function
    sources: tuple[Value, ...]
    outputs: tuple[Value | None, ...]


def whole(function: Function, target: Target) -> Piece:
    """The function as it is, with the kind of core that runs it."""
    return Piece(on_its_core(function, target), tuple(p.value for p in function.params), ())


def on_its_core(function: Function, target: Target) -> Function:
    """`function` with the attribute that names the one kind of core that it needs; without, when it needs several."""
    cores = cores_of(function, target)
    attrs = tuple((key, value) for key, value in function.attrs if key != CORE)
    if len(cores) == 1 and len(target.cores) > 1:
        attrs = (*attrs, (CORE, next(iter(cores))))
    return function.with_(attrs=attrs)


def cut(
    function: Function, phase: Phase, plan: dict[Value, Workspace], earlier: set[Value], name: str, target: Target
) -> Piece:
    """The function, called `name`, that performs `phase`: other stores left out, workspaces as parameters, what
    serves nothing pruned, parameters that are not used gone. What launches before it have written is `earlier`."""
    stores = phase.stores
    erased = function if stores is None else _Erase(stores).function(function)
    roots = roots_of(erased)
    hoist = Hoist(plan, roots)
    body = hoist.block(erased.body)
    last, old = body[-1], erased.body[-1]
    assert isinstance(last, Return) and isinstance(old, Return)
    results: list[tuple[Scalar, Value | None]] = []
    for before, after in zip(old.values, last.values, strict=True):
        root = roots.get(before) if isinstance(before, Value) else None
        if stores is None or (root is not None and any(roots[store] is root for store in stores)):
            results.append((after, root))
    results += [(version, space) for space, version in hoist.latest.items() if version is not space]
    ended = Return(tuple(value for value, _ in results), span=last.span)
    full = function.with_(
        params=(*function.params, *(Param(space.param, Direction.OUT) for space in plan.values())),
        body=(*body[:-1], ended),
    )
    piece = _named(prune(full).with_(name=name), phase, earlier, tuple(root for _, root in results))
    return Piece(on_its_core(piece.function, target), piece.sources, piece.outputs)


def _named(pruned: Function, phase: Phase, earlier: set[Value], outputs: tuple[Value | None, ...]) -> Piece:
    """The pruned function with values of its own, and its directions."""
    used = _used(pruned)
    params = [param for param in pruned.params if phase.stores is None or param.value in used]
    env: dict[Value, Scalar] = {}
    fresh: list[Param] = []
    for param in params:
        value = Value(param.value.name, param.value.type.substitute(lambda v: env.get(v, v)), param.value.span)
        env[param.value] = value
        fresh.append(Param(value, _direction(param, outputs, earlier)))
    dropped = (CORE,) if phase.stores is None else (CORE, "implicit_outputs")
    attrs = tuple((key, value) for key, value in pruned.attrs if key not in dropped)
    made = Function(pruned.name, tuple(fresh), clone_block(pruned.body, env), pruned.kind, attrs, pruned.span)
    return Piece(made, tuple(param.value for param in params), outputs)


def _direction(param: Param, outputs: tuple[Value | None, ...], earlier: set[Value]) -> Direction:
    """Read only, unless its next version is returned; what an earlier phase wrote is kept."""
    if param.value not in outputs:
        return Direction.IN
    return Direction.INOUT if param.value in earlier else param.direction


def _used(function: Function) -> set[Value]:
    """The values that the body mentions, and those that the types of used parameters mention."""
    used: set[Value] = set()
    for stmt in function.walk():
        for value in (*stmt.uses(), *stmt.defs(), *stmt.block_args()):
            used.add(value)
            used.update(value.type.values())
    for param in function.params:
        if param.value in used:
            used.update(param.value.type.values())
    return used


class _Erase(Rewriter):
    """Leaves out every store that is not in the phase: the version that it would make is the one that it got. A loop or
    branch that then hands a tensor on as it came hands on nothing."""

    def __init__(self, stores: frozenset[Value]) -> None:
        super().__init__()
        self.stores = stores

    def visit_let(self, stmt: Let) -> None:
        written = written_operand(stmt.value) if isinstance(stmt.value, Op) else None
        if written is None or stmt.target in self.stores:
            super().visit_let(stmt)
        else:
            self.bind(stmt.target, self.get(written))

    def visit_for(self, stmt: For) -> None:
        super().visit_for(stmt)
        made = self._out[-1]
        assert isinstance(made, For)
        carried = zip(stmt.results, made.inits, made.iter_args, result_of(made.body), strict=True)
        for result, init, arg, given in carried:
            if given is arg and isinstance(result.type, TensorType):
                self.env[result] = init

    def visit_if(self, stmt: If) -> None:
        super().visit_if(stmt)
        made = self._out[-1]
        assert isinstance(made, If)
        for result, one, other in zip(stmt.results, result_of(made.then), result_of(made.otherwise), strict=True):
            if one is other and isinstance(result.type, TensorType):
                self.env[result] = one
