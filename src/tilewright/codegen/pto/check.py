"""Holds PTO text against every rule of the assembler's verifier and every rule that it forgets to check.

`check` returns all findings, each with the clause that it breaks; `assert_legal` raises on the first. Clauses are named
by the section of the format and the operation: ``§4 tmov``, ``§5 tdiv dtype``, ``§6 row alignment``,
``§7 acc capacity a3``; two rules of the cube's pitch are ``R15 …``, bit-packed masks are ``traps packed mask``.
"""

from __future__ import annotations

from tilewright.codegen.pto import rules_compute, rules_moves, rules_sync, rules_tiles
from tilewright.codegen.pto.facts import Context, Fact, Finding
from tilewright.codegen.pto.reader import read
from tilewright.codegen.pto.storage import storage_rules
from tilewright.codegen.pto.syntax import Function, Module, Operation, Region, walk
from tilewright.codegen.pto.tables import ARCHES, ARITY, TMP_OPERAND, VECTOR, core_of
from tilewright.codegen.pto.types import MemRefType, PTOTextError, TileType, Type
from tilewright.errors import PTOError, Span

__all__ = ["Finding", "assert_legal", "check"]

_RULES = {
    "alloc_tile": rules_tiles.alloc_tile,
    "make_tensor_view": rules_tiles.make_tensor_view,
    "partition_view": rules_tiles.partition_view,
    "set_validshape": rules_tiles.set_validshape,
    **dict.fromkeys(("treshape", "bitcast"), rules_tiles.reinterpret),
    **dict.fromkeys(("subset", "subview"), rules_tiles.subset),
    "tload": rules_moves.tload,
    "tstore": rules_moves.tstore,
    "tmov": rules_moves.tmov,
    "textract": rules_moves.textract,
    "tinsert": rules_moves.tinsert,
    **dict.fromkeys(("tmatmul", "tmatmul.acc", "tmatmul.bias"), rules_moves.tmatmul),
    **rules_compute.RULES,
    **rules_sync.RULES,
}


def check(
    text: str | Module,
    arch: str | None = None,
    *,
    level: int | None = None,
    dialect: str = "current",
    name: str = "<pto>",
) -> list[Finding]:
    """Every rule that `text` breaks, in the order of its lines.

    Args:
        arch: ``a3`` or ``a5``; by default the module's `pto.target_arch`, else ``a3``.
        level: of the assembler; 3 wants an address on every tile, 1 and 2 on none. By default what the first
            allocation says.
        dialect: ``current`` (a part of a tile is `pto.subset`) or ``newer`` (`pto.subview`).
    """
    try:
        module = read(text, name) if isinstance(text, str) else text
    except PTOTextError as error:
        return [Finding(error.clause, error.span.line if error.span is not None else 0, error.message)]
    arch = arch or module.arch or "a3"
    if arch not in ARCHES:
        return [Finding("§1 arch", 1, f"`{arch}` is not an architecture: {' or '.join(ARCHES)}")]
    ctx = Context(arch, level if level is not None else _level(module), dialect)
    rules_sync.module_rules(ctx, module)
    for function in module.functions:
        _function(ctx, function)
    return sorted(ctx.findings, key=lambda finding: finding.line)


def assert_legal(
    text: str | Module,
    arch: str | None = None,
    *,
    level: int | None = None,
    dialect: str = "current",
    name: str = "<pto>",
) -> None:
    """Raise a `PTOError` at the first rule that `text` breaks; the others are its notes. Arguments as for `check`."""
    module = read(text, name) if isinstance(text, str) else text
    findings = check(module, arch, level=level, dialect=dialect)
    if not findings:
        return
    first, *others = findings
    error = PTOError(
        f"{first.message} ({first.clause})", span=Span(module.name, first.line, 0, first.line, 1 << 16),
        notes=tuple(str(finding) for finding in others[:20]),
    )  # fmt: skip
    raise error


def _level(module: Module) -> int | None:
    for function in module.functions:
        for op in walk(function.body):
            if op.name == "pto.alloc_tile":
                return 3 if "addr" in op.named else 2
    return None


def _function(ctx: Context, function: Function) -> None:
    ctx.scope = {name: Fact(kind) for name, kind in function.arguments}
    ctx.arguments = frozenset(ctx.scope)
    ctx.core = function.kind
    ctx.acc_rows = {}
    addresses: dict[int, int | None] = {}
    _region(ctx, function.body, addresses)
    rules_sync.function_rules(ctx, function)
    storage_rules(ctx, function, addresses)


def _region(ctx: Context, region: Region, addresses: dict[int, int | None]) -> None:
    outer = ctx.scope
    ctx.scope = {**outer, **{name: Fact(kind) for name, kind in region.arguments}}
    for op in region.operations:
        _names(ctx, op)
        _operation(ctx, op)
        if op.name == "pto.alloc_tile":
            known = ctx.integers(op.named["addr"])[0] if "addr" in op.named else None
            addresses[id(op)] = known
        core = ctx.core
        if op.name.startswith("pto.section."):
            ctx.require(core is None, "§3 section", op, f"a section inside what is {core} already")
            ctx.core = op.name.removeprefix("pto.section.")
        for inner in op.regions:
            _region(ctx, inner, addresses)
            _yields(ctx, op, inner)
        ctx.core = core
        for name, kind in zip(op.results, op.result_types, strict=True):
            ctx.require(name not in ctx.scope, "§2 redefinition", op, f"{name} is defined already")
            ctx.scope[name] = rules_tiles.result_fact(ctx, op, kind)
    ctx.scope = outer


def _names(ctx: Context, op: Operation) -> None:
    """Every name is defined, with the type that its use states."""
    typed = [*zip(op.operands, op.operand_types, strict=False), *zip(op.outs, op.out_types, strict=False)]
    for name in (*op.operands, *op.outs, *(name for group in op.named.values() for name in group)):
        ctx.require(name in ctx.scope, "§2 unknown name", op, f"{name} is not defined here")
    for name, kind in typed:
        fact = ctx.scope.get(name)
        if fact is not None and _canonical(fact.type, ctx.arch) != _canonical(kind, ctx.arch):
            ctx.report("§2 operand type", op, f"{name} is {fact.type}, not {kind}")


def _canonical(kind: Type, arch: str) -> Type:
    return kind.for_arch(arch) if isinstance(kind, TileType) else kind


def _yields(ctx: Context, op: Operation, region: Region) -> None:
    """A region of an operation with results ends by yielding as many."""
    if not op.name.startswith("scf.") or not op.results or op.name == "scf.while":
        return
    last = region.operations[-1] if region.operations else None
    given = len(last.operands) if last is not None and last.name == "scf.yield" else 0
    ctx.require(given == len(op.results), "§2 yield", op, f"{len(op.results)} results, {given} values yielded")
    if op.name == "scf.if":
        ctx.require(len(op.regions) == 2, "§2 yield", op, "an `if` with results has an `else`")


def _operation(ctx: Context, op: Operation) -> None:
    name = op.name.removeprefix("pto.")
    if not op.name.startswith("pto."):
        return
    if name in ARITY and not _arity(ctx, op, name):
        return
    memrefs = any(isinstance(kind, MemRefType) for kind in (*op.operand_types, *op.out_types))
    if memrefs and name != "set_ffts":
        ctx.report("§6 memref operand", op, "the assembler does not verify operations on memrefs")
        return
    rules_compute.attributes(ctx, op)
    rule = _RULES.get(name)
    if rule is not None:
        rule(ctx, op)
    _core(ctx, op, name)


def _arity(ctx: Context, op: Operation, name: str) -> bool:
    arity = ARITY[name]
    if name in TMP_OPERAND and len(op.operands) == arity.least - 1:
        ctx.report("§2 tmp operand", op, "the scratch operand must be given")
        return False
    outs = len(op.outs) + len(op.results) if name != "tgetval" else 0
    if arity.least <= len(op.operands) <= arity.most and outs == arity.outs:
        return True
    ctx.report("§2 operands", op, f"{len(op.operands)} operands and {outs} destinations")
    return False


def _core(ctx: Context, op: Operation, name: str) -> None:
    """An operation stands in a kernel of the core that has its unit."""
    if ctx.core is None or name not in ARITY:
        return
    places = [kind.loc if isinstance(kind, TileType) else None for kind in (*op.operand_types, *op.out_types)]
    source, target = places[0], (places[-1] if op.outs else None)
    wanted = core_of(name, source, target)
    if wanted is None or wanted == ctx.core:
        return
    if name in VECTOR:
        clause = "§6 vector op in cube kernel"
    else:
        clause = f"§6 {'tmatmul' if name.startswith('tmatmul') else 'memory'} in {ctx.core} kernel"
    ctx.report(clause, op, f"this is work of the {wanted} core")
