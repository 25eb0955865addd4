"""Accumulators that start as zeros, on machines that cannot fill their accumulators.

Before:  zero = pl.tile.full([64, 64], pl.FP32, 0.0)
         for k, (acc,) in pl.range(0, 8, 1, init_values=(zero,)):
             acc_1 = pl.tile.matmul_acc(acc, x, y)
After:   zero_acc = pl.tile.create([64, 64], pl.FP32, target_memory=pl.Mem.Acc)
         for k, (acc,) in pl.range(0, 8, 1, init_values=(zero_acc,)):
             acc_1 = pl.tile.matmul_acc(acc, x, y, init_cond=k == 0)

The first product overwrites what the accumulator held. That is known to be right only where every way from the zeros
to a reader passes through a product: the loop runs at least once, and its body reads the carried value in products
alone.

Refuses: zeros for which that is not known (`AccumulatorError`)."""

from __future__ import annotations

from tilewright.analysis.fills import is_zero_fill
from tilewright.analysis.spaces import accepted, fixed_space
from tilewright.analysis.uses import Use, Uses, uses_of
from tilewright.errors import AccumulatorError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.function import Function
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import For, Let
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, constant, constant_value
from tilewright.ir.types import TileType
from tilewright.ops.create import Create
from tilewright.targets import Target

TRUE = constant(True, BOOL)


def start_accumulators(function: Function, target: Target) -> Function:
    """Requires a function on tiles. Ensures that no zeros are moved to an accumulator that cannot receive them."""
    uses = uses_of(function)
    zeros = {
        stmt.target: stmt
        for stmt in function.walk()
        if isinstance(stmt, Let) and isinstance(stmt.value, Op) and is_zero_fill(stmt.value)
    }
    started = {zero for zero in zeros if _reaches_product(zero, uses, target, fixed_space(_op(zeros[zero])))}
    if not started:
        return function
    for zero in started:
        for use in uses[zero]:
            if _is_seed(use, uses) and not _is_overwritten(use, uses):
                raise _not_overwritten(zero, use)
    return _Starter(started, uses).function(function)


def _op(stmt: Let) -> Op:
    assert isinstance(stmt.value, Op)
    return stmt.value


# --- following an accumulator ---
def _accumulates(use: Use) -> bool:
    """Whether the use is the accumulator of a product that can also start one."""
    form = use.op.loops if use.op is not None else None
    return isinstance(form, Contract) and form.acc == use.field and form.unless is not None


def _is_seed(use: Use, uses: Uses) -> bool:
    """Whether the use makes the value an accumulator, at once or by way of loops that carry it."""
    if _accumulates(use):
        return True
    return isinstance(use.stmt, For) and any(
        _is_seed(inner, uses) for arg in use.stmt.iter_args for inner in uses.get(arg, ()) if _seeded_by(use, arg)
    )


def _seeded_by(use: Use, arg: Value) -> bool:
    stmt = use.stmt
    assert isinstance(stmt, For)
    return stmt.inits[stmt.iter_args.index(arg)] is use.value


def _reaches_product(zero: Value, uses: Uses, target: Target, space: object) -> bool:
    """Whether the zeros become an accumulator that they cannot be moved into."""
    for use in uses.get(zero, ()):
        if not _is_seed(use, uses):
            continue
        op = _product_of(use, uses)
        assert isinstance(op.loops, Contract) and op.loops.acc is not None
        assert isinstance(zero.type, TileType)
        for wanted in accepted(op, op.loops.acc, target):
            home = zero.type.space or space
            if home is None or target.route(home, wanted, zero.dtype) is None:  # type: ignore[arg-type]
                return True
    return False


def _product_of(use: Use, uses: Uses) -> Op:
    if _accumulates(use):
        assert use.op is not None
        return use.op
    assert isinstance(use.stmt, For)
    args = [arg for arg in use.stmt.iter_args if _seeded_by(use, arg)]
    return next(_product_of(inner, uses) for arg in args for inner in uses.get(arg, ()) if _is_seed(inner, uses))


def _is_overwritten(use: Use, uses: Uses) -> bool:
    """Whether nothing but a first product reads the value at `use`."""
    if _accumulates(use):
        return True
    stmt = use.stmt
    if not isinstance(stmt, For) or not (stmt.trip_count or 0) >= 1:
        return False
    for arg in stmt.iter_args:
        if _seeded_by(use, arg) and not all(_is_overwritten(inner, uses) for inner in uses.get(arg, ())):
            return False
    return True


def _not_overwritten(zero: Value, use: Use) -> AccumulatorError:
    return AccumulatorError(
        f"the zeros {zero.name!r} would have to be written into an accumulator, which only products write",
        span=use.stmt.span,
        required="a loop that runs at least once, and reads the accumulator in products alone",
        found="a loop whose trips are known only at run time, or another reader",
        help="start with the product itself: matmul for the first block, or matmul_acc(..., init_cond=(k == 0))",
    )


class _Starter(Rewriter):
    def __init__(self, started: set[Value], uses: Uses) -> None:
        super().__init__()
        self.started = started
        self.uses = uses
        self.seeds: dict[Value, Value] = {}
        self.fresh: dict[Value, Scalar] = {}
        """values that stand for zeros nobody wrote, and the condition under which they do"""

    def visit_let(self, stmt: Let) -> None:
        if stmt.target in self.started:
            self.seed(stmt)
            return
        op = stmt.value
        form = op.loops if isinstance(op, Op) else None
        if isinstance(op, Op) and isinstance(form, Contract) and form.acc is not None and form.unless is not None:
            acc = getattr(op, form.acc)
            condition = TRUE if acc in self.started else self.fresh.get(acc)
            if condition is not None:
                given = getattr(op, form.unless)
                if given is not None and constant_value(condition) is not True:
                    condition = binary(BinaryKind.OR, condition, self.scalar(given))
                op = op.replace(**{form.acc: self.seeds.get(acc, acc), form.unless: condition})
                stmt = Let(stmt.target, op, span=stmt.span)
        super().visit_let(stmt)

    def seed(self, stmt: Let) -> None:
        """An accumulator beside the zeros, which stay for other readers."""
        zero, kind = stmt.target, stmt.target.type
        assert isinstance(kind, TileType)
        if not all(_is_seed(use, self.uses) for use in self.uses[zero]):
            super().visit_let(stmt)
        op = Create(kind.shape, kind.dtype, valid_shape=kind.view.valid_shape, level=Level.TILE, span=stmt.span)
        self.seeds[zero] = self.let(op, f"{zero.name}_acc", stmt.span)

    def visit_for(self, stmt: For) -> None:
        inits: list[Scalar] = []
        for arg, init in zip(stmt.iter_args, stmt.inits, strict=True):
            tracked = isinstance(init, Value) and (init in self.started or init in self.fresh)
            if tracked and any(_is_seed(use, self.uses) for use in self.uses.get(arg, ())):
                assert isinstance(init, Value)
                first = binary(BinaryKind.EQ, stmt.iv, stmt.start)
                before = TRUE if init in self.started else self.fresh[init]
                both = first if constant_value(before) is True else binary(BinaryKind.AND, before, first)
                self.fresh[arg] = both
                inits.append(self.seeds.get(init, init))
            else:
                inits.append(init)
        same = all(a is b for a, b in zip(inits, stmt.inits, strict=True))
        super().visit_for(stmt if same else stmt.replace(inits=tuple(inits)))
