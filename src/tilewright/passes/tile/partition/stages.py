"""Passes over the blocks of one class of dimensions, in the order in which their sums are needed.

The maximum of a row needs one pass over its blocks; what is made of the maximum another; and so on. What has the class
is made anew in every pass that wants it, from the loads on; what has it not is made once, between passes."""

from __future__ import annotations

from tilewright.analysis.spaces import tile_operands
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import written_operand
from tilewright.passes.tile.partition.dimensions import Dim, Dimensions
from tilewright.passes.tile.partition.plan import Stages


def stages_of(lets: tuple[Let, ...], cls: Dim, dims: Dimensions) -> Stages:
    """Linear."""
    found = Stages()
    summed = {stmt.target for stmt in dims.summed.get(cls, ())}
    for stmt in lets:
        op, made = stmt.value, stmt.target
        used = op.uses() if isinstance(op, Op) else stmt.uses()
        stage = max((found.of.get(value, 0) for value in used), default=0)
        ends = made in summed or (isinstance(op, Op) and written_operand(op) is not None and _has(op, cls, dims))
        within = ends or dims.has(made, cls)
        found.of[made] = stage + 1 if ends else stage
        found.run.append(stage if within else None)
        found.ends.append(ends)
        if ends:
            found.count = max(found.count, stage + 1)
    return found


def _has(op: Op, cls: Dim, dims: Dimensions) -> bool:
    return any(dims.has(value, cls) for _, value in tile_operands(op))


def is_leaf(stmt: Let) -> bool:
    """Whether a statement makes a tile of no tile: it can be made again anywhere."""
    return isinstance(stmt.value, Op) and not tile_operands(stmt.value)


def within_pass(
    lets: tuple[Let, ...], stages: Stages, number: int, cls: Dim, rest: tuple[Dim, ...], dims: Dimensions
) -> tuple[int, ...]:
    """The positions of the statements of pass `number`: its ends and what of the class leads to them. What has not
    the class stays outside, unless it is in blocks of a pass further in (`rest`)."""
    made = {stmt.target: position for position, stmt in enumerate(lets)}
    todo = [p for p, (run, ends) in enumerate(zip(stages.run, stages.ends, strict=True)) if ends and run == number]
    found: set[int] = set(todo)
    while todo:
        op = lets[todo.pop()].value
        for _, value in op.operand_items() if isinstance(op, Op) else ():
            position = made.get(value)
            if position is None or position in found or stages.ends[position]:
                continue
            inner = any(dims.has(value, other) for other in rest)
            if dims.has(value, cls) or (inner and is_leaf(lets[position])):
                found.add(position)
                todo.append(position)
    return tuple(sorted(found))


def is_passable(lets: tuple[Let, ...], passes: tuple[Dim, ...], dims: Dimensions) -> bool:
    """Whether nothing that is in blocks of an inner pass would have to outlive it for the sake of an outer one."""
    for at, cls in enumerate(passes):
        rest = passes[at + 1 :]
        if not rest:
            return True
        stages = stages_of(lets, cls, dims)
        if any(run is None and _meets(stmt, rest, dims) for stmt, run in zip(lets, stages.run, strict=True)):
            return False
        for number in range(stages.count):
            body = within_pass(lets, stages, number, cls, rest, dims)
            inside = {lets[p].target for p in body}
            for position in body:
                stmt = lets[position]
                crossing: list[Value] = [stmt.target] if stages.ends[position] else []
                if isinstance(stmt.value, Op):
                    crossing += [value for _, value in tile_operands(stmt.value) if value not in inside]
                if any(dims.has(value, other) for value in crossing for other in rest):
                    return False
    return True


def _meets(stmt: Let, classes: tuple[Dim, ...], dims: Dimensions) -> bool:
    """Whether a statement that makes tiles of tiles has to do with one of `classes`."""
    if not isinstance(stmt.value, Op) or is_leaf(stmt):
        return False
    return any(dims.has(v, c) for v in (stmt.target, *(v for _, v in tile_operands(stmt.value))) for c in classes)
