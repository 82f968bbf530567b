"""`checkpoint` of functions and of loops: values, derivatives, memory, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import gradsmith as gs


def plain(w, x, n):
    for _ in range(n):
        x = np.tanh(w @ x) + x[0] * np.sin(x)
    return np.sum(x * x)


def of_function(w, x, n):
    step = gs.checkpoint(lambda x: np.tanh(w @ x) + x[0] * np.sin(x))
    for _ in range(n):
        x = step(x)
    return np.sum(x * x)


def of_loop(w, x, n):
    for _ in gs.checkpoint(range(n)):
        x = np.tanh(w @ x) + x[0] * np.sin(x)
    return np.sum(x * x)


def every_third(w, x, n):
    for _ in gs.checkpoint(range(n), every=3):
        x = np.tanh(w @ x) + x[0] * np.sin(x)
    return np.sum(x * x)


def three_states(w, x, n):
    for _ in gs.checkpoint(range(n), slots=3):
        x = np.tanh(w @ x) + x[0] * np.sin(x)
    return np.sum(x * x)


def one_state(w, x, n):
    for _ in gs.checkpoint(range(n), slots=1):
        x = np.tanh(w @ x) + x[0] * np.sin(x)
    return np.sum(x * x)


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 4)) * 0.3, rng.normal(size=4), rng.normal(size=(4, 4))


@pytest.fixture(autouse=True)
def in_python(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("function", [of_function, of_loop, every_third, three_states, one_state])
def test_derivatives_are_those_without(function, n, inputs):
    w, x, d = inputs
    assert plain(w, x, n) == function(w, x, n)
    np.testing.assert_allclose(gs.grad(function)(w, x, n), gs.grad(plain)(w, x, n), rtol=1e-12)
    wanted = gs.jvp(lambda w: gs.grad(plain)(w, x, n), (w,), (d,))[1]
    np.testing.assert_allclose(gs.jvp(lambda w: gs.grad(function)(w, x, n), (w,), (d,))[1], wanted, rtol=1e-10)
    again = gs.grad(lambda w: np.sum(gs.grad(function)(w, x, n) * d))(w)
    np.testing.assert_allclose(again, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [of_function, of_loop, three_states])
def test_batch(function, inputs):
    w, x, d = inputs
    both = np.stack([w, 0.5 * d])
    wanted = np.stack([gs.grad(plain)(each, x, 3) for each in both])
    np.testing.assert_allclose(gs.vmap(gs.grad(function), (0, None, None))(both, x, 3), wanted, rtol=1e-11)


def test_of_a_function_from_outside(inputs):
    w, x, _ = inputs
    block = gs.checkpoint(lambda w, x: np.tanh(w @ np.tanh(w @ x)))
    np.testing.assert_allclose(block(w, x), np.tanh(w @ np.tanh(w @ x)))
    wanted = gs.grad(lambda w: np.sum(np.tanh(w @ np.tanh(w @ x))))(w)
    np.testing.assert_allclose(gs.grad(lambda w: np.sum(block(w, x)))(w), wanted, rtol=1e-13)
    np.testing.assert_allclose(gs.grad(gs.checkpoint(lambda w: np.sum(np.tanh(w @ np.tanh(w @ x)))))(w), wanted,
                               rtol=1e-13)


def kept(u, n):
    for _ in range(n):
        u = np.sin(u) * u
    return np.sum(u)


def kept_at_times(u, n):
    for _ in gs.checkpoint(range(n)):
        u = np.sin(u) * u
    return np.sum(u)


def peak(function, *args):
    """Bytes that a call needs: the least of three, since others in the process may ask for memory meanwhile."""
    gradient = gs.grad(function)
    gradient(*args)
    found = []
    for _ in range(3):
        tracemalloc.start()
        gradient(*args)
        found.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return min(found)


def kept_in_slots(u, n):
    for _ in gs.checkpoint(range(n), slots=6):
        u = np.sin(u) * u
    return np.sum(u)


def written_in_slots(u, n):
    u = u.copy()
    total = 0.0
    for t in gs.checkpoint(range(n), slots=2):
        for i in range(1, len(u) - 1):
            u[i] = np.sin(u[i - 1] * u[i + 1]) + t * 0.1 * u[i] ** 2
        total += u[1] * u[2]
    return np.sum(u * u) + total


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 20])
def test_slots_with_arrays_written_in_place(n):
    u, d = np.linspace(0.2, 0.9, 5), np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    difference = (written_in_slots(u + 1e-6 * d, n) - written_in_slots(u - 1e-6 * d, n)) / 2e-6
    np.testing.assert_allclose(np.sum(gs.grad(written_in_slots)(u, n) * d), difference, rtol=1e-6)
    np.testing.assert_allclose(gs.jvp(lambda u: written_in_slots(u, n), (u,), (d,))[1],
                               np.sum(gs.grad(written_in_slots)(u, n) * d), rtol=1e-10)


def test_slots_bound_the_memory():
    u = np.linspace(0.1, 0.9, 400)
    assert peak(kept_in_slots, u, 144) < 25 * u.nbytes
    assert peak(kept_in_slots, u, 576) < 1.2 * peak(kept_in_slots, u, 144)


def test_memory_grows_with_the_root_of_the_trips():
    u = np.linspace(0.1, 0.9, 50)
    state = u.nbytes
    assert peak(kept, u, 144) > 140 * state
    assert peak(kept_at_times, u, 144) < 50 * state
    assert peak(kept_at_times, u, 576) < 2.5 * peak(kept_at_times, u, 144)


def too_much(u, n):
    for _ in gs.checkpoint(range(n), memory=1000):
        u = np.sin(u) * u
    return np.sum(u)


def test_a_budget_that_is_too_small_is_an_error_when_the_loop_runs():
    with pytest.raises(MemoryError, match="checkpoint: the loop needs more than 1000 bytes"):
        gs.grad(too_much)(np.linspace(0.1, 0.9, 50), 144)
    assert np.isfinite(gs.grad(too_much)(np.array([0.1, 0.2]), 9)).all()


def exchanged(u, n, steps):
    """Of the second array, a step reads what it has just written, and the borders."""
    u = u.copy()
    v = np.cos(u)
    for _ in steps(n):
        for i in range(1, len(u) - 1):
            v[i] = u[i] - 0.2 * u[i] * (u[i + 1] - u[i - 1])
        u, v = v, u
    return np.sum(u * u) + v[0] * v[-1]


def whole(u, n):
    return exchanged(u, n, range)


def in_a_budget(u, n):
    return exchanged(u, n, lambda n: gs.checkpoint(range(n), memory=17_000))


def on_a_grid(u, n, steps):
    v = np.zeros_like(u)
    for _ in steps(n):
        for i in range(1, len(u) - 1):
            for j in range(1, len(u) - 1):
                v[i, j] = u[i, j] - 0.2 * u[i, j] * (u[i + 1, j] - u[i, j - 1])
        u, v = v, u
    return np.sum(u * u)


@pytest.mark.parametrize("n", [1, 100])
def test_only_the_borders_of_what_a_step_writes_over_are_kept(n):
    """Twice the root of 100 times the array, which has 100 numbers, is 16000 bytes."""
    u = np.linspace(0.1, 0.9, 100)
    np.testing.assert_allclose(gs.grad(in_a_budget)(u, n), gs.grad(whole)(u, n), rtol=1e-12)


def test_borders_on_two_axes():
    u = np.linspace(0.1, 0.9, 25).reshape(5, 5)
    want = gs.grad(lambda u: on_a_grid(u, 7, range))(u)
    found = gs.grad(lambda u: on_a_grid(u, 7, lambda n: gs.checkpoint(range(n), every=3)))(u)
    np.testing.assert_allclose(found, want, rtol=1e-12)


def left_early(u, n):
    for _ in gs.checkpoint(range(n)):
        u = np.sin(u) * u
        if u[0] < 0.1:
            break
    return np.sum(u)


def test_errors():
    with pytest.raises(ValueError, match="every is 0"):
        gs.checkpoint(range(3), every=0)
    with pytest.raises(TypeError, match="memory is a number, not str"):
        gs.checkpoint(range(3), memory="1 MB")
    with pytest.raises(ValueError, match="`slots` goes without"):
        gs.checkpoint(range(3), every=2, slots=2)
    with pytest.raises(ValueError, match="a function has no iterations"):
        gs.checkpoint(np.sin, every=2)
    with pytest.raises(NotImplementedError, match="cannot be left by `break`"):
        gs.grad(left_early)(np.array([0.5]), 4)


def test_in_python_it_is_what_it_is_given():
    assert [0, 1, 2] == list(gs.checkpoint(range(3), every=2))


def with_scratch(u, n):
    """A state of which each step needs more than one array."""
    for t in gs.checkpoint(range(n), every=5):
        v = u.copy()
        for i in range(1, len(u)):
            v[i] = u[i] * np.sin(u[i - 1]) + 0.1 * t * u[i] ** 2
        u = v
    return np.sum(u)


@pytest.mark.parametrize("n", [0, 4, 12])
def test_segments_share_one_tape(n):
    """Its size is that of a whole segment, also for the last, which may be shorter, and where there is but a part of
    one."""
    u = np.linspace(0.1, 0.9, 4)
    gradient = gs.grad(with_scratch)
    assert "\n    u_2_tape_1 = " in gradient.source(u, n)
    slope = [with_scratch(u + 1e-20j * e, n).imag / 1e-20 for e in np.eye(4)]
    np.testing.assert_allclose(gradient(u, n), slope, rtol=1e-12)
    if n == 12:
        h = 1e-6
        bend = [(gradient(u + h * e, n) - gradient(u - h * e, n)) / (2 * h) for e in np.eye(4)]
        np.testing.assert_allclose(gs.jacrev(gradient)(u, n), bend, rtol=1e-6, atol=1e-6)


def burgers(u, n):
    u = u.copy()
    for _ in gs.checkpoint(range(n), every=5):
        u[1:-1] = u[1:-1] - 0.1 * u[1:-1] * (u[2:] - u[:-2]) + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u * u)


def test_a_segment_saves_its_states_alone():
    """Long tapes are in no cache: what a step computes is computed again, rather than saved besides its state."""
    u = np.linspace(0.1, 0.9, 7)
    lines = [line.strip() for line in gs.grad(burgers).source(u, 12).splitlines()]
    assert 2 == sum("tape" in line and "= empty((" in line for line in lines)      # of states, and in a segment
    slope = [burgers(u + 1e-20j * e, 12).imag / 1e-20 for e in np.eye(7)]
    np.testing.assert_allclose(gs.grad(burgers)(u, 12), slope, rtol=1e-12)


def eliminated(a, every):
    """Loops inside of a checkpointed one that overwrite parts of a matrix, element by element."""
    a = a.copy()
    n = a.shape[0]
    r = np.zeros((n, n))
    for k in gs.checkpoint(range(n), every=every) if every else range(n):
        for j in range(k + 1, n):
            for i in range(n):
                r[k, j] += a[i, k] * a[i, j]
            for i in range(n):
                if a[i, j] > 0.0:
                    a[i, j] -= a[i, k] * np.tanh(r[k, j])
                else:
                    a[i, j] *= np.sin(r[k, j]) + 0.5
    return np.sum(r * a)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("every", [1, 2, 3, 20])
def test_loops_in_a_segment(n, every):
    a = np.random.default_rng(n).normal(size=(n, n))
    np.testing.assert_allclose(gs.grad(eliminated)(a, every), gs.grad(eliminated)(a, 0), rtol=1e-12, atol=1e-14)


def test_loops_in_a_segment_run_once_more_with_it():
    source = gs.grad(eliminated).source(np.ones((4, 4)), 2)
    allocated = [line for line in source.splitlines() if "_tape" in line and "= empty(" in line]
    assert not any(line.startswith(" " * 8) for line in allocated)      # none for a loop inside of a trip


def swapped(u, n):
    u, v = u.copy(), u.copy()
    for _ in gs.checkpoint(range(n), memory=200_000):
        for i in range(1, len(u) - 1):
            v[i] = u[i] - 0.01 * u[i] * (u[i + 1] - u[i - 1])
        u, v = v, u
    return np.sum(u * u)


def test_one_array_of_each_step_is_kept_where_two_are_exchanged():
    u = 0.1 * np.random.default_rng(0).normal(size=1000)
    assert peak(swapped, u, 100) < 200_000 + 16 * u.nbytes
    lines = [line for line in gs.grad(swapped).source(u, 100).splitlines() if "tape" in line and "= empty((" in line]
    assert len(lines) == 4                          # u and v's ends between segments, u in one


def test_a_step_reads_its_array_from_the_tape():
    lines = gs.grad(burgers).source(np.ones(9), 5).splitlines()
    assert 2 == sum(line.startswith(" " * 12) and ".copy()" in line for line in lines)      # forwards, and the adjoint


def of_run_time_sizes(x, sizes, n, again):
    total = 0.0
    for i in range(n):
        m = sizes[i]
        z = np.zeros(m)
        z[:] = x[:m]
        for _ in gs.checkpoint(range(3), every=2) if again else range(3):
            z[0] = np.sin(z[0]) * z[m - 1]
            for j in range(m):
                z[j] = np.cos(z[j]) * x[j] + z[0]
        total = total + np.sum(z * z)
    return total


@pytest.mark.parametrize("again", [False, True])
def test_an_inner_loop_on_an_array_whose_size_each_trip_finds_runs_again(again):
    x, sizes = np.array([0.5, 0.3, 0.9, 0.05]), np.array([2, 4, 1, 3])
    gradient = gs.grad(of_run_time_sizes, argnums=0)
    for n in (0, 1, 4):
        slope = [
            (of_run_time_sizes(x + 1e-6 * e, sizes, n, False) - of_run_time_sizes(x - 1e-6 * e, sizes, n, False)) / 2e-6
            for e in np.eye(4)]
        np.testing.assert_allclose(gradient(x, sizes, n, again), slope, rtol=1e-6, atol=1e-8)
