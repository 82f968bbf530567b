"""Python's own functions on abstract values: builtins, `math`, `operator`, `functools`, `itertools`, `dataclasses`."""

from __future__ import annotations

import cmath
import copy
import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..errors import error
from ..ir import dims
from ..ir.build import check, const
from ..ir.dims import DimExpr
from ..ir.nodes import Const, Value, Var
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast, python_type
from .attributes import get_attribute, has_attribute
from .environment import MISSING
from .iteration import DimRange, Iterator, iterate, length
from .operators import BY_FUNCTION, COMPARE, UNARY, binary, compare, contains, is_numpy, truth, unary
from .values import (
    ArrayRef,
    BoundMethod,
    Closure,
    Instance,
    Masked,
    OuterDict,
    OuterList,
    Partial,
    TransformValue,
    from_numpy,
    is_scalar,
    is_static,
    to_python,
    type_of,
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
    if found is None and getattr(callee, "__name__", "") == "prange" and callee.__module__.startswith("numba"):
        return TABLE[range]
    return found


# ---------------------------------------------------------------------------------------------------------------
# going over things


@means(len)
def _len(it: Interpreter, value: Any) -> Any:
    return length(it, value)


@means(range)
def _range(it: Interpreter, *bounds: Any) -> Any:
    bounds = tuple(int(b) if isinstance(b, (bool, np.integer)) else b for b in bounds)
    if all(isinstance(b, int) for b in bounds):
        return it.native(range, *bounds)
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    for bound in (start, stop, step):
        if type_of(bound) is not int and not (is_scalar(bound) and bound.type.kind in "iu"):
            raise RuleError(f"{type_of(bound).__name__!r} object cannot be interpreted as an integer", kind=TypeError,
                            code="E208")
    return DimRange(start, stop, step)


@means(zip)
def _zip(it: Interpreter, *values: Any, strict: bool = False) -> Any:
    columns = [_elements(it, v) for v in values]
    return Iterator(iter(it.native(lambda: list(zip(*columns, strict=strict)))))


def _elements(it: Interpreter, value: Any) -> Any:
    """Elements for a function that may stop early: endless iterators stay what they are."""
    return value if isinstance(value, Iterator) or hasattr(value, "__next__") else iterate(it, value)


@means(enumerate)
def _enumerate(it: Interpreter, value: Any, start: Any = 0) -> Any:
    return Iterator(iter(list(enumerate(iterate(it, value), it.static_int(start, "the start of `enumerate`")))))


@means(reversed)
def _reversed(it: Interpreter, value: Any) -> Any:
    return Iterator(iter(iterate(it, value)[::-1]))


@means(map)
def _map(it: Interpreter, function: Any, *values: Any) -> Any:
    return Iterator(iter([it.call(function, args, {}) for args in zip(*(iterate(it, v) for v in values))]))


@means(filter)
def _filter(it: Interpreter, function: Any, values: Any) -> Any:
    keep = [v for v in iterate(it, values)
            if truth(it, v if function is None else it.call(function, (v,), {}), "the test of `filter`")]
    return Iterator(iter(keep))


@means(iter)
def _iter(it: Interpreter, value: Any) -> Any:
    return value if isinstance(value, Iterator) else Iterator(iter(iterate(it, value)))


@means(next)
def _next(it: Interpreter, iterator: Any, *default: Any) -> Any:
    if not hasattr(iterator, "__next__"):
        raise RuleError(f"{type_of(iterator).__name__!r} object is not an iterator", kind=TypeError, code="E312")
    return it.native(next, iterator, *default)


@means(list)
def _list(it: Interpreter, values: Any = ()) -> Any:
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
def _sorted(it: Interpreter, values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    items = iterate(it, values)
    keys = [v if key is None else it.call(key, (v,), {}) for v in items]
    if not is_static(keys):
        raise RuleError("`sorted` of run-time values is not supported", kind=NotImplementedError, code="E111",
                        help="use np.sort")
    order = it.native(sorted, range(len(items)), key=lambda k: to_python(keys[k]), reverse=bool(reverse))
    return [items[k] for k in order]


@means(any)
def _any(it: Interpreter, values: Any) -> bool:
    return any(truth(it, v, "`any`") for v in iterate(it, values))


@means(all)
def _all(it: Interpreter, values: Any) -> bool:
    return all(truth(it, v, "`all`") for v in iterate(it, values))


# ---------------------------------------------------------------------------------------------------------------
# folding


@means(sum)
def _sum(it: Interpreter, values: Any, start: Any = 0) -> Any:
    if isinstance(values, ArrayRef) and not is_static(values):
        total = it.call_numpy(np.sum, (values,), {"axis": 0})
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
        if len(values) == 1 and isinstance(values[0], ArrayRef) and not is_static(values[0]) and key is None:
            if values[0].rank > 1:
                raise RuleError("The truth value of an array with more than one element is ambiguous. Use a.any() or "
                                "a.all()", code="E310", help=f"use np.{name}")
            return it.call_numpy(reduction, values, {})
        items = iterate(it, values[0]) if len(values) == 1 else list(values)
        if not items:
            if default is not MISSING:
                return default
            raise RuleError(f"{name}() iterable argument is empty", kind=ValueError, code="E315")
        keys = [v if key is None else it.call(key, (v,), {}) for v in items]
        if is_static(keys):
            best = it.native(python, range(len(items)), key=lambda k: to_python(keys[k]))
            return items[best]
        if key is not None:
            raise RuleError(f"`{name}` with a key that is known only at run time is not supported", code="E111",
                            kind=NotImplementedError)
        return functools.reduce(lambda a, b: _larger(it, name, ufunc, a, b), items)

    return extreme


def _larger(it: Interpreter, name: str, ufunc: Any, a: Any, b: Any) -> Any:
    """The larger (smaller) of two; ties share the derivative, as those of np.maximum do."""
    for x in (a, b):
        if isinstance(x, ArrayRef):
            raise RuleError("The truth value of an array with more than one element is ambiguous. Use a.any() or "
                            "a.all()", code="E310", help=f"use np.{name}imum")
    if is_static(a) and is_static(b):
        return it.native({"max": max, "min": min}[name], a, b)
    if is_numpy(a) or is_numpy(b):
        return it.call_spelling(ufunc, (a, b), {})
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
    items = [*start, *iterate(it, values)]
    if not items:
        raise RuleError("reduce() of empty iterable with no initial value", kind=TypeError, code="E120")
    total = items[0]
    for item in items[1:]:
        total = it.call(function, (total, item), {})
    return total


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


def _single(it: Interpreter, x: Any, kind: type) -> Value:
    """The one number that x is."""
    if isinstance(x, Masked) or not (is_numpy(x) or python_type(x) is not None):
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
        value = _single(it, x, kind)
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
    return truth(it, x, "`bool`")


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
    """Only what is known while transpiling may be printed, and then it is not."""
    if not all(map(is_static, values)):
        raise error("E126", "printing run-time values is not supported yet", it.here, help="return them instead")


@means(repr, str, format, ascii)
def _text(it: Interpreter, value: Any = "", *more: Any) -> Any:
    return it.native(str, to_python(value)) if is_static(value) else it.opaque_text()


@means(vars)
def _vars(it: Interpreter, value: Any) -> Any:
    return get_attribute(it, value, "__dict__")


@means(id, hash)
def _refused(it: Interpreter, value: Any) -> Any:
    raise RuleError("`id` and `hash` are not supported", code="E202", kind=NotImplementedError)


@means(property, staticmethod, classmethod)
def _in_class(it: Interpreter, *args: Any) -> Any:
    raise RuleError("properties and methods are made in classes only", code="E110", kind=NotImplementedError)


# ---------------------------------------------------------------------------------------------------------------
# functools, dataclasses, copy, itertools, operator


@means(functools.partial)
def _partial(it: Interpreter, function: Any, *args: Any, **kwargs: Any) -> Any:
    return Partial(function, args, kwargs)


@means(functools.wraps)
def _wraps(it: Interpreter, wrapped: Any, *args: Any, **kwargs: Any) -> Any:
    return _identity


@means(functools.update_wrapper)
def _update_wrapper(it: Interpreter, wrapper: Any, *args: Any, **kwargs: Any) -> Any:
    return wrapper


@means(functools.lru_cache, functools.cache)
def _cache(it: Interpreter, function: Any = None, *args: Any, **kwargs: Any) -> Any:
    return function if isinstance(function, (Closure, Partial, BoundMethod)) or callable(function) else _identity


def _identity(value: Any) -> Any:
    return value


@means(_identity)
def _call_identity(it: Interpreter, value: Any) -> Any:
    return value


@means(dataclasses.replace)
def _replace(it: Interpreter, value: Any, **changes: Any) -> Any:
    from .calls import construct
    kind = type_of(value)
    given = {f.name: get_attribute(it, value, f.name) for f in dataclasses.fields(kind) if f.init}
    return construct(it, kind, (), {**given, **changes})


@means(dataclasses.astuple)
def _astuple(it: Interpreter, value: Any) -> Any:
    return tuple(get_attribute(it, value, f.name) for f in dataclasses.fields(type_of(value)))


@means(dataclasses.asdict)
def _asdict(it: Interpreter, value: Any) -> Any:
    return {f.name: get_attribute(it, value, f.name) for f in dataclasses.fields(type_of(value))}


@means(dataclasses.fields)
def _fields(it: Interpreter, value: Any) -> Any:
    return it.native(dataclasses.fields, value if isinstance(value, type) else type_of(value))


@means(copy.copy, copy.deepcopy)
def _copy(it: Interpreter, value: Any) -> Any:
    if isinstance(value, ArrayRef):
        return ArrayRef(value.read()) if not is_static(value) else ArrayRef(known=to_python(value))
    if isinstance(value, Instance):
        return Instance(value.cls, {k: _copy(it, v) for k, v in value.fields.items()})
    if isinstance(value, (list, OuterList)):
        return [_copy(it, v) for v in value]
    if isinstance(value, (dict, OuterDict)):
        return {k: _copy(it, v) for k, v in value.items()}
    if type(value) is tuple:
        return tuple(_copy(it, v) for v in value)
    return value


def natively_on_containers(it: Interpreter, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`itertools`: they move elements about and do not look at them; those that call back are refused."""
    if function.__name__ in ("accumulate", "starmap", "filterfalse", "takewhile", "dropwhile", "groupby"):
        raise RuleError(f"itertools.{function.__name__} is not supported", code="E202", kind=NotImplementedError,
                        help="write it as a comprehension or a loop")
    plain = [iterate(it, a) if isinstance(a, (ArrayRef, DimRange)) else a for a in args]
    return Iterator(iter(it.native(function, *plain, **kwargs)))


def container_method(it: Interpreter, owner: Any, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a list, dict, tuple, set or string."""
    name = method.__name__
    if isinstance(owner, str) and not (is_static(args) and is_static(kwargs)):
        if name in ("format", "join"):
            return it.opaque_text()
    if isinstance(owner, (list, tuple)) and name in ("index", "count", "remove"):
        if not is_static(owner) or not is_static(args):
            raise RuleError(f"`.{name}` compares run-time values, which is not supported", code="E111",
                            kind=NotImplementedError)
    if isinstance(owner, list) and name == "sort":
        owner[:] = _sorted(it, owner, **kwargs)
        return None
    if isinstance(owner, list) and name == "extend":
        args = (iterate(it, args[0]),)
    if isinstance(owner, dict) and name in ("get", "pop", "setdefault") and args:
        from .expressions import static_key
        args = (static_key(it, args[0]), *args[1:])
    if isinstance(owner, list) and name in ("pop", "insert") and args:
        args = (it.static_int(args[0], "an index of a list"), *args[1:])
    return it.native(method, *args, **kwargs)


@means(operator.getitem)
def _getitem(it: Interpreter, value: Any, key: Any) -> Any:
    from .indexing import get_item
    return get_item(it, value, key)


def call_getter(it: Interpreter, getter: Any, value: Any) -> Any:
    """`operator.itemgetter(...)(value)`, `operator.attrgetter(...)(value)`."""
    def one(name: Any) -> Any:
        if isinstance(getter, operator.itemgetter):
            return _getitem(it, value, name)
        return functools.reduce(lambda found, part: get_attribute(it, found, part), name.split("."), value)

    _, names = getter.__reduce__()
    return one(names[0]) if len(names) == 1 else tuple(map(one, names))


@means(operator.contains)
def _contains(it: Interpreter, container: Any, item: Any) -> bool:
    return contains(it, item, container)


@means(operator.not_)
def _not(it: Interpreter, value: Any) -> bool:
    return not truth(it, value, "`not`")


def _register_operators() -> None:
    comparisons, unaries = {op.python for op in COMPARE.values()}, {op.python for op in UNARY.values()}
    for function, op in BY_FUNCTION.items():
        if function in unaries:
            TABLE[function] = functools.partial(lambda op, it, x: unary(it, op, x), op)
        elif function in comparisons:
            TABLE[function] = functools.partial(lambda op, it, a, b: compare(it, op, a, b), op)
        else:
            TABLE[function] = functools.partial(lambda op, it, a, b: binary(it, op, a, b), op)


_register_operators()

# ---------------------------------------------------------------------------------------------------------------
# math

DOMAINS: dict[str, Callable[[Value], Value]] = {
    "sqrt": lambda x: ops.greater_equal(x, 0.0), "log": lambda x: ops.greater(x, 0.0),
    "log2": lambda x: ops.greater(x, 0.0), "log10": lambda x: ops.greater(x, 0.0),
    "log1p": lambda x: ops.greater(x, -1.0), "asin": lambda x: ops.less_equal(ops.absolute(x), 1.0),
    "acos": lambda x: ops.less_equal(ops.absolute(x), 1.0), "acosh": lambda x: ops.greater_equal(x, 1.0),
    "atanh": lambda x: ops.less(ops.absolute(x), 1.0),
}
UFUNCS: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "fabs": np.fabs, "hypot": np.hypot,
    "copysign": np.copysign, "fmod": np.fmod, "pow": np.power, "degrees": np.degrees, "radians": np.radians,
    "nextafter": np.nextafter,
}
PREDICATES: dict[str, Any] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
ROUNDING: dict[str, Any] = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}


def _math_number(it: Interpreter, x: Any) -> Value:
    return cast(_single(it, x, float), "float64")


def _math(name: str, ufunc: Any, result: str | None) -> Callable[..., Any]:
    """A function of `math`: it takes anything that is one number, and gives a Python number."""
    python = getattr(math, name)

    def call(it: Interpreter, *args: Any) -> Any:
        if is_static(args):
            return it.native(python, *map(to_python, args))
        numbers = [_math_number(it, x) for x in args]
        if name in DOMAINS:
            check(DOMAINS[name](numbers[0]), "ValueError", "math domain error")
        value = it.spell(ufunc, *numbers)
        made = Weak(value if result is None else cast(value, result))
        it.derived(made, args, None)
        return made

    call.__name__ = name
    return call


for _name, _ufunc in UFUNCS.items():
    TABLE[getattr(math, _name)] = _math(_name, _ufunc, None)
for _name, _ufunc in PREDICATES.items():
    TABLE[getattr(math, _name)] = _math(_name, _ufunc, None)
for _name, _ufunc in ROUNDING.items():
    TABLE[getattr(math, _name)] = _math(_name, _ufunc, "int64")


@means(math.log)
def _log(it: Interpreter, x: Any, base: Any = None) -> Any:
    if is_static((x, base)):
        return it.native(math.log, to_python(x), *([] if base is None else [to_python(base)]))
    number = _math_number(it, x)
    check(ops.greater(number, 0.0), "ValueError", "math domain error")
    value = it.spell(np.log, number)
    return Weak(value if base is None else it.spell(np.true_divide, value, it.spell(np.log, _math_number(it, base))))


def _scipy_function(python: Any, name: str) -> Callable[..., Any]:
    def call(it: Interpreter, x: Any) -> Any:
        if is_static(x):
            return it.native(python, to_python(x))
        import scipy.special
        return Weak(it.spell(getattr(scipy.special, name), _math_number(it, x)))

    return call


TABLE[math.erf], TABLE[math.erfc] = _scipy_function(math.erf, "erf"), _scipy_function(math.erfc, "erfc")
TABLE[math.lgamma] = _scipy_function(math.lgamma, "gammaln")


@means(math.prod)
def _math_prod(it: Interpreter, values: Any, *, start: Any = 1) -> Any:
    items = iterate(it, values)
    if items and isinstance(start, int) and start == 1:
        start, items = items[0], items[1:]
    for item in items:
        start = binary(it, BY_FUNCTION[operator.mul], start, item)
    return start


@means(math.fsum)
def _fsum(it: Interpreter, values: Any) -> Any:
    return TABLE[float](it, _sum(it, values))


@means(math.dist)
def _dist(it: Interpreter, p: Any, q: Any) -> Any:
    gaps = [binary(it, BY_FUNCTION[operator.sub], a, b) for a, b in zip(iterate(it, p), iterate(it, q))]
    return TABLE[math.sqrt](it, _sum(it, [binary(it, BY_FUNCTION[operator.mul], g, g) for g in gaps]))


def _refuse(name: str, what: str) -> Callable[..., Any]:
    python = getattr(cmath if what == "cmath" else math, name)

    def call(it: Interpreter, *args: Any, **kwargs: Any) -> Any:
        if is_static(args) and is_static(kwargs):
            return it.native(python, *map(to_python, args), **kwargs)
        raise RuleError(f"{what}.{name} of run-time values is not supported", code="E202", kind=NotImplementedError,
                        help=f"use np.{name}" if hasattr(np, name) else None)

    return call


for _module in (math, cmath):
    for _name in dir(_module):
        _function = getattr(_module, _name)
        if callable(_function) and _function not in TABLE and not _name.startswith("_"):
            TABLE[_function] = _refuse(_name, _module.__name__)

