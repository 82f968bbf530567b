"""The IR that some loops become, as text.  `--update-golden` rewrites expected/; then read the diff."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.raise_loops import kernels
from unit.raise_loops.comparing import func_of, raised
from unit.raise_loops.kernels import RAISED

from gradsmith.transpiler.ir.show import show

EXPECTED = Path(__file__).parent / "expected"
SHOWN = [(kernels.gemm, "jit"), (kernels.matmul, "vjp"), (kernels.atax, "jit"), (kernels.jacobi_2d, "jit"),
         (kernels.conv2d, "jit"), (kernels.softmax, "jit"), (kernels.mean_and_variance, "jit"),
         (kernels.differences, "jit"), (kernels.running_sum, "vjp"), (kernels.histogram, "vjp"),
         (kernels.lower_triangle, "jit")]


@pytest.mark.parametrize(("function", "transform"), SHOWN, ids=[f"{f.__name__}.{t}" for f, t in SHOWN])
def test_what_is_made_is_what_was_read(function, transform, update_golden):
    texts = []
    for _ in range(2):
        after, findings = raised(func_of(function, RAISED[function], transform))
        reasons = "".join(f"# {f.outcome.value}{': ' + f.reason if f.reason else ''}\n" for f in findings)
        texts.append(show(after) + reasons)
    assert texts[0] == texts[1]
    path = EXPECTED / f"{function.__name__}.{transform}.ir"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[0])
    assert path.read_text() == texts[0]
