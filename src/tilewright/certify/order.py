"""Whether what the certificate says is waited for is enough: no engine touches what another may still be using.

The conflicts are derived anew, from the bytes of tiles and the boxes of tensors: two accesses on two engines, one of
them writing. Each must be ordered: by the engines' own order, by what the certificate lists as waited for, and by
what follows from these. Loops are walked twice, so that what one trip leaves to the next is met; a trip of DDR boxes
stands for all earlier ones.

    x = load(a)        MTE2
    y = exp(x)         VECTOR    conflicts with the load: ordered if the certificate lists (load, exp)
    o1 = store(y, o)   MTE3      conflicts with exp
                       MTE2 of the next trip conflicts with exp, which still reads x: ordered by (exp, load, distance 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tilewright.certify.affine import Place
from tilewright.certify.certificate import HazardClaim
from tilewright.certify.clocks import Boxes, Bytes, Entry, Knowledge
from tilewright.certify.definitions import Definitions
from tilewright.certify.facts import Unit, engine_of, tile_bytes
from tilewright.certify.regions import Box, Homes, apart, known_of
from tilewright.certify.verdict import Notes
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

Step = tuple[Stmt, int]
"""A loop and the trip of it, or a branch and the arm of it"""


def check_order(function: Function, target: Target, claims: Iterable[HazardClaim], numbers: dict[Stmt, int]) -> Notes:
    """Every conflict between engines is ordered by `claims`. `numbers`: those of statements."""
    walker = _Walker(function, target, numbers)
    walker.read(claims)
    walker.block(function.body, Place())
    return walker.notes


@dataclass(frozen=True, slots=True)
class _Wait:
    before: Stmt
    loop: For | None
    distance: int


@dataclass(slots=True)
class _State:
    """What is known when a statement is reached."""

    engines: dict[Unit, Knowledge] = field(default_factory=dict[Unit, Knowledge])
    memories: dict[str, Bytes] = field(default_factory=dict[str, Bytes])
    tensors: dict[Value, Boxes] = field(default_factory=dict[Value, Boxes])

    def copy(self) -> _State:
        return _State(
            {engine: known.copy() for engine, known in self.engines.items()},
            {name: held.copy() for name, held in self.memories.items()},
            {root: held.copy() for root, held in self.tensors.items()},
        )

    @staticmethod
    def joined(a: _State, b: _State, since: tuple[int, int]) -> _State:
        """When one of two ways was taken; `since`: the moments from which on each was walked."""
        out = _State()
        for engine in a.engines.keys() | b.engines.keys():
            one, two = (side.engines.get(engine) or Knowledge() for side in (a, b))
            out.engines[engine] = Knowledge.joined(one, two, since)
        for name in a.memories.keys() | b.memories.keys():
            out.memories[name] = Bytes.joined(a.memories.get(name) or Bytes(), b.memories.get(name) or Bytes())
        for root in a.tensors.keys() | b.tensors.keys():
            out.tensors[root] = Boxes.joined(a.tensors.get(root) or Boxes(), b.tensors.get(root) or Boxes())
        return out


@dataclass(frozen=True, slots=True)
class _Ran:
    """One execution of a statement: what its engine knew when it was done, and the trips and arms it was in."""

    path: tuple[Step, ...]
    begins: tuple[int, ...]
    """the moment at which each of `path` began"""
    certain: tuple[bool, ...]
    """whether each of `path` runs whenever what is around it does"""
    known: Knowledge
    moment: int


class _Walker:
    def __init__(self, function: Function, target: Target, numbers: dict[Stmt, int]) -> None:
        self.function = function
        self.target = target
        self.numbers = numbers
        self.notes = Notes(function.name)
        self.waits: dict[Stmt, list[_Wait]] = {}
        self.awaited: set[Stmt] = set()
        self.ran: dict[Stmt, list[_Ran]] = {}
        self.state = _State()
        self.moment = 0
        self.path: list[Step] = []
        self.begins: list[int] = []
        self.certain: list[bool] = []
        self.definitions = Definitions()
        self.spelled = self.definitions.spelled
        self.homes = Homes(function)
        self.known = known_of(function)
        self.roots = roots_of(function)
        self.engines: dict[Stmt, Unit | None] = {}
        self.compared = self.tensors_to_compare()
        self.reported: set[tuple[Stmt, Stmt]] = set()
        self.waited: dict[Stmt, int] = {}
        """what the present statement waits for by itself, up to which moment"""

    # --- claims ---
    def read(self, claims: Iterable[HazardClaim]) -> None:
        """Takes the waits of the certificate; refuses those that name what is not there, or that wait for ever."""
        stmts = {self.numbers[stmt]: stmt for stmt in self.function.walk()}
        for claim in claims:
            before, after = stmts.get(claim.before), stmts.get(claim.after)
            loop = None if claim.loop is None else stmts.get(claim.loop)
            if not isinstance(before, Let) or not isinstance(after, Let) or (claim.loop and not isinstance(loop, For)):
                self.notes.fail("certificate", f"a wait names statements that are not there: {claim}")
                continue
            around = self.homes.loops.get(before.target, ()), self.homes.loops.get(after.target, ())
            inside = claim.distance == 0 or (isinstance(loop, For) and loop in around[0] and loop in around[1])
            if not inside or (claim.distance == 0 and claim.before >= claim.after):
                self.notes.fail(
                    "order",
                    f"a wait is never over: statement {claim.after} waits for statement {claim.before}, "
                    "which does not come before it",
                    after.span,
                    before.span,
                )
                continue
            for stmt, stated in ((before, claim.before_engine), (after, claim.after_engine)):
                engine = self.engine(stmt)
                if engine is None or engine.name != stated:
                    self.notes.fail(
                        "certificate", "a wait names another engine than the one that runs the statement", stmt.span,
                        required="none" if engine is None else engine.name, found=stated,
                    )  # fmt: skip
            self.waits.setdefault(after, []).append(
                _Wait(before, loop if isinstance(loop, For) else None, claim.distance)
            )
            self.awaited.add(before)

    def engine(self, stmt: Let) -> Unit | None:
        if stmt not in self.engines:
            self.engines[stmt] = engine_of(stmt, self.target)
        return self.engines[stmt]

    # --- control flow ---
    def block(self, block: Block, place: Place) -> None:
        for stmt in block:
            match stmt:
                case Let(value=Op()):
                    self.run(stmt, place)
                case Let():
                    self.definitions.define(stmt)
                case For():
                    self.loop(stmt, place)
                case If():
                    self.branch(stmt, place)
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, place)

    def enter(self, stmt: Stmt, index: int, certain: bool, block: Block, place: Place) -> None:
        self.path.append((stmt, index))
        self.begins.append(self.moment)
        self.certain.append(certain)
        self.block(block, place)
        for held in (self.path, self.begins, self.certain):
            held.pop()

    def branch(self, stmt: If, place: Place) -> None:
        start = self.state
        condition = self.spelled(stmt.condition)
        left: list[_State] = []
        since: list[int] = []
        for index, arm in enumerate(stmt.blocks()):
            since.append(self.moment)
            self.state = start.copy() if index == 0 else start
            self.enter(stmt, index, False, arm, place.given(condition, index == 0))
            left.append(self.state)
        self.state = _State.joined(left[0], left[1], (since[0], since[1]))

    def loop(self, stmt: For, place: Place) -> None:
        trips, since = stmt.trip_count, self.moment
        if trips == 0:
            return
        bounds = tuple(map(self.spelled, (stmt.start, stmt.stop, stmt.step)))
        inside = place.inside(stmt.replace(start=bounds[0], stop=bounds[1], step=bounds[2]))
        skipped = None if trips else self.state.copy()
        self.enter(stmt, 0, trips is not None, stmt.body, inside)
        if trips != 1:
            once, again = None if trips else self.state.copy(), self.moment
            self.carry(stmt, since)
            self.enter(stmt, 1, trips is not None, stmt.body, inside)
            if once is not None:
                self.leave(stmt, once, since)
                self.leave(stmt, self.state, since)
                self.state = _State.joined(once, self.state, (since, again))
            else:
                self.leave(stmt, self.state, since)
        else:
            self.leave(stmt, self.state, since)
        if skipped is not None:
            self.state = _State.joined(skipped, self.state, (since, since))

    def carry(self, loop: For, since: int) -> None:
        """What the trip touched, as the next one sees it."""
        for root, held in self.state.tensors.items():
            self.state.tensors[root] = self.moved(held, since, lambda box: self.homes.earlier(box, loop))

    def leave(self, loop: For, state: _State, since: int) -> None:
        for root, held in state.tensors.items():
            state.tensors[root] = self.moved(held, since, lambda box: self.homes.any_trip(box, loop))

    @staticmethod
    def moved(held: Boxes, since: int, move: Callable[[Box], Box]) -> Boxes:
        out = Boxes()
        for entry in held.all():
            moves = entry.moment > since and entry.box is not None and not entry.box.is_constant
            out.add((replace(entry, box=move(entry.box)) if moves and entry.box is not None else entry,))
        return out

    # --- statements ---
    def run(self, stmt: Let, place: Place) -> None:
        engine = self.engine(stmt)
        if engine is None:
            return
        self.moment += 1
        known = self.state.engines.setdefault(engine, Knowledge())
        self.waited = {}
        for wait in self.waits.get(stmt, ()):
            self.wait(known, wait)
        self.bytes(stmt, engine, known)
        self.boxes(stmt, engine, known, place)
        known.clock[engine] = self.moment
        if stmt in self.awaited:
            ran = _Ran(tuple(self.path), tuple(self.begins), tuple(self.certain), known.copy(), self.moment)
            self.ran.setdefault(stmt, []).append(ran)

    def wait(self, known: Knowledge, wait: _Wait) -> None:
        """What the engine knows after waiting: all that the other one knew, if that statement ran for certain."""
        for ran in reversed(self.ran.get(wait.before, [])):
            shared = self.shared(ran, wait)
            if shared is None:
                continue
            self.waited[wait.before] = max(ran.moment, self.waited.get(wait.before, 0))
            doubtful = [i for i in range(shared, len(ran.path)) if not ran.certain[i]]
            if not doubtful:
                known.learn(ran.known)
                return
            # If it did not run, an earlier trip of it may have.
            known.learn_since(ran.known, ran.begins[doubtful[-1]])

    def shared(self, ran: _Ran, wait: _Wait) -> int | None:
        """How many steps of the path of `ran` are those of the present one; None when it is not the one waited for."""
        for index, (then, now) in enumerate(zip(ran.path, self.path, strict=False)):
            if then[0] is not now[0]:
                return index if wait.distance == 0 else None
            if then[0] is wait.loop and wait.distance:
                return index + 1 if then[1] == now[1] - wait.distance else None
            if then[1] != now[1]:
                return None
        return min(len(ran.path), len(self.path)) if wait.distance == 0 else None

    def bytes(self, stmt: Let, engine: Unit, known: Knowledge) -> None:
        """The tiles that a statement reads and writes; scratch is written."""
        op = stmt.value
        assert isinstance(op, Op)
        touched = [(v, op.field(name).scratch) for name, v in op.operand_items() if isinstance(v.type, TileType)]
        makes = bool(touched) or any(access.writes for access in op.accesses())
        if isinstance(stmt.target.type, TileType) and makes:
            touched.append((stmt.target, True))
        for value, writes in sorted(touched, key=lambda item: item[1]):
            kind = value.type
            assert isinstance(kind, TileType)
            memref = kind.memref
            if kind.space is None or memref is None or not self.target.has(kind.space):
                continue
            memory, low, high = self.target.memory(kind.space).name, 0, 1
            if memref.addr is None:  # streamed through registers, and in no one's way
                memory += f" ({memref.name})"
            else:
                low, high = memref.addr, memref.addr + max(memref.nbytes or 0, tile_bytes(kind, self.target))
            held = self.state.memories.setdefault(memory, Bytes())
            entry = Entry(self.moment, stmt, engine, writes)
            for old in held.touch(low, high, entry):
                self.ask(old, entry, known, f"{memory}, where {value.name!r} lies")

    def boxes(self, stmt: Let, engine: Unit, known: Knowledge, place: Place) -> None:
        op = stmt.value
        assert isinstance(op, Op)
        if not any(isinstance(value.type, TensorType) for _, value in op.operand_items()):
            return
        for access in op.accesses():
            value = None if access.field is None else getattr(op, access.field)
            root = self.roots.get(value, value) if isinstance(value, Value) else None
            if root is None or root not in self.compared or not isinstance(root.type, TensorType):
                continue
            box = Box(tuple(map(self.spelled, access.offsets)), tuple(map(self.spelled, access.extents)))
            held = self.state.tensors.setdefault(root, Boxes())
            entry = Entry(self.moment, stmt, engine, access.writes, box)
            for old in held.earlier(entry):
                if self.is_ordered(old, known):
                    continue
                assert old.box is not None
                if not apart(box, old.box, place, self.known):
                    self.ask(old, entry, known, f"{root.name!r} in DDR")
            held.note(entry)

    def tensors_to_compare(self) -> frozenset[Value]:
        """Those that one engine writes and another touches: what all others do needs no order."""
        writers: dict[Value, set[Unit]] = {}
        users: dict[Value, set[Unit]] = {}
        for stmt in self.function.walk():
            if not isinstance(stmt, Let) or not isinstance(stmt.value, Op):
                continue
            if not any(isinstance(value.type, TensorType) for _, value in stmt.value.operand_items()):
                continue
            engine = self.engine(stmt)
            if engine is None:
                continue
            for access in stmt.value.accesses():
                value = None if access.field is None else getattr(stmt.value, access.field)
                if isinstance(value, Value) and isinstance(value.type, TensorType):
                    root = self.roots.get(value, value)
                    users.setdefault(root, set()).add(engine)
                    if access.writes:
                        writers.setdefault(root, set()).add(engine)
        return frozenset(root for root in writers if len(users[root]) > 1)

    def is_ordered(self, old: Entry, known: Knowledge) -> bool:
        """Whether an earlier access is known to be done, or the statement waits for it by itself."""
        return self.waited.get(old.stmt, 0) >= old.moment or known.covers(old.engine, old.moment)

    def ask(self, old: Entry, new: Entry, known: Knowledge, where: str) -> None:
        self.notes.count += 1
        if self.is_ordered(old, known) or (old.stmt, new.stmt) in self.reported:
            return
        self.reported.add((old.stmt, new.stmt))
        first, second = ("writes" if entry.writes else "reads" for entry in (old, new))
        self.notes.fail(
            "order",
            f"{new.engine} {second} {where}, while {old.engine} may still be at it",
            new.stmt.span,
            old.stmt.span,
            required=f"statement {self.numbers[new.stmt]} waits for {self.numbers[old.stmt]}, which {first} there",
            found="nothing in the certificate orders the two",
        )
