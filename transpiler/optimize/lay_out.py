"""The function's own arrays have that axis last along which the innermost loops go.

    before                                            after
    t = empty (n, m)                                  t = empty (m, n)
    for j in 0 .. m:                                  for j in 0 .. m:
      for k in 0 .. n:                                  for k in 0 .. n:
        t[k, j] = x[j, k]                                 t[j, k] = x[j, k]

Tapes have the order of the user's loops, which `interchange` has turned; columns that the user works on may be rows of
memory.  Only arrays that the function makes, and of which it does nothing but read and write elements: nobody else sees
in which order they lie.  What it returns is such an array, too, if it is copied in the end; so is one that begins with
the elements of an argument, which are copied anyhow.  Rows of (x, y, z) become three rows then, along which loops over
points are vectorised.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, assert_never

from .. import ops
from ..ir.build import Names, building, for_loop, size_value
from ..ir.dependence import position_of
from ..ir.dims import symbols_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Block, Call, Check, Const, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.types import Type
from ..ir.walk import all_statements, blocks, operands, used_names

DEEPER = 8          # how much more an access counts for each loop around it, of which more trips than that are unknown
CLEARLY = 1.5       # how much more must go along the new last axis than along the old one


def lay_out(func: Func) -> Func:
    if not any(map(_writes_array, all_statements(func.body))):
        return func
    arrays = Arrays(func)
    orders = arrays.orders()
    if not orders:
        return func
    with building(Names(used_names(func))) as b:
        rewriting = Rewriting(arrays, orders)
        for param in func.params:
            rewriting.take(param)
        b.stmts += rewriting.block(func.body).stmts
        results = tuple(map(rewriting.given, func.body.results))
    return replace(func, body=Block(tuple(b.stmts), results))


def _writes_array(stmt: Stmt) -> bool:
    """Whether this writes to an array of rank 2 or more."""
    return isinstance(stmt, Let) and stmt.op.access in ("store", "add_at") and stmt.target.type.rank > 1


def is_element(let: Let) -> bool:
    return (let.op.access is not None and all(isinstance(item, At) for item in let.params["index"])
            and not any(a.type.shape for a in let.args[1:]))


class Arrays:
    """Which variables are versions of one array, and along which axes loops go through it.  fixed: those with which
    more is done than to read and write elements."""

    def __init__(self, func: Func) -> None:
        self.func = func
        self.ints = Ints(func.body)
        self._parent: dict[Var, Var] = {}
        self.fixed: set[Var] = set()
        self._written: set[Var] = set()
        self._votes: dict[Var, list[tuple[int, int]]] = defaultdict(list)      # axis, weight
        self._fix(*func.effects, *func.results[len(func.returned):])
        for var in (*func.params, *func.returned):
            self._copy(var)
        self._block(func.body, (), 1)

    def root(self, var: Var) -> Var:
        while (parent := self._parent.get(var, var)) is not var:
            self._parent[var] = self._parent.get(parent, parent)
            var = parent
        return var

    def orders(self) -> dict[Var, tuple[int, ...]]:
        """The new order of the axes of each array that gains from one."""
        fixed = {self.root(v) for v in self.fixed}
        written = {self.root(v) for v in self._written}
        votes: dict[Var, list[int]] = {}
        for var, found in self._votes.items():
            root = self.root(var)
            if root not in fixed and root in written:
                total = votes.setdefault(root, [0] * root.type.rank)
                for axis, weight in found:
                    total[axis] += weight
        orders = {}
        for root, total in votes.items():
            best = max(range(len(total)), key=total.__getitem__)
            if total[best] > CLEARLY * total[-1]:
                orders[root] = (*(k for k in range(len(total)) if k != best), best)
        return orders

    def _fix(self, *values: Value) -> None:
        self.fixed.update(v for v in values if isinstance(v, Var) and v.type.shape)

    def _copy(self, value: Value) -> None:
        """The array keeps its order there, which is read from or written to against the grain if it has another."""
        if isinstance(value, Var) and (rank := value.type.rank):
            self._votes[value].append((rank - 1, 2 * DEEPER ** rank))

    def _join(self, *values: Value) -> None:
        roots = {self.root(v) for v in values if isinstance(v, Var) and v.type.shape}
        for root in roots - {last := next(iter(roots), None)}:
            assert last is not None
            self._parent[root] = last

    def _join_carries(self, loop: For | While) -> None:
        for values in zip(loop.targets, loop.carries, loop.inits, loop.body.results):
            self._join(*values)

    def _block(self, block: Block, loops: Sequence[For], often: int) -> None:
        """often: how much an access in the block counts."""
        for stmt in block.stmts:
            match stmt:
                case Let():
                    self._let(stmt, loops, often)
                case Call() | Check():
                    self._fix(*operands(stmt), *stmt.targets)
                case If():
                    for values in zip(stmt.targets, stmt.then.results, stmt.orelse.results):
                        self._join(*values)
                    self._block(stmt.then, loops, often)
                    self._block(stmt.orelse, loops, often)
                case For():
                    self._join_carries(stmt)
                    self._block(stmt.body, (*loops, stmt), often * self._trips(stmt))
                case While():
                    self._join_carries(stmt)
                    self._block(stmt.cond, (), often * DEEPER)
                    self._block(stmt.body, (), often * DEEPER)
                case _:
                    assert_never(stmt)

    def _trips(self, loop: For) -> int:
        """How much more an access counts in the loop."""
        if not (isinstance(loop.step, Const) and abs(loop.step.value) == 1):
            return 1            # it goes from strip to strip
        trips = (self.ints.dim(loop.hi) - self.ints.dim(loop.lo)) * loop.step.value
        return min(max(trips, 1), DEEPER) if isinstance(trips, int) else DEEPER

    def _let(self, let: Let, loops: Sequence[For], often: int) -> None:
        if not is_element(let):
            self._fix(*let.args, *(() if let.op.is_unset else let.targets))
            return
        array = let.args[0]
        if let.op.access != "load":
            self._join(array, let.target)
            self._written.add(let.target)
        if loops and isinstance(array, Var):
            name = loops[-1].index.name
            moving = [k for k, p in enumerate(map(self.ints.dim, position_of(let))) if name in symbols_of(p)]
            if len(moving) == 1:
                self._votes[array].append((moving[0], often))


class Rewriting:
    """orders: the new order of axes, by the root of an array's versions."""

    def __init__(self, arrays: Arrays, orders: dict[Var, tuple[int, ...]]) -> None:
        self.arrays, self.orders = arrays, orders
        self.made: dict[Var, Value] = {}

    def _order(self, value: Value) -> tuple[int, ...] | None:
        return self.orders.get(self.arrays.root(value)) if isinstance(value, Var) and value.type.shape else None

    def turned(self, type: Type, order: tuple[int, ...]) -> Type:
        """The type of an array in its new order."""
        return _turned(type, order)

    def take(self, param: Var) -> None:
        """Copy what the caller has given, if the func has it in another order."""
        order = self._order(param)
        if order is not None:
            self.made[param] = _copied(param, order, order, param.name)

    def given(self, result: Value) -> Value:
        """What the caller gets for what the func has."""
        order = self._order(result)
        if order is None:
            return result
        assert isinstance(result, Var)
        back = tuple(sorted(range(len(order)), key=order.__getitem__))
        return _copied(self.value(result), back, range(len(order)), result.name)

    def value(self, value: Value, beside: Value | None = None) -> Value:
        """What stands for the value; beside: a version of the same array, where it may be a constant."""
        order = self._order(value if beside is None else beside)
        if order is None:
            return value
        if isinstance(value, Const):
            return Const(value.value, self.turned(value.type, order))
        if value not in self.made:
            self.made[value] = Var(value.name, self.turned(value.type, order))
        return self.made[value]

    def _vars(self, values: Sequence[Var]) -> tuple[Var, ...]:
        return tuple(v for v in map(self.value, values) if isinstance(v, Var))

    def _beside(self, values: Sequence[Value], targets: Sequence[Var]) -> tuple[Value, ...]:
        return tuple(map(self.value, values, targets))

    def block(self, block: Block, targets: Sequence[Var] | None = None) -> Block:
        """targets: what the results are called outside."""
        results = block.results if targets is None else self._beside(block.results, targets)
        return Block(tuple(self._statement(s) for s in block.stmts), results)

    def _statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let():
                return self._let(stmt)
            case If():
                arms = [self.block(arm, stmt.targets) for arm in blocks(stmt)]
                return replace(stmt, targets=self._vars(stmt.targets), then=arms[0], orelse=arms[1])
            case For():
                return replace(stmt, targets=self._vars(stmt.targets), carries=self._vars(stmt.carries),
                               inits=self._beside(stmt.inits, stmt.targets), body=self.block(stmt.body, stmt.targets))
            case While():
                return replace(stmt, targets=self._vars(stmt.targets), carries=self._vars(stmt.carries),
                               inits=self._beside(stmt.inits, stmt.targets), cond=self.block(stmt.cond),
                               body=self.block(stmt.body, stmt.targets))
            case Call() | Check():
                return stmt
            case _:
                assert_never(stmt)

    def _let(self, let: Let) -> Let:
        if not let.op.is_unset and let.op.access is None:
            return let
        array = let.args[0] if let.op.access == "load" else let.target
        order = self._order(array)
        if order is None:
            return let
        if let.op.is_unset:
            return replace(let, targets=self._vars(let.targets),
                           params={**let.params, "shape": self.turned(let.target.type, order).shape})
        place = tuple(_in(order, position_of(let)))
        first = 1 if let.op.access == "load" else 2
        return replace(let, targets=self._vars(let.targets),
                       args=(self.value(let.args[0], array), *let.args[1:first], *place))


def _copied(array: Value, order: Sequence[int], nest: Sequence[int], name: str) -> Value:
    """Emit: a new array with the axes of `array` in that order.  nest: the axes by loops, the innermost last."""
    type = _turned(array.type, order)
    new = ops.empty(shape=type.shape, dtype=type.dtype)

    def loops(depth: int, place: dict[int, Value], new: Value) -> Value:
        if depth == len(nest):
            indices = [place[k] for k in range(len(nest))]
            index = (At(),) * len(nest)
            return ops.store(new, ops.load(array, *indices, index=index), *_in(order, indices), index=index)
        axis = nest[depth]
        (result,) = for_loop(size_value(0), size_value(array.type.shape[axis]), [new],
                             lambda i, new: [loops(depth + 1, {**place, axis: i}, new)],
                             parallel=depth == 0, index="ijkl"[min(depth, 3)], hints=[name])
        return result

    return loops(0, {}, new)


def _in(order: Sequence[int], parts: Sequence[Any]) -> Iterator[Any]:
    return (parts[k] for k in order)


def _turned(type: Type, order: Sequence[int]) -> Type:
    return Type(type.dtype, tuple(_in(order, type.shape)))
