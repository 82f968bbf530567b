"""gradsmith.lax and jax.lax give the same values and gradients, alone and in a batch."""

import numpy as np
import pytest
from tracing import run, traced

import gradsmith
from gradsmith import lax

jax = pytest.importorskip("jax")

A = np.linspace(-1.0, 2.0, 5)
M = np.linspace(-1.0, 2.0, 12).reshape(4, 3)


def power(lax, np, x, n):
    return lax.fori_loop(0, n, lambda i, c: c * 0.5 + i * x, x)


def fori_pair(lax, np, x, n):
    a, b = lax.fori_loop(-1, n, lambda i, c: (c[1], c[0] + c[1] * x), (x, x * x))
    return a + 2.0 * b


def halving(lax, np, x, n):
    return lax.while_loop(lambda c: c[0] < n + 2, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]


def scanned(lax, np, xs, n):
    carry, ys = lax.scan(lambda c, v: (c * 0.5 + v * v, {"a": c * v, "b": (v, c)}), 1.0, xs)
    return carry + np.sum(ys["a"] * ys["b"][0]) + np.sum(ys["b"][1])


def scanned_back(lax, np, xs, n):
    carry, ys = lax.scan(lambda c, v: (c * 0.5 + v * v, c), 1.0, xs, reverse=True, unroll=2)
    return carry + np.sum(ys * xs)


def scanned_rows(lax, np, xs, n):
    carry, ys = lax.scan(lambda c, row: (c + row * row[0], c * row), np.ones(3), xs)
    return np.sum(carry) + np.sum(ys * xs)


def scanned_length(lax, np, x, n):
    carry, ys = lax.scan(lambda c, _: (c * x, c), 1.0, None, length=4)
    return carry + np.sum(ys)


def scanned_tree(lax, np, xs, n):
    carry, ys = lax.scan(lambda c, v: ({"s": c["s"] + v["x"] * v["y"]}, None), {"s": 0.5}, {"x": xs, "y": xs[::-1]})
    assert ys is None
    return carry["s"]


def mapped(lax, np, xs, n):
    squares, sums = lax.map(lambda row: (row * row, np.sum(row)), xs)
    return np.sum(squares * xs) + np.sum(sums ** 2)


def either(lax, np, x, n):
    return lax.cond(x > 0.3, lambda a, b: a * b, lambda a, b: a - b, x, x * x)


def by_operand(lax, np, x, n):
    return lax.cond(x > 0.3, lambda a: a["p"] * 2.0, lambda a: -a["p"], operand={"p": x})


def switched(lax, np, x, n):
    return lax.switch(n, [lambda v: v, lambda v: v * v, lambda v: v ** 3], x)


def selected(lax, np, xs, n):
    return np.sum(lax.select(xs > 0, xs * xs, 3.0 * xs))


def sliced(lax, np, xs, n):
    return np.sum(lax.dynamic_slice(xs, (n - 1,), (3,)) * lax.dynamic_slice_in_dim(xs, n, 3))


def sliced_rows(lax, np, xs, n):
    part = lax.dynamic_slice(xs, (n, -1), (2, 2))
    return np.sum(part ** 2) + np.sum(lax.dynamic_index_in_dim(xs, n, 1, keepdims=False) ** 3)


def updated(lax, np, xs, n):
    ys = lax.dynamic_update_slice(xs, xs[:2] * 3.0, (n,))
    zs = lax.dynamic_update_index_in_dim(ys, xs[0] * xs[1], n, 0)
    return np.sum(ys * xs) + np.sum(zs ** 2)


def updated_rows(lax, np, xs, n):
    return np.sum(lax.dynamic_update_slice_in_dim(xs, xs[:1] * xs[1:2], n, 0) ** 2)


def prefix_products(lax, np, xs, n):
    return np.sum(lax.associative_scan(lambda a, b: a * b, xs) * xs) + np.sum(
        lax.associative_scan(lambda a, b: a * b, xs, reverse=True) ** 2)


def affine_maps(lax, np, xs, n):
    a, b = lax.associative_scan(lambda f, g: (f[0] * g[0], f[1] * g[0] + g[1]), (xs * 0.5, xs), axis=1)
    return np.sum(a * b)


def nested(lax, np, xs, n):
    def outer(c, row):
        inner, ys = lax.scan(lambda d, v: (lax.cond(v > 0, lambda d: d * v, lambda d: d - v, d), d), c, row)
        return inner * 0.5, np.sum(ys)

    carry, ys = lax.scan(outer, 1.0, xs)
    return carry + np.sum(ys ** 2)


PROGRAMS = [*((f, x) for f in (power, fori_pair, halving, scanned_length, either, by_operand, switched)
              for x in (0.2, 0.7)),
            *((f, A) for f in (scanned, scanned_back, scanned_tree, selected, sliced, updated, prefix_products)),
            *((f, M) for f in (scanned_rows, mapped, sliced_rows, updated_rows, affine_maps, nested))]


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


COUNTED = (power, fori_pair, halving, switched, sliced, sliced_rows, updated, updated_rows)


@pytest.mark.parametrize("program, x, n", [(f, x, n) for f, x in PROGRAMS for n in (
    [3] if f not in COUNTED else [0, 3, 9, -2])], ids=lambda v: getattr(v, "__name__", None))
def test_value_gradient_and_batch(program, x, n):
    def mine(x, n):
        return program(lax, np, x, n)

    @jax.jit
    def theirs(x):
        return program(jax.lax, jax.numpy, x, n)

    expected = theirs(x)
    # Reverse mode of jax.lax.while_loop is not there: its derivative is forward mode's.
    slope = jax.jit(jax.jacfwd(theirs) if program is halving else jax.grad(theirs))(x)
    np.testing.assert_allclose(run(traced(mine, x, n)), expected, rtol=1e-12)
    np.testing.assert_allclose(mine(x, n), expected, rtol=1e-12)
    np.testing.assert_allclose(run(traced(gradsmith.grad(mine), x, n)), slope, rtol=1e-10, atol=1e-12)
    if n != 3:
        return
    lanes = np.stack([np.asarray(x), np.asarray(x) * 0.5 - 0.1, np.asarray(x) + 1.0])
    batched = run(traced(gradsmith.vmap(mine, in_axes=(0, None)), lanes, n))
    np.testing.assert_allclose(batched, jax.jit(jax.vmap(theirs))(lanes), rtol=1e-10)
    slopes = run(traced(gradsmith.vmap(gradsmith.grad(mine), in_axes=(0, None)), lanes, n))
    np.testing.assert_allclose(slopes, jax.jit(jax.vmap(jax.jacfwd(theirs)))(lanes), rtol=1e-10, atol=1e-12)


def test_scans_of_no_steps():
    for xs in (np.zeros(0), np.zeros((0, 3))):
        def program(lax, xs):
            return lax.scan(lambda c, x: (c + 1.0, {"x": x * 2.0, "c": c}), 1.5, xs)

        (carry, ys), (expected, wanted) = run(traced(lambda xs: program(lax, xs), xs)), program(jax.lax, xs)
        eager, results = program(lax, xs)
        assert expected == carry == eager
        for key in ("x", "c"):
            assert wanted[key].shape == ys[key].shape == results[key].shape


@pytest.mark.parametrize("n", [0, 1, 5])
def test_scans_of_run_time_length(n):
    def mine(x, n):
        carry, ys = lax.scan(lambda c, _: (c * x, (c, c * c)), 1.0, None, length=n)
        return carry + np.sum(ys[0] * ys[1])

    expected, slope = jax.value_and_grad(lambda x: x ** n + sum(x ** (3 * k) for k in range(n)) + 0.0 * x)(0.9)
    np.testing.assert_allclose(run(traced(mine, 0.9, n)), expected, rtol=1e-12)
    np.testing.assert_allclose(run(traced(gradsmith.grad(mine), 0.9, n)), slope, rtol=1e-10)


def test_what_jax_refuses():
    for lib, numpy in ((lax, np), (jax.lax, jax.numpy)):
        for call in (lambda lax, np: lax.dynamic_slice(np.ones(3), (0,), (4,)),
                     lambda lax, np: lax.dynamic_update_slice(np.ones(3), np.ones(4), (0,)),
                     lambda lax, np: lax.dynamic_update_slice(np.ones(3), np.ones(2, dtype=int), (0,))):
            with pytest.raises(TypeError):
                call(lib, numpy)
        with pytest.raises(ValueError, match="number of operand dimensions"):
            lib.dynamic_slice(numpy.ones(3), (0, 0), (1,))
        with pytest.raises(ValueError, match="[Ee]mpty"):
            lib.switch(0, [])
