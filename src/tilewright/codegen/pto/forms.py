"""How each operation is written: one function for each shape of text, and the table that says who is written so."""

from __future__ import annotations

import re

from tilewright.codegen.pto.parser import Form, Parser, number
from tilewright.codegen.pto.syntax import Attribute, Operation
from tilewright.codegen.pto.types import ScalarType, Type, parse_type
from tilewright.errors import Span


def _tile_op(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    operands: tuple[str, ...] = ()
    operand_types: tuple[Type, ...] = ()
    attributes: dict[str, Attribute] = {}
    if reader.accept("ins"):
        operands, operand_types, attributes = reader.operand_list()
    outs: tuple[str, ...] = ()
    out_types: tuple[Type, ...] = ()
    result_types: tuple[Type, ...] = ()
    if reader.accept("outs"):
        if results and reader.accept(":"):
            result_types = (reader.type(),)
        else:
            outs, out_types, _ = reader.operand_list()
    attributes |= reader.attributes()
    if not operands:
        raise reader.fail("ins(…)")
    return Operation(name, span, results, result_types, operands, operand_types, outs, out_types, {}, attributes)


def _make_tensor_view(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    pointer = reader.value()
    named: dict[str, tuple[str, ...]] = {}
    for key in ("shape", "strides"):
        reader.expect(",")
        reader.expect(key)
        reader.expect("=")
        named[key] = reader.bracket()
    attributes = reader.attributes()
    reader.expect(":")
    return Operation(name, span, results, (reader.type(),), (pointer,), named=named, attributes=attributes)


def _partition_view(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    view = reader.value()
    named: dict[str, tuple[str, ...]] = {}
    for key in ("offsets", "sizes"):
        reader.expect(",")
        reader.expect(key)
        reader.expect("=")
        named[key] = reader.bracket()
    reader.expect(":")
    source = reader.type()
    reader.expect("->")
    return Operation(name, span, results, (reader.type(),), (view,), (source,), named=named)


def _alloc_tile(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    named: dict[str, tuple[str, ...]] = {}
    while not reader.accept(":"):
        key = reader.kind("word", "`addr`, `valid_row`, `valid_col` or `:`")
        if key not in ("addr", "valid_row", "valid_col"):
            reader.position -= 1
            raise reader.fail("`addr`, `valid_row`, `valid_col` or `:`")
        reader.expect("=")
        named[key] = (reader.value(),)
    return Operation(name, span, results, (reader.type(),), named=named)


def _plain(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    """`%a, %b : T [to|-> T2]`, with an optional leading predicate and flags in angles (arith, views of tiles).

    One type stands for every operand of `arith`, and for the first one of anything else."""
    attributes: dict[str, Attribute] = {}
    if reader.next.kind == "word":
        attributes["predicate"] = reader.take().text
        reader.expect(",")
    operands = reader.listed(reader.value) if reader.next.kind == "value" else ()
    while reader.next.kind == "word" and reader.next.text in ("overflow", "fastmath"):
        reader.take()
        reader.kind("angle", "flags in <…>")
    attributes |= reader.attributes()
    types = reader.listed(reader.type) if reader.accept(":") else ()
    converted = reader.types() if reader.accept("to") or reader.accept("->") else types[-1:]
    if name in ("arith.cmpi", "arith.cmpf"):
        converted = (ScalarType("i1"),)
    if len(types) == 1 and name.startswith("arith."):
        types *= len(operands)
    if name == "arith.select" and len(types) == len(operands):
        types = (ScalarType("i1"), *types[1:])
    return Operation(name, span, results, converted if results else (), operands, types, attributes=attributes)


def _constant(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    if reader.next.text in ("true", "false"):
        value: Attribute = reader.take().text == "true"
        kind: Type = reader.type() if reader.accept(":") else ScalarType("i1")
    else:
        text = reader.kind("number", "a number, `true` or `false`")
        # A hexadecimal constant of a float type spells bits, so it stays text until its type is known.
        value = text if text.startswith("0x") else number(text)
        reader.expect(":")
        kind = reader.type()
    return Operation(name, span, results, (kind,), attributes={"value": value})


def _scalar_access(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    """`load_scalar %p[%i] : ptr -> T` and `store_scalar %v, %p[%i] : ptr, T`."""
    stored = () if name == "pto.load_scalar" else (reader.value(),)
    if stored:
        reader.expect(",")
    pointer = reader.value()
    index = reader.bracket()
    reader.expect(":")
    kind = reader.type()
    reader.expect("," if stored else "->")
    element = reader.type()
    return Operation(
        name, span, results, () if stored else (element,), (pointer, *stored), (kind, *((element,) if stored else ())),
        named={"index": index},
    )  # fmt: skip


def _subset(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    source = reader.value()
    offsets = reader.bracket()
    reader.expect("sizes")
    reader.expect("[")
    sizes = reader.many(lambda: int(reader.kind("number", "a size")), "]")
    reader.expect(":")
    kind = reader.type()
    narrowed = reader.type() if reader.accept("->") else _narrow(kind, sizes)
    named, attributes = {"offsets": offsets}, {"sizes": sizes}
    return Operation(name, span, results, (narrowed,), (source,), (kind,), named=named, attributes={**attributes})


def _narrow(kind: Type, sizes: tuple[int, ...]) -> Type:
    text = str(kind)
    if len(sizes) != 2 or not text.startswith("!pto.tile_buf<"):
        return kind
    text = re.sub(r", valid=[^,>]*", "", text)
    return parse_type(re.sub(r"\d+x\d+x", f"{sizes[0]}x{sizes[1]}x", text, count=1))


def _flag(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    """`set_flag[<PIPE_A>, <PIPE_B>, <EVENT_ID0>]`; the dynamic form ends in a value."""
    reader.expect("[")
    items = reader.many(lambda: reader.take().text, "]")
    values = tuple(item for item in items if item.startswith("%"))
    words = [re.sub(r"^.*<|>$", "", item) for item in items if not item.startswith("%")]
    keys = ("source", "target", "event")
    attributes: dict[str, Attribute] = dict(zip(keys, words, strict=False))
    return Operation(name, span, results, (), values, attributes=attributes)


def _pipe(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    """`barrier <PIPE_V>`, `barrier_sync[<TVEC>]`, `sync.set <PIPE_MTE3>, 0`."""
    closing = reader.accept("[")
    attributes: dict[str, Attribute] = {"pipe": reader.kind("angle", "a pipe in <…>")[1:-1]}
    if closing:
        reader.expect("]")
    if name.startswith("pto.sync."):
        reader.expect(",")
        attributes["event"] = int(reader.kind("number", "an event id"))
    return Operation(name, span, results, attributes=attributes)


def _index(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    if reader.accept(":"):
        reader.type()
    return Operation(name, span, results, (ScalarType("i64"),))


def _section(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    return Operation(name, span, results, regions=(reader.region(),))


def _for(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    induction = reader.value()
    bounds: list[str] = []
    for word in ("=", "to", "step"):
        reader.expect(word)
        bounds.append(reader.value())
    names, values, types = _carried(reader, "iter_args")
    kind: Type = reader.type() if reader.accept(":") else ScalarType("index")
    body = reader.region(((induction, kind), *zip(names, types, strict=True)))
    operand_types = (kind, kind, kind, *types)
    return Operation(name, span, results, types, (*bounds, *values), operand_types, regions=(body,))


def _carried(reader: Parser, word: str | None) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Type, ...]]:
    """`[iter_args](%a = %b, …) -> (T, …)`, or three empty tuples."""
    if word is not None and not reader.accept(word):
        return (), (), ()
    reader.expect("(")

    def pair() -> tuple[str, str]:
        name = reader.value()
        reader.expect("=")
        return name, reader.value()

    pairs = reader.many(pair, ")")
    reader.expect("->" if word is not None else ":")
    types = reader.types()
    if len(types) != len(pairs):
        raise reader.fail(f"{len(pairs)} types for the carried values")
    return tuple(name for name, _ in pairs), tuple(value for _, value in pairs), types


def _if(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    condition = reader.value()
    types = reader.types() if reader.accept("->") else ()
    regions = [reader.region()]
    if reader.accept("else"):
        regions.append(reader.region())
    return Operation(name, span, results, types, (condition,), (ScalarType("i1"),), regions=tuple(regions))


def _while(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    names, values, types = _carried(reader, None) if reader.next.text == "(" else ((), (), ())
    outcome = types
    if reader.accept("->"):
        outcome = reader.types()
    before = reader.region(tuple(zip(names, types, strict=True)))
    reader.expect("do")
    return Operation(name, span, results, outcome, values, types, regions=(before, reader.region()))


def _terminator(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    values: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    if name == "scf.condition":
        reader.expect("(")
        condition = reader.value()
        reader.expect(")")
        values, types = (condition,), (ScalarType("i1"),)
    if reader.next.kind == "value" and reader.tokens[reader.position + 1].text in (",", ":"):
        values += reader.listed(reader.value)
        reader.expect(":")
        types += reader.listed(reader.type)
    return Operation(name, span, results, (), values, types)


def _call(reader: Parser, name: str, span: Span, results: tuple[str, ...]) -> Operation:
    callee = reader.kind("symbol", "a function's name")[1:]
    reader.expect("(")
    values = reader.many(reader.value, ")")
    reader.expect(":")
    types = reader.types()
    reader.expect("->")
    return Operation(name, span, results, reader.types(), values, types, attributes={"callee": callee})


_EXPANDED = ("mul", "div", "sub", "add", "max", "min", "expdif")
_TILE_NAMES = (
    *("tload", "tstore", "tmov", "textract", "tinsert", "ttrans", "tmatmul", "tmatmul.acc", "tmatmul.bias"),
    *("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin", "tadds", "tsubs", "tmuls", "tdivs", "tmaxs", "tmins"),
    *("texp", "tlog", "tsqrt", "trsqrt", "trecip", "tneg", "tabs", "trelu", "tlrelu", "texpands"),
    *("trowsum", "trowmax", "trowmin", "trowprod", "tcolsum", "tcolmax", "tcolmin", "tcolprod"),
    *("trowexpand", "tcolexpand", *(f"t{axis}expand{what}" for axis in ("row", "col") for what in _EXPANDED)),
    *("tcvt", "tcmp", "tcmps", "tsel", "tsels", "tfillpad", "tci", "tgetval", "tsetval", "tprint"),
)
FORMS: dict[str, Form] = {
    **{f"pto.{name}": _tile_op for name in _TILE_NAMES},
    "pto.make_tensor_view": _make_tensor_view,
    "pto.partition_view": _partition_view,
    "pto.alloc_tile": _alloc_tile,
    **dict.fromkeys(("pto.load_scalar", "pto.store_scalar"), _scalar_access),
    **dict.fromkeys(("pto.subset", "pto.subview"), _subset),
    **dict.fromkeys((f"pto.{w}_{e}" for w in ("set", "wait") for e in ("flag", "flag_dyn")), _flag),
    **dict.fromkeys(("pto.record_event", "pto.wait_event"), _flag),
    **dict.fromkeys(("pto.barrier", "pto.barrier_sync", "pto.sync.set", "pto.sync.wait"), _pipe),
    **dict.fromkeys(("pto.get_block_idx", "pto.get_block_num", "pto.get_subblock_idx"), _index),
    **dict.fromkeys(("pto.section.cube", "pto.section.vector"), _section),
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    **dict.fromkeys(("scf.yield", "scf.condition", "return", "func.return"), _terminator),
    **dict.fromkeys(("func.call", "call"), _call),
    "arith": _plain,
    **dict.fromkeys(
        ("pto.get_tensor_view_dim", "pto.addptr", "pto.treshape", "pto.bitcast", "pto.set_validshape", "pto.set_ffts"),
        _plain,
    ),
}
"""How each operation is written; a dialect's bare name stands for all of its operations."""
