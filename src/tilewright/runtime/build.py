"""Programs into things that run: the passes, native code, and the two keys under which code is kept on disk.

A warm start skips the passes: the text that the reader made, the target (with what tuning decided) and this compiler
lead to the key of the final program, and that to its object code. Two sources that lower to one program share the code.
So the passes are imported where they run: with the code on disk, most of a first call would be their import.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tilewright.ir.function import Program
from tilewright.ir.verify import verify
from tilewright.runtime.cache import compiler_stamp, default_cache, key_of
from tilewright.runtime.executable import Executable, interpreted
from tilewright.runtime.options import Options
from tilewright.runtime.tuned import tuned_target
from tilewright.targets import Target, load_target
from tilewright.text import print_program

if TYPE_CHECKING:
    from tilewright.execute.interpreter import Observer
    from tilewright.runtime.compiled import CompiledProgram

CONVERSIONS = "tilewright.passes.tensor.convert_tensor_to_tile.registry"
"""The module in which users register conversions."""


def lowered(
    program: Program, target: str | Target, after: str | None = None, forward: bool = True
) -> Program:  # fmt: skip
    """`program` through the passes for `target`, to the end or to the pass called `after`."""
    from tilewright.compiler import lower

    return lower(program, tuned_target(program, load_target(target)), after=after, forward=forward)


def reference(program: Program, observe: Observer | None = None) -> Executable:
    """`program` in the reference interpreter, which calls `observe` with each value that it makes."""
    verify(program)
    return interpreted(program, observe)


def build(program: Program, options: Options) -> Executable:
    """`program` as native code for this CPU."""
    from tilewright.runtime.native import native_executable

    return native_executable(native_kernel(program, tuned_target(program, load_target("host")), options))


def native_kernel(program: Program, target: Target, options: Options) -> Any:
    """`program` as a `NativeKernel` for `target`, from the cache where it is there."""
    from tilewright.codegen import native

    cache = default_cache() if options.cache and not conversions() else None
    if cache is None:
        return native.compile_native(_unplaced(program, target, options), target)
    common = (compiler_stamp(), target.fingerprint, str(target.decisions), *native.cache_key_parts(target))
    forwards = () if options.forward else ("apart",)
    source_key = key_of(("source", print_program(program), *forwards, *common))
    known = cache.get(source_key)
    if known is not None:
        code = cache.get(known.decode())
        if code is not None:
            return native.load_object(code)
    program = _unplaced(program, target, options)
    code_key = key_of(("code", print_program(program), *common))
    code = cache.get(code_key)
    kernel = native.compile_native(program, target) if code is None else native.load_object(code)
    if code is None:
        cache.put(code_key, kernel.object_code)
    cache.put(source_key, code_key.encode())
    return kernel


def _unplaced(program: Program, target: Target, options: Options) -> Program:
    from tilewright.compiler import UNPLACED, lower

    return lower(program, target, after=UNPLACED, forward=options.forward)


def conversions() -> tuple[object, ...]:
    """The conversions that the user registered; what was compiled with others is another kernel. Functions have no
    text to be known by, so that nothing compiled with them is kept on disk."""
    module = sys.modules.get(CONVERSIONS)
    if module is None or not module.DEFAULT.is_modified:  # nobody registered in what nobody imported
        return ()
    entries = [(name, module.DEFAULT.lookup(name)) for name in module.DEFAULT.names]
    return tuple((name, entry.func) for name, entry in entries if entry is not None)


def compile_for(program: Program, target: str | Target, options: Options) -> CompiledProgram:
    """`program` compiled for `target`: placed, and callable where the target is this CPU."""
    from tilewright.runtime.compiled import CompiledProgram

    found = tuned_target(program, load_target(target))
    return CompiledProgram(program, found, lambda: native_kernel(program, found, options), options.forward)
