"""`gradsmith check`: what agrees, what does not, and at which arguments."""

import numpy as np
import pytest
from commands import gradsmith, write


@pytest.fixture(autouse=True)
def model():
    write("model.py", """
        import numpy as np
        import gradsmith

        def f(x, w):
            return np.sum(np.tanh(x @ w))

        def wrong(x):
            return np.sum(gradsmith.stop_gradient(x) * x)

        def positive(x):
            return np.sum(np.log(x))

        def cube(x, r):
            return r * x * x * x

        def step(u, k):
            u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])

        def singular(a):
            return np.sum(np.linalg.inv(0.0 * a))

        def limited(x):
            if x.sum() > 2.0:
                raise RuntimeError("too much")
            return np.sum(x * x)

        POINT = (np.array([1.0, 2.0]),)

        def by_name():
            return {"x": np.ones((2, 3)), "w": np.ones(3)}
    """)


def test_agreement():
    result = gradsmith("check", "model.py:f", "--sig", "f64[n,m], f64[m]", "--argnums", "0,1", "--samples", "1")
    assert "f: agrees\n" in result.stdout
    assert "gradient by w  complex step" in result.stdout
    assert "model.py: 4 of 4 comparisons agree, at 1 sample\n" in result.stdout


def test_disagreement_is_status_1():
    result = gradsmith("check", "model.py:wrong", "--inputs", "model.py:POINT", status=1)
    assert "wrong: DISAGREES\n" in result.stdout
    assert "error[E511]: wrong: gradient by x disagrees with complex step" in result.stderr


def test_arguments_by_name():
    gradsmith("check", "model.py:f", "--inputs", "model.py:by_name")
    np.savez("point.npz", x=np.ones((2, 3)), w=np.ones(3))
    gradsmith("check", "model.py:f", "--inputs", "point.npz")


def test_positive_arguments_where_others_are_not_finite():
    gradsmith("check", "model.py:positive", "--sig", "f64[n]", "--samples", "1")


def test_every_step_is_checked():
    text = gradsmith("check", "model.py:cube", "--transform", "grad(grad)", "--sig", "f64, f64", "--samples",
                     "1").stdout
    assert "cube: agrees" in text
    assert "grad(cube): agrees" in text
    text = gradsmith("check", "model.py:cube", "--transform", "vmap(grad)", "--in-axes", "0,None", "--sig",
                     "f64[n], f64", "--samples", "1").stdout
    assert "vmap(grad(cube)): agrees" in text
    assert "one example at a time" in text


def test_a_function_that_returns_nothing_is_shown():
    text = gradsmith("check", "model.py:step", "--sig", "f64[n], f64", status=1).stderr
    assert text.startswith("error[E403]: step returns None")
    assert "def step(u, k):" in text and "gradsmith.functional" in text


@pytest.mark.parametrize("arguments, shown", [
    (("model.py:singular", "--sig", "f64[n,n]"),
     ("error[E120]: singular raises LinAlgError: Singular matrix\n", "return np.sum(np.linalg.inv(0.0 * a))")),
    (("model.py:limited", "--inputs", "model.py:POINT"),
     ("error[E120]: limited raises RuntimeError: too much\n", 'raise RuntimeError("too much")')),
])
def test_what_the_function_itself_raises_is_shown_at_its_line(arguments, shown):
    text = gradsmith("check", *arguments, status=1).stderr
    assert text.startswith(shown[0])
    assert shown[1] in text and "--inputs" in text


def test_arguments_are_drawn_again_where_the_function_raises():
    gradsmith("check", "model.py:limited", "--sig", "f64[n]", "--samples", "6")
