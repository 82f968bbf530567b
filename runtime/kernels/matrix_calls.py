"""From a call of a matrix function in user code to its support function, for one matrix or a stack of them."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype

from gradsmith.kernels.allocation import new_array
from gradsmith.kernels.factorisations import FACTOR_FLAGS, NOT_POSITIVE, NOT_SQUARE, SINGULAR
from gradsmith.kernels.strided import INT, MISMATCH, POINTER, SIZE, Matrix, raise_on_failure, support_function

LETTERS = {types.float32: "s", types.float64: "d"}
FAILURES = (
    (NOT_SQUARE, np.linalg.LinAlgError, "Last 2 dimensions of the array must be square"),
    (SINGULAR, np.linalg.LinAlgError, "Singular matrix"),
    (NOT_POSITIVE, np.linalg.LinAlgError, "Matrix is not positive definite"),
)

Result = Callable[[Sequence[Any]], Any]  # from Numba's types of the operands


def new(like: int, layout: Literal["C", "F"] = "C") -> tuple[int, Result]:
    """A result: a new array of the type and shape of the operand number `like`."""
    return like, lambda operands: types.Array(operands[like].dtype, operands[like].ndim, layout)


def scalar(operands: Sequence[Any]) -> Any:
    """For a stack, an array of scalars."""
    dtype, ndim = operands[0].dtype, operands[0].ndim
    return dtype if ndim == 2 else types.Array(dtype, 1, "C")


SCALAR: tuple[int, Result] = (0, scalar)
PIVOTS: tuple[int, Result] = (0, lambda operands: types.Array(types.int32, 1, "C"))


def compiled(
    function: Callable,
    emit: Callable,
    operands: tuple[set[int], ...],
    results: tuple[tuple[int, Result], ...],
    flags: tuple[str, ...] = (),
    integers: tuple[int, ...] = (),
    is_stacked: bool = False,
) -> None:
    """Compile `function(*arrays, *flags)`.

    `operands` are the allowed dimensions of each array, one more if the function is for stacks. `integers` says which
    of them hold int32. A result is the operand whose shape it begins with, and its type. A flag is a truth value or an
    integer, False when left out.
    """
    name, count, declared = function.__name__, len(operands), inspect.signature(function)
    support = emit.__name__.removeprefix("emit_")
    allowed = [{ndim + is_stacked for ndim in ndims} for ndims in operands]

    class Template(AbstractTemplate):
        key = function

        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature:
            try:
                bound = declared.bind(*arguments, **keywords).arguments
            except TypeError as problem:
                raise TypingError(f"{name}: {problem}") from None
            arrays = tuple(bound.values())[:count]
            check_operands(name, arrays, allowed, integers)
            produced = [make(arrays) for _, make in results]
            result = produced[0] if len(produced) == 1 else types.Tuple(produced)
            # Numba fills in the defaults and casts what is given to truth values.
            return Signature(result, (*arrays, *[types.boolean] * len(flags)), None, declared)

    infer_global(function, types.Function(Template))

    @lower_builtin(function, *[types.Array] * count, *[types.Boolean] * len(flags))
    def lower(context: Any, builder: IRBuilder, signature: Signature, values: list[ir.Value]) -> ir.Value:
        arrays = list(zip(signature.args[:count], values[:count]))
        produced: Any = signature.return_type
        kinds = [produced] if len(results) == 1 else list(produced)
        made = [allocate(context, builder, kind, arrays[like]) for kind, (like, _) in zip(kinds, results)]
        bits = INT(0)
        for flag, value in zip(flags, values[count:]):
            bits = builder.or_(bits, builder.select(value, INT(FACTOR_FLAGS[flag]), INT(0)))
        letter = LETTERS[signature.args[0].dtype]

        def call(matrices: list[Matrix]) -> None:
            sizes = [matrix.itemsize for matrix in matrices]
            callee = support_function(context, builder, support, letter, INT, emit, sizes)
            status = builder.call(callee, [bits] + [value for matrix in matrices for value in matrix.values])
            raise_on_failure(context, builder, status, name, FAILURES)

        written = [pair for pair, _ in made]
        if is_stacked:
            over_stack(context, builder, name, [*arrays, *written], call)
        else:
            call([matrix_of(context, builder, *pair) for pair in [*arrays, *written]])
        final = [finish() for _, finish in made]
        return final[0] if len(final) == 1 else context.make_tuple(builder, produced, final)


def check_operands(
    name: str, arrays: tuple[Any, ...], dimensions: Sequence[set[int]], integers: tuple[int, ...] = ()
) -> None:
    given = ", ".join(map(str, arrays))
    if len(arrays) != len(dimensions) or not all(isinstance(array, types.Array) for array in arrays):
        raise TypingError(f"{name} takes {len(dimensions)} arrays, not {given}")
    if any(array.ndim not in allowed for array, allowed in zip(arrays, dimensions)):
        raise TypingError(f"{name} takes arrays of {', '.join(map(str, dimensions))} dimensions, not {given}")
    for i, array in enumerate(arrays):
        if i in integers:
            if array.dtype != types.int32:
                raise TypingError(f"{name} takes pivots as int32, not {array}")
        elif array.dtype not in LETTERS or array.dtype != arrays[0].dtype:
            raise TypingError(f"{name} takes arrays of one dtype, float32 or float64, not {given}")


def allocate(
    context: Any, builder: IRBuilder, kind: types.Type, like: tuple[types.Array, ir.Value]
) -> tuple[tuple[types.Type, ir.Value], Callable[[], ir.Value]]:
    """Room for a result, as an array or a pointer to a scalar, and how to read it when it has been written."""
    if not isinstance(kind, types.Array):
        place = cgutils.alloca_once(builder, context.get_value_type(kind))
        return (kind, place), lambda: builder.load(place)
    shape = cgutils.unpack_tuple(builder, context.make_array(like[0])(context, builder, like[1]).shape)
    value = new_array(context, builder, kind, shape[: kind.ndim])
    return (kind, value), lambda: value


def matrix_of(context: Any, builder: IRBuilder, kind: types.Type, value: ir.Value) -> Matrix:
    """An array of one or two dimensions, or a scalar that `value` points to."""
    if isinstance(kind, types.Array):
        return Matrix.of_array(context, builder, kind, value)
    size = as_dtype(kind).itemsize
    return Matrix(builder.bitcast(value, POINTER), SIZE(1), SIZE(1), SIZE(size), SIZE(size), size)


def over_stack(
    context: Any,
    builder: IRBuilder,
    name: str,
    arrays: Sequence[tuple[Any, ir.Value]],
    call: Callable[[list[Matrix]], None],
) -> None:
    """Call `call` with the matrices at each place of the arrays' first axis; they must be equally long."""
    stacks = [stack_of(context, builder, *pair) for pair in arrays]
    length = stacks[0][0]
    for other, _, _ in stacks[1:]:
        differs = builder.icmp_signed("!=", other, length)
        raise_on_failure(context, builder, builder.select(differs, MISMATCH, INT(0)), name)
    with cgutils.for_range(builder, length) as loop:
        places = [builder.gep(m.data, [builder.mul(loop.index, stride)]) for _, stride, m in stacks]
        call([replace(m, data=place) for place, (_, _, m) in zip(places, stacks)])


def stack_of(context: Any, builder: IRBuilder, kind: types.Array, value: ir.Value) -> tuple[ir.Value, ir.Value, Matrix]:
    """How many there are, the stride from one to the next, and the first of the matrices, vectors or scalars."""
    array = context.make_array(kind)(context, builder, value)
    itemsize = as_dtype(kind.dtype).itemsize
    (length, *shape), (stride, *strides) = (
        cgutils.unpack_tuple(builder, part) for part in (array.shape, array.strides)
    )
    rows, columns = [*shape, SIZE(1), SIZE(1)][:2]
    row_stride, column_stride = [*strides, SIZE(itemsize), SIZE(itemsize)][:2]
    first = Matrix(builder.bitcast(array.data, POINTER), rows, columns, row_stride, column_stride, itemsize)
    return length, stride, first
