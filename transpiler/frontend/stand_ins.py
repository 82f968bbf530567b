"""What a function of the run time means inside transpiled code, told by a mark that it carries:

    __gradsmith_numpy__     NumPy's own function (or module), which it stands for
    __gradsmith_traced__    a Python function that does the same and is interpreted in its place
    __gradsmith_refusal__   (what is not supported, what to write instead)

and of an object of its own kinds, by a method of its class:

    __gradsmith_array__     the NumPy array that it stands for

The marks are attributes, so that nothing here imports the run time.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ..ops.base import RuleError

MARKED = (types.FunctionType, types.ModuleType)


def numpys_own(value: Any) -> Any:
    """NumPy's function or module for one that stands for it; else the value itself."""
    return vars(value).get("__gradsmith_numpy__", value) if isinstance(value, MARKED) else value


def stand_in(callee: Any) -> Any:
    """What to call instead of `callee`; itself without a mark.  RuleError for what is refused."""
    if not isinstance(callee, types.FunctionType):
        return callee
    marks = vars(callee)
    if not marks:
        return callee
    if "__gradsmith_refusal__" in marks:
        what, instead = marks["__gradsmith_refusal__"]
        raise RuleError(what, code="E202", kind=NotImplementedError, help=instead)
    return marks.get("__gradsmith_traced__", numpys_own(callee))


def is_array(value: Any) -> bool:
    """Whether the value is an array, of NumPy's or one that stands for such."""
    return isinstance(value, np.ndarray) or hasattr(type(value), "__gradsmith_array__")
