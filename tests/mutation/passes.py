"""Faults in the compiler itself, and how many random programs find each.

`python tests/mutation/passes.py [seconds [first]]`: each fault is one change of one line, made in a copy of the
sources; `properties/fuzz.py` runs on the copy until something goes wrong. Prints a line for each; ends with an error
when a fault is not found within its time (default 300 s), and begins nothing when a line to change is not in its file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = 2000

FAULTS: tuple[tuple[str, str, str, str], ...] = (
    ("a result may lie over what is read to the end", "analysis/liveness.py",
     "if name in op.not_aliased or (op.writes is not None and name != op.writes):", "if False:"),
    ("a loop does not keep what it reads from outside", "analysis/liveness.py",
     "inside = {value: end for inner in within for value in inner.uses() if value not in made}", "inside = {}"),
    ("buffers are shared by tiles that are alive together", "passes/memory/assign_buffers.py",
     "return not any(_overlaps(many, span) for span in few)", "return True"),
    ("carried values are copied one after another", "passes/memory/assign_buffers.py",
     "aside = isinstance(stmt, Yield) and len(wanted) > 1", "aside = False"),
    ("a result takes the place of a part", "passes/memory/assign_buffers.py",
     "if operand in allowed and operand not in self.parts and", "if operand in allowed and"),
    ("a part is handed on as the whole", "passes/memory/assign_buffers.py",
     "if given not in self.parts and self.may_share(given, wanted):", "if True:"),
    ("every copy of a pipelined trip is the first", "passes/tile/pipeline/copies.py",
     "here = binary(BinaryKind.ADD, iv, copy * loop.step)", "here = iv"),
    ("a pipelined loop goes on by one trip", "passes/tile/pipeline/copies.py",
     "step = (depth or copies) * loop.step", "step = loop.step"),
    ("what a pipelined loop leaves over starts late", "passes/tile/pipeline/copies.py",
     "middle = loop.start + groups * (depth * loop.step)", "middle = loop.start + groups * (depth * loop.step) + 1"),
    ("conversions in between are left out", "passes/tile/legalize_dtypes.py",
     "at = source\n        for step in chain[:-1]:", "at = source\n        for step in chain[:0]:"),
    ("true and false change places", "passes/tile/legalize_dtypes.py",
     "one, zero = constant(1, kind.dtype), constant(0, kind.dtype)",
     "one, zero = constant(0, kind.dtype), constant(1, kind.dtype)"),
    ("scratch is an operand", "passes/tile/materialize_scratch.py",
     "new = op.with_operands(self.get).replace(**made)",
     "new = op.with_operands(self.get); new = new.replace(**{n: next(new.operand_items())[1] for n in made})"),
    ("unrolling forgets the last trip", "passes/tensor/unroll.py",
     "trips = range(start, stop, step)", "trips = range(start, stop - step, step)"),
    ("nobody waits for a read", "analysis/hazards.py",
     "if entry.engine != engine and (entry.writes or access.writes) and",
     "if entry.engine != engine and entry.writes and"),
    ("nobody waits for the trip before", "analysis/hazards.py",
     "again.entries[key] = [e if e in before else _carried(e, stmt) for e in found]", "again.entries[key] = []"),
    ("footprints are a unit too small", "analysis/footprint.py",
     "nbytes = -(-prod(physical(tile, target)) * tile.dtype.bits // 8)",
     "nbytes = max(32, -(-prod(physical(tile, target)) * tile.dtype.bits // 8) - 32)"),
    ("work items share a part of their workspace", "passes/tile/split_engines/workspaces.py",
     "return most, binary(BinaryKind.MOD, number, most)", "return most, 0"),
    ("products forget what is transposed", "passes/tensor/convert_tensor_to_tile/convert.py",
     "target_memory=form.space, transpose=form.transposed, span=self.span",
     "target_memory=form.space, transpose=False, span=self.span"),
    ("a hop through memory is as large as the tile", "passes/tile/legalize_moves.py",
     "at, (0,) * kind.rank, before.shape, before.valid, hop.dst,",
     "at, (0,) * kind.rank, before.shape, None, hop.dst,"),
    ("two that are alive together are packed as if apart", "analysis/packing/first_fit.py",
     "if address + item.size <= begin:", "if address + item.size <= begin + 1:"),
)  # fmt: skip
"""What goes wrong, the file, its line, and the line instead."""


def programs_until_found(file: str, old: str, new: str, seconds: float) -> tuple[int | None, str]:
    """How many random programs it takes, None when nothing goes wrong in time; and what does."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("src", "tests", "examples"):
            shutil.copytree(ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("__pycache__"))
        path = Path(folder) / "src/tilewright" / file
        path.write_text(path.read_text().replace(old, new))
        command = [sys.executable, "tests/properties/fuzz.py", str(PROGRAMS), "--quick", "--first"]
        options = ["--seconds", str(seconds), "--start", "300000"]
        own = {**os.environ, "PYTHONPATH": f"{folder}/src"}
        run = subprocess.run([*command, *options], cwd=folder, env=own, capture_output=True, text=True, check=False)
    done = re.search(r"(\d+) failures in ([\d,]+) programs", run.stdout)
    first = re.search(r"(seed \d+: .*)", run.stdout)
    if done is None or done[1] == "0":
        return None, run.stderr[-300:]
    return int(done[2].replace(",", "")), first[1][:90] if first else ""


def stale() -> list[str]:
    """The faults that cannot be planted: what they would change is not in their file any more, or not in one place."""
    found: list[str] = []
    for name, file, old, _ in FAULTS:
        path = ROOT / "src/tilewright" / file
        if not path.exists():
            found.append(f"{name}: there is no {file}")
        elif (count := path.read_text().count(old)) != 1:
            found.append(f"{name}: {file} has {count} times, not once: {old!r}")
    return found


def main(seconds: float, first: int = 0) -> int:
    if gone := stale():
        print("\n".join([*gone, "write the changed lines into FAULTS"]))
        return 1
    lost = 0
    for name, file, old, new in FAULTS[first:]:
        begun = time.monotonic()
        count, what = programs_until_found(file, old, new, seconds)
        lost += count is None
        told = f"found by program {count}: {what}" if count is not None else f"not found {what}"
        print(f"{name} ({file}): {told} ({time.monotonic() - begun:.0f} s)", flush=True)
    tried = len(FAULTS) - first
    print(f"{tried - lost} of {tried} found")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 300, int(sys.argv[2]) if len(sys.argv) > 2 else 0))
