"""The operation table.  `ops.tanh(x)` emits the operation at the current builder; families are in their own files.

Rules reach other operations as `ops.sum(...)`, through this module, so that families do not import each other.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..ir.registry import OPERATIONS as _OPERATIONS

FAMILIES = ("arithmetic", "conversion", "elementary", "comparison", "rounding", "special", "shape", "joining", "creation",
            "indexing", "reduction", "statistics", "scan", "linalg", "products")


def load_table() -> None:
    """Import every family; done once, on first use of any operation by name."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name in FAMILIES or name in ("base", "families", "spelling"):
        raise AttributeError(name)
    if name not in _OPERATIONS:
        load_table()
    try:
        return _OPERATIONS[name]
    except KeyError:
        raise AttributeError(f"no operation named {name!r}") from None
