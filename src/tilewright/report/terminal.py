"""Reports drawn with rich. Everything that is said stands in `render`; here is only how it looks."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from tilewright.report.model import Explanation
from tilewright.report.render import FULL, parts
from tilewright.report.tables import Table


def draw(explanation: Explanation, width: int) -> Iterator[RenderableType]:
    """What rich prints for an explanation on a terminal of `width` characters."""
    for part in parts(explanation):
        if isinstance(part, Table):
            yield table(part, width)
        elif part.startswith("== "):
            yield Rule(Text(part[3:], style="bold"), align="left")
        else:
            yield paragraph(part)
        yield Text()


def table(data: Table, width: int) -> Group:
    """One table, fitted to the terminal's width: columns that can be spared go, the last one wraps."""
    columns, rows = data.shown(width)
    drawn = RichTable(header_style="bold", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        drawn.add_column(
            column.title,
            justify="right" if column.right else "left",
            style="cyan" if column.key else None,
            no_wrap=index < len(columns) - 1,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return Group(Text(data.title, style="italic"), drawn) if data.title else Group(drawn)


def paragraph(text: str) -> Text:
    """Lines of text, the first one set off, bars in colour."""
    first, _, rest = text.partition("\n")
    drawn = Text(first, style="bold" if rest else "")
    if rest:
        drawn.append("\n" + rest, style="not bold")
    drawn.highlight_regex(FULL + "+", "green")
    return drawn
