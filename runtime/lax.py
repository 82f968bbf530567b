"""JAX's names for control flow.  In transpiled code they are not needed: write `if`, `for` and `while`.

Signatures and meaning are JAX's.  Called from Python these functions run as Python does.  Inside a transpiled function
they are the loops and branches that they are written with here, so those become loops and branches of the generated
code, which can be differentiated and batched like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import tree
from .array import as_array
from .transforms import stop_gradient
from .transpiler.frontend.stacking import Growing, stacked, stacked_none

__all__ = ["associative_scan", "cond", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
           "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "fori_loop", "map",
           "scan", "select", "stop_gradient", "switch", "while_loop"]

_ABSENT: Any = object()

# ---------------------------------------------------------------------------------------------------------------
# choices


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any,
         operand: Any = _ABSENT, linear: Any = None) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands).  operand: one more, by name; linear: not needed."""
    if operand is not _ABSENT:
        operands = (*operands, operand)
    if pred:
        return true_fun(*operands)
    return false_fun(*operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _ABSENT) -> Any:
    """branches[index](*operands), the index clamped to those there are.  ValueError: there are none."""
    if len(branches) == 0:
        raise ValueError("Empty branch sequence")
    if operand is not _ABSENT:
        operands = (*operands, operand)
    return branches[max(0, min(int(index), len(branches) - 1))](*operands)


def _switch(index: Any, branches: Any, *operands: Any, operand: Any = _ABSENT) -> Any:
    if len(branches) == 0:
        raise ValueError("Empty branch sequence")
    if operand is not _ABSENT:
        operands = (*operands, operand)
    for k in range(len(branches) - 1):
        if index <= k:
            return branches[k](*operands)
    return branches[len(branches) - 1](*operands)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elements of `on_true` where `pred`, else of `on_false`; a scalar `pred` chooses as a whole.

    TypeError for shapes that differ.
    """
    if np.shape(on_true) != np.shape(on_false):
        raise TypeError(f"select cases must have the same shapes, got {np.shape(on_true)} and {np.shape(on_false)}")
    if np.shape(pred) not in ((), np.shape(on_true)):
        raise TypeError(f"select `which` must be scalar or have the same shape as cases, got {np.shape(pred)}")
    return as_array(np.where(pred, on_true, on_false))


def _select(pred: Any, on_true: Any, on_false: Any) -> Any:
    return np.where(pred, on_true, on_false)


# ---------------------------------------------------------------------------------------------------------------
# loops


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *,
              unroll: int | bool | None = None) -> Any:
    """The last of val = body_fun(i, val) for i from `lower` to `upper` - 1.  unroll: not needed."""
    val = init_val
    for i in range(int(lower), int(upper)):
        val = body_fun(i, val)
    return val


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The first of val = body_fun(val) for which cond_fun(val) is false."""
    val = init_val
    while cond_fun(val):
        val = body_fun(val)
    return val


def scan(f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         unroll: int | bool = 1, _split_transpose: bool = False) -> tuple[Any, Any]:
    """(carry, ys) of carry, y = f(carry, x) over the first axis of the leaves of `xs`; ys are stacked.

    length: the number of steps, where `xs` has no leaves.  reverse: from the last x to the first; ys stay beside their
    x.  unroll, _split_transpose: not needed.  ValueError for lengths that disagree.
    """
    lengths = {len(leaf) for leaf in tree.leaves(xs)} | ({int(length)} if length is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"scan got lengths {sorted(lengths)}: the leaves of `xs` and `length` must agree on one")
    steps = range(lengths.pop())
    if not steps:
        x = tree.map(lambda leaf: np.zeros(np.shape(leaf)[1:], np.asarray(leaf).dtype), xs)
        return init, tree.map(as_array, stacked_none(lambda c, x: f(c, x)[1], init, x))
    carry, ys = init, []
    for k in reversed(steps) if reverse else steps:
        carry, y = f(carry, tree.map(lambda leaf, k=k: leaf[k], xs))
        ys.append(y)
    ordered = ys[::-1] if reverse else ys
    return carry, tree.map(lambda *leaves: as_array(np.stack(leaves)), *ordered)


def _scan(f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False, unroll: int = 1,
          _split_transpose: bool = False) -> Any:
    lengths = [len(leaf) for leaf in tree.leaves(xs)]
    if length is not None:
        lengths.append(length)
    if not lengths or any(other != lengths[0] for other in lengths):
        raise ValueError("scan got no length, or several: the leaves of `xs` and `length` must agree on one")
    steps = lengths[0]
    if isinstance(steps, int) and steps == 0:
        x = tree.map(lambda leaf: np.zeros(np.shape(leaf)[1:], np.asarray(leaf).dtype), xs)
        return init, stacked_none(lambda c, x: f(c, x)[1], init, x)
    carry, ys = init, Growing()
    for step in range(steps):
        k = steps - 1 - step if reverse else step
        carry, y = f(carry, tree.map(lambda leaf, k=k: leaf[k], xs))
        ys.append(y)
    return carry, stacked(ys, reverse)


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """The stacked results of f over the first axis of the leaves of `xs`.  batch_size: not needed."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def _map(f: Any, xs: Any, *, batch_size: int | None = None) -> Any:
    return _scan(lambda _, x: (None, f(x)), None, xs)[1]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """e0, fn(e0, e1), fn(fn(e0, e1), e2), ... along `axis` of the leaves of `elems`; from the end if `reverse`.

    fn gets and gives trees like `elems`, of any length along the axis: here of length 1, one after the other.
    TypeError: `fn` cannot be called; ValueError for lengths that disagree.
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves = tree.leaves(elems)
    if any(np.shape(leaf)[axis] != np.shape(leaves[0])[axis] for leaf in leaves):
        raise ValueError("Array inputs to associative_scan must have the same first dimension.")
    count = np.shape(leaves[0])[axis]
    found = tree.map(lambda leaf: np.array(leaf), elems)
    for step in range(1, count):
        k = count - 1 - step if reverse else step
        before = tree.map(lambda leaf, k=k: _part(leaf, k + 1 if reverse else k - 1, axis), found)
        both = fn(before, tree.map(lambda leaf, k=k: _part(leaf, k, axis), found))
        for place, value in zip(tree.leaves(found), tree.leaves(both)):
            np.moveaxis(place, axis, 0)[k] = np.moveaxis(value, axis, 0)[0]
    return tree.map(as_array, found)


def _part(leaf: Any, k: Any, axis: int) -> Any:
    """The elements at k along an axis, which stays."""
    return np.expand_dims(np.take(leaf, k, axis), axis)


def _associative_scan(fn: Any, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    leaves = tree.leaves(elems)
    count = np.shape(leaves[0])[axis]
    if any(np.shape(leaf)[axis] != count for leaf in leaves):
        raise ValueError("Array inputs to associative_scan must have the same first dimension.")
    if isinstance(count, int) and count == 0:
        return elems
    moved = tree.map(lambda leaf: np.moveaxis(leaf, axis, 0), elems)

    def first_to_axis(leaf: Any) -> Any:
        return np.moveaxis(leaf[None], 0, axis)

    def step(before: Any, x: Any) -> Any:
        both = fn(tree.map(first_to_axis, before), tree.map(first_to_axis, x))
        row = tree.map(lambda leaf: np.moveaxis(leaf, axis, 0)[0], both)
        return row, row

    start = count - 1 if reverse else 0
    first = tree.map(lambda leaf: leaf[start], moved)
    rest = tree.map(lambda leaf: leaf[:-1] if reverse else leaf[1:], moved)
    _, rows = _scan(step, first, rest, None, reverse)
    ends = tree.map(lambda leaf: leaf[None], first)

    def joined(end: Any, row: Any) -> Any:
        return np.moveaxis(np.concatenate([row, end] if reverse else [end, row]), 0, axis)

    return tree.map(joined, ends, rows)


# ---------------------------------------------------------------------------------------------------------------
# slices with starts known only at run time


def _clamped(start: Any, size: Any, axis: Any) -> Any:
    """A start as JAX takes it: negative ones count from the end, then so that the slice lies inside."""
    start = start + axis if start < 0 else start
    return max(0, min(start, axis - size))


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """The part of `operand` of shape `slice_sizes` that begins at `start_indices`, moved so that it lies inside.

    ValueError for another number of indices or sizes than of axes; TypeError for larger sizes.
    """
    _check_slice(np.shape(operand), len(start_indices), slice_sizes)
    starts = [_clamped(int(s), k, n) for s, k, n in zip(start_indices, slice_sizes, np.shape(operand))]
    return as_array(np.array(operand[tuple(slice(s, s + k) for s, k in zip(starts, slice_sizes))]))


def _dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Any) -> Any:
    shape = np.shape(operand)
    _check_slice(shape, len(start_indices), slice_sizes)
    starts = [_clamped(int(start_indices[a]), slice_sizes[a], shape[a]) for a in range(len(shape))]
    return operand[tuple([slice(s, s + k) for s, k in zip(starts, slice_sizes)])].copy()


def _check_slice(shape: Any, count: int, sizes: Any) -> None:
    if count != len(shape):
        raise ValueError(f"Length of slice indices must match number of operand dimensions ({count} vs {len(shape)})")
    if len(sizes) != len(shape):
        raise ValueError(f"slice_sizes must have as many entries as the operand has axes, got {len(sizes)} for "
                        f"{len(shape)}")
    if any(k > n for k, n in zip(sizes, shape)):
        raise TypeError("slice_sizes must be less than or equal to operand shape")


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """A copy of `operand` with `update` at `start_indices`, moved so that it lies inside.

    ValueError for another number of indices than of axes; TypeError for ranks or dtypes that differ, and for updates
    larger than the operand.
    """
    _check_update(operand, update, len(start_indices))
    starts = [_clamped(int(s), k, n) for s, k, n in zip(start_indices, np.shape(update), np.shape(operand))]
    found = np.array(operand)
    found[tuple(slice(s, s + k) for s, k in zip(starts, np.shape(update)))] = update
    return as_array(found)


def _dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    _check_update(operand, update, len(start_indices))
    shape, sizes = np.shape(operand), np.shape(update)
    starts = [_clamped(int(start_indices[a]), sizes[a], shape[a]) for a in range(len(shape))]
    found = operand.copy()
    found[tuple([slice(s, s + k) for s, k in zip(starts, sizes)])] = update
    return found


def _check_update(operand: Any, update: Any, count: int) -> None:
    if count != np.ndim(operand):
        raise ValueError(f"Length of slice indices must match number of operand dimensions ({count} vs "
                         f"{np.ndim(operand)})")
    if np.ndim(update) != np.ndim(operand):
        raise TypeError("dynamic_update_slice update must have the same rank as operand")
    if np.asarray(update).dtype != np.asarray(operand).dtype:
        raise TypeError("dynamic_update_slice requires arguments to have equal dtypes")
    if any(k > n for k, n in zip(np.shape(update), np.shape(operand))):
        raise TypeError("dynamic_update_slice update shape must be smaller than operand shape")


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """`dynamic_slice` along one axis."""
    axis = axis % np.ndim(operand)
    starts = [start_index if a == axis else 0 for a in range(np.ndim(operand))]
    sizes = [slice_size if a == axis else n for a, n in enumerate(np.shape(operand))]
    return dynamic_slice(operand, starts, sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """The element at `index` along one axis, which stays as one of length 1 if `keepdims`."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else np.squeeze(found, axis)


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Any:
    """`dynamic_update_slice` along one axis."""
    axis = axis % np.ndim(operand)
    return dynamic_update_slice(operand, update, [start_index if a == axis else 0 for a in range(np.ndim(operand))])


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Any:
    """A copy with `update` at `index` along one axis, which `update` has with length 1 or lacks."""
    axis = axis % np.ndim(operand)
    if np.ndim(update) != np.ndim(operand):
        update = np.expand_dims(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis)


_TRACED: tuple[tuple[Any, Any], ...] = (
    (select, _select), (switch, _switch), (scan, _scan), (map, _map), (associative_scan, _associative_scan),
    (dynamic_slice, _dynamic_slice), (dynamic_update_slice, _dynamic_update_slice))
for _public, _traced in _TRACED:
    _public.__gradsmith_traced__ = _traced
