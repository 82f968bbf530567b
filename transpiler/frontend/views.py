"""Which NumPy functions give a view of their argument, or the argument itself, and how to write through such a view.

Where everything is known while transpiling, NumPy itself tells: its result shares memory with the argument or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.einsum import parse
from ..ops.spelling import find_spelling, is_value, spelling_key
from . import layout
from .values import ArrayRef, FunctionView, from_numpy, is_static, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter

# NumPy functions (and methods) whose result is a view of their first argument.
_VIEWS: tuple[Any, ...] = (
    np.transpose, np.ndarray.T, np.ndarray.mT, np.matrix_transpose, np.ndarray.transpose, np.reshape,
    np.ndarray.reshape, np.ravel, np.ndarray.ravel, np.swapaxes, np.ndarray.swapaxes, np.moveaxis, np.rollaxis,
    np.squeeze, np.ndarray.squeeze, np.expand_dims, np.broadcast_to, np.diagonal, np.ndarray.diagonal, np.flip,
    np.fliplr, np.flipud, np.rot90, np.real, np.imag, np.ndarray.real, np.ndarray.imag, np.split, np.array_split,
    np.hsplit, np.vsplit, np.dsplit, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays, np.diag,
    np.ascontiguousarray, np.asfortranarray,
)
VIEWS: frozenset[Any] = frozenset(_VIEWS)
# Functions that give the argument itself where it is already what they are to give.
_SAME: tuple[Any, ...] = (
    np.asarray, np.asanyarray, np.asarray_chkfinite, np.require, np.real_if_close, np.real, np.ndarray.real,
    np.ndarray.conj, np.ndarray.conjugate, np.diff,
)
SAME: frozenset[Any] = frozenset(_SAME)
_SAME_UNLESS_COPIED: tuple[Any, ...] = (np.array, np.ndarray.astype, np.astype)
SAME_UNLESS_COPIED: frozenset[Any] = frozenset(_SAME_UNLESS_COPIED)
# Functions that give an array also where it has no axes, which other names may share and that can be written to; from
# all others NumPy gives a scalar then.
_ARRAYS: tuple[Any, ...] = (
    np.reshape, np.broadcast_to, np.where, np.select, np.array, np.asarray, np.asanyarray, np.asarray_chkfinite,
    np.require, np.copy, np.zeros, np.ones, np.full, np.empty, np.zeros_like, np.ones_like, np.full_like, np.empty_like,
    np.roll, np.isin, np.real_if_close, np.resize, np.block, np.pad, np.tile, np.cross, np.tensordot,
    np.linalg.tensordot, np.linalg.tensorsolve, ("scipy.special", "polygamma"),
)
ARRAYS: frozenset[Any] = frozenset(_ARRAYS)
ARRAYS_OF_ARRAYS: frozenset[Any] = frozenset((np.ndarray.copy, np.ndarray.astype, np.astype))


def of_result(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any | None:
    """What a NumPy function gives, where that is its argument or views of it; None where it is new.  `result` is what
    its spelling gives."""
    if not _hashable(key) or not args:
        return None
    if key is np.einsum:
        return _of_einsum(args, kwargs, result)
    if key is np.meshgrid and not kwargs.get("copy", True):
        raise RuleError("np.meshgrid with copy=False is not supported", code="E203", kind=NotImplementedError,
                        help="leave it out")
    base = args[0]
    if not isinstance(base, ArrayRef):
        return None
    if key in SAME_UNLESS_COPIED and kwargs.get("copy", True) in (False, None):
        if result is base.read():
            return base
        if is_value(result) and result.dtype == base.dtype:
            raise RuleError("copy=False that gives a view is not supported", code="E203", kind=NotImplementedError,
                            help="reshape the array itself")
        return None
    if key in SAME and result is base.read():
        return base
    if key in VIEWS and not (key is np.diag and base.rank == 1):
        return _views(key, base, args[1:], kwargs, result)
    return None


def gives_array(key: Any, args: Sequence[Any]) -> bool:
    """Whether a result without axes is an array and no scalar."""
    known = spelling_key(key)
    return known in ARRAYS or (known in ARRAYS_OF_ARRAYS and bool(args) and isinstance(args[0], ArrayRef))


def makes_views(key: Any) -> bool:
    return _hashable(key) and key in VIEWS


def _hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _views(key: Any, base: ArrayRef, rest: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """The result of a function that gives a view (or several)."""
    from .numpy_calls import lower
    lowered, options = [lower(a) for a in rest], {k: lower(v) for k, v in kwargs.items()}
    function = find_spelling(key)
    assert function is not None
    options_known = is_static(rest) and is_static(kwargs)

    def reference(array: Any) -> Any:
        called = key if callable(key) else lambda x: key.__get__(x)
        return called(array, *map(to_python, rest), **{k: to_python(v) for k, v in kwargs.items()})

    def part(k: int | None) -> FunctionView:
        pick = (lambda parts: parts) if k is None else lambda parts: parts[k]
        return FunctionView(lambda value: pick(function(value, *lowered, **options)),
                            (lambda array: pick(reference(array))) if options_known else None,
                            inverse_of(key, k, lowered, options))

    def made(k: int | None, value: Value) -> Any:
        ref = ArrayRef.of_view(base, part(k), value, layout=layout.of_view(key, base, value.rank),
                               is_certain=not layout.may_copy(key, base) and not _turns_order(key, base, rest, kwargs))
        if key in layout.READ_ONLY or (key in (np.imag, np.ndarray.imag) and base.type.kind != "c"):
            ref.owner = "read-only"
        return ref

    if is_value(result):
        return made(None, result)
    return type(result)(made(k, value) for k, value in enumerate(result))


def flat_of(array: ArrayRef) -> ArrayRef:
    """`array.flat`: writes to it go to the array, in whatever order that is in memory."""
    view = FunctionView(_spelled(np.ravel), np.ravel, inverse_of(np.ravel, None, (), {}))
    flat = ArrayRef.of_view(array, view, None if array.current_known() is not None else view.read(array.read()))
    flat.is_certain, flat.is_flat = True, True
    return flat


def _turns_order(key: Any, base: ArrayRef, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether elements are asked for in another order than C's, so that NumPy may have to copy."""
    if key in (np.ascontiguousarray, np.asfortranarray):
        return key is np.asfortranarray and base.rank > 1
    order = kwargs.get("order")
    if key in (np.ravel, np.ndarray.ravel) and rest:
        order = rest[0]
    elif key is np.reshape and len(rest) > 1:
        order = rest[1]
    return base.rank > 1 and order not in (None, "C") and not (order in ("A", "K") and base.layout == "C")


def _of_einsum(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any | None:
    """`np.einsum("ii->i", a)` is a view: nothing is summed."""
    if len(args) != 2 or not isinstance(args[0], str) or not isinstance(args[1], ArrayRef) or not is_value(result):
        return None
    subscripts, base = parse(args[0]), args[1]
    (labels,), output = subscripts.inputs, subscripts.output
    if output is None:
        output = tuple(c for c in sorted(labels, key=str) if labels.count(c) == 1)
    if not set(labels) <= set(output) or result.dtype != base.dtype:
        return None
    function = find_spelling(np.einsum)
    assert function is not None
    view = FunctionView(lambda value: function(args[0], value, **kwargs),
                        lambda array: np.einsum(args[0], array))
    return ArrayRef.of_view(base, view, result) if result.rank else result


# ---------------------------------------------------------------------------------------------------------------
# where all is known


def of_known(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any,
             held: Sequence[tuple[ArrayRef, np.ndarray[Any, Any]]]) -> Any:
    """The result of NumPy itself; what shares memory with an argument is that argument or a view of it.

    held: the arguments that are arrays, with what NumPy was given for them.
    """
    if isinstance(result, np.ndarray):
        for ref, array in held:
            if np.may_share_memory(result, array):
                return _known_view(key, args, kwargs, ref, array, result, None)
        made = from_numpy(result) if result.ndim or result.dtype.kind not in "biufc" else ArrayRef(known=result)
        if isinstance(made, ArrayRef) and _is_read_only(key, result):
            made.owner = "read-only"
        return made
    if type(result) in (list, tuple) and any(isinstance(x, np.ndarray) for x in result):
        found: list[Any] = []
        for k, x in enumerate(result):
            shared = [(ref, a) for ref, a in held if isinstance(x, np.ndarray) and x.ndim and np.may_share_memory(x, a)]
            found.append(_known_view(key, args, kwargs, *shared[0], x, k) if shared else from_numpy(x))
        return type(result)(found)
    return from_numpy(result)


def _known_view(key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ref: ArrayRef, array: np.ndarray[Any, Any],
                result: np.ndarray[Any, Any], k: int | None) -> ArrayRef:
    place, own = result.__array_interface__, array.__array_interface__
    if key not in layout.READ_ONLY and all(place[part] == own[part] for part in ("data", "shape", "strides",
                                                                                 "typestr")):
        return ref
    from .numpy_calls import lower

    def again(base: np.ndarray[Any, Any]) -> Any:
        found = key(*(base if x is ref else to_python(x) for x in args),
                    **{name: base if x is ref else to_python(x) for name, x in kwargs.items()})
        return found if k is None else found[k]

    function = find_spelling(key) if args and args[0] is ref else None
    lowered, options = [lower(a) for a in args[1:]], {name: lower(v) for name, v in kwargs.items()}

    def read(value: Value) -> Value:
        if function is None:
            raise RuleError("a view that NumPy makes here of an array that is known while transpiling is needed after "
                            "the array was written to", code="E124", kind=NotImplementedError,
                            help="copy it, or take it by an index")
        found = function(value, *lowered, **options)
        return found if k is None else found[k]         # type: ignore[no-any-return]

    inverse = inverse_of(key, k, lowered, options) if function is not None else None
    view = ArrayRef.of_view(ref, FunctionView(read, again, inverse), None, layout=layout.of_array(result))
    if _is_read_only(key, result):
        view.owner = "read-only"
    return view


def _is_read_only(key: Any, result: np.ndarray[Any, Any]) -> bool:
    # NumPy warns where flags of some broadcast arrays are read.
    return (_hashable(key) and key in layout.READ_ONLY) or (key is not np.meshgrid and not result.flags.writeable)


# ---------------------------------------------------------------------------------------------------------------
# views written through


def _reshaped(whole: Value, part: Value, *args: Any, **kwargs: Any) -> Value:
    return ops.reshape(part, shape=whole.shape)


def _transposed(whole: Value, part: Value, *axes: Any, **kwargs: Any) -> Value:
    order = kwargs.get("axes", axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes or None)
    rank = whole.rank
    order = tuple(reversed(range(rank))) if order is None or order == (None,) else tuple(a % rank for a in order)
    return ops.transpose(part, axes=tuple(order.index(k) for k in range(rank)))


def _spelled(key: Any) -> Callable[..., Any]:
    function = find_spelling(key)
    assert function is not None
    return function


def _same_again(key: Any) -> Callable[..., Value]:
    """A view that undoes itself."""

    def back(whole: Value, part: Value, *args: Any, **kwargs: Any) -> Value:
        return _spelled(key)(part, *args, **kwargs)         # type: ignore[no-any-return]

    return back


def _moved_back(whole: Value, part: Value, source: Any, destination: Any) -> Value:
    return _spelled(np.moveaxis)(part, destination, source)         # type: ignore[no-any-return]


def _rolled_back(whole: Value, part: Value, axis: Any, start: Any = 0) -> Value:
    order = list(range(whole.rank))
    here, place = axis % whole.rank, start + whole.rank if start < 0 else start
    order.remove(here)
    order.insert(place - 1 if here < place else place, here)
    return ops.transpose(part, axes=tuple(order.index(k) for k in range(whole.rank)))


def _turned_back(whole: Value, part: Value, k: Any = 1, axes: Any = (0, 1)) -> Value:
    return _spelled(np.rot90)(part, -k, axes)         # type: ignore[no-any-return]


def _with_real(whole: Value, part: Value) -> Value:
    return ops.make_complex(part, ops.imag(whole))


def _with_imag(whole: Value, part: Value) -> Value:
    return ops.make_complex(ops.real(whole), part)


_INVERSES: dict[Any, Callable[..., Value]] = {
    np.reshape: _reshaped, np.ndarray.reshape: _reshaped, np.ravel: _reshaped, np.ndarray.ravel: _reshaped,
    np.squeeze: _reshaped, np.ndarray.squeeze: _reshaped, np.expand_dims: _reshaped, np.atleast_1d: _reshaped,
    np.atleast_2d: _reshaped, np.atleast_3d: _reshaped, np.ascontiguousarray: _reshaped,
    np.asfortranarray: _reshaped, np.transpose: _transposed, np.ndarray.transpose: _transposed,
    np.ndarray.T: _transposed, np.ndarray.mT: _same_again(np.matrix_transpose),
    np.matrix_transpose: _same_again(np.matrix_transpose), np.swapaxes: _same_again(np.swapaxes),
    np.ndarray.swapaxes: _same_again(np.ndarray.swapaxes), np.flip: _same_again(np.flip),
    np.fliplr: _same_again(np.fliplr), np.flipud: _same_again(np.flipud), np.moveaxis: _moved_back,
    np.rollaxis: _rolled_back, np.rot90: _turned_back, np.real: _with_real, np.ndarray.real: _with_real,
    np.imag: _with_imag, np.ndarray.imag: _with_imag,
}
# Along which axis the parts lie, by the other arguments and the rank.
_SPLITS: dict[Any, Callable[[Sequence[Any], dict[str, Any], int], int]] = {
    np.split: lambda rest, options, rank: options.get("axis", rest[1] if len(rest) > 1 else 0),
    np.array_split: lambda rest, options, rank: options.get("axis", rest[1] if len(rest) > 1 else 0),
    np.hsplit: lambda rest, options, rank: 1 if rank > 1 else 0, np.vsplit: lambda rest, options, rank: 0,
    np.dsplit: lambda rest, options, rank: 2,
}


def inverse_of(key: Any, k: int | None, rest: Sequence[Any],
               options: dict[str, Any]) -> Callable[[Value, Value], Value] | None:
    """How the elements of a view (or of the k-th of several) go back into its base."""
    if k is None:
        inverse = _INVERSES.get(key)
        # The option says how elements are read, not where they are.
        return None if inverse is None or options.get("order") not in (None, "C") else (
            lambda whole, new: inverse(whole, new, *rest, **options))
    if key not in _SPLITS:
        return None

    def joined(whole: Value, new: Value) -> Value:
        parts = list(_spelled(key)(whole, *rest, **options))
        parts[k] = new
        return _spelled(np.concatenate)(parts, _SPLITS[key](rest, options, whole.rank))  # type: ignore[no-any-return]

    return joined
