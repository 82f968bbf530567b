"""`x[mask]` with a mask that is known only at run time.

How many elements it has is not known, so it stays the whole array beside its mask as long as it can.  Elementwise
functions of such selections compute on whole arrays (what the mask hides is computed and never looked at), and
reductions take the mask as `where`.  What needs the elements side by side gets them from `elements`.

    np.mean((p[m] - y[m]) ** 2)     is     np.mean((p - y) ** 2, where=m)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import Builder, check, current, size_value
from ..ir.nodes import Const, Let, Value, Var
from ..ops.base import RuleError
from ..ops.families import broadcast_to
from ..ops.numpy_selecting import selected
from ..ops.reduction import identity_of
from ..ops.spelling import Weak, as_value, cast
from .values import ArrayRef, Masked

if TYPE_CHECKING:
    from .environment import Frame
    from .interpreter import Interpreter

# Reductions that take the mask as `where`.
_REDUCTIONS: tuple[Any, ...] = (
    np.sum, np.ndarray.sum, np.prod, np.ndarray.prod, np.mean, np.ndarray.mean, np.any, np.ndarray.any, np.all,
    np.ndarray.all, np.var, np.ndarray.var, np.std, np.ndarray.std, np.nansum, np.nanmean,
)
_EXTREMA: dict[Any, str] = {np.max: "max", np.amax: "max", np.ndarray.max: "max",
                            np.min: "min", np.amin: "min", np.ndarray.min: "min"}
# Functions of each element alone that are not ufuncs.
_ELEMENTWISE: frozenset[Any] = frozenset({
    np.where, np.clip, np.ndarray.clip, np.round, np.around, np.ndarray.round, np.nan_to_num, np.real, np.imag,
    np.ndarray.astype, np.astype, np.isclose, np.sinc, np.fix, np.asarray,
})
_PRODUCTS: frozenset[Any] = frozenset({np.dot, np.ndarray.dot, np.inner, np.vdot, np.matmul})
Rule = Callable[["Interpreter", Any, tuple[Any, ...], dict[str, Any]], Any]


def call_masked(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function with selections among its arguments."""
    rule = _rule(key)
    if rule is not None:
        try:
            return rule(it, key, args, kwargs)
        except SideBySide:
            pass
    from .numpy_calls import call_spelling
    return call_spelling(it, key, tuple(shown(x) for x in args), {k: shown(x) for k, x in kwargs.items()})


class SideBySide(Exception):
    """The elements of a selection are needed as an array of their own."""


def elements(masked: Masked) -> ArrayRef:
    """The selected elements (k, ...), as many as there turn out to be."""
    if masked.own is None or not current().sees(masked.own[0]):
        return ArrayRef(selected(masked.array, masked.mask))
    return ArrayRef(masked.own[1])


def written_selection() -> RuleError:
    """Other names for the selection would not see the change."""
    return RuleError("writing into what a mask known at run time has selected is not supported", code="E124",
                     kind=NotImplementedError, help="make it an array of its own before: `np.array(x[mask])`")


def lay_out(frame: Frame, names: Iterable[str]) -> None:
    """Before a loop that reads variables: selections that they hold, once for all trips."""
    for name in names:
        value = frame.variables.get(name)
        if isinstance(value, Masked):
            value.own = current(), selected(value.array, value.mask)


def shown(x: Any) -> Any:
    """An argument with selections as arrays of their own."""
    if isinstance(x, Masked):
        return elements(x)
    if type(x) in (list, tuple):
        return type(x)(shown(v) for v in x)
    return x


def _rule(key: Any) -> Rule | None:
    if key in _REDUCTIONS or key in _EXTREMA:
        return _reduce
    if key in _PRODUCTS:
        return _product
    if key in (np.ptp, np.average, np.count_nonzero, np.linalg.norm):
        return _composed
    if key == ("scipy.special", "logsumexp"):
        return _neutral
    if isinstance(key, tuple) and isinstance(key[0], str):          # a function of a module that is imported lazily
        key = getattr(sys.modules.get(key[0]), key[1], None)
    if key in _ELEMENTWISE or (isinstance(key, np.ufunc) and key.signature is None and key.nout == 1):
        return _elementwise
    return None


# ---------------------------------------------------------------------------------------------------------------
# functions of each element


def _elementwise(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from .numpy_calls import call_spelling
    masks = [x for x in (*args, *kwargs.values()) if isinstance(x, Masked)]
    first = masks[0]
    rest = max(m.rest for m in masks)
    if not all(same_value(m.mask, first.mask) for m in masks) or "where" in kwargs or "out" in kwargs:
        raise SideBySide

    def whole(x: Any) -> Any:
        if isinstance(x, Masked):
            if x.rest != rest:
                raise SideBySide
            return ArrayRef(x.array)
        if isinstance(x, (ArrayRef, list, tuple)) and _rank(x) > rest:
            raise SideBySide
        return x

    inputs, options = tuple(map(whole, args)), {k: whole(v) for k, v in kwargs.items()}
    if key is np.power and all(_is_integer(x) for x in inputs):     # hidden exponents could be negative: an error
        raise SideBySide
    result = call_spelling(it, key, inputs, options)
    value = result.read() if isinstance(result, ArrayRef) else as_value(result)
    return Masked(value, first.mask, first.loc)


def _rank(x: Any) -> int:
    if isinstance(x, ArrayRef):
        return x.rank
    return 1 + max(map(_rank, x), default=0) if isinstance(x, (list, tuple)) else 0


def _is_integer(x: Any) -> bool:
    return not (isinstance(x, float) or (hasattr(x, "type") and x.type.kind in "fc")
                or (isinstance(x, Weak) and x.value.type.kind in "fc"))


# ---------------------------------------------------------------------------------------------------------------
# reductions


def _reduce(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Over all elements, or over given axes, of which the first is the one that the mask selects along."""
    from .numpy_calls import call_spelling
    masked, options = args[0], dict(kwargs)
    if not isinstance(masked, Masked) or len(args) > 2 or "where" in options or "out" in options:
        raise SideBySide
    axis = args[1] if len(args) == 2 else options.pop("axis", None)
    axes, masked_axes = _axes(masked, axis), tuple(range(masked.mask.rank))
    if axis is not None:
        options["axis"] = tuple(a - 1 + masked.mask.rank for a in axes if a) + (masked_axes if 0 in axes else ())
        if options.get("keepdims") and masked.mask.rank != 1:
            raise SideBySide
    if 0 not in axes:
        reduced = call_spelling(it, key, (ArrayRef(masked.array),), options)
        return Masked(reduced.read(), masked.mask, masked.loc)
    if key in _EXTREMA:
        low = _EXTREMA[key] == "max"
        check(ops.any(masked.mask, axes=masked_axes), "ValueError", "zero-size array to reduction operation "
              f"{'maximum' if low else 'minimum'} which has no identity")
        options.setdefault("initial", identity_of(_EXTREMA[key], masked.array.type))
    return call_spelling(it, key, (ArrayRef(masked.array),), {**options, "where": ArrayRef(masked.whole_mask())})


def _axes(masked: Masked, axis: Any) -> tuple[int, ...]:
    """Reduced axes of the selection, counted from 0."""
    rank = masked.rest + 1
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not all(isinstance(a, int) and -rank <= a < rank for a in axes):
        raise SideBySide
    return tuple(a % rank for a in axes)


def _composed(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions that are a few reductions."""
    from .numpy_calls import call_spelling
    masked = args[0]
    weights = kwargs.get("weights") if key is np.average else None
    if not isinstance(masked, Masked) or len(args) > 1 or set(kwargs) - {"weights"}:
        raise SideBySide
    if key is np.ptp:
        return call_spelling(it, np.subtract, (_reduce(it, np.max, args, {}), _reduce(it, np.min, args, {})), {})
    if key is np.count_nonzero:
        return _reduce(it, np.sum, (_elementwise(it, np.not_equal, (masked, 0), {}),), {})
    if key is np.linalg.norm:
        shown = ops.select(masked.whole_mask(), masked.array, 0)
        return call_spelling(it, key, (ArrayRef(ops.reshape(shown, shape=(dims.product(shown.shape),))),), {})
    if weights is None:
        return _reduce(it, np.mean, args, {})
    total = _reduce(it, np.sum, (_elementwise(it, np.multiply, (masked, weights), {}),), {})
    return call_spelling(it, np.true_divide, (total, _reduce(it, np.sum, (weights,), {})), {})


def _product(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The scalar product of two selections of numbers."""
    masks = [x for x in args if isinstance(x, Masked)]
    if len(masks) != 2 or kwargs or any(m.rest or m.array.type.kind in "bc" for m in masks):
        raise SideBySide
    return _reduce(it, np.sum, (_elementwise(it, np.multiply, args, {}),), {})


def _neutral(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """logsumexp: -inf adds nothing to it."""
    from .numpy_calls import call_spelling
    masked = args[0]
    if len(args) > 1 or kwargs or not isinstance(masked, Masked) or masked.array.type.kind != "f":
        raise SideBySide
    shown = ops.select(masked.whole_mask(), masked.array, -np.inf)
    return call_spelling(it, key, (ArrayRef(shown),), {})


# ---------------------------------------------------------------------------------------------------------------
# how many there are


def count(it: Interpreter, masked: Masked) -> Weak:
    """len(x[mask])"""
    return Weak(it.spell(np.sum, masked.mask))


def shape(it: Interpreter, masked: Masked) -> tuple[Any, ...]:
    return (count(it, masked), *masked.array.shape[masked.mask.rank:])


def size(it: Interpreter, masked: Masked) -> Weak:
    number = it.spell(np.sum, masked.mask)
    for d in masked.array.shape[masked.mask.rank:]:
        number = number * size_value(d)
    return Weak(number)


# ---------------------------------------------------------------------------------------------------------------
# the same mask


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are one: the same, or computed in the same way from the same."""
    if a is b:
        return True
    if isinstance(a, Const) and isinstance(b, Const):
        return a.type == b.type and repr(a.value) == repr(b.value)
    if not isinstance(a, Var) or not isinstance(b, Var) or a.type != b.type:
        return False
    first, second = _definition(a), _definition(b)
    return (first is not None and second is not None and first.op is second.op and first.op.is_pure
            and first.params == second.params and first.targets.index(a) == second.targets.index(b)
            and len(first.args) == len(second.args) and all(map(same_value, first.args, second.args)))


def _definition(var: Var) -> Let | None:
    builder: Builder | None = current()
    while builder is not None:
        for stmt in reversed(builder.stmts):
            if isinstance(stmt, Let) and var in stmt.targets:
                return stmt
        builder = builder.outer
    return None


def select_into(ref: Value, masked: Masked, dtype: str) -> Value:
    """`ref` with the selection's elements, cast to its dtype, in the places that they were selected from."""
    new = broadcast_to(cast(masked.array, dtype), ref.shape)
    return ops.select(masked.whole_mask(ref.shape), new, ref)
