"""Names that kernels written elsewhere may hold and that mean nothing here, with the reason and a way out.

Each is refused where it is written, by its name: a call of it is not taken for a misspelled operation.
"""

from __future__ import annotations

_SCALES = "products with scales (MX) are not supported: scale the operands with pl.mul, and multiply with pl.matmul"
_PIPES = "tiles cross between cores by themselves: use the value where it is wanted"
_EVENTS = "the compiler orders engines and cores: leave it out"
_OTHERS = "other machines are not reached from a kernel: exchange tensors between calls"
_PREFETCH = "asynchronous prefetch is not supported: pl.pipeline overlaps loads with work"

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias", "tile.tget_scale_addr"), _SCALES
    ),
    **dict.fromkeys(("matmul_mx", "matmul_mx_acc", "matmul_mx_bias", "tget_scale_addr"), _SCALES),
    **{
        f"{prefix}{word}": _PIPES
        for prefix in ("", "tile.")
        for word in ("tpush_to_aic", "tpush_to_aiv", "tpop_from_aic", "tpop_from_aiv")
    },
    **dict.fromkeys(("tile.alloc", "tensor.alloc", "alloc"), "use pl.tile.create; pl.MemRef in a type pins an address"),
    **{
        f"system.{word}": _PIPES
        for word in (
            "aic_initialize_pipe", "aiv_initialize_pipe", "reserve_buffer", "import_peer_buffer", "tfree_to_aic",
            "tfree_to_aiv",
        )
    },
    **{
        f"system.{word}": _EVENTS
        for word in (
            "sync_src", "sync_dst", "sync_set", "sync_wait", "syncall", "set_ffts", "bar_v", "bar_m", "bar_all",
            "fence", "cacheinvalid", "task_dummy", "task_invalid", "task_is_valid", "available_cluster_count",
            "available_aiv_count",
        )
    },
    **{f"prefetch.{word}": _PREFETCH for word in ("make_context", "session", "async_prefetch", "wait")},
    "prefetch": _PREFETCH,
}  # fmt: skip
"""By the path after ``pl.``."""
