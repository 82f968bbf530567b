"""Jacobians and Hessians: a Hessian beside JAX's, a sparse Jacobian beside the function itself."""

from __future__ import annotations

from time import perf_counter
from timeit import Timer

import numpy as np
from measures import FULL, Effort, Row, best_times, call_times

SIZE = 100_000


def bidiagonal(x):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i] * x[i - 1] - np.cos(x[i])
    return y


def hessians(effort: Effort) -> list[Row]:
    rows = []
    for name, size in (("hessian of logistic regression", "100 parameters, 1,000 examples"),
                       ("hessian of logistic regression, few", "100 parameters, 200 examples")):
        ours, theirs = call_times(name, effort)
        rows.append(Row("second derivatives", f"{name}, {size}", ours, theirs, "µs", "≤ 1.0x", ours <= theirs))
    return rows


def sparse(effort: Effort) -> list[Row]:
    """`theirs` is one call of the compiled function."""
    import gradsmith
    x = np.linspace(0.0, 1.0, SIZE if effort is FULL else SIZE // 100)
    function, jacobian = gradsmith.jit(bidiagonal), gradsmith.sparse_jacobian(bidiagonal)
    start = perf_counter()
    jacobian(x)
    first = perf_counter() - start
    for _ in range(6):                      # past the compilation of a parallel version, too
        function(x), jacobian(x)

    def anew() -> None:
        """Nothing is known of the pattern, as after a change of what it follows from."""
        again = gradsmith.sparse_jacobian(bidiagonal)
        again._of_argnums = jacobian._of_argnums
        again(x)

    anew()
    own, plain = best_times(Timer(lambda: jacobian(x)).timeit, Timer(lambda: function(x)).timeit, effort)
    found, _ = best_times(Timer(anew).timeit, Timer(lambda: function(x)).timeit, effort)
    group, what = "sparse Jacobian, beside one call of the function", f"bidiagonal, n = {len(x):,}"
    tangents, cotangents = jacobian.passes(x)
    return [Row(group, f"{what}, pattern known", own, plain, "ms", "≤ 50x", own <= 50 * plain),
            Row(group, f"{what}, pattern found again", found, plain, "ms"),
            Row(group, f"{what}, first call, with what is compiled", first, None, "ms"),
            Row(group, f"{what}, colours", tangents + cotangents, None, "", "= 2", tangents + cotangents == 2)]


def measure_jacobians(effort: Effort) -> list[Row]:
    return hessians(effort) + sparse(effort)
