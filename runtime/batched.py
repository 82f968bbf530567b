"""What `vmap` returns: a Function that knows in which lane an exception was raised.

Most exceptions tell (`raising`).  Those of routines such as LAPACK's, and of functions that call themselves, do not:
for them the lanes are run one by one, until one raises the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import optree

from .function import Function
from .raising import has_lanes, with_lanes
from .transpiler.errors import TranspileError


class Batched(Function):
    """A batched function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except TranspileError:
            raise
        except Exception as problem:
            found = None if has_lanes(problem) else self._in_its_lane(problem, args, kwargs)
            if found is None:
                raise
            raise found from None

    def _in_its_lane(self, problem: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BaseException | None:
        """What the first lane that raises an exception of the class raises; None where none does."""
        from .transforms import function
        _, fun, options, _ = self.__gradsmith_transformed__
        in_axes = options[0] if options else 0
        single = fun if isinstance(fun, Function) else function("jit", fun)
        try:
            for k, (own, own_named) in enumerate(_lanes(args, kwargs, in_axes)):
                try:
                    single(*own, **own_named)
                except type(problem) as raised:
                    return with_lanes(raised, [k])
        except _Opaque:
            pass
        return None


class _Opaque(Exception):
    """An argument is an object that only the transpiler takes apart."""


def _lanes(args: tuple[Any, ...], kwargs: dict[str, Any],
           in_axes: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of each lane."""
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
    """The tree with `change(leaf, axis)` for its batched leaves."""
    if axes is None:
        return tree
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
