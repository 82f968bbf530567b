"""Arrays to XLA's devices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..device import Device
from ..device_array import DeviceArray
from .bindings import bindings, device, sixty_four_bits


def place_of(where: Device) -> Any:
    """jax's device."""
    return device(where.platform, where.id)


def upload(x: Any, place: Any) -> Any:
    """A buffer on jax's device with the elements that x (an array of NumPy's, or a buffer) has now.

    `jax.device_put` would read an array of NumPy's after it has returned, when its owner may have changed it.
    """
    if not isinstance(x, np.ndarray):
        with sixty_four_bits():
            return bindings().jax.device_put(x, place, may_alias=False)
    shape, sharding = _put_arguments(x.shape, x.dtype, place)
    client = bindings().client
    return client.batched_device_put(
        shape, sharding, [x], [place], force_copy=True, enable_x64=True,
        host_buffer_semantics=client.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)


@functools.lru_cache(maxsize=1024)
def _put_arguments(shape: tuple[int, ...], dtype: np.dtype[Any], place: Any) -> tuple[Any, Any]:
    jax = bindings().jax
    with sixty_four_bits():
        return jax.core.ShapedArray(shape, dtype), jax.sharding.SingleDeviceSharding(place)


def uploader(where: Device) -> Callable[[Any], Any]:
    return lambda x: upload(x, place_of(where))


def put(x: Any, where: Device, *, weak: bool = False) -> DeviceArray:
    """A copy of a NumPy array, a number or a buffer as a DeviceArray."""
    if is_jax_array(x):
        return DeviceArray(upload(x, place_of(where)), where, weak=weak)
    return DeviceArray(upload(np.asarray(x), place_of(where)), where, weak=weak)


def is_jax_array(x: Any) -> bool:
    """Whether x is one of jax's arrays; without importing jax."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)
