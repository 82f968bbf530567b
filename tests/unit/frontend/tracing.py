"""Trace a function at example arguments, run the IR with NumPy, and compare with running the function."""

import dataclasses
import os

import numpy as np
import pytest

from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.frontend.trace import Trace, leaves_of, trace
from gradsmith.transpiler.frontend.trees import rebuild
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify


def leaves(value, name="x", fixed=False):
    """An argument as the runtime would pass it: arrays and floats and ints as leaves, sizes as symbols."""
    if isinstance(value, np.ndarray):
        shape = tuple(size if fixed or size in (0, 1) else symbol(f"{name}_n{axis}")
                      for axis, size in enumerate(value.shape))
        return Leaf(Type(value.dtype.name, shape), example=value)
    if isinstance(value, np.generic):
        return Leaf(Type(value.dtype.name), example=value)
    if type(value) in (bool, int, float, complex):
        return Leaf(Type(np.asarray(value).dtype.name), weak=True, example=value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(leaves(v, f"{name}_{k}", fixed) for k, v in enumerate(value))
    if isinstance(value, (list, tuple)):
        return type(value)(leaves(v, f"{name}_{k}", fixed) for k, v in enumerate(value))
    if isinstance(value, dict):
        return {k: leaves(v, f"{name}_{k}", fixed) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = object.__new__(type(value))
        for f in dataclasses.fields(value):
            object.__setattr__(made, f.name, leaves(getattr(value, f.name), f"{name}_{f.name}", fixed))
        return made
    return value


def traced(fn, *args, fixed=False, **kwargs) -> Trace:
    """The trace at example arguments."""
    found = trace(fn, tuple(leaves(a, f"a{k}", fixed) for k, a in enumerate(args)),
                  {k: leaves(v, k, fixed) for k, v in kwargs.items()})
    verify(found.func)
    return found


def run(found: Trace):
    """What the traced function gives at its examples."""
    assert all(guard.holds() for guard in found.static_guards)
    values = [leaf.example for leaf in found.leaves] + [capture.get() for capture in found.captures]
    return rebuild(found.out_tree, evaluate(found.func, *values))


def same(expected, actual):
    if isinstance(expected, np.ndarray) and expected.ndim == 0:       # NumPy's zero-dimensional arrays are scalars here
        expected = expected[()]
    if isinstance(expected, (tuple, list)):
        assert type(expected) is type(actual)
        assert len(expected) == len(actual)
        for e, a in zip(expected, actual):
            same(e, a)
        return
    if isinstance(expected, dict):
        assert list(expected) == list(actual)
        for key in expected:
            same(expected[key], actual[key])
        return
    if dataclasses.is_dataclass(expected):
        assert type(expected) is type(actual)
        for f in dataclasses.fields(expected):
            same(getattr(expected, f.name), getattr(actual, f.name))
        return
    if isinstance(expected, np.ndarray):
        assert isinstance(actual, np.ndarray)
        assert expected.dtype == actual.dtype
        assert expected.shape == actual.shape
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
        return
    assert type(expected) is type(actual)
    if isinstance(expected, (float, complex, np.inexact)):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
    else:
        assert expected == actual


def check(fn, *args, fixed=False, **kwargs) -> Trace:
    """Traced and run, `fn` gives what Python gives."""
    import copy
    expected = fn(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    found = traced(fn, *args, fixed=fixed, **kwargs)
    same(expected, run(found))
    if "GRADSMITH_TESTS_ON_XLA" in os.environ:
        same_on_xla(expected, fn, args, kwargs)
    return found


def same_on_xla(expected, fn, args, kwargs):
    """`fn` as StableHLO, run by XLA, gives what Python gives."""
    import gradsmith
    from gradsmith import xla
    try:
        made = gradsmith.stablehlo(fn, checked=True).lower(*args, **kwargs)
    except TranspileError as refused:
        if refused.code == "E207":
            pytest.skip(f"StableHLO: {refused}")
        raise
    *results, flag = xla.run(made.text, *made.arrays(), optimise=False)
    assert flag == 0, made.failures[int(flag) - 1]
    same(expected, made.rebuilt(results))


def failure(fn, *args, fixed=False, **kwargs) -> TranspileError:
    """The error of tracing."""
    with pytest.raises(TranspileError) as caught:
        traced(fn, *args, fixed=fixed, **kwargs)
    return caught.value


def message(fn, *args) -> str:
    return str(failure(fn, *args))


__all__ = ["check", "failure", "leaves", "leaves_of", "message", "run", "traced"]
