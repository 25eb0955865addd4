"""Loop functions, read: from text, or from a Python function decorated with `pl.loop.function`. Nothing is executed.

    @pl.loop.function                                   LoopFunction("main", (A,), (Loop(i, 0, 16, 1, (Store(...),)),))
    def main(A: pl.loop.Buffer[[16], pl.FP32]):
        for i in pl.loop.serial(0, 16):
            A[i] = 1.0

A name is bound once in the blocks that are open; blocks beside each other may use the same names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, cast

from tilewright.errors import LanguageError, TilewrightError, register_source
from tilewright.frontend.annotations import read_type
from tilewright.frontend.arithmetic import is_static
from tilewright.frontend.bindings import LANGUAGE_MODULE, DynamicSymbol, LanguageName
from tilewright.frontend.decorators import decorator, language_path, parse_annotation
from tilewright.frontend.limits import LONGEST_TEXT, check_nesting, guarded
from tilewright.frontend.loop_expressions import LoopExpressions
from tilewright.frontend.reader import TextNames, syntax_error
from tilewright.frontend.source import PythonNames, around, find_function
from tilewright.frontend.syntax import FunctionSource, Names, span_of
from tilewright.ir.buffers import BufferType, Extern, HandleType, Region, VectorType, buffer_type, named_type
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import FunctionKind
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loop_level import (
    ALWAYS,
    Alias,
    Allocate,
    Annotations,
    Attribute,
    ComputeBlock,
    Evaluate,
    Launch,
    Loop,
    LoopFunction,
    LoopKind,
    Match,
    OpCall,
    Store,
    While,
)
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType, Type
from tilewright.ir.verify_loops import verify_loops

DECORATOR = "loop.function"
LOOP_KINDS = {f"loop.{kind.value}": kind for kind in LoopKind}


def parse_loops(text: str, name: str = "<text>") -> LoopFunction:
    """The loop function that `text` says. `name` stands for the file in messages. Raises `LanguageError` and its kin,
    placed in the text."""
    if len(text) > LONGEST_TEXT:
        raise LanguageError(
            "this text is too long", required=f"at most {LONGEST_TEXT} characters", found=str(len(text))
        )
    register_source(name, text)
    return guarded(lambda: _from_text(text, name))


def loops_of(function: Any) -> LoopFunction:
    """The loop function that a Python function says."""
    code = function.__code__
    names = PythonNames(function, {}, around(function))
    node = find_function(code)
    return guarded(lambda: _FunctionReader(node, code.co_filename, names).function())


def says_loops(text: str) -> bool:
    """Whether `text` is one loop function and nothing else, by its look: imports, constants, the decorated function."""
    if DECORATOR not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    rest = [node for node in tree.body if not isinstance(node, _BESIDE)]
    only = rest[0] if len(rest) == 1 else None
    if not isinstance(only, ast.FunctionDef):
        return False
    return any(ast.unparse(mark).endswith(f".{DECORATOR}") for mark in only.decorator_list)


_BESIDE = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
"""What may stand beside the function of a text."""


def _from_text(text: str, file: str) -> LoopFunction:
    try:
        tree = ast.parse(text, file)
    except SyntaxError as error:
        raise syntax_error(error, file) from None
    names, found = TextNames(), list[ast.FunctionDef]()
    for node in tree.body:
        match node:
            case ast.Import(names=[ast.alias(name=module, asname=name)]) if module == LANGUAGE_MODULE and name:
                names.known[name] = LanguageName("")
            case ast.ImportFrom(module="__future__") | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.known[name] = _constant(node, file, names)
            case ast.FunctionDef():
                found.append(node)
            case _:
                raise LanguageError(
                    "this does not belong in the text of a loop function",
                    span=span_of(file, node),
                    required=f"import {LANGUAGE_MODULE} as pl, constants, and one function",
                )
    if len(found) != 1:
        raise LanguageError(
            f"{file} holds {len(found)} functions", required="one function, decorated with @pl.loop.function"
        )
    return _FunctionReader(found[0], file, names).function()


def _constant(node: ast.Assign, file: str, names: Names) -> object:
    empty = ast.parse("def text(): pass").body[0]
    assert isinstance(empty, ast.FunctionDef)
    found = LoopExpressions(FunctionSource("text", empty, file, FunctionKind.INLINE, names)).evaluate(node.value)
    if not is_static(found):
        raise LanguageError("a name outside the function is a constant", span=span_of(file, node))
    return found


class _FunctionReader:
    def __init__(self, node: ast.FunctionDef, file: str, names: Names) -> None:
        self.node, self.file, self.names = node, file, names
        self.expressions = LoopExpressions(FunctionSource(node.name, node, file, FunctionKind.INLINE, names))
        self.context = self.expressions.context
        self.scalar = self.expressions.scalar
        self.out: list[Stmt] = []
        self.declaring = True
        """whether parameters are being read: their types may bring in free symbols"""

    def function(self) -> LoopFunction:
        node = self.node
        check_nesting(node, self.file)
        found = decorator(node, self.names)
        if found is None or found[0] != DECORATOR:
            raise self.error(f"{node.name} is no loop function", node, help="decorate it with @pl.loop.function")
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
            raise self.error("a loop function has plain parameters only", node, help="name each, without a default")
        given = [*args.posonlyargs, *args.args]
        params: dict[str, Value] = {}
        # Scalars first: the extents of buffers may name them.
        for buffers in (False, True):
            for argument in given:
                annotation = parse_annotation(argument.annotation, self.file)
                if annotation is None:
                    raise self.error(f"parameter {argument.arg!r} has no type", argument, help="pl.loop.Buffer[...]")
                if self.is_buffer_type(annotation) is buffers:
                    params[argument.arg] = self.define(argument.arg, self.type(annotation), argument)
        self.declaring = False
        body = self.block(node.body)
        made = LoopFunction(node.name, tuple(params[a.arg] for a in given), body, span_of(self.file, node))
        verify_loops(made)
        return made

    def error(self, message: str, node: ast.AST, **more: Any) -> LanguageError:
        return LanguageError(message, span=self.context.span(node), **more)

    # --- types and names ---
    def is_buffer_type(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Subscript) and language_path(node.value, self.names) == "loop.Buffer"

    def type(self, node: ast.expr) -> Type:
        """A type of the loop level, or of a scalar or tile."""
        path = language_path(node.value, self.names) if isinstance(node, ast.Subscript) else None
        if not isinstance(node, ast.Subscript) or path not in ("loop.Buffer", "loop.Vector", "loop.Handle"):
            return read_type(self.context, node)
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if path == "loop.Handle" and len(items) == 1:
            return HandleType(self.expressions.dtype(items[0]))
        if path == "loop.Vector" and len(items) == 2:
            return VectorType(self.expressions.dtype(items[0]), self.expressions.lanes(items[1]))
        if path != "loop.Buffer" or len(items) not in (2, 3):
            raise self.error("this type is not complete", node, required="pl.loop.Buffer[[16, n], pl.FP32, pl.Mem.Vec]")
        return self.buffer_type(items[0], items[1], items[2] if len(items) == 3 else None)

    def buffer_type(self, shape: ast.expr, dtype: ast.expr, space: ast.expr | None) -> BufferType:
        if isinstance(shape, ast.List | ast.Tuple):
            for extent in shape.elts:
                self.bind_symbol(extent)
        return BufferType(self.expressions.shape(shape), self.expressions.dtype(dtype), self.space(space))

    def bind_symbol(self, node: ast.expr) -> None:
        """The free symbols of an extent become values, one for each."""
        for part in ast.walk(node):
            found = self.context.lookup(part.id) if isinstance(part, ast.Name) else None
            if isinstance(found, DynamicSymbol) and self.declaring:
                self.context.symbols.setdefault(found.name, Value(found.name, ScalarType(INDEX)))

    def space(self, node: ast.expr | None) -> MemorySpace | None:
        found = None if node is None else self.expressions.static(node)
        if found is not None and not isinstance(found, MemorySpace):
            raise self.error("a memory space is wanted here", cast("ast.AST", node), required="such as pl.Mem.Vec")
        return found

    def define(self, name: str, type: Type, node: ast.AST) -> Value:
        """A new value, bound to its name from here to the end of the block."""
        if isinstance(self.context.scope.get(name), Value):
            raise self.error(
                f"{name!r} is bound already",
                node,
                required="one definition of each name in the blocks that are open",
                help="take another name; what changes lies in a buffer",
            )
        value = Value(name, type, self.context.span(node))
        self.context.scope.set(name, value)
        return value

    # --- blocks ---
    def block(self, body: Sequence[ast.stmt], start: Callable[[], None] | None = None) -> Block:
        """The statements of a block, whose names end with it. `start` may define some first."""
        outer, self.out = self.out, []
        self.context.scope.open()
        try:
            if start is not None:
                start()
            for node in body:
                try:
                    self.statement(node)
                except TilewrightError as error:
                    raise error.at(self.context.span(node)) from None
            return tuple(self.out)
        finally:
            self.out = outer
            self.context.scope.close()

    def emit(self, stmt: type[Stmt], node: ast.AST, *fields: Any) -> None:
        self.out.append(cast("Any", stmt)(*fields, span=self.context.span(node)))

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.named(name, node)
            case ast.Assign(targets=[ast.Subscript() as target]):
                self.store(target, node.value, node)
            case ast.AugAssign(target=ast.Subscript() as target):
                value = ast.copy_location(ast.BinOp(_loaded(target), node.op, node.value), node)
                self.store(target, value, node)
            case ast.Expr(value=ast.Call() as call):
                found = self.expressions.evaluate(call)
                if not isinstance(found, Extern):
                    raise self.error("a statement of its own is a call of pl.loop.extern", node)
                self.emit(Evaluate, node, found)
            case ast.For(orelse=[]):
                self.loop(node)
            case ast.While(orelse=[]):
                self.emit(While, node, self.scalar(node.test), self.block(node.body))
            case ast.If():
                condition = self.scalar(node.test)
                self.emit(If, node, condition, self.block(node.body), self.block(node.orelse), ())
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as call, optional_vars=None)]):
                self.scoped(node, call)
            case _:
                raise self.error(
                    "this statement is not part of the loop level",
                    node,
                    found=ast.unparse(node).splitlines()[0],
                    help="docs/loops.md shows what there is",
                )

    def store(self, target: ast.Subscript, value: ast.expr, node: ast.AST) -> None:
        buffer = self.expressions.buffer(target.value)
        parts = self.expressions.indices(target, buffer)
        if any(isinstance(part, ast.Slice) for part in parts):
            raise self.error("an element is written at a time", target, help="loop over it, or write lanes of a ramp")
        indices = tuple(self.scalar(part) for part in parts)
        self.emit(Store, node, buffer, indices, self.scalar(value, buffer.dtype))

    def named(self, name: str, node: ast.Assign) -> None:
        value = node.value
        path = self.expressions.path(value.func) if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Call) and path in ("loop.alloc", "loop.local", "loop.match", "loop.alias"):
            if path in ("loop.local", "loop.match"):
                raise self.error(f"pl.{path} stands at the start of a block only", node, help="use pl.loop.alloc")
            if path == "loop.alloc":
                self.out.append(self.allocate(name, value, node))
            else:
                self.alias(name, value, node)
            return
        scalar = self.scalar(value)
        self.emit(Let, node, self.define(name, named_type(scalar), node), scalar)

    def allocate(self, name: str, call: ast.Call, node: ast.AST) -> Allocate:
        if len(call.args) not in (2, 3):
            raise self.error("an allocation has a shape and a dtype", call, required="pl.loop.alloc([16], pl.FP32)")
        kind = self.buffer_type(call.args[0], call.args[1], call.args[2] if len(call.args) == 3 else None)
        return Allocate(self.define(name, kind, node), self.annotations(call), span=self.context.span(node))

    def alias(self, name: str, call: ast.Call, node: ast.AST) -> None:
        given = self.expressions.keywords(call, "offset")
        if len(call.args) not in (3, 4):
            raise self.error("an alias has a source, a shape and a dtype", call)
        source = self.expressions.buffer(call.args[0])
        kind = self.buffer_type(call.args[1], call.args[2], call.args[3] if len(call.args) == 4 else None)
        offset: Scalar = self.scalar(given["offset"]) if "offset" in given else 0
        self.emit(Alias, node, self.define(name, kind, node), source, offset)

    def annotations(self, call: ast.Call) -> Annotations:
        """Keywords, or the dict of a keyword `annotations`."""
        found: list[tuple[str, object]] = []
        for keyword in call.keywords:
            if keyword.arg is None:
                raise self.error("keywords cannot be spread with **", keyword.value)
            value = self.expressions.static(keyword.value)
            if keyword.arg == "annotations" and isinstance(keyword.value, ast.Dict):
                found += cast("tuple[tuple[str, object], ...]", value)
            else:
                found.append((keyword.arg, value))
        return tuple(found)

    # --- loops ---
    def loop(self, node: ast.For) -> None:
        call, target = node.iter, node.target
        path = self.expressions.path(call.func) if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
            raise self.error("a loop is for i in pl.loop.serial(start, stop)", node.iter)
        if path == "loop.launch":
            self.launch(node, call, target.id)
            return
        kind = LOOP_KINDS.get(path)
        if kind is None:
            raise self.error(
                "this is no loop of the loop level",
                call,
                found=self.context.text(call),
                required=", ".join(f"pl.{known}" for known in LOOP_KINDS) + ", pl.loop.launch",
            )
        bounds = list(call.args)
        thread = self.thread(bounds.pop(0)) if kind is LoopKind.THREAD and bounds else None
        if not 1 <= len(bounds) <= 3:
            raise self.error("a loop has a stop, or a start, a stop and a step", call)
        numbers = [self.scalar(bound) for bound in bounds]
        start, stop, step = [0, *numbers, 1] if len(numbers) == 1 else [*numbers, 1][:3]
        annotations = self.annotations(call)
        iv, body = self.body(node.body, target.id, target)
        self.emit(Loop, node, iv, start, stop, step, body, kind, thread, annotations)

    def body(self, body: Sequence[ast.stmt], name: str, node: ast.AST) -> tuple[Value, Block]:
        """The block of a loop, and its variable, known inside only."""
        made: list[Value] = []
        block = self.block(body, lambda: made.append(self.define(name, ScalarType(INDEX), node)))
        return made[0], block

    def thread(self, node: ast.expr) -> str | None:
        found = self.expressions.static(node)
        if found is not None and not isinstance(found, str):
            raise self.error("threads have a name, which the target knows", node, required='"core"')
        return found

    def launch(self, node: ast.For, call: ast.Call, name: str) -> None:
        if len(call.args) not in (1, 2) or call.keywords:
            raise self.error('a launch is pl.loop.launch("core", extent)', call)
        thread = self.thread(call.args[0])
        extent = self.scalar(call.args[1]) if len(call.args) == 2 else None
        iv, body = self.body(node.body, name, node.target)
        self.emit(Launch, node, thread or "", iv, extent, body)

    # --- with ---
    def scoped(self, node: ast.With, call: ast.Call) -> None:
        path = self.expressions.path(call.func)
        if path == "loop.block":
            self.compute(node, call)
        elif path == "loop.op":
            self.operation(node, call)
        elif path == "loop.attribute":
            key, what, value = self.expressions.positional(call, 3)
            about = self.expressions.evaluate(what)
            if not isinstance(about, Value):
                raise self.error("an attribute is about a buffer or a name", what)
            said, text = self.expressions.static(value), self.expressions.static(key)
            self.emit(Attribute, node, text, about, said, self.block(node.body))
        else:
            raise self.error("this does not stand after with", call, required="pl.loop.block, .op or .attribute")

    def compute(self, node: ast.With, call: ast.Call) -> None:
        if len(call.args) != 1:
            raise self.error('a block has a name: pl.loop.block("update")', call)
        name, annotations = str(self.expressions.static(call.args[0])), self.annotations(call)
        head = _Head(self)
        rest = list(node.body)

        def start() -> None:
            while rest and head.reads_statement(rest[0]):
                rest.pop(0)

        body = self.block(rest, start)
        self.emit(
            ComputeBlock, node, name, tuple(head.reads), tuple(head.writes), body, head.where, tuple(head.allocs),
            tuple(head.matches), annotations,
        )  # fmt: skip

    def operation(self, node: ast.With, call: ast.Call) -> None:
        """One operation and where its tiles lie."""
        if len(call.args) > 1 or call.keywords:
            raise self.error("pl.loop.op takes the region of the result", call)
        result = self.expressions.region(call.args[0]) if call.args else None
        *tiles, last = node.body
        bindings = list[tuple[Value, Region]]()
        self.context.scope.open()
        for item in tiles:
            if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name) or item.value is None:
                raise self.error("a tile is x: pl.Tile[...] = A[0:16, 0:16]", item)
            region = self.expressions.region(item.value)
            bindings.append((self.define(item.target.id, self.type(item.annotation), item), region))
        if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
            raise self.error("a call of an operation stands last here", last, required="pl.tile.add(x, y)")
        before = len(self.context.out)
        self.expressions.evaluate(last.value)
        made = self.context.out[before:]
        self.context.scope.close()
        op = made[0].value if len(made) == 1 and isinstance(made[0], Let) else None
        if not isinstance(op, Op):
            raise self.error("one operation stands here", last)
        self.emit(OpCall, node, op, tuple(bindings), result)


class _Head:
    """What stands at the start of a block: predicate, regions, its own buffers."""

    def __init__(self, reader: _FunctionReader) -> None:
        self.reader = reader
        self.where: Scalar = ALWAYS
        self.reads: list[Region] = []
        self.writes: list[Region] = []
        self.allocs: list[Allocate] = []
        self.matches: list[Match] = []

    def reads_statement(self, node: ast.stmt) -> bool:
        """Whether the statement belongs to the head; it is read then."""
        expressions = self.reader.expressions
        match node:
            case ast.Expr(value=ast.Call(func=func) as call):
                path = expressions.path(func)
                if path == "loop.where":
                    self.where = expressions.scalar(expressions.positional(call, 1)[0])
                elif path in ("loop.reads", "loop.writes"):
                    regions = self.reads if path == "loop.reads" else self.writes
                    regions += [expressions.region(arg) for arg in call.args]
                return path in ("loop.where", "loop.reads", "loop.writes")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                path = expressions.path(func)
                if path == "loop.local":
                    self.allocs.append(self.reader.allocate(name, call, node))
                elif path == "loop.match":
                    self.matches.append(self.match(name, call, node))
                return path in ("loop.local", "loop.match")
            case _:
                return False

    def match(self, name: str, call: ast.Call, node: ast.AST) -> Match:
        reader, expressions = self.reader, self.reader.expressions
        given = expressions.keywords(call, "shape", "dtype", "space")
        if len(call.args) != 1:
            raise reader.error("pl.loop.match takes a region", call, required="pl.loop.match(A[0:16, 0:16])")
        source = expressions.region(call.args[0])
        kind = buffer_type(source.buffer)
        shape = expressions.shape(given["shape"]) if "shape" in given else source.extents
        dtype = expressions.dtype(given["dtype"]) if "dtype" in given else kind.dtype
        space = reader.space(given["space"]) if "space" in given else kind.space
        return Match(reader.define(name, BufferType(shape, dtype, space), node), source)


def _loaded(target: ast.Subscript) -> ast.Subscript:
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
