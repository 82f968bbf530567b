"""Calls: which code a callee means, binding of arguments with Python's own messages, and objects being made."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import types
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from ..errors import error
from ..ops.base import RuleError
from ..ops.spelling import find_spelling
from .binding import bind, missing_text, too_many_text, wrong_call
from .compiled_calls import call_elementwise, elementwise_function, python_function, refuse_compiled
from .environment import MISSING, Frame, scope_of
from .guards import Access
from .purity import is_constant, is_foreign, is_standard, is_standard_class, may_run, refuse_effects
from .stand_ins import stand_in
from .values import (
    HEAP_TYPE,
    ArrayMethod,
    ArrayRef,
    BoundMethod,
    Closure,
    Instance,
    Native,
    Partial,
    Super,
    TransformValue,
    from_numpy,
    is_static,
    to_python,
    type_of,
)

if TYPE_CHECKING:
    from .interpreter import Interpreter


def call_value(it: Interpreter, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything."""
    match callee:
        case Closure():
            return _call_closure(it, callee, args, kwargs)
        case BoundMethod():
            return call_value(it, callee.function, (callee.receiver, *args), kwargs)
        case Native():
            return callee.function(it, *args, **kwargs)
        case ArrayMethod():
            return _call_array_method(it, callee, args, kwargs)
        case Partial():
            return call_value(it, callee.function, (*callee.args, *args), {**callee.kwargs, **kwargs})
        case TransformValue():
            return _call_transformed(it, callee, args, kwargs)
        case Instance():
            found = it.find_special(callee, "__call__")
            if found is None:
                raise RuleError(f"{callee.cls.__name__!r} object is not callable", kind=TypeError, code="E118")
            return call_value(it, found, args, kwargs)
    return _call_object(it, callee, args, kwargs)


def _call_object(it: Interpreter, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python object that exists outside of the trace."""
    callee = stand_in(callee)
    transformed = getattr(callee, "__gradsmith_transformed__", None)
    if transformed is not None and not isinstance(callee, type):
        kind, fun, options, named = transformed
        if hasattr(callee, "rules"):                # they may be given anew
            it.captures.guard(Access(callee, (("attr", "rules"),)), "is", callee.rules)
        return _call_transformed(it, TransformValue(kind, fun, tuple(options), dict(named)), args, kwargs)
    from . import array_places  # noqa: F401  registers what NumPy's iterators mean
    from .standard_library import call_getter, find_builtin
    builtin = find_builtin(callee)
    if builtin is not None:
        return _call_builtin(it, builtin, callee, args, kwargs)
    native = getattr(callee, "__gradsmith_native__", None)
    if native is not None and not isinstance(callee, type):
        return native(it, *args, **kwargs)
    key = getattr(callee, "__gradsmith_spelling__", callee)
    if _spelling_of(key) is not None:
        return _call_library(it, key, args, kwargs)
    kind = getattr(callee, "__gradsmith_transform__", None)
    if kind is not None:
        return _apply_transform(it, kind, args, kwargs)
    if isinstance(callee, (operator.itemgetter, operator.attrgetter, operator.methodcaller)):
        return call_getter(it, callee, *args)
    if isinstance(callee, types.MethodType):
        return call_value(it, callee.__func__, (callee.__self__, *args), kwargs)
    if isinstance(callee, functools.partial):
        return _call_partial(it, callee, args, kwargs)
    on_elements = elementwise_function(callee)
    if on_elements is not None:
        return call_elementwise(it, callee, on_elements, args, kwargs)
    refuse_compiled(callee)
    if isinstance(callee, type) and callee.__module__ != "itertools":
        return construct(it, callee, args, kwargs)
    inner = _inner_function(callee)
    if inner is not None:
        return call_value(it, inner, args, kwargs)
    if isinstance(callee, types.FunctionType) and not _is_library(callee):
        return _call_function(it, callee, args, kwargs)
    own_call = inspect.getattr_static(type(callee), "__call__", None)
    if isinstance(own_call, types.FunctionType) and not _is_library(own_call):
        return call_value(it, own_call, (callee, *args), kwargs)
    if not callable(callee):
        raise RuleError(f"{type_of(callee).__name__!r} object is not callable", kind=TypeError, code="E118")
    return _call_library(it, key, args, kwargs)


def _call_builtin(it: Interpreter, builtin: Any, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return builtin(it, *args, **kwargs)
    except TypeError as problem:
        try:
            inspect.signature(builtin).bind(it, *args, **kwargs)
        except TypeError as mismatch:
            raise RuleError(f"{callee.__name__}(): {mismatch}", kind=TypeError, code="E118") from problem
        raise


def _inner_function(callee: Any) -> Any | None:
    """What a cache or a compiler wraps: it computes the same as its Python function."""
    if isinstance(callee, functools._lru_cache_wrapper):
        return callee.__wrapped__
    return python_function(callee)


def _is_library(function: types.FunctionType) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module.partition(".")[0] in ("numpy", "scipy")


def _call_partial(it: Interpreter, callee: functools.partial, args: tuple[Any, ...],  # type: ignore[type-arg]
                  kwargs: dict[str, Any]) -> Any:
    given = it.captures.take(callee.args, Access(callee, (("attr", "args"),)))
    named = dict(it.captures.take(callee.keywords, Access(callee, (("attr", "keywords"),))))
    return call_value(it, callee.func, (*given, *args), {**named, **kwargs})


# ---------------------------------------------------------------------------------------------------------------
# NumPy and other libraries


def _spelling_of(key: Any) -> Any | None:
    owner, name = getattr(key, "__self__", None), getattr(key, "__name__", None)
    if isinstance(owner, np.ufunc):
        return find_spelling((owner, name))
    return find_spelling(key)


def _call_library(it: Interpreter, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy, SciPy or the standard library: its spelling, or itself where all is known."""
    owner = getattr(callee, "__self__", None)
    from .in_place import IN_PLACE, at
    from .numpy_in_python import composed_of
    in_place = IN_PLACE.get(_hashable(callee))
    if in_place is not None:
        return in_place(it, *args, **kwargs)
    composed = composed_of(callee)
    if composed is not None and not (is_static(args) and is_static(kwargs)):
        return it.call(composed, args, kwargs, it.here)
    if isinstance(owner, np.ufunc) and callee.__name__ == "at":
        return at(it, owner, *args, **kwargs)
    if isinstance(owner, np.ufunc):
        return _call_ufunc_method(it, owner, callee, args, kwargs)
    if isinstance(owner, (list, dict, tuple, set, str, bytes, frozenset)):
        from .standard_library import container_method
        return container_method(it, owner, callee, args, kwargs)
    if getattr(callee, "__module__", None) == "itertools":
        from .standard_library import natively_on_containers
        return natively_on_containers(it, callee, args, kwargs)
    if _spelling_of(callee) is None:
        is_known = is_static(args) and is_static(kwargs)
        if is_known or not is_foreign(callee):
            refuse_effects(callee)
        if not is_known:
            return _no_spelling(it, callee, args, kwargs)
    return it.call_numpy(callee, args, kwargs)


def _hashable(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        return None
    return x


def _call_ufunc_method(it: Interpreter, owner: np.ufunc, callee: Any, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> Any:
    if is_static(args) and is_static(kwargs):
        return from_numpy(it.native(callee, *map(to_python, args), **{k: to_python(v) for k, v in kwargs.items()}))
    return it.call_spelling((owner, callee.__name__), args, kwargs)


def _no_spelling(it: Interpreter, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from .numpy_calls import not_supported
    module = getattr(callee, "__module__", None) or ""
    if module.partition(".")[0] in ("numpy", "scipy") or isinstance(callee, np.ufunc):
        raise not_supported(callee)
    name = getattr(callee, "__qualname__", None) or getattr(callee, "__name__", repr(callee))
    raise RuleError(f"`{module + '.' if module else ''}{name}` is not written in Python, so it has no derivative",
                    code="E209", kind=TypeError,
                    help="write in NumPy what it does, or call it outside and pass in its result")


def _call_array_method(it: Interpreter, method: ArrayMethod, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.sum(...)`; some methods are Python's ways out of NumPy."""
    x, name = method.receiver, method.name
    from .python_functions import array_to_list, item_of
    match name:
        case "item":
            return item_of(it, x, args)
        case "tolist":
            return array_to_list(it, x)
        case "copy" | "__copy__" | "flatten" if isinstance(x, ArrayRef) and not is_static(x):
            copied = it.spell(np.ravel, x.read(), *args, **kwargs) if name == "flatten" else x.read()
            return ArrayRef(copied, layout="C")
        case "copy" if not isinstance(x, ArrayRef):
            return x
        case "block_until_ready":
            return x
    from .in_place import ARRAY_METHODS, REFUSED_METHODS
    if name in ARRAY_METHODS:
        return ARRAY_METHODS[name](it, x, *args, **kwargs)
    descriptor = getattr(np.ndarray, name)
    if name in REFUSED_METHODS:
        raise RuleError(f"`.{name}` changes the array in place, which is not supported", code="E110",
                        kind=NotImplementedError, help=REFUSED_METHODS[name])
    if _spelling_of(descriptor) is None:
        refuse_effects(descriptor)
    return it.call_numpy(descriptor, (x, *args), kwargs)


# ---------------------------------------------------------------------------------------------------------------
# transforms


def _apply_transform(it: Interpreter, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`grad(f)`, `vjp(f, x)`: a transform's name called."""
    from .transform_calls import make_transform
    return make_transform(it, kind, args, kwargs, it.here)


def _call_transformed(it: Interpreter, value: TransformValue, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`grad(f)(x)`: what a transform gave, called."""
    from .transform_calls import call_transform
    return call_transform(it, value, args, kwargs, it.here)


# ---------------------------------------------------------------------------------------------------------------
# functions


def _call_function(it: Interpreter, function: types.FunctionType, args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> Any:
    """A Python function from outside: its source is interpreted, whatever it claims to wrap."""
    if is_standard(function.__code__.co_filename):
        refuse_effects(function)
        if may_run(function, args, kwargs):
            return it.native(function, *args, **kwargs)
    source = it.source_of(function)
    node, code = source.node, function.__code__
    scope = scope_of(node)
    if isinstance(node, gast.AsyncFunctionDef) or scope.is_generator:
        raise error("E112", f"`{function.__qualname__}` is a generator or a coroutine", source.location_of(node),
                    help="return a list or an array")
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    frame = Frame(source, scope, None, function.__globals__, cells, function.__name__, _class_of(function))
    defaults = function.__defaults__ or ()
    taken = tuple(_default(it, function, "__defaults__", k, v) for k, v in enumerate(defaults))
    named = {k: _default(it, function, "__kwdefaults__", k, v) for k, v in (function.__kwdefaults__ or {}).items()}
    return _run(it, node, frame, function.__qualname__.rpartition("<locals>.")[2], taken, named, args, kwargs)


def _default(it: Interpreter, function: types.FunctionType, where: str, key: Any, value: Any) -> Any:
    """A default value: Python evaluated it once, so a number in it is known; an array is read at every call."""
    if is_constant(value):
        return value
    step = ("item", key) if where == "__defaults__" else ("key", key)
    code = function.__code__
    first = code.co_argcount - len(function.__defaults__ or ())
    label = code.co_varnames[first + key] if where == "__defaults__" else key
    return it.captures.take(value, Access(function, (("attr", where), step), label))


def _class_of(function: types.FunctionType) -> str | None:
    parts = function.__qualname__.rsplit(".", 2)
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None


def _call_closure(it: Interpreter, closure: Closure, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outer = closure.frame
    frame = Frame(closure.source, scope_of(closure.node), outer, outer.globals, {}, closure.name, outer.class_name)
    return _run(it, closure.node, frame, closure.name, closure.defaults, closure.kw_defaults, args, kwargs)


def _run(it: Interpreter, node: Any, frame: Frame, name: str, defaults: tuple[Any, ...], kw_defaults: dict[str, Any],
         args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Bind and run the body."""
    bind(frame, node.args, name, defaults, kw_defaults, args, kwargs)
    frame.first = args[0] if args else MISSING
    frame.node = node
    from .recursion import recursive_call
    outcome = recursive_call(it, node, frame, name)
    return outcome.value if outcome is not None else run_body(it, node, frame, name)


def run_body(it: Interpreter, node: Any, frame: Frame, name: str) -> Any:
    """Run the body with bound arguments."""
    from .interpreter import MAX_DEPTH
    if it.depth >= MAX_DEPTH:
        raise error("E125", f"`{name}` is called inside itself more than {MAX_DEPTH} times", it.here,
                    kind=RecursionError, label="a recursion that does not end?",
                    help="make what ends it a static argument (static_argnums), or write it as a loop")
    called_from = it.here
    frame.node = node
    frame.called_at = called_from if frame.is_librarys else None
    it.depth += 1
    it.frames.append(frame)
    try:
        if isinstance(node, gast.Lambda):
            from .expressions import evaluate
            return evaluate(it, node.body, frame)
        from .branches import returned_value
        from .statements import execute_block
        return returned_value(it, execute_block(it, node.body, frame), node, frame)
    finally:
        it.frames.pop()
        it.depth -= 1
        if it.depth:
            it.returned_to(called_from)


def zero_argument_super(it: Interpreter, frame: Frame) -> Super:
    """`super()` in a method."""
    cell = frame.cells_of("__class__")
    first = frame.first
    if cell is None or first is MISSING:
        raise RuleError("super(): no arguments", kind=RuntimeError, code="E120")
    return Super(cell.cell_contents, first)


# ---------------------------------------------------------------------------------------------------------------
# objects being made

NATIVE_CLASSES = ("numpy", "collections", "decimal", "fractions", "enum", "operator")


def construct(it: Interpreter, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls(...)`: an Instance for classes written in Python, Python's own object where all is known."""
    if issubclass(cls, tuple) and hasattr(cls, "_make"):
        return it.native(cls, *args, **kwargs)
    if issubclass(cls, np.generic):
        return _cast_scalar(it, cls, args)
    if issubclass(cls, BaseException):
        from .texts import argument
        return it.native(cls, *(argument(it, a) for a in args))
    if dataclasses.is_dataclass(cls) and "__init__" in vars(cls) and getattr(
            vars(cls)["__init__"], "__qualname__", "").endswith("__init__") and _is_generated(vars(cls)["__init__"]):
        return _construct_dataclass(it, cls, args, kwargs)
    if not cls.__flags__ & HEAP_TYPE or cls.__module__.partition(".")[0] in NATIVE_CLASSES:
        if not (is_static(args) and is_static(kwargs)):
            raise RuleError(f"{cls.__name__}(...) of run-time values is not supported", code="E202",
                            kind=NotImplementedError)
        if cls.__module__ != "datetime":
            refuse_effects(cls)
        return from_numpy(it.native(cls, *map(to_python, args), **{k: to_python(v) for k, v in kwargs.items()}))
    if is_standard_class(cls):
        refuse_effects(cls)
    made = Instance(cls, {})
    init = it.find_special(made, "__init__")
    if init is not None:
        call_value(it, init, args, kwargs)
    elif args or kwargs:
        raise wrong_call(f"{cls.__name__}() takes no arguments")
    return made


def _is_generated(function: Any) -> bool:
    """Written by `dataclasses`, so that there is no source."""
    return getattr(getattr(function, "__code__", None), "co_filename", "").startswith("<")


def _cast_scalar(it: Interpreter, cls: type, args: tuple[Any, ...]) -> Any:
    """`np.float32(x)`."""
    if is_static(args):
        return from_numpy(it.native(cls, *map(to_python, args)))
    from ..ops.spelling import as_value, cast
    from .numpy_calls import lift, lower
    (x,) = args
    return lift(cast(as_value(lower(x)), np.dtype(cls).name))


def _construct_dataclass(it: Interpreter, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Instance:
    fields = [f for f in dataclasses.fields(cls) if f.init]
    positional = [f for f in fields if not f.kw_only]
    if len(args) > len(positional):
        raise wrong_call(too_many_text(f"{cls.__name__}.__init__", ["self", *(f.name for f in positional)],
                               sum(_has_default(f) for f in positional), len(args) + 1))
    given = dict(zip((f.name for f in positional), args))
    for key, value in kwargs.items():
        if key in given:
            raise wrong_call(f"{cls.__name__}.__init__() got multiple values for argument '{key}'")
        if all(f.name != key for f in fields):
            raise wrong_call(f"{cls.__name__}.__init__() got an unexpected keyword argument '{key}'")
        given[key] = value
    made = Instance(cls, {})
    missing = []
    for f in dataclasses.fields(cls):
        if f.name in given:
            made.fields[f.name] = given[f.name]
        elif f.default_factory is not dataclasses.MISSING:
            made.fields[f.name] = call_value(it, f.default_factory, (), {})
        elif f.default is not dataclasses.MISSING:
            made.fields[f.name] = _field_default(it, cls, f)
        elif f.init:
            missing.append(f.name)
    if missing:
        raise wrong_call(missing_text(f"{cls.__name__}.__init__", "positional", missing))
    after = it.find_special(made, "__post_init__")
    if after is not None:
        call_value(it, after, (), {})
    return made


def _has_default(f: Any) -> bool:
    return f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING


def _field_default(it: Interpreter, cls: type, f: Any) -> Any:
    if isinstance(f.default, (bool, int, float, complex, str, type(None))):
        return f.default
    return it.captures.take(f.default, Access(cls, (("attr", f.name),)))

