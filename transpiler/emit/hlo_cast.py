"""A func in a shorter float type than the user's: for machines that lack float64, or are fast in less.

    x: f64[3]    y = sum(x) + 0.1           x: f32[3]    y = sum(x) + 0.1 (rounded)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import error
from ..ir.build import Names, building
from ..ir.library import Program, each_func
from ..ir.nodes import Block, Const, Func, Value
from ..ir.types import Type
from ..ir.walk import Copier

SHORTER = {"float64": "float32", "complex128": "complex64"}
CASTS = {"f32": None, "float32": None, "f16": "float16", "float16": "float16", "bf16": "bfloat16",
         "bfloat16": "bfloat16"}


def half_of(cast: str | None) -> str | None:
    """What float32 is then written as, for "f16" and "bf16".  TranspileError (E207) for what is no float type."""
    if cast is None:
        return None
    if cast not in CASTS:
        raise error("E207", f"cast={cast!r} is not a float type to write a module in", None,
                    help='give "f32", "f16" or "bf16"', kind=ValueError)
    return CASTS[cast]


def in_single_precision(program: Program) -> Program:
    """Every float64 as float32, every complex128 as complex64; constants are rounded."""
    return each_func(program, _cast)


def _cast(func: Func) -> Func:
    with building(Names()) as b:
        copier = _Caster()
        params = copier.bind_all(func.params)
        for stmt in func.body.stmts:
            copier.statement(stmt)
        results = tuple(copier.value(r) for r in func.results)
    effects = tuple(params[func.params.index(p)] for p in func.effects)
    return replace(func, params=params, body=Block(tuple(b.stmts), results), effects=effects)


class _Caster(Copier):
    def value(self, value: Value) -> Value:
        if isinstance(value, Const) and value.type.dtype in SHORTER:
            type = self.type(value.type)
            with np.errstate(over="ignore"):
                return Const(type.numpy.type(value.value).item(), type)
        return super().value(value)

    def type(self, type: Type) -> Type:
        return type.with_dtype(SHORTER.get(type.dtype, type.dtype))

    def params(self, params: Any) -> dict[str, Any]:
        return {k: SHORTER.get(v, v) if isinstance(v, str) else v for k, v in params.items()}


def shorter(dtype: str) -> str:
    return SHORTER.get(dtype, dtype)

