"""Calls that stand for an operation under another name or with its arguments in another order.

    pl.gather(x, -1, index)                            the operation's own order is x, index, dim
    pl.gather(x, mask_pattern=1)                       gather_mask
    d, c = pl.gather(x, kvalue=k, cmp_mode="gt", ...)  gather_compare_indices and _count
    pl.mrgsort(x, block_len=64)                        mrgsort_format1
    pl.scatter_update(cache, -2, index, rows)          the operation's own order is cache, index, rows, dim
    pl.fillpad(window)                                 of a tensor: fillpad_expand, to what the window was cut as

Whatever else a call gives goes to the operation as it stands, which refuses what it does not take.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tilewright.errors import CallError, Span
from tilewright.frontend.context import Context
from tilewright.frontend.operations import Arguments, call_operation
from tilewright.frontend.operators import level_of, shape_of
from tilewright.ir.nodes import Let, Scope, Stmt, result_of
from tilewright.ir.op import Level, is_array
from tilewright.ir.scalar import BinaryKind, Shape, Value, binary
from tilewright.ir.types import TensorType
from tilewright.ops.shape import Slice

Given = tuple[object, Span, ast.expr]
Spelling = Callable[[Level | None, Arguments], tuple[str, ...]]
"""Rearranges the arguments; returns the operations that get them, one for each result."""


def call_spelled(
    context: Context, path: str, name: str, level: Level | None, arguments: Arguments, statement: bool
) -> object:
    """The result of a call of ``pl.<path>``, which names the operation `name`; a tuple where it stands for several.
    Raises what `call_operation` does."""
    spelling = SPELLINGS.get(path.rpartition(".")[2])
    if path.endswith("fillpad") and (shape := _cut_as(context, arguments)) is not None:
        if len(arguments.positional) > 1:
            arguments.keywords["pad_value"] = arguments.positional.pop()
        arguments.keywords["shape"] = (shape, arguments.span, arguments.node)
        return call_operation(context, "fillpad_expand", level, arguments, statement)
    names = (name,) if spelling is None else spelling(level or level_of(*arguments.values()), arguments)
    results = [call_operation(context, spelled, level, arguments, statement) for spelled in names]
    return results[0] if len(results) == 1 else tuple(results)


def _cut_as(context: Context, arguments: Arguments) -> Shape | None:
    """The extents of the window that the first argument, a tensor, is the valid part of, where it was cut in this
    block, in one around it, or in a section before it."""
    given = next(iter(arguments.values()), None)
    if not isinstance(given, Value) or not isinstance(given.type, TensorType):
        return None
    return next((cut for block in (context.out, *reversed(context.around)) if (cut := _cut_in(block, given))), None)


def _cut_in(block: Sequence[Stmt], given: Value) -> Shape | None:
    for statement in reversed(block):
        if isinstance(statement, Let) and statement.target is given:
            cut = statement.value
            return cut.kept(cut.shape) if isinstance(cut, Slice) else None
        if isinstance(statement, Scope) and given in statement.results:
            inner = result_of(statement.body)[statement.results.index(given)]
            found = _cut_in(statement.body, inner) if isinstance(inner, Value) else None
            # A number that the section made itself is not known after it.
            return found if found is not None and all(isinstance(extent, int) for extent in found) else None
    return None


def _array(given: Given) -> bool:
    return is_array(given[0])


def _number_second(arguments: Arguments) -> None:
    """``(x, dim, ...)``: the dimension goes by its name."""
    if len(arguments.positional) > 1 and not _array(arguments.positional[1]):
        given = arguments.positional.pop(1)
        if given[0] is None:
            return
        if "dim" in arguments.keywords:
            raise CallError("'dim' is given twice", span=given[1])
        arguments.keywords["dim"] = given


def _gather(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    _number_second(arguments)
    if "mask_pattern" in arguments.keywords:
        return ("gather_mask",)
    if "kvalue" in arguments.keywords:
        return _compared(level, arguments)
    return ("gather",)


def _compared(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    return ("gather_compare_indices", "gather_compare_count")


def _scatter(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    """``(input, dim, index, src)``; the operation's own order is dst, src, indexes."""
    if "mask_pattern" in arguments.keywords:
        if "dst" in arguments.keywords and arguments.positional:
            arguments.keywords["src"] = arguments.positional.pop(0)
        return _scatter_mask(level, arguments)
    numbered = len(arguments.positional) > 1 and not _array(arguments.positional[1])
    _number_second(arguments)
    if numbered and len(arguments.positional) == 3:
        arguments.positional[1], arguments.positional[2] = arguments.positional[2], arguments.positional[1]
    elif numbered and len(arguments.positional) == 2:
        arguments.keywords["index"] = arguments.positional.pop(1)
    return ("scatter",)


def _scatter_mask(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    """``(dst, src, mask_pattern)``; of tensors ``(input, dst, mask_pattern)``: what is scattered comes first."""
    if len(arguments.positional) > 1 and _array(arguments.positional[1]):
        arguments.keywords["src"] = arguments.positional.pop(0 if level is Level.TENSOR else 1)
    return ("scatter_mask",)


def _scatter_update(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    _number_second(arguments)
    return ("scatter_update",)


def _mrgsort(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    if "block_len" in arguments.keywords:
        return ("mrgsort_format1",)
    return _scratch_last(level, arguments)


def _scratch_last(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    """Two to four sources, and last a scratch tile, which is as long as all of them."""
    *sources, last = arguments.positional or [(None, arguments.span, arguments.node)]
    values = [given[0] for given in sources]
    if len(values) >= 2 and all(isinstance(value, Value) for value in (*values, last[0])):
        total = shape_of(last[0])[-1]  # type: ignore[arg-type]
        for value in values:
            assert isinstance(value, Value)
            total = binary(BinaryKind.SUB, total, shape_of(value)[-1])
        if total == 0 and "tmp" not in arguments.keywords:
            arguments.keywords["tmp"] = arguments.positional.pop()
    if level is Level.TENSOR:
        arguments.keywords.pop("tmp", None)
    return ("mrgsort_format2",)


def _create(level: Level | None, arguments: Arguments) -> tuple[str, ...]:
    """How it lies, and what it waits for, is the compiler's choice."""
    layout = arguments.keywords.pop("layout", None)
    if layout is not None and getattr(layout[0], "name", "ND") != "ND":
        raise CallError("a new tensor lies row by row", span=layout[1], required="layout ND", found=str(layout[0]))
    for word in ("manual_dep", "transpose", "flat_layout"):
        arguments.keywords.pop(word, None)
    return ("create",)


SPELLINGS: dict[str, Spelling] = {
    "gather": _gather,
    "gather_compare": _compared,
    "scatter": _scatter,
    "scatter_mask": _scatter_mask,
    "scatter_update": _scatter_update,
    "mrgsort": _mrgsort,
    "mrgsort_format2": _mrgsort,
    **dict.fromkeys(("create", "create_tensor", "create_tile", "create_l1"), _create),
}
"""By the name that the call gives."""
