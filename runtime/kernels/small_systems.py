"""Linear systems of a few equations by elimination in place, for the support functions of `lapack`.

LAPACK wants copies by columns, and its calls take many times the arithmetic of 2 or 4 equations, which filters and
implicit time steps have at every step.  As in its `getf2`, the pivot is the largest of its column, the first one of
those; and columns are completed one after the other by products that are added up without rounding in between, as
OpenBLAS has it: what is singular for NumPy is so here, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llvmlite import ir
from numba.core import cgutils

from gradsmith.kernels.strided import POINTER, SIZE, Matrix

if TYPE_CHECKING:
    from gradsmith.kernels.factorisations import Factoriser

ROWS, COLUMNS = 4, 16       # up to which it is quicker than LAPACK
BIT = ir.IntType(1)


@dataclass(frozen=True)
class Factors:
    """upper: the matrix whose upper triangle is the factor U.  is_odd: of the row swaps.  is_singular: a pivot is 0.
    The last two are places of bits."""

    upper: Matrix
    is_odd: ir.Value
    is_singular: ir.Value


def is_small(f: Factoriser, a: Matrix, b: Matrix | None = None) -> ir.Value:
    w = f.builder
    small = w.icmp_signed("<=", a.rows, SIZE(ROWS))
    return small if b is None else w.and_(small, w.icmp_signed("<=", b.columns, SIZE(COLUMNS)))


def eliminate(f: Factoriser, a: Matrix, b: Matrix | None = None) -> Factors:
    """Factor a copy of the small `a` on the stack, and do to the rows of `b` what is done to those of `a`."""
    w = f.builder
    with w.goto_entry_block():
        memory = w.bitcast(w.alloca(ir.ArrayType(f.real, ROWS * ROWS)), POINTER)
    n, item = a.rows, f.itemsize
    u = Matrix(memory, n, n, SIZE(ROWS * item), SIZE(item), item)
    f.copy(a, u)
    found = Factors(u, cgutils.alloca_once_value(w, BIT(0)), cgutils.alloca_once_value(w, BIT(0)))
    w.store(BIT(0), found.is_odd)
    w.store(BIT(0), found.is_singular)
    with cgutils.for_range(w, n) as column:
        k = column.index
        _complete_column(f, u, k)
        row = _pivot_row(f, u, k)
        with w.if_then(w.icmp_signed("!=", row, k)):
            _swap_rows(f, u, row, k)
            if b is not None:
                _swap_rows(f, b, row, k)
            w.store(w.not_(w.load(found.is_odd)), found.is_odd)
        pivot = f.load(u, k, k)
        is_zero = w.fcmp_ordered("==", pivot, f.constant(0.0))
        w.store(w.or_(w.load(found.is_singular), is_zero), found.is_singular)
        inverse = w.fdiv(f.constant(1.0), pivot)
        with w.if_then(w.not_(is_zero)), cgutils.for_range(w, n, w.add(k, SIZE(1))) as below:
            f.store(w.fmul(f.load(u, below.index, k), inverse), u, below.index, k)
    if b is not None:
        with cgutils.for_range(w, n, SIZE(1)) as below, cgutils.for_range(w, b.columns) as column:
            _subtract_product(f, u, b, below.index, column.index, below.index)
    return found


def substitute(f: Factoriser, u: Matrix, b: Matrix) -> None:
    """Overwrite `b` with the solution x of `u @ x = b`, where only the upper triangle of `u` is read."""
    w, n = f.builder, u.rows
    with cgutils.for_range(w, n) as loop, cgutils.for_range(w, b.columns) as column:
        k = w.sub(w.sub(n, SIZE(1)), loop.index)
        x = w.fdiv(f.load(b, k, column.index), f.load(u, k, k))
        f.store(x, b, k, column.index)
        with cgutils.for_range(w, k) as above:
            i = above.index
            f.store(w.fsub(f.load(b, i, column.index), w.fmul(f.load(u, i, k), x)), b, i, column.index)


def _pivot_row(f: Factoriser, u: Matrix, k: ir.Value) -> ir.Value:
    """The row from k on with the largest element of the column k; NaN counts as the largest."""
    w = f.builder
    fabs = w.module.declare_intrinsic("llvm.fabs", [f.real])
    best, row = cgutils.alloca_once(w, f.real), cgutils.alloca_once(w, SIZE)
    w.store(w.call(fabs, [f.load(u, k, k)]), best)
    w.store(k, row)
    with cgutils.for_range(w, u.rows, w.add(k, SIZE(1))) as below:
        size = w.call(fabs, [f.load(u, below.index, k)])
        with w.if_then(w.fcmp_unordered(">", size, w.load(best))):
            w.store(size, best)
            w.store(below.index, row)
    return w.load(row)


def _swap_rows(f: Factoriser, m: Matrix, one: ir.Value, other: ir.Value) -> None:
    with cgutils.for_range(f.builder, m.columns) as column:
        x, y = f.load(m, one, column.index), f.load(m, other, column.index)
        f.store(y, m, one, column.index)
        f.store(x, m, other, column.index)


def _complete_column(f: Factoriser, u: Matrix, k: ir.Value) -> None:
    """Do to the column k what was done to those before it."""
    w = f.builder
    with cgutils.for_range(w, u.rows, SIZE(1)) as below:
        i = below.index
        _subtract_product(f, u, u, i, k, w.select(w.icmp_signed("<", i, k), i, k))


def _subtract_product(f: Factoriser, u: Matrix, m: Matrix, row: ir.Value, column: ir.Value, count: ir.Value) -> None:
    """Subtract from an element of `m` the product of the first `count` elements of a row of `u` and of its column."""
    w = f.builder
    fma = w.module.declare_intrinsic("llvm.fma", [f.real], ir.FunctionType(f.real, [f.real] * 3))
    total = cgutils.alloca_once_value(w, f.constant(0.0))
    w.store(f.constant(0.0), total)
    with cgutils.for_range(w, count) as term:
        t = term.index
        w.store(w.call(fma, [f.load(u, row, t), f.load(m, t, column), w.load(total)]), total)
    f.store(w.fsub(f.load(m, row, column), w.load(total)), m, row, column)
