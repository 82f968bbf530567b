"""Compare a traced function with Python where a branch or a loop leaves numbers of one type instead of several."""

import copy

import numpy as np
from tracing import run, traced

from gradsmith.transpiler.errors import TranspileError


def parts(value):
    if isinstance(value, dict):
        return [part for key in value for part in parts(value[key])]
    if isinstance(value, (list, tuple)):
        return [part for entry in value for part in parts(entry)]
    return [value]


def agree(expected, actual):
    """The same structure and values; Python's 0 may be 0.0 and 1.5 NumPy's."""
    expected, actual = parts(expected), parts(actual)
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual):
        if e is None or isinstance(e, str):
            assert e == a
        else:
            assert np.shape(e) == np.shape(a)
            np.testing.assert_allclose(a, e, rtol=1e-12, atol=1e-12)


def check_values(fn, *args, fixed=False):
    """Traced and run, `fn` gives the values that Python gives, or raises the same exception.  Returns the trace."""
    try:
        expected, raised = fn(*copy.deepcopy(args)), None
    except Exception as problem:
        expected, raised = None, problem
    try:
        found = traced(fn, *args, fixed=fixed)
    except TranspileError as problem:
        if raised is not None and isinstance(problem, type(raised)) and problem.code not in ("E121", "E122"):
            return None
        raise
    try:
        actual = run(found)
    except Exception as problem:
        assert raised is not None, f"{problem!r}, Python gives {expected}"
        assert isinstance(problem, type(raised)), f"{problem!r}, Python raises {raised!r}"
        return found
    assert raised is None, f"{actual}, Python raises {raised!r}"
    agree(expected, actual)
    return found
