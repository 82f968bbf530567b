"""NumPy's iterators over all places of an array: `np.ndindex`, `np.ndenumerate`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.dims import is_dim
from ..ops.base import RuleError
from .indexing import get_item
from .iteration import Sequence, iterate
from .numpy_calls import not_supported
from .operators import BY_FUNCTION, binary
from .python_functions import means
from .values import ArrayRef

if TYPE_CHECKING:
    from .interpreter import Interpreter

TIMES, QUOTIENT, REST = BY_FUNCTION[operator.mul], BY_FUNCTION[operator.floordiv], BY_FUNCTION[operator.mod]


@means(np.ndindex)
def _ndindex(it: Interpreter, *sizes: Any) -> Sequence:
    if len(sizes) == 1 and not is_dim(sizes[0]):
        sizes = tuple(iterate(it, sizes[0]))
    return places(it, sizes)


@means(np.ndenumerate)
def _ndenumerate(it: Interpreter, array: Any) -> Sequence:
    if not isinstance(array, ArrayRef):
        raise not_supported(np.ndenumerate)
    every = places(it, array.shape)

    def item(k: Any) -> tuple[Any, Any]:
        place = every.item(k)
        return place, get_item(it, array, place)

    return Sequence(it, every.length, item, (array,))


@means(np.nditer)
def _nditer(it: Interpreter, *args: Any, **kwargs: Any) -> Any:
    raise RuleError("np.nditer is not supported", kind=NotImplementedError, code="E202",
                    help="go over `x.flat`, np.ndenumerate(x) or np.ndindex(x.shape)")


def places(it: Interpreter, sizes: tuple[Any, ...]) -> Sequence:
    """The index tuples of an array of these sizes, the last index fastest."""
    count: Any = 1
    for size in sizes:
        count = binary(it, TIMES, count, size)

    def item(k: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for size in sizes[:0:-1]:
            found.append(binary(it, REST, k, size))
            k = binary(it, QUOTIENT, k, size)
        return (*([k] if sizes else []), *reversed(found))

    return Sequence(it, count, item, ())
