"""One function of a program as one LLVM function: its control flow.

    i64 @f(tensors and scalars..., symbols..., results..., ptr %ws, ptr %report)

Tensors come as addresses, scalars as values, extents that are no parameters (symbols) as i64. A result that is no
output parameter comes back through an address. The return value is 0, or the number of the check that failed. A
parallel loop runs its trips in order: its trips are independent, so any order is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.codegen.native.arithmetic import Arithmetic
from tilewright.codegen.native.builder import Builder, Fold, Index
from tilewright.codegen.native.checks import Checks
from tilewright.codegen.native.elements import check_dtype, register_type
from tilewright.codegen.native.operations import Operations
from tilewright.codegen.native.scope import Place, Scope, row_major
from tilewright.codegen.native.storage import plan_storage
from tilewright.errors import TilewrightError, VerifyError
from tilewright.ir.dtypes import BOOL, INDEX, DType
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Return, Stmt, Yield
from tilewright.ir.nodes import Scope as Section
from tilewright.ir.op import Op, is_array
from tilewright.ir.scalar import Scalar, Value, dtype_of
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType, TileType

if TYPE_CHECKING:
    from tilewright.codegen.native.module import Module


@dataclass(frozen=True, slots=True)
class Interface:
    """How a function is called."""

    name: str
    symbols: tuple[tuple[Value, int, int], ...]
    """extents that are no parameters: the value, and the parameter and axis to read it from"""
    results: tuple[int, ...]
    """positions of the results that come back through an address"""
    positions: tuple[int | None, ...]
    """for each result, the output parameter that it is"""


def interface_of(function: Function, program: Program) -> Interface:
    params = {param.value for param in function.params}
    symbols: dict[Value, tuple[int, int]] = {}
    for position, param in enumerate(function.params):
        check_dtype(param.value.dtype)
        if isinstance(param.value.type, TensorType):
            for axis, extent in enumerate(param.value.type.shape):
                if isinstance(extent, Value) and extent not in params:
                    symbols.setdefault(extent, (position, axis))
    positions = output_positions(function, program)
    returned = tuple(i for i, position in enumerate(positions) if position is None)
    places = tuple((value, *where) for value, where in symbols.items())
    return Interface(function.name, places, returned, positions)


def scalar_type(dtype: DType) -> str:
    """LLVM's type of a scalar argument."""
    return register_type(dtype)


def encoded(scope: Scope, value: str, dtype: DType) -> str:
    """A scalar as an i64 slot holds it."""
    if dtype.is_float:
        raw = scope.single.to_memory(value, dtype)
        width = 8 * dtype.nbytes
        bits = raw if width == 16 else scope.b.value(f"bitcast float {raw} to i32")
        return scope.b.value(f"zext i{width} {bits} to i64")
    if dtype is BOOL:
        return scope.b.value(f"zext i1 {value} to i64")
    return Arithmetic(scope.single, scope.register).cast(value, dtype, INDEX)


def decoded(scope: Scope, value: str, dtype: DType) -> str:
    """The scalar that an i64 slot holds."""
    if dtype.is_float:
        width = 8 * dtype.nbytes
        bits = scope.b.value(f"trunc i64 {value} to i{width}")
        return scope.single.from_memory(bits if width == 16 else scope.b.value(f"bitcast i32 {bits} to float"), dtype)
    if dtype is BOOL:
        return scope.b.value(f"icmp ne i64 {value}, 0")
    return Arithmetic(scope.single, scope.register).cast(value, INDEX, dtype)


class FunctionEmitter:
    """Emits one function."""

    def __init__(self, function: Function, module: Module) -> None:
        self.function = function
        self.module = module
        self.interface = module.interfaces[function.name]
        self.plan = plan_storage(function, module.program, function.name in module.mixed)
        self.b = Builder(module.declarations)
        self.scope = Scope(self.b, module.processor)
        self.checks = Checks(self.scope, module.guards)
        self.operations = Operations(self.scope, self.plan, self.checks, module)

    @property
    def workspace(self) -> int:
        """Bytes of workspace that the function itself uses."""
        return self.plan.nbytes + -(-self.operations.scratch_bytes // 64) * 64

    def text(self) -> str:
        arguments: list[str] = []
        for position, param in enumerate(self.function.params):
            value, name = param.value, f"%arg.{position}"
            if isinstance(value.type, TensorType):
                arguments.append(f"ptr {name}")
            else:
                arguments.append(f"{scalar_type(value.dtype)} {name}")
                self.scope.registers[value] = name
        for number, (value, _, _) in enumerate(self.interface.symbols):
            self.scope.registers[value] = f"%sym.{number}"
            arguments.append(f"i64 %sym.{number}")
        for position, param in enumerate(self.function.params):
            if isinstance(param.value.type, TensorType):
                self.scope.places[param.value] = self._parameter(f"%arg.{position}", param.value.type)
        arguments += [f"ptr %res.{position}" for position in self.interface.results]
        self.block(self.function.body)
        self._leave()
        arguments += ["ptr %ws", "ptr %report"]
        return self.b.text(f"define internal i64 @{self.interface.name}({', '.join(arguments)})")

    def _parameter(self, name: str, kind: TensorType) -> Place:
        shape = self.scope.indices(kind.shape)
        strides = row_major(self.b, shape) if kind.strides is None else self.scope.indices(kind.strides)
        return Place(name, kind.dtype, shape, strides)

    def _leave(self) -> None:
        """The one way out: gives back what came from the heap."""
        b = self.b
        b.lines += self.checks.failures
        b.start("leave")
        codes = ", ".join(f"[ {code}, %{block} ]" for code, block in self.checks.exits)
        b.emit(f"%code = phi i64 {codes}")
        for slot in self.operations.heap:
            b.call("void", "free", f"ptr {b.value(f'load ptr, ptr {slot}')}", "ptr")
        b.emit("ret i64 %code")

    # --- statements -----------------------------------------------------------------------------------------------
    def block(self, block: Block) -> tuple[Scalar, ...]:
        """Emits the statements; returns what the terminator hands out."""
        for stmt in block:
            try:
                if isinstance(stmt, Return):
                    self.leave(stmt)
                elif isinstance(stmt, Yield):
                    return stmt.values
                else:
                    self.stmt(stmt)
            except TilewrightError as error:
                raise error.at(stmt.span) from None
        return ()

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let(target=target, value=Op() as op):
                self.operations.emit(stmt, op)
            case Let(target=target, value=value) if not isinstance(value, Op):
                self.bind(target, value)
            case For():
                self.loop(stmt)
            case If():
                self.branches(stmt)
            case Section():
                for result, given in zip(stmt.results, self.block(stmt.body), strict=True):
                    self.bind(result, given)
            case Call():
                self.call(stmt)
            case _:
                raise AssertionError(f"unknown statement {type(stmt).__name__}")

    def bind(self, target: Value, given: Scalar) -> None:
        """`target` is another name of `given`."""
        if is_array(target):
            assert isinstance(given, Value)
            self.scope.places[target] = self.scope.place(given)
        else:
            self.scope.registers[target] = self.scope.element(given, target.dtype)

    def nested(self, block: Block) -> tuple[Scalar, ...]:
        """A block whose facts end with it."""
        self.scope.memo.append({})
        self.checks.known.append(set())
        return self.block(block)

    def close(self) -> None:
        self.scope.memo.pop()
        self.checks.known.pop()

    # --- loops ----------------------------------------------------------------------------------------------------
    def loop(self, stmt: For) -> None:
        carried: list[tuple[str, str]] = []
        pointers: list[Value] = []
        scalars: list[Value] = []
        for arg, init in zip(stmt.iter_args, stmt.inits, strict=True):
            if not is_array(arg):
                carried.append((scalar_type(arg.dtype), self.scope.element(init, arg.dtype)))
                scalars.append(arg)
                continue
            assert isinstance(init, Value)
            if arg in self.plan.own:
                out = self._home(arg, stmt)
                self.operations.move(self.scope.place(init), out)
                self.scope.places[arg] = out
            elif arg in self.plan.shared:
                self.bind(arg, init)
            else:
                pointers.append(arg)
                carried.append(("ptr", self.scope.place(init).pointer))
                self.bind(arg, init)
        order = [arg for arg in stmt.iter_args if arg in scalars or arg in pointers]
        results = self._trips(stmt, carried, order)
        for result, arg in zip(stmt.results, stmt.iter_args, strict=True):
            if arg in order:
                self._carry(result, arg, results[order.index(arg)])
            else:
                self.scope.places[result] = self.scope.places[arg]

    def _home(self, arg: Value, stmt: For) -> Place:
        kind = arg.type
        assert isinstance(kind, (TensorType, TileType))
        return self.operations.room(self.plan.own[arg], kind, stmt.span)

    def _carry(self, value: Value, like: Value, name: str) -> None:
        """`value` is what the register `name` holds: a number, or the address of an array laid out as `like`."""
        if is_array(value):
            old = self.scope.places[like]
            self.scope.places[value] = Place(name, old.dtype, old.shape, old.strides)
        else:
            self.scope.registers[value] = name

    def _trips(self, stmt: For, carried: list[tuple[str, str]], order: list[Value]) -> list[str]:
        start, stop, step = self.scope.indices((stmt.start, stmt.stop, stmt.step))

        def trip(index: str, values: Sequence[str]) -> Sequence[str]:
            for arg, value in zip(order, values, strict=True):
                self._carry(arg, arg, value)
            self.scope.registers[stmt.iv] = index
            given = dict(zip(stmt.iter_args, self.nested(stmt.body), strict=True))
            handed = [self._handed(given[arg], arg) for arg in order]
            self._write_back(stmt, {arg: value for arg, value in given.items() if arg not in order})
            self.close()
            return handed

        self.checks.facts.enter(stmt)
        if isinstance(step, int) and step != 0:
            return self.b.fold(start, stop, step, carried, trip, descending=step < 0, conditional=stmt.conditional)
        self.checks.step(step, stmt.span)
        return self._counted((start, stop, step), trip, carried, stmt.conditional)

    def _counted(
        self, bounds: tuple[Index, Index, Index], trip: Fold, carried: list[tuple[str, str]], conditional: bool
    ) -> list[str]:
        """A loop whose direction is known only when running: over the number of its trips."""
        start, stop, step = bounds
        b = self.b
        down = b.value(f"icmp slt i64 {step}, 0")
        span = b.value(f"select i1 {down}, i64 {b.sub(start, stop)}, i64 {b.sub(stop, start)}")
        size = b.value(f"select i1 {down}, i64 {b.sub(0, step)}, i64 {step}")
        rounded = b.value(f"sdiv i64 {b.add(span, b.sub(size, 1))}, {size}")
        empty = b.value(f"icmp sle i64 {span}, 0")
        trips = b.value(f"select i1 {empty}, i64 0, i64 {rounded}")

        def nth(t: str, values: Sequence[str]) -> Sequence[str]:
            return trip(str(b.add(start, b.mul(t, step))), values)

        return b.fold(0, trips, 1, carried, nth, conditional=conditional)

    def _handed(self, given: Scalar, arg: Value) -> str:
        """What a trip hands to the next in a register."""
        if is_array(arg):
            assert isinstance(given, Value)
            return self.scope.place(given).pointer
        return self.scope.element(given, arg.dtype)

    def _write_back(self, stmt: For, given: dict[Value, Scalar]) -> None:
        """Carried arrays take their next values; those that lie where another is written go by way of a copy."""
        sources: dict[Value, Place] = {}
        for arg, value in given.items():
            assert isinstance(value, Value)
            sources[arg] = self.scope.place(value)
            if arg in self.plan.staged:
                kind = arg.type
                assert isinstance(kind, (TensorType, TileType))
                copied = self.operations.room(self.plan.staged[arg], kind, stmt.span)
                self.operations.move(sources[arg], copied)
                sources[arg] = copied
        for arg, source in sources.items():
            self.operations.move(source, self.scope.places[arg])

    # --- branches -------------------------------------------------------------------------------------------------
    def branches(self, stmt: If) -> None:
        b = self.b
        condition = self.scope.element(stmt.condition, BOOL)
        labels = b.label("then"), b.label("else")
        after = b.label("after")
        homes: dict[Value, Place] = {}
        for result in stmt.results:
            if isinstance(result.type, TileType):
                homes[result] = self.operations.room(self.plan.own[result], result.type, stmt.span)
        b.branch(condition, *labels)
        arms: list[tuple[list[str], str]] = []
        for label, block in zip(labels, stmt.blocks(), strict=True):
            b.start(label)
            values = self.nested(block)
            handed: list[str] = []
            for result, given in zip(stmt.results, values, strict=True):
                if result in homes:
                    assert isinstance(given, Value)
                    self.operations.move(self.scope.place(given), homes[result])
                    handed.append("")
                else:
                    handed.append(self._handed(given, result))
                    if is_array(result):
                        self.bind(result, given)
            self.close()
            arms.append((handed, b.block))
            b.jump(after)
        b.start(after)
        (then, then_block), (otherwise, else_block) = arms
        for position, result in enumerate(stmt.results):
            if result in homes:
                self.scope.places[result] = homes[result]
                continue
            kind = "ptr" if is_array(result) else scalar_type(result.dtype)
            arms_text = f"[ {then[position]}, %{then_block} ], [ {otherwise[position]}, %{else_block} ]"
            self._carry(result, result, b.value(f"phi {kind} {arms_text}"))

    # --- calls ----------------------------------------------------------------------------------------------------
    def call(self, stmt: Call) -> None:
        callee = self.module.program.function(stmt.callee)
        interface = self.module.interfaces[stmt.callee]
        scope, b = self.scope, self.b
        arguments: list[str] = []
        for param, given in zip(callee.params, stmt.args, strict=True):
            if isinstance(param.value.type, TensorType):
                assert isinstance(given, Value)
                self._check_layout(param.value.type, scope.place(given), given)
                arguments.append(f"ptr {scope.place(given).pointer}")
            else:
                dtype = param.value.dtype
                arguments.append(f"{scalar_type(dtype)} {scope.element(given, dtype)}")
        for _, position, axis in interface.symbols:
            given = stmt.args[position]
            assert isinstance(given, Value)
            arguments.append(f"i64 {scope.place(given).shape[axis]}")
        slots: dict[int, str] = {}
        for position in interface.results:
            target = stmt.targets[position]
            if is_array(target):
                kind = target.type
                assert isinstance(kind, (TensorType, TileType))
                scope.places[target] = self.operations.room(self.plan.own[target], kind, stmt.span)
                arguments.append(f"ptr {scope.places[target].pointer}")
            else:
                slots[position] = b.hoisted("alloca i64")
                arguments.append(f"ptr {slots[position]}")
        self.module.calls.setdefault(self.function.name, set()).add(stmt.callee)
        below = b.value(f"getelementptr i8, ptr %ws, i64 @@{self.function.name}@@")
        code = b.value(f"call i64 @{interface.name}({', '.join([*arguments, f'ptr {below}', 'ptr %report'])})")
        self.checks.propagate(code)
        for position, target in enumerate(stmt.targets):
            source = interface.positions[position]
            if source is not None:
                self.bind(target, stmt.args[source])
            elif position in slots:
                loaded = b.value(f"load i64, ptr {slots[position]}")
                scope.registers[target] = decoded(scope, loaded, target.dtype)

    def _check_layout(self, kind: TensorType, place: Place, given: Value) -> None:
        """The callee walks the tensor as it lies. Raises `VerifyError` where constants show that it does not."""
        if all(isinstance(number, int) for number in (*place.shape, *place.strides, *(kind.strides or ()))):
            wanted = row_major(self.b, place.shape) if kind.strides is None else kind.strides
            dims = zip(place.shape, place.strides, wanted, strict=True)
            if any(extent != 1 and have != want for extent, have, want in dims):
                raise VerifyError(
                    f"{given.name!r} does not lie in memory as the function expects",
                    required=f"strides {list(wanted)}",
                    found=f"strides {list(place.strides)}",
                )

    def leave(self, stmt: Return) -> None:
        """Hands out the results that are no output parameters, and returns."""
        for position in self.interface.results:
            given = stmt.values[position]
            if isinstance(given, Value) and isinstance(given.type, TensorType):
                source = self.scope.place(given)
                shape = self.scope.indices(given.type.shape)
                out = Place(f"%res.{position}", source.dtype, shape, row_major(self.b, shape))
                self.operations.move(source, out)
                continue
            if is_array(given):
                raise VerifyError("a function returns a tile", found=repr(given), help="store it to a tensor first")
            dtype = dtype_of(given)
            self.b.emit(f"store i64 {encoded(self.scope, self.scope.scalar(given), dtype)}, ptr %res.{position}")
        self.checks.leave("0")
