"""The report as one page: a program on a target, with everything that is known of it, in a file that needs no other.

    make_report(program, "ascend910b").save("out.html")

The page is plain HTML with its own styles and scripts inside, so that it opens from a disk, in a mail or in a notebook.
Styles and scripts lie beside this module as files of their own; what they draw is one block of JSON, made by `data`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from tilewright.ir.function import Program
from tilewright.report.html.data import page_data
from tilewright.targets import Target, load_target

SCRIPTS = ("base.js", "timeline.js", "memory.js", "roofline.js", "compare.js", "tables.js", "main.js")
"""In the order in which the page needs them."""

FRAME_HEIGHT = 720
"""Pixels that the page takes in a notebook."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A page about one program on one target. In a notebook it shows itself."""

    title: str
    data: Mapping[str, Any]
    """what the page shows, as dictionaries, lists, texts and numbers"""

    @property
    def html(self) -> str:
        """The whole page."""
        parts = {
            "title": escape(self.title),
            "style": _text("style.css"),
            # Inside a script element, only a closing tag could end the data early.
            "data": json.dumps(self.data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
            "scripts": "\n".join(map(_text, SCRIPTS)),
        }
        # In one go: what is put in may look like a mark itself.
        return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _text("page.html"))

    def save(self, path: str | Path) -> Path:
        """Writes the page, whole or not at all. Returns its path. Raises `OSError` where that cannot be."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(self.html)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return target

    def _repr_html_(self) -> str:
        return self.frame

    @property
    def frame(self) -> str:
        """For a notebook: the page in a frame of its own, so that its styles and scripts do not meet the notebook's."""
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.html)}" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0;border-radius:8px"></iframe>'
        )


def make_report(
    program: Program, target: str | Target, arguments: Mapping[str, Any] | None = None, forward: bool = True
) -> Report:
    """The page about `program` on `target`. `arguments`: by the names of the entry's parameters, numbers and anything
    with a shape, where the program does not state them; `forward`: as for `lower`. Raises what the passes raise."""
    machine = load_target(target)
    return Report(f"{program.entry} on {machine.name}", page_data(program, machine, arguments, forward))


def _text(asset: str) -> str:
    return (files("tilewright.report.html") / "assets" / asset).read_text(encoding="utf-8")
