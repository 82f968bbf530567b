"""Exceptions, `try`, `match`, closures, text and static work: each program in value, gradient, forward mode and batch."""

import dataclasses

import numpy as np
import pytest
from everywhere import check_everywhere, collect, ramps, trips

PROGRAMS = []
program = collect(PROGRAMS)


@program(*ramps())
def assert_runtime(x):
    for v in x:
        assert v < 1.0, "too large"
    return np.sum(x)


@program(*ramps())
def assert_plain(x):
    for v in x:
        assert v < 1.0
    return np.sum(x)


@program(*ramps())
def assert_fstring(x):
    for i, v in enumerate(x):
        assert v < 1.0, f"element {i} is {v}"
    return np.sum(x)


@program((0.5, 3), (-0.5, 3), (-1.25, 12))
def raise_fstring(x, k):
    if x < 0:
        raise ValueError(f"x = {x}, k = {k}, k*2 = {k * 2:5d}|{x:.3f}")
    return x * k


@program((0.5,), (-0.5,))
def raise_class_only(x):
    if x < 0:
        raise ZeroDivisionError
    return x * 2


@program((0.5,), (-0.5,))
def raise_percent(x):
    if x < 0:
        raise ArithmeticError("x is %s" % x)        # noqa: UP031
    return x * 2


@program((0.5,), (-0.5,))
def raise_format(x):
    if x < 0:
        raise OverflowError(f"x is {x:.2f}")
    return x * 2


@program(*ramps())
def raise_in_nested(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 1.0:
                raise OverflowError("product")
            s += x[i] * x[j]
    return s


@program((0.5, 3), (0.5, 0))
def static_try(x, k):
    table = {3: 2.0}
    try:
        f = table[k]
    except KeyError:
        f = 7.0
    else:
        f = f * 3
    finally:
        g = 1.5
    return x * f * g


@program((0.5,))
def try_finally_return(x):
    try:
        return x * 2
    finally:
        x = x * 3


@program((0.5,))
def try_nested(x):
    try:
        try:
            raise ValueError("a")
        except ValueError as e:
            raise TypeError(str(e) + "b") from e
    except TypeError as e2:
        return x * len(str(e2))


@program(*ramps())
def try_in_loop(x):
    s = 0.0
    d = {0: 1.0, 2: 3.0}
    for i in range(4):
        try:
            s += d[i]
        except KeyError:
            continue
    return s * np.sum(x)


@program((0.0, 1.0), (2.0, 1.0))
def with_errstate(x, y):
    with np.errstate(divide="ignore"):
        z = y / (x + 1)
        if z > 0.5:
            return z * x
    return x


@program((1.5, "a"), (1.5, "b"), (1.5, "zz"))
def match_str(x, k):
    match k:
        case "a":
            return x * 2
        case "b" | "c":
            return x * 3
        case other:
            return x * len(other)


@program((1.5, (1, 2.0)), (1.5, (0, 2.0)), (1.5, (3, 4.0, 5.0, 6.0)), (1.5, ()))
def match_seq(x, t):
    match t:
        case ():
            return x
        case (0, y):
            return x * y
        case (1, _) as whole:
            return x * len(whole)
        case [a, *rest] if len(rest) > 1:
            return x * a + sum(rest)
    return -x


@program((1.5, {"kind": "circle", "r": 2.0}), (1.5, {"kind": "square", "side": 3.0, "more": 1.0}), (1.5, {}))
def match_map(x, d):
    match d:
        case {"kind": "circle", "r": r}:
            return x * r ** 2
        case {"kind": "square", "side": s, **rest}:
            return x * s * len(rest)
        case _:
            return x


@program(*ramps())
def match_run_time(x):
    s = 0.0
    for i in range(len(x)):
        match i % 3:
            case 0:
                s += x[i]
            case 1:
                s += x[i] ** 2
            case k:
                s *= k * x[i]
    return s


@dataclasses.dataclass
class Point:
    x: float
    y: float


@program((0.5, 1), (0.5, 0))
def match_class(x, k):
    p = Point(0.0 if k else 1.0, x)
    match p:
        case Point(x=0.0, y=y):
            return y * 2
        case Point(a, b):
            return a + b


@program((0.5, 1), (0.5, 1.5), (0.5, None), (0.5, True))
def match_types(x, k):
    match k:
        case True:
            return x * 9
        case int():
            return x
        case float(v):
            return x * v
        case None:
            return -x
    return 0.0


@program(*trips(0.7))
def nonlocal_counter(x, n):
    total = 0.0
    def add(v):
        nonlocal total
        total += v
    for i in range(n):
        add(x * i)
    return total


@program(*ramps())
def star_unpack(x):
    if len(x) < 3:
        return np.sum(x)
    a, *b, c = x
    first, *_ = (a, 1, 2)
    return a * c + sum(b) + first


@program(*trips(0.7))
def closures_in_loop(x, n):
    s = 0.0
    for i in range(n):
        def f(v):
            return v * i + x
        s += f(s) + (lambda w: w * i)(x)
    return s


@program((0.5,))
def late_binding(x):
    fs = [lambda v: v * i for i in range(3)]
    gs = []
    for k in range(3):
        gs.append(lambda v, k=k: v * k)
    return sum(f(x) for f in fs) + sum(g(x) for g in gs)


G = {"scale": 2.0}
SCALE = 1.5


@program((0.5,))
def global_read(x):
    global SCALE
    return x * SCALE * G["scale"]


@program((0.5, 3))
def strings(x, k):
    name = "ab" * k + f"{k:03d}"
    parts = name.upper().split("B")
    return x * len(parts) * ("A" in name.upper()) * len("-".join(parts))


@program(*trips(0.7))
def list_mul(x, n):
    v = [0.0] * n
    for i in range(n):
        v[i] = x * i
    return sum(v)


@program(*trips(0.7))
def list_of_zeros_fixed(x, n):
    v = [0.0] * 4
    for i in range(n):
        v[i % 4] += x * i
    return sum(v)


@program(*ramps())
def list_index_unknown(x):
    table = [1.0, 2.0, 5.0]
    s = 0.0
    for i in range(len(x)):
        s += table[i % 3] * x[i]
    return s


@program(*ramps())
def tuple_index_negative(x):
    table = (1.0, 2.0, 5.0)
    s = 0.0
    for i in range(len(x)):
        s += table[-(i % 3) - 1] * x[i]
    return s


@program(*ramps())
def sorted_runtime(x):
    if len(x) < 2:
        return 0.0
    ys = sorted(x)
    return ys[0] * ys[-1]


@program((0.6,), (-0.4,))
def cond_expr_nested(x):
    return (x if x > 0.5 else x * 2 if x > 0 else -x) * (1 if x else 2)


@program((0.6,), (-0.4,))
def not_runtime(x):
    ok = not x > 0
    return x * ok + (3.0 if not ok else 1.0)


@program(*ramps())
def none_then_value(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return 0.0 if best is None else best * 2


@program(*ramps())
def while_true_break(x):
    i = 0
    s = 0.0
    while True:
        if i >= len(x):
            break
        s += x[i]
        if s > 1:
            return s * 2
        i += 1
    return s


@program(*ramps())
def any_all_bool(x):
    flag = True
    for v in x:
        flag = flag and v < 1.0
        flag &= v > -2
    return np.sum(x) if flag else np.sum(x * x)


@program(*ramps())
def int_overwritten_by_float(x):
    t = 1
    for v in x:
        if v > 0:
            t = v
        t = t * 2
    return t * 1.0


@program(*trips(0.7))
def loop_var_after(x, n):
    i = 10
    for i in range(n):
        x = x * 1.1
        i = i + 5
    return x * i


@program(*trips(0.7))
def bound_changes(x, n):
    s = 0.0
    for i in range(n):
        n = n - 1
        s += x * i
    return s + n


@program(*ramps())
def array_iter_modified(x):
    y = x.copy()
    s = 0.0
    for i, v in enumerate(y):
        s += v
        if i + 1 < len(y):
            y[i + 1] += v
    return s


@program(*ramps())
def enumerate_while(x):
    s, it = 0.0, 0
    while s < 1.0 and it < 20:
        for v in x:
            s += abs(v) * 0.3
            if s > 0.8:
                break
        it += 1
    return s * it


@program(*ramps())
def compare_chain_calls(x):
    calls = 0.0
    for i in range(len(x)):
        if 0 <= i - 1 < len(x) and x[i - 1] < x[i] < 1.0:
            calls += x[i] * x[i - 1]
    return calls


@program(*ramps())
def zip_three_strict(x):
    s = 0.0
    for a, b, c in zip(x, x[1:], x[2:]):
        s += a * b * c
    return s


@program(*ramps())
def enumerate_tuple_state(x):
    lo, hi = np.inf, -np.inf
    for v in x:
        lo, hi = min(lo, v), max(hi, v)
    return hi - lo if len(x) else 0.0


@program(*ramps())
def dict_grow_static(x):
    d = {}
    for k in ("a", "b"):
        d[k] = np.sum(x) * len(k)
    d.setdefault("c", 3.0)
    d.pop("a")
    return sum(d.values())


@program((1.5, 1), (1.5, 2), (1.5, 3), (1.5, 4), (1.5, -7))
def match_int(x, k):
    match k:
        case 1:
            return x
        case 2 | 3:
            y = x ** 2
        case n if n < 0:
            y = x * n
        case _:
            y = 0.0
    return y + 1


@pytest.mark.parametrize("f, args, batch", PROGRAMS)
def test_programs(f, args, batch):
    check_everywhere(f, *args, batch=batch)
