"""From loop-level IR to a compiled entry: emit source, load it through the cache, compile for one signature.

`EntryTable` is Numba's own dispatcher with overloads that we register; calls take its C path.  Argument types that
no overload serves raise `Miss`, which the caller's slow path turns into a specialisation.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import warnings
from types import ModuleType
from typing import Any

import numpy as np
from numba import config, typeof, types
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaWarning
from numba.core.registry import CPUDispatcher, cpu_target
from numba.np.numpy_support import from_dtype

from . import (
    cache,
    numba_array,  # noqa: F401  (tells Numba what an Array is)
)
from .arguments import layout
from .codegen.library import compile_text, register_symbols
from .codegen.values import NotCovered
from .kernels.guard import Miss
from .log import logger
from .machine_code import MachineCode
from .registries import load_registries
from .transpiler import frontend, ops
from .transpiler.frontend.values import Leaf

ARRAY: Any = types.Array         # Numba's own hints know only some of their arguments and attributes
SETTINGS: Any = config


class EntryTable(CPUDispatcher):  # type: ignore[misc]
    """Overloads by Numba types.  It never compiles by itself."""

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> Any:
        raise Miss

    def typeof_pyval(self, val: Any) -> Any:
        """Numba asks here for what its C code does not know.  Its cache of the answers takes arrays of the other byte
        order for unaligned ones, so neither may get into it."""
        if isinstance(val, np.ndarray) and not (val.flags.aligned and val.dtype.isnative):
            raise Miss
        return super().typeof_pyval(val)

    def put(self, compiled: Any) -> None:
        """Register a compile result under its signature; the newest wins."""
        if tuple(compiled.signature.args) in self.overloads:
            del self.overloads[tuple(compiled.signature.args)]
        self.add_overload(compiled)


def numba_type(leaf: Leaf, value: Any) -> types.Type:
    """The Numba type of one flat argument, as Numba itself would find it for `value`; without an array at hand,
    `value` is its layout or its Numba type."""
    if isinstance(value, types.Type):
        return value
    scalar = from_dtype(leaf.type.numpy)
    if isinstance(value, str):
        return ARRAY(scalar, leaf.type.rank, value)
    if isinstance(value, np.ndarray):
        return ARRAY(scalar, value.ndim, layout(value), readonly=not value.flags.writeable)
    return scalar


@functools.lru_cache(maxsize=4096)
def compile_entry(entry: Any, signature: tuple[types.Type, ...], text: str) -> Entry:
    """The function of a generated module with this text, compiled (or its machine code loaded) for this signature.

    Functions that came to the same module share what this returns.
    """
    if SETTINGS.DISABLE_JIT:
        load_registries()
        return PlainTable(entry, signature)
    stored = None if isinstance(entry._cache, NullCache) else MachineCode(entry.py_func)
    with global_compiler_lock:
        compiled = _machine_code(entry, signature, text, stored)
    table = EntryTable(entry.py_func, targetoptions={"nopython": True, "nogil": True, "error_model": "numpy"})
    table.put(compiled)
    return table


def _machine_code(entry: Any, signature: tuple[types.Type, ...], text: str, stored: MachineCode | None) -> Any:
    """A compile result of Numba's: from the disk, else made from the text, else by Numba."""
    context = cpu_target.target_context
    found = None
    if stored is not None:
        found = stored.load_overload(signature, context)
    if found is None:
        try:
            found = compile_text(text, entry.py_func, signature, entry.targetoptions)
        except NotCovered as reason:
            logger.debug("%s is compiled by Numba: %s", entry.py_func.__name__, reason)
            return _by_numba(entry, signature, stored)
        if stored is not None:
            stored.save_overload(signature, found)
    context.insert_user_function(found.entry_point, found.fndesc, [found.library])
    return found


def _by_numba(entry: Any, signature: tuple[types.Type, ...], stored: MachineCode | None) -> Any:
    """The wrapper for C callers is left out: nobody calls through it, and it takes a tenth of the time."""
    load_registries()
    dispatcher: Any = CPUDispatcher(entry.py_func, targetoptions={**entry.targetoptions, "no_cfunc_wrapper": True})
    if stored is not None:
        dispatcher._cache = stored
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*Code running in object mode", NumbaWarning)       # it prints
        dispatcher.compile(signature)
    return dispatcher.overloads[signature]


class PlainTable:
    """The same in plain Python, for debuggers (`NUMBA_DISABLE_JIT=1`)."""

    def __init__(self, function: Any, signature: tuple[types.Type, ...]) -> None:
        self.function, self.overloads = function, {signature: function}

    def __call__(self, *args: Any) -> Any:
        if tuple(map(typeof, args)) not in self.overloads:
            raise Miss
        return self.function(*args)


Entry = EntryTable | PlainTable


class ByTypes:
    """The function of a generated module, compiled for whatever types it is called with."""

    def __init__(self, text: str, name: str, reason: str) -> None:
        self.text, self.name, self.reason = text, name, reason
        self.table: Entry | None = None

    def __call__(self, *args: Any) -> Any:
        if self.table is not None:
            try:
                return self.table(*args)
            except Miss:
                pass
        return self._compiled(tuple(map(typeof, args)))(*args)

    def _compiled(self, signature: tuple[types.Type, ...]) -> Entry:
        entry = function_of(self.text, cache.load(self.text, self.name, self.reason, str(signature)))
        made = compile_entry(entry, signature, self.text)
        if isinstance(made, EntryTable):
            if not isinstance(self.table, EntryTable):
                self.table = EntryTable(entry.py_func)
            self.table.put(made.overloads[signature])
        return made


def function_of(text: str, module: ModuleType) -> Any:
    """The function that the module is about, the last of its text."""
    return getattr(module, re.findall(r"^def (\w+)\(", text, re.MULTILINE)[-1])


@functools.cache
def prepare() -> None:
    """Everything that the first compilation of a process would do besides compiling; done when the package is
    imported, so that the first call is no slower than later ones."""
    ops.load_table()
    for module in pkgutil.iter_modules(frontend.__path__, f"{frontend.__name__}."):
        importlib.import_module(module.name)        # they import one another where they are first needed
    for name in ("gradsmith.kernels.blas", "numpy.ma"):     # Numba asks for the latter when it sees the first array
        importlib.import_module(name)
    register_symbols()
    cpu_target.target_context.codegen()
