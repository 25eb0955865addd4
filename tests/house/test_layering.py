"""Two modules judge the compiler's work, and must share none of its code. (The layers are held by `lint-imports`.)

An allow-list over everything a module reaches, directly or not: what is new is refused until it is allowed here.
"""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "tilewright"
GRAPH = grimp.build_graph("tilewright", cache_dir=None)

STANDS_ON = {
    "tilewright.certify.checker": ("tilewright.ir", "tilewright.targets", "tilewright.errors", "tilewright.certify"),
    "tilewright.codegen.pto.emulate": ("tilewright.errors", "tilewright.codegen.pto"),
}
"""Each judge, and what it may reach. The emulator's reader lies beside it; to reach the folder's emitter would be to
reach `tilewright.ir`, which is refused."""


def within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether `module` is one of `packages` or inside one. A package's bare `__init__` reaches nothing by itself."""
    return any(module == package or module.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("judge", STANDS_ON)
def test_a_judge_stands_on_its_own(judge: str) -> None:
    package = judge.rpartition(".")[0]
    if judge not in GRAPH.modules:
        assert package not in GRAPH.modules, f"{package} has no {judge}: rename it here as well"
        return
    reached = GRAPH.find_upstream_modules(judge, as_package=True)
    foreign = sorted(module for module in reached if not within(module, STANDS_ON[judge]))
    assert not foreign, f"{judge} reaches {', '.join(foreign)}"


def test_every_folder_of_code_is_a_package() -> None:
    """A folder without `__init__.py` is left out of the wheel, and of every check of imports."""
    bare = {path.parent for path in PACKAGE.rglob("*.py") if not (path.parent / "__init__.py").exists()}
    assert not bare, "no __init__.py in " + ", ".join(str(path.relative_to(PACKAGE)) for path in sorted(bare))
