"""The first call of a gradient in a process of its own; prints one line of JSON.

    python benchmarks/first_call.py ours "mlp" [--after "sum_logistic"]

`wall` and `cpu` are seconds from having imported the library (`import`) and made the inputs, NumPy arrays, to having
the result; asking for the gradient is part of it, and so is whatever the library sets up when it is first used.  For
`warm`, they are from having imported Numba (which has its own time, `numba`) to having the result, `import gradsmith`
and all.
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

    start = perf_counter()
    import gradsmith
    imported = perf_counter() - start

    def gradient(name: str, inputs: tuple[Any, ...]) -> tuple[Any, float]:
        model = MODELS[name]
        start = perf_counter()
        function = gradsmith.grad(model.make(np), argnums=model.argnums)
        asked = perf_counter() - start
        function(*inputs)
        return function, asked

    if after:
        gradient(after, MODELS[after].inputs())
    inputs = MODELS[name].inputs()
    (function, asked), wall, cpu = timed(lambda: gradient(name, inputs))
    return {"wall": wall, "cpu": cpu, "import": imported, "stages": {"asking": asked} | function.stages(*inputs)}


def jax(name: str, after: str | None) -> dict[str, Any]:
    from models import MODELS

    start = perf_counter()
    import jax as jax_
    import jax.numpy as jnp
    imported = perf_counter() - start
    jax_.config.update("jax_enable_x64", True)

    def gradient(name: str, inputs: tuple[Any, ...]) -> Any:
        model = MODELS[name]
        return jax_.block_until_ready(jax_.jit(jax_.grad(model.make(jnp), argnums=model.argnums))(*inputs))

    if after:
        gradient(after, MODELS[after].inputs())
    inputs = MODELS[name].inputs()
    _, wall, cpu = timed(lambda: gradient(name, inputs))
    return {"wall": wall, "cpu": cpu, "import": imported}


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
