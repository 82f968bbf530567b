"""Derivatives with `allow_int`: where an argument holds ints or bools, there is none, and zeros of `float0` say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree
from .function import Function

float0 = np.dtype([("float0", np.void, 0)])     # JAX's dtype of what has no tangent


class WithIntegers(Function):
    """A Function that gives a derivative by its arguments, ints included; compiled code gives False for those."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kind, _, _, options = self.__gradsmith_transformed__
        result = super().__call__(*args, **kwargs)
        if kind == "value_and_grad":
            return result[0], _told(result[1])
        return (_told(result[0]), result[1]) if options.get("has_aux") else _told(result)


def with_integers(kind: str, fun: Callable[..., Any], argnums: Any, *, source: str | None = None,
                  **options: Any) -> WithIntegers:
    """The Function of a kind with `allow_int`."""
    given = {k: v for k, v in options.items() if v is not None and v is not False}
    return WithIntegers(kind, fun, (argnums,), {**given, "allow_int": True}, source=source)


def _told(derivative: Any) -> Any:
    return tree.map(lambda x: np.zeros(np.shape(x), float0) if np.asarray(x).dtype == bool else x, derivative)
