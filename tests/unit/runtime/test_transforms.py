"""The transforms as people call them: options, trees, nesting, errors, against differences and JAX."""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.parted import parted

Layer = namedtuple("Layer", "w b")
rng = np.random.default_rng(7)
X, Y = rng.normal(size=(4, 3)), rng.normal(size=4)


@dataclasses.dataclass
class Model:
    w: object
    b: object


def f(a, b, c):
    return np.sum(a * a * b) + c * np.sum(b)


A, B, C = np.array([1.0, 2.0]), np.array([3.0, 5.0]), 2.0
D = (2 * A * B, A * A + C, 8.0)          # derivatives of f by a, b and c


def same(expected, actual):
    """Equal trees, kinds of containers, shapes and dtypes, and close values."""
    assert type(expected) is type(actual) or isinstance(expected, (float, np.floating)), (expected, actual)
    if isinstance(expected, dict):
        assert list(expected) == list(actual)
        for key in expected:
            same(expected[key], actual[key])
    elif isinstance(expected, (tuple, list)):
        assert len(expected) == len(actual)
        for e, a in zip(expected, actual, strict=True):
            same(e, a)
    elif dataclasses.is_dataclass(expected):
        same(dataclasses.asdict(expected), dataclasses.asdict(actual))
    elif expected is None or isinstance(expected, str):
        assert expected == actual
    else:
        assert np.shape(expected) == np.shape(actual)
        assert np.asarray(expected).dtype == np.asarray(actual).dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-5 if np.asarray(expected).dtype == np.float32 else 1e-9)


def difference(fun, x, step=1e-6):
    """The gradient of fun at x by central differences."""
    x = np.asarray(x, float)
    found = np.empty(x.shape)
    for k in np.ndindex(x.shape):
        at = [x.copy(), x.copy()]
        at[0][k] += step
        at[1][k] -= step
        found[k] = (fun(at[0]) - fun(at[1])) / (2 * step)
    return found


# --- argnums ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("argnums", "expected"), [
    (0, D[0]), (1, D[1]), (2, D[2]), (-1, D[2]), (-3, D[0]), (np.int64(1), D[1]), ((0,), D[:1]), ((0, 2), (D[0], D[2])),
    ([1, 0], (D[1], D[0])), ((0, 1, 2), D), ((-1, 0), (D[2], D[0])), ((1, 1), (D[1], D[1])),
])
def test_argnums(argnums, expected):
    same(expected, gs.grad(f, argnums)(A, B, C))
    value, gradient = gs.value_and_grad(f, argnums=argnums)(A, B, C)
    same(expected, gradient)
    assert f(A, B, C) == pytest.approx(value)


@pytest.mark.parametrize(("argnums", "kind", "message"), [
    (3, ValueError, "names argument 3, but the call has 3"), (-4, ValueError, "names argument -4"),
    (1.0, TypeError, "must be an int or a tuple of ints, not 1.0"), (True, TypeError, "not a bool"),
    ("a", TypeError, "must be an int"), ((0, 7), ValueError, "names argument 7"),
])
def test_wrong_argnums(argnums, kind, message):
    with pytest.raises(kind, match=message):
        gs.grad(f, argnums)(A, B, C)


def test_keyword_arguments():
    same(D[0], gs.grad(f)(A, B, c=C))
    same(D[0], gs.grad(f)(A, c=C, b=B))
    same(D[2], gs.grad(f, argnums=2)(A, B, c=C))


@pytest.mark.parametrize(("value", "text"), [
    (3, "a, which is a Python int"), (True, "a, which is a Python bool"), ("text", "a, which is a str"),
    (np.arange(3), "a, which is an array of dtype int64"), (np.int32(3), "a, which is of dtype int32"),
    (np.ones(3, bool), "a, which is an array of dtype bool"),
])
def test_what_has_no_derivative_is_named(value, text):
    for transform in (gs.grad, gs.value_and_grad, gs.jacfwd, gs.jacrev):
        with pytest.raises(TypeError, match=text):
            transform(lambda a: 1.0)(value)
    with pytest.raises(TypeError, match=r"a, which is"):
        gs.vjp(lambda a: a, value)


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: x, "one number, not an array of shape"), (lambda x: (x[0], x[1]), "one number, not a tuple"),
    (lambda x: {"a": x[0]}, "one number, not a dict"), (lambda x: None, "one number, and this one returns None"),
    (lambda x: x[0] + 1j, "complex result"),
])
def test_the_result_must_be_one_real_number(result, message):
    with pytest.raises(TypeError, match=message):
        gs.grad(result)(np.ones(3))


def step(u, k):
    u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])


@pytest.mark.parametrize("call", [lambda: gs.grad(step)(X, 0.1), lambda: gs.value_and_grad(gs.jit(step))(Y, 0.1),
                                  lambda: gs.jit(lambda u: gs.grad(step)(u, 0.1))(Y)])
def test_a_function_that_returns_nothing_is_shown(call):
    with pytest.raises(TypeError) as caught:
        call()
    text = str(caught.value)
    assert "E403" == caught.value.code
    assert "| def step(u, k):\n" in text and "^ returns nothing\n" in text
    assert "gradsmith.functional(f)" in text


def test_derivatives_of_a_function_that_returns_nothing_are_zero():
    value, pullback = gs.vjp(step, np.ones(5), 0.1)
    assert value is None
    u_bar, k_bar = pullback(None)
    np.testing.assert_array_equal(np.zeros(5), u_bar)
    assert 0.0 == k_bar
    assert gs.linearize(step, np.ones(5), 0.1)[1](np.ones(5), 1.0) is None


def test_a_result_that_is_constant_or_an_int():
    same(np.zeros(3), gs.grad(lambda x: 2.0)(np.ones(3)))
    same(np.zeros(3), gs.grad(lambda x: len(x))(np.ones(3)))
    same(0.0, gs.grad(lambda x: np.argmax(np.array([x, 2.0])))(1.0))


# --- has_aux and trees ------------------------------------------------------------------------------------------------


def test_has_aux():
    def with_aux(x):
        y = x * x
        return np.sum(y), {"y": y, "n": len(x), "name": "aux", "none": None}

    x = np.array([1.0, 2.0])
    aux = {"y": x * x, "n": 2, "name": "aux", "none": None}
    same((2 * x, aux), gs.grad(with_aux, has_aux=True)(x))
    same(((np.float64(5.0), aux), 2 * x), gs.value_and_grad(with_aux, has_aux=True)(x))
    value, pullback, got = gs.vjp(with_aux, x, has_aux=True)
    same(aux, got)
    same((6 * x,), pullback(3.0))
    with pytest.raises(TypeError, match="pair"):
        gs.grad(lambda x: np.sum(x), has_aux=True)(x)


@pytest.mark.parametrize("make", [
    lambda w, b: {"w": w, "b": b}, lambda w, b: {"b": b, "w": w}, lambda w, b: (w, b), lambda w, b: [w, b],
    Layer, Model, lambda w, b: [{"w": (w,)}, Layer(b, None)],
], ids=["dict", "other order", "tuple", "list", "namedtuple", "dataclass", "nested"])
def test_trees(make):
    tree = make(np.array([1.0, 2.0]), 3.0)

    def loss(t):
        if isinstance(t, dict):
            w, b = t["w"], t["b"]
        elif isinstance(t, list) and isinstance(t[0], dict):
            w, b = t[0]["w"][0], t[1].w
        elif isinstance(t, (tuple, list)):
            w, b = t
        else:
            w, b = t.w, t.b
        return np.sum(w * w) * b

    expected = make(6 * np.array([1.0, 2.0]), 5.0)
    same(expected, gs.grad(loss)(tree))
    same((expected,), gs.vjp(loss, tree)[1](1.0))
    same(2 * (5.0 * 3.0), gs.jvp(loss, (tree,), (make(np.array([1.0, 2.0]), 0.0),))[1])


def test_float32_stays():
    x = np.ones(3, np.float32)
    value, d_x = gs.value_and_grad(lambda x: np.sum(np.tanh(x) * 2.0))(x)
    assert np.float32 is type(value) and np.float32 == d_x.dtype
    same(np.float32(np.cos(np.float32(2))), gs.grad(np.sin)(np.float32(2)))
    assert np.float32 == gs.hessian(lambda x: np.sum(x ** 3))(x).dtype
    y, pullback = gs.vjp(lambda x: x * 2, x)
    assert np.float32 == pullback(np.ones(3))[0].dtype


# --- vjp, jvp, linearize, hvp --------------------------------------------------------------------------------------------


def residual(w, x):
    return np.tanh(x @ w)


def test_vjp_keeps_what_it_needs():
    w, x = rng.normal(size=3), X.copy()
    y, pullback = gs.vjp(residual, w, x)
    ct = rng.normal(size=4)
    slope = (1 - np.tanh(x @ w) ** 2) * ct
    expected = (x.T @ slope, np.outer(slope, w))
    same(np.tanh(x @ w), y)
    same(expected, pullback(ct))
    w[:], x[:], y[:] = 0.0, 0.0, 0.0
    first = pullback(ct)
    first[0][:] = 9.0
    same(expected, pullback(ct))
    same(tuple(2 * e for e in expected), pullback(2 * ct))
    same(expected, pullback(np.repeat(ct, 2)[::2]))


def test_the_primal_is_evaluated_once():
    _, _, later = parted("vjp", residual, False)(rng.normal(size=3), X)
    assert "tanh" not in later.entry.text
    assert [1, 2, 1] == [p.type.rank for p in later.func.params[:-1]], "w is kept, not copies of it for each row"


def test_pullbacks_never_give_back_what_they_were_given():
    ct = np.ones(3)
    for fun in (lambda x: x, lambda x: x + 1, lambda x: x[::-1][::-1]):
        (d_x,) = gs.vjp(fun, np.ones(3))[1](ct)
        assert not np.shares_memory(ct, d_x)
        tangent = gs.linearize(fun, np.ones(3))[1](ct)
        assert not np.shares_memory(ct, tangent)


def test_linearize():
    w, x = rng.normal(size=3), X.copy()
    y, push = gs.linearize(residual, w, x)
    t_w, t_x = rng.normal(size=3), rng.normal(size=(4, 3))
    expected = (1 - np.tanh(x @ w) ** 2) * (x @ t_w + t_x @ w)
    w[:], x[:] = 0.0, 0.0
    same(expected, push(t_w, t_x))
    same(3 * expected, push(3 * t_w, 3 * t_x))
    same((2.0, 0.0), gs.linearize(lambda x: (x * 2, 7.0), 3.0)[1](1.0))


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: gs.vjp(residual, np.ones(3), X)[1](np.ones(3)), ValueError, r"cotangent of shape \(3,\) for .*\(4,\)"),
    (lambda: gs.vjp(lambda x: (x, x), 1.0)[1](1.0), TypeError, "structure of the function's result"),
    (lambda: gs.vjp(lambda x: x, 1.0)[1](1j), TypeError, "complex"),
    (lambda: gs.vjp(lambda x: x, 1.0)[1]("text"), TypeError, "a number or an array"),
    (lambda: gs.linearize(np.sin, 1.0)[1](1.0, 2.0), TypeError, "structure of the primals"),
    (lambda: gs.linearize(np.sin, np.ones(3))[1](np.ones(2)), ValueError, r"tangent of shape \(2,\)"),
    (lambda: gs.jvp(np.sin, 1.0, 1.0), TypeError, r"write \(x,\)"),
    (lambda: gs.jvp(np.sin, (1.0,), (1.0, 2.0)), ValueError, "1 primals and 2 tangents"),
    (lambda: gs.jvp(np.sin, (np.ones(3),), (np.ones(2),)), ValueError, "tangent of shape"),
    (lambda: gs.jvp(np.sin, (1,), (1.0,)), TypeError, "Python int"),
    (lambda: gs.vmap(np.sin)(1.0), ValueError, "scalar"),
    (lambda: gs.vmap(lambda a, b: a + b)(np.ones(3), np.ones(2)), ValueError, "inconsistent sizes"),
    (lambda: gs.vmap(lambda a, b: a + b, in_axes=(0,))(np.ones(3), np.ones(2)), ValueError, "in_axes has 1"),
])
def test_what_is_given_must_fit(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_jvp_and_hvp():
    x, v = np.array([0.3, 0.7]), np.array([1.0, -2.0])
    same((np.sin(x), np.cos(x) * v), gs.jvp(np.sin, (x,), (v,)))
    same(6 * x * v, gs.hvp(lambda x: np.sum(x ** 3), x, v))
    same((6 * x * v, np.float64(2.0)), gs.hvp(lambda x, y: np.sum(x ** 3) + y * y, (x, np.float64(3.0)),
                                              (v, np.float64(1.0))))


def test_stop_gradient():
    same(np.array([2.0, 3.0]), gs.grad(lambda x: np.sum(gs.stop_gradient(x) * x))(np.array([2.0, 3.0])))
    same({"a": 3.0}, gs.grad(lambda t: t["a"] * gs.stop_gradient(t)["a"])({"a": 3.0}))
    assert 3.0 == gs.stop_gradient(3.0)


# --- Jacobians, Hessians, vmap -----------------------------------------------------------------------------------------


def test_jacobians():
    x, y = np.array([0.3, 0.7]), np.array([1.0, 2.0, 3.0])
    outer = lambda x, y: np.outer(np.sin(x), y)
    d_x = np.einsum("i,ik,j->ijk", np.cos(x), np.eye(2), y)
    d_y = np.einsum("i,jk->ijk", np.sin(x), np.eye(3))
    for jacobian in (gs.jacfwd, gs.jacrev, gs.jacobian):
        same(d_x, jacobian(outer)(x, y))
        same((d_x, d_y), jacobian(outer, argnums=(0, 1))(x, y))
        same({"s": np.diag(np.cos(x)), "n": np.ones(2)}, jacobian(lambda x: {"s": np.sin(x), "n": np.sum(x)})(x))


def test_hessian():
    x = np.array([0.3, 0.7])
    g = lambda x, s: s * np.prod(x) + np.sum(x ** 3)
    same(np.array([[6 * 0.3, 2.0], [2.0, 6 * 0.7]]), gs.hessian(g)(x, 2.0))
    (xx, xs), (sx, ss) = gs.hessian(g, argnums=(0, 1))(x, 2.0)
    same(x[::-1], xs), same(x[::-1], sx), same(0.0, ss)


def test_vmap():
    w = rng.normal(size=3)
    one = lambda w, x, y: (x @ w - y) ** 2
    same((X @ w - Y) ** 2, gs.vmap(one, in_axes=(None, 0, 0))(w, X, Y))
    same((2 * (X @ w - Y))[:, None] * X, gs.vmap(gs.grad(one), (None, 0, 0))(w, X, Y))
    same((X * 2).T, gs.vmap(lambda x: x * 2, in_axes=0, out_axes=1)(X))
    same({"s": X.sum(1), "x": X}, gs.vmap(lambda t: {"s": np.sum(t["x"]), "x": t["x"]})({"x": X}))
    same(np.einsum("ij,jk->kij", X, np.ones((3, 2))) * 0 + 1, gs.vmap(
        gs.vmap(gs.vmap(lambda a: a * 0 + 1)), in_axes=2)(np.ones((4, 3, 2))))


# --- nesting ---------------------------------------------------------------------------------------------------------------


def test_any_order_through_jit():
    third = gs.grad(gs.jit(gs.grad(gs.jit(gs.grad(gs.jit(np.sin))))))
    assert -np.cos(0.7) == pytest.approx(third(0.7))
    assert np.exp(0.5) == pytest.approx(gs.grad(gs.grad(gs.grad(np.exp)))(0.5))
    same(np.array([24.0]), gs.jacfwd(gs.jacrev(gs.grad(lambda x: np.sum(x ** 4))))(np.ones(1))[0, 0])
    same(24.0, gs.jvp(gs.grad(gs.grad(lambda x: x ** 4)), (1.0,), (1.0,))[1])


def test_grad_inside_on_a_closure():
    def loss(w):
        inner = gs.grad(lambda x: w * x ** 3)
        return inner(2.0) ** 2

    same(2 * 144.0 * 3.0, gs.grad(loss)(3.0))
    same(1296.0, gs.jit(loss)(3.0))


def test_vjp_and_linearize_inside():
    def through(w, x):
        y, pullback = gs.vjp(lambda x: np.tanh(w * x), x)
        _, push = gs.linearize(lambda x: w * x * x, x)
        return np.sum(pullback(y)[0]) + np.sum(push(np.ones(2)))

    w, x = 0.5, np.array([0.3, -0.2])
    y = np.tanh(w * x)
    assert np.sum(y * (1 - y ** 2) * w) + np.sum(2 * w * x) == pytest.approx(gs.jit(through)(w, x))
    expected = difference(lambda w: gs.jit(through)(float(w), x), w)
    np.testing.assert_allclose(gs.grad(through)(w, x), expected, rtol=1e-6)


def test_perturbations_are_not_confused():
    assert 1.0 == gs.grad(lambda x: x * gs.grad(lambda y: x + y)(1.0))(1.0)
    assert 2.0 == gs.grad(lambda x: x * gs.jvp(lambda y: x * y, (2.0,), (1.0,))[1])(1.0)
    nested = lambda x: gs.jvp(lambda y: gs.jvp(lambda z: x * y * z, (3.0,), (1.0,))[1] * y, (2.0,), (1.0,))[1]
    assert 4.0 == gs.grad(nested)(1.0)


def test_parameters_are_never_written():
    def scaled(x):
        y = x
        y = y * 2
        return np.sum(y * y)

    x = np.arange(3.0)
    x.flags.writeable = False
    for call in (gs.grad(scaled), gs.value_and_grad(scaled), gs.hessian(scaled), gs.jacrev(scaled)):
        call(x)
    np.testing.assert_array_equal(np.arange(3.0), x)


def test_against_differences():
    def loss(w):
        h = np.tanh(X @ w.reshape(3, 2))
        p = np.exp(h) / np.sum(np.exp(h), axis=1, keepdims=True)
        return -np.mean(np.log(p[:, 0])) + np.linalg.norm(w) + np.sum(np.where(w > 0, np.sqrt(np.abs(w)), 0.0))

    w = rng.normal(size=6)
    np.testing.assert_allclose(gs.grad(loss)(w), difference(loss, w), rtol=1e-5, atol=1e-7)


def test_a_hessian_against_differences():
    def loss(w):
        return np.sum(np.tanh(X @ w) ** 2) + np.linalg.norm(w)

    w = rng.normal(size=3)
    hessian = gs.hessian(loss)(w)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hessian[0], difference(lambda w: gs.grad(loss)(w)[0], w), rtol=1e-5, atol=1e-6)


@pytest.mark.jax
def test_against_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def loss(np, p, x, y):
        h = np.maximum(x @ p["w1"] + p["b1"], 0.0)
        scores = h @ p["w2"]
        scores = scores - np.max(scores, axis=1, keepdims=True)
        return -np.mean(np.sum(y * (scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))), axis=1))

    p = {"w1": rng.normal(size=(3, 5)), "b1": rng.normal(size=5), "w2": rng.normal(size=(5, 2))}
    y = np.eye(2)[[0, 1, 1, 0]]
    t = {key: rng.normal(size=value.shape) for key, value in p.items()}
    mine, theirs = lambda p: loss(np, p, X, y), lambda p: loss(jax.numpy, p, X, y)
    close = lambda a, b: jax.tree_util.tree_map(
        lambda a, b: np.testing.assert_allclose(a, np.asarray(b), rtol=1e-9, atol=1e-12), a, b)
    close(gs.value_and_grad(mine)(p), jax.value_and_grad(theirs)(p))
    close(gs.hvp(mine, (p,), (t,))[0], jax.jvp(jax.grad(theirs), (p,), (t,))[1])
    close(gs.linearize(mine, p)[1](t), jax.linearize(theirs, p)[1](t))
