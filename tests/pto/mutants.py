"""Plants one fault in a text: what the compiler must never print, and what the checker or the emulator must notice."""

from __future__ import annotations

import re
from collections.abc import Iterator

ALLOCATION = re.compile(r"^ *%\S+ = pto\.alloc_tile (?P<operands>.*?) : (?P<type>!pto\.tile_buf<.*>)$")
NZ, ZN = "blayout=col_major, slayout=row_major", "slayout=col_major"


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """(what was done, the text with it): each has one fault."""
    lines = text.splitlines()
    yield from _addresses(lines)
    yield from _offsets(lines)
    yield from _extents(lines)
    yield from _types(text)
    yield from _waits(lines)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _addresses(lines: list[str]) -> Iterator[tuple[str, str]]:
    """One allocation lies 32 bytes further (512 in the cube's memories, where less is refused at sight)."""
    for number, line in enumerate(lines):
        found = re.search(r"addr = %addr(\d+)\b", line)
        if found is None:
            continue
        for step in (32, 512):
            moved = f"%moved{number}"
            extra = f"{_indent(line)}{moved} = arith.constant {int(found[1]) + step} : i64"
            new = line.replace(found[0], f"addr = {moved}")
            yield f"line {number + 1}: address + {step}", _joined([*lines[:number], extra, new, *lines[number + 1 :]])


def _offsets(lines: list[str]) -> Iterator[tuple[str, str]]:
    """A part of a tensor, or of a tile, begins one element earlier or later."""
    for number, line in enumerate(lines):
        groups = [re.search(r"offsets = \[(.*?)\]", line), re.search(r"textract ins\(%\w+, (%\w+, %\w+) :", line)]
        for found in groups:
            if found is None:
                continue
            names = found[1].split(", ")
            for axis, name in enumerate(names):
                for word in ("addi", "subi"):
                    moved = f"%moved{number}"
                    one = f"{_indent(line)}%one{number} = arith.constant 1 : index"
                    extra = f"{_indent(line)}{moved} = arith.{word} {name}, %one{number} : index"
                    inside = ", ".join([*names[:axis], moved, *names[axis + 1 :]])
                    new = line[: found.start(1)] + inside + line[found.end(1) :]
                    what = f"line {number + 1}: offset {axis} {'+' if word == 'addi' else '-'} 1"
                    yield what, _joined([*lines[:number], one, extra, new, *lines[number + 1 :]])


def _extents(lines: list[str]) -> Iterator[tuple[str, str]]:
    """A valid extent that is known at run time, of a tile or of a part of a tensor, is one off."""
    for number, line in enumerate(lines):
        for key in ("valid_row", "valid_col"):
            found = re.search(rf"{key} = (%\w+)", line)
            if found is None:
                continue
            for word in ("addi", "subi"):
                one = f"{_indent(line)}%one{number} = arith.constant 1 : index"
                extra = f"{_indent(line)}%moved{number} = arith.{word} {found[1]}, %one{number} : index"
                new = line.replace(found[0], f"{key} = %moved{number}")
                what = f"line {number + 1}: {key} {'+' if word == 'addi' else '-'} 1"
                yield what, _joined([*lines[:number], one, extra, new, *lines[number + 1 :]])


def _types(text: str) -> Iterator[tuple[str, str]]:
    """A tile type is another wherever it stands: a valid extent one less, boxes turned, the accumulator's pitch."""
    for kind in sorted(set(re.findall(r"!pto\.tile_buf<[^>]*>", text))):
        for what, changed in _changed(kind):
            yield f"{kind}: {what}", text.replace(kind, changed)


def _changed(kind: str) -> Iterator[tuple[str, str]]:
    rows, cols, dtype = re.findall(r"(\d+)x(\d+)x([a-z]\w*)", kind)[0]
    valid = re.search(r"valid=(\d+|\?)x(\d+|\?)", kind)
    shape = (valid[1], valid[2]) if valid else (rows, cols)
    for axis in (0, 1):
        for step in (-1, 1):
            if shape[axis] != "?" and int(shape[axis]) + step >= 1:
                new = [str(int(e) + step) if i == axis else e for i, e in enumerate(shape)]
                spelled = f"valid={new[0]}x{new[1]}"
                old = valid[0] if valid else f"{rows}x{cols}x{dtype}"
                yield f"valid extent {axis} {step:+}", kind.replace(old, spelled if valid else f"{old}, {spelled}")
    if "<mat" in kind and NZ in kind:
        yield "boxes turned", kind.replace(NZ, ZN)
    elif "<mat" in kind and ZN in kind:
        yield "boxes turned", kind.replace(ZN, NZ)
    if "<acc" in kind:
        yield "16 rows more", kind.replace(f"{rows}x{cols}x{dtype}", f"{int(rows) + 16}x{cols}x{dtype}")
        if "compact=1" in kind:
            yield "not compact", kind.replace(", compact=1", "")


def _waits(lines: list[str]) -> Iterator[tuple[str, str]]:
    """One wait, or one barrier, is gone."""
    for number, line in enumerate(lines):
        if re.search(r"pto\.(sync\.wait|wait_flag|barrier)\b", line):
            yield f"line {number + 1}: without {line.strip()}", _joined([*lines[:number], *lines[number + 1 :]])
