"""Writing into arrays: a write through any name or view becomes a new version of the buffer that it belongs to."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import error
from ..ir import dims
from ..ir.build import check, const, size_value
from ..ir.index import index_shape
from ..ir.nodes import Value
from ..ir.types import I64, Type
from ..ops.base import RuleError
from ..ops.families import broadcast_to
from ..ops.spelling import as_value, cast
from .decided import check_not_kept
from .either import unknown
from .indexing import Index, MaskedKey, index_arrays, masked_array, masked_key, parse_index
from .masked import elements, same_value, select_into, shown
from .operators import Operator, binary
from .values import ArrayRef, Masked, is_static, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter


def check_writable(it: Interpreter, ref: ArrayRef) -> None:
    """Located errors for arrays that a transpiled function may not change (yet)."""
    ref.check_certain(writing=True)
    root = ref.root
    if root.may_be_number:
        raise unknown(root)
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


def put_whole(it: Interpreter, ref: ArrayRef, value: Value) -> None:
    """All elements of a buffer or view, already of its shape and dtype."""
    if not ref.write(value):
        raise error("E124", "writing through this view is not supported", it.here, kind=NotImplementedError,
                    help="write to the array itself, with an index")


def fitted(it: Interpreter, value: Any, dtype: str, shape: tuple[Any, ...]) -> Value:
    """What is assigned, cast and broadcast to the place it goes to."""
    from .numpy_calls import lower
    new = as_value(lower(elements(value) if isinstance(value, Masked) else value))
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
    masked = masked_key(ref.rank, key)
    if masked is not None:
        _write_mask(it, masked_array(it, ref, masked), masked, value)
        return
    index = parse_index(it, ref.shape, key)
    base = ref.read()
    if index.is_basic and index.basic_is_whole(ref.shape):
        put_whole(it, ref, fitted(it, value, ref.dtype, ref.shape))
    elif index.is_basic:
        part = fitted(it, value, ref.dtype, index_shape(index.items))
        put_whole(it, ref, ops.store(base, part, *index.scalars, index=index.items))
    else:
        put_whole(it, ref, scattered(it, base, index, value, ops.scatter))


def _write_mask(it: Interpreter, ref: ArrayRef, key: MaskedKey, value: Any) -> None:
    """`x[mask] = value` with a mask known at run time; ref: what it selects from, its axes first."""
    mask, whole = key.mask, key.mask.read()
    if mask.rank < ref.rank:
        whole = ops.broadcast(whole, shape=ref.shape, axes=tuple(range(mask.rank)))
    if isinstance(value, Masked) and same_value(value.mask, mask.read()) and not key.place and (
            value.rest == ref.rank - mask.rank):
        put_whole(it, ref, select_into(ref.read(), value, ref.dtype))
        return
    from .numpy_calls import lower
    given = as_value(lower(elements(value) if isinstance(value, Masked) else value))
    selected = 1 + ref.rank - mask.rank
    if key.place and given.rank <= selected:            # the selected elements first, as in `ref`
        given = _first(ArrayRef(given), key.place, selected).read()
    if given.rank == selected and given.shape[0] != 1:
        given = _in_order(mask.read(), given)
    value = given
    new = fitted(it, value, ref.dtype, ref.shape)
    put_whole(it, ref, ops.select(whole, new, ref.read()))


def _in_order(mask: Value, values: Value) -> Value:
    """The values, one for each place where the mask is set, at these places; anything elsewhere."""
    size, count = dims.product(mask.shape), values.shape[0]
    chosen = ops.reshape(mask, shape=(size,))
    numbers = ops.cumsum(ops.convert(chosen, dtype="int64"), axis=0, reverse=False)
    total = ops.sum(ops.convert(chosen, dtype="int64"), axes=(0,))
    fits = ops.equal(total, size_value(count))
    if not isinstance(count, int):                              # one value goes to all places
        fits = ops.logical_or(fits, ops.equal(size_value(count), const(1, I64)))
    check(fits, "ValueError", f"NumPy boolean array indexing assignment cannot assign "
          f"{count} input values to the output values where the mask is true")
    if count == 0:
        return const(0, Type(values.dtype, (*mask.shape, *values.shape[1:])))
    last = size_value(count)
    zero, one = const(0, I64), const(1, I64)
    spread = [ops.broadcast(v, shape=(size,), axes=()) for v in (zero, ops.subtract(last, one), one)]
    places = ops.minimum(ops.maximum(ops.subtract(numbers, spread[2]), spread[0]), spread[1])
    found = ops.gather(values, places, axes=(0,))
    return ops.reshape(found, shape=(*mask.shape, *values.shape[1:]))


def selected_by(it: Interpreter, container: ArrayRef, key: MaskedKey) -> tuple[ArrayRef, Masked]:
    """What a mask known at run time selects from, and what it selects now."""
    ref = masked_array(it, container, key)
    return ref, Masked(ref.read(), key.mask.read(), it.here)


def update_masked(it: Interpreter, op: Operator, ref: ArrayRef, old: Masked, key: MaskedKey, operand: Any) -> None:
    """`x[mask] op= operand`, with what was selected before the operand was computed, which may have written to `x`."""
    check_writable(it, ref)
    if key.place and (isinstance(operand, (list, tuple, Masked)) or (
            isinstance(operand, ArrayRef) and operand.rank > old.rest - key.place)):
        operand = _first(operand, key.place, old.rest + 1)
    new = binary(it, op, old, operand)
    if isinstance(new, Masked) and same_value(new.mask, key.mask.read()):
        put_whole(it, ref, select_into(ref.read(), new, ref.dtype))
    else:
        _write_mask(it, ref, replace(key, place=0), new)


def _first(operand: Any, place: int, rank: int) -> Any:
    """What meets a selection whose elements stand at `place`, turned for one whose elements come first."""
    from .numpy_calls import lower
    given = as_value(lower(shown(operand)))
    if given.rank > rank:
        return ArrayRef(given)
    given = ops.reshape(given, shape=(*(1,) * (rank - given.rank), *given.shape))
    return ArrayRef(ops.transpose(given, axes=(place, *(k for k in range(rank) if k != place))))


def scattered(it: Interpreter, base: Value, index: Index, value: Any, op: Any) -> Value:
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
    if ref.is_flat:
        raise RuleError(f"unsupported operand type(s) for {op.sign}=: 'numpy.flatiter'", kind=TypeError, code="E312",
                        help="write `a.flat[:] = ...`, or work on the array")
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
    put_whole(it, ref, broadcast_to(cast(value, ref.dtype), ref.shape))
