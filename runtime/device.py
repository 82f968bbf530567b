"""Devices: this machine's CPU, and those that XLA runs on, which are named `xla:0`, `xla:1`, `tpu:0`."""

from __future__ import annotations

PLATFORMS = ("cpu", "xla", "tpu")


class Device(str):
    """A device.  It is its platform's name too, as NumPy's `device=` arguments want it."""

    __slots__ = ()

    @property
    def platform(self) -> str:
        return str(self).partition(":")[0]

    device_kind = platform

    @property
    def id(self) -> int:
        """Its number among those of its platform."""
        return int(str(self).partition(":")[2] or 0)

    @property
    def process_index(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"


CPU = Device("cpu")


def parse_device(text: str) -> Device:
    """`cpu`, `xla`, `xla:1`, ... with the number put in.  ValueError for anything else."""
    platform, colon, number = str(text).partition(":")
    if platform not in PLATFORMS or (colon and not number.isdecimal()) or (platform == "cpu" and int(number or 0)):
        raise ValueError(f"there is no device {text!r}: devices are 'cpu', 'xla:0' (the CPU, through XLA) and 'tpu:0'")
    return CPU if platform == "cpu" else Device(f"{platform}:{int(number or 0)}")
