"""Finding targets: by the name of one that comes with Tilewright, as ``host``, or by the path of a file of one's own.

A file is read once for each of its versions, so that equal requests give one object and compare by identity.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from tilewright.errors import TargetError
from tilewright.targets import host
from tilewright.targets.document import suggest
from tilewright.targets.model import Target
from tilewright.targets.schema import read_target

HOST = "host"
"""The name of the machine that this process runs on."""

_FOLDER = Path(__file__).parent


def target_names() -> tuple[str, ...]:
    """The names that `load_target` knows, ``host`` first."""
    return (HOST, *sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_target(target: str | Path | Target) -> Target:
    """The target called `target`: a name of `target_names`, or the path of a ``.toml`` file; a `Target` is returned
    as it is. `TargetError` for a name or file that does not exist, and for a malformed file, with its line."""
    if isinstance(target, Target):
        return target
    if target == HOST:
        return _load_host()
    if not isinstance(target, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TargetError(
            "this names no target",
            required="a name, the path of a .toml file, or a Target",
            found=f"{target!r}",
            help="names are " + ", ".join(target_names()),
        )
    path = Path(target)
    if isinstance(target, str) and path.suffix != ".toml" and path.name == target:
        path = _FOLDER / f"{target}.toml"
        if target not in target_names():
            raise TargetError(
                f"there is no target {target!r}",
                required="one of " + ", ".join(target_names()) + ", or the path of a .toml file",
                found=target,
                help=suggest(target, target_names()),
            )
    try:
        stat = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise TargetError(
            f"the target file {path} cannot be read",
            required="a readable .toml file",
            found=getattr(error, "strerror", None) or str(error),
            help="check the path; names that need no path are " + ", ".join(target_names()),
        ) from None
    return _load_file(str(path.resolve()), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _load_file(path: str, mtime_ns: int, size: int) -> Target:  # the version is part of the key
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(
            f"the target file {path} cannot be read",
            required="a readable .toml file in UTF-8",
            found=str(error),
            help="check the path and the encoding",
        ) from None
    return read_target(text, path)


@lru_cache(maxsize=1)
def _load_host() -> Target:
    machine = host.survey()
    return host.adapt(load_target(machine.target), machine)
