"""Executes PTO text on byte arrays: the judge of what the compiler printed, sharing no code with the compiler.

Every tile lies at its address in the bytes of its space, in boxes, as on the machine. Fresh memory is poisoned, scratch
operands are destroyed, padding that an instruction leaves undefined is destroyed, an access outside an array, a tile
or a space raises, and so does an instruction whose destination overlaps what it still reads.

A function with `pto.section.cube` and `pto.section.vector` runs once on each core, as two coroutines that pause at
`pto.sync.wait`; when both are paused for good it is a deadlock. What only luck orders between them is a race, always.
Within a core instructions run in order; with ``sync="explicit"`` two pipes that touch the same bytes unordered by the
text's flags are a race too. Blocks run one after the other, each on fresh memory; races between blocks are not looked
for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tilewright.codegen.pto.control import Waiting, run_function
from tilewright.codegen.pto.machine import Core, Machine, Pointer, Value
from tilewright.codegen.pto.memory import DTYPES, Array, poisoned
from tilewright.codegen.pto.races import Tracker
from tilewright.codegen.pto.reader import read
from tilewright.codegen.pto.scalars import fit
from tilewright.codegen.pto.syntax import Function, Module, Operation, walk
from tilewright.codegen.pto.tables import ARCHES
from tilewright.codegen.pto.types import MemRefType, PtrType, ScalarType, Type
from tilewright.errors import PTOError

Argument = Array | int | float
Sync = Literal["auto", "explicit"]


def emulate(
    text: str | Module,
    args: Sequence[Argument],
    *,
    entry: str | None = None,
    block_idx: int | None = None,
    block_num: int = 1,
    arch: str | None = None,
    sync: Sync = "auto",
) -> None:
    """Run one kernel; arrays among `args` are GM and change in place.

    Args:
        text: PTO text, or a module already read.
        args: one for each parameter but memrefs: a NumPy array (C-contiguous, any shape; its element type is the
            pointer's, or raw bytes as uint8) for a pointer, a number for a scalar.
        entry: the function; by default the only one, or the only one marked `pto.entry`.
        block_idx: run this block alone; None runs blocks 0 to `block_num` - 1 in order.
        arch: ``a3`` or ``a5``; by default the module's `pto.target_arch`, else ``a3``.
        sync: ``explicit`` honours the flags of the text and nothing else; ``auto`` is the assembler inserting them.

    Raises `PTOError` for anything that the text must not do, with the line.
    """
    module = read(text) if isinstance(text, str) else text
    arch = arch or module.arch or "a3"
    if arch not in ARCHES:
        raise PTOError(f"`{arch}` is not an architecture", required=" or ".join(ARCHES))
    function = _entry(module, entry)
    values = _arguments(function, args)
    for block in range(block_num) if block_idx is None else (block_idx,):
        _run_block(module, function, values, arch, (block, block_num), sync)


def launch(
    manifest: Mapping[str, Any],
    texts: Mapping[str, str],
    args: Mapping[str, Argument],
    *,
    arch: str | None = None,
    sync: Sync = "auto",
) -> None:
    """Run the kernels of a manifest in its order, with fresh workspaces.

    `manifest["kernels"]` lists ``{"file", "entry", "blocks", "arguments"}``: a key of `texts`, a function or None, a
    number of blocks or the name of a scalar argument, and for each parameter the name of an argument or workspace, or
    a number. `manifest["workspaces"]` maps names to bytes; they start poisoned and live through all kernels.
    """
    memory: dict[str, Argument] = dict(args)
    try:
        for name, nbytes in manifest.get("workspaces", {}).items():
            memory[name] = poisoned(_whole(nbytes, memory))
        modules = {name: read(text, name) for name, text in texts.items()}
        kernels = [
            (
                modules[kernel["file"]],
                [_named(name, memory) for name in kernel["arguments"]],
                kernel.get("entry"),
                _whole(kernel.get("blocks", 1), memory),
            )
            for kernel in manifest["kernels"]
        ]
    except (KeyError, AttributeError, TypeError) as error:
        raise PTOError("the manifest is not of the documented form", found=repr(error)) from error
    for module, values, entry, blocks in kernels:
        emulate(module, values, entry=entry, block_num=blocks, arch=arch, sync=sync)


def _named(name: object, memory: Mapping[str, Argument]) -> Argument:
    if isinstance(name, int | float):
        return name
    if not isinstance(name, str) or name not in memory:
        raise PTOError(f"the manifest names {name!r}, which is no argument or workspace", found=", ".join(memory))
    return memory[name]


def _whole(value: object, memory: Mapping[str, Argument]) -> int:
    found = _named(value, memory)
    if not isinstance(found, int):
        raise PTOError("the manifest needs an integer here", found=repr(value))
    return found


def _entry(module: Module, entry: str | None) -> Function:
    marked = [f for f in module.functions if "pto.entry" in f.attributes]
    if entry is not None:
        candidates = [f for f in module.functions if f.name == entry]
    else:
        candidates = marked if len(module.functions) > 1 else list(module.functions)
    if len(candidates) != 1:
        names = ", ".join(f.name for f in module.functions)
        raise PTOError("which function to run is not clear", required="entry=…", found=names)
    return candidates[0]


def _arguments(function: Function, args: Sequence[Argument]) -> list[Value]:
    wanted = [(name, kind) for name, kind in function.arguments if not isinstance(kind, MemRefType)]
    if len(wanted) != len(args):
        raise PTOError(
            f"@{function.name} takes {len(wanted)} arguments", span=function.span, found=f"{len(args)} arguments"
        )
    given = {name: _argument(name, kind, arg) for (name, kind), arg in zip(wanted, args, strict=True)}
    return [given.get(name) for name, _ in function.arguments]


def _argument(name: str, kind: Type, arg: Argument) -> Value:
    if isinstance(kind, ScalarType):
        return fit(arg.item() if isinstance(arg, np.ndarray) else arg, kind.name)
    if not isinstance(kind, PtrType) or not isinstance(arg, np.ndarray):
        raise PTOError(f"{name} takes another kind of argument", required=str(kind), found=type(arg).__name__)
    dtype = DTYPES[kind.dtype]
    raw = arg.dtype == np.uint8 and dtype.itemsize > 1
    # Element types of PTO are signless: unsigned integers, booleans and bit patterns of their size are the same bytes.
    same = arg.dtype == dtype or (arg.dtype.kind in "iub" and arg.dtype.itemsize == dtype.itemsize)
    if not arg.flags.c_contiguous or not (raw or same):
        raise PTOError(
            f"{name} takes another array", required=f"C-contiguous {dtype}", found=f"{arg.dtype}, strides {arg.strides}"
        )
    flat = arg.reshape(-1)
    if raw:
        flat = flat[: flat.size // dtype.itemsize * dtype.itemsize]
    return Pointer(flat.view(dtype), kind.dtype, 0, name)


def _run_block(
    module: Module, function: Function, args: list[Value], arch: str, block: tuple[int, int], sync: Sync
) -> None:
    names = {op.name for op in walk(function.body)}
    sides = [side for side in ("cube", "vector") if f"pto.section.{side}" in names] or [function.kind or "core"]
    tracked = sync == "explicit" or len(sides) > 1
    tracker = Tracker(explicit=sync == "explicit") if tracked else None
    machine = Machine(module, arch, block, tracker)
    waiting = {side: run_function(Core(machine, side), function, args) for side in sides}
    blocked: dict[str, Operation] = {}
    while waiting:
        before, running = machine.progress, len(waiting)
        for side, coroutine in list(waiting.items()):
            stopped = _advance(coroutine)
            if stopped is None:
                del waiting[side]
            else:
                blocked[side] = stopped
        if waiting and len(waiting) == running and before == machine.progress:
            _deadlock({side: blocked[side] for side in waiting})
    left = [(side, event) for (side, event), queue in machine.signals.items() if queue]
    if left:
        raise PTOError(
            f"signal {left[0][1]} to {left[0][0]} is still set when the kernel ends",
            span=function.span,
            help="give every pto.sync.set a pto.sync.wait on the other core",
        )
    if tracker is not None:
        tracker.finish(function.span)


def _advance(coroutine: Waiting) -> Operation | None:
    """Run until it waits (the operation) or ends (None)."""
    try:
        return next(coroutine)
    except StopIteration:
        return None


def _deadlock(blocked: dict[str, Operation]) -> None:
    first = next(iter(blocked.values()))
    found = "; ".join(
        f"{side} waits at line {op.line} for event {op.attributes['event']}" for side, op in blocked.items()
    )
    raise PTOError("deadlock: no core can go on", span=first.span, found=found)
