"""accumulate: addition to the total of a reduction, in any order."""

from __future__ import annotations

import numpy as np

from ..ir.types import Type
from .base import Folding, grid, sample
from .families import elementwise


def _source(total: Type, x: Type) -> str:
    """Strict addition for what cannot be reordered or vectorised."""
    return "accumulate({0}, {1})" if total.kind == "f" else "{0} + {1}"


accumulate = elementwise(
    "accumulate", np.add, partials=lambda total, x, r: (1, 1), scalar=_source, stablehlo="add",
    samples=[sample(grid(3), grid(3, seed=1)), sample(grid(2, dtype="float32"), grid(2, dtype="float32", seed=1)),
             sample(np.arange(3), np.arange(3))],
    doc="total + x, where the order of the additions to one total is left open, so that loops vectorise.")
accumulate.short, accumulate.additive = "total", (0, 1)
accumulate.folding = Folding("sum", "cumsum", "accumulate", "iufc", True, "add_at")
accumulate.linear_in, accumulate.any_order = ((0, 1),), True
