"""A debugger stops at the user's line: each statement is announced from a frame that lies there.

The interpreter executes no code of the kernel's file, so that a debugger has nothing to stop in. Therefore, while one
is attached, a line of code is compiled that carries the file and number of the statement's line, and run before it. Its
local names are those of the kernel, with the values that they have then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

from tilewright.errors import Span

STEP = "__step__"


def is_traced() -> bool:
    """Whether a debugger follows this thread."""
    if sys.gettrace() is not None:
        return True
    monitoring: Any = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None


@lru_cache(maxsize=4096)
def _line(file: str, line: int) -> CodeType:
    return compile("\n" * (line - 1) + f"{STEP}()", file, "exec")


def visit(span: Span, names: dict[str, Any], step: Callable[[], Any] = lambda: None) -> None:
    """Call `step` from the line of `span`, where `names` are the local names."""
    if span.line > 0:
        exec(_line(span.file, span.line), {STEP: step}, {**names})


def stop(span: Span, names: dict[str, Any]) -> None:
    """``breakpoint()`` at the line of `span`: whatever `sys.breakpointhook` starts."""
    visit(span, names, sys.breakpointhook)
