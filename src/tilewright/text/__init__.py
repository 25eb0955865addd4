"""Programs as text in the `pl` dialect. Importing this package gives programs their `__str__`; the frontend reads."""

from __future__ import annotations

from tilewright.ir.function import PRINTER
from tilewright.ir.loop_level import LOOP_PRINTER
from tilewright.text.loops import print_loops
from tilewright.text.printer import print_program

__all__ = ["print_loops", "print_program"]

if print_program not in PRINTER:
    PRINTER[:] = [print_program]
if print_loops not in LOOP_PRINTER:
    LOOP_PRINTER[:] = [print_loops]
