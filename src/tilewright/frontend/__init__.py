"""From Python to programs: `read_program` for kernels in Python, `parse` for text. Nothing of a kernel is executed."""

from __future__ import annotations

from tilewright.frontend.bindings import MISSING, DynamicSymbol
from tilewright.frontend.loop_reader import loops_of, parse_loops, says_loops
from tilewright.frontend.reader import parse
from tilewright.frontend.source import KernelSource
from tilewright.frontend.specialize import read_program
from tilewright.frontend.syntax import ParameterSpec

__all__ = [
    "MISSING", "DynamicSymbol", "KernelSource", "ParameterSpec", "loops_of", "parse", "parse_loops", "read_program",
    "says_loops",
]  # fmt: skip
