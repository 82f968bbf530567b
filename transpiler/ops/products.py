"""Products of arrays: dot_general, and NumPy's dot, matmul, vdot, inner, outer, tensordot, kron and cross.

`ops.dot_general(a, b, contract=, batch=)` sums over the axes that `contract` pairs up, goes along those that `batch`
pairs up, and multiplies everything else with everything: the axes of the result are batch, free of a, free of b.  The
call chooses what to emit:

    nothing left free                    sum(a * b): it fuses with what surrounds it
    integers, bools, a few numbers       the same, with a and b copied along each other's free axes
    anything else                        the operation itself, on matrices, vectors or stacks of matrices: BLAS
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import const
from ..ir.dims import bounds, product, same_size, shown_shape
from ..ir.index import Span
from ..ir.nodes import Value
from ..ir.types import Type
from .base import definition, grid
from .families import Lowering, Op, RuleError, Sample, register, sample

Pairs = tuple[tuple[int, ...], tuple[int, ...]]

BLAS_DTYPES = ("float32", "float64", "complex64", "complex128")
SMALL = 64          # products of at most as many multiplications are loops


def free_axes(rank: int, *used: tuple[int, ...]) -> tuple[int, ...]:
    taken = {a for axes in used for a in axes}
    return tuple(k for k in range(rank) if k not in taken)


def shown_size(dim: Any) -> str:
    """A size as messages write it: that of this call where it is known."""
    return shown_shape((dim,))[1:-2]


def not_aligned(a: Sequence[Any], b: Sequence[Any], i: int, j: int) -> RuleError:
    """NumPy's complaint that axis i of one shape does not fit axis j of the other."""
    return RuleError(f"shapes {shown_shape(a)} and {shown_shape(b)} not aligned: {shown_size(a[i])} (dim {i}) != "
                     f"{shown_size(b[j])} (dim {j})", code="E302")


def result_shape(a: Type, b: Type, contract: Pairs, batch: Pairs) -> tuple[Any, ...]:
    shared = tuple(_same(a.shape[i], b.shape[j]) for i, j in zip(*batch))
    return (*shared, *(a.shape[k] for k in free_axes(a.rank, contract[0], batch[0])),
            *(b.shape[k] for k in free_axes(b.rank, contract[1], batch[1])))


def _same(one: Any, other: Any) -> Any:
    """Two sizes that are taken as equal: the one that is known."""
    return other if isinstance(other, int) else one


@register
class DotGeneral(Op):
    """Sum of products over pairs of axes; linear in each of its two arguments."""

    name, masks = "dot_general", False
    lowering, library = Lowering.KERNEL, "BLAS"

    def __call__(self, a: Any, b: Any, *, contract: Pairs, batch: Pairs = ((), ())) -> Any:
        a, b = self.prepare(a, b)
        self.infer(a.type, b.type, contract=contract, batch=batch)
        if not self._is_for_blas(a.type, b.type, contract, batch):
            return _as_sum(a, b, contract, batch)
        if not batch[0] and len(contract[0]) == 1 and a.rank <= 2 and b.rank <= 2:
            return super().__call__(a, b, contract=contract, batch=batch)
        return self._as_matrices(a, b, contract, batch)

    @staticmethod
    def _is_for_blas(a: Type, b: Type, contract: Pairs, batch: Pairs) -> bool:
        if a.dtype not in BLAS_DTYPES or not contract[0]:
            return False
        if len(contract[0]) + len(batch[0]) == a.rank == b.rank:
            return False
        work = bounds(product(result_shape(a, b, contract, batch)) * product(a.shape[k] for k in contract[0]))[1]
        return work is None or work > SMALL

    def _as_matrices(self, a: Value, b: Value, contract: Pairs, batch: Pairs) -> Value:
        """The product as one of matrices, vectors or stacks of matrices, with several axes made one."""
        free_a, free_b = (free_axes(x.rank, c, t) for x, c, t in zip((a, b), contract, batch))
        shape = result_shape(a.type, b.type, contract, batch)
        depth = len(batch[0])
        inner = product(a.shape[k] for k in contract[0])
        left, right = (product(x.shape[k] for k in free) for x, free in ((a, free_a), (b, free_b)))
        a = ops.transpose(a, axes=(*batch[0], *free_a, *contract[0]))
        b = ops.transpose(b, axes=(*batch[1], *contract[1], *free_b))
        if not depth:
            a = ops.reshape(a, shape=(left, inner) if free_a else (inner,))
            b = ops.reshape(b, shape=(inner, right) if free_b else (inner,))
            found = super().__call__(a, b, contract=((a.rank - 1,), (0,)), batch=((), ()))
            return ops.reshape(found, shape=shape)
        stack = product(shape[:depth])
        a, b = ops.reshape(a, shape=(stack, left, inner)), ops.reshape(b, shape=(stack, inner, right))
        return ops.reshape(super().__call__(a, b, contract=((2,), (1,)), batch=((0,), (0,))), shape=shape)

    def simplify(self, args: Sequence[Value], *, contract: Pairs, batch: Pairs, **params: Any) -> Value | None:
        """A product with unit vectors is a part of the other operand."""
        for k, units in enumerate(args):
            made = definition(units)
            if made is None or made.op is not ops.unit_vectors or contract[k] != (1,) or batch[0]:
                continue
            other, (axis,) = args[1 - k], contract[1 - k]
            whole = made.params["count"] == other.shape[axis]
            at = tuple(Span(0 if whole else None, made.params["count"]) if j == axis else Span(0, d)
                       for j, d in enumerate(other.shape))
            picked = ops.load(other, *(() if whole else made.args), index=at)
            rest = tuple(j for j in range(other.rank) if j != axis)
            return ops.transpose(picked, axes=(axis, *rest) if k == 0 else (*rest, axis))
        return None

    def infer(self, a: Type, b: Type, *, contract: Pairs, batch: Pairs) -> Type:
        if a.dtype != b.dtype:
            raise RuleError(f"dot_general of {a} and {b}", kind=TypeError, code="E309")
        for pairs in (contract, batch):
            if len(pairs[0]) != len(pairs[1]):
                raise RuleError(f"dot_general pairs the axes {pairs[0]} with {pairs[1]}", kind=ValueError, code="E208")
        for x, axes in ((a, (*contract[0], *batch[0])), (b, (*contract[1], *batch[1]))):
            if len(set(axes)) != len(axes) or any(not 0 <= k < x.rank for k in axes):
                raise RuleError(f"dot_general over the axes {axes} of {x}", code="E303")
        for i, j in zip((*contract[0], *batch[0]), (*contract[1], *batch[1])):
            m, n = a.shape[i], b.shape[j]
            if not same_size(m, n):
                raise not_aligned(a.shape, b.shape, i, j)
        return a.with_shape(result_shape(a, b, contract, batch))

    def mark(self, marks: Sequence[Value | None], args: Sequence[Value], result: Value, *,  # type: ignore[override]
             contract: Pairs, batch: Pairs, **params: Any) -> Any:
        """A row of one and a column of the other, whatever their elements are."""
        found: list[Value | None] = []
        depth = len(batch[0])
        for k, (mark, x) in enumerate(zip(marks, args, strict=True)):
            if mark is None:
                found.append(None)
                continue
            free = free_axes(x.rank, contract[k], batch[k])
            rest = ops.transpose(mark, axes=(*batch[k], *free, *contract[k]))
            rest = ops.union.along(rest, tuple(range(depth + len(free), x.rank)))
            first = depth if k == 0 else result.rank - len(free)
            found.append(ops.union.over(rest, result.shape, (*range(depth), *range(first, first + len(free)))))
        return ops.union.of(found)

    def reference(self, a: Any, b: Any, *, contract: Pairs, batch: Pairs) -> Any:
        free_a, free_b = free_axes(a.ndim, contract[0], batch[0]), free_axes(b.ndim, contract[1], batch[1])
        stack = [a.shape[k] for k in batch[0]]
        left, right = [a.shape[k] for k in free_a], [b.shape[k] for k in free_b]
        inner = int(np.prod([a.shape[k] for k in contract[0]]))
        one = np.transpose(a, (*batch[0], *free_a, *contract[0])).reshape((*stack, int(np.prod(left)), inner))
        other = np.transpose(b, (*batch[1], *contract[1], *free_b)).reshape((*stack, inner, int(np.prod(right))))
        return np.matmul(one, other).reshape((*stack, *left, *right))[()]

    def jvp(self, tangents: Sequence[Value | None], args: Sequence[Value], result: Value, *, contract: Pairs,
            batch: Pairs, **params: Any) -> Any:
        (t_a, t_b), (a, b) = tangents, args
        left = None if t_a is None else ops.dot_general(t_a, b, contract=contract, batch=batch)
        right = None if t_b is None else ops.dot_general(a, t_b, contract=contract, batch=batch)
        return right if left is None else left if right is None else left + right

    def vjp(self, ct: Value, args: Sequence[Value], result: Value, wanted: Sequence[bool], *, contract: Pairs,
            batch: Pairs, **params: Any) -> list[Any]:
        a, b = args
        depth = len(batch[0])
        shared = tuple(range(depth))
        free_a, free_b = free_axes(a.rank, contract[0], batch[0]), free_axes(b.rank, contract[1], batch[1])
        rows = tuple(range(depth, depth + len(free_a)))
        columns = tuple(range(depth + len(free_a), ct.rank))
        d_a = d_b = None
        if wanted[0]:                                       # axes: batch, free of a, contracted in the order of b
            d_a = ops.dot_general(ct, b, contract=(columns, free_b), batch=(shared, batch[1]))
            order = (*batch[0], *free_a, *(contract[0][contract[1].index(k)] for k in sorted(contract[1])))
            d_a = ops.transpose(d_a, axes=tuple(order.index(k) for k in range(a.rank)))
        if wanted[1]:                                       # axes: batch, contracted in the order of a, free of b
            d_b = ops.dot_general(a, ct, contract=(free_a, rows), batch=(batch[0], shared))
            order = (*batch[1], *(contract[1][contract[0].index(k)] for k in sorted(contract[0])), *free_b)
            d_b = ops.transpose(d_b, axes=tuple(order.index(k) for k in range(b.rank)))
        return [d_a, d_b]

    def batch(self, args: Sequence[Value], batched: Sequence[bool], *, contract: Pairs, batch: Pairs,
              **params: Any) -> Value:
        """Two batches are a batch axis; one batch is one more free axis: many vectors make a matrix."""
        a, b = args
        ca, cb = (tuple(k + 1 for k in axes) if b else axes for axes, b in zip(contract, batched))
        ta, tb = (tuple(k + 1 for k in axes) if b else axes for axes, b in zip(batch, batched))
        if all(batched):
            return ops.dot_general(a, b, contract=(ca, cb), batch=((0, *ta), (0, *tb)))
        depth = len(ta)
        if batched[1] and not depth and b.rank == len(cb) + 1:
            return ops.dot_general(b, a, contract=(cb, ca), batch=((), ()))
        found = ops.dot_general(a, b, contract=(ca, cb), batch=(ta, tb))
        at = depth if batched[0] else depth + a.rank - len(ca) - depth
        return ops.transpose(found, axes=(at, *(k for k in range(found.rank) if k != at)))

    def gains_from_batch(self, types: Sequence[Type], batched: Sequence[bool], *, contract: Pairs, batch: Pairs,
                         **params: Any) -> bool:
        """A matrix that all share is read once, for a product of matrices."""
        if all(batched) or not self._is_for_blas(types[0], types[1], contract, batch):
            return False
        shared = batched.index(False)
        return bool(free_axes(types[shared].rank, contract[shared], batch[shared]))

    def kernel(self, types: Sequence[Type], params: Mapping[str, Any]) -> str:
        a, b = types
        (ca,), (cb,) = params["contract"]
        if params["batch"][0]:
            return "batched_gemm({0}, {1}, {out})"
        left = "{0}" if a.rank == 1 or ca == 1 else "{0}.T"
        if a.rank == 1 and b.rank == 1:
            return "dot({0}, {1})"
        if b.rank == 1:
            return f"gemv({left}, {{1}}, {{out}})"
        if a.rank == 1:
            return "gemv({1}, {0}, {out})" if cb == 1 else "gemv({1}.T, {0}, {out})"
        right = "{1}" if cb == 0 else "{1}.T"
        return f"gemm({left}, {right}, {{out}})"

    def in_room(self, room: Any, args: Sequence[Value], types: Sequence[Type], *,  # type: ignore[override]
                contract: Pairs, batch: Pairs, **params: Any) -> Any:
        """Zeros beyond the lengths that are summed over, in the first; numbers there in the second."""
        found = [room.filled(v, t, axes, const(0, t.scalar)) for v, t, axes in zip(args, types, contract)]
        shapes = [list(v.shape) for v in found]
        for pairs in (contract, batch):
            for k, j in zip(*pairs):
                shapes[0][k] = shapes[1][j] = max(shapes[0][k], shapes[1][j])
        return [room.fitted(v, shape) for v, shape in zip(found, shapes)]

    def stablehlo(self, h: Any, a: Any, b: Any, *, contract: Pairs, batch: Pairs) -> Any:
        return h.dot_general(a, b, contract, batch)

    def samples(self) -> list[Sample]:
        none: Pairs = ((), ())
        over = lambda i, j: ((i,), (j,))
        return [
            sample(grid(5, 6), grid(6, 7, seed=1), contract=over(1, 0), batch=none),
            sample(grid(6, 5), grid(6, 7, seed=1), contract=over(0, 0), batch=none),
            sample(grid(5, 6), grid(7, 6, seed=1), contract=over(1, 1), batch=none),
            sample(grid(6, 5), grid(7, 6, seed=1), contract=over(0, 1), batch=none),
            sample(grid(13, 6), grid(6, seed=1), contract=over(1, 0), batch=none),
            sample(grid(6, 13), grid(6, seed=1), contract=over(0, 0), batch=none),
            sample(grid(6), grid(6, 13, seed=1), contract=over(0, 0), batch=none),
            sample(grid(6), grid(13, 6, seed=1), contract=over(0, 1), batch=none),
            sample(grid(5), grid(5, seed=1), contract=over(0, 0), batch=none),
            sample(grid(2, 3), grid(3, 2, seed=1), contract=over(1, 0), batch=none),
            sample(grid(3), grid(2, seed=1), contract=none, batch=none),
            sample(grid(2, 3, 4), grid(4, 3, 5, seed=1), contract=((1, 2), (1, 0)), batch=none),
            sample(grid(2, 3), grid(3, 2, seed=1), contract=((0, 1), (1, 0)), batch=none),
            sample(grid(4, 3, 5), grid(4, 5, 2, seed=1), contract=over(2, 1), batch=over(0, 0)),
            sample(grid(3, 4, 5), grid(5, 2, 4, 3, seed=1), contract=over(2, 0), batch=((0, 1), (3, 2))),
            sample(grid(4, 5), grid(4, 5, seed=1), contract=over(1, 1), batch=over(0, 0)),
            sample(grid(4, 5), grid(4, 5, 6, seed=1), contract=over(1, 1), batch=over(0, 0)),
            sample(grid(0, 3), grid(3, 2, seed=1), contract=over(1, 0), batch=none),
            sample(grid(2, 0), grid(0, 2, seed=1), contract=over(1, 0), batch=none),
            sample(grid(9, 3, dtype="float32"), grid(3, 4, dtype="float32", seed=1), contract=over(1, 0), batch=none),
            sample(np.arange(6).reshape(2, 3), np.arange(3), contract=over(1, 0), batch=none),
            sample(np.array([[True, False], [False, False]]), np.array([True, True]), contract=over(1, 0), batch=none),
        ]


def _as_sum(a: Value, b: Value, contract: Pairs, batch: Pairs) -> Value:
    """The product as a sum over the last axes of a * b, each copied along the other's free axes."""
    free_a, free_b = free_axes(a.rank, contract[0], batch[0]), free_axes(b.rank, contract[1], batch[1])
    outer = result_shape(a.type, b.type, contract, batch)
    shape = (*outer, *(_same(a.shape[i], b.shape[j]) for i, j in zip(*contract)))
    depth, inner = len(batch[0]), range(len(outer), len(shape))
    places_a = dict(zip((*batch[0], *free_a, *contract[0]), (*range(depth + len(free_a)), *inner)))
    places_b = dict(zip((*batch[1], *free_b, *contract[1]),
                        (*range(depth), *range(depth + len(free_a), len(outer)), *inner)))
    left = ops.broadcast(a, shape=shape, axes=tuple(places_a[k] for k in range(a.rank)))
    right = ops.broadcast(b, shape=shape, axes=tuple(places_b[k] for k in range(b.rank)))
    return ops.sum(left * right, axes=tuple(inner)) if inner else left * right
