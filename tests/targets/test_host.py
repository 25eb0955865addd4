"""What is read from the machine that the tests run on, and what is made of it."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from tilewright.ir.layout import MemorySpace
from tilewright.targets import host, load_target

S = MemorySpace


def machine(target: str, caches: dict[int, int], cores: int = 3) -> host.Machine:
    return host.Machine(target, frozenset(), MappingProxyType(caches), cores, ("a note",))


def test_the_host_is_one_of_the_cpu_targets_with_its_own_caches() -> None:
    target = load_target("host")
    assert target.family == "cpu"
    assert target is load_target("host")
    assert target.llvm_cpu == "host"
    assert target.cores["core"] == host.core_count()
    level2 = host.cache_sizes().get(2)
    assert level2 is None or target.capacity(S.MAT) == level2 // 2


def test_adapting_takes_the_share_of_the_cache() -> None:
    target = load_target("x86_avx2")
    adapted = host.adapt(target, machine("x86_avx2", {1: 48 << 10, 2: 3 << 20}))
    assert adapted.capacity(S.MAT) == adapted.capacity(S.VEC) == (3 << 20) // 2
    assert adapted.capacity(S.ACC) == target.capacity(S.ACC)
    assert dict(adapted.cores) == {"core": 3}
    assert adapted.notes == ("a note",)
    assert adapted.fingerprint != target.fingerprint


def test_adapting_without_cache_sizes_keeps_those_of_the_file() -> None:
    target = load_target("x86_avx2")
    assert host.adapt(target, machine("x86_avx2", {})).capacity(S.MAT) == target.capacity(S.MAT)


@pytest.mark.parametrize(
    ("features", "refused", "target", "note"),
    [
        (set[str](), None, "generic", ""),
        ({"avx2"}, None, "generic", ""),
        (host.AVX2, None, "x86_avx2", ""),
        (host.AVX512, None, "x86_avx512", ""),
        (host.AVX512 - {"avx512vl"}, None, "x86_avx2", ""),
        (host.AMX, None, "x86_amx", ""),
        (host.AMX, "the kernel said no", "x86_avx512", "AMX: the kernel said no; x86_avx512 is used"),
        (host.AMX - {"amx_int8"}, None, "x86_avx512", "AMX: the processor lacks amx_int8; x86_avx512 is used"),
    ],
)
def test_the_choice_is_by_features(
    monkeypatch: pytest.MonkeyPatch, features: set[str], refused: str | None, target: str, note: str
) -> None:
    monkeypatch.setattr(host, "cpu_features", lambda: frozenset(features))
    monkeypatch.setattr(host, "request_amx", lambda: refused)
    monkeypatch.setattr(host, "cache_sizes", lambda: {2: 1 << 20})
    found = host.survey()
    assert found.target == target
    assert found.notes == ((note,) if note else ())


def test_a_system_that_does_not_tell_its_caches_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "cache_sizes", dict[int, int])
    assert any("cache sizes" in note for note in host.survey().notes)


def test_cache_sizes_are_read_from_a_folder(tmp_path: Path) -> None:
    caches = [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K"), (3, "Unified", "30M")]
    for index, (level, kind, size) in enumerate([*caches, (4, "Data", "?")]):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("level", str(level)), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()
    assert host.cache_sizes(tmp_path) == {1: 48 << 10, 2: 2 << 20, 3: 30 << 20}
    assert host.cache_sizes(tmp_path / "nowhere") == {}


def test_features_are_read_from_cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "linux")
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert host.cpu_features(info) == {"fpu", "avx2", "fma"}
    assert host.cpu_features(tmp_path / "nowhere") == frozenset()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert host.cpu_features(info) == frozenset()


def test_amx_is_granted_where_the_processor_has_it_or_the_reason_is_said() -> None:
    answer = host.request_amx()
    assert answer is None or "tile registers" in answer
    if answer is None:
        assert host.request_amx() is None  # asking again is answered from what was granted


def test_loading_a_target_imports_nothing_heavy() -> None:
    code = (
        "import sys; from tilewright.targets import load_target; load_target('host');"
        "print([m for m in ('llvmlite', 'islpy', 'rich', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
