"""A gated activation: silu of one tensor times another."""

import numpy as np

import tilewright.language as pl


@pl.jit
def swiglu(gate: pl.Tensor, up: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = silu(gate) * up``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.silu(gate) * up
    return out


def arguments(m: int = 200, n: int = 128) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    gate, up = (rng.standard_normal((m, n), np.float32) for _ in range(2))
    return gate, up, np.zeros_like(gate)


def reference(gate: np.ndarray, up: np.ndarray, out: np.ndarray) -> np.ndarray:
    return gate / (1 + np.exp(-gate)) * up


if __name__ == "__main__":
    given = arguments()
    swiglu(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
