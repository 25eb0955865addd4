"""The decision: in which forms each value is had, and from what each form is made. Printable; the rewrite applies it.

main: a [64, 64] FP32: Mat loaded, Vec loaded (1210 cycles)
main: x [64, 64] FP32: Mat from Vec, Vec computed (415 cycles)
main: acc [64, 64] FP32: carried in Acc
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.function import Function, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import For
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType
from tilewright.passes.tensor.convert_tensor_to_tile.consumers import ConsumerSpaceCollector, Form, Wants, Web
from tilewright.passes.tensor.convert_tensor_to_tile.prices import (
    FREE,
    IN_DDR,
    NO_ROUTE,
    Price,
    Prices,
    Tree,
    plus,
    size_of,
)
from tilewright.passes.tensor.convert_tensor_to_tile.registry import OpConversionRegistry
from tilewright.targets import Target

ANYWHERE = Form(None)
EARLY_SHARE = 0.25
"""The part of a memory that inputs loaded before loops may take (assumed): the loop needs the rest."""


@dataclass(frozen=True, slots=True, order=True)
class Decision:
    """One value: its forms, each with how it comes about."""

    function: str
    value: str
    type: str
    forms: tuple[str, ...]
    cycles: float = 0.0

    def __str__(self) -> str:
        cost = f" ({self.cycles:.0f} cycles)" if self.cycles else ""
        return f"{self.function}: {self.value} {self.type}: {', '.join(self.forms)}{cost}"


@dataclass(slots=True)
class FunctionPlan:
    """The plan of one function. `trees` has an entry for each value of which a form is wanted."""

    survey: ConsumerSpaceCollector
    prices: Prices
    trees: dict[Value, Tree] = field(default_factory=dict[Value, Tree])
    homes: dict[Value, MemorySpace | None] = field(default_factory=dict[Value, "MemorySpace | None"])
    """where the values of a web live"""
    placed: dict[Value, MemorySpace] = field(default_factory=dict[Value, MemorySpace])
    """values of webs, and computed values that flow into one, whose types name the space; what is in a web and not
    here is left to space inference, since not all that flows into it comes out in one space"""
    early: dict[For, list[tuple[Value, Form]]] = field(default_factory=dict[For, "list[tuple[Value, Form]]"])
    """inputs to be loaded before a loop instead of in each trip"""
    decisions: list[Decision] = field(default_factory=list[Decision])


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """The decisions for a program, in an order that does not depend on the program's."""

    decisions: tuple[Decision, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.decisions))


def plan_function(function: Function, program: Program, registry: OpConversionRegistry, target: Target) -> FunctionPlan:
    """Decide for one `INCORE` function. Linear in its size."""
    plan = FunctionPlan(ConsumerSpaceCollector(function, program, registry), Prices(target))
    for web in plan.survey.webs:
        _settle(web, plan)
    survey = plan.survey
    for value in reversed(survey.order):
        if value in survey.aliases:
            continue
        if value in survey.sources and survey.is_loaded(value):
            _loaded_view(value, plan)
        elif survey.wants.get(value):
            _computed(value, plan)
    for value, wants in survey.wants.items():
        if value in survey.in_memory:
            plan.trees[value] = _decide(value, IN_DDR, wants, plan)
        elif value not in plan.trees:
            _computed(value, plan)
    _choose_early(plan, target)
    return plan


def _choose_early(plan: FunctionPlan, target: Target) -> None:
    """Inputs that a loop wants whole in each trip are loaded once before it, as far as `EARLY_SHARE` of each memory
    goes, those that stand first in the program first."""
    used: dict[str, int] = {}
    for loop, wanted in plan.survey.invariant.items():
        for value, form in wanted:
            if form.space is None or not target.has(form.space):
                continue
            assert isinstance(value.type, TensorType)
            memory = target.roles[form.space]
            nbytes = used.get(memory, 0) + size_of(value.type)
            if nbytes <= EARLY_SHARE * target.capacity(form.space):
                used[memory] = nbytes
                plan.early.setdefault(loop, []).append((value, form))


# --- webs ---------------------------------------------------------------------------------------------------------
def _settle(web: Web, plan: FunctionPlan) -> None:
    """Choose where a web lives. The space is written into the types when everything that flows in gets there: else
    space inference, which sees the tile operations, places the web (an accumulator that starts as a constant)."""
    survey = plan.survey
    naturals = {value: survey.fixed.get(survey.origin(value)) for value, _ in web.producers}
    loaded = [value for value, _ in web.producers if survey.is_loaded(value)]
    candidates = {space for space in (*naturals.values(), *(form.space for form in web.wants)) if space is not None}
    kind = web.members[0].type
    assert isinstance(kind, TensorType)
    space = min(candidates, key=lambda each: (_price(each, web, plan, kind), each.value), default=None)
    agreed = space is not None and all(
        value in loaded or _reaches(naturals[value], space, plan, kind) for value, _ in web.producers
    )
    if plan.prices.is_view(space) and any(survey.resolve(value)[1] for value, _ in web.producers):
        agreed = False  # a transposed view has another layout than what else flows in
    for member in web.members:
        plan.homes[member] = space
    for value, weight in web.producers:
        if value in loaded:
            survey.want(value, Form(space if agreed else None), weight)
        elif agreed and space is not None and naturals[value] is space:
            plan.placed[survey.origin(value)] = space
        elif agreed:
            survey.want(value, Form(space), weight)
    if agreed and space is not None:
        plan.placed.update((member, space) for member in web.members)
    if web.members and space is not None:
        name = min(member.name for member in web.members)
        plan.decisions.append(Decision(survey.function.name, name, _spell(kind), (f"carried in {space.value}",)))


def _reaches(natural: MemorySpace | None, space: MemorySpace, plan: FunctionPlan, kind: TensorType) -> bool:
    """Whether what comes out in `natural` can be brought to `space`."""
    return natural is not None and plan.prices.path(Form(natural), Form(space), kind)[0] < NO_ROUTE


def _price(space: MemorySpace, web: Web, plan: FunctionPlan, kind: TensorType) -> Price:
    """What it costs to bring everything into `space`, and from there to the consumers."""
    survey, total = plan.survey, FREE
    steps: list[tuple[Price, int]] = []
    for value, weight in web.producers:
        natural = survey.fixed.get(survey.origin(value))
        start = IN_DDR if survey.is_loaded(value) else Form(natural)
        if start.space is not None:
            steps.append((plan.prices.path(start, Form(space), kind), weight))
    steps += [(plan.prices.path(Form(space), form, kind), weight) for form, weight in web.wants.items()]
    for price, weight in steps:
        total = plus(total, (weight * price[0], weight * price[1], weight * price[2], price[3]))
    return total


# --- single values ------------------------------------------------------------------------------------------------
def _loaded_view(value: Value, plan: FunctionPlan) -> None:
    """A view of memory is made once in each form that is loaded; what is wanted of it is wanted below."""
    survey = plan.survey
    wants: Wants = survey.wants.get(value) or {ANYWHERE: 1}
    source = survey.sources[value]
    if source in survey.in_memory:
        if value in survey.plain and all(form.transposed for form in wants):
            wants = {**wants, Form(min(wants, key=str).space): 1}  # who reads it as it is takes it from there
        plan.trees[value] = _decide(value, IN_DDR, wants, plan)
        return
    tree: Tree = {}
    for form, weight in wants.items():
        straight = Form(form.space)
        tree.setdefault(straight, None)
        if form.transposed:
            tree[form] = straight
        survey.want(source, straight, weight)
    plan.trees[value] = tree


def _computed(value: Value, plan: FunctionPlan) -> None:
    """A value that comes out in one space is moved from there."""
    survey = plan.survey
    origin = survey.origin(value)
    natural = plan.homes.get(origin, survey.fixed.get(origin))
    plan.trees[value] = _decide(value, Form(natural), survey.wants[value], plan)


def _decide(value: Value, start: Form, wants: Wants, plan: FunctionPlan) -> Tree:
    kind = value.type
    assert isinstance(kind, TensorType)
    tree, price = plan.prices.tree(start, wants, kind)
    made = "loaded" if start == IN_DDR else "computed"
    forms = sorted(f"{form} {made}" if parent is None else f"{form} from {parent}" for form, parent in tree.items())
    plan.decisions.append(Decision(plan.survey.function.name, value.name, _spell(kind), tuple(forms), price[0]))
    return tree


def _spell(kind: TensorType) -> str:
    return f"{list(kind.shape)} {kind.dtype}"


def conversion_plan(plans: list[FunctionPlan]) -> ConversionPlan:
    """All decisions, sorted."""
    return ConversionPlan(tuple(sorted(decision for plan in plans for decision in plan.decisions)))
