"""Going over things: what Python's `for`, stars, comprehensions and unpacking see."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Iterator as PythonIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import error
from ..ir import dims
from ..ir.dims import DimExpr, is_dim
from ..ir.nodes import Checkpoint
from ..ops.base import RuleError
from ..ops.spelling import python_type
from .guards import Unify
from .values import ArrayRef, Instance, Masked, is_object, is_scalar, type_of

if TYPE_CHECKING:
    from .interpreter import Interpreter


MOST_ELEMENTS = 256           # of an array that is taken apart into single values
KEYS: type = type({}.keys())
VALUES: type = type({}.values())
ITEMS: type = type({}.items())
DICT_VIEWS = (KEYS, VALUES, ITEMS)
ENDED, UNKNOWN = -1, -2       # positions of an iterator that a loop at run time goes over


class Iterator:
    """What `iter`, `zip`, `map` or a generator expression gives: it can be gone over once.

    How far it is is a part of the state that branches and loops start from, so it remembers what it gave.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self.given: list[Any] = items if isinstance(items, list) else []
        self.source = iter(()) if isinstance(items, list) else iter(items)
        self.position = 0

    def __iter__(self) -> PythonIterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.position == UNKNOWN:
            raise RuleError("how far this iterator is was decided at run time, by a loop that may have left it early",
                            code="E110", kind=NotImplementedError, help="make a new one, or index what it goes over")
        found = self.at(self.position)
        self.position += 1
        return found

    def at(self, position: int) -> Any:
        if position == len(self.given):
            self.given.append(next(self.source))
        return self.given[position]

    def held(self) -> tuple[Any, ...]:
        """Values that are known to be inside."""
        return tuple(self.given)


class Sequence(Iterator):
    """What `iter`, `zip`, `enumerate`, `map` and `reversed` give for arrays: a length and a way to each element.

    A `for` goes over it when the function runs, unless `unrolled`; everything else takes its elements one by one, now.
    An element is found when it is asked for, and so is what the array holds then.
    """

    def __init__(self, it: Interpreter, length: Any, item: Callable[[Any], Any], held: tuple[Any, ...],
                 unrolled: bool = False) -> None:
        super().__init__([])
        self.it, self._length, self.item, self._held, self.unrolled = it, length, item, held, unrolled

    @property
    def length(self) -> Any:
        """An int or a dimension.  Where it was given as a function, it is that of now: lists may grow."""
        return self._length() if callable(self._length) else self._length

    def again(self) -> Sequence:
        """The same elements, from the first."""
        return Sequence(self.it, self._length, self.item, self._held, self.unrolled)

    @property
    def is_fresh(self) -> bool:
        """Whether nothing was taken from it."""
        return self.position == 0

    def at(self, position: int) -> Any:
        if position == ENDED or position >= known_length(self.it, self.length):
            raise StopIteration
        return self.item(position)

    def held(self) -> tuple[Any, ...]:
        return self._held


class Filtered(Iterator):
    """What `filter` gives.  Its position is that in the sequence that it filters."""

    def __init__(self, over: Sequence, test: Callable[[Any], bool]) -> None:
        super().__init__([])
        self.over, self.test = over, test

    def __next__(self) -> Any:
        while True:
            found = self.over.at(self.position)
            self.position += 1
            if self.test(found):
                return found

    def held(self) -> tuple[Any, ...]:
        return self.over.held()


@dataclass(frozen=True)
class Checkpointed:
    """What a loop goes over, with a wish for its reverse mode."""

    over: Any
    wish: Checkpoint


class DimRange:
    """`range` with a bound that is a size or a run-time int."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step


def iterate(it: Interpreter, value: Any) -> list[Any]:
    """All elements, for what is gone over while transpiling."""
    if isinstance(value, ArrayRef):
        if not value.rank:
            raise RuleError("iteration over a 0-d array", kind=TypeError, code="E312")
        return _rows(it, value)
    if isinstance(value, DimRange):
        return _between(value) or list(range(*(_bound(it, b) for b in (value.start, value.stop, value.step))))
    if isinstance(value, Masked):
        from .masked import elements
        return _rows(it, elements(value))
    if isinstance(value, Sequence) and value.is_fresh:
        found = [value.item(k) for k in range(known_length(it, value.length))]
        value.position = ENDED
        return found
    from .grown import get_element, is_grown
    if is_grown(value):
        return [get_element(it, value, k) for k in range(known_length(it, value.fields["length"]))]
    if is_object(value):
        return _object_items(it, value)
    if is_scalar(value) or python_type(value) is not None:
        raise RuleError(f"{type_of(value).__name__!r} object is not iterable", kind=TypeError, code="E312")
    from .values import from_numpy
    items = it.native(iter, value)
    return [from_numpy(v) if isinstance(v, np.ndarray) else v for v in it.native(list, items)]


def lazily(it: Interpreter, value: Any) -> Any:
    """Elements one at a time, as `for` takes them: what is written to a list, dict or array meanwhile is seen."""
    if isinstance(value, (list, range, Iterator)):
        return iter(value)
    if isinstance(value, (dict, *DICT_VIEWS)):
        return _entries(value)
    if isinstance(value, DimRange) and _between(value) is None:
        for bound in (value.start, value.stop, value.step):
            _fixed(it, bound)
    if isinstance(value, ArrayRef) and value.rank:
        from .trips import array_sequence
        _fixed(it, value.shape[0])
        return array_sequence(it, value)
    return iterate(it, value)


def one_by_one(it: Interpreter, value: Any) -> Iterable[Any]:
    """All elements as `iterate` has them, each found when it is asked for: what is done with one may write others."""
    if isinstance(value, ArrayRef) and value.rank:
        from .trips import array_sequence
        return array_sequence(it, value)
    return value if isinstance(value, (list, Sequence)) else iterate(it, value)


def _entries(value: Any) -> PythonIterator[Any]:
    """The keys of a dict, or what a view of it gives, while the loop may give keys other values."""
    mapping = value if isinstance(value, dict) else value.mapping
    keys = list(mapping)
    for key in keys:
        if len(mapping) != len(keys):
            raise RuleError("dictionary changed size during iteration", kind=RuntimeError, code="E120")
        yield (key, mapping[key]) if isinstance(value, ITEMS) else mapping[key] if isinstance(value, VALUES) else key


def is_decidable(it: Interpreter, size: Any) -> bool:
    """Whether a length can be known while transpiling, if need be."""
    return isinstance(size, int) or (isinstance(size, DimExpr) and it.assumptions.decidable(size)
                                     and (it.assumptions.example(size) or 0) <= MOST_ELEMENTS)


def _between(value: DimRange) -> list[Any] | None:
    """`range(n - 2, n)`: bounds of unknown size, but a known number of steps between them."""
    if not isinstance(value.step, int) or not value.step or not is_dim(value.start) or not is_dim(value.stop):
        return None
    count = dims.slice_length(value.start, value.stop, value.step)
    if not isinstance(count, int) or not 0 < count <= MOST_ELEMENTS:
        return None
    return [value.start + k * value.step for k in range(count)]


def _fixed(it: Interpreter, size: Any) -> None:
    """A loop needs its number of trips now."""
    if isinstance(size, DimExpr):
        raise error("E110", "a loop whose number of trips is known only at run time", it.here,
                    kind=NotImplementedError, label=f"it depends on the size {size}",
                    help="write it with array operations; loops over run-time lengths are not supported yet")


def known_length(it: Interpreter, size: Any) -> int:
    """A size as a number: the trace is then for this length alone."""
    if isinstance(size, int):
        return size
    if not isinstance(size, DimExpr):
        return it.static_int(size, "the length of this")
    example = it.assumptions.example(size)
    if example is None or example > MOST_ELEMENTS:
        raise error("E117", "the length of this must be known while transpiling", it.here,
                    label=f"it is the size {size}" + (f", which is {example} here" if example is not None else ""),
                    help="write it with array operations, or give the array a fixed length in the signature")
    raise Unify(it.assumptions.pinned(size))


def _bound(it: Interpreter, bound: Any) -> int:
    return known_length(it, bound) if isinstance(bound, DimExpr) else it.static_int(bound, "a bound of `range`")


def _rows(it: Interpreter, ref: ArrayRef) -> list[Any]:
    from .indexing import get_item
    return [get_item(it, ref, k) for k in range(known_length(it, ref.shape[0]))]


def _object_items(it: Interpreter, value: Any) -> list[Any]:
    found = it.find_special(value, "__iter__")
    if found is not None:
        return iterate(it, it.call(found, (), {}))
    get, count = it.find_special(value, "__getitem__"), it.find_special(value, "__len__")
    if get is not None and count is not None:
        return [it.call(get, (k,), {}) for k in range(it.static_int(it.call(count, (), {}), "a length"))]
    if not isinstance(value, Instance):
        return it.native(list, value)
    raise RuleError(f"{type_of(value).__name__!r} object is not iterable", kind=TypeError, code="E312")


def length(it: Interpreter, value: Any) -> Any:
    """`len(value)`: an int or a dimension."""
    if isinstance(value, ArrayRef):
        if not value.rank:
            raise RuleError("len() of unsized object", kind=TypeError, code="E312")
        return value.shape[0]
    if isinstance(value, DimRange):
        if value.step == 1 and isinstance(value.start, (int, DimExpr)) and isinstance(value.stop, (int, DimExpr)):
            return dims.maximum(value.stop - value.start, 0)
        return len(range(*(_bound(it, b) for b in (value.start, value.stop, value.step))))
    if is_object(value):
        found = it.find_special(value, "__len__")
        if found is not None:
            return it.call(found, (), {})
    if is_scalar(value) or python_type(value) is not None or isinstance(value, (Instance, Iterator)):
        raise RuleError(f"object of type {type_of(value).__name__!r} has no len()", kind=TypeError, code="E312")
    if isinstance(value, Masked):
        from .masked import count
        return count(it, value)
    return it.native(len, value)
