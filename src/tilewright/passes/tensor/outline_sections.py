"""Outlining: what the cores run becomes functions of its own, and the orchestration calls them.

Before:  def main(self, a, b, out):                       # Orchestration
             with pl.at():
                 x = pl.tensor.add(a, b)
                 out_1 = pl.tensor.assemble(out, x, [0, 0])
                 out_2 = pl.yield_(out_1)
             return out_2
Ensures: an `ORCHESTRATION` function holds creations of tensors, scalars, calls and control flow. Each scope, each
         operation outside a scope, and each loop outside a scope that is parallel, or whose tiles do not leave it, is
         an `INCORE` function. What it reads is a parameter; what it writes is an output parameter (InOut, or Out when
         nothing was written before); what is used after it is returned. A view belongs to the sections that read
         through it.
After:   def main_0(self, a, b, out): ...                 # InCore
         def main(self, a, b, out):
             out_1 = self.main_0(a, b, out)
             return out_1
A body that holds tiles outside of scopes is one section as a whole. Scopes inside a section are opened.
Refuses: calls beside tiles in such a body."""

from __future__ import annotations

from dataclasses import replace

from tilewright.analysis.views import creates, viewed
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Direction, Function, FunctionKind, Param, Program
from tilewright.ir.nodes import Block, Call, For, Let, LoopKind, Return, Scope, Stmt, Yield, walk
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, clone_block
from tilewright.ir.scalar import Scalar, Value, values_in
from tilewright.ir.storage import Roots, roots_of, written_operand
from tilewright.ir.types import TensorType, TileType


def outline_sections(program: Program) -> Program:
    """Requires SSA, and sections that call nothing. Linear in the size of the program."""
    functions: list[Function] = []
    taken = {function.name for function in program.functions}
    for function in program.functions:
        match function.kind:
            case FunctionKind.ORCHESTRATION | FunctionKind.OPAQUE:
                outliner = _Outliner(program, taken, function)
                outer = outliner.function(_as_one_scope(function) if _holds_tiles(function.body) else function)
                functions += [_ScopeOpener().function(section) for section in outliner.sections]
                opaque = outer.kind is FunctionKind.OPAQUE
                functions.append(replace(outer, kind=FunctionKind.ORCHESTRATION) if opaque else outer)
            case FunctionKind.INCORE:
                functions.append(_ScopeOpener().function(function))
            case FunctionKind.INLINE:
                functions.append(function)
    same = len(functions) == len(program.functions)
    if same and all(a is b for a, b in zip(functions, program.functions, strict=True)):
        return program
    return program.with_functions(tuple(functions))


# --- bodies that are one section as a whole -----------------------------------------------------------------------
def _is_section(stmt: Stmt) -> bool:
    """Whether the statement is a section by itself: a scope, or a loop that is parallel or keeps its tiles."""
    if isinstance(stmt, For):
        return stmt.kind is LoopKind.PARALLEL or _keeps_tiles(stmt)
    return isinstance(stmt, Scope)


def _keeps_tiles(loop: For) -> bool:
    """Whether tiles are made in `loop`, and nothing but tensors goes in or comes out from trip to trip."""
    if any(not isinstance(value.type, TensorType) for value in loop.defs()):
        return False
    inside = [stmt for stmt in walk(loop.body) if not isinstance(stmt, Yield)]
    if any(isinstance(stmt, Call | Scope) for stmt in inside):
        return False
    return any(isinstance(value.type, TileType) for stmt in inside for value in stmt.defs())


def _holds_tiles(block: Block) -> bool:
    """Whether a tile is defined outside of everything that is a section by itself."""
    for stmt in block:
        if _is_section(stmt):
            continue
        if any(isinstance(v.type, TileType) for v in (*stmt.defs(), *stmt.block_args())):
            return True
        if any(_holds_tiles(inner) for inner in stmt.blocks()):
            return True
    return False


def _as_one_scope(function: Function) -> Function:
    """`function` with its whole body in one scope, creations of tensors left before it."""
    last = function.body[-1]
    assert isinstance(last, Return)
    for stmt in walk(function.body):
        if isinstance(stmt, Call):
            raise UnsupportedError(
                "an orchestration function holds tiles and also calls a function",
                span=stmt.span,
                required="calls and tensors, or a section as a whole",
                found=f"a call of {stmt.callee} beside tiles",
                help="put the statements on tiles into `with pl.at(...):`",
            )
    before = tuple(stmt for stmt in function.body if _is_creation(stmt) and _stands_alone(stmt, function))
    inside = tuple(stmt for stmt in function.body[:-1] if stmt not in before)
    given = tuple(dict.fromkeys(value for value in last.values if isinstance(value, Value)))
    results = tuple(Value(value.name, value.type, value.span) for value in given)
    scope = Scope("at", (), (*inside, Yield(given, span=last.span)), results, span=function.span)
    env = dict(zip(given, results, strict=True))
    return function.with_body((*before, scope, last.substitute(lambda v: env.get(v, v))))  # type: ignore[arg-type]


def _is_creation(stmt: Stmt) -> bool:
    return isinstance(stmt, Let) and isinstance(stmt.value, Op) and creates(stmt.value)


def _stands_alone(stmt: Stmt, function: Function) -> bool:
    """Whether the statement reads nothing but parameters."""
    known = {param.value for param in function.params}
    return all(value in known for value in stmt.uses())


class _ScopeOpener(Rewriter):
    """Puts the statements of scopes in the place of scopes: a section is one thing, whatever stands inside it."""

    def visit_scope(self, stmt: Scope) -> None:
        for inner in stmt.body[:-1]:
            self.stmt(inner)
        last = stmt.body[-1]
        assert isinstance(last, Yield)
        for result, value in zip(stmt.results, last.values, strict=True):
            self.bind(result, self.scalar(value))


# --- the orchestration --------------------------------------------------------------------------------------------
class _Outliner(Rewriter):
    """Rewrites one orchestration function; collects its `sections`.

    Views are held back in `views` until something reads them: a section takes a copy of those that it reads through.
    One that is read by anything else, or after its tensor is written, becomes a section that copies."""

    def __init__(self, program: Program, taken: set[str], function: Function) -> None:
        super().__init__()
        self.whole = program
        self.taken = taken
        self.base = function.name
        self.sections: list[Function] = []
        self.views: dict[Value, Let] = {}
        self.fresh = {param.value for param in function.params if param.direction is Direction.OUT}
        self.last_use: dict[Value, int] = {}
        self.position: dict[Value, int] = {}
        """the order in which values are defined, which is the order of a section's parameters"""
        self.clock = 0

    def function(self, function: Function) -> Function:
        for index, stmt in enumerate(function.walk()):
            for value in stmt.uses():
                self.last_use[value] = index
            for value in (v for defined in stmt.defs() for v in defined.type.values()):
                self.last_use[value] = index
        defined = [param.value for param in function.params]
        defined += [value for stmt in function.walk() for value in (*stmt.block_args(), *stmt.defs())]
        self.position = {value: index for index, value in enumerate(defined)}
        self.clock = -1
        return super().function(function)

    def stmt(self, stmt: Stmt) -> None:
        self.clock += 1
        size = sum(1 for inner in stmt.blocks() for _ in walk(inner))
        outlined = _is_section(stmt) or (isinstance(stmt, Let) and _is_work(stmt))
        if self.views:
            self._settle_views(stmt, self.clock + (size if outlined else 0), outlined)
        if isinstance(stmt, Scope):
            last = stmt.body[-1]
            assert isinstance(last, Yield)
            hint = dict(stmt.options).get("name_hint")
            self._section(stmt, stmt.body[:-1], stmt.results, last.values, str(hint) if hint else None)
        elif outlined:
            self._section(stmt, (stmt,), stmt.defs(), stmt.defs(), None)
        elif isinstance(stmt, Let) and _views(stmt):
            self.views[stmt.target] = stmt
        else:
            if _is_creation(stmt):
                self.fresh.update(stmt.defs())
            super().stmt(stmt)
            return
        self.clock += size

    # --- views ---
    def _settle_views(self, stmt: Stmt, end: int, outlined: bool) -> None:
        """Make a section of each view that cannot wait: read in `stmt` by what is no section; or read after `end`
        although `stmt` writes the tensor that is looked at."""
        read: set[Value] = set() if outlined else _read_outside_sections(stmt)
        written = _consumed(stmt, self.whole)
        for value, let in tuple(self.views.items()):
            later = self.last_use.get(value, -1) > end
            if value in read or (later and self._base(value) in written):
                del self.views[value]
                self._section(let, (let,), (value,), (value,), None)

    def _base(self, value: Value) -> Value:
        """The value at the bottom of a pile of views."""
        while value in self.views:
            op = self.views[value].value
            assert isinstance(op, Op)
            below = viewed(op)
            assert below is not None
            value = below
        return value

    # --- sections ---
    def _section(
        self, stmt: Stmt, body: Block, results: tuple[Value, ...], given: tuple[Scalar, ...], hint: str | None
    ) -> None:
        """Append the call of a new function that does `body` and returns `given`, which are `results` from here on."""
        body, captured = self._captured(body, given)
        env: dict[Value, Scalar] = {}
        params: list[tuple[Value, Value]] = []
        for value in captured:
            arg = self.get(value)
            if isinstance(arg, Value):
                param = Value(value.name, value.type.substitute(lambda v: env.get(v, v)), value.span)
                params.append((value, param))
                env[value] = param
            else:
                env[value] = arg
        kept = [(r, g) for r, g in zip(results, given, strict=True) if self._matters(r, g, captured)]
        outside = {value: self.get(value) for value in captured}
        inner = clone_block((*body, Return(tuple(dict.fromkeys(g for _, g in kept)), span=stmt.span)), env)
        function = Function(
            self._name(hint), tuple(Param(p) for _, p in params), inner, FunctionKind.INCORE, span=stmt.span
        )
        function = self._with_outputs(function, {p: old for old, p in params})
        self.sections.append(function)
        self._call(stmt, function, dict.fromkeys(g for _, g in kept), kept, tuple(old for old, _ in params))
        for result, value in zip(results, given, strict=True):
            if isinstance(value, Value) and value in outside:
                self.bind(result, outside[value])

    def _matters(self, result: Value, given: Scalar, captured: dict[Value, None]) -> bool:
        """Whether a result has to be returned: it is used, and it is not just what went in."""
        if isinstance(given, Value) and given in captured:
            return False
        return result in self.last_use

    def _captured(self, body: Block, given: tuple[Scalar, ...]) -> tuple[Block, dict[Value, None]]:
        """The statements with the views that they read through before them, and the values that they take from
        outside, those that types mention too."""
        views: dict[Value, Let] = {}
        captured: dict[Value, None] = {}
        defined: set[Value] = set()

        def take(value: Value) -> None:
            if value in defined or value in captured:
                return
            let = self.views.get(value)
            if let is not None:
                for inner in let.uses():
                    take(inner)
                defined.add(value)
                views[value] = let
                return
            for inner in value.type.values():
                take(inner)
            captured[value] = None

        for stmt in walk(body):
            for value in stmt.uses():
                take(value)
            defined.update(stmt.defs(), stmt.block_args())
        for scalar in given:
            for value in () if isinstance(scalar, int) else values_in(scalar):
                take(value)
        return (*views.values(), *body), dict.fromkeys(sorted(captured, key=self.position.__getitem__))

    def _name(self, hint: str | None) -> str:
        """A new function's name."""
        count = len(self.sections)
        name = hint if hint and hint not in self.taken else f"{hint or self.base}_{count}"
        while name in self.taken:
            count += 1
            name = f"{hint or self.base}_{count}"
        self.taken.add(name)
        return name

    def _with_outputs(self, function: Function, outside: dict[Value, Value]) -> Function:
        """`function` with the directions of its parameters, and the last version of each that it writes returned."""
        roots = roots_of(function, self.whole)
        written = {roots[value] for value in _written(function.body, self.whole) if value in roots}
        params = tuple(
            replace(param, direction=Direction.OUT if outside[param.value] in self.fresh else Direction.INOUT)
            if param.value in written
            else param
            for param in function.params
        )
        returned = {roots.get(v) for v in function.results if isinstance(v, Value)}
        missing = [p.value for p in params if p.is_output and p.value not in returned]
        if missing:
            last = function.body[-1]
            assert isinstance(last, Return)
            versions = tuple(_last_version(function.body, root, roots) for root in missing)
            function = function.with_body((*function.body[:-1], Return((*last.values, *versions), span=last.span)))
        return replace(function, params=params)

    def _call(
        self,
        stmt: Stmt,
        function: Function,
        given: dict[Scalar, None],
        kept: list[tuple[Value, Scalar]],
        captured: tuple[Value, ...],
    ) -> None:
        args = tuple(self.get(value) for value in captured)
        env = {param.value: arg for param, arg in zip(function.params, args, strict=True)}
        names = {g: r for r, g in reversed(kept)}
        targets: list[Value] = []
        for position, value in enumerate(function.results):
            old = names[list(given)[position]] if position < len(given) else None
            kind = value.type if isinstance(value, Value) else None
            type_ = old.type if kind is None and old is not None else kind
            assert type_ is not None
            name = old.name if old is not None else value.name if isinstance(value, Value) else "unused"
            targets.append(Value(name, type_.substitute(lambda v: env.get(v, v)), stmt.span))
        self.emit(Call(tuple(targets), function.name, args, span=stmt.span))
        places = dict(zip(given, targets, strict=False))
        for result, value in kept:
            self.bind(result, places[value])


def _is_view(op: Op) -> bool:
    """Whether a tensor operation only looks at another tensor."""
    return isinstance(op.infer(), TensorType) and viewed(op) is not None and op.writes is None


def _is_work(stmt: Let) -> bool:
    """Whether the statement is an operation for the cores, and no creation or view."""
    op = stmt.value
    if not isinstance(op, Op) or not isinstance(stmt.target.type, TensorType):
        return False
    return not creates(op) and not _is_view(op)


def _written(block: Block, program: Program) -> list[Value]:
    """The versions that statements of `block` write over."""
    found: list[Value] = []
    for stmt in walk(block):
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            version = written_operand(stmt.value)
            found += [] if version is None else [version]
        elif isinstance(stmt, Call) and stmt.callee in program.by_name:
            params = program.function(stmt.callee).params
            for param, arg in zip(params, stmt.args, strict=True):
                if param.is_output and isinstance(arg, Value):
                    found.append(arg)
    return found


def _read_outside_sections(stmt: Stmt) -> set[Value]:
    """What is read in `stmt` by anything but sections and views: what cannot wait for a section to take it."""
    if _is_section(stmt) or (isinstance(stmt, Let) and (_is_work(stmt) or _views(stmt))):
        return set()
    found = set(stmt.uses())
    for block in stmt.blocks():
        for inner in block:
            found |= _read_outside_sections(inner)
    return found


def _views(stmt: Let) -> bool:
    return isinstance(stmt.value, Op) and _is_view(stmt.value)


def _consumed(stmt: Stmt, program: Program) -> set[Value]:
    """The tensors that are used up in `stmt`: written over, or carried by a loop."""
    found = set(_written((stmt,), program))
    for inner in walk((stmt,)):
        if isinstance(inner, For):
            found.update(v for v in inner.inits if isinstance(v, Value) and isinstance(v.type, TensorType))
    return found


def _last_version(block: Block, root: Value, roots: Roots) -> Value:
    """The last value in `block` that is a version of `root`."""
    found = root
    for stmt in block:
        for value in stmt.defs():
            if roots.get(value) is root:
                found = value
    return found
