"""The digits demo runs to its end, and does not pass over a difference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "digits"

WRONG = """
import demo, numpy as np
x, *rest = demo.arguments()
weights = demo.Weights(*rest[:4])
right = demo.numpy_reference(x, weights)
near, far, undefined = right.copy(), right.copy(), right.copy()
near[3, 4] = np.nextafter(near[3, 4], np.float32(1e9))
far[3, 4] += 1e-2
undefined[3, 4] = np.nan
found = []
for scores in (right, near, far, undefined):
    demo.wrong.clear()
    demo.compare("scores", scores, right, x, weights)
    found.append(bool(demo.wrong))
import json
print(json.dumps(found))
"""


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], cwd=FOLDER, capture_output=True, text=True, check=False)


def test_the_demo_agrees_with_numpy_and_with_the_interpreter() -> None:
    ended = run("demo.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "99.50% right; NumPy 99.50%" in ended.stdout and "Everything agrees" in ended.stdout
    for target, kernels in (("ascend910b", 1), ("ascend950", 1)):
        folder = FOLDER / "build" / target
        manifest = json.loads((folder / "manifest.json").read_text())
        assert len(manifest["kernels"]) == kernels
        assert all((folder / kernel["file"]).is_file() for kernel in manifest["kernels"])


def test_the_demo_tells_rounding_from_error() -> None:
    ended = run("-c", WRONG)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [False, False, True, True]


def test_the_kernel_file_offers_arguments() -> None:
    code = "import kernel; print([a.shape for a in kernel.arguments()])"
    ended = run("-c", code)
    assert ended.stdout.strip() == str([(1797, 64), (64, 128), (1, 128), (128, 10), (1, 10), (1797, 10)])
