"""The operations. Importing this package registers every op class; `ir.op.registry()` lists them."""

from tilewright.ops import (
    batch,
    bits,
    bitwise,
    broadcast,
    cast,
    collective,
    create,
    elementwise,
    functions,
    gather,
    generate,
    joins,
    matmul,
    movement,
    pad,
    partial,
    parts,
    position,
    reduce,
    rows,
    scatter,
    select,
    shape,
    sort,
)
from tilewright.ops.broadcast import ColExpand, Expands, RowExpand
from tilewright.ops.cast import Cast
from tilewright.ops.create import Create, Full
from tilewright.ops.matmul import Matmul, MatmulAcc, MatmulBias
from tilewright.ops.movement import Load, Move, Store
from tilewright.ops.parts import Assemble, Extract, Read, Write
from tilewright.ops.select import Cmp, Sel
from tilewright.ops.shape import Reshape, SetValidShape, Slice, Transpose, TransposeView

__all__ = [
    "batch", "bits", "bitwise", "broadcast", "cast", "collective", "create", "elementwise", "functions", "gather",
    "generate", "joins", "matmul", "movement", "pad", "partial", "parts", "position", "reduce", "rows", "scatter",
    "select", "shape", "sort",
    "Assemble", "Cast", "Cmp", "ColExpand", "Create", "Expands", "Extract", "Full", "Load", "Matmul", "MatmulAcc",
    "MatmulBias", "Move", "Read", "Reshape", "RowExpand", "Sel", "SetValidShape", "Slice", "Store", "Transpose",
    "TransposeView", "Write",
]  # fmt: skip
