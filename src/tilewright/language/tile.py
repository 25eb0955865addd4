"""``pl.tile.*``: the forms of the operations that work on tiles. Read inside kernels; see `docs/ops.md`."""

from __future__ import annotations

from typing import Any

from tilewright.language.operations import member_of, operation_names


def __getattr__(name: str) -> Any:
    return member_of("tile", name)


def __dir__() -> list[str]:
    return operation_names("tile")
