"""The faults: each kind finds the places in a final program where it can be planted, and plants it there.

A kind yields whole texts, each with one fault. Kinds of one group are in one module; this one has what a kind is and
the faults of plans: addresses, buffers, spaces, layouts and valid shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from mutation.editing import Lines, Statement, renamed
from mutation.programs import Base

from tilewright.ir.layout import MemorySpace

Planter = Callable[[Base, Lines], Iterator[str]]


@dataclass(frozen=True)
class Kind:
    """One kind of fault; `planter` yields a text for each place where it can be."""

    name: str
    group: str
    planter: Planter

    @property
    def says(self) -> str:
        return (self.planter.__doc__ or "").strip().rstrip(".")


KINDS: dict[str, Kind] = {}


def kind(group: str) -> Callable[[Planter], Planter]:
    """Registers a planter under its name."""

    def register(planter: Planter) -> Planter:
        name = planter.__name__.replace("_", " ")
        assert name not in KINDS, name
        KINDS[name] = Kind(name, group, planter)
        return planter

    return register


def alive_after(lines: Lines, stmt: Statement) -> Iterator[Statement]:
    """Tiles of the same function and space, made before `stmt` and used after it."""
    first = lines.function_of(stmt.at)
    for other in lines.tiles():
        if first < other.at < stmt.at and other.space == stmt.space and other.buffer != stmt.buffer:
            if any(at > stmt.at for at in lines.uses_after(other)) and _same_block(lines, other, stmt):
                yield other


def _same_block(lines: Lines, a: Statement, b: Statement) -> bool:
    """Whether `b` can only be reached through `a`."""
    return all(len(_indent(line)) >= len(a.indent) for line in lines.lines[a.at : b.at] if line.strip())


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# --- addresses ------------------------------------------------------------------------------------------------------
@kind("plan")
def address_of_a_live_tile(base: Base, lines: Lines) -> Iterator[str]:
    """A tile is put at the address of another that is read later."""
    for stmt in lines.tiles():
        for other in alive_after(lines, stmt):
            assert other.buffer is not None
            yield lines.put(stmt.moved(other.buffer[1]))


@kind("plan")
def address_32_bytes_lower(base: Base, lines: Lines) -> Iterator[str]:
    """A tile begins one unit earlier, over the end of one that is read later."""
    for stmt in lines.tiles():
        assert stmt.buffer is not None
        for other in alive_after(lines, stmt):
            assert other.buffer is not None
            if other.buffer[1] + other.buffer[2] == stmt.buffer[1]:
                yield lines.put(stmt.moved(stmt.buffer[1] - 32))


@kind("plan")
def address_32_bytes_higher(base: Base, lines: Lines) -> Iterator[str]:
    """A tile that is read later ends one unit later, over another that is alive."""
    for stmt in lines.tiles():
        for other in alive_after(lines, stmt):
            assert stmt.buffer is not None and other.buffer is not None
            if other.buffer[1] + other.buffer[2] == stmt.buffer[1]:
                yield _everywhere(lines, other, lambda s: s.moved(s.buffer[1] + 32 if s.buffer else 0))


def _everywhere(lines: Lines, stmt: Statement, change: Callable[[Statement], Statement]) -> str:
    """`change` for every tile of the buffer of `stmt` in its function."""
    first, last = lines.function_of(stmt.at), lines.end_of(stmt.at)
    mine = [s for s in lines.tiles() if first < s.at < last and (s.space, s.buffer) == (stmt.space, stmt.buffer)]
    return lines.put(*map(change, mine))


@kind("plan")
def address_past_the_end(base: Base, lines: Lines) -> Iterator[str]:
    """A buffer ends one unit after its memory does."""
    for stmt in _first_of_buffers(lines):
        assert stmt.buffer is not None
        top = base.target.capacity(next(s for s in base.target.spaces if s.value == stmt.space))
        at = (top - stmt.buffer[2]) // 32 * 32 + 32
        yield _everywhere(lines, stmt, lambda s, at=at: s.moved(at))


@kind("plan")
def address_between_units(base: Base, lines: Lines) -> Iterator[str]:
    """A buffer begins at a byte where its memory has no tile begin."""
    for stmt in _first_of_buffers(lines):
        assert stmt.buffer is not None
        yield _everywhere(lines, stmt, lambda s: s.moved((s.buffer[1] if s.buffer else 0) + 4))


def _first_of_buffers(lines: Lines) -> Iterator[Statement]:
    seen: set[object] = set()
    for stmt in lines.tiles():
        key = lines.function_of(stmt.at), stmt.space, stmt.buffer
        if key not in seen:
            seen.add(key)
            yield stmt


@kind("plan")
def bytes_shortened(base: Base, lines: Lines) -> Iterator[str]:
    """A buffer is said to be one unit shorter than its tile."""
    for stmt in _first_of_buffers(lines):
        nbytes = (stmt.buffer or ("", 0, 0))[2]
        shorter = f"nbytes={max(0, nbytes - 32)})"
        yield _everywhere(
            lines, stmt, lambda s, t=shorter: replace(s, annotation=re.sub(r"nbytes=\d+\)", t, s.annotation))
        )


@kind("plan")
def next_version_elsewhere(base: Base, lines: Lines) -> Iterator[str]:
    """What an operation updates, and its next version, lie apart."""
    for stmt in lines.tiles():
        if stmt.op in ("matmul_acc", "assemble", "write") and stmt.buffer is not None:
            yield lines.put(stmt.moved(stmt.buffer[1] + -(-stmt.buffer[2] // 512) * 512))


@kind("plan")
def two_slots_made_one(base: Base, lines: Lines) -> Iterator[str]:
    """The second copy of a pipelined statement is put into the slot of the first."""
    for stmt in lines.tiles():
        root = re.sub(r"_\d+$", "", stmt.name)
        for first in lines.by_name.get(root, []):
            if root != stmt.name and first.op == stmt.op == "load" and first.buffer != stmt.buffer and first.buffer:
                yield _everywhere(lines, stmt, lambda s, at=first.buffer[1]: s.moved(at))


@kind("plan")
def scratch_over_an_operand(base: Base, lines: Lines) -> Iterator[str]:
    """Scratch lies where the operation that uses it reads."""
    yield from _scratch(lines, lambda user, scratch: [lines.operand(user, 0)])


@kind("plan")
def scratch_over_a_live_tile(base: Base, lines: Lines) -> Iterator[str]:
    """Scratch lies where something lies that is read later."""
    yield from _scratch(lines, lambda user, scratch: list(alive_after(lines, user)))


@kind("plan")
def scratch_over_the_result(base: Base, lines: Lines) -> Iterator[str]:
    """Scratch lies where the operation that uses it writes."""
    yield from _scratch(lines, lambda user, scratch: [user])


def _scratch(lines: Lines, over: Callable[[Statement, Statement], list[Statement | None]]) -> Iterator[str]:
    for stmt in lines.statements:
        at = stmt.argument("tmp") or stmt.argument("tmp_tile")
        if at is None:
            continue
        name = stmt.args[at].partition("=")[2]
        made = next(s for s in reversed(lines.by_name[name]) if s.at < stmt.at)
        for other in over(stmt, made):
            if other is not None and other.buffer is not None and other.name != made.name and other.space == made.space:
                yield lines.put(made.moved(other.buffer[1]))


@kind("plan")
def result_over_an_operand(base: Base, lines: Lines) -> Iterator[str]:
    """A result lies over an operand that the operation does not let it replace."""
    for stmt in lines.tiles():
        for position in range(2):
            source = lines.operand(stmt, position)
            if source is None or source.buffer is None or source.space != stmt.space or source.buffer == stmt.buffer:
                continue
            if stmt.op.startswith(("row_", "col_", "transpose", "sel")) and (position == 1 or "expand" not in stmt.op):
                yield lines.put(stmt.moved(source.buffer[1]))


@kind("plan")
def view_moved(base: Base, lines: Lines) -> Iterator[str]:
    """A view begins elsewhere than what it views."""
    for stmt in lines.tiles():
        if stmt.op in ("slice", "reshape", "set_validshape", "transpose_view") and stmt.buffer is not None:
            yield lines.put(stmt.moved(stmt.buffer[1] + 32))


@kind("plan")
def yielded_from_elsewhere(base: Base, lines: Lines) -> Iterator[str]:
    """What a block hands on lies in another buffer than what takes it over."""
    for at, line in enumerate(lines.lines):
        found = re.search(r"= pl\.yield_\((.+)\)$", line)
        for name in found[1].split(", ") if found else ():
            for stmt in lines.by_name.get(name, []):
                if lines.function_of(stmt.at) == lines.function_of(at) and stmt.buffer is not None and stmt.at < at:
                    free = max(s.buffer[1] + s.buffer[2] for s in lines.tiles() if s.buffer)
                    yield lines.put(stmt.moved(-(-free // 512) * 512))


@kind("plan")
def started_from_elsewhere(base: Base, lines: Lines) -> Iterator[str]:
    """What a loop starts with lies in another buffer than what it carries."""
    for at, line in enumerate(lines.lines):
        found = re.search(r"init_values=\((.+?),?\)\)", line)
        for name in found[1].split(", ") if found else ():
            for stmt in lines.by_name.get(name, []):
                if lines.function_of(stmt.at) == lines.function_of(at) and stmt.buffer is not None and stmt.at < at:
                    free = max(s.buffer[1] + s.buffer[2] for s in lines.tiles() if s.buffer)
                    yield lines.put(stmt.moved(-(-free // 512) * 512))


# --- spaces ---------------------------------------------------------------------------------------------------------
def _apart(base: Base, a: str, b: str) -> bool:
    """Whether the machine has both memories, and they are two."""
    one, two = MemorySpace(a), MemorySpace(b)
    return not base.target.same_memory(one, two) and base.target.has(one) and base.target.has(two)


def _spaced(stmt: Statement, new: str) -> Statement:
    args = tuple(re.sub(r"pl\.Mem\.\w+", f"pl.Mem.{new}", arg) for arg in stmt.args)
    return replace(stmt, annotation=re.sub(r"pl\.Mem\.\w+", f"pl.Mem.{new}", stmt.annotation), args=args)


@kind("space")
def loaded_into_another_memory(base: Base, lines: Lines) -> Iterator[str]:
    """A load goes to Vec instead of Mat, or the other way round."""
    for stmt in lines.tiles():
        if stmt.op == "load" and stmt.space in ("Vec", "Mat") and _apart(base, "Vec", "Mat"):
            yield lines.put(_spaced(stmt, "Mat" if stmt.space == "Vec" else "Vec"))


@kind("space")
def left_for_right(base: Base, lines: Lines) -> Iterator[str]:
    """An operand of a product is moved to the other operand's memory."""
    for stmt in lines.tiles():
        if stmt.space in ("Left", "Right") and _apart(base, "Left", "Right"):
            yield lines.put(_spaced(stmt, "Right" if stmt.space == "Left" else "Left"))


@kind("space")
def result_in_another_memory(base: Base, lines: Lines) -> Iterator[str]:
    """An operation leaves its result where its engine does not write."""
    for stmt in lines.tiles():
        other = "Vec" if stmt.space == "Acc" else "Acc"
        if stmt.op not in ("load", "move", "create") and _apart(base, stmt.space, other):
            yield lines.put(_spaced(stmt, other))


@kind("space")
def move_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A move is left out, and its source read instead."""
    for stmt in lines.statements:
        if stmt.op == "move":
            yield lines.dropped(stmt, stmt.args[0])


@kind("space")
def route_shortened(base: Base, lines: Lines) -> Iterator[str]:
    """A load goes straight to the operand's memory, and the hop between is left out."""
    for stmt in lines.tiles():
        source = lines.operand(stmt, 0)
        if stmt.op == "move" and source is not None and source.op == "load":
            changed = _spaced(source, stmt.space)
            yield Lines(lines.put(changed)).dropped(stmt, source.name)


@kind("space")
def core_of_another_kind(base: Base, lines: Lines) -> Iterator[str]:
    """A function is given to the other kind of core."""
    for at, line in enumerate(lines.lines):
        for old, new in (("cube", "vector"), ("vector", "cube")):
            if f'"core": "{old}"' in line:
                yield lines.text({at: line.replace(f'"{old}"', f'"{new}"')})


# --- types ----------------------------------------------------------------------------------------------------------
def _annotated(lines: Lines, pattern: str, new: str) -> Iterator[str]:
    for stmt in lines.tiles():
        changed = re.sub(pattern, new, stmt.annotation)
        if changed != stmt.annotation:
            yield lines.put(replace(stmt, annotation=changed))


@kind("type")
def layout_turned(base: Base, lines: Lines) -> Iterator[str]:
    """A tile's rows are said to be its columns, or its boxes to come in the other order."""
    for stmt in lines.tiles():
        if "blayout=" in stmt.annotation:
            for a, b in (("row_major", "col_major"), ("col_major", "row_major")):
                if f"BLayout.{a}" in stmt.annotation:
                    yield lines.put(replace(stmt, annotation=stmt.annotation.replace(f"BLayout.{a}", f"BLayout.{b}")))
        elif stmt.op not in ("slice", "set_validshape"):
            order = "row_major" if stmt.space in ("Mat", "Left", "Acc") else "col_major"
            yield lines.put(_viewed(stmt, f"blayout=pl.BLayout.{order}, slayout=pl.SLayout.none_box, fractal=512"))


def _viewed(stmt: Statement, field: str) -> Statement:
    """With a field added to the view of its type."""
    if "pl.TileView(" in stmt.annotation:
        return replace(stmt, annotation=stmt.annotation.replace("pl.TileView(", f"pl.TileView({field}, ", 1))
    return replace(stmt, annotation=stmt.annotation[:-1] + f", pl.TileView({field})]")


@kind("type")
def box_of_another_size(base: Base, lines: Lines) -> Iterator[str]:
    """A tile of boxes is said to have boxes of the accumulator, or the other way round."""
    for stmt in lines.tiles():
        if stmt.space in ("Left", "Mat", "Acc") and "layout=" not in stmt.annotation:
            fractal = 512 if stmt.space == "Acc" else 1024
            layout = f"blayout=pl.BLayout.col_major, slayout=pl.SLayout.row_major, fractal={fractal}"
            yield lines.put(_viewed(stmt, layout))


@kind("type")
def valid_shape_widened(base: Base, lines: Lines) -> Iterator[str]:
    """A type says that one more row, or all columns, have meaning."""
    for stmt in lines.tiles():
        found = re.search(r"valid_shape=\[(\d+), (\d+)\]", stmt.annotation)
        if found and len(stmt.shape) == 2:
            rows, columns = int(found[1]), int(found[2])
            for wider in ((rows + 1, columns), (rows, columns + 1)):
                if wider[0] <= stmt.shape[0] and wider[1] <= stmt.shape[1]:
                    text = f"valid_shape=[{wider[0]}, {wider[1]}]"
                    yield lines.put(replace(stmt, annotation=stmt.annotation.replace(found[0], text)))


@kind("type")
def valid_shape_narrowed(base: Base, lines: Lines) -> Iterator[str]:
    """A type says that one row less has meaning."""
    for stmt in lines.tiles():
        found = re.search(r"valid_shape=\[(\d+), (\d+)\]", stmt.annotation)
        rows, columns = (int(found[1]), int(found[2])) if found else stmt.shape
        text = f"valid_shape=[{rows - 1}, {columns}]"
        if found:
            yield lines.put(replace(stmt, annotation=stmt.annotation.replace(found[0], text)))
        elif rows > 1:
            yield lines.put(_viewed(stmt, text))


@kind("type")
def pad_mark_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A type no longer says that what surrounds the valid part is zero."""
    yield from _annotated(lines, r", pad=pl\.PadValue\.zero", "")


@kind("type")
def pad_mark_added(base: Base, lines: Lines) -> Iterator[str]:
    """A type says that what surrounds the valid part is zero, and nothing makes it so."""
    for stmt in lines.tiles():
        if "valid_shape=" in stmt.annotation and "pad=" not in stmt.annotation:
            yield lines.put(_viewed(stmt, "pad=pl.PadValue.zero"))


@kind("type")
def compact_mark_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A packed operand of a product is said to have the pitch of its physical shape."""
    for text in (r", compact=pl\.CompactMode\.normal", r"compact=pl\.CompactMode\.normal, "):
        yield from _annotated(lines, text, "")


@kind("type")
def physical_shape_shrunk(base: Base, lines: Lines) -> Iterator[str]:
    """A tile is said to be one row shorter than what fills it."""
    for stmt in lines.tiles():
        if stmt.shape and stmt.shape[0] > 1:
            old, new = (f"pl.Tile[[{rows}, {stmt.shape[1]}]" for rows in (stmt.shape[0], stmt.shape[0] - 1))
            yield lines.put(replace(stmt, annotation=stmt.annotation.replace(old, new)))


@kind("type")
def dtype_narrowed(base: Base, lines: Lines) -> Iterator[str]:
    """A tile is said to have elements of half the size."""
    yield from _annotated(lines, r"pl\.FP32", "pl.FP16")


@kind("type")
def dtype_in_between_narrowed(base: Base, lines: Lines) -> Iterator[str]:
    """A conversion goes through a type that does not hold what it carries."""
    for stmt in lines.tiles():
        if stmt.op == "cast" and "pl.FP16" in stmt.args:
            yield lines.put(
                replace(stmt, annotation=renamed(stmt.annotation, "FP16", "BF16").replace("pl.FP16", "pl.BF16"),
                        args=tuple(arg.replace("pl.FP16", "pl.BF16") for arg in stmt.args))
            )  # fmt: skip
