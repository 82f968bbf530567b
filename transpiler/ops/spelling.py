"""NumPy's names for operations: which function of IR values a user's call means.

A *spelling* is a Python function that takes what the user passed and emits operations; it inherits every rule
from the operations that it is composed of.  Register it under each callable that means it:

    @spelled(np.sum, np.ndarray.sum, (np.add, "reduce"))
    def numpy_sum(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None): ...

Keys: the callable itself; a method or property of ndarray (`np.ndarray.sum`, `np.ndarray.T`); `(ufunc, "reduce")`
for a ufunc's methods.  Arguments arrive as
  - IR values (`Var`, `Const`): arrays and NumPy scalars, *strong* in NumPy's promotion (NEP 50);
  - `Weak(value)`: Python scalars known at run time only;
  - dimensions (`DimExpr`): Python ints known from shapes; static Python objects: numbers, strings, None, dtypes,
    functions; lists and tuples of all these.
A spelling returns strong values (or Python containers of them), unless it is one of Python's own functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..ir import registry
from ..ir.build import check, const, size_value
from ..ir.dims import DimExpr, is_dim
from ..ir.nodes import Const, Value, Var
from ..ir.types import Type
from .base import RuleError
from .families import broadcast_shapes, broadcast_to

SPELLINGS: dict[Any, Callable[..., Any]] = {}
LAZY_MODULES = ("scipy.special", "scipy.linalg")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class Weak:
    """A Python bool, int, float or complex known at run time: it takes the dtype of the arrays it meets."""

    value: Value


class NotKnown(RuleError):
    """A value known at run time only, where one known while transpiling is needed.

    is_size: a dimension will do.  The frontend makes `operand` known, if it can, and calls again.
    """

    def __init__(self, what: str, operand: Any, is_size: bool = False) -> None:
        super().__init__(f"{what} must be an integer known while transpiling, not {describe(operand)}", kind=TypeError,
                         code="E117", help="pass it as a static argument, or write it as a literal")
        self.operand, self.is_size = operand, is_size


def spelled(*keys: Any) -> Callable[[F], F]:
    """Register a spelling under NumPy's (or Python's, or SciPy's) callables."""

    def put(function: F) -> F:
        for key in keys:
            if key in SPELLINGS:
                raise ValueError(f"{key!r} is spelled twice")
            SPELLINGS[key] = function
        return function

    return put


def spelling_key(key: Any) -> Any:
    """What the spelling of a callable is registered under, None where it has none.

    Functions of modules that are slow to import are registered as ("scipy.special", "erf"): whoever holds such a
    function has imported its module.
    """
    try:
        if key in SPELLINGS:
            return key
    except TypeError:        # unhashable
        return None
    if callable(key):
        name = getattr(key, "__name__", "")
        for module in LAZY_MODULES:
            if getattr(sys.modules.get(module), name, None) is key and (module, name) in SPELLINGS:
                return module, name
    return None


def find_spelling(key: Any) -> Callable[..., Any] | None:
    """The spelling of what the user's code names, or None."""
    return SPELLINGS.get(spelling_key(key))


# ---------------------------------------------------------------------------------------------------------------
# from what the user passed to values


def is_value(x: Any) -> bool:
    return isinstance(x, (Var, Const))


def python_type(x: Any) -> type | None:
    """bool, int, float or complex where x promotes as Python's number of that type, else None."""
    if isinstance(x, Weak):
        return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[x.value.type.kind]
    if isinstance(x, DimExpr):
        return int
    for kind in (bool, int, float, complex):
        if type(x) is kind:
            return kind
    return None


def as_value(x: Any, dtype: str | None = None) -> Value:
    """x as a strong value, as `np.asarray(x)` would make it; nested sequences are stacked; cast to dtype if given."""
    if isinstance(x, Weak):
        x = _fitting(x.value, dtype)
    elif isinstance(x, DimExpr):
        x = _fitting(size_value(x), dtype)
    elif isinstance(x, (bool, int, float, complex)) and type(x) in (bool, int, float, complex):
        if dtype is not None:
            return _python_number(x, dtype)
        x = const(x, Type({bool: "bool", int: "int64", float: "float64", complex: "complex128"}[type(x)]))
    elif isinstance(x, np.generic):
        x = const(x.item(), Type(x.dtype.name))
    elif isinstance(x, np.ndarray):
        x = static_array(x)
    elif isinstance(x, (list, tuple)):
        x = _stacked(x, dtype)
    if not is_value(x):
        raise RuleError(f"{type(x).__name__} is not a number or an array", kind=TypeError, code="E302")
    return x if dtype is None else cast(x, dtype)


def _fitting(x: Value, dtype: str | None) -> Value:
    """A Python int known at run time, checked to fit into the dtype that it takes."""
    if dtype is None or x.type.kind != "i" or np.dtype(dtype).kind not in "iu" or np.can_cast(x.dtype, dtype):
        return x
    limits = np.iinfo(dtype)
    fits = x >= int(limits.min)
    if limits.max < np.iinfo(x.dtype).max:
        fits = fits & (x <= int(limits.max))
    check(fits, "OverflowError", f"Python integer out of bounds for {dtype}")
    return x


def _python_number(x: Any, dtype: str) -> Const:
    """A Python number in a dtype; NumPy's OverflowError for integers that do not fit."""
    if type(x) is int and np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= x <= limits.max:
            raise RuleError(f"Python integer {x} out of bounds for {dtype}", kind=OverflowError, code="E308")
    return const(x, Type(dtype))


def _stacked(items: Sequence[Any], dtype: str | None) -> Value:
    if not len(items):
        return const(0.0, Type(dtype or "float64", (0,)))
    # Python's numbers count as float64 and int64 here: np.array([np.float32(1), 2.0]) is of float64.
    parts = promote(*[as_value(i) if dtype is None or isinstance(i, (list, tuple, np.ndarray)) else i for i in items],
                    dtype=dtype)
    if any(p.rank != parts[0].rank for p in parts):
        raise RuleError("setting an array element with a sequence. The requested array has an inhomogeneous shape",
                        code="E301")
    return registry.apply("stack", *parts)


def static_array(array: np.ndarray[Any, Any]) -> Value:
    """A NumPy array known while transpiling, as a value: a splat where all its elements are equal, else stacked."""
    flat = array.reshape(-1)
    if flat.size == 0 or flat.tobytes() == flat[:1].tobytes() * flat.size:      # by bits: 0.0 and -0.0 differ
        return const(flat[0].item() if flat.size else 0, Type(array.dtype.name, array.shape))
    if array.ndim == 1:
        return registry.apply("stack", *[const(v.item(), Type(array.dtype.name)) for v in array])
    return registry.apply("stack", *[static_array(row) for row in array])


def cast(x: Value, dtype: Any) -> Value:
    """x in another dtype."""
    name = np.dtype(dtype).name
    if x.dtype == name:
        return x
    if isinstance(x, Const):
        return const(np.array(x.value, x.dtype).astype(name).item(), x.type.with_dtype(name))
    return registry.apply("convert", x, dtype=name)


def result_dtype(*operands: Any) -> str:
    """NumPy 2's promotion of all operands (NEP 50)."""
    kinds: list[Any] = []
    for x in operands:
        weak = python_type(x)
        kinds.append(weak(0) if weak is not None else np.dtype((x if is_value(x) else np.asarray(x)).dtype))
    if all(isinstance(k, (bool, int, float, complex)) for k in kinds):
        return np.result_type(*[np.asarray(k).dtype for k in kinds]).name
    return np.result_type(*kinds).name


def promote(*operands: Any, dtype: str | None = None) -> list[Value]:
    """The operands as values of their common dtype (or `dtype`); shapes stay as they are."""
    operands = tuple(as_value(x) if isinstance(x, (list, tuple, np.ndarray)) else x for x in operands)
    common = dtype or result_dtype(*operands)
    return [as_value(x, common) for x in operands]


def broadcast_together(*values: Value) -> list[Value]:
    """The values stretched to their common shape."""
    shape = broadcast_shapes(*(v.shape for v in values))
    return [broadcast_to(v, shape) for v in values]


def ufunc_dtypes(ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None) -> tuple[str, ...]:
    """NumPy's own choice of loop: the dtype of each operand, then of the result (or results)."""
    kinds: list[Any] = []
    for x in operands:
        weak = python_type(x)
        if weak is bool:
            kinds.append(np.dtype(bool))
        else:
            kinds.append(weak if weak is not None else np.dtype(x.dtype))
    if all(k in (int, float, complex) for k in kinds):
        kinds = [np.dtype(k) for k in kinds]
    wanted = (*kinds, *[None] * ufunc.nout)
    options = {} if dtype is None else {"signature": (*[None] * ufunc.nin, *[np.dtype(dtype)] * ufunc.nout)}
    try:
        found = tuple(d.name for d in ufunc.resolve_dtypes(wanted, **options))  # type: ignore[arg-type]
    except TypeError:
        shown = ", ".join(k.__name__ if isinstance(k, type) else str(k) for k in kinds)
        raise RuleError(f"np.{ufunc.__name__} does not take {shown}", kind=TypeError, code="E309") from None
    if "float16" in found:
        raise RuleError(f"np.{ufunc.__name__} of {', '.join(map(str, kinds))} computes in float16, which is not "
                        "supported", kind=TypeError, code="E307", help="convert to float32 or float64 before")
    return found


def ufunc_operands(ufunc: np.ufunc, operands: Sequence[Any], *, out: Any = None, where: Any = True,
                   dtype: Any = None, casting: str = "same_kind", order: str = "K", subok: bool = True) -> list[Value]:
    """The operands of a ufunc call, promoted as NumPy's own type resolution says and broadcast.

    casting, order and subok say nothing about values and are ignored.
    """
    if out is not None and out != (None,):
        raise RuleError(f"out= of np.{ufunc.__name__} is not supported here", code="E203",
                        kind=NotImplementedError, help="assign the result instead")
    if where is not True:
        raise RuleError(f"where= of np.{ufunc.__name__} leaves elements unset", code="E203",
                        kind=NotImplementedError, help="use np.where(condition, result, other)")
    if len(operands) != ufunc.nin:
        raise RuleError(f"{ufunc.__name__}() takes {ufunc.nin} positional arguments but {len(operands)} were given",
                        kind=TypeError, code="E208")
    operands = tuple(as_value(x) if isinstance(x, (list, tuple, np.ndarray, np.generic)) else x for x in operands)
    for x in operands:
        if python_type(x) is None and not is_value(x):
            raise RuleError(f"np.{ufunc.__name__} does not take {describe(x)}", kind=TypeError, code="E309")
    dtypes = ufunc_dtypes(ufunc, operands, dtype)
    return broadcast_together(*(as_value(x, d) for x, d in zip(operands, dtypes)))


def spell_ufunc(ufunc: np.ufunc, op: Callable[..., Value], *more: Any) -> Callable[..., Value]:
    """Register `ufunc` (and other callables that mean the same) as `op` on promoted, broadcast operands."""

    def call(*operands: Any, **options: Any) -> Value:
        return op(*ufunc_operands(ufunc, operands, **options))

    call.__name__ = ufunc.__name__
    spelled(ufunc, *more)(call)
    spell_outer(ufunc, call)
    return call


def spell_outer(ufunc: np.ufunc, call: Callable[..., Any]) -> None:
    """Register `ufunc.outer` of a ufunc of two operands, whose spelling is `call`: every pair of elements."""
    if ufunc.nin != 2:
        return

    def outer(a: Any, b: Any, /, **options: Any) -> Any:
        left, right = (as_value(x) if isinstance(x, (list, tuple, np.ndarray, np.generic)) else x for x in (a, b))
        if is_value(left) and left.rank and is_value(right) and right.rank:
            left = registry.apply("reshape", left, shape=(*left.shape, *[1] * right.rank))
        return call(left, right, **options)

    spelled((ufunc, "outer"))(outer)


def spell_scipy(name: str, op: Callable[..., Value]) -> Callable[..., Value]:
    """Register the ufunc `scipy.special.NAME` as `op`, without importing SciPy (see `find_spelling`)."""

    def call(*operands: Any, **options: Any) -> Value:
        return op(*ufunc_operands(getattr(sys.modules["scipy.special"], name), operands, **options))

    call.__name__ = name
    spelled(("scipy.special", name))(call)
    return call


def static_int(x: Any, what: str) -> int:
    """x as a Python int known while transpiling."""
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return int(x)
    if isinstance(x, Const) and x.type.kind in "iu":
        return int(x.value)
    if isinstance(x, (Weak, DimExpr)) or is_value(x):
        raise NotKnown(what, x)
    raise RuleError(f"{what} must be an integer, not {describe(x)}", kind=TypeError, code="E208")


def axis_of(axis: Any, rank: int) -> int:
    """A normalised axis; NumPy's AxisError (a ValueError and an IndexError) where out of range."""
    number = static_int(axis, "axis")
    if not -rank <= number < rank:
        raise RuleError(f"axis {number} is out of bounds for array of dimension {rank}",
                        kind=np.exceptions.AxisError, code="E304")
    return number % rank


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """axis=None, int or tuple as a sorted tuple of distinct normalised axes."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, (tuple, list)):
        found = [axis_of(a, rank) for a in axis]
        if len(set(found)) != len(found):
            raise RuleError("duplicate value in 'axis'", code="E304")
        return tuple(sorted(found))
    return (axis_of(axis, rank),)


def shape_of(shape: Any) -> tuple[Any, ...]:
    """A shape argument: an int, a dimension, or a sequence of them."""
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    for d in items:
        if isinstance(d, (Weak, Var)):
            raise NotKnown("a shape's entry", d, is_size=True)
    return tuple(d if isinstance(d, DimExpr) else static_int(d, "a shape's entry") for d in items)


def describe(x: Any) -> str:
    """What x is, for messages."""
    if isinstance(x, Weak):
        return f"a Python {python_type(x).__name__} known at run time only"  # type: ignore[union-attr]
    if is_value(x):
        return f"{x.type} known at run time only"
    return f"{x!r}" if is_dim(x) or isinstance(x, (str, float)) else f"a {type(x).__name__}"
