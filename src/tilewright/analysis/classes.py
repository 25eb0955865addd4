"""Classes of things that must agree, by union-find: `parents` maps each to one of its class."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def representative(parents: dict[T, T], item: T) -> T:
    """The representative of the class of `item`, always the same object; one never seen stands for itself from here
    on. Shortens the path that it walks."""
    path: list[T] = []
    while (parent := parents.setdefault(item, item)) is not item:
        path.append(item)
        item = parent
    for passed in path:
        parents[passed] = item
    return item
