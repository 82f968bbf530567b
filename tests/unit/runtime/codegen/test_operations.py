"""Every operation of the table, for every dtype and parameter of its samples, compiled and beside its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import typeof
from ops.test_lowering import NAMES, OPERATIONS, as_tuple, assert_agrees, distinct_calls, func_of, run_pipeline
from unit.runtime.codegen.two_ways import ours

from gradsmith.codegen.values import NotCovered
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ops.base import Lowering

PARTS = 6
LEFT_TO_NUMBA = {"powers"}


@pytest.mark.parametrize("part", [pytest.param(k, marks=[pytest.mark.slow] if k else []) for k in range(PARTS)])
def test_operations(part):
    left: set[str] = set()
    calls = [(OPERATIONS[name], samples) for name in NAMES if name != "empty"
             for samples in distinct_calls(OPERATIONS[name])]
    for op, samples in calls[part::PARTS]:
        text = emit(run_pipeline(func_of(op, samples[0], op.lowering is Lowering.ELEMENTWISE)), name="f", quick=True)
        signature = [typeof(x) for x in _arguments(samples[0])]
        try:
            function = ours(text, "f", signature)
        except NotCovered as reason:
            left.add(str(reason))
            continue
        for sample in samples:
            args = _arguments(sample)
            if [typeof(x) for x in args] == signature:
                types = [r.type for r in func_of(op, sample).results]
                results = zip(as_tuple(function(*args)), types, strict=True)
                assert_agrees(op, sample, tuple(r if t.shape else np.asarray(r, t.dtype) for r, t in results), text)
    assert left <= LEFT_TO_NUMBA


def _arguments(sample: Any) -> list[Any]:
    return [np.asarray(x)[()] for x in sample.args]
