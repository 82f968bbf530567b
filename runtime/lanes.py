"""In which lane of a batch an exception was raised: the first that a loop over the lanes would have failed in.

A batched function computes statement by statement for all lanes, so what it raises first need not be what the first
lane raises; and exceptions of routines such as LAPACK's, and of functions that call themselves, do not tell a lane at
all.  So when one is raised, the lanes are run one by one, up to the one that it tells, or until one raises.  Where the
batch is inside of the function, the function runs as plain Python, in which batches are calls like any other.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import optree

from .function import Function
from .raising import has_lanes, lanes_told, with_lanes
from .transpiler.errors import TranspileError
from .transpiler.frontend.trace import Trace
from .transpiler.ir.library import Program
from .transpiler.ir.nodes import Block, Call, Check, For, Let, Module, While
from .transpiler.ir.walk import blocks

AS_CALLED = ("jit", "grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian", "vjp", "linearize")


def in_first_lane(function: Function, problem: Exception, args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> BaseException | None:
    """What a loop over lanes raises where `function(*args, **kwargs)` raised `problem`; None for the same."""
    told = lanes_told(problem)
    if told and function.raises_in_order:
        return None
    with contextlib.redirect_stdout(io.StringIO()):         # it has been printed
        return _first(function, args, kwargs, told)


def _first(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], told: list[int]) -> BaseException | None:
    kind, fun, options, _ = function.__gradsmith_transformed__
    if kind == "vmap":
        return _of_lanes(fun, options[0] if options else 0, args, kwargs, told)
    if function.writes:
        return None                 # what it was called with is no more
    if kind in AS_CALLED:
        return _of_python(fun, args, kwargs)
    if kind == "jvp":
        return _of_python(fun, args[0], {})
    if kind == "hvp":
        return _of_python(fun, args[0] if isinstance(args[0], (tuple, list)) else args[:1], {})
    return None


def _of_lanes(fun: Callable[..., Any], in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
              told: list[int]) -> BaseException | None:
    from .transforms import function
    single = fun if isinstance(fun, Function) else function("jit", fun)
    try:
        for k, (own, own_named) in enumerate(_lanes(args, kwargs, in_axes)):
            if told and (k > told[0] or (k == told[0] and len(told) == 1)):
                break
            try:
                single(*own, **own_named)
            except TranspileError:
                return None
            except Exception as raised:             # whatever the user's program raises
                return with_lanes(raised, [k])
    except _Opaque:
        pass
    return None


def _of_python(fun: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> BaseException | None:
    """What the function itself raises on such arguments, if that is in a lane."""
    try:
        own, own_named = copy.deepcopy((tuple(args), kwargs))
    except (TypeError, copy.Error):
        return None
    try:
        fun(*own, **own_named)
    except Exception as raised:                     # whatever the user's program raises
        return raised if has_lanes(raised) and not isinstance(raised, TranspileError) else None
    return None


# --- what is known of a function ----------------------------------------------------------------------------------


def raises_in_order(trace: Trace) -> bool:
    """Whether one statement alone may raise in a lane, once: the first lane in which it does is the first of all."""
    sites = list(_sites(trace.func))
    return len({stmt.loc for stmt, _ in sites}) <= 1 and not any(again for _, again in sites)


def _sites(program: Program) -> Iterator[tuple[Any, bool]]:
    """The statements that may raise, and whether they are in a loop."""
    for func in program.funcs if isinstance(program, Module) else (program,):
        yield from _sites_in(func.body, False)


def _sites_in(block: Block, again: bool) -> Iterator[tuple[Any, bool]]:
    for stmt in block.stmts:
        match stmt:
            case Check():
                if not stmt.prints:
                    yield stmt, again
            case Call():
                yield stmt, again
            case Let():
                if stmt.op.raises is not None:
                    yield stmt, again
        for inner in blocks(stmt):
            yield from _sites_in(inner, again or isinstance(stmt, (For, While)))


# --- the arguments of each lane -----------------------------------------------------------------------------------


class _Opaque(Exception):
    """An argument is an object that only the transpiler takes apart."""


def _lanes(args: tuple[Any, ...], kwargs: dict[str, Any],
           in_axes: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    axes = [in_axes] * len(args) if in_axes is None or isinstance(in_axes, int) else list(in_axes)
    sizes: list[int] = []
    pairs = [*zip(args, axes), (kwargs, 0)]
    for tree, axis in pairs:
        _mapped(tree, axis, lambda leaf, a: sizes.append(np.shape(leaf)[a]))
    for k in range(min(sizes, default=0)):
        def one(leaf: Any, axis: int, k: int = k) -> Any:
            return _scalar(np.take(leaf, k, axis=axis))

        *own, own_named = (_mapped(tree, axis, one) for tree, axis in pairs)
        yield tuple(own), own_named


def _mapped(tree: Any, axes: Any, change: Callable[[Any, int], Any]) -> Any:
    """The tree with `change(leaf, axis)` for its batched leaves, and copies of the other arrays, which a lane may write
    to."""
    if axes is None:
        return optree.tree_map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tree,
                               none_is_leaf=True)
    if isinstance(axes, (int, np.integer)):
        return optree.tree_map(lambda leaf: change(_array(leaf), int(axes)), tree)
    if isinstance(tree, Mapping):
        return {key: _mapped(part, axes[key], change) for key, part in tree.items()}
    if not isinstance(tree, (tuple, list)):
        raise _Opaque
    parts = [_mapped(part, axis, change) for part, axis in zip(tree, axes)]
    return type(tree)._make(parts) if hasattr(tree, "_make") else type(tree)(parts)


def _array(leaf: Any) -> Any:
    if not hasattr(leaf, "shape"):
        raise _Opaque
    return leaf


def _scalar(x: Any) -> Any:
    """An int as Python's, which may be a size."""
    return x.item() if not x.shape and x.dtype.kind in "bi" else x
