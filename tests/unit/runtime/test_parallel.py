"""Which version of a function serves a call, by times that the tests make up."""

from __future__ import annotations

import numpy as np
import pytest

from gradsmith import parallel

SMALL, LARGE = np.ones(100), np.ones(50_000)


class Machine:
    """A function whose versions take as long as is said.  made: how often the parallel version was asked for."""

    def __init__(self, monkeypatch, serial, parallel_, works=lambda x: x.size):
        self.now, self.seconds, self.works, self.made = 0.0, {"serial": serial, "parallel": parallel_}, works, 0
        monkeypatch.setattr(parallel, "is_available", lambda: True)
        monkeypatch.setattr(parallel, "cores_are_free", lambda: True)
        monkeypatch.setattr(parallel, "perf_counter", lambda: self.now)
        self.call = parallel.adaptive(self.version("serial"), self.make)

    def version(self, name):
        def run(x, *rest):
            self.now += self.seconds[name] * self.works(x)
            return name
        return run

    def make(self):
        self.made += 1
        return self.version("parallel")

    def calls(self, count, *args):
        return [self.call(*args) for _ in range(count)]


def test_the_faster_version_stays(monkeypatch):
    machine = Machine(monkeypatch, 1e-7, 0.6e-7)
    assert ["serial", "serial", "parallel", "serial", "parallel", "serial", "parallel"] == machine.calls(7, LARGE)
    assert {"parallel"} == set(machine.calls(50, LARGE))
    assert 1 == machine.made


def test_a_slower_version_is_tried_again_seldom(monkeypatch):
    machine = Machine(monkeypatch, 1e-7, 1e-6)
    share = machine.calls(4000, LARGE).count("parallel") / 4000
    assert 0 < share < 0.01
    assert 1 == machine.made


def test_another_size_is_another_choice(monkeypatch):
    machine = Machine(monkeypatch, 1e-7, 0.5e-7)
    machine.calls(10, LARGE)
    assert {"serial"} == set(machine.calls(100, SMALL))
    assert "parallel" == machine.call(LARGE)
    assert "serial" == machine.call(np.ones(20_000)), "a size at which nothing was tried"


def test_long_calls_on_few_elements(monkeypatch):
    """Bodies that attract each other are few, and take long."""
    machine = Machine(monkeypatch, 5e-3, 3e-3, works=lambda x: 1)
    assert "parallel" == machine.calls(10, SMALL)[-1]


def test_more_steps_are_another_choice(monkeypatch):
    machine = Machine(monkeypatch, 5e-3, 3e-3, works=lambda x: 1)
    assert "parallel" == machine.calls(10, SMALL, 1000)[-1]
    assert "serial" == machine.call(SMALL, 2)


def test_short_calls_after_warming_up_on_little(monkeypatch):
    machine = Machine(monkeypatch, 1e-7, 0.6e-7)
    machine.calls(30, SMALL)
    assert "parallel" == machine.calls(8, LARGE)[-1]
    assert {"serial"} == set(machine.calls(30, SMALL))


@pytest.mark.parametrize("factor, most", [(100, 1), (2, 3)])
def test_cores_that_get_other_work(monkeypatch, factor, most):
    """The parallel version is left soon when it gets slow, and comes back when the cores are free."""
    machine = Machine(monkeypatch, 1e-7, 0.6e-7)
    machine.calls(10, LARGE)
    machine.seconds["parallel"] *= 2 * factor
    assert most == machine.calls(30, LARGE).count("parallel")
    machine.seconds["parallel"] /= 2 * factor
    machine.calls(20_000, LARGE)
    assert {"parallel"} == set(machine.calls(20, LARGE))


def test_a_busy_machine_while_it_is_tried(monkeypatch):
    machine = Machine(monkeypatch, 1e-7, 1e-4)
    assert 1 == machine.calls(100, LARGE).count("parallel")
    machine.seconds["parallel"] = 0.6e-7
    machine.now += 1e3
    machine.calls(10, LARGE)
    assert "parallel" == machine.call(LARGE)


def test_nothing_is_tried_while_cores_have_other_work(monkeypatch):
    machine = Machine(monkeypatch, 1e-7, 0.6e-7)
    monkeypatch.setattr(parallel, "cores_are_free", lambda: False)
    assert {"serial"} == set(machine.calls(20, LARGE))
    monkeypatch.setattr(parallel, "cores_are_free", lambda: True)
    assert "parallel" == machine.calls(10, LARGE)[-1]


def test_one_thread(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    parallel.is_available.cache_clear()
    assert not parallel.is_available()
    parallel.is_available.cache_clear()
