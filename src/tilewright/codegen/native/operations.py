"""One operation: where its result lies, the checks that it needs, and its loop form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.analysis.index_maps import affine_map
from tilewright.codegen.native import forms, special
from tilewright.codegen.native.builder import Index
from tilewright.codegen.native.checks import Checks
from tilewright.codegen.native.contract import accumulator, multiply
from tilewright.codegen.native.elements import constant_text
from tilewright.codegen.native.groups import Group
from tilewright.codegen.native.guards import Guard
from tilewright.codegen.native.loops import LoopEmitter, scalars_of, scratch_plan
from tilewright.codegen.native.reduce import reduce
from tilewright.codegen.native.scope import Place, Scope, reinterprets, row_major, window
from tilewright.codegen.native.storage import Plan, Storage
from tilewright.errors import Span, UnsupportedError, VerifyError
from tilewright.ir.buffers import buffer_type
from tilewright.ir.dtypes import UINT8, widened
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Contract, Elementwise, Reduce, Update
from tilewright.ir.loops import Index as IndexForm
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level, Op, is_array
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.pad import pad_value_of

if TYPE_CHECKING:
    from tilewright.codegen.native.module import Module


class Operations:
    """Emits the operations of one function."""

    def __init__(self, scope: Scope, plan: Plan, checks: Checks, module: Module) -> None:
        self.scope = scope
        self.plan = plan
        self.checks = checks
        self.module = module
        self.stored = set(plan.direct.values())
        """stores whose tile was computed in its place"""
        self.scratch_bytes = 0
        """bytes behind the planned storages that multiplications and groups use in turn"""
        self.heap: list[str] = []
        """slots that hold memory from the heap"""

    def emit(self, stmt: Let, op: Op) -> None:
        target = stmt.target
        stored = stmt in self.stored
        if not stored:
            self.checks.accesses(op, stmt.span)
        if not is_array(target):
            self.scope.registers[target] = special.scalar_emitter(op)(self.scope, op)
            return
        kind = target.type
        assert isinstance(kind, (TensorType, TileType))
        if isinstance(kind, TileType) and op.view_of is None:
            self.checks.valid(kind, op, target.name, stmt.span)
        if stmt in self.plan.groups:
            group = self.plan.groups[stmt]
            if stmt is group.stmts[-1]:
                self.group(group)
            return
        if target in self.plan.views:
            self.scope.places[target] = self.view(op, target, stmt.span)
            return
        out = self.place(op, target, stmt)
        self.scope.places[target] = out
        if stored:
            return
        self.form(op, out, target)
        if isinstance(kind, TileType) and kind.view.pad is not Pad.NULL:
            value = constant_text(pad_value_of(kind.view.pad, kind.dtype), widened(kind.dtype))

            def pad(inner: Scope, places: list[Place]) -> None:
                forms.margins(inner, places[0], inner.indices(kind.valid), places[0].shape, value)

            self.module.library.outlined(self.scope, [out], {}, kind.values(), pad)

    def group(self, group: Group) -> None:
        """The loops of a group, as a call of a function that has them."""
        scope, lowered = self.scope, group.lowered
        for stmt in group.stmts:
            if stmt.target in group.kept or stmt.target in self.plan.shared:
                assert isinstance(stmt.value, Op)
                scope.places[stmt.target] = self.place(stmt.value, stmt.target, stmt)
        places = {buffer: scope.place(tile) for tile, buffer in lowered.tiles.items()}
        for part in lowered.windows:
            shape = scope.indices(part.shape)
            places[part.buffer] = window(scope, part.map, scope.place(part.tensor), shape)
        for number, (given, dtype) in lowered.numbers.items():
            scope.registers[number] = scope.element(given, dtype)
        final, flat = group.final(scope.processor, [b for b, place in places.items() if place.is_contiguous])
        for buffer, line in flat.items():
            place = places.pop(buffer)
            places[line] = replace(place, shape=scope.indices(buffer_type(line).shape), strides=(1,))
        offsets, nbytes = scratch_plan(final)
        self.scratch_bytes = max(self.scratch_bytes, nbytes)
        scratch = Place(scope.b.address("%ws", "i8", self.plan.nbytes), UINT8, (), ())

        def emit(inner: Scope, inside: list[Place]) -> None:
            found = dict(zip(places, inside, strict=False))
            emitter = LoopEmitter(
                inner, found, inside[-1].pointer, offsets, {flat.get(b, b): kind for b, kind in group.classes.items()}
            )
            emitter.block(final.body, inner.single)

        self.module.library.outlined(scope, [*places.values(), scratch], {}, scalars_of(final), emit)

    # --- where ----------------------------------------------------------------------------------------------------
    def place(self, op: Op, target: Value, stmt: Let) -> Place:
        plan, scope = self.plan, self.scope
        kind = target.type
        assert isinstance(kind, (TensorType, TileType))
        if target in plan.shared:
            return replace(scope.place(plan.shared[target]), dtype=target.dtype)
        if target in plan.direct:
            return self.destination(plan.direct[target], kind)
        if target in plan.returned:
            shape = scope.indices(kind.shape)
            return Place(f"%res.{plan.returned[target]}", kind.dtype, shape, row_major(scope.b, shape))
        out = self.room(plan.own[target], kind, stmt.span)
        if op.writes is not None:  # the old version lives on: the new one starts as a copy of it
            old = scope.place(getattr(op, op.writes))
            self.copy(old, out)
        return out

    def room(self, storage: Storage, kind: TensorType | TileType, span: Span) -> Place:
        """An array of type `kind` in the workspace, or on the heap where its size is known only now."""
        scope, b = self.scope, self.scope.b
        shape = scope.indices(kind.shape)
        strides = row_major(b, shape)
        if storage.nbytes is not None:
            return Place(b.address("%ws", "i8", storage.offset), kind.dtype, shape, strides)
        slot = b.hoisted("alloca ptr", "heap")
        b.entry_lines.append(f"  store ptr null, ptr {slot}")
        self.heap.append(slot)
        nbytes = b.mul(b.mul(strides[0] if strides else 1, shape[0] if shape else 1), kind.dtype.nbytes)
        b.call("void", "free", f"ptr {b.value(f'load ptr, ptr {slot}')}", "ptr")
        self.module.declarations.add("declare ptr @malloc(i64)")
        memory = b.value(f"call ptr @malloc(i64 {b.add(nbytes, 64)})")
        b.emit(f"store ptr {memory}, ptr {slot}")
        guard = Guard("memory", "create", "", span)
        self.checks.require(b.value(f"icmp ne ptr {memory}, null"), guard, (0, 0, nbytes, 0))
        return Place(memory, kind.dtype, shape, strides)

    def destination(self, store: Let, kind: TensorType | TileType) -> Place:
        """The part of the tensor that `store` will write, seen as the tile."""
        op = store.value
        assert isinstance(op, Op) and isinstance(op.loops, Update)
        self.checks.accesses(op, store.span)
        found = affine_map(op, op.loops.map, len(kind.shape))
        assert found is not None
        tensor = self.scope.place(getattr(op, op.loops.target))
        return window(self.scope, found, tensor, self.scope.indices(kind.shape))

    def view(self, op: Op, target: Value, span: Span) -> Place:
        """The operand seen another way."""
        form, kind = op.loops, target.type
        assert isinstance(form, IndexForm) and isinstance(kind, (TensorType, TileType))
        given = getattr(op, form.source)
        source = self.scope.place(given)
        shape = self.scope.indices(kind.shape)
        found = affine_map(op, form.map, len(shape))
        if found is not None:
            if op.view_of is not None:
                self.checks.window(op, found, kind.shape, given, span)
            return replace(window(self.scope, found, source, shape), dtype=kind.dtype)
        if not reinterprets(op):
            raise VerifyError(f"{op.qualified_name} is no view that native code knows", span=op.span)
        return replace(source, dtype=kind.dtype, shape=shape, strides=row_major(self.scope.b, shape))

    # --- what -----------------------------------------------------------------------------------------------------
    def form(self, op: Op, out: Place, target: Value) -> None:
        """The loops of an operation, as a call of a function that has them."""
        kind = target.type
        assert isinstance(kind, (TensorType, TileType))
        if isinstance(op.loops, Contract):
            self.contract(op, op.loops, out, self.extents(target))
            return
        operands = {value: self.scope.place(value) for _, value in op.operand_items()}
        values = [value for value in op.uses() if not is_array(value)]
        for array in (*operands, target):
            values += array.type.values()

        def emit(inner: Scope, places: list[Place]) -> None:
            _loops(inner, op, places[0], _extents(inner, target))

        self.module.library.outlined(self.scope, [out], operands, values, emit)

    def extents(self, value: Value) -> tuple[Index, ...]:
        return _extents(self.scope, value)

    def contract(self, op: Op, form: Contract, out: Place, extents: tuple[Index, ...]) -> None:
        scope = self.scope
        lhs, rhs = getattr(op, form.lhs), getattr(op, form.rhs)
        fits = out.dtype is accumulator(lhs.dtype) and out.strides[-1] == 1 and len(extents) == 2
        if op.level is not Level.TILE or not fits:  # the tensor form may transpose and round, which is lowered first
            raise UnsupportedError(
                f"native code has no form of {op.qualified_name} for these operands",
                span=op.span,
                required=f"a tile of {accumulator(lhs.dtype)} with two dimensions",
                found=f"{lhs.type!r} and {rhs.type!r}",
            )
        adds = "false"
        if form.acc is not None:
            if op.writes != form.acc:
                start = forms.mapped(scope.place(getattr(op, form.acc)), form.acc_map)
                self.copy(Place(start.pointer, start.dtype, extents, start.strides), replace(out, shape=extents))
            adds = self.negated(getattr(op, form.unless) if form.unless else None)
        m, k = self.extents(lhs)
        n = self.extents(rhs)[1]
        left, right = scope.place(lhs), scope.place(rhs)
        owner = self.module.multiplier(lhs.dtype, left.strides[1] == 1, right.strides[1] == 1)
        self.scratch_bytes = max(self.scratch_bytes, owner.scratch_bytes(m, n, k))
        scratch = scope.b.address("%ws", "i8", self.plan.nbytes)
        multiply(scope, owner, left, right, out, (m, n, k), adds, scratch)

    def negated(self, condition: Scalar | None) -> str:
        if condition is None:
            return "true"
        return self.scope.b.value(f"xor i1 {self.scope.scalar(condition)}, true")

    # --- copies between statements --------------------------------------------------------------------------------
    def move(self, source: Place, out: Place) -> None:
        """The whole physical array, unless it lies there already."""
        if source.pointer != out.pointer or source.strides != out.strides:
            self.copy(source, out)

    def copy(self, source: Place, out: Place) -> None:
        """All elements of `out`."""

        def emit(inner: Scope, places: list[Place]) -> None:
            forms.copy(inner, places[0], places[1], places[1].shape)

        self.module.library.outlined(self.scope, [source, out], {}, (), emit)


def _extents(scope: Scope, value: Value) -> tuple[Index, ...]:
    kind = value.type
    assert isinstance(kind, (TensorType, TileType))
    return scope.indices(kind.valid if isinstance(kind, TileType) else kind.shape)


def _loops(scope: Scope, op: Op, out: Place, extents: tuple[Index, ...]) -> None:
    """The loops of an operation, by its form; `extents` are those of the result."""
    match op.loops:
        case Elementwise() as form:
            forms.elementwise(scope, op, form, out, extents)
        case IndexForm() as form:
            forms.index(scope, op, form, out, extents)
        case Update() as form:
            source = getattr(op, form.source)
            forms.update(scope, op, form, out, _extents(scope, source) if is_array(source) else ())
        case Reduce() as form:
            _, value = next(op.operand_items())
            reduce(scope, op, form, out, _extents(scope, value))
        case _:
            special.array_emitter(op)(scope, op, out, extents)
