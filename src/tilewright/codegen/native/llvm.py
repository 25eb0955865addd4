"""LLVM behind one typed door: text in, object code out, object code in, an address out.

Nothing else in Tilewright touches llvmlite, which is imported when first needed. No optimisation pass runs: the
emitter writes the loops and vectors that it wants, and code generation at level 2 keeps them. Passes at level 2 or 3
doubled the compile time of such text and made no kernel faster (measured).
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilewright.errors import CodegenError, UnsupportedError
from tilewright.targets import Target
from tilewright.targets.decisions import Decisions
from tilewright.targets.host import AMX, AVX2, AVX512, cpu_features

CODEGEN_LEVEL = 2
_REQUIRED = {"generic": frozenset[str](), "x86-64-v3": AVX2, "x86-64-v4": AVX512}
"""Features that a machine needs to execute code for a processor, in Linux's spelling. Others are taken to need AMX."""

_LOCK = threading.Lock()
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Processor:
    """What code is generated for: LLVM's name of the processor, its features, and what the emitter asks about."""

    cpu: str
    features: str
    vector_bytes: int
    runnable: bool
    """whether this machine can execute the code"""
    decisions: Decisions = field(default_factory=Decisions, compare=False)
    """what was decided for the program, see `tilewright.targets.decisions`"""

    @property
    def has_fma(self) -> bool:
        """Fused multiply-add, and conversion between FP16 and FP32: every x86 with vectors of 32 bytes has both."""
        return self.vector_bytes >= 32

    @property
    def has_avx512(self) -> bool:
        return self.vector_bytes >= 64

    @property
    def registers(self) -> int:
        return 32 if self.has_avx512 else 16


def _binding() -> Any:
    """`llvmlite.binding`, initialised once for the process."""
    return _initialised()


@cache
def _initialised() -> Any:
    import llvmlite.binding as binding  # pyright: ignore[reportMissingTypeStubs]

    library: Any = binding
    library.initialize_native_target()
    library.initialize_native_asmprinter()
    return library


@cache
def _jit() -> Any:
    return _binding().create_lljit_compiler()


def version() -> str:
    """The version of LLVM, of which object code is a product."""
    return ".".join(map(str, _binding().llvm_version_info))


def processor_of(target: Target) -> Processor:
    """The processor that `target` names. Raises `UnsupportedError` for a machine that LLVM does not serve."""
    if target.llvm_cpu is None:
        raise UnsupportedError(
            f"native code cannot be made for {target.name}",
            required="a target with an [llvm] section",
            found=f"family {target.family}",
            help="compile for host, or for one of the x86 targets",
        )
    width = max(16, target.vector_bytes)
    if target.llvm_cpu == "host":
        binding = _binding()
        name, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
        return Processor(name, features, width, True, target.decisions)
    runnable = runs_here(target.llvm_cpu, target.llvm_features)
    return Processor(target.llvm_cpu, target.llvm_features, width, runnable, target.decisions)


def runs_here(cpu: str, features: str) -> bool:
    """Whether this machine executes code for a processor. Code with a list of features is for one very processor."""
    if features:
        binding = _binding()
        return (cpu, features) == (binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    return _REQUIRED.get(cpu, AMX) <= cpu_features()


def object_of(text: str, processor: Processor) -> bytes:
    """The object file of an IR module. Raises `CodegenError` with LLVM's words when the text is refused."""
    binding = _binding()
    name = "" if processor.cpu == "generic" else processor.cpu
    with _LOCK:
        triple = binding.Target.from_default_triple()
        machine = triple.create_target_machine(
            cpu=name, features=processor.features, opt=CODEGEN_LEVEL, reloc="default", codemodel="jitdefault", jit=True
        )
        try:
            module = binding.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CodegenError("LLVM refuses the generated code", found=str(error)) from None
        code: bytes = machine.emit_object(module)
    return code


def assembly_of(text: str, processor: Processor) -> str:
    """The machine's assembly for an IR module: for people and for tests."""
    binding = _binding()
    with _LOCK:
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=processor.cpu, features=processor.features, opt=CODEGEN_LEVEL, jit=True
        )
        listing: str = machine.emit_assembly(binding.parse_assembly(text))
    return listing


class Loaded:
    """Object code in this process. It stays loaded as long as this object lives."""

    def __init__(self, code: bytes, symbols: tuple[str, ...]) -> None:
        binding = _binding()
        builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        with _LOCK:
            try:
                self._tracker = builder.link(_jit(), f"kernel{next(_NUMBERS)}")
            except RuntimeError as error:
                raise CodegenError("object code cannot be loaded", found=str(error)) from None

    def address(self, symbol: str) -> int:
        """Where a symbol, one of those named when loading, lies."""
        address: int = self._tracker[symbol]
        return address


Entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
"""The type of a kernel's entry: slots, workspace; 0, or the number of the guard that failed."""
