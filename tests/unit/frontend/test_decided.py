"""Dicts, lists and objects of which a loop decides at run time which of several they are: read, but not written to."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.transpiler.errors import TranspileError


def halved(p):
    return {k: v * 0.5 for k, v in p.items()}


def read(n, x):
    p = {"a": x * 1, "b": x * 2}
    q = p
    for _ in range(n):
        q = halved(q)
    r = dict(q)
    r["a"] = r["a"] + x
    return q["a"].sum() + p["a"].sum() + r["a"].sum()


def by_fori_loop(n, x):
    p = {"a": x, "b": x * 2}
    q = gs.lax.fori_loop(0, n, lambda _, p: halved(p), p)
    return (q["a"] * p["b"]).sum()


def last_but_one(n, x):
    q, r = {"a": x * 1}, {"a": x * 2}
    for _ in range(n):
        r = q
        q = {"a": q["a"] * 0.5}
    r["a"] = r["a"] * x
    return (q["a"] * r["a"]).sum()


def own(n, x):
    q = {"a": x * 1}
    for _ in range(n):
        q["a"] = q["a"] * 0.5
        q = {"a": q["a"] + x}
    q["a"] = q["a"] * x
    return q["a"].sum()


@pytest.mark.parametrize("fun", [read, by_fori_loop, last_but_one, own])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_what_is_in_them_is_what_python_finds(fun, trips):
    x, step = np.array([1.0, 3.0]), 1e-6
    np.testing.assert_allclose(gs.jit(fun)(trips, x), fun(trips, x), rtol=1e-14)
    slopes = [(fun(trips, x + d) - fun(trips, x - d)) / (2 * step) for d in step * np.eye(2)]
    np.testing.assert_allclose(gs.grad(fun, argnums=1)(trips, x), slopes, rtol=1e-7)


def write_to_the_new(p, q, x):
    q["a"] = x


def write_to_the_old(p, q, x):
    p["a"] = x


def write_to_an_array_in_the_new(p, q, x):
    q["a"][0] = 7.0


def write_to_an_array_in_the_old(p, q, x):
    p["a"][0] = 7.0


def write_to_a_list_in_the_new(p, q, x):
    q["c"][0] = x


def update(p, q, x):
    q.update(a=x)


def delete(p, q, x):
    del p["b"]


def compare(p, q, x):
    p["d"] = 1.0 if p is q else 2.0


@pytest.mark.parametrize("change", [write_to_the_new, write_to_the_old, write_to_an_array_in_the_new, update, delete,
                                    write_to_an_array_in_the_old, write_to_a_list_in_the_new, compare])
@pytest.mark.parametrize("loops", [1, 2])
def test_writes_are_refused(change, loops):
    def fun(n, x):
        p = {"a": x * 1, "b": x * 2, "c": [x * 3]}
        q = p
        for _ in range(n):
            q = {"a": q["a"] * 2, "b": q["b"], "c": [q["c"][0] * 2]}
        if loops == 2:
            for _ in range(n):
                q = {"a": q["a"] * 2, "b": q["b"], "c": [q["c"][0] * 2]}
        change(p, q, x)
        return q["a"].sum() + p["a"].sum() + q["c"][0].sum() + p["c"][0].sum()

    with pytest.raises(TranspileError, match=r"E123.*decided at run time") as raised:
        gs.jit(fun)(3, np.ones(2))
    assert "copy" in str(raised.value)


def test_writes_in_the_loop_are_refused():
    def fun(n, x):
        p = {"a": x * 1}
        q = p
        for _ in range(n):
            q["a"] = q["a"] * 3
            q = halved(q)
        return q["a"].sum() + p["a"].sum()

    with pytest.raises(TranspileError, match="E123.*one that it may be is written to"):
        gs.jit(fun)(3, np.ones(2))


class Box:
    def __init__(self, value):
        self.value = value


def test_objects():
    def fun(n, x, writes):
        box = Box(x)
        first = box
        for _ in range(n):
            box = Box(box.value * 2)
        if writes:
            first.value = x * 5
        return (box.value * first.value).sum()

    x = np.array([1.0, 2.0])
    for trips in (0, 2):
        assert gs.jit(fun, static_argnums=2)(trips, x, False) == fun(trips, x, False)
    with pytest.raises(TranspileError, match="E123.*which object"):
        gs.jit(fun, static_argnums=2)(2, x, True)


def dict_or(x):
    p = {"a": x}
    q = p
    q |= {"a": x * 3}
    return (p["a"] + q["a"]).sum()


def list_times(x):
    p = [x]
    q = p
    q *= 2
    return len(p) + sum(v.sum() for v in p)


def list_plus(x):
    p = [x]
    q = p
    q += [x * 2]
    return len(p) + sum(v.sum() for v in p)


def set_operators(x):
    s = {1, 2, 3}
    t = s
    t |= {4}
    t -= {1}
    t &= {2, 4}
    t ^= {7, 8, 9}
    return x.sum() * len(s)


@pytest.mark.parametrize("fun", [dict_or, list_times, list_plus, set_operators])
def test_operators_in_place_change_what_every_name_means(fun):
    x = np.array([1.0, 2.0])
    assert gs.jit(fun)(x) == fun(x)


def set_in_a_branch(x):
    s = {1}
    if x[0] > 0:
        s.add(2)
    return x.sum() * len(s)


def set_in_a_loop(n, x):
    s = {0}
    for i in range(n):
        s.add(3)
    return x.sum() * len(s)


def set_in_one_trip(n, x):
    total = 0.0
    for i in range(n):
        s = {1, 2}
        s.add(3)
        total = total + x.sum() * len(s)
    return total


@pytest.mark.parametrize(("fun", "args"), [(set_in_a_branch, ()), (set_in_a_loop, (0,)), (set_in_a_loop, (2,)),
                                           (set_in_one_trip, (3,))])
def test_sets_are_as_they_were_in_the_other_arm(fun, args):
    """Right, or refused where what is in a set would depend on the run."""
    for x in (np.array([1.0, 2.0]), np.array([-1.0, 2.0])):
        try:
            found = gs.jit(fun)(*args, x)
        except TranspileError as problem:
            assert fun is not set_in_one_trip
            assert "E12" in str(problem) and "a set, dict or object" in str(problem)
        else:
            assert found == fun(*args, x)
