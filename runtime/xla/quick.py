"""The quick way into a device's specialisation: positional arguments that are arrays, numbers and DeviceArrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..device_array import DeviceArray
from ..kernels.guard import Miss
from ..transpiler.frontend.values import Leaf
from .specialise import DeviceSpecialisation, rebuilt

NUMBERS = (bool, int, float, complex)


def quick_path(spec: DeviceSpecialisation) -> Callable[..., Any] | None:
    """A function of the user's positional arguments that raises Miss where the specialisation may not serve; None
    where only the slow path can tell: containers, static arguments, arguments that are written to."""
    described, trace = spec.described, spec.trace
    if described.kwargs or trace.static_args or spec.fixed or trace.shape_guards or trace.written:
        return None
    if described.copied or not all(isinstance(arg, Leaf) for arg in described.args):
        return None
    kinds = [_kind(value) for value in described.values]
    guards, captures = trace.static_guards, trace.captures
    if not guards and not captures and (found := _straight(spec, kinds)) is not None:
        return found

    def call(*args: Any) -> Any:
        if len(args) != len(kinds):
            raise Miss
        for arg, kind in zip(args, kinds):
            if _kind(arg) != kind:
                raise Miss
        if (guards and not all(guard.holds() for guard in guards)) or (captures and not spec.captures_hold()):
            raise Miss
        return spec.result(args if not captures else [*args, *(capture.get() for capture in captures)])

    return call


def _straight(spec: DeviceSpecialisation, kinds: list[Any]) -> Callable[..., Any] | None:
    """The same where all arguments are arrays of the one device, in the dtypes that the program takes; None elsewhere.
    """
    program, device = spec.program, spec.program.target.device
    there = zip(spec.described.values, program.dtypes)
    if program.place.is_spread or not all(isinstance(x, DeviceArray) and x.dtype == dtype for x, dtype in there):
        return None
    weak, rebuild = spec.weak, None if spec.is_one else spec.trace.out_tree

    def call(*args: Any) -> Any:
        if len(args) != len(kinds):
            raise Miss
        buffers = []
        for arg, kind in zip(args, kinds):
            if type(arg) is not DeviceArray or arg.kind != kind:
                raise Miss
            buffer = arg.waiting(device)
            if buffer is None:
                return spec.result(args)
            buffers.append(buffer)
        results, outcome = program.run(buffers)
        outcomes = () if outcome is None else (outcome,)
        made = [DeviceArray(b, device, weak=w, outcomes=outcomes) for b, w in zip(results, weak)]
        return made[0] if rebuild is None else rebuilt(rebuild, made)

    return call


def _kind(x: Any) -> Any:
    """Equal for arguments of the same specialisation, as `describe` tells them apart; None for what is left to that."""
    kind = type(x)
    if kind is DeviceArray:
        return x.kind
    if kind is np.ndarray:
        flags = x.flags
        return (kind, x.dtype, x.shape, flags.c_contiguous, flags.writeable) if flags.aligned else Miss()
    if kind in NUMBERS:
        return kind
    return Miss()           # equal to nothing
