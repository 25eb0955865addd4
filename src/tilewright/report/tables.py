"""Tables as data, so that one description serves a terminal, a pipe and a file.

A `Table` is rendered as aligned plain text here; `tilewright.report.terminal` draws the same one with rich.
"""

from __future__ import annotations

from dataclasses import dataclass

GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """`right`: numbers, aligned at their last digit. `key`: what identifies the row, set off on a terminal.
    `spare`: what a narrow terminal leaves out, the highest number first; 0 is always shown."""

    title: str
    right: bool = False
    key: bool = False
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under named columns. Columns in which every row is empty are not shown."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def shown(self, width: int | None = None) -> tuple[tuple[Column, ...], list[tuple[str, ...]]]:
        """The columns that say something, and the rows cut down to them. With `width`, in characters, columns that can
        be spared go until the last column, which can wrap, has a third of it."""
        kept = [i for i in range(len(self.columns)) if any(row[i] for row in self.rows)]
        spare = sorted((i for i in kept if self.columns[i].spare), key=lambda i: self.columns[i].spare)
        while width is not None and spare and self._fixed(kept) > width * 2 // 3:
            kept.remove(spare.pop())
        return tuple(self.columns[i] for i in kept), [tuple(row[i] for i in kept) for row in self.rows]

    def _fixed(self, kept: list[int]) -> int:
        """The characters that all columns but the last take."""
        sizes = [max(len(self.columns[i].title), *(len(row[i]) for row in self.rows)) for i in kept[:-1]]
        return sum(size + len(GAP) for size in sizes)

    def __str__(self) -> str:
        columns, rows = self.shown()
        widths = [max(len(column.title), *(len(row[i]) for row in rows)) for i, column in enumerate(columns)]
        lines = [self.title] if self.title else []
        lines.append(_line([column.title for column in columns], columns, widths))
        lines.append(GAP.join("-" * width for width in widths))
        lines += [_line(row, columns, widths) for row in rows]
        return "\n".join(lines)


def _line(cells: tuple[str, ...] | list[str], columns: tuple[Column, ...], widths: list[int]) -> str:
    padded = [
        cell.rjust(width) if column.right else cell.ljust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]
    return GAP.join(padded).rstrip()


def human_bytes(count: int) -> str:
    """Bytes as people read them: ``512 B``, ``32 KiB``, ``1.5 MiB``; three digits at most where it is not exact."""
    if count < 1024:
        return f"{count} B"
    value, units = count / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        del units[0]
    unit = units[0]
    return f"{value:.0f} {unit}" if value == int(value) else f"{value:.3g} {unit}"


def percent(share: float) -> str:
    """A share as a percentage; never ``0 %`` for something."""
    if 0 < share < 0.01:
        return "<1 %"
    return f"{share:.0%}".replace("%", " %")
