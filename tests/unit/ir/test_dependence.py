"""Whether two accesses may touch one element: compared with running through all trips of random nests."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import Names, building, for_loop, size_value
from gradsmith.transpiler.ir.constraints import Constraints
from gradsmith.transpiler.ir.dependence import Access, Axis, may_meet, place_of
from gradsmith.transpiler.ir.dims import maximum, minimum, substitute, symbol
from gradsmith.transpiler.ir.inequalities import combined
from gradsmith.transpiler.ir.ints import Ints
from gradsmith.transpiler.ir.nodes import Block, For, Let
from gradsmith.transpiler.ir.parse import parse_func
from gradsmith.transpiler.ir.walk import all_statements

ops.load_table()
N = symbol("n")
INDICES = {"i", "j"}


def nest(outer, inner):
    """Two loops, each given by lo, hi and step as dimensions; the inner one may name `i`."""
    with building(Names()) as b:
        for_loop(*map(size_value, outer[:2]), (), lambda i: for_loop(
            size_value(inner(named(i))[0]), size_value(inner(named(i))[1]), (), lambda j: (), step=inner(named(i))[2],
            index="j"), step=outer[2])
    block = Block(tuple(b.stmts), ())
    loops = tuple(s for s in all_statements(block) if isinstance(s, For))
    return loops, Ints(block)


def named(var):
    return symbol(var.name, 0)


def trips(loops, ints, n):
    """All (i, j) of a nest in the order in which they run."""
    def run(rest, at):
        if not rest:
            yield at
            return
        loop = rest[0]
        lo, hi = (substitute(ints.dim(v), {**at, "n": n}) for v in (loop.lo, loop.hi))
        for k in range(lo, hi, int(loop.step.value)):
            yield from run(rest[1:], {**at, loop.index.name: k})

    return list(run(loops, {}))


def touched(place, at, n):
    ranges = []
    for axis in place:
        first, size = (substitute(d, {**at, "n": n}) for d in (axis.first, axis.size))
        ranges.append([first + k * axis.step for k in range(size)])
    return set(product(*ranges))


def in_order(loop, relation, a, b):
    gap = (b[loop.index.name] - a[loop.index.name]) * np.sign(loop.step.value)
    return {"before": gap > 0, "after": gap < 0, "same": gap == 0}[relation]


def random_bounds(rng, lowest, highest):
    step = int(rng.choice([1, 1, 1, -1, 2, -2, 3]))
    lo, hi = lowest + int(rng.integers(0, 2)), highest + int(rng.integers(-1, 1))
    return (lo, hi, step) if step > 0 else (hi, lo, step)


def random_place(rng):
    i, j = symbol("i", 0), symbol("j", 0)
    first = int(rng.integers(-2, 3)) * i + int(rng.integers(-2, 3)) * j + int(rng.integers(-2, 3))
    axis = Axis(first) if rng.random() < 0.7 else Axis(first, int(rng.integers(1, 4)), int(rng.choice([-1, 1, 2])))
    return (axis, Axis(N - 1 - j if rng.random() < 0.3 else j if rng.random() < 0.5 else i))


@pytest.mark.parametrize("seed", range(120))
def test_never_denies_a_meeting(seed):
    rng = np.random.default_rng(seed)
    second = random_bounds(rng, 0, 0)
    triangle = rng.random() < 0.5
    loops, ints = nest(random_bounds(rng, 0, N), lambda i: (
        (i + 1, N, 1) if triangle else (second[0], N + second[1], 1) if second[2] > 0 else (N - 1, second[1], -1)))
    a, b = (Access(random_place(rng), loops) for _ in range(2))
    order = [(loop, loop, str(rng.choice(["before", "same", "after"]))) for loop in loops[:rng.integers(1, 3)]]
    if may_meet(a, b, order, ints, INDICES.__contains__):
        return
    for n in range(2, 6):
        all_trips = trips(loops, ints, n)
        for p, q in product(all_trips, all_trips):
            if all(in_order(loop, relation, p, q) for loop, _, relation in order):
                assert not touched(a.place, p, n) & touched(b.place, q, n)


def meets(place, other, *relations, outer=(0, N, 1), inner=lambda i: (0, i, 1)):
    loops, ints = nest(outer, inner)
    a, b = (Access(tuple(map(Axis, p)), loops) for p in (place, other))
    return may_meet(a, b, [(x, x, r) for x, r in zip(loops, relations)], ints, INDICES.__contains__)


def test_tells_what_the_passes_need():
    i, j = symbol("i", 0), symbol("j", 0)
    assert not meets((i, j), (i, i), "same")                     # below the diagonal is not on it
    assert meets((i, j), (j, i), "same", inner=lambda i: (0, N, 1))
    assert not meets((i, j), (j, i), "same")                     # nor above it
    assert not meets((i - 1,), (i,), "before")                   # y[i - 1] is not written after trip i
    assert meets((i + 1,), (i,), "before")
    assert not meets((i - 1,), (i,), "after", outer=(N - 1, 0, -1))
    assert not meets((i,), (i + 1,), outer=(0, N, 2))            # even places and odd ones
    assert not meets((j,), (i - 1,), "same", inner=lambda i: (maximum(i, 3), N, 1))
    assert not meets((j,), (i,), "same", inner=lambda i: (0, minimum(i, N - 2), 1))
    assert meets((j,), (i - 1,), "same", inner=lambda i: (0, maximum(i, 3), 1))
    assert not meets((0,), (N - 1,))                             # n is at least 2
    assert meets((i * i,), (i,), "same")                         # what is not linear may be anything


def test_an_int_that_differs_is_another_unknown():
    loops, ints = nest((0, N, 1), lambda i: (0, N, 1))
    k = symbol("k", -5)
    a, b = Access((Axis(k),), loops), Access((Axis(k + 1),), loops)
    assert not may_meet(a, b, [(loops[0], loops[0], "before")], ints, INDICES.__contains__)
    assert may_meet(a, b, [(loops[0], loops[0], "before")], ints, {*INDICES, "k"}.__contains__)


def test_a_loop_whose_trips_are_ordered_has_an_index_that_differs():
    loops, ints = nest((0, N, 1), lambda i: (0, N, 1))
    place = Access((Axis(0),), loops)
    assert may_meet(place, place, [(loops[0], loops[0], "before")], ints, lambda name: False)


def test_anywhere_in_the_array():
    loops, ints = nest((0, N, 1), lambda i: (0, N, 1))
    anywhere, here = Access(None, loops), Access((Axis(symbol("i", 0)),), loops)
    assert may_meet(anywhere, here, [(loops[0], loops[0], "before")], ints, INDICES.__contains__)


def test_the_place_of_a_write():
    func = parse_func("""
func f(a: f64[n,n,n], v: f64[1,2], i: i64, k: i64) -> (f64[n,n,n]):
  j: i64 = add(i, 2)
  b: f64[n,n,n] = store(a, v, j, k) {index=[at,new,span(1; 1; 1),span(?; 2; -3)]}
  return b
""")
    (let,) = (s for s in all_statements(func.body) if isinstance(s, Let) and s.op.access == "store")
    i, k = symbol("i", 0), symbol("k", 0)
    place = place_of(let, Ints(func.body))
    assert (Axis(i + 2), Axis(1, 1, 1), Axis(k, 2, -3)) == place
    assert (k - 3, k) == place[2].ends


def test_bounds_of_indices_and_sizes_are_known():
    loops, ints = nest((0, N, 1), lambda i: (i + 1, N, 1))
    i, j = symbol("i", 0), symbol("j", 0)

    def may_be(*at_least_zero):
        known = Constraints(ints)
        for dim in at_least_zero:
            known.at_least_zero(known.row(dim))
        return known.may_hold()

    assert may_be(j - i - 1) and not may_be(i - j)
    assert may_be(i - N + 1) and not may_be(j, i - N + 1)        # where j is, i is not the last
    assert not may_be(1 - N)
    assert may_be(symbol("m", -7))
    assert not may_be(2 - maximum(symbol("m", 0), N) - i, symbol("m", 0) - 3)


def test_two_sides_share_what_does_not_differ():
    known = Constraints(Ints(Block((), ())), {"i"}.__contains__)
    i, m = symbol("i", -9), symbol("m", -9)
    assert known.row(i * m, "a") != known.row(i * m, "b")
    assert known.row(m + 1, "a") == known.row(m + 1, "b")
    known.equal(known.row(i, "a"), known.row(m, "b"))
    known.equal(known.row(i, "b"), combined(known.row(m, "a"), 1, {"": 1}, 1))
    assert known.may_hold()
    known.equal(known.row(i, "a"), known.row(i, "b"))
    assert not known.may_hold()
