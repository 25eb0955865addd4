"""Callers of functions that were cut: they create the workspaces and launch the pieces one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.ir.function import Function, FunctionKind, Param, Program
from tilewright.ir.nodes import Block, Call, For, Let, LoopKind, Return, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import Scalar, Shape, Value, substitute
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType
from tilewright.passes.tile.split_engines.phases import Piece
from tilewright.passes.tile.split_engines.workspaces import Workspace


@dataclass(frozen=True, slots=True)
class Trips:
    """Pieces launched once for each trip of `loop`; `number` is the source that stands for the trip."""

    number: Value
    loop: For
    pieces: tuple[Piece | Trips, ...]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What became of one function."""

    original: Function
    workspaces: tuple[Workspace, ...]
    pieces: tuple[Piece | Trips, ...]

    @property
    def in_place(self) -> Piece | None:
        """The one piece with the original's parameters and results, where that is all: calls stay as they are."""
        only = self.pieces[0]
        return only if len(self.pieces) == 1 and not self.workspaces and isinstance(only, Piece) else None

    @property
    def all(self) -> tuple[Piece, ...]:
        """Every piece, those in trips too."""
        return tuple(_flat(self.pieces))


def _flat(pieces: tuple[Piece | Trips, ...]) -> Iterator[Piece]:
    for piece in pieces:
        if isinstance(piece, Trips):
            yield from _flat(piece.pieces)
        else:
            yield piece


def replace_calls(program: Program, pieces: dict[str, Pieces]) -> Program:
    """`program` with the pieces in place of the functions. An entry that was cut becomes a function that launches."""
    functions: list[Function] = []
    for function in program.functions:
        found = pieces.get(function.name)
        if found is None:
            functions.append(function if function.kind is FunctionKind.INCORE else _Callers(pieces).function(function))
        elif found.in_place is not None:
            functions.append(found.in_place.function)
        else:
            if function.name == program.entry:
                found = _apart(found)
                functions.append(_launcher(found))
            functions += [piece.function for piece in found.all]
    return Program(tuple(functions), program.entry)


def _apart(found: Pieces) -> Pieces:
    """The pieces under names that leave the entry's name free."""
    only = found.pieces[0]
    if not isinstance(only, Piece) or only.function.name != found.original.name:
        return found
    renamed = Piece(only.function.with_(name=f"{only.function.name}_section"), only.sources, only.outputs)
    return Pieces(found.original, found.workspaces, (renamed,))


def _launcher(found: Pieces) -> Function:
    """The entry's name, parameters and results, around the launches of its pieces."""
    original = found.original
    env: dict[Value, Scalar] = {}
    params: list[Param] = []
    for param in original.params:
        value = Value(param.value.name, param.value.type.substitute(lambda v: env.get(v, v)), param.value.span)
        env[param.value] = value
        params.append(Param(value, param.direction))
    body, latest = launch(found, env)
    results = tuple(latest[original.params[p].value] for p in output_positions(original) if p is not None)
    block: Block = (*body, Return(results, span=original.span))
    return Function(original.name, tuple(params), block, FunctionKind.ORCHESTRATION, original.attrs, original.span)


def launch(found: Pieces, env: dict[Value, Scalar]) -> tuple[list[Stmt], dict[Value, Scalar]]:
    """The statements that create workspaces and call the pieces, and the last version of everything; `env` gives the
    argument for each parameter of the original."""
    latest = dict(env)
    body: list[Stmt] = []
    for space in found.workspaces:
        kind = space.param.type
        op = space.created.value
        assert isinstance(kind, TensorType) and isinstance(op, Op)
        shape: Shape = tuple(substitute(extent, lambda v: env.get(v, v)) for extent in kind.shape)
        value = Value(space.param.name, TensorType(shape, kind.dtype), space.created.span)
        body.append(Let(value, op.replace(shape=shape), span=space.created.span))
        latest[space.param] = value
    for piece in found.pieces:
        body += _launched(piece, latest)
    return body, latest


def _launched(piece: Piece | Trips, latest: dict[Value, Scalar]) -> list[Stmt]:
    """The launch of a piece, or the loop that launches some; `latest` then holds what they have written."""
    if isinstance(piece, Trips):
        return [_loop(piece, latest)]
    args = tuple(latest[source] for source in piece.sources)
    binding = {p.value: arg for p, arg in zip(piece.function.params, args, strict=True)}
    targets: list[Value] = []
    for given, source in zip(piece.function.results, piece.outputs, strict=True):
        assert isinstance(given, Value)
        target = Value(given.name, given.type.substitute(lambda v: binding.get(v, v)), given.span)
        targets.append(target)
        if source is not None:
            latest[source] = target
    return [Call(tuple(targets), piece.function.name, args, span=piece.function.span)]


def _loop(trips: Trips, latest: dict[Value, Scalar]) -> For:
    """The caller's loop: it carries the tensors that its launches write."""
    written = list(dict.fromkeys(source for p in _flat(trips.pieces) for source in p.outputs if source is not None))
    inits = tuple(latest[source] for source in written)
    args = tuple(Value(source.name, type_of(init), source.span) for source, init in zip(written, inits, strict=True))
    iv = Value(trips.number.name, trips.number.type, trips.number.span)
    inside = latest | dict(zip(written, args, strict=True)) | {trips.number: iv}
    body: list[Stmt] = []
    for piece in trips.pieces:
        body += _launched(piece, inside)
    body.append(Yield(tuple(inside[source] for source in written), span=trips.loop.span))
    results = tuple(Value(arg.name, arg.type, arg.span) for arg in args)
    latest.update(zip(written, results, strict=True))
    bounds = (trips.loop.start, trips.loop.stop, trips.loop.step)
    start, stop, step = (substitute(bound, lambda v: latest.get(v, v)) for bound in bounds)
    return For(iv, start, stop, step, LoopKind.SEQUENTIAL, inits, args, tuple(body), results, span=trips.loop.span)


class _Callers(Rewriter):
    """Replaces the calls of functions that were cut."""

    def __init__(self, pieces: dict[str, Pieces]) -> None:
        super().__init__()
        self.pieces = pieces

    def visit_call(self, stmt: Call) -> None:
        found = self.pieces.get(stmt.callee)
        if found is None or found.in_place is not None:
            super().visit_call(stmt)
            return
        params = (param.value for param in found.original.params)
        env = dict(zip(params, (self.scalar(arg) for arg in stmt.args), strict=True))
        body, latest = launch(found, env)
        for made in body:
            self.emit(made)
        for index, (target, position) in enumerate(zip(stmt.targets, output_positions(found.original), strict=True)):
            if position is not None:
                self.bind(target, latest[found.original.params[position].value])
                continue
            # Only a single piece may have results of its own; they come first.
            last = body[-1]
            assert isinstance(last, Call)
            self.bind(target, last.targets[index])
