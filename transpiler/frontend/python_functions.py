"""Python's builtins on abstract values; the standard library is in a file of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import const
from ..ir.dims import DimExpr
from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast, python_type
from .attributes import get_attribute, has_attribute
from .grown import is_grown
from .iteration import DimRange, Iterator, is_decidable, iterate, length
from .masked import elements
from .operators import BY_FUNCTION, binary, is_numpy, truth
from .values import (
    ArrayRef,
    BoundMethod,
    Closure,
    Instance,
    Masked,
    Partial,
    TransformValue,
    from_numpy,
    is_scalar,
    is_static,
    to_python,
    type_of,
    unboxed,
)

if TYPE_CHECKING:
    from .interpreter import Interpreter

TABLE: dict[Any, Callable[..., Any]] = {}


def means(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what Python's function means: `(interpreter, *args, **kwargs) -> abstract value`."""

    def put(meaning: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            TABLE[function] = meaning
        return meaning

    return put


def find_builtin(callee: Any) -> Callable[..., Any] | None:
    try:
        found = TABLE.get(callee)
    except TypeError:
        return None
    return NUMBA.get(callee.__name__) if found is None and _is_numbas(callee) else found


def _is_numbas(callee: Any) -> bool:
    """Whether it is a function or class of Numba's, which need not be imported here."""
    return (getattr(callee, "__module__", None) or "").startswith("numba") and hasattr(callee, "__name__")


# ---------------------------------------------------------------------------------------------------------------
# going over things


@means(len)
def _len(it: Interpreter, value: Any) -> Any:
    return length(it, value)


@means(range)
def _range(it: Interpreter, *bounds: Any) -> Any:
    bounds = tuple(int(b) if isinstance(b, (bool, np.integer)) else b for b in map(unboxed, bounds))
    if all(isinstance(b, int) for b in bounds):
        return it.native(range, *bounds)
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    for bound in (start, stop, step):
        if type_of(bound) is not int and not (is_scalar(bound) and bound.type.kind in "iu"):
            raise RuleError(f"{type_of(bound).__name__!r} object cannot be interpreted as an integer", kind=TypeError,
                            code="E208")
    return DimRange(start, stop, step)


@means(slice)
def _slice(it: Interpreter, *bounds: Any) -> slice:
    return it.native(slice, *bounds)


@means(zip)
def _zip(it: Interpreter, *values: Any, strict: bool = False) -> Any:
    from .trips import lazily_zipped
    lazy = lazily_zipped(it, values) if not strict else None
    if lazy is not None:
        return lazy
    columns = [_elements(it, v) for v in values]
    return Iterator(it.native(lambda: list(zip(*columns, strict=strict))))


def _elements(it: Interpreter, value: Any) -> Any:
    """Elements for a function that may stop early: endless iterators stay what they are."""
    return value if isinstance(value, Iterator) or hasattr(value, "__next__") else iterate(it, value)


@means(enumerate)
def _enumerate(it: Interpreter, value: Any, start: Any = 0) -> Any:
    from .trips import lazily_enumerated
    lazy = lazily_enumerated(it, value, start)
    if lazy is not None:
        return lazy
    return Iterator(list(enumerate(iterate(it, value), it.static_int(start, "the start of `enumerate`"))))


@means(reversed)
def _reversed(it: Interpreter, value: Any) -> Any:
    from .trips import lazily_reversed
    if isinstance(value, range):
        return value[::-1]
    lazy = lazily_reversed(it, value)
    if lazy is not None:
        return lazy
    return Iterator(iterate(it, value)[::-1])


@means(map)
def _map(it: Interpreter, function: Any, *values: Any) -> Any:
    from .trips import lazily_mapped
    lazy = lazily_mapped(it, function, values)
    if lazy is not None:
        return lazy
    return Iterator([it.call(function, args, {}) for args in zip(*(_elements(it, v) for v in values))])


@means(filter)
def _filter(it: Interpreter, function: Any, values: Any) -> Any:
    from .trips import lazily_filtered

    def test(value: Any) -> bool:
        return truth(it, value if function is None else it.call(function, (value,), {}), "the test of `filter`")

    return lazily_filtered(it, test, values) or Iterator([v for v in iterate(it, values) if test(v)])


@means(iter)
def _iter(it: Interpreter, value: Any) -> Any:
    from .trips import array_sequence
    if isinstance(value, ArrayRef) and value.rank:
        return array_sequence(it, value)
    return value if isinstance(value, Iterator) else Iterator(value if isinstance(value, list) else
                                                              list(iterate(it, value)))


@means(next)
def _next(it: Interpreter, iterator: Any, *default: Any) -> Any:
    if not hasattr(iterator, "__next__"):
        raise RuleError(f"{type_of(iterator).__name__!r} object is not an iterator", kind=TypeError, code="E312")
    return it.native(next, iterator, *default)


@means(list)
def _list(it: Interpreter, values: Any = ()) -> Any:
    from .comprehensions import Generator, materialised
    if isinstance(values, Generator):
        return materialised(it, values)
    if is_grown(values) and not is_decidable(it, values.fields["length"]):
        return it.call(get_attribute(it, values, "copy"), (), {})
    return list(iterate(it, values))


@means(tuple)
def _tuple(it: Interpreter, values: Any = ()) -> Any:
    return tuple(iterate(it, values))


@means(dict)
def _dict(it: Interpreter, values: Any = (), **more: Any) -> Any:
    if not isinstance(values, dict):
        values = [tuple(iterate(it, pair)) for pair in iterate(it, values)]
    return {**it.native(dict, values), **more}


@means(set, frozenset)
def _set(it: Interpreter, values: Any = ()) -> Any:
    items = iterate(it, values)
    if not is_static(items):
        raise RuleError("a set of run-time values is not supported", kind=TypeError, code="E111", help="use a list")
    return it.native(set, to_python(items))


@means(sorted)
def python_sorted(it: Interpreter, values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    values = elements(values) if isinstance(values, Masked) else values
    if key is None and (is_grown(values) or (isinstance(values, ArrayRef) and values.rank == 1
                                             and not is_static(values))):
        from .grown_methods import sorted_list
        return sorted_list(it, values, reverse)
    items = iterate(it, values)
    keys = [v if key is None else it.call(key, (v,), {}) for v in items]
    if not is_static(keys):
        raise RuleError("`sorted` of run-time values is not supported", kind=NotImplementedError, code="E111",
                        help="use np.sort")
    order = it.native(sorted, range(len(items)), key=lambda k: to_python(keys[k]), reverse=bool(reverse))
    return [items[k] for k in order]


# ---------------------------------------------------------------------------------------------------------------
# numbers


@means(abs, operator.abs)
def _abs(it: Interpreter, x: Any) -> Any:
    if isinstance(x, Instance):
        return it.call(it.find_special(x, "__abs__"), (), {})
    if is_static(x):
        return from_numpy(it.native(abs, to_python(x)))
    if is_numpy(x):
        return it.call_spelling(np.absolute, (x,), {})
    if isinstance(x, DimExpr):
        return dims.maximum(x, -x)
    value = cast(x.value, "int64") if x.value.dtype == "bool" else x.value
    result = Weak(it.spell(np.absolute, value))
    it.derived(result, (x,), None)
    return result


@means(pow)
def _pow(it: Interpreter, base: Any, exponent: Any, mod: Any = None) -> Any:
    if mod is not None:
        if not is_static((base, exponent, mod)):
            raise RuleError("pow() with a modulus of run-time values is not supported", code="E203",
                            kind=NotImplementedError)
        return it.native(pow, base, exponent, mod)
    return binary(it, BY_FUNCTION[operator.pow], base, exponent)


@means(divmod)
def _divmod(it: Interpreter, a: Any, b: Any) -> Any:
    return (binary(it, BY_FUNCTION[operator.floordiv], a, b), binary(it, BY_FUNCTION[operator.mod], a, b))


@means(round)
def _round(it: Interpreter, x: Any, digits: Any = None) -> Any:
    if is_static((x, digits)):
        return from_numpy(it.native(round, to_python(x), *([] if digits is None else [digits])))
    if isinstance(x, ArrayRef):
        return it.call_spelling(np.round, (x, 0 if digits is None else digits), {})
    kind = python_type(x)
    if isinstance(x, DimExpr) or kind is int:
        return x
    value = x.value if isinstance(x, Weak) else x
    if digits is None:
        return Weak(cast(it.spell(np.rint, value), "int64"))
    rounded = it.spell(np.round, value, it.static_int(digits, "the number of digits"))
    return Weak(rounded) if isinstance(x, Weak) else rounded


def single_number(it: Interpreter, x: Any, kind: type) -> Value:
    """The one number that x is."""
    if isinstance(x, Masked):
        x = elements(x)
    if not (is_numpy(x) or python_type(x) is not None):
        raise RuleError(f"{kind.__name__}() argument must be a string or a real number, not {type_of(x).__name__!r}",
                        kind=TypeError, code="E208")
    if isinstance(x, ArrayRef):
        if dims.product(x.shape) != 1:
            raise RuleError("only length-1 arrays can be converted to Python scalars", kind=TypeError, code="E208")
        return it.spell(np.reshape, x.read(), ())
    return as_value(x)


def _conversion(kind: type, dtype: str) -> Callable[..., Any]:
    def convert(it: Interpreter, x: Any = 0, *more: Any) -> Any:
        if isinstance(x, Instance):
            found = it.find_special(x, f"__{kind.__name__}__")
            if found is not None:
                return it.call(found, (), {})
        if is_static((x, *more)):
            return it.native(kind, to_python(x), *more)
        if more:
            raise RuleError(f"{kind.__name__}() of several run-time values is not supported", code="E203",
                            kind=NotImplementedError, help="use a + 1j * b")
        if kind is int and (isinstance(x, DimExpr) or python_type(x) is int):
            return x
        value = single_number(it, x, kind)
        if value.type.kind == "c" and kind is not complex:
            raise RuleError(f"{kind.__name__}() argument must be a real number, not a complex one", kind=TypeError,
                            code="E208")
        result = Weak(cast(value, dtype))
        it.derived(result, (x,), None)
        return result

    return convert


TABLE[float] = _conversion(float, "float64")
TABLE[int] = _conversion(int, "int64")
TABLE[complex] = _conversion(complex, "complex128")


@means(bool, operator.truth)
def _bool(it: Interpreter, x: Any = False) -> Any:
    if is_scalar(x) or isinstance(x, Weak):
        value = as_value(x)
        result = Weak(value if value.dtype == "bool" else ops.not_equal(value, const(0, value.type)))
        it.derived(result, (x,), None)
        return result
    from .arms import condition
    holds = condition(it, x, "`bool`")
    return holds if isinstance(holds, bool) else Weak(holds)


@means(operator.index)
def _index(it: Interpreter, x: Any) -> Any:
    return x if type_of(x) is int else it.native(operator.index, to_python(x))


def item_of(it: Interpreter, x: Any, args: tuple[Any, ...]) -> Any:
    """`x.item()`: a Python number."""
    if args:
        from .indexing import get_item
        flat = it.call_numpy(np.ravel, (x,), {}) if len(args) == 1 and isinstance(x, ArrayRef) else x
        x = get_item(it, flat, args[0] if len(args) == 1 else tuple(args))
    if is_static(x):
        return to_python(x).item()
    if isinstance(x, ArrayRef) and dims.product(x.shape) != 1:
        raise RuleError("can only convert an array of size 1 to a Python scalar", kind=ValueError, code="E302")
    value = it.spell(np.reshape, x.read(), ()) if isinstance(x, ArrayRef) else x
    return Weak(cast(value, {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "c": "complex128"}
                     [value.type.kind]))


def array_to_list(it: Interpreter, x: Any) -> Any:
    """`x.tolist()`."""
    if is_static(x):
        return to_python(x).tolist()
    return [array_to_list(it, row) for row in iterate(it, x)] if isinstance(x, ArrayRef) else item_of(it, x, ())


# ---------------------------------------------------------------------------------------------------------------
# types and attributes


@means(isinstance)
def _isinstance(it: Interpreter, value: Any, kinds: Any) -> bool:
    if is_static(value) and not isinstance(value, ArrayRef):
        return bool(it.native(isinstance, value, kinds))
    from collections.abc import Callable as PythonCallable
    if isinstance(value, (Closure, BoundMethod, Partial, TransformValue)) and kinds is PythonCallable:
        return True
    return bool(it.native(issubclass, type_of(value), kinds))


@means(type)
def _type(it: Interpreter, value: Any, *more: Any) -> Any:
    if more:
        raise RuleError("making a class inside a transpiled function is not supported", code="E110",
                        kind=NotImplementedError)
    return type_of(value)


@means(callable)
def _callable(it: Interpreter, value: Any) -> bool:
    if isinstance(value, Instance):
        return it.find_special(value, "__call__") is not None
    return isinstance(value, (Closure, BoundMethod, Partial, TransformValue)) or callable(value)


@means(getattr)
def _getattr(it: Interpreter, value: Any, name: Any, *default: Any) -> Any:
    if default and not has_attribute(it, value, name):
        return default[0]
    return get_attribute(it, value, name)


@means(hasattr)
def _hasattr(it: Interpreter, value: Any, name: Any) -> bool:
    return has_attribute(it, value, name)


@means(print)
def _print(it: Interpreter, *values: Any, **options: Any) -> None:
    from .texts import print_values
    print_values(it, *values, **options)


@means(repr, str, format, ascii)
def _text(it: Interpreter, value: Any = "", *more: Any) -> Any:
    return it.native(str, to_python(value)) if is_static(value) else _text_of(it, value, *more)


def _text_of(it: Interpreter, value: Any, spec: Any = "") -> Any:
    from .texts import joined, piece
    return joined(it, [piece(it, value, spec)])


@means(vars)
def _vars(it: Interpreter, value: Any) -> Any:
    return get_attribute(it, value, "__dict__")


@means(id, hash)
def _refused(it: Interpreter, value: Any) -> Any:
    raise RuleError("`id` and `hash` are not supported", code="E202", kind=NotImplementedError)


@means(property, staticmethod, classmethod)
def _in_class(it: Interpreter, *args: Any) -> Any:
    raise RuleError("properties and methods are made in classes only", code="E110", kind=NotImplementedError)


# Of Numba's, by name.
NUMBA = {"prange": TABLE[range], "literal_unroll": TABLE[tuple], "List": TABLE[list]}
