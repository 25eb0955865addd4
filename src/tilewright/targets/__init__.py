"""Machines as data: what each has, which paths join its memories, and what work costs on it."""

from tilewright.targets.loader import load_target, target_names
from tilewright.targets.model import NOMINAL, Target
from tilewright.targets.parts import (
    CastTable,
    Drain,
    DTypeRules,
    Edge,
    Engine,
    Extent,
    Hop,
    MatmulPrice,
    MatmulType,
    Memory,
    Route,
    VectorPrice,
)

__all__ = [
    "NOMINAL", "CastTable", "DTypeRules", "Drain", "Edge", "Engine", "Extent", "Hop", "MatmulPrice", "MatmulType",
    "Memory", "Route", "Target", "VectorPrice", "load_target", "target_names",
]  # fmt: skip
