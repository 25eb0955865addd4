"""Forwarding over a whole program: which results of one section stay on chip until the next has read them.

Before:  d_1 = self.f_1(x, m_1, d)       e_1 = self.f_2(d_1, e)
After:   e_1 = self.f_1_to_f_2(x, m_1, e)
Requires sections as functions that an orchestration calls. For each tensor that one call writes and another reads, the
two sections are lifted and joined by rule (`forward`); calls that belong together this way become one call, where
nothing between them depends on both. The joined section is kept only if it compiles, and if the target's prices say
that it is not slower than its parts; else as many of its joins are kept as can be, those of large tensors first.
Refuses nothing: what is not joined goes through DDR as before, and the plan says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import UnionType

from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Block, Call, Stmt
from tilewright.ir.prune import prune
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import Roots, output_positions, roots_of
from tilewright.ir.types import TensorType
from tilewright.sections.flow import Flow, flow_of, makes_room
from tilewright.sections.fold import Member, Origin, fold, hand_over, merge_loads, origins_of
from tilewright.sections.forward import Chain
from tilewright.sections.lift import NoSection, lift
from tilewright.sections.lower import lower
from tilewright.sections.plan import Apart, Decline, Forwarding, Join, NoRoom, Slower
from tilewright.sections.price import Price
from tilewright.sections.refusals import Refusal
from tilewright.sections.rename import rename
from tilewright.sections.section import AllReduce, Load, Phase, Section, Store, tensor_of
from tilewright.targets import Target

Judge = Callable[[Function], Price | str]
"""The price of one section alone, compiled by the passes that follow; or why it does not compile."""
TRIED = 32
"""Sections of a group that is tried join by join when the whole of it is not kept; larger ones are halved first."""


def forward_sections(
    program: Program, target: Target, judge: Judge, phase: Phase = Phase.TEMPLATE, leave: Collection[str] = ()
) -> Program:
    """The program with sections joined; itself when none are. `leave` names functions that stay as they are."""
    return plan_forwarding(program, target, judge, phase, leave).program


def plan_forwarding(
    program: Program, target: Target, judge: Judge, phase: Phase = Phase.TEMPLATE, leave: Collection[str] = ()
) -> Forwarding:
    """What is joined and what is not, with the program that comes of it. n log n in the size of the program, where few
    tensors have several readers."""
    driver = _Driver(program, target, judge, phase, leave)
    functions = {f.name: driver.function(f) for f in program.functions if f.kind is FunctionKind.ORCHESTRATION}
    if not driver.made:
        return Forwarding(program, (), tuple(driver.declines))
    called = {s.callee for f in functions.values() for s in f.walk() if isinstance(s, Call)} | {program.entry}
    kept = [functions.get(f.name, f) for f in program.functions]
    kept = [f for f in kept if f.kind is not FunctionKind.INCORE or f.name in called]
    at = next(n for n, f in enumerate(kept) if f.kind is FunctionKind.ORCHESTRATION)
    joined = program.with_functions((*kept[:at], *driver.made.values(), *kept[at:]))
    return Forwarding(joined, tuple(driver.joins), tuple(driver.declines), tuple(driver.prices))


@dataclass(frozen=True, slots=True)
class _Unit:
    """One call as a section with the program's names. `tensors` maps them to the versions that the call is given,
    `made` to those that it makes, `scalars` to what is passed."""

    call: Call
    section: Section
    tensors: dict[str, Value]
    made: dict[str, Value]
    scalars: dict[str, Scalar]

    @property
    def member(self) -> Member:
        section = self.section
        return Member(section, _named(section, Store | AllReduce), _named(section, Load | AllReduce), frozenset())


@dataclass(frozen=True, slots=True)
class _Hand:
    """Tensor `name` that call number `producer` of a block writes and call number `consumer` reads."""

    name: str
    producer: int
    consumer: int
    root: Value

    @property
    def nbytes(self) -> int | None:
        kind = self.root.type
        assert isinstance(kind, TensorType)
        sizes = [extent for extent in kind.shape if isinstance(extent, int)]
        return -(-prod(sizes) * kind.dtype.bits // 8) if len(sizes) == len(kind.shape) else None


class _Driver:
    """What is shared by all functions of a program."""

    def __init__(
        self, program: Program, target: Target, judge: Judge, phase: Phase, leave: Collection[str]
    ) -> None:  # fmt: skip
        self.program = program
        self.target = target
        self.judge = judge
        self.phase = phase
        self.leave = leave
        self.taken = {function.name for function in program.functions}
        self.lifted: dict[str, Section | Refusal] = {}
        self.made: dict[str, Function] = {}
        self.joins: list[Join] = []
        self.declines: list[Decline] = []
        self.prices: list[tuple[str, Price, Price]] = []

    def function(self, function: Function) -> Function:
        roots = roots_of(function, self.program)
        names = _Names(roots)
        before = len(self.made)
        body = self.block(function.body, roots, names)
        return prune(function.with_body(body)) if len(self.made) > before else function

    def block(self, block: Block, roots: Roots, names: _Names) -> Block:
        """The block with its calls joined; inner blocks first."""
        out: list[Stmt] = []
        for stmt in block:
            inner = stmt.blocks()
            new = tuple(self.block(b, roots, names) for b in inner)
            out.append(stmt.with_blocks(new) if any(a is not b for a, b in zip(new, inner, strict=True)) else stmt)
        given = block if all(a is b for a, b in zip(out, block, strict=True)) else tuple(out)
        return _Block(self, given, roots, names).run()

    def section(self, name: str) -> Section | Refusal:
        """The section that a function is, lifted once."""
        found = self.lifted.get(name)
        if found is None:
            if name in self.leave:
                found = Refusal("lift", NoSection(name, "its tiles are its user's"), name)
            else:
                found = lift(self.program.function(name), self.phase)
            self.lifted[name] = found
        return found

    def name(self, first: str, last: str) -> str:
        count, name = 0, f"{first}_to_{last}"
        while name in self.taken:
            count += 1
            name = f"{first}_to_{last}_{count}"
        self.taken.add(name)
        return name


class _Names:
    """One name for each tensor and scalar of an orchestration."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self.of: dict[Scalar, str] = {}
        self.taken: set[str] = set()

    def tensor(self, value: Value) -> str:
        return self.named(self.roots.get(value, value), value.name)

    def named(self, key: Scalar, wanted: str) -> str:
        found = self.of.get(key)
        if found is None:
            count, found = 0, wanted
            while found in self.taken:
                count += 1
                found = f"{wanted}_{count}"
            self.taken.add(found)
            self.of[key] = found
        return found


class _Block:
    """Joins the calls of one block."""

    def __init__(self, driver: _Driver, block: Block, roots: Roots, names: _Names) -> None:
        self.driver = driver
        self.block = block
        self.roots = roots
        self.names = names
        self.units: dict[int, _Unit] = {}
        self.refused: dict[int, Refusal] = {}
        self.uses: dict[Value, set[int]] = {}
        """the statements that use a tensor in any version, by its root; the terminator has number -1"""
        self.origins: dict[str, Origin] = {}
        self.local: set[Value] = set()
        """tensors that are made in this block, so that nobody else can know them"""
        self.why: dict[_Hand, Refusal] = {}
        self.flow: Flow

    def run(self) -> Block:
        for n, stmt in enumerate(self.block[:-1]):
            if isinstance(stmt, Call):
                self.enter(n, stmt)
        if len(self.units) + len(self.refused) < 2:
            return self.block
        self.flow = flow_of(self.block, self.driver.program)
        hands = self.hands()
        if not hands:
            return self.block
        self.note_uses()
        for hand in hands:
            self.try_rules(hand)
        good = [hand for hand in hands if hand not in self.why]
        self.group(good)
        sections = self.settle(good)
        self.report(hands, sections)
        return self.emit(sections) if sections else self.block

    # --- what there is ---
    def enter(self, n: int, call: Call) -> None:
        """A call of a section; what cannot be lifted keeps its reason."""
        driver = self.driver
        if driver.program.function(call.callee).kind is not FunctionKind.INCORE:
            return
        section = driver.section(call.callee)
        if isinstance(section, Refusal):
            self.refused[n] = section
            return
        function = driver.program.function(call.callee)
        tensors: dict[str, str] = {}
        scalars: dict[str, str] = {}
        given: dict[str, Value] = {}
        passed: dict[str, Scalar] = {}
        for param, arg in zip(function.params, call.args, strict=True):
            if isinstance(param.value.type, TensorType):
                assert isinstance(arg, Value)
                name = tensors[param.value.name] = self.names.tensor(arg)
                if name in given:
                    self.refused[n] = Refusal("2", NoSection(call.callee, f"it is given {name} twice"), call.callee)
                    return
                given[name] = arg
            else:
                name = scalars[param.value.name] = self.names.named(arg, param.value.name)
                passed[name] = arg
        made = {
            tensors[function.params[position].value.name]: target
            for position, target in zip(output_positions(function), call.targets, strict=True)
            if position is not None
        }
        renamed = rename(section, tensors, scalars)
        self.origins |= origins_of(renamed, self.origins)
        self.units[n] = _Unit(call, renamed, given, made, passed)

    def hands(self) -> list[_Hand]:
        """Every tensor that one call writes and a later one reads, in the order of the readers."""
        writer: dict[Value, int] = {}
        found: list[_Hand] = []
        for n, stmt in enumerate(self.block[:-1]):
            if not isinstance(stmt, Call) or not (n in self.units or n in self.refused):
                continue
            params = self.driver.program.function(stmt.callee).params
            reads = self.units[n].member.loads if n in self.units else None
            for param, arg in zip(params, stmt.args, strict=True):
                if not isinstance(arg, Value) or arg not in writer or param.direction.value == "Out":
                    continue
                name = self.names.tensor(arg)
                if reads is None or name in reads:
                    found.append(_Hand(name, writer[arg], n, self.roots[arg]))
            for target in stmt.targets:
                if isinstance(target.type, TensorType):
                    writer[target] = n
        return found

    def note_uses(self) -> None:
        for n, stmt in enumerate(self.block):
            if makes_room(stmt):
                self.local.update(stmt.defs())
            at = n if n < len(self.block) - 1 else -1
            todo = [stmt]
            while todo:
                inner = todo.pop()
                for value in inner.uses():
                    if isinstance(value.type, TensorType):
                        self.uses.setdefault(self.roots.get(value, value), set()).add(at)
                for b in inner.blocks():
                    todo += b

    # --- rules, two by two ---
    def try_rules(self, hand: _Hand) -> None:
        """Keeps the reason why the two sections of `hand`, by themselves, do not join."""
        for n in (hand.producer, hand.consumer):
            if n in self.refused:
                self.why[hand] = self.refused[n]
                return
        if not self.units[hand.consumer].member.stores:
            self.why[hand] = Refusal("lift", NoSection(hand.name, "its reader leaves nothing behind"), hand.name)
            return
        first, second = self.units[hand.producer].section, self.units[hand.consumer].section
        chain = Chain(first, target=self.driver.target)
        refused = hand_over(chain, second, hand.name, self.origins, live=True)
        if refused is not None:
            self.why[hand] = refused

    def group(self, hands: list[_Hand]) -> None:
        """Puts the two sections of each hand into one group, where the order allows it."""
        for hand in hands:
            self.unite(hand)

    def unite(self, hand: _Hand) -> bool:
        flow = self.flow
        a, b = flow.group[hand.producer], flow.group[hand.consumer]
        if a == b:
            return True
        between = flow.between(a, b)
        if between is not None:
            stmt = self.block[between]
            what = stmt.callee if isinstance(stmt, Call) else "a statement"
            self.why[hand] = Refusal("57", Apart(what), self.units[hand.consumer].section.name)
            return False
        flow.merge(a, b)
        return True

    # --- whole groups ---
    def settle(self, hands: list[_Hand]) -> dict[int, _Joined]:
        """The joined section of each group that is kept. A group that is not is tried join by join."""
        found: dict[int, _Joined] = {}
        within: dict[int, list[_Hand]] = {}
        for hand in hands:
            if self.flow.group[hand.producer] == self.flow.group[hand.consumer]:
                within.setdefault(self.flow.group[hand.producer], []).append(hand)
        for group, inside in within.items():
            joined = self.joined(self.flow.members[group])
            if not isinstance(joined, Refusal):
                found[group] = joined
                continue
            for n in self.flow.members.pop(group):
                self.flow.group[n], self.flow.members[n] = n, [n]
            found |= self.one_by_one(inside, joined)
        return found

    def one_by_one(self, hands: list[_Hand], refusal: Refusal) -> dict[int, _Joined]:
        """Joins by the size of what is handed on, each kept only if the two groups are better as one."""
        found: dict[int, _Joined] = {}
        for hand in sorted(hands, key=lambda h: (-(h.nbytes or 0), h.producer, h.consumer)):
            flow = self.flow
            a, b = flow.group[hand.producer], flow.group[hand.consumer]
            if a == b:
                continue
            before = flow.members[a], flow.members[b]
            if not self.unite(hand):
                continue
            joined = self.joined(flow.members[a], [found[g].price for g in (a, b) if g in found])
            if isinstance(joined, Refusal):
                self.why[hand] = joined
                for group, members in zip((a, b), before, strict=True):
                    flow.members[group] = members
                    for n in members:
                        flow.group[n] = group
                continue
            found.pop(b, None)
            found[a] = joined
        for hand in hands:
            if self.flow.group[hand.producer] != self.flow.group[hand.consumer]:
                self.why.setdefault(hand, refusal)
        return found

    def joined(self, members: list[int], parts: Sequence[Price] = ()) -> _Joined | Refusal:
        """The members as one section that compiles and is not slower than they are apart; where groups of them have
        been joined already, the prices of these `parts` together must not be exceeded either."""
        driver = self.driver
        section = fold(self.group_of(members), self.origins, driver.target)
        if isinstance(section, Refusal):
            return section
        alone = [driver.judge(driver.program.function(self.units[n].call.callee)) for n in members]
        known = [found for found in alone if not isinstance(found, str)]
        apart = sum(known, Price()) if len(known) == len(alone) else None
        limit = min(apart, sum(parts, Price()), key=_cycles) if apart is not None and len(parts) == 2 else apart
        # What several of the sections load is loaded once, unless holding it that long is what has no room or is slow.
        found = self.judged(merge_loads(section), apart, limit)
        return self.judged(section, apart, limit) if isinstance(found, Refusal) else found

    def judged(self, section: Section, apart: Price | None, limit: Price | None) -> _Joined | Refusal:
        """A joined section that compiles and is within the limit; `apart` is the price of its parts."""
        function = lower(section, "joined")
        if isinstance(function, Refusal):
            return function
        price = self.driver.judge(function)
        if isinstance(price, str):
            return Refusal("S3", NoRoom(price), section.name)
        if limit is not None and price.cycles > limit.cycles:
            return Refusal("S11", Slower(limit, price), section.name)
        return _Joined(section, function, price, price if apart is None else apart)

    def group_of(self, members: list[int]) -> list[Member]:
        """The units, with those of their stores live that are needed outside of the group, or on which others build."""
        inside = set(members)
        units = {n: self.units[n].member for n in members}
        stores = Counter(name for member in units.values() for name in member.stores)
        found: list[Member] = []
        for n, member in units.items():
            roots = {name: self.roots[self.units[n].tensors[name]] for name in member.stores}
            live = frozenset(
                name
                for name, root in roots.items()
                if root not in self.local or self.uses.get(root, set()) - inside or stores[name] > 1
            )
            found.append(replace(member, live=live))
        return found

    # --- the end ---
    def report(self, hands: list[_Hand], sections: dict[int, _Joined]) -> None:
        driver, flow = self.driver, self.flow
        names = {
            group: driver.name(*(self.units[flow.members[group][at]].call.callee for at in (0, -1)))
            for group in sections
        }
        for group, joined in sections.items():
            joined.function = joined.function.with_(name=names[group])
            driver.made[names[group]] = joined.function
            driver.prices.append((names[group], joined.apart, joined.price))
        for hand in hands:
            calls = [self.block[n] for n in (hand.producer, hand.consumer)]
            producer, consumer = (call.callee for call in calls if isinstance(call, Call))
            span = hand.root.span
            group = flow.group[hand.producer]
            if group == flow.group[hand.consumer] and group in sections:
                kept = any(t.name == hand.name for t in sections[group].section.tensors)
                join = Join(names[group], hand.name, producer, consumer, span, kept, hand.nbytes)
                driver.joins.append(join)
            else:
                driver.declines.append(Decline(hand.name, producer, consumer, span, self.why[hand], hand.nbytes))

    def emit(self, sections: dict[int, _Joined]) -> Block:
        out: list[Stmt] = []
        for group in self.flow.order():
            if group in sections:
                out.append(self.call(group, sections[group]))
            else:
                out += (self.block[n] for n in self.flow.members[group])
        return (*out, self.block[-1])

    def call(self, group: int, joined: _Joined) -> Call:
        """The call of a joined section, on the first versions of its tensors; it makes the last ones."""
        given: dict[str, Value] = {}
        made: dict[str, Value] = {}
        scalars: dict[str, Scalar] = {}
        members = self.flow.members[group]
        for n in members:
            unit = self.units[n]
            given = {**unit.tensors, **given}
            made.update(unit.made)
            scalars.update(unit.scalars)
        section, function = joined.section, joined.function
        args = (*(given[t.name] for t in section.tensors), *(scalars[s.name] for s in section.scalars))
        targets = tuple(made[section.tensors[at].name] for at in _stored(section))
        return Call(targets, function.name, args, span=self.block[members[-1]].span)


@dataclass(slots=True)
class _Joined:
    """A group as one section: its function, its price, and that of its parts."""

    section: Section
    function: Function
    price: Price
    apart: Price


def _cycles(price: Price) -> float:
    return price.cycles


def _stored(section: Section) -> list[int]:
    """The tensors that a section stores, in the order in which the lowered function returns them."""
    return sorted({s.kind.tensor for s in section.stages if isinstance(s.kind, Store | AllReduce)})


def _named(section: Section, kind: UnionType) -> frozenset[str]:
    """The names of the tensors that stages of a kind name."""
    found = {tensor_of(stage.kind) for stage in section.stages if isinstance(stage.kind, kind)}
    return frozenset(section.tensors[tensor].name for tensor in found if tensor is not None)
