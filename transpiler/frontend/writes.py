"""Writing into arrays: a write through any name or view becomes a new version of the buffer that it belongs to."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import error
from ..ir import dims
from ..ir.index import index_shape
from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.families import broadcast_to
from ..ops.spelling import as_value, cast, find_spelling
from .decided import check_not_kept
from .indexing import Index, _check_mask, get_item, index_arrays, parse_index
from .masked import same_value, select_into
from .operators import BY_FUNCTION, Operator, binary
from .values import ArrayRef, Masked, is_scalar, is_static, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter


def check_writable(it: Interpreter, ref: ArrayRef) -> None:
    """Located errors for arrays that a transpiled function may not change (yet)."""
    ref.check_certain(writing=True)
    root = ref.root
    check_not_kept(it, root)
    if root.owner == "captured" and (
            it.barrier or not it.outside.keeps_effects or root not in it.outside.arrays.values()):
        raise error("E124", "a function under a transform writes to an array from outside of it", it.here,
                    kind=NotImplementedError, help="pass the array as an argument, or write to a copy: `x = x.copy()`")
    if "read-only" in (ref.owner, root.owner):
        raise RuleError("assignment destination is read-only", kind=ValueError, code="E128")
    if root.serial < it.barrier:
        raise error("E124", "a function under a transform writes to an array of its surroundings", it.here,
                    kind=NotImplementedError, help="return the new array instead")


def _put(it: Interpreter, ref: ArrayRef, value: Value) -> None:
    """All elements of a buffer or view, already of its shape and dtype."""
    if not ref.write(value):
        raise error("E124", "writing through this view is not supported", it.here, kind=NotImplementedError,
                    help="write to the array itself, with an index")


def fitted(it: Interpreter, value: Any, dtype: str, shape: tuple[Any, ...]) -> Value:
    """What is assigned, cast and broadcast to the place it goes to."""
    from .numpy_calls import lower
    if isinstance(value, Masked):
        from .errors import shape_depends_on_values
        raise shape_depends_on_values(value.loc)
    new = as_value(lower(value))
    if new.type.kind == "c" and np.dtype(dtype).kind != "c":
        raise RuleError("only real numbers can be written into a real array", kind=TypeError, code="E308",
                        help="take the real part")
    new = cast(new, dtype)
    while new.rank > len(shape) and new.shape[0] == 1:
        new = ops.reshape(new, shape=new.shape[1:])
    if new.rank > len(shape) or not all(size == 1 or dims.same_size(size, wanted)
                                        for size, wanted in zip(new.shape, shape[len(shape) - new.rank:])):
        raise RuleError(f"could not broadcast input array from shape {dims.shown_shape(new.shape)} into shape "
                        f"{dims.shown_shape(shape)}", kind=ValueError, code="E301")
    return broadcast_to(new, shape)


def write_item(it: Interpreter, ref: ArrayRef, key: Any, value: Any) -> None:
    """`ref[key] = value`."""
    check_writable(it, ref)
    known = ref.current_known()
    if ref.base is None and known is not None and is_static(key) and is_static(value):
        changed = known.copy()
        it.native(changed.__setitem__, to_python(key), to_python(value))
        ref.write(None, changed)
        return
    if isinstance(key, ArrayRef) and key.dtype == "bool" and not is_static(key):
        _write_mask(it, ref, key, value)
        return
    index = parse_index(it, ref.shape, key)
    base = ref.read()
    if index.is_basic and index.basic_is_whole(ref.shape):
        _put(it, ref, fitted(it, value, ref.dtype, ref.shape))
    elif index.is_basic:
        part = fitted(it, value, ref.dtype, index_shape(index.items))
        _put(it, ref, ops.store(base, part, *index.scalars, index=index.items))
    else:
        _put(it, ref, _scattered(it, base, index, value, ops.scatter))


def _write_mask(it: Interpreter, ref: ArrayRef, mask: ArrayRef, value: Any) -> None:
    """`x[mask] = value` with a mask known at run time."""
    _check_mask(it, ref.shape, mask.shape, 0)
    whole = mask.read()
    if mask.rank < ref.rank:
        whole = ops.broadcast(whole, shape=ref.shape, axes=tuple(range(mask.rank)))
    if isinstance(value, Masked) and same_value(value.mask, mask.read()) and value.array.rank <= ref.rank:
        _put(it, ref, select_into(ref.read(), value, ref.dtype))
        return
    if (isinstance(value, ArrayRef) and value.rank) or isinstance(value, (list, tuple)):
        raise error("E311", "writing an array through a mask that is known only at run time is not supported",
                    it.here, help="use np.where(mask, a, b)")
    new = fitted(it, value, ref.dtype, ref.shape)
    _put(it, ref, ops.select(whole, new, ref.read()))


def update_masked(it: Interpreter, op: Operator, ref: ArrayRef, masked: Masked, operand: Any) -> None:
    """`x[mask] op= number` with a mask known at run time."""
    check_writable(it, ref)
    if isinstance(operand, (list, tuple)) or (isinstance(operand, ArrayRef) and operand.rank > masked.rest):
        raise error("E311", "updating through a mask that is known only at run time takes a number", it.here,
                    help="use np.where(mask, a, b)")
    new = binary(it, op, masked, operand)
    assert isinstance(new, Masked)
    _put(it, ref, select_into(ref.read(), new, ref.dtype))


def _scattered(it: Interpreter, base: Value, index: Index, value: Any, op: Any) -> Value:
    """The array after elements at index arrays are written (`op` is scatter or scatter_add)."""
    part = base
    trivial = index.basic_is_whole(base.shape)
    if not trivial:
        part = ops.load(base, *index.scalars, index=index.items)
    arrays = index_arrays(it, part.shape, index)
    rank, place = arrays[0].rank, index.place or 0
    rest = [d for k, d in enumerate(part.shape) if k not in index.arrays]
    new = fitted(it, value, base.dtype, (*rest[:place], *arrays[0].shape, *rest[place:]))
    if place:
        new = ops.transpose(new, axes=(*range(place, place + rank), *range(place), *range(place + rank, new.rank)))
    part = op(part, new, *arrays, axes=tuple(index.arrays))
    return part if trivial else ops.store(base, part, *index.scalars, index=index.items)


def update(it: Interpreter, op: Operator, ref: ArrayRef, operand: Any) -> None:
    """`ref op= operand`: NumPy computes in the common dtype and casts back, if that loses nothing of kind."""
    check_writable(it, ref)
    known = ref.current_known()
    if ref.base is None and known is not None and is_static(operand):
        changed = known.copy()
        in_place = getattr(operator, f"i{op.name}")
        ref.write(None, it.native(in_place, changed, to_python(operand)))
        return
    write_all(it, ref, binary(it, op, ref, operand), op.ufunc.__name__)


def write_all(it: Interpreter, ref: ArrayRef, result: Any, ufunc: str = "") -> None:
    """`out=`: a result written into an existing array."""
    check_writable(it, ref)
    value = result.read() if isinstance(result, ArrayRef) else as_value(result)
    if not np.can_cast(value.dtype, ref.dtype, "same_kind"):
        raise RuleError(f"Cannot cast ufunc {ufunc!r} output from dtype('{value.dtype}') to dtype('{ref.dtype}') with "
                        "casting rule 'same_kind'", kind=TypeError, code="E308",
                        help="compute a new array instead: `a = a + b`")
    if value.rank > ref.rank or not all((a == 1 and b == 1) or dims.same_size(a, b) for a, b in zip(
            value.shape, ref.shape[ref.rank - value.rank:])):
        raise RuleError(f"non-broadcastable output operand with shape {dims.shown_shape(ref.shape)} doesn't match the "
                        f"broadcast shape {dims.shown_shape(value.shape)}", kind=ValueError, code="E301")
    _put(it, ref, broadcast_to(cast(value, ref.dtype), ref.shape))


# ---------------------------------------------------------------------------------------------------------------
# functions that write


def _copyto(it: Interpreter, target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
    if where is True:
        write_item(it, target, Ellipsis, source)
    else:
        write_item(it, target, where, source)


def _fill(it: Interpreter, x: Any, value: Any) -> None:
    write_item(it, x, Ellipsis, value)


def _sort(it: Interpreter, x: Any, axis: Any = -1, **options: Any) -> None:
    write_item(it, x, Ellipsis, it.call_numpy(np.sort, (x,), {"axis": axis, **options}))


def _at(op: Any, sign: Callable[[Value], Value]) -> Callable[..., None]:
    def add_at(it: Interpreter, target: Any, key: Any, value: Any = None) -> None:
        from .numpy_calls import lift
        check_writable(it, target)
        index = parse_index(it, target.shape, key)
        if index.is_basic:
            update(it, BY_FUNCTION[op], get_item(it, target, key), value)
            return
        negated = as_value(value.read() if isinstance(value, ArrayRef) else value)
        _put(it, target, _scattered(it, target.read(), index, lift(sign(cast(negated, target.dtype))),
                                    ops.scatter_add))

    return add_at


def _fill_diagonal(it: Interpreter, target: Any, value: Any, wrap: Any = False) -> None:
    if target.rank != 2 or wrap:
        raise RuleError("np.fill_diagonal is supported for matrices without wrap", code="E203",
                        kind=NotImplementedError)
    check_writable(it, target)
    mask = it.call_numpy(np.eye, target.shape, {"dtype": bool})
    if is_scalar(value) or not isinstance(value, (ArrayRef, list, tuple)):
        _put(it, target, ops.select(_read(mask), fitted(it, value, target.dtype, target.shape), target.read()))
        return
    raise RuleError("np.fill_diagonal with an array is not supported", code="E203", kind=NotImplementedError)


def _read(x: Any) -> Value:
    return x.read() if isinstance(x, ArrayRef) else as_value(x)


def _refused(name: str) -> Callable[..., None]:
    def refuse(it: Interpreter, *args: Any, **kwargs: Any) -> None:
        raise RuleError(f"{name} writes in place, which is not supported yet", code="E202", kind=NotImplementedError)

    return refuse


IN_PLACE: dict[Any, Callable[..., Any]] = {
    np.copyto: _copyto, np.fill_diagonal: _fill_diagonal, (np.add, "at"): _at(operator.add, lambda v: v),
    (np.subtract, "at"): _at(operator.sub, lambda v: -v), np.put: _refused("np.put"), np.place: _refused("np.place"),
    np.putmask: _refused("np.putmask"), np.put_along_axis: _refused("np.put_along_axis"),
    (np.multiply, "at"): _refused("np.multiply.at"), (np.divide, "at"): _refused("np.divide.at"),
    (np.maximum, "at"): _refused("np.maximum.at"), (np.minimum, "at"): _refused("np.minimum.at"),
}
ARRAY_METHODS: dict[str, Callable[..., Any]] = {"fill": _fill, "sort": _sort}


# ---------------------------------------------------------------------------------------------------------------
# views written through


def _back_reshape(whole: Value, part: Value, *args: Any, **kwargs: Any) -> Value:
    return ops.reshape(part, shape=whole.shape)


def _back_transpose(whole: Value, part: Value, *axes: Any, **kwargs: Any) -> Value:
    order = kwargs.get("axes", axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes or None)
    rank = whole.rank
    order = tuple(reversed(range(rank))) if order is None or order == (None,) else tuple(a % rank for a in order)
    return ops.transpose(part, axes=tuple(order.index(k) for k in range(rank)))


def _same_again(key: Any) -> Callable[..., Value]:
    """A view that undoes itself."""

    def back(whole: Value, part: Value, *args: Any, **kwargs: Any) -> Value:
        function = find_spelling(key)
        assert function is not None
        return function(part, *args, **kwargs)

    return back


def _back_moveaxis(whole: Value, part: Value, source: Any, destination: Any) -> Value:
    function = find_spelling(np.moveaxis)
    assert function is not None
    return function(part, destination, source)


INVERSES: dict[Any, Callable[..., Value]] = {
    np.reshape: _back_reshape, np.ndarray.reshape: _back_reshape, np.ravel: _back_reshape,
    np.ndarray.ravel: _back_reshape, np.squeeze: _back_reshape, np.ndarray.squeeze: _back_reshape,
    np.expand_dims: _back_reshape, np.atleast_1d: _back_reshape, np.atleast_2d: _back_reshape,
    np.transpose: _back_transpose, np.ndarray.transpose: _back_transpose, np.ndarray.T: _back_transpose,
    np.swapaxes: _same_again(np.swapaxes), np.ndarray.swapaxes: _same_again(np.ndarray.swapaxes),
    np.flip: _same_again(np.flip), np.fliplr: _same_again(np.fliplr), np.flipud: _same_again(np.flipud),
    np.moveaxis: _back_moveaxis,
}

