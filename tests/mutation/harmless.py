"""Planted faults that are none: the program means the same and breaks no rule. Each was looked at, and says why.

`test_mutation` holds every entry to it: the memory machine finds nothing on three poisoned inputs, and the checker
accepts the program with the certificate of the one that it was made from.
"""

from __future__ import annotations

HARMLESS: dict[tuple[str, str, str, str], str] = {
    ("trips half as far apart", "pipeline", "", "pl.pipeline(0, 4, 1"): (
        "trips overlap and store the same rows again, with the same values"
    ),
    ("sequence made parallel", "branch", "", "pl.parallel(2"): "each trip stores rows of its own: it is parallel",
    ("sequence made parallel", "atomic", "", "pl.parallel(0, 64"): "the trips only add, atomically, in any order",
    ("sequence made parallel", "carries", "", "pl.parallel(3"): (
        "every trip does the same, whatever its number, and a loop that carries tiles runs on one core"
    ),
    ("padding of another value", "bias", "scratchpad", "pl.PadValue.max"): (
        "only valid k take part in a product, and nothing else reads there"
    ),
    ("padding of another value", "packed", "", "pl.PadValue.max"): (
        "only valid k take part in a product, and nothing else reads there"
    ),
    ("compact mark dropped", "packed", "scratchpad", ""): "the memory has no boxes, so that nothing is packed",
    **{
        ("wait for a read left out", "sections", target, where): "the engine waits for another one, which has waited"
        for target, where in (
            ("ascend950", "FIXPIPE after MTE1"),
            ("ascend950", "CUBE after FIXPIPE"),
            ("ascend950", "MTE1 after CUBE"),
            ("scratchpad", "LANES after ARRAY"),
            ("scratchpad", "ARRAY after LANES"),
        )
    },
    ("wait for a write left out", "rows", "", "MTE3 after SCALAR"): "VECTOR wrote there since, and is waited for",
    (
        "wait for a write left out",
        "sections",
        "scratchpad",
        "LANES after DMA_IN",
    ): "LANES waits for ARRAY",
    ("wait for a write left out", "sections", "scratchpad", "DMA_OUT after DMA_IN"): "LANES wrote there since",
    **{
        (kind, program, target, where): reason
        for kind in ("wait of one engine for another left out", "first wait of one engine for another left out")
        for program, target, where, reason in (
            ("sections", "ascend950", "CUBE after FIXPIPE", "CUBE waits for MTE1, and MTE1 for FIXPIPE"),
            ("sections", "ascend950", "FIXPIPE after MTE2", "FIXPIPE waits for CUBE, CUBE for MTE1, MTE1 for MTE2"),
            ("sections", "ascend950", "FIXPIPE after MTE1", "FIXPIPE waits for CUBE, and CUBE for MTE1"),
            ("sections", "ascend950", "MTE1 after CUBE", "MTE1 waits for FIXPIPE, and FIXPIPE for CUBE"),
            ("sections", "scratchpad", "LANES after DMA_IN", "LANES waits for ARRAY, and ARRAY for DMA_IN"),
            ("sections", "scratchpad", "DMA_OUT after DMA_IN", "LANES wrote there since, and is waited for"),
            ("product", "scratchpad", "LANES after DMA_IN", "LANES waits for ARRAY, and ARRAY for DMA_IN"),
            ("rows", "", "MTE3 after SCALAR", "VECTOR wrote there since, and is waited for"),
            ("reuse", "", "MTE2 after VECTOR", "MTE2 waits for MTE3, which has waited for VECTOR"),
            ("reuse", "scratchpad", "DMA_IN after LANES", "DMA_IN waits for DMA_OUT, which has waited for LANES"),
        )
    },
    **{
        (kind, "atomic", "", where): "the load waits for the store of what was computed in place, which waited itself"
        for kind in (
            "wait for the trip before left out",
            "wait for the trip before the one before",
            "wait of one engine for another left out",
            "first wait of one engine for another left out",
        )
        for where in ("MTE2 after VECTOR", "DMA_IN after LANES")
    },
}
"""Kind, program, target (empty: every one), a part of the place's description: why it is harmless."""


def harmless(kind: str, program: str, target: str, site: str) -> tuple[str, str, str, str] | None:
    """The entry for a fault, if it has one."""
    for entry in HARMLESS:
        if entry[:2] == (kind, program) and entry[2] in ("", target) and entry[3] in site:
            return entry
    return None
