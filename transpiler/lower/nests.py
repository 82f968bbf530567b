"""From the loop tree to loop-level IR: `For` statements that carry accumulators and the arrays they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import ops
from ..ir.build import choose, current, for_loop, int_const, is_plain, located, size_value
from ..ir.dims import symbol
from ..ir.index import At
from ..ir.nodes import Const, For, If, Let, Stmt, Value, Var, While
from ..ir.types import I64, Type
from ..ir.walk import Copier, blocks
from ..ops.base import Lowering
from .schedule import Schedule
from .tree import Alloc, Finish, Init, Item, Leaf, Loop, Scalar, Step, Store, Whole, leaves


class Nests:
    """Emits a schedule at the current builder.

    `copier.values` maps every variable of the tensor program to what holds it now: for an array that is being
    written, its newest version.  `totals` holds the accumulators of reductions under way.
    """

    def __init__(self, plan: Schedule, copier: Copier, lower_block: Any) -> None:
        self.plan = plan
        self.copier = copier
        self.lower_block = lower_block
        self.totals: dict[Var, tuple[Value, ...]] = {}
        self.just_stored: dict[tuple[Any, ...], tuple[Value, Any]] = {}

    def emit(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Loop):
                self._loop(item)
            else:
                with located(item.loc):
                    self._leaf(item)

    # --- loops -----------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> None:
        size = self._dim(loop.size)
        if size == 0:
            return
        if size == 1:
            self.copier.values[self.plan.resolve(loop.index)] = int_const(0)  # type: ignore[index]
            self.emit(loop.children)
            return
        arrays, totals = self._changed(loop)
        inits = [self.copier.value(a) for a in arrays] + [v for t in totals for v in self.totals[t]]
        hints = [a.name for a in arrays] + [t.name for t in totals for _ in self.totals[t]]

        def body(index: Value, *carries: Value) -> list[Value]:
            self.copier.values[self.plan.resolve(loop.index)] = index  # type: ignore[index]
            self._set(arrays, totals, carries)
            self.emit(loop.children)
            return [self.copier.value(a) for a in arrays] + [v for t in totals for v in self.totals[t]]

        hi = size_value(size)
        results = for_loop(int_const(0), hi, inits, body, index=loop.index.name, hints=hints,
                           parallel=self._is_parallel(loop, arrays, totals))
        self._set(arrays, totals, results)

    def _changed(self, loop: Loop) -> tuple[list[Var], list[Var]]:
        """Arrays and accumulators that begin before the loop and change in it."""
        arrays: list[Var] = []
        totals: list[Var] = []
        for leaf in leaves(loop):
            target = leaf.target
            if target is None:
                continue
            in_array = isinstance(leaf, Store) or (isinstance(leaf, Finish) and leaf.kept) or (
                isinstance(leaf, Step) and leaf.kept is not None)
            if in_array and target in self.copier.values and target not in arrays and not self._is_scalar(target):
                arrays.append(target)
            if isinstance(leaf, Step) and leaf.kept is None and target in self.totals and target not in totals:
                totals.append(target)
        return arrays, totals

    def _set(self, arrays: Sequence[Var], totals: Sequence[Var], values: Sequence[Value]) -> None:
        rest = list(values)
        for array in arrays:
            self.copier.values[array] = rest.pop(0)
        for total in totals:
            count = len(self.totals[total])
            self.totals[total] = tuple(rest[:count])
            del rest[:count]

    def _is_parallel(self, loop: Loop, arrays: Sequence[Var], totals: Sequence[Var]) -> bool:
        """Whether iterations touch separate places: every array is written along this loop's own axis, and what goes
        from one iteration to the next is only sums."""
        for leaf in leaves(loop):
            if isinstance(leaf, Whole):
                return False
            if leaf.target in totals and isinstance(leaf, Step) and not leaf.let.op.is_sum:  # type: ignore[union-attr]
                return False
            if leaf.target in arrays:
                if isinstance(leaf, Init) or (isinstance(leaf, Step) and leaf.kept is None):
                    continue        # accumulators that begin and end within an iteration
                if isinstance(leaf, Step) or (isinstance(leaf, Store) and not leaf.pointwise):
                    return False
                place = leaf.place() if isinstance(leaf, (Store, Finish)) else ()
                axes = self.plan.kept_axes.get(leaf.target, range(len(place)))  # type: ignore[arg-type]
                if not any(self.plan.resolve(place[a]) is self.plan.resolve(loop.index) for a in axes):
                    return False
        return True

    # --- leaves ----------------------------------------------------------------------------------------------

    def _leaf(self, leaf: Leaf) -> None:
        match leaf:
            case Alloc():
                self.copier.values[leaf.target] = self._allocate(leaf)  # type: ignore[index]
            case Store():
                value, *place = self._code(leaf)
                self._write(leaf.target, place, value, leaf.adds, leaf.pointwise)
            case Init():
                self._begin(leaf)
            case Step():
                self._step(leaf)
            case Finish():
                value = leaf.let.op.finish(self.totals.pop(leaf.target), **self._params(leaf.let))  # type: ignore
                if leaf.kept:
                    self._write(leaf.target, [self._index(v) for v in leaf.kept], value, False, True)
                else:
                    self.copier.values[leaf.target] = named(value, leaf.target)  # type: ignore[index, arg-type]
                    self._follow_size(leaf.target)  # type: ignore[arg-type]
            case Scalar():
                (value,) = self._code(leaf)
                assert leaf.target is not None
                self.copier.values[leaf.target] = named(value, leaf.target)
                self._follow_size(leaf.target)
            case Whole():
                self._whole(leaf.stmt)
            case _:
                raise TypeError(type(leaf).__name__)

    def _allocate(self, leaf: Alloc) -> Value:
        assert leaf.target is not None
        type = self._array_type(leaf.target)
        if leaf.base is None:
            with located(leaf.loc):
                return named(ops.empty(shape=type.shape, dtype=type.dtype), leaf.target)
        return self.copier.value(leaf.base)

    def _begin(self, leaf: Init) -> None:
        assert leaf.let is not None and leaf.target is not None
        x = self.copier.type(leaf.let.args[0].type)
        first = leaf.let.op.init(x, **self._params(leaf.let))
        if leaf.in_array:
            (start,) = first
            type = self._array_type(leaf.target)
            self.copier.values[leaf.target] = Const(start.value, type) if isinstance(start, Const) else (
                ops.broadcast(start, shape=type.shape, axes=()))
        else:
            self.totals[leaf.target] = tuple(first)

    def _step(self, leaf: Step) -> None:
        assert leaf.let is not None and leaf.target is not None
        element, *positions = self._code(leaf)
        params = self._params(leaf.let)
        if leaf.kept is None:
            self.totals[leaf.target] = tuple(leaf.let.op.step(self.totals[leaf.target], element, positions, **params))
            return
        place = [self._index(v) for v in leaf.kept]
        array = self.copier.value(leaf.target)
        before = ops.load(array, *place, index=(At(),) * len(place))
        (after,) = leaf.let.op.step((before,), element, positions, **params)
        self.copier.values[leaf.target] = ops.store(array, after, *place, index=(At(),) * len(place))

    def _write(self, target: Var | None, place: Sequence[Value], value: Value, adds: bool, pointwise: bool) -> None:
        assert target is not None
        axes = self.plan.kept_axes.get(target)
        where = [place[a] for a in axes] if axes is not None else list(place)
        if axes == ():
            self.copier.values[target] = named(value, target)
            return
        array = self.copier.value(target)
        write = ops.add_at if adds else ops.store
        self.copier.values[target] = named(write(array, value, *where, index=(At(),) * len(where)), target)
        if pointwise:
            self.just_stored[(target, *map(_key, where))] = (value, current())

    def _whole(self, stmt: Stmt | None) -> None:
        assert stmt is not None
        if isinstance(stmt, Let) and stmt.op.lowering is Lowering.EXPAND:
            result = stmt.op.expand(*map(self.copier.value, stmt.args), **self._params(stmt))
            for target, value in zip(stmt.targets, result if isinstance(result, tuple) else (result,), strict=True):
                self.copier.values[target] = named(value, target)
                self._follow_size(target)
        elif isinstance(stmt, (If, For, While)):
            self.lower_block(stmt, self.copier)
            for target in stmt.targets:
                self._follow_size(target)
        else:
            self.copier.statement(stmt)

    # --- scalar code -------------------------------------------------------------------------------------------

    def _code(self, leaf: Leaf) -> list[Value]:
        """Copy the leaf's code here, reading shrunken arrays at their remaining axes."""
        assert leaf.code is not None
        sizes = dict(self.copier.sizes)          # an int in the code names no size, whatever it is called
        self._copy(leaf.code.stmts, {id(load) for load in leaf.code.loads})
        self.copier.sizes = sizes
        return [self._index(r) if isinstance(r, Var) else r for r in leaf.code.results]

    def _follow_size(self, scalar: Var) -> None:
        """A size that is named after this int goes by the name that it has now."""
        if scalar.type != I64:
            return
        value = self.copier.values[scalar]
        self.copier.sizes.pop(scalar.name, None)
        if isinstance(value, Const):
            self.copier.sizes[scalar.name] = int(value.value)
        elif value.name != scalar.name:
            self.copier.sizes[scalar.name] = symbol(value.name, 0)

    def _copy(self, stmts: Sequence[Stmt], loads: set[int]) -> None:
        for stmt in stmts:
            if id(stmt) in loads and isinstance(stmt, Let):
                self.copier.values[stmt.target] = self._read(stmt)
            elif blocks(stmt) and isinstance(stmt, If):
                self._copy_if(stmt, loads)
            else:
                self._rename_index(stmt)
                self.copier.statement(stmt)

    def _copy_if(self, stmt: If, loads: set[int]) -> None:
        def branch(block: Any) -> list[Value]:
            self._copy(block.stmts, loads)
            return [self._index(r) if isinstance(r, Var) else r for r in block.results]

        values = choose(self.copier.value(stmt.pred), lambda: branch(stmt.then), lambda: branch(stmt.orelse))
        for target, value in zip(stmt.targets, values, strict=True):
            self.copier.values[target] = value

    def _rename_index(self, stmt: Stmt) -> None:
        """Merged loop variables have one value."""
        if isinstance(stmt, Let):
            for arg in stmt.args:
                if isinstance(arg, Var) and arg in self.plan.same:
                    self.copier.values[arg] = self._index(arg)

    def _read(self, load: Let) -> Value:
        array, *index = load.args
        place = [self._index(i) for i in index]
        axes = self.plan.kept_axes.get(array)  # type: ignore[arg-type]
        if axes is not None:
            place = [place[a] for a in axes]
        if axes == ():
            return self.copier.value(array)
        known = self.just_stored.get((array, *map(_key, place)))
        if known is not None and current().sees(known[1]):
            return known[0]
        with located(load.loc):
            return ops.load(self.copier.value(array), *place, index=(At(),) * len(place))

    def _index(self, value: Value) -> Value:
        return self.copier.value(self.plan.resolve(value))

    # --- types --------------------------------------------------------------------------------------------------

    def _is_scalar(self, array: Var) -> bool:
        return self.plan.kept_axes.get(array) == ()

    def _array_type(self, array: Var) -> Type:
        type = self.copier.type(array.type)
        axes = self.plan.kept_axes.get(array)
        return type if axes is None else type.with_shape(tuple(type.shape[a] for a in axes))

    def _params(self, let: Let) -> dict[str, Any]:
        return self.copier.params(let.params)

    def _dim(self, dim: Any) -> Any:
        return self.copier.type(Type("int64", (dim,))).shape[0]


def _key(value: Value) -> Any:
    return value.value if isinstance(value, Const) else value


def named(value: Value, source: Var) -> Value:
    """A freshly made value takes the name of the variable that it is."""
    if isinstance(value, Var) and is_plain(value.name) and not is_plain(source.name):
        value.name = current().names.fresh(source.name)
    return value
