"""Matrix and vector products by direct BLAS calls, for code that Numba compiles.

Each function is ordinary Python that does its work with NumPy. In compiled code a call of it becomes a call of a small
function in LLVM's terms, one per routine and dtype, that looks at the strides, and calls BLAS: no type inference, no
array expressions, and therefore a few milliseconds of compile time where `np.dot` takes 300.

Arrays may have any layout. A transposed or sliced matrix goes to BLAS as it is, by its flag and leading dimension, when
rows or columns are dense; otherwise it is copied first. All operands have one dtype: float32, float64, complex64 or
complex128; another one is a `TypingError` when the caller is compiled. `out` must not overlap an operand. Sizes of zero
are right: a product over nothing is zero. Operands that do not fit together raise `ValueError`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import lower_builtin, type_callable

from gradsmith.kernels.contiguous import CONTIGUOUS, is_contiguous
from gradsmith.kernels.strided import (
    DOUBLE,
    MISMATCH,
    OK,
    POINTER,
    SINGLE,
    SIZE,
    Emitter,
    Matrix,
    raise_on_failure,
    support_function,
    takes_members,
)
from gradsmith.kernels.symbols import register

LETTERS = {types.float32: "s", types.float64: "d", types.complex64: "c", types.complex128: "z"}

register("cython_blas", [letter + routine for letter in "sdcz" for routine in ("gemm", "gemv")])
register("cython_blas", ["sger", "dger", "cgeru", "zgeru", "sdot", "ddot", "snrm2", "dnrm2", "scnrm2", "dznrm2"])


# What generated code calls ------------------------------------------------------------------------------------------


def gemm(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """`out[:] = a @ b` for `a` (m, k), `b` (k, n) and `out` (m, n)."""
    np.matmul(a, b, out=out)


def gemm_add(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """`out += a @ b` for `a` (m, k), `b` (k, n) and `out` (m, n)."""
    out += a @ b


def gemv(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """`out[:] = a @ x` for `a` (m, k), `x` (k,) and `out` (m,)."""
    np.matmul(a, x, out=out)


def gemv_add(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """`out += a @ x` for `a` (m, k), `x` (k,) and `out` (m,)."""
    out += a @ x


def ger_add(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """`out += np.outer(x, y)` for `x` (m,), `y` (n,) and `out` (m, n); nothing is conjugated."""
    out += x[:, None] * y


def dot(x: np.ndarray, y: np.ndarray) -> Any:
    """`np.dot(x, y)`, a scalar, for `x` (n,) and `y` (n,); nothing is conjugated."""
    return np.dot(x, y)


def nrm2(x: np.ndarray) -> Any:
    """The Euclidean norm of `x` (n,), real, without overflow or underflow on the way."""
    size = np.abs(x)
    top = size.max(initial=0)
    if top == 0 or not np.isfinite(top):
        return top
    scaled = size / top
    return top * np.sqrt(np.dot(scaled, scaled))


# The support functions ----------------------------------------------------------------------------------------------


def emit_gemm(e: Emitter, letter: str, start: ir.Value, a: Matrix, b: Matrix, out: Matrix) -> None:
    """`out = a @ b + start * out`. To BLAS, which knows columns only, dense rows are a transposed matrix."""
    w, equal = e.builder, lambda x, y: e.builder.icmp_signed("==", x, y)
    m, n, k = out.rows, out.columns, a.columns
    e.leave_if(w.not_(e.every(equal(a.rows, m), equal(b.rows, k), equal(b.columns, n))), MISMATCH)
    e.leave_if(w.or_(equal(m, SIZE(0)), equal(n, SIZE(0))), OK)
    left, right, result = e.dense(a), e.dense(b), e.dense(out)
    flip = result.by_column  # compute out = a @ b rather than out.T = b.T @ a.T
    pick = lambda flipped, usual: w.select(flip, flipped, usual)
    one = SIZE(1)
    at_least_one = lambda x: w.select(w.icmp_signed("<", x, one), one, x)  # where k is 0
    sizes = e.ints(
        pick(m, n), pick(n, m), k,
        at_least_one(pick(left.step, right.step)), at_least_one(pick(right.step, left.step)), result.step,
    )  # fmt: skip
    e.call(
        letter + "gemm",
        e.letter(w.xor(flip, pick(left.by_column, right.by_column)), "T", "N"),
        e.letter(w.xor(flip, pick(right.by_column, left.by_column)), "T", "N"),
        *sizes[:3],
        e.number(DOUBLE(1.0), letter),
        pick(left.data, right.data), sizes[3],
        pick(right.data, left.data), sizes[4],
        e.number(start, letter),
        result.data, sizes[5],
    )  # fmt: skip
    e.free(left, right)
    e.finish(out, result)
    w.ret(OK)


def _emit_gemv(e: Emitter, letter: str, start: ir.Value, a: Matrix, x: Matrix, out: Matrix) -> None:
    """`out = a @ x + start * out`."""
    w, equal = e.builder, lambda x, y: e.builder.icmp_signed("==", x, y)
    e.leave_if(w.not_(e.every(equal(a.rows, out.rows), equal(a.columns, x.rows))), MISMATCH)
    e.leave_if(equal(out.rows, SIZE(0)), OK)
    with w.if_then(equal(x.rows, SIZE(0))):
        with w.if_then(w.fcmp_ordered("==", start, DOUBLE(0.0))):
            e.clear(out)
        w.ret(OK)
    matrix, vector, result = e.dense(a), e.vector(x), e.vector(out)
    pick = lambda by_column, by_row: w.select(matrix.by_column, by_column, by_row)
    sizes = e.ints(pick(a.rows, a.columns), pick(a.columns, a.rows), matrix.step, vector.step, result.step)
    e.call(
        letter + "gemv",
        e.letter(w.not_(matrix.by_column), "T", "N"),
        *sizes[:2],
        e.number(DOUBLE(1.0), letter),
        matrix.data, sizes[2],
        vector.data, sizes[3],
        e.number(start, letter),
        result.data, sizes[4],
    )  # fmt: skip
    e.free(matrix, vector)
    e.finish(out, result)
    w.ret(OK)


def _emit_ger(e: Emitter, letter: str, _start: ir.Value, x: Matrix, y: Matrix, out: Matrix) -> None:
    """`out += outer(x, y)`, which to BLAS is `out.T += outer(y, x)` where rows are dense."""
    w, equal = e.builder, lambda x, y: e.builder.icmp_signed("==", x, y)
    e.leave_if(w.not_(e.every(equal(x.rows, out.rows), equal(y.rows, out.columns))), MISMATCH)
    e.leave_if(w.or_(equal(x.rows, SIZE(0)), equal(y.rows, SIZE(0))), OK)
    left, right, result = e.vector(x), e.vector(y), e.dense(out)
    pick = lambda by_column, by_row: w.select(result.by_column, by_column, by_row)
    sizes = e.ints(
        pick(x.rows, y.rows), pick(y.rows, x.rows),
        pick(left.step, right.step), pick(right.step, left.step), result.step,
    )  # fmt: skip
    e.call(
        letter + ("geru" if letter in "cz" else "ger"),
        *sizes[:2],
        e.number(DOUBLE(1.0), letter),
        pick(left.data, right.data), sizes[2],
        pick(right.data, left.data), sizes[3],
        result.data, sizes[4],
    )  # fmt: skip
    e.free(left, right)
    e.finish(out, result)
    w.ret(OK)


def _emit_dot(e: Emitter, letter: str, result: ir.Value, x: Matrix, y: Matrix) -> None:
    """`*result = dot(x, y)`; a complex one is four real ones, as compilers disagree on returning complex numbers."""
    w = e.builder
    e.leave_if(w.icmp_signed("!=", x.rows, y.rows), MISMATCH)
    e.leave_if(w.icmp_signed("==", x.rows, SIZE(0)), OK)
    left, right = e.vector(x), e.vector(y)
    real_letter, real = {"s": ("s", SINGLE), "c": ("s", SINGLE), "d": ("d", DOUBLE), "z": ("d", DOUBLE)}[letter]
    parts = SIZE(2 if letter in "cz" else 1)
    n, left_step, right_step = e.ints(x.rows, w.mul(left.step, parts), w.mul(right.step, parts))
    target = w.bitcast(result, real.as_pointer())

    def real_dot(left_part: int, right_part: int) -> ir.Value:
        size = x.itemsize // 2
        first, second = w.gep(left.data, [SIZE(left_part * size)]), w.gep(right.data, [SIZE(right_part * size)])
        return e.call(real_letter + "dot", n, first, left_step, second, right_step, returns=real)

    if letter in "sd":
        w.store(real_dot(0, 0), target)
    else:
        w.store(w.fsub(real_dot(0, 0), real_dot(1, 1)), target)
        w.store(w.fadd(real_dot(0, 1), real_dot(1, 0)), w.gep(target, [SIZE(1)]))
    e.free(left, right)
    w.ret(OK)


def _emit_nrm2(e: Emitter, letter: str, result: ir.Value, x: Matrix) -> None:
    """`*result = nrm2(x)`, a real number."""
    w = e.builder
    e.leave_if(w.icmp_signed("==", x.rows, SIZE(0)), OK)
    vector = e.vector(x)
    step = w.select(w.icmp_signed("<", vector.step, SIZE(0)), w.neg(vector.step), vector.step)
    n, step = e.ints(x.rows, step)
    routine, real = {"s": ("s", SINGLE), "c": ("sc", SINGLE), "d": ("d", DOUBLE), "z": ("dz", DOUBLE)}[letter]
    w.store(e.call(routine + "nrm2", n, vector.data, step, returns=real), w.bitcast(result, real.as_pointer()))
    e.free(vector)
    w.ret(OK)


# From a call in user code to a support function ----------------------------------------------------------------------


def check_arrays(name: str, arrays: tuple[Any, ...], dimensions: tuple[int, ...]) -> None:
    if not all(isinstance(array, types.Array) for array in arrays):
        raise TypingError(f"{name} takes arrays, not {', '.join(map(str, arrays))}")
    if tuple(array.ndim for array in arrays) != dimensions:
        raise TypingError(f"{name} takes arrays of {dimensions} dimensions, not {', '.join(map(str, arrays))}")
    if arrays[0].dtype not in LETTERS or any(array.dtype != arrays[0].dtype for array in arrays):
        raise TypingError(f"{name} takes arrays of one float or complex dtype, not {', '.join(map(str, arrays))}")


def _writes_into_last(
    function: Callable, support: str, emit: Callable, start: float, dimensions: tuple[int, ...]
) -> None:
    """Compile `function(x, y, out)`."""
    name = function.__name__

    @type_callable(function)
    def type_call(context: Any) -> Callable[..., Any]:
        def typer(x: Any, y: Any, out: Any) -> types.Type:
            check_arrays(name, (x, y, out), dimensions)
            if not out.mutable:
                raise TypingError(f"{name} writes into its last argument, which is read-only")
            return types.none

        return typer

    @lower_builtin(function, types.Array, types.Array, types.Array)
    @takes_members
    def lower(context: Any, builder: IRBuilder, sig: Any, args: Any) -> ir.Value:
        matrices = [Matrix.of_array(context, builder, *pair) for pair in zip(sig.args, args)]
        letter, itemsize = LETTERS[sig.args[0].dtype], matrices[0].itemsize
        if name in CONTIGUOUS and all(is_contiguous(kind) for kind in sig.args):
            status = CONTIGUOUS[name](context, builder, letter, start, list(zip(sig.args, matrices)))
        else:
            callee = support_function(context, builder, support, letter, DOUBLE, emit, [itemsize] * 3)
            status = builder.call(callee, [DOUBLE(start)] + [value for m in matrices for value in m.values])
        raise_on_failure(context, builder, status, name)
        return context.get_dummy_value()


def _returns_number(function: Callable, support: str, emit: Callable, count: int, result: Callable[[Any], Any]) -> None:
    """Compile `function(x)` or `function(x, y)`, whose result has the dtype `result(dtype of x)`."""
    name = function.__name__

    def check(*arrays: Any) -> types.Type:
        check_arrays(name, arrays, (1,) * count)
        return result(arrays[0].dtype)

    @type_callable(function)
    def type_call(context: Any) -> Callable[..., Any]:
        return (lambda x: check(x)) if count == 1 else (lambda x, y: check(x, y))

    @lower_builtin(function, *[types.Array] * count)
    @takes_members
    def lower(context: Any, builder: IRBuilder, sig: Any, args: Any) -> ir.Value:
        matrices = [Matrix.of_array(context, builder, *pair) for pair in zip(sig.args, args)]
        letter, itemsize = LETTERS[sig.args[0].dtype], matrices[0].itemsize
        value = cgutils.alloca_once_value(builder, context.get_constant_null(sig.return_type))
        callee = support_function(context, builder, support, letter, POINTER, emit, [itemsize] * count)
        place = builder.bitcast(value, POINTER)
        status = builder.call(callee, [place] + [value for m in matrices for value in m.values])
        raise_on_failure(context, builder, status, name)
        return builder.load(value)


_writes_into_last(gemm, "gemm", emit_gemm, 0.0, (2, 2, 2))
_writes_into_last(gemm_add, "gemm", emit_gemm, 1.0, (2, 2, 2))
_writes_into_last(gemv, "gemv", _emit_gemv, 0.0, (2, 1, 1))
_writes_into_last(gemv_add, "gemv", _emit_gemv, 1.0, (2, 1, 1))
_writes_into_last(ger_add, "ger", _emit_ger, 1.0, (1, 1, 2))
_returns_number(dot, "dot", _emit_dot, 2, lambda dtype: dtype)
_returns_number(nrm2, "nrm2", _emit_nrm2, 1, lambda dtype: getattr(dtype, "underlying_float", dtype))
