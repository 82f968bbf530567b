"""Options that JAX's transforms have: those that change something, and those that are taken without effect."""

import functools

import jax
import numpy as np
import pytest

import gradsmith as gs

V = np.array([0.5, -1.0, 2.0])
A = np.arange(6.0).reshape(2, 3)


def test_keyword_arguments_of_a_batch_have_it_in_front():
    def scaled(x, y):
        return x * y

    for batched in (gs.vmap(scaled, in_axes=(-1,)), gs.jit(gs.vmap(scaled, in_axes=1)), gs.vmap(scaled, in_axes=-1)):
        np.testing.assert_array_equal(A.T * V[:, None], batched(A, y=V))
    np.testing.assert_array_equal(2.0 * V, gs.vmap(scaled, in_axes=None)(2.0, y=V))
    slopes = gs.grad(lambda x, y: np.sum(gs.vmap(scaled, in_axes=(1,))(x, y=y)))(A, V)
    np.testing.assert_array_equal(np.tile(V, (2, 1)), slopes)


def test_a_batch_with_a_name():
    np.testing.assert_array_equal(2.0 * V, gs.vmap(lambda x: 2.0 * x, 0, 0, "i", 3)(V))


def test_ints_among_what_is_differentiated():
    def loss(p, n):
        return np.sum(p["w"]) * p["step"] * n, p["step"]

    p = {"w": V, "step": 3}
    (value, step), (slope, of_n) = gs.value_and_grad(loss, argnums=(0, 1), has_aux=True, allow_int=True)(p, 5)
    assert (22.5, 3) == (value, step)
    np.testing.assert_array_equal([15.0] * 3, slope["w"])
    float0 = jax.dtypes.float0
    assert [float0, float0] == [slope["step"].dtype, of_n.dtype]
    places = gs.grad(lambda n: np.sum(V[n]), allow_int=True)(np.array([1, 2]))
    assert (float0, (2,)) == (places.dtype, places.shape)
    rows = gs.jacrev(lambda p: {"a": p["w"] * p["i"]}, allow_int=True)({"w": V, "i": np.array([1, 2, 3])})
    np.testing.assert_array_equal(np.diag([1.0, 2.0, 3.0]), rows["a"]["w"])
    assert (float0, (3, 3)) == (rows["a"]["i"].dtype, rows["a"]["i"].shape)
    inside = gs.jit(lambda p: gs.grad(lambda p: loss(p, 2)[0], allow_int=True)(p))(p)
    assert not inside["step"]
    with pytest.raises(TypeError, match="int"):
        gs.grad(lambda p: loss(p, 5)[0])(p)


@pytest.mark.parametrize("policy", ["everything_saveable", "nothing_saveable", "dots_saveable"])
def test_policies_of_checkpoint(policy):
    given = {"policy": getattr(gs.checkpoint_policies, policy), "prevent_cse": False, "static_argnums": (1,)}

    def wave(x, n):
        return np.sum(np.sin(np.sin(x)) + np.zeros(n))

    outside = gs.grad(functools.partial(gs.remat, **given)(wave))(V, 3)
    inside = gs.grad(lambda x: gs.checkpoint(wave, **given)(x, 3))(V)
    for slope in (outside, inside):
        np.testing.assert_allclose(slope, np.cos(np.sin(V)) * np.cos(V), rtol=1e-14)


def test_a_policy_that_is_none():
    with pytest.raises(TypeError, match="policy"):
        gs.checkpoint(np.sin, policy="dots")


def test_donated_arguments_stay():
    x = V.copy()
    made = functools.partial(gs.jit, donate_argnums=0, donate_argnames="x", keep_unused=True, inline=True)
    np.testing.assert_array_equal(2.0 * V, made(lambda x, y: 2.0 * x)(x, 1.0))
    np.testing.assert_array_equal(V, x)


def test_axes_in_a_dict_share_a_compilation():
    def scaled(p, x):
        return p["a"] * x

    assert gs.vmap(scaled, in_axes=({"a": 0}, None)) is gs.vmap(scaled, in_axes=({"a": 0}, None))
    assert gs.vmap(scaled, in_axes=({"a": 0}, None)) is not gs.vmap(scaled, in_axes=({"a": 1}, None))
