"""A program as one LLVM module: its functions, the multiplications that they share, and the C entry.

    i64 @entry(ptr slots, ptr workspace)

Each slot has 8 bytes: one per parameter, one per symbol, one per result, and four for what a failing check reports.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.codegen.native.builder import Builder
from tilewright.codegen.native.contract import Multiplier
from tilewright.codegen.native.function import FunctionEmitter, Interface, decoded, interface_of, scalar_type
from tilewright.codegen.native.guards import Guard
from tilewright.codegen.native.llvm import Processor
from tilewright.codegen.native.outline import Library
from tilewright.codegen.native.scope import Scope
from tilewright.codegen.native.signature import Parameter, Result, Signature, extent_code
from tilewright.errors import VerifyError
from tilewright.ir.dtypes import DType
from tilewright.ir.function import Program
from tilewright.ir.nodes import Call
from tilewright.ir.scalar import Value, dtype_of
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TensorType

ENTRY = "entry"


class Module:
    """Emits a program for a processor."""

    def __init__(self, program: Program, processor: Processor) -> None:
        self.program = program
        self.processor = processor
        self.declarations: set[str] = set()
        self.guards: list[Guard] = []
        self.multipliers: dict[tuple[DType, bool, bool], Multiplier] = {}
        self.calls: dict[str, set[str]] = {}
        self.library = Library(self.declarations)
        self.order = _callees_first(program)
        self.mixed = _called_with_one_tensor_twice(program)
        self.interfaces: dict[str, Interface] = {}
        for number, name in enumerate(self.order):
            found = interface_of(program.function(name), program)
            self.interfaces[name] = replace(found, name=f"f{number}.{_plain(name)}")
        self.workspace = 0

    def multiplier(self, dtype: DType, unit_lhs: bool, unit_rhs: bool) -> Multiplier:
        """The multiplication for operands of `dtype` that lie so."""
        key = (dtype, unit_lhs, unit_rhs)
        if key not in self.multipliers:
            self.multipliers[key] = Multiplier(self.processor, *key)
        return self.multipliers[key]

    def text(self) -> str:
        """The module. Fills `guards` and `workspace`."""
        texts: list[str] = []
        needs: dict[str, int] = {}
        for name in self.order:
            emitter = FunctionEmitter(self.program.function(name), self)
            body = emitter.text()
            own = emitter.workspace
            # A callee's workspace begins where its caller's ends.
            texts.append(body.replace(f"@@{name}@@", str(own)))
            needs[name] = own + max((needs[callee] for callee in self.calls.get(name, ())), default=0)
        self.workspace = needs[self.program.entry]
        texts += [*self.library.texts(), self._entry()]
        for multiplier in self.multipliers.values():
            for text in multiplier.texts():
                if text.startswith("declare"):
                    self.declarations.add(text)
                else:
                    texts.append(text)
        return "\n\n".join(["\n".join(sorted(self.declarations)), *texts, ""])

    def _entry(self) -> str:
        """Unpacks the slots."""
        b = Builder(self.declarations)
        scope = Scope(b, self.processor)
        main, interface = self.program.main, self.interfaces[self.program.entry]
        arguments: list[str] = []

        def slot(number: int) -> str:
            return b.address("%slots", "i64", number)

        for number, param in enumerate(main.params):
            if isinstance(param.value.type, TensorType):
                arguments.append(f"ptr {b.value(f'load ptr, ptr {slot(number)}')}")
            else:
                dtype = param.value.dtype
                value = decoded(scope, b.value(f"load i64, ptr {slot(number)}"), dtype)
                arguments.append(f"{scalar_type(dtype)} {value}")
        first = len(main.params)
        arguments += [f"i64 {b.value(f'load i64, ptr {slot(first + n)}')}" for n in range(len(interface.symbols))]
        first += len(interface.symbols)
        for position in interface.results:
            given = main.results[position]
            tensor = isinstance(given, Value) and isinstance(given.type, TensorType)
            where = slot(first + position)
            arguments.append(f"ptr {b.value(f'load ptr, ptr {where}') if tensor else where}")
        report = slot(first + len(main.results))
        code = b.value(f"call i64 @{interface.name}({', '.join([*arguments, 'ptr %workspace', f'ptr {report}'])})")
        b.emit(f"ret i64 {code}")
        return b.text(f"define i64 @{ENTRY}(ptr %slots, ptr %workspace)")

    def signature(self) -> Signature:
        """How the entry is called. To be asked after `text`."""
        main, interface = self.program.main, self.interfaces[self.program.entry]
        slots: dict[Value, int] = {param.value: number for number, param in enumerate(main.params)}
        slots |= {value: len(main.params) + n for n, (value, _, _) in enumerate(interface.symbols)}
        parameters: list[Parameter] = []
        for param in main.params:
            kind = param.value.type
            shape = strides = None
            if isinstance(kind, TensorType):
                shape = tuple(extent_code(extent, slots) for extent in kind.shape)
                strides = None if kind.strides is None else tuple(extent_code(s, slots) for s in kind.strides)
            parameters.append(Parameter(param.value.name, kind.dtype.name, shape, strides, param.direction.value))
        results: list[Result] = []
        for given, position in zip(main.results, interface.positions, strict=True):
            if position is not None:
                results.append(Result("param", dtype_of(given).name, position))
            elif isinstance(given, Value) and isinstance(given.type, TensorType):
                shape = tuple(extent_code(extent, slots) for extent in given.type.shape)
                results.append(Result("tensor", given.dtype.name, None, shape))
            else:
                results.append(Result("scalar", dtype_of(given).name))
        implicit = main.attr("implicit_outputs", 0)
        return Signature(
            main.name,
            tuple(parameters),
            tuple((position, axis) for _, position, axis in interface.symbols),
            tuple(results),
            self.workspace,
            implicit if isinstance(implicit, int) else 0,
            tuple(self.guards),
        )


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def _callees_first(program: Program) -> list[str]:
    """The functions that the entry reaches, each after those that it calls. Raises `VerifyError` on recursion."""
    done: list[str] = []
    open_: list[tuple[str, list[str]]] = [(program.entry, _callees(program, program.entry))]
    while open_:
        name, rest = open_[-1]
        if not rest:
            open_.pop()
            done.append(name)
            continue
        callee = rest.pop(0)
        if any(callee == other for other, _ in open_):
            raise VerifyError(f"function {callee} calls itself", help="use a loop")
        if callee not in done:
            open_.append((callee, _callees(program, callee)))
    return done


def _callees(program: Program, name: str) -> list[str]:
    calls = (stmt.callee for stmt in program.function(name).walk() if isinstance(stmt, Call))
    return list(dict.fromkeys(calls))


def _called_with_one_tensor_twice(program: Program) -> set[str]:
    """Functions of which some call passes one tensor as an output and as something else too."""
    found: set[str] = set()
    for function in program.functions:
        roots = roots_of(function, program)
        for stmt in function.walk():
            if isinstance(stmt, Call):
                given = [roots[a] for a in stmt.args if isinstance(a, Value) and a in roots]
                if len(set(given)) < len(given):
                    found.add(stmt.callee)
    return found
