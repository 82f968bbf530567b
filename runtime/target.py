"""Where a compiled function runs: `jit(f, target="xla")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .device import CPU, Device, parse_device
from .transpiler.emit.hlo_cast import CASTS, half_of
from .transpiler.errors import did_you_mean, error
from .transpiler.ir.types import Type


@dataclass(frozen=True)
class Target:
    """device: CPU is this machine through Numba.  checked: what the program raises is raised.  cast: the float type
    that all floats become there; None leaves them as they are.  max_trips: how often a `while` loop runs at most whose
    steps are saved for a derivative."""

    device: Device = CPU
    checked: bool = True
    cast: str | None = None
    max_trips: int | None = None

    def dtype(self, type: Type) -> np.dtype[Any]:
        """What arrays of a type are there; the type is one after floats were made single."""
        half = half_of(self.cast)
        return type.numpy if half is None or type.dtype != "float32" else dtype_named(half)

    @property
    def is_xla(self) -> bool:
        """Whether XLA compiles for it."""
        return self.device.platform != "cpu"


HERE = Target()


def dtype_named(name: str) -> np.dtype[Any]:
    """NumPy's dtype, also of bfloat16."""
    if name == "bfloat16":
        import ml_dtypes  # comes with jax
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def parse_target(text: str, checked: bool = True, cast: str | None = None, max_trips: int | None = None) -> Target:
    """"cpu", "xla", "xla:1", "tpu", ...  TranspileError (E604; ValueError) for anything else."""
    try:
        device = parse_device(text)
    except ValueError:
        raise error("E604", f"there is no target {text!r}", None, kind=ValueError, help=(
            did_you_mean(str(text), ("cpu", "xla", "tpu")) or 'targets are "cpu", "xla" and "tpu"')) from None
    if cast is not None and cast not in CASTS:
        raise error("E604", f"cast={cast!r} is no type that floats can become", None, kind=ValueError,
                    help=f"casts are {', '.join(map(repr, CASTS))}")
    if device == CPU and (cast is not None or max_trips is not None):
        name = "cast" if cast is not None else "max_trips"
        raise error("E604", f"{name} is for targets that XLA compiles for", None, kind=ValueError,
                    help='give a target, too: target="xla" or target="tpu"')
    return Target(device, checked, cast, max_trips)
