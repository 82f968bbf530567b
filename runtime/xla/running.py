"""Run a module's text once, on XLA's CPU client: how tests and tools look at what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bindings import XlaError, bindings, device, parsed, sixty_four_bits
from .compiler import Build, compiled


def parses(text: str) -> str | None:
    """None if the module parses and verifies, else what is wrong with it."""
    try:
        parsed(text)
    except XlaError as refused:
        return str(refused)
    return None


def run(text: str, *arrays: Any, optimise: bool = True) -> list[np.ndarray[Any, Any]]:
    """The results of the module's @main.  Executables are kept by their text.

    arrays: NumPy arrays and scalars of the parameters' own dtypes and shapes.  optimise=False compiles faster, for a
    large module that runs once.  XlaError: the module or the arguments are refused.
    """
    place = device("xla", 0)
    executable = compiled(text, (place,), Build(optimise=optimise))
    with sixty_four_bits():
        buffers = [bindings().jax.device_put(np.asarray(a), place) for a in arrays]
        try:
            return [np.array(r) for r in executable.execute(buffers)]
        except bindings().refusals as refused:
            raise XlaError(str(refused)) from None
