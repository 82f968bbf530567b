"""Both sides of a comparison: the gradient as something to call, by gradsmith, JAX or hand.

    python benchmarks/loops/sides.py KERNEL SIDE SIZE RESULT.npz

SIDE is ours, primal, hand, or one of JAX's: its form's name, in forward mode with a + behind it.  SIZE is ints with
commas.  As a program it calls the gradient until it is at its best, saves what it gave, and says `ready`.  Then, for
each line with a number of calls on standard input, it makes them and prints the seconds that they took.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from loops.kernel import KERNELS, Arguments, Kernel

WARM_UP = 8     # calls: past the trials of a parallel version, too
Call = Callable[[], Any]


def sides(kernel: Kernel) -> list[str]:
    """All of JAX's forms but the naive one."""
    return [*kernel.jax, *(f"{name}+" for name in kernel.forward)]


def ours(kernel: Kernel, arguments: Arguments) -> Call:
    import gradsmith
    gradient = gradsmith.grad(kernel.function, argnums=kernel.argnums)
    return lambda: gradient(*arguments)


def primal(kernel: Kernel, arguments: Arguments) -> Call:
    import gradsmith
    function = gradsmith.jit(kernel.function)
    return lambda: function(*arguments)


def by_hand(kernel: Kernel, arguments: Arguments) -> Call:
    from loops import by_hand
    gradient = getattr(by_hand, kernel.name)
    return lambda: gradient(*arguments)


def jax(kernel: Kernel, form: str, arguments: Arguments) -> Call:
    import jax as jax_
    jax_.config.update("jax_enable_x64", True)
    function = getattr(kernel.jax_module(), form.rstrip("+"))
    if form not in kernel.gradients:
        transform = jax_.jacfwd if form.endswith("+") else jax_.grad
        function = transform(function, argnums=kernel.argnums)
    static = [k for k, x in enumerate(arguments) if isinstance(x, int)]
    compiled = jax_.jit(function, static_argnums=static)
    there = [jax_.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]
    return lambda: jax_.block_until_ready(compiled(*there))


def side(kernel: Kernel, name: str, size: tuple[int, ...]) -> Call:
    arguments = kernel.arguments(*size)
    known = {"ours": ours, "primal": primal, "hand": by_hand}
    return known[name](kernel, arguments) if name in known else jax(kernel, name, arguments)


def as_arrays(gradient: Any) -> list[np.ndarray]:
    parts = gradient if isinstance(gradient, tuple) else (gradient,)
    return [np.asarray(part) for part in parts]


def main() -> None:
    name, which, size, result = sys.argv[1:5]
    call = side(KERNELS[name], which, tuple(map(int, size.split(","))))
    for _ in range(WARM_UP if which in ("ours", "primal") else 2):
        gradient = call()
    np.savez(result, *as_arrays(gradient))
    run = timeit.Timer(call)
    print("ready", flush=True)
    for line in sys.stdin:
        print(run.timeit(int(line)), flush=True)


if __name__ == "__main__":
    main()
