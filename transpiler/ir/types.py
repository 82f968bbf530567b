"""Types of IR values: a NumPy dtype and a shape of (symbolic) dimensions.  A scalar is an array of rank 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dims import DimExpr, is_dim, substitute

SHORT = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64",
    "complex128": "c128",
}
LONG = {short: long for long, short in SHORT.items()}


@dataclass(frozen=True, slots=True)
class Type:
    """dtype: NumPy's name ("float64").  shape: a tuple of ints and `DimExpr`s."""

    dtype: str
    shape: tuple[Any, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)

    @property
    def kind(self) -> str:
        """NumPy's kind letter: b, i, u, f or c."""
        return self.numpy.kind

    @property
    def is_inexact(self) -> bool:
        return self.kind in "fc"

    def with_shape(self, shape: tuple[Any, ...]) -> Type:
        return Type(self.dtype, tuple(shape))

    def with_dtype(self, dtype: str) -> Type:
        return Type(dtype, self.shape)

    @property
    def scalar(self) -> Type:
        return Type(self.dtype)

    def __str__(self) -> str:
        dims = ",".join(str(d) for d in self.shape)
        return SHORT[self.dtype] + (f"[{dims}]" if self.shape else "")


def scalar(dtype: str) -> Type:
    return Type(dtype)


F64, I64, BOOL = Type("float64"), Type("int64"), Type("bool")


def map_dims(value: Any, sizes: Callable[[Any], Any]) -> Any:
    """Replace dimensions inside a type, a shape or any parameter of an operation.

    `sizes` is what `dims.substitute` takes.  Parameters hold dimensions bare, in tuples, or in objects with a
    `map_dims` method of their own.
    """
    if isinstance(value, DimExpr):
        return substitute(value, sizes)
    if isinstance(value, Type):
        return Type(value.dtype, tuple(substitute(d, sizes) for d in value.shape)) if value.shape else value
    if isinstance(value, tuple):
        return tuple(map_dims(v, sizes) for v in value)
    if hasattr(value, "map_dims"):
        return value.map_dims(sizes)
    return value


def dims_in(value: Any) -> list[Any]:
    """Every dimension inside a type or a parameter, in order."""
    found: list[Any] = []

    def note(dim: Any) -> Any:
        found.append(dim)
        return dim

    _visit(value, note)
    return found


def _visit(value: Any, note: Callable[[Any], Any]) -> None:
    if is_dim(value):
        note(value)
    elif isinstance(value, Type):
        for d in value.shape:
            note(d)
    elif isinstance(value, tuple):
        for v in value:
            _visit(v, note)
    elif hasattr(value, "dims"):
        for d in value.dims():
            note(d)
