"""The standard library on abstract values: `functools`, `dataclasses`, `copy`, `itertools`, `operator`, `math`."""

from __future__ import annotations

import cmath
import copy
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ops
from ..ir.build import check, current
from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.spelling import Weak, cast
from .attributes import MUTATORS, get_attribute
from .decided import check_own
from .expressions import opposite
from .folding import python_sum
from .grown import is_grown
from .growth import GROWING
from .iteration import DimRange, Iterator, iterate, one_by_one
from .operators import BY_FUNCTION, COMPARE, UNARY, binary, compare, contains, unary
from .python_functions import TABLE, find_builtin, means, python_sorted, single_number
from .values import (
    ArrayRef,
    BoundMethod,
    Closure,
    Instance,
    OuterDict,
    OuterList,
    Partial,
    is_static,
    to_python,
    type_of,
)

if TYPE_CHECKING:
    from .interpreter import Interpreter

__all__ = ["call_getter", "container_method", "find_builtin", "natively_on_containers"]

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
    if function is itertools.accumulate:
        return Iterator(_accumulated(it, *args, **kwargs))
    if function is itertools.starmap:
        return Iterator([it.call(args[0], tuple(iterate(it, a)), {}) for a in iterate(it, args[1])])
    if function.__name__ in ("filterfalse", "takewhile", "dropwhile", "groupby"):
        raise RuleError(f"itertools.{function.__name__} is not supported", code="E202", kind=NotImplementedError,
                        help="write it as a comprehension or a loop")
    plain = [iterate(it, a) if isinstance(a, (ArrayRef, DimRange)) else a for a in args]
    return Iterator(it.native(function, *plain, **kwargs))


def _accumulated(it: Interpreter, values: Any, func: Any = None, *, initial: Any = None) -> list[Any]:
    found = [] if initial is None else [initial]
    for item in one_by_one(it, values):
        add = func if func is not None else operator.add
        found.append(it.call(add, (found[-1], item), {}) if found else item)
    return found


def container_method(it: Interpreter, owner: Any, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a list, dict, tuple, set or string."""
    name = method.__name__
    if name in MUTATORS:
        check_own(it, owner)
    if isinstance(owner, str) and not (is_static(args) and is_static(kwargs)):
        from .texts import formatted, joined, piece
        if name == "format":
            return formatted(it, owner, args, kwargs)
        if name == "join":
            items = iterate(it, args[0])
            return joined(it, [p for k, x in enumerate(items) for p in ([piece(it, owner)] if k else []) + [
                piece(it, x)]])
    if isinstance(owner, (list, tuple)) and name in ("index", "count", "remove"):
        if not is_static(owner) or not is_static(args):
            raise RuleError(f"`.{name}` compares run-time values, which is not supported", code="E111",
                            kind=NotImplementedError)
    if isinstance(owner, list) and name == "sort":
        owner[:] = python_sorted(it, owner, **kwargs)
        return None
    if isinstance(owner, list) and it.watch is not None and name in GROWING:
        return _while_watched(it, owner, method, args)
    if isinstance(owner, list) and name == "extend":
        return extend_list(it, owner, args[0])
    if isinstance(owner, dict) and name in ("get", "pop", "setdefault") and args:
        from .expressions import static_key
        args = (static_key(it, args[0]), *args[1:])
    if isinstance(owner, list) and name in ("pop", "insert") and args:
        args = (it.static_int(args[0], "an index of a list"), *args[1:])
    return it.native(method, *args, **kwargs)


def _while_watched(it: Interpreter, owner: Any, method: Any, args: tuple[Any, ...]) -> Any:
    """A list is changed in a trip that is looked at: elements stay, so that others can be read."""
    assert it.watch is not None
    match method.__name__:
        case "append":
            it.watch.note(it, owner, list(args))
            return it.native(method, *args)
        case "extend":
            owner.extend(it.watch.note_all(it, owner, args[0]))
            return None
        case "pop":
            it.watch.note(it, owner, [])
            return it.native(owner.__getitem__, it.static_int(args[0], "an index of a list") if args else -1)
    it.watch.note(it, owner, [])
    return None


def extend_list(it: Interpreter, owner: Any, values: Any) -> None:
    """`owner.extend(values)`."""
    if is_grown(values) or (isinstance(values, ArrayRef) and values.rank and not isinstance(values.shape[0], int)):
        if it.probes or current().outer is not None:
            raise RuleError("a list gets as many elements as the running function decides", code="E122",
                            kind=NotImplementedError)
    owner.extend(iterate(it, values))


@means(operator.getitem)
def _getitem(it: Interpreter, value: Any, key: Any) -> Any:
    from .indexing import get_item
    return get_item(it, value, key)


def call_getter(it: Interpreter, getter: Any, value: Any) -> Any:
    """`operator.itemgetter(...)(value)`, `operator.attrgetter(...)(value)`, `operator.methodcaller(...)(value)`."""
    if isinstance(getter, operator.methodcaller):
        reduced: Any = getter.__reduce__()
        made, given = reduced
        named = made.keywords if isinstance(made, functools.partial) else {}
        parts: tuple[Any, ...] = (*made.args, *given) if isinstance(made, functools.partial) else given
        name, *args = parts
        return it.call(get_attribute(it, value, name), tuple(args), named)

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
def _not(it: Interpreter, value: Any) -> Any:
    return opposite(it, value)


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
    return cast(single_number(it, x, float), "float64")


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
    return TABLE[float](it, python_sum(it, values))


@means(math.dist)
def _dist(it: Interpreter, p: Any, q: Any) -> Any:
    gaps = [binary(it, BY_FUNCTION[operator.sub], a, b) for a, b in zip(iterate(it, p), iterate(it, q))]
    return TABLE[math.sqrt](it, python_sum(it, [binary(it, BY_FUNCTION[operator.mul], g, g) for g in gaps]))


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
