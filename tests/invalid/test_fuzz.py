"""Input that nobody meant: whatever is read, it is taken or refused with an error of ours, in bounded time and memory.

Each kind of input has right samples; what is drawn is a seed, which changes a sample here and there. The quick profile
draws few; TILEWRIGHT_PROPERTIES=20 in the environment draws twenty times as many.
"""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import numpy as np
import pytest
from golden import is_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from invalid.mutations import changed_json, changed_text
from run.running import incore

import tilewright as tw
from tilewright.certify.certificate import read_certificate
from tilewright.certify.writer import certify
from tilewright.cli import main
from tilewright.cli.arguments import UNREADABLE, build_arguments, is_array
from tilewright.cli.check import load_certificate
from tilewright.cli.kernels import open_subject
from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.runtime.tuned import read_entries
from tilewright.sections.interchange import from_json
from tilewright.targets import load_target, target_names
from tilewright.targets.schema import read_target

TIMES = int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
TESTS = Path(__file__).parents[1]
PROGRAMS = [p.read_text().split("# -----")[0] for p in sorted((TESTS / "passes").glob("*/*.py")) if is_golden(p)]
MACHINES = [p.read_text() for p in sorted((TESTS.parent / "src/tilewright/targets").glob("*.toml"))]
SECONDS = 20.0
"""of processor time for one input: far more than any takes, far less than for ever"""

PLAIN = incore(
    "a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
    """
    x = pl.tile.load(a, [0, 0], [16, 64])
    return pl.tile.store(pl.tile.exp(x), [0, 0], out)
    """,
)


def drawn(count: int) -> Callable[[Callable[[int], None]], Callable[[], None]]:
    """A test of `count` seeds, the same in each run."""

    def decorate(test: Callable[[int], None]) -> Callable[[], None]:
        fixed = settings(max_examples=count * TIMES, deadline=None, derandomize=True, database=None)
        return fixed(given(seed=st.integers(0, 2**32))(test))

    return decorate


def refused_or_taken(read: Callable[[], object]) -> None:
    """Nothing but our own error comes out, and soon."""
    begin = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python's own, about odd but legal spellings
            read()
    except TilewrightError as error:
        assert error.message and str(error)
    assert process_time() - begin < SECONDS


@drawn(150)
def test_program_text(seed: int) -> None:
    random = Random(seed)
    text = changed_text(random.choice(PROGRAMS), random)
    refused_or_taken(lambda: tw.parse(text))


@drawn(60)
def test_program_text_through_the_pipeline(seed: int) -> None:
    """What still reads may mean anything; the passes refuse it or lower it."""
    random = Random(seed)
    text = changed_text(random.choice(PROGRAMS), random)
    target = load_target(random.choice(("ascend910b", "ascend950", "x86_avx512")))
    refused_or_taken(lambda: lower(tw.parse(text), target))


@pytest.mark.parametrize("name", ["ascend910b", "ascend950", "x86_avx512"])
def test_a_product_without_columns(name: str) -> None:
    """Found by the test above: the drain of an accumulator without elements was priced by bytes per element."""
    text = incore(
        "a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 0], pl.FP16], out: pl.Out[pl.Tensor[[64, 0], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 0])
        return pl.tile.store(pl.tile.matmul(x, y), [0, 0], out)
        """,
    )
    refused_or_taken(lambda: lower(tw.parse(text), load_target(name)))


@pytest.mark.parametrize("call", [
    "pl.tile.slice(x, [16, 16], [0, 0], drop_dims=[n])", "pl.tile.slice(x, [16, 16], [0, 0], drop_dims=0)",
    "pl.tile.transpose(x, None, 1)", "pl.tile.transpose(x, 0, 1.5)", "pl.tile.load(a, [0, 0], [16, 64], clamp='yes')",
    "pl.tile.load(a, [0, 0], [16, 64], target_memory=3)", "pl.tile.cast(x, target_type=1)",
    "pl.tile.move(x, target_memory=pl.FP32)",
])  # fmt: skip
def test_attributes_of_the_wrong_type(call: str) -> None:
    """The first two were found by the tests above. What the class states of an attribute is what it may be."""
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
        f"""
        x = pl.tile.load(a, [0, 0], [16, 64])
        y = {call}
        return pl.tile.store(x, [0, 0], out)
        """,
    )
    with pytest.raises(TilewrightError, match=r" takes .* as | known when "):
        tw.parse(text)


@drawn(150)
def test_target_files(seed: int) -> None:
    random = Random(seed)
    text = changed_text(random.choice(MACHINES), random)
    refused_or_taken(lambda: read_target(text, "machine.toml"))


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000, "a." * 3000 + "b = 1", "[a" + ".a" * 4000])
def test_target_files_that_break_the_reader_of_toml(text: str) -> None:
    with pytest.raises(TilewrightError):
        read_target(text, "machine.toml")


@drawn(80)
def test_certificates(seed: int) -> None:
    random = Random(seed)
    target = load_target("ascend910b")
    right = certify(lower(tw.parse(PLAIN), target), target).to_json()
    data = changed_json(json.loads(json.dumps(right)), random)
    refused_or_taken(lambda: read_certificate(data))


@drawn(80)
def test_sections_as_json(seed: int) -> None:
    random = Random(seed)
    right = {"version": 1, "section": {"type": "Section", "name": "s", "items": [{"type": "dtype", "name": "FP32"}]}}
    refused_or_taken(lambda: from_json(json.dumps(changed_json(right, random))))
    refused_or_taken(lambda: from_json(changed_text(json.dumps(right), random)))


ENTRY = {
    "kernel": "k", "target": "ascend910b", "arguments": "a", "program": "0", "by": "simulated cycles",
    "default": 2.0, "tuned": 1.0, "decisions": {"tile": [16, 16, 16]},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


def test_results_of_tuning(folder: Path) -> None:
    path = folder / "k.tune.json"
    for seed in range(80 * TIMES):
        random = Random(seed)
        right = {"format": 1, "entries": [ENTRY]}
        text = json.dumps(changed_json(right, random)) if seed % 2 else changed_text(json.dumps(right), random)
        path.write_text(text, encoding="utf-8")
        refused_or_taken(lambda: read_entries(path))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"9" * 5000, b"", b"null", b'{"a": 1e999}'])
def test_files_that_are_no_json(folder: Path, content: bytes) -> None:
    path = folder / "odd.json"
    path.write_bytes(content)
    for read in (lambda: load_certificate(path), lambda: read_entries(path)):
        with pytest.raises(TilewrightError):
            read()
    with pytest.raises(TilewrightError):
        from_json(content.decode("latin-1"))


# --- arrays -------------------------------------------------------------------------------------------------------
def npy(header: str, data: bytes = bytes(16)) -> bytes:
    """An .npy file, version 1."""
    padded = header.encode("latin-1") + b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + data


def described(descr: str = "'<f4'", shape: str = "(2, 2)") -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


WRONG_ARRAYS = {
    "empty": b"", "magic alone": b"\x93NUMPY", "zip": b"PK\x03\x04" + bytes(30), "pickle": b"\x80\x04K\x01.",
    "huge": described(shape="(1000000000000,)"), "negative": described(shape="(-1,)"),
    "truth as extent": described(shape="(True,)"), "endless number": described(shape=f"({'9' * 4000},)"),
    "extent beyond words": described(shape="(0, 99999999999999999999)"), "objects": described("'|O'", "(1,)"),
    "records": described("[('a', '<f4'), ('b', '<i8')]", "(1,)"), "text": described("'<U4'", "(1,)"),
    "dates": described("'<M8[s]'", "(1,)"), "complex": described("'<c8'", "(2,)"), "no type": described("'zzz'"),
    "signs": npy("-" * 9000 + "1"), "brackets": npy("(" * 9000), "other version": b"\x93NUMPY\x09\x00" + bytes(60),
    "long header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"x",
}  # fmt: skip


def argument(path: Path) -> object:
    subject = open_subject(str(path.parent / "program.txt"))
    return build_arguments(subject, [str(path), "16x64:f32"], 0)


@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_arrays_that_are_none(folder: Path, case: str) -> None:
    (folder / "program.txt").write_text(PLAIN, encoding="utf-8")
    path = folder / "a.npy"
    path.write_bytes(WRONG_ARRAYS[case])
    with pytest.raises(TilewrightError):
        argument(path)


def test_arrays_with_changed_bytes(folder: Path) -> None:
    (folder / "program.txt").write_text(PLAIN, encoding="utf-8")
    path = folder / "b.npy"
    right = described()
    for seed in range(300 * TIMES):
        random = Random(seed)
        content = bytearray(right)
        for _ in range(random.randrange(1, 5)):
            content[random.randrange(len(content))] = random.randrange(256)
        path.write_bytes(content[: random.randrange(len(content))] if random.random() < 0.3 else content)
        refused_or_taken(lambda: argument(path))


def test_arrays_of_every_right_kind_are_taken(folder: Path) -> None:
    """Scalars, empty ones, columns first, bools: what the guard must not refuse."""
    (folder / "program.txt").write_text(PLAIN, encoding="utf-8")
    path = folder / "right.npy"
    arrays = [np.zeros((0, 3), np.float32), np.float32(3), np.ones((3, 4), order="F"), np.array([True]), np.int8(1)]
    for array in arrays:
        np.save(path, array)
        found: Any = build_arguments(open_subject(str(folder / "program.txt")), [str(path), "1x1:f32"], 0)[0]
        assert is_array(found) and np.array_equal(found, array) and found.flags.writeable


def test_a_pipe_in_place_of_an_array_keeps_nobody_waiting(folder: Path) -> None:
    (folder / "program.txt").write_text(PLAIN, encoding="utf-8")
    os.mkfifo(folder / "pipe.npy")
    with pytest.raises(TilewrightError, match="cannot be read as an array"):
        argument(folder / "pipe.npy")
    assert MemoryError in UNREADABLE


# --- command line ---------------------------------------------------------------------------------------------------
COMMANDS = ("run", "explain", "simulate", "report", "compile", "opt", "check", "validate", "targets", "bogus")
FILES = ("text.pl", "text.pl:main", "text.pl:x", "empty.py", "bin.py", "wrong.py", "folder", "loop", "missing.py", "",
         "-", ":", "/dev/null", "x" * 5000)  # fmt: skip
VALUES = (
    "16x64:f32", "0x0:f32", "x.npy", "nan", "-1", "1e999", "true", "a=b", "=", "a=16x64", "9" * 300, "-" + "9" * 5000,
    "99999999x99999999", "16x64:zz", "", "wrong.toml", "ascend910b", "odd.json", "text.pl", "folder", "missing", "--",
    "-", "0", "3", "folder/../x", "1x1:f32",
)  # fmt: skip
OPTIONS = (
    "--check", "--on", "--target", "-t", "--out", "--seed", "--repeat", "--tolerance", "--json", "-o", "--emit",
    "--sync", "--level", "--after", "--html", "--certificate", "--help", "--trace", "--tiles", "--bogus",
)  # fmt: skip


def shelf(folder: Path) -> None:
    """The files that commands are given."""
    for name, text in (("text.pl", PLAIN), ("empty.py", ""), ("wrong.py", "def ("), ("wrong.toml", "a = [")):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "bin.py").write_bytes(b"\xff\xfe\x00")
    (folder / "odd.json").write_text("[" * 100_000, encoding="utf-8")
    (folder / "folder").mkdir(exist_ok=True)
    if not (folder / "loop").is_symlink():
        (folder / "loop").symlink_to("loop")


def command(random: Random) -> list[str]:
    line = [random.choice(COMMANDS), random.choice(FILES[:2]) if random.random() < 0.6 else random.choice(FILES)]
    return line + [random.choice(random.choice((VALUES, OPTIONS))) for _ in range(random.randrange(5))]


def test_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command ends with an exit code; what is wrong is said, and no traceback is."""
    monkeypatch.chdir(tmp_path)
    shelf(tmp_path)
    for seed in range(120 * TIMES):
        line = command(Random(seed))
        monkeypatch.setattr("sys.argv", ["tilewright", *line])
        monkeypatch.setattr("sys.stdin", io.StringIO("garbage ("))
        said = io.StringIO()
        begin = process_time()
        with redirect_stdout(io.StringIO()), redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                main()
            except SystemExit as ended:
                assert ended.code in (None, 0, 1, 2), f"{line}: {ended.code}"
        assert "Traceback" not in said.getvalue(), f"{line}: {said.getvalue()}"
        assert process_time() - begin < SECONDS, f"{line} took {process_time() - begin:.0f} s"


# --- places to write ------------------------------------------------------------------------------------------------
def test_an_output_folder_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever planted the link would choose where the files go."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "text.pl").write_text(PLAIN, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["tilewright", "compile", str(tmp_path / "text.pl"), "-o", str(tmp_path / "out")])
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1 and "is a symbolic link" in said.getvalue()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_link_in_place_of_an_output_is_replaced_and_not_followed(tmp_path: Path) -> None:
    from tilewright.cli.output import write_files

    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "a.pto").symlink_to(precious)
    write_files(tmp_path, {"a.pto": "text"})
    assert precious.read_text() == "mine" and (tmp_path / "a.pto").read_text() == "text"


@pytest.mark.parametrize("name", ["../a", "/etc/a", "a/b", "..", ".", "", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    from tilewright.cli.output import write_files

    with pytest.raises(TilewrightError, match="is no name of a file"):
        write_files(tmp_path / "out", {"fine": "text", name: "text"})
    assert not (tmp_path / "out").exists()


def test_a_target_is_no_way_to_other_files() -> None:
    for name in ("../errors", "..", ".", "a/../ascend910b", "ascend910b\0", "x" * 5000, "~/x.toml"):
        with pytest.raises(TilewrightError):
            load_target(name)
    assert "host" in target_names()
