"""A gated activation: gelu of one tensor times another."""

import numpy as np

import tilewright.language as pl


@pl.jit
def geglu(gate: pl.Tensor, up: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = gelu(gate) * up``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.gelu(gate) * up
    return out


def arguments(m: int = 200, n: int = 128) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    gate, up = (rng.standard_normal((m, n), np.float32) for _ in range(2))
    return gate, up, np.zeros_like(gate)


def reference(gate: np.ndarray, up: np.ndarray, out: np.ndarray) -> np.ndarray:
    return gate * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) * up


if __name__ == "__main__":
    given = arguments()
    geglu(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
