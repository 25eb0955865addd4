"""A section as parts that have nothing to do with each other: each gets a grid of its own."""

from __future__ import annotations

from tilewright.analysis.spaces import read_tensor, tile_operands
from tilewright.ir.function import Function
from tilewright.ir.nodes import Let
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import Roots, written_operand
from tilewright.ir.types import TensorType, TileType
from tilewright.passes.tile.partition.stages import is_leaf


class UncutError(Exception):
    """The section stays as it is; the message is the reason."""


def body_of(function: Function) -> tuple[Let, ...]:
    """The statements of a section without its return. Raises `UncutError` when they are no straight line."""
    lets: list[Let] = []
    for stmt in function.body[:-1]:
        if not isinstance(stmt, Let):
            raise UncutError("it has loops or branches of its own")
        if isinstance(stmt.value, Op) and stmt.value.effect is not Effect.PURE:
            raise UncutError(f"{stmt.value.qualified_name} must be done once")
        lets.append(stmt)
    return tuple(lets)


def parts_of(function: Function, lets: tuple[Let, ...], roots: Roots) -> tuple[tuple[Let, ...], list[tuple[Let, ...]]]:
    """What stands before all parts (scalars, rooms in DDR), and the parts, in the order of their first stores. Loads
    belong to every part that reads them; what no store needs belongs to none. Raises `UncutError`."""
    made = {stmt.target: stmt for stmt in lets}
    written = {roots[out] for stmt in lets if (out := _written(stmt)) is not None}
    depends = _on_tiles(lets)
    before = tuple(stmt for stmt in lets if stmt.target not in depends and not isinstance(stmt.target.type, TileType))
    early = set(before)
    for stmt in before:
        if isinstance(stmt.value, Op) and any(roots.get(v) in written for _, v in stmt.value.operand_items()):
            raise UncutError(f"it reads single elements of a tensor that it writes ({stmt.target.name})")
    for value in function.results:
        if isinstance(value, Value) and value in made and value not in roots and made[value] not in early:
            raise UncutError(f"it returns the scalar {value.name!r}, which tiles give")
    read = {roots[v] for stmt in lets if (v := _read(stmt)) is not None} & written
    grouped = _grouped(lets, made, early, read, roots)
    found = _by_group(lets, grouped)
    if not _in_order(found):
        found = _by_group(lets, _grouped(lets, made, early, written, roots))
    return before, [_needed(stores, lets, made, early) for stores in found]


def _grouped(
    lets: tuple[Let, ...], made: dict[Value, Let], early: set[Let], together: set[Value], roots: Roots
) -> _Groups:
    """What has to be in one part: what computes with each other's tiles, and what touches a tensor of `together`."""
    groups = _Groups()
    for stmt in lets:
        if stmt not in early and not (is_leaf(stmt) and _written(stmt) is None):
            for value in _operands(stmt):
                if isinstance(value.type, TensorType):
                    continue
                if value in made and not is_leaf(made[value]) and made[value] not in early:
                    groups.join(stmt.target, value)
        for _, value in stmt.value.operand_items() if isinstance(stmt.value, Op) else ():
            if roots.get(value) in together:
                groups.join(stmt.target, roots[value])
    return groups


def _by_group(lets: tuple[Let, ...], groups: _Groups) -> list[list[Let]]:
    """The stores of each part."""
    found: dict[Value, list[Let]] = {}
    for stmt in lets:
        if _written(stmt) is not None:
            found.setdefault(groups.root(stmt.target), []).append(stmt)
    return list(found.values())


def _in_order(parts: list[list[Let]]) -> bool:
    """Whether each tensor gets its versions in the order of the parts: every store finds the one before it made."""
    there: set[Value] = set()
    stored = {stmt.target for part in parts for stmt in part}
    for part in parts:
        for stmt in part:
            out = _written(stmt)
            if out in stored and out not in there:
                return False
            there.add(stmt.target)
    return True


def _read(stmt: Let) -> Value | None:
    return read_tensor(stmt.value) if isinstance(stmt.value, Op) else None


def _written(stmt: Let) -> Value | None:
    return written_operand(stmt.value) if isinstance(stmt.value, Op) else None


def _operands(stmt: Let) -> list[Value]:
    return stmt.value.uses() if isinstance(stmt.value, Op) else list(stmt.uses())


def _on_tiles(lets: tuple[Let, ...]) -> set[Value]:
    """Tiles, and whatever is made of them."""
    found: set[Value] = set()
    for stmt in lets:
        tiles = isinstance(stmt.value, Op) and (tile_operands(stmt.value) or _written(stmt) is not None)
        if tiles or isinstance(stmt.target.type, TileType) or any(v in found for v in _operands(stmt)):
            found.add(stmt.target)
    return found


def _needed(stores: list[Let], lets: tuple[Let, ...], made: dict[Value, Let], early: set[Let]) -> tuple[Let, ...]:
    found: set[Let] = set(early)
    todo = list(stores)
    while todo:
        stmt = todo.pop()
        if stmt in found:
            continue
        found.add(stmt)
        # A store's own tensor is no computation: the version that it writes over may be another part's.
        todo += [made[v] for v in _operands(stmt) if v in made and not isinstance(v.type, TensorType)]
    return tuple(stmt for stmt in lets if stmt in found and stmt not in early)


class _Groups:
    def __init__(self) -> None:
        self.parent: dict[Value, Value] = {}

    def root(self, value: Value) -> Value:
        path: list[Value] = []
        while self.parent.setdefault(value, value) is not value:
            path.append(value)
            value = self.parent[value]
        for passed in path:
            self.parent[passed] = value
        return value

    def join(self, a: Value, b: Value) -> None:
        left, right = self.root(a), self.root(b)
        if left is not right:
            self.parent[right] = left


def check_tensors(lets: tuple[Let, ...], roots: Roots) -> None:
    """Raises `UncutError` where a part reads back from DDR what it stored itself."""
    stored = {stmt.target for stmt in lets if _written(stmt) is not None}
    for stmt in lets:
        tensor = read_tensor(stmt.value) if isinstance(stmt.value, Op) else None
        if tensor in stored:
            raise UncutError(f"{stmt.target.name} is read back from {tensor.name!r}, which it wrote")  # type: ignore[union-attr]
