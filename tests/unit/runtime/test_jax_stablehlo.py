"""`gradsmith.jax.function(f, via="stablehlo")`: the function becomes part of what XLA compiles for JAX."""

import os

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax import export
from unit.runtime.beside_jax import XS, W, X, same, theirs
from unit.runtime.pendulum import pendulum

from gradsmith.jax import function

pytestmark = [pytest.mark.jax, pytest.mark.xla]

emitted = function(pendulum, via="stablehlo")


def first(f):
    return lambda x, w: f(x, w)[0]


@pytest.mark.parametrize("of, w", [
    (lambda f: f, W), (lambda f: jax.value_and_grad(first(f), (0, 1)), W), (lambda f: jax.hessian(first(f)), W),
    (lambda f: lambda x, w: jax.jvp(f, (x, w), (w, x)), W), (lambda f: jax.vmap(jax.grad(first(f)), (None, 0)), XS),
    (lambda f: jax.grad(jax.checkpoint(first(f)), 1), W),
], ids=["value", "gradient", "hessian", "jvp", "vmap", "checkpoint"])
def test_transforms_of_jax(of, w):
    with jax.enable_x64(True):
        same(jax.jit(of(emitted))(jnp.asarray(X), jnp.asarray(w)), jax.jit(of(theirs))(jnp.asarray(X), jnp.asarray(w)))


def test_32_bits_and_calls_that_are_not_compiled():
    same(emitted(jnp.asarray(X), jnp.asarray(W)), theirs(jnp.asarray(X), jnp.asarray(W)))
    counted = function(lambda x: (x.argmax(), np.arange(3) + x), via="stablehlo")
    same(counted(jnp.ones(3)), (jnp.argmax(jnp.ones(3)), jnp.arange(3) + 1.0))


def test_it_is_code_and_no_callback():
    text = jax.jit(lambda x: emitted(x, W)[0] + emitted(2.0 * x, W)[0]).lower(jnp.asarray(X)).as_text()
    assert "callback" not in text
    assert text.count("call @gradsmith_pendulum") == 2


def test_inside_scan_and_beside_known_values():
    step = function(lambda x, n, how: x ** n + (1.0 if how == "up" else -1.0), via="stablehlo")

    def run(step):
        return jax.jit(lambda x: jax.lax.scan(lambda c, _: (step(c), c), x, length=3))(jnp.float32(0.5))

    same(run(lambda c: step(c, 2, "up")), run(lambda c: c ** 2 + 1.0))


def test_it_can_be_exported():
    """A callback could not."""
    exported = export.export(jax.jit(jax.grad(first(emitted))))(jnp.asarray(X), jnp.asarray(W))
    same(exported.call(jnp.asarray(X), jnp.asarray(W)), jax.grad(first(theirs))(jnp.asarray(X), jnp.asarray(W)))
