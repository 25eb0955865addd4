"""Every x86 target compiles every form; those that this machine can execute give the interpreter's results too."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from native.building import Building, compiled, draw, host, same, special

from tilewright.codegen.native import cache_key_parts, emit_llvm, load_object
from tilewright.codegen.native.llvm import assembly_of, processor_of
from tilewright.errors import CodegenError, UnsupportedError
from tilewright.ir.dtypes import BF16, BOOL, FP8E5M2, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ops import Cast, Cmp, Matmul, Sel, Transpose
from tilewright.ops.broadcast import ColExpandMul, RowExpandSub
from tilewright.ops.elementwise import Abs, Add, Div, Exp, Log, Maximum, Mul, Rsqrt, Sqrt
from tilewright.ops.reduce import ColSum, RowMax, RowSum
from tilewright.targets import load_target, target_names

TARGETS = tuple(name for name in target_names() if load_target(name).llvm_cpu)


def many(dtype: DType) -> Program:
    """One of each form, with run-time extents."""
    b = Building()
    m, n = b.scalar("m"), b.scalar("n")
    a, c = b.tensor("a", 24, 70, dtype=dtype), b.tensor("c", 24, 70, dtype=dtype)
    out = b.tensor("out", 24 * 4, 70, dtype=dtype, out=True)
    x, y = b.load(a, (m, n)), b.load(c, (m, n))
    mask = b.let(Cmp(x, y, 2))
    values = [b.let(Add(x, y)), b.let(Maximum(b.let(Abs(x)), b.let(Mul(y, x)))), b.let(Sel(mask, x, y))]
    values.append(b.let(ColExpandMul(b.let(RowExpandSub(x, b.let(RowMax(y)))), b.let(ColSum(x)))))
    for row, value in enumerate(values):
        b.store(value, out, (24 * row, 0))
    sums, turned = b.tensor("sums", 24, 1, dtype=dtype, out=True), b.tensor("turned", 70, 24, dtype=dtype, out=True)
    b.store(b.let(RowSum(x)), sums)
    b.store(b.let(Transpose(x)), turned)
    product = b.tensor("product", 24, 24, dtype=INT32 if dtype is INT8 else FP32, out=True)
    b.store(b.let(Matmul(x, b.load(c, (m, n), transpose=True))), product)
    return b.program()


@pytest.mark.parametrize("dtype", (FP32, FP16, BF16, INT8), ids=lambda d: d.name)
@pytest.mark.parametrize("name", TARGETS)
def test_every_form_on_every_target(name: str, dtype: DType) -> None:
    program = many(dtype)
    kernel = compiled(program, load_target(name))
    assert kernel.object_code
    if not kernel.runnable:
        with pytest.raises(CodegenError, match="cannot execute"):
            kernel(0, 0)
        return
    shapes = ((24, 70), (24, 70), (96, 70), (24, 1), (70, 24))
    for rows, columns in ((1, 1), (24, 70), (7, 16), (23, 17), (24, 65)):
        arrays = [draw(shape, dtype, k) for k, shape in enumerate(shapes)]
        wide = draw((24, 24), INT32 if dtype is INT8 else FP32)
        same(program, [rows, columns, *arrays, wide], kernel)


def compared(name: str, program: Program, ulp: float) -> None:
    """The program, of one input of 8 x 97, on special values, values halfway between narrow ones, and plain ones."""
    kernel = compiled(program, load_target(name))
    if not kernel.runnable:
        return
    outputs = [np.zeros((8, 97), np.dtype(p.numpy)) for p in kernel.signature.params[1:]]
    for seed in range(4):
        halves = special((8, 97), FP16, seed).astype(np.float32)
        with np.errstate(all="ignore"):
            near = halves * np.float32(1 + 2.0**-11)
        plain = np.linspace(-300, 300, 8 * 97, dtype=np.float32).reshape(8, 97)
        for given in (special((8, 97), FP32, seed), halves, near, plain):
            same(program, [given, *outputs], kernel, ulp)


@pytest.mark.parametrize("name", TARGETS)
def test_conversions_on_every_target(name: str) -> None:
    b = Building()
    a = b.tensor("a", 8, 97)
    x = b.load(a)
    for dtype in (FP16, BF16, INT8, INT32, BOOL):
        for mode in ("round", "floor", "ceil", "trunc") if dtype in (INT8, INT32) else ("round",):
            out = b.tensor(f"to_{dtype.short}_{mode}", 8, 97, dtype=dtype, out=True)
            b.store(b.let(Cast(x, dtype, mode)), out)
    for dtype in (FP16, BF16):
        back = b.tensor(f"back_{dtype.short}", 8, 97, out=True)
        b.store(b.let(Cast(b.let(Cast(x, dtype)), FP32)), back)
    b.store(b.let(Div(x, b.let(Add(x, x)))), b.tensor("quotient", 8, 97, out=True))
    for op in (Sqrt, Rsqrt):
        b.store(b.let(op(x)), b.tensor(op.name, 8, 97, out=True))
    compared(name, b.program(), 0)


@pytest.mark.parametrize("name", TARGETS)
def test_polynomials_on_every_target(name: str) -> None:
    b = Building()
    x = b.load(b.tensor("a", 8, 97))
    for op in (Exp, Log):
        b.store(b.let(op(x)), b.tensor(op.name, 8, 97, out=True))
    compared(name, b.program(), 2)


def test_vectors_are_as_wide_as_the_target() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 64), b.tensor("out", 8, 64, out=True)
    b.store(b.let(Add(b.load(a), b.load(a))), out)
    program = b.program()
    for name, register in (("generic", "xmm"), ("x86_avx2", "ymm"), ("x86_avx512", "zmm"), ("x86_amx", "zmm")):
        target = load_target(name)
        assert register in assembly_of(emit_llvm(program, target), processor_of(target))


def test_no_call_leaves_the_loops() -> None:
    """exp, log and roundings are instructions, not calls of a mathematics library."""
    b = Building()
    a = b.tensor("a", 8, 64)
    for op in (Exp, Log, Sqrt, Rsqrt):
        b.store(b.let(op(b.load(a))), b.tensor(op.name, 8, 64, out=True))
    for mode in ("round", "floor", "ceil", "trunc"):
        b.store(b.let(Cast(b.load(a), INT32, mode)), b.tensor(mode, 8, 64, dtype=INT32, out=True))
    program = b.program()
    for name in TARGETS:
        target = load_target(name)
        listing = assembly_of(emit_llvm(program, target), processor_of(target))
        named = set(re.findall(r"movabsq\s+\$([A-Za-z_.][\w.]*)", listing))
        named |= set(re.findall(r"call\w*\s+(\w[\w.]*)", listing))
        defined = set(re.findall(r"^\"?([\w.]+)\"?:", listing, flags=re.M))
        assert "loops.0" in named, "the kernel calls its own loops"
        assert named <= defined, f"{name}: {named - defined}"


def test_a_target_without_native_code_says_so() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 64), b.tensor("out", 8, 64, out=True)
    b.store(b.load(a), out)
    with pytest.raises(UnsupportedError, match="ascend910b"):
        compiled(b.program(), load_target("ascend910b"))


def test_a_dtype_without_native_code_says_so() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 64, dtype=FP8E5M2), b.tensor("out", 8, 64, dtype=FP8E5M2, out=True)
    b.store(b.load(a), out)
    with pytest.raises(UnsupportedError, match="FP8E5M2"):
        compiled(b.program())


def test_object_code_is_for_its_processor() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 64), b.tensor("out", 8, 64, out=True)
    b.store(b.load(a), out)
    kernel = compiled(b.program(), load_target("x86_amx"))
    if not kernel.runnable:
        with pytest.raises(CodegenError, match="cannot execute"):
            load_object(kernel.object_code)
    assert len({cache_key_parts(load_target(name)) for name in TARGETS}) == len(TARGETS)
    assert cache_key_parts(host()) == cache_key_parts(host())


def test_llvm_is_loaded_only_to_compile() -> None:
    """Importing the package, as the command line does, must stay quick."""
    code = "import sys, tilewright.codegen.native; sys.exit('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
