"""What a generated function that writes to its arguments checks of them on entry, where nobody did before it."""

from __future__ import annotations

from ..ir.nodes import Func, Module


def sharing_conditions(func: Func | Module) -> list[str]:
    """No argument that is written to shares memory with another one, or with itself."""
    arrays = [param for param in func.params if param.type.shape]
    found = [f"distinct({param.name})" for param in func.effects]
    pairs = dict.fromkeys(frozenset((param, other)) for param in func.effects for other in arrays if other is not param)
    for pair in pairs:
        a, b = (param.name for param in arrays if param in pair)
        found.append(f"apart({a}, {b})")
    return found
