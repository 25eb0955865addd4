"""How each tensor operation becomes tile operations, and where it wants its inputs: one entry says both.

The built-in entries are derived from the op classes (`lowering`, `lower`). Users add theirs at run time:

    registry = OpConversionRegistry()
    registry.register_simple("tensor.add", "tile.add", {0: InputSpaceReq(VEC), 1: InputSpaceReq(VEC)})
    registry.register_custom("tensor.matmul", convert, {0: InputSpaceReq(MAT, "a_trans"), 1: InputSpaceReq(MAT)})

An input is counted among the operands of the operation, in the order of its fields. An input that has no requirement
has none: nothing is loaded or moved for it, and no space is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import OperandError
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Field, Kind, Level, LoweringContext, Op, lookup
from tilewright.ir.scalar import Value


@dataclass(frozen=True, slots=True)
class InputSpaceReq:
    """Where an input has to be. `trans_kwarg` names the attribute of the tensor operation that says whether the
    input is wanted transposed."""

    space: MemorySpace
    trans_kwarg: str | None = None


Converter = Callable[[Op, LoweringContext], Value]
"""Given the tensor operation, its inputs in their spaces already, emits tile operations and returns the result."""
Requirements = Mapping[int, InputSpaceReq]


@dataclass(frozen=True, slots=True)
class ConversionEntry:
    """One conversion: what makes the tile operations, and what it requires, per input."""

    func: Converter
    input_reqs: Requirements = field(default_factory=dict[int, InputSpaceReq])


class OpConversionRegistry:
    """Conversions by the name of the tensor operation. Those that nobody registered are the op classes' own."""

    def __init__(self) -> None:
        self._entries: dict[str, ConversionEntry] = {}
        self._derived: dict[type[Op], ConversionEntry | None] = {}

    @property
    def is_modified(self) -> bool:
        """Whether anything was registered: what was compiled before may then differ."""
        return bool(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The operations that have a registered entry, sorted."""
        return tuple(sorted(self._entries))

    def register_simple(self, from_op: str, to_op: str, input_reqs: Requirements | None = None) -> None:
        """`from_op` becomes the one operation `to_op` on the same inputs. Fields of one name are taken over; inputs
        of other names in their order. Raises `UnknownOpError`, `OperandError`."""
        _, target = _classes(from_op)[1], _classes(to_op, Level.TILE)[1]
        self.register_custom(from_op, lambda op, context: context.emit(_same_on_tiles(op, target)), input_reqs)

    def register_custom(self, from_op: str, func: Converter, input_reqs: Requirements | None = None) -> None:
        """`func` converts `from_op`. Raises `UnknownOpError` when there is no such operation, `OperandError` when a
        requirement names an input or an attribute that it does not have."""
        name, source = _classes(from_op)
        reqs = dict(input_reqs or {})
        count = len(input_fields(source))
        for index, req in reqs.items():
            if not 0 <= index < count:
                raise OperandError(f"{from_op} has no input {index}", required=f"0 to {count - 1}", found=str(index))
            if req.trans_kwarg is not None and req.trans_kwarg not in {f.name for f in source.fields}:
                raise OperandError(f"{from_op} has no attribute {req.trans_kwarg!r}", found=req.trans_kwarg)
        self._entries[name] = ConversionEntry(func, reqs)

    def lookup(self, op: str | Op) -> ConversionEntry | None:
        """The entry of an operation, given itself or its name (``tensor.add``); None when it has no tile form."""
        if isinstance(op, Op):
            found = self._entries.get(op.qualified_name)
            return found if found is not None else self._of_class(type(op))
        name, cls = _classes(op)
        return self._entries.get(name) or self._of_class(cls)

    def get_input_reqs(self, op: str | Op) -> Requirements:
        """What an operation requires of its inputs; empty when nothing."""
        entry = self.lookup(op)
        return {} if entry is None else entry.input_reqs

    def _of_class(self, cls: type[Op]) -> ConversionEntry | None:
        if cls not in self._derived:
            self._derived[cls] = derive_entry(cls)
        return self._derived[cls]


def derive_entry(cls: type[Op]) -> ConversionEntry | None:
    """The entry that an op class states itself; None for a class that has neither a tile form nor a `lower`."""
    if Level.TENSOR not in cls.levels or (Level.TILE not in cls.levels and cls.lower is Op.lower):
        return None
    needs = {} if cls.lowering is None else cls.lowering.fields
    names = [f.name for f in input_fields(cls)]
    reqs = {names.index(name): InputSpaceReq(space, attribute) for name, (space, attribute) in needs.items()}
    return ConversionEntry(lambda op, context: op.lower(context), dict(sorted(reqs.items())))


def input_fields(cls: type[Op]) -> tuple[Field, ...]:
    """The operands of a tensor operation, in order: what requirements count."""
    return tuple(f for f in cls.fields if f.kind is Kind.OPERAND and Level.TENSOR in f.levels)


def _classes(name: str, level: Level = Level.TENSOR) -> tuple[str, type[Op]]:
    """The full name of an operation, and its class. Raises `UnknownOpError`, `OperandError`."""
    prefix, _, short = name.rpartition(".")
    if prefix != level.value:
        raise OperandError(
            f"{name!r} is not the name of a {level.value} operation",
            required=f"{level.value}.<name>",
            found=name,
        )
    return name, lookup(short, level)


def _same_on_tiles(op: Op, target: type[Op]) -> Op:
    """`target` on the inputs of `op`."""
    values: dict[str, Any] = {}
    known = {f.name for f in op.fields}
    inputs = iter([getattr(op, f.name) for f in input_fields(type(op))])
    for f in target.fields:
        if Level.TILE not in f.levels:
            continue
        following = next(inputs, None) if f.kind is Kind.OPERAND and not f.scratch else None
        if f.name in known:
            values[f.name] = getattr(op, f.name)
        elif following is not None:
            values[f.name] = following
    return target(**values, level=Level.TILE, span=op.span)


DEFAULT = OpConversionRegistry()
"""What compilation uses unless it is given another."""
