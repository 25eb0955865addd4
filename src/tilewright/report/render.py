"""An explanation as tables, and those as plain text."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tilewright.report.model import Explanation, FunctionReport, HandRow, Launch, MemoryUse
from tilewright.report.tables import Column, Table, human_bytes, percent

BAR = 40
"""Characters of the time axis in a memory map, at most."""

STEP = 2
"""Characters of one statement in it, at most."""

FULL, EMPTY = "█", "·"


def plain(explanation: Explanation) -> str:
    """The whole explanation as plain text."""
    return "\n\n".join(str(part) for part in parts(explanation)) + "\n"


def parts(explanation: Explanation) -> Iterator[str | Table]:
    """Headings, paragraphs and tables, in reading order."""
    yield heading(explanation)
    for function in explanation.functions:
        yield function_heading(function)
        if function.tiles:
            yield tiles_table(function)
        if function.moves:
            yield moves_table(function)
        if function.memories:
            yield memory_map(function)
        yield totals(function)
    if explanation.routes:
        yield routes_table(explanation)
    if explanation.hands:
        yield hands_table(explanation)
    if explanation.choices:
        yield "Choices that were open\n" + "\n".join("  " + choice for choice in explanation.choices)
    if explanation.hints:
        yield "Hints\n" + "\n".join("  " + hint for hint in explanation.hints)


def heading(explanation: Explanation) -> str:
    """What runs where, and in which order."""
    lines = [f"{explanation.program} on {explanation.target}: {explanation.description}"]
    launches = explanation.launches
    if len(launches) > 1:
        lines.append(f"  {len(launches)} launches, in this order:")
        lines += [f"    {number}. {_launch(launch)}" for number, launch in enumerate(launches, 1)]
    for space in explanation.workspaces:
        lines.append(f"  workspace {space.name}: {space.shape} {space.dtype}, {human_bytes(space.nbytes)} of DDR")
    about = "" if all(function.exact for function in explanation.functions) else "about "
    lines.append(f"  DDR: {about}{human_bytes(explanation.ddr_in)} in, {human_bytes(explanation.ddr_out)} out")
    lines += [f"  note: {note}" for note in explanation.notes]
    return "\n".join(lines)


def _launch(launch: Launch) -> str:
    where = f" [{launch.core}]" if launch.core else ""
    loop = "" if not launch.depth else " (in a loop)" if launch.depth == 1 else f" (in {launch.depth} loops)"
    return f"{launch.function}{where} ({', '.join(launch.arguments)}){loop}"


def function_heading(function: FunctionReport) -> str:
    """The name of a function, where it runs and where it was written."""
    where = f", on the {function.core} cores" if function.core else ""
    written = f", from {short_path(function.file)}:{function.line}" if function.line else ""
    return f"== {function.name}{where}{written}"


def short_path(path: str) -> str:
    """A path as seen from the current directory, where that is shorter."""
    near = os.path.relpath(path) if os.path.isabs(path) else path
    return min(near, path, key=len)


def tiles_table(function: FunctionReport) -> Table:
    """Every tile with its place."""
    columns = (
        Column("tile", key=True), Column("line", right=True), Column("made by", spare=5), Column("shape"),
        Column("valid", spare=1), Column("dtype", spare=3), Column("memory"), Column("layout", spare=4),
        Column("bytes", right=True), Column("address", right=True), Column("alive", right=True, spare=2),
        Column("why there"),
    )  # fmt: skip
    rows = tuple(
        (
            tile.name, str(tile.line or ""), tile.made_by, tile.shape, tile.valid, tile.dtype,
            place(tile.space, tile.memory), tile.layout, f"{tile.nbytes:,}",
            "streamed" if tile.address is None else f"{tile.address:#x}", f"{tile.first}-{tile.last}", tile.why,
        )
        for tile in function.tiles
    )  # fmt: skip
    return Table("Tiles", columns, rows)


def place(space: str, memory: str) -> str:
    """A role with the machine's name for it, where that is another."""
    return space if space == memory else f"{space} ({memory})"


def moves_table(function: FunctionReport) -> Table:
    """Every statement that moves data."""
    columns = (
        Column("move", key=True), Column("line", right=True), Column("from -> to"), Column("engine"),
        Column("cycles", right=True), Column("times", right=True), Column("bytes in all", right=True),
    )  # fmt: skip
    rows = tuple(
        (
            f"{move.source} -> {move.made}", str(move.line or ""), f"{move.src} -> {move.dst}", move.engine,
            f"{move.cycles:,.0f}", f"{move.times:,}", f"{move.nbytes:,}",
        )
        for move in function.moves
    )  # fmt: skip
    return Table("Moves (cycles: one time, one core, nothing overlapped)", columns, rows)


def routes_table(explanation: Explanation) -> Table:
    """Every change of memory with the way that the target has for it."""
    columns = (
        Column("tile", key=True), Column("line", right=True), Column("wanted"), Column("way"),
        Column("cycles", right=True), Column(""),
    )  # fmt: skip
    rows = tuple(
        (
            route.value, str(route.line or ""), f"{route.src} -> {route.dst}", route.route, f"{route.cycles:,.0f}",
            "" if route.edge else "no edge of its own",
        )
        for route in explanation.routes
    )  # fmt: skip
    return Table("Routes (cycles: the whole way of one tile)", columns, rows)


def hands_table(explanation: Explanation) -> Table:
    """Every tensor that one section hands to another, and where it goes."""
    columns = (
        Column("tensor", key=True), Column("line", right=True), Column("from -> to"), Column("bytes", right=True),
        Column("goes"),
    )  # fmt: skip
    rows = tuple(
        (
            hand.tensor, str(hand.line or ""), f"{hand.producer} -> {hand.consumer}",
            "" if hand.nbytes is None else f"{hand.nbytes:,}", _way(hand),
        )
        for hand in explanation.hands
    )  # fmt: skip
    return Table("From section to section", columns, rows)


def _way(hand: HandRow) -> str:
    if not hand.function:
        return f"through DDR: {hand.why}"
    return f"on chip, in {hand.function}" + (", and to DDR for others" if hand.kept else "")


def memory_map(function: FunctionReport) -> str:
    """Each memory with its peak, and a bar over time for each buffer, by address."""
    lines = [f"Memory (statements 1 to {function.statements} from left to right)"]
    for use in function.memories:
        lines.append("  " + peak(use))
        width = max(len(bar.name) for bar in use.buffers)
        for bar in use.buffers:
            address = "streamed" if bar.address is None else f"{bar.address:#08x}"
            drawn = time_bar(bar.first, bar.last, function.statements)
            lines.append(f"    {address:>8}  {bar.name:<{width}}  {drawn}  {bar.nbytes:>9,}  {_some(bar.tiles)}")
    return "\n".join(lines)


def peak(use: MemoryUse) -> str:
    """``Vec (UB): 36 KiB of 184 KiB, 20 %; optimal``: the peak, and what is known of the plan."""
    name = place("/".join(use.spaces), use.memory)
    if all(bar.address is None for bar in use.buffers):
        return f"{name}: {human_bytes(use.capacity)} of registers, through which tiles are streamed without an address"
    said = f"{name}: {human_bytes(use.peak)} of {human_bytes(use.capacity)}, {percent(use.share)}"
    said = f"{said}; {use.verdict}" if use.verdict else said
    streamed = sum(bar.address is None for bar in use.buffers)
    return f"{said}; {streamed} streamed without an address" if streamed else said


def time_bar(first: int, last: int, statements: int) -> str:
    """The statements from `first` to `last` as a bar; at least one character."""
    size = min(BAR, STEP * max(1, statements))
    begin = min(size - 1, max(0, first - 1) * size // max(1, statements))
    end = max(begin + 1, -(-min(last, statements) * size // max(1, statements)))
    return EMPTY * begin + FULL * (end - begin) + EMPTY * (size - end)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def totals(function: FunctionReport) -> str:
    """What one launch moves and costs."""
    about = "" if function.exact else "about "
    cycles = ", ".join(f"{engine} {count:,.0f}" for engine, count in function.cycles.items())
    lines = [f"DDR in one launch: {about}{function.ddr_in:,} bytes in, {function.ddr_out:,} out"]
    if cycles:
        lines.append(f"Cycles by engine, all trips on one core: {cycles}")
    if not function.exact:
        lines.append("What is known only at run time counts as one trip, the largest extent, both arms.")
    return "\n".join(lines)
