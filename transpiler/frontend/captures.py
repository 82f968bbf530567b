"""Values from outside of the function: globals, closure cells, attributes of modules and objects, default values.

Floats and arrays become hidden parameters, so that a changed global is seen by the next call.  Everything else is
known while transpiling and guarded.
"""

from __future__ import annotations

import builtins
import dataclasses
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.build import Names
from ..ir.dims import DimExpr, symbol, symbols_of
from ..ir.nodes import Var
from ..ir.types import Type
from ..ops.spelling import Weak
from .guards import Access, Assumptions, Capture, StaticGuard
from .outside import Outside
from .stand_ins import is_array, numpys_own
from .values import LIBRARIES, ArrayRef, Leaf, OuterDict, OuterList, from_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping

CONSTANTS = (bool, int, str, bytes, type(None), type(Ellipsis), range, slice, np.dtype, frozenset)


def dtype_name(dtype: np.dtype[Any]) -> str | None:
    """The name of a dtype that IR values can have."""
    return dtype.name if dtype.kind in "biuc" or dtype.name in ("float16", "float32", "float64") else None


class Captures:
    """All that one trace took from outside, each thing once."""

    def __init__(self, names: Names, assumptions: Assumptions, sizes: Mapping[str, Any],
                 static: frozenset[tuple[Any, ...]] = frozenset(), outside: Outside | None = None) -> None:
        self.names, self.assumptions, self.sizes, self.static = names, assumptions, sizes, static
        self.outside = Outside() if outside is None else outside
        self.captures: list[Capture] = []
        self.params: list[Var] = []
        self.guards: dict[tuple[Any, ...], StaticGuard] = {}
        self.origins: dict[Var, Capture] = {}
        self._known: dict[tuple[Any, ...], Any] = {}
        self._arrays: dict[int, ArrayRef] = {}
        self._kept_alive: list[Any] = []          # ids are keys above

    def guard(self, access: Access, kind: str, expected: Any) -> None:
        self.guards.setdefault((*access.key, kind), StaticGuard(access, kind, expected))

    def take(self, value: Any, access: Access) -> Any:
        """The abstract value of what `access` gives."""
        key = access.key
        if key not in self._known:
            self._kept_alive += [access.root, value]
            self._known[key] = self._take(value, access)
        return self._known[key]

    def _take(self, value: Any, access: Access) -> Any:
        value = numpys_own(value)
        kind = type(value)
        if isinstance(value, Leaf):
            raise TypeError("a Leaf cannot be captured")
        if kind in (float, complex):
            return self._scalar(value, access, weak=True)
        if isinstance(value, np.generic) and value.dtype.kind in "fc" and dtype_name(value.dtype):
            return self._scalar(value, access, weak=False)
        if is_array(value) and dtype_name(value.dtype):
            return self._array(value, access)
        if kind in CONSTANTS or isinstance(value, np.generic):
            self.guard(access, "equal", value)
            return value
        if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(value, "_fields")):
            self.guard(access, "length", (kind, len(value)))
            parts = [self.take(v, access.then("item", k)) for k, v in enumerate(value)]
            return OuterList(parts) if kind is list else tuple(parts) if kind is tuple else kind._make(parts)
        if kind is dict:
            self.guard(access, "keys", tuple(value))
            return OuterDict({k: self.take(v, access.then("key", k)) for k, v in value.items()})
        if kind is set:
            self.guard(access, "equal", set(value))
            return frozenset(value)
        if not _is_steady(value):
            self.guard(access, "is", value)
        return value

    def _scalar(self, value: Any, access: Access, weak: bool) -> Any:
        type_ = Type(np.asarray(value).dtype.name)
        if access.key in self.static:
            self.guard(access, "equal", value)
            return value
        var = self._parameter(access, type_, weak)
        return Weak(var) if weak else var

    def _array(self, value: np.ndarray[Any, Any], access: Access) -> Any:
        if id(value) in self._arrays:
            self.guard(access, "is", value)         # one array under two names, which may be bound anew each by itself
            return self._arrays[id(value)]
        if access.key in self.static or (value.ndim == 0 and value.dtype.kind in "bi"):
            self.guard(access, "array", np.array(value))
            made = from_numpy(np.asarray(value))
            if isinstance(made, ArrayRef):
                made.owner = "captured"
        else:
            shape = tuple(self._size(access.name, axis, size) for axis, size in enumerate(value.shape))
            var = self._parameter(access, Type(value.dtype.name, shape), weak=False)
            made = ArrayRef(var, owner="captured" if value.flags.writeable else "read-only") if value.ndim else var
            if isinstance(made, ArrayRef):
                self.outside.add(var, made)
            else:
                self.outside.numbers.add(var)
        if isinstance(made, ArrayRef):
            self._arrays[id(value)] = made
        return made

    def _size(self, name: str, axis: int, size: int) -> Any:
        if size in (0, 1):
            return size
        symbol_name = f"n_{name}_{axis}" if axis else f"n_{name}"
        taken = {s for capture in self.captures for d in capture.type.shape for s in (str(d),)}
        while symbol_name in taken:
            symbol_name += "_"
        self.names.taken.add(symbol_name)
        self.assumptions.sizes[symbol_name] = size
        found = self.sizes.get(symbol_name, symbol(symbol_name))
        if isinstance(found, DimExpr) and str(found) in symbols_of(found):      # of a capture that is yet to come
            self.assumptions.sizes.setdefault(str(found), size)
        return found

    def _parameter(self, access: Access, type_: Type, weak: bool) -> Var:
        var = Var(self.names.fresh(access.name), type_)
        capture = Capture(access, type_, weak, var.name)
        self.captures.append(capture)
        self.params.append(var)
        self.origins[var] = capture
        return var


def _is_steady(value: Any) -> bool:
    """Modules, builtins and what libraries define: nobody rebinds those, so no guard is spent on them."""
    if isinstance(value, (types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        return True
    module = getattr(value, "__module__", None)
    if callable(value) and hasattr(value, "__name__"):         # an object that can be called has none
        return isinstance(module, str) and module.partition(".")[0] in LIBRARIES and not dataclasses.is_dataclass(
            value) and not hasattr(value, "__gradsmith_transformed__")
    return False


def global_access(namespace: dict[str, Any], name: str) -> Access:
    return Access(namespace, (("key", name),))


def is_builtin(value: Any) -> bool:
    return getattr(builtins, getattr(value, "__name__", ""), None) is value
