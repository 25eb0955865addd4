"""Faults in what statements do: operands, operations, windows, offsets, attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from mutation.catalogue import kind
from mutation.editing import Lines, Statement, number_changed
from mutation.programs import Base

_INSTEAD = {
    "add": "sub", "sub": "add", "mul": "add", "neg": "abs", "abs": "neg", "relu": "neg", "row_max": "row_min",
    "row_sum": "row_max", "col_sum": "col_max", "row_expand_sub": "row_expand_add", "col_expand_add": "col_expand_sub",
    "col_expand_sub": "col_expand_max", "muls": "adds", "adds": "subs",
}  # fmt: skip


@kind("operation")
def another_operation(base: Base, lines: Lines) -> Iterator[str]:
    """Another operation with operands of the same types."""
    for stmt in lines.statements:
        if stmt.op in _INSTEAD:
            yield lines.put(replace(stmt, op=_INSTEAD[stmt.op]))


@kind("operation")
def operands_swapped(base: Base, lines: Lines) -> Iterator[str]:
    """The operands of a subtraction, a comparison or a choice are exchanged."""
    first = {"sub": 0, "cmp": 0, "sel": 1}
    for stmt in lines.statements:
        if stmt.op in first:
            at = first[stmt.op]
            yield lines.put(stmt.given(at, stmt.args[at + 1]).given(at + 1, stmt.args[at]))


@kind("operation")
def another_operand(base: Base, lines: Lines) -> Iterator[str]:
    """An operand is another tile of the same type that is alive."""
    for stmt in lines.statements:
        if stmt.op in ("load", "create", "full"):
            continue
        own = lines.operand(stmt, 0)
        first = lines.function_of(stmt.at)
        for other in lines.tiles():
            if own is None or other is own or not first < other.at < stmt.at or len(other.indent) > len(stmt.indent):
                continue
            if _type(other) == _type(own) and other.name not in stmt.args:
                yield lines.put(stmt.given(0, other.name))


def _type(stmt: Statement) -> str:
    return re.sub(r"pl\.MemRef\(.*?\)", "", stmt.annotation)


@kind("operation")
def both_operands_one(base: Base, lines: Lines) -> Iterator[str]:
    """The first operand is read twice, the second not at all."""
    for stmt in lines.statements:
        if stmt.op in ("sub", "add", "mul"):
            yield lines.put(stmt.given(1, stmt.args[0]))


@kind("operation")
def number_off(base: Base, lines: Lines) -> Iterator[str]:
    """A number that elements meet is another."""
    for stmt in lines.statements:
        for at, arg in enumerate(stmt.args):
            if re.fullmatch(r"-?\d+\.\d+", arg):
                yield lines.put(stmt.given(at, str(float(arg) + 1)))


@kind("operation")
def rounding_changed(base: Base, lines: Lines) -> Iterator[str]:
    """A conversion rounds another way."""
    for stmt in lines.statements:
        changed = stmt.keyword("mode", lambda mode: '"ceil"' if mode == '"floor"' else None)
        if changed is not None:
            yield lines.put(changed)


@kind("operation")
def comparison_changed(base: Base, lines: Lines) -> Iterator[str]:
    """A comparison asks for something else."""
    for stmt in lines.statements:
        changed = stmt.keyword("cmp_type", lambda number: str((int(number) + 2) % 6))
        if changed is not None:
            yield lines.put(changed)


@kind("operation")
def first_product_added_to_nothing(base: Base, lines: Lines) -> Iterator[str]:
    """The condition under which an accumulator starts anew is left out."""
    for stmt in lines.statements:
        at = stmt.argument("init_cond")
        if at is not None:
            yield lines.put(stmt.without(at))


@kind("operation")
def start_of_the_sum_moved(base: Base, lines: Lines) -> Iterator[str]:
    """An accumulator starts anew in another trip than the first."""
    for stmt in lines.statements:
        changed = stmt.keyword("init_cond", lambda condition: condition.replace("== 0", "== 16"))
        if changed is not None:
            yield lines.put(changed)


@kind("operation")
def sum_forgotten(base: Base, lines: Lines) -> Iterator[str]:
    """A product replaces the accumulator that it should be added to."""
    for stmt in lines.statements:
        changed = stmt.keyword("init_cond", lambda condition: condition.replace("== 0", ">= 0"))
        if changed is not None:
            yield lines.put(changed)


@kind("operation")
def bias_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A product starts from nothing instead of the bias."""
    for stmt in lines.statements:
        if stmt.op == "matmul_bias":
            yield lines.put(replace(stmt, op="matmul", args=stmt.args[:2]))


@kind("operation")
def statement_repeated(base: Base, lines: Lines) -> Iterator[str]:
    """An update is done twice."""
    for stmt in lines.statements:
        if stmt.op in ("matmul_acc", "store") and ("atomic=1" in stmt.args or stmt.op == "matmul_acc"):
            target = 0 if stmt.op == "matmul_acc" else 2
            again = replace(stmt, name=stmt.name + "_again")
            second = stmt.given(target, again.name)
            yield lines.text({stmt.at: f"{again}\n{second}"})


@kind("operation")
def copy_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A copy that keeps carried values apart is left out."""
    for stmt in lines.statements:
        source = lines.operand(stmt, 0)
        if stmt.op == "move" and stmt.name.endswith("_copy") and (source is None or source.space == stmt.space):
            yield lines.dropped(stmt, stmt.args[0])


@kind("operation")
def store_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A result is not stored."""
    for stmt in lines.statements:
        if stmt.op == "store":
            yield lines.dropped(stmt, stmt.args[2])


@kind("operation")
def stale_version_stored(base: Base, lines: Lines) -> Iterator[str]:
    """A store goes to a version of its tensor that is not the latest."""
    for stmt in lines.statements:
        source = next((s for s in lines.by_name.get(stmt.args[2], []) if s.at < stmt.at), None) if (
            stmt.op == "store") else None  # fmt: skip
        if source is not None and source.op == "store":
            yield lines.put(stmt.given(2, source.args[2]))


@kind("operation")
def store_after_its_tile_is_lost(base: Base, lines: Lines) -> Iterator[str]:
    """A store is moved behind the next statement."""
    for stmt in lines.statements:
        tile = lines.operand(stmt, 0)
        for following in lines.statements if stmt.op == "store" and tile is not None and tile.buffer else ():
            inside = stmt.at < following.at < lines.end_of(stmt.at) and following.indent == stmt.indent
            over = following.buffer is not None and tile is not None and _overlap(following, tile)
            if inside and over and not any(stmt.at < at <= following.at for at in lines.uses_after(stmt)):
                yield lines.text({stmt.at: None, following.at: f"{following}\n{stmt}"})


def _overlap(a: Statement, b: Statement) -> bool:
    """Whether the buffers of two tiles share bytes of one memory."""
    if a.buffer is None or b.buffer is None or a.space != b.space:
        return False
    return a.buffer[1] < b.buffer[1] + b.buffer[2] and b.buffer[1] < a.buffer[1] + a.buffer[2]


# --- windows --------------------------------------------------------------------------------------------------------
def _shifted(lines: Lines, op: str, position: int, by: int, axis: int) -> Iterator[str]:
    for stmt in lines.statements:
        if stmt.op == op and position < len(stmt.args):
            changed = number_changed(stmt.args[position], by, axis)
            if changed is not None:
                yield lines.put(stmt.given(position, changed))


@kind("window")
def load_one_row_further(base: Base, lines: Lines) -> Iterator[str]:
    """A load begins one row later."""
    yield from _shifted(lines, "load", 1, 1, 0)


@kind("window")
def load_one_column_further(base: Base, lines: Lines) -> Iterator[str]:
    """A load begins one column later."""
    yield from _shifted(lines, "load", 1, 1, 1)


@kind("window")
def load_of_the_tile_before(base: Base, lines: Lines) -> Iterator[str]:
    """A load begins a whole tile earlier than it should."""
    for stmt in lines.statements:
        if stmt.op == "load" and "*" in stmt.args[1]:
            yield lines.put(stmt.given(1, re.sub(r"\[([^,]+),", r"[pl.max(\1 - 16, 0),", stmt.args[1])))


@kind("window")
def store_one_row_further(base: Base, lines: Lines) -> Iterator[str]:
    """A store begins one row later."""
    yield from _shifted(lines, "store", 1, 1, 0)


@kind("window")
def store_one_column_further(base: Base, lines: Lines) -> Iterator[str]:
    """A store begins one column later."""
    yield from _shifted(lines, "store", 1, 1, 1)


@kind("window")
def store_in_one_place(base: Base, lines: Lines) -> Iterator[str]:
    """Every trip stores to the place of the first."""
    for stmt in lines.statements:
        if stmt.op == "store" and re.search(r"[a-z]", stmt.args[1]):
            yield lines.put(stmt.given(1, "[0, 0]"))


@kind("window")
def slice_one_row_further(base: Base, lines: Lines) -> Iterator[str]:
    """A view of a part begins one row later."""
    yield from _shifted(lines, "slice", 2, 1, 0)


@kind("window")
def slice_one_row_less(base: Base, lines: Lines) -> Iterator[str]:
    """A view of a part begins one row earlier."""
    yield from _shifted(lines, "slice", 2, -1, 0)


@kind("window")
def part_written_one_row_further(base: Base, lines: Lines) -> Iterator[str]:
    """A part is put into the whole one row later."""
    yield from _shifted(lines, "assemble", 2, 1, 0)


@kind("window")
def part_written_past_the_end(base: Base, lines: Lines) -> Iterator[str]:
    """A part is put where it does not fit into the whole."""
    yield from _shifted(lines, "assemble", 2, 17, 0)


@kind("window")
def element_next_to_it_read(base: Base, lines: Lines) -> Iterator[str]:
    """Another element is read into a scalar."""
    yield from _shifted(lines, "read", 1, 1, 1)


@kind("window")
def element_next_to_it_written(base: Base, lines: Lines) -> Iterator[str]:
    """Another element is written."""
    yield from _shifted(lines, "write", 1, 1, 1)


@kind("window")
def more_loaded_than_there_is(base: Base, lines: Lines) -> Iterator[str]:
    """The part of a load that has meaning is a row, or a column, larger."""
    for stmt in lines.statements:
        for axis in range(2):
            changed = stmt.keyword("valid_shape", lambda extents, axis=axis: number_changed(extents, 1, axis))
            if stmt.op == "load" and changed is not None:
                yield lines.put(changed)


@kind("window")
def less_loaded_than_is_used(base: Base, lines: Lines) -> Iterator[str]:
    """The part of a load that has meaning is a row smaller."""
    for stmt in lines.statements:
        if stmt.op != "load":
            continue
        changed = stmt.keyword("valid_shape", lambda extents: number_changed(extents, -1, 0))
        if changed is not None:
            yield lines.put(changed)


@kind("window")
def tail_not_cut(base: Base, lines: Lines) -> Iterator[str]:
    """A load no longer ends where its tensor does."""
    for stmt in lines.statements:
        at = stmt.argument("clamp")
        if at is not None:
            yield lines.put(stmt.without(at))
        changed = stmt.keyword("valid_shape", lambda extents: re.sub(r"pl\.min\((\d+), [^)]*\)", r"\1", extents))
        if changed is not None and str(changed) != str(stmt):
            yield lines.put(changed)


@kind("window")
def valid_rows_set_too_high(base: Base, lines: Lines) -> Iterator[str]:
    """A view says that one row more has meaning."""
    for stmt in lines.statements:
        if stmt.op == "set_validshape" and stmt.args[1].isdigit():
            yield lines.put(stmt.given(1, str(int(stmt.args[1]) + 1)))


@kind("window")
def valid_rows_set_too_low(base: Base, lines: Lines) -> Iterator[str]:
    """A view says that one row less has meaning."""
    for stmt in lines.statements:
        if stmt.op == "set_validshape" and stmt.args[1].isdigit():
            yield lines.put(stmt.given(1, str(int(stmt.args[1]) - 1)))


@kind("window")
def padding_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A load or move no longer fills what surrounds the valid part."""
    for stmt in lines.statements:
        at = stmt.argument("pad_value")
        if at is not None:
            yield lines.put(stmt.without(at))


@kind("window")
def padding_of_another_value(base: Base, lines: Lines) -> Iterator[str]:
    """A load fills what surrounds the valid part with the largest value."""
    for stmt in lines.statements:
        changed = stmt.keyword("pad_value", lambda value: "pl.PadValue.max")
        if changed is not None:
            annotation = changed.annotation.replace("pad=pl.PadValue.zero", "pad=pl.PadValue.max")
            yield lines.put(replace(changed, annotation=annotation))


@kind("window")
def sum_no_longer_atomic(base: Base, lines: Lines) -> Iterator[str]:
    """A store replaces what it should add to."""
    for stmt in lines.statements:
        at = stmt.argument("atomic")
        if at is not None:
            yield lines.put(stmt.without(at))


@kind("window")
def replaced_becomes_added(base: Base, lines: Lines) -> Iterator[str]:
    """A store adds to what it should replace."""
    for stmt in lines.statements:
        if stmt.op == "store" and stmt.argument("atomic") is None:
            yield lines.put(replace(stmt, args=(*stmt.args, "atomic=1")))
