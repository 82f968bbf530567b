"""Funcs of the kernels, with and without their loops raised, run by the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradsmith.cli.generate import Request, traced
from gradsmith.cli.transform import generated_name, parse_transform
from gradsmith.transpiler import pipeline
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.raise_loops.findings import Finding
from gradsmith.transpiler.signature import parse_signature


def func_of(function: Callable[..., Any], signature: str, transform: str = "jit") -> Func:
    """As it is before loops are raised."""
    chain = () if transform == "jit" else parse_transform(transform)
    request = Request(function, function.__name__, chain, parse_signature(signature),
                      generated_name(function.__name__, chain))
    return pipeline.run(traced(request).func, stop="dead")


def raised(func: Func, *, keeps: bool = True) -> tuple[Func, list[Finding]]:
    findings: list[Finding] = []
    after = pipeline.raise_all(func, findings=findings, keeps=keeps)
    verify(after)
    return after, findings


def arguments(func: Func, seed: int = 0) -> list[Any]:
    """Square matrices are well-conditioned, ints are places in axes of at least four elements."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for param in func.params:
        shape = param.type.shape
        if param.type.dtype == "int64":
            found.append(rng.integers(0, 4, shape) if shape else np.int64(3))
            continue
        values = rng.normal(size=shape)
        found.append(np.asarray(values + 3 * np.eye(shape[0]) if len(shape) == 2 and shape[0] == shape[1] else values,
                                param.type.dtype)[()])
    return found


def assert_same(func: Func, after: Func, args: list[Any], rtol: float = 1e-12) -> None:
    """Shapes, dtypes and values agree; values to a part of the largest in the array, since sums are reordered."""
    with np.errstate(all="ignore"):
        wanted, found = evaluate(func, *args), evaluate(after, *args)
    assert len(wanted) == len(found)
    for want, got in zip(wanted, found):
        assert np.shape(want) == np.shape(got)
        assert np.asarray(want).dtype == np.asarray(got).dtype
        finite = np.append(np.abs(want)[np.isfinite(want)], 1.0)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * (finite.max() if finite.size else 0.0))
