"""The reference of the operations, docs/ops.md, made from their classes, so that it cannot differ from them.

python -m tilewright.report.opsdoc          rewrite docs/ops.md
"""

from __future__ import annotations

import inspect
import sys
from enum import Enum
from pathlib import Path

from tilewright import ops
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Contract, Elementwise, Index, LoopForm, Reduce, Special, Update
from tilewright.ir.op import Expanded, Field, FromAttribute, Inherit, Level, Op, Spelling, Unsupported, registry
from tilewright.ops.common import ELEMENTS, INTEGERS, NUMBERS

PAGE = Path(__file__).parents[3] / "docs" / "ops.md"

SETS = {"integers": INTEGERS, "numbers": NUMBERS, "elements": ELEMENTS}
"""Element types that many operations take."""

COVERAGE = "## Coverage"
"""The heading of the last section, which tests/ops/test_walk.py writes."""

HEADER = """\
# Operations

Made by `python -m tilewright.report.opsdoc` from the op classes; do not edit.

A *tensor* lives in DDR, a *tile* on chip. `pl.<name>` picks the form by its operands; `pl.tensor.<name>` and
`pl.tile.<name>` name it. Of a tile, only the *valid* part of the physical shape has meaning. Every op rounds its
result to its dtype, half to even.

Columns. *Memories*: what each operand may be in, the preferred one first, and where the result is. *Valid*: which part
of the result has meaning. *Buffer*: what the result may share: `in place` the buffer of an operand that dies, except
those named; `writes x` always that of x; `view of x` moves nothing. *PTO*: the instruction; "own code" where the
backend has a function for it, or what stands there instead of an instruction. Operands in brackets are scratch, which
the compiler provides. *Dtypes*: `integers` are INT8, INT16, INT32, INT64 and the same as UINT; `numbers` are these,
FP32, FP16 and BF16; `elements` are numbers and BOOL.
"""

TABLE_HEAD = """\
| signature | memories | dtypes | valid | buffer | PTO |
| --- | --- | --- | --- | --- | --- |
"""


def families() -> dict[str, list[type[Op]]]:
    """The op classes by the module that defines them, in the order of definition."""
    found: dict[str, list[type[Op]]] = {}
    for cls in dict.fromkeys(registry().values()):
        found.setdefault(cls.__module__.rsplit(".", 1)[1], []).append(cls)
    return dict(sorted(found.items()))


def page() -> str:
    """The whole of docs/ops.md."""
    sections = [HEADER]
    for family, classes in families().items():
        intro = inspect.getdoc(getattr(ops, family)) or ""
        rows = "".join(_row(cls) for cls in classes)
        meanings = "\n".join(_meaning(cls) for cls in classes)
        sections.append(f"## {family.capitalize()}\n\n{intro}\n\n{TABLE_HEAD}{rows}\n{meanings}\n")
    return "\n".join([*sections, *_coverage()])


def _coverage() -> list[str]:
    """What the tests wrote at the end of the page: which operation runs where."""
    _, mark, rest = PAGE.read_text().partition(COVERAGE) if PAGE.exists() else ("", "", "")
    return [mark + rest] if mark else []


def _row(cls: type[Op]) -> str:
    cells = (_signatures(cls), _memories(cls), _dtypes(cls), _valid(cls), _buffer(cls), _pto(cls.spelling))
    return "| " + " | ".join(cells) + " |\n"


def _meaning(cls: type[Op]) -> str:
    text = " ".join((inspect.getdoc(cls) or "").split()).replace("``", "`")
    return f"- **{cls.name}**" + (f" / **{cls.scalar_name}**" if cls.scalar_name else "") + f": {text}"


def _signatures(cls: type[Op]) -> str:
    """One signature where the forms agree, else one for each level."""
    forms = {level: f"{cls.name}({_parameters(cls, level)})" for level in cls.levels}
    if len(set(forms.values())) == 1 and len(forms) == 2:
        return f"`{next(iter(forms.values()))}`"
    return "<br>".join(f"`{level.value}.{form}`" for level, form in forms.items())


def _parameters(cls: type[Op], level: Level) -> str:
    return ", ".join(_parameter(field) for field in cls.fields if level in field.levels)


def _parameter(field: Field) -> str:
    if field.scratch:
        return f"[{field.name}]"
    return field.name if field.required else f"{field.name}={_default(field.default)}"


def _default(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value)


def _memories(cls: type[Op]) -> str:
    operands = [
        f"{field.name}: {' or '.join(space.value for space in field.spaces)}"
        for field in cls.fields
        if field.spaces and not field.scratch
    ]
    match cls.result_space:
        case MemorySpace() as space:
            result = space.value
        case Inherit(field=name):
            result = f"as {name}"
        case FromAttribute(field=name):
            result = f"`{name}`"
        case None:
            result = f"as {cls.writes}" if cls.writes else "a scalar"
    return ", ".join(operands) + (" → " if operands else "→ ") + result


def _dtypes(cls: type[Op]) -> str:
    if not cls.dtypes:
        return "any"
    return next((name for name, members in SETS.items() if members == cls.dtypes), _list(cls.dtypes))


def _list(dtypes: tuple[DType, ...]) -> str:
    return ", ".join(dtype.name for dtype in dtypes)


def _valid(cls: type[Op]) -> str:
    form: LoopForm | None = cls.loops
    if cls.writes and not isinstance(form, Contract):
        return f"as {cls.writes}"
    match form:
        case Elementwise():
            return "where every operand is"
        case Reduce(axis=1):
            return "valid rows, 1"
        case Reduce():
            return "1, valid columns"
        case Contract():
            return "lhs rows, rhs columns"
        case Index():
            return "of what is read"
        case Update():
            return "as the target"
        case Special(reason=reason):
            return reason
        case None:
            return ""


def _buffer(cls: type[Op]) -> str:
    if cls.writes:
        return f"writes {cls.writes}"
    if cls.view_of:
        return f"view of {cls.view_of}"
    if cls.inplace:
        return "in place" + (f", not {', '.join(cls.not_aliased)}" if cls.not_aliased else "")
    return "its own"


def _pto(spelling: Spelling) -> str:
    forms = [form for form in (spelling.pto, spelling.pto_scalar) if form is not None]
    if not forms:
        return "own code"
    return ", ".join(dict.fromkeys(map(_spelled, forms)))


def _spelled(form: str | Unsupported | Expanded) -> str:
    if isinstance(form, str):
        return f"`{form}`"
    return form.reason if isinstance(form, Unsupported) else form.made_of


def main() -> None:
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main()
