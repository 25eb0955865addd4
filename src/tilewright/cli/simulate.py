"""``tilewright simulate``: the cycles of a kernel on a machine that need not be there, and its timeline as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.arguments import build_arguments
from tilewright.cli.kernels import open_subject
from tilewright.cli.output import say, show_json, write_files
from tilewright.compiler import lower
from tilewright.execute.simulator import simulate
from tilewright.targets import load_target


def simulate_kernel(file: str, specs: Sequence[str], target: str, as_json: bool, trace: Path | None) -> None:
    """Lowers and simulates the kernel, writes its timeline to `trace` and prints what was found. Raises what the passes
    raise, `UnsupportedError` for a kernel of too many instructions, and `CommandError` for a file not to be written."""
    machine = load_target(target)
    subject = open_subject(file)
    arguments = build_arguments(subject, specs, 0)
    names = [parameter.name for parameter in subject.parameters]
    found = simulate(lower(subject.program(arguments), machine), machine, dict(zip(names, arguments, strict=False)))
    if trace is not None:
        write_files(trace.parent, {trace.name: json.dumps(found.trace())})
        say(f"wrote {trace}; open it at https://ui.perfetto.dev")
    if as_json:
        show_json(found.to_json())
    else:
        print(found)
