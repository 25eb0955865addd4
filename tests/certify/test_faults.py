"""One fault planted in the text of a placed program at a time, and the fact that the checker says fails.

The certificate is that of the right program, or one of the wrong program, which then claims what it does: the fact
must fail either way. (That the text is another one, which it always notices, is left out.)"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright import parse
from tilewright.certify.certificate import Certificate, FunctionClaim
from tilewright.certify.checker import check
from tilewright.certify.writer import certify
from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.ir.function import Program
from tilewright.targets import load_target

TARGET = load_target("ascend910b")

PRODUCT = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[48, 128], pl.FP16], b: pl.Tensor[[64, 128], pl.FP16],
             row: pl.Tensor[[1, 64], pl.FP32], out: pl.Out[pl.Tensor[[48, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [48, 64])
        y = pl.tile.load(b, [0, 0], [64, 64], transpose=True)
        r = pl.tile.load(row, [0, 0], [1, 64])
        z = pl.tile.matmul_bias(x, y, r)
        for i, (acc,) in pl.range(64, 128, 64, init_values=(z,)):
            x1 = pl.tile.load(a, [0, i], [48, 64])
            y1 = pl.tile.load(b, [0, i], [64, 64], transpose=True)
            acc1 = pl.tile.matmul_acc(acc, x1, y1)
            acc2 = pl.yield_(acc1)
        out = pl.tile.store(acc2, [0, 0], out)
        return out
"""
VECTOR = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64])
        y = pl.tile.load(a, [16, 0], [16, 64])
        for i, (p, q) in pl.range(4, init_values=(x, y)):
            s = pl.tile.add(p, q)
            t = pl.tile.muls(q, 2.0)
            u, v = pl.yield_(t, s)
        if n > 2:
            w = pl.tile.exp(u)
        else:
            w = pl.tile.abs(v)
        c = pl.tile.cast(w, pl.FP16)
        d = pl.tile.cast(c, pl.FP32)
        part = pl.tile.slice(d, [8, 64], [8, 0])
        m = pl.tile.maximums(part, 0.0)
        out = pl.tile.store(d, [0, 0], out)
        out = pl.tile.store(m, [16, 0], out)
        return out
"""
ITEMS = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for i, (o,) in pl.parallel(0, 64, 16, init_values=(out,)):
            x = pl.tile.load(a, [i, 0], [16, 64])
            m = pl.tile.row_max(x)
            y = pl.tile.row_expand_sub(x, m)
            o_1 = pl.tile.store(y, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2
"""
PARTS = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        room = pl.tile.create([64, 64], pl.FP32)
        for i, (r,) in pl.range(0, 32, 16, init_values=(room,)):
            x = pl.tile.load(a, [i, 0], [16, 64])
            r_1 = pl.tile.assemble(r, x, [i, 0])
            r_2 = pl.yield_(r_1)
        y = pl.tile.load(a, [32, 0], [32, 64])
        full = pl.tile.assemble(r_2, y, [32, 0])
        z = pl.tile.exp(full)
        out = pl.tile.store(z, [0, 0], out)
        return out
"""
SOURCES = {"product": PRODUCT, "vector": VECTOR, "items": ITEMS, "parts": PARTS}
Edit = tuple[str, str, str]
"""Of the line that begins with a text, or has it: a pattern, and what replaces it; ``@x`` is the address of ``x``."""


@pytest.fixture(scope="module")
def placed() -> dict[str, tuple[str, Certificate]]:
    found: dict[str, tuple[str, Certificate]] = {}
    for name, source in SOURCES.items():
        program = lower(parse(source), TARGET)
        found[name] = str(program), certify(program, TARGET)
    return found


def edited(text: str, *edits: Edit) -> str:
    """The text with each edit made, which must change it."""
    for start, pattern, new in edits:
        lines = text.splitlines()
        named = re.search(r"@(\w+)", new)
        wanted = new if named is None else new.replace(named[0], _address(lines, named[1]))
        at = _line(lines, start)
        changed = re.sub(pattern, wanted, lines[at], count=1)
        assert changed != lines[at], f"{pattern} is not in\n{lines[at]}"
        lines[at] = changed
        text = "\n".join(lines) + "\n"
    return text


def _line(lines: list[str], start: str) -> int:
    found = [i for i, line in enumerate(lines) if line.strip().startswith(start)]
    found += [i for i, line in enumerate(lines) if start in line]
    assert found, f"no line with {start!r}"
    return found[0]


def _address(lines: list[str], name: str) -> str:
    found = re.search(r"addr=(\d+)", lines[_line(lines, f"{name}: ")])
    assert found is not None
    return found[1]


CASES: list[tuple[str, str, tuple[Edit, ...]]] = [
    ("spaces", "product", (("z:", r"matmul_bias\(x_left, y_right", "matmul_bias(x_left, y"),)),
    ("spaces", "product", (("acc1:", r"x1_left, y1_right", "x1, y1_right"),)),
    ("edges", "product", (("x_left:", r"= .*", "= pl.tile.load(a, [0, 0], [48, 64], target_memory=pl.Mem.Left)"),)),
    ("edges", "product", (("r_bias:", r"= .*", "= pl.tile.load(row, [0, 0], [1, 64], target_memory=pl.Mem.Bias)"),)),
    ("layouts", "product", (("y:", r"blayout=pl\.BLayout\.row_major, slayout=pl\.SLayout\.col_major",
                             "blayout=pl.BLayout.col_major, slayout=pl.SLayout.row_major"),)),
    ("layouts", "vector", (("c:", r"pl\.Mem\.Vec\]", "pl.Mem.Vec, pl.TileView(blayout=pl.BLayout.col_major)]"),)),
    ("dtypes", "vector", (("c:", r"pl\.FP16", "pl.BF16"), ("c:", r"pl\.FP16\)", "pl.INT8)"), ("c:", "BF16", "INT8"))),
    ("footprints", "vector", (("m:", r"nbytes=\d+", "nbytes=32"),)),
    ("capacity", "vector", (("m:", r"addr=\d+", "addr=188000"),)),
    ("buffers", "vector", (("m:", r"addr=\d+", "addr=100001"),)),
    ("buffers", "vector", (("m:", r'pl\.MemRef\("\w+", addr=\d+, nbytes=\d+\), ', ""),)),
    ("buffers", "vector", (("u, v =", r"\(t, s_copy\)", "(s_copy, t)"),)),
    ("buffers", "vector", (("part:", r"addr=\d+", "addr=65536"),)),
    ("buffers", "product", (("acc1:", r"addr=\d+", "addr=65536"),)),
    ("buffers", "vector", (("w_2:", r"addr=\d+", "addr=65536"),)),
    ("overlap", "vector", (("s:", r"addr=\d+", "addr=@y"),)),
    ("overlap", "items", (("y:", r"addr=\d+", "addr=@m"),)),
    ("overlap", "product", (("x1:", r"addr=\d+", "addr=@y1"),)),
    ("overlap", "items", (("m:", r"addr=\d+", "addr=@x"),)),
    ("bounds", "product", (("x1:", r"\[0, i\]", "[0, i + 1]"),)),
    ("bounds", "items", (("o_1 =", r"\[i, 0\]", "[i + 1, 0]"),)),
    ("bounds", "items", (("pl.parallel(", r"0, 64, 16", "0, 80, 16"),)),
    ("parallel", "items", (("o_1 =", r"\[i, 0\]", "[0, 0]"),)),
    ("parallel", "items", (("pl.parallel(", r"0, 64, 16", "0, 48, 8"),)),
    ("coverage", "parts", (("full:", r"\[32, 0\]", "[0, 0]"),)),
    ("coverage", "parts", (("full:", r"\[32, 0\]", "[31, 0]"),)),
    ("coverage", "parts", (("r_1:", r"\[i, 0\]", "[0, 0]"),)),
    ("coverage", "parts", (("for i,", r"0, 32, 16", "0, 16, 16"),)),
    ("structure", "vector", (("s:", r"add\(p, q\)", "add(p, c)"),)),
    ("structure", "vector", (("m:", r"maximums\(part", "maximums(d"),)),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "base", "edits"), CASES, ids=[f"{f}-{i}" for i, (f, _, _) in enumerate(CASES)])
def test_the_fact_that_fails_is_said(
    fact: str, base: str, edits: tuple[Edit, ...], placed: dict[str, tuple[str, Certificate]]
) -> None:
    text, certificate = placed[base]
    try:
        program = parse(edited(text, *edits))
    except TilewrightError as error:
        assert fact == "structure", f"the reader refuses it: {error}"
        return
    verdict = check(program, certificate, TARGET, bind=False)
    assert fact in verdict.facts, str(verdict)
    if fact != "buffers":  # of which some leave the writer nothing to write
        claimed = check(program, certify(program, TARGET), TARGET)
        assert fact in claimed.facts and claimed.facts <= {fact, "order", "overlap", "buffers"}, str(claimed)


def test_every_kind_of_fact_has_a_fault() -> None:
    asked = {fact for fact, _, _ in CASES}
    assert asked >= {"spaces", "layouts", "edges", "dtypes", "footprints", "capacity", "buffers", "overlap", "bounds"}


# --- claims -------------------------------------------------------------------------------------------------------
def claiming(certificate: Certificate, **changed: object) -> Certificate:
    claim: FunctionClaim = replace(certificate.functions[0], **changed)  # type: ignore[arg-type]
    return replace(certificate, functions=(claim, *certificate.functions[1:]))


def said(program: Program, certificate: Certificate) -> str:
    verdict = check(program, certificate, TARGET)
    assert verdict.facts == {"certificate"}, str(verdict)
    return verdict.findings[0].message


def test_claims_that_the_program_does_not_bear_out(placed: dict[str, tuple[str, Certificate]]) -> None:
    text, right = placed["product"]
    program, claim = parse(text), right.functions[0]
    tile = next(tile for tile in claim.tiles if tile.live[-1][1] > tile.live[0][0])
    rest = tuple(other for other in claim.tiles if other is not tile)
    first, last = tile.live[-1]
    shorter = replace(tile, live=(*tile.live[:-1], (first, last - 1)))
    assert f"when '{tile.name}' is needed" in said(program, claiming(right, tiles=(shorter, *rest)))
    assert f"where '{tile.name}' lies" in said(
        program, claiming(right, tiles=(replace(tile, bytes=tile.bytes + 32), *rest))
    )
    assert f"'{tile.name}'" in said(program, claiming(right, tiles=rest))
    assert "the tile 'ghost'" in said(
        program, claiming(right, tiles=(*claim.tiles, replace(tile, name="ghost", value="%99")))
    )
    move = claim.moves[0]
    assert "moves" in said(program, claiming(right, moves=(replace(move, edge="L1 -> UB"), *claim.moves[1:])))
    assert "moves" in said(program, claiming(right, moves=claim.moves[1:]))
    bound = claim.bounds[0]
    assert bound.what in said(program, claiming(right, bounds=(replace(bound, box="[] + []"), *claim.bounds[1:])))
    assert "how many accesses" in said(program, claiming(right, bounds=claim.bounds[1:]))
    peak = claim.peaks[0]
    lower = (replace(peak, bytes=peak.bytes - 32), *claim.peaks[1:])
    assert f"how far {peak.memory} is filled" in said(program, claiming(right, peaks=lower))
    higher = (replace(peak, bound=peak.bound + 32), *claim.peaks[1:])
    assert f"what {peak.memory} must hold" in said(program, claiming(right, peaks=higher))


def test_a_bound_may_be_claimed_to_be_weaker_and_not_stronger() -> None:
    source = VECTOR.replace("a, [16, 0]", "a, [n, 0]")
    program = lower(parse(source), TARGET)
    right = certify(program, TARGET)
    claim = right.functions[0]
    index = next(i for i, bound in enumerate(claim.bounds) if "assumed" in bound.dims)

    def with_dims(place: int, *dims: str) -> Certificate:
        changed = replace(claim.bounds[place], dims=dims)
        return claiming(right, bounds=(*claim.bounds[:place], changed, *claim.bounds[place + 1 :]))

    assert check(program, right, TARGET).assumptions
    assert claim.bounds[index].what in said(program, with_dims(index, "proved", "proved"))
    proved = next(i for i, bound in enumerate(claim.bounds) if bound.dims == ("proved", "proved"))
    assert check(program, with_dims(proved, "assumed", "proved"), TARGET).accepted


def test_another_text_is_noticed_where_every_other_fact_holds(placed: dict[str, tuple[str, Certificate]]) -> None:
    text, certificate = placed["vector"]
    other = parse(edited(text, ("t:", r"2\.0", "3.0")))
    assert check(other, certificate, TARGET, bind=False).accepted
    verdict = check(other, certificate, TARGET)
    assert verdict.facts == {"program"}
    assert "statement 5 differs" in verdict.findings[0].message


def test_a_certificate_of_another_target(placed: dict[str, tuple[str, Certificate]]) -> None:
    text, certificate = placed["vector"]
    verdict = check(parse(text), certificate, TARGET.with_capacity(Vec=65536))
    assert "another machine description" in verdict.findings[0].message


def test_a_wait_left_out_is_an_unordered_conflict(placed: dict[str, tuple[str, Certificate]]) -> None:
    text, certificate = placed["product"]
    program, claim = parse(text), certificate.functions[0]
    loads = {wait.after for wait in claim.hazards if wait.before_engine == "MTE2" and wait.kind == "read after write"}
    for after in loads:
        left = tuple(wait for wait in claim.hazards if wait.after != after)
        assert "order" in check(program, claiming(certificate, hazards=left), TARGET).facts
