"""The access pattern of a load or store, read off its offsets and extents.

Offsets are sums of the grid's variable, whole or in parts (``i // 4 * 64 + i % 4 * 16``), and of the K loop's. What
mentions anything else is known at run time only, and its pattern says so."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.nodes import For
from tilewright.ir.op import Access, Op
from tilewright.ir.scalar import Binary, BinaryKind, Expr, Scalar, Shape, Value, linear_terms
from tilewright.sections.patterns import Affine, AffinePattern, Axis, Extent, OpaquePattern, Pattern, Step, Term


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops around an access: the grid's, and the one along K."""

    grid: For | None
    depth: For | None = None

    def pattern(self, op: Op, access: Access, shape: Shape, *, stepping: bool) -> Pattern:
        """The pattern of one access to a tensor of `shape`. `stepping`: the address moves with the item as that of a
        product does, laid out by a plan."""
        sums = [self.affine(scalar) for scalar in access.offsets]
        extents = [self.extent(*each) for each in zip(access.extents, access.offsets, shape, strict=True)]
        if any(found is None for found in sums):
            return OpaquePattern("its offsets are known at run time only")
        if any(extent is None for extent in extents) or bool(getattr(op, "clamp", False)):
            return OpaquePattern("its extents are known at run time only")
        known = tuple(extent for extent in extents if extent is not None)
        bases = [found for found in sums if found is not None]
        steps = [Step(Axis.COLUMN, dim, term) for dim, (_, trips) in enumerate(bases) for term in trips]
        if not stepping:
            return AffinePattern(known, tuple(base for base, _ in bases), tuple(steps))
        items = [Step(Axis.ITEM, dim, term) for dim, (base, _) in enumerate(bases) for term in base.terms]
        return AffinePattern(known, tuple(Affine(base.constant) for base, _ in bases), (*items, *steps))

    def extent(self, scalar: Scalar, offset: Scalar, limit: Scalar) -> Extent | None:
        """An extent; of one that is cut at the edge of its tensor (``min(64, n - row)``), the number."""
        if isinstance(scalar, Binary) and scalar.kind is BinaryKind.MIN:
            for number, other in ((scalar.lhs, scalar.rhs), (scalar.rhs, scalar.lhs)):
                if isinstance(number, int) and _is_rest(other, offset, limit):
                    return number
        return extent_of(scalar)

    def affine(self, scalar: Scalar) -> tuple[Affine, tuple[Term, ...]] | None:
        """The sum in the grid's variable, and the terms in the trip along K."""
        terms, constant = linear_terms(scalar)
        found: list[Term] = []
        trips: list[Term] = []
        for expr, coefficient in terms.items():
            loop = self.depth
            if loop is not None and expr is loop.iv and isinstance(loop.start, int) and isinstance(loop.step, int):
                constant += coefficient * loop.start
                trips.append(Term(coefficient * loop.step))
                continue
            term = self.term(expr, coefficient)
            if term is None:
                return None
            found.append(term)
        found.sort(key=lambda term: (term.index, term.divisor, term.modulus, term.coefficient))
        return Affine(constant, tuple(found)), tuple(trips)

    def term(self, expr: Expr, coefficient: int) -> Term | None:
        """``coefficient * (iv // divisor % modulus)``."""
        modulus, divisor = 0, 1
        if isinstance(expr, Binary) and expr.kind is BinaryKind.MOD and isinstance(expr.rhs, int):
            modulus = expr.rhs
            if isinstance(expr.lhs, int):
                return None
            expr = expr.lhs
        if isinstance(expr, Binary) and expr.kind is BinaryKind.FLOORDIV and isinstance(expr.rhs, int):
            divisor = expr.rhs
            if isinstance(expr.lhs, int):
                return None
            expr = expr.lhs
        if self.grid is None or expr is not self.grid.iv:
            return None
        return Term(coefficient, 0, divisor, modulus)


def _is_rest(scalar: Scalar, offset: Scalar, limit: Scalar) -> bool:
    """Whether a scalar is what the tensor has left from `offset` on."""
    terms, constant = linear_terms(scalar)
    other, base = linear_terms(limit - offset)
    return terms == other and constant == base and bool(terms)


def extent_of(scalar: Scalar) -> Extent | None:
    """A number, or the name of one that is known at run time."""
    if isinstance(scalar, int):
        return scalar
    return scalar.name if isinstance(scalar, Value) else None
