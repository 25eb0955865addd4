"""How the kernels of a program are launched: in which order, with how many blocks, on which arguments and workspaces.

The entry of the program is executed as far as it can be without data: constant loops are unrolled, each launch says in
which trips it stands, and tensors that the entry creates become workspaces. The manifest is plain data, so that any
launcher can follow it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from tilewright.codegen.pto.kernel import extents_of
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Stmt, Yield, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value, constant_value, substitute
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.grid import Grid
    from tilewright.codegen.pto.kernel import Options

MOST_LAUNCHES = 4096
"""Launches that one manifest lists."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """One kernel, written."""

    file: str
    function: Function
    text: str
    grid: Grid
    mixed: bool


def make_manifest(program: Program, target: Target, options: Options, emitted: dict[str, Emitted]) -> dict[str, Any]:
    """The manifest of `program`, whose kernels are `emitted`. Raises `UnsupportedError` for launches that depend on
    data."""
    main = program.main
    launches = _Launches(program, emitted, arch=target.pto_arch or "")
    launches.parameters(main)
    if main.kind is FunctionKind.INCORE:
        args = tuple(param.value for param in main.params)
        launches.launch(main.name, args)
    else:
        launches.block(main.body)
    workspaces = launches.workspaces
    constant = [nbytes for nbytes in workspaces.values() if isinstance(nbytes, int)]
    return {
        "format": 1,
        "target": target.name,
        "arch": target.pto_arch,
        "level": options.level,
        "sync": options.sync,
        "dialect": options.dialect,
        "assembler_flags": assembler_flags(target, options),
        "arguments": launches.arguments,
        "results": launches.results(main),
        "workspaces": workspaces,
        "workspace_bytes": sum(constant),
        "kernels": launches.kernels,
        "assumptions": _assumptions(target, options, list(emitted.values())),
    }


def assembler_flags(target: Target, options: Options) -> list[str]:
    """What the assembler has to be called with."""
    flags = [f"--pto-arch={target.pto_arch}", f"--pto-level=level{options.level}"]
    return [*flags, "--enable-insert-sync"] if options.sync == "auto" else flags


def _assumptions(target: Target, options: Options, emitted: list[Emitted]) -> list[str]:
    found = [
        "arguments do not overlap, are aligned to 32 bytes and lie as their shapes and strides say",
        "kernels run one after another, in the order listed, on one stream",
        "workspaces hold nothing when the first kernel starts, and keep what they hold until the last one ends",
    ]
    if any(each.mixed for each in emitted):
        found.append("a block is one cube core with its first vector core; signals 0 to 15 between them are free")
        found.append("a signal carries everything that its pipe did before, and a barrier of all pipes waits for all")
        found.append("a signal that is set again before it was waited for counts twice")
    if any(each.mixed for each in emitted) and target.pto_arch == "a3":
        found.append("kernels with `signals` get the address where the machine counts them as their last argument")
    if options.sync == "explicit":
        found.append("no other code of the core uses the event ids of the flags printed")
    for each in emitted:
        if each.grid.reason:
            found.append(f"{each.function.name} runs as one block, because {each.grid.reason}")
    return found


@dataclass(slots=True)
class _Launches:
    program: Program
    emitted: dict[str, Emitted]
    arguments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    workspaces: dict[str, int | str] = field(default_factory=dict[str, "int | str"])
    kernels: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    arch: str = ""
    env: dict[Value, Scalar] = field(default_factory=dict[Value, Scalar])
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    trips: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    # --- arguments ---
    def parameters(self, main: Function) -> None:
        for param in main.params:
            value, kind = param.value, param.value.type
            name = self.fresh(value.name)
            self.names[value] = name
            entry: dict[str, Any] = {"name": name, "dtype": value.dtype.short}
            if isinstance(kind, TensorType):
                entry |= {"kind": "tensor", "direction": param.direction.value, "shape": self.shape(kind.shape, main)}
                if kind.strides is not None:
                    entry["strides"] = self.shape(kind.strides, main)
            else:
                entry["kind"] = "scalar"
            self.arguments.append(entry)

    def shape(self, shape: tuple[Scalar, ...], main: Function) -> list[int | str]:
        """Extents; one that is known at run time by its name, which is listed as an argument of its own."""
        found: list[int | str] = []
        for extent in shape:
            if isinstance(extent, Value) and extent not in self.names:
                self._extent(extent, main)
            named = self.names.get(extent, "?") if isinstance(extent, Value) else "?"
            found.append(extent if isinstance(extent, int) else named)
        return found

    def _extent(self, extent: Value, main: Function) -> None:
        name = self.fresh(extent.name)
        self.names[extent] = name
        for param in main.params:
            kind = param.value.type
            if isinstance(kind, TensorType) and extent in kind.shape:
                at = {"argument": param.value.name, "axis": kind.shape.index(extent)}
                self.arguments.append({"name": name, "kind": "extent", "dtype": "index", **at})
                return
        raise AssertionError(f"{extent.name} is the extent of no parameter")

    def fresh(self, name: str) -> str:
        taken = set(self.names.values()) | set(self.workspaces)
        made, count = name, 0
        while made in taken:
            count += 1
            made = f"{name}_{count}"
        return made

    def results(self, main: Function) -> list[str]:
        """The names of the tensors that the entry returns."""
        found = [value for value in map(self.resolve, result_of(main.body)) if isinstance(value, Value)]
        for value in found:
            known = value in self.names or not isinstance(value.type, TensorType)
            if main.kind is not FunctionKind.INCORE and not known:
                raise UnsupportedError(
                    f"{value.name!r} is returned, and which tensor it is depends on a value known at run time",
                    span=value.span,
                    required="an output, or a tensor that the entry creates",
                    help="copy it into an output",
                )
        return [self.names[value] for value in found if value in self.names]

    # --- the entry ---
    def resolve(self, scalar: Scalar) -> Scalar:
        while isinstance(scalar, Value) and scalar in self.env:
            scalar = self.env[scalar]
        if isinstance(scalar, int | Value):
            return scalar
        return substitute(scalar, self.resolve)

    def block(self, block: Block) -> None:
        for stmt in block:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let(target=target, value=Op() as op):
                self.tensor(target, op)
            case Let(target=target, value=value):
                if not isinstance(value, Op):
                    self.env[target] = self.resolve(value)
            case Call():
                self.call(stmt)
            case For():
                self.loop(stmt)
            case If():
                condition = constant_value(self.resolve(stmt.condition))
                if condition is None:
                    raise self.unsupported(stmt, "which kernels run depends on a value known at run time")
                arm = stmt.then if condition else stmt.otherwise
                self.block(arm)
                for result, given in zip(stmt.results, result_of(arm), strict=True):
                    self.env[result] = self.resolve(given)
            case Yield():
                pass
            case _:
                raise self.unsupported(stmt, f"a manifest has no {type(stmt).__name__.lower()}")

    def unsupported(self, stmt: Stmt, what: str) -> UnsupportedError:
        return UnsupportedError(
            what, span=stmt.span, required="launches that are known before the program runs",
            help="move the loop or branch into one section",
        )  # fmt: skip

    def tensor(self, target: Value, op: Op) -> None:
        """A tensor that the entry creates is a workspace."""
        kind = target.type
        if any(op.operand_items()) or op.work().kind != "none" or not isinstance(kind, TensorType):
            raise UnsupportedError(
                f"{op.qualified_name} stands outside every kernel", span=op.span, help="put it into a section"
            )
        extents = [constant_value(self.resolve(extent)) for extent in kind.shape]
        if any(extent is None for extent in extents):
            raise UnsupportedError(
                f"the size of the workspace {target.name!r} is known at run time only",
                span=op.span,
                required="constant extents",
                found=repr(kind),
            )
        name = self.fresh(target.name)
        # Each time that it is reached another tensor: what an earlier trip made may still be read.
        made = self.env[target] = Value(target.name, kind, target.span)
        self.names[made] = name
        size = 1 if kind.dtype is BOOL else kind.dtype.nbytes
        self.workspaces[name] = prod(int(extent or 0) for extent in extents) * size

    def loop(self, stmt: For) -> None:
        bounds = [constant_value(self.resolve(bound)) for bound in (stmt.start, stmt.stop, stmt.step)]
        if any(bound is None for bound in bounds):
            raise self.unsupported(stmt, "how often kernels run depends on a value known at run time")
        start, stop, step = (int(bound or 0) for bound in bounds)
        carried = [self.resolve(init) for init in stmt.inits]
        for count, trip in enumerate(range(start, stop, step)):
            if stmt.conditional:
                goes_on = constant_value(self.resolve(carried[0]))
                if goes_on is None or count > MOST_LAUNCHES:
                    raise self.unsupported(stmt, "how often kernels run depends on a value known at run time")
                if not goes_on:
                    break
            self.env[stmt.iv] = trip
            self.env.update(zip(stmt.iter_args, carried, strict=True))
            self.trips.append((stmt.iv.name, trip))
            self.block(stmt.body)
            self.trips.pop()
            carried = [self.resolve(given) for given in result_of(stmt.body)]
        self.env.update(zip(stmt.results, carried, strict=True))

    def call(self, stmt: Call) -> None:
        args = tuple(self.resolve(arg) for arg in stmt.args)
        self.launch(stmt.callee, args)
        callee = self.emitted[stmt.callee].function
        positions = output_positions(callee, self.program)
        for target, position in zip(stmt.targets, positions, strict=True):
            if position is not None:
                self.env[target] = args[position]

    def launch(self, name: str, args: tuple[Scalar, ...]) -> None:
        each = self.emitted[name]
        if len(self.kernels) >= MOST_LAUNCHES:
            raise UnsupportedError(f"a manifest lists at most {MOST_LAUNCHES} launches", span=each.function.span)
        binding = dict(zip((param.value for param in each.function.params), args, strict=True))
        listed = [self.named(arg, each) for arg in args]
        listed += [self.named(self._extent_of(v, each, binding), each) for v in extents_of(each.function)]
        core = "mixed" if each.mixed else each.grid.core
        kernel: dict[str, Any] = {"file": each.file, "entry": name, "core": core, "blocks": each.grid.blocks}
        kernel["arguments"] = listed
        if each.mixed and self.arch == "a3":
            kernel["signals"] = True
        if self.trips:
            kernel["trips"] = [[iv, trip] for iv, trip in self.trips]
        self.kernels.append(kernel)

    def _extent_of(self, extent: Value, each: Emitted, binding: dict[Value, Scalar]) -> Scalar:
        """What the extent `extent` of a kernel's tensor is, by the type of the argument."""
        for param in each.function.params:
            kind, arg = param.value.type, binding[param.value]
            if isinstance(kind, TensorType) and extent in kind.shape and isinstance(arg, Value):
                assert isinstance(arg.type, TensorType)
                return self.resolve(arg.type.shape[kind.shape.index(extent)])
        raise AssertionError(f"{extent.name} is the extent of no argument")

    def named(self, arg: Scalar, each: Emitted) -> str | int | float:
        value = constant_value(arg)
        if value is not None:
            return value
        if isinstance(arg, Value) and arg in self.names:
            return self.names[arg]
        raise UnsupportedError(
            f"an argument of {each.function.name} is computed at run time outside every kernel",
            span=each.function.span,
            required="a constant, or a parameter of the entry",
            found=repr(arg),
        )
