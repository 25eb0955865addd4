"""From a target file to a `Target`, strictly: a key that nobody reads, a memory that does not exist, a rate that is
not a number are refused on their line, because a machine described wrongly gives wrong programs without a word.

A file says everything about its machine; it inherits nothing. What may be left out, and what is then assumed, stands
in the documentation of target files beside the keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from tilewright.ir.dtypes import ALL, INDEX, DType
from tilewright.ir.layout import Layout, MemorySpace
from tilewright.targets import prices
from tilewright.targets.document import Document, Section, suggest
from tilewright.targets.model import Target
from tilewright.targets.parts import DDR, LAYOUTS, Drain, DTypeRules, Edge, Engine, Extent, Memory

WORK = ("matmul", "vector", "scalar")
_ROLES = {space.value: space for space in MemorySpace}


def read_target(text: str, path: str) -> Target:
    """The target that `text` describes; `path` is for messages. `TargetError` names the line at fault."""
    document = Document(text, path)
    root = document.root()
    cores = _cores(root)
    held = frozenset(root.dtypes("dtypes") or [dtype for dtype in ALL if dtype is not INDEX])
    memories = _memories(root, cores)
    roles = _roles(root, memories)
    engines = _engines(root, cores)
    matmul, matmul_types = prices.read_matmul(root.table("matmul"))
    vector, vector_dtypes = prices.read_vector(root.table("vector"))
    llvm = root.table("llvm")
    target = Target(
        name=root.text("name"),
        description=root.text("description", ""),
        family=root.text("family", "custom", ("ascend", "cpu", "custom")),
        memories=MappingProxyType(memories),
        roles=MappingProxyType(roles),
        edges=_edges(root, memories, engines, held),
        engines=MappingProxyType(engines),
        cores=MappingProxyType(cores),
        dtypes=DTypeRules(held, vector_dtypes, matmul_types),
        casts=prices.read_casts(root.table("casts")),
        matmul=matmul,
        vector=vector,
        ddr_granule=root.size("ddr_granule", 1),
        operand_spaces=_operands(root.table("operands")),
        pto_arch=root.text("pto_arch", "", ("a3", "a5")) or None,
        llvm_cpu=llvm.text("cpu", "") or None,
        llvm_features=llvm.text("features", ""),
        vector_bytes=llvm.whole("vector_bytes", 0),
        vector_registers=llvm.whole("vector_registers", 0),
        path=path,
        fingerprint=hashlib.sha256(text.encode()).hexdigest(),
        ddr_bytes_per_cycle=root.number("ddr_bytes_per_cycle", 0.0, positive=True) or None,
    )
    llvm.finish()
    root.finish()
    return target


def _cores(root: Section) -> dict[str, int]:
    table = root.table("cores")
    return {kind: table.whole(kind, positive=True) for kind in table} or {"core": 1}


def _core(section: Section, cores: Mapping[str, int]) -> str:
    """The kind of core under ``core``, which may be left out where there is only one kind."""
    if len(cores) == 1 and "core" not in section:
        section.text("core", "")
        return next(iter(cores))
    return section.text("core", choices=cores)


def _memories(root: Section, cores: Mapping[str, int]) -> dict[str, Memory]:
    table = root.table("memory")
    made = {DDR: Memory(DDR, None, None, 1, LAYOUTS["row_major"], 1, None, {}, None, 0)}
    for name in table:
        if name == DDR:
            raise table.fail(
                name, "DDR is not described", found=name, help="leave it out: every machine has it, without a bound"
            )
        made[name] = _memory(name, table.table(name), cores)
    if len(made) == 1:
        raise root.fail("memory", "the target has no memory", required="[memory.NAME]", help="describe one at least")
    return made


def _memory(name: str, section: Section, cores: Mapping[str, int]) -> Memory:
    capacity = section.size("capacity")
    physical = section.size("physical", capacity)
    if physical < capacity:
        raise section.fail(
            "physical",
            f"{name} is smaller than what tiles may use of it",
            required=f"{capacity} bytes or more",
            found=f"{physical} bytes",
            help="capacity is what tiles may use, physical what is there",
        )
    layout = section.text("layout", "row_major", ("implied", *LAYOUTS))
    multiples = section.table("row_multiple")
    row_multiple = {multiples.dtype(key, key): multiples.whole(key, positive=True) for key in multiples}
    memory = Memory(
        name=name,
        capacity=capacity,
        physical=physical,
        alignment=section.size("alignment", 32),
        layout=None if layout == "implied" else LAYOUTS[layout],
        row_bytes=section.size("row_bytes", 1),
        box=_box(section),
        row_multiple=row_multiple,
        core=_core(section, cores),
        rank=section.whole("rank", 1),
        register_base=section.whole_or_none("register_base"),
        register_bytes=section.size("register_bytes", None if "register_base" in section else 0),
        cache_level=section.whole_or_none("cache_level"),
        cache_share=section.number("cache_share", 1.0, positive=True),
    )
    section.finish()
    return memory


def _box(section: Section) -> tuple[Extent, Extent] | None:
    sides = section.items("box")
    if sides is None:
        return None
    extents: list[Extent] = []
    for side in sides:
        if isinstance(side, str) and side.endswith("B") and side[:-1].isdigit():
            extents.append(Extent(int(side[:-1]), in_bytes=True))
        elif isinstance(side, int) and not isinstance(side, bool):
            extents.append(Extent(side))
    if len(sides) != 2 or len(extents) != 2 or any(extent.count < 1 for extent in extents):
        raise section.fail(
            "box",
            f"box of {section.name} must be [rows, columns]",
            required='two numbers of elements above 0, or of bytes ("64B")',
            found=sides,
            help='for example box = [16, "64B"]',
        )
    return extents[0], extents[1]


def _roles(root: Section, memories: Mapping[str, Memory]) -> dict[MemorySpace, str]:
    """Roles to memories. Without the table, a memory that is named as a role plays it."""
    table = root.table("roles")
    roles = {MemorySpace.DDR: DDR}
    for key in table:
        if key not in _ROLES or key == DDR:
            raise table.fail(
                key,
                f"there is no role {key!r} to give",
                required="one of " + ", ".join(role for role in _ROLES if role != DDR),
                found=key,
                help=suggest(key, [role for role in _ROLES if role != DDR]),
            )
        roles[_ROLES[key]] = table.text(key, choices=memories)
    if not list(table):
        roles |= {space: name for name, space in _ROLES.items() if name in memories}
    for name in memories:
        if name not in roles.values():
            raise root.table("memory").fail(
                name,
                f"the memory {name} plays no role",
                required=f'a line under [roles], such as Vec = "{name}"',
                found="roles for " + ", ".join(sorted({*roles.values()} - {DDR})),
                help="give it a role, or take it out",
            )
    return {space: roles[space] for space in MemorySpace if space in roles}


def _engines(root: Section, cores: Mapping[str, int]) -> dict[str, Engine]:
    table = root.table("engine")
    made: dict[str, Engine] = {}
    for name in table:
        section = table.table(name)
        listed = section.texts("cores")
        for kind in listed or ():
            if kind not in cores:
                raise section.fail(
                    "cores",
                    f"there is no core {kind!r}",
                    required="one of " + ", ".join(cores),
                    found=kind,
                    help=suggest(kind, cores),
                )
        does = section.texts("does") or []
        for work in does:
            if work not in WORK:
                raise section.fail(
                    "does",
                    f"there is no class of work {work!r}",
                    required="one of " + ", ".join(WORK),
                    found=work,
                    help=suggest(work, WORK),
                )
        made[name] = Engine(name, tuple(listed or cores), frozenset(does))
        section.finish()
    if not made:
        raise root.fail("engine", "the target has no engine", required="[engine.NAME]", help="describe one at least")
    return made


def _edges(
    root: Section, memories: Mapping[str, Memory], engines: Mapping[str, Engine], held: frozenset[DType]
) -> tuple[Edge, ...]:
    drain = prices.read_drain(root.table("drain"))
    made: dict[tuple[str, str], Edge] = {}
    for section in root.tables("edges"):
        edge = _edge(section, memories, engines, held, drain)
        if (edge.src, edge.dst) in made:
            raise section.fail(
                "from",
                f"the edge {edge.src} -> {edge.dst} is there twice",
                required="one edge for each pair of memories",
                found=f"{edge.src} -> {edge.dst}",
                help="give one edge all the element types",
            )
        made[edge.src, edge.dst] = edge
    if not made:
        raise root.fail("edges", "the target has no edges", required="edges = [...]", help="say how data can go")
    return tuple(made.values())


def _edge(
    section: Section,
    memories: Mapping[str, Memory],
    engines: Mapping[str, Engine],
    held: frozenset[DType],
    drain: Drain | None,
) -> Edge:
    src, dst = section.text("from", choices=memories), section.text("to", choices=memories)
    engine = engines[section.text("engine", choices=engines)]
    core = memories[src].core or memories[dst].core
    if core is not None and core not in engine.cores:
        raise section.fail(
            "engine",
            f"the engine {engine.name} is not on the core of {src if memories[src].core else dst}",
            required=f"an engine of a {core} core",
            found=f"{engine.name} on " + ", ".join(engine.cores),
            help=f'add "{core}" to the cores of {engine.name}, or name another engine',
        )
    drained = section.flag("drain")
    if drained and drain is None:
        raise section.fail("drain", "there is no [drain] to price this edge", required="[drain]", help="add the table")
    dtypes = section.dtypes("dtypes")
    edge = Edge(
        src=src,
        dst=dst,
        engine=engine.name,
        core=core,
        bytes_per_cycle=None if drained else section.number("bytes_per_cycle", positive=True),
        latency=section.number("latency", 0.0),
        dtypes=held if dtypes is None else frozenset(dtypes),
        convert=_dtype_pairs(section, "convert"),
        rescale=_dtype_pairs(section, "rescale"),
        layouts=_layout_pairs(section),
        drain=drain if drained else None,
        assumed=section.flag("assumed"),
    )
    section.finish()
    return edge


def _dtype_pairs(section: Section, key: str) -> frozenset[tuple[DType, DType]]:
    return frozenset((section.dtype(key, src), section.dtype(key, dst)) for src, dst in section.pairs(key))


def _layout_pairs(section: Section) -> frozenset[tuple[Layout, Layout]] | None:
    pairs = section.pairs("layouts")
    for name in (name for pair in pairs for name in pair):
        if name not in LAYOUTS:
            raise section.fail(
                "layouts",
                f"there is no layout {name!r}",
                required="one of " + ", ".join(LAYOUTS),
                found=name,
                help=suggest(name, LAYOUTS),
            )
    return frozenset((LAYOUTS[src], LAYOUTS[dst]) for src, dst in pairs) if "layouts" in section else None


def _operands(root: Section) -> Mapping[str, Mapping[str, tuple[MemorySpace, ...]]]:
    made: dict[str, Mapping[str, tuple[MemorySpace, ...]]] = {}
    for op in root:
        section = root.table(op)
        spaces: dict[str, tuple[MemorySpace, ...]] = {}
        for name in section:
            for role in section.texts(name) or ():
                if role not in _ROLES:
                    raise section.fail(
                        name,
                        f"there is no role {role!r}",
                        required="one of " + ", ".join(_ROLES),
                        found=role,
                        help=suggest(role, _ROLES),
                    )
            spaces[name] = tuple(_ROLES[role] for role in section.texts(name) or ())
        made[op] = MappingProxyType(spaces)
    return MappingProxyType(made)
