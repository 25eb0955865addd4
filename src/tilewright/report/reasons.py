"""Why a tile is where it is, in one line.

The placed program itself has the answer: an operation's class says where its operands are read and its result comes
out, the target says which memory feeds which, and the program as written says what its user demanded. Nothing here
takes part in placing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.analysis.spaces import (
    accepted,
    fixed_space,
    inherited_field,
    placing_attribute,
    read_tensor,
    sources_of,
)
from tilewright.analysis.uses import Uses, definitions_of, uses_of
from tilewright.errors import Span
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Call, For, Let, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import roots_of, written_operand
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

AT_MOST = 2
"""Consumers named in one reason; the rest are counted."""

Written = dict[tuple[Span, str], MemorySpace]


def written_places(program: Program) -> Written:
    """The memories that the user wrote, by statement and operation."""
    found: Written = {}
    for function in program.functions:
        for stmt in function.walk():
            if isinstance(stmt, Let) and isinstance(stmt.value, Op) and stmt.span.line:
                attribute = placing_attribute(stmt.value)
                space = getattr(stmt.value, attribute) if attribute else None
                if space is not None:
                    found[stmt.span, stmt.value.name] = space
    return found


@dataclass(frozen=True, slots=True)
class Handed:
    """A tensor through which functions hand tiles to each other: who stores into it, and from which memories."""

    spaces: set[MemorySpace] = field(default_factory=set[MemorySpace])
    functions: set[str] = field(default_factory=set[str])


Crossings = dict[Value, Handed]
"""For tensor parameters, and for tensors made in a function: what was stored there before."""


def crossings_of(program: Program) -> Crossings:
    """The tensors of `program` that are no argument of its entry, as each of its functions knows them."""
    stored: dict[Value, Handed] = {}
    for function in program.functions:
        roots = roots_of(function, program)
        for stmt in function.walk():
            if isinstance(stmt, Let) and isinstance(stmt.value, Op):
                tensor = written_operand(stmt.value)
                tiles = [v.type for _, v in stmt.value.operand_items() if isinstance(v.type, TileType)]
                if tensor is not None and tiles and tiles[0].space is not None:
                    handed = stored.setdefault(roots[tensor], Handed())
                    handed.spaces.add(tiles[0].space)
                    handed.functions.add(function.name)
    found: Crossings = {root: handed for root, handed in stored.items() if not _is_parameter(root, program)}
    for function in program.functions:
        if function.kind is FunctionKind.ORCHESTRATION:
            _through_calls(function, program, stored, found)
    return found


def _is_parameter(value: Value, program: Program) -> bool:
    return any(param.value is value for function in program.functions for param in function.params)


def _through_calls(function: Function, program: Program, stored: dict[Value, Handed], found: Crossings) -> None:
    """What the calls of one function hand over through the tensors that it makes."""
    roots = roots_of(function, program)
    arguments = {param.value for param in function.params}
    together: dict[Value, Handed] = {}
    calls = [stmt for stmt in function.walk() if isinstance(stmt, Call)]
    pairs = [
        (param.value, roots[arg])
        for call in calls
        for param, arg in zip(program.function(call.callee).params, call.args, strict=True)
        if isinstance(arg, Value) and isinstance(arg.type, TensorType) and roots[arg] not in arguments
    ]
    for param, root in pairs:
        handed = together.setdefault(root, Handed())
        if param in stored:
            handed.spaces.update(stored[param].spaces)
            handed.functions.update(stored[param].functions)
    for param, root in pairs:
        found[param] = together[root]


class Reasons:
    """The reasons for the tiles of one placed function."""

    def __init__(self, function: Function, target: Target, written: Written, crossings: Crossings) -> None:
        self.function = function
        self.target = target
        self.written = written
        self.crossings = crossings
        self.roots = roots_of(function)
        self.uses: Uses = uses_of(function)
        self.definitions: dict[Value, Stmt] = definitions_of(function)

    def why(self, value: Value) -> str:
        """The reason for `value`, which has a space."""
        stmt = self.definitions.get(value)
        if isinstance(stmt, For):
            return self._carried(value, stmt)
        if not isinstance(stmt, Let) or not isinstance(stmt.value, Op):
            return "joins what the branches give"
        op = stmt.value
        space = value.type.space if isinstance(value.type, TileType) else None
        assert space is not None
        if self.written.get((stmt.span, op.name)) is space:
            return f"written: {placing_attribute(op)}={space.value}"
        attribute = placing_attribute(op)
        fixed = fixed_space(op) if attribute is None else None
        followed = inherited_field(op)
        if fixed is not None:
            return f"{op.name} leaves its result in {space.value}"
        if followed is not None:
            return self._followed(op, followed)
        return "; ".join([*self._crossing(op, space), *self._consumers(value, space)]) or "nothing reads it elsewhere"

    def _carried(self, value: Value, loop: For) -> str:
        pairs = [*zip(loop.iter_args, loop.inits, strict=True), *zip(loop.results, loop.inits, strict=True)]
        for made, init in pairs:
            if made is value and isinstance(init, Value):
                return f"carried by the loop, where {init.name} is"
        return "carried by the loop"

    def _followed(self, op: Op, followed: str) -> str:
        source: Value = getattr(op, followed)
        if followed == op.view_of:
            return f"a view of {source.name}"
        if followed == op.writes:
            return f"{op.name} works in place on {source.name}"
        return f"{op.name} keeps to where {source.name} is"

    # --- hops through DDR ---
    def _crossing(self, op: Op, space: MemorySpace) -> list[str]:
        """Why a load reads what the program itself stored."""
        tensor = read_tensor(op)
        handed = self.crossings.get(self.roots[tensor]) if tensor is not None else None
        if handed is None or not handed.spaces:
            return []
        missing = sorted(s.value for s in handed.spaces if self.target.edge(s, space) is None)
        if missing:
            return [f"through DDR: {self.target.name} has no edge {missing[0]} -> {space.value}"]
        return ["through DDR from " + ", ".join(sorted(handed.functions))]

    # --- consumers ---
    def _consumers(self, value: Value, space: MemorySpace) -> list[str]:
        found = dict.fromkeys(self._readers(value, space, 0))
        named = list(found)[:AT_MOST]
        return named + ([f"and {len(found) - AT_MOST} more"] if len(found) > AT_MOST else [])

    def _readers(self, value: Value, space: MemorySpace, depth: int) -> list[str]:
        found: list[str] = []
        for use in self.uses.get(value, ()):
            op = use.op
            if isinstance(use.stmt, For):
                found.append("the loop carries it on")
            elif isinstance(use.stmt, Yield):
                found.append("handed out of its block")
            elif op is not None and use.field is not None and isinstance(use.stmt, Let):
                found += self._reader(op, use.field, use.stmt, space, depth)
        return found

    def _reader(self, op: Op, name: str, stmt: Let, space: MemorySpace, depth: int) -> list[str]:
        made = stmt.target.type
        if written_operand(op) is not None:
            return [f"stored from {space.value}"]
        if op.view_of == name and depth < 4:
            return self._readers(stmt.target, space, depth + 1)
        if placing_attribute(op) is not None and isinstance(made, TileType) and made.space is not None:
            if self.target.same_memory(made.space, space):
                return self._readers(stmt.target, space, depth + 1) if depth < 4 else []
            only = self._is_only_way(made, space)
            return [f"on the way to {made.space.value}" + (f", which only {space.value} feeds" if only else "")]
        if accepted(op, name, self.target):
            return [f"{op.name} reads {name} in {space.value}"]
        return [f"{op.name} reads {name} where it is"]

    def _is_only_way(self, made: TileType, space: MemorySpace) -> bool:
        assert made.space is not None
        direct = sources_of(self.target, made.space, made)
        ddr = self.target.edge(MemorySpace.DDR, made.space)
        others = [s for s in direct if not self.target.same_memory(s, space) and s is not made.space]
        return space in direct and not others and ddr is None
