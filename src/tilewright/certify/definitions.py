"""Scalars that have a name, in terms of what they were computed from: offsets and conditions are compared so."""

from __future__ import annotations

from tilewright.ir.dtypes import INDEX
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value, substitute


class Definitions:
    """What was defined so far, on the way through a function."""

    def __init__(self) -> None:
        self._named: dict[Value, Scalar] = {}

    def define(self, stmt: Let) -> None:
        """Notes what an INDEX stands for; what an operation gives stands for itself."""
        value = stmt.value
        if not isinstance(value, Op) and stmt.target.dtype is INDEX:
            self._named[stmt.target] = self.spelled(value)

    def spelled(self, scalar: Scalar) -> Scalar:
        """The scalar in terms of loop variables, arguments, and what is read at run time."""
        return substitute(scalar, lambda value: self._named.get(value, value)) if self._named else scalar
