"""``tilewright simulate``: the cycles of a kernel on a machine that need not be there, and its timeline as a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.arguments import build_arguments
from tilewright.cli.kernels import open_subject
from tilewright.cli.output import say, show_json, write_files
from tilewright.cli.report import write_page
from tilewright.compiler import lower
from tilewright.execute.simulator import simulate
from tilewright.report.html import make_report
from tilewright.runtime.tuned import tuned_target
from tilewright.targets import load_target


def simulate_kernel(
    file: str, specs: Sequence[str], target: str, as_json: bool, trace: Path | None, html: Path | None
) -> None:
    """Lowers and simulates the kernel, writes its timeline to `trace` and the page about it to `html`, and prints what
    was found. Raises what the passes raise, `UnsupportedError` for a kernel of too many instructions, and
    `CommandError` for a file not to be written."""
    machine = load_target(target)
    subject = open_subject(file)
    arguments = build_arguments(subject, specs, 0)
    names = [parameter.name for parameter in subject.parameters]
    program, given = subject.program(arguments), dict(zip(names, arguments, strict=False))
    machine = tuned_target(program, machine)
    found = simulate(lower(program, machine, forward=subject.forward), machine, given)
    if trace is not None:
        write_files(trace.parent, {trace.name: json.dumps(found.trace())})
        say(f"wrote {trace}; open it at https://ui.perfetto.dev")
    if html is not None:
        write_page(make_report(program, machine, given, subject.forward), html)
    if as_json:
        show_json(found.to_json())
    else:
        print(found)
