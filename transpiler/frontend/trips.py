"""What a `for` goes over, as a count and an element for each number: ranges, the first axis of arrays, and `zip`,
`enumerate`, `map`, `filter` and `reversed` of those."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import ops
from ..ir import dims
from ..ir.build import check, const, size_value
from ..ir.dims import DimExpr, is_dim
from ..ir.nodes import Value
from ..ir.types import I64
from ..ops.base import RuleError
from ..ops.spelling import as_value, cast
from .grown import element_at, is_counted, is_grown
from .iteration import MOST_ELEMENTS, UNKNOWN, DimRange, Filtered, Iterator, Sequence
from .masked import elements
from .operators import BY_FUNCTION, binary
from .values import ArrayRef, Masked

if TYPE_CHECKING:
    from .interpreter import Interpreter

NUMBER_OF_TRIPS = 4096        # of a loop that is unrolled where it must be


@dataclass
class Trips:
    """bounds: first index, end and step.  range: the least and the greatest index as dimensions, None where unknown.

    item: the element at an index.  held: values that elements are taken from.  count: the number of trips, where it
    is known while transpiling.  demand: what to make static where the elements must be.
    """

    bounds: tuple[Value, Value, int]
    range: tuple[Any | None, Any | None]
    item: Callable[[Any], Any]
    held: tuple[Any, ...] = ()
    count: int | None = None
    demand: tuple[Any, ...] = ()


def trips_of(it: Interpreter, values: Any) -> Trips | None:
    """How to go over something when the function runs; None for what is gone over while transpiling only."""
    if isinstance(values, range):
        return _counted(it, values.start, values.stop, values.step, lambda i: i, count=len(values))
    if isinstance(values, DimRange):
        return _range(it, values)
    if isinstance(values, Masked):
        values = elements(values)
    if isinstance(values, ArrayRef) and values.rank:
        return _elements(it, array_sequence(it, values))
    if is_grown(values):
        return _elements(it, grown_sequence(it, values))
    if isinstance(values, Sequence) and values.is_fresh and not values.unrolled:
        return _elements(it, values)
    return None


def _elements(it: Interpreter, values: Sequence) -> Trips:
    size = values.length
    return _counted(it, 0, size, 1, values.item, count=size if isinstance(size, int) else None, held=values.held())


def _counted(it: Interpreter, lo: Any, hi: Any, step: int, item: Callable[[Any], Any], *, count: int | None,
             held: tuple[Any, ...] = ()) -> Trips:
    first, end = it.as_dim(lo), it.as_dim(hi)
    if step > 0:
        limits = (first, None if end is None else end - 1)
    else:
        limits = (None if end is None else end + 1, first)
    return Trips((_int(lo), _int(hi), step), limits, item, held, count, (lo, hi))


def _int(bound: Any) -> Value:
    if isinstance(bound, int):
        return const(bound, I64)
    return size_value(bound) if isinstance(bound, DimExpr) else cast(as_value(bound), "int64")


def _range(it: Interpreter, values: DimRange) -> Trips:
    start, stop, step = values.start, values.stop, values.step
    if isinstance(step, int):
        if step == 0:
            raise RuleError("range() arg 3 must not be zero", kind=ValueError, code="E120")
        count = None
        if is_dim(start) and is_dim(stop):
            size = dims.slice_length(start, stop, step)
            count = size if isinstance(size, int) else None
        return _counted(it, start, stop, step, lambda i: i, count=count)
    lo, hi, by = (_int(b) for b in (start, stop, step))
    check(ops.not_equal(by, const(0, I64)), "ValueError", "range() arg 3 must not be zero")
    # -((lo - hi) // step) is the span divided by the step, rounded up, whatever the step's sign.
    trips = ops.negative(ops.floor_divide(ops.subtract(lo, hi), by))

    def item(k: Any) -> Any:
        scaled = binary(it, BY_FUNCTION[operator.mul], k, step)
        return binary(it, BY_FUNCTION[operator.add], start, scaled)

    return Trips((const(0, I64), trips, 1), (0, None), item, (), None, (start, stop, step))


# ---------------------------------------------------------------------------------------------------------------
# zip, enumerate, reversed


def array_sequence(it: Interpreter, values: ArrayRef) -> Sequence:
    """The rows of an array."""
    from .indexing import get_item
    return Sequence(it, values.shape[0], lambda k: get_item(it, values, k), (values,))


def grown_sequence(it: Interpreter, values: Any) -> Sequence:
    """The elements of a list that a loop appended to."""
    length = values.fields["length"]
    if is_counted(values):
        raise RuleError("a loop goes over a list in a loop that appends to it, and how much that is follows only from "
                        "running it", code="E122", kind=NotImplementedError,
                        help="write into an array that is large enough")

    def item(k: Any) -> Any:
        if values.fields["length"] is not length:
            raise RuleError("a list changes its length while a loop goes over it", code="E110",
                            kind=NotImplementedError, help="go over a copy of it: `values[:]`")
        return element_at(it, values, cast(as_value(k), "int64"))

    return Sequence(it, it.dimension(length, "the length of a list"), item, (values,))


def sequence_of(it: Interpreter, values: Any) -> Sequence | None:
    """Something to go over as a length and its elements, found when they are asked for; None where it is neither.

    Of an iterator nothing more can be taken then.
    """
    from .comprehensions import streamed
    from .indexing import get_item
    from .iteration import length
    values = streamed(it, values)
    if isinstance(values, Sequence) and values.is_fresh:
        values.position = UNKNOWN
        return values.again()
    if isinstance(values, Masked):
        values = elements(values)
    if isinstance(values, ArrayRef) and values.rank:
        return array_sequence(it, values)
    if is_grown(values):
        return grown_sequence(it, values)
    if isinstance(values, (range, DimRange)):
        if isinstance(values, DimRange) and (not isinstance(values.step, int) or not is_dim(values.start)
                                             or not is_dim(values.stop)):
            return None
        size = len(values) if isinstance(values, range) else dims.slice_length(values.start, values.stop, values.step)

        def number(k: Any) -> Any:
            scaled = binary(it, BY_FUNCTION[operator.mul], k, values.step)
            return binary(it, BY_FUNCTION[operator.add], scaled, values.start)

        return Sequence(it, size, number, ())
    if isinstance(values, (list, tuple)):
        return Sequence(it, lambda: length(it, values), lambda k: get_item(it, values, k), (values,))
    return None


def is_lazy(values: Any) -> bool:
    """Whether its elements are a matter of the time when they are asked for."""
    if isinstance(values, ArrayRef):
        return values.rank > 0
    return isinstance(values, (DimRange, Iterator, Masked)) or is_grown(values)


def _columns(it: Interpreter, values: tuple[Any, ...]) -> list[Sequence] | None:
    """What `zip` goes over side by side; None where one is no sequence, or an iterator comes twice."""
    positions = {id(v): (v, v.position) for v in values if isinstance(v, Iterator)}
    if len(positions) < sum(isinstance(v, Iterator) for v in values):
        return None
    found = [part for part in (sequence_of(it, v) for v in values) if part is not None]
    if values and len(found) == len(values):
        return found
    for iterator, position in positions.values():
        iterator.position = position
    return None


def _side_by_side(it: Interpreter, parts: list[Sequence], item: Callable[[tuple[Any, ...]], Any],
                  unrolled: bool) -> Sequence:
    """As long as the shortest; `item` makes an element of theirs."""
    def length() -> Any:
        size = parts[0].length
        for part in parts[1:]:
            other = part.length
            shorter = it.assumptions.is_negative(other - size) if is_dim(size) and is_dim(other) else None
            size = dims.minimum(size, other) if shorter is None else other if shorter else size
        return size

    held = tuple(v for p in parts for v in p.held())
    return Sequence(it, length, lambda k: item(tuple(p.item(k) for p in parts)), held,
                    unrolled or any(p.unrolled for p in parts))


def lazily_zipped(it: Interpreter, columns: tuple[Any, ...]) -> Sequence | None:
    """`zip`; None where what it goes over is no sequence."""
    parts = _columns(it, columns)
    return None if parts is None else _side_by_side(it, parts, lambda items: items, not any(map(is_lazy, columns)))


def lazily_mapped(it: Interpreter, function: Any, columns: tuple[Any, ...]) -> Sequence | None:
    """`map`, which calls when an element is asked for; None where what it goes over is no sequence."""
    parts = _columns(it, columns)
    if parts is None:
        return None
    return _side_by_side(it, parts, lambda items: it.call(function, items, {}), not any(map(is_lazy, columns)))


def lazily_filtered(it: Interpreter, test: Callable[[Any], bool], values: Any) -> Filtered | None:
    parts = _columns(it, (values,))
    return None if parts is None else Filtered(parts[0], test)


def lazily_enumerated(it: Interpreter, values: Any, start: Any) -> Sequence | None:
    parts = _columns(it, (values,))
    if parts is None:
        return None
    add = BY_FUNCTION[operator.add]

    [part] = parts

    def item(k: Any) -> tuple[Any, Any]:
        return k if start == 0 else binary(it, add, k, start), part.item(k)

    return Sequence(it, lambda: part.length, item, part.held(),
                    part.unrolled or not is_lazy(values))


def lazily_reversed(it: Interpreter, values: Any) -> Any | None:
    """`reversed` of a range is a range; of an array or a list, its elements from the end."""
    if isinstance(values, DimRange) and isinstance(values.step, int) and abs(values.step) == 1:
        minus, plus = BY_FUNCTION[operator.sub], BY_FUNCTION[operator.add]
        shift = minus if values.step > 0 else plus
        return DimRange(binary(it, shift, values.stop, 1), binary(it, shift, values.start, 1), -values.step)
    part = None if isinstance(values, Iterator) else sequence_of(it, values)
    if part is None:
        return None
    minus, size = BY_FUNCTION[operator.sub], part.length
    return Sequence(it, size, lambda k: part.item(binary(it, minus, size - 1, k)), part.held(), not is_lazy(values))


def can_unroll(it: Interpreter, trips: Trips, code: str) -> bool:
    """Whether the loop may be unrolled after the error of this code.

    Starts the trace again where an index must be known and the bounds can be made static.
    """
    if trips.count is not None:
        return trips.count <= NUMBER_OF_TRIPS
    if code not in ("E117", "E313"):
        return False
    for bound in trips.demand:
        if isinstance(bound, DimExpr):
            example = it.assumptions.example(bound)
            if example is None or example > MOST_ELEMENTS:
                continue
        it.demand(bound)
    return False
