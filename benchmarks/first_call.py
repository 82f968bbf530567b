"""The first call of a gradient in a process of its own; prints one line of JSON.

    python benchmarks/first_call.py ours "mlp" [--after "sum_logistic"]

`wall` and `cpu` are seconds from having imported everything and made the inputs to having the result.  For `warm`,
they are from having imported Numba (which has its own time, `numba`) to having the result, `import gradsmith` and all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, and the seconds that it took: by the clock, and of all of this process's threads."""
    wall, cpu = perf_counter(), process_time()
    result = call()
    return result, perf_counter() - wall, process_time() - cpu


def ours(name: str, after: str | None) -> dict[str, Any]:
    import numpy as np
    from models import MODELS

    import gradsmith

    def made(name: str) -> tuple[Any, tuple[Any, ...]]:
        model = MODELS[name]
        return gradsmith.grad(model.make(np), argnums=model.argnums), model.inputs()

    if after:
        function, inputs = made(after)
        function(*inputs)
    function, inputs = made(name)
    _, wall, cpu = timed(lambda: function(*inputs))
    return {"wall": wall, "cpu": cpu, "stages": function.stages(*inputs)}


def jax(name: str, after: str | None) -> dict[str, Any]:
    import jax as jax_
    jax_.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from models import MODELS

    def made(name: str) -> tuple[Any, tuple[Any, ...]]:
        model = MODELS[name]
        inputs = tuple(jnp.asarray(x) for x in model.inputs())
        return jax_.jit(jax_.grad(model.make(jnp), argnums=model.argnums)), inputs

    if after:
        function, inputs = made(after)
        jax_.block_until_ready(function(*inputs))
    function, inputs = made(name)
    _, wall, cpu = timed(lambda: jax_.block_until_ready(function(*inputs)))
    return {"wall": wall, "cpu": cpu}


def warm(name: str, after: str | None) -> dict[str, Any]:
    import numpy as np

    def import_numba() -> None:
        import numba  # noqa: F401

    _, numba_seconds, _ = timed(import_numba)
    from models import MODELS
    model = MODELS[name]
    inputs = model.inputs()

    def all_of_it() -> float:
        start = perf_counter()
        import gradsmith
        imported = perf_counter() - start
        gradsmith.grad(model.make(np), argnums=model.argnums)(*inputs)
        return imported

    imported, wall, cpu = timed(all_of_it)
    return {"wall": wall, "cpu": cpu, "import": imported, "numba": numba_seconds}


if __name__ == "__main__":
    kind, name = sys.argv[1:3]
    after = sys.argv[4] if len(sys.argv) > 4 else None
    print(json.dumps({"ours": ours, "jax": jax, "warm": warm}[kind](name, after)))
