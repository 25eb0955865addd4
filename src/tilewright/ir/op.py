"""One op, one class: everything that is known about an operation stands in its class, and everything else is derived.

    class Exp(Op, name="exp", result_space=VEC, inplace=True):
        '''``out = e ** tile``, elementwise.'''
        tile: Value = operand(spaces=(VEC,), aliases=("input",))
        spelling = Spelling(pto="pto.texp")
        lowering = Needs(tile=VEC)
        loops = Elementwise(lambda op, x: unary(UnaryKind.EXP, x))
        def infer(self) -> Type: ...
        def evaluate(self, tile: Array) -> Array: ...

The metaclass reads the annotated fields once, sets `__slots__`, writes `__init__`, `uses`, `with_operands` and the
other mechanical methods as straight-line code, registers the class, and refuses a field that is not marked with one
of the four field functions. One class is the tensor and the tile form of an operation, and its scalar form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast, dataclass_transform

import numpy as np
import numpy.typing as npt

from tilewright.errors import UNKNOWN, OperandError, Span, UnknownOpError
from tilewright.ir.dtypes import DType
from tilewright.ir.fields import Field, Kind, Level, attribute, operand, scalar, scalars
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import LoopForm
from tilewright.ir.scalar import Scalar, Shape, Value, substitute, values_in
from tilewright.ir.types import TileType, Type

if TYPE_CHECKING:
    from tilewright.ir.expansion import Expansion

__all__ = [
    "Field", "Kind", "Level", "attribute", "operand", "scalar", "scalars",
    "Array", "Effect", "FromAttribute", "Inherit", "LoweringContext", "Needs", "Op", "OpMeta", "ResultSpace",
    "Access", "Expanded", "Spelling", "Unsupported", "Work", "is_array", "lookup", "numpy_dtype", "operand_values",
    "registry", "scalars_of", "unsupported", "whole_access",
]  # fmt: skip

Array = npt.NDArray[Any]


class Effect(Enum):
    """PURE: it matters only as far as its result is used (a store too: it yields the tensor's next version).
    OBSERVABLE: it must be kept, and kept in order."""

    PURE = "pure"
    OBSERVABLE = "observable"


@dataclass(frozen=True, slots=True)
class Inherit:
    """The result lives where the operand called `field` lives."""

    field: str


@dataclass(frozen=True, slots=True)
class FromAttribute:
    """The result lives where the attribute called `field` says; unset, the compiler places it."""

    field: str


ResultSpace = MemorySpace | Inherit | FromAttribute | None


def _keyword(*, default: Any, kw_only: bool = True) -> Any:
    """A field of every op, given by keyword only."""
    return default


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A backend cannot spell the operation, and why."""

    reason: str


def unsupported(reason: str) -> Unsupported:
    return Unsupported(reason)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A backend has no instruction for the operation; `made_of` says what stands there instead."""

    made_of: str


@dataclass(frozen=True, slots=True)
class Spelling:
    """How backends spell the operation. A string is the mnemonic of a one-line form (`pto`, and `pto_scalar` when an
    operand is a scalar); `Unsupported` says why there is none; `Expanded`, what it is replaced by before it gets there;
    None: the backend has a function of its own for it."""

    pto: str | Unsupported | Expanded | None = None
    pto_scalar: str | Unsupported | Expanded | None = None


class Needs:
    """The space that each input needs when the operation comes from tensors: `Needs(lhs=(MAT, "a_trans"), tile=VEC)`.
    The second item names the attribute that says whether the operand is wanted transposed."""

    def __init__(self, **fields: MemorySpace | tuple[MemorySpace, str]) -> None:
        self.fields = {name: need if isinstance(need, tuple) else (need, None) for name, need in fields.items()}


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation costs, in machine-neutral units; a target prices it.

    `kind` names the class of work in the target's tables: ``add``, ``sub``, ``mul``, ``div``, ``max``, ``min``,
    ``neg``, ``abs``, ``relu``, ``exp``, ``log``, ``sqrt``, ``rsqrt``, ``recip``, ``compare``, ``select``, ``cast``,
    ``reduce``, ``expand`` and ``expand_div`` (a vector meets each row or column), ``fill``, ``move``, ``matmul``,
    ``scalar`` (one element), ``none`` (a view)."""

    kind: str
    elements: int = 0
    macs: tuple[int, int, int] | None = None
    """(m, n, k) of a multiplication"""
    nbytes: int = 0

    @property
    def is_arithmetic(self) -> bool:
        """Whether elements are computed, so that the machine's element types matter; not merely moved or set."""
        return self.kind not in ("none", "move", "fill", "scalar")


@dataclass(frozen=True, slots=True)
class Access:
    """The box that an operation reads or writes of one operand, or of its result (`field` None): element offsets and
    extents per dimension, affine in the scalars that they mention."""

    field: str | None
    writes: bool
    offsets: Shape
    extents: Shape


class LoweringContext(Protocol):
    """What `Op.lower` may use while a tensor operation becomes tile operations."""

    def emit(self, op: Op, name: str | None = None) -> Value:
        """Append `op`, and return its result."""
        ...

    @property
    def space(self) -> MemorySpace | None:
        """The space in which the consumers of the result want it; None when none of them cares."""
        ...

    @property
    def transpose(self) -> bool:
        """Whether those consumers want it transposed."""
        ...


# --- the mechanism ------------------------------------------------------------------------------------------------
_REGISTRY: dict[str, type[Op]] = {}


def _methods(fields: tuple[Field, ...]) -> str:
    """The source of `__init__`, `uses` and `with_operands` for `fields`."""
    lines = ["def __init__(self, " + "".join(_parameter(f) for f in fields) + "*, level=None, span=UNKNOWN):"]
    lines += [f"    _set(self, {f.name!r}, {f.name})" for f in fields]
    lines += ["    _set(self, 'span', span)", "    _set(self, 'level', level or self._derive_level())"]
    lines += ["def uses(self):", "    out = []"]
    for f in fields:
        if f.kind is Kind.OPERAND and not f.scalar:
            lines.append(f"    if self.{f.name} is not None: out.append(self.{f.name})")
        elif f.kind in (Kind.OPERAND, Kind.SCALAR):
            lines.append(f"    s = self.{f.name}")
            lines.append("    if s.__class__ is not int and s is not None: out.extend(values_in(s))")
        elif f.kind is Kind.SCALARS:
            lines.append(f"    for s in self.{f.name} or ():")
            lines.append("        if s.__class__ is not int: out.extend(values_in(s))")
    lines += ["    return out", "def with_operands(self, replace):"]
    for i, f in enumerate(fields):
        if f.kind in (Kind.OPERAND, Kind.SCALAR):
            lines.append(f"    v{i} = None if self.{f.name} is None else substitute(self.{f.name}, replace)")
        elif f.kind is Kind.SCALARS:
            lines.append(f"    v{i} = self.{f.name} and _substitute_tuple(self.{f.name}, replace)")
        else:
            lines.append(f"    v{i} = self.{f.name}")
    same = " and ".join(f"v{i} is self.{f.name}" for i, f in enumerate(fields)) or "True"
    arguments = "".join(f"v{i}, " for i in range(len(fields)))
    lines += [f"    if {same}: return self", f"    return self.__class__({arguments}level=self.level, span=self.span)"]
    return "\n".join(lines)


def _parameter(field: Field) -> str:
    return f"{field.name}, " if field.required else f"{field.name}=_defaults[{field.name!r}], "


def _substitute_tuple(scalars: Shape, replace: Callable[[Value], Scalar]) -> Shape:
    new = tuple(substitute(scalar, replace) for scalar in scalars)
    return scalars if all(a is b for a, b in zip(scalars, new, strict=True)) else new


def _collect(bases: tuple[type, ...], namespace: dict[str, Any]) -> tuple[list[Field], list[Field]]:
    """The fields inherited and the fields declared by a class body; removes the latter from `namespace`."""
    inherited: list[Field] = []
    for base in bases:
        inherited += [field for field in getattr(base, "fields", ()) if field not in inherited]
    own: list[Field] = []
    for name, annotation in namespace.get("__annotations__", {}).items():
        if "ClassVar" in str(annotation):
            continue
        field = namespace.pop(name, None)
        if not isinstance(field, Field):
            raise TypeError(f"{namespace['__qualname__']}.{name} must be operand(), scalar(), scalars() or attribute()")
        field.name, field.annotation = name, str(annotation)
        own.append(field)
    return inherited, own


@dataclass_transform(frozen_default=True, field_specifiers=(operand, scalar, scalars, attribute, _keyword))
class OpMeta(type):
    """Reads the fields, writes the mechanical methods, registers the class."""

    def __new__(
        mcls,
        cls_name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        name: str | None = None,
        scalar_name: str | None = None,
        **facts: Any,
    ) -> OpMeta:
        if not bases:  # Op itself: its two keyword fields are slots, not fields of the operation
            del namespace["level"], namespace["span"]
            return super().__new__(mcls, cls_name, bases, {**namespace, "__slots__": ("level", "span")})
        inherited, own = _collect(bases, namespace)
        namespace["__slots__"] = tuple(field.name for field in own)
        fields = tuple(sorted(inherited + own, key=lambda field: not field.required))
        cls = super().__new__(mcls, cls_name, bases, namespace)
        type.__setattr__(cls, "fields", fields)
        type.__setattr__(cls, "operand_names", tuple(f.name for f in fields if f.kind is Kind.OPERAND))
        for fact, value in facts.items():
            if not hasattr(cls, fact):
                raise TypeError(f"{cls_name}: there is no fact called {fact!r}")
            setattr(cls, fact, value)
        scope: dict[str, Any] = {"_defaults": {f.name: f.default for f in fields}, "_set": object.__setattr__}
        scope |= {"UNKNOWN": UNKNOWN, "values_in": values_in, "substitute": substitute}
        scope["_substitute_tuple"] = _substitute_tuple
        exec(_methods(fields), scope)
        for method in ("__init__", "uses", "with_operands"):
            scope[method].__qualname__ = f"{cls_name}.{method}"
            setattr(cls, method, scope[method])
        if name is not None:
            type.__setattr__(cls, "name", name)
            type.__setattr__(cls, "scalar_name", scalar_name)
            for key in (name, scalar_name):
                if key is not None and _REGISTRY.setdefault(key, cls) is not cls:  # type: ignore[arg-type]
                    raise TypeError(f"two op classes are called {key!r}")
        return cls


class Op(metaclass=OpMeta):
    """Base of all operations. Facts are class attributes, set by keywords of the class statement."""

    level: Level = _keyword(default=None, kw_only=True)
    span: Span = _keyword(default=UNKNOWN, kw_only=True)

    # --- facts, by keyword of the class statement ---
    fields: ClassVar[tuple[Field, ...]] = ()
    operand_names: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str] = ""
    scalar_name: ClassVar[str | None] = None
    levels: ClassVar[tuple[Level, ...]] = (Level.TENSOR, Level.TILE)
    result_space: ClassVar[ResultSpace] = None
    effect: ClassVar[Effect] = Effect.PURE
    inplace: ClassVar[bool] = False
    """the result may share the buffer of an input that dies here and has equal element size and physical shape"""
    not_aliased: ClassVar[tuple[str, ...]] = ()
    """operands whose buffer the result may never share, even where `inplace` allows others"""
    writes: ClassVar[str | None] = None
    """the operand whose next version the result is: they share storage"""
    view_of: ClassVar[str | None] = None
    """the operand that the result is another view of: no bytes move"""
    converts: ClassVar[bool] = False
    """a rounding to another dtype that a move may do on its way, when the edge offers it"""

    # --- facts, by assignment in the class body ---
    dtypes: ClassVar[tuple[DType, ...]] = ()  # element types that it takes; empty: every one
    spelling: ClassVar[Spelling] = Spelling()
    lowering: ClassVar[Needs | None] = None
    loops: ClassVar[LoopForm | None] = None

    # --- meaning: each op states these ---
    def infer(self) -> Type:
        """The type of the result, valid shape included. Raises with both types named."""
        raise AssertionError(f"{type(self).__name__} states no infer()")

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        """The NumPy meaning. Arguments are the operand and scalar fields in order (`None` where absent): arrays
        cropped to their valid shapes (whole physical arrays when `view_of` is set), ints or NumPy scalars for scalar
        fields, tuples of ints for `scalars`. Returns the valid part of the result. The operand that the op `writes`
        is the caller's to overwrite in place, and is returned."""
        raise AssertionError(f"{type(self).__name__} states no evaluate()")

    def defined(self, *masks: Any, **_: Any) -> Array | None:
        """Which elements are defined, from masks in place of arrays (scalars as they are); None: by loop form."""
        return None

    def accesses(self) -> tuple[Access, ...]:
        """The boxes read and written. By default every operand's whole valid shape and the whole result."""
        found = [whole_access(name, value.type) for name, value in self.operand_items()]
        return (*found, Access(None, True, *_whole(self.infer())))

    def work(self) -> Work:
        """What one execution costs."""
        raise AssertionError(f"{type(self).__name__} states no work()")

    def scratch(self) -> dict[str, TileType]:
        """The tile that each scratch operand wants, by field; empty where hardware needs none."""
        return {}

    def lower(self, context: LoweringContext) -> Value:
        """The tile form of a tensor operation whose operands are lowered already. By default the same operation on
        tiles, without the attributes that only the tensor form has."""
        return context.emit(self.at_level(Level.TILE))

    def space_when_lowered(self) -> MemorySpace | None:
        """Where the result of `lower` comes out, None if the compiler may choose. By default `result_space`; operations
        whose lowering ends with another operation (a cast) override it."""
        return self.result_space if isinstance(self.result_space, MemorySpace) else None

    def resized(self, shape: Shape) -> Op:
        """The operation with its result's *physical* shape made `shape`, its meaning unchanged. By default itself:
        the shape follows from the operands. Operations that state a shape override it, keeping the valid shape."""
        return self

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        """The operation on tiles of two dimensions, which `replace` gives for those that have more or fewer: leading
        dimensions are multiplied into rows. By default only the operands change; operations that state shapes or
        positions in a tile override it. Raises `UnsupportedError` where rows and columns cannot say it."""
        return self.with_operands(replace)

    def expand(self, to: Expansion) -> Scalar:
        """The result of the operation made of simpler ones. A class that states it has no code of its own in any
        backend: it is replaced while tiles may still have any number of dimensions."""
        raise AssertionError(f"{self.name} is not made of other operations")

    @property
    def is_expanded(self) -> bool:
        """Whether this operation is replaced by what `expand` gives: where its class states that, unless it says
        otherwise."""
        return type(self).expand is not Op.expand

    def matrices(self) -> Shape:
        """Of a transfer of several matrices between DDR and the chip: how many, per leading dimension. Else empty."""
        return ()

    def matrix(self, index: tuple[int, ...]) -> Op:
        """The transfer of one of `matrices`."""
        raise AssertionError(f"{self.name} moves one matrix")

    # --- mechanical, written by the metaclass ---
    def uses(self) -> list[Value]:
        """The SSA values read, operands and those inside scalar expressions, with repetitions."""
        raise AssertionError

    def with_operands(self, replace: Callable[[Value], Scalar]) -> Self:
        """This operation with every SSA value in it replaced; itself when nothing changes."""
        raise AssertionError

    # --- derived ---
    def _derive_level(self) -> Level:
        if len(self.levels) == 1:
            return self.levels[0]
        for _, value in self.operand_items():
            return Level.TILE if isinstance(value.type, TileType) else Level.TENSOR
        raise OperandError(f"{self.name} needs level=, since it has no operand that tells")

    @property
    def is_scalar_form(self) -> bool:
        """Whether a scalar stands where the op also takes a tensor or tile."""
        return any(f.scalar and not is_array(getattr(self, f.name)) for f in self.fields)

    @property
    def qualified_name(self) -> str:
        """``tile.adds``: the name under which text spells this form."""
        name = self.scalar_name if self.scalar_name and self.is_scalar_form else self.name
        return f"{self.level.value}.{name}"

    def operand_items(self) -> Iterator[tuple[str, Value]]:
        """(field name, value) of the tensors and tiles among the operands."""
        for name in self.operand_names:
            value = getattr(self, name)
            if is_array(value):
                yield name, value

    def replace(self, **fields: Any) -> Self:
        """This operation with the named fields replaced."""
        values = {f.name: fields.get(f.name, getattr(self, f.name)) for f in self.fields}
        return type(self)(**values, level=fields.get("level", self.level), span=fields.get("span", self.span))

    def at_level(self, level: Level) -> Self:
        """This operation's form at `level`; attributes that it does not have there go back to their defaults."""
        values = {f.name: getattr(self, f.name) if level in f.levels else f.default for f in self.fields}
        return type(self)(**values, level=level, span=self.span)

    @classmethod
    def field(cls, name: str) -> Field:
        for field in cls.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"operations are immutable; use replace({name}=...)")

    def __repr__(self) -> str:
        inside = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.fields)
        return f"{self.qualified_name}({inside})"


def is_array(value: object) -> bool:
    """Whether `value` is an SSA value that is a tensor or tile, not a scalar."""
    return isinstance(value, Value) and hasattr(value.type, "shape")


def _whole(type: Type) -> tuple[Shape, Shape]:
    extents: Shape = type.valid if isinstance(type, TileType) else getattr(type, "shape", ())
    return (0,) * len(extents), extents


def whole_access(field: str | None, type: Type, *, writes: bool = False) -> Access:
    """An access to the whole valid shape of a value of `type`."""
    return Access(field, writes, *_whole(type))


def registry() -> dict[str, type[Op]]:
    """Every op class by name, scalar forms included. The classes register when `tilewright.ops` is imported."""
    return _REGISTRY


def lookup(name: str, level: Level | None = None) -> type[Op]:
    """The class of the operation `name`. Raises `UnknownOpError` with the nearest names."""
    cls = _REGISTRY.get(name)
    if cls is not None and (level is None or level in cls.levels):
        return cls
    known = [key for key, other in _REGISTRY.items() if level is None or level in other.levels]
    near = get_close_matches(name, known, 3, 0.6)
    where = "" if level is None else f"{level.value}."
    raise UnknownOpError(
        f"there is no operation called {where}{name}",
        found=f"{where}{name}",
        help=f"did you mean {' or '.join(near)}?" if near else "docs/ops.md lists the operations",
    )


def numpy_dtype(type: Type) -> np.dtype[Any]:
    """The NumPy dtype of a type's elements."""
    return np.dtype(type.dtype.numpy)


def operand_values(op: Op) -> Iterator[tuple[Field, Any]]:
    """The operand and scalar fields with what they hold, in the order in which `evaluate` takes them."""
    for field in op.fields:
        if field.kind is not Kind.ATTRIBUTE:
            yield field, getattr(op, field.name)


def scalars_of(value: Any) -> tuple[Scalar, ...]:
    """What a scalar field holds, as a tuple."""
    if value is None:
        return ()
    return cast("tuple[Scalar, ...]", value) if isinstance(value, tuple) else (value,)
