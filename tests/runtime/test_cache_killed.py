"""The compile cache among processes that are killed at any moment, and in directories that somebody has prepared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from time import sleep

import pytest

from tilewright.runtime.cache import CompileCache, default_directory, refusal

KEYS = "abcdefgh"
PROCESSES = 8
KILLS = 24

WRITER = """
import sys
from pathlib import Path
from random import Random
from tilewright.runtime.cache import CompileCache

cache, random = CompileCache(Path(sys.argv[1]), limit=3_000_000), Random(int(sys.argv[2]))
print("ready", flush=True)
while True:
    key = random.choice("abcdefgh")
    size = random.choice((0, 1, 5_000, 300_000))
    content = key.encode() * size + str(size).encode()
    cache.put(key, content)
    found = cache.get(random.choice("abcdefgh"))
    if found is not None:
        letters = found.rstrip(b"0123456789")
        assert found == letters + str(len(letters)).encode() and len(set(letters)) <= 1, found[:80]
"""


def started(directory: Path, seed: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(directory), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed(writer: subprocess.Popen[bytes]) -> None:
    """Kills a writer, which must not have ended by itself: it does when it gets what nobody put."""
    assert writer.poll() is None, writer.communicate()[1].decode()
    writer.send_signal(signal.SIGKILL)
    writer.communicate()


def test_eight_processes_killed_at_random_never_leave_or_read_a_wrong_entry(tmp_path: Path) -> None:
    """Whoever is killed is replaced. None of them ever gets anything but what was put, whole, under its key."""
    directory = tmp_path / "cache"
    random = Random(1)
    writers = [started(directory, seed) for seed in range(PROCESSES)]
    for seed in range(KILLS):
        oldest = writers.pop(0)
        assert oldest.stdout is not None and oldest.stdout.readline() == b"ready\n"
        sleep(random.random() * 0.1)
        killed(oldest)
        writers.append(started(directory, PROCESSES + seed))
    for writer in writers:
        killed(writer)
    cache = CompileCache(directory, limit=3_000_000)
    whole = 0
    for key in KEYS:
        found = cache.get(key)
        if found is not None:
            letters = found.rstrip(b"0123456789")
            assert found == letters + str(len(letters)).encode() and set(letters.decode()) <= {key}
            whole += 1
    assert whole >= len(KEYS) // 2


def test_what_killed_processes_leave_behind_goes_in_time(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    left = cache.directory / ".half-written.tmp"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    cache.put("b", b"code")
    assert not left.exists() and cache.get("a") == cache.get("b") == b"code"


def test_an_entry_that_others_can_write_to_is_a_miss(tmp_path: Path) -> None:
    """It may have been planted while the directory was open to others."""
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    (entry,) = cache.directory.glob("*.twc")
    entry.chmod(0o666)
    assert cache.get("a") is None


def test_an_entry_of_somebody_else_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert cache.get("a") is None


def test_an_entry_larger_than_the_cache_may_be_is_not_read(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache", limit=1000)
    cache.put("a", b"code")
    (entry,) = cache.directory.glob("*.twc")
    with entry.open("ab") as file:
        file.truncate(1 << 40)
    assert cache.get("a") is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to a folder"])
def test_what_is_no_file_in_place_of_an_entry_is_a_miss(tmp_path: Path, kind: str) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    (entry,) = cache.directory.glob("*.twc")
    entry.unlink()
    if kind == "folder":
        entry.mkdir()
    elif kind == "pipe":
        os.mkfifo(entry)
    else:
        entry.symlink_to(tmp_path)
    assert cache.get("a") is None
    cache.put("a", b"again")
    assert cache.get("a") == (None if kind == "folder" else b"again")
    assert not list(cache.directory.glob(".*.tmp"))


def test_a_link_in_place_of_an_entry_is_replaced_and_not_followed(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path / "cache")
    cache.put("a", b"code")
    (entry,) = cache.directory.glob("*.twc")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    entry.unlink()
    entry.symlink_to(precious)
    cache.put("a", b"again")
    assert precious.read_text() == "mine" and cache.get("a") == b"again"


def test_a_directory_on_the_way_that_everybody_can_write_to_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert "on the way to it" in (refusal(open_to_all / "cache") or "")
    open_to_all.chmod(0o1777)
    assert refusal(open_to_all / "cache") is None


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TILEWRIGHT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert default_directory().name == f"tilewright-{os.getuid()}"


KERNEL = """
import sys
import numpy as np
import tilewright.language as pl

@pl.jit
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x * 3.0 + 1.0
    return out

print("ready", flush=True)
for rows in range(1, 7):
    x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
    out = np.full_like(x, np.nan)
    scaled(x, out)
    assert np.array_equal(out, 3 * x + 1), rows
"""


@pytest.mark.slow
def test_kernels_compiled_by_eight_processes_some_of_them_killed(tmp_path: Path) -> None:
    """All compile the same six kernels into one cache; half are killed somewhere on the way. Whoever ends has right
    numbers, and so has one that comes later and finds what the others left."""
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL)
    environment = os.environ | {"TILEWRIGHT_CACHE": str(tmp_path / "cache")}
    random = Random(2)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    writers = [start() for _ in range(PROCESSES)]
    for writer in writers[::2]:
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        sleep(random.random() * 0.3)
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        _, said = writer.communicate()
        assert writer.returncode in (0, -signal.SIGKILL), said.decode()
    assert [writer.returncode for writer in writers[1::2]] == [0] * (PROCESSES // 2)
    later = start()
    _, said = later.communicate()
    assert later.returncode == 0, said.decode()
