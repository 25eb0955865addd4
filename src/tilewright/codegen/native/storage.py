"""Which memory each tile and each created tensor has: decided before a line of code is written.

A *storage* is a stretch of the kernel's workspace. Every array has a set of storages that it may lie in. An operation
takes over the storage of an operand that dies there and that it may share (`Liveness`, `shareable`); otherwise its
result has a storage of its own. A tile carried by a loop has one storage for all trips: what is yielded is copied
into it, unless it lies there already, as an accumulator does. Storages that are never live together share addresses.

Tiles that only operations of one group read (`groups`) have no storage. What a group reads is held until its end, and
what it makes is there from its beginning: its loops are one.

Two copies are saved. A load from a tensor that its function never writes is a *view* of the tensor. A result whose
only use is a store is computed where it is stored (*direct*), if nothing touches that tensor in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from tilewright.analysis.index_maps import affine_map
from tilewright.analysis.liveness import Liveness, live_ranges, shareable
from tilewright.codegen.native.carries import carried_in_place
from tilewright.codegen.native.groups import Group, Runs
from tilewright.codegen.native.passed import passed_tensors
from tilewright.codegen.native.scope import reinterprets
from tilewright.ir.function import Function, Param, Program
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Contract, Index, Update
from tilewright.ir.nodes import Block, Call, For, If, Let, Scope, Stmt, Yield
from tilewright.ir.op import Op, is_array
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import output_positions, roots_of, written_operand
from tilewright.ir.types import TensorType, TileType

ALIGNMENT = 64


@dataclass(slots=True, eq=False)
class Storage:
    """A stretch of workspace. `nbytes` None: known only when running, taken from the heap then."""

    number: int
    nbytes: int | None
    first: int
    last: int
    offset: int = 0


@dataclass(slots=True)
class Plan:
    """What was decided for one function."""

    storages: list[Storage] = field(default_factory=list[Storage])
    own: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    """the storage that a value begins: results of operations, carried values, results of branches"""
    shared: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """results that lie where an operand lies: in place, or the next version"""
    views: set[Value] = field(default_factory=set[Value])
    """loads that are views of their tensor"""
    direct: dict[Value, Let] = field(default_factory=dict[Value, Let])
    """results that are computed where this store puts them"""
    returned: dict[Value, int] = field(default_factory=dict[Value, int])
    """created tensors that lie in the caller's memory for this result"""
    staged: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    """carried values whose next value is copied twice, since it lies where another one is written"""
    groups: dict[Let, Group] = field(default_factory=dict[Let, Group])
    """for each operation of a group, the group"""
    nbytes: int = 0


def plan_storage(function: Function, program: Program, mixed: bool) -> Plan:
    """`mixed`: some caller passes one tensor as two arguments, so that a load may not be a view."""
    return _Planner(function, program, mixed).run()


def nbytes_of(kind: TensorType | TileType) -> int | None:
    """Bytes of the physical array; None where an extent is known only when running."""
    extents = [extent for extent in kind.shape if isinstance(extent, int)]
    return prod(extents) * kind.dtype.nbytes if len(extents) == len(kind.shape) else None


Homes = frozenset[Storage]
NOWHERE: Homes = frozenset()
"""Memory that is not the workspace: parameters, results."""


class _Planner:
    def __init__(self, function: Function, program: Program, mixed: bool) -> None:
        self.function = function
        self.program = program
        self.live: Liveness = live_ranges(_with_symbols(function))
        self.roots = roots_of(function, program)
        self.plan = Plan()
        self.homes: dict[Value, Homes] = {}
        self.exact: set[Value] = set()
        """values that begin where their storage begins and lie in it without gaps"""
        self.users = _users(function)
        self.written = frozenset(self.root(v) for v in _written(function, program))
        self.mixed = mixed
        self.carries = carried_in_place(function)
        self.passed = passed_tensors(function, program)
        self.stored: set[Let] = set()
        """stores whose tile is computed in its place"""
        self.runs = Runs(self.users, self.viewed, self.takes_part, self.root, mixed)

    def run(self) -> Plan:
        self._returned()
        self.block(self.function.body)
        self.plan.nbytes = _pack(self.plan.storages)
        return self.plan

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)

    def _returned(self) -> None:
        """Tensors made at the top and returned lie in the caller's memory from the start."""
        made = {s.target for s in self.function.body if isinstance(s, Let) and isinstance(s.target.type, TensorType)}
        returned = [(i, self.root(v)) for i, v in enumerate(self.function.results) if isinstance(v, Value)]
        for position, root in returned:
            if root in made and sum(other is root for _, other in returned) == 1:
                self.plan.returned[root] = position

    # --- storages -------------------------------------------------------------------------------------------------
    def fresh(self, value: Value, first: int | None = None, last: int = 0) -> None:
        """`value` gets a storage of its own, alive at least from `first` to `last`."""
        kind = value.type
        assert isinstance(kind, (TensorType, TileType))
        start, _ = self.live.range_of(value)
        storage = Storage(len(self.plan.storages), nbytes_of(kind), start if first is None else first, last)
        self.plan.storages.append(storage)
        self.plan.own[value] = storage
        self.exact.add(value)
        self.settle(value, frozenset((storage,)))

    def settle(self, value: Value, homes: Homes) -> None:
        """`value` may lie in `homes`, which live as long as it does."""
        self.homes[value] = homes
        start, end = self.live.range_of(value)
        for storage in homes:
            storage.first = min(storage.first, start)
            storage.last = max(storage.last, end)

    def dies_by(self, value: Value, time: int) -> bool:
        """Whether nothing that may lie where `value` does is read after `time`, and it is all of its storage."""
        homes = self.homes.get(value, NOWHERE)
        return bool(homes) and value in self.exact and all(storage.last <= time for storage in homes)

    # --- statements -----------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        ends = 0
        for position, stmt in enumerate(block):
            if position >= ends and isinstance(stmt, Let) and stmt not in self.stored:
                found = self.runs.group(block, position)
                if found is not None:
                    group, ends = found
                    self.group(group)
            if stmt in self.plan.groups:
                continue
            match stmt:
                case Let(target=target, value=Op() as op) if is_array(target):
                    self.let(block, position, target, op)
                case For():
                    self.loop(stmt)
                case If():
                    self.branches(stmt)
                case Scope():
                    self.block(stmt.body)
                    for result, value in zip(stmt.results, _yielded(stmt.body), strict=True):
                        self.alias(result, value)
                case Call():
                    self.call(stmt)
                case _:
                    pass

    def group(self, group: Group) -> None:
        """Storages of what the group makes for others, and those of what it reads held until its end."""
        begin, end = (2 * self.live.begins[stmt] for stmt in (group.stmts[0], group.stmts[-1]))
        for stmt in group.stmts:
            op, target = stmt.value, stmt.target
            assert isinstance(op, Op)
            self.plan.groups[stmt] = group
            written = written_operand(op)
            if written is not None:
                self.plan.shared[target] = written
                self.alias(target, written)
            elif target in group.kept:
                self.fresh(target, begin)
        for stmt in group.stmts:
            for value in stmt.uses():
                for storage in self.homes.get(value, NOWHERE):
                    storage.last = max(storage.last, end + 1)

    def alias(self, value: Value, other: Scalar) -> None:
        if is_array(value) and isinstance(other, Value):
            self.settle(value, self.homes.get(other, NOWHERE))
            if other in self.exact:
                self.exact.add(value)

    def let(self, block: Block, position: int, target: Value, op: Op) -> None:
        stmt = block[position]
        time = 2 * self.live.begins[stmt]
        written = getattr(op, op.writes) if op.writes else None
        if isinstance(written, Value):
            in_place = target in self.carries.written and written in self.homes
            if isinstance(target.type, TensorType) or in_place or self.dies_by(written, time):
                self.plan.shared[target] = written
                self.alias(target, written)
            else:
                self.fresh(target, time)
            return
        if target in self.plan.returned:
            self.settle(target, NOWHERE)
            return
        source = self.viewed(op, target)
        if source is not None:
            self.view(target, op, source)
            return
        store = self.store_of(block, position, target, op)
        if store is not None:
            self.plan.direct[target] = store
            self.stored.add(store)
            self.settle(target, NOWHERE)
            return
        dying = self.dying(op, target, time)
        if dying is not None:
            self.plan.shared[target] = dying
            self.alias(target, dying)
            return
        # From the time of reading on, else it could overlap an operand that it may not share.
        self.fresh(target, time)

    def takes_part(self, stmt: Let) -> bool:
        """Whether the statement's result lies where something else has decided."""
        return stmt in self.stored or stmt.target in self.plan.returned

    def dying(self, op: Op, target: Value, time: int) -> Value | None:
        """The operand whose storage the result takes over."""
        may = shareable(op, target) if op.inplace else frozenset[Value]()
        given = [value for _, value in op.operand_items() if value in self.homes]  # in order, for equal text each time
        for value in given:
            if value in may and self.dies_by(value, time):
                same = [other for other in given if self.homes[other] & self.homes[value]]
                if all(other in self.exact for other in same):  # else one is a window on it, read at other places
                    return value
        return None

    def view(self, target: Value, op: Op, source: Value) -> None:
        self.plan.views.add(target)
        self.settle(target, self.homes.get(source, NOWHERE))
        a, b = source.type, target.type
        assert isinstance(a, (TensorType, TileType)) and isinstance(b, (TensorType, TileType))
        if source in self.exact and (reinterprets(op) or _looks_alike(op, a, b)):
            self.exact.add(target)

    def viewed(self, op: Op, target: Value) -> Value | None:
        """The array that the result may be a view of: no element moves."""
        form = op.loops
        if not isinstance(form, Index) or not isinstance(target.type, TileType):
            return None
        source: Value = getattr(op, form.source)
        found = affine_map(op, form.map, target.type.rank)
        if op.view_of is not None:
            return source if found is not None or (reinterprets(op) and source in self.exact) else None
        if source.dtype is not target.dtype or target.type.view.pad is not Pad.NULL:
            return None
        if found is None or not all(any(column) for column in zip(*found.coefficients, strict=True)):
            return None
        if isinstance(source.type, TileType):
            return source if found.is_identity and source.type.shape == target.type.shape else None
        if self.mixed or self.root(source) in self.written:
            return None
        users = self.users.get(target, [])
        ops = [user.value for user in users if isinstance(user, Let) and isinstance(user.value, Op)]
        whole = target.type.valid == target.type.shape
        if any(reinterprets(used) for used in ops):
            return None
        if not whole and (len(ops) < len(users) or any(viewing(used) for used in ops)):
            return None  # a view of the tile could look at its physical shape, which the tensor need not have
        unit = found.coefficients[-1][-1] == 1
        return source if unit or all(isinstance(used.loops, Contract) for used in ops) else None

    def store_of(self, block: Block, position: int, target: Value, op: Op) -> Let | None:
        """The store that is the only use of `target`, if the result can be computed where it goes."""
        users = self.users.get(target, [])
        if len(users) != 1 or not isinstance(users[0], Let) or not isinstance(target.type, TileType):
            return None
        store = users[0]
        form = store.value.loops if isinstance(store.value, Op) else None
        if not isinstance(form, Update) or not isinstance(store.value, Op) or store not in block[position + 1 :]:
            return None
        tensor = written_operand(store.value)
        if tensor is None or getattr(store.value, form.source) is not target or tensor.dtype is not target.dtype:
            return None
        if target.type.view.pad is not Pad.NULL or not _writes_all(store.value, form, target.type):
            return None
        if isinstance(op.loops, Contract) and not _rows_are_dense(tensor):
            return None  # multiplications write whole vectors of a row
        between = block[position + 1 : block.index(store, position)]
        made = {value for stmt in between for value in stmt.defs()}
        touched = any(self.root(v) is self.root(tensor) for stmt in between for v in _touched(stmt))
        if touched or made.intersection(store.value.uses()):
            return None
        reads = any(self.root(v) is self.root(tensor) for v in op.uses())
        return None if reads else store

    # --- structure ------------------------------------------------------------------------------------------------
    def loop(self, stmt: For) -> None:
        begin, end = self.live.begins[stmt], self.live.ends[stmt]
        passed = self.passed[stmt]
        carried = [v for v in stmt.inits if isinstance(v, Value) and isinstance(v.type, TensorType)]
        tensor_homes = frozenset[Storage]().union(*(self.homes.get(v, NOWHERE) for v in carried))
        for arg, init in zip(stmt.iter_args, stmt.inits, strict=True):
            if not is_array(arg) or not isinstance(init, Value):
                continue
            if arg in passed:
                self.settle(arg, tensor_homes)
                continue
            dies = arg in self.carries.passed or self.dies_by(init, 2 * begin)
            if isinstance(init.type, TileType) and init in self.homes and dies:
                self.plan.shared[arg] = init
                self.alias(arg, init)
            else:
                self.fresh(arg, 2 * begin, 2 * end + 1)
            for storage in self.homes[arg]:
                storage.last = max(storage.last, 2 * end + 1)
        self.block(stmt.body)
        self.stage(stmt, end)
        for result, arg in zip(stmt.results, stmt.iter_args, strict=True):
            self.alias(result, arg)

    def stage(self, stmt: For, end: int) -> None:
        """What is yielded from where another carried value is about to be written goes by way of a copy."""
        pairs = [(a, g) for a, g in zip(stmt.iter_args, _yielded(stmt.body), strict=True) if self.homes.get(a)]
        for _, given in pairs:  # read after the copies were made, the last of them before anything is carried
            for kept in self.homes.get(given, NOWHERE) if isinstance(given, Value) else ():
                kept.last = max(kept.last, 2 * end)
        for arg, given in pairs:
            if not isinstance(given, Value) or given is arg:
                continue
            if given in self.exact and self.homes[given] == self.homes[arg]:
                continue
            if any(self.homes.get(given, NOWHERE) & self.homes[other] for other, _ in pairs):
                kind = arg.type
                assert isinstance(kind, (TensorType, TileType))
                storage = Storage(len(self.plan.storages), nbytes_of(kind), 2 * end - 2, 2 * end + 1)
                self.plan.storages.append(storage)
                self.plan.staged[arg] = storage

    def branches(self, stmt: If) -> None:
        for inner in stmt.blocks():
            self.block(inner)
        for result, *given in zip(stmt.results, *map(_yielded, stmt.blocks()), strict=True):
            if isinstance(result.type, TileType):
                self.fresh(result, 2 * self.live.begins[stmt])
            elif is_array(result):
                arms = [self.homes.get(v, NOWHERE) for v in given if isinstance(v, Value)]
                self.settle(result, NOWHERE.union(*arms))

    def call(self, stmt: Call) -> None:
        """What a call writes lies where its argument does: in a loop that is not where the tensor started."""
        positions = output_positions(self.program.function(stmt.callee), self.program)
        for target, position in zip(stmt.targets, positions, strict=True):
            if not is_array(target):
                continue
            if position is None:
                self.fresh(target)
            else:
                self.alias(target, stmt.args[position])


def _with_symbols(function: Function) -> Function:
    """The function with extents that are read from its arrays as parameters, which is what they are to liveness."""
    params = {param.value: param for param in function.params}
    for value in [value for param in function.params for value in param.value.type.values()]:
        params.setdefault(value, Param(value))
    return function.with_(params=tuple(params.values()))


def _looks_alike(op: Op, source: TensorType | TileType, target: TensorType | TileType) -> bool:
    """Whether a view has the shape of what it looks at, and every element in its place."""
    found = affine_map(op, op.loops.map, len(target.shape)) if isinstance(op.loops, Index) else None
    return found is not None and found.is_identity and source.shape == target.shape


def viewing(op: Op) -> bool:
    """Whether the operation looks at its operand's physical shape."""
    return op.view_of is not None or (isinstance(op.loops, Index) and op.writes is None)


def _yielded(block: Block) -> tuple[Scalar, ...]:
    last = block[-1]
    return last.values if isinstance(last, Yield) else ()


def _writes_all(op: Op, form: Update, kind: TileType) -> bool:
    """Whether the store moves each element of the tile's valid part to a place of its own, columns to columns."""
    found = affine_map(op, form.map, kind.rank)
    accesses = [access for access in op.accesses() if access.field == form.target]
    if found is None or any(not access.writes for access in accesses) or len(accesses) != 1:
        return False
    if found.coefficients[-1][-1] != 1:
        return False
    extents = accesses[0].extents
    lead = len(extents) - kind.rank
    return lead >= 0 and all(e == 1 for e in extents[:lead]) and tuple(extents[lead:]) == tuple(kind.valid)


def _rows_are_dense(tensor: Value) -> bool:
    kind = tensor.type
    return not isinstance(kind, TensorType) or kind.strides is None or kind.strides[-1] == 1


def _users(function: Function) -> dict[Value, list[Stmt]]:
    """The statements that read each value; a statement is listed once per reading."""
    found: dict[Value, list[Stmt]] = {}
    for stmt in function.walk():
        for value in stmt.uses():
            found.setdefault(value, []).append(stmt)
    return found


def _written(function: Function, program: Program) -> Iterator[Value]:
    """Every DDR tensor value that a statement of the function writes."""
    for stmt in function.walk():
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            tensor = written_operand(stmt.value)
            if tensor is not None:
                yield tensor
        elif isinstance(stmt, Call):
            params = program.function(stmt.callee).params
            yield from (a for a, p in zip(stmt.args, params, strict=True) if p.is_output and isinstance(a, Value))


def _touched(stmt: Stmt) -> Iterator[Value]:
    """The values that a statement and those inside it read."""
    todo = [stmt]
    while todo:
        current = todo.pop()
        yield from current.uses()
        for inner in current.blocks():
            todo += inner


def _pack(storages: list[Storage]) -> int:
    """Offsets: storages that are live together do not overlap. First fit in order of beginning; returns the bytes."""
    active: list[Storage] = []
    total = 0
    for storage in sorted((s for s in storages if s.nbytes is not None), key=lambda s: (s.first, -(s.nbytes or 0))):
        active = [other for other in active if other.last >= storage.first]
        needed = -(-(storage.nbytes or 0) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for other in sorted(active, key=lambda s: s.offset):
            if other.offset - offset >= needed:
                break
            offset = max(offset, other.offset + -(-(other.nbytes or 0) // ALIGNMENT) * ALIGNMENT)
        storage.offset = offset
        active.append(storage)
        total = max(total, offset + needed)
    return total
