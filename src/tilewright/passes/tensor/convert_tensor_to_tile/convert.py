"""The rewrite: applies a plan to one function, and decides nothing.

Each tensor value that becomes a tile is kept in the forms that exist so far, per enclosing block: a form made inside a
branch or loop body is forgotten where the block ends. A consumer asks for the form that it needs; if it is not there,
the plan says what it is made from.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import UNKNOWN, ShapeError, Span, UnsupportedError
from tilewright.ir.function import Direction, Function, Param
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, If, Let, Return, Yield
from tilewright.ir.op import FromAttribute, Inherit, Level, Op, is_array
from tilewright.ir.rewrite import Rewriter, type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.movement import Load, Move, Store
from tilewright.ops.shape import Transpose, TransposeView
from tilewright.passes.tensor.convert_tensor_to_tile.consumers import Form
from tilewright.passes.tensor.convert_tensor_to_tile.plan import ANYWHERE, FunctionPlan
from tilewright.passes.tensor.convert_tensor_to_tile.registry import OpConversionRegistry, input_fields

Forms = dict[tuple[Value, Form], Value]


class Converter(Rewriter):
    """Rewrites one `INCORE` function. `added` are the output parameters that its results got."""

    def __init__(self, plan: FunctionPlan, registry: OpConversionRegistry) -> None:
        super().__init__()
        self.plan = plan
        self.survey = plan.survey
        self.registry = registry
        self.blocks: list[Forms] = [{}]
        self.made: dict[Value, Form] = {}
        """the first form of each value: the one that is there without asking"""
        self.spaces: dict[Value, MemorySpace | None] = {}
        """where a tile of the new program comes out, even if its type leaves it open"""
        self.joined: list[tuple[Value, ...]] = []
        self.added: list[Param] = []
        self.outer: set[Value] = set()
        """what is defined outside of every branch and loop"""
        self.span: Span = UNKNOWN

    # --- the function ---
    def function(self, function: Function) -> Function:
        self._replace_created(function)
        self.outer.update(param.value for param in function.params)
        self.outer.update(value for stmt in function.body for value in stmt.defs())
        new = super().function(function)
        if not self.added:
            return new
        return new.with_(params=(*new.params, *self.added))

    def _replace_created(self, function: Function) -> None:
        """A tensor that is created here and returned becomes an output parameter: its room is the caller's."""
        created = {
            stmt.target: stmt
            for stmt in function.walk()
            if isinstance(stmt, Let) and isinstance(stmt.value, Op) and stmt.target in self.survey.in_memory
            and not any(stmt.value.operand_items())
        }  # fmt: skip
        for value in function.results:
            root = self.survey.roots.get(value) if isinstance(value, Value) else None
            if root in created and root not in self.env:
                self.bind(root, self._add_output(root))

    def _add_output(self, value: Value) -> Value:
        known = {param.value for param in self.survey.function.params}
        unknown = [inner for inner in value.type.values() if inner not in known]
        if unknown:
            raise ShapeError(
                f"the size of the result {value.name!r} is worked out inside the section",
                span=value.span,
                required="extents that the caller knows",
                found=", ".join(inner.name for inner in unknown),
                help="pass the extent as an argument, or return a tensor of constant shape",
            )
        output = Value(value.name + "_out", value.type, value.span)
        self.added.append(Param(output, Direction.OUT))
        return output

    def block(self, block: Block) -> Block:
        self.blocks.append({})
        try:
            return super().block(block)
        finally:
            self.blocks.pop()

    # --- forms ---
    def have(self, value: Value, form: Form) -> Value | None:
        """The form of `value` that is visible here, if it was made."""
        for forms in reversed(self.blocks):
            found = forms.get((value, form))
            if found is not None:
                return found
        return None

    def record(self, value: Value, form: Form, new: Value) -> Value:
        self.blocks[-1][value, form] = new
        if value not in self.survey.in_memory:
            self.made.setdefault(value, form)
        return new

    def need(self, value: Value, form: Form) -> Value:
        """`value` in `form`; made here, from what the plan says, unless it is there already."""
        value, flip = self.survey.resolve(value)
        form = form.flipped(flip)
        found = self.have(value, form)
        if found is not None:
            return found
        parent = self._parent(value, form)
        if parent is None:
            return self.record(value, form, self.load(self.value(value), form))
        return self.record(value, form, self._bridge(self.need(value, parent), parent, form))

    def _parent(self, value: Value, form: Form) -> Form | None:
        """What `form` is made from; None: it is loaded. The plan knows where an operation's result comes out from the
        operation's class; a conversion may have left it elsewhere, and then that is what there is to start from."""
        tree = self.plan.trees.get(value, {})
        parent = tree.get(form)
        if value in self.survey.in_memory:
            return parent
        reachable = parent is not None and (tree.get(parent) is not None or self.have(value, parent) is not None)
        return parent if reachable else self.made[value]

    def first(self, value: Value) -> Value:
        """`value` where it comes out, not transposed, or the tensor itself when it stays in memory."""
        old, _ = self.survey.resolve(value)
        if old is value and old in self.survey.in_memory:
            return self.value(old)
        return self.need(value, ANYWHERE if old in self.survey.in_memory else Form(self.made[old].space))

    def load(self, tensor: Value, form: Form) -> Value:
        """A load of all of `tensor`."""
        kind = tensor.type
        assert isinstance(kind, TensorType)
        load = Load(
            tensor, (0,) * kind.rank, kind.shape, target_memory=form.space, transpose=form.transposed, span=self.span
        )
        return self.emit_tile(load, tensor.name)

    def _bridge(self, tile: Value, old: Form, new: Form) -> Value:
        if new.space is not None and new.space is not old.space:
            # A tile whose space is open is placed by inference where its consumer wants it.
            turned = old.transposed is not new.transposed
            if old.space is not None or turned:
                tile = self.emit_tile(Move(tile, new.space, span=self.span), tile.name)
        if old.transposed is new.transposed:
            return tile
        kind = tile.type
        assert isinstance(kind, TileType)
        if kind.rank == 2 and self.plan.prices.is_view(new.space):
            return self.emit_tile(TransposeView(tile, span=self.span), tile.name)
        transpose = Transpose(tile, kind.rank - 2, kind.rank - 1, level=Level.TILE, span=self.span)
        return self.emit_tile(transpose, tile.name)

    def emit_tile(self, op: Op, name: str) -> Value:
        """Append one tile operation."""
        value = self.let(op, name, self.span)
        self.spaces[value] = self._space_of(op, value)
        return value

    def _space_of(self, op: Op, value: Value) -> MemorySpace | None:
        if isinstance(value.type, TileType) and value.type.space is not None:
            return value.type.space
        where = op.result_space
        if isinstance(where, MemorySpace):
            return where
        if isinstance(where, FromAttribute):
            return getattr(op, where.field)
        followed = op.writes or op.view_of or (where.field if isinstance(where, Inherit) else None)
        held = getattr(op, followed) if followed else None
        return self.spaces.get(held) if isinstance(held, Value) else None

    # --- operations ---
    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op) or op.level is Level.TILE or stmt.target in self.env:
            if stmt.target not in self.env:
                super().visit_let(stmt)
            return
        self.span = stmt.span
        target = stmt.target
        if target in self.survey.aliases:
            self._alias(target)
        elif target in self.survey.in_memory and not any(op.operand_items()):
            super().visit_let(stmt)  # room in DDR that does not leave the section
        elif isinstance(target.type, TensorType) and target not in self.survey.in_memory:
            self._to_tile(stmt, op)
        else:
            new = self._lower(stmt, op, None, ANYWHERE)
            self.bind(target, new)

    def _alias(self, target: Value) -> None:
        """Nothing is made for a transposed view, except where its tensor may be written before it is read."""
        value, _ = self.survey.resolve(target)
        read_only = {param.value for param in self.survey.function.params if not param.is_output}
        if value in self.survey.in_memory and self.survey.roots.get(value) not in read_only:
            for form in self.plan.trees.get(value, {}):
                self.need(value, form)

    def _to_tile(self, stmt: Let, op: Op) -> None:
        target, survey = stmt.target, self.survey
        if target in survey.sources and survey.is_loaded(target):
            made = [form for form, parent in self.plan.trees[target].items() if parent is None]
            for form in made:
                self.record(target, form, self._lower(stmt, op, survey.sources[target], form))
            return
        home = self.plan.homes.get(target)
        new = self._lower(stmt, op, survey.sources.get(target), Form(home))
        space = self.spaces.get(new)
        placed = self.plan.placed.get(target)
        if placed is not None and new.type.space is not placed:  # type: ignore[union-attr]
            new = self._place(new, placed, space)
            space = placed
        self.record(target, Form(space if space is not None else home), new)

    def _place(self, new: Value, space: MemorySpace, found: MemorySpace | None) -> Value:
        """`new` with `space` in its type: said of its operation when it comes out there anyhow, else moved there."""
        last = self._out[-1] if self._out else None
        kind = new.type
        assert isinstance(kind, TileType)
        if not isinstance(last, Let) or last.target is not new or not isinstance(last.value, Op):
            return self.emit_tile(Move(new, space, span=self.span), new.name)
        where = last.value.result_space
        if found is None and isinstance(where, FromAttribute):
            self._out.pop()
            return self.emit_tile(last.value.replace(**{where.field: space}), new.name)
        if found is space:
            self._out.pop()
            placed = Value(new.name, kind.with_(space=space), new.span)
            self.emit(Let(placed, last.value, span=last.span))
            self.spaces[placed] = space
            return placed
        return self.emit_tile(Move(new, space, span=self.span), new.name)

    def _lower(self, stmt: Let, op: Op, source: Value | None, form: Form) -> Value:
        """The conversion of `op`, its inputs where they have to be."""
        entry = self.registry.lookup(op)
        if entry is None:
            raise UnsupportedError(
                f"{op.qualified_name} has no form on tiles",
                span=stmt.span,
                required="a conversion, in the operation's class or registered",
                found="none",
                help="register one: OpConversionRegistry.register_custom",
            )
        plain = op.with_operands(self.get)
        fields: dict[str, Any] = {}
        for index, input in enumerate(input_fields(type(op))):
            value = getattr(op, input.name)
            if not is_array(value) or isinstance(value.type, TileType):
                continue
            req = entry.input_reqs.get(index)
            if req is not None:
                transposed = bool(req.trans_kwarg and getattr(op, req.trans_kwarg))
                fields[input.name] = self.need(value, Form(req.space, transposed))
            elif value is source:
                fields[input.name] = self._source(value, form)
            elif input.name == op.writes and isinstance(op.result_space, MemorySpace):
                fields[input.name] = self.need(value, Form(op.result_space))
            else:
                fields[input.name] = self.first(value)
        context = _Context(self, stmt.target.name, form)
        new = entry.func(plain.replace(**fields) if fields else plain, context)
        if context.asked or not form.transposed:
            return new
        return self._bridge(new, Form(form.space), form)

    def _source(self, value: Value, form: Form) -> Value:
        """What a view looks at: memory as it is, a loaded tile in the view's space, any other where it comes out."""
        if value in self.survey.in_memory:
            return self.value(value)
        if self.survey.is_loaded(value):
            return self.need(value, Form(form.space))
        return self.first(value)

    # --- control flow ---
    def visit_for(self, stmt: For) -> None:
        self.span = stmt.span
        for value, form in self.plan.early.get(stmt, ()):
            self.need(value, form)
        new = stmt.substitute(self.get)
        assert isinstance(new, For)
        inits = self._flowing(stmt.iter_args, stmt.inits)
        iter_args = tuple(self._carried(a, type_of(i), a) for a, i in zip(stmt.iter_args, inits, strict=True))
        self.joined.append(stmt.iter_args)
        body = self.block(stmt.body)
        self.joined.pop()
        last = body[-1]
        assert isinstance(last, Yield)
        for arg, value in zip(iter_args, last.values, strict=True):
            _check_join(arg, value, stmt.span)
        results = tuple(self._carried(r, a.type, r) for r, a in zip(stmt.results, iter_args, strict=True))
        self.emit(new.replace(inits=inits, iter_args=iter_args, body=body, results=results))

    def _carried(self, old: Value, type_: Any, name: Value) -> Value:
        """The value that stands for a carried or joined one."""
        if not isinstance(old.type, TensorType) or old in self.survey.in_memory:
            return self.retype(old, old.type.substitute(self.get))
        new = Value(name.name, type_, name.span)
        home = self.plan.homes[old]
        self.spaces[new] = home
        return self.record(old, Form(home), new)

    def visit_if(self, stmt: If) -> None:
        self.joined.append(stmt.results)
        arms = tuple(self.block(arm) for arm in stmt.blocks())
        self.joined.pop()
        ends = [arm[-1].values for arm in arms if isinstance(arm[-1], Yield)]
        results = tuple(self._carried(r, type_of(v), r) for r, v in zip(stmt.results, ends[0], strict=True))
        for result, value in zip(results, ends[1], strict=True):
            _check_join(result, value, stmt.span)
        self.emit(If(self.scalar(stmt.condition), arms[0], arms[1], results, span=stmt.span))

    def _flowing(self, targets: tuple[Value, ...], values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """What flows into joined values, each in the form in which it is joined."""
        return tuple(self._flow(target, value) for target, value in zip(targets, values, strict=True))

    def _flow(self, target: Value, value: Scalar) -> Scalar:
        joins = isinstance(target.type, TensorType) and target not in self.survey.in_memory
        if not joins or not isinstance(value, Value):
            return self.scalar(value)
        space = self.plan.placed.get(target)
        if space is not None:
            return self.need(value, Form(space))
        tile = self.need(value, ANYWHERE) if self.survey.is_loaded(value) else self.first(value)
        assert isinstance(tile.type, TileType)
        if tile.type.space is None:
            return tile
        return self.emit_tile(Move(tile, span=self.span), tile.name)

    def visit_terminator(self, stmt: Yield | Return) -> None:
        self.span = stmt.span
        if isinstance(stmt, Return):
            self.emit(Return(tuple(self._returned(value) for value in stmt.values), span=stmt.span))
        else:
            self.emit(Yield(self._flowing(self.joined[-1], stmt.values), span=stmt.span))

    def _returned(self, value: Scalar) -> Scalar:
        """A tile that is returned goes to an output parameter of its own."""
        if not isinstance(value, Value) or not isinstance(value.type, TensorType) or value in self.survey.in_memory:
            return self.scalar(value)
        tile = self.first(value)
        output = self._room(value)
        return self.let(Store(tile, (0,) * value.type.rank, output, span=self.span), value.name, self.span)

    def _room(self, value: Value) -> Value:
        """Where a returned tile is stored: over the tensor of which it is a version, if that is an output, else to a
        new output."""
        root = self.survey.roots.get(value)
        if not any(param.value is root for param in self.survey.function.params if param.is_output):
            return self._add_output(value)
        version = self.survey.version_in_memory(value)
        if version not in self.outer:
            raise UnsupportedError(
                f"{value.name!r} updates a tensor in one branch or loop that another one writes",
                span=value.span,
                required="updates of one tensor at one level",
                found=f"{version.name}, written inside",
                help="compute the value first, and write it once",
            )
        return self.value(version)


class _Context:
    """What `Op.lower` sees."""

    def __init__(self, converter: Converter, name: str, form: Form) -> None:
        self._converter = converter
        self._name = name
        self._form = form
        self.asked = False

    def emit(self, op: Op, name: str | None = None) -> Value:
        if op.level is Level.TILE and Level.TENSOR in type(op).levels:
            op = self._on_tiles(op)
        if op.level is Level.TENSOR:
            return self._converter.let(op, name or self._name, op.span)
        return self._converter.emit_tile(op, name or self._name)

    def _on_tiles(self, op: Op) -> Op:
        """`op` with each input that is still in DDR loaded: an operation of both levels reads tiles on this one, except
        of operands that it says it takes from DDR."""
        fields: dict[str, Any] = {}
        for name, value in op.operand_items():
            if isinstance(value.type, TensorType) and not op.field(name).ddr:
                accepted = op.field(name).spaces
                fields[name] = self._converter.load(value, Form(self._form.space or (accepted or (None,))[0]))
        return op.replace(**fields) if fields else op

    @property
    def space(self) -> MemorySpace | None:
        return self._form.space

    @property
    def transpose(self) -> bool:
        self.asked = True
        return self._form.transposed


def _check_join(joined: Value, value: Scalar, span: Span) -> None:
    """What flows together has one type. Raises `ShapeError`."""
    found = type_of(value)
    if found is joined.type or not isinstance(found, TileType):
        return
    raise ShapeError(
        f"{joined.name!r} is a tile of two types where paths join",
        span=span,
        required=repr(joined.type),
        found=repr(found),
        help="load both with one shape, and say the part that has meaning with valid_shape",
    )
