"""The command line: what each command prints, and that a mistake is an error of one page and never a traceback."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import cli
from tilewright.compiler import PASSES

EXAMPLES = Path(__file__).parents[2] / "examples"
SOFTMAX = str(EXAMPLES / "softmax.py")

KERNELS = """
import tilewright.language as pl

@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x * 2.0
    return out

@pl.jit
def scale(x: pl.Tensor, factor: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x * factor
    return out
"""

PROGRAM = """\
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64])
        out_1 = pl.tile.store(pl.tile.abs(x), [0, 0], out)
        return out_1
"""


@dataclass
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs the command in this process, in an empty folder with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def command(*args: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["tilewright", *args])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, captured.out, captured.err)

    return command


@pytest.fixture
def kernels(tmp_path: Path) -> str:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return str(path)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.pl"
    path.write_text(PROGRAM)
    return str(path)


# --- run ----------------------------------------------------------------------------------------------------------
def test_run_takes_the_files_own_arguments(run: Run) -> None:
    ended = run("run", SOFTMAX, "--check")
    assert ended.code == 0, ended.err
    assert "200x512" in ended.out and "\x1b" not in ended.out


@pytest.mark.parametrize("rows", [1, 15, 17, 64])
def test_run_stores_what_the_kernel_computes(run: Run, kernels: str, tmp_path: Path, rows: int) -> None:
    given = np.random.default_rng(rows).integers(-9, 9, (rows, 33)).astype(np.float32)
    np.save(tmp_path / "x.npy", given)
    ended = run("run", f"{kernels}:double", "x.npy", f"{rows}x33:f32", "--out", "y.npy")
    assert ended.code == 0, ended.err
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), given * 2)
    assert sorted(path.name for path in tmp_path.glob("*.npy")) == ["x.npy", "y.npy"]
    assert not list(tmp_path.glob(".*.tmp"))


def test_run_prints_json_that_compares_with_the_interpreter(run: Run, kernels: str) -> None:
    ended = run("run", f"{kernels}:scale", "32x64:f32", "factor=3.0", "out=32x64:f32", "--check", "--json")
    (output,) = json.loads(ended.out)["outputs"]
    assert output["name"] == "out" and output["shape"] == [32, 64]
    assert output["holds"] and output["difference"] == 0


def test_seeds_give_the_same_inputs_again(run: Run, kernels: str) -> None:
    args = ("run", f"{kernels}:double", "8x8:f32", "8x8:f32", "--json")
    first, again, other = (json.loads(run(*args, "--seed", seed).out)["outputs"] for seed in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_run_on_the_emulator_equals_the_interpreter(run: Run, kernels: str, target: str) -> None:
    ended = run("run", f"{kernels}:double", "17x64:f32", "17x64:f32", "--on", "emulator", "-t", target, "--check")
    assert ended.code == 0, ended.err
    assert "equal" in ended.out


def test_a_program_needs_no_arguments(run: Run, program: str) -> None:
    ended = run("run", program, "--check", "--on", "interpreter")
    assert ended.code == 0 and "equal" in ended.out


def test_a_difference_beyond_the_tolerance_fails(run: Run) -> None:
    assert run("run", SOFTMAX, "--check", "--tolerance", "0").code == 1


def test_a_target_that_is_not_needed_must_exist_all_the_same(run: Run) -> None:
    ended = run("run", SOFTMAX, "-t", "ascend910")
    assert ended.code == 1
    assert "did you mean ascend910b?" in ended.err


# --- compile ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("pto", ["softmax.manifest.json", "softmax_0.pto"]),
        ("llvm", ["softmax.ll"]),
        ("tiles", ["softmax.tiles.py"]),
        ("tensor", ["softmax.tensor.py"]),
    ],
)
def test_compile_writes_the_files_of_a_form(run: Run, tmp_path: Path, form: str, names: list[str]) -> None:
    ended = run("compile", SOFTMAX, "--emit", form, "-o", "out")
    assert ended.code == 0, ended.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names


def test_a_failed_compile_writes_nothing(run: Run, tmp_path: Path) -> None:
    ended = run("compile", SOFTMAX, "--emit", "pto", "-t", "x86_avx2", "-o", "out")
    assert ended.code == 1 and ended.err.startswith("TW303")
    assert not (tmp_path / "out").exists()


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    from tilewright.cli.output import write_files
    from tilewright.errors import CommandError

    (tmp_path / "second").mkdir()
    with pytest.raises(CommandError, match="cannot write"):
        write_files(tmp_path, {"first": "x", "second": "y"})
    assert [path.name for path in tmp_path.iterdir()] == ["second"]
    write_files(tmp_path / "new" / "deep", {"first": "x", "third": "z"})
    assert (tmp_path / "new" / "deep" / "third").read_text() == "z"


def test_tiles_that_were_written_are_read_again(run: Run, tmp_path: Path) -> None:
    run("compile", SOFTMAX, "--emit", "tiles", "-t", "ascend910b", "-o", "out")
    text = (tmp_path / "out" / "softmax.tiles.py").read_text()
    assert str(tw.parse(text)).strip() == text.strip()


# --- explain ------------------------------------------------------------------------------------------------------
def test_explain_prints_plain_text_in_a_pipe(run: Run) -> None:
    ended = run("explain", SOFTMAX, "-t", "ascend910b")
    assert ended.code == 0 and "row_max reads tile in Vec" in ended.out and "\x1b" not in ended.out


def test_explain_prints_json(run: Run, kernels: str) -> None:
    ended = run("explain", f"{kernels}:double", "200x64:f32", "200x64:f32", "-t", "ascend950", "--json")
    found = json.loads(ended.out)
    assert found["target"] == "ascend950" and found["ddr_in"] == found["ddr_out"] == 200 * 64 * 4


@pytest.mark.parametrize("json_too", [False, True])
def test_explain_says_how_products_are_cut(run: Run, json_too: bool) -> None:
    ended = run("explain", str(EXAMPLES / "chained_matmul.py"), "-t", "ascend950", "--tiles", *["--json"] * json_too)
    assert ended.code == 0, ended.err
    if json_too:
        (function,) = json.loads(ended.out)["functions"]
        assert [product["k"] for product in function["products"]] == [128, 96]
    else:
        assert ended.out.count("runner-up") == ended.out.count("limit ") == 2 and "\x1b" not in ended.out


# --- opt ----------------------------------------------------------------------------------------------------------
def test_opt_prints_what_it_reads_again(run: Run, tmp_path: Path) -> None:
    unplaced = run("opt", SOFTMAX, "-t", "ascend910b", "--after", "flatten_tiles").out
    (tmp_path / "again.pl").write_text(unplaced)
    rest = ",".join(list(PASSES)[list(PASSES).index("flatten_tiles") + 1 :])
    again = run("opt", "again.pl", "--passes", rest, "-t", "ascend910b")
    assert again.code == 0, again.err
    assert again.out == run("opt", SOFTMAX, "-t", "ascend910b").out


def test_opt_prints_after_every_pass(run: Run, program: str) -> None:
    ended = run("opt", program, "--print-after", "all", "-t", "ascend910b", "--time")
    headings = [line for line in ended.out.splitlines() if line.startswith("# after ")]
    assert headings == [f"# after {name}" for name in ("frontend", *PASSES)]
    assert len(ended.err.splitlines()) == len(headings)


def test_opt_reads_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(PROGRAM))
    ended = run("opt", "-", "--passes", "infer_spaces", "-t", "ascend910b")
    assert ended.code == 0 and "target_memory=pl.Mem.Vec" in ended.out


LOOPS = """\
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[8], pl.FP32]):
    for i in pl.loop.serial(0, 8):
        with pl.loop.block("b"):
            pl.loop.where(i < 5)
            A[i] = 1.0
"""


def test_opt_runs_passes_on_loops(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    assert run("opt", "loops.py").out == LOOPS
    lowered = run("opt", "loops.py", "--passes", "lower_blocks").out
    assert "        if i < 5:\n            A[i] = 1.0\n" in lowered
    monkeypatch.setattr(sys, "stdin", io.StringIO(lowered))
    assert "pl.loop.serial(0, 5)" in run("opt", "-", "--passes", "partition_loops").out
    every = run("opt", "loops.py", "--passes", "partition_loops,lower_blocks", "--print-after", "all", "--time")
    assert [line for line in every.out.splitlines() if line[0:1] == "#"] == [
        "# after partition_loops",
        "# after lower_blocks",
    ]
    assert len(every.err.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("opt", "loops.py", "--passes", "lower_block"), "did you mean lower_blocks?"),
        (("opt", "loops.py", "--after", "inline"), "name the passes with --passes"),
        (("compile", "loops.py"), "is a loop function, not a kernel"),
    ],
)
def test_loops_where_they_do_not_belong(run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    ended = run(*arguments)
    assert ended.code == 1 and message in ended.err


def test_program_text_is_not_executed(run: Run, tmp_path: Path) -> None:
    """A file that is nothing but a program class is parsed, even when it is called .py."""
    path = tmp_path / "text.py"
    path.write_text(PROGRAM.replace("pl.tile.abs(x)", "pl.tile.abs(__import__('os').mkdir('ran'))"))
    ended = run("opt", str(path))
    assert ended.code == 1 and ended.err.startswith("TW")
    assert not (tmp_path / "ran").exists()


# --- targets, doctor ----------------------------------------------------------------------------------------------
def test_targets_lists_every_name(run: Run) -> None:
    from tilewright.targets import target_names

    listed = run("targets").out
    assert all(name in listed for name in target_names())
    assert [t["name"] for t in json.loads(run("targets", "--json").out)] == list(target_names())


def test_a_target_shows_its_edges(run: Run) -> None:
    shown = run("targets", "ascend910b").out
    assert "Mat -> Left" in shown and "Vec -> Mat" not in shown
    data = json.loads(run("targets", "ascend910b", "--json").out)
    assert data["cores"] == {"cube": 24, "vector": 48}
    own = run("targets", str(EXAMPLES / "targets" / "scratchpad.toml"))
    assert own.code == 0 and "SP" in own.out


def test_doctor_finds_this_installation_whole(run: Run) -> None:
    ended = run("doctor", "--json")
    found = json.loads(ended.out)
    assert ended.code == 0 and found["ok"]
    states = {finding["topic"]: finding["state"] for finding in found["findings"]}
    assert states["native code"] == states["llvmlite"] == states["target host"] == "ok"


def test_doctor_says_when_the_cache_cannot_be_used(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(shared))
    ended = run("doctor")
    assert "can be written by others" in ended.out and "TILEWRIGHT_CACHE" in ended.out


# --- mistakes -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "nothing.py"), "cannot be read"),
        (("run", "."), "cannot be read"),
        (("run", "empty.py"), "has no kernels"),
        (("run", "binary.py"), "is no text"),
        (("run", "broken.py"), "broken.py:2"),
        (("run", "kernels.py"), "kernels.py:double"),
        (("run", "kernels.py:triple", "3x3"), "has no kernel 'triple'"),
        (("run", "kernels.py:double"), "needs an array for 'x'"),
        (("run", "kernels.py:double", "3x3", "3x3", "3x3"), "takes 2 arguments"),
        (("run", "kernels.py:double", "3x3:f33", "3x3"), "there is no dtype called 'f33'"),
        (("run", "kernels.py:double", "3 by 3", "3x3"), "cannot read the argument '3 by 3'"),
        (("run", "kernels.py:double", "y=3x3", "3x3"), "has no parameter 'y'"),
        (("run", "kernels.py:double", "x=3x3", "x=3x3"), "got 'x' twice"),
        (("run", "kernels.py:double", "none.npy", "3x3"), "cannot be read as an array"),
        (("run", "kernels.py:double", "3x3", "3x3", "--on", "paper"), "cannot run on 'paper'"),
        (("run", "kernels.py:double", "0x3", "0x3"), "has no elements"),
        (("compile", "program.pl", "--emit", "poem"), "there is no form 'poem'"),
        (("explain", "program.pl", "-t", "ascend911"), "there is no target"),
        (("opt", "program.pl", "--passes", "infer_space"), "did you mean infer_spaces"),
        (("opt", "program.pl", "--print-after", "never"), "there is no pass called 'never'"),
        (("opt", "program.pl:other"), "whose entry is 'main'"),
        (("targets", "nothing.toml"), "cannot be read"),
    ],
)  # fmt: skip
def test_mistakes_are_said_in_place(
    run: Run, kernels: str, program: str, tmp_path: Path, args: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    ended = run(*args)
    assert ended.code == 1
    assert said in ended.err + ended.out and "Traceback" not in ended.err
    assert ended.err.startswith("TW")


def test_a_mistake_in_a_kernel_is_shown_with_carets(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(KERNELS.replace("x * factor", "x @ factor @ x"))
    ended = run("run", f"{path}:scale", "4x4", "2.0", "4x4")
    assert ended.code == 1 and "wrong.py:13" in ended.err and "^^^" in ended.err


def test_what_a_users_file_raises_starts_at_their_line(tmp_path: Path) -> None:
    import subprocess

    path = tmp_path / "raises.py"
    path.write_text("def helper():\n    return 1 / 0\n\nhelper()\n")
    code = "import sys; from tilewright.cli import main; sys.argv = ['tilewright', 'run', sys.argv[1]]; main()"
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    lines = ended.stderr.splitlines()
    assert ended.returncode == 1 and lines[-1] == "ZeroDivisionError: division by zero"
    assert "raises.py" in lines[1] and "fault of Tilewright" not in ended.stderr


def test_importing_tilewright_imports_no_terminal_library() -> None:
    import subprocess

    code = "import sys, tilewright, tilewright.language; sys.exit(bool({'rich', 'typer', 'click'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("command", ["run", "compile", "explain", "opt", "targets", "doctor"])
def test_help_teaches_by_example(run: Run, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0 and ended.out.count(f"  tilewright {command}") >= 2


def test_without_a_command_there_is_help(run: Run) -> None:
    ended = run()
    assert ended.code == 2 and "explain" in ended.out + ended.err


def test_version(run: Run) -> None:
    assert run("--version").out.strip() == f"tilewright {tw.__version__}"


# --- comparing ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("found", "expected", "holds"),
    [
        (np.array([1.0, np.nan], np.float32), np.array([1.0, np.nan], np.float32), True),
        (np.array([np.inf], np.float32), np.array([np.inf], np.float32), True),
        (np.array([1.0], np.float32), np.array([np.nan], np.float32), False),
        (np.array([1.0], np.float32), np.array([np.inf], np.float32), False),
        (np.array([1.001], np.float32), np.array([1.0], np.float32), False),
        (np.array([1.000001], np.float32), np.array([1.0], np.float32), True),
        (np.array([3], np.int32), np.array([4], np.int32), False),
        (np.array([3], np.int64), np.array([3], np.int32), False),
        (np.zeros((2, 1)), np.zeros((1, 2)), False),
    ],
)
def test_outputs_are_compared_honestly(found: Any, expected: Any, holds: bool) -> None:
    from tilewright.cli.run import compare

    assert compare(found, expected, None).holds is holds
