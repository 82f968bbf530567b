"""Templates: what two values have in common, see `merge`; and what kinds of values there are to compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TranspileError, error
from ..ir.build import const
from ..ir.dims import DimExpr
from ..ir.nodes import Const, Value, Var
from ..ir.types import Type
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast, describe, python_type
from .environment import MISSING
from .values import ArrayRef, Closure, Instance, Maybe, Poison, type_of

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Fixed:
    value: Any


@dataclass(frozen=True)
class Slot:
    """like: "weak" (a Python number), "scalar" (NumPy's), "array" or "either" (a number or an array without axes).
    pair: which arrays meet here, for aliases."""

    like: str
    type: Type
    layout: str = "A"
    pair: int | None = None


@dataclass(frozen=True)
class Group:
    kind: str
    cls: Any
    keys: tuple[Any, ...]
    children: tuple[Any, ...]
    pair: int | None = None


@dataclass(frozen=True)
class Option:
    child: Any
    is_none: bool = False


@dataclass(frozen=True, eq=False)
class Broken:
    problem: TranspileError


@dataclass(frozen=True, eq=False)
class Element:
    """What the elements of a list are, see `grown`: a template as a value."""

    template: Any


Template = Fixed | Slot | Group | Option | Broken


@dataclass(frozen=True, eq=False)
class DontCare:
    """What this was on a way that does not go on."""

    value: Any = MISSING


DEAD = Poison(error("E608", "a variable that no statement was thought to read is read"))


def same_template(a: Template, b: Template) -> bool:
    """Equality, by identity where values are in it."""
    match a, b:
        case Fixed(), Fixed():
            return a.value is b.value or same_static(a.value, b.value)
        case Group(), Group():
            return (a.kind, a.cls, a.keys, a.pair) == (b.kind, b.cls, b.keys, b.pair) and len(a.children) == len(
                b.children) and all(map(same_template, a.children, b.children))
        case Option(), Option():
            return a.is_none == b.is_none and same_template(a.child, b.child)
        case Broken(), Broken():
            return True
        case Slot(), Slot():
            return a == b
    return False


def same_static(a: Any, b: Any) -> bool:
    """Two values known while transpiling that no program can tell apart."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (Weak,)):
        return a.value is b.value
    if isinstance(a, DimExpr):
        return bool(a == b)
    if isinstance(a, Const):
        return a.type == b.type and repr(a.value) == repr(b.value)
    if isinstance(a, (bool, int, float, complex, str, bytes, np.generic, np.dtype, range)):
        return repr(a) == repr(b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_static, a, b))
    if isinstance(a, slice):
        return same_static((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, Element):
        return same_template(a.template, b.template)
    if isinstance(a, Closure):
        return a.node is b.node and a.frame is b.frame and same_static(a.defaults, b.defaults) and (
            a.kw_defaults.keys() == b.kw_defaults.keys()
            and all(same_static(v, b.kw_defaults[k]) for k, v in a.kw_defaults.items()))
    return False


@dataclass(frozen=True)
class Number:
    """What a number promotes as."""

    like: str
    dtype: str

    def __or__(self, other: Number) -> Number:
        if self.like == other.like == "weak":
            return Number("weak", max(self.dtype, other.dtype, key=_WEAK.index))
        parts = [_python_zero(n.dtype) if n.like == "weak" else np.dtype(n.dtype) for n in (self, other)]
        return Number("scalar", np.result_type(*parts).name)


_WEAK = ["bool", "int64", "float64", "complex128"]


def _python_zero(dtype: str) -> Any:
    return (False, 0, 0.0, 0j)[_WEAK.index(dtype)]


def number_of(x: Any) -> Number | None:
    if isinstance(x, Slot):
        return None if x.like not in ("weak", "scalar") else Number(x.like, x.type.dtype)
    kind = python_type(x)
    if kind is not None:
        return Number("weak", {bool: "bool", int: "int64", float: "float64", complex: "complex128"}[kind])
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        return Number("scalar", x.dtype.name)
    if isinstance(x, (Var, Const)) and not x.rank:
        return Number("scalar", x.dtype)
    return None


def held_number(x: Any) -> Number | None:
    """Of a number, or of an array without axes the number in it."""
    if (isinstance(x, Slot) and x.like in ("array", "either") and not x.type.rank) or (
            isinstance(x, ArrayRef) and not x.rank):
        return Number("scalar", x.type.dtype)
    return number_of(x)


def is_array(x: Any) -> bool:
    """Whether it is surely an array."""
    return (isinstance(x, ArrayRef) and not x.may_be_number) or (isinstance(x, Slot) and x.like == "array")


def kind_of(x: Any) -> str | None:
    if isinstance(x, tuple):
        return "tuple"
    if isinstance(x, list):
        return "list"
    if isinstance(x, dict):
        return "dict"
    return "object" if isinstance(x, Instance) else None


def is_immutable(kind: str | None, cls: Any) -> bool:
    """Whether no program can tell two such containers with equal parts from one, but by `is`."""
    return kind == "tuple" or (kind == "object" and bool(
        getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)))


def parts_of(x: Any) -> tuple[tuple[Any, ...], list[Any]]:
    if isinstance(x, Instance):
        return tuple(x.fields), list(x.fields.values())
    if isinstance(x, dict):
        return tuple(x), list(x.values())
    return (), list(x)


def make_group(template: Group, parts: list[Any]) -> Any:
    match template.kind:
        case "tuple":
            return template.cls._make(parts) if hasattr(template.cls, "_make") else tuple(parts)
        case "list":
            return parts
        case "dict":
            return dict(zip(template.keys, parts))
    return Instance(template.cls, dict(zip(template.keys, parts)))


def held_value(template: Slot, x: Any) -> Value:
    """A number or an array as an IR value of the slot's type."""
    if isinstance(x, ArrayRef):
        value = x.read()
    elif template.like == "weak" or isinstance(x, (Var, Const)):
        value = as_value(x)
    else:
        value = as_value(x, template.type.dtype) if python_type(x) is not None else as_value(x)
    value = cast(value, template.type.dtype)
    if value.type != template.type:
        raise RuleError(f"expected {template.type}, found {describe(value)}", code="E121", kind=TypeError)
    return value


def conforms(template: Template, x: Any) -> bool:
    """Whether x can stand where the template is."""
    match template:
        case Fixed():
            return True
        case Slot():
            number, wanted = number_of(x), number_of(template)
            if template.like == "either":
                held = held_number(x)
                return held is not None and (held | Number("scalar", template.type.dtype)).dtype == template.type.dtype
            if number is not None:
                return wanted is not None and (number | wanted) == wanted
            return template.like == "array" and is_array(x) and x.type == template.type
        case Option():
            held = x.value if isinstance(x, Maybe) else x
            return x is (None if template.is_none else MISSING) or conforms(template.child, held)
        case Group():
            if kind_of(x) != template.kind or type_of(x) is not template.cls:
                return False
            keys, parts = parts_of(x)
            return keys == template.keys and len(parts) == len(template.children) and all(
                map(conforms, template.children, parts))
    return False


def fits(old: Any, new: Any) -> bool:
    """Whether a value nobody will see can be used as it is in the place of another."""
    if old is MISSING or isinstance(old, (Maybe, Poison)) or isinstance(new, (Maybe, Poison)):
        return False
    a, b = number_of(old), number_of(new)
    if a is not None and b is not None:
        return (a | b) == b
    return old is new or (isinstance(old, ArrayRef) and isinstance(new, ArrayRef) and old.type == new.type
                          and old.may_be_number == new.may_be_number)


def described(x: Any) -> str:
    if isinstance(x, Slot):
        return f"an array {x.type}" if x.type.rank else "a number"
    if isinstance(x, Group):
        return f"a {x.cls.__name__}"
    if isinstance(x, ArrayRef):
        return f"an array {x.type}"
    if number_of(x) is not None:
        return "a number"
    if kind_of(x) in ("tuple", "list"):
        return f"a {type_of(x).__name__} of {len(x)}"
    if isinstance(x, Instance):
        return f"a {x.cls.__name__}"
    return repr(x) if isinstance(x, str) or x is None else f"a {type_of(x).__name__}"


def placeholder(type: Type) -> Value:
    """Any value of the type."""
    return const(0, type)
