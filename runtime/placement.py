"""Where arrays are: on this machine's CPU, or on a device of XLA's (`xla:0`, `tpu:0`).  The names are those that JAX
made standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import as_array, plain
from .device import CPU, Device, parse_device
from .device_array import DeviceArray
from .transpiler.ops.base import RuleError
from .transpiler.ops.spelling import spelled

__all__ = ["Device", "block_until_ready", "default_backend", "device_count", "device_get", "device_put", "devices"]

SCALARS = (bool, int, float, complex, np.generic)
_MOVABLE = (np.ndarray, DeviceArray, *SCALARS)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend: "cpu" (the default), "xla" (the CPU through XLA) or "tpu".

    ValueError for other backends.  ImportError where jaxlib is missing; TranspileError (E604) without a TPU.
    """
    where = CPU if backend is None else parse_device(backend)
    if where == CPU:
        return [CPU]
    from .xla.bindings import devices as found
    return [Device(f"{where.platform}:{k}") for k in range(len(found(where.platform)))]


def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


def default_backend() -> str:
    """The platform that compiled functions run on."""
    return CPU.platform


def device_put(x: Any, device: Any = None) -> Any:
    """A copy of arrays and numbers on a device, trees leaf by leaf: `Array`s on the CPU, `DeviceArray`s on "xla:0" and
    "tpu:0".  ValueError for unknown devices."""
    where = CPU if device is None else parse_device(device)
    if where == CPU:
        return _mapped(lambda leaf: as_array(np.array(leaf)) if isinstance(leaf, _MOVABLE) else leaf, x)
    from .xla.transfer import is_jax_array, put
    return _mapped(lambda leaf: put(leaf, where) if isinstance(leaf, _MOVABLE) or is_jax_array(leaf) else leaf, x)


def device_get(x: Any) -> Any:
    """Arrays as NumPy's own, in this process's memory; trees leaf by leaf."""
    return _mapped(lambda leaf: np.array(leaf) if isinstance(leaf, DeviceArray) else plain(leaf), x)


def block_until_ready(x: Any) -> Any:
    """x, when all arrays in it are computed.  Those of the CPU are when a call returns.  Raises what computing one
    raised."""
    from . import tree
    for leaf in [x] if isinstance(x, _MOVABLE) else tree.leaves(x):
        if isinstance(leaf, DeviceArray):
            leaf.block_until_ready()
    return x


def _mapped(function: Any, x: Any) -> Any:
    if isinstance(x, _MOVABLE):
        return function(x)
    from . import tree
    return tree.map(function, x)


@spelled(device_put)
def _put(x: Any, device: Any = None) -> Any:
    """Compiled code is where it is."""
    if device is None or device == CPU:
        return x
    try:
        where = parse_device(device)
    except ValueError as problem:
        raise RuleError(str(problem), code="E208", kind=ValueError) from None
    raise RuleError(f"compiled code runs on one device and cannot move arrays to {str(where)!r}", code="E208",
                    kind=ValueError, help=f"move them before the call, or compile with target={where.platform!r}")


@spelled(device_get, block_until_ready)
def _same(x: Any) -> Any:
    return x
