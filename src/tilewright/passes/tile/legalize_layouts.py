"""Legal layouts: physical shapes of whole boxes, and layouts that instructions accept; meaning stays where it was.

Before (910B):  x = pl.tile.load(a, [0, 0], [17, 72], target_memory=pl.Mem.Mat)                            # FP16
After:          x = pl.tile.load(a, [0, 0], [32, 80], valid_shape=[17, 72], target_memory=pl.Mem.Mat, ...)

In this order:
  - Transposing loads say how their tiles lie (`ZN` in boxes), or become a load and a transposition.
  - Physical extents are rounded up per class of dimensions that operations tie together (`analysis.extents`). A
    reshape that a box gets in the way of goes through a temporary tensor.
    Vectors that would be rounded up like the matrices they meet, where an operation wants or makes one row or column,
    are kept apart first.
  - Operands of a product whose K is no multiple of the box are filled with zeros, both of them. Where such a tile and
    another become one value, it is handed on as one that promises nothing of what is outside its valid part.
  - Column vectors are turned into rows, without a copy, around operations that work on rows.
  - Layouts that a space does not imply on this target, and the compactness of tiles that the matrix engine packs by
    their valid shape, are written into the types.

Machines without boxes keep their shapes.

Refuses: an operation whose result cannot have the shape that a box asks for, and an elementwise or reducing operation
on a column vector that mixes it with others (`UnsupportedError`)."""

from __future__ import annotations

from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.passes.tile.layouts.apart import keep_vectors_apart
from tilewright.passes.tile.layouts.joins import agree_on_padding
from tilewright.passes.tile.layouts.marks import mark_layouts
from tilewright.passes.tile.layouts.padding import pad_products
from tilewright.passes.tile.layouts.resize import resize
from tilewright.passes.tile.layouts.transposed import turn_loads
from tilewright.passes.tile.layouts.vectors import turn_vectors
from tilewright.targets import Target


def legalize_layouts(program: Program, target: Target) -> Program:
    """Requires legal moves and element types, and constant physical shapes. Ensures `analysis.legality.check_legal`."""

    def function(function: Function) -> Function:
        if function.kind is not FunctionKind.INCORE:
            return function
        # Before resizing: a tile turned over has another box.
        function = turn_loads(function, target)
        function = keep_vectors_apart(function, target)
        function = resize(function, target)
        function = agree_on_padding(pad_products(function))
        # After resizing: a column of one element grows to a box of them, and only then differs from a row.
        function = turn_vectors(function, target)
        return mark_layouts(function, target)

    return program.map(function)
