"""The compile cache: a torn, foreign or unsafe entry is a miss, and processes do not disturb each other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tilewright
from tilewright.runtime.cache import CompileCache, compiler_stamp, default_directory, key_of, refusal, stamp_of


def entry(cache: CompileCache) -> Path:
    (found,) = cache.directory.glob("*.twc")
    return found


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    assert cache.get("a") is None
    cache.put("a", b"code")
    cache.put("b", b"")
    assert cache.get("a") == b"code"
    assert cache.get("b") == b""
    cache.put("a", b"newer")
    assert cache.get("a") == b"newer"
    assert CompileCache(tmp_path / "cache").get("a") == b"newer"
    cache.clear()
    assert cache.get("a") is None


def test_the_directory_is_the_users_alone(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "new" / "cache")
    cache.put("a", b"code")
    assert cache.directory.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_torn_entry_is_a_miss_and_goes(tmp_path: Path, keep: int) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code" * 10)
    path = entry(cache)
    path.write_bytes(path.read_bytes()[:keep])
    assert cache.get("a") is None
    assert not path.exists()
    cache.put("a", b"again")
    assert cache.get("a") == b"again"


def test_a_changed_bit_is_a_miss(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    path = entry(cache)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert cache.get("a") is None


def test_an_entry_under_another_keys_name_is_a_miss(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    path = entry(cache)
    cache.put("b", b"other")
    (other,) = [p for p in cache.directory.glob("*.twc") if p != path]
    path.replace(other)
    assert cache.get("b") is None


def test_a_link_in_place_of_an_entry_is_a_miss(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    path = entry(cache)
    moved = tmp_path / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)
    assert cache.get("a") is None
    assert moved.exists()


def test_a_link_in_place_of_the_directory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    cache = CompileCache(tmp_path / "link")
    with pytest.warns(RuntimeWarning, match="symbolic link"):
        cache.put("a", b"code")
    assert cache.get("a") is None
    assert not list((tmp_path / "real").iterdir())


def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "written by others" in (refusal(shared) or "")
    shared.chmod(0o755)
    assert refusal(shared) is None


def test_a_directory_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert "another user" in (refusal(tmp_path) or "")


def test_a_directory_that_cannot_be_made_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = CompileCache(tmp_path / "file" / "cache")
    with pytest.warns(RuntimeWarning, match="cannot be made"):
        cache.put("a", b"code")
    assert cache.get("a") is None
    assert cache.size() == 0


def test_the_entries_used_longest_ago_go_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache", limit=700)
    for age, key in ((30, "old"), (20, "used"), (10, "new")):
        cache.put(key, bytes(150))
        newest = max(cache.directory.glob("*.twc"), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (time.time() - age, time.time() - age))
    assert cache.get("used") is not None
    cache.put("last", bytes(150))
    assert cache.size() <= 700
    assert cache.get("old") is None
    assert cache.get("used") is not None
    assert cache.get("last") is not None


def test_abandoned_temporary_files_go(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    old, young = cache.directory / ".old.tmp", cache.directory / ".young.tmp"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    cache.put("b", b"code")
    assert not old.exists()
    assert young.exists()


WRITER = """
import sys
from pathlib import Path
from tilewright.runtime.cache import CompileCache
cache = CompileCache(Path(sys.argv[1]))
for turn in range(60):
    for key in "abcd":
        cache.put(key, key.encode() * 5000)
        found = cache.get(key)
        assert found is None or found == key.encode() * 5000, found
"""


def test_processes_that_write_the_same_entries_agree(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "cache")]) for _ in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    cache = CompileCache(tmp_path / "cache")
    assert all(cache.get(key) == key.encode() * 5000 for key in "abcd")
    assert not list(cache.directory.glob(".*.tmp"))


def test_keys_tell_lists_of_texts_apart() -> None:
    lists = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], []]
    assert len({key_of(parts) for parts in lists}) == len(lists)


def test_the_directory_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "mine"))
    assert default_directory() == tmp_path / "mine"
    monkeypatch.delenv("TILEWRIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory() == tmp_path / "xdg" / "tilewright"


def test_the_stamp_covers_this_compiler() -> None:
    assert compiler_stamp() == stamp_of(str(Path(tilewright.__file__).parent))


def test_a_stamp_changes_with_every_source_at_any_depth_and_with_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "package"
    (root / "passes" / "loop" / "__pycache__").mkdir(parents=True)
    sources = [root / "a.py", root / "passes" / "b.py", root / "passes" / "loop" / "chip.toml"]
    stamps = {stamp_of(str(root))}
    for source in sources:
        source.write_text("1")
        stamps.add(stamp_of(str(root)))
    for source in sources:
        source.write_text("22")
        stamps.add(stamp_of(str(root)))
        os.utime(source, ns=(1, 1))
        stamps.add(stamp_of(str(root)))
    assert len(stamps) == 10
    (root / "notes.txt").write_text("")
    (root / "passes" / "loop" / "__pycache__" / "b.cpython-311.pyc").write_text("")
    assert stamp_of(str(root)) in stamps
    sources[1].unlink()
    assert stamp_of(str(root)) not in stamps
