"""How a sum of products is built up: one tree for every way to write it.

    acc = matmul(x0, y0)                                     Product(None)
    for k, (acc,) in ...: acc = matmul_acc(acc, x, y)        Loop(Product(None), Product(Carried))
    if k == 0: acc = matmul(..) else: acc = matmul_acc(..)   Branch(Product(None), Product(Carried))
    zeros, or nothing yet, to start from                     Seed

A sum may be computed part by part (a window of its rows and columns at a time) when every value between its start and
its end is read by the next step of the sum and by nothing else. Otherwise `Unchained` says what else reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.analysis.fills import is_undefined, is_zero_fill
from tilewright.analysis.uses import Use, Uses, definitions_of, uses_of
from tilewright.errors import AccumulatorError
from tilewright.ir.function import Function
from tilewright.ir.loops import Contract, Map
from tilewright.ir.nodes import Block, Call, For, If, Let, Stmt, Yield, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import written_operand
from tilewright.ir.types import TensorType, TileType


class Unchained(Exception):
    """The sum cannot be computed part by part; the message is the reason, for a hint."""


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One multiplication, on top of `acc` (None: it starts the sum, or its bias does)."""

    stmt: Let
    op: Op
    form: Contract
    acc: Node | None


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """The value at `index` of those that a loop carries."""

    stmt: For
    index: int
    init: Node
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """The value at `index` of a branch's results."""

    stmt: If
    index: int
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """What the loop around brings along, at `index`."""

    stmt: For
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """A tile of zeros, or one that is not written yet (`zero` False)."""

    stmt: Let
    zero: bool


Node = Product | Loop | Branch | Carried | Seed


def nodes_of(node: Node) -> Iterator[Node]:
    """`node` and all below it, in program order."""
    match node:
        case Product(acc=acc):
            if acc is not None:
                yield from nodes_of(acc)
        case Loop(init=init, body=body):
            yield from nodes_of(init)
            yield from nodes_of(body)
        case Branch(then=then, otherwise=otherwise):
            yield from nodes_of(then)
            yield from nodes_of(otherwise)
        case Carried() | Seed():
            pass
    yield node


def products_of(node: Node) -> list[Product]:
    return [part for part in nodes_of(node) if isinstance(part, Product)]


# --- the function, indexed ----------------------------------------------------------------------------------------
@dataclass(slots=True)
class Index:
    """What stands where in a function."""

    uses: Uses
    defs: dict[Value, Stmt]
    parent: dict[Stmt, Stmt] = field(default_factory=dict[Stmt, Stmt])
    """the statement in whose block a statement stands"""
    block: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    """a number for the block in which a statement stands"""
    position: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    consumed: dict[Value, int] = field(default_factory=dict[Value, int])
    """where a version of a tensor is used up"""
    temporary: dict[Value, Op | None] = field(default_factory=dict[Value, Op | None])
    """results that are collected in a temporary tensor, and the loads of them once those are written"""

    def inside(self, value: Value, stmt: Stmt) -> bool:
        """Whether `value` is made within a block of `stmt`."""
        made: Stmt | None = self.defs.get(value)
        if made is stmt:
            return value in stmt.block_args()
        while made is not None and made is not stmt:
            made = self.parent.get(made)
        return made is stmt


def index_of(function: Function) -> Index:
    """Linear."""
    found = Index(uses_of(function), definitions_of(function))
    _index(function.body, None, found, [0])
    return found


def _index(block: Block, parent: Stmt | None, found: Index, blocks: list[int]) -> None:
    blocks[0] += 1
    number = blocks[0]
    for stmt in block:
        found.block[stmt] = number
        found.position[stmt] = len(found.position)
        if parent is not None:
            found.parent[stmt] = parent
        for value in _consumed_by(stmt):
            if isinstance(value, Value) and isinstance(value.type, TensorType):
                found.consumed.setdefault(value, found.position[stmt])
        for inner in stmt.blocks():
            _index(inner, stmt, found, blocks)


def _consumed_by(stmt: Stmt) -> tuple[Scalar | None, ...]:
    match stmt:
        case Let(value=Op() as op):
            return (written_operand(op),)
        case For():
            return stmt.inits
        case Call():
            return stmt.args
        case _:
            return ()


# --- building -----------------------------------------------------------------------------------------------------
def accumulator_field(op: Op) -> str | None:
    """The field of the accumulator that a product adds to, if it has one (a bias is none)."""
    form = op.loops
    return form.acc if isinstance(form, Contract) and form.acc is not None and form.acc_map is Map.FULL else None


def bias_field(op: Op) -> str | None:
    """The field of the row that a product starts from."""
    form = op.loops
    return form.acc if isinstance(form, Contract) and form.acc is not None and form.acc_map is not Map.FULL else None


def root_of(made: Value, index: Index) -> Value:
    """The end of the sum that `made`, a product, belongs to: followed forward as far as something adds to it."""
    while True:
        onward = _onward(made, index)
        if onward is None:
            return made
        made = onward


def _onward(value: Value, index: Index) -> Value | None:
    for use in index.uses.get(value, ()):
        stmt = use.stmt
        if isinstance(stmt, Let) and isinstance(stmt.value, Op) and use.field == accumulator_field(stmt.value):
            if isinstance(stmt.value.loops, Contract):
                return stmt.target
        owner = index.parent.get(stmt) if isinstance(stmt, Yield) else None
        if isinstance(owner, For):
            at = stmt.values.index(value)  # type: ignore[attr-defined]
            if _accumulates(owner.iter_args[at], index):
                return owner.results[at]
        if isinstance(owner, If):
            result = owner.results[stmt.values.index(value)]  # type: ignore[attr-defined]
            if _onward(result, index) is not None:
                return result
        if isinstance(stmt, For) and value in stmt.inits:
            at = stmt.inits.index(value)
            if _accumulates(stmt.iter_args[at], index):
                return stmt.results[at]
    return None


def _accumulates(arg: Value, index: Index) -> bool:
    """Whether a product in the loop adds to the carried value."""
    for use in index.uses.get(arg, ()):
        op = use.op
        if op is not None and isinstance(op.loops, Contract) and use.field == accumulator_field(op):
            return True
        stmt = use.stmt
        if isinstance(stmt, For) and arg in stmt.inits and _accumulates(stmt.iter_args[stmt.inits.index(arg)], index):
            return True
    return False


def sum_of(root: Value, index: Index) -> Node:
    """The tree that ends in `root`. Raises `Unchained`."""
    builder = _Builder(index)
    node = builder.build(root)
    builder.check(root)
    return node


class _Builder:
    def __init__(self, index: Index) -> None:
        self.index = index
        self.links: set[tuple[Stmt, str | int]] = set()
        self.between: dict[Value, None] = {}

    def build(self, value: Scalar) -> Node:
        if not isinstance(value, Value):
            raise Unchained("the accumulator is no tile")
        stmt = self.index.defs.get(value)
        match stmt:
            case Let(value=Op() as op):
                return self.of_op(value, stmt, op)
            case For() if value in stmt.iter_args:
                self.between[value] = None
                return Carried(stmt, stmt.iter_args.index(value))
            case For():
                at = stmt.results.index(value)
                self.between[value] = None
                self.between[stmt.iter_args[at]] = None
                init = self.link(stmt, at, stmt.inits[at])
                return Loop(stmt, at, init, self.link(stmt.body[-1], at, result_of(stmt.body)[at]))
            case If():
                at = stmt.results.index(value)
                self.between[value] = None
                arms = [self.link(block[-1], at, result_of(block)[at]) for block in stmt.blocks()]
                return Branch(stmt, at, arms[0], arms[1])
            case _:
                raise Unchained("the accumulator comes from outside")

    def link(self, stmt: Stmt, at: str | int, value: Scalar) -> Node:
        self.links.add((stmt, at))
        return self.build(value)

    def of_op(self, value: Value, stmt: Let, op: Op) -> Node:
        form = op.loops
        if isinstance(form, Contract):
            self.between[value] = None
            acc = accumulator_field(op)
            return Product(stmt, op, form, None if acc is None else self.link(stmt, acc, getattr(op, acc)))
        if isinstance(value.type, TileType) and is_zero_fill(op):
            return Seed(stmt, True)
        if isinstance(value.type, TileType) and is_undefined(op):
            return Seed(stmt, False)
        raise Unchained(f"the accumulator is owned by its caller: {op.qualified_name} made it")

    def check(self, root: Value) -> None:
        """Every value between start and end is read by the sum alone."""
        for value in self.between:
            if value is root:
                continue
            for use in self.index.uses.get(value, ()):
                if any((use.stmt, at) not in self.links for at in _places(use)):
                    where = f" in line {use.stmt.span.line}" if use.stmt.span.line else ""
                    raise Unchained(f"the accumulator {value.name!r} is also read elsewhere{where}")


def _places(use: Use) -> list[str | int | None]:
    """Where in its statement a value is read: fields, or positions."""
    stmt = use.stmt
    if isinstance(stmt, For):
        return [at for at, init in enumerate(stmt.inits) if init is use.value]
    if isinstance(stmt, Yield):
        return [at for at, given in enumerate(stmt.values) if given is use.value]
    return [use.field]


def check_defined(node: Node) -> None:
    """Raises `AccumulatorError` where a product adds to a tile that was never written."""
    _undefined(node, {})


def _undefined(node: Node, carried: dict[tuple[Stmt, int], bool]) -> bool:
    match node:
        case Seed(zero=zero):
            return not zero
        case Carried(stmt=stmt, index=at):
            return carried.get((stmt, at), False)
        case Product(stmt=stmt, op=op, form=form, acc=acc):
            if acc is not None and _undefined(acc, carried) and (not form.unless or getattr(op, form.unless) is None):
                raise AccumulatorError(
                    f"{op.qualified_name} adds to {getattr(op, form.acc or '').name!r}, which nothing has written yet",
                    span=stmt.span,
                    required="an accumulator that is defined",
                    found="a tile that was created without a value",
                    help="start with the product itself: matmul for the first block, create(..., init_value=0), "
                    "or matmul_acc(..., init_cond=(k == 0))",
                )
            return False
        case Loop(stmt=stmt, index=at, init=init, body=body):
            carried[stmt, at] = _undefined(init, carried)
            _undefined(body, carried)
            return False
        case Branch(then=then, otherwise=otherwise):  # which arm runs first is not known: taken to be the right one
            for arm in (then, otherwise):
                _undefined(arm, {})
            return False
