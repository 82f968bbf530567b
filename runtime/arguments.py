"""A call's arguments as the transpiler sees them: run-time leaves with types, the rest static.

`describe` is the slow path's first step.  Its `key` decides which specialisation can serve: the tree, each leaf's
dtype, rank, layout and which sizes are 0 or 1, and every static value.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import Array
from .transpiler.errors import error
from .transpiler.frontend.values import Leaf
from .transpiler.ir.dims import symbol
from .transpiler.ir.types import Type

DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
          "complex64", "complex128"}
SIZE_NAMES = ("n", "m", "k", "p", "q", "r", "s")
PYTHON = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


@dataclass(frozen=True)
class Described:
    """args, kwargs: the trees with `Leaf`s for run-time parts.  leaves: those Leafs, in order.  values: what they
    hold in this call, Arrays as NumPy's own.  key: equal for calls that the same specialisation may serve.
    has_arrays: an Array was among them, so that results are Arrays."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Leaf]
    values: list[Any]
    key: Any
    has_arrays: bool = False


def describe(args: Sequence[Any], kwargs: dict[str, Any], signature: inspect.Signature | None = None) -> Described:
    """Take the arguments apart.  TranspileError (TypeError) for dtypes that have no meaning here."""
    names = _names(args, signature)
    maker = _Maker()
    new_args = tuple(maker.visit(arg, name) for arg, name in zip(args, names, strict=True))
    new_kwargs = {name: maker.visit(arg, name) for name, arg in kwargs.items()}
    return Described(new_args, new_kwargs, maker.leaves, maker.values,
                     (tuple(maker.key), tuple(kwargs), len(args)), maker.has_arrays)


def _names(args: Sequence[Any], signature: inspect.Signature | None) -> list[str]:
    known = [p.name for p in signature.parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)] if signature else []
    return (known + [f"argument {k}" for k in range(len(known), len(args))])[:len(args)]


class _Maker:
    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.values: list[Any] = []
        self.key: list[Any] = []
        self.has_arrays = False
        self._sizes: Iterator[str] = _size_names()

    def visit(self, x: Any, name: str) -> Any:
        kind = type(x)
        if kind in PYTHON:
            return self._leaf(Leaf(Type(PYTHON[kind]), True, x), x, (kind,))
        if isinstance(x, np.ndarray):
            return self._array(x, name)
        if isinstance(x, np.generic):
            return self._leaf(Leaf(Type(self._dtype(x.dtype, name)), False, x), x, ("scalar", x.dtype.name))
        if isinstance(x, dict):
            self.key += [kind, tuple(x)]
            return _like(x, {k: self.visit(v, f"{name}[{k!r}]") for k, v in x.items()})
        if isinstance(x, (tuple, list)):
            self.key += [kind, len(x)]
            parts = [self.visit(v, f"{name}[{k}]") for k, v in enumerate(x)]
            return kind._make(parts) if hasattr(kind, "_make") else kind(parts)  # type: ignore[attr-defined]
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            fields = [f.name for f in dataclasses.fields(x)]
            self.key += [kind, len(fields)]
            made = object.__new__(kind)
            for field in fields:
                object.__setattr__(made, field, self.visit(getattr(x, field), f"{name}.{field}"))
            return made
        self.key.append(_static_key(x))
        return x

    def _leaf(self, leaf: Leaf, value: Any, key: Any) -> Leaf:
        self.leaves.append(leaf)
        self.values.append(value)
        self.key.append(key)
        return leaf

    def _array(self, x: np.ndarray[Any, Any], name: str) -> Leaf:
        if type(x) is Array:
            self.has_arrays = True
            x = x.view(np.ndarray)
        dtype = self._dtype(x.dtype, name)
        shape = tuple(d if d < 2 else symbol(next(self._sizes)) for d in x.shape)
        pattern = tuple(d if d < 2 else -1 for d in x.shape)
        return self._leaf(Leaf(Type(dtype, shape), False, x), x,
                          ("array", dtype, pattern, layout(x), x.flags.writeable))

    @staticmethod
    def _dtype(dtype: np.dtype[Any], name: str) -> str:
        if dtype.name not in DTYPES or not dtype.isnative:
            raise error("E307", f"{name} has dtype {dtype}, which is not supported", None,
                        help="use bool, integers, float32, float64 or complex arrays", kind=TypeError)
        return dtype.name


def _like(x: dict[Any, Any], parts: dict[Any, Any]) -> Any:
    if type(x) is dict:
        return parts
    made = type(x).__new__(type(x))
    dict.update(made, parts)
    return made


def layout(x: np.ndarray[Any, Any]) -> str:
    """"C", "F" or "A", as Numba types arrays."""
    return "C" if x.flags.c_contiguous else "F" if x.flags.f_contiguous else "A"


def _static_key(x: Any) -> Any:
    """A hashable stand-in: equal means the same static value."""
    try:
        hash(x)
    except TypeError:
        return ("object", id(x))
    return (type(x), x)


def _size_names() -> Iterator[str]:
    yield from SIZE_NAMES
    count = 1
    while True:
        for name in SIZE_NAMES:
            yield f"{name}{count}"
        count += 1


def sizes_of(leaves: Sequence[Leaf], values: Sequence[Any]) -> dict[str, int]:
    """The actual sizes of the symbols in the leaves' types; int leaves are not among them."""
    found: dict[str, int] = {}
    for leaf, value in zip(leaves, values, strict=True):
        if leaf.type.shape:
            found.update((str(d), s) for d, s in zip(leaf.type.shape, value.shape, strict=True)
                         if not isinstance(d, int))
    return found


