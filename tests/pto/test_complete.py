"""Each operation has, for each backend, exactly one of: a spelling in its class, a function, a reason why not."""

from __future__ import annotations

import pytest

from tilewright import ops
from tilewright.codegen.native.special import supported
from tilewright.codegen.pto import writer
from tilewright.codegen.pto.forms import FORMS
from tilewright.codegen.pto.registry import SPECIAL
from tilewright.ir.loops import Special
from tilewright.ir.op import Expanded, Level, Op, Unsupported, registry

REGISTERED = (ops, writer)
"""Importing these registers the operations, and the functions that write them."""
CLASSES = sorted({cls for cls in registry().values() if Level.TILE in cls.levels}, key=lambda cls: cls.name)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_pto_has_one_way_to_write_it(cls: type[Op]) -> None:
    spelled = cls.spelling.pto
    ways = [isinstance(spelled, str), cls in SPECIAL, isinstance(spelled, Unsupported | Expanded)]
    assert sum(ways) == 1, f"{cls.name}: spelling {spelled!r}, function {SPECIAL.get(cls)}"
    if isinstance(spelled, Unsupported):
        assert spelled.reason
    if isinstance(spelled, Expanded):
        assert spelled.made_of


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_the_scalar_form_is_written_too(cls: type[Op]) -> None:
    has_scalar_form = any(field.scalar for field in cls.fields)
    spelled = cls.spelling.pto_scalar
    assert (spelled is not None) == (has_scalar_form and cls not in SPECIAL)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_a_mnemonic_is_one_that_the_assembler_reads(cls: type[Op]) -> None:
    mnemonics = [m for m in (cls.spelling.pto, cls.spelling.pto_scalar) if isinstance(m, str)]
    assert all(m in FORMS for m in mnemonics), mnemonics


def test_functions_are_for_operations_that_exist() -> None:
    assert set(SPECIAL) <= set(registry().values())


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_native_code_has_one_way_to_make_it(cls: type[Op]) -> None:
    """A loop form that says everything, or a function for the class; a view needs neither."""
    plain = cls.loops is not None and not isinstance(cls.loops, Special)
    assert plain or supported(cls) or cls.view_of is not None or cls.expand is not Op.expand, cls.name
