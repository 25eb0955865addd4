"""What Tilewright is compared with: the same work in NumPy, torch (eager and compiled) and jax, as each does it best.

A peer is made for a case from its arguments. It gives a call that does the work once and waits for it, and a way to
read its result. Outputs are written in place where a library can; threads are set by `native.py` before anything is
imported here, by affinity and by the libraries' own settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from native_kernels import DEPTH, HEADS, LENGTH, Array, Case

Peer = tuple[Callable[[], Any], Callable[[], Array]]
"""The call, and the result of the last call."""


def tilewright(case: Case, given: tuple[Array, ...]) -> Peer:
    return lambda: case.kernel(*given), lambda: given[-1]


# --- NumPy ------------------------------------------------------------------------------------------------------------
def numpy_softmax(x: Array, out: Array) -> None:
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)


def numpy_rmsnorm(x: Array, weight: Array, out: Array) -> None:
    scale = 1 / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[1]) + np.float32(1e-6))
    np.multiply(x, scale, out=out)
    out *= weight


def numpy_layernorm(x: Array, gamma: Array, beta: Array, out: Array) -> None:
    np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
    variance = np.einsum("ij,ij->i", out, out)[:, None] / np.float32(x.shape[1])
    out *= 1 / np.sqrt(variance + np.float32(1e-5))
    out *= gamma
    out += beta


def numpy_gelu(x: Array, out: Array) -> None:
    np.multiply(x, x, out=out)
    out *= np.float32(0.044715)
    out += np.float32(1)
    out *= x
    out *= np.float32(math.sqrt(2 / math.pi))
    np.tanh(out, out=out)
    out += np.float32(1)
    out *= x
    out *= np.float32(0.5)


def numpy_silu_up(gate: Array, up: Array, out: Array) -> None:
    np.negative(gate, out=out)
    np.exp(out, out=out)
    out += np.float32(1)
    np.divide(gate, out, out=out)
    out *= up


def numpy_gemm(a: Array, b: Array, out: Array) -> None:
    if a.dtype == np.float32:
        np.matmul(a, b, out=out)
    else:  # NumPy multiplies no narrow floats quickly: as FP32, and rounded
        out[...] = a.astype(np.float32) @ b.astype(np.float32)


def numpy_ffn(x: Array, w1: Array, b1: Array, w2: Array, b2: Array, out: Array) -> None:
    linear = x @ w1
    linear += b1
    hidden = np.empty_like(linear)
    numpy_gelu(linear, hidden)
    np.matmul(hidden, w2, out=out)
    out += b2


def numpy_attention(q: Array, k: Array, v: Array, out: Array) -> None:
    q, k, v = (x.reshape(HEADS, LENGTH, DEPTH) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2)
    scores *= np.float32(1 / math.sqrt(DEPTH))
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    np.matmul(scores, v, out=out.reshape(HEADS, LENGTH, DEPTH))


def numpy(case: Case, given: tuple[Array, ...]) -> Peer:
    function = globals()[f"numpy_{case.kind}"]
    return lambda: function(*given), lambda: given[-1]


# --- torch ------------------------------------------------------------------------------------------------------------
def torch_function(kind: str) -> Callable[..., Any]:
    """The work from tensors to a new tensor."""
    import torch
    import torch.nn.functional as nn

    def heads(x: Any) -> Any:
        return x.view(1, HEADS, LENGTH, DEPTH)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return nn.scaled_dot_product_attention(heads(q), heads(k), heads(v)).view(HEADS * LENGTH, DEPTH)

    def ffn(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return torch.addmm(b2, nn.gelu(torch.addmm(b1, x, w1), approximate="tanh"), w2)

    return {
        "softmax": lambda x: torch.softmax(x, 1),
        "rmsnorm": lambda x, w: nn.rms_norm(x, (x.shape[1],), w[0], 1e-6),
        "layernorm": lambda x, g, b: nn.layer_norm(x, (x.shape[1],), g[0], b[0], 1e-5),
        "gelu": lambda x: nn.gelu(x, approximate="tanh"),
        "silu_up": lambda gate, up: nn.silu(gate) * up,
        "gemm": torch.mm,
        "ffn": ffn,
        "attention": attention,
    }[kind]


def torch_tensor(array: Array) -> Any:
    import torch

    if array.dtype == np.float32:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def torch_eager(case: Case, given: tuple[Array, ...]) -> Peer:
    import torch

    tensors = [torch_tensor(array) for array in given]
    if case.kind == "gemm":
        a, b, out = tensors
        return lambda: torch.mm(a, b, out=out), lambda: given[-1]
    function, held = torch_function(case.kind), {}

    def call() -> None:
        held["out"] = function(*tensors[:-1])

    return call, lambda: held["out"].float().numpy()


def torch_compiled(case: Case, given: tuple[Array, ...]) -> Peer:
    """Raises `RuntimeError` where torch gave back a function that it did not compile."""
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    tensors = [torch_tensor(array) for array in given[:-1]]
    function, held = torch.compile(torch_function(case.kind), fullgraph=True), {}

    def call() -> None:
        held["out"] = function(*tensors)

    with torch.no_grad():
        call()
    if not counters["stats"]["unique_graphs"]:
        raise RuntimeError("torch.compile compiled nothing")
    return call, lambda: held["out"].float().numpy()


# --- jax --------------------------------------------------------------------------------------------------------------
def jax(case: Case, given: tuple[Array, ...]) -> Peer:
    import jax as library
    import jax.numpy as jnp

    def softmax(x: Any) -> Any:
        return library.nn.softmax(x, axis=-1)

    def layernorm(x: Any, gamma: Any, beta: Any) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred * library.lax.rsqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta

    def ffn(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return library.nn.gelu(x @ w1 + b1, approximate=True) @ w2 + b2

    def attention(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.reshape(HEADS, LENGTH, DEPTH) for x in (q, k, v))
        scores = jnp.einsum("hqd,hkd->hqk", q, k) * (1 / math.sqrt(DEPTH))
        return jnp.einsum("hqk,hkd->hqd", softmax(scores), v).reshape(HEADS * LENGTH, DEPTH)

    function = library.jit({
        "softmax": softmax,
        "rmsnorm": lambda x, w: x * library.lax.rsqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w,
        "layernorm": layernorm,
        "gelu": lambda x: library.nn.gelu(x, approximate=True),
        "silu_up": lambda gate, up: library.nn.silu(gate) * up,
        "gemm": jnp.matmul,
        "ffn": ffn,
        "attention": attention,
    }[case.kind])  # fmt: skip
    arrays = [jnp.asarray(array) for array in given[:-1]]
    held: dict[str, Any] = {}

    def call() -> None:
        held["out"] = function(*arrays).block_until_ready()

    return call, lambda: np.asarray(held["out"])


PEERS: dict[str, Callable[[Case, tuple[Array, ...]], Peer]] = {
    "tilewright": tilewright, "numpy": numpy, "torch": torch_eager, "torch.compile": torch_compiled, "jax": jax,
}  # fmt: skip
