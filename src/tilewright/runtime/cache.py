"""Compiled kernels on disk: a bounded store of checksummed entries, safe beside other processes.

An entry is a file named by the hash of everything that its content depends on. It is written to a temporary file in
the same directory and renamed, so that a reader sees all of it or nothing; its content carries a checksum, so that a
torn or foreign file is a miss and not a wrong kernel. A directory that somebody else could write to is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

MAGIC = b"tilewright cache 1\n"
HEAD = len(MAGIC) + 32
"""Bytes of an entry before its content."""

DEFAULT_LIMIT = 512 * 2**20
"""Bytes that the directory may hold before its oldest entries go (assumed: some thousands of kernels)."""

ABANDONED = 3600.0
"""Seconds after which a temporary file has no writer any more (assumed)."""

_SUFFIX = ".twc"


class CompileCache:
    """Entries of bytes by key. A failure to read or write is a miss, never an error: a cache only saves time."""

    def __init__(self, directory: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = directory
        self.limit = limit
        self._refused: str | None = None
        self._usable: bool | None = None

    def get(self, key: str) -> bytes | None:
        """The content stored under `key`; None when there is none, or when it is not what was stored."""
        if not self._is_usable():
            return None
        path = self._path(key)
        try:
            raw = _read_own(path, self.limit)
        except OSError:
            return None
        content = _unsealed(key, raw)
        if content is None:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return content

    def put(self, key: str, content: bytes) -> None:
        """Store `content` under `key`; a reader at the same time sees the old entry, the new one, or none."""
        if not self._is_usable():
            return
        try:
            descriptor, temporary = tempfile.mkstemp(dir=self.directory, prefix=".", suffix=".tmp")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_sealed(key, content))
                os.replace(temporary, self._path(key))
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                return
            self._trim()
        except OSError:
            return

    def clear(self) -> None:
        """Remove every entry."""
        for path in self._entries():
            with contextlib.suppress(OSError):
                path.unlink()

    def size(self) -> int:
        """Bytes of all entries."""
        total = 0
        for path in self._entries():
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total

    def _entries(self) -> list[Path]:
        return list(self.directory.glob(f"*{_SUFFIX}")) if self._is_usable() else []

    def _path(self, key: str) -> Path:
        return self.directory / f"{hashlib.sha256(key.encode()).hexdigest()}{_SUFFIX}"

    def _trim(self) -> None:
        """Drop the entries used longest ago until the rest fit, and temporary files that their writers left behind."""
        for path in self.directory.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - ABANDONED:
                    path.unlink()
        found: list[tuple[float, int, Path]] = []
        for path in self._entries():
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def _is_usable(self) -> bool:
        if self._usable is None:
            self._refused = refusal(self.directory)
            self._usable = self._refused is None
            if self._refused is not None:
                warnings.warn(f"compiled kernels are not cached: {self._refused}", RuntimeWarning, stacklevel=4)
        return self._usable


def refusal(directory: Path) -> str | None:
    """Why `directory` is not safe to load code from; None when it is. Makes it, for its owner alone, if it is new."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError as error:
        return f"{directory} cannot be made ({error.strerror})"
    if stat.S_ISLNK(status.st_mode):
        return f"{directory} is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return f"{directory} is not a directory"
    if status.st_uid != os.getuid():
        return f"{directory} belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{directory} can be written by others (mode {stat.S_IMODE(status.st_mode):o})"
    for parent in Path(os.path.realpath(directory)).parents:
        # Who may rename a directory on the way may put another one in its place, unless the sticky bit forbids it.
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"{parent}, on the way to it, can be written by everybody"
    return None


def _read_own(path: Path, limit: int) -> bytes:
    """The bytes of a regular file that is the user's own; a symbolic link, a file that others own or can write to, one
    that is larger than the whole cache may be, or anything else raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit + HEAD:
            raise OSError("not an entry")
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError("not the user's own")
        return file.read()


def _sealed(key: str, content: bytes) -> bytes:
    return MAGIC + _checksum(key, content) + content


def _unsealed(key: str, raw: bytes) -> bytes | None:
    """The content of an entry, or None when it is torn, foreign, or another key's."""
    content = raw[HEAD:]
    if raw[: len(MAGIC)] != MAGIC or raw[len(MAGIC) : HEAD] != _checksum(key, content):
        return None
    return content


def _checksum(key: str, content: bytes) -> bytes:
    name = key.encode()
    return hashlib.sha256(len(name).to_bytes(8, "little") + name + content).digest()


def key_of(parts: Iterable[str]) -> str:
    """One key for several texts; no two different lists give one key."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


@cache
def compiler_stamp() -> str:
    """A text that changes whenever this compiler does."""
    return stamp_of(str(Path(__file__).parents[1]))


def stamp_of(root: str) -> str:
    """A text that changes whenever a source or a target below `root` does: of their names, sizes and times."""
    lines: list[str] = []
    todo = [root]
    while todo:  # by hand: paths as objects would be most of a call that finds its code on disk
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".toml")):
                    status = entry.stat()
                    lines.append(f"{entry.path[len(root) :]} {status.st_size} {status.st_mtime_ns}\n")
                elif entry.is_dir() and entry.name != "__pycache__":
                    todo.append(entry.path)
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def default_directory() -> Path:
    """`$TILEWRIGHT_CACHE`, else ``tilewright`` in the user's cache directory."""
    named = os.environ.get("TILEWRIGHT_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "tilewright"
    try:
        return Path.home() / ".cache" / "tilewright"
    except RuntimeError:  # a user without a home, as in some containers
        return Path(tempfile.gettempdir()) / f"tilewright-{os.getuid()}"


@lru_cache(maxsize=8)
def cache_at(directory: Path) -> CompileCache:
    """The one cache object of a directory."""
    return CompileCache(directory)


def default_cache() -> CompileCache:
    """The user's cache."""
    return cache_at(default_directory())
