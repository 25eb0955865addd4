"""``tilewright check``: a placed program and its certificate before the independent checker."""

from __future__ import annotations

import json
from pathlib import Path

from tilewright.certify.certificate import Certificate, read_certificate
from tilewright.certify.checker import check
from tilewright.certify.writer import certify
from tilewright.cli.kernels import open_subject
from tilewright.cli.output import say, show_json, write_files
from tilewright.errors import CertificateError, CommandError
from tilewright.ir.function import Program
from tilewright.targets import Target, load_target

ACCEPTED, REJECTED = 0, 1


def check_program(file: str, certificate: Path | None, target: str, as_json: bool) -> int:
    """Checks, prints the verdict, and returns the exit code. Raises `CommandError` for files that cannot be read,
    `CertificateError` for one that is no certificate, and what is wrong with program text."""
    machine = load_target(target)
    claims = None if certificate is None else load_certificate(certificate)
    program = open_subject(file).program(())
    verdict = check(program, claims, machine)
    if as_json:
        show_json(
            {
                "accepted": verdict.accepted,
                "facts": verdict.counts,
                "assumptions": [str(assumption) for assumption in verdict.assumptions],
                "findings": [str(finding) for finding in verdict.findings],
            }
        )
    else:
        print(verdict)
        if claims is None:
            say("no certificate was given: what engines wait for was not checked")
    return ACCEPTED if verdict.accepted else REJECTED


def load_certificate(path: Path) -> Certificate:
    """The certificate in a file. Raises `CommandError` and `CertificateError`."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read", found=error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise CertificateError(
            f"{path} is not JSON", found=str(error), help="take the file that `tilewright compile --certificate` wrote"
        ) from None
    return read_certificate(data)


def write_certificate(path: Path, placed: Program, target: Target) -> None:
    """The certificate of a placed program as a file, whole or not at all."""
    text = json.dumps(certify(placed, target).to_json(), indent=1) + "\n"
    for written in write_files(path.parent, {path.name: text}):
        say(f"wrote {written}")
