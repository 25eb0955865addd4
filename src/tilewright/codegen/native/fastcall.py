"""The call of a kernel as a function in machine code: arguments are compared with what is expected, then it runs.

    ptr call(ptr self, ptr args, i64 nargs)

is what CPython calls a METH_FASTCALL function. One function serves every kernel: what it compares with is data, in a
table of 8-byte words whose address `self`, a bytes object, holds. So the code has no address of any process in it, and
a new kernel costs a table and no compilation. Before, in Python, per array: `arg.dtype is wanted.dtype`, `arg.shape ==
wanted.shape`, …; after: loads from the array's struct, and comparisons.

It returns the object `miss` without having done anything when some argument is not as expected, or while another call
has the workspace; a bytes object (the number of a failed check, and what it reports) after a guard failed; else what
the kernel returns. The lock of the interpreter is released while the kernel runs.
"""

from __future__ import annotations

from functools import cache

from tilewright.codegen.native.guards import REPORT
from tilewright.codegen.native.llvm import Loaded, Processor, object_of

SYMBOL = "call"

HEAD = (
    "count", "array_type", "float_type", "int_type", "miss", "none", "incref", "as_integer", "save", "restore",
    "as_bytes", "new_tuple", "set_item", "entry", "workspace", "busy", "shown", "slots",
)  # fmt: skip
"""Words at the start of the table, by name; the parameters' follow, then indices of the arguments that come back."""

PARAMETER = ("kind", "output", "descr", "rank", "flags", "misaligned", "span", "extents")
"""Words for each parameter: `flags` that an array must have, bits that its address must not have, bytes from its first
element to the end of its last, and where its extents lie, followed by its strides."""

ARRAY, FLOAT, INTEGER = 0, 1, 2
"""Kinds of parameters."""

BYTES_AT, FLOAT_AT = 32, 16
"""Where a bytes object has its bytes and a float its value."""

ARRAY_DATA, ARRAY_RANK, ARRAY_EXTENTS, ARRAY_STRIDES, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 40, 56, 64
"""Where an ndarray has its fields."""

LARGEST = "0x47EFFFFFE0000000"
"""The largest float32, as a double."""


def _words(base: str, names: tuple[str, ...], prefix: str) -> list[str]:
    """Loads of words of the table, each named after its field."""
    lines: list[str] = []
    for number, name in enumerate(names):
        lines.append(f"  %{prefix}{name}.at = getelementptr i64, ptr {base}, i64 {number}")
        lines.append(f"  %{prefix}{name} = load i64, ptr %{prefix}{name}.at")
    return lines


def _field(name: str, kind: str, base: str, offset: int) -> list[str]:
    return [f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}", f"  %{name} = load {kind}, ptr %{name}.at"]


def text() -> str:
    """The module."""
    functions = ("incref", "as_integer", "save", "restore", "as_bytes", "new_tuple", "set_item", "entry")
    return "\n".join(
        [
            f"define ptr @{SYMBOL}(ptr %self, ptr %args, i64 %nargs) {{",
            *_field("table", "ptr", "%self", BYTES_AT),
            *_words("%table", HEAD, ""),
            *(f"  %{name}.fn = inttoptr i64 %{name} to ptr" for name in functions),
            "  %slot = alloca i64, i64 %slots",
            "  %overflow = alloca i32",
            f"  %params = getelementptr i64, ptr %table, i64 {len(HEAD)}",
            f"  %params.words = mul i64 %count, {len(PARAMETER)}",
            "  %back = getelementptr i64, ptr %params, i64 %params.words",
            "  %right = icmp eq i64 %nargs, %count",
            "  br i1 %right, label %next, label %missed",
            _ARGUMENTS_HEAD,
            *_words("%p", PARAMETER, "p."),
            _ARGUMENT_KINDS,
            *_field("data", "i64", "%arg", ARRAY_DATA),
            *_field("rank", "i32", "%arg", ARRAY_RANK),
            *_field("extents", "ptr", "%arg", ARRAY_EXTENTS),
            *_field("strides", "ptr", "%arg", ARRAY_STRIDES),
            *_field("descr", "i64", "%arg", ARRAY_DESCR),
            *_field("flags", "i32", "%arg", ARRAY_FLAGS),
            _ARRAY,
            *_field("double", "double", "%arg", FLOAT_AT),
            _NUMBERS,
            _OVERLAPS,
            _RUN,
            _RETURN,
            "}",
            "",
            "declare double @llvm.fabs.f64(double)",
            "",
        ]
    )


_ARGUMENTS_HEAD = f"""
next:
  %i = phi i64 [0, %0], [%i.next, %accepted]
  %all = icmp eq i64 %i, %count
  br i1 %all, label %outputs, label %argument
argument:
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.at
  %type.at = getelementptr i8, ptr %arg, i64 8
  %type = load i64, ptr %type.at
  %p.offset = mul i64 %i, {len(PARAMETER)}
  %p = getelementptr i64, ptr %params, i64 %p.offset"""

_ARGUMENT_KINDS = f"""
  switch i64 %p.kind, label %integer [ i64 {ARRAY}, label %maybe.array
                                       i64 {FLOAT}, label %maybe.float ]
maybe.array:
  %is.array = icmp eq i64 %type, %array_type
  br i1 %is.array, label %array, label %missed
array:"""

_ARRAY = """
  %same.descr = icmp eq i64 %descr, %p.descr
  %rank.wide = zext i32 %rank to i64
  %same.rank = icmp eq i64 %rank.wide, %p.rank
  %flags.wide = zext i32 %flags to i64
  %flags.have = and i64 %flags.wide, %p.flags
  %same.flags = icmp eq i64 %flags.have, %p.flags
  %low.bits = and i64 %data, %p.misaligned
  %aligned = icmp eq i64 %low.bits, 0
  %fits.0 = and i1 %same.descr, %same.rank
  %fits.1 = and i1 %same.flags, %aligned
  %fits = and i1 %fits.0, %fits.1
  %wanted.extents = inttoptr i64 %p.extents to ptr
  %wanted.strides = getelementptr i64, ptr %wanted.extents, i64 %p.rank
  br i1 %fits, label %axis, label %missed
axis:
  %a = phi i64 [0, %array], [%a.next, %same.axis]
  %axes.done = icmp eq i64 %a, %p.rank
  br i1 %axes.done, label %accepted, label %compare
compare:
  %extent.at = getelementptr i64, ptr %extents, i64 %a
  %extent = load i64, ptr %extent.at
  %wanted.extent.at = getelementptr i64, ptr %wanted.extents, i64 %a
  %wanted.extent = load i64, ptr %wanted.extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %a
  %stride = load i64, ptr %stride.at
  %wanted.stride.at = getelementptr i64, ptr %wanted.strides, i64 %a
  %wanted.stride = load i64, ptr %wanted.stride.at
  %same.extent = icmp eq i64 %extent, %wanted.extent
  %same.stride = icmp eq i64 %stride, %wanted.stride
  %same = and i1 %same.extent, %same.stride
  br i1 %same, label %same.axis, label %missed
same.axis:
  %a.next = add i64 %a, 1
  br label %axis
maybe.float:
  %is.float = icmp eq i64 %type, %float_type
  br i1 %is.float, label %float, label %missed
float:"""

_NUMBERS = f"""
  %magnitude = call double @llvm.fabs.f64(double %double)
  %too.large = fcmp ogt double %magnitude, {LARGEST}
  %single = fptrunc double %double to float
  %single.bits = bitcast float %single to i32
  %single.slot = zext i32 %single.bits to i64
  br i1 %too.large, label %missed, label %accepted
integer:
  %is.int = icmp eq i64 %type, %int_type
  br i1 %is.int, label %convert, label %missed
convert:
  %number = call i64 %as_integer.fn(ptr %arg, ptr %overflow)
  %overflowed = load i32, ptr %overflow
  %held = icmp eq i32 %overflowed, 0
  br i1 %held, label %accepted, label %missed
accepted:
  %value = phi i64 [%data, %axis], [%single.slot, %float], [%number, %convert]
  %slot.at = getelementptr i64, ptr %slot, i64 %i
  store i64 %value, ptr %slot.at
  %i.next = add i64 %i, 1
  br label %next"""

_OVERLAPS = f"""
outputs:
  %o = phi i64 [0, %next], [%o.next, %apart]
  %o.all = icmp eq i64 %o, %count
  br i1 %o.all, label %take, label %output
output:
  %o.offset = mul i64 %o, {len(PARAMETER)}
  %o.p = getelementptr i64, ptr %params, i64 %o.offset
  %o.output.at = getelementptr i64, ptr %o.p, i64 {PARAMETER.index("output")}
  %o.output = load i64, ptr %o.output.at
  %o.span.at = getelementptr i64, ptr %o.p, i64 {PARAMETER.index("span")}
  %o.span = load i64, ptr %o.span.at
  %o.low.at = getelementptr i64, ptr %slot, i64 %o
  %o.low = load i64, ptr %o.low.at
  %o.high = add i64 %o.low, %o.span
  %o.next = add i64 %o, 1
  %is.output = icmp ne i64 %o.output, 0
  br i1 %is.output, label %others, label %apart
others:
  %j = phi i64 [0, %output], [%j.next, %other.apart]
  %j.all = icmp eq i64 %j, %count
  br i1 %j.all, label %apart, label %other
other:
  %j.offset = mul i64 %j, {len(PARAMETER)}
  %j.p = getelementptr i64, ptr %params, i64 %j.offset
  %j.kind = load i64, ptr %j.p
  %j.span.at = getelementptr i64, ptr %j.p, i64 {PARAMETER.index("span")}
  %j.span = load i64, ptr %j.span.at
  %j.low.at = getelementptr i64, ptr %slot, i64 %j
  %j.low = load i64, ptr %j.low.at
  %j.high = add i64 %j.low, %j.span
  %j.array = icmp eq i64 %j.kind, {ARRAY}
  %j.else = icmp ne i64 %j, %o
  %begins = icmp ult i64 %j.low, %o.high
  %ends = icmp ult i64 %o.low, %j.high
  %meets.0 = and i1 %j.array, %j.else
  %meets.1 = and i1 %begins, %ends
  %meets = and i1 %meets.0, %meets.1
  br i1 %meets, label %missed, label %other.apart
other.apart:
  %j.next = add i64 %j, 1
  br label %others
apart:
  br label %outputs"""

_RUN = f"""
take:
  %taken = cmpxchg ptr %busy.at, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{i64, i1}} %taken, 1
  br i1 %free, label %run, label %missed
run:
  %space = inttoptr i64 %workspace to ptr
  %thread = call ptr %save.fn()
  %code = call i64 %entry.fn(ptr %slot, ptr %space)
  store atomic i64 0, ptr %busy.at release, align 8
  call void %restore.fn(ptr %thread)
  %good = icmp eq i64 %code, 0
  br i1 %good, label %returned, label %failed
failed:
  %report.index = sub i64 %slots, {REPORT}
  %report = getelementptr i64, ptr %slot, i64 %report.index
  %message = alloca [{REPORT + 1} x i64]
  store i64 %code, ptr %message
  %message.rest = getelementptr i64, ptr %message, i64 1
  %words = load [{REPORT} x i64], ptr %report
  store [{REPORT} x i64] %words, ptr %message.rest
  %told = call ptr %as_bytes.fn(ptr %message, i64 {8 * (REPORT + 1)})
  ret ptr %told
missed:
  %miss.object = inttoptr i64 %miss to ptr
  call void %incref.fn(ptr %miss.object)
  ret ptr %miss.object"""

_RETURN = """
returned:
  switch i64 %shown, label %many [ i64 0, label %nothing
                                   i64 1, label %one ]
nothing:
  %none.object = inttoptr i64 %none to ptr
  call void %incref.fn(ptr %none.object)
  ret ptr %none.object
one:
  %only = load i64, ptr %back
  %only.at = getelementptr ptr, ptr %args, i64 %only
  %only.object = load ptr, ptr %only.at
  call void %incref.fn(ptr %only.object)
  ret ptr %only.object
many:
  %tuple = call ptr %new_tuple.fn(i64 %shown)
  %made = icmp ne ptr %tuple, null
  br i1 %made, label %item, label %done
item:
  %r = phi i64 [0, %many], [%r.next, %item]
  %index.at = getelementptr i64, ptr %back, i64 %r
  %index = load i64, ptr %index.at
  %item.at = getelementptr ptr, ptr %args, i64 %index
  %item.object = load ptr, ptr %item.at
  call void %incref.fn(ptr %item.object)
  %set = call i32 %set_item.fn(ptr %tuple, i64 %r, ptr %item.object)
  %r.next = add i64 %r, 1
  %r.all = icmp eq i64 %r.next, %shown
  br i1 %r.all, label %done, label %item
done:
  ret ptr %tuple"""


@cache
def loaded() -> Loaded:
    """The function in this process. Compiled when first asked for."""
    return Loaded(object_of(text(), Processor("generic", "", 16, True)), (SYMBOL,))


def address() -> int:
    """Where the function lies."""
    return loaded().address(SYMBOL)
