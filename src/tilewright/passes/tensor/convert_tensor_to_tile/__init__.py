"""From tensors to tiles: sections load what they read, compute on tiles, and store what they return.

Before:  def main(self, a, b):                            # InCore
             c = pl.tensor.matmul(a, b, b_trans=True)
             return c
Ensures: an `INCORE` function holds no tensor operation, except reads of scalars and writes of single elements. Each
         input is in the space that the registry's entry of its consumer requires: loaded there when it is in DDR,
         moved there when it is a tile elsewhere, once per value, space, transposition and enclosing block. A result
         that became a tile is stored to a new output parameter, which callers create.
After:   def main(self, a, b, c_out):
             a_1 = pl.tile.load(a, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
             b_1 = pl.tile.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat, transpose=True)
             c = pl.tile.matmul(a_1, b_1)
             c_1 = pl.tile.store(c, [0, 0], c_out)
             return c_1
Where a value is wanted in several spaces, the plan takes what costs the fewest cycles on the target's edges. Output
parameters added to the entry come last; its attribute ``added_outputs`` counts them.
Refuses: an operation without a conversion; a view of a tensor that is written through; a result whose size only the
section knows."""

from __future__ import annotations

from tilewright.ir.function import Function, FunctionKind, Param, Program
from tilewright.ir.nodes import Call
from tilewright.ir.op import Level
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TensorType
from tilewright.ops.create import Create
from tilewright.passes.tensor.convert_tensor_to_tile.consumers import ConsumerSpaceCollector, Form
from tilewright.passes.tensor.convert_tensor_to_tile.convert import Converter
from tilewright.passes.tensor.convert_tensor_to_tile.plan import (
    ConversionPlan,
    Decision,
    FunctionPlan,
    conversion_plan,
    plan_function,
)  # fmt: skip
from tilewright.passes.tensor.convert_tensor_to_tile.registry import (
    DEFAULT,
    ConversionEntry,
    InputSpaceReq,
    OpConversionRegistry,
)  # fmt: skip
from tilewright.targets import Target

__all__ = [
    "DEFAULT", "ConsumerSpaceCollector", "ConversionEntry", "ConversionPlan", "Decision", "Form", "InputSpaceReq",
    "OpConversionRegistry", "convert_tensor_to_tile", "plan_conversion",
]  # fmt: skip


def convert_tensor_to_tile(program: Program, target: Target, registry: OpConversionRegistry | None = None) -> Program:
    """Requires SSA and sections that call nothing. Linear in the size of the program. Raises `UnsupportedError`,
    `ShapeError`."""
    registry = registry or DEFAULT
    functions: dict[str, Function] = {}
    added: dict[str, tuple[Param, ...]] = {}
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            plan = plan_function(function, program, registry, target)
            converter = Converter(plan, registry)
            new = converter.function(function)
            functions[function.name] = function if new == function else new
            added[function.name] = tuple(converter.added)
    entry = added.get(program.entry)
    if entry:
        main = functions[program.entry]
        functions[program.entry] = main.with_(attrs=(*main.attrs, ("added_outputs", len(entry))))
    caller = _Caller(functions, added)
    return program.map(lambda function: functions.get(function.name) or caller.function(function))


def plan_conversion(program: Program, target: Target, registry: OpConversionRegistry | None = None) -> ConversionPlan:
    """What `convert_tensor_to_tile` would decide: for each value, the spaces in which it is had, from where, and the
    cycles."""
    plans: list[FunctionPlan] = []
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            plans.append(plan_function(function, program, registry or DEFAULT, target))
    return conversion_plan(plans)


class _Caller(Rewriter):
    """Creates what the output parameters that functions got are to write to, right before each call."""

    def __init__(self, functions: dict[str, Function], added: dict[str, tuple[Param, ...]]) -> None:
        super().__init__()
        self.functions = functions
        self.added = added

    def visit_call(self, stmt: Call) -> None:
        outputs = self.added.get(stmt.callee, ())
        if not outputs:
            super().visit_call(stmt)
            return
        callee = self.functions[stmt.callee]
        args: tuple[Scalar, ...] = tuple(self.scalar(arg) for arg in stmt.args)
        binding: dict[Value, Scalar] = {p.value: a for p, a in zip(callee.params, args, strict=False)}
        rooms: list[Value] = []
        for param in outputs:
            kind = param.value.type.substitute(lambda v: binding.get(v, v))
            assert isinstance(kind, TensorType)
            create = Create(kind.shape, kind.dtype, level=Level.TENSOR, span=stmt.span)
            rooms.append(self.let(create, param.value.name.removesuffix("_out"), stmt.span))
        super().visit_call(stmt.replace(args=(*args, *rooms)))
