"""Attributes: of arrays and scalars, modules, objects and classes."""

from __future__ import annotations

import enum
import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import did_you_mean, error, nearest, offer
from ..ir import dims
from ..ops.base import RuleError
from ..ops.spelling import Weak, find_spelling
from . import masked
from .decided import check_own
from .environment import MISSING
from .grown import GrownList
from .guards import Access
from .ruled_calls import DEFINING, RULED, define_rule
from .stand_ins import numpys_own
from .updates import At
from .values import (
    HEAP_TYPE,
    LIBRARIES,
    ArrayMethod,
    ArrayRef,
    BoundMethod,
    Closure,
    Instance,
    Masked,
    Native,
    OuterDict,
    OuterList,
    Partial,
    Super,
    TransformValue,
    from_numpy,
    is_scalar,
    type_of,
)
from .views import flat_of

if TYPE_CHECKING:
    from .interpreter import Interpreter

MUTATORS = frozenset({"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault",
                      "popitem", "add", "discard", "__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__"})
ARRAY_PROPERTIES = frozenset({"T", "real", "imag", "mT"})
PYTHONS_OWN = (str, bytes, int, float, complex, tuple, list, dict, set, frozenset, range, slice)
NUMPY_MODULES = ("numpy", "scipy")


def get_attribute(it: Interpreter, value: Any, name: str) -> Any:
    """`value.name`."""
    if isinstance(value, ArrayRef) or is_scalar(value):
        return _array_attribute(it, value, name)
    if isinstance(value, Masked):
        return _masked_attribute(it, value, name)
    if isinstance(value, types.ModuleType):
        return _module_attribute(it, value, name)
    if isinstance(value, Instance):
        return _instance_attribute(it, value, name)
    if isinstance(value, (Weak, dims.DimExpr)):
        return _number_attribute(it, value, name)
    if isinstance(value, Super):
        return _super_attribute(it, value, name)
    if isinstance(value, BoundMethod):
        return value.receiver if name == "__self__" else get_attribute(it, value.function, name)
    if isinstance(value, TransformValue) and value.kind in RULED and name in DEFINING:
        return Native(functools.partial(define_rule, value, name))
    if isinstance(value, (Closure, Partial)):
        return _function_attribute(it, value, name)
    if isinstance(value, (OuterList, OuterDict)) and name in MUTATORS:
        raise RuleError(f"`.{name}` changes a list or dict from outside of the function, which is not supported",
                        code="E126", kind=NotImplementedError, help="make a new one and return it")
    if isinstance(value, type) and not isinstance(value, enum.EnumMeta):
        found = class_attribute(it, value, name, None, missing=MISSING)
        if found is not MISSING:
            return found
        return from_numpy(it.native(getattr, value, name))
    if isinstance(value, enum.EnumMeta):
        return it.native(getattr, value, name)
    return _object_attribute(it, value, name)


def has_attribute(it: Interpreter, value: Any, name: str) -> bool:
    """`hasattr(value, name)`."""
    from ..errors import TranspileError
    try:
        get_attribute(it, value, name)
    except RuleError as problem:
        if problem.code in ("E116", "E201"):
            return False
        raise
    except TranspileError as problem:
        if isinstance(problem, AttributeError):
            return False
        raise
    return True


def no_attribute(value: Any, name: str, candidates: Any = ()) -> RuleError:
    return RuleError(f"{type_of(value).__name__!r} object has no attribute {name!r}", kind=AttributeError, code="E116",
                     help=did_you_mean(name, candidates))


# ---------------------------------------------------------------------------------------------------------------
# arrays and numbers


def _array_attribute(it: Interpreter, value: Any, name: str) -> Any:
    match name:
        case "shape":
            return tuple(value.shape)
        case "ndim":
            return value.rank
        case "size":
            return dims.product(value.shape)
        case "dtype":
            return np.dtype(value.dtype)
        case "itemsize":
            return np.dtype(value.dtype).itemsize
        case "nbytes":
            return dims.product(value.shape) * np.dtype(value.dtype).itemsize
        case "at" if isinstance(value, ArrayRef):
            return Instance(At, {"array": value})
        case "block_until_ready":           # of `Array`s, which a function may be given as well as NumPy's arrays
            return BoundMethod(_itself, value)
        case "flat":
            return flat_of(value) if isinstance(value, ArrayRef) else it.call_numpy(np.ravel, (value,), {})
    descriptor = getattr(np.ndarray, name, None)
    if name in ARRAY_PROPERTIES and descriptor is not None:
        if name in ("real", "imag"):
            return it.call_numpy({"real": np.real, "imag": np.imag}[name], (value,), {})
        if is_scalar(value):
            return value
        return it.call_spelling(descriptor, (value,), {})
    if descriptor is None or not callable(descriptor):
        raise no_attribute(value, name, dir(np.ndarray))
    return ArrayMethod(name, value)


def _masked_attribute(it: Interpreter, value: Masked, name: str) -> Any:
    match name:
        case "size":
            return masked.size(it, value)
        case "dtype":
            return np.dtype(value.array.dtype)
        case "ndim":
            return value.rest + 1
        case "shape":
            return masked.shape(it, value)
    return ArrayMethod(name, value) if callable(getattr(np.ndarray, name, None)) else get_attribute(
        it, masked.elements(value), name)


def _number_attribute(it: Interpreter, value: Any, name: str) -> Any:
    """Of a Python number known at run time."""
    kind = type_of(value)
    match name:
        case "real" if kind is not complex:
            return value
        case "imag" if kind is not complex:
            return kind(0)
        case "real" | "imag":
            return Weak(it.spell({"real": np.real, "imag": np.imag}[name], value.value))
        case "conjugate":
            return BoundMethod(np.conjugate if kind is complex else _itself, value)
        case "item":
            raise no_attribute(value, name)
    if hasattr(kind, name):
        raise RuleError(f"`.{name}` of a number known only at run time is not supported", code="E202",
                        kind=NotImplementedError)
    raise no_attribute(value, name)


def _itself(value: Any) -> Any:
    return value


# ---------------------------------------------------------------------------------------------------------------
# modules and functions


def _module_attribute(it: Interpreter, module: types.ModuleType, name: str) -> Any:
    module = numpys_own(module)
    value = getattr(module, name, MISSING)
    library = module.__name__.partition(".")[0]
    if value is MISSING:
        raise _no_such_name(module, name) if library in NUMPY_MODULES else RuleError(
            f"module {module.__name__!r} has no attribute {name!r}", kind=AttributeError, code="E116",
            help=did_you_mean(name, dir(module)))
    if library in LIBRARIES:
        return value
    return it.captures.take(value, Access(module.__dict__, (("key", name),)) if name in module.__dict__ else
                            Access(module, (("attr", name),)))


def _no_such_name(module: types.ModuleType, name: str) -> RuleError:
    """NumPy's AttributeError, with the nearest name that is supported, else the nearest there is."""
    shown = module.__name__.replace("numpy", "np", 1)
    public = [n for n in dir(module) if not n.startswith("_")]
    supported = [n for n in public if find_spelling(getattr(module, n, None)) is not None]
    near = nearest(name, supported) or nearest(name, public)
    return RuleError(f"module '{module.__name__}' has no attribute '{name}'", kind=AttributeError, code="E201",
                     help=offer([f"{shown}.{other}" for other in near]))


def _function_attribute(it: Interpreter, value: Any, name: str) -> Any:
    if isinstance(value, Partial):
        match name:
            case "func":
                return value.function
            case "args":
                return value.args
            case "keywords":
                return value.kwargs
    elif name in ("__name__", "__qualname__"):
        return value.name
    elif name == "__doc__":
        return None
    raise RuleError(f"'function' object has no attribute {name!r}", kind=AttributeError, code="E116")


# ---------------------------------------------------------------------------------------------------------------
# objects


def _object_attribute(it: Interpreter, value: Any, name: str) -> Any:
    """Of an object that exists outside of the trace: numbers and arrays in it are read anew at every call."""
    kind = type(value)
    found = inspect.getattr_static(kind, name, MISSING)
    own = getattr(value, "__dict__", {})
    if kind.__module__.partition(".")[0] in LIBRARIES or isinstance(value, PYTHONS_OWN):
        if isinstance(value, tuple) and name not in ("_replace", "_asdict", "_make") and isinstance(
                found, (property, types.FunctionType, classmethod)):
            return _from_class(it, kind, name, value, MISSING)
        result = it.native(getattr, value, name)
        return from_numpy(result) if isinstance(result, np.ndarray) else result
    if isinstance(found, (property, functools.cached_property)) and name not in own:
        return _from_class(it, kind, name, value, MISSING)
    if name not in own and (isinstance(found, (types.FunctionType, classmethod, staticmethod))
                            or hasattr(found, "__gradsmith_transformed__")):
        return _from_class(it, kind, name, value, MISSING)
    if isinstance(value, types.FunctionType) and name in ("__name__", "__qualname__", "__doc__", "__module__"):
        return getattr(value, name)
    if not hasattr(value, name):
        raise no_attribute(value, name, dir(value))
    return it.captures.take(it.native(getattr, value, name), Access(value, (("attr", name),)))


def _instance_attribute(it: Interpreter, value: Instance, name: str) -> Any:
    found = inspect.getattr_static(value.cls, name, MISSING)
    if name in value.fields and not isinstance(found, property):
        return value.fields[name]
    if name == "__class__":
        return value.cls
    if name == "__dict__":
        return OuterDict(value.fields)
    result = _from_class(it, value.cls, name, value, MISSING)
    if result is MISSING:
        raise no_attribute(value, name, [*value.fields, *dir(value.cls)])
    if isinstance(found, functools.cached_property):
        value.fields[name] = result
    return result


def class_attribute(it: Interpreter, cls: type, name: str, receiver: Any, missing: Any) -> Any:
    """`name` as `cls` has it, bound to the receiver (None: to the class itself)."""
    return _from_class(it, cls, name, receiver, missing)


def _from_class(it: Interpreter, cls: type, name: str, receiver: Any, missing: Any) -> Any:
    if receiver is not None and issubclass(cls, GrownList):
        from .grown_methods import method_of
        found = method_of(name)
        return missing if found is None else BoundMethod(found, receiver)
    for base in cls.__mro__:
        if name in base.__dict__:
            return _bind(it, base.__dict__[name], base, cls, name, receiver, missing)
    return missing


def _bind(it: Interpreter, found: Any, base: type, cls: type, name: str, receiver: Any, missing: Any) -> Any:
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod):
        return BoundMethod(found.__func__, cls)
    if base.__module__ == "builtins" or not _is_python(base):
        return missing                  # Python's own protocol, which `Instance` has rules of its own for
    if receiver is not None:
        if isinstance(found, property):
            return it.call(found.fget, (receiver,), {}, it.here)
        if isinstance(found, functools.cached_property):
            return it.call(found.func, (receiver,), {}, it.here)
        if isinstance(found, types.FunctionType) or getattr(found, "py_func", None) is not None or hasattr(
                found, "__gradsmith_transformed__"):
            return BoundMethod(found, receiver)
    if isinstance(found, types.MemberDescriptorType):       # a slot
        return missing
    if hasattr(type(found), "__get__") and not isinstance(found, (types.FunctionType, type)) and not isinstance(
            receiver, Instance):
        owner = cls if receiver is None else receiver        # a descriptor of its own kind
        return it.captures.take(it.native(getattr, owner, name), Access(owner, (("attr", name),)))
    return it.captures.take(found, Access(base, (("attr", name),)))


def _is_python(cls: type) -> bool:
    """Made by a class statement."""
    return bool(cls.__flags__ & HEAP_TYPE)


def _super_attribute(it: Interpreter, value: Super, name: str) -> Any:
    kind = type_of(value.receiver) if not isinstance(value.receiver, type) else value.receiver
    order = kind.__mro__
    for base in order[order.index(value.cls) + 1:]:
        if name in base.__dict__:
            if base is object and name == "__init__":
                return _no_init
            return _bind(it, base.__dict__[name], base, kind, name, value.receiver, None)
    raise RuleError(f"'super' object has no attribute {name!r}", kind=AttributeError, code="E116")


def _no_init() -> None:
    return None


def set_attribute(it: Interpreter, value: Any, name: str, new: Any) -> None:
    """`value.name = new`, for objects made by the function itself."""
    if isinstance(value, Instance):
        if value.outer:
            raise RuleError(f"writing to `.{name}` of an argument is not supported", code="E126",
                            kind=NotImplementedError, help="make a new object, for example with dataclasses.replace")
        parameters = getattr(value.cls, "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            from dataclasses import FrozenInstanceError
            raise RuleError(f"cannot assign to field {name!r}", kind=FrozenInstanceError, code="E120")
        found = inspect.getattr_static(value.cls, name, None)
        if isinstance(found, property):
            if found.fset is None:
                raise RuleError(f"property {name!r} of {value.cls.__name__!r} object has no setter",
                                kind=AttributeError, code="E116")
            it.call(found.fset, (value, new), {}, it.here)
            return
        check_own(it, value)
        value.fields[name] = new
        return
    if isinstance(value, ArrayRef):
        from .in_place import set_array_attribute
        set_array_attribute(it, value, name, new)
        return
    if isinstance(value, Closure):
        return                        # functions carry notes such as __doc__ that nothing here reads
    raise error("E126", f"writing to `.{name}` of something outside of the function is not supported", it.here,
                help="return the new value instead")
