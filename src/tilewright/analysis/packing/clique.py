"""A bound where what must be apart is not a matter of one time: the heaviest set of items that must be apart pairwise.

Of items without holes, those that meet pairwise are all alive at one time, and the load says it all. With holes each
pair may meet at another time, and pairs may have to be apart for other reasons; the set needs its bytes side by side
all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = 4_000
"""Sets that are looked at, at most; what was found by then is a bound all the same."""


def heaviest_clique(sizes: Sequence[int], table: np.ndarray) -> int:
    """The granules of a heaviest set of items of which `table` has every pair; of the heaviest found in `STEPS`."""
    order = sorted(range(len(sizes)), key=lambda index: -sizes[index])
    meets = {index: set(np.nonzero(table[index])[0].tolist()) for index in order}
    best, steps = 0, STEPS
    # Depth first, thousands deep where the set is large: weight, candidates, the next one, bytes of the rest.
    todo = [(0, order, 0, sum(sizes))]
    while todo and steps > 0:
        weight, candidates, place, rest = todo.pop()
        if place == len(candidates) or weight + rest <= best:
            continue
        steps -= 1
        index = candidates[place]
        todo.append((weight, candidates, place + 1, rest - sizes[index]))
        inner = [other for other in candidates[place + 1 :] if other in meets[index]]
        heavier = weight + sizes[index]
        best = max(best, heavier)
        todo.append((heavier, inner, 0, sum(sizes[other] for other in inner)))
    return best
