"""Branches, loops, exits, unset names, containers and lists: each program in value, gradient, forward mode and batch."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from everywhere import TRIPS, check_everywhere, collect, ramp, ramps, trips

PROGRAMS = []
program = collect(PROGRAMS)


@program(*ramps())
def short_circuit(x):
    if x.shape[0] > 0 and x[0] > -1.0:
        return x[0] * 2
    return np.sum(x) * 3


@program(*ramps())
def or_index(x):
    s = 0.0
    i = 0
    while i < len(x) and (x[i] < 0 or x[i] * x[i] < 1.0):
        s += x[i] ** 2
        i += 1
    return s + i


@program((0.4,), (2.0,), (-3.0,))
def walrus(x):
    if (y := x * x) > 1:
        return y * 2
    return y + (z := x + 1) * z


@program(*ramps())
def walrus_while(x):
    i = 0
    s = 0.0
    while (i := i + 1) <= len(x):
        s += x[i - 1] * i
    return s


@program((1.3, 0, 5, 1), (1.3, 5, 0, -1), (1.3, 0, 10, 3), (1.3, 10, -1, -4), (1.3, 3, 3, 1), (1.3, 0, 5, -1), (1.3, -3, 4, 2))
def range_bounds(x, a, b, c):
    s = 0.0
    for i in range(a, b, c):
        s += x ** 2 * i + x
    return s


@program((1.3, 0, 5), (1.3, 5, 0), (1.3, -2, 2))
def range_neg(x, a, b):
    s = x
    for i in range(b, a, -2):
        s = s * x + i
    return s


@program((1.3, 0),)
def range_zero_step(x, c):
    s = 0.0
    for i in range(0, 4, c):
        s += x
    return s


@program(*[(np.outer(ramp(n), ramp(3)),) for n in TRIPS])
def rows(X):
    s = 0.0
    for row in X:
        s += np.sum(row ** 2) * row[0]
        for v in row:
            s = s + np.sin(v)
    return s


@program(*[(ramp(n), ramp(m)) for n in TRIPS for m in (0, 2, 3)])
def uneven_zip(x, y):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, y), start=2):
        s += a * b * i
    return s


@program(*ramps())
def zip_range(x):
    s = 0.0
    for a, k in zip(x, range(5)):
        s += a ** k
    for k, a in zip(range(1, 9, 3), reversed(x)):
        s += a * k
    return s


@program(*ramps())
def rev_enum(x):
    s = 0.0
    for k, a in reversed(list(enumerate(x))) if len(x) < 3 else enumerate(reversed(x)):
        s = s * 0.5 + a * k
    return s


@program(*trips(0.7))
def rev_range(x, n):
    s = 0.0
    for i in reversed(range(n)):
        s = s * x + i
    for i in reversed(range(1, 2 * n, 3)):
        s = s * x - i
    return s


@program(*trips(0.7))
def dict_items(x, n):
    d = {"a": x, "b": x * x}
    for _ in range(n):
        for k, v in d.items():
            d[k] = v * 1.1 + (0.1 if k == "a" else x)
    return d["a"] * d["b"]


@program(*ramps())
def for_else(x):
    for i in range(len(x)):
        if x[i] > 0.5:
            r = x[i] * i
            break
    else:
        r = np.sum(x) + 5
    return r


@program(*ramps())
def while_else(x):
    i = 0
    s = 1.0
    while i < len(x):
        if x[i] > 0.7:
            break
        if x[i] < -0.4:
            i += 1
            continue
        s *= 1 + x[i]
        i += 1
    else:
        s += 10
    return s


@program(*[(np.outer(ramp(n), ramp(3)), 0.4) for n in TRIPS])
def nested_break_else(X, t):
    s = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] > t:
                s += X[i, j] ** 2
                break
            if X[i, j] < -t:
                continue
            s += X[i, j]
        else:
            s += 3.0 * t
            continue
        s *= t
        if s > 1.5:
            break
    else:
        s += 100
    return s


@program(*[(np.outer(ramp(n), ramp(3)), 0.4) for n in TRIPS])
def nested_return(X, t):
    k = 0
    for i in range(X.shape[0]):
        for j in range(i, X.shape[1]):
            k += 1
            if X[i, j] * X[i, j] > t:
                return X[i, j] * t, k
        if i > 1:
            return t ** 2, -1
    return np.sum(X), 0


@program(*ramps())
def return_tuple_mixed(x):
    for v in x:
        if v > 1.0:
            return v, v * 2
        if v > 0.3:
            return (v * v, 3.0)
    return 1.0, 0.0


@program(*trips(0.7))
def dependent_bounds(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i):
            for k in range(j, i):
                s += x ** 2 * (i - j + k)
        s *= x
    return s


@program(*ramps())
def unbound_branch(x):
    if np.sum(x) > 0:
        y = x * 2
    return np.sum(y)


@program(*ramps())
def unbound_loop(x):
    for v in x:
        y = v * v
    return y


@program(*ramps())
def unbound_index(x):
    for i in range(len(x)):
        pass
    return np.sum(x) * i


@program(*ramps())
def unbound_nested(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            w = x[i]
        s += w * 2
    return s


@program((0.5, 1), (0.5, 0), (-0.5, 1))
def del_name(x, k):
    y = x * 2
    if x > 0:
        del y
    return y + x


@program(*trips(0.7))
def int_becomes_float(x, n):
    s = 0
    for i in range(n):
        s += x * i
    return s


@program(*trips(0.7))
def int_stays(x, n):
    s = 0
    t = 1
    for i in range(n):
        s += i
        t = t / 2
    return s, t * x


@program(*trips(0.7))
def swap(x, n):
    a, b = 0.0, x
    for _ in range(n):
        a, b = b, a + b * x
    return a + 2 * b


@program(*trips(0.7))
def swap_arrays(x, n):
    a, b = np.zeros(3), np.ones(3) * x
    for _ in range(n):
        a, b = b, a + b * x
    return np.sum(a) + 2 * np.sum(b * b)


class P(NamedTuple):
    u: float
    v: float


@dataclasses.dataclass
class S:
    q: float
    p: float
    n: int = 0


@dataclasses.dataclass(frozen=True)
class F:
    q: float
    p: float


@program(*trips(0.7))
def named_tuple_loop(x, n):
    s = P(x, 1.0)
    for _ in range(n):
        s = P(s.u + 0.1 * s.v, s.v - 0.1 * s.u)
        if s.u > 1.0:
            s = s._replace(v=s.v * 0.5)
    return s.u * s.v


@program(*trips(0.7))
def named_tuple_result(x, n):
    s = P(x, 1.0)
    for _ in range(n):
        s = P(s.u + 0.1 * s.v, s.v - 0.1 * s.u)
    return s


@program(*trips(0.7))
def dataclass_fields(x, n):
    s = S(x, 1.0)
    for _ in range(n):
        s.q += 0.1 * s.p
        s.p -= 0.1 * s.q
        if s.q > 1:
            s.n += 1
            s.q = s.q / 2
    return s.q * s.p + s.n


@program(*trips(0.7))
def nested_containers(x, n):
    state = {"pos": (x, [x * 2, 1.0]), "k": 0}
    for i in range(n):
        a, (b, c) = state["pos"]
        state["pos"] = (a + b, [b * 0.5, c + a])
        state["k"] += 1
    return state["pos"][0] * state["pos"][1][1] + state["k"]


@program(*ramps())
def list_append_sum(x):
    out = []
    for v in x:
        out.append(v * v)
    return sum(out)


@program(*ramps())
def list_append_array(x):
    out = []
    for v in x:
        if v > 0:
            out.append(np.sin(v))
    return np.sum(np.array(out)) + len(out)


@program(*ramps())
def list_append_iter(x):
    out = [1.0]
    for v in x:
        out.append(out[-1] * v)
    s = 0.0
    for o in out:
        s += o * o
    return s


@program(*ramps())
def list_extend(x):
    out = []
    for v in x:
        out.extend([v, v * 2])
        out += [v ** 2]
    return np.sum(np.array(out))


@program(*[(np.outer(ramp(n), ramp(3)),) for n in TRIPS if n])
def list_stack(X):
    rows = []
    for r in X:
        rows.append(r * r[0])
    return np.sum(np.stack(rows)[:, 1] ** 2)


@program(*[(np.outer(ramp(n), ramp(3)),) for n in TRIPS if n])
def list_rows_array(X):
    rows = []
    for i in range(X.shape[0]):
        rows.append(X[i] * i)
    M = np.array(rows)
    return np.sum(M * X)


@program(*[(np.outer(ramp(n), ramp(3)),) for n in TRIPS if n])
def list_concat(X):
    rows = []
    for i in range(X.shape[0]):
        rows.append(X[i] * i)
    return np.sum(np.concatenate(rows) ** 2)


@program(*ramps())
def list_while(x):
    out = []
    i = 0
    while i < len(x) and x[i] < 0.9:
        out.append(x[i] * 2)
        i += 1
    return sum(out) + len(out)


@program(*ramps())
def list_cond_index(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    if len(out) > 1:
        return out[0] * out[-1]
    return 0.5 * len(out)


@program(*ramps())
def list_two_levels(x):
    out = []
    for i in range(len(x)):
        for j in range(i):
            out.append(x[i] * x[j])
    return sum(out)


@program(*ramps())
def list_nested(x):
    rows = []
    for i in range(len(x)):
        row = []
        for j in range(3):
            row.append(x[i] * j)
        rows.append(row)
    s = 0.0
    for r in rows:
        s += r[0] + r[2] * r[1]
    return s


@program(*ramps())
def list_pairs(x):
    out = []
    for i, v in enumerate(x):
        out.append((v, v * i))
    s = 0.0
    for a, b in out:
        s += a * b
    return s


@program(*ramps())
def list_pop(x):
    stack = [1.0]
    for v in x:
        if v > 0.5:
            stack.append(v)
        elif len(stack) > 1:
            stack.pop()
    return sum(stack)


@pytest.mark.parametrize("f, args, batch", PROGRAMS)
def test_programs(f, args, batch):
    check_everywhere(f, *args, batch=batch)
