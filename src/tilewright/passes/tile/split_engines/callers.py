"""Callers of functions that were cut: they create the workspaces and launch the pieces one after another."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.function import Function, FunctionKind, Param, Program
from tilewright.ir.nodes import Block, Call, Let, Return, Stmt
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Scalar, Shape, Value, substitute
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType
from tilewright.passes.tile.split_engines.phases import Piece
from tilewright.passes.tile.split_engines.workspaces import Workspace


@dataclass(frozen=True, slots=True)
class Pieces:
    """What became of one function."""

    original: Function
    workspaces: tuple[Workspace, ...]
    pieces: tuple[Piece, ...]

    @property
    def in_place(self) -> Piece | None:
        """The one piece with the original's parameters and results, where that is all: calls stay as they are."""
        return self.pieces[0] if len(self.pieces) == 1 and not self.workspaces else None


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
            functions += [piece.function for piece in found.pieces]
    return Program(tuple(functions), program.entry)


def _apart(found: Pieces) -> Pieces:
    """The pieces under names that leave the entry's name free."""
    only = found.pieces[0]
    if only.function.name != found.original.name:
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
        body.append(_launched(piece, latest))
    return body, latest


def _launched(piece: Piece, latest: dict[Value, Scalar]) -> Call:
    """The launch of a piece; `latest` then holds what it has written."""
    args = tuple(latest[source] for source in piece.sources)
    binding = {p.value: arg for p, arg in zip(piece.function.params, args, strict=True)}
    targets: list[Value] = []
    for given, source in zip(piece.function.results, piece.outputs, strict=True):
        assert isinstance(given, Value)
        target = Value(given.name, given.type.substitute(lambda v: binding.get(v, v)), given.span)
        targets.append(target)
        if source is not None:
            latest[source] = target
    return Call(tuple(targets), piece.function.name, args, span=piece.function.span)


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
