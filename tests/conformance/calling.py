"""Calling what a user's code names on IR values, and the same in NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ops.spelling import Weak, as_value, find_spelling

ops.load_table()


class RunTime:
    """A Python number that is known at run time only."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"RunTime({self.value!r})"


def is_array(arg: Any) -> bool:
    return isinstance(arg, (np.ndarray, np.generic))


def spelled_call(function: Any, args: Sequence[Any], **options: Any) -> Any:
    """`function(*args)` through its spelling and the IR evaluator; a tuple for several results."""
    spelling = find_spelling(function)
    assert spelling is not None, f"{function} has no spelling"
    params = [(f"x{k}", Type(np.asarray(a.value if isinstance(a, RunTime) else a).dtype.name, np.shape(a) if is_array(a) else ()))
              for k, a in enumerate(args) if is_array(a) or isinstance(a, RunTime)]

    def body(*values: Any) -> tuple[Any, ...]:
        given = iter(values)
        operands = [next(given) if is_array(a) else Weak(next(given)) if isinstance(a, RunTime) else a for a in args]
        result = spelling(*operands, **options)
        return tuple(map(as_value, result)) if isinstance(result, tuple) else (as_value(result),)

    func = build_func("call", params, body)
    verify(func)
    results = evaluate(func, *(a.value if isinstance(a, RunTime) else a for a in args if is_array(a) or isinstance(a, RunTime)))
    return results[0] if len(results) == 1 else results


def numpy_call(function: Callable[..., Any], args: Sequence[Any], **options: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*(a.value if isinstance(a, RunTime) else a for a in args), **options)


def assert_conforms(function: Any, args: Sequence[Any], ulps: int = 2, **options: Any) -> None:
    """The spelling gives NumPy's dtype, shape and value, or refuses what NumPy refuses (and float16)."""
    shown = f"{getattr(function, '__name__', function)}({', '.join(map(repr, args))}, {options})"
    try:
        expected = numpy_call(function, args, **options)
    except (TypeError, OverflowError, ValueError) as problem:
        try:
            got = spelled_call(function, args, **options)
        except (RuleError, ValueError, TypeError, OverflowError):
            return
        raise AssertionError(f"{shown} gave {got!r}, but NumPy raises {problem!r}") from None
    halves = [np.asarray(a).dtype == np.float16 for a in (expected if isinstance(expected, tuple) else (expected,))]
    try:
        got = spelled_call(function, args, **options)
    except RuleError as problem:
        assert any(halves) and problem.code == "E307", f"{shown}: {problem}"
        return
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    for want, have in pairs:
        want, have = np.asarray(want), np.asarray(have)
        assert want.dtype == have.dtype, f"{shown}: dtype {have.dtype}, NumPy has {want.dtype}"
        assert want.shape == have.shape, f"{shown}: shape {have.shape}, NumPy has {want.shape}"
        assert_near(want, have, ulps, shown)


def assert_near(want: Any, have: Any, ulps: int, shown: str) -> None:
    if want.dtype.kind not in "fc":
        assert np.array_equal(want, have), f"{shown}: {have!r}, NumPy has {want!r}"
        return
    eps = np.finfo(want.dtype).eps
    with np.errstate(all="ignore"):
        near = np.abs(want - have) <= ulps * eps * np.abs(want)
        same = (want == have) | (np.isnan(want) & np.isnan(have)) | near
    assert np.all(same), f"{shown}: {have!r}, NumPy has {want!r}"
