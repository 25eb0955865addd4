"""The checks of one function: what `Facts` cannot prove is compared when running."""

from __future__ import annotations

from tilewright.analysis.index_maps import AffineMap
from tilewright.codegen.native.bounds import Facts
from tilewright.codegen.native.builder import Index
from tilewright.codegen.native.guards import Guard
from tilewright.codegen.native.scope import Scope
from tilewright.errors import Span
from tilewright.ir.op import Access, Op
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.types import TensorType, TileType


class Checks:
    """Emits checks. `guards` is the kernel's list, in which a check's number is its position plus 1."""

    def __init__(self, scope: Scope, guards: list[Guard]) -> None:
        self.scope = scope
        self.guards = guards
        self.facts = Facts()
        self.known: list[set[tuple[Scalar, Scalar]]] = [set()]
        """extents that were found to fit, per open block: (extent, limit)"""
        self.exits: list[tuple[str, str]] = []
        """where the function is left: (return code, block)"""
        self.failures: list[str] = []

    # --- leaving --------------------------------------------------------------------------------------------------
    def leave(self, code: str) -> None:
        """Return `code`; the block ends here."""
        self.exits.append((code, self.scope.b.block))
        self.scope.b.jump("leave")

    def propagate(self, code: str) -> None:
        """Return a callee's code unless it is 0."""
        b = self.scope.b
        after = b.label("after")
        self.exits.append((code, b.block))
        b.branch(b.value(f"icmp eq i64 {code}, 0"), after, "leave")
        b.start(after)

    def require(self, condition: str, guard: Guard, report: tuple[Index, Index, Index, Index]) -> None:
        """Go on only while `condition`, an i1, holds."""
        b = self.scope.b
        self.guards.append(guard)
        after, fail = b.label("after"), b.label("fail")
        b.branch(condition, after, fail)
        lines = [f"{fail}:"]
        for position, number in enumerate(report):
            lines += [
                f"  %{fail}.{position} = getelementptr i64, ptr %report, i64 {position}",
                f"  store i64 {number}, ptr %{fail}.{position}",
            ]
        self.failures += [*lines, "  br label %leave"]
        self.exits.append((str(len(self.guards)), fail))
        b.start(after)

    # --- what is checked ------------------------------------------------------------------------------------------
    def accesses(self, op: Op, span: Span) -> None:
        """Every box that the operation reads or writes lies inside its array."""
        for access in op.accesses():
            if access.field is not None:
                value = getattr(op, access.field)
                kind = value.type
                assert isinstance(kind, (TensorType, TileType))
                self._box(op, access, kind.shape, value.name, span)

    def _box(self, op: Op, access: Access, limits: Shape, name: str, span: Span) -> None:
        for axis, (offset, extent, limit) in enumerate(zip(access.offsets, access.extents, limits, strict=True)):
            if extent == 0 or self._inside(offset, extent, limit):
                continue
            guard = Guard("write" if access.writes else "read", op.qualified_name, name, span)
            o, e, n = self.scope.indices((offset, extent, limit))
            self.require(self._fits(o, e, n), guard, (axis, o, e, n))
            if offset == 0:
                self.known[-1].add((extent, limit))

    def window(self, op: Op, found: AffineMap, shape: Shape, source: Value, span: Span) -> None:
        """A view lies in what it looks at with all of its physical shape, for others may look at that in turn."""
        kind = source.type
        assert isinstance(kind, (TensorType, TileType))
        extents: list[Scalar] = []
        for row in found.coefficients:
            extent: Scalar = 1
            for factor, own in zip(row, shape, strict=True):
                reach = binary(BinaryKind.MUL, binary(BinaryKind.SUB, own, 1), factor)
                extent = binary(BinaryKind.ADD, extent, reach)
            extents.append(extent)
        self._box(op, Access("", False, found.offsets, tuple(extents)), kind.shape, source.name, span)

    def _inside(self, offset: Scalar, extent: Scalar, limit: Scalar) -> bool:
        facts = self.facts
        if offset == 0 and self._is_known(extent, limit):
            return True
        end = binary(BinaryKind.ADD, offset, extent)
        return facts.at_most(0, offset) and facts.at_most(0, extent) and facts.at_most(end, limit)

    def _is_known(self, extent: Scalar, limit: Scalar) -> bool:
        return any((extent, limit) in block for block in self.known)

    def _fits(self, offset: Index, extent: Index, limit: Index) -> str:
        """``extent == 0 or (0 <= offset and 0 <= extent and offset + extent <= limit)``."""
        b = self.scope.b
        end = b.add(offset, extent)
        inside = b.value(f"icmp sle i64 {end}, {limit}")
        for number in (offset, extent):
            if not (isinstance(number, int) and number >= 0):
                inside = b.value(f"and i1 {inside}, {b.value(f'icmp sge i64 {number}, 0')}")
        if isinstance(extent, int):
            return inside
        return b.value(f"or i1 {inside}, {b.value(f'icmp eq i64 {extent}, 0')}")

    def valid(self, kind: TileType, op: Op, name: str, span: Span) -> None:
        """A tile's valid shape fits its physical shape."""
        for axis, (extent, limit) in enumerate(zip(kind.valid, kind.shape, strict=True)):
            if self._is_known(extent, limit):
                continue
            if self.facts.at_most(0, extent) and self.facts.at_most(extent, limit):
                continue
            e, n = self.scope.indices((extent, limit))
            b = self.scope.b
            fits = b.value(f"icmp ule i64 {e}, {n}")  # unsigned, so that less than 0 is too much
            self.require(fits, Guard("valid", op.qualified_name, name, span), (axis, 0, e, n))
            self.known[-1].add((extent, limit))

    def step(self, step: Index, span: Span) -> None:
        """A loop's step is not 0."""
        test = self.scope.b.value(f"icmp ne i64 {step}, 0")
        self.require(test, Guard("step", "for", "", span), (0, 0, 0, 0))
