"""Views that Numba need not infer: an array's axes in another order, its elements under another shape.

`x.transpose((0, 2, 1))` takes Numba seconds to compile and `x.reshape(...)` a third of one; these take milliseconds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin

from gradsmith.kernels.allocation import new_array


def permuted(x: Any, axes: Any) -> Any:
    """`np.transpose(x, axes)`: a view.  `axes` is a tuple of constants."""
    return np.transpose(x, axes)


def reshaped(x: Any, shape: Any) -> Any:
    """`np.reshape(x, shape)`: a view where `x` is C-contiguous, by its type in compiled code, else a copy."""
    return np.reshape(x, shape)


def _typed(function: Callable, result: Callable[[Any, Any], types.Array]) -> None:
    class Template(AbstractTemplate):
        key = function
        prefer_literal = True

        def generic(self, arguments: tuple[types.Type, ...], keywords: dict[str, types.Type]) -> Signature:
            if keywords or len(arguments) != 2 or not isinstance(arguments[0], types.Array) or not isinstance(
                    arguments[1], types.BaseTuple):
                raise TypingError(f"{function.__name__} takes an array and a tuple, not {arguments}")
            return Signature(result(*arguments), arguments, None)

    infer_global(function, types.Function(Template))


def _permuted_type(x: types.Array, axes: Any) -> types.Array:
    order = _constants(axes)
    if sorted(order) != list(range(x.ndim)):
        raise TypingError(f"axes {tuple(order)} of an array of {x.ndim} dimensions")
    return x.copy(layout="C" if order == sorted(order) and x.layout == "C" else "A")


def _constants(axes: Any) -> list[int]:
    if not all(isinstance(a, types.IntegerLiteral) for a in axes):
        raise TypingError(f"permuted takes a tuple of constants, not {axes}")
    return [a.literal_value for a in axes]


def _reshaped_type(x: types.Array, shape: Any) -> types.Array:
    if not all(isinstance(types.unliteral(size), types.Integer) for size in shape):
        raise TypingError(f"reshaped takes a tuple of integers, not {shape}")
    return x.copy(ndim=len(shape), layout="C")


_typed(permuted, _permuted_type)
_typed(reshaped, _reshaped_type)


def _over(context: Any, builder: Any, kind: types.Array, source: Any, shape: list[Any], strides: list[Any]) -> Any:
    """An array of the type `kind` over the memory of `source`, which it keeps alive."""
    from numba.np.arrayobj import populate_array  # loaded by any compilation, but not by the import of Numba

    made = context.make_array(kind)(context, builder)
    populate_array(made, data=builder.bitcast(source.data, made.data.type), shape=shape, strides=strides,
                   itemsize=source.itemsize, meminfo=source.meminfo, parent=source.parent)
    value = made._getvalue()
    context.nrt.incref(builder, kind, value)
    return value


@lower_builtin(permuted, types.Array, types.BaseTuple)
def _lower_permuted(context: Any, builder: Any, signature: Signature, arguments: list[Any]) -> Any:
    x, order = signature.args[0], _constants(signature.args[1])
    source = context.make_array(x)(context, builder, arguments[0])
    shape, strides = cgutils.unpack_tuple(builder, source.shape), cgutils.unpack_tuple(builder, source.strides)
    return _over(context, builder, signature.return_type, source, [shape[a] for a in order],
                 [strides[a] for a in order])


@lower_builtin(reshaped, types.Array, types.BaseTuple)
def _lower_reshaped(context: Any, builder: Any, signature: Signature, arguments: list[Any]) -> Any:
    x, sizes = signature.args
    shape = [context.cast(builder, value, types.unliteral(size), types.intp)
             for value, size in zip(cgutils.unpack_tuple(builder, arguments[1], len(sizes)), sizes)]
    source = context.make_array(x)(context, builder, arguments[0])
    total: Any = ir.Constant(shape[0].type if shape else ir.IntType(64), 1)
    for size in shape:
        total = builder.mul(total, size)
    with builder.if_then(builder.icmp_signed("!=", total, source.nitems), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("cannot reshape an array to a shape of another size",))
    owned = None
    if x.layout != "C":
        owned = _contiguous(context, builder, x, source)
        source = context.make_array(x.copy(layout="C", readonly=False))(context, builder, owned)
    strides: list[Any] = []
    step = source.itemsize
    for size in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, size)
    value = _over(context, builder, signature.return_type, source, shape, strides)
    if owned is not None:
        context.nrt.decref(builder, x.copy(layout="C", readonly=False), owned)
    return value


def _contiguous(context: Any, builder: Any, x: types.Array, source: Any) -> Any:
    """A C-contiguous copy."""
    shape = cgutils.unpack_tuple(builder, source.shape)
    strides = cgutils.unpack_tuple(builder, source.strides)
    kind = x.copy(layout="C", readonly=False)
    value = new_array(context, builder, kind, shape)
    copy = context.make_array(kind)(context, builder, value)
    place = cgutils.alloca_once_value(builder, ir.Constant(shape[0].type, 0))
    with cgutils.loop_nest(builder, shape, shape[0].type) as index:
        pointer = cgutils.get_item_pointer2(context, builder, source.data, shape, strides, "A", index)
        position = builder.load(place)
        builder.store(builder.load(pointer), builder.gep(copy.data, [position]))
        builder.store(builder.add(position, ir.Constant(position.type, 1)), place)
    return value
