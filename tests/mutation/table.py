"""Plants every fault in every place and prints who finds it:  python tests/mutation/table.py > docs/faults.md

Takes minutes. Ends with an error when a fault is found by nobody and not listed as harmless.
"""

from __future__ import annotations

import sys
from collections import Counter
from multiprocessing import Pool
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from mutation.harmless import HARMLESS, harmless  # noqa: E402
from mutation.judge import by_checker, by_machine, faults, kinds, reread  # noqa: E402
from mutation.programs import bases  # noqa: E402

HEAD = """# Planted faults

Written by `python tests/mutation/table.py`. Each kind is planted wherever it can be in {bases} correct final programs
({programs} kernels, on the 910B, the 950 and the example chip), one fault at a time.

- *Read*: the text is refused when it is read.
- *Machine*: the memory machine finds it, on three sets of inputs in poison; a wrong number counts.
- *Checker*: the checker rejects the program with the certificate of the right one, which is not tied to its text.
- *Harmless*: the program still means the same and breaks no rule, as listed below.

| fault | places | read | machine | checker | harmless | found by nobody |
| --- | --- | --- | --- | --- | --- | --- |
"""


def row(kind: str) -> tuple[str, Counter[str], list[str]]:
    """The counts for one kind, and what nobody found."""
    counts: Counter[str] = Counter()
    lost: list[str] = []
    for base in bases():
        for fault in faults(kind, base):
            program = reread(fault)
            if isinstance(program, str):
                counts.update(("places", "read"))
                continue
            if fault.text is not None and program == base.program:
                continue
            machine, checker = by_machine(fault, program), by_checker(fault, program)
            counts.update(["places", *["machine"] * (machine is not None), *["checker"] * (checker is not None)])
            if machine is None and checker is None:
                listed = harmless(kind, base.name, base.target.name, fault.site) is not None
                counts["harmless" if listed else "nobody"] += 1
                lost += [] if listed else [str(fault)]
    return kind, counts, lost


def main() -> int:
    lost: list[str] = []
    total: Counter[str] = Counter()
    print(HEAD.format(bases=len(bases()), programs=len({base.name for base in bases()})), end="")
    with Pool(2) as pool:
        for kind, counts, missed in pool.imap(row, kinds()):
            columns = [counts[c] for c in ("places", "read", "machine", "checker", "harmless", "nobody")]
            print(f"| {kind} | " + " | ".join(map(str, columns)) + " |", flush=True)
            total.update(counts)
            lost += missed
    columns = [total[c] for c in ("places", "read", "machine", "checker", "harmless", "nobody")]
    print(f"| **{len(kinds())} kinds** | " + " | ".join(map(str, columns)) + " |")
    print("\n## Harmless\n")
    for (kind, program, target, where), reason in HARMLESS.items():
        print(f"- {kind}, {program}{' on ' + target if target else ''}, `{where or 'every place'}`: {reason}")
    for fault in lost:
        print(f"nobody finds {fault}", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
