"""Which operations are written by a function of their own, by class.

Registered in `special` and `transfers`. An operation has exactly one of: a mnemonic in its class, a function here, or a
reason why PTO text has no form for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.ir.op import Op
from tilewright.ir.scalar import Value

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel

Special = Callable[["Kernel", Any, Value], None]
SPECIAL: dict[type[Op], Special] = {}
"""The function for each class: it gets the kernel, the operation and the value that holds its result."""


def special(*classes: type[Op]) -> Callable[[Special], Special]:
    """Registers the decorated function for `classes`."""

    def register(function: Special) -> Special:
        for cls in classes:
            assert cls not in SPECIAL, f"{cls.__name__} has two functions"
            SPECIAL[cls] = function
        return function

    return register
