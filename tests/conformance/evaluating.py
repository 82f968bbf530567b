"""Running a NumPy function through its spelling on arrays that may stand anywhere inside its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ops.spelling import as_value, find_spelling

ops.load_table()


def replaced(value: Any, change: Callable[[Any], Any]) -> Any:
    """The nest with `change` applied to its arrays."""
    if isinstance(value, np.ndarray | np.generic):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(replaced(v, change) for v in value)
    return value


def type_of(array: Any, named: bool) -> Type:
    """named: sizes over 1 become names, equal sizes the same."""
    shape = tuple(symbol(f"n{d}") if named and d > 1 else d for d in np.shape(array))
    return Type(np.asarray(array).dtype.name, shape)


def spelled_call(key: Any, *args: Any, named: bool = False, **options: Any) -> Any:
    """The result of the spelling of `key`, evaluated; lists and tuples stay lists."""
    spelling = find_spelling(key)
    assert spelling is not None, f"{key} has no spelling"
    arrays: list[Any] = []
    replaced([args, list(options.values())], arrays.append)
    several = False

    def body(*values: Any) -> tuple[Any, ...]:
        nonlocal several
        given = iter(values)
        operands = replaced(list(args), lambda _: next(given))
        keywords = dict(zip(options, replaced(list(options.values()), lambda _: next(given))))
        result = spelling(*operands, **keywords)
        several = isinstance(result, list | tuple)
        return tuple(map(as_value, result)) if several else (as_value(result),)

    func = build_func("call", [(f"x{k}", type_of(a, named)) for k, a in enumerate(arrays)], body)
    verify(func)
    results = evaluate(func, *arrays)
    return list(results) if several else results[0]


def numpy_function(key: Any) -> Callable[..., Any]:
    """What a spelling's key does in NumPy."""
    if isinstance(key, tuple):
        owner, name = key
        return getattr(owner, name)
    if isinstance(key, type(np.ndarray.T)):
        return lambda x: getattr(x, key.__name__)
    return key


def assert_conforms(key: Any, *args: Any, rtol: float | None = None, names: bool = True, **options: Any) -> None:
    """The spelling gives NumPy's dtype, shape and value, or refuses what NumPy refuses; with static sizes, and, where
    `names`, with named ones."""
    shown = f"{key}({', '.join(map(repr, args))}, {options})"
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = numpy_function(key)(*args, **options)
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as problem:
        for named in (False, True)[:1 + names]:
            try:
                got = spelled_call(key, *args, named=named, **options)
            except (RuleError, ValueError, TypeError, IndexError, ZeroDivisionError):
                continue
            raise AssertionError(f"{shown} gave {got!r}, but NumPy raises {problem!r}") from None
        return
    for named in (False, True)[:1 + names]:
        got = spelled_call(key, *args, named=named, **options)
        assert_equal(expected, got, rtol, shown + (" with named sizes" if named else ""))


def assert_equal(expected: Any, got: Any, rtol: float | None, shown: str) -> None:
    if isinstance(expected, list | tuple):
        assert isinstance(got, list), shown
        assert len(expected) == len(got), shown
        for e, g in zip(expected, got):
            assert_equal(e, g, rtol, shown)
        return
    want, have = np.asarray(expected), np.asarray(got)
    assert want.dtype == have.dtype, f"{shown}: dtype {have.dtype}, NumPy has {want.dtype}"
    assert want.shape == have.shape, f"{shown}: shape {have.shape}, NumPy has {want.shape}"
    if want.dtype.kind not in "fc" or rtol == 0:
        np.testing.assert_array_equal(have, want, err_msg=shown)
        return
    eps = np.finfo(want.dtype).eps
    scale = np.max(np.abs(want), initial=0, where=np.isfinite(want))
    np.testing.assert_allclose(have, want, rtol=rtol or 8 * eps, atol=8 * eps * scale, err_msg=shown)


def array(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> Any:
    """Small numbers of any dtype, with repetitions among ints and bools."""
    values = np.random.default_rng([seed, len(shape), *shape]).uniform(-4, 4, shape)
    if dtype == "bool":
        return np.asarray(values > 0)
    if np.dtype(dtype).kind == "u":
        values = np.abs(values)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[..., ::-1] if shape else values + 1j).astype(dtype)
    return np.asarray(values.astype(dtype))
