"""Products of arrays that are contiguous by their types: the calls of BLAS that need no look at strides.

What `blas.py` decides at run time is known here: which operand is transposed, its leading dimension, and that nothing
is copied.  The support functions are a fifth as long, which is a fifth of the time to compile them.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils, types

from gradsmith.kernels.strided import BYTE, DOUBLE, INT, MISMATCH, OK, POINTER, PREFIX, SIZE, Emitter, Matrix

Operand = tuple[types.Array, Matrix]


def is_contiguous(kind: Any) -> bool:
    return kind.layout in "CF"


def _by_column(kind: Any) -> bool:
    return kind.ndim == 2 and kind.layout == "F"


def _function(context: Any, builder: IRBuilder, name: str, letter: str, parameters: Sequence[ir.Type]) -> Any:
    """The support function, and an emitter where it has yet to be written."""
    signature = ir.FunctionType(INT, [DOUBLE, *parameters])
    function = cgutils.get_or_insert_function(builder.module, signature, f"{PREFIX}{name}_contiguous_{letter}")
    if not function.is_declaration:
        return function, None
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("optnone")
    return function, Emitter(context, IRBuilder(function.append_basic_block("entry")))


def _fit(builder: IRBuilder, *pairs: tuple[ir.Value, ir.Value]) -> ir.Value:
    """Whether the two sizes of each pair are one."""
    bits = [builder.icmp_signed("==", *pair) for pair in pairs]
    for bit in bits[1:]:
        bits[0] = builder.and_(bits[0], bit)
    return bits[0]


def _letter(is_transposed: bool) -> ir.Constant:
    return BYTE(ord("T" if is_transposed else "N"))


def gemm(context: Any, builder: IRBuilder, letter: str, start: float, operands: Sequence[Operand]) -> ir.Value:
    """The status of `out = a @ b + start * out`.  BLAS, which knows columns only, computes `out.T = b.T @ a.T` where
    `out` is by row."""
    (a_kind, a), (b_kind, b), (out_kind, out) = operands
    fits = _fit(builder, (a.rows, out.rows), (b.rows, a.columns), (b.columns, out.columns))
    first, second = (_by_column(a_kind), a), (_by_column(b_kind), b)
    m, n = out.rows, out.columns
    if not _by_column(out_kind):
        first, second, m, n = (not second[0], second[1]), (not first[0], first[1]), n, m
    steps = [matrix.rows if _by_column(kind) else matrix.columns for kind, matrix in operands]
    steps = [steps[0], steps[1]] if _by_column(out_kind) else [steps[1], steps[0]]
    callee, emitter = _function(context, builder, "gemm", letter, [ir.IntType(1), BYTE, BYTE, *[SIZE] * 5,
                                                                  *[POINTER] * 3])
    if emitter is not None:
        _write_gemm(emitter, letter, *callee.args)
    return builder.call(callee, [DOUBLE(start), fits, _letter(not first[0]), _letter(not second[0]), m, n, a.columns,
                                 *steps, first[1].data, second[1].data, out.data])


def _write_gemm(e: Emitter, letter: str, start: Any, fits: Any, first: Any, second: Any, m: Any, n: Any, k: Any,
                first_step: Any, second_step: Any, left: Any, right: Any, out: Any) -> None:
    w = e.builder
    e.leave_if(w.not_(fits), MISMATCH)
    e.leave_if(w.icmp_signed("==", w.mul(m, n), SIZE(0)), OK)
    one = SIZE(1)
    first_step, second_step = (w.select(w.icmp_signed("<", x, one), one, x) for x in (first_step, second_step))
    m, n, k, first_step, second_step, step = e.ints(m, n, k, first_step, second_step, m)
    e.call(letter + "gemm", e.place(first), e.place(second), m, n, k, e.number(DOUBLE(1.0), letter), left, first_step,
           right, second_step, e.number(start, letter), out, step)
    w.ret(OK)


def gemv(context: Any, builder: IRBuilder, letter: str, start: float, operands: Sequence[Operand]) -> ir.Value:
    """The status of `out = a @ x + start * out`."""
    (a_kind, a), (_, x), (_, out) = operands
    fits = _fit(builder, (a.rows, out.rows), (a.columns, x.rows))
    by_column = _by_column(a_kind)
    m, n = (a.rows, a.columns) if by_column else (a.columns, a.rows)
    callee, emitter = _function(context, builder, "gemv", letter, [ir.IntType(1), BYTE, *[SIZE] * 4, *[POINTER] * 3])
    if emitter is not None:
        _write_gemv(emitter, letter, *callee.args)
    return builder.call(callee, [DOUBLE(start), fits, _letter(not by_column), m, n, a.columns, out.rows, a.data, x.data,
                                 out.data])


def _write_gemv(e: Emitter, letter: str, start: Any, fits: Any, flag: Any, m: Any, n: Any, k: Any, rows: Any, left: Any,
                right: Any, out: Any) -> None:
    w = e.builder
    itemsize = {"s": 4, "d": 8, "c": 8, "z": 16}[letter]
    e.leave_if(w.not_(fits), MISMATCH)
    e.leave_if(w.icmp_signed("==", rows, SIZE(0)), OK)
    with w.if_then(w.icmp_signed("==", k, SIZE(0))):
        with w.if_then(w.fcmp_ordered("==", start, DOUBLE(0.0))):
            e.clear(Matrix(out, rows, SIZE(1), SIZE(itemsize), SIZE(itemsize), itemsize))
        w.ret(OK)
    m, n, one = e.ints(m, n, SIZE(1))
    e.call(letter + "gemv", e.place(flag), m, n, e.number(DOUBLE(1.0), letter), left, m, right, one,
           e.number(start, letter), out, one)
    w.ret(OK)


CONTIGUOUS = {"gemm": gemm, "gemm_add": gemm, "gemv": gemv, "gemv_add": gemv}
