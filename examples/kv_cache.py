"""New keys written into a cache at the slots that a table names; the rest of the cache stays as it is."""

import numpy as np

import tilewright.language as pl


@pl.jit
def update(new: pl.Tensor, slots: pl.Tensor, cache: pl.InOut[pl.Tensor]):
    """``cache[slots[i, 0], :] = new[i, :]``, in order of i; slots are [rows, 1], int32."""
    rows, columns = new.shape
    for i in pl.range(rows):
        slot = pl.read(slots, [i, 0])
        cache = pl.store(pl.load(new, [i, 0], [1, columns]), [slot, 0], cache)
    return cache


def arguments(rows: int = 17, columns: int = 128, capacity: int = 200) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    new, cache = (rng.standard_normal((n, columns), np.float32) for n in (rows, capacity))
    return new, rng.integers(0, capacity, (rows, 1)).astype(np.int32), cache


def reference(new: np.ndarray, slots: np.ndarray, cache: np.ndarray) -> np.ndarray:
    wanted = cache.copy()
    for row, slot in zip(new, slots[:, 0], strict=True):
        wanted[slot] = row
    return wanted


if __name__ == "__main__":
    given = arguments()
    wanted = reference(*given)
    update(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - wanted).max()))
