"""One program on several simulated sites at once: each interprets it on arguments of its own, and they meet in
`tensor.all_reduce` and `tensor.recv`.

Every site is a thread. An all-reduce waits until all sites have come to it with an array of the same shape; sums are
taken in the order of the sites, so that every site gets the same bits. Messages are given by the caller. A site that
fails wakes the others, and the first failure is what the caller sees."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.execute.interpreter import interpret
from tilewright.ir.function import Program
from tilewright.ir.op import Array
from tilewright.ops.collective import SITE

PATIENCE = 60.0
"""Seconds that a site waits for the others before it is an error (assumed)."""


def run_sites(
    program: Program, arguments: Sequence[Sequence[Any]], sent: Mapping[str, Sequence[Sequence[Array]]] | None = None
) -> list[tuple[Any, ...]]:
    """Runs the entry once per site, on `arguments[site]`; outputs are written in place. `sent[channel][site]` are the
    arrays that the site receives over the channel, in order. Returns what the entry returns, per site. Raises what the
    interpreter raises, and `ArgumentError` where sites do not meet."""
    network = _Network(len(arguments), sent or {})
    results: list[tuple[Any, ...]] = [()] * len(arguments)

    def run(site: int) -> None:
        SITE.set(_Site(network, site))
        try:
            results[site] = interpret(program, arguments[site])
        except TilewrightError as error:
            network.fail(error)
        finally:
            network.leave()

    threads = [threading.Thread(target=run, args=(site,), daemon=True) for site in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if network.failure is not None:
        raise network.failure
    return results


class _Network:
    """Where sites meet. One meeting at a time: everybody brings an array, and takes the sum."""

    def __init__(self, sites: int, sent: Mapping[str, Sequence[Sequence[Array]]]) -> None:
        self.sites = sites
        self.sent = sent
        self.failure: TilewrightError | None = None
        self.gone = 0
        self.brought: dict[int, tuple[str, Array]] = {}
        self.sum: Array | None = None
        self.taken = 0
        self.changed = threading.Condition()

    def fail(self, error: TilewrightError) -> None:
        with self.changed:
            self.failure = self.failure or error
            self.changed.notify_all()

    def leave(self) -> None:
        with self.changed:
            self.gone += 1
            self.changed.notify_all()

    def meet(self, site: int, group: str, own: Array) -> Array:
        """The sum of what all sites bring to this meeting."""
        with self.changed:
            self.wait(lambda: self.sum is None)
            self.brought[site] = (group, own.copy())
            if len(self.brought) == self.sites:
                self.sum = self.total()
                self.changed.notify_all()
            self.wait(lambda: self.sum is not None)
            found = self.sum
            assert found is not None
            self.taken += 1
            if self.taken == self.sites:
                self.brought, self.sum, self.taken = {}, None, 0
                self.changed.notify_all()
            return found

    def total(self) -> Array:
        groups = {group for group, _ in self.brought.values()}
        shapes = {array.shape for _, array in self.brought.values()}
        if len(groups) > 1 or len(shapes) > 1:
            raise ArgumentError(
                "sites meet in different sums",
                required="one group and one shape",
                found=f"groups {sorted(groups)}, shapes {sorted(map(list, shapes))}",
                help="every site must come to the same all_reduce",
            )
        arrays = [self.brought[site][1] for site in range(self.sites)]
        total = arrays[0].copy()
        for array in arrays[1:]:
            total = (total + array).astype(total.dtype)
        return total

    def wait(self, ready: Any) -> None:
        def over() -> bool:
            return bool(ready()) or self.failure is not None or (self.gone > 0 and len(self.brought) < self.sites)

        if not self.changed.wait_for(over, PATIENCE) or not ready():
            raise self.failure or ArgumentError(
                "a site waits for sites that do not come",
                required=f"{self.sites} sites at the all_reduce",
                found=f"{len(self.brought)}",
                help="every site must come to every all_reduce, as often as the others",
            )


class _Site:
    def __init__(self, network: _Network, number: int) -> None:
        self.network = network
        self.number = number
        self.received: dict[str, int] = {}

    def all_reduce(self, group: str, own: Array) -> Array:
        return self.network.meet(self.number, group, own)

    def recv(self, channel: str) -> Array:
        at = self.received.get(channel, 0)
        sent = self.network.sent.get(channel)
        if sent is None or at >= len(sent[self.number]):
            raise ArgumentError(
                f"site {self.number} waits for a message over {channel!r} that nobody sends",
                found=f"{at} messages, all received",
                help="say in `sent` what comes over the channel",
            )
        self.received[channel] = at + 1
        return np.array(sent[self.number][at])
