"""The lowering laws: every operation, as loops and as Python source, computes what its reference does."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from ops.checking import NAMES, as_tuple, assert_same, describe, func_of, run, samples_of, type_of

from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.registry import OPERATIONS
from gradsmith.transpiler.ir.types import map_dims
from gradsmith.transpiler.ops.base import Lowering
from gradsmith.transpiler.pipeline import run as run_pipeline

every_op = pytest.mark.parametrize("name", [n for n in NAMES if n != "empty"])

# Beyond the dtype's own tolerance: our kernels and the reference's libraries differ in the last places.
RTOL = {"float64": 1e-12, "float32": 2e-6, "complex128": 1e-12, "complex64": 2e-6}


def reference(op: Any, sample: Any) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        found: tuple[Any, ...] = as_tuple(op.reference(*sample.args, **sample.params))
    return found


def assert_agrees(op: Any, sample: Any, results: Any, what: str) -> None:
    for want, got in zip(reference(op, sample), as_tuple(results), strict=True):
        want = np.asarray(want)
        size = float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0)) if want.dtype.kind in "fc" else 0.0
        rtol = RTOL.get(want.dtype.name, 0.0)
        assert_same(want, got, f"{what} {describe(op, sample)}", rtol=rtol, atol=rtol * size * 0.01 + 1e-30)


def compiled(func: Func, decorator: bool | str) -> Any:
    """The emitted source, executed."""
    text = emit(func, name="main", decorator=decorator)
    namespace: dict[str, Any] = {}
    exec(compile(text, f"<{func.name}>", "exec"), namespace)
    return namespace["main"], text


@every_op
def test_lowered(name):
    op = OPERATIONS[name]
    for sample in samples_of(name):
        assert_agrees(op, sample, run(run_pipeline(func_of(op, sample)), *sample.args), "lowered")


@every_op
def test_lowered_with_named_sizes(name):
    op = OPERATIONS[name]
    for sample in samples_of(name):
        if sample.params:
            continue
        assert_agrees(op, sample, run(run_pipeline(func_of(op, sample, symbolic=True)), *sample.args), "lowered")


@every_op
def test_emitted_as_plain_python(name):
    op = OPERATIONS[name]
    for sample in samples_of(name):
        function, text = compiled(run_pipeline(func_of(op, sample)), decorator=False)
        with np.errstate(all="ignore"):
            results = function(*(np.asarray(a)[()] for a in sample.args))
        func = func_of(op, sample)
        types = [map_dims(r.type, lambda s: s) for r in func.results]
        typed = [np.asarray(r, t.dtype) if not t.shape else r for r, t in zip(as_tuple(results), types)]
        assert_agrees(op, sample, tuple(typed), text)


# ---------------------------------------------------------------------------------------------------------------
# compiled

PARTS = 12


def distinct_calls(op: Any) -> list[list[Any]]:
    """Samples by signature, for one compilation each; elementwise operations need one for vectors of each dtype."""
    seen: dict[str, list[Any]] = {}
    for sample in samples_of(op.name):
        types = [type_of(a) for a in sample.args]
        if op.lowering is Lowering.ELEMENTWISE:
            if any(t.rank != 1 for t in types):
                continue
            types = [t.with_shape(()) for t in types]
        seen.setdefault(f"{[str(t) for t in types]} {sample.params}", []).append(sample)
    return list(seen.values())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_compiled(part):
    """A share of the table in one module: every operation, dtype and parameter, compiled by Numba."""
    problems = []
    for name in [n for n in NAMES if n != "empty"][part::PARTS]:
        op = OPERATIONS[name]
        for samples in distinct_calls(op):
            text = ""
            try:
                symbolic = op.lowering is Lowering.ELEMENTWISE
                plain, text = compiled(run_pipeline(func_of(op, samples[0], symbolic)), decorator=False)
                function = numba.njit(nogil=True, error_model="numpy")(plain)
                for sample in samples:
                    results = as_tuple(function(*(np.asarray(a)[()] for a in sample.args)))
                    types = [r.type for r in func_of(op, sample).results]
                    assert_agrees(op, sample, tuple(np.asarray(r, t.dtype) if not t.shape else r for r, t in zip(results, types)), text)
            except Exception as problem:
                problems.append(f"{describe(op, samples[0])}\n{text}\n{type(problem).__name__}: {str(problem)[:600]}")
    assert not problems, "\n\n".join(problems)
