"""Python's functions that make one value of many: `any`, `all`, `sum`, `max`, `min`, `functools.reduce`."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import check, const
from ..ir.nodes import Const, Var
from ..ir.types import I64
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast
from .either import one_of
from .environment import MISSING
from .grown import elements_of, is_grown, slot_of
from .iteration import iterate, one_by_one
from .masked import shown
from .operators import BY_FUNCTION, binary, combined, is_numpy
from .python_functions import TABLE, means
from .values import ArrayRef, is_static, to_python, type_of, unboxed

if TYPE_CHECKING:
    from .interpreter import Interpreter


@means(any)
def _any(it: Interpreter, values: Any) -> bool:
    return _asked(it, values, False)


@means(all)
def _all(it: Interpreter, values: Any) -> bool:
    return _asked(it, values, True)


def _asked(it: Interpreter, values: Any, all_of: bool) -> Any:
    from .comprehensions import Generator, asked
    if isinstance(values, Generator) and values.is_fresh:
        return asked(it, values, all_of)
    values = shown(values)
    if isinstance(values, ArrayRef) and values.rank == 1 and not isinstance(values.shape[0], int):
        return it.call(bool, (it.call_numpy(np.all if all_of else np.any, (values,), {}),), {})
    return combined(it, iterate(it, values), all_of=all_of)


@means(sum)
def python_sum(it: Interpreter, values: Any, start: Any = 0) -> Any:
    from .comprehensions import Generator, materialised, summed
    if isinstance(values, Generator):
        total = summed(it, values)
        if total is not None:
            return total if isinstance(start, int) and start == 0 else binary(it, BY_FUNCTION[operator.add], start,
                                                                              total)
        values = materialised(it, values)
    values = shown(values)
    if is_grown(values):
        slot = slot_of(values)
        total = python_sum(it, elements_of(it, values), start)
        if slot.like != "weak":
            return total
        return it.call({"f": float, "c": complex}.get(slot.type.kind, int), (total,), {})
    if isinstance(values, ArrayRef) and not is_static(values):
        wide = values.type.kind == "b"             # adding one by one, only bools become int64, as 0 + True does
        total = it.call_numpy(np.sum, (values,), {"axis": 0, "dtype": "int64" if wide else values.dtype})
        return total if isinstance(start, int) and start == 0 else binary(it, BY_FUNCTION[operator.add], start, total)
    items = iterate(it, values)
    # 0 + x is x but for bools: they are counted
    if items and isinstance(start, int) and start == 0 and type_of(items[0]) not in (bool, np.bool_):
        start, items = items[0], items[1:]
    for item in items:
        start = binary(it, BY_FUNCTION[operator.add], start, item)
    return start


def _extreme(name: str) -> Callable[..., Any]:
    python, ufunc, reduction = {"max": (max, np.maximum, np.max), "min": (min, np.minimum, np.min)}[name]

    def extreme(it: Interpreter, *values: Any, key: Any = None, default: Any = MISSING) -> Any:
        from .comprehensions import materialised
        if len(values) == 1:
            values = (shown(materialised(it, values[0])),)
        if len(values) == 1 and is_grown(values[0]):
            return _extreme_of_list(it, reduction, name, values[0], key, default)
        if len(values) == 1 and isinstance(values[0], ArrayRef) and not is_static(values[0]) and key is None:
            if values[0].rank > 1:
                raise RuleError("The truth value of an array with more than one element is ambiguous. Use a.any() or "
                                "a.all()", code="E310", help=f"use np.{name}")
            return it.call_numpy(reduction, values, {})
        items = iterate(it, values[0]) if len(values) == 1 else list(values)
        if not items:
            if default is not MISSING:
                return default
            raise RuleError(empty_message(name), kind=ValueError, code="E315")
        keys = [v if key is None else it.call(key, (v,), {}) for v in items]
        if is_static(keys):
            best = it.native(python, range(len(items)), key=lambda k: to_python(keys[k]))
            return items[best]
        if key is not None:
            raise RuleError(f"`{name}` with a key that is known only at run time is not supported", code="E111",
                            kind=NotImplementedError)
        return functools.reduce(lambda a, b: _larger(it, name, ufunc, a, b), items)

    return extreme


def _extreme_of_list(it: Interpreter, reduction: Any, name: str, values: Any, key: Any, default: Any) -> Any:
    """`max(values)` of a list whose length is known only at run time."""
    from .branches import choose_value
    if key is not None:
        raise RuleError(f"`{name}` with a key, of a list whose length is known only at run time, is not supported",
                        code="E111", kind=NotImplementedError, help=f"use np.arg{name}")
    numbers, length, weak = elements_of(it, values), values.fields["length"], slot_of(values).like == "weak"

    def found() -> Any:
        result = it.call_numpy(reduction, (numbers,), {})
        return Weak(result) if weak and isinstance(result, (Var, Const)) else result

    some = ops.greater(as_value(length), const(0, I64))
    if default is MISSING:
        check(some, "ValueError", empty_message(name))
        return found()
    return choose_value(it, None, some, found, lambda: default)


def empty_message(name: str) -> str:
    """What this Python says about `max([])`."""
    try:
        {"max": max, "min": min}[name]([])
    except ValueError as problem:
        return str(problem)
    raise AssertionError("an empty list has no greatest element")


def _larger(it: Interpreter, name: str, ufunc: Any, a: Any, b: Any) -> Any:
    """The larger (smaller) of two; ties share the derivative, as those of np.maximum do."""
    given = [a, b]
    for x in given:
        if isinstance(x, ArrayRef) and x.rank:
            raise RuleError("The truth value of an array with more than one element is ambiguous. Use a.any() or "
                            "a.all()", code="E310", help=f"use np.{name}imum")
    if is_static(a) and is_static(b):
        return given[it.native({"max": max, "min": min}[name], (0, 1), key=lambda k: to_python(given[k]))]
    if is_numpy(a) or is_numpy(b):
        return one_of(it, it.call_spelling(ufunc, tuple(map(unboxed, given)), {}), given)
    left, right = it.as_dim(a), it.as_dim(b)
    size = None
    if left is not None and right is not None:
        size = dims.maximum(left, right) if name == "max" else dims.minimum(left, right)
        if not isinstance(a, Weak) and not isinstance(b, Weak):
            return size
    numbers = [x if type(x) in (int, float) else as_value(x) for x in (a, b)]
    result = Weak(it.spell(ufunc, *(cast(x, "int64") if isinstance(x, (Var, Const)) and x.dtype == "bool" else x
                                    for x in numbers)))
    it.derived(result, (a, b), size)
    return result


TABLE[max] = _extreme("max")
TABLE[min] = _extreme("min")


@means(functools.reduce)
def _reduce(it: Interpreter, function: Any, values: Any, *start: Any) -> Any:
    items = itertools.chain(start, one_by_one(it, values))
    total = next(items, MISSING)
    if total is MISSING:
        raise RuleError("reduce() of empty iterable with no initial value", kind=TypeError, code="E120")
    for item in items:
        total = it.call(function, (total, item), {})
    return total
