"""NumPy's namespace, for code that imports `gradsmith.numpy as np`.

Functions are NumPy's own and return `Array`s, results of rank 0 too, so that `.block_until_ready()` works on whatever
comes out.  Classes, dtypes and constants are NumPy's.  Inside transpiled functions a name here means NumPy's.  Random
numbers are in `gradsmith.random`.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy

from .array import Array, as_array, converted

__gradsmith_numpy__ = numpy          # what this module means inside transpiled functions

ABSENT = {"random": "use gradsmith.random, whose numbers come from explicit keys"}
SUBMODULES = ("linalg", "fft")
UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")
UFUNC_FACTS = ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature", "resolve_dtypes")
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, numpy.ufunc, type(numpy.sum))


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of NumPy's functions, returning Arrays.  `__gradsmith_numpy__` is NumPy's, which the frontend takes."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return converted(function(*args, **kwargs))

    functools.update_wrapper(call, function, updated=())
    call.__gradsmith_numpy__ = function  # type: ignore[attr-defined]
    if isinstance(function, numpy.ufunc):
        for name in UFUNC_METHODS:
            setattr(call, name, wrapped(getattr(function, name)))
        for name in UFUNC_FACTS:
            if hasattr(function, name):
                setattr(call, name, getattr(function, name))
    return call


def _public(value: Any) -> Any:
    """A name of NumPy's as it is here."""
    return wrapped(value) if isinstance(value, FUNCTIONS) else value


def _submodule(name: str) -> types.ModuleType:
    """`gradsmith.numpy.linalg` and the like, filled at once."""
    source = getattr(numpy, name)
    module = types.ModuleType(f"{__name__}.{name}", source.__doc__)
    module.__gradsmith_numpy__ = source  # type: ignore[attr-defined]
    names = [n for n in dir(source) if not n.startswith("_") and not isinstance(getattr(source, n), types.ModuleType)]
    for n in names:
        setattr(module, n, _public(getattr(source, n)))
    module.__all__ = names  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    return module


def asarray(a: Any, dtype: Any = None, order: Any = None, **kwargs: Any) -> Array:
    """An Array of `a`; no copy of what is an array already."""
    return as_array(numpy.asarray(a, dtype, order, **kwargs))


asarray.__gradsmith_numpy__ = numpy.asarray  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    """NumPy's names come here when they are first used."""
    if name in ABSENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {ABSENT[name]}")
    if name.startswith("__") and name not in numpy.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = _submodule(name) if name in SUBMODULES else _public(getattr(numpy, name))
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    if isinstance(found, types.ModuleType) and name not in SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it is NumPy's own, import numpy")
    globals()[name] = found
    return found


__all__ = sorted(n for n in numpy.__all__ if n in SUBMODULES or (
    n in vars(numpy) and not isinstance(vars(numpy)[n], types.ModuleType)))


def __dir__() -> list[str]:
    return list(__all__)


for _name in SUBMODULES:
    globals()[_name] = _submodule(_name)
