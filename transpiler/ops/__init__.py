"""The operation table.  `ops.tanh(x)` emits the operation at the current builder; families are in their own files.

Rules reach other operations as `ops.sum(...)`, through this module, so that families do not import each other.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ..ir.registry import OPERATIONS as _OPERATIONS

FAMILIES = tuple(sorted(module.name for module in iter_modules(__path__)))


def load_table() -> None:
    """Import every module of this folder: each registers its operations and spellings."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name in FAMILIES:
        raise AttributeError(name)
    if name not in _OPERATIONS:
        load_table()
    try:
        return _OPERATIONS[name]
    except KeyError:
        raise AttributeError(f"no operation named {name!r}") from None
