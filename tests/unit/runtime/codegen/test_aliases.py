"""What LLVM is told of the memory of variables that hold one array or another."""

from __future__ import annotations

import numpy as np
from unit.runtime.codegen.two_ways import require_same

from gradsmith.codegen.aliases import ARGUMENT, Held, _all_of

SWAPPED = """
def f(x, n):
    u = x.copy()
    v = np.zeros(x.shape[0])
    tape = empty((n, x.shape[0]))
    for t in range(n):
        for i in range(x.shape[0]):
            tape[t, i] = u[i]
        for i in range(1, x.shape[0]):
            v[i] = u[i] + 0.5 * u[i - 1]
        u, v = v, u
    for t in range(n - 1, -1, -1):
        for i in range(1, x.shape[0]):
            v[i] += u[i] * tape[t, i - 1]
        u, v = v, u
    return u, v
"""


def test_swapped_arrays():
    x = np.linspace(0.1, 1.0, 9)
    require_same(SWAPPED, "f", (x, 0), (x, 1), (x, 4))


def test_what_a_variable_may_hold():
    """Two variables that take turns hold what either was given; one that also holds something unknown may hold all."""
    u, v = Held([1]), Held([2])
    u.roots.append(v)
    v.roots.append(u)
    assert {1, 2} == _all_of(u) == _all_of(v)
    assert {ARGUMENT, 1, 2} == _all_of(Held([u, ARGUMENT]))
    assert _all_of(Held([u, None])) is None
    assert {3} == _all_of(3)
