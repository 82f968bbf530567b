"""The second halves of `vjp` and `linearize` on a device: cotangents or tangents, and what was kept, to the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device_array import DeviceArray
from ..target import Target
from ..transpiler.frontend.trees import Structure
from ..transpiler.ir.library import Program, main_of
from .program import DeviceProgram
from .specialise import rebuilt, weak_leaves, with_values


class LaterOnDevice:
    """Takes flat residuals and cotangents, gives a tree of DeviceArrays.  One program for each of their shapes."""

    def __init__(self, program: Program, target: Target, made: Structure) -> None:
        self.program, self.target, self.made = program, target, made
        self.weak = weak_leaves(made)
        self._programs: dict[tuple[tuple[int, ...], ...], DeviceProgram] = {}

    def __call__(self, *flat: Any) -> Any:
        main = main_of(self.program)
        if not main.results:
            return rebuilt(self.made, [])
        shapes = tuple(map(np.shape, flat))
        if shapes not in self._programs:
            self._programs[shapes] = DeviceProgram(with_values(self.program, main.params, flat), self.target,
                                                   name=main.name, reason="linear part")
        results, pending = self._programs[shapes].called(flat)
        return rebuilt(self.made, [DeviceArray(b, self.target.device, weak=weak, outcomes=pending)
                                   for b, weak in zip(results, self.weak, strict=True)])
