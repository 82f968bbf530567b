"""Systems of integer inequalities, compared with trying all points of a box."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gradsmith.transpiler.ir.inequalities import may_hold

NAMES = ("i", "j", "k")
BOX = [{name: 1, "": 3} for name in NAMES] + [{name: -1, "": 3} for name in NAMES]     # -3 .. 3


def value(row, point):
    return sum(c * (point[name] if name else 1) for name, c in row.items())


def random_row(rng):
    return {name: int(c) for name, c in zip((*NAMES, ""), rng.integers(-3, 4, 4), strict=True)}


@pytest.mark.parametrize("seed", range(300))
def test_never_denies_a_solution(seed):
    rng = np.random.default_rng(seed)
    rows = [*BOX, *(random_row(rng) for _ in range(rng.integers(1, 5)))]
    zero = [random_row(rng) for _ in range(rng.integers(0, 3))]
    points = [dict(zip(NAMES, p, strict=True)) for p in product(range(-3, 4), repeat=3)]
    exists = any(all(value(r, p) >= 0 for r in rows) and all(value(r, p) == 0 for r in zero) for p in points)
    assert may_hold(rows, zero) or not exists


def test_sees_what_the_reverse_mode_needs():
    later = {"j": 1, "i": -1, "": -1}                              # j > i
    assert not may_hold([later], [{"j": 1, "i": -1, "": 1}])       # y[i - 1] is not written after iteration i
    assert may_hold([later], [{"j": 1, "i": -1, "": -1}])          # y[i + 1] is
    assert not may_hold([later], [{"j": 2, "i": -2, "": -1}])      # an even place is no odd one
    column = [{"k": 1}, {"j": 1, "k": -1, "": -1}, {"n": 1, "j": -1, "": -1}]      # 0 <= k < j < n
    assert not may_hold([*column, {"m": 1, "j": -1, "": -1}], [{"k": 1, "m": -1}])   # columns left of j are done
