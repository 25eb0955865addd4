"""Expansion: what no machine has as an instruction becomes operations and loops over single elements.

Before:  m = pl.tile.row_argmax(x)                              # x [4, 8]
After:   m_1 = pl.tile.create([4, 1], pl.INT32)
         for i, (m_2,) in pl.range(0, 4, 1, init_values=(m_1,)):
             for j, (best, where) in pl.range(0, 8, 1, init_values=(...)):
                 ...
             m_3 = pl.tile.write(m_2, [i, 0], where_1)
Ensures: no operation is left whose class states `expand`. On a target that is programmed by text for an assembler, no
         operation either whose class says of that text that it has no instruction for it (`Expanded`): an elementwise
         one becomes instructions on whole tiles where its expression can be spelled by them, and else, as every
         other, a loop that reads and writes single elements. The plan has a hint with the cost of each such loop.
         So does, there, what writes into a tile from a place on that no part of a tile can start at, and a conversion
         between integers for which there is no chain of instructions.
Refuses: what an operation's own `expand` refuses.

Tiles may have any number of dimensions: the pass comes before they are flattened."""

from __future__ import annotations

from tilewright.analysis.casts import cast_chain
from tilewright.analysis.hints import PerfHint
from tilewright.errors import TilewrightError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.function import Program
from tilewright.ir.loops import Elementwise, Special, Update
from tilewright.ir.nodes import Let
from tilewright.ir.op import Expanded, Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType
from tilewright.passes.tile.expand.builder import Builder
from tilewright.passes.tile.expand.elements import by_element
from tilewright.passes.tile.expand.instructions import by_instruction
from tilewright.passes.tile.expand.plan import ExpansionPlan
from tilewright.targets import Target

UNIT = 32
"""Bytes to a multiple of which a part of a tile must start in the text."""
__all__ = ["ExpansionPlan", "expand", "plan_expansion"]


def expand(program: Program, target: Target) -> Program:
    """Requires the tile level. Linear in the size of the program. Raises what operations raise."""
    return program.map(lambda function: _Expander(target).function(function))


def plan_expansion(program: Program, target: Target) -> ExpansionPlan:
    """What becomes loops over single elements, with what that costs."""
    hints: list[PerfHint] = []
    for function in program.functions:
        expander = _Expander(target)
        expander.function(function)
        hints += expander.hints
    return ExpansionPlan(tuple(hints))


class _Expander(Builder):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.hints: list[PerfHint] = []

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op) or not is_expanded(op, self.target):
            super().visit_let(stmt)
            return
        kind = stmt.target.type.substitute(self.get)
        self.start(stmt.target.name, stmt.span, kind.space if isinstance(kind, TileType) else None)
        try:
            new = self.made(op.with_operands(self.get))
        except TilewrightError as error:
            raise error.at(stmt.span) from None
        self.bind(stmt.target, self.placed(new, kind) if isinstance(new, Value) else new)
        if self.elements and self.target.pto_arch is not None:
            self.hints.append(_hint(op, stmt, self.elements))

    def op(self, op: Op, name: str | None = None) -> Value:
        """As the builder does; what is to be expanded itself is."""
        if not is_expanded(op, self.target):
            return super().op(op, name)
        new = self.made(op)
        assert isinstance(new, Value)
        return new

    def plain(self, op: Op, name: str | None = None) -> Value:
        return super().op(op, name)

    def made(self, op: Op) -> Scalar:
        """What stands for the result of `op`."""
        if op.is_expanded or (isinstance(op.loops, Special) and type(op).expand is not Op.expand):
            return op.expand(self)
        whole = None if _has_no_chain(op, self.target) else by_instruction(op, self)
        return by_element(op, self) if whole is None else whole


def is_expanded(op: Op, target: Target) -> bool:
    """Whether `op` is replaced on `target`."""
    if op.is_expanded:
        return True
    if target.pto_arch is not None and (_cuts_a_unit(op) or _has_no_chain(op, target)):
        return True
    spelled = op.spelling.pto_scalar if op.is_scalar_form and op.spelling.pto_scalar is not None else op.spelling.pto
    return target.pto_arch is not None and isinstance(spelled, Expanded)


def _cuts_a_unit(op: Op) -> bool:
    """Whether an update writes into a tile from a place on that no part of a tile can start at."""
    if not isinstance(op.loops, Update):
        return False
    kind = getattr(op, op.loops.target).type
    if not isinstance(kind, TileType) or kind.dtype is BOOL:
        return False
    along = -2 if kind.rank > 1 and kind.shape[-1] == 1 else -1  # the elements of a column lie together
    offsets = [access.offsets[along] for access in op.accesses() if access.writes]
    return any(isinstance(offset, int) and offset * kind.dtype.nbytes % UNIT for offset in offsets)


def _has_no_chain(op: Op, target: Target) -> bool:
    """Whether an operation converts between element types between which no chain of instructions does."""
    if not op.converts or not isinstance(op.loops, Elementwise):
        return False
    ((_, source),) = op.operand_items()
    made = op.infer()
    if BOOL in (source.dtype, made.dtype) or not isinstance(made, TileType):
        return False
    return source.dtype.is_integer and made.dtype.is_integer and cast_chain(source.dtype, made.dtype, target) is None


def _hint(op: Op, stmt: Let, elements: int) -> PerfHint:
    return PerfHint(
        "PH-EX-001",
        f"{op.qualified_name} has no instruction: {elements:,} elements or rows are read and written one by one "
        f"by the scalar unit",
        stmt.span,
    )
