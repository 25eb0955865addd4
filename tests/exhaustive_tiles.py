"""Every tile of a matmul, one after the other: what the tile chooser's answer is held against.

Written from the rules alone, in plain loops, with the machines' figures typed in: nothing here uses the chooser, its
model, a target file or `footprint`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, lcm


@dataclass(frozen=True)
class Kind:
    """Element types of a matmul: bytes of an operand's element, its alignment of (m, n, k), the engine's passes."""

    size: int
    align: tuple[int, int, int]
    passes: float
    acc_rows: int = 1
    """an accumulator's rows are rounded up to a multiple of this"""
    loose: tuple[int, int, int] | None = None
    """the alignment where the stricter one leaves no room for any tile"""


@dataclass(frozen=True)
class Machine:
    left: int
    right: int
    acc: int
    bias: int
    """bytes"""
    rate_a: float
    rate_b: float
    """bytes per cycle"""
    head: float
    box: tuple[int, int, int]
    """rows, columns, bytes of k of one step of the engine"""
    drain: Callable[[int, int], float]
    kinds: dict[str, Kind]
    boxes: tuple[tuple[int, int], ...]
    """of Left, Right and Acc: rows and columns, a negative number in bytes"""
    moving: int = 1
    accumulators: int = 1
    largest: int = 1 << 30
    one_memory: bool = False
    """Left, Right and Bias share `left` bytes"""


def odd(x: float) -> int:
    whole = ceil(x)
    while whole % 2 == 0:
        whole //= 2
    return whole


M910B = Machine(
    left=65536, right=65536, acc=131072, bias=1024, rate_a=129.7, rate_b=85.4, head=21, box=(16, 16, 32),
    drain=lambda m, n: 164 + m * max(4.45, 4 * n / 118) + 2.6 * m * (odd(n / 8) - 1),
    kinds={
        "f16": Kind(2, (16, 16, 16), 1), "bf16": Kind(2, (16, 16, 16), 1), "f32": Kind(4, (16, 16, 16), 2),
        "i8": Kind(1, (16, 32, 32), 1, acc_rows=32),
    },
    boxes=((16, -32), (-32, 16), (16, 16)), moving=2, accumulators=2, largest=4095,
)  # fmt: skip
M950 = Machine(
    left=65536, right=65536, acc=262144, bias=4096, rate_a=206.3, rate_b=223.8, head=25, box=(16, 16, 32),
    drain=lambda m, n: 343.4 + m * max(4.59, 4 * n / 30) + 0.26 * m * (odd(n / 8) - 1),
    kinds={
        "f16": Kind(2, (16, 16, 16), 1), "bf16": Kind(2, (16, 16, 16), 1), "f32": Kind(4, (16, 16, 16), 8),
        "i8": Kind(1, (16, 32, 32), 1),
    },
    boxes=((16, -32), (-32, 16), (16, 16)), moving=2, accumulators=2, largest=4095,
)  # fmt: skip
AMX = Machine(
    left=2048, right=2048, acc=4096, bias=1 << 20, rate_a=48, rate_b=48, head=0, box=(16, 16, 64),
    drain=lambda m, n: 16 + m * n * 4 / 64,
    kinds={
        "bf16": Kind(2, (16, 32, 32), 16, loose=(16, 16, 32)), "f32": Kind(4, (16, 16, 16), 128),
        "i8": Kind(1, (16, 64, 64), 16, loose=(16, 16, 64)),
    },
    boxes=((16, -64), (-64, 16), (16, 16)),
)  # fmt: skip
AVX512 = Machine(
    left=64, right=192, acc=1792, bias=1 << 19, rate_a=32, rate_b=32, head=0, box=(1, 16, 4),
    drain=lambda m, n: min(5 + m * n * 4 / 32, 14 + m * n * 4 / 32, 14 + m * n * 4 / 5),
    kinds={"bf16": Kind(2, (1, 32, 1), 1), "i8": Kind(1, (1, 64, 1), 1), "f32": Kind(4, (1, 16, 1), 0.5)},
    boxes=((1, 1), (1, -64), (1, -64)),
)  # fmt: skip
SCRATCHPAD = Machine(
    left=262144, right=0, acc=65536, bias=0, rate_a=32, rate_b=32, head=16, box=(8, 8, 32),
    drain=lambda m, n: min(8 + m * n * 4 / 32, 60 + m * n * 4 / 32),
    kinds={"bf16": Kind(2, (8, 8, 8), 8), "i8": Kind(1, (8, 8, 8), 8), "f32": Kind(4, (8, 8, 8), 8)},
    boxes=((8, 8), (8, 8), (8, 8)), moving=2, one_memory=True,
)  # fmt: skip
MACHINES = {
    "ascend910b": M910B, "ascend950": M950, "x86_amx": AMX, "x86_avx512": AVX512,
    "examples/targets/scratchpad.toml": SCRATCHPAD,
}  # fmt: skip
Best = tuple[tuple[int, int, int], str, int, float]
"""(m, n, k), what is held, accumulators, cycles"""


@dataclass(frozen=True)
class Case:
    """One matmul; `accumulators`: at most so many."""

    m: int
    n: int
    k: int
    kind: str
    bias: bool = False
    accumulators: int = 2


def occupied(rows: int, cols: int, box: tuple[int, int], size: int, rows_of: int = 1) -> int:
    """Bytes of a tile: whole boxes."""
    high, wide = (side if side > 0 else -side // size for side in box)
    high = lcm(high, rows_of)
    return ceil(rows / high) * high * ceil(cols / wide) * wide * size


def room(machine: Machine, case: Case, m: int, n: int, k: int, a: int, b: int, depth: int) -> bool:
    """Whether a tile fits with `a` and `b` buffers of the operands and `depth` accumulators."""
    kind = machine.kinds[case.kind]
    left = occupied(m, k, machine.boxes[0], kind.size) * a
    right = occupied(k, n, machine.boxes[1], kind.size) * b
    acc = occupied(m, n, machine.boxes[2], 4, kind.acc_rows) * depth
    bias = ceil(n * 4 / 32) * 32 if case.bias else 0  # one row, in whole blocks of 32 bytes
    if machine.one_memory:
        return left + right + bias <= machine.left and acc <= machine.acc
    return left <= machine.left and right <= machine.right and acc <= machine.acc and bias <= machine.bias


def points(machine: Machine, case: Case, moving: int) -> Iterator[tuple[tuple[float, ...], Best]]:
    """Every legal point: what it is compared by, and the point."""
    kind = machine.kinds[case.kind]
    am, an, ak = kind.align if room(machine, case, *kind.align, 1, 1, 1) else kind.loose or kind.align
    last_m, last_n, last_k = (ceil(x / a) * a for x, a in zip((case.m, case.n, case.k), (am, an, ak), strict=True))
    for m in range(am, min(last_m, machine.largest) + 1, am):
        if not room(machine, case, m, an, ak, 1, 1, 1):
            break
        for n in range(an, min(last_n, machine.largest) + 1, an):
            if not room(machine, case, m, n, ak, 1, 1, 1):
                break
            for k in range(ak, min(last_k, machine.largest) + 1, ak):
                if not room(machine, case, m, n, k, 1, 1, 1):
                    break
                yield from schedules(machine, case, kind, (m, n, k), moving)


def schedules(
    machine: Machine, case: Case, kind: Kind, tile: tuple[int, int, int], moving: int
) -> Iterator[tuple[tuple[float, ...], Best]]:
    """The legal ways to run one tile: what is held, and with how many accumulators."""
    m, n, k = tile
    tiles_m, tiles_n, steps = ceil(case.m / m), ceil(case.n / n), ceil(case.k / k)
    tiles = tiles_m * tiles_n
    fractals = case.k // k * ceil(k * kind.size / machine.box[2]) + ceil(case.k % k * kind.size / machine.box[2])
    issues = steps * machine.head
    multiply = tiles * (issues + kind.passes * ceil(m / machine.box[0]) * ceil(n / machine.box[1]) * fractals)
    drain = tiles * machine.drain(m, n)
    a_once = kind.size * case.m * case.k / machine.rate_a
    b_once = kind.size * case.k * case.n / machine.rate_b
    held_a, held_b = a_once + b_once * tiles_m, a_once * tiles_n + b_once
    ways: list[tuple[int, str, float, int, int, int]] = []
    if steps == 1:
        ways += [(0, "A", held_a, 1, moving, 1), (1, "B", held_b, moving, 1, 1)]
        ways += [(2, "output", min(held_a, held_b), moving, moving, 1)]
        if machine.accumulators > 1 and case.accumulators > 1 and case.n // n >= 2:
            ways.append((0, "A", held_a, 1, moving, 2))
        if machine.accumulators > 1 and case.accumulators > 1 and case.m // m >= 2:
            ways.append((1, "B", held_b, moving, 1, 2))
    else:
        ways.append((2, "output", a_once * tiles_n + b_once * tiles_m, moving, moving, 1))
    volume = tiles_m * m * tiles_n * n * steps * k
    for rank, held, load, a, b, depth in ways:
        if not room(machine, case, m, n, k, a, b, depth):
            continue
        c = max(load, multiply) if moving == machine.moving else load + multiply
        wall = c + drain if depth == 1 else max(c, drain) + min(c, drain) / tiles
        order = (round(wall * 1024), volume, steps, round(load * 1024), -m * n, -k, depth, rank, -m)
        yield order, (tile, held, depth, wall)


def best(machine: Machine, case: Case) -> Best | None:
    """The cheapest point of all; moving operands with fewer buffers only where nothing fits otherwise."""
    for moving in range(machine.moving, 0, -1):
        found = min(points(machine, case, moving), default=None)
        if found is not None:
            return found[1]
    return None
