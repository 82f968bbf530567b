"""`jit` changes the caller's arrays as NumPy does; derivatives and batches never do."""

import dataclasses

import numpy as np
import pytest

import gradsmith
from gradsmith import jit


def layouts():
    """One matrix in every kind of memory."""
    base = np.arange(20.0).reshape(4, 5)
    wide = np.zeros((8, 10))
    wide[::2, ::2] = base
    raw = np.zeros(base.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(4, 5)
    unaligned[...] = base
    return {"C": base.copy(), "F": np.asfortranarray(base), "strided": wide[::2, ::2], "turned": base[::-1, ::-1].copy()[
        ::-1, ::-1], "transposed": base.T.copy().T, "unaligned": unaligned}


def step(a):
    a[0] *= 2.0
    a[1:, 1] += a[:-1, 0]
    for i in range(1, a.shape[0]):
        a[i, -1] = a[i - 1, -1] + a[i, 0]
    return a.sum()


@pytest.mark.parametrize("kind", list(layouts()))
def test_writes_reach_the_caller_in_every_layout(kind):
    expected, actual = layouts()[kind], layouts()[kind]
    compiled = jit(step)
    for _ in range(2):
        assert step(expected) == compiled(actual)
        np.testing.assert_array_equal(expected, actual)


def shift(x, y):
    x[0] = 10.0
    y[1] = x[0] + y[1]
    return y.sum()


def test_the_same_array_twice_is_one_array():
    compiled = jit(shift)
    for make in (lambda: (np.arange(4.0), np.arange(4.0)), lambda: (np.arange(4.0),) * 2):
        expected, actual = make(), make()
        for _ in range(2):
            assert shift(*expected) == compiled(*actual)
            np.testing.assert_array_equal(expected, actual)


def test_interleaved_views_share_nothing():
    expected, actual = np.arange(8.0), np.arange(8.0)
    assert shift(expected[::2], expected[1::2]) == jit(shift)(actual[::2], actual[1::2])
    np.testing.assert_array_equal(expected, actual)


@pytest.mark.parametrize("make", [
    lambda: (lambda x: (x[:4], x[2:]))(np.arange(6.0)), lambda: (lambda x: (x, x[::-1]))(np.arange(4.0)),
    lambda: (np.lib.stride_tricks.as_strided(np.zeros(4), (4,), (0,)), np.arange(4.0)),
], ids=["overlap", "turned", "broadcast"])
def test_other_sharing_is_refused(make):
    compiled = jit(shift)
    compiled(np.zeros(4), np.zeros(4))
    args = make()
    before = [a.copy() for a in args]
    with pytest.raises(ValueError, match="shares? memory"):
        compiled(*args)
    np.testing.assert_array_equal(before, args)


def test_sharing_between_what_is_only_read_is_fine():
    def add(out, a, b):
        out[:] = a + b

    x, out = np.arange(4.0), np.zeros(3)
    jit(add)(out, x[1:], x[:-1])
    np.testing.assert_array_equal([1.0, 3.0, 5.0], out)


def test_read_only_arrays_are_numpys_error():
    x = np.arange(4.0)
    x.flags.writeable = False
    compiled = jit(shift)
    compiled(np.zeros(4), np.zeros(4))
    for args in ((x, np.zeros(4)), (np.zeros(4), x)):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            compiled(*args)

    def guarded(x):
        if x[0] > 0.0:
            x[0] = 1.0
        return x[0]

    assert jit(guarded)(x) == 0.0


def stops(x, k):
    x[0] = 7.0
    if k > 2:
        raise TypeError("bad")
    x[1] = x[0] * 2.0
    for i in range(len(x)):
        if x[i] < 0.0:
            raise ValueError("negative")
        x[i] += 1.0
    x *= 2.0
    x[int(x[2])] = 3.0
    return x[0]


@pytest.mark.parametrize("k, third", [(1, 1.0), (3, 1.0), (1, -1.0), (1, 50.0)])
def test_an_exception_leaves_what_was_written_before_it(k, third):
    compiled = jit(stops)
    for _ in range(2):
        expected, actual = (np.array([0.0, 0.0, third, 0.0]) for _ in range(2))
        outcomes = []
        for fun, x in ((stops, expected), (compiled, actual)):
            try:
                outcomes.append(fun(x, k))
            except (TypeError, ValueError, IndexError) as problem:
                outcomes.append(type(problem).__mro__[0])
        assert outcomes[0] == outcomes[1]
        np.testing.assert_array_equal(expected, actual)


@dataclasses.dataclass
class State:
    position: np.ndarray
    history: list


def test_arrays_inside_of_containers():
    def advance(state, table, pair):
        state.position += table["speed"]
        state.history[0][1] = state.position[0]
        row = pair[1][0]
        row[:] = 5.0
        return state.position[0]

    def make():
        return State(np.ones(2), [np.zeros(3), np.zeros(2)]), {"speed": np.array([1.0, 2.0])}, (1.0, np.zeros((2, 2)))

    expected, actual = make(), make()
    compiled = jit(advance)
    for _ in range(2):
        assert advance(*expected) == compiled(*actual)
        np.testing.assert_array_equal(expected[0].position, actual[0].position)
        np.testing.assert_array_equal(expected[0].history[0], actual[0].history[0])
        np.testing.assert_array_equal(expected[2][1], actual[2][1])


def test_through_called_functions_compiled_or_not():
    @jit
    def inner(row, by):
        row *= by

    def helper(a, k):
        inner(a[k], 2.0)
        a[:, k] += 1.0

    def outer(a):
        for k in range(3):
            helper(a, k)

    expected, actual = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3)
    for k in range(3):
        expected[k] *= 2.0
        expected[:, k] += 1.0
    assert jit(outer)(actual) is None
    np.testing.assert_array_equal(expected, actual)


TABLE = np.zeros(3)


def test_captured_arrays(monkeypatch):
    def count(k):
        TABLE[k] += 1.0
        return TABLE.sum()

    compiled = jit(count)
    monkeypatch.setitem(globals(), "TABLE", np.zeros(3))
    assert [1.0, 2.0, 3.0] == [compiled(0), compiled(0), compiled(2)]
    np.testing.assert_array_equal([2.0, 0.0, 1.0], TABLE)
    monkeypatch.setitem(globals(), "TABLE", np.ones(3))
    assert compiled(1) == 4.0
    np.testing.assert_array_equal([1.0, 2.0, 1.0], TABLE)
    monkeypatch.setitem(globals(), "TABLE", np.broadcast_to(0.0, (3,)))
    with pytest.raises(ValueError, match="read-only"):
        compiled(0)


OTHER = TABLE


def test_one_array_under_two_names(monkeypatch):
    def both(x):
        TABLE[0] = x
        return OTHER[0] + TABLE[1]

    compiled = jit(both)
    table = np.zeros(3)
    monkeypatch.setitem(globals(), "TABLE", table)
    monkeypatch.setitem(globals(), "OTHER", table)
    assert compiled(5.0) == 5.0
    monkeypatch.setitem(globals(), "OTHER", np.ones(3))
    assert compiled(6.0) == 1.0
    assert table[0] == 6.0


def test_a_captured_array_that_is_an_argument_too(monkeypatch):
    def both(x):
        x[0] = TABLE[0] + 1.0
        return TABLE[0]

    compiled = jit(both)
    assert compiled(np.zeros(3)) == 0.0
    with pytest.raises(ValueError, match="shares memory with TABLE"):
        compiled(TABLE)


def test_swapped_and_overwritten_whole():
    def swap(x, y, z):
        x[:], y[:] = y * 1.0, x * 1.0
        z[...] = 0.0
        kept = z.copy()
        z[1:] = z[:-1] + x[1:]
        return kept

    expected, actual = [[np.arange(3.0), np.ones(3), np.full(3, 4.0)] for _ in range(2)]
    np.testing.assert_array_equal(swap(*expected), jit(swap)(*actual))
    np.testing.assert_array_equal(expected, actual)


def test_a_name_that_may_mean_the_callers_array_is_not_written_to():
    def maybe(x, c):
        if c:
            x = x * 2.0
        x[0] = 1.0
        return x

    with pytest.raises(ValueError, match="decided at run time"):
        jit(maybe)(np.ones(3), True)


def test_results_are_no_views_of_arguments():
    def same(x):
        x[0] = 1.0
        return x, x[1:]

    x = np.zeros(3)
    whole, part = jit(same)(x)
    x[:] = 9.0
    np.testing.assert_array_equal([1.0, 0.0, 0.0], whole)
    np.testing.assert_array_equal([0.0, 0.0], part)


def energy(x, y):
    x[1:] *= y[:-1]
    x[0] = y[0] * x[1]
    return np.sum(x * x) + x[0] * y[1]


def test_derivatives_and_batches_change_nothing():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
    before = x.copy(), y.copy()
    gradsmith.grad(energy, (0, 1))(x, y)
    gradsmith.value_and_grad(energy)(x, y)
    _, pullback = gradsmith.vjp(energy, x, y)
    pullback(1.0)
    gradsmith.jvp(energy, (x, y), (x, y))
    _, pushforward = gradsmith.linearize(energy, x, y)
    pushforward(x, y)
    gradsmith.hessian(energy)(x, y)
    gradsmith.hvp(energy, (x, y), (x, y))
    gradsmith.vmap(energy)(np.stack([x, x]), np.stack([y, y]))
    jit(lambda a, b: gradsmith.grad(energy)(a, b) + a)(x, y)
    np.testing.assert_array_equal(before, (x, y))


def test_derivatives_know_two_variables_where_one_array_is_passed_twice():
    x = np.array([1.0, 2.0, 3.0])
    once = gradsmith.grad(energy, (0, 1))(x.copy(), x.copy())
    np.testing.assert_array_equal(once, gradsmith.grad(energy, (0, 1))(x, x))


def test_arrays_of_rank_0_are_not_written_to():
    def bump(x):
        x += 1.0
        return x

    with pytest.raises(NotImplementedError, match="rank 0"):
        jit(bump)(np.array(1.0))
    assert jit(bump)(1.0) == 2.0
    assert jit(bump)(np.float64(1.0)) == 2.0


def test_jaxs_arrays_are_changed_too():
    x = gradsmith.numpy.zeros(3)
    jit(lambda a: np.copyto(a, 2.0))(x)
    np.testing.assert_array_equal([2.0, 2.0, 2.0], np.asarray(x))


def test_from_peoples_own_compiled_code():
    import numba

    def add(x, y):
        x[0] = 10.0
        for i in range(len(y)):
            y[i] += x[0]

    compiled = jit(add)

    @numba.njit
    def user(x, y):
        compiled(x, y)
        return y[0]

    x, y = np.zeros(3), np.ones(3)
    assert user(x, y) == 11.0
    np.testing.assert_array_equal([10.0, 0.0, 0.0], x)
    for other in (x, x[1:], x[::-1]):
        with pytest.raises(ValueError, match="share memory"):
            user(x, other)
