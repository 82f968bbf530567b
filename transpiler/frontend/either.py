"""Values that are a number or an array without axes, whichever a branch, a loop or `max` has left.

    z = np.array(0.0)
    t = z if x > 0 else x           # z itself, or a number
    t += 1.0                        # changes z, or gives another number

Which of the two it is can be seen only by what is written to it and where else that is seen.  While it has one name
only, writing to it and making another number are the same; anything else is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.nodes import Value
from ..ops.base import RuleError
from ..ops.spelling import as_value
from .merge import depend_on
from .operators import Operator, binary
from .state import capture
from .values import ArrayRef, unboxed

if TYPE_CHECKING:
    from .environment import Frame
    from .interpreter import Interpreter


def updated(it: Interpreter, op: Operator, old: ArrayRef, operand: Any, frame: Frame) -> ArrayRef:
    """`old op= operand`, of what may be either: what it is then."""
    old.check_certain(writing=True)
    if capture(it, frame).references.get(id(old.root), 0) > 1:
        raise unknown(old)
    new = as_value(unboxed(binary(it, op, old.read(), operand)))
    if new.type != old.type:
        raise unknown(old)
    made = ArrayRef(new)
    made.may_be_number, made.decided_at = True, old.decided_at
    return made


def unknown(ref: ArrayRef) -> RuleError:
    """The error where the program depends on which of the two it is."""
    return RuleError("whether this is an array without axes or a number was decided at run time by "
                     f"{ref.decided_at or 'a branch'}, and it is written to", code="E123", kind=ValueError,
                     help="make it a number: `float(x)`, or an array in both cases")


def one_of(it: Interpreter, result: Value, given: list[Any]) -> Any:
    """What `max` or `min` gives: one of these, known by its value alone."""
    arrays = [x for x in given if isinstance(x, ArrayRef)]
    if not arrays:
        return result
    made = ArrayRef(result)
    made.may_be_number, made.decided_at = len(arrays) < len(given), it.here
    referred = capture(it).references
    depend_on(made, [x.root for x in arrays if referred.get(id(x.root), 0)], it.here)
    return made
