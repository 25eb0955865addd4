"""What a user may choose about compiling, by keyword of `pl.jit` and `tw.compile`."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Options:
    """`target`: the machine to compile for, by name, file or object; calls always run on this CPU.
    `cache`: whether compiled code may be kept on disk and read from there.
    `forward`: whether results that only the next section needs may stay on chip."""

    target: str | Target = "host"
    cache: bool = True
    forward: bool = True
