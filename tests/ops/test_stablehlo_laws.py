"""StableHLO says what the reference says: every operation, its derivatives too, on all samples, run by XLA on the CPU.

The samples of one operation share one module, since compiling a module costs far more than running it.
"""

from __future__ import annotations

import numpy as np
import pytest
from ops.checking import (
    NAMES,
    as_tuple,
    assert_same,
    describe,
    directions,
    func_of,
    inexact,
    kept,
    lacks,
    run,
    samples_of,
)

from gradsmith.transpiler.emit.stablehlo import emit_stablehlo
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.registry import OPERATIONS
from gradsmith.transpiler.ir.walk import inline
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

pytest.importorskip("jax")
from gradsmith import xla

pytestmark = pytest.mark.xla
every_op = pytest.mark.parametrize("name", NAMES)

# Operations that StableHLO lacks, on purpose.  A new one is added here with its reason in the rule.
WITHOUT = set()

# (relative, absolute) tolerance in double and in single precision.
USUAL = {"float64": (1e-12, 1e-14), "float32": (1e-5, 1e-6)}

# Operations that need more room, and why.
LOOSER: dict[str, tuple[dict[str, tuple[float, float]], str]] = {}


def test_operations_without_a_rule_are_known():
    assert WITHOUT == {name for name in NAMES if lacks(OPERATIONS[name], "stablehlo")}


@every_op
def test_values(name):
    op = OPERATIONS[name]
    cases = []
    for sample in samples_of(name):
        with np.errstate(all="ignore"):
            cases.append((describe(op, sample), func_of(op, sample), sample.args,
                          as_tuple(op.reference(*sample.args, **sample.params))))
    check(name, cases, compared=name != "empty")


@every_op
@pytest.mark.parametrize("mode", ["jvp", "vjp"])
def test_derivatives(name, mode):
    op = OPERATIONS[name]
    if lacks(op, mode):
        pytest.skip(f"{name} has no {mode} rule")
    cases = []
    for sample in samples_of(name):
        func, flags = func_of(op, sample), inexact(sample.args)
        results = run(func, *sample.args)
        if not any(flags) or not any(inexact(results)):
            continue
        if mode == "jvp":
            func, along = jvp(func, flags), directions(kept(sample.args, flags))
        else:
            func, along = vjp(func, flags), directions(kept(results, inexact(results)))
        args = (*sample.args, *along)
        cases.append((f"{mode} of {describe(op, sample)}", func, args, run(func, *args)))
    check(name, cases)


def check(name, cases, compared=True):
    """Run all cases in one module, and compare."""
    if lacks(OPERATIONS[name], "stablehlo"):
        for _, func, _, _ in cases:
            with pytest.raises(RuleError, match="cannot be written in StableHLO"):
                emit_stablehlo(func)
        return
    if not cases:
        return
    text = emit_stablehlo(together(name, [func for _, func, _, _ in cases]))
    found = iter(xla.run(text, *[arg for _, _, args, _ in cases for arg in args]))
    room = LOOSER.get(name, ({}, ""))[0]
    for what, _, _, expected in cases:
        for want in expected:
            got = next(found)
            part = np.asarray(want).real.dtype.name
            rtol, atol = room.get(part, USUAL.get(part, (0, 0)))
            if compared:
                assert_same(want, got, what, rtol, atol)


def together(name, funcs):
    """One func whose params and results are those of all funcs."""
    params = [(f"a{k}_{p.name}", p.type) for k, func in enumerate(funcs) for p in func.params]

    def body(*values):
        rest, results = list(values), []
        for func in funcs:
            args, rest = rest[:len(func.params)], rest[len(func.params):]
            results += inline(func, args)
        return results

    return build_func(name, params, body)
