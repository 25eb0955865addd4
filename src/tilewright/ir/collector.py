"""Python's cycle collector, kept out of the way while programs are made.

Programs are immutable and hold no cycles, so the collector finds nothing in them; yet each of its rounds walks all
that is alive, which makes the time per statement grow with the program.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Generator[None]:
    """No collection inside; what the collector did before, it does again afterwards."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
