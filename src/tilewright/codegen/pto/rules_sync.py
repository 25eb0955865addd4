"""Rules of §3: pipes, flags, signals between cores, sections, and what a module of several functions must say."""

from __future__ import annotations

from collections import Counter

from tilewright.codegen.pto.facts import Context, Finding
from tilewright.codegen.pto.syntax import Function, Module, Operation, walk
from tilewright.codegen.pto.tables import CROSS_CORE_IDS, EVENT_IDS, EVENT_PIPES, PIPES


def _pipe(ctx: Context, op: Operation, key: str) -> str:
    name = str(op.attributes.get(key, ""))
    pipe = name.removeprefix("PIPE_")
    ctx.require(name.startswith("PIPE_") and pipe in PIPES, "§3 pipe", op, f"`{name}` is no pipe")
    return pipe


def flag(ctx: Context, op: Operation) -> None:
    source, target = _pipe(ctx, op, "source"), _pipe(ctx, op, "target")
    ctx.require(source != target, "§3 flag pipes", op, f"a flag from {source} to itself orders nothing")
    if op.operands:
        event = ctx.constant(op.operands[0])
        ctx.require(event is None or 0 <= event < EVENT_IDS, "§3 event id", op, f"event {event} does not exist")
    else:
        _event(ctx, op)


def _event(ctx: Context, op: Operation) -> None:
    names = [f"EVENT_ID{i}" for i in range(EVENT_IDS)]
    name = str(op.attributes.get("event", ""))
    ctx.require(name in names, "§3 event id", op, f"`{name}` is not EVENT_ID0 to EVENT_ID{EVENT_IDS - 1}")


def event(ctx: Context, op: Operation) -> None:
    for key in ("source", "target"):
        name = str(op.attributes.get(key, ""))
        ctx.require(name in EVENT_PIPES, "§3 event type", op, f"`{name}` is no pipe event type")
    _event(ctx, op)


def barrier(ctx: Context, op: Operation) -> None:
    if op.name == "pto.barrier_sync":
        name = str(op.attributes.get("pipe"))
        ctx.require(name in EVENT_PIPES, "§3 event type", op, f"`{name}` is no pipe event type")
        return
    _pipe(ctx, op, "pipe")


def signal(ctx: Context, op: Operation) -> None:
    pipe = _pipe(ctx, op, "pipe")
    number = op.attributes.get("event")
    legal = isinstance(number, int) and 0 <= number < CROSS_CORE_IDS
    ctx.require(legal, "§3 cross-core id", op, f"signal {number} is outside 0 to {CROSS_CORE_IDS - 1}")
    if op.name == "pto.sync.set" and ctx.arch == "a5":
        ctx.require(pipe in ("FIX", "MTE3"), "§3 sync.set pipe a5", op, f"{pipe} cannot signal, FIX and MTE3 can")


RULES = {
    **dict.fromkeys(("set_flag", "wait_flag", "set_flag_dyn", "wait_flag_dyn"), flag),
    **dict.fromkeys(("record_event", "wait_event"), event),
    **dict.fromkeys(("barrier", "barrier_sync"), barrier),
    **dict.fromkeys(("sync.set", "sync.wait"), signal),
}
"""The rule of each synchronising operation, by its name without ``pto.``."""


def function_rules(ctx: Context, function: Function) -> None:
    """What a whole function must hold."""
    operations = list(walk(function.body))
    names = {op.name for op in operations}
    crossing = [op for op in operations if op.name in ("pto.sync.set", "pto.sync.wait")]
    if crossing and ctx.arch == "a3":
        ctx.require("pto.set_ffts" in names, "§3 set_ffts a3", crossing[0], "the function must hold pto.set_ffts")
    for op in operations:
        if op.name.startswith("pto.section.") and function.kind is not None:
            ctx.report("§3 section", op, "a function with a kernel kind has no sections")
    _paired_flags(ctx, operations)
    _paired_signals(ctx, operations)


def _paired_flags(ctx: Context, operations: list[Operation]) -> None:
    """A flag that is set somewhere is waited for somewhere, and the other way round."""
    sides: dict[str, dict[tuple[object, ...], Operation]] = {"set": {}, "wait": {}}
    dynamic: Counter[tuple[object, object]] = Counter()
    for op in operations:
        name = op.name.removeprefix("pto.")
        if name not in ("set_flag", "wait_flag", "record_event", "wait_event", "set_flag_dyn", "wait_flag_dyn"):
            continue
        source, target = op.attributes.get("source"), op.attributes.get("target")
        if op.operands:
            dynamic[source, target] += 1
            continue
        side = "set" if name in ("set_flag", "record_event") else "wait"
        sides[side].setdefault((source, target, op.attributes.get("event")), op)
    for side, other in (("set", "wait"), ("wait", "set")):
        for key, op in sides[side].items():
            met = key in sides[other] or dynamic[key[0], key[1]]
            ctx.require(bool(met), "§3 unmatched flag", op, f"nothing {other}s this flag")


def _paired_signals(ctx: Context, operations: list[Operation]) -> None:
    """With both cores in one function, each signal of one is taken by the other."""
    found: dict[tuple[str, str, object], Operation] = {}
    sections = [op for op in operations if op.name.startswith("pto.section.")]
    if len({op.name for op in sections}) < 2:
        return
    for section in sections:
        for op in walk(section.regions[0]):
            if op.name in ("pto.sync.set", "pto.sync.wait"):
                found.setdefault((section.name, op.name, op.attributes.get("event")), op)
    other_core = {"pto.section.cube": "pto.section.vector", "pto.section.vector": "pto.section.cube"}
    other_act = {"pto.sync.set": "pto.sync.wait", "pto.sync.wait": "pto.sync.set"}
    for (section, act, number), op in found.items():
        met = (other_core[section], other_act[act], number) in found
        ctx.require(met, "§3 unmatched signal", op, f"the other core has no {other_act[act]} {number}")


def module_rules(ctx: Context, module: Module) -> None:
    """Entries, calls and recursion."""
    functions = {function.name: function for function in module.functions}
    entries = [f for f in module.functions if "pto.entry" in f.attributes]
    first = module.functions[0]
    if len(module.functions) > 1 and not entries:
        ctx.findings.append(Finding("§3 entry", first.span.line, "of several functions, the kernels need `pto.entry`"))
    for function in entries or module.functions[:1]:
        if function.results:
            ctx.findings.append(Finding("§3 entry result", function.span.line, f"@{function.name} must return nothing"))
    calls = {
        name: {str(op.attributes["callee"]): op for op in walk(function.body) if "callee" in op.attributes}
        for name, function in functions.items()
    }
    for name, callees in calls.items():
        for callee, op in callees.items():
            ctx.require(callee in functions, "§2 call", op, f"there is no function @{callee}")
            if _reaches(calls, callee, name):
                ctx.report("§3 recursion", op, f"@{name} reaches itself")


def _reaches(calls: dict[str, dict[str, Operation]], start: str, goal: str) -> bool:
    seen: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            pending += calls.get(name, {})
    return False
