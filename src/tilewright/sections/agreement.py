"""What two sections must agree on before they can be one: phase, plan, and the tensor between them (rules 1 to 12)."""

from __future__ import annotations

from tilewright.sections.refusals import Disagree, NoItems, Phases, Planned, Reason, Refusal, Undeclared
from tilewright.sections.section import Phase, Section, Tensor


def check_phases(first: Section, second: Section) -> Refusal | None:
    """Rules 1 to 4: two templates, or two tiled sections of which the second runs under the first's plan."""
    if first.phase is not second.phase or first.phase not in (Phase.TEMPLATE, Phase.TILED):
        return Refusal("3", Phases(first.phase.value, second.phase.value), "phase")
    if first.phase is Phase.TEMPLATE and (planned := plan_of(first)) is not None:
        return Refusal("4", Planned(planned), f"first.{planned}")
    planned = plan_of(second)
    if planned is not None:
        return Refusal("4" if second.phase is Phase.TEMPLATE else "2", Planned(planned), f"second.{planned}")
    return None


def plan_of(section: Section) -> str | None:
    """The field in which the section says how often a loop of its own trips; None when there is none."""
    if section.trips:
        return "trips"
    if section.work.k_trip is not None:
        return "work.k_trip"
    return None


def check_plans(first: Section, second: Section) -> Refusal | None:
    """Rules 5 to 10. Beside the items, the loops that make them must be equal: items that are walked in order in one
    section and in parallel in the other could not be walked together."""
    if first.tile != second.tile:
        return Refusal("5", _differ("tile", first.tile, second.tile), "tile")
    if first.work.items != second.work.items:
        return Refusal("6", _differ("work.items", len(first.work.items), len(second.work.items)), "work.items")
    if first.work.grid != second.work.grid:
        return Refusal("6", _differ("work.grid", first.work.grid, second.work.grid), "work.grid")
    if not first.work.items:
        return Refusal("7", NoItems(), "work.items")
    if second.work.k_tiles not in (1, first.work.k_tiles):
        return Refusal("8", _differ("work.k_tiles", first.work.k_tiles, second.work.k_tiles), "second.work.k_tiles")
    if first.mem_banks != second.mem_banks:
        return Refusal("9", _differ("mem_banks", first.mem_banks, second.mem_banks), "mem_banks")
    if first.numerics != second.numerics:
        return Refusal("10", _differ("numerics", first.numerics, second.numerics), "numerics")
    if first.attrs != second.attrs:
        return Refusal("10", _differ("attrs", first.attrs, second.attrs), "attrs")
    return None


def check_tensor(name: str, first: Tensor | None, second: Tensor | None) -> Refusal | None:
    """Rules 11 and 12, for the two declarations of the tensor that is forwarded."""
    if first is None:
        return Refusal("11", Undeclared(name), "first.tensors")
    if second is None:
        return Refusal("11", Undeclared(name), "second.tensors")
    for field in ("elems", "tiles", "dtype", "layout"):
        left, right = getattr(first, field), getattr(second, field)
        if left != right:
            return Refusal("12", _differ(f"{name}.{field}", left, right), f"tensors.{name}.{field}")
    return None


def _differ(field: str, first: object, second: object) -> Reason:
    return Disagree(field, str(first), str(second))
