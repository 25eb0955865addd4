"""Random chains of sections: elementwise work, reductions of rows, vectors that meet matrices, products; in scopes of
one to three operations or outside of scopes. Values stay small integers, so that every order of summation is exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from support import TAILS

LIMIT = 2.0**20
"""Values past this are cut down to `SMALL` again: sums of products of them would not be exact."""
SMALL = 4.0


@dataclass
class Chain:
    """A program under construction. `values` are tensors so far: name, rows, columns, and how large they may be."""

    random: Random
    lines: list[str] = field(default_factory=list[str])
    params: list[str] = field(default_factory=list[str])
    values: list[tuple[str, int, int, float]] = field(default_factory=list[tuple[str, int, int, float]])
    scope: list[str] = field(default_factory=list[str])
    """values that are made in the scope which is open"""
    lost: set[str] = field(default_factory=set[str])
    """values of which there is a later version"""
    depth: int = 0
    count: int = 0

    def param(self, rows: int, columns: int) -> str:
        name = f"p{len(self.params)}"
        self.params.append(f"{name}: pl.Tensor[[{rows}, {columns}], pl.FP32]")
        return name

    def make(self, text: str, rows: int, columns: int, bound: float) -> tuple[str, int, int, float]:
        name = f"v{self.count}"
        self.count += 1
        self.lines.append("    " * (2 + self.depth) + f"{name} = {text}")
        self.scope.append(name)
        value = (name, rows, columns, bound)
        self.values.append(value)
        return value

    def small(self, value: tuple[str, int, int, float]) -> tuple[str, int, int, float]:
        name, rows, columns, bound = value
        if bound <= SMALL:
            return value
        low = self.make(f"pl.tensor.minimums({name}, {SMALL})", rows, columns, bound)
        return self.make(f"pl.tensor.maximums({low[0]}, {-SMALL})", rows, columns, SMALL)

    def pick(self) -> tuple[str, int, int, float]:
        """Mostly the newest matrix; now and then an older one, which then has several readers."""
        matrices = [value for value in self.values if value[2] > 1]
        at = -1 if self.random.random() < 0.75 else self.random.randrange(len(matrices))
        value = matrices[at]
        return self.small(value) if value[3] > LIMIT else value

    def step(self) -> None:
        name, rows, columns, bound = self.pick()
        if self.random.random() < 0.15 and self.update():
            return
        match self.random.randrange(8):
            case 0:
                unary = self.random.choice(("relu", "neg", "abs"))
                self.make(f"pl.tensor.{unary}({name})", rows, columns, bound)
            case 1:
                self.make(f"pl.tensor.adds({name}, 3.0)", rows, columns, bound + 3)
            case 2:
                alike = [v for v in self.values if v[1:3] == (rows, columns)]
                other = self.random.choice(alike)
                self.make(f"pl.tensor.add({name}, {other[0]})", rows, columns, bound + other[3])
            case 3 | 4:
                wide = "row_sum" if self.random.random() < 0.3 else "row_max"
                source = self.small((name, rows, columns, bound)) if wide == "row_sum" else (name, rows, columns, bound)
                large = source[3] * columns if wide == "row_sum" else source[3]
                vector = self.make(f"pl.tensor.{wide}({source[0]})", rows, 1, large)
                self.make(f"pl.tensor.row_expand_sub({source[0]}, {vector[0]})", rows, columns, source[3] + large)
            case 5:
                row = self.param(1, columns)
                self.make(f"pl.tensor.col_expand_add({name}, {row})", rows, columns, bound + 8)
            case _:
                width = self.random.choice(TAILS[1:])
                source = self.small((name, rows, columns, bound))
                weight = self.param(columns, width)
                self.make(f"pl.tensor.matmul({source[0]}, {weight})", rows, width, source[3] * 8 * columns)

    def update(self) -> bool:
        """Writes one tensor over a corner of another, of which the old version is not to be read any more."""
        choices = [
            (whole, part)
            for whole in self.values
            for part in self.values
            if whole[0].startswith("v") and whole is not part and part[1] <= whole[1] and part[2] <= whole[2]
        ]
        if not choices:
            return False
        whole, part = self.random.choice(choices)
        self.values.remove(whole)
        self.lost.add(whole[0])
        row, column = self.random.randint(0, whole[1] - part[1]), self.random.randint(0, whole[2] - part[2])
        text = f"pl.tensor.assemble({whole[0]}, {part[0]}, [{row}, {column}])"
        self.make(text, whole[1], whole[2], max(whole[3], part[3]))
        return True


def program_text(seed: int, length: int = 7) -> tuple[str, int]:
    """The text of a program, and the number of its outputs, which are its last parameters."""
    chain = Chain(Random(seed))
    rows, columns = chain.random.choice(TAILS), chain.random.choice(TAILS[1:])
    first = chain.param(rows, columns)
    chain.values.append((first, rows, columns, 8.0))
    while chain.count < length:
        if chain.random.random() < 0.3:
            _scope(chain)
        else:
            chain.step()
    made = [value for value in chain.values if value[0].startswith("v")]
    outputs = [made[-1], *([chain.random.choice(made)] if chain.random.random() < 0.3 else [])]
    outputs = list(dict.fromkeys(outputs))
    results: list[str] = []
    for at, (name, high, wide, _) in enumerate(outputs):
        chain.params.append(f"out{at}: pl.Out[pl.Tensor[[{high}, {wide}], pl.FP32]]")
        chain.lines.append(f"        out{at}_1 = pl.tensor.assemble(out{at}, {name}, [0, 0])")
        results.append(f"out{at}_1")
    head = f"    def main(self, {', '.join(chain.params)}):"
    lines = ["import tilewright.language as pl", "", '@pl.program(entry="main")', "class Program:"]
    lines += ["    @pl.function(type=pl.FunctionType.Orchestration)", head, *chain.lines]
    return "\n".join((*lines, f"        return {', '.join(results)}")) + "\n", len(outputs)


def _scope(chain: Chain) -> None:
    """Some operations in a scope of their own; what they make is known afterwards by other names."""
    chain.lines.append("        with pl.at():")
    chain.depth, chain.scope = 1, []
    for _ in range(chain.random.randrange(1, 4)):
        chain.step()
    chain.depth = 0
    given = [name for name in chain.scope if name not in chain.lost]
    names = [f"{name}_s" for name in given]
    chain.lines.append(f"            {', '.join(names)} = pl.yield_({', '.join(given)})")
    renamed = dict(zip(given, names, strict=True))
    chain.values = [(renamed.get(v[0], v[0]), *v[1:]) for v in chain.values]
