"""What the checker says: accepted with its assumptions listed, or the facts that fail, each with its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tilewright.errors import UNKNOWN, Span, render_carets

FACTS = (
    "structure",
    "spaces",
    "layouts",
    "edges",
    "dtypes",
    "footprints",
    "capacity",
    "buffers",
    "overlap",
    "bounds",
    "valid shapes",
    "parallel",
    "coverage",
    "order",
    "certificate",
    "program",
)
"""The kinds of fact, in the order in which they are asked. ``certificate``: a claim that the program does not bear
out; ``program``: the certificate was written for another program text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact that does not hold."""

    fact: str
    """one of `FACTS`"""
    message: str
    span: Span = UNKNOWN
    other: Span | None = None
    """the second line, where two statements are at odds"""
    function: str = ""
    required: str | None = None
    found: str | None = None

    def __str__(self) -> str:
        where = f" {self.span}" if self.span.line else ""
        lines = [f"{self.fact}{where}: {self.message}"]
        lines += render_carets(self.span) if self.span.line else []
        if self.other is not None and self.other.line:
            lines += [f"  and {self.other}:", *render_carets(self.other)]
        lines += [
            f"  {label + ':':<9} {text}"
            for label, text in (("required", self.required), ("found", self.found))
            if text is not None
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something about the arguments of a call that must hold for the program to stay within bounds."""

    condition: str
    """``0 <= start and start + 16 <= n``"""
    reason: str
    """what rests on it: ``tile.load reads axis 0 of 'x'``"""
    span: Span = UNKNOWN
    function: str = ""

    def __str__(self) -> str:
        where = f" ({self.span})" if self.span.line else ""
        return f"{self.condition}: {self.reason}{where}"


@dataclass(slots=True)
class Verdict:
    """The outcome of a check. `counts`: how many facts of each kind were established."""

    findings: list[Finding] = field(default_factory=list[Finding])
    assumptions: list[Assumption] = field(default_factory=list[Assumption])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def accepted(self) -> bool:
        """Whether every fact holds, given the assumptions."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.accepted

    @property
    def facts(self) -> frozenset[str]:
        """The kinds of fact that fail."""
        return frozenset(finding.fact for finding in self.findings)

    def add(self, fact: str, findings: Iterable[Finding], count: int) -> None:
        """Note what was found while `count` facts of one kind were asked."""
        failed = list(findings)
        self.findings += failed
        self.counts[fact] = self.counts.get(fact, 0) + max(0, count - len(failed))

    def _lines(self) -> Iterator[str]:
        held = ", ".join(f"{count:,} {fact}" for fact, count in self.counts.items() if count)
        if self.accepted:
            yield f"accepted: {sum(self.counts.values()):,} facts hold ({held})"
            if self.assumptions:
                yield "provided that, at each call,"
                yield from (f"  {assumption}" for assumption in self.assumptions)
            return
        count = len(self.findings)
        yield f"rejected: {count} fact{'s do' if count > 1 else ' does'} not hold"
        for finding in self.findings:
            yield str(finding)

    def __str__(self) -> str:
        return "\n".join(self._lines())


class Notes:
    """Collects findings of one kind while it is asked for; at most `limit` are kept, one per place."""

    def __init__(self, function: str, limit: int = 20) -> None:
        self.function = function
        self.limit = limit
        self.findings: list[Finding] = []
        self.count = 0

    def fail(
        self,
        fact: str,
        message: str,
        span: Span = UNKNOWN,
        other: Span | None = None,
        *,
        required: str | None = None,
        found: str | None = None,
    ) -> None:
        """Note that a fact does not hold."""
        if len(self.findings) < self.limit:
            self.findings.append(Finding(fact, message, span, other, self.function, required, found))

    def ask(self, holds: bool, fact: str, message: str, span: Span = UNKNOWN, **more: str | None) -> bool:
        """Count one fact, and note it where it does not hold."""
        self.count += 1
        if not holds:
            self.fail(fact, message, span, required=more.get("required"), found=more.get("found"))
        return holds
