"""From loop-level IR to a compiled entry: emit source, load it through the cache, compile for one signature.

`EntryTable` is Numba's own dispatcher with overloads that we register; calls take its C path.  Argument types that
no overload serves raise `Miss`, which the caller's slow path turns into a specialisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core.registry import CPUDispatcher
from numba.np.numpy_support import from_dtype

from .transpiler.frontend.values import Leaf
from .arguments import layout
from .kernels.guard import Miss


class EntryTable(CPUDispatcher):  # type: ignore[misc]
    """Overloads by Numba types.  It never compiles by itself."""

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> Any:
        raise Miss

    def put(self, compiled: Any) -> None:
        """Register a compile result under its signature; the newest wins."""
        if tuple(compiled.signature.args) in self.overloads:
            del self.overloads[tuple(compiled.signature.args)]
        self.add_overload(compiled)


def numba_type(leaf: Leaf, value: Any) -> types.Type:
    """The Numba type of one flat argument, as Numba itself would find it for `value`; without an array at hand,
    `value` is its layout."""
    scalar = from_dtype(leaf.type.numpy)
    if isinstance(value, str):
        return types.Array(scalar, leaf.type.rank, value)
    if isinstance(value, np.ndarray):
        return types.Array(scalar, value.ndim, layout(value), readonly=not value.flags.writeable)
    return scalar


def compile_entry(entry: Any, signature: Sequence[types.Type]) -> Any:
    """Compile (or load from Numba's cache) the dispatcher `entry` for the signature; its compile result."""
    entry.compile(tuple(signature))
    return entry.overloads[tuple(signature)]
