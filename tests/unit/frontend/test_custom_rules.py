"""Functions with rules of their own.  Most rules here are wrong by a factor, so that it shows whether they are used."""

import functools

import numpy as np
import pytest
from tracing import run, traced

import gradsmith
from gradsmith import checkpoint, custom_jvp, custom_vjp, grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vmap
from gradsmith.custom_derivatives import SymbolicZero
from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.ir.parse import parse
from gradsmith.transpiler.ir.show import show

A = np.array([0.3, -0.7, 1.1])


def evaluated(f, *args):
    return run(traced(f, *args))


def assert_close(expected, actual):
    if isinstance(expected, (tuple, list)):
        assert len(expected) == len(actual)
        for e, a in zip(expected, actual):
            assert_close(e, a)
        return
    assert np.shape(expected) == np.shape(actual)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-12)


@custom_vjp
def sine_reverse(x):
    return np.sin(x)


sine_reverse.defvjp(lambda x: (np.sin(x), np.cos(x)), lambda cosine, ct: (2.0 * cosine * ct,))


@custom_jvp
def sine_forward(x):
    return np.sin(x)


@sine_forward.defjvp
def _sine_forward(primals, tangents):
    return np.sin(primals[0]), 2.0 * np.cos(primals[0]) * tangents[0]


both_kinds = pytest.mark.parametrize("sine", [sine_reverse, sine_forward], ids=["vjp", "jvp"])


@both_kinds
def test_each_mode_from_either_rule(sine):
    slope = 2.0 * np.cos(A)
    assert_close(2.0 * np.cos(0.7), evaluated(grad(sine), 0.7))
    assert_close((np.sin(0.7), 6.0 * np.cos(0.7)), evaluated(lambda x: jvp(sine, (x,), (3.0,)), 0.7))
    assert_close(np.diag(slope), evaluated(jacfwd(sine), A))
    assert_close(np.diag(slope), evaluated(jacrev(sine), A))
    assert_close(slope, evaluated(vmap(grad(sine)), A))
    assert_close(slope, evaluated(grad(lambda x: np.sum(vmap(sine)(x))), A))


@both_kinds
def test_the_code_of_the_rule_is_differentiated(sine):
    second = 2.0 * np.cos(A) - 2.0 * np.sin(A) * A + np.cos(A)        # of the rule's cosine, and of its sine

    def f(x):
        return np.sum(sine(x) * x)

    assert_close(np.diag(second), evaluated(hessian(f), A))
    assert_close(np.diag(second), evaluated(jacrev(grad(f)), A))
    assert_close(np.diag(second), evaluated(jacfwd(jacfwd(f)), A))
    assert_close(A * second, evaluated(lambda x: hvp(f, (x,), (x,))[0], A))


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_a_rule_that_calls_its_function(kind):
    """s' = cos(s), so s'' = -sin(s) cos(s), in all modes."""
    s = (custom_vjp if kind == "vjp" else custom_jvp)(np.sin)
    if kind == "vjp":
        s.defvjp(lambda x: (s(x), s(x)), lambda value, ct: (np.cos(value) * ct,))
    else:
        s.defjvp(lambda primals, tangents: (s(primals[0]), np.cos(s(primals[0])) * tangents[0]))
    expected = -np.sin(np.sin(0.7)) * np.cos(np.sin(0.7))

    def pushed(f):
        return lambda x: jvp(f, (x,), (1.0,))[1]

    for second in (grad(grad(s)), pushed(pushed(s)), grad(pushed(s)), pushed(grad(s)), jacfwd(jacfwd(s))):
        assert_close(expected, evaluated(second, 0.7))


def _in_control_flow(s):
    def loop(x, n):
        y = x
        for _ in range(n):
            y = 1.5 * s(y) if y > 0.2 else y * y + 0.3
        return y

    def counted(x, n):
        y = x
        while y < n:
            z = s(y)
            y = y + 0.5 * z * z + 0.1
        return y

    def recursive(x, n):
        return x if n == 0 else 1.2 * s(recursive(x, n - 1))

    def kept(x, n):
        y = x
        for _ in checkpoint(range(n), every=2):
            y = 1.1 * s(y)
        return y

    def few_kept(x, n):
        y = x
        for _ in checkpoint(range(n), slots=2):
            y = 1.1 * s(y)
        return y

    return [loop, counted, recursive, kept, few_kept]


class Dual:
    """A number with its slope, as NumPy's functions take it."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other, 0.0)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other, 0.0)
        return Dual(self.value + other.value, self.slope + other.slope)

    __rmul__, __radd__ = __mul__, __add__

    def __gt__(self, other):
        return self.value > other

    def __lt__(self, other):
        return self.value < other

    def sin(self):
        return Dual(np.sin(self.value), 2.0 * np.cos(self.value) * self.slope)


@both_kinds
@pytest.mark.parametrize("number", range(5), ids=["loop", "while", "recursion", "checkpoint", "slots"])
def test_control_flow(sine, number):
    program = _in_control_flow(sine)[number]
    plain = _in_control_flow(lambda x: x.sin())[number]
    found = [plain(Dual(x, 1.0), 3) for x in (0.7, -0.4)]
    for x, expected in zip((0.7, -0.4), found):
        assert_close((expected.value, expected.slope), evaluated(value_and_grad(program), x, 3))
        assert_close((expected.value, expected.slope),
                     evaluated(lambda x, n: jvp(lambda y: program(y, n), (x,), (1.0,)), x, 3))
    batch = np.array([0.7, -0.4])
    assert_close([expected.slope for expected in found], list(evaluated(vmap(grad(program), in_axes=(0, None)), batch, 3)))


def _scaled_square(w, x, kind):
    """w (w x^2), whose derivative by x is given as 3 w^2 x; the one by w is that of the code, 2 w x^2."""
    def square(x):
        return w * x * x

    if kind == "vjp":
        square = custom_vjp(square)
        square.defvjp(lambda x: (w * x * x, x), lambda x, ct: (3.0 * w * x * ct,))
    else:
        square = custom_jvp(square)
        square.defjvp(lambda primals, tangents: (w * primals[0] ** 2, 3.0 * w * primals[0] * tangents[0]))
    return square(x) * w


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_values_of_the_code_around(kind):
    f = functools.partial(_scaled_square, kind=kind)
    w, x = 1.5, 2.0
    by_w, by_x = 2 * w * x**2, 3 * w**2 * x
    assert_close((by_w, by_x), evaluated(grad(f, (0, 1)), w, x))
    assert_close(by_w + 0.5 * by_x, evaluated(lambda w, x: jvp(f, (w, x), (1.0, 0.5))[1], w, x))
    assert_close(6 * w * x, evaluated(grad(grad(f, 1), 0), w, x))
    ws = np.array([1.5, 2.0])
    assert_close((2 * ws * x**2, 3 * ws**2 * x), evaluated(vmap(grad(f, (0, 1)), in_axes=(0, None)), ws, x))


def test_an_array_of_the_code_around_is_what_it_is_at_the_call():
    def f(x):
        a = np.zeros(3)
        a[0] = x[0]

        @custom_vjp
        def scaled(y):
            return a * y

        scaled.defvjp(lambda y: (a * y, a), lambda saved, ct: (10.0 * saved * ct,))
        before = scaled(x)
        a[0] = 5.0
        return np.sum(before) + np.sum(scaled(x))

    assert_close(np.array([11 * A[0] + 50, 0.0, 0.0]), evaluated(grad(f), A))


def test_values_of_the_loop_around():
    def f(w, n):
        total = 0.0
        for i in range(n):
            v = w * i

            @custom_vjp
            def scaled(x, v=v):
                return v * x

            scaled.defvjp(lambda x, v: (v * x, (x, v)), lambda saved, ct: (saved[1] * ct, saved[0] * ct))
            total = total + scaled(w)
        return total

    assert_close(2 * 1.5 * 6, evaluated(grad(f), 1.5, 4))


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def applied(fun, params, x):
    return {"y": fun(x) * params["a"], "n": 3}


applied.defvjp(lambda fun, params, x: (applied(fun, params, x), (params, x)),
               lambda fun, saved, ct: ({"a": ct["y"] * fun(saved[1]), "b": None}, None))


def test_trees_and_functions_among_the_arguments():
    params = {"a": 2.0, "b": 1.5}
    by_params, by_x = evaluated(grad(lambda p, x: applied(np.tanh, p, x)["y"] * 2, (0, 1)), params, 0.5)
    assert_close([2 * np.tanh(0.5), 0.0, 0.0], [by_params["a"], by_params["b"], by_x])
    # What a function among the arguments closes over is a value of the code around.
    by_params, _ = evaluated(grad(lambda p, x: applied(lambda z: z * p["b"], p, x)["y"] * 2, (0, 1)), params, 0.5)
    assert_close([1.5, 2.0], [by_params["a"], by_params["b"]])


def test_a_rule_for_each_argument():
    f = custom_jvp(lambda x, y: np.sin(x) * y)
    f.defjvps(None, lambda tangent, result, x, y: 5.0 * np.sin(x) * tangent)
    assert_close((0.0, 5.0 * np.sin(0.3)), evaluated(grad(f, (0, 1)), 0.3, 2.0))


def test_ints_and_default_values():
    power = custom_vjp(lambda x, n=2: x**n)
    power.defvjp(lambda x, n: (x**n, (x, n)), lambda saved, ct: (7.0 * saved[1] * saved[0] ** (saved[1] - 1) * ct, None))
    assert_close(7 * 3 * 1.5**2, evaluated(grad(power), 1.5, 3))
    assert_close(7 * 3 * 1.5**2, evaluated(grad(lambda x: power(x, n=3)), 1.5))
    assert_close(7 * 2 * 1.5, evaluated(grad(power), 1.5))


M, X = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.1, 0.2], [0.3, 0.5], [1.0, -1.0]])


def test_arguments_that_are_one_for_the_whole_batch():
    product = custom_vjp(lambda m, x: m @ x)
    product.defvjp(lambda m, x: (m @ x, (m, x)), lambda saved, ct: (2 * np.outer(ct, saved[1]), saved[0].T @ ct))

    def total(m, x):
        return np.sum(vmap(product, in_axes=(None, 0))(m, x) ** 2)

    assert_close((4 * (X @ M.T).T @ X, 2 * (X @ M.T) @ M), evaluated(grad(total, (0, 1)), M, X))
    text = show(traced(grad(total, (0, 1)), M, X).func)
    assert "for" not in text, "a loop over lanes"
    rows = np.stack([np.outer(row, X[0]) * 2 for row in np.eye(2)])
    assert_close(rows, evaluated(jacfwd(product), M, X[0]))
    assert_close(rows, evaluated(jacrev(product), M, X[0]))


def test_complex_numbers():
    square = custom_vjp(lambda z: z * z)
    square.defvjp(lambda z: (z * z, z), lambda z, ct: (2 * z * ct,))
    assert_close(2 + 4j, evaluated(grad(square, holomorphic=True), 1 + 2j))
    assert_close((-3 + 4j, -4 + 2j), evaluated(lambda z: jvp(square, (z,), (1j,)), 1 + 2j))
    size = custom_jvp(np.abs)
    size.defjvp(lambda p, t: (np.abs(p[0]), (p[0].real * t[0].real + p[0].imag * t[0].imag) / np.abs(p[0])))
    assert_close(evaluated(grad(lambda z: np.abs(z)), 1 + 2j), evaluated(grad(size), 1 + 2j))


def test_methods_and_calls_from_python():
    class Scale:
        def __init__(self, w):
            self.w = w

        @custom_vjp
        def times(self, x):
            return self.w * x

        times.defvjp(lambda self, x: (self.w * x, None), lambda saved, ct: (None, 100.0 * ct))

    scale = Scale(3.0)
    assert 6.0 == scale.times(2.0)
    assert_close(100.0, evaluated(grad(lambda x: scale.times(x)), 2.0))
    assert np.sin(2.0) == sine_reverse(2.0)


def test_a_call_that_is_not_differentiated_is_put_in_place():
    """A rule of a function called inside of another's derivative, on other values, is not asked for."""
    found = traced(lambda x, y: grad(lambda z: z * sine_reverse(y))(x), 0.5, 0.7)
    assert "rule" in show(found.func)
    assert show(found.func) == show(parse(show(found.func)))
    placed = gradsmith.transpiler.pipeline.run(found.func, stop="place")
    assert "call" not in show(placed)
    assert_close(np.sin(0.7), run(found))


def _failure(f, *args):
    with pytest.raises(TranspileError) as found:
        traced(f, *args)
    return found.value.problems[0]


def _with_rule(fwd, bwd, f=lambda x: np.sum(x * x)):
    made = custom_vjp(f)
    made.defvjp(fwd, bwd)
    return grad(made)


@pytest.mark.parametrize("fwd, bwd, message", [
    (lambda x: np.sum(x * x), lambda saved, ct: (ct,), "must return a pair (result, residuals)"),
    (lambda x: (np.sum(x * x), x), lambda saved, ct: ct * saved, "a tuple with the cotangent of each of 1 argument"),
    (lambda x: (np.sum(x * x), x), lambda saved, ct: (ct, ct), "not a tuple of 2"),
    (lambda x: (np.sum(x * x), x), lambda saved, ct: (ct,), "must be of shape (a0_n0,), not of shape ()"),
    (lambda x: (np.sum(x * x), x), lambda saved, ct: (np.ones(3, np.float32) * 2,), "must be of dtype float64"),
    (lambda x: (np.sum(x * x), x), lambda saved, ct: ("a",), "must be a number or an array"),
    (lambda x: (x * x, x), lambda saved, ct: (ct * saved,), "the result that `<lambda>` returns"),
    (lambda x: ((np.sum(x), x), x), lambda saved, ct: (ct * saved,), "not a tuple of 2"),
])
def test_rules_that_return_something_else(fwd, bwd, message):
    problem = _failure(_with_rule(fwd, bwd), A)
    assert "E410" == problem.code
    assert message in problem.message
    assert problem.location.file.endswith("test_custom_rules.py")


def test_rules_that_are_not_linear():
    clipped = custom_vjp(lambda x: x)
    clipped.defvjp(lambda x: (x, None), lambda saved, ct: (np.clip(ct, -0.5, 0.5),))
    assert_close(0.5, evaluated(grad(lambda x: 3 * clipped(x)), 2.0))
    problem = _failure(lambda x: jvp(clipped, (x,), (1.0,)), 2.0)
    assert ("E410", True) == (problem.code, "not linear in its cotangent" in problem.message)
    clipped.defjvp(lambda primals, tangents: (primals[0], 7.0 * tangents[0]))
    assert_close(7.0, evaluated(lambda x: jvp(clipped, (x,), (1.0,))[1], 2.0))
    assert_close(0.5, evaluated(grad(lambda x: 3 * clipped(x)), 2.0))


def test_rules_that_are_missing_or_not_supported():
    assert "E411" == _failure(grad(custom_vjp(lambda x: x)), 1.0).code
    assert 1.0 == evaluated(gradsmith.jit(custom_jvp(lambda x: x)), 1.0)
    with pytest.raises(TypeError, match="takes fwd and bwd"):
        custom_vjp(lambda x: x).defvjp(lambda x: (x, None))
    with pytest.raises(TypeError, match="takes a function"):
        custom_jvp(3)


def test_zeros_that_rules_can_tell():
    """By factors of 100 and 10 a rule shows which tangents it was told to be zero."""
    @custom_jvp
    def product(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (t, u) = primals, tangents
        if type(u) is SymbolicZero:
            return x * y, 100 * t * y
        if isinstance(t, SymbolicZero):
            return x * y, 10 * u * x
        return x * y, t * y + x * u

    product.defjvp(rule, symbolic_zeros=True)
    for function, x, expected in [
        (grad(lambda x: product(x, 3.0)), 2.0, 300.0), (grad(lambda x: product(3.0, x)), 2.0, 30.0),
        (grad(lambda x: product(x, gradsmith.stop_gradient(x))), 2.0, 200.0), (grad(lambda x: product(x, x)), 2.0, 4.0),
        (grad(lambda x: product(x, A[1]).sum()), 2.0, 100 * A[1]),
        (lambda x: grad(lambda y: product(x, y))(5.0), 2.0, 20.0),
        (grad(lambda x: grad(lambda y: product(x, y))(5.0)), 2.0, 1.0),
        (grad(lambda x: gradsmith.vmap(product, in_axes=(None, 0))(x, A).sum()), 2.0, 100 * A.sum()),
    ]:
        assert_close(expected, evaluated(function, x))


def test_arguments_that_tell_whether_they_are_perturbed():
    product = custom_vjp(lambda x, y: x * y)

    def forward(x, y):
        return x.value * y.value, (x.value if y.perturbed else None, y.value)

    def backward(kept, ct):
        x, y = kept
        return 7 * ct * y, (None if x is None else ct * x)

    product.defvjp(forward, backward, symbolic_zeros=True)
    assert_close(21.0, evaluated(grad(lambda x: product(x, 3.0)), 2.0))
    assert_close(14.0 + 2.0, evaluated(grad(lambda x: product(x, x)), 2.0))


def test_writes_to_an_argument():
    def f(x):
        x[0] = 3.0
        return np.sum(x)

    made = custom_vjp(f)
    made.defvjp(lambda x: (np.sum(x), None), lambda saved, ct: (np.ones(3) * ct,))
    assert "E124" == _failure(grad(made), A).code


def test_a_rule_that_is_given_anew_is_seen():
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda saved, ct: (2.0 * ct,))
    slope = gradsmith.grad(f)
    assert 2.0 == slope(1.0)
    f.defvjp(lambda x: (x, None), lambda saved, ct: (3.0 * ct,))
    assert 3.0 == slope(1.0)


@pytest.mark.jax
def test_as_in_jax():
    """Rules that disagree with the function, to the third order."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        jnp = jax.numpy

        def rules(module, kind):
            f = kind(lambda x: module.sin(x) * x)
            if kind in (jax.custom_vjp, custom_vjp):
                f.defvjp(lambda x: (f(x) * 1.5, (x, module.cos(x))), lambda saved, ct: (saved[0] * saved[1] * ct,))
            else:
                f.defjvp(lambda p, t: (f(p[0]) * 1.5, p[0] ** 2 * module.cos(p[0]) * t[0]))
            return lambda x: f(x) * x + f(f(x))

        for mine, theirs in ((custom_vjp, jax.custom_vjp), (custom_jvp, jax.custom_jvp)):
            expected, found = rules(jnp, theirs), rules(np, mine)
            for _ in range(3):
                expected, found = jax.grad(expected), grad(found)
                np.testing.assert_allclose(evaluated(found, 0.6), expected(0.6), rtol=1e-12)
