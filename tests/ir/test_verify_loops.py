"""The verifier of loops: right programs pass, and each invariant has a program that breaks it alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from properties.loop_programs import draw_loops

from tilewright.errors import VerifyError
from tilewright.ir.buffers import AddressOf, Broadcast, BufferType, Extern, IfThenElse, Load, Ramp, Region
from tilewright.ir.dtypes import BOOL, FP32, INDEX, INT32
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import Allocate, ComputeBlock, Launch, Loop, LoopFunction, LoopKind, OpCall, Store
from tilewright.ir.nodes import If, Let, Yield
from tilewright.ir.op import Level
from tilewright.ir.scalar import Binary, BinaryKind, Const, Value
from tilewright.ir.types import ScalarType, TileType
from tilewright.ir.verify_loops import form_of, verify_loops
from tilewright.ops.elementwise import Exp
from tilewright.passes.loop.simplify import simplify


@pytest.mark.parametrize("structured", [True, False])
def test_random_programs_are_right(structured: bool) -> None:
    for seed in range(25):
        function = draw_loops(seed, structured=structured, affine=seed % 2 == 0)
        verify_loops(function)
        verify_loops(simplify(function))
        assert form_of(function) in (None, "structured" if structured else "lowered")


def free(name: str = "free") -> Value:
    return Value(name, ScalarType(INDEX))


ONE = Const(1.0, FP32)
Make = Callable[[LoopBuilder, Value], object]


def twice(f: LoopBuilder, a: Value) -> None:
    f.emit(Allocate(a))


def after_its_block(f: LoopBuilder, a: Value) -> None:
    with f.loop("i", 4) as i:
        t = f.alloc("t", (4,))
    f.store(a, (0,), Load(t, (0,)))
    f.store(a, (i,), 1.0)


def own_after_its_block(f: LoopBuilder, a: Value) -> None:
    with f.block("b") as own:
        t = own.alloc("t", (4,))
    f.store(t, (0,), 1.0)


def mixed(f: LoopBuilder, a: Value) -> None:
    with f.block("b"), f.launch("core", "c", 2):
        pass


def match_of_another_shape(f: LoopBuilder, a: Value) -> None:
    with f.block("b") as own:
        m = own.match("m", f.region(a, (0,), (3,)))
        m.type = BufferType((4,), FP32)


def explicit(f: LoopBuilder, a: Value) -> None:
    with f.block("b", [f.whole(a)], annotations=(("explicit_read_region", (1,)),)):
        pass


TILE = Value("x", TileType((2, 2), FP32))
WRONG: dict[str, Make] = {
    "'A' is defined twice": twice,
    "the buffer 't' does not exist here": after_its_block,
    "'t' does not exist": own_after_its_block,
    "'free' does not exist here": lambda f, a: f.store(a, (free(),), 1.0),
    "'A' is no number": lambda f, a: f.store(a, (0,), a),
    "a pointer is named": lambda f, a: f.store(a, (0,), AddressOf(a)),
    "another type than what it names": lambda f, a: f.emit(Let(Value("v", ScalarType(INT32)), ONE)),
    "the right side of": lambda f, a: f.store(a, (0,), Binary(BinaryKind.ADD, ONE, 1, FP32)),
    "the other arm": lambda f, a: f.store(a, (0,), IfThenElse(f.load(a, 0), ONE, Const(1, INT32))),
    "what is stored to 'A' has another dtype": lambda f, a: f.emit(Store(a, (0,), 1)),
    "'A' has 1 dimension": lambda f, a: f.store(a, (0, 0), 1.0),
    "an index of 'A' has another dtype": lambda f, a: f.store(a, (f.load(a, 0),), 1.0),
    "a bound of a loop has another": lambda f, a: f.emit(Loop(free(), 0, ONE, 1, ())),
    "step is 0": lambda f, a: f.emit(Loop(free(), 0, 4, 0, ())),
    "vectors of different lanes": lambda f, a: f.store(a, (Ramp(0, 1, 4),), Broadcast(ONE, 2)),
    "4 lanes are stored to 1 places": lambda f, a: f.store(a, (0,), Broadcast(ONE, 4)),
    "a condition of a statement is a vector": lambda f, a: f.emit(If(f.load(a, Ramp(0, 1, 4)), (), (), ())),
    "is a vector": lambda f, a: f.emit(Loop(free(), 0, Ramp(0, 1, 4), 1, ())),
    "f is not pure": lambda f, a: f.store(a, (0,), Extern("f", (), FP32)),
    "Yield is no statement": lambda f, a: f.emit(Yield(())),
    "has no results": lambda f, a: f.emit(If(Const(True, BOOL), (), (), (free(),))),
    "mixes the two forms": mixed,
    "a region of 'A' has another rank": lambda f, a: f.emit(ComputeBlock("b", (Region(a, (0, 0), (1, 1)),), (), ())),
    "the buffer 'free' does not": lambda f, a: f.emit(
        ComputeBlock("b", (), (Region(Value("free", a.type), (0,), (1,)),), ())
    ),
    "'m' has not the extents": match_of_another_shape,
    "explicit_read_region names": explicit,
    "dim_align of 't'": lambda f, a: f.alloc("t", (4,), dim_align=((1, 8, 0),)),
    "negative extent": lambda f, a: f.alloc("t", (-1,)),
    "names its threads": lambda f, a: f.emit(Loop(free(), 0, 4, 1, (), LoopKind.THREAD)),
    "how many threads 'core'": lambda f, a: f.emit(Launch("core", free(), None, ())),
    "lies nowhere": lambda f, a: f.emit(OpCall(Exp(TILE, level=Level.TILE), (), f.whole(a))),
    "another rank than the tile": lambda f, a: f.emit(OpCall(Exp(TILE, level=Level.TILE), ((TILE, f.whole(a)),), None)),
}


@pytest.mark.parametrize("message", list(WRONG))
def test_each_invariant(message: str) -> None:
    f = LoopBuilder()
    a = f.buffer("A", (8,))
    verify_loops(f.build())
    WRONG[message](f, a)
    with pytest.raises(VerifyError, match=message):
        verify_loops(f.build())


def test_numbers_are_conditions() -> None:
    f = LoopBuilder()
    a = f.buffer("A", (8,))
    with f.when(f.load(a, 0)), f.repeat(f.scalar("n")):
        f.let("p", AddressOf(a))
        f.let("lanes", Ramp(0, 1, 4))
    verify_loops(f.build())
    assert form_of(LoopFunction("none", (), ())) is None
