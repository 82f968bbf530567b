"""Calls of NumPy's functions: through their spellings where run-time values take part, by NumPy itself where not.

Results that NumPy makes as views of an argument become views here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import nearest, offer
from ..ir.dims import DimExpr
from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.spelling import SPELLINGS, NotKnown, Weak, find_spelling, is_value
from . import layout, views
from .grown import holds_grown, without_grown
from .grown_methods import join_rows
from .guards import Unify
from .masked import call_masked, shown
from .numpy_in_python import COMPOSED
from .values import KNOWN_SIZE, ArrayRef, Masked, from_numpy, is_static, to_python

if TYPE_CHECKING:
    from .interpreter import Interpreter


def call_spelling(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function (or method) that has a spelling, on abstract values."""
    function = find_spelling(key)
    if function is None:
        raise not_supported(key)
    if any(map(holds_grown, args)):
        joined = join_rows(it, key, args, kwargs)
        if joined is not None:
            return joined
        args = without_grown(it, args)
    if any(type(x) in (list, tuple) and any(isinstance(v, Masked) for v in x) for x in args):
        args = tuple(map(shown, args))
    if any(isinstance(x, Masked) for x in (*args, *kwargs.values())):
        return call_masked(it, key, args, kwargs)
    from .in_place import with_out
    written = with_out(it, key, args, kwargs)
    if written is not None:
        return written
    result = _run_spelling(it, key, function, [lower(a) for a in args], {k: lower(v) for k, v in kwargs.items()})
    found = views.of_result(key, args, kwargs, result)
    if found is not None:
        return found
    made = ArrayRef(result) if is_value(result) and views.gives_array(key, args) else lift(result)
    if isinstance(made, ArrayRef):
        made.layout = layout.of_result(key, args, made.rank)
    return made


def _run_spelling(it: Interpreter, key: Any, function: Callable[..., Any], args: list[Any],
                  kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except NotKnown as problem:
        operand = problem.operand
        if problem.is_size:
            size = it.dimension(operand)
            return _run_spelling(it, key, function, [replaced(a, operand, size) for a in args],
                                      {k: replaced(v, operand, size) for k, v in kwargs.items()})
        if isinstance(operand, DimExpr) and it.assumptions.decidable(operand):
            raise Unify(it.assumptions.pinned(operand)) from None
        it.demand(operand)
        raise
    except TypeError as problem:
        _explain_signature(key, function, args, kwargs, problem)
        raise
    except RuleError as problem:
        _unify_equal_sizes(it, args, kwargs, problem)
        if problem.kind is TypeError:
            return _with_known_ints(it, key, function, args, kwargs, problem)
        raise


def _with_known_ints(it: Interpreter, key: Any, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any],
                     problem: RuleError) -> Any:
    """A rule refuses types: perhaps it takes sizes where it was given ints known at run time, else static ints."""
    ints = [x for x in (*args, *kwargs.values()) if isinstance(x, Weak)]
    sizes = [x for x in ints if it.as_dim(x) is not None]
    if not ints:
        raise problem
    if sizes:
        for x in sizes:
            size = it.dimension(x)
            args = [replaced(a, x, size) for a in args]
            kwargs = {k: replaced(v, x, size) for k, v in kwargs.items()}
        try:
            return function(*args, **kwargs)
        except (RuleError, TypeError):
            pass
    for x in ints:
        it.demand(x)
    raise problem


def _explain_signature(key: Any, function: Any, args: list[Any], kwargs: dict[str, Any],
                       problem: TypeError) -> None:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as mismatch:
        raise RuleError(f"{name_of(key)}() {mismatch}", kind=TypeError, code="E208") from problem


def _unify_equal_sizes(it: Interpreter, args: list[Any], kwargs: dict[str, Any], problem: Exception) -> None:
    """A rule refuses shapes: where their sizes differ in name only, start again with one name; where they differ in
    this call, that is what the refusal is for."""
    if getattr(problem, "kind", ValueError) not in (ValueError, None):
        return
    found = {dim: None for value in _values_in([*args, *kwargs.values()]) for dim in value.shape}
    dims = list(found)
    for k, a in enumerate(dims):
        for b in dims[k + 1:]:
            if None not in (it.assumptions.example(a), it.assumptions.example(b)):
                it.assumptions.are_equal(a, b)


def call_numpy(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function on anything: NumPy itself where all is known, else its spelling."""
    has_out = kwargs.get("out") is not None or (isinstance(key, np.ufunc) and len(args) > key.nin)
    if not has_out and is_static(args) and is_static(kwargs):
        return _known_result(it, key, args, kwargs)
    return call_spelling(it, key, args, kwargs)


def _known_result(it: Interpreter, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's own result; large arrays are emitted instead, so that no table of their elements is written."""
    if key in (np.empty, np.empty_like):      # what memory happens to hold is not to be frozen
        key = {np.empty: np.zeros, np.empty_like: np.zeros_like}[key]
    held: list[tuple[ArrayRef, np.ndarray[Any, Any]]] = []
    static_args = [_given(a, held, key) for a in args]
    static_kwargs = {k: _given(v, held, key) for k, v in kwargs.items()}
    result = it.native(key, *static_args, **static_kwargs)
    function = find_spelling(key)
    if isinstance(result, np.ndarray) and result.ndim and function is not None and not held and not _holds_array(args):
        if result.size > KNOWN_SIZE:
            return call_spelling(it, key, args, kwargs)
        if result.size > 4 and result.dtype.kind in "biufc":
            return ArrayRef(known=np.array(result), recipe=lambda: function(*static_args, **static_kwargs))
    return views.of_known(it, key, args, kwargs, result, held)


def _given(x: Any, held: list[tuple[ArrayRef, np.ndarray[Any, Any]]], key: Any) -> Any:
    """A known argument as NumPy gets it; arrays are noted, in whose memory the result may lie."""
    if not isinstance(x, ArrayRef):
        return to_python(x)
    array = x.current_known()
    assert array is not None
    if not views.makes_views(key):          # it might write to it
        array = array.copy("K")
    held.append((x, array))
    return array


def lower(x: Any) -> Any:
    """An abstract value as spellings take it: arrays as IR values, or as NumPy has them where they are known, those
    without axes as scalars."""
    if isinstance(x, ArrayRef):
        known = x.current_known()
        if known is None or x.recipe is not None or x.value is not None:
            return x.read()
        return known.copy() if known.ndim else known[()]
    if type(x) in (list, tuple):
        return type(x)(map(lower, x))
    if isinstance(x, (list, range)):
        return [lower(v) for v in x]
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return tuple(map(lower, x))
    if isinstance(x, dict):
        return {k: lower(v) for k, v in x.items()}
    return x


def lift(x: Any) -> Any:
    """What a spelling returns, as an abstract value: arrays become new buffers."""
    if is_value(x):
        return ArrayRef(x) if x.rank else x
    if isinstance(x, (list, tuple)):
        return type(x)._make(map(lift, x)) if hasattr(x, "_make") else type(x)(map(lift, x))
    return from_numpy(x)


def replaced(x: Any, old: Any, new: Any) -> Any:
    """x with one object in it (found by identity) replaced."""
    if x is old or (isinstance(x, Weak) and isinstance(old, Weak) and x.value is old.value):
        return new
    if type(x) in (list, tuple):
        return type(x)(replaced(v, old, new) for v in x)
    return x


def _values_in(x: Any) -> list[Value]:
    if is_value(x):
        return [x]
    return [v for part in x for v in _values_in(part)] if isinstance(x, (list, tuple)) else []


def _holds_array(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_holds_array, x))
    return isinstance(x, ArrayRef)


def name_of(key: Any) -> str:
    """How a user calls a NumPy function."""
    if isinstance(key, tuple) and isinstance(key[0], str):       # a function of a module that is imported lazily
        return ".".join(key)
    if isinstance(key, tuple):
        return f"np.{key[0].__name__}.{key[1]}"
    module = (getattr(key, "__module__", None) or "").partition("._")[0]     # people do not name private modules
    name = getattr(key, "__name__", repr(key))
    if getattr(key, "__objclass__", None) is np.ndarray:
        return f"ndarray.{name}"
    if isinstance(key, np.ufunc):
        module = "numpy" if getattr(np, name, None) is key else "scipy.special"
    if module == "builtins" or not module:
        return name
    return f"{module.replace('numpy', 'np', 1) if module.startswith('numpy') else module}.{name}"


def not_supported(key: Any) -> RuleError:
    """NumPy has the function, but it has no spelling here."""
    name = name_of(key)
    by_last_name = {name_of(k).rpartition(".")[2]: name_of(k) for k in (*SPELLINGS, *COMPOSED)}
    near = [by_last_name[last] for last in nearest(name.rpartition(".")[2], by_last_name)]
    return RuleError(f"{name} is not supported", kind=NotImplementedError, code="E202",
                     help=offer(near) or "`gradsmith ops` lists what is supported; write it in "
                     "terms of that, or call it outside and pass in its result")

