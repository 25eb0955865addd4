"""Conversions: what is derived from op classes, what users add, and what happens without one (spaces R1-R3, R9)."""

from __future__ import annotations

import pytest
import tilewright as tw
from meaning import check_same_meaning
from tilewright.errors import OperandError, UnknownOpError, UnsupportedError
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level, Needs, Op, operand, registry as ops
from tilewright.ir.scalar import Value
from tilewright.ops.elementwise import Add, Neg
from tilewright.ops.matmul import Matmul
from tilewright.passes.tensor.convert_tensor_to_tile import (
    DEFAULT,
    InputSpaceReq,
    OpConversionRegistry,
    convert_tensor_to_tile,
)
from tilewright.targets import load_target

VEC, MAT = MemorySpace.VEC, MemorySpace.MAT
TARGET = load_target("ascend910b")


def kernel(*lines: str) -> tw.Program:
    body = "\n        ".join(lines)
    return tw.parse(
        f"""import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 32], pl.FP32], b: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        {body}
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        return out_1
"""
    )


def made(program: tw.Program) -> list[Op]:
    return [s.value for s in program.main.walk() if isinstance(s, Let) and isinstance(s.value, Op)]


def test_requirements_come_from_the_op_classes() -> None:
    registry = OpConversionRegistry()
    assert registry.get_input_reqs("tensor.add") == {0: InputSpaceReq(VEC), 1: InputSpaceReq(VEC)}
    assert registry.get_input_reqs("tensor.matmul") == {0: InputSpaceReq(MAT, "a_trans"), 1: InputSpaceReq(MAT, "b_trans")}
    # The accumulator has no requirement; the operands of the class are lhs, rhs, acc.
    assert set(registry.get_input_reqs("tensor.matmul_acc").values()) == {
        InputSpaceReq(MAT, "a_trans"), InputSpaceReq(MAT, "b_trans")
    }
    assert len(registry.get_input_reqs("tensor.matmul_acc")) == 2


@pytest.mark.parametrize("name", ["slice", "read", "write", "assemble", "create", "full", "reshape"])
def test_what_is_a_load_or_store_itself_requires_nothing(name: str) -> None:
    assert OpConversionRegistry().get_input_reqs(f"tensor.{name}") == {}


def test_every_tensor_operation_has_an_entry_that_states_its_needs() -> None:
    """An entry without requirements is one whose class says so; nothing is taken for Vec silently."""
    registry = OpConversionRegistry()
    for name, cls in ops().items():
        if Level.TENSOR not in cls.levels or not cls.name:
            continue
        entry = registry.lookup(f"tensor.{name}")
        assert entry is not None, name
        assert cls.lowering is not None, f"{name} states no needs"
        assert len(entry.input_reqs) == len(cls.lowering.fields)


def test_lookup_of_an_operation_and_of_its_name_agree() -> None:
    program = kernel("x = pl.tensor.add(a, b)")
    op = made(program)[0]
    registry = OpConversionRegistry()
    assert registry.lookup(op) is registry.lookup("tensor.add")


def test_a_simple_conversion_added_at_run_time() -> None:
    registry = OpConversionRegistry()
    assert not registry.is_modified
    registry.register_simple("tensor.add", "tile.sub", {0: InputSpaceReq(VEC), 1: InputSpaceReq(VEC)})
    assert registry.is_modified and registry.names == ("tensor.add",)
    before = kernel("x = pl.tensor.add(a, b)")
    after = convert_tensor_to_tile(before, TARGET, registry)
    check_same_meaning(convert_tensor_to_tile(kernel("x = pl.tensor.sub(a, b)"), TARGET), after)
    assert not DEFAULT.is_modified


def test_a_custom_conversion_gets_its_inputs_where_it_wants_them() -> None:
    registry = OpConversionRegistry()
    seen: list[MemorySpace | None] = []

    def convert(op, context):  # noqa: ANN001, ANN202
        seen.append(op.tile.type.space)
        return context.emit(Neg(op.tile, level=Level.TILE))

    registry.register_custom("tensor.exp", convert, {0: InputSpaceReq(VEC)})
    after = convert_tensor_to_tile(kernel("x = pl.tensor.exp(a)"), TARGET, registry)
    assert seen == [VEC]
    check_same_meaning(convert_tensor_to_tile(kernel("x = pl.tensor.neg(a)"), TARGET), after)


def test_a_conversion_without_requirements_loads_nothing() -> None:
    registry = OpConversionRegistry()
    kinds: list[str] = []

    def convert(op, context):  # noqa: ANN001, ANN202
        kinds.append(type(op.tile.type).__name__)
        return context.emit(Neg(op.tile, level=Level.TILE))

    registry.register_custom("tensor.exp", convert)
    after = convert_tensor_to_tile(kernel("x = pl.tensor.exp(a)"), TARGET, registry)
    assert kinds == ["TensorType"], "the conversion sees the tensor itself"
    assert [op.target_memory for op in made(after) if op.qualified_name == "tile.load"] == [VEC], "where the op reads it"


@pytest.mark.parametrize(
    ("name", "error"), [("tensor.ad", UnknownOpError), ("tile.add", OperandError), ("add", OperandError)]
)
def test_names_that_are_not_of_tensor_operations_are_refused(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        OpConversionRegistry().register_simple(name, "tile.add")


def test_requirements_of_inputs_that_do_not_exist_are_refused() -> None:
    with pytest.raises(OperandError, match="no input 2"):
        OpConversionRegistry().register_simple("tensor.add", "tile.add", {2: InputSpaceReq(VEC)})
    with pytest.raises(OperandError, match="no attribute 'a_tran'"):
        OpConversionRegistry().register_simple("tensor.matmul", "tile.matmul", {0: InputSpaceReq(MAT, "a_tran")})


def test_an_operation_without_a_conversion_is_refused_at_its_line() -> None:
    class Nameless(Op, levels=(Level.TENSOR,)):
        tensor: Value = operand()
        lowering = Needs()

        def infer(self):  # noqa: ANN202
            return self.tensor.type

    program = kernel("x = pl.tensor.exp(a)")
    main = program.main
    first = main.body[0]
    assert isinstance(first, Let)
    swapped = Let(first.target, Nameless(main.params[0].value, level=Level.TENSOR), span=first.span)
    broken = program.with_functions((main.with_body((swapped, *main.body[1:])),))
    with pytest.raises(UnsupportedError) as caught:
        convert_tensor_to_tile(broken, TARGET)
    assert caught.value.span == first.span


def test_the_transposition_attribute_is_used_up_by_the_bridge() -> None:
    registry = OpConversionRegistry()
    registry.register_simple(
        "tensor.matmul", "tile.matmul", {0: InputSpaceReq(MAT, "a_trans"), 1: InputSpaceReq(MAT, "b_trans")}
    )
    before = kernel("y = pl.tensor.matmul(a, b, a_trans=True)", "x = pl.tensor.slice(y, [16, 32], [0, 0])")
    after = convert_tensor_to_tile(before, TARGET, registry)
    products = [op for op in made(after) if isinstance(op, Matmul)]
    assert [op.a_trans for op in products] == [False]
    assert after == convert_tensor_to_tile(before, TARGET)
    check_same_meaning(before, after)


def test_scalar_forms_have_entries_of_their_own() -> None:
    registry = OpConversionRegistry()
    registry.register_simple("tensor.adds", "tile.muls", {0: InputSpaceReq(VEC)})
    plain = made(kernel("x = pl.tensor.add(a, b)"))[0]
    assert isinstance(plain, Add)
    assert registry.lookup(plain) is registry.lookup("tensor.add")
    after = convert_tensor_to_tile(kernel("x = pl.tensor.adds(a, 3.0)"), TARGET, registry)
    check_same_meaning(convert_tensor_to_tile(kernel("x = pl.tensor.muls(a, 3.0)"), TARGET), after)
