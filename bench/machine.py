"""What the machine can do at most, measured in the same run: multiply-adds of vectors, a copy, and AMX's state.

The loops are IR text of a few lines. AMX has a fast and a slow state on shared machines, set from outside, which makes
a factor of four between two equal runs: a sample counts only if a short loop of tile instructions takes equally long
before and after it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from statistics import median
from typing import Any

import numpy as np

from tilewright.codegen.native.llvm import Loaded, Processor, object_of, processor_of
from tilewright.targets import load_target
from tilewright.targets.host import AMX, cpu_features

ROUNDS = 2_000_000
AMX_ROUNDS = 500
AMX_SPREAD = 1.3
"""How far two probes in one state are apart at most."""


class Machine:
    """Peaks for a number of threads."""

    def __init__(self, threads: int) -> None:
        self.processor = processor_of(load_target("host"))
        self.threads = threads
        self._loaded: list[Loaded] = []
        self._multiply = self._function(multiply_text(self.processor), "multiply")
        self._tiles = self._function(tiles_text(), "tiles") if cpu_features() >= AMX else None

    def _function(self, text: str, name: str) -> Any:
        loaded = Loaded(object_of(text, self.processor), (name,))
        self._loaded.append(loaded)
        return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(loaded.address(name))

    def multiply_peak(self) -> float:
        """Floating-point operations a second of a bare loop of multiply-adds, all threads together."""
        flops = 2 * ROUNDS * accumulators(self.processor) * self.processor.vector_bytes // 4
        return flops * self.threads / self._together(lambda: self._multiply(ROUNDS))

    def copy_peak(self) -> float:
        """Bytes a second, read and written, of a copy of 64 MiB for each thread."""
        pairs = [(np.ones(1 << 24, np.float32), np.zeros(1 << 24, np.float32)) for _ in range(self.threads)]
        free = iter(pairs)
        lock, mine = threading.Lock(), threading.local()

        def copy() -> None:
            if not hasattr(mine, "pair"):
                with lock:
                    mine.pair = next(free, pairs[0])
            np.copyto(mine.pair[1], mine.pair[0])

        return 2 * (1 << 26) * self.threads / self._together(copy)

    def _together(self, work: Any) -> float:
        """Seconds from the first thread's start to the last one's end: the best of 5."""
        barrier = threading.Barrier(self.threads)
        spans: list[list[tuple[float, float]]] = [[] for _ in range(5)]

        def run() -> None:
            for span in spans:
                barrier.wait()
                start = time.perf_counter()
                work()
                span.append((start, time.perf_counter()))

        others = [threading.Thread(target=run) for _ in range(self.threads)]
        for other in others:
            other.start()
        for other in others:
            other.join()
        return min(max(end for _, end in span) - min(start for start, _ in span) for span in spans)

    def amx_probe(self) -> float | None:
        """Seconds of a short loop of tile instructions; None without AMX."""
        if self._tiles is None:
            return None
        self._tiles(AMX_ROUNDS)
        start = time.perf_counter()
        self._tiles(AMX_ROUNDS)
        return time.perf_counter() - start

    def amx_state(self, probes: list[float]) -> str:
        if not probes:
            return "no AMX here"
        each = median(probes) / AMX_ROUNDS * 1e9
        return f"{'fast' if each < 60 else 'slow'} ({each:.0f} ns for 4 loads and 4 products)"


def same_state(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return True
    return max(before, after) <= AMX_SPREAD * min(before, after)


def accumulators(processor: Processor) -> int:
    return 24 if processor.registers == 32 else 12


def multiply_text(processor: Processor) -> str:
    """A loop of independent multiply-adds, one for each accumulator."""
    lanes = processor.vector_bytes // 4
    kind = f"<{lanes} x float>"
    count = accumulators(processor)
    one = f"splat (float 0x{0x3FF0000020000000:016X})"
    lines = ["define float @multiply(i64 %n) {\nentry:\n  br label %body\nbody:\n"
             "  %i = phi i64 [ 0, %entry ], [ %next, %body ]"]  # fmt: skip
    lines += [f"  %c{a} = phi {kind} [ splat (float {a}.0), %entry ], [ %d{a}, %body ]" for a in range(count)]
    if processor.has_fma:
        operation = f"call {kind} @llvm.fma.v{lanes}f32({kind} %c{{0}}, {kind} {one}, {kind} {one})"
        lines += [f"  %d{a} = {operation.format(a)}" for a in range(count)]
    else:
        lines += [f"  %e{a} = fmul {kind} %c{a}, {one}\n  %d{a} = fadd {kind} %e{a}, {one}" for a in range(count)]
    lines.append(
        "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %n\n  br i1 %more, label %body, label %out\nout:"
    )
    total = "%d0"
    for a in range(1, count):
        lines.append(f"  %t{a} = fadd {kind} {total}, %d{a}")
        total = f"%t{a}"
    lines.append(f"  %r = extractelement {kind} {total}, i64 0\n  ret float %r\n}}")
    return "\n".join([f"declare {kind} @llvm.fma.v{lanes}f32({kind}, {kind}, {kind})", *lines])


def tiles_text() -> str:
    """Four tile loads and four products for each round, on zeros in the first cache."""
    config = [1, *[0] * 63]
    for tile in range(8):
        config[16 + 2 * tile], config[48 + tile] = 64, 16
    body = [f"  call void @llvm.x86.tileloadd64(i8 {4 + t}, ptr %data, i64 64)" for t in range(4)]
    body += [f"  call void @llvm.x86.tdpbf16ps(i8 {2 * i + j}, i8 {4 + i}, i8 {6 + j})" for i in (0, 1) for j in (0, 1)]
    return "\n".join([
        "declare void @llvm.x86.ldtilecfg(ptr)", "declare void @llvm.x86.tilerelease()",
        "declare void @llvm.x86.tilezero(i8)", "declare void @llvm.x86.tileloadd64(i8, ptr, i64)",
        "declare void @llvm.x86.tdpbf16ps(i8, i8, i8)",
        f"@config = private constant [64 x i8] [{', '.join(f'i8 {byte}' for byte in config)}], align 64",
        "define float @tiles(i64 %n) {\nentry:\n  %data = alloca [1024 x i8], align 64",
        "  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 1024, i1 false)",
        "  call void @llvm.x86.ldtilecfg(ptr @config)",
        *[f"  call void @llvm.x86.tilezero(i8 {tile})" for tile in range(4)],
        "  br label %body\nbody:\n  %i = phi i64 [ 0, %entry ], [ %next, %body ]", *body,
        "  %next = add i64 %i, 1\n  %more = icmp slt i64 %next, %n\n  br i1 %more, label %body, label %out\nout:",
        "  call void @llvm.x86.tilerelease()\n  ret float 0.0\n}",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ])  # fmt: skip
