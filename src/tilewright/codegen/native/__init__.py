"""Native code for this CPU: a program after `flatten_tiles` becomes machine code through LLVM, in one step.

Each operation is emitted as loops over plain buffers, from the loop form that its class states. See docs/native.md.
"""

from __future__ import annotations

from tilewright.codegen.native.guards import Guard
from tilewright.codegen.native.kernel import NativeKernel, pack
from tilewright.codegen.native.llvm import object_of, processor_of, version
from tilewright.codegen.native.signature import Parameter, Result, Signature
from tilewright.errors import CodegenError
from tilewright.ir.function import Program
from tilewright.targets import Target

__all__ = [
    "Guard", "NativeKernel", "Parameter", "Result", "Signature", "cache_key_parts", "compile_native", "emit_llvm",
    "load_object",
]  # fmt: skip


def compile_native(program: Program, target: Target) -> NativeKernel:
    """Machine code for `program`, whose tiles have two dimensions, on the processor of `target`.

    Spaces, layouts and addresses are ignored: a move between memories is another name. Raises `UnsupportedError` for
    an operation, an element type or a target without native code. What this machine cannot execute still compiles."""
    from tilewright.codegen.native.module import Module

    processor = processor_of(target)
    module = Module(program, processor)
    code = object_of(module.text(), processor)
    return NativeKernel(pack(module.signature(), processor, code))


def emit_llvm(program: Program, target: Target) -> str:
    """The text that `compile_native` gives to LLVM."""
    from tilewright.codegen.native.module import Module

    return Module(program, processor_of(target)).text()


def load_object(content: bytes) -> NativeKernel:
    """A kernel from its `object_code`. Raises `CodegenError` when the bytes are no kernel, or when this machine cannot
    execute them: code for `host` is for one very processor."""
    kernel = NativeKernel(content)
    if not kernel.runnable:
        raise CodegenError(f"this machine cannot execute code for {kernel.processor}", help="compile for host again")
    return kernel


def cache_key_parts(target: Target) -> tuple[str, ...]:
    """What the object code of a program depends on besides the program and this compiler."""
    processor = processor_of(target)
    return (version(), processor.cpu, processor.features, str(processor.vector_bytes))
