"""Loop forms: what an operation does to one element, as data that native code and loop passes read.

Indices and element values are scalar expressions, so one form serves code generation, region analysis and docs:

    Elementwise(lambda op, a, b: a + b)                       out[i] = a[i] + b[i]
    Elementwise(..., maps=(FULL, ROW))                        the second operand is a column vector, read at [i, 0]
    Reduce(BinaryKind.MAX, axis=1)                            out[i, 0] = max_j in[i, j]
    Index(lambda op, i, j: (j, i))                            out[i, j] = in[j, i]
    Update(lambda op, i, j: (i + op.offsets[0], j + ...))     target[i + o0, j + o1] = in[i, j]
    Contract()                                                out[i, j] = acc[i, j] + sum_k lhs[i, k] * rhs[k, j]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tilewright.ir.scalar import BinaryKind, Scalar, Shape


class Map(Enum):
    """Which element of an operand an elementwise operation reads for out[i, j]."""

    FULL = "[i, j]"
    ROW = "[i, 0]"
    COLUMN = "[0, j]"


FULL, ROW, COLUMN = Map.FULL, Map.ROW, Map.COLUMN


@dataclass(frozen=True, slots=True)
class Elementwise:
    """`expr(op, *elements)` gives one element of the result. Elements come in the order of the operand and scalar
    fields that are not None, scratch left out; narrow floats arrive as FP32, and the result is rounded once.
    `maps` aligns with the tensor and tile operands; missing ones read at the same index."""

    expr: Callable[..., Scalar]
    maps: tuple[Map, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """The first operand reduced along `axis` in index order; that axis of the result has extent 1."""

    combine: BinaryKind
    axis: int


@dataclass(frozen=True, slots=True)
class Index:
    """out[ix] = source[map(op, *ix)]; `source` is the field read."""

    map: Callable[..., Shape]
    source: str


@dataclass(frozen=True, slots=True)
class Update:
    """target[map(op, *ix)] = source[ix] for every valid ix of `source` (a field; may hold a scalar)."""

    map: Callable[..., Shape]
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Contract:
    """out[i, j] = sum over k of lhs[i, k] * rhs[k, j], on top of what the field `acc` holds, read as `acc_map` says.
    `unless` is a field that may hold a condition; while it holds, `acc` is not read."""

    lhs: str = "lhs"
    rhs: str = "rhs"
    acc: str | None = None
    acc_map: Map = FULL
    unless: str | None = None


@dataclass(frozen=True, slots=True)
class Special:
    """No loop form: each backend registers code for the class, or the class says what it is made of (`Op.expand`).
    `rowwise`: each row of the result depends on the same row of each operand only."""

    reason: str
    rowwise: bool = False


LoopForm = Elementwise | Reduce | Index | Update | Contract | Special
