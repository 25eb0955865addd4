"""What a section claims about its numbers, and what two sections joined may still claim.

A claim bounds the error of a section's results against exact arithmetic, as a function of the error that comes in:
``error + gain * incoming``, in units of the values. A gain below 1 is not offered: a claim that counted on a reader
to shrink an error would make the joined bound depend on which pair is joined first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Bound = Fraction | None
"""A bound; None is infinity."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`error` is what the section adds itself, `gain` (at least 1) how often an error that comes in may be multiplied.
    Fractions, so that joining in any order gives the same claim to the last bit."""

    error: Bound
    gain: Bound

    @property
    def is_exact(self) -> bool:
        """Whether exact inputs give exact results."""
        return self.error == 0

    def __str__(self) -> str:
        gain = "" if self.gain == 1 else f", gain {_text(self.gain)}"
        return f"exact{gain}" if self.is_exact else f"error {_text(self.error)}{gain}"


EXACT = Claim(Fraction(0), Fraction(1))
"""Nothing is rounded that could be, and errors that come in pass through."""
NOTHING = Claim(None, None)
"""No bound at all."""


def bounded(error: float | Fraction, gain: float | Fraction = 1) -> Claim:
    """A claim with finite bounds, both as exact fractions."""
    return Claim(Fraction(error), max(Fraction(gain), Fraction(1)))


def no_stronger(left: Claim, right: Claim) -> bool:
    """Whether `left` claims at most what `right` claims: the order of the lattice."""
    return _at_least(left.error, right.error) and _at_least(left.gain, right.gain)


def merge(left: Claim, right: Claim) -> Claim:
    """The strongest claim that neither side contradicts: the least upper bound. Commutative and associative."""
    return Claim(_larger(left.error, right.error), _larger(left.gain, right.gain))


def compose(first: Claim, second: Claim) -> Claim:
    """What holds when `second` reads what `first` made: the first's error comes in, so it is multiplied by the
    second's gain. Never stronger than `merge` of the two; associative."""
    through = Claim(
        _plus(second.error, _times(second.gain, first.error)),
        _times(second.gain, first.gain),
    )
    return merge(through, merge(first, second))


def _at_least(left: Bound, right: Bound) -> bool:
    return left is None or (right is not None and left >= right)


def _larger(left: Bound, right: Bound) -> Bound:
    return left if _at_least(left, right) else right


def _plus(left: Bound, right: Bound) -> Bound:
    return None if left is None or right is None else left + right


def _times(left: Bound, right: Bound) -> Bound:
    """The product; no gain, however large, makes an error out of none."""
    if left == 0 or right == 0:
        return Fraction(0)
    return None if left is None or right is None else left * right


def _text(bound: Bound) -> str:
    return "unbounded" if bound is None else f"{float(bound):g}"
