"""Running placed programs at their planned addresses: the memory machine."""

from tilewright.execute.memory.machine import MemoryMachine, run_placed

__all__ = ["MemoryMachine", "run_placed"]
