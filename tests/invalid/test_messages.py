"""Common mistakes, and what their author reads: the code, the line with carets, what was required and a way out.

`<name>.py` holds a kernel called `kernel` and its `ARGUMENTS`; `<name>.txt` the message. A file that names a `TARGET`
is lowered for it, so that mistakes which only the passes find have their place here too. `pytest --bless` rewrites.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.frontend import read_program
from tilewright.targets import load_target

FOLDER = Path(__file__).parent
MISTAKES = sorted(path for path in FOLDER.glob("*.py") if "\ndef kernel(" in path.read_text())


def load(path: Path) -> Any:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(f"invalid_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def message_of(path: Path) -> str:
    """What the author of the mistake in `path` reads, with the file's name instead of its path."""
    module = load(path)
    arguments = [a if not isinstance(a, str) else None for a in module.ARGUMENTS]
    with pytest.raises(TilewrightError) as caught:
        program = read_program(module.kernel.source, arguments)
        if hasattr(module, "TARGET"):
            lower(program, load_target(module.TARGET))
    return str(caught.value).replace(str(path), path.name) + "\n"


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_message(path: Path, request: pytest.FixtureRequest) -> None:
    message, expected = message_of(path), path.with_suffix(".txt")
    if request.config.getoption("--bless"):
        expected.write_text(message)
    assert message == expected.read_text(), f"the message changed; pytest --bless if it is better:\n{message}"


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_every_message_points_and_helps(path: Path) -> None:
    lines = message_of(path).splitlines()
    assert lines[0].startswith("TW") and f"{path.name}:" in lines[0]
    assert any(set(line.partition("|")[2].strip()) == {"^"} for line in lines), "no carets"
    assert any(line.strip().startswith(("help:", "required:")) for line in lines), "no way out"
