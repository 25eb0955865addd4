"""An elementwise operation by instructions on whole tiles: its expression, node by node.

    fmod: a - trunc(a / b) * b      becomes   div, cast to INT32 and back, mul, sub

Narrow floats are widened first and rounded once at the end, as the loop form says. An expression with a node for which
there is no instruction (bits of integers) is not spelled so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT32, DType
from tilewright.ir.loops import Elementwise, Map
from tilewright.ir.op import Kind, Level, Op, is_array, registry
from tilewright.ir.scalar import Binary, BinaryKind, Scalar, Select, Unary, UnaryKind, Value, constant, dtype_of
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.broadcast import Expands
from tilewright.ops.cast import Cast
from tilewright.ops.select import COMPARISONS, Cmp, Sel
from tilewright.passes.tile.expand.builder import Builder
from tilewright.passes.tile.expand.elements import scalar_of

INTEGRAL = 2.0**23
"""From here on every FP32 is integral."""
_TESTS = {kind: code for code, (kind, _) in enumerate(COMPARISONS)}
_TURNED = {
    BinaryKind.LT: BinaryKind.GT, BinaryKind.GT: BinaryKind.LT, BinaryKind.LE: BinaryKind.GE,
    BinaryKind.GE: BinaryKind.LE, BinaryKind.EQ: BinaryKind.EQ, BinaryKind.NE: BinaryKind.NE,
}  # fmt: skip
_COMMUTES = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.MAX)
_MODES = {UnaryKind.RINT: "rint", UnaryKind.FLOOR: "floor", UnaryKind.CEIL: "ceil", UnaryKind.TRUNC: "trunc"}


@cache
def spelled() -> dict[BinaryKind | UnaryKind, type[Op]]:
    """The operation of one node, by the kind of node: those that have an instruction and whose loop form is that node
    of their operands, and nothing else."""
    found: dict[BinaryKind | UnaryKind, type[Op]] = {}
    x, y = Value("x", ScalarType(FP32)), Value("y", ScalarType(FP32))
    for cls in dict.fromkeys(registry().values()):
        form = cls.loops
        given = [f for f in cls.fields if f.kind in (Kind.OPERAND, Kind.SCALAR) and not f.scratch]
        count = len(given)
        if not isinstance(form, Elementwise) or form.maps or not isinstance(cls.spelling.pto, str) or count > 2:
            continue
        node = form.expr(None, x) if count == 1 else form.expr(None, x, y)
        if isinstance(node, Unary | Binary) and node.children() == (x, y)[:count]:
            found.setdefault(node.kind, cls)
    return found


def by_instruction(op: Op, to: Builder) -> Value | None:
    """The result of `op` by instructions; None where its expression has a node without one."""
    form = op.loops
    kind = op.infer()
    if not isinstance(form, Elementwise) or not isinstance(kind, TileType) or any(m is not Map.FULL for m in form.maps):
        return None
    tiles: dict[Value, Value] = {}
    elements: list[Scalar] = []
    dtype = next((value.dtype for _, value in op.operand_items() if value.dtype is not BOOL), kind.dtype)
    for field in op.fields:
        given = getattr(op, field.name)
        if given is None or field.scratch or field.kind not in (Kind.OPERAND, Kind.SCALAR):
            continue
        if not is_array(given):
            elements.append(scalar_of(given, dtype))
            continue
        narrow = given.dtype in (FP16, BF16)
        element = Value(field.name, ScalarType(FP32 if narrow else given.dtype))
        tiles[element] = given
        elements.append(element)
    expression = form.expr(op, *elements)
    if not _spellable(expression, tiles):
        return None
    for element, given in tiles.items():
        if given.dtype is not element.dtype:
            tiles[element] = to.op(Cast(given, element.dtype, level=Level.TILE, span=to.span), given.name)
    made = _Speller(to, tiles).tile(expression)
    return made if made.dtype is kind.dtype else to.op(Cast(made, kind.dtype, level=Level.TILE, span=to.span))


def _spellable(node: Scalar, tiles: dict[Value, Value]) -> bool:
    """Whether every node that depends on a tile has an instruction."""
    if not _depends(node, tiles) or isinstance(node, int | Value):
        return True
    match node:
        case Binary(kind=kind):
            floats = dtype_of(node.lhs).is_float
            known = kind in _TESTS or kind in (BinaryKind.AND, BinaryKind.OR) or kind in spelled()
            if kind is BinaryKind.DIV and not floats:
                return False
        case Unary(kind=kind):
            known = kind in _MODES or kind in (UnaryKind.CAST, UnaryKind.NOT) or kind in spelled()
        case Select():
            known = True
        case _:
            known = False
    return known and all(_spellable(child, tiles) for child in node.children())


def _depends(node: Scalar, tiles: dict[Value, Value]) -> bool:
    if isinstance(node, int):
        return False
    return node in tiles if isinstance(node, Value) else any(_depends(child, tiles) for child in node.children())


class _Speller:
    def __init__(self, to: Builder, tiles: dict[Value, Value]) -> None:
        self.to = to
        self.tiles = tiles
        self.memo: dict[Scalar, Value] = {}
        self.like = next(iter(tiles.values()))

    def op(self, cls: Any, *given: Any, **fixed: Any) -> Value:
        return self.to.op(cls(*given, level=Level.TILE, span=self.to.span, **fixed))

    def tile(self, node: Scalar) -> Value:
        """The tile that holds `node`."""
        if isinstance(node, Value) and node in self.tiles:
            return self.tiles[node]
        if node not in self.memo:
            self.memo[node] = self._made(node) if _depends(node, self.tiles) else self._filled(node)
        return self.memo[node]

    def operand(self, node: Scalar) -> Scalar:
        """`node` as the right side of an operation: a tile, or a scalar as it is."""
        return self.tile(node) if _depends(node, self.tiles) else node

    def _filled(self, node: Scalar) -> Value:
        return self.op(Expands, self._like(dtype_of(node)), node)

    def _like(self, dtype: DType) -> Value:
        """A tile of `dtype` with the shape of the operands."""
        found = next((tile for tile in (*self.tiles.values(), *self.memo.values()) if tile.dtype is dtype), None)
        return found or self.op(Cast, self.like, dtype)

    def _made(self, node: Scalar) -> Value:
        match node:
            case Binary():
                return self._binary(node.kind, node.lhs, node.rhs)
            case Unary(kind=UnaryKind.CAST):
                tile = self.tile(node.operand)
                trunc = tile.dtype.is_float and not node.dtype.is_float and node.dtype is not BOOL
                return self.op(Cast, tile, node.dtype, mode="trunc" if trunc else "round")
            case Unary(kind=kind) if kind in _MODES:
                return self._integral(self.tile(node.operand), _MODES[kind])
            case Unary():
                return self.op(spelled()[node.kind], self.tile(node.operand))
            case Select():
                return self._select(node.condition, node.then, node.otherwise)
            case _:
                raise AssertionError(f"{node!r} has no instruction")

    def _binary(self, kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Value:
        if not _depends(lhs, self.tiles):
            if kind in _COMMUTES:
                lhs, rhs = rhs, lhs
            elif kind in _TURNED:
                kind, lhs, rhs = _TURNED[kind], rhs, lhs
        if kind in _TESTS:
            return self.op(Cmp, self.tile(lhs), self.operand(rhs), cmp_type=_TESTS[kind])
        return self.op(spelled()[kind], self.tile(lhs), self.operand(rhs))

    def _integral(self, x: Value, mode: str) -> Value:
        """By way of an integer, where one can hold it."""
        whole = self.op(Cast, self.op(Cast, x, INT32, mode=mode), FP32)
        small = self.op(
            Cmp, self.op(spelled()[UnaryKind.ABS], x), constant(INTEGRAL, FP32), cmp_type=_TESTS[BinaryKind.LT]
        )
        return self.op(Sel, small, whole, x)

    def _select(self, condition: Scalar, then: Scalar, otherwise: Scalar) -> Value:
        """A choice by a comparison; conditions that are joined become choices within choices."""
        if isinstance(condition, Unary) and condition.kind is UnaryKind.NOT:
            return self._select(condition.operand, otherwise, then)
        if isinstance(condition, Binary) and condition.kind is BinaryKind.AND:
            return self.op(Sel, self.tile(condition.lhs), self._select(condition.rhs, then, otherwise),
                           self.operand(otherwise))  # fmt: skip
        if isinstance(condition, Binary) and condition.kind is BinaryKind.OR:
            return self.op(Sel, self.tile(condition.lhs), self.tile(then), self._select(condition.rhs, then, otherwise))
        return self.op(Sel, self.tile(condition), self.tile(then), self.operand(otherwise))
