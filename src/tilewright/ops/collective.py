"""Between sites: machines that run the same program, each on its own data, and meet in these operations.

Only the interpreter runs them, over sites that `execute.sites` simulates; no backend has a form of them. Which site is
running, and how it reaches the others, is the context's to say (`SITE`); a program that runs by itself is one site,
whose sums are its own.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.ir.dtypes import BF16, FP16, FP32, INT32, DType
from tilewright.ir.loops import Special
from tilewright.ir.op import Array, Effect, LoweringContext, Needs, Op, Spelling, Work, attribute, operand, scalars
from tilewright.ir.op import unsupported as without
from tilewright.ir.scalar import Shape, Value
from tilewright.ir.types import TensorType, Type
from tilewright.ops.common import TENSOR, check_dtype, elements_of
from tilewright.ops.movement import Load

NEEDS_SITES = "it needs other sites, which only the interpreter simulates"
NUMBERS = (FP32, FP16, BF16, INT32)


class Site(Protocol):
    """One of the machines, as seen from an operation that runs on it."""

    def all_reduce(self, group: str, own: Array) -> Array:
        """The sum of what every site of the group has, in the order of the sites."""
        ...

    def recv(self, channel: str) -> Array:
        """The next array that was sent over the channel to this site."""
        ...


SITE: ContextVar[Site | None] = ContextVar("tilewright_site", default=None)
"""The site that is running; None: there is one."""


class AllReduce(Op, name="all_reduce", levels=(TENSOR,), writes="tensor", effect=Effect.OBSERVABLE):
    """The next version of `tensor`: its sum over all sites of `group`, in the order of the sites."""

    tensor: Value = operand(aliases=("input",))
    group: str = attribute(default="all")
    dtypes = NUMBERS
    spelling = Spelling(pto=without(NEEDS_SITES))
    lowering = Needs()
    loops = Special("a sum over sites")

    def infer(self) -> Type:
        check_dtype(self, "tensor", self.tensor.dtype, self.dtypes)
        return self.tensor.type

    def evaluate(self, tensor: Array) -> Array:
        site = SITE.get()
        if site is not None:
            tensor[...] = site.all_reduce(self.group, tensor)
        return tensor

    def defined(self, tensor: Array) -> Array:
        return tensor

    def work(self) -> Work:
        elements = elements_of(self.tensor.type)
        return Work("move", elements=elements, nbytes=elements * self.tensor.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        return context.emit(self)


class Recv(Op, name="recv", levels=(TENSOR,), effect=Effect.OBSERVABLE):
    """A new tensor: the next one that was sent to this site over `channel`."""

    shape: Shape = scalars()
    dtype: DType = attribute()
    channel: str = attribute(default="in")
    dtypes = NUMBERS
    spelling = Spelling(pto=without(NEEDS_SITES))
    lowering = Needs()
    loops = Special("a message of another site")

    def infer(self) -> Type:
        check_dtype(self, "dtype", self.dtype, self.dtypes)
        return TensorType(self.shape, self.dtype)

    def evaluate(self, shape: Any) -> Array:
        site = SITE.get()
        if site is None:
            raise ArgumentError(
                f"nothing is sent over the channel {self.channel!r}",
                span=self.span,
                help="run the program with execute.sites.run_sites, and say there what is sent",
            )
        found = site.recv(self.channel)
        if found.shape != tuple(shape) or found.dtype != np.dtype(self.dtype.numpy):
            raise ArgumentError(
                f"what comes over the channel {self.channel!r} is another tensor",
                span=self.span,
                required=f"{list(shape)} {self.dtype}",
                found=f"{list(found.shape)} {found.dtype}",
            )
        return found

    def defined(self, shape: Any) -> Array:
        return np.ones(tuple(shape), np.bool_)

    def work(self) -> Work:
        elements = elements_of(self.infer())
        return Work("move", elements=elements, nbytes=elements * self.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        made = context.emit(self, "received")
        kind = made.type
        assert isinstance(kind, TensorType)
        return context.emit(Load(made, (0,) * kind.rank, kind.shape, span=self.span))
