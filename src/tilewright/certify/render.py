"""Values by the statement that makes them, so that a certificate speaks of a program whatever its names are.

``%12`` is made by statement 12, ``%12.1`` its second result, ``%7.i`` the variable of the loop at statement 7,
``%7.c0`` its first carried value; parameters, and the sizes in their shapes, stand under ``a0``, ``a1``, ... in order.
A program is rendered one line a statement, each with a short digest: the text that a certificate belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, cast

from tilewright.ir.function import Function
from tilewright.ir.nodes import For, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Binary, Const, Scalar, Select, Shape, Unary, Value
from tilewright.ir.types import TensorType, TileType, Type


class Names:
    """What the values of one function are called. `readable`: by their names, for people."""

    def __init__(self, function: Function, begins: dict[Stmt, int]) -> None:
        self.of: dict[Value, str] = {}
        for param in function.params:
            self.add(param.value)
            kind = param.value.type
            for extent in kind.shape if isinstance(kind, TensorType) else ():
                if isinstance(extent, Value):
                    self.add(extent)
        for stmt in function.walk():
            number = begins[stmt]
            made = stmt.defs()
            for index, value in enumerate(made):
                self.of[value] = f"%{number}" if len(made) == 1 else f"%{number}.{index}"
            if isinstance(stmt, For):
                self.of[stmt.iv] = f"%{number}.i"
                for index, value in enumerate(stmt.iter_args):
                    self.of[value] = f"%{number}.c{index}"

    def add(self, value: Value) -> None:
        self.of.setdefault(value, f"a{len(self.of)}")

    def __getitem__(self, value: Value) -> str:
        return self.of.get(value, f"?{value.name}")


def spelled_scalar(scalar: Scalar, names: Names | None) -> str:
    """A scalar as text; `names` None: with the names of its values."""
    match scalar:
        case int():
            return str(scalar)
        case Value():
            return scalar.name if names is None else names[scalar]
        case Const():
            return f"{scalar.dtype}({scalar.value!r})"
        case Binary():
            lhs, rhs = spelled_scalar(scalar.lhs, names), spelled_scalar(scalar.rhs, names)
            kind = scalar.kind.value
            return f"{kind}({lhs}, {rhs})" if kind in ("min", "max") else f"({lhs} {kind} {rhs})"
        case Unary():
            return f"{scalar.kind.value}<{scalar.dtype}>({spelled_scalar(scalar.operand, names)})"
        case Select():
            inside = (spelled_scalar(child, names) for child in scalar.children())
            return f"select({', '.join(inside)})"
        case _:
            return repr(scalar)


def spelled_shape(shape: Shape, names: Names | None) -> str:
    return f"[{', '.join(spelled_scalar(scalar, names) for scalar in shape)}]"


def spelled_box(offsets: Shape, extents: Shape, names: Names | None) -> str:
    """``[0, 64] + [16, 64]``: where a box begins, and how far it goes."""
    return f"{spelled_shape(offsets, names)} + {spelled_shape(extents, names)}"


def spelled_type(kind: Type, names: Names) -> str:
    """A type with everything that it states."""
    if isinstance(kind, TileType):
        view, memref = kind.view, kind.memref
        space = None if kind.space is None else kind.space.value
        parts = [spelled_shape(kind.shape, names), kind.dtype, space, spelled_shape(kind.valid, names), view.layout]
        parts += [view.pad.name, view.compact.name, view.start_offset, view.stride]
        return f"tile{parts} in {memref}"
    if isinstance(kind, TensorType):
        strides = None if kind.strides is None else spelled_shape(kind.strides, names)
        return f"tensor{spelled_shape(kind.shape, names)} {kind.dtype} {strides}"
    return repr(kind)


def rendered(function: Function, names: Names) -> Iterator[tuple[Stmt | None, str]]:
    """Every statement as a line that says all of it; first the function itself."""
    params = [(p.direction.value, spelled_type(p.value.type, names)) for p in function.params]
    yield None, f"{function.name} {function.kind.value} {params} {sorted(map(str, function.attrs))}"
    for stmt in function.walk():
        made = [f"{names[v]}: {spelled_type(v.type, names)}" for v in (*stmt.block_args(), *stmt.defs())]
        fields = [
            f"{name}={_field(getattr(stmt, name), names)}"
            for name in stmt.node_fields
            if not (isinstance(getattr(stmt, name), tuple) and name in ("body", "then", "otherwise"))
        ]
        lengths = [len(block) for block in stmt.blocks()]
        yield stmt, f"{type(stmt).__name__} {made} {fields} {lengths}"


def digests(function: Function, names: Names) -> list[str]:
    """Eight hexadecimal digits for the function's head and for each statement."""
    return [blake2b(line.encode(), digest_size=4).hexdigest() for _, line in rendered(function, names)]


def _field(value: Any, names: Names) -> str:
    if isinstance(value, Op):
        inside = ", ".join(f"{f.name}={_field(getattr(value, f.name), names)}" for f in value.fields)
        return f"{value.qualified_name}({inside})"
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return f"({', '.join(_field(item, names) for item in items)})"
    if isinstance(value, (bool, str)) or value is None:
        return repr(value)
    try:
        return spelled_scalar(value, names)
    except AttributeError:
        return repr(value)
