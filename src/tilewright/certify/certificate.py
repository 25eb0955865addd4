"""The certificate: what a compiled program claims of itself, as data and as JSON.

Statements are named by their numbers, in the order in which they stand (one with blocks counts again where it ends),
values by the statement that makes them (`render`). A certificate proves nothing; it says what the checker will find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from tilewright.errors import CertificateError

T = TypeVar("T")
FORMAT = 1
"""Raised when the meaning of a field changes."""


@dataclass(frozen=True, slots=True)
class TileClaim:
    """One tile. `address` (None: streamed through registers) and `bytes` of its buffer; `live`: the first and the last
    statement of each stretch in which it is needed."""

    name: str
    value: str
    line: int
    space: str
    memory: str
    buffer: str
    address: int | None
    bytes: int
    live: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class MoveClaim:
    """One way that data goes, and the edge that takes it."""

    statement: int
    line: int
    operation: str
    value: str
    source: str
    target: str
    edge: str
    engine: str
    dtype: str
    to_dtype: str


@dataclass(frozen=True, slots=True)
class BoundClaim:
    """One access, or one valid shape: per dimension ``proved``, ``guarded`` or ``assumed``."""

    statement: int
    line: int
    what: str
    box: str
    dims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PeakClaim:
    """How far one memory is filled, in bytes, and the least that any plan of addresses needs."""

    memory: str
    bytes: int
    bound: int
    capacity: int | None


@dataclass(frozen=True, slots=True)
class HazardClaim:
    """Statement `after` waits for statement `before`, `distance` trips of the loop at statement `loop` ago. `by`: what
    orders the two: ``wait``, the engine of `after` waits until that of `before` is done."""

    before: int
    after: int
    before_engine: str
    after_engine: str
    kind: str
    memory: str
    loop: int | None = None
    distance: int = 0
    by: str = "wait"


@dataclass(frozen=True, slots=True)
class FunctionClaim:
    """What is claimed of one function. `digests`: of its head and of each statement."""

    name: str
    tiles: tuple[TileClaim, ...]
    moves: tuple[MoveClaim, ...]
    bounds: tuple[BoundClaim, ...]
    peaks: tuple[PeakClaim, ...]
    hazards: tuple[HazardClaim, ...]
    assumptions: tuple[str, ...]
    digests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is claimed of a placed program on a target, which `fingerprint` names exactly."""

    format: int
    target: str
    fingerprint: str
    entry: str
    functions: tuple[FunctionClaim, ...]

    def function(self, name: str) -> FunctionClaim | None:
        return next((function for function in self.functions if function.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    """Tuples as the lists that JSON has."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        return {name: _plain(item) for name, item in items.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[object, ...]", value)]
    return value


def read_certificate(data: object) -> Certificate:
    """A certificate from what JSON held. Raises `CertificateError`, with the place, for anything else."""
    given: object = data
    version = cast("dict[str, object]", given).get("format") if isinstance(given, dict) else None
    if isinstance(version, int) and version != FORMAT:
        raise CertificateError(
            "the certificate has another format",
            required=f"format {FORMAT}",
            found=f"format {version}",
            help="write it again with this version",
        )
    return _read(Certificate, data, "the certificate")


def _read(kind: type[T], data: object, where: str) -> T:
    """One dataclass from a JSON object: every field there, of its type, and no other."""
    if not isinstance(data, dict):
        raise _wrong(where, "an object", data)
    given = cast("dict[str, object]", data)
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in names:
            raise CertificateError(
                f"{where} has no field {name!r}", required="one of " + ", ".join(names), found=str(name)
            )
    values: dict[str, object] = {}
    for name in names:
        if name not in given:
            raise CertificateError(
                f"{where} lacks the field {name!r}", required=name, found=", ".join(given) or "nothing"
            )
        values[name] = _value(hints[name], given[name], f"{where}.{name}" if where != "the certificate" else name)
    return kind(**values)


def _value(kind: Any, data: object, where: str) -> object:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if data is None else _value(arguments[0], data, where)
    if origin is tuple:
        if not isinstance(data, list):
            raise _wrong(where, "a list", data)
        items = cast("list[object]", data)
        if arguments[-1] is Ellipsis:
            return tuple(_value(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(items))
        if len(items) != len(arguments):
            raise _wrong(where, f"a list of {len(arguments)}", items)
        return tuple(_value(a, item, f"{where}[{i}]") for i, (a, item) in enumerate(zip(arguments, items, strict=True)))
    checks: dict[type, tuple[str, Callable[[object], bool]]] = {
        int: ("a whole number", lambda x: isinstance(x, int) and not isinstance(x, bool)),
        str: ("a string", lambda x: isinstance(x, str)),
    }
    if kind in checks:
        what, holds = checks[kind]
        if not holds(data):
            raise _wrong(where, what, data)
        return data
    return _read(kind, data, where)


def _wrong(where: str, required: str, data: object) -> CertificateError:
    shown = repr(data)
    return CertificateError(
        f"{where} is not {required}",
        required=required,
        found=shown if len(shown) < 80 else f"{shown[:76]} ...",
        help="take the file that `tilewright compile --certificate` wrote",
    )
