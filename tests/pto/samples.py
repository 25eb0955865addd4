"""The examples at sizes that the emulator runs in an instant, tails included; goldens and mutants are made of them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from pto.writing import Array

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Sample:
    """An example, the kernel in it, arguments, and how far a sum in another order may be off."""

    file: str
    kernel: str
    arguments: Callable[[ModuleType], list[Array]]
    tolerance: float = 0.0

    def load(self) -> tuple[Any, list[Array]]:
        module = load_example(self.file)
        return getattr(module, self.kernel), self.arguments(module)


def load_example(file: str) -> ModuleType:
    name = "example_" + file.removesuffix(".py").replace("/", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def integers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).integers(-3, 4, shape).astype(np.float32)


def digits(images: int) -> list[Array]:
    """Images, weights and biases of small integers, for the two layers of the digits example."""
    shapes = ((images, 64), (64, 32), (1, 32), (32, 10), (1, 10))
    return [*(integers(*shape) for shape in shapes), np.zeros((images, 10), np.float32)]


SAMPLES: dict[str, Sample] = {
    "elementwise": Sample("elementwise.py", "chain", lambda m: list(m.arguments(40, 64))),
    "softmax": Sample("softmax.py", "softmax", lambda m: list(m.arguments(40, 128)), 1e-6),
    "rmsnorm": Sample("rmsnorm.py", "rmsnorm", lambda m: list(m.arguments(40, 128)), 1e-5),
    "matmul": Sample("matmul.py", "matmul", lambda m: list(m.arguments(128, 64, 192))),
    "chained_matmul": Sample("chained_matmul.py", "chained", lambda m: list(m.arguments(40, 64, 48, 80))),
    "digits": Sample("digits/kernel.py", "classify", lambda m: digits(100)),
}
