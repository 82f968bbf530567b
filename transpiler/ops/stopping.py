"""stop_gradient: a value that every derivative takes for a constant."""

from __future__ import annotations

from typing import Any

from .base import Sample, grid, sample
from .families import Elementwise, register


@register
class StopGradient(Elementwise):
    """x itself, with a derivative of zero."""

    name, scalar = "stop_gradient", "{0}"
    stops_derivatives = True

    def reference(self, x: Any) -> Any:
        return x

    def stablehlo(self, h: Any, x: Any) -> Any:
        return x

    def samples(self) -> list[Sample]:
        return [sample(grid(3), corner=True), sample(grid(2, 2, dtype="float32"), corner=True),
                sample(grid(), corner=True)]
