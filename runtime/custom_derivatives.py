"""JAX's module of this name: functions with rules of their own, and what rules get with `symbolic_zeros=True`."""

from __future__ import annotations

from .custom_rules import custom_jvp, custom_vjp
from .transpiler.frontend.symbolic_zeros import CustomVJPPrimal, SymbolicZero

__all__ = ["CustomVJPPrimal", "SymbolicZero", "custom_jvp", "custom_vjp"]
