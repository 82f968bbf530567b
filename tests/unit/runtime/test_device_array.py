"""Arrays of a device: what is known of them, how they read, writes to them, and their way to other libraries."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from unit.runtime.on_device import XLA, close, shift, shift_xla

import gradsmith as gs
from gradsmith import DeviceArray, device_put, grad, jit

pytest.importorskip("jax")
pytestmark = pytest.mark.xla


def test_what_is_known_of_an_array_without_waiting():
    a = device_put(np.ones((2, 3), np.float32), "xla:0")
    assert (a.shape, a.dtype, a.ndim, a.size, a.nbytes, len(a)) == ((2, 3), np.float32, 2, 6, 24, 2)
    assert a.device == XLA and a.devices() == {XLA} and a.device.platform == "xla" and a.device.id == 0
    assert gs.devices("xla")[0] == XLA and gs.devices() == ["cpu"]
    assert a.block_until_ready() is a and a.is_ready()


def test_an_array_reads_like_numpys():
    x = np.arange(6.0).reshape(2, 3)
    a = device_put(x, "xla:0")
    close(x + 1.0, a + 1.0)
    close(1.0 - x, 1.0 - a)
    close(x @ x.T, a @ a.T)
    close(np.concatenate([x, x]), np.concatenate([a, x]))
    close(x.sum(axis=0), a.sum(axis=0))
    close(x[1], a[1])
    close(x[:, [0, 2]], a[:, [0, 2]])
    assert [r.tolist() for r in a] == x.tolist() == a.tolist()
    assert (a == x).all() and 4.0 in a and not (a != x).any()
    assert float(a[1, 2]) == 5.0 and f"{a[0, 1]:.2f}" == "1.00" and f"{device_put(2.5, 'xla:0'):.1f}" == "2.5"
    assert str(a) == str(x) and repr(device_put(np.ones(2), "xla:0")) == (
        "DeviceArray([1., 1.], dtype=float64, device='xla:0')")
    close(x.astype("float32"), a.astype("float32"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
    with pytest.raises(AttributeError, match="no attribute 'bogus'"):
        a.bogus  # noqa: B018
    with pytest.raises(TypeError):
        len(device_put(1.0, "xla:0"))


def test_an_array_is_written_to_here():
    a = device_put(np.zeros(3), "xla:0")
    a[1] = 2.0
    a += 1.0
    close([1.0, 3.0, 1.0], a)
    close(5.0, jit(lambda x: x.sum(), target="xla")(a))
    a[0] = 7.0
    close([7.0, 3.0, 1.0], a)
    a.sort()
    close([1.0, 3.0, 7.0], a)
    number = device_put(1.0, "xla:0")
    alias = number
    number += 1.0
    assert (float(alias), float(number)) == (1.0, 2.0)
    with pytest.raises(ValueError, match="read-only"):
        a[:2][0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(a)[0] = 1.0


def test_copies_are_arrays_of_their_own():
    a = device_put(np.zeros(3), "xla:0")
    others = [a.copy(), copy.deepcopy(a), np.array(a), pickle.loads(pickle.dumps(a)), gs.device_get(a)]
    shift_xla(a, np.ones(3))
    a[0] = 9.0
    for other in others:
        close(np.zeros(3), other)
    assert isinstance(others[0], DeviceArray)
    assert type(others[3]) is gs.Array


def test_an_array_in_functions_of_this_machine():
    a = device_put(np.arange(4.0), "xla:0")
    found = jit(shift)(a, np.ones(4))
    assert isinstance(found, gs.Array)
    close([0.0, 2.0, 3.0, 4.0], a)
    close(2.0 * np.asarray(a), grad(lambda x: np.sum(x * x))(a))


def test_arrays_of_jax_go_in_and_come_out():
    import jax
    import jax.numpy as jnp
    x = jnp.arange(3.0, dtype=jnp.float32)
    y = jit(lambda x: x * 2, target="xla")(np.asarray(x))
    close(np.asarray(x * 2), jnp.asarray(y))
    close(np.float32(6.0), jax.jit(jnp.sum)(jnp.asarray(y)))
    a = device_put(x, "xla:0")
    shift_xla(a, a.copy())
    close(np.arange(3, dtype=np.float32), x)


def test_trees_are_waited_for():
    tree = {"a": device_put(1.0, "xla:0"), "b": [np.ones(2)]}
    assert gs.block_until_ready(tree) is tree
