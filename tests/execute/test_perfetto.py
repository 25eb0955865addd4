"""The timeline of flash attention in Perfetto's own trace processor, which answers questions about it in SQL.

The package `perfetto` fetches that program when it is first used. Where it cannot, `$TRACE_PROCESSOR` may name it;
without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig, TraceProcessorException
from properties.judges import ASCEND, load_example

from tilewright.execute.trace import LAUNCHES

SHELL = "trace_processor_shell"
CANNOT = (OSError, subprocess.CalledProcessError, TraceProcessorException)
"""What the package raises where the program cannot be fetched or started."""


@pytest.fixture(scope="module", params=ASCEND)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """The events as they were written, and the processor that has read them."""
    module = load_example("flash_attention.py")
    trace = module.flash_attention.simulate(*module.arguments(), target=request.param).trace()
    path: Path = tmp_path_factory.mktemp("trace") / "flash_attention.json"
    path.write_text(json.dumps(trace))
    shell = os.environ.get("TRACE_PROCESSOR") or shutil.which(SHELL)
    try:
        processor = TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=shell))
    except CANNOT as error:
        reason = f"{type(error).__name__}; the package fetches it from the network"
        pytest.skip(f"Perfetto's trace processor cannot be had: {reason}")
    yield trace["traceEvents"], processor
    processor.close()


def test_every_slice_is_on_its_track(opened: tuple[Any, Any]) -> None:
    events, processor = opened
    wanted = Counter((e["pid"], e["tid"]) for e in events if e["ph"] == "X")
    rows = processor.query(
        "select process.pid as pid, thread.tid as tid, count(*) as slices from slice "
        "join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid) "
        "group by 1, 2"
    )
    assert {(row.pid, row.tid): row.slices for row in rows} == dict(wanted)
    names = processor.query("select name from process where name is not null")
    assert {row.name for row in names} >= {"launches"}
    assert wanted[LAUNCHES, 1] >= 1


def test_times_are_as_written(opened: tuple[Any, Any]) -> None:
    """One cycle is a thousand nanoseconds; nothing is negative, cut, or inside another on an engine."""
    events, processor = opened
    (row,) = processor.query(
        "select min(dur) as least, max(depth) as depth, max(ts + dur) - min(ts) as all_of_it from slice"
    )
    assert row.least > 0
    assert row.depth == 0
    last = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert abs(row.all_of_it - 1000 * last) <= 1
    errors = processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    assert [(row.name, row.value) for row in errors] == []


def test_flows_are_resolved(opened: tuple[Any, Any]) -> None:
    """Each arrow leads from one slice to another, which begins when the first has ended or later."""
    events, processor = opened
    arrows = sum(e["ph"] == "s" for e in events)
    (row,) = processor.query(
        "select count(*) as arrows, sum(after.ts + 1 < before.ts + before.dur) as wrong from flow "
        "join slice before on flow.slice_out = before.id join slice after on flow.slice_in = after.id"
    )
    assert arrows > 0
    assert (row.arrows, row.wrong) == (arrows, 0)


def test_memories_are_counters(opened: tuple[Any, Any]) -> None:
    events, processor = opened
    wanted = Counter(e["name"] for e in events if e["ph"] == "C")
    rows = processor.query(
        "select process_counter_track.name as name, count(*) as values_ from counter "
        "join process_counter_track on counter.track_id = process_counter_track.id group by 1"
    )
    assert {row.name.removesuffix(" bytes"): row.values_ for row in rows} == dict(wanted)
