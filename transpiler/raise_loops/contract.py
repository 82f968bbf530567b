"""Sums of products of arrays that were copied along each other's axes, as matrix products.

    before                                            after
    p = broadcast(a) {shape=(n, m, k), axes=(0, 2)}   c = dot_general(a, b) {contract=((1,), (0,))}
    q = broadcast(t) {shape=(n, m, k), axes=(1, 2)}   return c
    r = multiply(p, q)              (t: b transposed)
    c = sum(r) {axes=(2,)}
    return c

A sum of such products and other terms becomes the sum of their sums.  The order of the additions is another one, as
in any reduction; the products are those that were there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import ops
from ..ir.nodes import Const, Func, Let, Value, Var
from ..ir.walk import definitions, rewrite


@dataclass(frozen=True)
class _Operand:
    """An array, and the axis of the product that each of its axes is."""

    value: Value
    axes: tuple[int, ...]


def contract_sums(func: Func) -> Func:
    known = {v: s for v, s in definitions(func.body).items() if isinstance(s, Let)}

    def change(let: Let) -> Let | Value:
        if let.op is not ops.sum or not let.target.type.is_inexact:
            return let
        x, axes = _whole_sum(let, known)
        found = _contracted(x, axes, known)
        return let if found is None else found

    return rewrite(func, change)


def _whole_sum(let: Let, known: Mapping[Var, Let]) -> tuple[Value, tuple[int, ...]]:
    """What is summed over which axes, where sums are summed again."""
    x, axes = let.args[0], let.params["axes"]
    inner = known.get(x) if isinstance(x, Var) else None
    while inner is not None and inner.op is ops.sum:
        x, before = inner.args[0], inner.params["axes"]
        left = [k for k in range(x.rank) if k not in before]
        axes = tuple(sorted((*before, *(left[k] for k in axes))))
        inner = known.get(x) if isinstance(x, Var) else None
    return x, axes


def _contracted(x: Value, axes: tuple[int, ...], known: Mapping[Var, Let]) -> Value | None:
    """The sum over the axes as matrix products, where it is a sum of such."""
    let = known.get(x) if isinstance(x, Var) else None
    if let is None:
        return None
    if let.op is ops.multiply:
        return _product(let.args[0], let.args[1], axes, x.rank, known)
    if let.op is ops.select:
        return _masked(let, axes, known)
    if let.op in (ops.add, ops.subtract):
        parts = [_contracted(a, axes, known) for a in let.args]
        if parts == [None, None]:
            return None
        left, right = (ops.sum(a, axes=axes) if part is None else part for a, part in zip(let.args, parts))
        total: Value = let.op(left, right)
        return total
    return None


def _masked(let: Let, axes: tuple[int, ...], known: Mapping[Var, Let]) -> Value | None:
    """The sum of what is selected or zero, where all that is summed is selected, or nothing."""
    mask, x, other = let.args
    if not isinstance(other, Const) or other.value != 0:
        return None
    before = _stripped(_Operand(mask, tuple(range(x.rank))), known)
    if not set(before.axes).isdisjoint(axes):
        return None
    part = _contracted(x, axes, known)
    if part is None:
        return None
    left = [k for k in range(x.rank) if k not in axes]
    which = ops.broadcast(before.value, shape=part.shape, axes=tuple(left.index(k) for k in before.axes))
    found: Value = ops.select(which, part, 0)
    return found


def _product(a: Value, b: Value, axes: tuple[int, ...], rank: int, known: Mapping[Var, Let]) -> Value | None:
    left, right = (_stripped(_Operand(x, tuple(range(rank))), known) for x in (a, b))
    if not (set(axes) <= set(left.axes) and set(axes) <= set(right.axes)):
        return None
    if set(left.axes) | set(right.axes) != set(range(rank)) or (set(left.axes) <= set(right.axes) and set(
            right.axes) <= set(left.axes)):
        return None                                 # no matrix: a sum that fuses with what surrounds it
    shared = [k for k in left.axes if k in right.axes and k not in axes]
    value = ops.dot_general(left.value, right.value, contract=(_places(left, axes), _places(right, axes)),
                            batch=(_places(left, shared), _places(right, shared)))
    made = [*shared, *(k for k in left.axes if k not in right.axes), *(k for k in right.axes if k not in left.axes)]
    wanted = [k for k in range(rank) if k not in axes]
    found: Value = ops.transpose(value, axes=tuple(made.index(k) for k in wanted))
    return found


def _places(x: _Operand, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(x.axes.index(k) for k in axes)


def _stripped(x: _Operand, known: Mapping[Var, Let]) -> _Operand:
    """Without copies along axes and without transposes."""
    let = known.get(x.value) if isinstance(x.value, Var) else None
    if let is None:
        return x
    inner = let.args[0] if let.args else None
    if let.op is ops.transpose:
        order = let.params["axes"]
        return _stripped(_Operand(let.args[0], tuple(x.axes[order.index(k)] for k in range(len(order)))), known)
    if let.op is ops.broadcast and inner is not None and all(
            d == let.params["shape"][a] for d, a in zip(inner.shape, let.params["axes"])):
        return _stripped(_Operand(inner, tuple(x.axes[a] for a in let.params["axes"])), known)
    return x
