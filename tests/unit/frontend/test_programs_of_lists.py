"""Lists whose length the run decides, and comprehensions: each program in value, gradient, forward mode and batch."""

import dataclasses

import numpy as np
import pytest
from everywhere import TRIPS, check_everywhere, collect, ramp, ramps, trips

PROGRAMS = []
program = collect(PROGRAMS)


@program(*trips(0.7))
def fib_while(x, tol):
    xs = [x, x * 2]
    while len(xs) < tol + 3:
        xs.append(xs[-1] + 0.5 * xs[-2])
    return sum(xs) * xs[1]


@program((2.0, 3), (9.0, 8))
def newton_trail(a, tol):
    xs = [a]
    while abs(xs[-1] * xs[-1] - a) > 10.0 ** -tol:
        x = xs[-1]
        xs.append(0.5 * (x + a / x))
    return xs[-1] + xs[0] + xs[len(xs) // 2] * len(xs)


@program(*ramps())
def nested_cond(x):
    out = []
    for i in range(len(x)):
        for j in range(i + 1):
            if x[i] * x[j] > 0:
                out.append(x[i] * x[j])
    return np.sum(np.array(out) ** 2)


@program(*ramps())
def append_after_branch(x):
    out = []
    if np.sum(x) > 0:
        out.append(np.sum(x))
    if np.sum(x * x) > 1:
        out.append(2.0)
        out.append(np.sum(x ** 3))
    out.append(1.5)
    s = 0.0
    for v in out:
        s += v * v
    return s * len(out)


@program(*ramps())
def in_object(x):
    class_ = Log([], 0)
    for v in x:
        if v > 0:
            class_.add(v * 3)
    return sum(class_.values) + class_.count


@dataclasses.dataclass
class Log:
    values: list
    count: int
    def add(self, v):
        self.values.append(v)
        self.count += 1


@program(*ramps())
def in_dict(x):
    d = {"pos": [], "neg": []}
    for v in x:
        if v > 0:
            d["pos"].append(v)
        else:
            d["neg"].append(v * v)
    return sum(d["pos"]) * 2 + sum(d["neg"])


@program(*ramps())
def by_helper(x):
    out = []
    def keep(v):
        if v > 0.3:
            out.append(v)
            return True
        return False
    n = 0
    for v in x:
        if keep(v):
            n += 1
    return sum(out) * n


@program(*ramps())
def early_return_list(x):
    out = []
    for v in x:
        if v > 1.0:
            return sum(out) * 10
        out.append(v)
    return sum(out)


@program(*ramps())
def pop_empty(x):
    s = []
    for v in x:
        if v < -0.2:
            s.append(v)
        elif v > 0:
            s.pop()
    return sum(s)


@program(*ramps())
def index_out(x):
    s = []
    for v in x:
        if v > 0.5:
            s.append(v)
    return s[2]


@program(*ramps())
def set_elements(x):
    s = []
    for v in x:
        if v > -0.5:
            s.append(v)
    for k in range(len(s)):
        s[k] = s[k] * s[k - 1] + k
    return sum(s)


@program(*ramps())
def enumerate_list(x):
    s = []
    for v in x:
        s.append(v * v)
    t = 0.0
    for k, (a, b) in enumerate(zip(s, s[1:])):
        t += a * b * k
    for a in reversed(s):
        t = t * 0.9 + a
    return t


@program(*ramps())
def list_of_lists_sum(x):
    rows = []
    for v in x:
        rows.append([v, v * v, 1.0])
    M = np.array(rows)
    return np.sum(M * M) if len(x) else 0.0


@program(*[(np.outer(ramp(n), ramp(3)),) for n in TRIPS if n])
def vstack_rows(X):
    rows = []
    for r in X:
        if r[0] > -10:
            rows.append(r * 2)
    M = np.vstack(rows)
    return np.sum(M ** 2) + M.shape[0] + np.sum(np.column_stack(rows)[0] * 3) + np.sum(np.hstack(rows))


@program(*ramps())
def two_lists(x):
    a, b = [], [0.0]
    for i, v in enumerate(x):
        a.append(v)
        if i % 2:
            b.append(a[-1] * b[-1] + 1)
    return sum(a) * sum(b)


@program(*ramps())
def extend_array(x):
    out = [1.0]
    for i in range(3):
        out.extend(x * i)
    return sum(out)


@program(*ramps())
def extend_runtime_array(x):
    out = []
    for v in x:
        out.extend(x * v)
    return sum(out)


@program(*ramps())
def list_plus(x):
    a = []
    for v in x:
        a.append(v)
    b = a + [1.0, 2.0]
    c = [0.5] + a + b
    return sum(c) * len(c)


@program(*ramps())
def in_and_sorted(x):
    a = []
    for v in x:
        if v < 1:
            a.append(v * v)
    r = sorted(a)
    a.sort(reverse=True)
    s = 0.0
    for u, w in zip(r, a):
        s += u * w
    return s + (1.0 if 4.0 in a else 0.25)


@program(*ramps())
def mixed_int_float(x):
    a = [0]
    for v in x:
        a.append(v)
    return sum(a) * 1.0


@program(*trips(0.7))
def ints_list(x, n):
    idx = []
    for i in range(n):
        if i % 3 != 1:
            idx.append(i)
    s = 0.0
    for i in idx:
        s += x ** i
    return s + len(idx)


@program(*ramps())
def fancy_by_list(x):
    idx = []
    for i in range(len(x)):
        if x[i] > 0:
            idx.append(i)
    return np.sum(x[np.array(idx, dtype=int)] ** 2)


@program(*ramps())
def bool_of_list(x):
    a = []
    for v in x:
        if v > 1:
            a.append(v)
    if not a:
        return -1.0
    return a[0] if a and a[0] > 0 else 2.0


@program(*ramps())
def comp_filtered(x):
    ys = [v * v for v in x if v > 0]
    zs = [i for i in range(len(x)) if x[i] < 0]
    return sum(ys) + len(zs)


@program(*ramps())
def comp_nested(x):
    return sum(a * b for a in x for b in x if a < b) + sum([i * j * 1.0 for i in range(len(x)) for j in range(i)])


@program(*ramps())
def comp_call(x):
    def f(v):
        if v > 0:
            return v * 2
        return -v
    return np.sum(np.array([f(v) for v in x]))


@program(*ramps())
def alias_two_names(x):
    a = []
    b = a
    for v in x:
        if v > 0:
            a.append(v)
        b.append(1.0)
    return sum(a) + len(b)


@program(*[(ramp(n), n) for n in TRIPS])
def history(x, n):
    h = [x.copy()]
    for i in range(n):
        h.append(np.roll(h[-1], 1) * 0.5 + x)
    return np.sum(h[-1] * h[0]) + np.sum(np.stack(h))


@program(*trips(0.7))
def list_in_while_nested(x, n):
    out = []
    k = n
    while k > 0:
        j = 0
        while j < k:
            out.append(x * j)
            j += 1
        k -= 2
    return sum(out) + len(out)


@program(*ramps())
def after_loops(x):
    out = []
    i = 0
    while i < 3:
        for j in range(min(i, len(x))):
            if x[j] > -1:
                out.append(x[j] * i)
        i += 1
    out.append(2.5)
    for v in x:
        if v > 0:
            out.append(v)
    out.append(0.5)
    out.extend(x)
    out += [1.0, 2.0]
    for v in x:
        out.append(v * v)
    b = sorted(out)
    b.append(7.0)
    c = out[1:]
    c.append(b[-1])
    return sum(out) * len(out) + sum(b) * b[0] + sum(c)


@program(*ramps())
def append_under_condition_after(x):
    out = []
    for v in x:
        out.append(v)
    if np.sum(x) > 0:
        out.append(1.0)
        out.append(2.0)
    elif len(x) > 2:
        out.append(3.0)
    for v in x:
        if v > 1:
            out.append(v)
    return sum(out) + len(out)


@program(*ramps())
def stack_machine(x):
    stack = [0.5]
    for v in x:
        if v < 0:
            stack.append(v)
        else:
            if len(stack) > 1:
                a = stack.pop()
                stack.append(a * v)
            else:
                stack.append(v)
    return sum(stack) + len(stack)


@program(*ramps())
def while_break_append(x):
    out = []
    i = 0
    while True:
        if i == len(x):
            break
        if x[i] > 1.2:
            break
        out.append(x[i])
        i += 1
    return sum(out) + max(out, default=7.0)


@program(*trips(0.7))
def list_comp_runtime(x, n):
    ys = [x * i for i in range(n)]
    return sum(ys) + len(ys)


@program(*ramps())
def list_comp_array(x):
    return np.sum(np.array([v ** 2 for v in x if v > 0]))


@program(*ramps())
def genexp_sum(x):
    return sum(v * v for v in x) + sum(x[i] * i for i in range(len(x)))


@program(*ramps())
def genexp_any(x):
    if any(v > 0.5 for v in x):
        return np.sum(x)
    if all(v < 0.0 for v in x):
        return np.sum(x ** 2) + 1.0
    return 0.0


@program(*ramps())
def genexp_max(x):
    return max(v * v for v in x) + min((abs(v) for v in x), default=3.0)


@pytest.mark.parametrize("f, args, batch", PROGRAMS)
def test_programs(f, args, batch):
    check_everywhere(f, *args, batch=batch)
