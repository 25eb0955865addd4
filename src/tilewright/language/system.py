"""``pl.system.*``: operations on the machine itself. Read inside kernels; see `docs/ops.md`."""

from __future__ import annotations

from typing import Any

from tilewright.language.operations import member_of


def __getattr__(name: str) -> Any:
    return member_of("system", name)
