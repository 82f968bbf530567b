"""Reading parts: NumPy's basic and advanced indices, and Python's own of lists, tuples, dicts and strings.

A basic index becomes a `load`; integer arrays become a `gather` on what the basic part leaves, then a transpose that
puts their axes where NumPy has them.  Ints in brackets are in `wrapping`, slices in `slices`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir.dims import DimExpr, is_dim
from ..ir.index import At, Item, New, Span
from ..ir.nodes import Const, Value, Var
from ..ops.base import RuleError
from ..ops.numpy_selecting import mask_indices
from ..ops.spelling import Weak, as_value, broadcast_together, python_type
from .iteration import DimRange, Iterator, iterate
from .layout import of_index
from .masked import elements
from .slices import span_of
from .values import ArrayRef, Instance, Masked, View, from_numpy, is_object, is_scalar, is_static, to_python, type_of
from .wrapping import array_places, scalar_place

if TYPE_CHECKING:
    from .interpreter import Interpreter


_CONCATENATORS = {id(np.r_): "use np.concatenate", id(np.c_): "use np.column_stack"}


def get_item(it: Interpreter, value: Any, key: Any) -> Any:
    """`value[key]`."""
    if isinstance(value, ArrayRef):
        found = _array_item(it, value, key)
        if value.is_flat and isinstance(found, ArrayRef):
            known = found.current_known()
            return ArrayRef(found.read()) if known is None else ArrayRef(known=known.copy())
        return found
    if is_scalar(value):
        if key in ((), Ellipsis):
            return value
        return _array_item(it, ArrayRef(value), key)
    if is_object(value):
        found = it.find_special(value, "__getitem__")
        if found is not None:
            return it.call(found, (key,), {})
    if isinstance(value, Instance):
        raise RuleError(f"{value.cls.__name__!r} object is not subscriptable", kind=TypeError, code="E312")
    if python_type(value) is not None:
        raise RuleError(f"{type_of(value).__name__!r} object is not subscriptable", kind=TypeError, code="E312")
    if isinstance(value, DimRange):
        return _range_item(it, value, key)
    if isinstance(value, dict):
        from .expressions import static_key
        return it.native(value.__getitem__, static_key(it, key))
    if isinstance(value, (list, tuple, str, bytes, range)):
        return _sequence_item(it, value, key)
    if isinstance(value, Masked):
        return get_item(it, elements(value), key)
    if not is_static(key):
        raise RuleError(f"indexing {type(value).__name__} with run-time values is not supported", code="E202",
                        kind=NotImplementedError, help=_CONCATENATORS.get(id(value)))
    return from_numpy(it.native(lambda: value[to_python(key)]))


def _sequence_item(it: Interpreter, value: Any, key: Any) -> Any:
    if isinstance(key, slice):
        bounds = [None if b is None else it.static_int(b, "a bound of a slice of a list")
                  for b in (key.start, key.stop, key.step)]
        return it.native(value.__getitem__, slice(*bounds))
    if type_of(key) is float or isinstance(key, (str, tuple, list)) or key is None:
        raise RuleError(f"{type_of(value).__name__} indices must be integers or slices, not {type_of(key).__name__}",
                        kind=TypeError, code="E306")
    return it.native(lambda k: value[k], it.static_int(key, "an index of a list or tuple"))


def _range_item(it: Interpreter, value: DimRange, key: Any) -> Any:
    import operator

    from .operators import BY_FUNCTION, binary
    scaled = binary(it, BY_FUNCTION[operator.mul], key, value.step)
    return binary(it, BY_FUNCTION[operator.add], value.start, scaled)


# ---------------------------------------------------------------------------------------------------------------
# an index, taken apart


@dataclass
class Index:
    """A complete index of an array.

    items, scalars: the basic part, as `load` takes them (axes with an array index are whole Spans in it).
    arrays: index arrays by the axis of the basic part's result; `place`: where their axes go, None for first.
    """

    items: tuple[Item, ...]
    scalars: tuple[Value, ...]
    arrays: dict[int, Any]
    place: int | None

    @property
    def is_basic(self) -> bool:
        return not self.arrays

    def basic_is_whole(self, shape: tuple[Any, ...]) -> bool:
        """Whether the basic part is the array as it is."""
        return len(self.items) == len(shape) and all(
            isinstance(i, Span) and i.start == 0 and i.step == 1 and i.size == d for i, d in zip(self.items, shape))


@dataclass(frozen=True)
class IndexView(View):
    """What a basic index gives: a view."""

    index: Index
    key: Any

    def read(self, base: Value) -> Value:
        return ops.load(base, *self.index.scalars, index=self.index.items)

    def read_known(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        return np.asarray(base[to_python(self.key)]) if is_static(self.key) else None

    def write(self, base: Value, part: Value) -> Value | None:
        return ops.store(base, part, *self.index.scalars, index=self.index.items)


def _array_item(it: Interpreter, ref: ArrayRef, key: Any) -> Any:
    if is_static(ref) and is_static(key):
        return _known_item(it, ref, key)
    masked = _runtime_mask(it, ref, key)
    if masked is not None:
        return masked
    index = parse_index(it, ref.shape, key)
    if index.is_basic:
        view = IndexView(index, key)
        if not all(isinstance(item, At) for item in index.items) or _has_ellipsis(key):
            return ArrayRef.of_view(ref, view, view.read(ref.read()),
                                    layout=of_index(ref.layout, index.items, ref.shape))
        return view.read(ref.read())
    result = read_advanced(it, ref.read(), index)
    return ArrayRef(result) if result.rank else result


def _known_item(it: Interpreter, ref: ArrayRef, key: Any) -> Any:
    known = ref.current_known()
    assert known is not None
    result = it.native(lambda: known[to_python(key)])
    if not isinstance(result, np.ndarray) or (result.ndim == 0 and not _has_ellipsis(key)):
        return from_numpy(result)
    index = parse_index(it, ref.shape, key)
    if index.is_basic:
        return ArrayRef.of_view(ref, IndexView(index, key), None, layout=of_index(ref.layout, index.items, ref.shape))
    return from_numpy(result)


def _has_ellipsis(key: Any) -> bool:
    """`x[..., 0]` is an array without dimensions, a view, where `x[0]` is a scalar."""
    return key is Ellipsis or (isinstance(key, tuple) and any(part is Ellipsis for part in key))


@dataclass(frozen=True)
class MaskedKey:
    """`[1:, mask, 0]`: an index with one mask that is known at run time, among ints, slices, newaxis and `...`.

    whole: the same with slices in the place of the mask.  axis: the mask's first axis in what `whole` gives, and
    own_axis in the array itself.  place: where NumPy puts the selected elements: first, where ints stand apart.
    """

    mask: ArrayRef
    whole: tuple[Any, ...]
    axis: int
    own_axis: int
    place: int


def masked_key(rank: int, key: Any) -> MaskedKey | None:
    """Such an index of an array of that rank; None for others."""
    parts = list(key) if isinstance(key, tuple) else [key]
    masks = [k for k, part in enumerate(parts) if _is_runtime_mask(part)]
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if len(masks) != 1 or len(dots) > 1 or any(_is_advanced(p) for k, p in enumerate(parts) if k not in masks + dots):
        return None
    mask = parts[masks[0]]
    taken = mask.rank - 1 + sum(part is not None and part is not Ellipsis for part in parts)
    if taken > rank:
        return None
    if dots:
        parts[dots[0] + 1:dots[0] + 1] = [slice(None)] * (rank - taken)
    at = next(k for k, part in enumerate(parts) if part is mask)
    before = [part for part in parts[:at] if part is not Ellipsis]
    kept = [part for part in before if part is None or isinstance(part, slice)]
    advanced = [k for k, part in enumerate(parts) if not (part is None or part is Ellipsis or isinstance(part, slice))]
    together = advanced[-1] - advanced[0] == len(advanced) - 1
    whole = (*before, *(slice(None),) * mask.rank, *(part for part in parts[at + 1:] if part is not Ellipsis))
    return MaskedKey(mask, whole, len(kept), len(before) - before.count(None), len(kept) if together else 0)


def masked_array(it: Interpreter, ref: ArrayRef, key: MaskedKey) -> ArrayRef:
    """What the mask selects from: a view whose first axes are those of the mask."""
    it.demand(key.mask)
    _check_mask(it, ref.shape, key.mask.shape, key.own_axis)
    rest = get_item(it, ref, key.whole)
    assert isinstance(rest, ArrayRef)
    if key.axis == 0:
        return rest
    axes = tuple(range(key.axis, key.axis + key.mask.rank))
    moved = it.call_numpy(np.moveaxis, (rest, axes, tuple(range(key.mask.rank))), {})
    assert isinstance(moved, ArrayRef)
    return moved


def _runtime_mask(it: Interpreter, ref: ArrayRef, key: Any) -> Masked | None:
    """`x[mask]` or `x[mask, 1:, 2]` with a mask known at run time, whose elements come first."""
    found = masked_key(ref.rank, key)
    if found is None or found.place:
        return None
    return Masked(masked_array(it, ref, found).read(), found.mask.read(), it.here)


def _is_runtime_mask(part: Any) -> bool:
    return isinstance(part, ArrayRef) and part.rank > 0 and part.dtype == "bool" and not is_static(part)


def _is_advanced(part: Any) -> bool:
    return isinstance(part, (ArrayRef, np.ndarray, list, tuple, bool, np.bool_, Masked)) or (
        is_scalar(part) and part.type.kind == "b") or type_of(part) is bool


def read_advanced(it: Interpreter, array: Value, index: Index) -> Value:
    """The elements that index arrays select, in NumPy's order of axes."""
    if not index.basic_is_whole(array.shape):
        array = ops.load(array, *index.scalars, index=index.items)
    axes = tuple(index.arrays)
    arrays = index_arrays(it, array.shape, index)
    rank = arrays[0].rank
    result = ops.gather(array, *arrays, axes=axes)
    if not index.place:
        return result
    order = (*range(rank, rank + index.place), *range(rank), *range(rank + index.place, result.rank))
    return ops.transpose(result, axes=order)


def index_arrays(it: Interpreter, shape: tuple[Any, ...], index: Index) -> list[Value]:
    """The index arrays as int64 values of one shape, wrapped and checked."""
    arrays = [array_places(it, a, axis, shape[axis]) for axis, a in index.arrays.items()]
    try:
        return broadcast_together(*arrays)
    except RuleError as problem:
        if problem.kind not in (None, ValueError):
            raise
        shapes = " ".join(str(a.shape) for a in arrays)
        raise RuleError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}",
                        kind=IndexError, code="E306") from problem


# ---------------------------------------------------------------------------------------------------------------
# parsing


def parse_index(it: Interpreter, shape: tuple[Any, ...], key: Any) -> Index:
    """NumPy's reading of an index.  IndexError with NumPy's words where it is none."""
    parts = list(key) if isinstance(key, tuple) else [key]
    parts = [_normal_part(it, part) for part in parts]
    taken = sum(len(part.shape) if _is_mask(part) else part is not None and part is not Ellipsis for part in parts)
    if sum(part is Ellipsis for part in parts) > 1:
        raise RuleError("an index can only have a single ellipsis ('...')", kind=IndexError, code="E306")
    if taken > len(shape):
        raise RuleError(f"too many indices for array: array is {len(shape)}-dimensional, but {taken} were indexed",
                        kind=IndexError, code="E306")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    at = next(k for k, part in enumerate(parts) if part is Ellipsis)
    parts[at + 1:at + 1] = [slice(None)] * (len(shape) - taken)      # after the `...`, which parts arrays even if empty
    return _assemble(it, shape, parts)


def _normal_part(it: Interpreter, part: Any) -> Any:
    """One entry of an index: None, Ellipsis, a slice, an int (of any kind) or an array (known or not)."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, (int, np.integer)):
        return int(part)
    if isinstance(part, (range, DimRange, Iterator)):
        part = iterate(it, part)
    if isinstance(part, (list, tuple)):
        part = _array_of(it, part)
    if isinstance(part, ArrayRef) and part.rank and (known := part.current_known()) is not None:
        part = known
    if isinstance(part, np.ndarray):
        if part.size == 0 and part.dtype.kind == "f":
            part = part.astype(np.int64)
        if part.ndim == 0 and part.dtype.kind in "iu":
            return int(part)
        if part.dtype.kind not in "iub":
            raise RuleError("arrays used as indices must be of integer (or boolean) type", kind=IndexError, code="E306")
        return part
    if isinstance(part, Masked):
        part = elements(part)
    if isinstance(part, ArrayRef) and not (part.dtype == "bool" and not part.rank):
        if part.type.kind not in "iub":
            raise RuleError("arrays used as indices must be of integer (or boolean) type", kind=IndexError, code="E306")
        return part
    if type_of(part) is bool or (isinstance(part, (ArrayRef, Var, Const)) and part.dtype == "bool"):
        it.demand(part)
        raise RuleError("a bool known only at run time as an index gives a shape that depends on it", code="E311",
                        kind=TypeError)
    if (isinstance(part, (DimExpr, Weak)) and type_of(part) is int) or (is_scalar(part) and part.type.kind in "iu"):
        return part
    raise RuleError("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
                    "arrays are valid indices", kind=IndexError, code="E306")


def _array_of(it: Interpreter, items: Any) -> Any:
    if is_static(items):
        return it.native(np.asarray, to_python(items))
    from .numpy_calls import lower
    return ArrayRef(as_value(lower(list(items))))


def _is_mask(part: Any) -> bool:
    return isinstance(part, (np.ndarray, ArrayRef)) and part.dtype == "bool"


def _indices_of(mask: Any) -> tuple[Any, ...]:
    """The index arrays that a mask stands for."""
    if isinstance(mask, ArrayRef):
        return tuple(map(ArrayRef, mask_indices(mask.read())))
    return mask.nonzero() if mask.ndim else (np.zeros(int(mask), dtype=np.int64),)


def _is_array(part: Any) -> bool:
    return isinstance(part, (np.ndarray, ArrayRef))


def _is_int(part: Any) -> bool:
    return is_dim(part) or isinstance(part, Weak) or is_scalar(part)


def _assemble(it: Interpreter, shape: tuple[Any, ...], parts: list[Any]) -> Index:
    items: list[Item] = []
    scalars: list[Value] = []
    arrays: dict[int, Any] = {}
    has_arrays = any(map(_is_array, parts))
    advanced: list[int] = []              # positions of array entries; ints count among them beside arrays
    place: int | None = None
    axis = kept = 0
    for position, part in enumerate(parts):
        if part is Ellipsis:
            continue
        if part is None:
            items.append(New())
            kept += 1
            continue
        if _is_array(part) or (has_arrays and _is_int(part)):
            if place is None:
                place = kept - len(arrays)
            advanced.append(position)
        if isinstance(part, slice):
            item, start = span_of(it, part, shape[axis])
            items.append(item)
            scalars += start
            kept += 1
            axis += 1
        elif _is_mask(part):
            _check_mask(it, shape, part.shape, axis)
            found = _indices_of(part)
            if not len(part.shape):            # x[True]: a new axis of length 1 or 0
                items.append(New())
                arrays[kept] = found[0]
                kept += 1
                continue
            for one in found:
                items.append(Span(0, shape[axis]))
                arrays[kept] = one
                kept += 1
                axis += 1
        elif _is_array(part):
            items.append(Span(0, shape[axis]))
            arrays[kept] = part
            kept += 1
            axis += 1
        else:
            scalars.append(scalar_place(it, part, axis, shape[axis]))
            items.append(At())
            axis += 1
    together = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
    return Index(tuple(items), tuple(scalars), arrays, place if together else None)


def _check_mask(it: Interpreter, shape: tuple[Any, ...], mask: tuple[Any, ...], axis: int) -> None:
    for k, length in enumerate(mask):
        if not it.assumptions.are_equal(shape[axis + k], length):
            size, own = it.assumptions.example(shape[axis + k]), it.assumptions.example(length)
            raise RuleError(f"boolean index did not match indexed array along axis {axis + k}; size of axis is "
                            f"{shape[axis + k] if size is None else size} but size of corresponding boolean axis is "
                            f"{length if own is None else own}", kind=IndexError, code="E305")
