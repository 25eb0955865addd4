"""Target files: what loads, and what a malformed one is told, line and way out included."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tilewright.errors import TargetError
from tilewright.ir.dtypes import ALL, BF16, FP16, FP32, INDEX, INT8
from tilewright.ir.layout import ROW_MAJOR, MemorySpace
from tilewright.targets import load_target, target_names
from tilewright.targets.document import Section
from tilewright.targets.schema import read_target

S = MemorySpace
ROOT = Path(__file__).parents[2]
SCRATCHPAD = ROOT / "examples/targets/scratchpad.toml"
FOLDER = ROOT / "src/tilewright/targets"

GOOD = """\
name = "chip"
edges = [
  { from = "DDR", to = "SP", engine = "DMA", bytes_per_cycle = 32, latency = 60 },
  { from = "SP", to = "DDR", engine = "DMA", bytes_per_cycle = 32 },
]
[memory.SP]
capacity = "64 KiB"
[roles]
Vec = "SP"
[engine.DMA]
[engine.LANES]
does = ["vector"]
"""


def load(tmp_path: Path, text: str) -> TargetError:
    """The error that a file of `text` gives."""
    path = tmp_path / "chip.toml"
    path.write_text(text)
    with pytest.raises(TargetError) as caught:
        load_target(path)
    return caught.value


def test_what_a_short_file_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(GOOD)
    target = load_target(str(path))
    memory = target.memory(S.VEC)
    assert (memory.capacity, memory.physical, memory.alignment, memory.layout) == (65536, 65536, 32, ROW_MAJOR)
    assert (memory.core, memory.rank, memory.row_bytes, memory.box) == ("core", 1, 1, None)
    assert dict(target.cores) == {"core": 1}
    assert target.family == "custom"
    assert target.dtypes.held == set(ALL) - {INDEX}
    assert target.vector_dtypes("add") == target.dtypes.held
    assert target.matmul_acc(INT8, INT8) is not None
    assert target.native_cast(FP16, BF16)
    assert target.spaces == (S.DDR, S.VEC)
    edge = target.edge(S.VEC, S.DDR)
    assert edge is not None
    assert (edge.latency, edge.assumed, edge.core, edge.layouts) == (0, False, "core", None)
    assert target.engine_for("scalar").name == "LANES"
    with pytest.raises(TargetError, match="no engine for matmul work"):
        target.engine_for("matmul")


def test_a_memory_named_as_a_role_plays_it(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(GOOD.replace('[roles]\nVec = "SP"\n', "").replace('"SP"', '"Vec"').replace(".SP]", ".Vec]"))
    assert load_target(path).roles == {S.DDR: "DDR", S.VEC: "Vec"}


def test_edges_as_separate_tables(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    start = GOOD.index("edges"), GOOD.index("[memory")
    tables = "".join(
        f'[[edges]]\nfrom = "{src}"\nto = "{dst}"\nengine = "DMA"\nbytes_per_cycle = {rate}\n'
        for src, dst, rate in (("DDR", "SP", 32), ("SP", "DDR", '"fast"'))
    )
    text = GOOD[: start[0]] + GOOD[start[1] :] + tables
    error = load(tmp_path, text)
    assert error.span is not None
    assert text.splitlines()[error.span.line - 1] == 'bytes_per_cycle = "fast"'
    path.write_text(text.replace('"fast"', "16"))
    assert load_target(path).route(S.VEC, S.DDR, FP32, nbytes=32).cost == 2  # type: ignore[union-attr]


def test_operand_spaces(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(GOOD + '[operands.matmul]\nlhs = ["Vec", "Mat"]\n')
    assert load_target(path).operand_spaces["matmul"]["lhs"] == (S.VEC, S.MAT)


# what is replaced in GOOD, by what; the line at fault; a part of the message; a part of the help
MALFORMED = [
    ('name = "chip"', 'nam = "chip"', "name", "lacks the key 'name'", "add name"),
    ('name = "chip"', 'name = "chip"\ncolour = 3', "colour = 3", "has no key 'colour'", "one of"),
    ('capacity = "64 KiB"', 'capcity = "64 KiB"', "[memory.SP]", "memory.SP lacks the key 'capacity'", "add capacity"),
    ('capacity = "64 KiB"', "capacity = 64\naligment = 32", "aligment", "has no key 'aligment'", "mean alignment?"),
    ('"64 KiB"', '"64 kilobytes"', "capacity", "must be a number of bytes", '"512 KiB"'),
    ('"64 KiB"', "0", "capacity", "must be a number of bytes", "capacity"),
    ('"64 KiB"', "-4", "capacity", "must be a number of bytes", "capacity"),
    ('"64 KiB"', "1.5", "capacity", "must be a number of bytes", "capacity"),
    ('"64 KiB"', "4096\nphysical = 1024", "physical", "smaller than what tiles may use", "physical what is there"),
    ('"64 KiB"', "4096\nbox = [8]", "box", "box of memory.SP must be", '[16, "64B"]'),
    ('"64 KiB"', '4096\nbox = [8, "8 bytes"]', "box", "box of memory.SP must be", '[16, "64B"]'),
    ('"64 KiB"', '4096\nlayout = "nzz"', "layout", "layout of memory.SP cannot be 'nzz'", "did you mean nz?"),
    ('"64 KiB"', "4096\nrow_multiple = { i31 = 2 }", "row_multiple", "no element type 'i31'", "did you mean i"),
    ('"64 KiB"', "4096\nrank = 1.5", "rank", "must be a whole number", "rank"),
    ('"64 KiB"', "4096\nregister_base = 0", "[memory.SP]", "lacks the key 'register_bytes'", "add register_bytes"),
    ('to = "SP"', 'to = "SQ"', "{ from", "to of edges.0 cannot be 'SQ'", "did you mean SP?"),
    ('from = "SP"', 'from = "ROM"', "ROM", "from of edges.1 cannot be 'ROM'", "one of DDR, SP"),
    ('from = "SP", ', "", 'to = "DDR"', "edges.1 lacks the key 'from'", "add from"),
    ("32, latency = 60", "0, latency = 60", "{ from", "must be a number above 0", "bytes_per_cycle"),
    ("latency = 60", 'latency = "long"', "{ from", "latency of edges.0 must be a number, 0 or more", "latency"),
    ("latency = 60", "latency = -1", "{ from", "latency of edges.0 must be a number, 0 or more", "latency"),
    ("latency = 60", "latency = nan", "{ from", "latency of edges.0 must be a number, 0 or more", "latency"),
    ("latency = 60", "latncy = 60", "{ from", "edges.0 has no key 'latncy'", "did you mean latency?"),
    ('engine = "DMA"', 'engine = "DMB"', "{ from", "engine of edges.0 cannot be 'DMB'", "did you mean DMA?"),
    ("latency = 60", "assumed = 1", "{ from", "assumed of edges.0 must be true or false", "true or false"),
    ("latency = 60", 'convert = ["f32 > f16"]', "{ from", 'a list of "from -> to"', "convert"),
    ("latency = 60", 'convert = ["f32 -> f61"]', "{ from", "no element type 'f61'", "did you mean f16?"),
    ("latency = 60", 'dtypes = "f32"', "{ from", "dtypes of edges.0 must be a list", "list"),
    ("latency = 60", 'layouts = ["nz -> row"]', "{ from", "no layout 'row'", "did you mean row_major?"),
    ("bytes_per_cycle = 32, latency = 60", "drain = true", "{ from", "there is no [drain]", "add the table"),
    ('{ from = "SP", to = "DDR"', '{ from = "DDR", to = "SP"', "{ from", "is there twice", "all the element types"),
    ('Vec = "SP"', 'Vek = "SP"', "Vek", "no role 'Vek'", "did you mean Vec?"),
    ('Vec = "SP"', 'DDR = "SP"', 'DDR = "SP"', "no role 'DDR'", "one of Mat"),
    ('Vec = "SP"', 'Vec = "SQ"', 'Vec = "SQ"', "Vec of roles cannot be 'SQ'", "did you mean SP?"),
    ('[roles]\nVec = "SP"', "", "[memory.SP]", "the memory SP plays no role", "give it a role"),
    ("[memory.SP]", "[memory.DDR]", "[memory.DDR]", "DDR is not described", "leave it out"),
    ('does = ["vector"]', 'does = ["vectors"]', "does", "no class of work 'vectors'", "did you mean vector?"),
    ("[engine.DMA]", '[engine.DMA]\ncores = ["cube"]', "cores", "there is no core 'cube'", "one of core"),
    ("[engine.DMA]", "[cores]\ncore = 0\n[engine.DMA]", "core = 0", "must be a number above 0", "core"),
    ("[engine.DMA]", "[engine.DMA", "[engine.DMA", "not TOML", "mend that line"),
    ("[engine.DMA]", "[matmul]\nbox = [8]\n[engine.DMA]", "box = [8]", "box of matmul must be [m, n]", "[16, 16]"),
    ("[engine.DMA]", '[matmul]\ntypes = ["f32, f32"]\n[engine.DMA]', "types", "three element types", "f32 <- f16, f16"),
    ("[engine.DMA]", "[drain]\nstart = 1\n[engine.DMA]", "[drain]", "drain lacks the key 'row'", "add row"),
    ("[engine.DMA]", "[vector.repeat]\nunary = 0\n[engine.DMA]", "unary", "must be a number above 0", "unary"),
    ("[engine.DMA]", '[casts]\nf32 = ["f17"]\n[engine.DMA]', "f32", "no element type 'f17'", "did you mean f16?"),
    ("[engine.DMA]", '[operands.matmul]\nlhs = ["Lft"]\n[engine.DMA]', "lhs", "no role 'Lft'", "did you mean Left?"),
    ("[engine.DMA]", '[llvm]\ncpus = "x"\n[engine.DMA]', "cpus", "llvm has no key 'cpus'", "did you mean cpu?"),
    ('name = "chip"', 'name = "chip"\nfamily = "gpu"', "family", "family of the file cannot be 'gpu'", "mean cpu?"),
    ('name = "chip"', "name = 7", "name = 7", "name of the file must be a string", "a string"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message", "way_out"), MALFORMED)
def test_malformed_files(tmp_path: Path, old: str, new: str, line: str, message: str, way_out: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    error = load(tmp_path, text)
    assert message in error.message
    assert way_out in (error.help or "")
    assert error.span is not None
    assert error.span.file == str(tmp_path / "chip.toml")
    guilty = text.splitlines()[error.span.line - 1]
    assert line in guilty or (line == "name" and error.span.line == 1)
    assert guilty in str(error)  # the message shows the line, with carets under it
    assert "^" in str(error)


def test_an_edge_needs_an_engine_of_its_core(tmp_path: Path) -> None:
    cores = '[cores]\na = 1\nb = 1\n[memory.SP]\ncore = "b"\n'
    error = load(tmp_path, GOOD.replace("[memory.SP]\n", cores).replace("[engine.DMA]", '[engine.DMA]\ncores = ["a"]'))
    assert error.message == "the engine DMA is not on the core of SP"
    assert error.span is not None and error.span.line == 3
    assert error.help == 'add "b" to the cores of DMA, or name another engine'


def test_a_memory_says_its_core_where_there_are_several(tmp_path: Path) -> None:
    error = load(tmp_path, GOOD.replace("[memory.SP]\n", "[cores]\na = 1\nb = 1\n[memory.SP]\n"))
    assert error.message == "memory.SP lacks the key 'core'"


@pytest.mark.parametrize(
    ("table", "message"),
    [("memory.SP", "the target has no memory"), ("engine", "the target has no engine"), ("edges", "has no edges")],
)
def test_a_target_needs_memories_engines_and_edges(tmp_path: Path, table: str, message: str) -> None:
    edges = GOOD[GOOD.index("edges") : GOOD.index("[memory")]
    if table == "edges":
        text = GOOD.replace(edges, "")
    elif table == "engine":
        text = GOOD[: GOOD.index("[engine")]
    else:
        text = GOOD.replace('[memory.SP]\ncapacity = "64 KiB"\n', "")
    error = load(tmp_path, text)
    assert message in error.message
    assert error.help is not None


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(TargetError) as caught:
        load_target("ascend910")
    assert caught.value.help == "did you mean ascend910b?"
    assert "scratchpad" not in target_names()


def test_what_is_no_name() -> None:
    with pytest.raises(TargetError, match="this names no target"):
        load_target(3)  # pyright: ignore[reportArgumentType]


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be read") as caught:
        load_target(tmp_path / "none.toml")
    assert caught.value.found == "No such file or directory"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TargetError, match="cannot be read"):
        load_target(tmp_path / "chip.toml")


def test_a_file_is_read_once_for_each_version(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(GOOD)
    first = load_target(path)
    assert load_target(str(path)) is first
    assert load_target(first) is first
    path.write_text(GOOD.replace("64 KiB", "32 KiB"))
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 1_000_000))
    second = load_target(path)
    assert second.capacity(S.VEC) == 32 * 1024
    assert second.fingerprint != first.fingerprint


def test_the_names() -> None:
    assert target_names() == (
        "host", "ascend910b", "ascend950", "generic", "x86_amx", "x86_avx2", "x86_avx512",
    )  # fmt: skip
    assert all(load_target(name).name == name for name in target_names() if name != "host")


def test_the_scratchpad_chip_is_forty_lines_at_most() -> None:
    assert len(SCRATCHPAD.read_text().splitlines()) <= 40
    target = load_target(SCRATCHPAD)
    assert target.spaces == (S.DDR, S.MAT, S.LEFT, S.RIGHT, S.ACC, S.VEC, S.BIAS)
    assert target.roles_of("SP") == (S.MAT, S.LEFT, S.RIGHT, S.VEC, S.BIAS)
    assert str(target.route(S.ACC, S.LEFT, FP32)) == "Acc -> Left"
    assert str(target.route(S.MAT, S.LEFT, FP32)) == "in place"
    assert str(target.route(S.DDR, S.RIGHT, FP32)) == "DDR -> Right"
    assert not target.has_separate_cores
    assert target.engine_for("matmul").name == "ARRAY"
    assert target.matmul_cycles(8, 8, 8, FP32) == 24
    assert "SP (Mat, Left, Right, Vec, Bias) -> DDR" in target.edges_text()


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
def test_each_figure_of_a_file_has_its_source_beside_it(name: str) -> None:
    sources = ("public", "assembler", "device sweep", "assumed", "the 910B's", "rates from a device sweep")
    for line in (FOLDER / f"{name}.toml").read_text().splitlines():
        if line.startswith(("capacity", "physical", "alignment", "head", "width", "ddr_granule", "max_extent")):
            assert any(source in line for source in sources), line


def test_the_documentation_names_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    take = Section._take  # pyright: ignore[reportPrivateUsage]

    def record(self: Section, key: str, what: str, required: bool) -> object:
        asked.add(key)
        return take(self, key, what, required)

    monkeypatch.setattr(Section, "_take", record)
    text = (FOLDER / "x86_amx.toml").read_text()
    target = read_target(text + "[drain]\nstart = 1\nrow = 1\nbytes_per_cycle = 1\n", "x.toml")
    names = {*target.memories, *target.engines, *target.cores, *(space.value for space in S)}
    kinds = {*target.vector.repeat, *(dtype.short for dtype in target.matmul.passes)}
    page = (ROOT / "docs/targets.md").read_text()
    assert {"capacity", "from", "rescale", "columns", "register_base"} <= asked
    assert [key for key in sorted(asked - names - kinds) if f"`{key}`" not in page] == []


def test_the_documentation_walks_through_the_example_as_it_is() -> None:
    page = (ROOT / "docs/targets.md").read_text()
    for line in SCRATCHPAD.read_text().splitlines():
        assert line in page
