"""First calls from many threads at once."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import parallel
from gradsmith.kernels.guard import Miss

PATIENCE = 120          # seconds until a test is taken for deadlocked


def run_together(*jobs):
    """The results of the jobs, each in a thread of its own, all started at one time."""
    barrier = threading.Barrier(len(jobs))
    results = [None] * len(jobs)

    def work(k, job):
        barrier.wait()
        try:
            results[k] = job()
        except BaseException as problem:
            results[k] = problem

    threads = [threading.Thread(target=work, args=(k, job), daemon=True) for k, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        assert not thread.is_alive(), "deadlock"
    return results


def test_the_first_call_from_16_threads():
    made = gs.grad(lambda x: np.sum(np.tanh(x) * x))
    x = np.linspace(0, 1, 5)
    expected = x / np.cosh(x) ** 2 + np.tanh(x)
    for got in run_together(*[lambda: made(x)] * 16):
        np.testing.assert_allclose(expected, got)
    assert 1 == len(made._specialisations)


def test_different_signatures_at_once():
    made = gs.jit(lambda x, y: x * y + 1)
    arguments = [(np.ones(3), 2.0), (np.ones(3, np.float32), 2.0), (np.ones((2, 3)), 2.0), (1.5, 2.0), (np.ones(1), 3),
                 (np.ones((3, 2)).T, np.float32(2)), (2, 3), (np.ones(0), 1.0)] * 2
    results = run_together(*[lambda a=a: made(*a) for a in arguments])
    for (x, y), got in zip(arguments, results, strict=True):
        expected = x * y + 1
        np.testing.assert_array_equal(expected, got)
        assert np.asarray(expected).dtype == np.asarray(got).dtype and np.shape(expected) == np.shape(got)


def test_functions_that_share_their_parts():
    inner = gs.jit(lambda x: np.sin(x) * x)
    outer = [gs.grad(inner), gs.value_and_grad(inner), gs.jit(lambda x: inner(x) + 1), gs.grad(gs.grad(inner))]
    results = run_together(*[lambda f=f: f(0.5) for f in outer * 3])
    for got, again in zip(results[:4], results[4:8]):
        assert got == again and not isinstance(got, BaseException), got


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_fork_while_something_is_compiled():
    made, other = gs.grad(lambda x: np.sum(np.tanh(x) * np.cos(x) * np.sin(x))), gs.jit(lambda x: x * 3.5 + 1)
    thread = threading.Thread(target=lambda: made(np.ones((3, 2))))
    thread.start()
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        os._exit(0 if other(2.0) == 8.0 and made(np.ones((3, 2))).shape == (3, 2) else 1)
    thread.join()
    deadline = time.monotonic() + PATIENCE
    while (status := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    if status == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (child, 0) == status


def test_errors_in_one_thread_leave_the_others_alone():
    made = gs.grad(lambda x: np.sum(x * 2))
    results = run_together(*[lambda: made(np.ones(3)), lambda: made(np.ones(3, int))] * 4)
    for got, expected in zip(results[::2], [2 * np.ones(3)] * 4, strict=True):
        np.testing.assert_array_equal(expected, got)
    assert all(isinstance(r, TypeError) for r in results[1::2])


def test_calls_while_a_parallel_version_is_made(monkeypatch):
    monkeypatch.setattr(parallel, "is_available", lambda: True)
    monkeypatch.setattr(parallel, "cores_are_free", lambda: True)
    monkeypatch.setattr(parallel, "LONG", -1.0)
    monkeypatch.setattr(parallel, "LARGE", 3)
    asked = []

    def serial(x):
        return x + 1

    def make_parallel():
        asked.append(threading.get_ident())
        time.sleep(0.05)
        return lambda x: x + 1

    call = parallel.adaptive(serial, make_parallel)
    x = np.ones(8)

    def many():
        for _ in range(200):
            np.testing.assert_array_equal(2.0, call(x))

    assert [None] * 8 == run_together(*[many] * 8)
    assert 1 == len(asked)


@pytest.mark.parametrize("result", [None, lambda x: "parallel"])
def test_what_is_parallel(monkeypatch, result):
    monkeypatch.setattr(parallel, "is_available", lambda: True)
    monkeypatch.setattr(parallel, "cores_are_free", lambda: True)
    monkeypatch.setattr(parallel, "LONG", -1.0)
    monkeypatch.setattr(parallel, "LONG_SMALL", 1e9)
    monkeypatch.setattr(parallel, "LARGE", 4)
    call = parallel.adaptive(lambda x: "serial", lambda: result)
    large, small = np.ones(16), np.ones(2)
    assert ["serial"] * 3 == [call(small) for _ in range(3)]
    assert ["serial"] * 2 == [call(large) for _ in range(2)]
    assert ("serial" if result is None else "parallel") == call(large)
    assert "serial" == call(small)


def test_a_parallel_version_misses_as_the_serial_one_does():
    made = gs.grad(lambda x: np.sum(np.exp(x)))
    x = np.zeros(4)
    made(x)
    table = made._specialisations[0].parallel_entry()
    if table is None:
        pytest.skip("nothing here is parallel")
    np.testing.assert_allclose(np.ones(4), table(x))
    with pytest.raises(Miss):
        table(np.zeros(1))
