"""One text compiled twice, by our compiler and by Numba, and what both make of the same arguments."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit, typeof

from gradsmith.codegen.library import compile_text
from gradsmith.compile import EntryTable

OPTIONS = {"nogil": True, "error_model": "numpy"}
HEAD = "import math\nimport numpy as np\nfrom gradsmith.kernels import *\nfrom gradsmith.kernels import {more}\n\n\n"
MORE = ("abreast, accumulate, empty, zeros, exp, log, tanh, gemm, gemv, dot, permuted, reshaped, maximum, floor_divide, "
        "int_power, sort, solve, svd, slogdet")

_count = iter(range(10_000))


def function_of(text: str, name: str) -> tuple[str, Any]:
    """The module's whole text, and the Python function `name` in it, not compiled."""
    text = HEAD.format(more=MORE) + text if "import" not in text else text
    file = f"<two ways {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": f"two_ways_{next(_count)}"}
    exec(compile(text.replace("cache=True, ", ""), file, "exec"), scope)
    found = scope[name]
    return text, getattr(found, "py_func", found)


def ours(text: str, name: str, signature: Sequence[Any]) -> EntryTable:
    """NotCovered where our compiler leaves it to Numba."""
    text, function = function_of(text, name)
    table = EntryTable(function)
    table.put(compile_text(text, function, tuple(signature), OPTIONS))
    return table


def numba(text: str, name: str, signature: Sequence[Any]) -> Any:
    _, function = function_of(text, name)
    compiled = njit(**OPTIONS)(function)
    compiled.compile(tuple(signature))
    return compiled


def outcome(function: Any, args: Sequence[Any]) -> Any:
    """What a call on copies of the arguments gives or raises, and the arguments afterwards.  What is not contiguous,
    whose layout a copy would not have, is taken as it is."""
    args = [x.copy(order="K") if isinstance(x, np.ndarray) and x.flags.forc else x for x in args]
    try:
        result = function(*args)
    except Exception as problem:  # any exception is to be the same
        return type(problem), problem.args, args
    return "result", result, args


def require_same(text: str, name: str, *calls: Sequence[Any], exact: bool = True) -> None:
    """Both ways give the same for each of the calls, bit for bit (up to rounding where sums may be in another order);
    all calls have the types of the first."""
    signature = [typeof(x) for x in calls[0]]
    mine, theirs = ours(text, name, signature), numba(text, name, signature)
    assert theirs.overloads[tuple(signature)].signature == mine.overloads[tuple(signature)].signature
    for args in calls:
        same(outcome(mine, args), outcome(theirs, args), exact)


def same(found: Any, wanted: Any, exact: bool = True) -> None:
    assert type(wanted) is type(found), (wanted, found)
    if isinstance(wanted, (tuple, list)):
        assert len(wanted) == len(found)
        for f, w in zip(found, wanted):
            same(f, w, exact)
    elif isinstance(wanted, (np.ndarray, float, complex, np.generic)):
        f, w = np.asarray(found), np.asarray(wanted)
        assert (w.dtype, w.shape, w.strides) == (f.dtype, f.shape, f.strides)
        if exact:
            assert w.tobytes() == f.tobytes() or np.array_equal(w, f, equal_nan=True), (wanted, found)
        else:
            np.testing.assert_allclose(f, w, rtol=1e-12 if w.dtype.itemsize >= 8 else 1e-5, atol=1e-12)
    else:
        assert wanted == found
