"""Every pass keeps the meaning of random tensor programs, of their derivatives and of their batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from passes.programs import arguments, programs

from gradsmith.transpiler import ops, pipeline
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.marking import marking
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

ops.load_table()
SIZES = st.tuples(st.integers(2, 5), st.integers(2, 5), st.integers(0, 2**31))
quick = settings(max_examples=60, deadline=None, derandomize=True,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
fewer = settings(quick, max_examples=25)


def close(wanted: Any, found: Any, what: str, rtol: float = 1e-10) -> None:
    assert len(wanted) == len(found), what
    for w, f in zip(wanted, found, strict=True):
        assert np.shape(w) == np.shape(f), what
        np.testing.assert_allclose(f, w, rtol=rtol, atol=1e-11, err_msg=what)


def plain_python(func: Func, args: list[Any], parallel: bool = False) -> tuple[Any, ...]:
    """The emitted text run without Numba."""
    text = emit(func, name="f", decorator=False, parallel=parallel)
    scope: dict[str, Any] = {"prange": lambda *bounds: reversed(range(*bounds))}
    exec(compile(text, "<f>", "exec"), scope)
    with np.errstate(all="ignore"):
        result = scope["f"](*args)
    return result if len(func.results) != 1 else (result,)


@quick
@given(programs(), SIZES)
def test_stages_keep_values(func, sizes):
    args = arguments(*sizes)
    wanted = evaluate(func, *args)
    history: list[pipeline.Step] = []
    pipeline.run(func, history=history)
    for step in history:
        close(wanted, evaluate(step.func, *args), f"{step.stage}\n{show(func)}\n{show(step.func)}")


@quick
@given(programs(), SIZES)
def test_emitted_text_keeps_values(func, sizes):
    args = arguments(*sizes)
    wanted = evaluate(func, *args)
    for stages, parallel in ((pipeline.STAGES, False), (pipeline.PARALLEL_STAGES, True)):
        lowered = pipeline.run(func, stages=stages)
        close(wanted, plain_python(lowered, args, parallel), show(lowered))


@fewer
@given(programs(), SIZES)
def test_reverse_mode_agrees_with_forward_mode_and_differences(func, sizes):
    args = arguments(*sizes)
    rng = np.random.default_rng(sizes[2])
    tangents = [rng.normal(size=np.shape(a)) if np.shape(a) else np.float64(rng.normal()) for a in args]
    every = [True] * len(args)
    forward, backward = jvp(func, every), vjp(func, every)
    verify(forward)
    verify(backward)
    count = len(func.results)
    moved = evaluate(pipeline.run(forward), *args, *tangents)[count:]
    cts = [rng.normal(size=np.shape(r)) if np.shape(r) else np.float64(rng.normal()) for r in moved]
    bars = evaluate(pipeline.run(backward), *args, *cts)[count:]
    left = sum(np.sum(c * t) for c, t in zip(cts, moved, strict=True))
    right = sum(np.sum(b * t) for b, t in zip(bars, tangents, strict=True))
    assert left == pytest.approx(right, rel=1e-7, abs=1e-8)
    close(evaluate(backward, *args, *cts)[count:], bars, "the pipeline on the reverse mode", 1e-8)


@fewer
@given(programs(), SIZES)
def test_second_order_is_symmetric(func, sizes):
    """Forward over reverse, dotted with a second tangent, does not depend on the order of the two."""
    args = arguments(*sizes)
    rng = np.random.default_rng(sizes[2] + 1)
    every = [True] * len(args)
    count = len(func.results)
    cts = [rng.normal(size=np.shape(r)) if np.shape(r) else np.float64(rng.normal()) for r in evaluate(func, *args)]
    backward = vjp(func, every)
    hessian = jvp(backward, [*every, *[False] * count])

    def along(u: list[Any]) -> tuple[Any, ...]:
        return evaluate(pipeline.run(hessian), *args, *cts, *u)[len(backward.results) + count:]

    u, v = ([rng.normal(size=np.shape(a)) if np.shape(a) else np.float64(rng.normal()) for a in args]
            for _ in range(2))
    one = sum(np.sum(h * w) for h, w in zip(along(u), v, strict=True))
    other = sum(np.sum(h * w) for h, w in zip(along(v), u, strict=True))
    assert one == pytest.approx(other, rel=1e-6, abs=1e-7)


@fewer
@given(programs(), SIZES, st.lists(st.booleans(), min_size=5, max_size=5))
def test_vmap_is_a_loop_over_lanes(func, sizes, batched):
    if not any(batched):
        batched = [True, *batched[1:]]
    lanes = [arguments(sizes[0], sizes[1], sizes[2] + k) for k in range(3)]
    args = [np.stack([lane[k] for lane in lanes]) if b else lanes[0][k] for k, b in enumerate(batched)]
    mapped = vmap(func, batched, 3)
    verify(mapped)
    wanted = [evaluate(func, *[a[lane] if b else a for a, b in zip(args, batched, strict=True)]) for lane in range(3)]
    stacked = [np.stack([w[k] for w in wanted]) for k in range(len(func.results))]
    close(stacked, evaluate(pipeline.run(mapped), *args), show(func))


@quick
@given(programs(), SIZES)
def test_marks_tell_every_dependence(func, sizes):
    args = arguments(*sizes)
    every = [True] * len(args)
    sizes_of = np.cumsum([0, *map(np.size, args)])
    numbers = [np.arange(a, b).reshape(np.shape(x)) for a, b, x in zip(sizes_of, sizes_of[1:], args)]
    marked = marking(func, every)
    marks = evaluate(marked, *args, *[(1 << n % 64)[()] for n in numbers])
    close(marks, evaluate(pipeline.run(marked), *args, *[(1 << n % 64)[()] for n in numbers]), show(func))
    for k in range(sizes_of[-1]):
        moved = evaluate(jvp(func, every), *args, *[(n == k).astype(float)[()] for n in numbers])
        for mark, slope in zip(marks, moved[len(func.results):], strict=True):
            assert not np.any((slope != 0) & (mark >> k % 64 & 1 == 0)), f"{k}\n{show(func)}"
