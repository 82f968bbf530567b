"""NumPy's ways of giving an array another shape or order: reshape, transpose and their like, functions and methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, const, size_value
from ..ir.dims import DimExpr, bounds, floordiv, product, same_size, shown_shape
from ..ir.nodes import Const, Value
from .base import RuleError
from .families import broadcast_shapes, broadcast_to
from .shape import part
from .spelling import Weak, as_value, axes_of, axis_of, cast, is_value, shape_of, spelled, static_int

# ---------------------------------------------------------------------------------------------------------------
# reshape


def reshaped(x: Value, shape: tuple[Any, ...], order: str = "C") -> Value:
    """x in another shape, -1 worked out.  Sizes that cannot be seen to agree are checked at run time."""
    if order == "F":
        return reversed_axes(reshaped(reversed_axes(x), shape[::-1]))
    if order not in ("C", "A", "K"):
        raise RuleError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if order != "C" and x.rank > 1:
        raise RuleError(f"order={order!r} depends on how the array lies in memory", kind=NotImplementedError,
                        code="E202", help="say order='C' or order='F'")
    total = product(x.shape)
    unknown = [k for k, d in enumerate(shape) if isinstance(d, int) and d < 0]
    refusal = f"cannot reshape array of size {total} into shape {shown_shape(shape)}"
    if len(unknown) > 1 or any(shape[k] != -1 for k in unknown):
        raise RuleError("can only specify one unknown dimension", code="E301")
    if unknown:
        rest = product(d for d in shape if d != -1)
        if rest == 0 or (isinstance(rest, int) and isinstance(total, int) and total % rest):
            raise RuleError(refusal, code="E301")
        shape = tuple(floordiv(total, rest) if d == -1 else d for d in shape)
    if isinstance(product(shape) - total, int) and product(shape) != total:
        raise RuleError(refusal, code="E301")
    if product(shape) != total:
        check(ops.equal(size_value(product(shape)), size_value(total)), "ValueError", refusal)
    return ops.reshape(x, shape=shape)


def reversed_axes(x: Value) -> Value:
    return ops.transpose(x, axes=tuple(range(x.rank))[::-1])


@spelled(np.reshape)
def numpy_reshape(a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None) -> Value:
    if shape is None and newshape is None:
        raise RuleError("reshape() missing 1 required positional argument: 'shape'", kind=TypeError)
    return reshaped(as_value(a), shape_of(newshape if shape is None else shape), order)


@spelled(np.ndarray.reshape)
def reshape_method(a: Any, /, *shape: Any, order: Any = "C", copy: Any = None) -> Value:
    """x.reshape(2, 3) or x.reshape((2, 3))."""
    return reshaped(as_value(a), shape_of(shape[0] if len(shape) == 1 else shape), order)


@spelled(np.ravel, np.ndarray.ravel, np.ndarray.flatten)
def ravel(a: Any, order: Any = "C") -> Value:
    x = as_value(a)
    return reshaped(x, (product(x.shape),), order)


@spelled(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Value:
    x = as_value(a)
    axes = axes_of(axis if isinstance(axis, (tuple, list)) else (axis,),
                   x.rank + (len(axis) if isinstance(axis, (tuple, list)) else 1))
    shape = list(x.shape)
    for k in axes:
        shape.insert(k, 1)
    return ops.reshape(x, shape=tuple(shape))


@spelled(np.squeeze, np.ndarray.squeeze)
def squeeze(a: Any, axis: Any = None) -> Value:
    """Without axis, those whose size is known to be 1 go."""
    x = as_value(a)
    axes = tuple(k for k, d in enumerate(x.shape) if d == 1) if axis is None else axes_of(axis, x.rank)
    if any((bounds(x.shape[k])[0] or 0) > 1 or not same_size(x.shape[k], 1) for k in axes):
        raise RuleError("cannot select an axis to squeeze out which has size not equal to one", code="E301")
    return ops.reshape(x, shape=tuple(d for k, d in enumerate(x.shape) if k not in axes))


def at_least(rank: int, x: Value) -> Value:
    """x with new axes where atleast_1d, 2d and 3d put them."""
    shape = x.shape
    if len(shape) == 0:
        shape = (1,) * rank
    elif len(shape) == 1 and rank > 1:
        shape = (1, *shape, 1)[:rank]
    elif len(shape) == 2 and rank == 3:
        shape = (*shape, 1)
    return ops.reshape(x, shape=shape)


def _spell_at_least(name: str, rank: int) -> None:
    def call(*arys: Any) -> Any:
        found = tuple(at_least(rank, as_value(a)) for a in arys)
        return found[0] if len(found) == 1 else found

    call.__name__ = name
    spelled(getattr(np, name))(call)


for _rank in (1, 2, 3):
    _spell_at_least(f"atleast_{_rank}d", _rank)


@spelled(np.shape)
def numpy_shape(a: Any) -> tuple[Any, ...]:
    """Python ints, as far as they are known, else sizes."""
    return as_value(a).shape


@spelled(np.ndim)
def ndim(a: Any) -> int:
    return as_value(a).rank


@spelled(np.size)
def size(a: Any, axis: Any = None) -> Any:
    x = as_value(a)
    return product(x.shape[k] for k in axes_of(axis, x.rank))


# ---------------------------------------------------------------------------------------------------------------
# the order of axes


def permuted(x: Value, axes: Any) -> Value:
    """np.transpose: axes in the order given, or reversed."""
    if axes is None:
        return reversed_axes(x)
    order = tuple(static_int(a, "axis") for a in axes)
    if len(order) != x.rank:
        raise RuleError("axes don't match array", code="E304")
    order = tuple(axis_of(a, x.rank) for a in order)
    if len(set(order)) != x.rank:
        raise RuleError("repeated axis in transpose", code="E304")
    return ops.transpose(x, axes=order)


@spelled(np.transpose)
def numpy_transpose(a: Any, axes: Any = None) -> Value:
    return permuted(as_value(a), axes)


@spelled(np.ndarray.transpose)
def transpose_method(a: Any, *axes: Any) -> Value:
    """x.transpose(), x.transpose(1, 0) or x.transpose((1, 0))."""
    if not axes:
        return permuted(as_value(a), None)
    return permuted(as_value(a), axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list)))
                    else axes)


@spelled(np.ndarray.T)
def transposed_attribute(a: Any) -> Value:
    return permuted(as_value(a), None)


@spelled(np.ndarray.mT, np.matrix_transpose)
def matrix_transpose(x: Any) -> Value:
    value = as_value(x)
    if value.rank < 2:
        raise RuleError("Input array must be at least 2-dimensional, but it is " f"{value.rank}", code="E304")
    return swapaxes(value, -1, -2)


@spelled(np.swapaxes, np.ndarray.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Value:
    x = as_value(a)
    first, second = axis_of(axis1, x.rank), axis_of(axis2, x.rank)
    order = list(range(x.rank))
    order[first], order[second] = second, first
    return ops.transpose(x, axes=tuple(order))


@spelled(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Value:
    x = as_value(a)
    lists = [v if isinstance(v, (tuple, list)) else (v,) for v in (source, destination)]
    here, there = ([axis_of(a, x.rank) for a in v] for v in lists)
    if len(here) != len(there):
        raise RuleError("`source` and `destination` arguments must have the same number of elements")
    if len(set(here)) != len(here) or len(set(there)) != len(there):
        raise RuleError("repeated axis in `source` or `destination` argument", code="E304")
    order = [k for k in range(x.rank) if k not in here]
    for place, axis in sorted(zip(there, here)):
        order.insert(place, axis)
    return ops.transpose(x, axes=tuple(order))


@spelled(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Value:
    x = as_value(a)
    here, place = axis_of(axis, x.rank), static_int(start, "start")
    place += x.rank if place < 0 else 0
    if not 0 <= place <= x.rank:
        raise RuleError(f"'start' arg requires {-x.rank} <= start < {x.rank + 1}, but {start} was passed in",
                        kind=np.exceptions.AxisError, code="E304")
    order = list(range(x.rank))
    order.remove(here)
    order.insert(place - 1 if here < place else place, here)
    return ops.transpose(x, axes=tuple(order))


# ---------------------------------------------------------------------------------------------------------------
# the order along axes


@spelled(np.flip)
def flip(m: Any, axis: Any = None) -> Value:
    x = as_value(m)
    return ops.reverse(x, axes=axes_of(axis, x.rank))


@spelled(np.fliplr)
def fliplr(m: Any) -> Value:
    x = as_value(m)
    if x.rank < 2:
        raise RuleError("Input must be >= 2-d.", code="E304")
    return ops.reverse(x, axes=(1,))


@spelled(np.flipud)
def flipud(m: Any) -> Value:
    x = as_value(m)
    if x.rank < 1:
        raise RuleError("Input must be >= 1-d.", code="E304")
    return ops.reverse(x, axes=(0,))


@spelled(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Value:
    x = as_value(m)
    if len(axes) != 2:
        raise RuleError("len(axes) must be 2.")
    first, second = (axis_of(a, x.rank) for a in axes)
    if first == second:
        raise RuleError("Axes must be different.", code="E304")
    turns = static_int(k, "k") % 4
    if turns == 0:
        return x
    if turns == 2:
        return ops.reverse(x, axes=tuple(sorted((first, second))))
    if turns == 1:
        return swapaxes(ops.reverse(x, axes=(second,)), first, second)
    return ops.reverse(swapaxes(x, first, second), axes=(second,))


def _modulo(shift: Any, length: Any) -> Any:
    """shift % length, as a simple dimension where it can be seen."""
    low = bounds(length)[0] or 0
    if isinstance(shift, int) and not isinstance(length, int) and -low <= shift <= low:
        return shift if shift >= 0 else length + shift
    return shift - floordiv(shift, length) * length


def _rolled(x: Value, shift: Any, axis: int) -> Value:
    """Elements move on by `shift`, static or a size, and come back at the other end."""
    length = x.shape[axis]
    if length == 0:
        return x
    moved = _modulo(shift, length)
    if moved == 0:
        return x
    return ops.concatenate(part(x, axis, length - moved, moved), part(x, axis, 0, length - moved), axis=axis)


def _rolled_at_run_time(x: Value, shift: Value, axis: int) -> Value:
    """The same by a shift that is known at run time only: each element is read where it was."""
    length = x.shape[axis]
    if length == 0:
        return x
    moved = ops.remainder(cast(shift, "int64"), size_value(length))
    before = ops.iota(shape=(length,), axis=0, dtype="int64") - broadcast_to(moved, (length,))
    zero, count = const(0, before.type), broadcast_to(size_value(length), (length,))
    found = ops.gather(x, ops.select(before < zero, before + count, before), axes=(axis,))
    return ops.transpose(found, axes=(*range(1, axis + 1), 0, *range(axis + 1, x.rank)))


def _is_run_time_int(x: Any) -> bool:
    value = x.value if isinstance(x, Weak) else x
    return is_value(value) and not isinstance(value, Const) and not value.rank and value.type.kind in "iu"


@spelled(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Value:
    """Elements move on by `shift` along `axis`, each shift along its own; without an axis, all of them in order."""
    x = as_value(a)
    if axis is None:
        return ops.reshape(roll(ops.reshape(x, shape=(product(x.shape),)), shift, 0), shape=x.shape)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise RuleError("'shift' and 'axis' should be scalars or 1D sequences")
    count = max(len(shifts), len(axes))
    for s, k in zip((*shifts,) * (count if len(shifts) == 1 else 1), (*axes,) * (count if len(axes) == 1 else 1)):
        if _is_run_time_int(s):
            x = _rolled_at_run_time(x, as_value(s), axis_of(k, x.rank))
        else:
            x = _rolled(x, s if isinstance(s, DimExpr) else static_int(s, "shift"), axis_of(k, x.rank))
    return x


# ---------------------------------------------------------------------------------------------------------------
# broadcasting and repetition


@spelled(np.broadcast_to)
def numpy_broadcast_to(array: Any, shape: Any, subok: Any = False) -> Value:
    x, wanted = as_value(array), shape_of(shape)
    if x.rank > len(wanted):
        raise RuleError("input operand has more dimensions than allowed by the axis remapping", code="E301")
    full = broadcast_shapes(x.shape, wanted)
    if any(not same_size(a, b) for a, b in zip(full, wanted)):
        raise RuleError("operands could not be broadcast together with remapped shapes [original->remapped]: "
                        f"{shown_shape(x.shape)} and requested shape {shown_shape(wanted)}", code="E301")
    return broadcast_to(x, wanted)


@spelled(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Value, ...]:
    values = [as_value(a) for a in args]
    shape = broadcast_shapes(*(v.shape for v in values))
    return tuple(broadcast_to(v, shape) for v in values)


@spelled(np.repeat, np.ndarray.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Value:
    """A count for all elements, or a static count for each along the axis."""
    x = as_value(a)
    if axis is None:
        x, along = ops.reshape(x, shape=(product(x.shape),)), 0
    else:
        along = axis_of(axis, x.rank)
    counts = repeats
    if isinstance(counts, np.ndarray):
        counts = counts.tolist()
    if isinstance(counts, (tuple, list)):
        counts = [static_int(c, "repeats") for c in counts]
        if len(counts) != 1:
            if not same_size(x.shape[along], len(counts)):
                raise RuleError(f"operands could not be broadcast together with shape ({x.shape[along]},) "
                                f"({len(counts)},)", code="E301")
            if any(c < 0 for c in counts):
                raise RuleError("repeats may not contain negative values.")
            return ops.concatenate(*[repeat(part(x, along, k, 1), c, along) for k, c in enumerate(counts)],
                                   axis=along)
        counts = counts[0]
    if not isinstance(counts, DimExpr):
        counts = static_int(counts, "repeats")
        if counts < 0:
            raise RuleError("repeats may not contain negative values.")
    wide = (*x.shape[:along + 1], counts, *x.shape[along + 1:])
    copies = ops.broadcast(x, shape=wide, axes=tuple(k if k <= along else k + 1 for k in range(x.rank)))
    return ops.reshape(copies, shape=tuple(d * counts if k == along else d for k, d in enumerate(x.shape)))


@spelled(np.tile)
def tile(A: Any, reps: Any) -> Value:
    x = as_value(A)
    counts = shape_of(reps)
    if any(isinstance(c, int) and c < 0 for c in counts):
        raise RuleError("negative dimensions are not allowed")
    rank = max(x.rank, len(counts))
    counts = (*(1,) * (rank - len(counts)), *counts)
    shape = (*(1,) * (rank - x.rank), *x.shape)
    wide = tuple(v for pair in zip(counts, shape) for v in pair)
    axes = tuple(2 * k + 1 for k in range(rank - x.rank, rank))
    return ops.reshape(ops.broadcast(x, shape=wide, axes=axes), shape=tuple(c * d for c, d in zip(counts, shape)))


@spelled(np.resize)
def resize(a: Any, new_shape: Any) -> Value:
    """As many copies as it takes, cut off."""
    x, shape = as_value(a), shape_of(new_shape)
    flat, wanted = ops.reshape(x, shape=(product(x.shape),)), product(shape)
    if not (isinstance(flat.shape[0], int) and isinstance(wanted, int)):
        raise RuleError("np.resize needs sizes known while transpiling", kind=NotImplementedError, code="E303",
                        help="use np.tile and slicing")
    if wanted == 0 or flat.shape[0] == 0:
        return ops.reshape(part(flat, 0, 0, 0), shape=shape) if wanted == 0 else ops.broadcast(
            as_value(0, x.dtype), shape=shape, axes=())
    copies = -(-wanted // flat.shape[0])
    return ops.reshape(part(tile(flat, copies), 0, 0, wanted), shape=shape)

