"""Where a compiled function runs: `jit(f, target="xla")`."""

from __future__ import annotations

from dataclasses import dataclass

from .device import CPU, Device, parse_device
from .transpiler.errors import did_you_mean, error

CASTS = ("f32", "f16", "bf16")


@dataclass(frozen=True)
class Target:
    """device: CPU is this machine through Numba.  checked: what the program raises is raised.  cast: the float type
    that all floats become there; None leaves them as they are."""

    device: Device = CPU
    checked: bool = True
    cast: str | None = None

    @property
    def is_xla(self) -> bool:
        """Whether XLA compiles for it."""
        return self.device.platform != "cpu"


HERE = Target()


def parse_target(text: str, checked: bool = True, cast: str | None = None) -> Target:
    """"cpu", "xla", "xla:1", "tpu", ...  TranspileError (E604; ValueError) for anything else."""
    try:
        device = parse_device(text)
    except ValueError:
        raise error("E604", f"there is no target {text!r}", None, kind=ValueError, help=(
            did_you_mean(str(text), ("cpu", "xla", "tpu")) or 'targets are "cpu", "xla" and "tpu"')) from None
    if cast is not None and cast not in CASTS:
        raise error("E604", f"cast={cast!r} is no type that floats can become", None, kind=ValueError,
                    help=f"casts are {', '.join(map(repr, CASTS))}")
    if cast is not None and device == CPU:
        raise error("E604", "cast is for targets that XLA compiles for", None, kind=ValueError,
                    help='give a target, too: target="xla" or target="tpu"')
    return Target(device, checked, cast)
