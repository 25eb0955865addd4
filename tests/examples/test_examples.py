"""Every example against its own NumPy reference: in the interpreter, as machine code, and as the assembler's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from meaning import outcome
from properties.judges import ASCEND, EXAMPLES, judge_native, judge_passes, judge_pto, load_example
from support import TAILS, Array

from tilewright.errors import TilewrightError
from tilewright.execute import interpret
from tilewright.frontend import read_program
from tilewright.ir.dtypes import from_numpy
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.targets import load_target


@dataclass(frozen=True)
class Example:
    """A file, its kernel, sizes to try, and how far rounding may take the kernel from NumPy's own order of work."""

    file: str
    kernel: str
    sizes: tuple[tuple[int, ...], ...]
    tolerance: float = 0.0


BLOCKS = ((1, 64), (15, 64), (16, 64), (17, 64), (63, 64), (64, 128), (65, 64), (200, 64))
EXAMPLES_RUN = (
    Example("elementwise.py", "chain", BLOCKS, 1e-6),
    Example("softmax.py", "softmax", BLOCKS, 1e-5),
    Example("rmsnorm.py", "rmsnorm", BLOCKS, 1e-4),
    Example("matmul.py", "matmul", ((64, 64, 64), (128, 64, 192))),
    Example("chained_matmul.py", "chained", tuple((rows, 64, 48, 80) for rows in TAILS)),
    Example("add.py", "add", BLOCKS),
    Example("scalar_ops.py", "scale", BLOCKS),
    Example("swiglu.py", "swiglu", BLOCKS, 1e-5),
    Example("geglu.py", "geglu", BLOCKS, 1e-5),
    Example("layernorm.py", "layernorm", BLOCKS, 1e-4),
    Example("rope.py", "rope", BLOCKS),
    Example("transpose.py", "transpose", ((1, 64), (17, 33), (65, 32), (200, 72))),
    Example("concat.py", "concat", ((8, 48, 64), (17, 64, 16), (65, 16, 33))),
    Example("valid_shape.py", "masked_softmax", ((1, 64), (3, 65), (6, 128)), 1e-5),
    Example("matmul_bias.py", "matmul_bias", ((1, 65, 63), (17, 64, 80), (200, 192, 136))),
    Example("fused_linear.py", "fused_linear", ((1, 16, 17), (17, 64, 80), (200, 65, 63)), 1e-5),
    Example("split_k.py", "split_k", ((1, 64, 16), (17, 260, 33), (64, 1024, 48))),
    Example("int8_linear.py", "int8_linear", ((1, 64, 16), (17, 64, 80), (200, 128, 96)), 1e-6),
    Example("ffn_relu.py", "ffn", ((1, 16, 33), (17, 64, 200), (65, 33, 64)), 1e-4),
    Example("ffn_gelu.py", "ffn", ((1, 16, 33), (17, 64, 200), (65, 33, 64)), 1e-4),
    Example("ffn_swiglu.py", "ffn", ((1, 16, 33), (17, 64, 200), (65, 33, 64)), 1e-4),
    Example("embedding.py", "embedding", ((1, 65, 5), (17, 64, 30), (65, 128, 300))),
    Example("kv_cache.py", "update", ((1, 65, 8), (17, 64, 30))),
    Example("silu.py", "silu", BLOCKS, 1e-5),
    Example("gelu.py", "gelu", BLOCKS, 1e-5),
    Example("topk.py", "topk", ((1, 32), (3, 64), (2, 128))),
    Example("moe_routing.py", "route", ((1, 32), (2, 64), (16, 16)), 1e-5),
    Example("paged_attention.py", "paged_attention", ((1, 1, 64), (2, 40, 64), (3, 100, 64)), 1e-4),
    Example("decode_layer.py", "decode_layer", ((1, 64), (4, 1536)), 1e-4),
    Example("flash_attention.py", "flash_attention", ((1, 64, 32), (17, 65, 64), (72, 200, 64)), 1e-4),
)


def cases(rows: tuple[int, ...] = ()) -> list[Any]:
    """Each example with each size; with `rows`, the sizes that start so, or else the first."""
    return [
        pytest.param(example, size, id=f"{example.file.removesuffix('.py')}-{'x'.join(map(str, size))}")
        for example in EXAMPLES_RUN
        for size in example.sizes
        if not rows or size[0] in rows or size is example.sizes[0]
    ]


def program_of(example: Example, arguments: list[Array]) -> Program:
    kernel = getattr(load_example(example.file), example.kernel)
    return read_program(kernel.source, [TensorType(a.shape, from_numpy(a.dtype)) for a in arguments])


def close(arguments: list[Array], wanted: Array | tuple[Array, ...], tolerance: float) -> None:
    """The last arguments hold what the reference returns."""
    outputs = wanted if isinstance(wanted, tuple) else (wanted,)
    for found, output in zip(arguments[-len(outputs) :], outputs, strict=True):
        np.testing.assert_allclose(found.astype(np.float64), output.astype(np.float64), tolerance, tolerance)


@pytest.mark.parametrize(("example", "size"), cases())
def test_interpreted_and_native(example: Example, size: tuple[int, ...]) -> None:
    module = load_example(example.file)
    arguments = list(module.arguments(*size))
    wanted = module.reference(*arguments)
    program = program_of(example, arguments)
    own = [a.copy() for a in arguments]
    interpret(program, own)
    close(own, wanted, example.tolerance)
    compiled = [a.copy() for a in arguments]
    getattr(module, example.kernel)(*compiled)
    close(compiled, wanted, example.tolerance)
    if not example.tolerance:
        judge_native(program, arguments, outcome(program, arguments))


@pytest.mark.parametrize("machine", ASCEND)
@pytest.mark.parametrize(("example", "size"), cases((1, 17)))
def test_on_ascend(example: Example, size: tuple[int, ...], machine: str) -> None:
    """What the kernel gives is the interpreter's answer, after every pass to the bit."""
    arguments = list(load_example(example.file).arguments(*size))
    program = program_of(example, arguments)
    wanted, target = outcome(program, arguments), load_target(machine)
    placed = judge_passes(program, target, arguments, wanted, tolerance=example.tolerance)
    judge_pto(placed, target, arguments, wanted, tolerance=example.tolerance)


def test_every_example_is_here() -> None:
    files = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob("*.py")}
    assert files == {example.file for example in EXAMPLES_RUN}


def test_a_size_that_the_matmul_does_not_take_is_refused() -> None:
    module = load_example("matmul.py")
    with pytest.raises(TilewrightError):
        module.matmul(*module.arguments(100, 64, 64))
