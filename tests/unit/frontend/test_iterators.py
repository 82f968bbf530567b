"""Iterators find an element when it is asked for: what a loop writes is seen by its own later trips, as in Python."""
# ruff: noqa: C417  (`map` of a lambda is what is tested)

import functools

import numpy as np
import pytest
from everywhere import check_everywhere, collect, ramp
from tracing import traced

import gradsmith

PROGRAMS = []
program = collect(PROGRAMS)
X = ramp(4)


@program((X,))
def generator_over_range(x):
    s = 0.0
    for v in (x[i] * s + 1 for i in range(3)):
        s = s + v
    return s


@program((X,))
def generator_over_array(x):
    s = 0.0
    for v in (e * s + 1 for e in x):
        s = s + v
    return s


@program((X,))
def generator_bound_late(x):
    s = 1.0
    g = (e * s for e in x)
    s = 2.0
    t = 0.0
    for v in g:
        t = t + v
        s = s + v
    return t + s


@program((X,))
def pairs(x):
    y = x * 1.0
    t = 0.0
    for a, b in zip(y[:-1], y[1:]):
        t += a * b
    return t


@program((X,))
def write_ahead(x):
    y = np.zeros(5)
    y[0] = x[0]
    for i, v in enumerate(y[:-1]):
        y[i + 1] = v * x[1] + 1
    return y.sum()


@program((X,))
def write_ahead_in_zeros(x):
    y = np.zeros(5)
    for i, v in enumerate(y[:-1]):
        y[i + 1] = v * x[1] + 1
    return y.sum()


@program((X,))
def index_tuples(x):
    y = np.ones(4)
    for i, j in np.ndindex(2, 2):
        y[i + 2 * j] *= x[i] + j
    return y.sum()


@program((X,))
def next_then_rest(x):
    it = iter(x)
    a = next(it)
    s = 0.0
    for v in it:
        s += v * a
    return s


@program((X,))
def pairs_of_one_iterator(x):
    it = iter(x)
    s = 0.0
    for a, b in zip(it, it):
        s += a * b * b
    return s


@program((X,))
def list_iterator_follows(x):
    l = [x[0], x[1]]
    it = iter(l)
    a = next(it)
    l.append(x[2])
    s = 0.0
    for v in it:
        s += v * a
    return s


@program((X,))
def map_of_two(x):
    s = 0.0
    for v in map(lambda a, b: a * b + s, x, x[::-1]):
        s = s + v
    return s


@program((X,))
def map_of_ufunc(x):
    s = 0.0
    for v in map(np.sin, [x[0], x[1]]):
        s = s + v
    return s


@program((X,))
def map_of_indices(x):
    s = 1.0
    for v in map(lambda i: x[i] * s, range(4)):
        s = s + v
    return s


@program((X,))
def filtered(x):
    s = 0.0
    for v in filter(lambda i: i % 2 == 0, range(4)):
        s = s + x[v] * v
    return s


@program((X,))
def folded_maps(x):
    return sum(map(lambda a: a * a, x)) + sum(e * e for e in x) + max(map(abs, x))


@program((X,))
def lists_of_maps(x):
    return np.array(list(map(lambda a: a * a, x))).sum() + np.array([*map(np.sin, x)]).sum()


@program((X,))
def unpacked_map(x):
    a, b, c, d = map(lambda v: v * v, x)
    return a * b + c * d


@program((X,))
def rows_of_a_view(x):
    y = x.copy()
    for r in y.reshape(2, 2):
        for i, e in enumerate(r):
            r[1 - i] += e * e
    return (y * y).sum()


@program((X,))
def constants_until_break(x):
    y = np.arange(4.0)
    for e in y:
        if e > x[0]:
            break
        y[2] += 1.0
        y[1] = x[1]
    else:
        y[0] = 5
    return (y * x).sum()


@program((X,))
def prefix_products(x):
    n = len(x)
    dp = np.zeros(n + 1)
    for i, v in enumerate(x):
        dp[i + 1] = dp[i] * v + v
    return dp[-1]


@program((X,))
def rotating(x):
    w = np.ones(3)
    s = 0.0
    for k, (a, b) in enumerate(zip(w, x)):
        w[(k + 1) % 3] = a * b
        s += a
    return s + w.sum()


@program((X,))
def rotating_list(x):
    g = [1.0, 2.0, 3.0]
    s = 0.0
    for i, v in enumerate(g):
        g[(i + 1) % 3] = v * x[0]
        s += v
    return s + sum(g)


@program((X,))
def zipped_list(x):
    g = [1.0, 2.0, 3.0]
    s = 0.0
    for v, w in zip(g, g[1:]):
        g[2] = v * x[0]
        s += v * w
    return s + sum(g)


@program((X,))
def reversed_list(x):
    g = [1.0, 2.0, 3.0]
    s = 0.0
    for v in reversed(g):
        g[0] = v * x[0]
        s += v
    return s + sum(g)


@program((X,))
def growing_list(x):
    g = [x[0], x[1]]
    s = 0.0
    for v in g:
        if len(g) < 5:
            g.append(v * x[2])
        s += v
    return s


@program((X,))
def enumerated_generator(x):
    s = 0.0
    for i, v in enumerate(e * e for e in x):
        s += i * v
    return s


@program((X,))
def rows_of_generator(x):
    s = 0.0
    for row in (np.outer(x, x)[i] for i in range(len(x))):
        s += row.max()
    return s


@program((X,))
def dict_items(x):
    d = {"a": x[0], "b": x[1]}
    s = 0.0
    for k, v in d.items():
        d["b"] = v * 2
        s += v
    return s


@program((X,))
def dict_values(x):
    d = {"a": x[0], "b": x[1]}
    s = 0.0
    for v in d.values():
        d["b"] = v * 2
        s += v
    return s


@program((X,))
def dict_keys(x):
    d = {"a": x[0], "b": x[1]}
    s = 0.0
    for k in d:
        d["b"] = d[k] * 2
        s += d[k]
    return s


@program((X,))
def view_of_values(x):
    d = {"a": x[0], "b": x[1]}
    v = d.values()
    d["b"] = x[2]
    return sum(v)


@program((X,))
def view_of_items(x):
    d = {"a": 1.0, "b": 2.0}
    v = d.items()
    d["c"] = x[2]
    s = 0.0
    for k, w in v:
        s += w * x[0]
    return s


@program((X,))
def enumerated_growing_list(x):
    g = [x[0]]
    s = 0.0
    for i, v in enumerate(g):
        if i < 3:
            g.append(v * x[1])
        s += v * i
    return s


@program((X,))
def zipped_growing_list(x):
    g = [x[0], x[1]]
    h = [1.0, 2.0, 3.0]
    s = 0.0
    for v, w in zip(g, h):
        if len(g) < 4:
            g.append(v * x[2])
        h[2] = v
        s += v * w
    return s


@program((X,))
def continued(x):
    s = 0.0
    for a, b in zip(range(4), x):
        if a == 2:
            continue
        s += a * b
    return s


@program((X,))
def letters(x):
    s = 0.0
    for i, (a, b) in enumerate(zip([1, 2, 3], ["p", "q", "r"])):
        s += x[i] * a * len(b)
    return s


@program((X,))
def enumerated_text(x):
    s = 0.0
    for i, ch in enumerate("abc"):
        s += x[i] * ord(ch)
    return s


@program((X,))
def zipped_dict(x):
    s = 0.0
    for k, v in zip({"a": 1, "b": 2}, (3, 4)):
        s += x[0] * v
    return s


@program((X,))
def list_of_pairs(x):
    z = zip(x, x[1:])
    a = list(z)
    return sum(p * q for p, q in a)


@program((X,))
def dict_of_pairs(x):
    z = dict(zip("abcd", x))
    return z["a"] * z["d"]


@program((X,))
def dict_of_numbers(x):
    z = dict(enumerate(x))
    return z[0] * z[3]


@program((X,))
def enumerate_step_by_step(x):
    e = enumerate(x)
    i, v = next(e)
    s = v * 10
    for i, v in e:
        s += i * v
    return s


@program((X,))
def reversed_range(x):
    s = 0.0
    for i in reversed(range(4)):
        s = s * x[i] + i
    return s


@program((X,))
def horner(x):
    p = [x[0], x[1], x[2]]
    s = 0.0
    for c in reversed(p):
        s = s * x[3] + c
    return s


@program((X,))
def counted_from_one(x):
    p = (2.0, 3.0, x[2])
    s = 0.0
    for i, c in enumerate(p, 1):
        s = s * x[3] + c * i
    return s


@program((X,))
def layers(x):
    layers = [(x[0], np.tanh), (x[1], np.sin), (x[2], None)]
    h = x[3]
    for i, (w, act) in enumerate(layers):
        h = w * h + i
        if act is not None:
            h = act(h)
    return h


@program((X,))
def parameters(x):
    ps = [{"w": x[0], "b": x[1]}, {"w": x[2], "b": x[3]}]
    h = 1.0
    for i, p in enumerate(ps):
        h = h * p["w"] + p["b"]
        p["w"] = h
    return h * ps[0]["w"]


@program((X,))
def written_by_a_comprehension(x):
    y = np.ones(4)

    def bump(e, i):
        y[3] = e + x[0] + i
        return e * 2

    return sum([bump(e, i) for i, e in enumerate(y)]) + sum([bump(e, 1) for e in y]) + y.sum()


@program((X,))
def written_by_what_is_folded(x):
    y = np.ones(4)

    def add(s, e):
        y[3] = e + x[0]
        return s + e

    return functools.reduce(add, y) + y.sum()


@program((ramp(6).reshape(2, 3),))
def places_of_a_matrix(a):
    s = 0.0
    for i, j in np.ndindex(a.shape):
        s += a[i, j] ** 2 * (i + 2 * j)
    return s


@program((ramp(6).reshape(2, 3),))
def places_and_elements(a):
    b = np.ones(a.shape)
    for (i, j), v in np.ndenumerate(b):
        b[1, 2] = v * a[i, j] + j
    return b


@pytest.mark.parametrize("f, args, batch", PROGRAMS)
def test_as_in_python(f, args, batch):
    check_everywhere(f, *args, batch=batch)


def test_what_a_loop_goes_over_may_not_be_written_by_a_name_that_may_be_another():
    def either(x, n):
        y = np.zeros(8)
        for e in y:
            y[1:] += 1.0 + e
            for _ in range(n):
                y = x * 0.5
        return np.sum(y)

    with pytest.raises(gradsmith.TranspileError, match="E123"):
        traced(either, ramp(8), 1)


def test_a_generator_with_conditions_reads_what_the_loop_does_not_change():
    def kept(x):
        s = 0.0
        for v in (e * 2 for e in x if e > 0):
            s += v
        return s

    def changed(x):
        y = x * 1.0
        for v in (e * 2 for e in y if e > 0):
            y[0] = v
        return y

    check_everywhere(kept, X)
    with pytest.raises(gradsmith.TranspileError, match="changes `y`"):
        traced(changed, X)
