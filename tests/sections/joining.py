"""Asking for joins in tests: what must join, and what must be refused and where."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tilewright.sections.forward import Allow, Joint, forward
from tilewright.sections.refusals import Reason, Refusal
from tilewright.sections.section import Compute, Section
from tilewright.sections.verify import faults
from tilewright.targets import Target, load_target

TARGET = load_target("ascend950")
"""Every pair of memories that a matmul and vector work use meets on chip there."""


def join(
    first: Section,
    second: Section,
    name: str = "t",
    *,
    allow: Collection[Allow] = (),
    live: bool = False,
    target: Target = TARGET,
) -> Joint:
    """The joint of two sections, which must be well formed, as they must be."""
    assert faults(first) == () and faults(second) == ()
    joint = forward(first, second, name, target=target, allow=allow, live=live)
    assert isinstance(joint, Joint), joint
    assert faults(joint.section) == ()
    return joint


def refused(
    rule: str,
    reason: type[Reason],
    where: str,
    first: Section,
    second: Section,
    *,
    allow: Collection[Allow] = (),
    live: bool = False,
    target: Target = TARGET,
) -> Refusal:
    """The refusal to forward `t`, which must be of that rule, for that reason, at that stage or field."""
    assert faults(first) == () and faults(second) == ()
    refusal = forward(first, second, "t", target=target, allow=allow, live=live)
    assert isinstance(refusal, Refusal), refusal
    assert (refusal.rule, type(refusal.reason), refusal.where) == (rule, reason, where)
    assert rule in str(refusal) and where in str(refusal)
    return refusal


def names(items: Any) -> list[str]:
    return [item.name for item in items]


def works(section: Section) -> list[str]:
    """The stages in short."""
    return [s.kind.work if isinstance(s.kind, Compute) else type(s.kind).__name__ for s in section.stages]
