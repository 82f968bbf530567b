"""`Array`: what it does as NumPy's array does, and what it does more."""

import copy
import pickle

import numba
import numpy as np
import pytest

import gradsmith
from gradsmith import Array, device_get, device_put, grad, jit, vmap
from gradsmith.array import as_array


@pytest.fixture
def x():
    return as_array(np.arange(6.0).reshape(2, 3))


def test_results_are_arrays_of_rank_zero_too(x):
    results = [x + 1, 2 * x, x.T, x[0], x[0, 0], x.sum(), x.mean(), x.std(), x.max(), x.argmax(), x.trace(), x @ x.T,
               x[0] @ x[0], x[0].dot(x[0]), x > 1, x[0, 0] + x[0, 1], -x[0, 0], np.exp(x), np.exp(x[0, 0]),
               np.float64(2) * x, np.where(x > 1, x, 0), np.sum(x), np.linalg.norm(x), np.concatenate([x, x]),
               x.reshape(3, 2), x.astype(np.float32), x.copy(), x.round(1), x.take([0, 1]), x.all(), next(iter(x[0]))]
    for result in results:
        assert type(result) is Array
        assert result.block_until_ready() is result
    assert all(type(part) is Array for part in np.split(x, 3, axis=1))
    assert all(type(part) is Array for part in np.linalg.eigh(x @ x.T))


def test_asarray_gives_numpys_own(x):
    assert type(np.asarray(x)) is np.ndarray
    assert np.shares_memory(np.asarray(x), x)


def test_numbers(x):
    total = x.sum()
    assert 15.0 == float(total)
    assert 15 == int(total)
    assert "15.000" == f"{total:.3f}"
    assert total > 3
    assert bool(total)
    assert 15 == round(total)
    assert [10, 20, 30][as_array(np.array(1))] == 20
    assert list(range(as_array(np.array(3)))) == [0, 1, 2]


def test_a_number_is_never_changed_for_others(x):
    total = x.sum()
    kept = total
    total += 1
    assert (15.0, 16.0) == (float(kept), float(total))
    for name in ("sub", "mul", "truediv", "pow"):
        other = getattr(kept, f"__i{name}__")(2.0)
        assert other is NotImplemented
    assert 15.0 == float(kept)


def test_arrays_are_written_in_place_as_numpys_are(x):
    same = x
    x += 1
    same[0, 0] = 9.0
    assert 9.0 == float(x[0, 0])


@pytest.mark.parametrize(("value", "text"), [
    (np.arange(3.0), "Array([0., 1., 2.], dtype=float64)"),
    (np.float32(1.5), "Array(1.5, dtype=float32)"),
    (np.array([True]), "Array([ True], dtype=bool)"),
    (np.zeros((2, 2), np.int32), "Array([[0, 0],\n       [0, 0]], dtype=int32)"),
    (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float64)"),
])
def test_repr(value, text):
    assert text == repr(as_array(value))


def test_pickle_and_copy(x):
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(other) is Array
        np.testing.assert_array_equal(other, x)


def test_it_has_no_hash_as_arrays_have_none(x):
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


# --- .at ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [lambda f: f, jit])
def test_at_gives_changed_copies(how):
    v = as_array(np.arange(4.0))
    twice = np.array([0, 0])
    assert [9, 1, 2, 3] == how(lambda v: v.at[0].set(9.0))(v).tolist()
    assert [0, 1, 7, 7] == how(lambda v: v.at[2:].set(7.0))(v).tolist()
    assert [2, 1, 2, 3] == how(lambda v: v.at[twice].add(1.0))(v).tolist()
    assert [-2, 1, 2, 3] == how(lambda v: v.at[twice].subtract(1.0))(v).tolist()
    assert [2, 3] == how(lambda v: v.at[2:].get())(v).tolist()
    assert [0, 1, 2, 3] == v.tolist()


def test_at_accumulates_every_way():
    v = as_array(np.arange(4.0))
    twice = np.array([3, 3])
    assert [0, 1, 2, 12] == v.at[twice].multiply(2.0).tolist()
    assert [0, 1, 2, 0.75] == v.at[twice].divide(2.0).tolist()
    assert [0, 1, 2, 9] == v.at[3].power(2).tolist()
    assert [0, 1, 2, 2] == v.at[twice].min([2.0, 5.0]).tolist()
    assert [0, 1, 2, 5] == v.at[twice].max([2.0, 5.0]).tolist()
    assert [0, 1, 4, 9] == v.at[2:].apply(lambda part: part * part).tolist()
    assert type(v.at[0].set(1.0)) is Array


def test_at_keeps_the_dtype_or_says_why_not():
    assert np.dtype(np.float32) == as_array(np.ones(2, np.float32)).at[0].set(np.float64(2)).dtype
    with pytest.raises(TypeError, match="do not fit"):
        as_array(np.ones(2)).at[0].set(1j)
    with pytest.raises(TypeError, match="do not fit"):
        as_array(np.ones(2, int)).at[0].add(0.5)
    with pytest.raises(IndexError):
        as_array(np.ones(2)).at[5].set(1.0)
    with pytest.raises(ValueError, match="mode='wrap' is none of"):
        as_array(np.ones(2)).at[5].set(1.0, mode="wrap")


def out_of_bounds(v, a, i, k):
    """Every mode, in each kind of update and of index."""
    found = [v.at[i].get(mode="fill", fill_value=7.0), v.at[i].get(mode="drop"), a.at[k].get(mode="clip"),
             a.at[:, k].get(mode="fill"), a.at[None, k, 1:].get(mode="clip"), a.at[..., k].get(mode="clip")]
    for mode in ("clip", "drop", "fill"):
        place = v.at[i]
        found += [place.set(v[0] * 9, mode=mode), place.add(2.0, mode=mode), place.multiply(v[1], mode=mode),
                  place.divide(2.0, mode=mode), place.power(2, mode=mode), place.min(2.5, mode=mode),
                  place.max(2.5, mode=mode), place.subtract(1.0, mode=mode),
                  a.at[1, i].add(3.0, mode=mode), a.at[i, i].set(9.0, mode=mode), a.at[:, k].set(0.0, mode=mode),
                  a.at[k].add(v[:3], mode=mode, indices_are_sorted=True, unique_indices=True)]
    return [*found, place.apply(lambda u: u * 2 + 1, mode="drop"), v.at[np.array([0, 0, 2])].apply(lambda u: u * 2 + 1)]


def test_modes_of_at_for_places_outside():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        args = np.arange(4.0) + 1, np.arange(6.0).reshape(2, 3) + 1, np.array([5, -1, -7, 0]), 7
        wanted = out_of_bounds(*map(jax.numpy.asarray, args[:3]), args[3])
        for found in (out_of_bounds(as_array(args[0]), as_array(args[1]), *args[2:]), jit(out_of_bounds)(*args)):
            for a, b in zip(wanted, found, strict=True):
                np.testing.assert_allclose(b, np.asarray(a), rtol=1e-15)
        ints = as_array(np.arange(3, dtype=np.uint8)), as_array(np.arange(3)), as_array(np.arange(3) > 1)
        assert [255, np.iinfo(np.int64).min, True] == [x.at[5].get(mode="fill") for x in ints]


def test_derivatives_and_batches_of_places_outside():
    v, i = np.array([1.0, 2.0, 3.0]), np.array([5, 0, 1, 1])
    slope = grad(lambda v: (v.at[i].add(v[0] * 2, mode="drop") ** 2).sum() + (
        v.at[i].get(mode="fill", fill_value=0.0) ** 3).sum())
    np.testing.assert_allclose([69.0, 36.0, 6.0], slope(v))
    sums = vmap(lambda v, i: v.at[i].set(v[0] * 3, mode="drop").sum(), in_axes=(None, 0))(v, np.array([0, 5, 2, -9]))
    np.testing.assert_allclose([8.0, 6.0, 6.0, 6.0], sums)


def test_derivative_of_at():
    v = np.arange(1.0, 4.0)
    np.testing.assert_array_equal(grad(lambda v: np.sum(v.at[0].set(5.0) ** 2))(as_array(v)), [0, 4, 6])


# --- compiled functions -----------------------------------------------------------------------------------------


def square_sum(x):
    return np.sum(x * x)


def test_arrays_in_give_arrays_out_and_ndarrays_ndarrays():
    g = grad(square_sum)
    plain, own = np.arange(3.0), as_array(np.arange(3.0))
    for _ in range(2):           # the slow path, then the fast one
        assert type(g(plain)) is np.ndarray
        assert type(g(own)) is Array
        assert type(jit(square_sum)(plain)) is np.float64
        assert type(jit(square_sum)(own)) is Array
    np.testing.assert_array_equal(g(own), 2 * plain)


def test_both_share_a_specialisation():
    g = jit(lambda x: x * 2.0)
    g(np.arange(3.0))
    g(as_array(np.arange(3.0)))
    assert 1 == len(g._specialisations)


def test_arrays_in_trees_and_by_keyword():
    f = jit(lambda p, scale: {"a": p["a"] * scale, "n": 3, "x": float(2)})
    for _ in range(2):
        found = f({"a": as_array(np.arange(3.0))}, 2.0)
        assert [Array, int, float] == [type(v) for v in found.values()]
        assert [np.ndarray, int, float] == [type(v) for v in f({"a": np.arange(3.0)}, 2.0).values()]
        assert type(f(p={"a": as_array(np.arange(3.0))}, scale=2.0)["a"]) is Array


def test_scalars_of_narrow_dtypes():
    f = jit(lambda x, y: x * y)
    for _ in range(2):
        found = f(as_array(np.float32(2)), np.arange(3, dtype=np.float32))
        assert type(found) is Array
        assert np.dtype(np.float32) == found.dtype


weights = as_array(np.array([1.0, 2.0, 3.0]))
offset = as_array(np.float64(0.5))


def test_captured_arrays_are_read_at_every_call(monkeypatch):
    f = jit(lambda x: x * weights + offset)
    for _ in range(2):
        found = f(np.ones(3))
        assert type(found) is Array
        np.testing.assert_array_equal(found, [1.5, 2.5, 3.5])
    monkeypatch.setitem(globals(), "weights", np.ones(3))
    monkeypatch.setitem(globals(), "offset", np.float64(1.0))
    np.testing.assert_array_equal(f(np.ones(3)), [2, 2, 2])


def test_every_transform_takes_them():
    own = as_array(np.arange(3.0))
    value, pull = gradsmith.vjp(square_sum, own)
    assert (Array, Array) == (type(value), type(pull(1.0)[0]))
    assert [Array, Array] == [type(v) for v in gradsmith.jvp(square_sum, (own,), (own,))]
    assert type(vmap(square_sum)(as_array(np.ones((2, 3))))) is Array
    assert type(gradsmith.hessian(square_sum)(own)) is Array


def test_strided_and_read_only_arrays():
    base = as_array(np.arange(12.0).reshape(3, 4))
    frozen = as_array(np.arange(3.0))
    frozen.flags.writeable = False
    f = jit(lambda x: x + 1.0)
    for view in (base.T, base[:, ::2], base[::-1], frozen):
        for _ in range(2):
            np.testing.assert_array_equal(f(view), np.asarray(view) + 1)


def test_peoples_own_numba_functions_take_them():
    @numba.njit
    def total(x):
        s = 0.0
        for k in range(x.shape[0]):
            s += x[k]
        return s, x + 1

    s, y = total(as_array(np.arange(3.0)))
    assert 3.0 == s
    np.testing.assert_array_equal(y, [1, 2, 3])


# --- devices --------------------------------------------------------------------------------------------------------


def test_device_put_copies():
    source = np.arange(3.0)
    put = device_put(source)
    source[0] = 9
    assert type(put) is Array
    assert [0, 1, 2] == put.tolist()
    assert put.devices() == {put.device} == set(gradsmith.devices())
    assert "cpu" == put.device == put.device.platform
    tree = device_put({"a": source, "b": (1.0, None)})
    assert [Array, Array] == [type(tree["a"]), type(tree["b"][0])]
    assert type(device_get(tree)["a"]) is np.ndarray
    assert gradsmith.block_until_ready(tree) is tree


def test_other_devices_are_refused():
    with pytest.raises(ValueError, match="no device 'gpu'"):
        device_put(np.ones(3), "gpu")
    with pytest.raises(ValueError, match="no device 'rocm'"):
        gradsmith.devices("rocm")
    with pytest.raises(ValueError, match="cannot move arrays to 'xla:0'"):
        jit(lambda x: device_put(x, "xla"))(np.ones(3))
    with pytest.raises(ValueError, match="no device 'gpu'"):
        jit(lambda x: device_put(x, "gpu"))(np.ones(3))
    np.testing.assert_array_equal(jit(lambda x: device_put(x) * 2)(np.ones(3)), [2, 2, 2])


def test_linear_parts_give_arrays_where_the_primals_were_some(x):
    for own in (x, np.asarray(x)):
        value, pull = gradsmith.vjp(lambda x: 2.0 * x, own)                 # linear: nothing is kept of x
        assert type(own) is type(value) is type(pull(np.ones((2, 3)))[0])
        value, push = gradsmith.linearize(lambda x: 2.0 * x, own)
        assert type(own) is type(value) is type(push(np.ones((2, 3))))
