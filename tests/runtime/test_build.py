"""What is compiled is compiled once: the two keys of the disk cache, and what makes a kernel another one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tilewright.codegen
import tilewright.language as pl
from tilewright import parse
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.passes.tensor.convert_tensor_to_tile import registry
from tilewright.runtime import build
from tilewright.runtime.options import Options
from tilewright.targets import load_target

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        x = pl.load(a, [0, 0], [16, 16])
        y = pl.add(x, FACTOR)
        out = pl.store(y, [0, 0], out)
        return out
"""


@dataclass
class Code:
    object_code: bytes


@dataclass
class Backend(ModuleType):
    """Stands for the native backend, and counts what is asked of it."""

    compiled: list[Program] = field(default_factory=list[Program])
    loaded: list[bytes] = field(default_factory=list[bytes])
    processor: str = "one"
    __name__: str = "native"

    def compile_native(self, program: Program, target: Any) -> Code:
        self.compiled.append(program)
        return Code(str(program).encode())

    def load_object(self, code: bytes) -> Code:
        self.loaded.append(code)
        return Code(code)

    def cache_key_parts(self, target: Any) -> tuple[str, ...]:
        return (self.processor,)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Backend:
    made = Backend()
    monkeypatch.setitem(sys.modules, "tilewright.codegen.native", made)
    monkeypatch.setattr(tilewright.codegen, "native", made, raising=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return made


def program(factor: str = "2.0") -> Program:
    return parse(TEXT.replace("FACTOR", factor))


def make(made: Program, options: Options | None = None) -> Code:
    return build.native_kernel(made, load_target("host"), options or Options())


def test_a_second_time_neither_passes_nor_compiler_run(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make(program())
    assert len(backend.compiled) == 1
    monkeypatch.setattr("tilewright.compiler.lower", None)
    assert make(program()) == first
    assert len(backend.compiled) == 1
    assert backend.loaded == [first.object_code]


WARM = """
import os
import subprocess
import sys
import numpy as np
import tilewright.language as pl

@pl.jit
def twice(a: pl.Tensor):
    return a * 2.0

assert (twice(np.ones((4, 4), np.float32)) == 2).all()
print(*sorted(name for name in sys.modules if name.startswith(("tilewright.passes", "tilewright.compiler"))))
"""


def test_a_warm_start_does_not_even_import_the_passes(tmp_path: Path) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(WARM)
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, str(script)]
    cold, warm = (subprocess.check_output(command, env=environment, text=True).split() for _ in range(2))
    assert "tilewright.compiler" in cold
    assert warm == []


def test_programs_that_lower_to_one_share_its_code(backend: Backend) -> None:
    make(program("2.0"))
    make(program("1.0 + 1.0"))
    assert len(backend.compiled) == 1


def test_other_programs_processors_and_compilers_have_code_of_their_own(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(program("2.0"))
    make(program("3.0"))
    assert len(backend.compiled) == 2
    backend.processor = "another"
    make(program("2.0"))
    assert len(backend.compiled) == 3
    monkeypatch.setattr(build, "compiler_stamp", lambda: "newer")
    make(program("2.0"))
    assert len(backend.compiled) == 4
    assert not backend.loaded


def test_the_cache_can_be_declined(backend: Backend, tmp_path: Path) -> None:
    make(program(), Options(cache=False))
    make(program(), Options(cache=False))
    assert len(backend.compiled) == 2
    assert not (tmp_path / "cache").exists()


def test_a_lost_object_is_compiled_again(backend: Backend, tmp_path: Path) -> None:
    make(program())
    entries = sorted((tmp_path / "cache").glob("*.twc"), key=lambda path: path.stat().st_size)
    entries[-1].unlink()
    make(program())
    make(program())
    assert len(backend.compiled) == 2
    assert len(backend.loaded) == 1


def test_conversions_of_the_users_own_are_not_kept(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = registry.OpConversionRegistry()
    mine.register_simple("tensor.exp", "tile.exp", {0: registry.InputSpaceReq(MemorySpace.VEC)})
    monkeypatch.setattr(registry, "DEFAULT", mine)
    make(program())
    make(program())
    assert len(backend.compiled) == 2
    assert not backend.loaded
    assert build.conversions() != ()


def test_lowering_stops_where_it_is_told() -> None:
    stopped = build.lowered(program(), "ascend910b", "flatten_tiles")
    assert "pl.MemRef" not in str(stopped)
    assert "pl.MemRef" in str(build.lowered(program(), "ascend910b"))


def test_compiled_programs_show_what_they_are_made_of() -> None:
    compiled = build.compile_for(program(), "ascend910b", Options())
    assert compiled.source == program()
    assert "pl.MemRef" in str(compiled.program)
    assert "pl.MemRef" not in str(compiled.unplaced)
    assert repr(compiled) == "<main compiled for ascend910b>"
    assert pl.parse(str(compiled.program)) == compiled.program
