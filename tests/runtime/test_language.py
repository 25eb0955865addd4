"""What kernels import: complete, harmless at run time, and light."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import tilewright
import tilewright.language as pl
from tilewright.errors import LanguageError
from tilewright.frontend import names as language_names
from tilewright.frontend.names import ALIASES
from tilewright.ir import dtypes
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Level, registry
from tilewright.ir.scalar import Const
from tilewright.text.names import ENUMS, spell_member

HEAVY = ("llvmlite", "islpy", "rich", "typer", "torch", "jax", "scipy")


@pytest.mark.parametrize("module", ["tilewright", "tilewright.language"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(found.stdout))
    assert module in loaded
    assert not loaded & set(HEAVY)


def test_the_package_shows_only_public_names() -> None:
    for name in tilewright.__all__:
        assert getattr(tilewright, name) is not None
    assert set(tilewright.__all__) >= {"compile", "parse", "load_target", "Program", "TilewrightError"}


def test_every_dtype_is_a_name() -> None:
    for dtype in dtypes.ALL:
        assert getattr(pl, dtype.name) is dtype
        assert getattr(pl.DataType, dtype.name) is dtype


def test_every_constant_is_a_name() -> None:
    for name, enum in ENUMS.items():
        for member in enum:
            assert getattr(getattr(pl, name), spell_member(member)).name == member.name
    assert pl.Mem.Vec is MemorySpace.VEC
    assert pl.MemorySpace.LeftScale is MemorySpace.LEFT_SCALE


def test_every_word_of_the_reader_is_a_name() -> None:
    words = sorted(word for word in language_names.SYNTAX_WORDS if "." not in word)
    assert not [word for word in words if not hasattr(pl, word)]
    for word in language_names.UNSUPPORTED_WORDS:
        assert hasattr(pl, word)


def test_every_operation_is_a_name_in_the_namespaces_of_its_levels() -> None:
    assert len(registry()) > 20
    for name, cls in registry().items():
        spelled = name if name.isidentifier() and name not in ("and", "or", "not") else f"{name}_"
        for level, module in ((Level.TENSOR, pl.tensor), (Level.TILE, pl.tile)):
            if level in cls.levels:
                assert getattr(module, spelled).pl_name == f"{level.value}.{spelled}"
                assert spelled in dir(module)
            else:
                assert hasattr(module, spelled) == (f"{level.value}.{spelled}" in ALIASES)


@pytest.mark.parametrize("word", ["tile.exp", "tensor.matmul", "add", "at", "range", "yield_", "min"])
def test_calling_a_word_outside_of_a_kernel_says_what_to_do(word: str) -> None:
    found: object = pl
    for part in word.split("."):
        found = getattr(found, part)
    assert callable(found)
    with pytest.raises(LanguageError, match="kernels are read, not executed") as raised:
        found(1, 2)
    assert f"pl.{word}" in str(raised.value)


def test_a_name_that_does_not_exist_is_an_attribute_error_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"pl\.tile\.exp"):
        _ = pl.tile.exq
    with pytest.raises(AttributeError, match="FP32"):
        _ = pl.FP23


def test_operations_can_be_imported_by_name() -> None:
    from tilewright.language import exp, matmul
    from tilewright.language.tile import load

    assert (exp.pl_name, matmul.pl_name, load.pl_name) == ("exp", "matmul", "tile.load")


def test_constants_are_made_outside_of_kernels_too() -> None:
    assert pl.const(3, pl.INT32) == Const(3, dtypes.INT32)
    assert pl.const(3, pl.INDEX) == 3
    assert repr(pl.const("nan", pl.FP32)) == "Const(nan, FP32)"


def test_annotations_are_harmless() -> None:
    view = pl.TensorView(stride=[2])
    assert repr(pl.Tensor[[64, 2], pl.FP32]) == "pl.Tensor[([64, 2], FP32)]"
    assert repr(pl.Out[pl.Scalar[pl.INDEX]]) == "pl.Out[pl.Scalar[INDEX]]"
    for annotation in (pl.Tensor[[4], pl.FP32, view], pl.InOut[pl.Tensor], pl.Tuple[pl.Tensor, pl.Tile]):
        assert repr(annotation).startswith("pl.")
    assert repr(pl.TileView(valid_shape=[3])).startswith("pl.TileView")


def test_submodules_are_modules() -> None:
    for name in ("tensor", "tile", "system", "array"):
        assert importlib.import_module(f"tilewright.language.{name}") is getattr(pl, name)
