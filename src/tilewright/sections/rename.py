"""Other names for what a section is called with: lifting gives a kernel's own names, joining needs the program's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.sections.section import Bind, Body, Role, Section, Stage


def rename(
    section: Section,
    tensors: Mapping[str, str],
    scalars: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Section:
    """The section with tensors, scalars and itself called otherwise; names that are not in the maps stay."""
    given = scalars or {}
    return replace(
        section,
        name=section.name if name is None else name,
        tensors=tuple(replace(tensor, name=tensors.get(tensor.name, tensor.name)) for tensor in section.tensors),
        scalars=tuple(replace(scalar, name=given.get(scalar.name, scalar.name)) for scalar in section.scalars),
        stages=tuple(_stage(stage, given) for stage in section.stages) if given else section.stages,
    )


def _stage(stage: Stage, scalars: Mapping[str, str]) -> Stage:
    if stage.body is None or not any(bind.role is Role.SCALAR for bind in stage.body.binds):
        return stage
    binds = tuple(_bind(bind, scalars) for bind in stage.body.binds)
    return replace(stage, body=Body(stage.body.function, binds))


def _bind(bind: Bind, scalars: Mapping[str, str]) -> Bind:
    return replace(bind, name=scalars.get(bind.name, bind.name)) if bind.role is Role.SCALAR else bind
