"""``pl.array.*``: small arrays of scalars. Read inside kernels; see `docs/ops.md`."""

from __future__ import annotations

from typing import Any

from tilewright.language.operations import member_of


def __getattr__(name: str) -> Any:
    return member_of("array", name)
