"""Our StableHLO beside what JAX lowers the same function to: under XLA's CPU compiler, and to the TPU compiler.

Both texts go through the same compiler with the same options, so what differs is the text.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from measures import Effort, Row
from models import MODELS, Model

RUN = ("mlp", "logistic regression", "sum_logistic", "selu, float32", "cross-entropy")
# Our matrix products are as precise as float32 is; JAX's default on TPU is not, so it is asked for the same.
PRECISION = "highest"


def texts(model: Model, args: Sequence[Any]) -> tuple[str, str]:
    """Ours and JAX's of the model's gradient."""
    import jax
    import jax.numpy as jnp

    import gradsmith
    ours = gradsmith.stablehlo(gradsmith.grad(model.make(np), argnums=model.argnums), locations=False)(*args)
    with jax.default_matmul_precision(PRECISION):
        lowered = jax.jit(jax.grad(model.make(jnp), argnums=model.argnums)).lower(*args)
    return ours, lowered.as_text()


def steady(effort: Effort) -> list[Row]:
    """Seconds of a run of each module on XLA's CPU client, in turns."""
    import jax

    from gradsmith.xla.bindings import device
    from gradsmith.xla.compiler import compiled
    rows = []
    place = device("xla", 0)
    with jax.enable_x64(True):
        for name in RUN:
            model = MODELS[name]
            args = model.inputs()
            runs = []
            for text in texts(model, args):
                made = compiled(text, (place,))
                buffers = [jax.device_put(np.asarray(a), place) for a in args]
                runs.append(_runner(made, buffers))
            best = [float("inf")] * 2
            for _ in range(max(effort.rounds, 2)):
                for k, run in enumerate(runs):
                    best[k] = min(best[k], run(effort.seconds))
            rows.append(Row("XLA on the CPU", f"gradient of {name}", best[0], best[1], "ms" if best[0] > 1e-3 else "µs",
                            "≤ 1.1x", best[0] <= 1.1 * best[1]))
    return rows


def _runner(made: Any, buffers: Sequence[Any]) -> Callable[[float], float]:
    def run(seconds: float) -> float:
        """The least time of a call, of those that fit."""
        best, end = float("inf"), time.perf_counter() + seconds
        while True:
            start = time.perf_counter()
            for result in made.execute(list(buffers)):
                result.block_until_ready()
            now = time.perf_counter()
            best = min(best, now - start)
            if now >= end:
                return best

    return run


def calls(effort: Effort) -> list[Row]:
    """A whole call with arrays on the device: what `jit(f, target="xla")` adds to XLA, beside `jax.jit`."""
    import jax
    import jax.numpy as jnp

    import gradsmith
    model = MODELS["10 elements"]
    args = model.inputs()
    ours = gradsmith.jit(gradsmith.grad(model.make(np)), target="xla")
    own = [gradsmith.device_put(a, "xla:0") for a in args]
    with jax.enable_x64(True):
        theirs = jax.jit(jax.grad(model.make(jnp)))
        other = [jnp.asarray(a) for a in args]
        sides = ((lambda: ours(*own).block_until_ready()), (lambda: theirs(*other).block_until_ready()))
        best = [float("inf")] * 2
        for _ in range(max(effort.rounds, 2)):
            for k, call in enumerate(sides):
                start = time.perf_counter()
                for _ in range(100):
                    call()
                best[k] = min(best[k], (time.perf_counter() - start) / 100)
    return [Row("XLA on the CPU", "call with 10 elements on the device", best[0], best[1], "µs")]


def on_tpu(effort: Effort) -> list[Row]:
    """The TPU compiler's estimate of the time of one run, in float32."""
    from gradsmith.xla import compile_for_tpu
    if importlib.util.find_spec("libtpu") is None:
        return []
    rows = []
    for name, model in [*MODELS.items()][:1 if effort.processes == 1 else None]:
        args = tuple(np.asarray(a, np.float32) for a in model.inputs())
        ours, theirs = (compile_for_tpu(text).costs.get("optimal_seconds", 0.0) for text in texts(model, args))
        rows.append(Row("TPU v5e, the compiler's estimate", f"gradient of {name}", ours, theirs, "µs", "≤ 1.1x",
                        ours <= 1.1 * theirs))
    return rows


def beside_jax(effort: Effort) -> list[Row]:
    """All of these."""
    return [*steady(effort), *calls(effort), *on_tpu(effort)]
