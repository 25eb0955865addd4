"""Running programs without a device: the reference interpreter."""

from tilewright.execute.interpreter import Data, Interpreter, interpret

__all__ = ["Data", "Interpreter", "interpret"]
