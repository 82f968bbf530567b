"""Strided NumPy arrays as BLAS wants them, written in LLVM's terms: the workshop of `blas.py`.

A product is compiled as one support function per routine and dtype. It gets pointers, sizes and strides, checks that
they agree, finds the flag and leading dimension that describe each operand (or copies the operand when none does),
calls BLAS and returns a status. `Emitter` writes the parts that such functions have in common.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils, types
from numba.np.numpy_support import as_dtype

from gradsmith.kernels.symbols import PREFIX

BYTE, INT, SIZE = ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = BYTE.as_pointer()
SINGLE, DOUBLE = ir.FloatType(), ir.DoubleType()

OK, TOO_LARGE, NO_MEMORY, MISMATCH = (INT(status) for status in range(4))


@dataclass(frozen=True)
class Matrix:
    """A strided matrix in LLVM values; strides are in bytes. A vector is a matrix of one column."""

    data: ir.Value
    rows: ir.Value
    columns: ir.Value
    row_stride: ir.Value
    column_stride: ir.Value
    itemsize: int

    @property
    def values(self) -> list[ir.Value]:
        return [self.data, self.rows, self.columns, self.row_stride, self.column_stride]

    @property
    def transposed(self) -> "Matrix":
        return Matrix(self.data, self.columns, self.rows, self.column_stride, self.row_stride, self.itemsize)

    @classmethod
    def of_values(cls, values: Sequence[ir.Value], itemsize: int) -> "Matrix":
        data, rows, columns, row_stride, column_stride = values
        return cls(data, rows, columns, row_stride, column_stride, itemsize)

    @classmethod
    def of_array(cls, context: Any, builder: IRBuilder, type_: types.Array, value: ir.Value) -> "Matrix":
        data, shape, strides = members_of(builder, type_, value)
        itemsize = as_dtype(type_.dtype).itemsize      # Numba would ask LLVM, which takes a millisecond
        columns, column_stride = (shape[1], strides[1]) if type_.ndim == 2 else (SIZE(1), SIZE(itemsize))
        return cls(builder.bitcast(data, POINTER), shape[0], columns, strides[0], column_stride, itemsize)


def takes_members(lower: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the code for a call: in the place of an array it also takes an object that has its `data`, `shape` and
    `strides`, LLVM values, which spares putting a structure together and taking it apart."""
    lower.takes_members = True  # type: ignore[attr-defined]
    return lower


def members_of(builder: IRBuilder, type_: types.Array, value: Any) -> tuple[ir.Value, list[ir.Value], list[ir.Value]]:
    """Data, shape and strides of an array: Numba's structure, or an object that has them."""
    if not isinstance(value, ir.Value):
        return value.data, list(value.shape), list(value.strides)
    shape, strides = ([builder.extract_value(value, (member, axis)) for axis in range(type_.ndim)] for member in (5, 6))
    return builder.extract_value(value, 4), shape, strides


@dataclass(frozen=True)
class Dense:
    """A matrix with dense rows (`by_column` is 0) or dense columns (1), `step` elements from one to the next."""

    data: ir.Value
    by_column: ir.Value
    step: ir.Value
    copy: ir.Value  # the memory to free afterwards, or null


@dataclass(frozen=True)
class Vector:
    """A vector with a valid increment: `data` is its lowest address, as BLAS wants it for negative increments."""

    data: ir.Value
    step: ir.Value
    copy: ir.Value


class Emitter:
    """Writes the body of one support function: `int32 status(...)`, with what the products have in common."""

    def __init__(self, context: Any, builder: IRBuilder) -> None:
        self.context, self.builder = context, builder

    def every(self, *conditions: ir.Value) -> ir.Value:
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.builder.and_(result, condition)
        return result

    def leave_if(self, condition: ir.Value, status: ir.Value) -> None:
        with self.builder.if_then(condition):
            self.builder.ret(status)

    def multiple(self, stride: ir.Value, itemsize: int) -> ir.Value:
        return self.builder.icmp_signed("==", self.builder.and_(stride, SIZE(itemsize - 1)), SIZE(0))

    def fits(self, inner: ir.Value, outer: ir.Value, length: ir.Value, itemsize: int) -> ir.Value:
        """Whether `inner` and `outer` are the strides of dense lines of `length` bytes."""
        b = self.builder
        return self.every(
            b.icmp_signed("==", inner, SIZE(itemsize)),
            b.icmp_signed(">=", outer, length),
            self.multiple(outer, itemsize),
        )

    def dense(self, m: Matrix) -> Dense:
        """`m` itself where its rows or columns are dense, a copy with dense rows where not."""
        b, item = self.builder, SIZE(m.itemsize)
        one_row, one_column = (b.icmp_signed("==", count, SIZE(1)) for count in (m.rows, m.columns))
        row_bytes, column_bytes = b.mul(m.columns, item), b.mul(m.rows, item)

        # The stride along an axis of one element means nothing; take the one that fits.
        row_step = b.select(one_row, row_bytes, m.row_stride)
        column_step = b.select(one_column, column_bytes, m.column_stride)
        by_row = self.fits(b.select(one_column, item, m.column_stride), row_step, row_bytes, m.itemsize)
        fits = self.fits(b.select(one_row, item, m.row_stride), column_step, column_bytes, m.itemsize)
        by_column = b.and_(b.not_(by_row), fits)
        neither = b.not_(b.or_(by_row, by_column))
        data, copy = self.copied_if(neither, m)
        step = b.select(by_column, column_step, b.select(by_row, row_step, row_bytes))
        return Dense(data, by_column, b.sdiv(step, item), copy)

    def vector(self, v: Matrix) -> Vector:
        """`v` itself where its stride is a valid increment, a dense copy where not."""
        b, item = self.builder, SIZE(v.itemsize)
        stride = b.select(b.icmp_signed("<=", v.rows, SIZE(1)), item, v.row_stride)
        valid = self.every(b.icmp_signed("!=", stride, SIZE(0)), self.multiple(stride, v.itemsize))
        data, copy = self.copied_if(b.not_(valid), v)
        stride = b.select(valid, stride, item)
        back = b.mul(b.sub(v.rows, SIZE(1)), stride)
        lowest = b.gep(data, [b.select(b.icmp_signed("<", stride, SIZE(0)), back, SIZE(0))])
        return Vector(lowest, b.sdiv(stride, item), copy)

    def copied_if(self, condition: ir.Value, m: Matrix) -> tuple[ir.Value, ir.Value]:
        """The data to use, and the memory to free."""
        b = self.builder
        before = b.block
        with b.if_then(condition):
            memory = self.context.nrt.allocate_unchecked(b, b.mul(b.mul(m.rows, m.columns), SIZE(m.itemsize)))
            self.leave_if(cgutils.is_null(b, memory), NO_MEMORY)
            self.copy(m, self.packed(memory, m))
            after = b.block
        data, copy = b.phi(POINTER), b.phi(POINTER)
        data.add_incoming(m.data, before)
        copy.add_incoming(POINTER(None), before)
        data.add_incoming(memory, after)
        copy.add_incoming(memory, after)
        return data, copy

    def packed(self, memory: ir.Value, m: Matrix) -> Matrix:
        item = SIZE(m.itemsize)
        return replace(m, data=memory, row_stride=self.builder.mul(m.columns, item), column_stride=item)

    def copy(self, source: Matrix, target: Matrix) -> None:
        """Copy elements as bits, row by row."""
        b, bits = self.builder, ir.IntType(8 * source.itemsize).as_pointer()

        def element(m: Matrix, i: ir.Value, j: ir.Value) -> ir.Value:
            offset = b.add(b.mul(i, m.row_stride), b.mul(j, m.column_stride))
            return b.bitcast(b.gep(m.data, [offset]), bits)

        with cgutils.for_range(b, source.rows) as row, cgutils.for_range(b, source.columns) as column:
            value = b.load(element(source, row.index, column.index), align=1)
            b.store(value, element(target, row.index, column.index), align=1)

    def clear(self, v: Matrix) -> None:
        """Fill the vector `v` with zeros."""
        b, bits = self.builder, ir.IntType(8 * v.itemsize)
        with cgutils.for_range(b, v.rows) as loop:
            place = b.gep(v.data, [b.mul(loop.index, v.row_stride)])
            b.store(bits(0), b.bitcast(place, bits.as_pointer()), align=1)

    def finish(self, out: Matrix, used: Dense | Vector) -> None:
        """Bring a result that was computed in a copy back to `out`."""
        b = self.builder
        with b.if_then(cgutils.is_not_null(b, used.copy)):
            self.copy(self.packed(used.copy, out), out)
            self.context.nrt.free(b, used.copy)

    def free(self, *operands: Dense | Vector) -> None:
        for operand in operands:
            self.free_copy(operand.copy)

    def free_copy(self, copy: ir.Value) -> None:
        with self.builder.if_then(cgutils.is_not_null(self.builder, copy)):
            self.context.nrt.free(self.builder, copy)

    def ints(self, *values: ir.Value) -> list[ir.Value]:
        """Pointers to `values` as BLAS's 32-bit integers."""
        b = self.builder
        fits = [b.icmp_signed("==", b.sext(b.trunc(value, INT), SIZE), value) for value in values]
        self.leave_if(b.not_(self.every(*fits)), TOO_LARGE)
        return [self.place(b.trunc(value, INT)) for value in values]

    def number(self, value: ir.Value, letter: str) -> ir.Value:
        """A pointer to the double `value` as a number of the dtype `letter`."""
        real = SINGLE if letter in "sc" else DOUBLE
        cast = value if real == DOUBLE else self.builder.fptrunc(value, real)
        return self.place(cast, *([real(0.0)] if letter in "cz" else []))

    def letter(self, condition: ir.Value, yes: str, no: str) -> ir.Value:
        """A pointer to one character, as the flags of BLAS are."""
        return self.place(self.builder.select(condition, BYTE(ord(yes)), BYTE(ord(no))))

    def place(self, *values: ir.Value) -> ir.Value:
        """A pointer to `values`, one after the other, on the stack."""
        b = self.builder
        with b.goto_entry_block():
            memory = b.alloca(ir.ArrayType(values[0].type, len(values)))
        for position, value in enumerate(values):
            b.store(value, b.gep(memory, [INT(0), INT(position)]))
        return b.bitcast(memory, POINTER)

    def call(self, routine: str, *pointers: ir.Value, returns: ir.Type | None = None) -> ir.Value:
        signature = ir.FunctionType(returns or ir.VoidType(), [POINTER] * len(pointers))
        function = cgutils.get_or_insert_function(self.builder.module, signature, PREFIX + routine)
        return self.builder.call(function, pointers)


def support_function(
    context: Any, builder: IRBuilder, name: str, letter: str, first: ir.Type, emit: Callable, itemsizes: Sequence[int]
) -> ir.Function:
    """The support function `name`, written into the module being compiled when it is not there yet.

    It takes one argument of the type `first` and the values of a matrix for each of `itemsizes`.
    """
    signature = ir.FunctionType(INT, [first] + [POINTER, SIZE, SIZE, SIZE, SIZE] * len(itemsizes))
    function = cgutils.get_or_insert_function(builder.module, signature, f"{PREFIX}{name}_{letter}")
    if not function.is_declaration:
        return function
    function.linkage = "internal"  # code that was cached by another version of ours keeps its own
    # LLVM would spend 80 ms on unrolling loops that seldom run; unoptimised, the function costs some 20 ns a call.
    function.attributes.add("noinline")
    function.attributes.add("optnone")
    body = IRBuilder(function.append_basic_block("entry"))
    body.position_at_end(body.block)
    head, *rest = function.args
    matrices = [Matrix.of_values(rest[5 * i : 5 * i + 5], itemsize) for i, itemsize in enumerate(itemsizes)]
    start = body.append_basic_block("start")
    body.branch(start)
    body.position_at_end(start)
    emit(Emitter(context, body), letter, head, *matrices)
    return function


def raise_on_failure(
    context: Any,
    builder: IRBuilder,
    status: ir.Value,
    name: str,
    more: Sequence[tuple[ir.Constant, type[Exception], str]] = (),
) -> None:
    """Raise, in the function being compiled, what the status of a support function says."""
    failures = (
        (MISMATCH, ValueError, f"{name}: the shapes of the operands do not fit together"),
        (TOO_LARGE, OverflowError, f"{name}: a size or stride exceeds BLAS's 32-bit integers"),
        (NO_MEMORY, MemoryError, f"{name}: no memory for a copy of an operand"),
        *more,
    )
    fine = builder.append_basic_block("fine")
    switch = builder.switch(status, fine)
    for code, error, message in failures:
        failed = builder.append_basic_block("failed")
        switch.add_case(code, failed)
        with builder.goto_block(failed):
            context.call_conv.return_user_exc(builder, error, (message,))
    builder.position_at_end(fine)
