"""A call's arguments as the transpiler sees them: run-time leaves with types, the rest static.

`describe` is the slow path's first step.  Its `key` decides which specialisation can serve: the tree, each leaf's
dtype, rank, layout and which sizes are 0 or 1, and every static value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .array import Array
from .device_array import DeviceArray, adopted
from .transpiler.emit.hlo_types import HALVES
from .transpiler.errors import error
from .transpiler.frontend.pytrees import Node, registered, taken_apart
from .transpiler.frontend.values import Leaf
from .transpiler.ir.dims import symbol
from .transpiler.ir.types import Type

DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
          "complex64", "complex128"}
CONSTANTS = {str, bytes, bool, int, float, complex, type(None), type(Ellipsis), range, frozenset}
SIZE_NAMES = ("n", "m", "k", "p", "q", "r", "s")
PYTHON = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


@dataclass(frozen=True)
class Described:
    """args, kwargs: the trees with `Leaf`s for run-time parts.  leaves: those Leafs, in order.  values: what they
    hold in this call, Arrays as NumPy's own.  key: equal for calls that the same specialisation may serve.
    has_arrays: an Array was among them, so that results are Arrays.  copied: arrays that had to be copied into
    `values`, with their copies."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Leaf]
    values: list[Any]
    key: Any
    has_arrays: bool = False
    copied: Sequence[tuple[Any, np.ndarray[Any, Any]]] = ()


@dataclass(frozen=True)
class Static:
    """Arguments that are known while compiling, by position (from the end, too) and by name."""

    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def has(self, number: int, name: str, count: int) -> bool:
        return name in self.names or number in self.numbers or number - count in self.numbers


NOTHING_STATIC = Static()


def describe(args: Sequence[Any], kwargs: dict[str, Any], parameters: Sequence[str] = (),
             static: Static = NOTHING_STATIC, exact: bool = False) -> Described:
    """Take the arguments apart; `parameters` are the names of the positional ones.

    exact: for a machine whose code is for sizes that are numbers.  All sizes are then part of the types, and arrays of
    its devices stay there.
    TranspileError: TypeError for dtypes and array classes that have no meaning here, ValueError for static arguments
    that cannot be hashed.
    """
    names = [*parameters[:len(args)], *(f"argument {k}" for k in range(len(parameters), len(args)))]
    maker = _Maker(exact)
    new_args = tuple(maker.static(arg, name) if static.has(k, name, len(args)) else maker.visit(arg, name)
                     for k, (arg, name) in enumerate(zip(args, names, strict=True)))
    new_kwargs = {name: maker.static(arg, name) if name in static.names else maker.visit(arg, name)
                  for name, arg in kwargs.items()}
    return Described(new_args, new_kwargs, maker.leaves, maker.values,
                     (tuple(maker.key), tuple(kwargs), len(args)), maker.has_arrays, maker.copied)


class _Maker:
    """halves: whether arrays may come in half precision."""

    halves = False

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact
        if exact:
            self.halves = True
        self.leaves: list[Leaf] = []
        self.values: list[Any] = []
        self.key: list[Any] = []
        self.has_arrays = False
        self.copied: list[tuple[Any, np.ndarray[Any, Any]]] = []
        self._sizes: Iterator[str] = _size_names()

    def visit(self, x: Any, name: str) -> Any:
        kind = type(x)
        if kind in PYTHON:
            if kind is int and not -2 ** 63 <= x < 2 ** 63:
                raise error("E307", f"{name} is an int of more than 64 bits, which is not supported", None,
                            help="pass a float", kind=OverflowError)
            return self._leaf(Leaf(Type(PYTHON[kind]), True, x), x, (kind,))
        if isinstance(x, np.ndarray):
            return self._array(x, name)
        if isinstance(x, np.generic):
            return self._leaf(self._typed(x.dtype, (), name, example=x), x, ("scalar", x.dtype.name))
        if self.exact:
            x = adopted(x)
            kind = type(x)
        if kind is DeviceArray:
            return self._on_device(x, name)
        if isinstance(x, dict):
            self.key += [kind, tuple(x)]
            return _like(x, {k: self.visit(v, f"{name}[{k!r}]") for k, v in x.items()})
        if isinstance(x, (tuple, list)):
            self.key += [kind, len(x)]
            parts = [self.visit(v, f"{name}[{k}]") for k, v in enumerate(x)]
            return kind._make(parts) if hasattr(kind, "_make") else kind(parts)  # type: ignore[attr-defined]
        how = registered(kind)
        if how is not None:
            return self._node(taken_apart(x, how), name)
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            fields = [f.name for f in dataclasses.fields(x)]
            self.key += [kind, len(fields)]
            made = object.__new__(kind)
            for field in fields:
                object.__setattr__(made, field, self.visit(getattr(x, field), f"{name}.{field}"))
            return made
        self.key.append(_static_key(x))
        return x

    def _node(self, node: Node, name: str) -> Node:
        self.key += [node.cls, "node", _aux_key(node.aux), len(node.children)]
        children = tuple(self.visit(v, f"{name}[{k}]") for k, v in enumerate(node.children))
        return Node(node.cls, node.aux, children)

    def static(self, x: Any, name: str) -> Any:
        """An argument that the user says is known while compiling."""
        try:
            hash(x)
        except TypeError:
            raise error("E307", f"{name} is static, but a {type(x).__name__} cannot be hashed", None,
                        help="pass a tuple or a frozen object, or leave it out of static_argnums",
                        kind=ValueError) from None
        self.key.append(("static", _static_key(x)))
        return x

    def _leaf(self, leaf: Leaf, value: Any, key: Any) -> Leaf:
        self.leaves.append(leaf)
        self.values.append(value)
        self.key.append(key)
        return leaf

    def _array(self, x: np.ndarray[Any, Any], name: str) -> Leaf:
        if type(x) is not np.ndarray:
            x = self._as_ndarray(x, name)
        leaf = self._typed(x.dtype, (), name)
        if not x.flags.aligned:
            original, x = x, x.copy("K")
            x.flags.writeable = original.flags.writeable
            self.copied.append((original, x))
        shape = x.shape if self.exact else tuple(d if d < 2 else symbol(next(self._sizes)) for d in x.shape)
        pattern = x.shape if self.exact else tuple(d if d < 2 else -1 for d in x.shape)
        leaf = dataclasses.replace(leaf, type=leaf.type.with_shape(shape), example=x, writable=x.flags.writeable)
        return self._leaf(leaf, x, ("array", leaf.stored or leaf.type.dtype, pattern, layout(x), x.flags.writeable))

    def _on_device(self, x: DeviceArray, name: str) -> Leaf:
        """It stays there for code that runs there; for other code it is copied, and what is written to it, back."""
        self.has_arrays = True
        if self.exact:
            return self._leaf(self._typed(x.dtype, x.shape, name, weak=x.is_weak, layout="C"), x,
                              ("device", x.dtype.name, x.shape, x.is_weak))
        if x.is_weak:
            made: Leaf = self.visit(x.item(), name)
            return made
        here = np.array(x)
        self.copied.append((x, here))
        return self._array(here, name)

    def _as_ndarray(self, x: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        """The elements of an array of another class, where arithmetic on it means the same."""
        if type(x) is Array:
            self.has_arrays = True
        elif not isinstance(x, np.memmap):
            raise error("E307", f"{name} is a {type(x).__module__}.{type(x).__qualname__}, whose arithmetic is its own",
                        None, help="pass a plain array: numpy.asarray(x)", kind=TypeError)
        return x.view(np.ndarray)

    def _typed(self, dtype: np.dtype[Any], shape: tuple[Any, ...], name: str, **more: Any) -> Leaf:
        """A leaf of the dtype; one of half precision is read as float32."""
        if self.halves and dtype.name in HALVES:
            return Leaf(Type("float32", shape), stored=dtype.name, **more)
        return Leaf(Type(self._dtype(dtype, name), shape), **more)

    @staticmethod
    def _dtype(dtype: np.dtype[Any], name: str) -> str:
        if dtype.name not in DTYPES or not dtype.isnative:
            raise error("E307", f"{name} has dtype {dtype}, which is not supported", None,
                        help='half precision is for XLA: jit(f, target="xla"); else use float32'
                        if dtype.name in HALVES else "use bool, integers, float32, float64 or complex arrays",
                        kind=TypeError)
        return dtype.name


def _like(x: dict[Any, Any], parts: dict[Any, Any]) -> Any:
    if type(x) is dict:
        return parts
    made = type(x).__new__(type(x))
    for key, part in parts.items():
        made[key] = part
    return made


def layout(x: np.ndarray[Any, Any]) -> str:
    """"C", "F" or "A", as Numba types arrays."""
    return "C" if x.flags.c_contiguous else "F" if x.flags.f_contiguous else "A"


def _static_key(x: Any) -> Any:
    """A hashable stand-in: equal means the same static value.  Objects of people's own classes are themselves alone,
    because what they call equal may differ in what the function reads."""
    if type(x) in CONSTANTS or isinstance(x, (type, np.dtype)):
        return (type(x), x)
    if isinstance(x, tuple):
        return (type(x), *map(_static_key, x))
    if dataclasses.is_dataclass(x):
        return (type(x), *(_static_key(getattr(x, field.name)) for field in dataclasses.fields(x)))
    return _Same(x)


def _aux_key(x: Any) -> Any:
    """The same of what a registered class keeps beside its children, which is made anew for every call."""
    if isinstance(x, dict):
        return (type(x), *((_static_key(k), _aux_key(v)) for k, v in x.items()))
    if isinstance(x, (list, tuple)):
        return (type(x), *map(_aux_key, x))
    return _static_key(x)


class _Same:
    """Equal for the same object alone, which is kept alive."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __hash__(self) -> int:
        return id(self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.x is other.x


def _size_names() -> Iterator[str]:
    yield from SIZE_NAMES
    count = 1
    while True:
        for name in SIZE_NAMES:
            yield f"{name}{count}"
        count += 1
