"""The support functions of `decompositions`, written in LLVM's terms.

LAPACK stores matrices by columns, so each function starts with a copy and ends with copies into the results. Where
LAPACK wants room to work in, it is asked how much is best, as NumPy does.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from gradsmith.kernels.factorisations import NOT_SQUARE, Factoriser
from gradsmith.kernels.strided import DOUBLE, INT, OK, SIZE, Emitter, Matrix

NO_SINGULAR_VALUES, NO_EIGENVALUES = INT(7), INT(8)
FAILURES = (
    (NOT_SQUARE, np.linalg.LinAlgError, "Last 2 dimensions of the array must be square"),
    (NO_SINGULAR_VALUES, np.linalg.LinAlgError, "SVD did not converge"),
    (NO_EIGENVALUES, np.linalg.LinAlgError, "Eigenvalues did not converge"),
)


def emit_svd(e: Emitter, letter: str, _unused: ir.Value, a: Matrix, u: Matrix, s: Matrix, vt: Matrix) -> None:
    f = Factoriser.over(e, letter)
    f.leave_if_empty(a)
    own_u, values, own_vt, info = _singular(f, a)
    f.copy(own_u, u)
    f.copy(values, s)
    f.copy(own_vt, vt)
    f.leave(f.failed(info, NO_SINGULAR_VALUES))


def emit_singular_values(e: Emitter, letter: str, _unused: ir.Value, a: Matrix, s: Matrix) -> None:
    f = Factoriser.over(e, letter)
    f.leave_if_empty(a)
    _, values, _, info = _singular(f, a, vectors=False)
    f.copy(values, s)
    f.leave(f.failed(info, NO_SINGULAR_VALUES))


def _singular(f: Factoriser, a: Matrix, vectors: bool = True) -> tuple[Matrix, Matrix, Matrix, ir.Value]:
    """u, the values and vt of gesdd, which overwrites a copy of `a`, and its info."""
    w = f.builder
    k = _smaller(f, a)
    scratch, values = f.copied(a), _vector(f, k)
    integers = f.memory(w.mul(k, SIZE(8)), 4)
    rows, columns, least, one = f.ints(a.rows, a.columns, k, SIZE(1))
    u, vt = (f.by_columns(a.rows, k), f.by_columns(k, a.columns)) if vectors else (scratch, scratch)
    head = (f.character("S" if vectors else "N"), rows, columns, scratch.data, rows, values.data, u.data,
            rows if vectors else one, vt.data, least if vectors else one)  # fmt: skip
    answer, ask = f.place(f.constant(0.0)), f.place(INT(-1))
    f.info("gesdd", *head, answer, ask, integers)
    work, length = _room(f, answer)
    return u, values, vt, f.info("gesdd", *head, work, length, integers)


def emit_eigh(e: Emitter, letter: str, lower: ir.Value, a: Matrix, values: Matrix, vectors: Matrix) -> None:
    f = Factoriser.over(e, letter)
    f.check_square(a)
    f.leave_if_empty(a)
    scratch, found, info = _eigen(f, a, "V", lower)
    f.copy(found, values)
    f.copy(scratch, vectors)
    f.leave(f.failed(info, NO_EIGENVALUES))


def emit_eigvalsh(e: Emitter, letter: str, lower: ir.Value, a: Matrix, values: Matrix) -> None:
    f = Factoriser.over(e, letter)
    f.check_square(a)
    f.leave_if_empty(a)
    _, found, info = _eigen(f, a, "N", lower)
    f.copy(found, values)
    f.leave(f.failed(info, NO_EIGENVALUES))


def _eigen(f: Factoriser, a: Matrix, job: str, lower: ir.Value) -> tuple[Matrix, Matrix, ir.Value]:
    """The vectors (if the job is "V") and the values of syevd, and its info."""
    w = f.builder
    scratch, values = f.copied(a), _vector(f, a.rows)
    (n,) = f.ints(a.rows)
    triangle = f.letter(w.fcmp_ordered("!=", lower, DOUBLE(0.0)), "L", "U")
    head = (f.character(job), triangle, n, scratch.data, n, values.data)
    answer, count, ask = f.place(f.constant(0.0)), f.place(INT(0)), f.place(INT(-1))
    f.info("syevd", *head, answer, ask, count, ask)
    work, length = _room(f, answer)
    integers = w.load(w.bitcast(count, INT.as_pointer()))
    return scratch, values, f.info("syevd", *head, work, length, f.memory(w.sext(integers, SIZE), 4), count)


def emit_qr(e: Emitter, letter: str, _unused: ir.Value, a: Matrix, q: Matrix, r: Matrix) -> None:
    f, w = Factoriser.over(e, letter), e.builder
    f.leave_if_empty(a)
    k = _smaller(f, a)
    scratch, factors = f.copied(a), _vector(f, k)
    rows, columns, least = f.ints(a.rows, a.columns, k)
    answer, ask = f.place(f.constant(0.0)), f.place(INT(-1))
    f.info("geqrf", rows, columns, scratch.data, rows, factors.data, answer, ask)
    f.info("geqrf", rows, columns, scratch.data, rows, factors.data, *_room(f, answer))
    with cgutils.for_range(w, k) as row, cgutils.for_range(w, a.columns) as column:
        below = w.icmp_signed(">", row.index, column.index)
        value = w.select(below, f.constant(0.0), f.load(scratch, row.index, column.index))
        f.store(value, r, row.index, column.index)
    head = (rows, least, least, scratch.data, rows, factors.data)
    f.info("orgqr", *head, answer, ask)
    f.info("orgqr", *head, *_room(f, answer))
    f.copy(Matrix(scratch.data, a.rows, k, scratch.row_stride, scratch.column_stride, a.itemsize), q)
    f.leave(OK)


def emit_pinv(e: Emitter, letter: str, cutoff: ir.Value, a: Matrix, out: Matrix) -> None:
    """V diag(1 / s) U.T: by rows in `out`, which to BLAS is U diag(1 / s) V.T by columns."""
    f, w = Factoriser.over(e, letter), e.builder
    f.leave_if_empty(a)
    u, values, vt, info = _singular(f, a)
    k = values.rows
    least = w.fmul(f.load(values, SIZE(0)), f.narrowed(cutoff))
    with cgutils.for_range(w, k) as column:
        value = f.load(values, column.index)
        is_large = w.fcmp_ordered(">", value, least)
        inverse = w.fdiv(f.constant(1.0), w.select(is_large, value, f.constant(1.0)))
        scale = w.select(is_large, inverse, f.constant(0.0))
        with cgutils.for_range(w, a.rows) as row:
            f.store(w.fmul(f.load(u, row.index, column.index), scale), u, row.index, column.index)
    m, n, inner = f.ints(a.rows, a.columns, k)
    one, zero = (f.number(DOUBLE(number), letter) for number in (1.0, 0.0))
    plain = f.character("N")
    product = f.by_columns(a.rows, a.columns)
    f.call(f.prefix + "gemm", plain, plain, m, n, inner, one, u.data, m, vt.data, inner, zero, product.data, m)
    f.copy(product.transposed, out)
    f.leave(f.failed(info, NO_SINGULAR_VALUES))


def _smaller(f: Factoriser, a: Matrix) -> ir.Value:
    return f.builder.select(f.builder.icmp_signed("<", a.rows, a.columns), a.rows, a.columns)


def _vector(f: Factoriser, count: ir.Value) -> Matrix:
    return Matrix(f.memory(count, f.itemsize), count, SIZE(1), SIZE(f.itemsize), SIZE(f.itemsize), f.itemsize)


def _room(f: Factoriser, answer: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Memory of the length that LAPACK answered, and a pointer to the length."""
    count = f.builder.fptosi(f.builder.load(f.builder.bitcast(answer, f.real.as_pointer())), SIZE)
    (length,) = f.ints(count)
    return f.memory(count, f.itemsize), length
