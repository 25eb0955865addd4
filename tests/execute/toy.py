"""A machine with easy prices, and placed programs for it, so that schedules can be worked out by hand.

A tile of 8 x 8 f32 has 256 bytes. IN and OUT move 32 bytes a cycle after a latency of 10: 18 cycles a tile. ALU takes
5 + bytes / 32: 13 cycles. MAC takes 60 cycles for 8 x 8 x 8."""

from __future__ import annotations

from pathlib import Path

from tilewright.frontend import parse
from tilewright.ir.function import Program
from tilewright.ir.verify import verify
from tilewright.targets import Target, load_target

TOY = """
name = "toy"
edges = [
  {{ from = "DDR", to = "SP", engine = "IN", bytes_per_cycle = 32, latency = 10 }},
  {{ from = "SP", to = "DDR", engine = "OUT", bytes_per_cycle = 32, latency = 10 }},
  {{ from = "ACC", to = "DDR", engine = "OUT", bytes_per_cycle = 32, latency = 10 }},
]
{shared}
[cores]
core = {cores}
[roles]
Left = "SP"
Right = "SP"
Vec = "SP"
Acc = "ACC"
[memory.SP]
capacity = "64 KiB"
[memory.ACC]
capacity = "4 KiB"
[engine.IN]
[engine.OUT]
[engine.ALU]
does = ["vector", "scalar"]
[engine.MAC]
does = ["matmul"]
[matmul]
head = 4
box = [8, 8]
k_bytes = 32
passes = 56
[vector]
start = 5
width = 32
"""


def toy(folder: Path, cores: int = 1, shared: float | None = None) -> Target:
    """The machine with so many cores; `shared`: bytes per cycle that they get from DDR together."""
    path = folder / f"toy_{cores}_{shared}.toml"
    path.write_text(TOY.format(cores=cores, shared="" if shared is None else f"ddr_bytes_per_cycle = {shared}"))
    return load_target(path)


PAIR = """
name = "pair"
edges = [
  { from = "DDR", to = "SP", engine = "IN", bytes_per_cycle = 32, latency = 10 },
  { from = "DDR", to = "UB", engine = "IN", bytes_per_cycle = 32, latency = 10 },
  { from = "UB", to = "DDR", engine = "OUT", bytes_per_cycle = 32, latency = 10 },
]
[cores]
cube = 1
vector = 1
[roles]
Left = "SP"
Vec = "UB"
[memory.SP]
capacity = "64 KiB"
core = "cube"
[memory.UB]
capacity = "64 KiB"
core = "vector"
[engine.IN]
cores = ["cube", "vector"]
[engine.OUT]
cores = ["vector"]
[engine.ALU]
cores = ["vector"]
does = ["vector", "scalar"]
[vector]
start = 5
width = 32
"""


def pair(folder: Path) -> Target:
    """A machine with two kinds of core, each with an IN of its own; other prices are as above."""
    path = folder / "pair.toml"
    path.write_text(PAIR)
    return load_target(path)


def tile(buffer: int, rows: int = 8, columns: int = 8, space: str = "Vec", valid: str = "") -> str:
    """The type of a tile in the buffer of that number; buffers are 1 KiB apart."""
    view = f", pl.TileView(valid_shape={valid})" if valid else ""
    memref = f'pl.MemRef("b{buffer}", addr={1024 * buffer}, nbytes={4 * rows * columns})'
    return f"pl.Tile[[{rows}, {columns}], pl.FP32, {memref}, pl.Mem.{space}{view}]"


def program(body: str, params: str = "", shape: str = "[64, 64]") -> Program:
    """A placed function over tensors a, b and out; `body` is a block of statements that ends by making `last`."""
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    tensor = f"pl.Tensor[{shape}, pl.FP32]"
    text = f"""
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: {tensor}, b: {tensor}, {params}out: pl.Out[{tensor}]):
{lines}
        return last
"""
    made = parse(text, "toy.py")
    verify(made)
    return made
