"""Overloads: counted memory, the cache on disk, threads, Numba code that calls them, and what both compilers make of the
same programs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from golden.golden import all_goldens
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import njit, typeof, types
from numba.core.runtime import _nrt_python, rtsys
from passes.programs import arguments, programs
from unit.runtime.codegen.two_ways import numba, ours, outcome, require_same, same

import gradsmith as gs
from gradsmith.cli.generate import traced
from gradsmith.codegen.library import compile_text, is_direct
from gradsmith.codegen.values import NotCovered
from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.nodes import Module
from gradsmith.transpiler.transforms.vjp import vjp

ops.load_table()
EXACT = 1e-12

# --- memory -------------------------------------------------------------------------------------------------------

COUNTED = """
def f(x, k):
    a = x.copy()
    b = a
    for t in range(3):
        c = empty(4)
        for i in range(4):
            c[i] = t
        if k == 10 + t:
            raise ValueError("in the loop")
        a = c
        d = c[1:]
        a[0] = d[0]
        if k == 20 + t:
            continue
        e = permuted(c, (0,))
        b[0] += e[1]
    if k < 0:
        raise IndexError
    view = a[1:]
    m = reshaped(a, (2, 2))
    n = m.T
    out = empty((2, 2))
    gemm(m, n, out)
    if k == 1:
        gemm(m, n, empty((3, 2)))
    u = x if k == 2 else x
    return a, view, out, x, b, a
""".replace("    u = x if k == 2 else x\n", "")


@pytest.mark.parametrize("k", [0, 1, -1, 10, 11, 12, 20, 22])
def test_every_way_out_releases_what_it_owns(k):
    x = np.arange(3.0)
    f = ours(COUNTED, "f", (typeof(x), types.int64))
    _nrt_python.memsys_enable_stats()
    outcome(f, (x, k))
    rtsys_before = rtsys.get_allocation_stats()
    for _ in range(5):
        outcome(f, (x, k))
    after = rtsys.get_allocation_stats()
    assert rtsys_before.alloc - rtsys_before.free == after.alloc - after.free
    assert rtsys_before.mi_alloc - rtsys_before.mi_free == after.mi_alloc - after.mi_free
    assert after.alloc > rtsys_before.alloc


def test_counted_results():
    x = np.arange(3.0)
    require_same(COUNTED, "f", *((x, k) for k in (0, 1, -1, 10, 12, 20, 22)))


def test_results_outlive_the_call():
    x = np.arange(3.0)
    f = ours(COUNTED, "f", (typeof(x), types.int64))
    a, view, out, same_x, b, again = f(x, 0)
    assert np.shares_memory(a, view) and np.shares_memory(a, again) and np.shares_memory(x, same_x)
    kept = out.copy(), b.copy()
    del a, again
    for _ in range(100):
        f(x, 0)
    np.testing.assert_array_equal(view, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(kept[0], out)
    np.testing.assert_array_equal(kept[1], b)


def test_too_large_arrays():
    text = "def f(n):\n    return zeros((n, n, n))\n"
    for n, error in ((2**31, ValueError), (2**19, MemoryError)):
        with pytest.raises(error, match="too"):
            ours(text, "f", (types.int64,))(n)


# --- calls --------------------------------------------------------------------------------------------------------


def test_arguments_of_all_kinds():
    kinds = [np.bool_, np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, np.float32, np.float64]
    names = ", ".join(f"a{k}" for k in range(len(kinds)))
    require_same(f"def f({names}):\n    return {names}\n", "f", tuple(kind(1) for kind in kinds),
                 tuple(kind(np.iinfo(kind).max) if np.dtype(kind).kind in "iu" else kind(0.5) for kind in kinds))


def test_wrong_arguments_of_the_entry_itself_raise():
    f = ours("def f(x, n, v):\n    return x[0] + n * v\n", "f", (types.float64[::1], types.int64, types.float64))
    entry = next(iter(f.overloads.values())).entry_point
    assert 7.0 == entry(np.ones(2), 3, 2.0)
    for wrong, error in (((np.ones(2, np.float32), 1, 1.0), TypeError), (([1.0], 1, 1.0), TypeError),
                         ((np.ones(2), "1.5", 1.0), ValueError), ((np.ones(2), 1, "x"), TypeError),
                         ((np.ones(2), 1), TypeError)):
        with pytest.raises(error):
            entry(*wrong)


def test_numbas_code_calls_it():
    f = gs.grad(lambda x: np.sum(np.exp(x) * x))

    @njit
    def twice(x):
        return f(x) + f(2.0 * x)

    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(twice(x), f(x) + f(2 * x), rtol=1e-13)
    assert is_direct(next(iter(f.for_numba.overloads.values())).fndesc)


def test_many_threads():
    text = """
def f(x, n):
    total = 0.0
    for t in range(n):
        y = empty(x.shape[0])
        for i in range(x.shape[0]):
            y[i] = x[i] * t
        total += dot(y, y)
    if n == 7:
        raise ValueError("seven")
    return total, x.copy()
"""
    x = np.arange(50.0)
    f = ours(text, "f", (typeof(x), types.int64))
    wanted, problems = f(x, 20)[0], []

    def work():
        for _ in range(300):
            if f(x, 20)[0] != wanted:
                problems.append("value")
            try:
                f(x, 7)
                problems.append("no error")
            except ValueError as problem:
                if problem.args != ("seven",):
                    problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_the_second_process_loads_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import sys
        import numpy as np
        import gradsmith as gs
        from gradsmith.cache import account

        def loss(w, x):
            if x.shape[0] > 2:
                return np.sum(np.tanh(x @ w) ** 2)
            return np.sum(w) * x[0, 5]

        def power(x, n):
            return 1.0 if n <= 0 else x * power(x, n - 1)

        print(gs.grad(lambda x, n: power(x, n))(1.5, 4), gs.jit(lambda z: z * z + 1j)(2j))
        g = gs.grad(loss)
        print(g(np.ones(3), np.ones((4, 3))).tolist())
        try:
            g(np.ones(3), np.ones((2, 3)))
        except IndexError as problem:
            print(type(problem).__name__)
        print(account.loaded, account.compiled, file=sys.stderr)
    """))
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    runs = [subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
            for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stderr.split()[0] == "0"
    assert runs[1].stderr.split() == [runs[0].stderr.split()[1], "0"]


def test_numbas_registries_are_not_read(tmp_path):
    program = ("import sys, numpy as np, gradsmith as gs\n"
               "print(gs.grad(lambda w, x: np.sum(np.tanh(x @ w)))(np.ones(3), np.ones((4, 3))).tolist())\n"
               "print('numba.cpython.unicode' in sys.modules)\n")
    path = tmp_path / "program.py"
    path.write_text(program)
    environment = {**os.environ, "GRADSMITH_CACHE_DIR": str(tmp_path / "cache")}
    runs = [subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, check=True)
            for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.endswith("False\n")


# --- the same programs, by both compilers ---------------------------------------------------------------------------


@pytest.mark.parametrize("golden", all_goldens(), ids=lambda golden: golden.file)
def test_golden_cases(golden):
    found = traced(golden.request)
    func = pipeline.run(found.func)
    if isinstance(func, Module):
        with pytest.raises(NotCovered, match="several functions"):
            compile_text(emit(func, name="f", quick=True), None, (), {})
        return
    text = emit(func, name="f", quick=True)
    sizes: dict[str, int] = {}
    rng = np.random.default_rng(5)

    def sample(type_):
        shape = tuple(d if isinstance(d, int) else sizes.setdefault(str(d), 3 + len(sizes)) for d in type_.shape)
        value = rng.integers(0, 2, shape) if type_.kind in "iub" else rng.normal(size=shape)
        value = np.asarray(value + 1j * rng.normal(size=shape) if type_.kind == "c" else value).astype(type_.numpy)
        return value if shape else value[()].item()

    require_same(text, "f", [sample(p.type) for p in func.params], exact=False)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs(), st.tuples(st.integers(2, 5), st.integers(2, 5), st.integers(0, 2**31)))
def test_random_programs_and_their_gradients(func, sizes):
    args = arguments(*sizes)
    backward = pipeline.run(vjp(func, [True] * len(args)))
    rng = np.random.default_rng(sizes[2])
    require_same(emit(pipeline.run(func), name="f", quick=True), "f", args, exact=False)
    cts = [rng.normal(size=tuple(args[0].shape[:0]))] if not backward.params[len(args):] else [
        _like(p, args, func, rng) for p in backward.params[len(args):]]
    require_same(emit(backward, name="g", quick=True), "g", [*args, *cts], exact=False)


def _like(param, args, func, rng):
    """A cotangent: its sizes are those that the arguments have."""
    from gradsmith.transpiler.ir.dims import substitute
    named = {str(d): size for p, a in zip(func.params, args) for d, size in zip(p.type.shape, np.shape(a))}
    shape = tuple(d if isinstance(d, int) else int(substitute(d, named)) for d in param.type.shape)
    return rng.normal(size=shape) if shape else float(rng.normal())


def test_the_helpers_see_a_difference():
    with pytest.raises(AssertionError):
        same(("result", np.ones(2)), ("result", np.ones(3)))
    with pytest.raises(AssertionError):
        same(np.float64(1.0), np.float64(1.0 + 1e-15))
    assert numba("def f(x):\n    return x + 1\n", "f", (types.int64,))(1) == 2
