"""The machine that this process runs on: which target serves it, and what is read from it rather than from a file.

The choice is by what the processor can do, not by its name. AMX needs the kernel's permission besides: a process
must ask once for the tile registers' state, or it dies at the first tile instruction. Whatever is wanting is said in
the survey's notes, which the command line shows.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from tilewright.targets.model import Target
from tilewright.targets.parts import Memory

AVX2 = frozenset({"avx2", "fma"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
AMX = AVX512 | {"amx_tile", "amx_bf16", "amx_int8"}

_ARCH_PRCTL = 158
_GET_SUPPORTED, _GET_PERMITTED, _REQUEST = 0x1021, 0x1022, 0x1023
_TILE_DATA = 18
"""The number of the extended state that holds the tile registers' data."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a survey found."""

    target: str
    """the name of the target that serves the machine"""
    features: frozenset[str]
    """of the processor, as Linux spells them"""
    caches: Mapping[int, int]
    """bytes of the data cache of one core, by level; empty where the system does not say"""
    cores: int
    """that this process may run on"""
    notes: tuple[str, ...]
    """why a better target was not taken, and what could not be read"""


def survey() -> Machine:
    """Look at the machine. Asks the kernel for the AMX tile registers where the processor has them."""
    features = cpu_features()
    caches = cache_sizes()
    notes: list[str] = []
    target = "generic"
    if features >= AVX2:
        target = "x86_avx2"
    if features >= AVX512:
        target = "x86_avx512"
    if features >= AMX:
        refused = request_amx()
        if refused is None:
            target = "x86_amx"
        else:
            notes.append(f"AMX: {refused}; {target} is used")
    elif any(feature.startswith("amx") for feature in features):
        notes.append(f"AMX: the processor lacks {', '.join(sorted(AMX - features))}; {target} is used")
    if not caches:
        notes.append("cache sizes: the system does not tell; those of the target file are used")
    return Machine(target, features, MappingProxyType(caches), core_count(), tuple(notes))


def adapt(target: Target, machine: Machine) -> Target:
    """`target` with the cache sizes and the number of cores that the survey found."""
    memories = {name: _fit(memory, machine.caches) for name, memory in target.memories.items()}
    found = ",".join(f"L{level}={size}" for level, size in sorted(machine.caches.items()))
    return replace(
        target,
        memories=MappingProxyType(memories),
        cores=MappingProxyType(dict.fromkeys(target.cores, machine.cores)),
        llvm_cpu="host",
        notes=machine.notes,
        fingerprint=f"{target.fingerprint}+host:{machine.cores},{found}",
    )


def _fit(memory: Memory, caches: Mapping[int, int]) -> Memory:
    """A memory that is a share of a cache gets that share of the cache that is there."""
    size = caches.get(memory.cache_level) if memory.cache_level is not None else None
    if size is None:
        return memory
    capacity = max(memory.alignment, int(size * memory.cache_share) // memory.alignment * memory.alignment)
    return replace(memory, capacity=capacity, physical=capacity)


def core_count() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def cpu_features(info: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Features of the processor in Linux's spelling; empty where the system offers no way to ask."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return frozenset()
    if sys.platform == "darwin":
        return _darwin_features()
    if sys.platform == "win32":
        return _windows_features()
    try:
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def _darwin_features() -> frozenset[str]:
    libc = ctypes.CDLL(None)
    names = {"avx2_0": "avx2", "fma": "fma"} | {f: f for f in ("avx512f", "avx512bw", "avx512dq", "avx512vl")}
    found: set[str] = set()
    for name, feature in names.items():
        value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        key = f"hw.optional.{name}".encode()
        if libc.sysctlbyname(key, ctypes.byref(value), ctypes.byref(size), None, 0) == 0 and value.value:
            found.add(feature)
    return frozenset(found)


def _windows_features() -> frozenset[str]:
    kernel32 = getattr(ctypes, "windll").kernel32  # noqa: B009 - the attribute exists on Windows only
    # IsProcessorFeaturePresent: 40 is AVX2, 41 AVX-512F. Every processor with AVX2 has fma; those parts of AVX-512
    # that have no number of their own are not assumed, so AVX2 is the most that is found here.
    return frozenset({"avx2", "fma"}) if kernel32.IsProcessorFeaturePresent(40) else frozenset()


def cache_sizes(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[int, int]:
    """Bytes of the data or unified cache that a core sees, by level; empty where the system does not say. A cache
    shared by several cores counts in whole."""
    found: dict[int, int] = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind = (index / "type").read_text(encoding="ascii").strip()
            level = int((index / "level").read_text(encoding="ascii"))
            size = (index / "size").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
        if kind in ("Data", "Unified") and size[:-1].isdigit() and size[-1] in units:
            found[level] = int(size[:-1]) * units[size[-1]]
    return found


def request_amx() -> str | None:
    """Ask the kernel for the state of the AMX tile registers, once for the process. None when they may be used, else
    the reason why not."""
    if not (sys.platform.startswith("linux") and platform.machine() == "x86_64"):
        return "only Linux on x86-64 is known to grant the tile registers"
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    bit = 1 << _TILE_DATA
    mask = ctypes.c_uint64(0)
    if syscall(_ARCH_PRCTL, _GET_PERMITTED, ctypes.byref(mask)) == 0 and mask.value & bit:
        return None
    if syscall(_ARCH_PRCTL, _GET_SUPPORTED, ctypes.byref(mask)) != 0 or not mask.value & bit:
        return "the kernel does not support the tile registers"
    if syscall(_ARCH_PRCTL, _REQUEST, ctypes.c_uint64(_TILE_DATA)) != 0:
        return f"the kernel refused the tile registers ({os.strerror(ctypes.get_errno())})"
    return None
