"""Sections as JSON and as text for people."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from sections.cases import (
    COMPUTE,
    LOAD,
    STORE,
    buffer,
    consumer,
    plus,
    producer,
    stepping_rows,
    tensor,
    tiled,
    with_buffer,
    with_kind,
    with_stage,
    with_tensor,
)
from sections.joining import join

from tilewright.errors import VerifyError
from tilewright.frontend.reader import parse
from tilewright.ir.dtypes import FP32, INT32
from tilewright.ir.function import Function, Param
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Let, LoopKind, Return
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.ops.elementwise import Exp
from tilewright.sections.claims import Claim, bounded
from tilewright.sections.interchange import from_json, to_json
from tilewright.sections.patterns import Affine, AffinePattern, ListedPattern, OpaquePattern, Term, Tile
from tilewright.sections.printer import print_section
from tilewright.sections.rename import rename
from tilewright.sections.section import (
    AllReduce,
    Bind,
    Body,
    Compute,
    Item,
    KLoop,
    Load,
    Loop,
    Recv,
    Requires,
    Role,
    Scalar,
    ScalarParam,
    Section,
    Stage,
    TensorLayout,
    Work,
)


def body() -> Body:
    x = Value("x", TileType((64, 128), FP32))
    y = Value("y", x.type)
    n = Value("n", TileType((64, 128), FP32))
    function = Function("stage", (Param(x), Param(n)), (Let(y, Exp(x)), Return((y,))))
    return Body(function, (Bind(Role.INPUT), Bind(Role.SCALAR, name="n")))


def rich() -> Section:
    """A section with something in every field."""
    made = tiled(producer(), stepping_rows(), trips=(4,), mem_banks=2, acc_tiles_used=3, attrs=(("core", "vector"),))
    made = with_stage(made, COMPUTE, body=body())
    made = with_kind(made, LOAD, multicast="row", transposed=True, pad=Pad.ZERO, num_blocks=2)
    made = with_kind(made, STORE, adds=True, keeps=True, sub_blocks=(2, 1))
    made = plus(made, Stage(AllReduce(0, "sites"), (), ()))
    made = plus(made, Stage(Recv("left"), (), (2,)), (), (buffer("u", None, INT32, page=None),))
    made = plus(made, Stage(Scalar("read"), (2,), ()))
    made = plus(
        made,
        Stage(Load(2, ListedPattern((((0,), (Tile((0, 0), (4, "n")),)),))), (), (3,)),
        (tensor("w"),),
        (buffer("v"),),
    )
    made = plus(made, Stage(Load(2, OpaquePattern("indices")), (), (4,)), (), (buffer("z", MemorySpace.ACC, pages=2),))
    made = plus(made, Stage(Compute("matmul", (2, 2), 4), (4, 3), (4,), in_loop=True))
    made = with_tensor(made, 2, layout=TensorLayout(("n", 8), ("m", 1)), elems=None, tiles=4)
    k = KLoop(Loop(0, 4, 1, LoopKind.PIPELINE, 2), 4)
    return replace(
        made,
        work=Work((Item((0,)), Item((2,))), 4, 4, (Loop(0, 4, 2, LoopKind.PARALLEL),), k),
        claim=Claim(Fraction(1, 3), None),
        requires=Requires(frozenset(("a", "b")), frozenset("x")),
        scalars=(ScalarParam("n", FP32),),
    )


def read(text: str) -> Function:
    return parse(text).main


@pytest.mark.parametrize("section", [producer(), consumer(), rich(), join(producer(), consumer()).section])
def test_json_comes_back_equal(section: Section) -> None:
    text = to_json(section)
    assert from_json(text, read) == section
    assert to_json(from_json(text, read)) == text


def test_statements_are_program_text() -> None:
    text = to_json(rich())
    assert "pl.tile.exp(x)" in text
    bare = from_json(text)
    assert all(stage.body is None for stage in bare.stages)
    assert bare == with_stage(rich(), COMPUTE, body=None)


def changed(path: tuple[Any, ...], value: Any) -> str:
    """The producer's JSON with one entry changed."""
    document = json.loads(to_json(producer()))
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(document)


STAGE = ("section", "stages", 0)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 1}',
        changed(("version",), 2),
        changed(("section",), {"type": "Tile", "offsets": [0], "extents": [1]}),
        changed((*STAGE, "kind", "type"), "Fly"),
        changed((*STAGE, "kind", "tensor"), "x"),
        changed((*STAGE, "kind", "num_blocks"), True),
        changed((*STAGE, "kind", "pattern", "extents"), [1.5]),
        changed((*STAGE, "kind", "color"), "red"),
        changed((*STAGE, "outs"), 0),
        changed(("section", "phase", "value"), "done"),
        changed(("section", "claim", "error", "value"), "1/0"),
        changed(("section", "buffers", 0, "dtype", "name"), "FP7"),
        changed(("section", "buffers", 0, "kind"), {"type": "MemorySpace", "value": "Attic"}),
        changed(("section", "tensors", 0), {"type": "Tensor", "name": "x"}),
        changed(("section", "requires", "handshakes", "items"), [1]),
        changed(("section", "trips"), [None]),
        changed(("section", "name"), None),
    ],
)
def test_what_is_no_section_is_refused(text: str) -> None:
    with pytest.raises(VerifyError):
        from_json(text)


def test_a_fault_in_text_says_where() -> None:
    with pytest.raises(VerifyError, match=r"section.stages\[0\].kind"):
        from_json(changed((*STAGE, "kind", "tensor"), "x"))
    with pytest.raises(VerifyError, match="attribute"):
        to_json(replace(producer(), attrs=(("what", object()),)))


def test_the_text_for_people() -> None:
    joined = join(producer(), with_buffer(consumer(claim=bounded(0.5)), 1, kind=None)).section
    assert print_section(joined) == (
        "section p+c (template, 1 item, error 0.5)\n"
        "  numerics: FP32 accumulators, half_to_even\n"
        "  tensor x: FP32 [64, 128]\n"
        "  tensor y: FP32 [64, 128]\n"
        "  buffer in: Vec FP32 1 x [64, 128]\n"
        "  buffer out: Vec FP32 1 x [64, 128]\n"
        "  buffer out_f1: any FP32 1 x [64, 128]\n"
        "  0 load x [0, 0]+[64, 128] -> in\n"
        "  1 exp in -> out\n"
        "  2 exp out -> out_f1\n"
        "  3 store out_f1 -> y [0, 0]+[64, 128]\n"
        "  edge 0 -in-> 1\n"
        "  edge 1 -out-> 2\n"
        "  edge 2 -out_f1-> 3\n"
    )


def test_the_text_says_everything() -> None:
    text = print_section(rich())
    for line in (
        "section p (tiled, 2 items over parallel(0, 4, 2), 4 tiles along K in 4 trips, error 0.333333, gain unbounded)",
        "plan: tile [16], trips [4], 2 banks, 3 accumulator tiles, requires a, b, x, core=vector",
        "tensor w: FP32 ['n', 8] strides ['m', 1] in 4 tiles",
        "scalar n: FP32",
        "buffer u: any INT32 1 x ?",
        "0 load x [step i0, 0]+[16, 128] x2 multicast row transposed pad zero -> in",
        "2 store out -> t [step i0, 0]+[16, 128] x[2, 1] add keeping the rest",
        "3 all_reduce x over sites",
        "4 recv left -> u",
        "5 scalar read u",
        "6 load w listed for 1 items -> v",
        "7 load w unknown (indices) -> z",
        "8 (k) matmul x[2, 2] onto z z, v -> z",
        "edge 6 -v-> 8",
    ):
        assert f"  {line}\n" in f"  {text}", line
    terms = AffinePattern((8, 8), (Affine(4, (Term(8, 0, 4), Term(1, 0, 1, 3))), Affine(0, (Term(8),))))
    assert "[4 + 8 * (i0 // 4) + i0 % 3, 8 * i0]+[8, 8]" in print_section(with_kind(producer(), LOAD, pattern=terms))


def test_names_are_changed_together() -> None:
    renamed = rename(rich(), {"x": "a", "nothing": "b"}, {"n": "scale"}, "q")
    assert (renamed.name, [t.name for t in renamed.tensors]) == ("q", ["a", "t", "w"])
    assert [scalar.name for scalar in renamed.scalars] == ["scale"]
    stage = renamed.stages[COMPUTE].body
    assert stage is not None and stage.binds == (Bind(Role.INPUT), Bind(Role.SCALAR, name="scale"))
    assert rename(renamed, {"a": "x"}, {"scale": "n"}, "p") == rich()
    assert rename(rich(), {}) == rich()
