"""The support functions of `lapack.adjugate` and its derivative, written in LLVM's terms.

For a = U diag(s) V.T, adj(a) = det(U) det(V) V adj(diag(s)) U.T (Stewart, On the adjugate matrix, 1998), and likewise
for the derivative. No singular value is divided by, so matrices of every rank are right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir
from numba.core import cgutils

from gradsmith.kernels.factorisations import Factoriser
from gradsmith.kernels.strided import DOUBLE, INT, OK, SIZE, Emitter, Matrix


@dataclass(frozen=True)
class SingularValues:
    """a = u diag(values) vt, stored by columns; `is_odd` says whether det(u) det(vt) is -1, `failed` whether it is."""

    u: Matrix
    values: Matrix
    vt: Matrix
    is_odd: ir.Value
    failed: ir.Value


def emit_adjugate(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, out: Matrix) -> None:
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    f.leave_if_empty(a)
    for size in (1, 2, 3):
        with w.if_then(w.icmp_signed("==", a.rows, SIZE(size))):
            x = _elements(f, a, size)
            _store_transposed(f, [[_cofactor(f, x, i, j) for j in range(size)] for i in range(size)], out)
            w.ret(OK)
    n = a.rows
    found = _singular_values(f, a)
    product = f.new_product()
    with cgutils.for_range(w, n) as left_out:
        _start(f, product, found.is_odd)
        _multiply_others(f, product, found.values, left_out.index)
        scale = f.value_of(product)
        with cgutils.for_range(w, n) as row:
            f.store(w.fmul(f.load(found.u, row.index, left_out.index), scale), found.u, row.index, left_out.index)
    # By columns this is adj(a).T, so by rows it is adj(a).
    _matrix_product(f, found.u, "N", found.vt, "N", out)
    _spoil(f, out, found.failed)
    f.leave(OK)


def emit_adjugate_tangent(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, y: Matrix, out: Matrix) -> None:
    """The derivative of the adjugate of a diagonal matrix s in the direction z = U.T y V, turned back.

    Off the diagonal it is -z[i, j] times the values other than s[i] and s[j], on it the sum of z[j, j] times them.
    """
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    f.check_rows(a, y)
    f.check_rows(a, y.transposed)
    f.leave_if_empty(a)
    for size in (1, 2, 3):
        with w.if_then(w.icmp_signed("==", a.rows, SIZE(size))):
            x, t = _elements(f, a, size), _elements(f, y, size)
            _store_transposed(f, [[_cofactor_tangent(f, x, t, i, j) for j in range(size)] for i in range(size)], out)
            w.ret(OK)
    n = a.rows
    found = _singular_values(f, a)
    first, z, turned = f.copied(y), f.by_columns(n, n), f.by_columns(n, n)
    _matrix_product(f, found.u, "T", first, "N", turned)
    _matrix_product(f, turned, "N", found.vt, "T", z)
    product = f.new_product()
    with cgutils.for_range(w, n) as i:
        f.store(f.constant(0.0), first, i.index, i.index)
    with cgutils.for_range(w, n) as i, cgutils.for_range(w, n) as j:
        is_diagonal = w.icmp_signed("==", i.index, j.index)
        with w.if_then(w.not_(is_diagonal)):
            _start(f, product, found.is_odd)
            _multiply_others(f, product, found.values, i.index, j.index)
            others = f.value_of(product)
            f.store(w.fneg(w.fmul(f.load(z, i.index, j.index), others)), first, i.index, j.index)
            share = w.fmul(f.load(z, j.index, j.index), others)
            f.store(w.fadd(f.load(first, i.index, i.index), share), first, i.index, i.index)
    # adj' = V first U.T; by columns, its transpose.
    _matrix_product(f, found.u, "N", first, "T", turned)
    _matrix_product(f, turned, "N", found.vt, "N", out)
    _spoil(f, out, found.failed)
    f.leave(OK)


def _singular_values(f: Factoriser, a: Matrix) -> SingularValues:
    w, n = f.builder, a.rows
    scratch, u, vt = f.copied(a), f.by_columns(n, n), f.by_columns(n, n)
    s, integers = f.memory(n, f.itemsize), f.memory(w.mul(n, SIZE(8)), 4)
    (size,) = f.ints(n)
    answer, ask = f.place(f.constant(0.0)), f.place(INT(-1))
    operands = (f.character("A"), size, size, scratch.data, size, s, u.data, size, vt.data, size)
    f.info("gesdd", *operands, answer, ask, integers)
    count = w.fptosi(w.load(w.bitcast(answer, f.real.as_pointer())), SIZE)
    (length,) = f.ints(count)
    info = f.info("gesdd", *operands, f.memory(count, f.itemsize), length, integers)
    odd = cgutils.alloca_once_value(w, ir.IntType(1)(0))
    for orthogonal in (u, vt):
        f.copy(orthogonal, scratch)
        f.factor(scratch, integers)
        w.store(w.xor(w.load(odd), f.parity(integers, n)), odd)
        with cgutils.for_range(w, n) as loop:
            negative = w.fcmp_ordered("<", f.load(scratch, loop.index, loop.index), f.constant(0.0))
            w.store(w.xor(w.load(odd), negative), odd)
    values = Matrix(s, n, SIZE(1), SIZE(f.itemsize), SIZE(0), f.itemsize)
    return SingularValues(u, values, vt, w.load(odd), w.icmp_signed("!=", info, INT(0)))


def _start(f: Factoriser, product: tuple[ir.Value, ir.Value], is_odd: ir.Value) -> None:
    """Make `product` 1 or -1."""
    value, power = product
    f.builder.store(f.builder.select(is_odd, DOUBLE(-1.0), DOUBLE(1.0)), value)
    f.builder.store(SIZE(0), power)


def _multiply_others(f: Factoriser, product: tuple[ir.Value, ir.Value], values: Matrix, *left_out: ir.Value) -> None:
    """Multiply `product` by the values but those at `left_out`."""
    w = f.builder
    with cgutils.for_range(w, values.rows) as loop:
        factor = f.load(values, loop.index)
        for index in left_out:
            factor = w.select(w.icmp_signed("==", loop.index, index), f.constant(1.0), factor)
        f.multiply(product, factor)


def _matrix_product(f: Factoriser, a: Matrix, a_flag: str, b: Matrix, b_flag: str, out: Matrix) -> None:
    """The product of square matrices that are all stored by columns; a flag of "T" transposes."""
    (n,) = f.ints(a.rows)
    one, zero = (f.number(DOUBLE(number), f.prefix) for number in (1.0, 0.0))
    flags = f.character(a_flag), f.character(b_flag)
    f.call(f.prefix + "gemm", *flags, n, n, n, one, a.data, n, b.data, n, zero, out.data, n)


def _spoil(f: Factoriser, out: Matrix, failed: ir.Value) -> None:
    """Fill `out` with NaN if `failed`, which means that the matrix held NaN or infinity."""
    w = f.builder
    rows = w.select(failed, out.rows, SIZE(0))
    with cgutils.for_range(w, rows) as row, cgutils.for_range(w, out.columns) as column:
        f.store(f.constant(float("nan")), out, row.index, column.index)


# Up to 3 x 3 --------------------------------------------------------------------------------------------------------

Elements = Sequence[Sequence[ir.Value]]


def _elements(f: Factoriser, m: Matrix, n: int) -> Elements:
    return [[f.load(m, SIZE(i), SIZE(j)) for j in range(n)] for i in range(n)]


def _store_transposed(f: Factoriser, elements: Elements, out: Matrix) -> None:
    for i, row in enumerate(elements):
        for j, element in enumerate(row):
            f.store(element, out, SIZE(j), SIZE(i))


def _corners(i: int, j: int) -> tuple[int, int, int, int]:
    """Of the 3 x 3 minor of (i, j). With indices that go round, it has the right sign by itself."""
    return (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3


def _cofactor(f: Factoriser, x: Elements, i: int, j: int) -> ir.Value:
    w = f.builder
    if len(x) == 1:
        return f.constant(1.0)
    if len(x) == 2:
        return x[1 - i][1 - j] if i == j else w.fneg(x[1 - i][1 - j])
    p, q, r, s = _corners(i, j)
    return w.fsub(w.fmul(x[p][r], x[q][s]), w.fmul(x[p][s], x[q][r]))


def _cofactor_tangent(f: Factoriser, x: Elements, t: Elements, i: int, j: int) -> ir.Value:
    w = f.builder
    if len(x) == 1:
        return f.constant(0.0)
    if len(x) == 2:
        return _cofactor(f, t, i, j)
    p, q, r, s = _corners(i, j)
    main = w.fadd(w.fmul(t[p][r], x[q][s]), w.fmul(x[p][r], t[q][s]))
    other = w.fadd(w.fmul(t[p][s], x[q][r]), w.fmul(x[p][s], t[q][r]))
    return w.fsub(main, other)
