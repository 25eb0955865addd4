"""``tilewright doctor``: what this machine and this installation have, what is missing, and how to get it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

from tilewright import __version__
from tilewright.cli.output import show, show_json
from tilewright.errors import TilewrightError
from tilewright.report.tables import Column, Table, human_bytes
from tilewright.runtime.cache import default_cache, default_directory, refusal
from tilewright.targets import host, load_target

NEEDED = ("numpy", "ml_dtypes", "llvmlite", "islpy", "rich", "typer")
WELCOME = ("torch", "jax")
"""Arrays of these are taken where they are installed; nothing needs them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `state`: ``ok``, ``missing`` (something else serves), ``optional``, ``broken``."""

    topic: str
    state: str
    found: str
    help: str = ""


def examine(as_json: bool) -> int:
    """Looks, prints, and returns the exit code: 1 when kernels cannot be compiled or run here."""
    findings = [*_installation(), *_processor(), *_storage(), *_trial()]
    broken = any(finding.state == "broken" for finding in findings)
    if as_json:
        show_json({"ok": not broken, "findings": [asdict(finding) for finding in findings]})
        return int(broken)
    columns = (Column("topic", key=True), Column("state"), Column("found"))
    rows = tuple((f.topic, f.state, f.found) for f in findings)
    show(Table("", columns, rows))
    todo = [f"  {finding.topic}: {finding.help}" for finding in findings if finding.help]
    show("\n".join(["", "What would help:", *todo]) if todo else "\nNothing is missing.")
    return int(broken)


def _installation() -> Iterator[Finding]:
    yield Finding("tilewright", "ok", f"{__version__}, in {Path(__file__).parents[1]}")
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.platform()}")
    for name in NEEDED:
        try:
            yield Finding(name, "ok", version(name) + _llvm(name))
        except PackageNotFoundError:
            yield Finding(name, "broken", "not installed", f"pip install {name}")
    for name in WELCOME:
        try:
            yield Finding(name, "ok", f"{version(name)}: its arrays are taken without a copy")
        except PackageNotFoundError:
            yield Finding(name, "optional", "not installed; NumPy arrays serve")


def _llvm(package: str) -> str:
    if package != "llvmlite":
        return ""
    from llvmlite import binding

    return " with LLVM " + ".".join(map(str, cast("tuple[int, ...]", vars(binding)["llvm_version_info"])))


def _processor() -> Iterator[Finding]:
    machine = host.survey()
    yield Finding("processor", "ok", f"{_processor_name()}, {machine.cores} cores for this process")
    for name, wanted in (("AVX2", host.AVX2), ("AVX-512", host.AVX512), ("AMX", host.AMX)):
        lacking = sorted(wanted - machine.features)
        yield Finding(name, "missing" if lacking else "ok", "lacks " + ", ".join(lacking) if lacking else "there")
    if machine.features >= host.AMX:
        refused = host.request_amx()
        advice = "run on a Linux kernel of version 5.16 or later, outside a sandbox that filters arch_prctl"
        if refused:
            yield Finding("AMX permission", "missing", refused, advice)
        else:
            yield Finding("AMX permission", "ok", "granted by the kernel")
    sizes = ", ".join(f"L{level} {human_bytes(size)}" for level, size in sorted(machine.caches.items()))
    yield Finding("caches", "ok" if sizes else "missing", sizes or "the system does not tell")
    target = load_target("host")
    notes = "".join(f"; {note}" for note in machine.notes)
    yield Finding("target host", "ok", f"{target.name}: {_reason(machine)}{notes}")


def _reason(machine: host.Machine) -> str:
    """Why the target serves this machine."""
    return {
        "x86_amx": "the processor has AMX, and the kernel grants it",
        "x86_avx512": "the processor has AVX-512",
        "x86_avx2": "the processor has AVX2, and not all of AVX-512",
    }.get(machine.target, "no instruction set that another target wants was found")


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = next((line for line in lines if line.startswith("model name")), "")
    return named.partition(":")[2].strip() or platform.machine()


def _storage() -> Iterator[Finding]:
    folder = default_directory()
    refused = refusal(folder)
    advice = "make it yours alone (chmod 700), or name another one in TILEWRIGHT_CACHE"
    if refused is not None:
        yield Finding("cache", "missing", f"not used: {refused}", advice)
        return
    yield Finding("cache", "ok", f"{folder}, {human_bytes(default_cache().size())} of compiled kernels")


TRIAL = """
import tilewright.language as pl

@pl.program(entry="main")
class Trial:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        out_1 = pl.tile.store(pl.tile.add(pl.tile.load(a, [0, 0], [16, 32]), 1.0), [0, 0], out)
        return out_1
"""


def _trial() -> Iterator[Finding]:
    """A kernel compiled and run; what fails here fails for every kernel."""
    import numpy as np

    from tilewright.frontend import parse
    from tilewright.runtime.build import compile_for
    from tilewright.runtime.options import Options

    given, result = np.arange(512, dtype=np.float32).reshape(16, 32), np.zeros((16, 32), np.float32)
    try:
        compile_for(parse(TRIAL, "<trial>"), "host", Options(cache=False))(given, result)
    except (TilewrightError, ImportError, OSError) as error:
        yield Finding("native code", "broken", str(error).splitlines()[0], "report what this command prints")
        return
    right = bool(np.array_equal(result, given + 1))
    found = "a kernel compiled, ran and was right" if right else "a kernel gave a wrong result"
    yield Finding("native code", "ok" if right else "broken", found, "" if right else "report what this command prints")
    sys.stdout.flush()
