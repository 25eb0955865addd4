"""Timelines in Chrome's trace format: what a viewer needs to be able to draw them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from execute.test_simulator import ITEMS, simulated
from execute.toy import program, toy
from properties.judges import ASCEND

from tilewright.execute import trace
from tilewright.execute.simulation import SimulationResult
from tilewright.execute.simulator import simulate
from tilewright.targets import load_target

Event = dict[str, Any]


def events(found: SimulationResult) -> list[Event]:
    """The events as a viewer reads them."""
    return json.loads(json.dumps(found.trace()))["traceEvents"]


def tracks(found: list[Event]) -> dict[tuple[int, int], list[Event]]:
    """The slices of each track in the order of their starts."""
    slices: dict[tuple[int, int], list[Event]] = {}
    for event in found:
        if event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
    return {track: sorted(found, key=lambda event: event["ts"]) for track, found in slices.items()}


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("kernel", ["softmax", "matmul", "classify"])
def test_a_viewer_can_draw_it(kernel: str, target: str) -> None:
    found = simulated(kernel, target)
    drawn = events(found)
    named = {(e["pid"], e.get("tid")) for e in drawn if e["ph"] == "M" and e["name"] == "thread_name"}
    slices = tracks(drawn)
    work = {track: found for track, found in slices.items() if track[0] != trace.LAUNCHES}
    assert set(work) <= named
    for on_track in slices.values():
        assert all(event["dur"] > 0 and event["ts"] >= 0 for event in on_track)
        for before, after in pairwise(on_track):
            assert before["ts"] + before["dur"] <= after["ts"], "an engine does one thing at a time"
            # A viewer cuts start and duration to whole nanoseconds, each on its own.
            assert int(1000 * before["ts"]) + int(1000 * before["dur"]) <= int(1000 * after["ts"])
        assert on_track[-1]["ts"] + on_track[-1]["dur"] <= found.cycles * (1 + 1e-9)
    ends = {(e["ph"], e["id"]): e for e in drawn if e["ph"] in "sf"}
    arrows = {number for _, number in ends}
    assert arrows
    assert len(ends) == 2 * len(arrows) == sum(e["ph"] in "sf" for e in drawn)
    for number in arrows:
        leaves, arrives = ends["s", number], ends["f", number]
        assert leaves["ts"] <= arrives["ts"]
        assert (leaves["pid"], leaves["name"]) == (arrives["pid"], arrives["name"])
        for end in (leaves, arrives):
            on_track = slices[end["pid"], end["tid"]]
            assert any(s["ts"] <= end["ts"] < s["ts"] + s["dur"] for s in on_track), "an arrow ends in a slice"
    names = [event["name"] for on_track in work.values() for event in on_track]
    assert all(".py:" in name for name in names), "slices are named by operation and source line"


@pytest.mark.parametrize("target", ASCEND)
def test_memories_fill_and_empty(target: str) -> None:
    machine = load_target(target)
    counters: dict[tuple[int, str], list[Event]] = {}
    for event in events(simulated("matmul", target)):
        if event["ph"] == "C":
            counters.setdefault((event["pid"], event["name"]), []).append(event)
    assert {name for _, name in counters} == {f"bytes in {memory}" for memory in ("L1", "L0A", "L0B", "L0C")}
    for (_, name), found in counters.items():
        values = [event["args"]["bytes"] for event in found]
        capacity = machine.memories[name.removeprefix("bytes in ")].capacity
        assert capacity is not None
        assert 0 < max(values) <= capacity
        assert min(values) >= 0
        assert values[-1] == 0
        assert [event["ts"] for event in found] == sorted(event["ts"] for event in found)


def test_what_occupies_bytes(tmp_path: Path) -> None:
    """x is in its buffer from the start of the load (0) to the end of the exp (31), y from 18 to the end of its store
    (49), in both cores."""
    drawn = events(simulate(program(ITEMS), toy(tmp_path, cores=2)))
    by_core: dict[int, list[tuple[float, int]]] = {}
    for event in drawn:
        if event["ph"] == "C":
            by_core.setdefault(event["pid"], []).append((event["ts"], event["args"]["bytes"]))
    assert list(by_core.values()) == [[(0, 256), (18, 512), (31, 256), (49, 0)]] * 2


def test_the_critical_path_is_marked_and_waits_are_named(tmp_path: Path) -> None:
    drawn = events(simulate(program(ITEMS), toy(tmp_path, cores=2, shared=32)))
    slices = [event for event in drawn if event["ph"] == "X" and event["pid"] != trace.LAUNCHES]
    assert len(slices) == 6
    assert all(event["args"]["critical"] for event in slices), "both cores do the same at the same time"
    loads, exps, _ = slices[:3]
    assert loads["args"]["slowed by DDR"] == 8
    assert (loads["args"]["edge"], loads["args"]["bytes"]) == ("DDR -> SP", 256)
    assert exps["args"]["waited for"] == "IN: read after write of SP"


def test_many_cores_are_drawn_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trace, "MOST_SLICES", 5)
    drawn = events(simulate(program(ITEMS), toy(tmp_path, cores=2)))
    processes = [event["args"]["name"] for event in drawn if event["name"] == "process_name"]
    assert processes == ["launches", "core 0 (and 1 like it)"]
