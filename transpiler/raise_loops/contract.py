"""Sums of products of arrays that were copied along each other's axes, as matrix products.

    before                                            after
    p = broadcast(a) {shape=(n, m, k), axes=(0, 2)}   c = dot_general(a, b) {contract=((1,), (0,))}
    q = broadcast(t) {shape=(n, m, k), axes=(1, 2)}   return c
    r = multiply(p, q)              (t: b transposed)
    c = sum(r) {axes=(2,)}
    return c

A sum of such products and other terms becomes the sum of their sums.  In derivatives, products may have to keep zeros
(`scale`): they do so without notice if the other factor is finite, which the running code looks at.  The order of the
additions is another one, as in any reduction; the products are those that were there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import ops
from ..ir.build import choose
from ..ir.nodes import Const, Func, Let, Value, Var
from ..ir.walk import rewrite
from ..ops.base import Product


@dataclass(frozen=True)
class _Operand:
    """An array, and the axis of the product that each of its axes is."""

    value: Value
    axes: tuple[int, ...]


def contract_sums(func: Func) -> Func:
    func = _with_whole_sums(func)
    known: dict[Var, Let] = {}          # as they are now: a sum may be of what another sum has become

    def change(let: Let) -> Let | Value:
        known.update((target, let) for target in let.targets)
        if not let.op.is_sum or not let.target.type.is_inexact:
            return let
        found = _contracted(let.args[0], let.params["axes"], known)
        return let if found is None else found

    return rewrite(func, change)


def _with_whole_sums(func: Func) -> Func:
    """Sums of sums as sums over all of the axes."""
    made: dict[Value, Let] = {}

    def change(let: Let) -> Let | Value:
        if not let.op.is_sum:
            return let
        inner = made.get(let.args[0])
        if inner is not None:
            before = inner.params["axes"]
            left = [k for k in range(inner.args[0].rank) if k not in before]
            axes = tuple(sorted((*before, *(left[k] for k in let.params["axes"]))))
            let = Let(let.targets, let.op, inner.args, {"axes": axes}, let.loc)
        made[let.target] = let
        return let

    return rewrite(func, change)


def _contracted(x: Value, axes: tuple[int, ...], known: Mapping[Var, Let]) -> Value | None:
    """The sum over the axes as matrix products, where it is a sum of such."""
    let = known.get(x) if isinstance(x, Var) else None
    if let is None:
        return None
    if let.op.multiplies is Product.PLAIN:
        return _product(let.args[0], let.args[1], axes, x.rank, known)
    if let.op.multiplies is Product.ZEROS_WIN and let.target.type.kind == "f":
        return _scaled(let, axes, known)
    if let.op.chooses:
        return _masked(let, axes, known)
    order = _lies_along(let)
    if order is not None and len(order) == x.rank:
        return _transposed(let, order, axes, known)
    if let.op.sums_apart:
        parts = [_contracted(a, axes, known) for a in let.args]
        if parts == [None, None]:
            return None
        left, right = (ops.sum(a, axes=axes) if part is None else part for a, part in zip(let.args, parts))
        total: Value = let.op(left, right)
        return total
    return None


def _lies_along(let: Let) -> tuple[int, ...] | None:
    found: tuple[int, ...] | None = let.op.lies_along([a.type for a in let.args], **let.params)
    return found


def _transposed(let: Let, order: tuple[int, ...], axes: tuple[int, ...], known: Mapping[Var, Let]) -> Value | None:
    """order: which axis of the transposed array each axis is."""
    part = _contracted(let.args[0], tuple(k for k, axis in enumerate(order) if axis in axes), known)
    if part is None:
        return None
    left = [axis for axis in order if axis not in axes]
    found: Value = ops.transpose(part, axes=tuple(left.index(axis) for axis in sorted(left)))
    return found


def _scaled(let: Let, axes: tuple[int, ...], known: Mapping[Var, Let]) -> Value | None:
    """The sum of a cotangent times partials, of which 0 * inf is 0: a matrix product if all partials are finite."""
    x = let.target
    left, right = (_stripped(_Operand(a, tuple(range(x.rank))), known) for a in let.args)
    if not _is_product(left, right, axes, x.rank):
        return None
    finite = ops.all(ops.isfinite(right.value), axes=tuple(range(right.value.rank)))

    def one_by_one() -> tuple[Value]:
        whole = [ops.broadcast(o.value, shape=x.shape, axes=o.axes) for o in (left, right)]
        return (ops.sum(let.op(*whole), axes=axes),)

    return choose(finite, lambda: (_multiplied(left, right, axes, x.rank),), one_by_one)[0]


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
    found: Value = let.op(which, part, 0)
    return found


def _product(a: Value, b: Value, axes: tuple[int, ...], rank: int, known: Mapping[Var, Let]) -> Value | None:
    left, right = (_stripped(_Operand(x, tuple(range(rank))), known) for x in (a, b))
    return _multiplied(left, right, axes, rank) if _is_product(left, right, axes, rank) else None


def _is_product(left: _Operand, right: _Operand, axes: tuple[int, ...], rank: int) -> bool:
    """Whether all axes that are summed are in both, and some others in one only: else it is a sum that fuses with what
    surrounds it."""
    one, other = set(left.axes), set(right.axes)
    return set(axes) <= one & other and one | other == set(range(rank)) and one != other


def _multiplied(left: _Operand, right: _Operand, axes: tuple[int, ...], rank: int) -> Value:
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
    along = _lies_along(let)
    return x if along is None else _stripped(_Operand(let.args[0], tuple(x.axes[a] for a in along)), known)
