"""docs/ops.md is what the op classes say, and each class says what it must."""

from __future__ import annotations

import inspect

import pytest

from tilewright.ir.loops import Contract, Index, Update
from tilewright.ir.op import FromAttribute, Inherit, Kind, registry
from tilewright.report.opsdoc import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tilewright.report.opsdoc"


@pytest.mark.parametrize("name", sorted(registry()))
def test_an_op_states_its_facts(name: str) -> None:
    """A docstring, a loop form, a level; and every fact that names a field names one that exists."""
    cls = registry()[name]
    fields = {field.name for field in cls.fields}
    assert inspect.getdoc(cls)
    assert cls.loops is not None
    assert cls.levels
    named = [*cls.not_aliased, *filter(None, (cls.writes, cls.view_of))]
    named += [fact.field for fact in (cls.result_space,) if isinstance(fact, Inherit | FromAttribute)]
    named += list(cls.lowering.fields) if cls.lowering else []
    match cls.loops:
        case Index(source=source):
            named.append(source)
        case Update(source=source, target=target):
            named += [source, target]
        case Contract() as form:
            named += [form.lhs, form.rhs, *filter(None, (form.acc, form.unless))]
        case _:
            pass
    assert [field for field in named if field not in fields] == []


@pytest.mark.parametrize("name", sorted(registry()))
def test_an_op_states_its_methods(name: str) -> None:
    """`infer`, `evaluate` and `work` are stated by the class or its family, never left to the base of all ops."""
    cls = registry()[name]
    base = cls.__mro__[-2]
    assert [m for m in ("infer", "evaluate", "work") if getattr(cls, m) is getattr(base, m)] == []


@pytest.mark.parametrize("name", sorted(registry()))
def test_only_operands_have_spaces_and_scalar_forms(name: str) -> None:
    fields = registry()[name].fields
    assert [f.name for f in fields if f.kind is not Kind.OPERAND and (f.spaces or f.scalar or f.scratch)] == []
