"""Options that many NumPy functions share: those that mean something here, and those that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.types import SHORT
from .base import RuleError


def is_given(option: Any) -> bool:
    """Whether the user passed something other than NumPy's ways of saying nothing."""
    return option is not None and option is not np._NoValue


def is_true(option: Any) -> bool:
    """A flag such as keepdims."""
    return is_given(option) and bool(option)


def refuse_out(out: Any, name: str) -> None:
    """`out=` would write into an array of the caller's."""
    if is_given(out):
        raise RuleError(f"out= of np.{name} is not supported here", kind=NotImplementedError, code="E202",
                        help="assign the result instead")


def refuse_options(name: str, like: Any = None, device: Any = None) -> None:
    if is_given(like):
        raise RuleError(f"like= of np.{name} is not supported", kind=NotImplementedError, code="E202",
                        help="leave it out")
    if device not in (None, "cpu"):
        raise RuleError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


def dtype_name(dtype: Any, default: str = "float64") -> str:
    """NumPy's name of a dtype argument: a type, a name, a dtype or None."""
    if not is_given(dtype):
        return default
    try:
        name = np.dtype(dtype).name
    except TypeError as error:
        raise RuleError(str(error), kind=TypeError, code="E302") from None
    if name not in SHORT:
        raise RuleError(f"dtype {name} is not supported", kind=TypeError, code="E302",
                        help=f"use one of {', '.join(SHORT)}")
    return name
