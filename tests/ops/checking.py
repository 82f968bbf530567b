"""What the laws of the operation table need: funcs from samples, numerical derivatives, comparisons of shape and value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Func, Value
from gradsmith.transpiler.ir.registry import OPERATIONS
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ops.base import Op, Sample

ops.load_table()
NAMES = sorted(OPERATIONS)

# How far from exact a result of that dtype may be: relative, and absolute.
TOLERANCE = {"float32": (3e-5, 1e-6), "complex64": (3e-5, 1e-6), "float64": (1e-10, 1e-12), "complex128": (1e-10, 1e-12)}


def samples_of(name: str) -> list[Sample]:
    found: list[Sample] = OPERATIONS[name].samples()
    assert found, f"{name} has no samples"
    return found


def lacks(op: Op, *rules: str) -> bool:
    """Whether one of these rules was left out on purpose."""
    return any(hasattr(getattr(op, rule), "unsupported") for rule in rules)


def type_of(value: Any, symbolic: bool = False) -> Type:
    """The IR type of a NumPy value; with `symbolic`, equal sizes of at least 2 become the same named size."""
    array = np.asarray(value)
    return Type(array.dtype.name, tuple(symbol(f"n{d}") if symbolic and d >= 2 else d for d in array.shape))


def func_of(op: Op, sample: Sample, symbolic: bool = False) -> Func:
    """The func that does nothing but call `op` on its params."""
    params = [(f"x{k}", type_of(arg, symbolic)) for k, arg in enumerate(sample.args)]
    return build_func(op.name, params, lambda *xs: as_tuple(op(*xs, **sample.params)))


def as_tuple(results: Any) -> tuple[Value, ...]:
    return results if isinstance(results, tuple) else (results,)


def is_inexact(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"


def inexact(values: Sequence[Any]) -> list[bool]:
    return [is_inexact(v) for v in values]


def kept(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [v for v, flag in zip(values, flags, strict=True) if flag]


def random_like(value: Any, seed: int) -> Any:
    """A direction of the same shape and dtype, with entries of size about 1."""
    array = np.asarray(value)
    draw = np.random.default_rng([seed, array.size, array.ndim])
    direction = draw.uniform(0.3, 1.0, array.shape) * draw.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        direction = direction + 1j * draw.uniform(-1.0, 1.0, array.shape)
    return direction.astype(array.dtype)[()]


def directions(values: Sequence[Any], seed: int = 0) -> list[Any]:
    return [random_like(v, seed + k) for k, v in enumerate(values)]


def pairing(left: Sequence[Any], right: Sequence[Any]) -> float:
    """Re sum(left * right): how cotangents act on tangents."""
    return float(sum(np.sum(np.real(np.asarray(a) * np.asarray(b)).astype("float64")) for a, b in zip(left, right, strict=True)))


def slope(func: Callable[..., Sequence[Any]], args: Sequence[Any], along: Sequence[Any], step: float = 1e-4) -> list[Any]:
    """d/dt func(args + t * along) at t = 0, by central differences extrapolated three times (Richardson).

    `along` has None for an argument that stays.
    """
    def at(t: float) -> list[Any]:
        return [np.asarray(r) for r in func(*[x if v is None else np.asarray(x + t * v)[()] for x, v in zip(args, along, strict=True)])]

    with np.errstate(all="ignore"):
        table = [[(a - b) / (2 * h) for a, b in zip(at(h), at(-h), strict=True)] for h in (step, step / 2, step / 4)]
        for order in (1, 2):
            factor = 4.0 ** order
            table = [[(factor * b - a) / (factor - 1) for a, b in zip(coarse, fine, strict=True)] for coarse, fine in zip(table, table[1:])]
    return table[0]


def assert_same(expected: Any, actual: Any, message: str = "", rtol: float | None = None, atol: float | None = None) -> None:
    """Equal dtype and shape, then values up to the dtype's tolerance; NaN equals NaN."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.dtype == actual.dtype, f"{message}: dtype {actual.dtype}, expected {expected.dtype}"
    assert_close(expected, actual, message, rtol, atol)


def assert_close(expected: Any, actual: Any, message: str = "", rtol: float | None = None, atol: float | None = None) -> None:
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.shape == actual.shape, f"{message}: shape {actual.shape}, expected {expected.shape}"
    if expected.dtype.kind not in "fc":
        assert np.array_equal(expected, actual), f"{message}: {actual!r}, expected {expected!r}"
        return
    usual = TOLERANCE.get(actual.dtype.name, (1e-12, 1e-12))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(actual, expected, rtol=usual[0] if rtol is None else rtol,
                                   atol=usual[1] if atol is None else atol, equal_nan=True, err_msg=message)


def describe(op: Op, sample: Sample) -> str:
    shown = ", ".join(str(type_of(a)) for a in sample.args)
    return f"{op.name}({shown}) {sample.params}{' corner' if sample.corner else ''}"


def smooth_samples(name: str) -> Iterator[Sample]:
    """Samples in double precision that may be compared with differences."""
    for sample in samples_of(name):
        if sample.corner or not any(map(is_inexact, sample.args)):
            continue
        results = run(func_of(OPERATIONS[name], sample), *sample.args)
        dtypes = {np.asarray(a).dtype.name for a in (*sample.args, *results) if is_inexact(a)}
        if dtypes <= {"float64", "complex128"}:
            yield sample


def run(func: Func, *args: Any) -> tuple[Any, ...]:
    return evaluate(func, *args)
