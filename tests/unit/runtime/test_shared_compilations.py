"""Equal compositions are compiled once."""

import numpy as np

import gradsmith
from gradsmith import grad, jit


def damped(x):
    return np.exp(-x) * np.sin(x)


def entry(f):
    return f.lower(1.0).entry


def test_equal_transforms_of_one_function_are_one():
    assert grad(damped) is grad(damped)
    assert gradsmith.hessian(damped, argnums=0) is gradsmith.hessian(damped)


def test_compilers_between_transforms_make_no_difference():
    plain = entry(grad(damped))
    assert plain is entry(jit(grad(damped)))
    assert plain is entry(grad(jit(damped)))
    assert plain is entry(jit(jit(grad(jit(jit(damped))))))
    assert plain is not entry(grad(grad(damped)))


def test_functions_made_anew_with_the_same_code():
    def scaled(a):
        return lambda x: np.sin(a * x)

    found = [grad(scaled(a)) for a in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose([f(1.0) for f in found], [a * np.cos(a) for a in (1.0, 2.0, 3.0)], rtol=1e-14)
    assert 1 == len({id(entry(f)) for f in found})


def test_rules_made_anew_with_the_same_code():
    def ruled(a):
        f = gradsmith.custom_vjp(lambda x: a * x)
        f.defvjp(lambda x: (a * x, None), lambda saved, ct: (10.0 * a * ct,))
        return f

    found = [grad(ruled(a)) for a in (1.0, 2.0)]
    assert [10.0, 20.0] == [f(1.0) for f in found]
    assert 1 == len({id(entry(f)) for f in found})
