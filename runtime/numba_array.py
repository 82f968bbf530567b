"""What Numba takes an `Array` for: an array type of its own.

A compiled entry made for ndarrays thus misses when it is called with an Array, and the call takes the way on which
results become Arrays.  In people's own `numba.njit` functions an Array is as good as an ndarray; results are ndarrays.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.datamodel.models import ArrayModel
from numba.extending import register_model, typeof_impl
from numba.np.numpy_support import from_dtype

from .array import Array


class ArrayType(types.Array):  # type: ignore[misc]
    """numba's `types.Array` under another name."""

    def __init__(self, dtype: Any, ndim: int, layout: Any, readonly: bool) -> None:
        name = f"gradsmith.Array({dtype}, {ndim}d, {layout}{', read-only' if readonly else ''})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name)

    def can_convert_to(self, context: Any, other: Any) -> Any:
        """To an ndarray of the same elements, at no cost."""
        return self.as_array.can_convert_to(context, other) if type(other) is types.Array else None

    @property
    def as_array(self) -> Any:
        return types.Array(self.dtype, self.ndim, self.layout, readonly=not self.mutable)


register_model(ArrayType)(ArrayModel)


@typeof_impl.register(Array)
def _type_of(value: Any, context: Any) -> Any:
    flags = value.flags
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return ArrayType(from_dtype(value.dtype), value.ndim, layout, not flags.writeable)
