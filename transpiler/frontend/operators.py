"""Python's operators on abstract values: NumPy's rules as soon as an array or NumPy scalar takes part, else Python's.

Python scalars known at run time (`Weak`) stay weak; ints made of array sizes stay dimensions as long as they can.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from .. import ops
from ..ir import dims
from ..ir.build import check, const
from ..ir.dims import DimExpr
from ..ir.nodes import Const, Value, Var
from ..ir.types import BOOL, I64
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, cast, python_type
from .errors import run_time_control
from .values import ArrayRef, Instance, Masked, OpaqueText, from_numpy, is_object, is_static, to_python, type_of

if TYPE_CHECKING:
    from .interpreter import Interpreter


@dataclass(frozen=True)
class Operator:
    sign: str
    python: Callable[..., Any]
    ufunc: Any
    name: str                     # of Python's special method, without underscores


BINARY: dict[type, Operator] = {
    gast.Add: Operator("+", operator.add, np.add, "add"), gast.Sub: Operator("-", operator.sub, np.subtract, "sub"),
    gast.Mult: Operator("*", operator.mul, np.multiply, "mul"),
    gast.Div: Operator("/", operator.truediv, np.true_divide, "truediv"),
    gast.FloorDiv: Operator("//", operator.floordiv, np.floor_divide, "floordiv"),
    gast.Mod: Operator("%", operator.mod, np.remainder, "mod"),
    gast.Pow: Operator("**", operator.pow, np.power, "pow"),
    gast.MatMult: Operator("@", operator.matmul, np.matmul, "matmul"),
    gast.BitAnd: Operator("&", operator.and_, np.bitwise_and, "and"),
    gast.BitOr: Operator("|", operator.or_, np.bitwise_or, "or"),
    gast.BitXor: Operator("^", operator.xor, np.bitwise_xor, "xor"),
    gast.LShift: Operator("<<", operator.lshift, np.left_shift, "lshift"),
    gast.RShift: Operator(">>", operator.rshift, np.right_shift, "rshift"),
}
COMPARE: dict[type, Operator] = {
    gast.Eq: Operator("==", operator.eq, np.equal, "eq"), gast.NotEq: Operator("!=", operator.ne, np.not_equal, "ne"),
    gast.Lt: Operator("<", operator.lt, np.less, "lt"), gast.LtE: Operator("<=", operator.le, np.less_equal, "le"),
    gast.Gt: Operator(">", operator.gt, np.greater, "gt"),
    gast.GtE: Operator(">=", operator.ge, np.greater_equal, "ge"),
}
UNARY: dict[type, Operator] = {
    gast.USub: Operator("-", operator.neg, np.negative, "neg"),
    gast.UAdd: Operator("+", operator.pos, np.positive, "pos"),
    gast.Invert: Operator("~", operator.invert, np.invert, "invert"),
}
BY_FUNCTION = {op.python: op for table in (BINARY, COMPARE, UNARY) for op in table.values()}
REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
DIVIDES = ("truediv", "floordiv", "mod")


def is_numpy(x: Any) -> bool:
    """Follows NumPy's rules rather than Python's."""
    return isinstance(x, (ArrayRef, Var, Const, Masked, np.ndarray, np.generic))


def is_weak_number(x: Any) -> bool:
    return isinstance(x, (Weak, DimExpr))


def binary(it: Interpreter, op: Operator, a: Any, b: Any) -> Any:
    """`a op b`, with the location set by the caller."""
    if isinstance(a, str) and (isinstance(b, OpaqueText) or isinstance(a, OpaqueText) or not is_static(b)):
        return _text(it, op, a, b)
    if is_object(a) or is_object(b):
        return _special(it, op, a, b)
    if is_numpy(a) or is_numpy(b):
        if is_static(a) and is_static(b):
            return from_numpy(it.native(op.python, to_python(a), to_python(b)))
        return it.call_spelling(op.ufunc, (a, b), {})
    if is_weak_number(a) or is_weak_number(b):
        if isinstance(a, (str, bytes, list, tuple)) or isinstance(b, (str, bytes, list, tuple)):
            return _repeat(it, op, a, b)
        return weak_binary(it, op, a, b)
    return it.native(op.python, a, b)


def _special(it: Interpreter, op: Operator, a: Any, b: Any) -> Any:
    """Python's protocol of special methods."""
    for receiver, other, name in ((a, b, f"__{op.name}__"), (b, a, f"__{REFLECTED.get(op.name, 'r' + op.name)}__")):
        if not is_object(receiver):
            continue
        found = it.find_special(receiver, name)
        if found is not None:
            result = it.call(found, (other,), {})
            if result is not NotImplemented:
                return result
    if not isinstance(a, Instance) and not isinstance(b, Instance) and is_static((a, b)):
        return from_numpy(it.native(op.python, to_python(a), to_python(b)))
    if op.name in ("eq", "ne"):
        if isinstance(a, Instance) and isinstance(b, Instance) and a.cls is b.cls and hasattr(
                a.cls, "__dataclass_fields__"):
            return compare(it, op, tuple(a.fields.values()), tuple(b.fields.values()))
        return (a is b) is (op.name == "eq")
    raise RuleError(f"unsupported operand type(s) for {op.sign}: {type_of(a).__name__!r} and {type_of(b).__name__!r}",
                    kind=TypeError, code="E309")


def _text(it: Interpreter, op: Operator, a: str, b: Any) -> str:
    from .texts import concatenated, percent
    if op.name == "mod" and not isinstance(a, OpaqueText):
        return percent(it, a, b)
    if op.name == "add" and isinstance(b, str):
        return concatenated(it, a, b)
    return _repeat(it, op, a, b)


def _repeat(it: Interpreter, op: Operator, a: Any, b: Any) -> Any:
    if op.name == "mul":
        sequence, count = (a, b) if isinstance(a, (str, bytes, list, tuple)) else (b, a)
        return sequence * it.static_int(count, "how often a sequence is repeated")
    raise RuleError(f"unsupported operand type(s) for {op.sign}: {type_of(a).__name__!r} and {type_of(b).__name__!r}",
                    kind=TypeError, code="E309")


# ---------------------------------------------------------------------------------------------------------------
# Python's arithmetic


def weak_binary(it: Interpreter, op: Operator, a: Any, b: Any) -> Any:
    kinds = (python_type(a), python_type(b))
    if None in kinds or op.name == "matmul":
        raise RuleError(f"unsupported operand type(s) for {op.sign}: {type_of(a).__name__!r} and "
                        f"{type_of(b).__name__!r}", kind=TypeError, code="E309")
    size = dim_binary(it, op, a, b)
    if size is not None and not isinstance(a, Weak) and not isinstance(b, Weak):
        return size
    result = Weak(_arithmetic(it, op, a, b, kinds))
    it.derived(result, (a, b), size)
    it.shifted(result, op.name, a, b)
    return result


def dim_binary(it: Interpreter, op: Operator, a: Any, b: Any) -> Any | None:
    """The result as a dimension, where both operands are ints made of sizes."""
    a, b = it.as_dim(a), it.as_dim(b)
    if a is None or b is None:
        return None
    match op.name:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "pow" if isinstance(b, int) and 0 <= b <= 8:
            return dims.product([a] * b)
        case "floordiv" | "mod":
            if it.assumptions.is_zero(b) is False:
                return dims.floordiv(a, b) if op.name == "floordiv" else a - dims.floordiv(a, b) * b
    return None


def _arithmetic(it: Interpreter, op: Operator, a: Any, b: Any, kinds: tuple[Any, ...]) -> Value:
    if op.name in ("and", "or", "xor") and kinds == (bool, bool):
        return it.spell(op.ufunc, number(a), number(b))
    if op.name in DIVIDES:
        check_divisor(b, kinds)
    if op.name == "pow" and kinds[0] in (int, bool) and kinds[1] in (int, bool):
        if isinstance(b, int) and b < 0:
            return it.spell(op.ufunc, cast(number(a), "float64"), b)
        if not isinstance(b, int):
            check(ops.greater_equal(number(b), const(0, I64)), "ValueError",
                  "a negative power of an integer would be a float")
    a, b = (_operand(x, kind) for x, kind in zip((a, b), kinds))
    return it.spell(op.ufunc, a, b)


def _operand(x: Any, kind: type | None) -> Any:
    """A number for NumPy's function: bools count as ints; numbers known while transpiling stay so."""
    if kind is bool:
        return cast(x.value, "int64") if isinstance(x, Weak) else int(x)
    return number(x) if isinstance(x, (Weak, DimExpr)) else x


def number(x: Any) -> Value:
    """A Python number as a strong IR value of its dtype."""
    return as_value(x)


def check_divisor(b: Any, kinds: tuple[Any, ...]) -> None:
    """Python raises ZeroDivisionError where NumPy gives an infinity."""
    if isinstance(b, DimExpr):
        low, _ = dims.bounds(b)
        if low is not None and low > 0:
            return
    if isinstance(b, (bool, int, float, complex)):
        if b == 0:
            raise RuleError("division by zero", kind=ZeroDivisionError, code="E120")
        return
    value = number(b)
    what = "complex division by zero" if complex in kinds else "float division by zero" if float in kinds else (
        "integer division or modulo by zero")
    check(ops.not_equal(value, const(0, value.type)), "ZeroDivisionError", what)


def unary(it: Interpreter, op: Operator, x: Any) -> Any:
    if is_object(x):
        found = it.find_special(x, f"__{op.name}__")
        if found is not None:
            return it.call(found, (), {})
    if (isinstance(x, ArrayRef) and not is_static(x)) or isinstance(x, (Var, Const, Masked)):
        if op.name == "pos" and not isinstance(x, Masked):
            if x.dtype == "bool":
                raise RuleError("ufunc 'positive' is not defined for truth values", kind=TypeError, code="E309",
                                help="convert to a number before")
            return ArrayRef(x.read(), layout=x.layout) if isinstance(x, ArrayRef) else x
        return it.call_spelling(op.ufunc, (x,), {})
    if is_static(x):
        return from_numpy(it.native(op.python, to_python(x)))
    size = it.as_dim(x)
    negated = {"neg": -size, "pos": size, "invert": -size - 1}[op.name] if size is not None else None
    if isinstance(x, DimExpr):
        return negated
    if not isinstance(x, Weak):
        raise RuleError(f"bad operand type for unary {op.sign}: {type_of(x).__name__!r}", kind=TypeError, code="E309")
    value = cast(x.value, "int64") if x.value.dtype == "bool" else x.value
    result = Weak(value if op.name == "pos" else it.spell(op.ufunc, value))
    it.derived(result, (x,), negated)
    return result


# ---------------------------------------------------------------------------------------------------------------
# comparisons and truth


def compare(it: Interpreter, op: Operator, a: Any, b: Any) -> Any:
    """One comparison; a bool where it can be decided."""
    if is_object(a) or is_object(b):
        return _special(it, op, a, b)
    if isinstance(a, Masked) or isinstance(b, Masked):
        return it.call_spelling(op.ufunc, (a, b), {})
    if is_static(a) and is_static(b) and not _is_opaque(a) and not _is_opaque(b):
        return from_numpy(it.native(op.python, to_python(a), to_python(b)))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return _compare_sequences(it, op, a, b)
    if op.name in ("eq", "ne") and not _comparable(a, b):
        return op.name == "ne"
    if is_numpy(a) or is_numpy(b):
        return it.call_spelling(op.ufunc, (a, b), {})
    left, right = it.as_dim(a), it.as_dim(b)
    if left is not None and right is not None and not isinstance(a, Weak) and not isinstance(b, Weak):
        decided = _compare_dims(it, op, left, right)
        if decided is not None:
            return decided
    if python_type(a) is None or python_type(b) is None or (
            complex in (python_type(a), python_type(b)) and op.name not in ("eq", "ne")):
        raise RuleError(f"{op.sign!r} not supported between instances of {type_of(a).__name__!r} and "
                        f"{type_of(b).__name__!r}", kind=TypeError, code="E309")
    result = Weak(it.spell(op.ufunc, *(_operand(x, python_type(x)) for x in (a, b))))
    it.derived(result, (a, b), None)
    return result


def _is_opaque(x: Any) -> bool:
    return isinstance(x, (list, tuple, dict)) and not is_static(x)


def _comparable(a: Any, b: Any) -> bool:
    """Whether `==` can be anything but False."""
    numeric = (ArrayRef, Var, Const, Weak, DimExpr, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
    return isinstance(a, numeric) and isinstance(b, numeric)


def _compare_sequences(it: Interpreter, op: Operator, a: Any, b: Any) -> Any:
    equal = BY_FUNCTION[operator.eq]
    if op.name in ("eq", "ne"):
        if len(a) != len(b):
            return op.name == "ne"
        same = combined(it, [compare(it, equal, x, y) for x, y in zip(a, b)], all_of=True)
        if isinstance(same, bool):
            return same is (op.name == "eq")
        return same if op.name == "eq" else Weak(ops.logical_not(same.value))
    for x, y in zip(a, b):
        if not truth(it, compare(it, equal, x, y), "a comparison of sequences"):
            return compare(it, op, x, y)
    return op.python(len(a), len(b))


def _compare_dims(it: Interpreter, op: Operator, a: Any, b: Any) -> bool | None:
    known = it.assumptions
    match op.name:
        case "eq":
            return known.is_zero(a - b)
        case "ne":
            return _negated(known.is_zero(a - b))
        case "lt":
            return known.is_negative(a - b)
        case "ge":
            return _negated(known.is_negative(a - b))
        case "gt":
            return known.is_negative(b - a)
        case "le":
            return _negated(known.is_negative(b - a))
    return None


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def truth(it: Interpreter, x: Any, what: str) -> bool:
    """`bool(x)` as a condition; `what` names the construct for the error where it is known only at run time."""
    if isinstance(x, (bool, int, float, str)) or x is None:
        return bool(x)
    if isinstance(x, DimExpr):
        zero = it.assumptions.is_zero(x)
        if zero is not None:
            return not zero
    if isinstance(x, (ArrayRef, Masked)):
        return _array_truth(it, x, what)
    if is_object(x):
        return _object_truth(it, x, what)
    if isinstance(x, Weak):
        it.demand(x)
        x = x.value
    if isinstance(x, Const):
        return bool(x.value)
    if isinstance(x, (Var, DimExpr)):
        it.demand(x)
        raise run_time_control(what, it.here, CONTROL_HELP.get(what, "use np.where(condition, a, b)"))
    if isinstance(x, (list, tuple, dict, set)):
        return len(x) > 0
    return bool(it.native(bool, x))


CONTROL_HELP = {
    "the condition of this `while`": "run-time loops are not supported yet; make what drives it static, or use array "
                                     "operations",
    "this `assert`": "assert what is known from shapes and static arguments",
}


def _array_truth(it: Interpreter, x: Any, what: str) -> bool:
    known = x.current_known() if isinstance(x, ArrayRef) else None
    if known is not None:
        return bool(it.native(bool, known))
    if isinstance(x, ArrayRef) and dims.product(x.shape) == 1:
        it.demand(x)
        raise run_time_control(what, it.here, "use np.where(condition, a, b)")
    raise RuleError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
                    kind=ValueError, code="E310", help="select elementwise with np.where(condition, a, b)")


def _object_truth(it: Interpreter, x: Any, what: str) -> bool:
    for name in ("__bool__", "__len__"):
        found = it.find_special(x, name)
        if found is not None:
            return truth(it, it.call(found, (), {}), what)
    return True if isinstance(x, Instance) else bool(it.native(bool, x))


def combined(it: Interpreter, values: list[Any], all_of: bool) -> Any:
    """Whether all (or any) of these are true: a bool where that is known, else a Weak one."""
    from .arms import both, condition, either
    found: Value = Const(all_of, BOOL)
    for value in values:
        holds = condition(it, value, "a comparison")
        if not isinstance(holds, bool):
            found = both(found, holds) if all_of else either(found, holds)
        elif holds is not all_of:
            return holds
    return bool(found.value) if isinstance(found, Const) else Weak(found)


def contains(it: Interpreter, item: Any, container: Any) -> Any:
    """`item in container`."""
    from .grown import is_grown
    if is_grown(container):
        from .grown_methods import has_element
        return has_element(it, container, item)
    if is_object(container):
        found = it.find_special(container, "__contains__")
        if found is not None:
            return truth(it, it.call(found, (item,), {}), "`in`")
    if isinstance(container, (dict, set, frozenset)) and is_static(item):
        return to_python(item) in container
    if isinstance(container, (list, tuple)):
        equal = BY_FUNCTION[operator.eq]
        return combined(it, [item is entry or compare(it, equal, item, entry) for entry in container], all_of=False)
    if is_static(item) and is_static(container):
        return bool(it.native(operator.contains, to_python(container), to_python(item)))
    raise RuleError("`in` on run-time values is not supported", kind=NotImplementedError, code="E111",
                    help="use np.any(values == item)")

