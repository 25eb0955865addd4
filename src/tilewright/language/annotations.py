"""What stands in the signature of a kernel: ``a: pl.Tensor[[64, n], pl.FP32]``, ``out: pl.Out[pl.Tensor]``.

Annotations are read from the source. At run time they are harmless objects with a readable `repr`; for a type checker
they are classes whose values have the operators of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tilewright.language.words import Word

T = TypeVar("T")


class Written:
    """An annotation as it was written, for people who look at a signature."""

    __slots__ = ("items", "pl_name")

    def __init__(self, pl_name: str, items: object) -> None:
        self.pl_name = pl_name
        self.items = items

    def __repr__(self) -> str:
        return f"pl.{self.pl_name}[{self.items!r}]"

    def __or__(self, other: object) -> Written:
        return self

    def __ror__(self, other: object) -> Written:
        return self


class Array:
    """Operators of tensors and tiles, as a type checker sees them. There are no instances."""

    pl_name: ClassVar[str] = ""
    shape: Any
    dtype: Any
    T: Any

    if not TYPE_CHECKING:

        def __class_getitem__(cls, items: object) -> Written:
            return Written(cls.pl_name, items)
    else:

        def __class_getitem__(cls, items: Any) -> Any: ...
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __neg__(self) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __invert__(self) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...


class Tensor(Array):
    """``pl.Tensor[[64, n], pl.FP32]``: a tensor in DDR. Bare, its shape and dtype come from the first call."""

    pl_name = "Tensor"


class Tile(Array):
    """``pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec]``: a tile on chip."""

    pl_name = "Tile"


class Scalar(Array):
    """``pl.Scalar[pl.INDEX]``: a number given when the kernel runs."""

    pl_name = "Scalar"


class Tuple(Array):
    """``pl.Tuple[T, U]``: several values returned together."""

    pl_name = "Tuple"


if TYPE_CHECKING:
    from typing import Annotated

    Out = Annotated[T, "Out"]
    InOut = Annotated[T, "InOut"]
else:

    class Out(Array):
        """``pl.Out[pl.Tensor]``: a tensor that the kernel writes; its former content is not read."""

        pl_name = "Out"

    class InOut(Array):
        """``pl.InOut[pl.Tensor]``: a tensor that the kernel reads and writes."""

        pl_name = "InOut"


class ViewWord(Word):
    """`TensorView` and `TileView`, which stand in annotations and may be evaluated there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Written(self.pl_name, (args, kwargs))


TensorView = ViewWord(
    "TensorView", "``pl.TensorView(stride=[128, 1])``: how a tensor lies in DDR; strides in elements."
)
TileView = ViewWord("TileView", "``pl.TileView(valid_shape=[n, 64], blayout=…)``: how a tile looks at its buffer.")
