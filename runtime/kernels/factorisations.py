"""The support functions of `lapack`, written in LLVM's terms.

LAPACK stores matrices by columns and overwrites them, so each function starts with copies. Copies are freed at its
single exit. `info`, which every routine returns through its last argument, becomes the status.
"""

from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils

from gradsmith.kernels.small_systems import eliminate, is_small, substitute
from gradsmith.kernels.strided import (
    BYTE,
    DOUBLE,
    INT,
    MISMATCH,
    NO_MEMORY,
    OK,
    POINTER,
    SINGLE,
    SIZE,
    Dense,
    Emitter,
    Matrix,
)

NOT_SQUARE, SINGULAR, NOT_POSITIVE = INT(4), INT(5), INT(6)
FACTOR_FLAGS = {"lower": 1, "trans": 2, "unit_diagonal": 4}


class Factoriser(Emitter):
    """An `Emitter` for square matrices of real numbers, with temporary memory."""

    def __init__(self, context: Any, builder: IRBuilder, letter: str) -> None:
        super().__init__(context, builder)
        self.prefix = letter
        self.real = SINGLE if letter == "s" else DOUBLE
        self.itemsize = 4 if letter == "s" else 8
        self.temporary: list[ir.Value] = []

    @classmethod
    def over(cls, e: Emitter, letter: str) -> "Factoriser":
        return cls(e.context, e.builder, letter)

    # Sizes and memory

    def check_square(self, a: Matrix) -> None:
        self.leave_if(self.builder.icmp_signed("!=", a.rows, a.columns), NOT_SQUARE)

    def check_rows(self, a: Matrix, b: Matrix) -> None:
        self.leave_if(self.builder.icmp_signed("!=", a.rows, b.rows), MISMATCH)

    def leave_if_empty(self, m: Matrix) -> None:
        b = self.builder
        self.leave_if(b.icmp_signed("==", b.mul(m.rows, m.columns), SIZE(0)), OK)

    def memory(self, count: ir.Value, itemsize: int) -> ir.Value:
        """Room for `count` items until `leave`."""
        b = self.builder
        memory = self.context.nrt.allocate_unchecked(b, b.mul(count, SIZE(itemsize)))
        self.leave_if(cgutils.is_null(b, memory), NO_MEMORY)
        self.temporary.append(memory)
        return memory

    def by_columns(self, rows: ir.Value, columns: ir.Value) -> Matrix:
        """A new matrix with dense columns."""
        b, item = self.builder, SIZE(self.itemsize)
        memory = self.memory(b.mul(rows, columns), self.itemsize)
        return Matrix(memory, rows, columns, item, b.mul(rows, item), self.itemsize)

    def copied(self, m: Matrix) -> Matrix:
        copy = self.by_columns(m.rows, m.columns)
        self.copy(m, copy)
        return copy

    def leave(self, status: ir.Value) -> None:
        for memory in self.temporary:
            self.context.nrt.free(self.builder, memory)
        self.builder.ret(status)

    # Elements

    def at(self, m: Matrix, i: ir.Value, j: ir.Value | None = None) -> ir.Value:
        """A pointer to `m[i, j]`."""
        b = self.builder
        offset = b.mul(i, m.row_stride)
        if j is not None:
            offset = b.add(offset, b.mul(j, m.column_stride))
        return b.bitcast(b.gep(m.data, [offset]), self.real.as_pointer())

    def load(self, m: Matrix, i: ir.Value, j: ir.Value | None = None) -> ir.Value:
        return self.builder.load(self.at(m, i, j), align=1)

    def store(self, value: ir.Value, m: Matrix, i: ir.Value, j: ir.Value | None = None) -> None:
        self.builder.store(value, self.at(m, i, j), align=1)

    def constant(self, number: float) -> ir.Constant:
        return self.real(number)

    def character(self, letter: str) -> ir.Value:
        return self.place(BYTE(ord(letter)))

    # Routines

    def info(self, routine: str, *pointers: ir.Value) -> ir.Value:
        """Call `routine` and return what it left in `info`."""
        place = self.place(INT(0))
        self.call(self.prefix + routine, *pointers, place)
        return self.builder.load(self.builder.bitcast(place, INT.as_pointer()))

    def factor(self, m: Matrix, pivots: ir.Value) -> ir.Value:
        """Overwrite `m`, which is stored by columns, with its LU factors. Not 0: it is singular."""
        (n,) = self.ints(m.rows)
        return self.info("getrf", n, n, m.data, n, pivots)

    def failed(self, info: ir.Value, status: ir.Value) -> ir.Value:
        """`status` if `info` is not 0."""
        return self.builder.select(self.builder.icmp_signed("!=", info, INT(0)), status, OK)

    def parity(self, pivots: ir.Value, n: ir.Value) -> ir.Value:
        """Whether the number of row swaps, which LAPACK counts from 1, is odd."""
        b = self.builder
        odd = cgutils.alloca_once_value(b, ir.IntType(1)(0))
        pivots = b.bitcast(pivots, INT.as_pointer())
        with cgutils.for_range(b, n) as loop:
            own = b.trunc(b.add(loop.index, SIZE(1)), INT)
            swapped = b.icmp_signed("!=", b.load(b.gep(pivots, [loop.index])), own)
            b.store(b.xor(b.load(odd), swapped), odd)
        return b.load(odd)

    # Products that do not overflow on the way

    def new_product(self, start: float = 1.0) -> tuple[ir.Value, ir.Value]:
        """A product in two parts on the stack: a double and the power of 2**500 that goes with it."""
        return cgutils.alloca_once_value(self.builder, DOUBLE(start)), cgutils.alloca_once_value(self.builder, SIZE(0))

    def multiply(self, product: tuple[ir.Value, ir.Value], factor: ir.Value) -> None:
        b, (value, power) = self.builder, product
        factor, shift = self._bounded(self.widened(factor))
        total, again = self._bounded(b.fmul(b.load(value), factor))
        b.store(total, value)
        b.store(b.add(b.load(power), b.add(shift, again)), power)

    def _bounded(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """x times a power of 2**500 so that it lies between 2**-574 and 2**524, and the power taken out."""
        b = self.builder
        size = b.call(b.module.declare_intrinsic("llvm.fabs", [DOUBLE]), [x])
        large = b.fcmp_ordered(">", size, DOUBLE(2.0**500))
        small = b.fcmp_ordered("<", size, DOUBLE(2.0**-500))
        scale = b.select(large, DOUBLE(2.0**-500), b.select(small, DOUBLE(2.0**500), DOUBLE(1.0)))
        return b.fmul(x, scale), b.select(large, SIZE(1), b.select(small, SIZE(-1), SIZE(0)))

    def value_of(self, product: tuple[ir.Value, ir.Value]) -> ir.Value:
        """The product as a number of the matrix's dtype. Three factors of 2**500 are as good as any more."""
        b = self.builder
        value, power = (b.load(part) for part in product)
        for _ in range(3):
            up, down = b.icmp_signed(">", power, SIZE(0)), b.icmp_signed("<", power, SIZE(0))
            value = b.fmul(value, b.select(up, DOUBLE(2.0**500), b.select(down, DOUBLE(2.0**-500), DOUBLE(1.0))))
            power = b.sub(power, b.select(up, SIZE(1), b.select(down, SIZE(-1), SIZE(0))))
        return self.narrowed(value)

    def widened(self, x: ir.Value) -> ir.Value:
        return x if self.real == DOUBLE else self.builder.fpext(x, DOUBLE)

    def narrowed(self, x: ir.Value) -> ir.Value:
        return x if self.real == DOUBLE else self.builder.fptrunc(x, self.real)


def emit_solve(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, b: Matrix, out: Matrix) -> None:
    f = Factoriser.over(e, letter)
    f.check_square(a)
    f.check_rows(a, b)
    f.leave_if_empty(b)
    with f.builder.if_then(is_small(f, a, b)):
        f.copy(b, out)
        _solve_small(f, a, out)
    f.leave(_solve(f, f.copied(a), f.copied(b), out))


def _solve_small(f: Factoriser, a: Matrix, b: Matrix) -> None:
    """Overwrite `b` with the solution, and leave."""
    factors = eliminate(f, a, b)
    f.leave_if(f.builder.load(factors.is_singular), SINGULAR)
    substitute(f, factors.upper, b)
    f.builder.ret(OK)


def _solve(f: Factoriser, a: Matrix, b: Matrix, out: Matrix) -> ir.Value:
    """Solve by overwriting `a` and `b`; the status."""
    n, k = f.ints(a.rows, b.columns)
    info = f.info("gesv", n, k, a.data, n, f.memory(a.rows, 4), b.data, n)
    f.copy(b, out)
    return f.failed(info, SINGULAR)


def emit_inv(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, out: Matrix) -> None:
    """The solution of `a @ x = identity`, as in NumPy."""
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    f.leave_if_empty(a)
    with w.if_then(is_small(f, a)):
        _make_identity(f, out)
        _solve_small(f, a, out)
    identity = f.by_columns(a.rows, a.columns)
    _make_identity(f, identity)
    f.leave(_solve(f, f.copied(a), identity, out))


def _make_identity(f: Factoriser, m: Matrix) -> None:
    """m: dense."""
    w = f.builder
    cgutils.memset(w, m.data, w.mul(w.mul(m.rows, m.columns), SIZE(m.itemsize)), 0)
    with cgutils.for_range(w, m.rows) as loop:
        f.store(f.constant(1.0), m, loop.index, loop.index)


def emit_det(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, out: Matrix) -> None:
    """The product of the pivots, with a sign from the swaps. A singular matrix has a pivot of exactly 0."""
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    product = f.new_product()
    with w.if_then(w.icmp_signed("==", a.rows, SIZE(0))):
        f.store(f.constant(1.0), out, SIZE(0))
        w.ret(OK)
    with w.if_then(is_small(f, a)):
        factors = eliminate(f, a)
        _multiply_pivots(f, product, factors.upper, w.load(factors.is_odd))
        f.store(f.value_of(product), out, SIZE(0))
        w.ret(OK)
    lu, pivots = f.copied(a), f.memory(a.rows, 4)
    f.factor(lu, pivots)
    _multiply_pivots(f, product, lu, f.parity(pivots, a.rows))
    f.store(f.value_of(product), out, SIZE(0))
    f.leave(OK)


def _multiply_pivots(f: Factoriser, product: tuple[ir.Value, ir.Value], lu: Matrix, is_odd: ir.Value) -> None:
    f.multiply(product, f.builder.select(is_odd, f.constant(-1.0), f.constant(1.0)))
    with cgutils.for_range(f.builder, lu.rows) as loop:
        f.multiply(product, f.load(lu, loop.index, loop.index))


def emit_slogdet(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, sign: Matrix, log_size: Matrix) -> None:
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    with w.if_then(w.icmp_signed("==", a.rows, SIZE(0))):
        f.store(f.constant(1.0), sign, SIZE(0))
        f.store(f.constant(0.0), log_size, SIZE(0))
        w.ret(OK)
    with w.if_then(is_small(f, a)):
        factors = eliminate(f, a)
        _add_pivots(f, factors.upper, w.load(factors.is_odd), sign, log_size)
        w.ret(OK)
    lu, pivots = f.copied(a), f.memory(a.rows, 4)
    f.factor(lu, pivots)
    _add_pivots(f, lu, f.parity(pivots, a.rows), sign, log_size)
    f.leave(OK)


def _add_pivots(f: Factoriser, lu: Matrix, odd: ir.Value, sign: Matrix, log_size: Matrix) -> None:
    """Sign and logarithm of the product of the pivots, or of its negative."""
    w, zero, one = f.builder, f.constant(0.0), f.constant(1.0)
    f.store(w.select(odd, f.constant(-1.0), one), sign, SIZE(0))
    total = cgutils.alloca_once_value(w, DOUBLE(0.0))
    w.store(DOUBLE(0.0), total)
    with cgutils.for_range(w, lu.rows) as loop:
        pivot = f.load(lu, loop.index, loop.index)
        negative, positive = w.fcmp_ordered("<", pivot, zero), w.fcmp_ordered(">", pivot, zero)
        own = w.select(negative, f.constant(-1.0), w.select(positive, one, pivot))  # 0 stays 0, NaN stays NaN
        f.store(w.fmul(f.load(sign, SIZE(0)), own), sign, SIZE(0))
        size = w.call(w.module.declare_intrinsic("llvm.fabs", [DOUBLE]), [f.widened(pivot)])
        logarithm = w.call(w.module.declare_intrinsic("llvm.log", [DOUBLE]), [size])
        w.store(w.fadd(w.load(total), logarithm), total)
    f.store(f.narrowed(w.load(total)), log_size, SIZE(0))
    # A matrix with two pivots of 0 must not come out with a sign of -0.
    f.store(w.fadd(f.load(sign, SIZE(0)), zero), sign, SIZE(0))


def emit_cholesky(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, out: Matrix) -> None:
    """The lower triangle of `out` by rows is to LAPACK the upper one by columns."""
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    f.leave_if_empty(a)
    f.copy(a, out)
    (n,) = f.ints(a.rows)
    info = f.info("potrf", f.character("U"), n, out.data, n)
    with cgutils.for_range(w, a.rows) as row:
        first = w.add(row.index, SIZE(1))
        count = w.sub(a.rows, first)
        start = w.bitcast(f.at(out, row.index, first), POINTER)
        cgutils.memset(w, start, w.mul(count, SIZE(a.itemsize)), 0)
    f.leave(f.failed(info, NOT_POSITIVE))


def emit_lu_factor(e: Emitter, letter: str, _flags: ir.Value, a: Matrix, lu: Matrix, pivots: Matrix) -> None:
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    f.leave_if_empty(a)
    f.copy(a, lu)
    f.factor(lu, pivots.data)
    _add_to_pivots(f, pivots, pivots.data, -1)
    w.ret(OK)


def _add_to_pivots(f: Factoriser, source: Matrix, target: ir.Value, number: int) -> None:
    """LAPACK counts from 1, Python from 0."""
    w = f.builder
    target = w.bitcast(target, INT.as_pointer())
    with cgutils.for_range(w, source.rows) as loop:
        place = w.bitcast(w.gep(source.data, [w.mul(loop.index, source.row_stride)]), INT.as_pointer())
        w.store(w.add(w.load(place), INT(number)), w.gep(target, [loop.index]))


def emit_lu_solve(e: Emitter, letter: str, flags: ir.Value, lu: Matrix, pivots: Matrix, b: Matrix, out: Matrix) -> None:
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(lu)
    f.check_rows(lu, b)
    f.check_rows(lu, pivots)
    f.leave_if_empty(b)
    from_one = f.memory(lu.rows, 4)
    _add_to_pivots(f, pivots, from_one, 1)
    item = SIZE(lu.itemsize)
    by_column = f.fits(lu.row_stride, lu.column_stride, w.mul(lu.rows, item), lu.itemsize)
    factors, copy = f.copied_if(w.not_(by_column), lu.transposed)
    step = w.select(by_column, w.sdiv(lu.column_stride, item), lu.rows)
    x = f.copied(b)
    n, k, step = f.ints(lu.rows, b.columns, step)
    f.info("getrs", f.letter(_flag(f, flags, "trans"), "T", "N"), n, k, factors, step, from_one, x.data, n)
    f.copy(x, out)
    f.free_copy(copy)
    f.leave(OK)


def _flag(f: Factoriser, flags: ir.Value, name: str) -> ir.Value:
    return f.builder.icmp_signed("!=", f.builder.and_(flags, INT(FACTOR_FLAGS[name])), INT(0))


def emit_solve_triangular(e: Emitter, letter: str, flags: ir.Value, a: Matrix, b: Matrix, out: Matrix) -> None:
    """`op(a) @ x = b` by rows is `x.T @ op(a).T = b.T` by columns, so that `b` need not be transposed."""
    f, w = Factoriser.over(e, letter), e.builder
    f.check_square(a)
    f.check_rows(a, b)
    f.leave_if_empty(b)
    lower, trans, unit = (_flag(f, flags, name) for name in ("lower", "trans", "unit_diagonal"))
    singular = cgutils.alloca_once_value(w, ir.IntType(1)(0))
    with cgutils.for_range(w, a.rows) as loop:
        zero = w.fcmp_ordered("==", f.load(a, loop.index, loop.index), f.constant(0.0))
        w.store(w.or_(w.load(singular), zero), singular)
    f.leave_if(w.and_(w.load(singular), w.not_(unit)), SINGULAR)
    matrix: Dense = f.dense(a)
    f.copy(b, out)
    n, k, step = f.ints(a.rows, b.columns, matrix.step)
    f.call(
        f.prefix + "trsm",
        f.character("R"),
        f.letter(w.xor(lower, w.not_(matrix.by_column)), "L", "U"),
        f.letter(w.xor(trans, matrix.by_column), "T", "N"),
        f.letter(unit, "U", "N"),
        k, n,
        f.number(DOUBLE(1.0), letter),
        matrix.data, step,
        out.data, k,
    )  # fmt: skip
    f.free(matrix)
    f.leave(OK)
