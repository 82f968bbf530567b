"""Programs that random ones were shrunk to, when something was wrong with them."""

from __future__ import annotations

import pytest
from programs.checks import check
from programs.writer import Program

FOUND = {
    "write in an arm, over what the arm reads": """
        y = x * 1.0
        if c > -9.0:
            y[1] *= y[0]
        return np.sum(y)
    """,
    "write at repeated indices in an arm": """
        z = x * 1.0
        if c > 9.0:
            z[1] = 1.0
        else:
            z[q] *= x[:3]
        return np.sum(z)
    """,
    "write in the last of three arms": """
        z = x * 1.0
        if c > 9.0:
            z[0] = 1.0
        elif c > 8.0:
            z[1] = 1.0
        else:
            z[q] *= x[:3]
        return np.sum(z)
    """,
    "condition saved from an arm in an arm": """
        s = c
        y = x * 1.0
        if s > -9.0:
            if y[0] > -9.0:
                y[1] *= y[0]
                if y[1] > 0.1:
                    s = y[1] * y[1]
        return s + np.sum(y)
    """,
    "condition saved from an arm in an arm of a loop": """
        s = c
        for e in x:
            if n == 1:
                if s < 5.0:
                    if -e >= -0.2:
                        break
                    s = s * e
        return s
    """,
    "arrays saved from arms in arms of a loop": """
        s = c
        y = x * 1.0
        for i in range(n):
            if s > -9.0:
                if y[0] > -9.0:
                    y[1] *= y[0]
                    if y[1] > 0.1:
                        s = np.sin(y[1] * y[1])
                    else:
                        y = np.sin(y)
                else:
                    s = s * y[2]
        return s + np.sum(y)
    """,
    "slices that a loop counts, left early": """
        s = 0.5
        for k in range(1, n):
            s += np.dot(x[:k], x[:k])
            if s > 3.0:
                break
        return s
    """,
    "tapes whose size is an int of the batch": """
        s = 0.5
        z = np.zeros(8)
        for i in range(2, -1, -1):
            k = 0
            while k < 2:
                k += 1
                if -0.01 < c < 0.01:
                    return 0.75
            for j in range(n - 1, 0, -2):
                z[z > -0.4] = np.sum(np.where(x > 0.2, x, 0.5))
                s = np.tanh(s) * c
        return s + np.sum(x) + np.sum(z)
    """,
    "result of a loop that is run again, read in an arm": """
        y = np.tanh(x)
        for i in range(n):
            for j in range(2):
                y[:] *= y
            if n > 0:
                y[0] *= y[1]
        return np.sum(y)
    """,
    "sizes inside of a loop that is run again": """
        s = c
        y = np.tanh(x)
        for e in x:
            k = 0
            while k < 2:
                k += 1
                y[0] = np.tanh(y[-1 - k] * e)
                for i in q:
                    s += y[i - 1]
                    y[i + 1] -= sum(v ** 2 for v in y if v > 0.1)
                    s *= np.cos(np.sin(0.1 * k) + e)
        return s + np.sum(y)
    """,
    "slices that a while loop counts": """
        s = 0.5
        k = 0
        while k < n:
            k += 1
            s += 0.1 * np.sin(np.sum(x[:k] * x[:k]) * s)
        return s
    """,
}


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("name", FOUND)
def test_found_programs(name, fixed):
    lines = FOUND[name].strip("\n").split("\n")
    source = "import numpy as np\n\ndef f(x, A, c, n, q):\n" + "\n".join(line[4:] for line in lines) + "\n"
    for thorough in (0, 1, 2, 5, 7, 8, 13, 14):
        outcome = check(Program(source, 3, (1, 1, 0), fixed), thorough=thorough)
        assert not outcome.refused
        assert outcome.points >= 3
