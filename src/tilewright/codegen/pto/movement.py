"""Loads, stores, moves, and the cube's matmul: everything that knows how boxes lie in L1, L0 and the accumulator.

The cube takes the extents m, k, n from the valid shapes of its operands and believes that blocks are packed by them. So
it writes the accumulator with the row pitch of m rounded up to its unit; and an operand of L0 whose blocks are not
where that packing puts them would be misread, which is an error here. What leaves the accumulator is read with the
tile's physical pitch, or packed when the tile is ``compact=1``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.codegen.pto.machine import Core, Value, integer_of, tile_of, view_of
from tilewright.codegen.pto.memory import DTYPES, Array, Layout, Tile, overlaps, packed, same_place, same_positions
from tilewright.codegen.pto.rounding import narrow, widen
from tilewright.codegen.pto.syntax import Operation
from tilewright.codegen.pto.tables import MATMUL_LIMIT, footprint
from tilewright.codegen.pto.vector import Handler, require_valid
from tilewright.errors import PTOError


def load(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    view, d = view_of(ins[0]), tile_of(outs[0])
    where = view.matrix()
    require_valid(op, "the view", (where.shape[0], where.shape[1]), d.valid)
    values = core.load(view.pointer, where, op.name)
    core.write(d, _bits(op, values, d.kind.dtype))


def _bits(op: Operation, values: Array, dtype: str) -> Array:
    """`values` as elements of `dtype`, which has their size: a DMA copies bits."""
    if values.dtype == DTYPES[dtype]:
        return values
    if values.dtype.itemsize != DTYPES[dtype].itemsize:
        raise PTOError(f"{op.name} between elements of different size", span=op.span)
    return np.ascontiguousarray(values).view(DTYPES[dtype])


def store(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, view = tile_of(ins[0]), view_of(outs[0])
    where = view.matrix()
    require_valid(op, "the view", (where.shape[0], where.shape[1]), a.valid)
    values = _leave(core, op, a)
    pointer = view.pointer
    if a.kind.loc == "acc" and pointer.dtype != a.kind.dtype:
        values = _fix_pipe(op, values, a.kind.dtype, pointer.dtype)
    values = _bits(op, values, pointer.dtype)
    if op.attributes.get("atomicType", "atomic_none") not in ("atomic_none", "atomic_add"):
        raise PTOError(f"atomic `{op.attributes['atomicType']}` is not modelled", span=op.span)
    if op.attributes.get("atomicType") == "atomic_add":
        with np.errstate(all="ignore"):
            old = core.load(pointer, where, op.name)
            values = narrow(np.add(widen(old), widen(values)), pointer.dtype)
    core.store(pointer, where, values, op.name)


def _leave(core: Core, op: Operation, a: Tile) -> Array:
    """The valid elements of `a` as a store or a move reads them, after the activation that the op asks for."""
    values = core.read(a, layout=a.box_pitch(core.arch) if a.kind.loc == "acc" else None)
    mode = op.attributes.get("reluPreMode", "no_relu")
    if mode == "normal_relu":
        return np.maximum(values, np.zeros((), values.dtype))
    if mode != "no_relu":
        raise PTOError(f"activation `{mode}` is not modelled", span=op.span)
    return values


def _fix_pipe(op: Operation, values: Array, source: str, target: str) -> Array:
    """What the pipe out of the accumulator makes of f32; everything else passes as it is or not at all."""
    if source == target:
        return values
    if source != "f32" or target not in ("f16", "bf16"):
        raise PTOError(f"{op.name} cannot make {target} of {source}", span=op.span, required="f32 to f16 or bf16")
    return narrow(values, target)


def _place(core: Core, tile: Tile) -> Layout:
    """The layout that a move writes `tile` in."""
    return tile.box_pitch(core.arch) if tile.kind.loc in ("left", "right", "acc") else tile.layout


def move(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, d = tile_of(ins[0]), tile_of(outs[0])
    core.guard(op, d, ins, elementwise=True)
    if a.kind.loc == "acc":
        require_valid(op, "the destination", d.valid, a.valid)
        core.write(d, _fix_pipe(op, _leave(core, op, a), a.kind.dtype, d.kind.dtype))
        return
    if a.kind.dtype != d.kind.dtype:
        raise PTOError(f"{op.name} between element types", span=op.span, found=f"{a.kind} to {d.kind}")
    if a.kind.loc != "mat":
        require_valid(op, "the destination", d.valid, a.valid)
        core.write(d, core.read(a), layout=_place(core, d))
        return
    if a.kind.shape != d.kind.shape:
        raise PTOError(f"{op.name} out of L1 needs equal shapes", span=op.span, found=f"{a.kind} to {d.kind}")
    # A move out of L1 takes whole boxes, padding included; into a compact tile, what is valid there.
    extent = d.valid if d.kind.compact == 1 else d.kind.shape
    core.write(d, core.read(a, (0, 0, *extent)), layout=_place(core, d))


def _aligned(op: Operation, tile: Tile, row: int, col: int) -> None:
    box = tile.kind.box
    if row % box[0] or col % box[1]:
        raise PTOError(
            f"{op.name} at ({row}, {col}) cuts a box",
            span=op.span,
            required=f"multiples of {box}",
            found=str(tile.kind),
        )


def extract(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, row, col, d = tile_of(ins[0]), integer_of(ins[1]), integer_of(ins[2]), tile_of(outs[0])
    _aligned(op, a, row, col)
    core.guard(op, d, ins, elementwise=False)
    whole = a.kind.loc == "mat" and d.kind.compact != 1
    extent = d.kind.shape if whole else d.valid
    if row < 0 or col < 0 or row + extent[0] > a.kind.rows or col + extent[1] > a.kind.cols:
        raise PTOError(
            f"{op.name} reads past its source",
            span=op.span,
            required=f"a box inside {a.kind.shape}",
            found=f"{extent} at ({row}, {col})",
            help="a part that ends early needs compact=1 and a smaller valid shape",
        )
    values = core.read(a, (row, col, *extent))
    if a.kind.dtype != d.kind.dtype:
        raise PTOError(f"{op.name} between element types", span=op.span, found=f"{a.kind} to {d.kind}")
    core.write(d, values, layout=_place(core, d))


def insert(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    a, row, col, d = tile_of(ins[0]), integer_of(ins[1]), integer_of(ins[2]), tile_of(outs[0])
    _aligned(op, d, row, col)
    core.guard(op, d, [a], elementwise=False)
    if row < 0 or col < 0 or row + a.v_row > d.kind.rows or col + a.v_col > d.kind.cols:
        raise PTOError(
            f"{op.name} writes past its destination",
            span=op.span,
            required=f"a box inside {d.kind.shape}",
            found=f"{a.valid} at ({row}, {col})",
        )
    core.write(d, _fix_pipe(op, _leave(core, op, a), a.kind.dtype, d.kind.dtype), (row, col))


def _operand(core: Core, op: Operation, tile: Tile) -> Array:
    """The valid elements of a tile of L0, if its blocks are where the cube looks for them."""
    layout = tile.box_pitch(core.arch)
    tight = packed(tile.layout, tile.v_row, tile.v_col, tile.kind, core.arch)
    if not same_positions(layout, tight, *tile.valid):
        raise PTOError(
            f"{op.name} would misread a {tile.kind.loc} tile of which a part is valid",
            span=op.span,
            required=f"blocks packed for a valid shape of {tile.valid}: compact=1",
            found=str(tile.kind),
        )
    return core.read(tile, layout=layout)


def matmul(core: Core, op: Operation, ins: Sequence[Value], outs: Sequence[Value]) -> None:
    accumulate, biased = op.name.endswith(".acc"), op.name.endswith(".bias")
    left, right = (tile_of(v) for v in (ins[1:3] if accumulate else ins[:2]))
    d = tile_of(outs[0])
    (m, k), (k_right, n) = left.valid, right.valid
    if k != k_right or not all(1 <= extent <= MATMUL_LIMIT for extent in (m, k, n)):
        raise PTOError(
            f"{op.name}: the valid shapes do not make a product",
            span=op.span,
            required=f"[m, k] and [k, n], each 1 to {MATMUL_LIMIT}",
            found=f"{left.valid} and {right.valid}",
        )
    layout = packed(d.layout, m, n, d.kind, core.arch)
    if layout.rows * layout.cols * 4 > footprint(d.kind, core.arch):
        raise PTOError(f"{op.name}: the product of {m} x {n} leaves the accumulator", span=op.span, found=str(d.kind))
    values = _product(_operand(core, op, left), _operand(core, op, right))
    if accumulate:
        start = tile_of(ins[0])
        if overlaps(start, d) and not same_place(start, d):
            raise PTOError(f"{op.name}: the two accumulators overlap", span=op.span)
        values = _add(core.read(start, (0, 0, m, n), layout), values)
    if biased:
        bias = tile_of(ins[2])
        require_valid(op, "the bias", bias.valid, (1, n))
        values = _add(core.read(bias), values)
    # Whole boxes are written: what lies past the valid shape has no meaning.
    core.poison(d, (0, 0, layout.rows, layout.cols), layout)
    core.write(d, values, layout=layout)


def _add(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.add(a, b)


def _product(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        if a.dtype.kind == "i":
            # Sums of products of bytes are exact in f64, whose product is the fast one.
            return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)
        return np.matmul(a.astype(np.float32), b.astype(np.float32))


HANDLERS: dict[str, Handler] = {
    "tload": load,
    "tstore": store,
    "tmov": move,
    "textract": extract,
    "tinsert": insert,
    **dict.fromkeys(("tmatmul", "tmatmul.acc", "tmatmul.bias"), matmul),
}
"""The function for each instruction that moves or multiplies, by its name without ``pto.``."""
