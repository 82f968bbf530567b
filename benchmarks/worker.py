"""One side of a timing, in a process of its own, so that neither's allocator, threads or settings serve the other.

    python benchmarks/worker.py ours|jax NAME RESULT.npz

It compiles the gradient (or the batch), calls it until it is at its best, saves what it gave, and says `ready`.  Then,
for each line with a number of calls on standard input, it makes them and prints the seconds that they took.
"""

from __future__ import annotations

import sys
import timeit
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from batches import BATCHES, Batch
from models import MODELS, Model

WARM_UP = 6     # calls: past the compilation of a parallel version, too


def ours(model: Model) -> timeit.Timer:
    import gradsmith
    return timer("f({})", getattr(gradsmith, model.transform)(model.make(np), argnums=model.argnums), model.inputs())


def jax(model: Model) -> timeit.Timer:
    import jax as jax_
    jax_.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    inputs = tuple(x if isinstance(x, float) else jnp.asarray(x) for x in model.inputs())
    function = jax_.jit(getattr(jax_, model.transform)(model.make(jnp), argnums=model.argnums))
    return timer("wait(f({}))", function, inputs, wait=jax_.block_until_ready)


def batch(kind: str, batch: Batch) -> timeit.Timer:
    """Ours, JAX's, or what is written by hand and no JAX."""
    if kind == "ours" or batch.beside != "JAX":
        return timer("f({})", (batch.ours if kind == "ours" else batch.theirs)(), batch.inputs())
    import jax as jax_
    jax_.config.update("jax_enable_x64", True)
    inputs = tuple(x if isinstance(x, float) else jax_.numpy.asarray(x) for x in batch.inputs())
    return timer("wait(f({}))", batch.theirs(), inputs, wait=jax_.block_until_ready)


def timer(text: str, function: Any, inputs: tuple[Any, ...], **more: Any) -> timeit.Timer:
    """Calls without a Python function around them."""
    names = {f"a{k}": x for k, x in enumerate(inputs)}
    for _ in range(WARM_UP):
        result = function(*inputs)
    parts = result if isinstance(result, tuple) else (result,)
    np.savez(sys.argv[3], *[np.asarray(part) for part in parts])
    return timeit.Timer(text.format(", ".join(names)), globals={"f": function, **names, **more})


def main() -> None:
    kind, name = sys.argv[1:3]
    run = batch(kind, BATCHES[name]) if name in BATCHES else {"ours": ours, "jax": jax}[kind](MODELS[name])
    print("ready", flush=True)
    for line in sys.stdin:
        print(run.timeit(int(line)), flush=True)


if __name__ == "__main__":
    main()
