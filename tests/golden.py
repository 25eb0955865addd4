"""Golden tests of passes: a program, `# -----`, and the program that the pass makes of it.

    # target: ascend910b
    # A comment: any line that is not `# key: value`.
    @pl.function
    def ...

    # -----

    @pl.function
    def ...

The pass is the one named like the file's folder (`tests/passes/legalize_moves/two_hops.py`), unless the header says
`# pass: name`. `# target:` names a target for passes that take one. Any other `# key: value` is an option of the
pass, its value a Python literal. Both programs are text in the `pl` dialect; the comparison is exact.
`pytest --bless` writes what the pass made in place of what was expected: read the difference before committing it.

A golden test holds more than the text. The output reads back as an equal program. Input and output give equal numbers
in the interpreter: `# symbols: {"n": 33}` sizes dimensions, `# run: False` is for programs that are not to be executed.
With `# idempotent: True`, a second run changes nothing.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SEPARATOR = "# -----"
LOOPS = "@pl.loop.function"
"""What a golden of a loop pass has in its text; all others are programs of tiles or tensors."""
HEADER_LINE = re.compile(r"# (\w+): *(\S.*?) *$")


class GoldenMismatchError(Exception):
    """What a pass made is not what its golden file expects; the message shows input, expected and actual."""


@dataclass(frozen=True)
class Golden:
    """One golden file, read. `options` go to the pass by keyword."""

    path: Path
    pass_name: str
    target: str | None
    idempotent: bool = False
    run: bool = True
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    source: str = ""
    expected: str = ""


def literal(text: str) -> object:
    """A Python literal, or the text itself: `4` is a number, `ascend910b` a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def read_golden(path: Path) -> Golden:
    """Header, input and expected text of a file; a file without a separator expects the empty text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    header: dict[str, object] = {}
    for line in lines:
        if line and not line.startswith("#"):
            break
        matched = None if line == SEPARATOR else HEADER_LINE.match(line)
        if matched:
            header[matched[1]] = literal(matched[2])
    at = lines.index(SEPARATOR) if SEPARATOR in lines else len(lines)
    target = header.pop("target", None)
    symbols: Any = header.pop("symbols", {})
    return Golden(
        path,
        pass_name=str(header.pop("pass", path.parent.name)),
        target=None if target is None else str(target),
        idempotent=bool(header.pop("idempotent", False)),
        run=bool(header.pop("run", True)),
        symbols=symbols,
        options=header,
        source="\n".join(lines[:at]).strip() + "\n",
        expected="\n".join(lines[at + 1 :]).strip() + "\n",
    )


def write_golden(golden: Golden, actual: str) -> None:
    """Put `actual` in place of the expected text; the input stays as its author wrote it."""
    golden.path.write_text(f"{golden.source}\n{SEPARATOR}\n\n{actual.strip()}\n", encoding="utf-8")


def mismatch(golden: Golden, actual: str) -> str:
    """Input, expected and actual, then the lines that differ."""
    difference = difflib.unified_diff(
        golden.expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="", n=1
    )
    parts = (("input", golden.source), ("expected", golden.expected), ("actual", actual))
    shown = [f"{name:-^80}\n{text.rstrip()}" for name, text in parts]
    return "\n".join([f"{golden.path}: {golden.pass_name}", *shown, f"{'difference':-^80}", *difference])


def check_golden(golden: Golden, run: Callable[[Golden, str], str], *, bless: bool) -> None:
    """Compare what `run` makes of the input with the expected text, or store it with `bless`.

    `run` takes a golden and the text of a program, applies the pass and returns the text of the result.
    Raises `GoldenMismatchError`.
    """
    actual = run(golden, golden.source).strip() + "\n"
    if golden.idempotent:
        again = run(golden, actual).strip() + "\n"
        if again != actual:
            raise GoldenMismatchError(f"a second run of {golden.pass_name} changes:\n{actual}\ninto:\n{again}")
    if actual == golden.expected:
        return
    if not bless:
        raise GoldenMismatchError(mismatch(golden, actual) + "\nIf the new text is right: pytest --bless")
    write_golden(golden, actual)


def find_pass(name: str) -> Callable[..., Any]:
    """The function `name` of `tilewright/passes/<group>/<name>`, a module or a package; nothing else is imported."""
    passes = Path(next(iter(importlib.import_module("tilewright.passes").__path__)))
    for found in [*passes.glob(f"*/{name}.py"), *passes.glob(f"*/{name}/__init__.py")]:
        group = found.relative_to(passes).parts[0]
        return getattr(importlib.import_module(f"tilewright.passes.{group}.{name}"), name)
    raise LookupError(f"there is no pass {name} in tilewright/passes")


def run_pass(golden: Golden, source: str) -> str:
    """Parse, apply the pass, print. The print must read back as an equal program, and mean what the input means.

    Imports are made here, so that the tests of other parts run while the compiler does not import.
    """
    parse = importlib.import_module("tilewright").parse
    print_program = importlib.import_module("tilewright.text").print_program
    apply = find_pass(golden.pass_name)
    options = dict(golden.options)
    if "target" in inspect.signature(apply).parameters:
        if golden.target is None:
            raise LookupError(f"{golden.pass_name} takes a target: add `# target: name` to {golden.path}")
        options["target"] = importlib.import_module("tilewright.targets").load_target(golden.target)
    if LOOPS in source:
        return run_pass_on_loops(golden, source, apply, options)
    before = parse(source)
    after = apply(before, **options)
    text: str = print_program(after)
    if parse(text) != after:
        raise GoldenMismatchError(f"what {golden.pass_name} made does not read back as an equal program:\n{text}")
    if golden.run:
        importlib.import_module("meaning").check_same_meaning(before, after, golden.symbols)
    return text


def run_pass_on_loops(golden: Golden, source: str, apply: Callable[..., Any], options: dict[str, Any]) -> str:
    """The same for a function of the loop level, which the verifier of loops accepts before and after."""
    parse = importlib.import_module("tilewright.frontend").parse_loops
    verify = importlib.import_module("tilewright.ir.verify_loops").verify_loops
    before = parse(source)
    after = apply(before, **options)
    verify(after)
    text = str(after)
    if parse(text) != after:
        raise GoldenMismatchError(f"what {golden.pass_name} made does not read back as an equal function:\n{text}")
    if golden.run:
        importlib.import_module("meaning").check_same_loops(before, after, golden.symbols)
    return text


class GoldenItem(pytest.Item):
    """One golden file as a test."""

    def runtest(self) -> None:
        check_golden(read_golden(self.path), run_pass, bless=bool(self.config.getoption("--bless")))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, GoldenMismatchError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"golden {self.path.parent.name}/{self.path.stem}"


class GoldenFile(pytest.File):
    """The one test of a golden file."""

    def collect(self) -> Iterable[pytest.Item]:
        item: GoldenItem = GoldenItem.from_parent(self, name=self.path.stem)  # pyright: ignore[reportUnknownMemberType]
        yield item


def is_golden(path: Path) -> bool:
    """Whether `path` is `tests/passes/<pass>/<name>.py`."""
    folder = Path(__file__).parent / "passes"
    return path.suffix == ".py" and path.parent.parent == folder and not path.stem.startswith(("_", "test_"))


def program_goldens() -> list[Golden]:
    """The goldens that are programs of tiles or tensors, by path: kernels that tests of other parts take as inputs."""
    paths = sorted((Path(__file__).parent / "passes").glob("*/*.py"))
    return [golden for golden in map(read_golden, filter(is_golden, paths)) if LOOPS not in golden.source]
