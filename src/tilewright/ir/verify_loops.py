"""What every loop function satisfies, in either form, before and after every pass.

Values
  - A value is defined once, and used only where its definition has been passed, inside the block that holds it.
  - A loop variable is used inside its loop only; what a block of the structured form owns, inside that block only.
  - A buffer is used where a buffer is wanted and nowhere else; a pointer is named or passed to a function outside.
Types
  - A name has the type of what it names: dtype, lanes, pointer or not.
  - Both sides of an operator have one dtype (`and`, `or` take conditions), and so have the arms of a choice.
  - What is stored has the dtype of its buffer; there are as many indices as dimensions; indices, offsets, extents and
    bounds are INDEX.
  - A condition is a BOOL or a number: `x` means `x != 0`.
  - Lanes agree: an expression has one number of lanes, a scalar stands for all of them; bounds and regions have none.
    What is stored to one element has one lane.
  - A call that is not pure stands alone: made for its effect, or named.
Blocks
  - Blocks hold statements of the loop level only, and end in no terminator; a branch has no results.
  - One form: blocks with predicates and thread loops (structured), or launches and aliases (lowered).
  - A region names a buffer that is known there, with an offset and an extent per dimension; a matched buffer has the
    dtype and the extents of its region, leading ones of 1 left out. Annotations name regions, and dimensions, that
    exist.
  - A thread loop names its threads, no other loop does, and runs from 0 by 1. Some launch says how many
    threads of a name there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from tilewright.errors import TilewrightError, VerifyError
from tilewright.ir.buffers import (
    AddressOf,
    Broadcast,
    BufferType,
    Extern,
    HandleType,
    Likely,
    Load,
    Ramp,
    Region,
    buffer_type,
    lanes_of,
    named_type,
)
from tilewright.ir.dtypes import INDEX, DType
from tilewright.ir.loop_level import (
    Alias,
    Allocate,
    Attribute,
    ComputeBlock,
    Evaluate,
    Launch,
    Loop,
    LoopFunction,
    LoopKind,
    OpCall,
    Store,
    While,
)
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.op import Op, is_array
from tilewright.ir.scalar import Binary, BinaryKind, Choice, Const, Expr, Scalar, Unary, Value, dtype_of

STATEMENTS = (
    Alias, Allocate, Attribute, ComputeBlock, Evaluate, If, Launch, Let, Loop, OpCall, Store, While,
)  # fmt: skip


def verify_loops(function: LoopFunction) -> None:
    """Raises `VerifyError`, placed at the guilty statement, unless every invariant above holds."""
    verifier = _Verifier()
    for symbol in function.symbols:
        verifier.define(symbol)
    for param in function.params:
        verifier.define(param)
    try:
        for param in function.params:
            verifier.type(param)
    except TilewrightError as error:
        raise error.at(function.span) from None
    verifier.block(function.body)
    verifier.launches(function)
    form_of(function)


def form_of(function: LoopFunction) -> str | None:
    """``"structured"`` or ``"lowered"``; None for a function that is both, having nothing that tells them apart."""
    found: dict[str, Stmt] = {}
    for stmt in function.walk():
        if isinstance(stmt, ComputeBlock) or (isinstance(stmt, Loop) and stmt.kind is LoopKind.THREAD):
            found.setdefault("structured", stmt)
        elif isinstance(stmt, Launch | Alias):
            found.setdefault("lowered", stmt)
    if len(found) == 2:
        first, second = found.values()
        raise VerifyError(
            "this function mixes the two forms of the loop level",
            span=second.span,
            found=f"{_what(first)} and {_what(second)}",
            help="lower_blocks makes the lowered form of a structured one",
        )
    return next(iter(found), None)


def _what(stmt: Stmt) -> str:
    return "a thread loop" if isinstance(stmt, Loop) else f"a {type(stmt).__name__}"


class _Verifier:
    def __init__(self) -> None:
        self.known: set[Value] = set()
        self.ever: set[Value] = set()
        self.recent: list[Value] = []
        """what is known, in the order of definition"""

    # --- values ---
    def define(self, value: Value) -> None:
        self.require(value not in self.ever, f"{value.name!r} is defined twice", "one definition for each value")
        self.ever.add(value)
        self.known.add(value)
        self.recent.append(value)

    def require(self, holds: bool, message: str, required: str, found: str | None = None) -> None:
        if not holds:
            raise VerifyError(message, required=required, found=found)

    def type(self, value: Value) -> None:
        """The extents of a buffer."""
        if isinstance(value.type, BufferType):
            for extent in value.type.shape:
                self.index(extent, f"an extent of {value.name!r}")
                negative = isinstance(extent, int) and extent < 0
                self.require(not negative, f"{value.name!r} has a negative extent", "at least 0", str(extent))

    # --- blocks ---
    def block(self, block: Block, own: Iterable[Value] = ()) -> None:
        before = len(self.recent)
        for value in own:
            self.define(value)
        for stmt in block:
            try:
                self.stmt(stmt)
            except TilewrightError as error:
                raise error.at(stmt.span) from None
        self.forget(before)

    def forget(self, count: int) -> None:
        """All but the first `count` values that are known are known no more."""
        self.known.difference_update(self.recent[count:])
        del self.recent[count:]

    def stmt(self, stmt: Stmt) -> None:
        what = f"{type(stmt).__name__} is no statement of the loop level"
        self.require(isinstance(stmt, STATEMENTS), what, "statements of ir.loop_level, If, and Let of a scalar")
        match stmt:
            case Store():
                self.store(stmt)
            case Let():
                self.let(stmt)
            case Allocate():
                self.allocate(stmt)
                self.define(stmt.buffer)
            case Alias():
                self.buffer(stmt.source)
                self.index(stmt.offset, "the offset of an alias")
                self.type(stmt.buffer)
                self.require(
                    isinstance(stmt.buffer.type, BufferType), f"the alias {stmt.buffer.name!r} is no buffer", "a buffer"
                )
                self.define(stmt.buffer)
            case Evaluate():
                self.whole(stmt.call)
            case OpCall():
                self.operation(stmt)
            case ComputeBlock():
                self.compute(stmt)
            case _:
                self.compound(stmt)

    def compound(self, stmt: Stmt) -> None:
        match stmt:
            case Loop():
                for bound in (stmt.start, stmt.stop, stmt.step):
                    self.index(bound, "a bound of a loop")
                self.require(stmt.step != 0, "a loop's step is 0", "a step other than 0")
                threads = stmt.kind is LoopKind.THREAD
                said = "a thread loop names its threads, and no other loop does"
                there = f"{stmt.kind.value}, thread {stmt.thread!r}"
                self.require(bool(stmt.thread) is threads, said, 'such as pl.loop.thread("core", 0, 4)', there)
                runs = not threads or (stmt.start == 0 and stmt.step == 1)
                self.require(runs, "a thread loop counts its threads", "a start of 0, a step of 1")
                self.block(stmt.body, (stmt.iv,))
            case Launch():
                if stmt.extent is not None:
                    self.index(stmt.extent, "the extent of a launch")
                self.block(stmt.body, (stmt.iv,))
            case While():
                self.condition(stmt.condition)
                self.block(stmt.body)
            case If():
                self.condition(stmt.condition)
                self.require(not stmt.results, "a branch of the loop level has no results", "state lies in buffers")
                self.block(stmt.then)
                self.block(stmt.otherwise)
            case _:
                assert isinstance(stmt, Attribute)
                self.require(stmt.node in self.known, f"{stmt.node.name!r} does not exist here", "a definition before")
                self.block(stmt.body)

    def launches(self, function: LoopFunction) -> None:
        launches = [stmt for stmt in function.walk() if isinstance(stmt, Launch)]
        said = {launch.thread for launch in launches if launch.extent is not None}
        for launch in launches:
            if launch.thread not in said:
                raise VerifyError(
                    f"no launch says how many threads {launch.thread!r} has",
                    span=launch.span,
                    help=f'pl.loop.launch("{launch.thread}", 4) in one place',
                )

    # --- statements ---
    def store(self, stmt: Store) -> None:
        self.element(stmt.buffer, stmt.indices)
        self.scalar(stmt.value)
        self.dtype(stmt.value, stmt.buffer.dtype, f"what is stored to {stmt.buffer.name!r}")
        lanes = self.common((*stmt.indices, stmt.value))
        places = max(map(lanes_of, stmt.indices), default=1)
        many = f"{lanes} lanes are stored to {places} places of {stmt.buffer.name!r}"
        self.require(places == lanes, many, "an index that is a vector of as many lanes")

    def let(self, stmt: Let) -> None:
        self.require(not isinstance(stmt.value, Op), "an operation is named at the loop level", "an OpCall")
        value = cast("Scalar", stmt.value)
        if isinstance(value, Extern):
            self.whole(value)
        elif isinstance(value, AddressOf):
            self.address(value)
        else:
            self.scalar(value)
        expected = named_type(value)
        wrong = f"{stmt.target.name!r} has another type than what it names"
        self.require(stmt.target.type is expected, wrong, repr(expected), repr(stmt.target.type))
        self.define(stmt.target)

    def allocate(self, stmt: Allocate) -> None:
        """All but the definition."""
        self.require(
            isinstance(stmt.buffer.type, BufferType), f"{stmt.buffer.name!r} is allocated and no buffer", "a buffer"
        )
        self.type(stmt.buffer)
        given: Any = dict(stmt.annotations).get("dim_align", ())
        rank = buffer_type(stmt.buffer).rank
        listed = cast("tuple[Any, ...]", given if isinstance(given, tuple) else (given,))
        wanted = f"tuples of a dimension below {rank}, a factor and an offset"
        fine = all(_aligns(part, rank) for part in listed)
        self.require(fine, f"dim_align of {stmt.buffer.name!r} is none", wanted, repr(listed))

    def compute(self, stmt: ComputeBlock) -> None:
        self.condition(stmt.where)
        before = len(self.recent)
        for match in stmt.matches:
            self.region(match.source)
            self.type(match.buffer)
            shape, extents = buffer_type(match.buffer).shape, match.source.extents
            dropped = len(extents) - len(shape)
            fits = dropped >= 0 and extents[dropped:] == shape and all(extent == 1 for extent in extents[:dropped])
            self.require(fits, f"{match.buffer.name!r} has not the extents of its region", f"{extents}", f"{shape}")
            same = match.buffer.dtype is match.source.buffer.dtype
            self.require(same, f"{match.buffer.name!r} has not the dtype of its region", "an alias, for another dtype")
            self.define(match.buffer)
        for alloc in stmt.allocs:
            self.allocate(alloc)
            self.define(alloc.buffer)
        for region in (*stmt.reads, *stmt.writes):
            self.region(region)
        for key, regions in (("explicit_read_region", stmt.reads), ("explicit_write_region", stmt.writes)):
            positions: Any = dict(stmt.annotations).get(key, ())
            listed = cast("tuple[Any, ...]", positions if isinstance(positions, tuple) else (positions,))
            there = all(isinstance(at, int) and 0 <= at < len(regions) for at in listed)
            wanted = f"positions below {len(regions)}"
            self.require(there, f"{key} names a region that block {stmt.name!r} lacks", wanted, repr(listed))
        self.block(stmt.body)
        self.forget(before)

    def operation(self, stmt: OpCall) -> None:
        bound = {tile for tile, _ in stmt.bindings}
        for tile, region in stmt.bindings:
            self.region(region)
            rank = len(getattr(tile.type, "shape", ()))
            dropped = len(region.extents) - rank
            fits = dropped >= 0 and all(extent == 1 for extent in region.extents[:dropped])
            wrong = f"the region of {tile.name!r} has another rank than the tile"
            self.require(fits, wrong, f"{rank}, and before those extents of 1", str(len(region.extents)))
        if stmt.result is not None:
            self.region(stmt.result)
        for value in stmt.op.uses():
            free = is_array(value) and value not in bound
            self.require(not free, f"the tile {value.name!r} of an operation lies nowhere", "a region for each tile")
            exists = value in bound or value in self.known
            self.require(exists, f"{value.name!r} does not exist here", "a definition before")

    # --- expressions ---
    def buffer(self, value: Scalar) -> None:
        self.require(
            isinstance(value, Value) and isinstance(value.type, BufferType), "a buffer is wanted here", "a buffer"
        )
        name = cast("Value", value).name
        exists = f"a definition of {name!r} around or before"
        self.require(value in self.known, f"the buffer {name!r} does not exist here", exists)

    def element(self, buffer: Value, indices: tuple[Scalar, ...]) -> None:
        self.buffer(buffer)
        rank = buffer_type(buffer).rank
        wrong = f"{buffer.name!r} has {rank} dimension{'s' * (rank != 1)}"
        self.require(len(indices) == rank, wrong, "one index for each", str(len(indices)))
        for index in indices:
            self.scalar(index)
            self.dtype(index, INDEX, f"an index of {buffer.name!r}")

    def region(self, region: Region) -> None:
        self.buffer(region.buffer)
        rank, name = buffer_type(region.buffer).rank, region.buffer.name
        fits = len(region.offsets) == len(region.extents) == rank
        self.require(fits, f"a region of {name!r} has another rank", f"{rank} offsets and extents")
        for part in (*region.offsets, *region.extents):
            self.index(part, f"a region of {name!r}")

    def index(self, scalar: Scalar, what: str) -> None:
        """An INDEX of one lane."""
        self.scalar(scalar)
        self.dtype(scalar, INDEX, what)
        self.require(lanes_of(scalar) == 1, f"{what} is a vector", "one lane", f"{lanes_of(scalar)}")

    def condition(self, scalar: Scalar) -> None:
        self.scalar(scalar)
        self.require(lanes_of(scalar) == 1, "a condition of a statement is a vector", "one lane")

    def dtype(self, scalar: Scalar, wanted: DType, what: str) -> None:
        found = dtype_of(scalar)
        self.require(found is wanted, f"{what} has another dtype", str(wanted), str(found))

    def common(self, scalars: Iterable[Scalar]) -> int:
        """The number of lanes that the scalars have together."""
        lanes = {lanes_of(scalar) for scalar in scalars} - {1}
        self.require(
            len(lanes) <= 1,
            "vectors of different lanes meet",
            "one number of lanes",
            " and ".join(map(str, sorted(lanes))),
        )
        return max(lanes, default=1)

    def scalar(self, scalar: Scalar) -> None:
        """A number: no buffer, no pointer, nothing with an effect."""
        if isinstance(scalar, (int, Const)):
            return
        if isinstance(scalar, Value):
            self.require(scalar in self.known, f"{scalar.name!r} does not exist here", "a definition around or before")
            number = not isinstance(scalar.type, HandleType) and not is_array(scalar)
            self.require(number, f"{scalar.name!r} is no number", "a number", repr(scalar.type))
            return
        self.require(
            not isinstance(scalar, AddressOf), "a pointer is named, or passed to a function outside", "a number"
        )
        if isinstance(scalar, Extern):
            effect = f"{scalar.name} is not pure and stands inside an expression"
            self.require(scalar.pure, effect, "a name of its own: x = pl.loop.extern(...), or pure=True")
            self.whole(scalar)
            return
        children = scalar.children()
        if isinstance(scalar, Load):
            self.element(scalar.buffer, scalar.indices)
            children = scalar.indices
        for child in children:
            self.scalar(child)
        self.common(children)
        self.agree(scalar)

    def agree(self, scalar: Expr) -> None:
        """The dtypes inside one expression."""
        match scalar:
            case Binary() if scalar.kind not in (BinaryKind.AND, BinaryKind.OR):
                self.dtype(scalar.rhs, dtype_of(scalar.lhs), f"the right side of {scalar.kind.value!r}")
            case Choice():
                self.dtype(scalar.otherwise, dtype_of(scalar.then), "the other arm of a choice")
            case Ramp():
                for part in scalar.children():
                    self.index(part, "a part of a ramp")
                self.require(scalar.lanes >= 1, "a ramp has no lanes", "at least 1")
            case Broadcast():
                self.require(lanes_of(scalar.value) == 1, "a vector is broadcast", "one lane")
            case Binary() | Unary() | Load() | Likely():
                pass
            case _:
                raise VerifyError(f"{type(scalar).__name__} is no expression of the loop level")

    def address(self, pointer: AddressOf) -> None:
        self.buffer(pointer.buffer)
        for part in (pointer.offset, pointer.extent):
            if part is not None:
                self.index(part, f"a part of a pointer to {pointer.buffer.name!r}")

    def whole(self, call: Extern) -> None:
        """The arguments of a call, which may be pointers."""
        for arg in call.args:
            if isinstance(arg, AddressOf):
                self.address(arg)
            elif isinstance(arg, Value) and isinstance(arg.type, HandleType):
                self.require(arg in self.known, f"{arg.name!r} does not exist here", "a definition before")
            else:
                self.scalar(arg)
        self.common(call.args)


def _aligns(part: Any, rank: int) -> bool:
    """Whether `part` says how one of `rank` dimensions is aligned."""
    if not isinstance(part, tuple) or len(cast("tuple[Any, ...]", part)) != 3:
        return False
    numbers = cast("tuple[Any, ...]", part)
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    return whole and 0 <= numbers[0] < rank and numbers[1] >= 1
