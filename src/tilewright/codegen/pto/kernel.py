"""One function of the program as one `func.func`: control flow, grids, and every operation by its spelling.

A parallel loop at the top of a function is the grid: block `b` of `n` does the items `b, b + n, …`. A function in which
something outside such loops writes to DDR, or a loop reads what another one writes, is left to a single block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.analysis.cores import core_of
from tilewright.codegen.pto.arithmetic import Arithmetic, element_name
from tilewright.codegen.pto.grid import Grid
from tilewright.codegen.pto.registry import SPECIAL
from tilewright.codegen.pto.text import Name, Text
from tilewright.codegen.pto.tiles import Tiles
from tilewright.codegen.pto.views import Tensors, pointer_type
from tilewright.errors import TilewrightError, UnsupportedError
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Function
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Elementwise, Map
from tilewright.ir.nodes import Block, For, If, Let, Stmt, Yield
from tilewright.ir.op import Field, Kind, Level, Op, Unsupported, is_array
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.flags import Flags
    from tilewright.codegen.pto.sections import Sections

PIPES = {
    "MTE1": "MTE1", "MTE2": "MTE2", "MTE3": "MTE3", "CUBE": "M", "FIXPIPE": "FIX", "VECTOR": "V", "SCALAR": "S",
}  # fmt: skip
"""The pipe of each engine."""


SIGNAL_MEMORY = "memref<256xi64>"
"""Where an a3 counts the signals between cores; the launcher passes its address as the last argument."""


@dataclass(slots=True)
class Options:
    """How the text is made: the assembler's level, who orders the pipes of a core, which dialect of the assembler."""

    level: int = 3
    sync: str = "auto"
    dialect: str = "current"


@dataclass(slots=True)
class Kernel:
    """Emits one function. `side` is the core whose statements are emitted; None: all of them."""

    function: Function
    target: Target
    options: Options
    grid: Grid
    flags: Flags
    sections: Sections | None = None
    side: str | None = None
    text: Text = field(default_factory=lambda: Text(2))
    numbers: Arithmetic = field(init=False)
    tensors: Tensors = field(init=False)
    tiles: Tiles = field(init=False)
    arguments: list[Name] = field(default_factory=list[Name])

    def __post_init__(self) -> None:
        self.numbers = Arithmetic(self.text)
        self.tensors = Tensors(self.text, self.numbers, roots_of(self.function))
        self.tiles = Tiles(self.text, self.numbers, self.target, level=self.options.level, dialect=self.options.dialect)

    @property
    def arch(self) -> str:
        return self.target.pto_arch or "a3"

    # --- a function ---
    def emit(self) -> str:
        """The `func.func`, without its module."""
        self.declare()
        self.tiles.collect(self.function.body)
        if self.sections is None:
            self.body()
            kind = f" attributes {{pto.kernel_kind = #pto.kernel_kind<{self.grid.core}>}}"
        else:
            if self.arch == "a3":
                signals = Name(self.text.fresh("ffts"), SIGNAL_MEMORY)
                self.arguments.append(signals)
                self.text.line(f"pto.set_ffts {signals.name} : {signals.type}")
            self.sections.emit(self)
            kind = ""
        self.text.line("return")
        arguments = ", ".join(f"{a.name}: {a.type}" for a in self.arguments)
        return f"  func.func @{self.function.name}({arguments}){kind} {{\n{self.text}  }}\n"

    def declare(self) -> None:
        """The parameters: pointers, scalars, then the extents that only types mention."""
        for value in (*(p.value for p in self.function.params), *extents_of(self.function)):
            name = self.text.fresh(value.name)
            if isinstance(value.type, TensorType):
                argument = Name(name, pointer_type(value.type))
                self.tensors.pointers[value] = argument
            else:
                argument = Name(name, element_name(value.dtype))
                self.numbers.bind(value, name)
            self.arguments.append(argument)
        for param in self.function.params:
            if isinstance(param.value.type, TensorType):
                self.numbers.not_negative.update(v for v in param.value.type.shape if isinstance(v, Value))

    def body(self) -> None:
        """The statements, as far as they belong to `side`."""
        self.block(self.function.body, top=True)

    # --- statements ---
    def block(self, block: Block, *, top: bool = False) -> None:
        for stmt in block:
            try:
                self.flags.before(self, stmt)
                self.stmt(stmt, top=top)
                self.flags.after(self, stmt)
            except TilewrightError as error:
                raise error.at(stmt.span) from None

    def stmt(self, stmt: Stmt, *, top: bool) -> None:
        match stmt:
            case Let():
                self.let(stmt)
            case For():
                if self.relevant(stmt):
                    self.loop(stmt, grid=top and stmt in self.grid.loops)
            case If():
                if self.relevant(stmt):
                    self.branch(stmt)
            case Yield():
                pass
            case _:
                raise UnsupportedError(
                    f"PTO text has no {type(stmt).__name__.lower()} inside a kernel",
                    help="calls and scopes belong to the function that launches kernels",
                )

    def relevant(self, stmt: For | If) -> bool:
        """Whether anything inside is emitted here."""
        if self.side is None or self.sections is None:
            return True
        return self.sections.touches(stmt, self.side) or any(not isinstance(v.type, TileType) for v in _scalars(stmt))

    def let(self, stmt: Let) -> None:
        if not isinstance(stmt.value, Op):
            self.numbers.bind(stmt.target, self.numbers.name(stmt.value))
            if self.numbers.is_not_negative(stmt.value):
                self.numbers.not_negative.add(stmt.target)
            return
        if self.side is None or self.sections is None:
            self.operation(stmt.value, stmt.target)
            return
        if core_of(stmt, self.target) in (None, self.side):
            self.operation(stmt.value, stmt.target)

    # --- control flow ---
    def loop(self, stmt: For, *, grid: bool) -> None:
        if isinstance(stmt.step, int) and stmt.step <= 0:
            raise UnsupportedError("a loop of PTO text counts up", span=stmt.span, found=f"step {stmt.step}")
        carried = [i for i, arg in enumerate(stmt.iter_args) if not isinstance(arg.type, TileType | TensorType)]
        for arg, init, result in zip(stmt.iter_args, stmt.inits, stmt.results, strict=True):
            self.joined(arg, init)
            self.joined(result, arg)
        if stmt.conditional:
            self._while(stmt, carried)
            return
        if grid:
            head, step = self.grid.head(self, stmt)
        else:
            low, high, step = (self.numbers.index(bound) for bound in (stmt.start, stmt.stop, stmt.step))
            iv = self.text.fresh(stmt.iv.name)
            self.numbers.bind(stmt.iv, iv)
            head = f"scf.for {iv} = {low} to {high} step {step}"
        if self.numbers.is_not_negative(stmt.start):
            self.numbers.not_negative.add(stmt.iv)
        head, results = self._carry(stmt, carried, head)
        with self.text.region(head + " {"):
            if grid:
                self.grid.bind(self, stmt)
            self.block(stmt.body)
            self._yield(stmt.body, [stmt.iter_args[i] for i in carried], carried)
            for arg, given in zip(stmt.iter_args, _yielded(stmt.body), strict=True):
                self.joined(arg, given)
        for index, name in zip(carried, results, strict=True):
            self.numbers.bind(stmt.results[index], name)

    def _carry(self, stmt: For, carried: list[int], head: str) -> tuple[str, list[str]]:
        """The head with the scalars that the loop carries, and the names of its results."""
        if not carried:
            return head, []
        pairs: list[str] = []
        types: list[str] = []
        for index in carried:
            arg = stmt.iter_args[index]
            given = self.numbers.typed(stmt.inits[index], arg.dtype)
            name = self.text.fresh(arg.name)
            self.numbers.bind(arg, name)
            pairs.append(f"{name} = {given.name}")
            types.append(element_name(arg.dtype))
        made, names = self._results(stmt.results[carried[0]].name, len(carried))
        return f"{made} = {head} iter_args({', '.join(pairs)}) -> ({', '.join(types)})", names

    def _while(self, stmt: For, carried: list[int]) -> None:
        """A loop that its condition may end: what it carries, and after that its variable where it counts."""
        numbers, text, counts = self.numbers, self.text, not stmt.is_while
        stop, step = (numbers.index(bound) for bound in (stmt.stop, stmt.step)) if counts else ("", "")
        args = [stmt.iter_args[i] for i in carried]
        starts = [numbers.typed(stmt.inits[i], arg.dtype).name for i, arg in zip(carried, args, strict=True)]
        types = [element_name(arg.dtype) for arg in args]
        if counts:
            starts.append(numbers.index(stmt.start))
            types.append("index")
        tested, inside = ([text.fresh(v.name) for v in (*args, stmt.iv)[: len(types)]] for _ in range(2))
        listed = ", ".join(types)
        made, results = self._results(stmt.results[carried[0]].name, len(types))
        pairs = ", ".join(f"{name} = {start}" for name, start in zip(tested, starts, strict=True))
        with text.region(f"{made} = scf.while ({pairs}) : ({listed}) -> ({listed}) {{", None):
            go = tested[0]
            if counts:
                below, both = text.fresh("below"), text.fresh("go")
                text.line(f"{below} = arith.cmpi slt, {tested[-1]}, {stop} : index")
                text.line(f"{both} = arith.andi {go}, {below} : i1")
                go = both
            text.line(f"scf.condition({go}) {', '.join(tested)} : {listed}")
        with text.region("} do {"):
            text.line(f"^bb0({', '.join(f'{n}: {t}' for n, t in zip(inside, types, strict=True))}):")
            for value, name in zip((*args, stmt.iv), inside, strict=False):
                numbers.bind(value, name)
            self.block(stmt.body)
            given = [numbers.typed(_yielded(stmt.body)[i], v.dtype).name for i, v in zip(carried, args, strict=True)]
            if counts:
                given.append(text.fresh("next"))
                text.line(f"{given[-1]} = arith.addi {inside[-1]}, {step} : index")
            text.line(f"scf.yield {', '.join(given)} : {listed}")
            for arg, value in zip(stmt.iter_args, _yielded(stmt.body), strict=True):
                self.joined(arg, value)
        for index, name in zip(carried, results, strict=False):
            numbers.bind(stmt.results[index], name)

    def _results(self, stem: str, count: int) -> tuple[str, list[str]]:
        name = self.text.fresh(stem)
        return (name, [name]) if count == 1 else (f"{name}:{count}", [f"{name}#{i}" for i in range(count)])

    def _yield(self, block: Block, like: Sequence[Value], positions: list[int]) -> None:
        if not positions:
            return
        given = _yielded(block)
        names = [self.numbers.typed(given[i], value.dtype) for i, value in zip(positions, like, strict=True)]
        listed = ", ".join(n.name for n in names)
        self.text.line(f"scf.yield {listed} : {', '.join(n.type for n in names)}")

    def branch(self, stmt: If) -> None:
        condition = self.numbers.name(stmt.condition)
        scalars = [i for i, r in enumerate(stmt.results) if not isinstance(r.type, TileType | TensorType)]
        like = [stmt.results[i] for i in scalars]
        head, names = f"scf.if {condition}", list[str]()
        if scalars:
            made, names = self._results(like[0].name, len(like))
            head = f"{made} = {head} -> ({', '.join(element_name(v.dtype) for v in like)})"
        both = bool(scalars) or len(stmt.otherwise) > 1
        with self.text.region(head + " {", None if both else "}"):
            self._arm(stmt, stmt.then, like, scalars)
        if both:
            with self.text.region("} else {"):
                self._arm(stmt, stmt.otherwise, like, scalars)
        elif stmt.otherwise:
            self._settle(stmt, stmt.otherwise)
        for index, name in zip(scalars, names, strict=True):
            self.numbers.bind(stmt.results[index], name)

    def _arm(self, stmt: If, block: Block, like: list[Value], scalars: list[int]) -> None:
        self.block(block)
        self._settle(stmt, block)
        self._yield(block, like, scalars)

    def _settle(self, stmt: If, block: Block) -> None:
        for result, given in zip(stmt.results, _yielded(block), strict=True):
            self.joined(result, given)

    def joined(self, held: Value, given: Scalar) -> None:
        """What a loop carries, or a branch hands out, must lie in one place. Raises `UnsupportedError`."""
        if not isinstance(held.type, TileType) or not isinstance(given, Value):
            return
        if not self.tiles.same_place(held, given):
            raise UnsupportedError(
                f"{given.name!r} is a part of a larger tile, and becomes what {held.name!r} holds",
                span=given.span,
                help="copy the part to a tile of its own first",
            )

    # --- operations ---
    def operation(self, op: Op, target: Value) -> None:
        """One operation: by its special function, or in one line by its mnemonic."""
        if isinstance(target.type, TileType) and op.view_of is None and op.writes is None:
            for _, value in op.operand_items():
                if isinstance(value.type, TileType):
                    self.tiles.check_apart(target, value)
        special = SPECIAL.get(type(op))
        if special is not None:
            special(self, op, target)
            return
        mnemonic = op.spelling.pto_scalar if op.is_scalar_form else op.spelling.pto
        if not isinstance(mnemonic, str) or op.level is not Level.TILE:
            reason = mnemonic.reason if isinstance(mnemonic, Unsupported) else "it has no form in a kernel"
            raise UnsupportedError(f"PTO text has no {op.qualified_name}: {reason}", span=op.span)
        pad = getattr(op, "pad_value", Pad.NULL)
        made = self.tiles.name(target, pad=pad.value if isinstance(pad, Pad) else 0)
        self.line(mnemonic.removeprefix("pto."), self.operands(op, target), made)

    def operands(self, op: Op, target: Value) -> list[Name]:
        """What the one-line form lists: tiles and scalars in the order of the fields; scratch only where wanted."""
        found: list[Name] = []
        wanted = op.scratch()
        extents = aligned(op, target)
        arrays = [value for name, value in op.operand_items() if not op.field(name).scratch]
        for item in op.fields:
            value = getattr(op, item.name)
            if value is None or not _is_listed(item, wanted):
                continue
            if is_array(value):
                found.append(self.tiles.name(value, valid=extents.get(item.name)))
            else:
                found.append(self.numbers.typed(value, arrays[0].dtype if arrays else target.dtype))
        return found

    def line(self, mnemonic: str, ins: list[Name], out: Name, inner: str = "", outer: str = "") -> None:
        """``pto.mnemonic ins(…) outs(…)``. `inner` are attributes inside `ins`, `outer` those behind `outs`."""
        names = ", ".join(value.name for value in ins) + (f" {{{inner}}}" if inner else "")
        types = ", ".join(value.type for value in ins)
        tail = f" {{{outer}}}" if outer else ""
        self.text.line(f"pto.{mnemonic} ins({names} : {types}) outs({out.name} : {out.type}){tail}")

    @property
    def explicit(self) -> bool:
        return self.options.sync == "explicit"

    def fence(self) -> None:
        """With explicit synchronisation: all that was begun is done before anything else begins."""
        if self.explicit:
            self.text.line("pto.barrier <PIPE_ALL>")


def aligned(op: Op, target: Value) -> dict[str, Shape]:
    """The valid shape with which an elementwise operation reads each operand: the part that its result has, since an
    instruction wants equal ones."""
    form, kind = op.loops, target.type
    if not isinstance(form, Elementwise) or not isinstance(kind, TileType):
        return {}
    rows, cols = kind.valid
    shapes: dict[Map, Shape] = {Map.FULL: (rows, cols), Map.ROW: (rows, 1), Map.COLUMN: (1, cols)}
    read = [name for name, _ in op.operand_items() if not op.field(name).scratch]
    maps = (*form.maps, *(Map.FULL,) * len(read))
    return {name: shapes[way] for name, way in zip(read, maps, strict=False)}


def _is_listed(item: Field, wanted: dict[str, TileType]) -> bool:
    if item.kind is Kind.OPERAND:
        return not item.scratch or item.name in wanted
    return item.kind is Kind.SCALAR


def _yielded(block: Block) -> tuple[Scalar, ...]:
    last = block[-1] if block else None
    return last.values if isinstance(last, Yield) else ()


def _scalars(stmt: For | If) -> list[Value]:
    return [value for value in stmt.results if not isinstance(value.type, TileType | TensorType)]


def extents_of(function: Function) -> list[Value]:
    """The extents that occur in the types of tensor parameters and are no parameters themselves, in order."""
    params = {param.value for param in function.params}
    found: dict[Value, None] = {}
    for param in function.params:
        for value in param.value.type.values():
            if value not in params and value.dtype is INDEX:
                found[value] = None
    return list(found)
