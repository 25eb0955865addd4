"""The language's own names: what ``pl.<path>`` stands for. Static; nothing is imported or executed to resolve one.

Constants (dtypes, enums) resolve to themselves. Everything else stays a `LanguageName`: syntax words (`Tensor`,
`range`, `at`) and operations, which `calls` looks up in the registry.
"""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from tilewright import ops
from tilewright.errors import UnknownDTypeError, UnknownOpError
from tilewright.frontend.bindings import Kernel, LanguageName
from tilewright.frontend.refused import REFUSED
from tilewright.ir.dtypes import BY_NAME, DType
from tilewright.ir.op import Level, registry
from tilewright.text.names import ENUMS, enum_member, spell_member

OPERATIONS = ops.__name__
"""The package in which operations register when it is imported, as it is here."""
TYPE_WORDS = ("Tensor", "Tile", "Scalar", "Tuple", "Out", "InOut", "MemRef", "TileView", "TensorView", "Layout")
LOOP_WORDS = ("range", "parallel", "unroll", "pipeline", "spmd", "static_range", "while_", "split_aiv")
FORM_WORDS = ("const", "min", "max", "cast", "yield_", "func_attr", "static_print", "static_assert", "dynamic", "cond")
SCOPE_WORDS = ("at", "cluster")
CALL_WORDS = ("submit", "aiv_shard", "aic_gather", "print", "assert_", "split", "cross_core_slot")
BLOCK_WORDS = ("get_block_idx", "get_block_num", "get_subblock_idx")
ARRAY_WORDS = ("array.create", "array.get_element", "array.update_element")
DECORATOR_WORDS = ("jit", "program", "function", "jit.incore", "jit.inline", "jit.opaque", "loop.function")
LOOP_LEVEL_WORDS = (
    *("Buffer", "Vector", "Handle", "alloc", "local", "alias", "match", "region", "op", "attribute"),
    *("serial", "parallel", "vectorized", "unrolled", "thread", "launch", "block", "where", "reads", "writes"),
    *("ramp", "broadcast", "if_then_else", "likely", "address_of", "extern"),
)
"""The words of `pl.loop`."""
LANE_WORDS = ("aiv_shard", "aic_gather")
SYNTAX_WORDS = frozenset(
    (
        *(*TYPE_WORDS, *LOOP_WORDS, *FORM_WORDS, *SCOPE_WORDS, *DECORATOR_WORDS, *CALL_WORDS, *ARRAY_WORDS),
        *(f"{prefix}{word}" for prefix in ("", "tile.", "system.") for word in BLOCK_WORDS),
        *(f"{prefix}{word}" for prefix in ("tile.", "tensor.") for word in LANE_WORDS),
        *("tensor.dim", "tensor.bind_dynamic", "loop", *(f"loop.{word}" for word in LOOP_LEVEL_WORDS)),
    )
)

NAMESPACES = {"tensor": Level.TENSOR, "tile": Level.TILE, "system": None, "array": None}

MICROSCALED = ("FP4", "FP4E2M1", "FP8E8M0", "HF4", "HF8", "UINT4")
"""Element types of the language that have no numbers here."""
ALIASES: dict[str, tuple[str, Level | None]] = {
    "tensor.fillpad": ("fillpad_expand", Level.TENSOR),
    "create_tensor": ("create", Level.TENSOR),
    "create_tile": ("create", Level.TILE),
    "create_l1": ("create", Level.TENSOR),
    "arange": ("ci", None),
    "gather_compare": ("gather_compare_indices", None),
    "mrgsort": ("mrgsort_format2", None),
}
"""Names that stand for an operation under another name, and the form that they fix."""

_BY_CORE = "use pl.at(level=pl.Level.CORE_GROUP); the compiler tells the work of the two kinds of core apart"
UNSUPPORTED_WORDS = {"section_cube": _BY_CORE, "section_vector": _BY_CORE, **REFUSED}


def member(name: LanguageName, attribute: str) -> object | None:
    """What ``pl.<name>.<attribute>`` stands for; None when the language has no such name."""
    path = f"{name.path}.{attribute}" if name.path else attribute
    if not name.path and attribute in BY_NAME:
        return BY_NAME[attribute]
    if name.path == "DataType":
        return BY_NAME.get(attribute)
    if name.path in ENUMS:
        return enum_member(name.path, attribute)
    enum = _enum_of_ops(name.path)
    if enum is not None:
        return enum.get(attribute)
    if path in SYNTAX_WORDS or path in ENUMS or path in NAMESPACES or path in UNSUPPORTED_WORDS or path == "DataType":
        return LanguageName(path, name.module)
    if _enum_of_ops(path) is not None or operation(path) is not None:
        return LanguageName(path, name.module)
    if name.module is not None:
        found = cast("dict[str, Any]", vars(name.module)).get(attribute)
        if found is not None and hasattr(found, "source"):
            return Kernel(found.source)
    return None


def operation(path: str) -> tuple[str, Level | None] | None:
    """The operation that a path names and the form that it fixes, if any; None when it names none."""
    prefix, _, name = path.rpartition(".")
    if prefix not in ("", *NAMESPACES):
        return None
    level = NAMESPACES.get(prefix)
    if path in ALIASES:
        return ALIASES[path]
    ops = registry()
    bare = name.removesuffix("_") if name not in ops else name
    cls = ops.get(bare)
    if cls is None or (level is not None and level not in cls.levels):
        return None
    return bare, level


def unknown(name: LanguageName, attribute: str) -> UnknownOpError | UnknownDTypeError:
    """The error for a name that the language does not have, with the nearest ones that it has."""
    path = f"{name.path}.{attribute}" if name.path else attribute
    if attribute in MICROSCALED:
        return UnknownDTypeError(
            f"pl.{path} is a dtype whose numbers this compiler does not compute with",
            required="one of " + ", ".join(BY_NAME),
            found=f"pl.{path}",
            help="keep the numbers as pl.FP8E4M3FN or pl.INT8, and scale them in the kernel",
        )
    if attribute.isupper() or name.path == "DataType":
        near = get_close_matches(attribute, BY_NAME, 2, 0.5)
        return UnknownDTypeError(
            f"there is no dtype pl.{path}",
            found=f"pl.{path}",
            help=f"did you mean {' or '.join(f'pl.{n}' for n in near)}?" if near else "one of " + ", ".join(BY_NAME),
        )
    known = _siblings(name.path)
    near = get_close_matches(attribute, known, 3, 0.6)
    prefix = f"pl.{name.path}." if name.path else "pl."
    return UnknownOpError(
        f"the language has no {prefix}{attribute}",
        found=prefix + attribute,
        help=f"did you mean {' or '.join(prefix + n for n in near)}?" if near else "docs/ops.md lists the operations",
    )


def _siblings(prefix: str) -> list[str]:
    """The names that stand beside each other after ``pl.<prefix>.``."""
    if prefix in ENUMS:
        return [spell_member(member) for member in ENUMS[prefix]]
    if prefix == "loop":
        return list(LOOP_LEVEL_WORDS)
    level = NAMESPACES.get(prefix)
    ops = [name for name, cls in registry().items() if level is None or level in cls.levels]
    return ops if prefix else [*ops, *SYNTAX_WORDS, *ENUMS, *ALIASES]


def _enum_of_ops(name: str) -> dict[str, object] | None:
    """The members of an enum that operations take as an attribute (``pl.CmpType.LT``), by name."""
    return _enums(len(registry())).get(name)


@lru_cache(maxsize=1)
def _enums(_: int) -> dict[str, dict[str, object]]:
    """The enums that occur as defaults of attributes, by name. Made again when the number of operations changes."""
    defaults: list[object] = [field.default for cls in registry().values() for field in cls.fields]
    return {type(d).__name__: dict(type(d).__members__) for d in defaults if isinstance(d, Enum)}


def is_dtype(binding: object) -> bool:
    return isinstance(binding, DType)
