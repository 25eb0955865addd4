"""Every operation of the registry reads back from its text, whatever its fields hold."""

from __future__ import annotations

import pytest
from op_instances import classes, instance, program_of, variants

from tilewright import parse
from tilewright.ir.op import Level, Op

ALL = classes()


def name_of(item: tuple[type[Op], Level]) -> str:
    return f"{item[1].value}.{item[0].name}"


@pytest.mark.parametrize("item", ALL, ids=name_of)
def test_an_instance_is_found_from_the_fields(item: tuple[type[Op], Level]) -> None:
    assert instance(*item) is not None, f"extend the candidates in instances.py so that {name_of(item)} has one"


@pytest.mark.parametrize("item", ALL, ids=name_of)
def test_every_form_reads_back(item: tuple[type[Op], Level]) -> None:
    for op in variants(*item):
        program = program_of(op)
        text = program.as_python()
        assert f"pl.{op.qualified_name}" in text
        again = parse(text)
        assert again == program, text
        assert again.as_python() == text
