"""The laws that every operation of the table keeps, on all of its samples.

A new operation needs no test of its own: it is here as soon as it is in the table.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ops.checking import (
    NAMES,
    TOLERANCE,
    as_tuple,
    assert_close,
    assert_same,
    describe,
    directions,
    func_of,
    inexact,
    is_inexact,
    kept,
    lacks,
    pairing,
    run,
    samples_of,
    slope,
    smooth_samples,
    type_of,
)

from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.registry import OPERATIONS
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ops.base import Into, Lowering, Product
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.marking import marking
from gradsmith.transpiler.transforms.vjp import vjp

every_op = pytest.mark.parametrize("name", NAMES)


# ---------------------------------------------------------------------------------------------------------------
# values


@every_op
def test_infer_and_reference_agree(name):
    """The evaluator compares each result with the inferred type, and arguments are never written to."""
    op = OPERATIONS[name]
    for sample in samples_of(name):
        func = func_of(op, sample)
        verify(func)
        results = run(func, *sample.args)
        with np.errstate(all="ignore"):
            expected = op.reference(*sample.args, **sample.params)
        if name == "empty":
            continue
        for want, got in zip(as_tuple(expected), results, strict=True):
            assert_close(want, got, describe(op, sample))


@every_op
def test_infer_with_named_sizes(name):
    """Types with named sizes mean the same.  Parameters that hold sizes may not fit named ones, which is an error."""
    op = OPERATIONS[name]
    for sample in samples_of(name):
        try:
            func = func_of(op, sample, symbolic=True)
        except RuleError:
            assert sample.params, describe(op, sample)
            continue
        verify(func)
        run(func, *sample.args)


# ---------------------------------------------------------------------------------------------------------------
# first derivatives


def differentiable(op, sample, times=1):
    """The args that move, or None where so many derivatives of a real or complex result are not to be had."""
    moving = inexact(sample.args)
    if not any(moving) or lacks(op, "jvp") or op.derivatives_left(**sample.params) < times:
        return None
    return moving if any(is_inexact(r) for r in run(func_of(op, sample), *sample.args)) else None


def assert_slopes(func, moving, args, message, rtol=1e-7, atol=1e-8):
    """jvp of the func against differences of the func."""
    along = directions(args, seed=3)
    forward = run(jvp(func, moving), *args, *kept(along, moving))
    results = run(func, *args)
    tangents = forward[len(results):]

    def moved(*at):
        return kept(run(func, *at), inexact(results))

    expected = slope(moved, args, [v if m else None for v, m in zip(along, moving)])
    for want, got in zip(expected, tangents, strict=True):
        assert_close(want, got, message, rtol=rtol, atol=atol * max(1.0, float(np.max(np.abs(want), initial=0.0))))


def assert_adjoint(func, moving, args, message):
    """<ct, J t> = <J' ct, t>."""
    tangents = kept(directions(args, seed=5), moving)
    results = run(func, *args)
    forward = run(jvp(func, moving), *args, *tangents)[len(results):]
    cts = directions(kept(results, inexact(results)), seed=7)
    back = run(vjp(func, moving), *args, *cts)[len(results):]
    for arg, bar in zip(kept(args, moving), back, strict=True):
        assert np.shape(arg) == np.shape(bar), message
        assert np.asarray(arg).dtype == np.asarray(bar).dtype, message
    left, right = pairing(cts, forward), pairing(back, tangents)
    rtol = max(TOLERANCE[np.asarray(x).dtype.name][0] for x in [*tangents, *cts])
    scale = 1 + sum(float(np.sum(np.abs(np.asarray(a) * np.asarray(b)))) for a, b in zip(cts, forward))
    assert abs(left - right) <= 100 * rtol * scale, f"{message}: forward {left}, reverse {right}"


@every_op
def test_jvp_against_differences(name):
    op = OPERATIONS[name]
    for sample in smooth_samples(name):
        moving = differentiable(op, sample)
        if moving is not None:
            assert_slopes(func_of(op, sample), moving, sample.args, describe(op, sample))


@every_op
def test_jvp_and_vjp_are_adjoint(name):
    op = OPERATIONS[name]
    for sample in samples_of(name):
        moving = differentiable(op, sample)
        if moving is None or sample.corner or lacks(op, "vjp"):
            continue
        for chosen in itertools.product([False, True], repeat=sum(moving)):
            if any(chosen):
                picks = iter(chosen)
                assert_adjoint(func_of(op, sample), [m and next(picks) for m in moving], sample.args, describe(op, sample))


@every_op
def test_derivatives_at_corners_are_not_nan(name):
    """Where arguments and results are finite, so that NaN has no excuse."""
    op = OPERATIONS[name]
    for sample in samples_of(name):
        moving = differentiable(op, sample)
        if moving is None or not sample.corner:
            continue
        func = func_of(op, sample)
        results = run(func, *sample.args)
        fine = [np.isfinite(a) for a in (*sample.args, *results)]
        everywhere = all(np.all(f) for f in fine)
        shapes = {np.shape(f) for f in fine}
        if op.lowering is Lowering.ELEMENTWISE and len(shapes) == 1:
            plain = np.logical_and.reduce(fine)
        elif everywhere:
            plain = None
        else:
            continue
        tangents = [np.ones_like(a) for a in kept(sample.args, moving)]
        cts = [np.ones_like(r) for r in results if is_inexact(r)]
        found = list(run(jvp(func, moving), *sample.args, *tangents)[len(results):])
        if not lacks(op, "vjp"):
            found += run(vjp(func, moving), *sample.args, *cts)[len(results):]
        for got in found:
            assert not np.any(np.isnan(got) if plain is None else np.isnan(got) & plain), f"{describe(op, sample)}: {got}"


@every_op
def test_cotangents_of_zero_stay_zero(name):
    """Also where arguments, results and partials are infinite or NaN."""
    op = OPERATIONS[name]
    for sample in samples_of(name):
        moving = differentiable(op, sample)
        if moving is None or lacks(op, "vjp"):
            continue
        results = run(func_of(op, sample), *sample.args)

        def pull(*values):
            xs, cts = values[:len(sample.args)], iter(values[len(sample.args):])
            result = op(*xs, **sample.params)
            given = tuple(next(cts) if is_inexact(r) else None for r in results)
            parts = op.vjp(given if op.result_count > 1 else given[0], xs, result, moving, **sample.params)
            return [p for p in parts if p is not None and not isinstance(p, Into)]

        zeros = [np.zeros_like(r) for r in results if is_inexact(r)]
        params = [(f"x{k}", type_of(a)) for k, a in enumerate((*sample.args, *zeros))]
        for bar in run(build_func(name, params, pull), *sample.args, *zeros):
            assert not np.any(bar != 0), f"{describe(op, sample)}: {bar}"


@pytest.mark.parametrize("name", [name for name in NAMES if OPERATIONS[name].linear_in])
def test_what_is_said_of_arguments_holds(name):
    """Linear in some of them together; zero where the first is."""
    op = OPERATIONS[name]
    for sample in samples_of(name):
        if not all(np.all(np.isfinite(a)) for a in sample.args) or not is_inexact(sample.args[-1]):
            continue
        for together in op.linear_in:
            others = [np.flip(a) if k in together else a for k, a in enumerate(sample.args)]
            both = [a - 2 * b if k in together else a for k, (a, b) in enumerate(zip(sample.args, others))]
            one, other, result = (op.reference(*args, **sample.params) for args in (sample.args, others, both))
            np.testing.assert_allclose(result, one - 2 * other, rtol=1e-5, atol=1e-5)
        if op.multiplies is Product.ZEROS_WIN:
            for far in (np.inf, np.nan):
                rest = [np.full_like(a, far) for a in sample.args[1:]]
                with np.errstate(all="ignore"):
                    assert not np.any(op.reference(np.zeros_like(sample.args[0]), *rest, **sample.params))


# ---------------------------------------------------------------------------------------------------------------
# second derivatives: the rules emit operations, whose rules must fit


@every_op
def test_jvp_of_jvp_and_vjp(name):
    op = OPERATIONS[name]
    for sample in smooth_samples(name):
        moving = differentiable(op, sample, 2)
        if moving is None:
            continue
        func = func_of(op, sample)
        results = run(func, *sample.args)
        tangents = kept(directions(sample.args, seed=11), moving)
        pushed = jvp(func, moving)
        assert_slopes(pushed, [*moving, *[True] * len(tangents)], (*sample.args, *tangents),
                      f"jvp of jvp of {describe(op, sample)}", 1e-6, 1e-7)
        if lacks(op, "vjp"):
            continue
        cts = directions(kept(results, inexact(results)), seed=13)
        pulled = vjp(func, moving)
        assert_slopes(pulled, [*moving, *[True] * len(cts)], (*sample.args, *cts),
                      f"jvp of vjp of {describe(op, sample)}", 1e-6, 1e-7)


@every_op
def test_vjp_of_jvp_and_vjp(name):
    op = OPERATIONS[name]
    for sample in smooth_samples(name):
        moving = differentiable(op, sample, 2)
        if moving is None or lacks(op, "vjp"):
            continue
        func = func_of(op, sample)
        results = run(func, *sample.args)
        tangents = kept(directions(sample.args, seed=11), moving)
        assert_adjoint(jvp(func, moving), [*moving, *[True] * len(tangents)], (*sample.args, *tangents),
                       f"vjp of jvp of {describe(op, sample)}")
        cts = directions(kept(results, inexact(results)), seed=13)
        assert_adjoint(vjp(func, moving), [*moving, *[True] * len(cts)], (*sample.args, *cts),
                       f"vjp of vjp of {describe(op, sample)}")


# ---------------------------------------------------------------------------------------------------------------
# batches


def lanes_of(op, arg):
    """Three valid versions of an argument."""
    array = np.asarray(arg)
    if array.dtype.kind in "fc":
        return np.stack([array, (0.75 * array).astype(array.dtype), array])
    other = np.flip(array) if op.lowering is Lowering.ELEMENTWISE else array
    return np.stack([array, other, array])


@every_op
def test_batch_is_a_loop_over_lanes(name):
    op = OPERATIONS[name]
    if lacks(op, "batch"):
        return
    for sample in samples_of(name):
        lanes = [lanes_of(op, a) for a in sample.args]
        for batched in itertools.product([False, True], repeat=len(sample.args)):
            if not any(batched):
                continue
            args = [lane if b else arg for lane, arg, b in zip(lanes, sample.args, batched)]
            params = [(f"x{k}", type_of(a)) for k, a in enumerate(args)]
            func = build_func(name, params, lambda *xs: as_tuple(op.batch(xs, batched, **sample.params)))
            results = run(func, *args)
            with np.errstate(all="ignore"):
                rows = [as_tuple(op.reference(*(a[k] if b else a for a, b in zip(args, batched)), **sample.params)) for k in range(3)]
            for k, got in enumerate(results):
                assert_same(np.stack([row[k] for row in rows]), got, f"{describe(op, sample)} batched {batched}")


# ---------------------------------------------------------------------------------------------------------------
# marks


@every_op
def test_marks_tell_every_dependence(name):
    """An element whose tangent is not zero when input k moves has the bit of input k."""
    op = OPERATIONS[name]
    if lacks(op, "jvp"):
        pytest.skip("no jvp")
    for sample in samples_of(name):
        flags = inexact(sample.args)
        if not any(flags) or op.derivatives_left(**sample.params) < 1:
            continue
        func = func_of(op, sample)
        sizes = [np.size(a) for a in kept(sample.args, flags)]
        numbers = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        shapes = [np.shape(a) for a in kept(sample.args, flags)]
        bits = [np.reshape(np.left_shift(1, n % 64), shape)[()] for n, shape in zip(numbers, shapes, strict=True)]
        marks = run(marking(func, flags), *sample.args, *bits)
        forward = jvp(func, flags)
        count = len(func.results)
        for k in range(sum(sizes)):
            unit = [np.reshape(n == k, shape).astype(a.dtype)[()]
                    for n, shape, a in zip(numbers, shapes, kept(sample.args, flags), strict=True)]
            for mark, moved in zip(marks, run(forward, *sample.args, *unit)[count:], strict=True):
                assert np.shape(moved) == np.shape(mark)
                missed = (moved != 0) & (mark >> (k % 64) & 1 == 0)
                assert not np.any(missed), f"{describe(op, sample)}: {k} is not in {mark!r}, but moves it by {moved!r}"
