"""``tilewright targets``: the machines that there are, and what each has."""

from __future__ import annotations

from typing import Any

from tilewright.cli.output import show, show_json
from tilewright.ir.layout import MemorySpace
from tilewright.report.tables import Column, Table, human_bytes
from tilewright.targets import Target, load_target, target_names
from tilewright.targets.parts import Edge, Memory


def list_targets(as_json: bool) -> None:
    """Every name, with what it stands for."""
    found = [(name, load_target(name)) for name in target_names()]
    if as_json:
        fields = ("family", "description")
        show_json([{"name": n, "resolves_to": t.name} | {f: getattr(t, f) for f in fields} for n, t in found])
        return
    rows = tuple((name, target.family, _described(name, target)) for name, target in found)
    show(Table("", (Column("target", key=True), Column("family"), Column("machine")), rows))
    show("\nA file of your own works wherever a name does: -t my_chip.toml")


def _described(name: str, target: Target) -> str:
    return target.description if name == target.name else f"{target.description} (this machine: {target.name})"


def show_target(name: str, as_json: bool) -> None:
    """One machine. Raises `TargetError` for a name or file that there is not, and for a malformed file."""
    target = load_target(name)
    if as_json:
        show_json(as_data(target))
        return
    cores = ", ".join(f"{count} {kind}" for kind, count in target.cores.items())
    lines = [f"{target.name}: {target.description}", f"  cores: {cores}", f"  from {target.path}"]
    lines += [f"  PTO architecture: {target.pto_arch}"] if target.pto_arch else []
    lines += [f"  LLVM processor: {target.llvm_cpu} {target.llvm_features}".rstrip()] if target.llvm_cpu else []
    lines += [f"  note: {note}" for note in target.notes]
    show("\n".join(lines))
    show("")
    show(memories_table(target))
    show("")
    show(edges_table(target))
    show("")
    engines = tuple((e.name, ", ".join(e.cores), ", ".join(sorted(e.does)) or "moves") for e in target.engines.values())
    show(Table("Engines", (Column("engine", key=True), Column("cores"), Column("does")), engines))


def memories_table(target: Target) -> Table:
    """The memories with their sizes."""
    columns = (
        Column("memory", key=True), Column("roles"), Column("capacity", right=True), Column("of", right=True),
        Column("alignment", right=True), Column("core"),
    )  # fmt: skip
    rows = tuple(
        (
            memory.name, ", ".join(role.value for role in target.roles_of(memory.name)),
            "unbounded" if memory.capacity is None else human_bytes(memory.capacity),
            "" if memory.physical in (None, memory.capacity) else human_bytes(memory.physical or 0),
            str(memory.alignment), memory.core or "all",
        )
        for memory in target.memories.values()
    )  # fmt: skip
    return Table("Memories (sizes in bytes; 'of': with what is reserved)", columns, rows)


def edges_table(target: Target) -> Table:
    """The moves that the machine has."""
    columns = (
        Column("edge", key=True), Column("engine"), Column("bytes per cycle", right=True),
        Column("latency", right=True), Column("element types"), Column("converts"),
    )  # fmt: skip
    rows = tuple(
        (
            f"{_role(target, edge.src)} -> {_role(target, edge.dst)}", edge.engine, _rate(edge), f"{edge.latency:g}",
            _dtypes(edge, target), ", ".join(sorted(f"{a} to {b}" for a, b in edge.convert)),
        )
        for edge in target.edges
    )  # fmt: skip
    return Table("Edges (a figure with ~ is assumed)", columns, rows)


def _role(target: Target, memory: str) -> str:
    roles = target.roles_of(memory)
    return "/".join(role.value for role in roles) if roles else memory


def _rate(edge: Edge) -> str:
    if edge.bytes_per_cycle is None:
        return "by rows"
    return ("~" if edge.assumed else "") + f"{edge.bytes_per_cycle:g}"


def _dtypes(edge: Edge, target: Target) -> str:
    if edge.dtypes >= target.dtypes.held:
        return "all"
    return ", ".join(sorted(dtype.short for dtype in edge.dtypes)) or "none unchanged"


def as_data(target: Target) -> dict[str, Any]:
    """A target as JSON says it."""
    return {
        "name": target.name,
        "description": target.description,
        "family": target.family,
        "path": target.path,
        "fingerprint": target.fingerprint,
        "cores": dict(target.cores),
        "roles": {role.value: memory for role, memory in target.roles.items()},
        "memories": [_memory_data(memory) for memory in target.memories.values()],
        "edges": [
            {
                "from": edge.src, "to": edge.dst, "engine": edge.engine, "bytes_per_cycle": edge.bytes_per_cycle,
                "latency": edge.latency, "assumed": edge.assumed,
                "dtypes": sorted(dtype.short for dtype in edge.dtypes),
                "convert": sorted([a.short, b.short] for a, b in edge.convert),
            }
            for edge in target.edges
        ],
        "engines": {name: sorted(engine.does) for name, engine in target.engines.items()},
        "pto_arch": target.pto_arch,
        "notes": list(target.notes),
        "spaces": [space.value for space in MemorySpace if target.has(space)],
    }  # fmt: skip


def _memory_data(memory: Memory) -> dict[str, Any]:
    return {
        "name": memory.name, "capacity": memory.capacity, "physical": memory.physical,
        "alignment": memory.alignment, "core": memory.core,
    }  # fmt: skip
