"""``tilewright report``: everything that is known of a kernel on a machine, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.arguments import build_arguments
from tilewright.cli.kernels import open_subject
from tilewright.cli.output import say, write_files
from tilewright.report.html import Report, make_report
from tilewright.runtime.tuned import tuned_target
from tilewright.targets import load_target


def report_kernel(file: str, specs: Sequence[str], target: str, output: Path | None) -> None:
    """Writes the page about a kernel. Raises what the passes raise, and `CommandError` for a file not to be written."""
    machine = load_target(target)
    subject = open_subject(file)
    arguments = build_arguments(subject, specs, 0)
    names = [parameter.name for parameter in subject.parameters]
    program = subject.program(arguments)
    page = make_report(
        program, tuned_target(program, machine), dict(zip(names, arguments, strict=False)), subject.forward
    )
    write_page(page, output or Path(f"{subject.name}.html"))


def write_page(page: Report, path: Path) -> None:
    """Writes a page whole or not at all, and says where it is."""
    write_files(path.parent, {path.name: page.html})
    say(f"wrote {path}; open it in a browser")
