"""Faults of control flow, of what paths hand on, and of calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from mutation.catalogue import kind
from mutation.editing import Lines, split
from mutation.programs import Base

_LOOP = re.compile(r"^(\s*for \w+(?:, \([^)]*\))? in pl\.\w+\()(.*)(\):)$")
_YIELD = re.compile(r"^(\s*.+ = pl\.yield_\()(.*)(\))$")


def _bounds(lines: Lines, change: Callable[[list[str]], list[str] | None]) -> Iterator[str]:
    """Loops with start, stop and step changed."""
    for at, line in enumerate(lines.lines):
        found = _LOOP.match(line)
        if found is None:
            continue
        args = list(split(found[2]))
        plain = [arg for arg in args if "=" not in arg]
        rest = [arg for arg in args if "=" in arg]
        full = ["0", plain[0], "1"] if len(plain) == 1 else [*plain, "1"][:3]
        changed = change(full) if _trips(full) != 1 else None
        if changed is not None:
            yield lines.text({at: found[1] + ", ".join([*changed, *rest]) + found[3]})


def _trips(bounds: list[str]) -> int | None:
    """How often a loop runs, where that is known."""
    if not all(re.fullmatch(r"-?\d+", bound) for bound in bounds):
        return None
    return len(range(*map(int, bounds)))


def _plus(text: str, by: str) -> str:
    return str(int(text) + int(by)) if re.fullmatch(r"-?\d+", text) and re.fullmatch(r"-?\d+", by) else f"{text} + {by}"


@kind("control")
def one_trip_less(base: Base, lines: Lines) -> Iterator[str]:
    """A loop ends one trip early."""
    yield from _bounds(lines, lambda b: [b[0], _plus(b[1], "-" + b[2]), b[2]] if b[2].isdigit() else None)


@kind("control")
def one_trip_more(base: Base, lines: Lines) -> Iterator[str]:
    """A loop ends one trip late."""
    yield from _bounds(lines, lambda b: [b[0], _plus(b[1], b[2]), b[2]])


@kind("control")
def first_trip_left_out(base: Base, lines: Lines) -> Iterator[str]:
    """A loop begins one trip late."""
    yield from _bounds(lines, lambda b: [_plus(b[0], b[2]), b[1], b[2]])


@kind("control")
def every_other_trip(base: Base, lines: Lines) -> Iterator[str]:
    """A loop's step is twice what it was."""
    yield from _bounds(lines, lambda b: [b[0], b[1], str(2 * int(b[2]))] if b[2].isdigit() else None)


@kind("control")
def trips_half_as_far_apart(base: Base, lines: Lines) -> Iterator[str]:
    """A loop's step is half of what it was, so that trips overlap."""
    yield from _bounds(lines, lambda b: [b[0], b[1], str(int(b[2]) // 2)] if b[2].isdigit() and int(b[2]) > 1 else None)


@kind("control")
def sequence_made_parallel(base: Base, lines: Lines) -> Iterator[str]:
    """Trips that need one another's results become work items."""
    for at, line in enumerate(lines.lines):
        if _LOOP.match(line) and "pl.range(" in line:
            yield lines.text({at: line.replace("pl.range(", "pl.parallel(")})


def _yields(lines: Lines) -> Iterator[tuple[int, re.Match[str], list[str]]]:
    for at, line in enumerate(lines.lines):
        found = _YIELD.match(line)
        if found is not None:
            yield at, found, list(split(found[2]))


@kind("control")
def carry_crossed(base: Base, lines: Lines) -> Iterator[str]:
    """Two values change places where a trip, or an arm, hands them on."""
    for at, found, values in _yields(lines):
        for k in range(len(values) - 1):
            crossed = [*values[:k], values[k + 1], values[k], *values[k + 2 :]]
            yield lines.text({at: found[1] + ", ".join(crossed) + found[3]})


@kind("control")
def carry_handed_on_twice(base: Base, lines: Lines) -> Iterator[str]:
    """One value is handed on under two names, another is lost."""
    for at, found, values in _yields(lines):
        if len(values) > 1:
            yield lines.text({at: found[1] + ", ".join([values[-1], *values[1:]]) + found[3]})


@kind("control")
def start_crossed(base: Base, lines: Lines) -> Iterator[str]:
    """Two values change places where a loop starts."""
    for at, line in enumerate(lines.lines):
        found = re.search(r"init_values=\((.+)\)\):$", line)
        values = list(split(found[1])) if found else []
        for k in range(len(values) - 1):
            crossed = [*values[:k], values[k + 1], values[k], *values[k + 2 :]]
            yield lines.text({at: line.replace(f"({', '.join(values)})", f"({', '.join(crossed)})")})


@kind("control")
def update_lost(base: Base, lines: Lines) -> Iterator[str]:
    """A loop carries what it started the trip with instead of what the trip made."""
    for at, found, values in _yields(lines):
        head = next((i for i in range(at, -1, -1) if lines.lines[i].lstrip().startswith("for ")), None)
        carried = re.search(r"for \w+, \(([^)]*)\)", lines.lines[head]) if head is not None else None
        names = [name for name in carried[1].split(", ") if name] if carried else []
        names = [name.rstrip(",") for name in names]
        if len(names) != len(values):
            continue
        for k, name in enumerate(names):
            if name != values[k]:
                yield lines.text({at: found[1] + ", ".join([*values[:k], name, *values[k + 1 :]]) + found[3]})


@kind("control")
def results_crossed(base: Base, lines: Lines) -> Iterator[str]:
    """After a loop, one of its results is taken for another."""
    for at, found, _ in _yields(lines):
        names = [name.strip() for name in found[1].split(" = ")[0].split(",") if name.strip()]
        if len(names) < 2:
            continue
        for later in range(at + 1, lines.end_of(at)):
            for a, b in pairwise(names):
                line = lines.lines[later]
                new = re.sub(rf"(?<![\w\".]){a}(?![\w\"=])", b, line)
                if new != line and " = pl." in line:
                    yield lines.text({later: new})


def _conditions(lines: Lines, change: Callable[[str], str]) -> Iterator[str]:
    for at, line in enumerate(lines.lines):
        found = re.match(r"^(\s*if )(.+)(:)$", line)
        if found is not None:
            yield lines.text({at: found[1] + change(found[2]) + found[3]})


@kind("control")
def condition_turned(base: Base, lines: Lines) -> Iterator[str]:
    """A branch takes the other arm."""
    yield from _conditions(lines, lambda c: c.replace("<", ">=") if "<" in c else f"not ({c})")


@kind("control")
def bound_off_by_one(base: Base, lines: Lines) -> Iterator[str]:
    """A branch asks for at most instead of less than."""
    yield from _conditions(lines, lambda c: c.replace(" < ", " <= "))


@kind("control")
def condition_constant(base: Base, lines: Lines) -> Iterator[str]:
    """A branch takes its first arm always."""
    yield from _conditions(lines, lambda c: "n < 1000000")


@kind("control")
def arm_hands_on_something_else(base: Base, lines: Lines) -> Iterator[str]:
    """An arm hands on an operand of what it should hand on."""
    for at, found, values in _yields(lines):
        made = [s for s in lines.by_name.get(values[0], []) if s.at < at and s.buffer is not None]
        source = lines.operand(made[-1], 0) if made and len(values) == 1 else None
        if source is not None:
            yield lines.text({at: found[1] + source.name + found[3]})


@kind("control")
def used_before_it_is_made(base: Base, lines: Lines) -> Iterator[str]:
    """A statement stands before the one that makes its operand."""
    for stmt in lines.statements:
        following = next((s for s in lines.statements if s.at == stmt.at + 1), None)
        if following is not None and stmt.name in following.args:
            yield lines.swapped(stmt.at, following.at)


# --- calls ----------------------------------------------------------------------------------------------------------
_CALL = re.compile(r"^(\s*\w+ = self\.)(\w+)\((.*)\)$")


@kind("calls")
def arguments_crossed(base: Base, lines: Lines) -> Iterator[str]:
    """Two arguments of a launch change places."""
    for at, line in enumerate(lines.lines):
        found = _CALL.match(line)
        values = list(split(found[3])) if found else []
        for k in range(len(values) - 1):
            crossed = [*values[:k], values[k + 1], values[k], *values[k + 2 :]]
            assert found is not None
            yield lines.text({at: f"{found[1]}{found[2]}({', '.join(crossed)})"})


@kind("calls")
def another_function_launched(base: Base, lines: Lines) -> Iterator[str]:
    """Another function is launched on the same arguments."""
    calls = [(at, found) for at, line in enumerate(lines.lines) if (found := _CALL.match(line))]
    for at, found in calls:
        for _, other in calls:
            if other[2] != found[2]:
                yield lines.text({at: f"{found[1]}{other[2]}({found[3]})"})


@kind("calls")
def launch_dropped(base: Base, lines: Lines) -> Iterator[str]:
    """A launch is left out, and what it should fill is read as it is."""
    for at, line in enumerate(lines.lines):
        found = _CALL.match(line)
        if found is None:
            continue
        name = found[1].split("=")[0].strip()
        for given in split(found[3]):
            changes: dict[int, str | None] = {at: None}
            for later in range(at + 1, lines.end_of(at)):
                changes[later] = re.sub(rf"\b{name}\b", given, lines.lines[later])
            yield lines.text(changes)


@kind("calls")
def output_said_to_be_input(base: Base, lines: Lines) -> Iterator[str]:
    """A function writes a parameter that it says it only reads."""
    for at, line in enumerate(lines.lines):
        found = re.search(r"pl\.Out\[(pl\.Tensor\[\[.*?\], pl\.\w+\])\]", line)
        if found is not None:
            yield lines.text({at: line.replace(found[0], found[1], 1)})
