"""np.pad in all its modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import check, size_value
from ..ir.dims import DimExpr, bounds, minimum
from ..ir.nodes import Value
from .base import RuleError
from .families import broadcast_to
from .numpy_creation import linspace
from .numpy_reductions import extremum
from .quantiles import median
from .shape import part
from .spelling import as_value, axis_of, cast, spelled, static_int
from .statistics import mean


def _widths(pad_width: Any, rank: int) -> list[tuple[Any, Any]]:
    """(before, after) for each axis, from an int, a pair, a list of pairs or a dict by axis."""
    if isinstance(pad_width, dict):
        found: list[tuple[Any, Any]] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            found[axis_of(axis, rank)] = _pair(width)
        return found
    return _per_axis(pad_width, rank)


def _pair(width: Any) -> tuple[Any, Any]:
    items = width if isinstance(width, (tuple, list)) else (width, width)
    return (items[0], items[-1]) if len(items) in (1, 2) else _mismatch(width)


def _mismatch(width: Any) -> Any:
    raise RuleError(f"unable to broadcast {width!r} to one pair for each axis", code="E301")


def _per_axis(widths: Any, rank: int) -> list[tuple[Any, Any]]:
    if isinstance(widths, np.ndarray):
        widths = widths.tolist()
    if not isinstance(widths, (tuple, list)):
        return [(widths, widths)] * rank
    if not any(isinstance(w, (tuple, list)) for w in widths):
        return [_pair(widths)] * rank
    pairs = [_pair(w) for w in widths]
    if len(pairs) == 1:
        return pairs * rank
    return pairs if len(pairs) == rank else _mismatch(widths)


def _backwards(x: Value, axis: int, start: Any, size: Any) -> Value:
    return ops.reverse(part(x, axis, start, size), axes=(axis,))


def _mirrored(x: Value, axis: int, before: int, after: int, mode: str, *, even: bool) -> Value:
    """reflect and symmetric: the axis mirrored at its ends, as often as it takes.  With even=False (reflect_type
    "odd") the mirrored part is also turned around the edge value."""
    skip = 1 if mode == "reflect" else 0
    while before > 0 or after > 0:
        length = x.shape[axis]
        if isinstance(length, int) and length - skip <= 0:
            return _edged(x, axis, before, after)      # one element has nothing else to mirror
        room = length - skip
        left = before if not isinstance(room, int) else min(before, room)
        right = after if not isinstance(room, int) else min(after, room)
        if not isinstance(room, int) and max(before, after) > (bounds(room)[0] or 0):
            check(ops.greater_equal(size_value(room), max(before, after)), "ValueError",
                  f"np.pad: mode {mode!r} with a width over {room} needs a size known while transpiling")
        pieces = [x]
        if left:
            piece = _backwards(x, axis, skip, left)
            if not even:
                piece = _turned(piece, part(x, axis, 0, 1))
            pieces.insert(0, piece)
        if right:
            piece = _backwards(x, axis, length - right - skip, right)
            if not even:
                piece = _turned(piece, part(x, axis, length - 1, 1))
            pieces.append(piece)
        x = ops.concatenate(*pieces, axis=axis)
        before, after = before - left, after - right
    return x


def _turned(piece: Value, edge: Value) -> Value:
    return broadcast_to(edge + edge, piece.shape) - piece


def _edged(x: Value, axis: int, before: Any, after: Any) -> Value:
    def copies(start: Any, count: Any) -> Value:
        shape = tuple(count if k == axis else d for k, d in enumerate(x.shape))
        return broadcast_to(part(x, axis, start, 1), shape)

    return ops.concatenate(copies(0, before), x, copies(x.shape[axis] - 1, after), axis=axis)


def _wrapped(x: Value, axis: int, before: int, after: int) -> Value:
    length = x.shape[axis]
    if not isinstance(length, int):
        if max(before, after) > (bounds(length)[0] or 0):
            check(ops.greater_equal(size_value(length), max(before, after)), "ValueError",
                  f"np.pad: mode 'wrap' with a width over {length} needs a size known while transpiling")
        return ops.concatenate(part(x, axis, length - before, before), x, part(x, axis, 0, after), axis=axis)
    whole = [x]
    while before > 0 or after > 0:
        left, right = min(before, length), min(after, length)
        whole = [part(x, axis, length - left, left), *whole, part(x, axis, 0, right)]
        before, after = before - left, after - right
    return ops.concatenate(*whole, axis=axis)


def _ramped(x: Value, axis: int, before: Any, after: Any, ends: tuple[Any, Any]) -> Value:
    """linear_ramp: from the end value up to the edge."""
    def ramp(start: Any, count: Any, end: Any) -> Value:
        edge = part(x, axis, start, 1)
        return linspace(as_value(end, x.dtype), ops.reshape(edge, shape=tuple(
            d for k, d in enumerate(edge.shape) if k != axis)), count, endpoint=False, dtype=x.dtype, axis=axis)

    pieces = [x]
    if before != 0:
        pieces.insert(0, ramp(0, before, ends[0]))
    if after != 0:
        pieces.append(ops.reverse(ramp(x.shape[axis] - 1, after, ends[1]), axes=(axis,)))
    return ops.concatenate(*pieces, axis=axis)


def _summarised(x: Value, axis: int, before: Any, after: Any, mode: str, lengths: tuple[Any, Any]) -> Value:
    """maximum, minimum, mean and median: one number for each side, of the `stat_length` elements next to it."""
    length = x.shape[axis]

    def side(count: Any, stat: Any, first: bool) -> Value:
        size = length if stat is None else minimum(stat, length)
        piece = part(x, axis, 0 if first else length - size, size)
        if mode in ("maximum", "minimum"):
            found = extremum(mode[:3], piece, axis, True, None, True)
        else:
            found = (mean if mode == "mean" else median)(piece, axis, keepdims=True)
            if x.type.kind in "iu":
                found = ops.rint(found)
        shape = tuple(count if k == axis else d for k, d in enumerate(x.shape))
        return broadcast_to(cast(found, x.dtype), shape)

    return ops.concatenate(side(before, lengths[0], True), x, side(after, lengths[1], False), axis=axis)


MODES = {"constant": {"constant_values"}, "edge": set(), "reflect": {"reflect_type"}, "symmetric": {"reflect_type"},
         "wrap": set(), "linear_ramp": {"end_values"}, "maximum": {"stat_length"}, "minimum": {"stat_length"},
         "mean": {"stat_length"}, "median": {"stat_length"}, "empty": set()}


@spelled(np.pad)
def numpy_pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Value:
    """Axis after axis, as NumPy does it.  Widths are static, or sizes where the mode allows."""
    x = as_value(array)
    if not isinstance(mode, str) or mode not in MODES:
        if callable(mode):
            raise RuleError("np.pad with a function as its mode is not supported", kind=NotImplementedError,
                            code="E202", help=f"use one of the modes {', '.join(MODES)}")
        raise RuleError(f"mode {mode!r} is not supported")
    unknown = set(options) - MODES[mode]
    if unknown:
        raise RuleError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    widths: list[tuple[Any, ...]] = [tuple(w if isinstance(w, DimExpr) else static_int(w, "pad_width") for w in pair)
              for pair in _widths(pad_width, x.rank)]
    if any(isinstance(w, int) and w < 0 for pair in widths for w in pair):
        raise RuleError("index can't contain negative values")
    if mode in ("reflect", "symmetric", "wrap") and any(isinstance(w, DimExpr) for pair in widths for w in pair):
        raise RuleError(f"np.pad with mode {mode!r} needs static widths", kind=NotImplementedError, code="E303")
    if mode in ("constant", "empty"):
        return _constant(x, widths, _per_axis(options.get("constant_values", 0), x.rank))
    for k, (before, after) in enumerate(widths):
        if before == 0 and after == 0:
            continue
        if x.shape[k] == 0:
            raise RuleError(f"can't extend empty axis {k} using modes other than 'constant' or 'empty'")
        if (bounds(x.shape[k])[0] or 0) < 1:
            check(ops.greater(size_value(x.shape[k]), 0), "ValueError",
                  f"can't extend empty axis {k} using modes other than 'constant' or 'empty'")
        if mode in ("reflect", "symmetric"):
            kind = options.get("reflect_type", "even")
            x = _mirrored(x, k, before, after, mode, even=kind == "even")
        elif mode == "edge":
            x = _edged(x, k, before, after)
        elif mode == "wrap":
            x = _wrapped(x, k, before, after)
        elif mode == "linear_ramp":
            x = _ramped(x, k, before, after, _per_axis(options.get("end_values", 0), x.rank)[k])
        else:
            x = _summarised(x, k, before, after, mode, _per_axis(options.get("stat_length"), x.rank)[k])
    return x


def _constant(x: Value, widths: Sequence[Any], values: Sequence[Any]) -> Value:
    low, high = (tuple(pair[side] for pair in widths) for side in (0, 1))
    if all(isinstance(v, (int, float)) and v == 0 for pair in values for v in pair):
        return ops.pad(x, low=low, high=high, interior=(0,) * x.rank)
    for k, (pair, numbers) in enumerate(zip(widths, values)):
        edges = [broadcast_to(as_value(v, x.dtype), tuple(w if a == k else d for a, d in enumerate(x.shape)))
                 for w, v in zip(pair, numbers)]
        x = ops.concatenate(edges[0], x, edges[1], axis=k)
    return x
