"""Functions that Numba has compiled: `vectorize` is its Python function on every element; what has no such meaning is
refused.  Numba itself is not imported here."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ops.base import RuleError
from ..ops.spelling import as_value, ufunc_dtypes
from . import written_functions
from .values import TransformValue

if TYPE_CHECKING:
    from .interpreter import Interpreter

# Classes by module and name, so that Numba need not be there; what to write instead of calling an object of each.
REFUSED = {
    ("numba.np.ufunc.gufunc", "GUFunc"): ("a numba.guvectorize function", "write its loop as a function that returns "
                                          "its result, and gradsmith.vmap for the batch"),
    ("numba.stencils.stencil", "StencilFunc"): ("a numba.stencil", "write its loop, or shifted slices: x[1:] - x[:-1]"),
    ("numba.experimental.jitclass.base", "JitClassType"): ("a numba jitclass", "use a plain class, or a dataclass"),
    ("numpy", "vectorize"): ("np.vectorize, whose dtype follows from the first element", "use gradsmith.vmap, or "
                             "numba.vectorize"),
}


def class_of(x: Any) -> tuple[str, str]:
    return type(x).__module__, type(x).__name__


def refuse_compiled(callee: Any) -> None:
    """RuleError for what belongs to Numba and has no Python function that says what it means."""
    found = REFUSED.get(class_of(callee))
    if callee is np.vectorize:
        found = REFUSED["numpy", "vectorize"]
    if found is not None:
        raise RuleError(f"{found[0]} is not supported", code="E202", kind=NotImplementedError, help=found[1])
    own = callee if isinstance(callee, (type, types.FunctionType)) else type(callee)
    if (own.__module__ or "").startswith("numba.") and python_function(callee) is None:
        raise RuleError(f"numba's `{own.__name__}` is not supported", code="E202", kind=NotImplementedError,
                        help="use Python's or NumPy's own, or compute it outside and pass in its result")


def python_function(callee: Any) -> Any | None:
    """The Python function of what a compiler wraps: `jit`, `njit`, `cfunc`."""
    for name in ("py_func", "_pyfunc"):
        found = getattr(callee, name, None)
        if isinstance(found, types.FunctionType):
            return found
    return None


def elementwise_function(callee: Any) -> Any | None:
    """What a `numba.vectorize` function does with an element; None for anything else."""
    if class_of(callee) != ("numba.np.ufunc.dufunc", "DUFunc"):
        return None
    found = callee._dispatcher.py_func
    return found if isinstance(found, types.FunctionType) else None


def call_elementwise(it: Interpreter, callee: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`numba.vectorize`d: the function on every element of the arguments, broadcast.  With signatures, of the dtypes
    that NumPy chooses among them; without, of those that come."""
    if kwargs:
        raise RuleError(f"{', '.join(kwargs)}= of a numba.vectorize function is not supported", code="E203",
                        kind=NotImplementedError, help="assign the result instead")
    dtypes: tuple[str | None, ...] = (None,) * (len(args) + 1)
    if callee._frozen:
        dtypes = ufunc_dtypes(callee.ufunc, [as_value(x) if isinstance(x, (list, tuple)) else x for x in args])
    mapped = TransformValue("vmap", function, (0,), {})
    return it.call(written_functions.on_every_element, (mapped, function, dtypes, *args), {}, it.here)
