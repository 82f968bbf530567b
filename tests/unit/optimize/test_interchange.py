"""Loops are turned only where every element still gets the same terms in the same order."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler import ops
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.build import Names, building, for_loop, int_const
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.index import At
from gradsmith.transpiler.ir.nodes import Block, For, Func, Var
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.types import I64, Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.ir.walk import all_statements
from gradsmith.transpiler.optimize import interchange as module
from gradsmith.transpiler.optimize.interchange import interchange

ops.load_table()
SIZE = 7


def innermost(func):
    """The names of the indices of loops without loops inside."""
    found = [s for s in all_statements(func.body) if isinstance(s, For)]
    return [s.index.name.split("_")[0] for s in found if not any(isinstance(x, For) for x in s.body.stmts)]


def same(func, result, *args):
    verify(result)
    wanted = evaluate(func, *args)
    scope = {}
    exec(emit(result, name="f", decorator=False), scope)
    emitted = scope["f"](*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    for found in (evaluate(result, *args), emitted if len(wanted) > 1 else (emitted,)):
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(b, a)


PRODUCT = """
func f(c: f64[n,n], a: f64[n,n], b: f64[n,n], i: i64, h: i64) -> (f64[n,n]):
  d: f64[n,n] = for j: i64 in 0 .. h step 1 carry (x: f64[n,n] = c):
    y: f64[n,n] = for k: i64 in 0 .. h step 1 carry (z: f64[n,n] = x):
      s: f64 = load(z, i, j) {index=[at,at]}
      u: f64 = load(a, i, k) {index=[at,at]}
      v: f64 = load(b, {place}) {index=[at,at]}
      t: f64 = multiply(u, v)
      w: f64 = add(s, t)
      z2: f64[n,n] = store(z, w, i, j) {index=[at,at]}
      yield z2
    yield y
  return d
"""


@pytest.mark.parametrize("place, inner", [("k, j", "j"), ("j, k", "k")])
def test_a_row_times_a_matrix(place, inner):
    """Turned where that makes rows of columns, not the other way round."""
    func = parse_func(PRODUCT.replace("{place}", place))
    result = interchange(func)
    assert [inner] == innermost(result) and (result is func) == (inner == "k")
    rng = np.random.default_rng(0)
    for h in (0, 1, 5):
        same(func, result, *rng.normal(size=(3, 5, 5)), 2, h)


ELIMINATION = """
func f(a: f64[n,n], i: i64) -> (f64[n,n]):
  d: f64[n,n] = for j: i64 in 0 .. i step 1 carry (x: f64[n,n] = a):
    y: f64[n,n] = for k: i64 in 0 .. j step 1 carry (z: f64[n,n] = x):
      s: f64 = load(z, i, j) {index=[at,at]}
      u: f64 = load(z, i, k) {index=[at,at]}
      v: f64 = load(z, k, j) {index=[at,at]}
      t: f64 = multiply(u, v)
      w: f64 = subtract(s, t)
      z2: f64[n,n] = store(z, w, i, j) {index=[at,at]}
      yield z2
    p: f64 = load(y, i, j) {index=[at,at]}
    q: f64 = load(y, j, j) {index=[at,at]}
    r: f64 = divide(p, q)
    y2: f64[n,n] = store(y, r, i, j) {index=[at,at]}
    yield y2
  return d
"""


def test_elimination():
    func = parse_func(ELIMINATION)
    result = interchange(func)
    assert ["j"] == innermost(result)
    rng = np.random.default_rng(0)
    for i in range(6):
        same(func, result, rng.normal(size=(6, 6)) + 5 * np.eye(6), i)


@pytest.mark.parametrize("change", [
    ("load(z, k, j)", "load(z, j, k)"),                 # no better
    ("load(z, i, k)", "load(z, i, j)"),
    ("0 .. j step 1", "1 .. j step 1"),                 # not all of what comes before
    ("store(z, w, i, j)", "store(z, w, j, i)"),         # trips depend on each other
    ("load(y, j, j)", "load(y, i, 0:i64)"),             # finished with what others take out first
])
def test_what_is_no_elimination(change):
    assert change[0] in ELIMINATION
    func = parse_func(ELIMINATION.replace(*change))
    result = interchange(func)
    rng = np.random.default_rng(0)
    same(func, result, rng.normal(size=(6, 6)) + 5 * np.eye(6), 5)


def column_norms(a):
    """Scalars that inner loops carry, two loops inside, and writes between them."""
    m, n = a.shape
    b = np.zeros((m, n))
    norms = np.zeros(n)
    for j in range(n):
        total = 0.0
        for i in range(m):
            total += a[i, j] * a[i, j]
        norms[j] = np.sqrt(total)
        for i in range(m):
            b[i, j] = a[i, j] / norms[j]
    return b, norms


def recurrences(a, c):
    """Each column is a recurrence of its own, from the end."""
    m, n = a.shape
    x = a.copy()
    for j in range(n - 1, -1, -1):
        for i in range(m - 2, -1, -1):
            x[i, j] = x[i, j] / c + x[i + 1, j] * a[i, j]
    return x


def below(a):
    """Rows depend on the rows above and to the right: they stay."""
    x = a.copy()
    m, n = x.shape
    for j in range(n - 1):
        for i in range(1, m):
            x[i, j] += 0.5 * x[i - 1, j + 1]
    return x


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (5, 2), (6, 7), (40, 33)])
def test_columns(shape):
    """To the bit what Python computes; derivatives against differences."""
    a = np.random.default_rng(3).normal(size=shape)
    for f, args in ((column_norms, (a,)), (recurrences, (a, 1.7)), (below, (a,))):
        wanted, found = f(*args), gradsmith.jit(f)(*args)
        for one, other in zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]:
            np.testing.assert_array_equal(other, one)


def test_derivatives_of_columns():
    a = np.random.default_rng(3).normal(size=(4, 5))
    gradsmith.check(lambda a: np.sum(np.sin(column_norms(a)[0])), a)
    gradsmith.check(lambda a: np.sum(np.sin(recurrences(a, 1.7))), a)
    gradsmith.check(lambda a: np.sum(np.sin(below(a))), a)


# ---------------------------------------------------------------------------------------------------------------


class Program:
    """A random nest: two loops over one or two arrays, whose elements are read and written around j and k."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.arrays = [Var(name, Type("float64", (SIZE + 4, SIZE + 4))) for name in "ab"[:self.rng.integers(1, 3)]]
        self.source = Var("w", Type("float64", (SIZE + 4, SIZE + 4)))
        self.row = Var("i", I64)

    def func(self):
        with building(Names(["a", "b", "w", "i"])) as b:
            results = self.nest()
        return Func("f", (*self.arrays, self.source, self.row), Block(tuple(b.stmts), results))

    def nest(self):
        down = bool(self.rng.random() < 0.3)
        lo, hi = int_const(2), int_const(2 + SIZE)
        if self.rng.random() < 0.3:
            lo = self.row
        bounds = (lo, hi) if not down else (hi - int_const(1), lo - int_const(1))
        return for_loop(*bounds, self.arrays, lambda j, *x: self.trip(j, lo, hi, down, list(x)),
                        step=-1 if down else 1, index="j")

    def trip(self, j, lo, hi, down, arrays):
        shape = self.rng.integers(4)
        before, after = self.rng.random(2) < 0.4
        if before:
            arrays = self.write(arrays, [j])
        for _ in range(self.rng.integers(1, 3)):
            bounds = [(lo, hi), (lo, j), (lo, self.row), (j, hi)][shape]
            if down:
                bounds = (bounds[1] - int_const(1), bounds[0] - int_const(1))
            arrays = list(for_loop(*bounds, arrays, lambda k, *x: self.write(list(x), [j, k]),
                                   step=-1 if down else 1, index="k"))
            if self.rng.random() < 0.3:
                arrays = self.write(arrays, [j])
        return self.write(arrays, [j]) if after else arrays

    def write(self, arrays, indices):
        value = ops.sin(self.read(arrays, indices) * 0.75 + self.read(arrays, indices))
        which = self.rng.integers(len(arrays))
        place = self.place(indices)
        if self.rng.random() < 0.5:
            value = value + ops.load(arrays[which], *place, index=(At(), At()))
        arrays = list(arrays)
        arrays[which] = ops.store(arrays[which], value, *place, index=(At(), At()))
        return arrays

    def read(self, arrays, indices):
        array = [*arrays, self.source][self.rng.integers(len(arrays) + 1)]
        return ops.load(array, *self.place(indices), index=(At(), At()))

    def place(self, indices):
        def one():
            index = [*indices, *indices, *indices, self.row][self.rng.integers(3 * len(indices) + 1)]
            return index + int_const(int(self.rng.integers(-1, 2))) if self.rng.random() < 0.4 else index
        return one(), one()


@pytest.mark.parametrize("strips", [False, True])
def test_random_nests(monkeypatch, strips):
    """Whatever is legal gives the same bits, also where it would not pay; in strips of two trips, too."""
    monkeypatch.setattr(module._Judge, "_pays", lambda self, part, inner: not strips)
    if strips:
        is_free = module._Judge._is_free
        monkeypatch.setattr(module._Judge, "_is_free", lambda self, part, along, other: (
            along is self.outer and is_free(self, part, along, other)))
        monkeypatch.setattr(module, "DEAR", -100)
        monkeypatch.setattr(module, "STRIP", 2)
    turned = 0
    for seed in range(300):
        func = Program(seed).func()
        verify(func)
        result = interchange(func)
        turned += result is not func
        if result is func:
            continue
        verify(result)
        rng = np.random.default_rng(seed)
        args = [rng.normal(size=p.type.shape) for p in func.params[:-1]]
        for i in (2, 4, 1 + SIZE):
            for wanted, found in zip(evaluate(func, *args, i), evaluate(result, *args, i), strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}, i {i}")
    assert turned > 20


def test_adds_may_change_their_order():
    func = parse_func("""
func f(d: f64[n,n], w: f64[n,n], h: i64) -> (f64[n,n]):
  e: f64[n,n] = for j: i64 in 0 .. h step 1 carry (x: f64[n,n] = d):
    y: f64[n,n] = for k: i64 in 0 .. h step 1 carry (z: f64[n,n] = x):
      v: f64 = load(w, k, j) {index=[at,at]}
      z2: f64[n,n] = add_at(z, v, j, j) {index=[at,at]}
      z3: f64[n,n] = add_at(z2, v, k, k) {index=[at,at]}
      yield z3
    yield y
  return e
""")
    result = interchange(func)
    rng = np.random.default_rng(0)
    args = *rng.normal(size=(2, 5, 5)), 5
    for a, b in zip(evaluate(func, *args), evaluate(result, *args), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-13)




def pushed(w, q):
    """Where a trip writes is read from an array: another trip may read what it wrote."""
    x = w.copy()
    for j in range(q.shape[0]):
        for i in range(w.shape[0] - 1):
            p = q[j]
            x[i + 1, p] = x[i, p + 1] * 0.5 + w[i, j]
    return x


def test_places_that_are_read_differ_from_trip_to_trip():
    w = np.random.default_rng(5).normal(size=(6, 5))
    for q in ([2, 1, 0, 1], [0, 1, 2, 3], [3, 2, 1, 0]):
        np.testing.assert_array_equal(gradsmith.jit(pushed)(w, np.array(q)), pushed(w, np.array(q)))
