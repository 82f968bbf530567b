"""New arrays: `empty` and `zeros` as NumPy's, for compiled code that must be compiled quickly.

Numba compiles a Python function for each use of `np.empty` with a new rank or dtype, which takes some 60 ms.  These
become a call of its allocator in place.  In plain Python they are NumPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin
from numba.np.numpy_support import as_dtype

from gradsmith.kernels.memory import keep_freed_memory

keeps_memory = keep_freed_memory()


def empty(shape: Any, dtype: Any = np.float64) -> Any:
    """A new C-contiguous array of unspecified contents.  shape: an int or a tuple of ints."""
    return np.empty(shape, dtype)


def zeros(shape: Any, dtype: Any = np.float64) -> Any:
    """A new C-contiguous array of zeros (False for bool)."""
    return np.zeros(shape, dtype)


def tuple_types(shape: Any) -> list[types.Type]:
    """The types of a tuple's items."""
    return list(shape.types) if hasattr(shape, "types") else [shape.dtype] * shape.count


def _array_type(arguments: tuple[types.Type, ...]) -> types.Array | None:
    if not 1 <= len(arguments) <= 2:
        return None
    shape: Any = arguments[0]
    parts = tuple_types(shape) if isinstance(shape, types.BaseTuple) else [shape]
    if not all(isinstance(part, types.Integer) for part in parts):
        return None
    dtype: types.Type = types.float64
    if len(arguments) == 2:
        if not isinstance(arguments[1], (types.NumberClass, types.DType)):
            return None
        dtype = arguments[1].dtype
    return types.Array(dtype, len(parts), "C")


def _typed(function: Callable[..., Any]) -> None:
    class Template(AbstractTemplate):
        key = function

        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature | None:
            result = None if keywords else _array_type(arguments)
            return None if result is None else Signature(result, arguments, None)

    infer_global(function, types.Function(Template))


def new_array(context: Any, builder: Any, kind: types.Array, sizes: list[Any], fill: bool = False) -> Any:
    """Code that allocates a contiguous array, by row or by column as `kind` says; `sizes` are LLVM values.  ValueError,
    as NumPy raises it, where the number of bytes does not fit in 64 bits."""
    from numba.np.arrayobj import make_array, populate_array  # loaded by any compilation, not by importing Numba

    word = context.get_value_type(types.intp)
    itemsize = ir.Constant(word, as_dtype(kind.dtype).itemsize)
    overflow = ir.Constant(ir.IntType(1), 0)
    strides: list[Any] = []
    total = itemsize
    for size in sizes if kind.layout == "F" else reversed(sizes):
        strides.append(total)
        product = builder.smul_with_overflow(total, size)
        total = builder.extract_value(product, 0)
        overflow = builder.or_(overflow, builder.extract_value(product, 1))
    if kind.layout != "F":
        strides.reverse()
    with builder.if_then(overflow, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("array is too big",))
    align = context.get_constant(types.uint32, context.get_preferred_array_alignment(kind.dtype))
    memory = context.nrt.meminfo_alloc_aligned(builder, total, align)
    data = context.nrt.meminfo_data(builder, memory)
    if fill:
        cgutils.memset(builder, data, total, 0)
    array = make_array(kind)(context, builder)
    populate_array(array, data=builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer()),
                   shape=cgutils.pack_array(builder, sizes, ty=word),
                   strides=cgutils.pack_array(builder, strides, ty=word), itemsize=itemsize, meminfo=memory)
    return array._getvalue()


def _lowered(fill: bool) -> Callable[..., Any]:
    def lower(context: Any, builder: Any, signature: Signature, arguments: tuple[Any, ...]) -> Any:
        shape_type: Any = signature.args[0]
        shape = arguments[0]
        if isinstance(shape_type, types.BaseTuple):
            parts = cgutils.unpack_tuple(builder, shape)
            kinds = tuple_types(shape_type)
        else:
            parts, kinds = [shape], [shape_type]
        sizes = [context.cast(builder, part, kind, types.intp) for part, kind in zip(parts, kinds, strict=True)]
        return new_array(context, builder, signature.return_type, sizes, fill)

    return lower


for _function, _fill in ((empty, False), (zeros, True)):
    _typed(_function)
    for _shape in (types.Integer, types.BaseTuple):
        lower_builtin(_function, _shape)(_lowered(_fill))
        for _dtype in (types.NumberClass, types.DType):
            lower_builtin(_function, _shape, _dtype)(_lowered(_fill))
