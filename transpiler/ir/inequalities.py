"""Whether a system of linear inequalities over integers can have a solution.

Fourier-Motzkin elimination over the rationals, with every inequality tightened to integers (its constant is rounded
down after division by the coefficients' greatest common divisor) and equations substituted where a coefficient is 1
or -1.  It may say yes where there is no solution, never no where there is one.

Source: W. Pugh, "The Omega test: a fast and practical integer programming algorithm for dependence analysis",
Communications of the ACM 35 (1992), of which this is the part without splinters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

Row = Mapping[str, int]             # coefficients by variable; "" is the constant

MOST_ROWS = 400                     # beyond that, the answer is yes


def may_hold(at_least_zero: Iterable[Row], zero: Iterable[Row] = ()) -> bool:
    """Whether integers may exist for which all of the first are >= 0 and all of the second are 0."""
    equations = [_without_zeros(row) for row in zero]
    rows = [_without_zeros(row) for row in at_least_zero]
    while equations:
        row = equations.pop()
        scale = gcd(*(c for name, c in row.items() if name))
        if scale == 0:
            if row.get("", 0):
                return False
            continue
        if row.get("", 0) % scale:
            return False
        row = {name: c // scale for name, c in row.items()}
        name = next((n for n, c in row.items() if n and abs(c) == 1), None)
        if name is None:
            rows += [row, {n: -c for n, c in row.items()}]
            continue
        equations = [_substituted(other, name, row) for other in equations]
        rows = [_substituted(other, name, row) for other in rows]
    return _eliminate(rows)


def _without_zeros(row: Row) -> dict[str, int]:
    return {name: c for name, c in row.items() if c}


def _substituted(row: Row, name: str, equation: Row) -> dict[str, int]:
    """The row with a variable replaced by what the equation, in which it has the coefficient 1 or -1, says."""
    factor = row.get(name, 0)
    return combined(row, 1, equation, -factor * equation[name]) if factor else dict(row)


def combined(one: Row, a: int, other: Row, b: int) -> dict[str, int]:
    """a * one + b * other."""
    found = {name: a * c for name, c in one.items()}
    for name, c in other.items():
        found[name] = found.get(name, 0) + b * c
    return _without_zeros(found)


def _eliminate(rows: list[dict[str, int]]) -> bool:
    while True:
        tight = _tightened(rows)
        if tight is None:
            return False
        names = {name for row in tight for name in row if name}
        if not names:
            return True
        if len(tight) > MOST_ROWS:
            return True
        name = min(sorted(names), key=lambda n: _growth(tight, n))
        below = [row for row in tight if row.get(name, 0) > 0]
        above = [row for row in tight if row.get(name, 0) < 0]
        rows = [row for row in tight if not row.get(name, 0)]
        rows += [combined(low, -high[name], high, low[name]) for low in below for high in above]


def _growth(rows: list[dict[str, int]], name: str) -> int:
    below = sum(row.get(name, 0) > 0 for row in rows)
    above = sum(row.get(name, 0) < 0 for row in rows)
    return below * above - below - above


def _tightened(rows: list[dict[str, int]]) -> list[dict[str, int]] | None:
    """Each direction once, with its strongest bound; None where a row has no solution by itself."""
    best: dict[tuple[tuple[str, int], ...], int] = {}
    for row in rows:
        scale = gcd(*(c for name, c in row.items() if name))
        if scale == 0:
            if row.get("", 0) < 0:
                return None
            continue
        direction = tuple(sorted((name, c // scale) for name, c in row.items() if name))
        bound = row.get("", 0) // scale
        best[direction] = min(bound, best.get(direction, bound))
    for direction, bound in best.items():
        opposite = best.get(tuple((name, -c) for name, c in direction))
        if opposite is not None and bound + opposite < 0:
            return None
    return [{**dict(direction), "": bound} for direction, bound in best.items()]
