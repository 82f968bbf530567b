"""StableHLO says what the reference says: every operation, its derivatives too, on all samples, run by XLA on the CPU.

The samples of one operation share one module, since compiling a module costs far more than running it.
"""

from __future__ import annotations

import numpy as np
import pytest
from ops.checking import (
    NAMES,
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
from gradsmith.transpiler.ops.decompositions import scaled_columns
from gradsmith.transpiler.ops.matrices import matmul, outer
from gradsmith.transpiler.optimize.common import share_common
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

pytest.importorskip("jax")
from gradsmith import xla

pytestmark = pytest.mark.xla
every_op = pytest.mark.parametrize("name", NAMES)

# Results up to the signs of vectors: what does not depend on these.
INVARIANTS = {
    "eigh": lambda w, v: (w, outer(scaled_columns(v, w * w), v, True)),
    "svd": lambda u, s, vt: (s, matmul(scaled_columns(u, s * s * s), vt)),
}

# Where values coincide, their derivatives are those along the vectors that were chosen.
OF_CHOSEN_VECTORS = {"eigh", "eigvalsh", "svd", "singular_values"}

# (relative, absolute) tolerance in double and in single precision.
USUAL = {"float64": (1e-12, 1e-14), "float32": (1e-5, 1e-6)}

# Operations that need more room, and why.
LOOSER = {
    "sinc_derivative": ({"float32": (1e-4, 1e-5)}, "its recurrence divides by x at every order"),
    "adjugate_tangent": ({"float64": (1e-11, 1e-13)}, "products of cofactors cancel"),
}


def test_every_operation_has_a_rule():
    assert set() == {name for name in NAMES if lacks(OPERATIONS[name], "stablehlo")}


@every_op
def test_values_and_derivatives(name):
    op = OPERATIONS[name]
    cases = [case for sample in samples_of(name) for case in cases_of(op, sample)]
    if lacks(op, "stablehlo"):
        for _, func, _, _ in cases:
            with pytest.raises(RuleError, match="cannot be written in StableHLO"):
                emit_stablehlo(func)
        return
    text, args = together(name, cases)
    found = iter(xla.run(text, *args, optimise=False))
    room = LOOSER.get(name, ({}, ""))[0]
    for what, _, _, expected in cases:
        for want in expected:
            got = next(found)
            part = np.asarray(want).real.dtype.name
            rtol, atol = room.get(part, USUAL.get(part, (0, 0)))
            if name != "empty":
                assert_same(want, got, what, rtol, atol)


def cases_of(op, sample):
    """(what, func, arguments, expected results): the operation itself, its jvp and its vjp."""
    plain, flags = func_of(op, sample), inexact(sample.args)
    if op.name in INVARIANTS:
        plain = build_func(op.name, [(p.name, p.type) for p in plain.params], lambda *args: INVARIANTS[op.name](
            *op(*args, **sample.params)))
    expected = run(plain, *sample.args)
    yield describe(op, sample), plain, sample.args, expected
    is_chosen = sample.corner and op.name in OF_CHOSEN_VECTORS
    if not any(flags) or not any(inexact(expected)) or is_chosen or op.derivatives_left(**sample.params) < 1:
        return
    if not lacks(op, "jvp"):
        args = (*sample.args, *directions(kept(sample.args, flags)))
        func = jvp(plain, flags)
        yield f"jvp of {describe(op, sample)}", func, args, run(func, *args)
    if not lacks(op, "vjp"):
        args = (*sample.args, *directions(kept(expected, inexact(expected))))
        func = vjp(plain, flags)
        yield f"vjp of {describe(op, sample)}", func, args, run(func, *args)


def together(name, cases):
    """The text of one func that does what the funcs of all cases do, and its arguments.

    Equal arguments are one param, so that XLA shares what a func and its derivatives have in common.
    """
    params, args, places = [], [], {}
    for _, func, values, _ in cases:
        for param, value in zip(func.params, values, strict=True):
            key = (param.type, np.asarray(value).tobytes())
            if key not in places:
                places[key] = len(args)
                params.append((f"a{len(args)}", param.type))
                args.append(value)

    def body(*given):
        return [result for _, func, values, _ in cases for result in inline(func, [
            given[places[param.type, np.asarray(value).tobytes()]] for param, value in zip(func.params, values)])]

    return emit_stablehlo(share_common(build_func(name, params, body))), args
