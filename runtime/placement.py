"""Where arrays are.  There is one device here, the CPU; the names are those that JAX made standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import Array, as_array, plain
from .device import CPU, Device
from .transpiler.ops.base import RuleError
from .transpiler.ops.spelling import spelled

__all__ = ["Device", "block_until_ready", "default_backend", "device_count", "device_get", "device_put", "devices"]

SCALARS = (bool, int, float, complex, np.generic)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend, by default of the best there is.  ValueError for backends other than "cpu"."""
    _check(backend)
    return [CPU]


def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


def default_backend() -> str:
    """The platform that compiled functions run on."""
    return CPU.platform


def _check(device: Any) -> None:
    if device is not None and device != CPU:
        raise ValueError(f"there is no device {device!r} here, only {str(CPU)!r}")


def device_put(x: Any, device: Any = None) -> Any:
    """A copy of arrays and numbers as `Array`s on a device; trees leaf by leaf.  ValueError for unknown devices."""
    _check(device)
    return _mapped(lambda leaf: as_array(np.array(leaf)) if isinstance(leaf, (np.ndarray, *SCALARS)) else leaf, x)


def device_get(x: Any) -> Any:
    """Arrays as NumPy's own, in this process's memory; trees leaf by leaf."""
    return _mapped(plain, x)


def block_until_ready(x: Any) -> Any:
    """x, when all arrays in it are computed.  Calls return when results are ready, so that is now."""
    return x


def _mapped(function: Any, x: Any) -> Any:
    if isinstance(x, (Array, np.ndarray, *SCALARS)):
        return function(x)
    from . import tree
    return tree.map(function, x)


@spelled(device_put)
def _put(x: Any, device: Any = None) -> Any:
    """Compiled code is where it is."""
    if device is not None and device != CPU:
        raise RuleError(f"there is no device {device!r} here, only {str(CPU)!r}", code="E208", kind=ValueError)
    return x


@spelled(device_get, block_until_ready)
def _same(x: Any) -> Any:
    return x
