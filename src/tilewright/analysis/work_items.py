"""Which parallel loops of a function are work items, and on how many cores they run.

The trips of a parallel loop at the top of a function are dealt out in turn: block b of B takes trips b, b + B,
b + 2B, ... A function whose other statements write to memory, or whose parallel loops meet, runs as one block.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.analysis.cores import CORE, cores_of
from tilewright.ir.function import Function
from tilewright.ir.nodes import For, Let, LoopKind, Stmt, walk
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import Roots, roots_of, written_operand
from tilewright.ir.types import TensorType
from tilewright.targets import Target

CLUSTER = "cluster"
"""Where a function runs that needs one core of each kind."""


@dataclass(frozen=True, slots=True)
class WorkItems:
    """`loops` are dealt out over at most `cores` blocks."""

    loops: tuple[For, ...]
    core: str | None
    """the kind of core that runs a block; None: a cluster with one of each kind"""
    cores: int
    reason: str | None = None
    """why the function has parallel loops and still runs as one block"""

    @property
    def place(self) -> str:
        """The kind of core, or ``cluster``."""
        return self.core or CLUSTER


def work_items(function: Function, target: Target) -> WorkItems:
    """Decides what `function` deals out to the cores of `target`."""
    kinds = cores_of(function, target)
    stated = function.attr(CORE)
    core = str(stated) if stated is not None else next(iter(kinds)) if len(kinds) == 1 else None
    if core is None and (not kinds or len(target.cores) == 1):
        core = target.core_for("vector")
    count = target.cores.get(core, 1) if core is not None else min(target.cores.values())
    loops = tuple(s for s in function.body if isinstance(s, For) and s.kind is LoopKind.PARALLEL)
    nested = any(isinstance(s, For) and s.kind is LoopKind.PARALLEL for s in walk(function.body))
    reason = _reason(function, loops) if nested else None
    return WorkItems(() if reason else loops, core, count, reason)


def _reason(function: Function, loops: tuple[For, ...]) -> str | None:
    """Why blocks could get into each other's way; None when they cannot."""
    if not loops:
        return "its parallel loop is inside another statement"
    roots = roots_of(function)
    touched = [(stmt, *_touched(stmt, roots)) for stmt in function.body]
    for stmt, _, written, observable in touched:
        if stmt not in loops and (written or observable):
            return "something outside its parallel loop writes to memory"
        if isinstance(stmt, For) and any(not isinstance(arg.type, TensorType) for arg in stmt.iter_args):
            return "its parallel loop carries a tile or a scalar"
    for stmt, _, written, _ in touched:
        if any(written & (read | wrote) for other, read, wrote, _ in touched if other is not stmt):
            return "one of its parallel loops uses what another one writes"
    return None


def _touched(stmt: Stmt, roots: Roots) -> tuple[set[Value], set[Value], bool]:
    """The tensors read and written inside `stmt`, by root, and whether it does something that must be seen."""
    read: set[Value] = set()
    written: set[Value] = set()
    observable = False
    for inner in walk((stmt,)):
        if not isinstance(inner, Let) or not isinstance(inner.value, Op):
            continue
        observable |= inner.value.effect is Effect.OBSERVABLE
        target = written_operand(inner.value)
        for _, value in inner.value.operand_items():
            if isinstance(value.type, TensorType):
                (written if value is target else read).add(roots.get(value, value))
    return read, written, observable
