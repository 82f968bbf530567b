"""JAX's names for control flow.  In transpiled code they are not needed: write `if`, `for` and `while`.

Called from Python these functions run as Python does.  Inside a transpiled function they are the loops and branches
that they are written with here, so those become loops and branches of the generated code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree
from .array import as_array
from .transforms import stop_gradient

__all__ = ["cond", "fori_loop", "map", "scan", "select", "stop_gradient", "switch", "while_loop"]


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) if pred else false_fun(*operands)."""
    if pred:
        return true_fun(*operands)
    return false_fun(*operands)


def switch(index: Any, branches: Any, *operands: Any) -> Any:
    """branches[index](*operands), the index clamped to those there are."""
    return branches[max(0, min(int(index), len(branches) - 1))](*operands)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elements of `on_true` where `pred`, else of `on_false`; a scalar `pred` chooses as a whole."""
    if np.shape(on_true) != np.shape(on_false):
        raise TypeError(f"select cases must have the same shapes, got {np.shape(on_true)} and {np.shape(on_false)}")
    if np.shape(pred) not in ((), np.shape(on_true)):
        raise TypeError(f"select `which` must be scalar or have the same shape as cases, got {np.shape(pred)}")
    return as_array(np.where(pred, on_true, on_false))


def _select(pred: Any, on_true: Any, on_false: Any) -> Any:
    return np.where(pred, on_true, on_false)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """The last of val = body_fun(i, val) for i from `lower` to `upper` - 1."""
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
         unroll: int = 1) -> tuple[Any, Any]:
    """(carry, ys) of carry, y = f(carry, x) over the first axis of the leaves of `xs`; ys are stacked.

    length: the number of steps, where `xs` has no leaves.  ValueError for lengths that disagree.
    """
    lengths = {len(leaf) for leaf in tree.leaves(xs)} | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"scan got lengths {sorted(lengths)}: the leaves of `xs` and `length` must agree on one")
    steps = range(lengths.pop())
    carry, ys = init, []
    for k in reversed(steps) if reverse else steps:
        carry, y = f(carry, tree.map(lambda leaf, k=k: leaf[k], xs))
        ys.append(y)
    if not ys:
        raise ValueError("scan of no steps: the shapes of its results are not known")
    ordered = ys[::-1] if reverse else ys
    return carry, tree.map(lambda *leaves: as_array(np.stack(leaves)), *ordered)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """The stacked results of f over the first axis of the leaves of `xs`."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


# ---------------------------------------------------------------------------------------------------------------
# the same in Python that the frontend interprets


def _switch(index: Any, branches: Any, *operands: Any) -> Any:
    for k in range(len(branches) - 1):
        if index <= k:
            return branches[k](*operands)
    return branches[len(branches) - 1](*operands)


def _scan(f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False, unroll: int = 1) -> Any:
    lengths = [len(leaf) for leaf in tree.leaves(xs)]
    if length is not None:
        lengths.append(length)
    if not lengths or any(other != lengths[0] for other in lengths):
        raise ValueError("scan got no length, or several: the leaves of `xs` and `length` must agree on one")
    steps = lengths[0]
    if steps == 0:
        raise ValueError("scan of no steps: the shapes of its results are not known")
    _, first = f(init, tree.map(lambda leaf: leaf[0], xs))         # for the shapes of the results alone
    stacked = tree.map(lambda leaf: np.zeros((steps, *np.shape(leaf)), np.asarray(leaf).dtype), first)
    carry = init
    for step in range(steps):
        k = steps - 1 - step if reverse else step
        carry, y = f(carry, tree.map(lambda leaf, k=k: leaf[k], xs))
        for place, value in zip(tree.leaves(stacked), tree.leaves(y)):
            place[k] = value
    return carry, stacked


def _map(f: Any, xs: Any) -> Any:
    return _scan(lambda _, x: (None, f(x)), None, xs)[1]


_TRACED: tuple[tuple[Any, Any], ...] = ((select, _select), (switch, _switch), (scan, _scan), (map, _map))
for _public, _traced in _TRACED:
    _public.__gradsmith_traced__ = _traced
