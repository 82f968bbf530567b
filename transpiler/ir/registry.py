"""Operations by name.  `ops` fills it; the IR's operators, builder and parser look here, so that `ir` need
not import `ops`."""

from __future__ import annotations

from typing import Any

OPERATIONS: dict[str, Any] = {}


def register(op: Any) -> Any:
    if op.name in OPERATIONS:
        raise ValueError(f"operation {op.name!r} is registered twice")
    OPERATIONS[op.name] = op
    return op


def get(name: str) -> Any:
    return OPERATIONS[name]


def apply(name: str, *args: Any, **params: Any) -> Any:
    """Emit the operation at the current builder."""
    return OPERATIONS[name](*args, **params)
