"""``tilewright compile``: what comes out of the compiler, printed or written to a folder, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.arguments import build_arguments
from tilewright.cli.kernels import open_subject
from tilewright.cli.output import say, show_code, write_files
from tilewright.compiler import UNPLACED, lower
from tilewright.errors import CommandError
from tilewright.ir.function import Program
from tilewright.runtime.tuned import tuned_target
from tilewright.targets import Target, load_target

FORMS = ("pto", "llvm", "tiles", "tensor")


def compile_kernel(
    file: str,
    specs: Sequence[str],
    target: str | None,
    emit: str,
    folder: Path | None,
    level: int,
    sync: str,
    certificate: Path | None = None,
) -> None:
    """Compiles, and writes the files to `folder` or prints them. Raises `CommandError` for a form that there is not,
    and what compiling raises; nothing is written then."""
    if emit not in FORMS:
        raise CommandError(f"there is no form {emit!r}", required=" or ".join(FORMS), help="tilewright compile --help")
    machine = load_target(target or ("ascend910b" if emit == "pto" else "host"))
    subject = open_subject(file)
    program = subject.program(build_arguments(subject, specs, 0))
    files = emitted(program, tuned_target(program, machine), emit, level, sync, subject.forward)
    if certificate is not None:
        from tilewright.cli.check import write_certificate

        placed = lower(program, tuned_target(program, machine), forward=subject.forward)
        write_certificate(certificate, placed, machine)
    if folder is not None:
        for path in write_files(folder, files):
            say(f"wrote {path}")
        return
    for name, text in files.items():
        if len(files) > 1:
            print(f"{_comment(name)} {name}")
        show_code(text, _language(name))


def emitted(program: Program, target: Target, emit: str, level: int, sync: str, forward: bool = True) -> dict[str, str]:
    """The files of one form, by name, `forward` as for `lower`; a manifest last: who finds it finds the rest."""
    name = program.entry
    match emit:
        case "tensor":
            return {f"{name}.tensor.py": str(program)}
        case "tiles":
            return {f"{name}.tiles.py": str(lower(program, target, forward=forward))}
        case "llvm":
            from tilewright.codegen.native import emit_llvm

            return {f"{name}.ll": emit_llvm(lower(program, target, after=UNPLACED, forward=forward), target)}
        case _:
            from tilewright.codegen.pto.writer import emit_pto

            module = emit_pto(lower(program, target, forward=forward), target, level=level, sync=sync)
            return {**module.texts, f"{name}.manifest.json": json.dumps(module.manifest, indent=2) + "\n"}


def _comment(name: str) -> str:
    return "#" if name.endswith(".py") else "//"


def _language(name: str) -> str:
    return {"py": "python", "ll": "llvm", "json": "json", "pto": "mlir"}.get(name.rpartition(".")[2], "text")
