"""Every program of the suite in every kind, run by XLA on the CPU, gives what the evaluator gives of its trace.

The kinds of one program are one module, since compiling a module costs far more than running it.
"""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo.suite import KINDS, all_programs

import gradsmith
from gradsmith.to_stablehlo import described
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.ir.evaluate import evaluate

pytest.importorskip("jax")
from gradsmith import xla

pytestmark = pytest.mark.xla
PROGRAMS = {program.name: program for program in all_programs()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_xla_computes(name):
    kinds = PROGRAMS[name].kinds()
    funs = [kinds[kind][0] for kind in KINDS]
    args = [kinds[kind][1] for kind in KINDS]

    def everything(*args):
        return [fun(*own) for fun, own in zip(funs, args, strict=True)]

    made = gradsmith.stablehlo(everything, checked=True, max_trips=PROGRAMS[name].max_trips).lower(*args)
    *found, flag = xla.run(made.text, *made.arrays(), optimise=False)
    assert int(flag) == 0, made.failures[int(flag) - 1]
    given = described(args, {})
    traced = trace(everything, given.args)
    captures = [capture.get() for capture in traced.captures]
    known = {id(leaf) for leaf, _ in traced.static_args}
    values = [v for v, leaf in zip(given.values, given.leaves, strict=True) if id(leaf) not in known]
    expected = evaluate(traced.func, *values, *captures)
    assert len(expected) == len(found)
    for label, want, got in zip(made.results, expected, found, strict=True):
        room = 1e-4 if np.asarray(want).dtype == np.float32 else 1e-9
        np.testing.assert_allclose(got, want, rtol=room, atol=room / 100, err_msg=f"{KINDS} {label}")
