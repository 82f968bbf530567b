"""One side of a timing, in a process of its own, so that neither's allocator, threads or settings serve the other.

    python benchmarks/worker.py ours|jax NAME RESULT.npz

It compiles the gradient, calls it until it is at its best, saves what it gave, and says `ready`.  Then, for each line
with a number of calls on standard input, it makes them and prints the seconds that they took.
"""

from __future__ import annotations

import sys
import timeit
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from models import MODELS, Model

WARM_UP = 6     # calls: past the compilation of a parallel version, too


def ours(model: Model) -> timeit.Timer:
    import gradsmith
    return timer("f({})", gradsmith.grad(model.make(np), argnums=model.argnums), model.inputs())


def jax(model: Model) -> timeit.Timer:
    import jax as jax_
    jax_.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    inputs = tuple(x if isinstance(x, float) else jnp.asarray(x) for x in model.inputs())
    function = jax_.jit(jax_.grad(model.make(jnp), argnums=model.argnums))
    return timer("wait(f({}))", function, inputs, wait=jax_.block_until_ready)


def timer(text: str, function: Any, inputs: tuple[Any, ...], **more: Any) -> timeit.Timer:
    """Calls without a Python function around them."""
    names = {f"a{k}": x for k, x in enumerate(inputs)}
    for _ in range(WARM_UP):
        result = function(*inputs)
    parts = result if isinstance(result, tuple) else (result,)
    np.savez(sys.argv[3], *[np.asarray(part) for part in parts])
    return timeit.Timer(text.format(", ".join(names)), globals={"f": function, **names, **more})


def main() -> None:
    run = {"ours": ours, "jax": jax}[sys.argv[1]](MODELS[sys.argv[2]])
    print("ready", flush=True)
    for line in sys.stdin:
        print(run.timeit(int(line)), flush=True)


if __name__ == "__main__":
    main()
