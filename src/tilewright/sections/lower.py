"""From a section back to a function: the statements of its stages, in order, each on what the others made.

Nothing is made up: a stage's statements are spliced with its inputs, its tensor's newest version and the variables of
the loops in the places of its parameters, and their results are typed anew, since a page may have come from another
stage than before the join. `lower(lift(f))` means what `f` means; parameters are the tensors in the section's order,
then the scalars, and the last version of every output is returned, in the order of the tensors.
Refused: a section of which a stage came without statements."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Direction, Function, FunctionKind, Param
from tilewright.ir.nodes import For, Let, Return, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, placed_like, type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType, TensorType
from tilewright.sections.refusals import NoBody, Refusal
from tilewright.sections.section import AllReduce, Bind, Body, KLoop, Load, Loop, Role, Section, Stage, Store, tensor_of


def lower(section: Section, name: str | None = None) -> Function | Refusal:
    """The function called `name`, or as the section is. Requires a section without faults. Linear."""
    for at, stage in enumerate(section.stages):
        if stage.body is None:
            return Refusal("lower", NoBody(at), f"stages[{at}].body")
    return _Lowering(section).function(name or section.name)


class _Lowering:
    def __init__(self, section: Section) -> None:
        self.section = section
        self.scalars: dict[str, Value] = {
            scalar.name: Value(scalar.name, ScalarType(scalar.dtype)) for scalar in section.scalars
        }
        self.stored: list[int] = list(
            dict.fromkeys(stage.kind.tensor for stage in section.stages if isinstance(stage.kind, Store | AllReduce))
        )
        self.tensors: list[Value] = [self.tensor(at) for at in range(len(section.tensors))]
        self.version: list[Value] = list(self.tensors)
        self.held: dict[int, Value] = {}
        """the newest tile in each buffer"""
        self.coords: list[Value] = []
        self.trip: Value | None = None
        """the variable of the K loop, once it is written"""

    def function(self, name: str) -> Function:
        params = tuple(Param(value, self.direction(at)) for at, value in enumerate(self.tensors))
        params += tuple(Param(value) for value in self.scalars.values())
        span = next((stage.body.function.span for stage in self.section.stages if stage.body is not None), None)
        out = self.loops(self.section.work.grid)
        results = tuple(self.version[at] for at in sorted(self.stored))
        function = Function(name, params, (*out, Return(results)), FunctionKind.INCORE, self.section.attrs)
        return function if span is None else function.with_(span=span)

    def tensor(self, at: int) -> Value:
        """The parameter for a tensor: its type, as the stages that name it know it."""
        declared = self.section.tensors[at]
        for stage in self.section.stages:
            if tensor_of(stage.kind) == at and stage.body is not None:
                pairs = list(zip(stage.body.binds, stage.body.function.params, strict=True))
                names = {p.value: self.scalars[bind.name] for bind, p in pairs if bind.role is Role.SCALAR}
                for bind, param in pairs:
                    if bind.role is Role.TENSOR:
                        kind = param.value.type.substitute(_named(names))
                        return Value(declared.name, kind, param.value.span)
        shape = tuple(e if isinstance(e, int) else self.scalars[e] for e in declared.layout.shape)
        strides = declared.layout.strides
        spelled = None if strides is None else tuple(e if isinstance(e, int) else self.scalars[e] for e in strides)
        return Value(declared.name, TensorType(shape, declared.dtype, spelled))

    def direction(self, at: int) -> Direction:
        """Read only; or written: over everything that is read of it, or beside what it keeps."""
        kinds = [stage.kind for stage in self.section.stages if tensor_of(stage.kind) == at]
        if not any(isinstance(kind, Store | AllReduce) for kind in kinds):
            return Direction.IN
        kept = any(isinstance(kind, Load | AllReduce) or (isinstance(kind, Store) and kind.keeps) for kind in kinds)
        return Direction.INOUT if kept else Direction.OUT

    # --- loops ---
    def loops(self, grid: tuple[Loop, ...]) -> tuple[Stmt, ...]:
        """The loops of the grid, the stages inside the last one."""
        if not grid:
            return self.spliced()
        loop = grid[0]
        iv = Value(f"i{len(self.coords)}" if self.coords else "i", ScalarType(INDEX))
        carried = sorted(self.stored)
        inits = tuple(self.version[at] for at in carried)
        args = tuple(Value(init.name, init.type, init.span) for init in inits)
        self.coords.append(iv)
        for at, arg in zip(carried, args, strict=True):
            self.version[at] = arg
        body = self.loops(grid[1:])
        given = tuple(self.version[at] for at in carried)
        results = tuple(Value(arg.name, arg.type, arg.span) for arg in args)
        for at, result in zip(carried, results, strict=True):
            self.version[at] = result
        bounds = (loop.start, loop.stop, loop.step)
        return (For(iv, *bounds, loop.kind, inits, args, (*body, Yield(given)), results, loop.stage),)

    # --- stages ---
    def spliced(self) -> tuple[Stmt, ...]:
        """The statements of all stages; those of the K loop in a loop, where the first of them stands."""
        out: list[Stmt] = []
        stages, loop = self.section.stages, self.section.work.k_loop
        inside = [stage for stage in stages if stage.in_loop]
        for stage in stages:
            if not stage.in_loop:
                self.splice(stage, out)
            elif stage is inside[0] and loop is not None:
                out.append(self.k_loop(loop, inside))
        return tuple(out)

    def k_loop(self, loop: KLoop, stages: list[Stage]) -> Stmt:
        """The loop along K, which carries the accumulator."""
        self.trip = Value("k", ScalarType(INDEX))
        carried = () if loop.accumulator is None else (self.held[loop.accumulator],)
        args = tuple(Value(value.name, value.type, value.span) for value in carried)
        results = tuple(Value(value.name, value.type, value.span) for value in carried)
        if loop.accumulator is not None:
            self.held[loop.accumulator] = args[0]
        body: list[Stmt] = []
        for stage in stages:
            self.splice(stage, body)
        given = () if loop.accumulator is None else (self.held[loop.accumulator],)
        if loop.accumulator is not None:
            self.held[loop.accumulator] = results[0]
        at = loop.loop
        bounds = (at.start, at.stop, at.step)
        return For(self.trip, *bounds, at.kind, carried, args, (*body, Yield(given)), results, at.stage)

    def splice(self, stage: Stage, out: list[Stmt]) -> None:
        """Appends the statements of one stage."""
        assert stage.body is not None
        values = _Splice(self.bound(stage, stage.body), out).results(stage.body.function)
        tensor = tensor_of(stage.kind)
        if tensor is not None and not isinstance(stage.kind, Load):
            self.version[tensor] = values[0]
        else:
            self.held.update(zip(stage.outs, values, strict=True))

    def bound(self, stage: Stage, body: Body) -> dict[Value, Scalar]:
        """What stands for each parameter of a stage's statements."""
        params = body.function.params
        return {p.value: self.meant(bind, stage) for bind, p in zip(body.binds, params, strict=True)}

    def meant(self, bind: Bind, stage: Stage) -> Value:
        match bind.role:
            case Role.INPUT:
                return self.held[stage.ins[bind.index]]
            case Role.TENSOR:
                tensor = tensor_of(stage.kind)
                assert tensor is not None
                return self.version[tensor]
            case Role.COORD:
                return self.coords[bind.index]
            case Role.SCALAR:
                return self.scalars[bind.name]
            case Role.TRIP:
                assert self.trip is not None, "outside of the K loop"
                return self.trip


def _named(names: dict[Value, Value]) -> Callable[[Value], Scalar]:
    return lambda value: names.get(value, value)


class _Splice(Rewriter):
    """Appends the statements of one stage to `out`, every value new and typed by what it is now made from."""

    def __init__(self, env: dict[Value, Scalar], out: list[Stmt]) -> None:
        super().__init__()
        self.env = env
        self._out = out

    def results(self, function: Function) -> list[Value]:
        for stmt in function.body[:-1]:
            self.stmt(stmt)
        return [self.value(value) for value in function.results if isinstance(value, Value)]

    def visit_let(self, stmt: Let) -> None:
        new = stmt.substitute(self.get)
        assert isinstance(new, Let)
        inferred = new.value.infer() if isinstance(new.value, Op) else type_of(new.value)
        made = Value(stmt.target.name, placed_like(inferred, stmt.target.type.substitute(self.get)), stmt.target.span)
        self.bind(stmt.target, made)
        self.emit(Let(made, new.value, span=stmt.span))
