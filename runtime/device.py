"""The devices that there are: this machine's CPU."""

from __future__ import annotations


class Device(str):
    """A device.  It is its platform's name too, as NumPy's `device=` arguments want it."""

    __slots__ = ()

    @property
    def platform(self) -> str:
        return str(self)

    device_kind = platform

    @property
    def id(self) -> int:
        return 0

    @property
    def process_index(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"


CPU = Device("cpu")
