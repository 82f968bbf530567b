"""Expressions: one function per kind of node, `(interpreter, node, frame) -> abstract value`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from ..errors import TranspileError, did_you_mean, error
from ..ir.build import building, check, current
from ..ir.nodes import Const, Let, Value
from ..ir.types import BOOL
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .attributes import get_attribute
from .decided import check_own, is_decided
from .environment import MISSING, Frame, builtin_named, scope_of
from .guards import Access
from .indexing import get_item
from .operators import BINARY, COMPARE, UNARY, binary, compare, contains, unary
from .texts import joined, piece
from .values import ArrayRef, Closure, Maybe, OpaqueText, Poison, is_static, to_python, type_of

if TYPE_CHECKING:
    from .interpreter import Interpreter


MOST_EAGER = 12               # statements of an operand of `and` that is computed without being needed


def evaluate(it: Interpreter, node: Any, frame: Frame) -> Any:
    """The value of an expression."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise _not_supported(node, frame)
    return handler(it, node, frame)


def _not_supported(node: Any, frame: Frame) -> Exception:
    name = type(node).__name__
    if name in ("Yield", "YieldFrom", "Await"):
        return error("E112", "generators and coroutines are not supported", frame.location(node),
                     help="return a list or an array")
    return error("E111", f"this kind of expression ({name}) is not supported", frame.location(node))


# ---------------------------------------------------------------------------------------------------------------
# names and literals


def _constant(it: Interpreter, node: gast.Constant, frame: Frame) -> Any:
    return node.value


def _name(it: Interpreter, node: gast.Name, frame: Frame) -> Any:
    return load_name(it, frame.mangled(node.id), node, frame)


def load_name(it: Interpreter, name: str, node: Any, frame: Frame) -> Any:
    """A variable by Python's rules: local, enclosing, global, builtin."""
    owner = frame.owner_of(name)
    if owner is not None:
        value = owner.variables.get(name, MISSING)
        if value is MISSING:
            own = owner is frame
            message = (f"cannot access local variable '{name}' where it is not associated with a value" if own else
                       f"cannot access free variable '{name}' where it is not associated with a value in enclosing "
                       "scope")
            raise error("E115", message, frame.location(node), kind=UnboundLocalError if own else NameError)
        if isinstance(value, (Maybe, Poison)):
            value = _decided(it, value, name, node, owner, frame)
        return value
    cell = frame.cells_of(name)
    it.at(frame.location(node))
    if cell is not None:
        try:
            value = cell.cell_contents
        except ValueError:
            raise error("E115", f"cannot access free variable '{name}' where it is not associated with a value in "
                        "enclosing scope", frame.location(node), kind=NameError) from None
        return it.captures.take(value, Access(cell, (("cell", name),)))
    if name in frame.globals:
        return it.captures.take(frame.globals[name], Access(frame.globals, (("key", name),)))
    value = builtin_named(frame, name)
    if value is not MISSING:
        return value
    known = {*frame.scope.local, *frame.globals}
    raise error("E114", f"name '{name}' is not defined", frame.location(node), help=did_you_mean(name, known))


def _decided(it: Interpreter, value: Maybe | Poison, name: str, node: Any, owner: Frame, frame: Frame) -> Any:
    """A variable that a branch or a loop left without a value in some cases."""
    it.at(frame.location(node))
    if isinstance(value, Poison):
        for pred in value.preds:
            it.demand(pred)
        raise value.problem
    if value.is_none:
        check(value.is_set, "TypeError", f"'{name}' is None where a value is needed")
        return value.value
    check(value.is_set, "UnboundLocalError",
          f"cannot access local variable '{name}' where it is not associated with a value")
    owner.variables[name] = value.value
    return value.value


def _may_be_none(node: gast.Compare, frame: Frame) -> Maybe | None:
    """The variable of `x is None`, where that is decided at run time."""
    if not (isinstance(node.left, gast.Name) and len(node.ops) == 1 and isinstance(node.ops[0], (gast.Is, gast.IsNot))
            and isinstance(node.comparators[0], gast.Constant) and node.comparators[0].value is None):
        return None
    name = frame.mangled(node.left.id)
    owner = frame.owner_of(name)
    value = owner.variables.get(name) if owner is not None else None
    return value if isinstance(value, Maybe) and value.is_none else None


def _joined(it: Interpreter, node: gast.JoinedStr, frame: Frame) -> Any:
    parts = [evaluate(it, part, frame) for part in node.values]
    if any(isinstance(part, OpaqueText) for part in parts):
        return joined(it, [piece(it, part) for part in parts])
    return "".join(parts)


def _formatted(it: Interpreter, node: gast.FormattedValue, frame: Frame) -> Any:
    value = evaluate(it, node.value, frame)
    spec = evaluate(it, node.format_spec, frame) if node.format_spec is not None else ""
    it.at(frame.location(node))
    if not is_static(value):
        conversion = {114: "r", 115: "s", 97: "a"}.get(node.conversion, "")
        return joined(it, [piece(it, value, spec, conversion)])
    conversions: dict[int, Callable[[Any], str]] = {114: repr, 115: str, 97: ascii}
    convert = conversions.get(node.conversion)
    value = to_python(value)
    return it.native(format, value if convert is None else it.native(convert, value), spec)


# ---------------------------------------------------------------------------------------------------------------
# displays


def elements(it: Interpreter, nodes: list[Any], frame: Frame) -> list[Any]:
    """Values of a display or an argument list, stars unpacked."""
    from .iteration import iterate
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, gast.Starred):
            value = evaluate(it, node.value, frame)
            it.at(frame.location(node))
            found += iterate(it, value)
        else:
            found.append(evaluate(it, node, frame))
    return found


def _list(it: Interpreter, node: gast.List, frame: Frame) -> Any:
    return elements(it, node.elts, frame)


def _tuple(it: Interpreter, node: gast.Tuple, frame: Frame) -> Any:
    return tuple(elements(it, node.elts, frame))


def _set(it: Interpreter, node: gast.Set, frame: Frame) -> Any:
    return static_set(it, elements(it, node.elts, frame), node, frame)


def static_set(it: Interpreter, items: list[Any], node: Any, frame: Frame) -> Any:
    """A set display or comprehension."""
    it.at(frame.location(node))
    if not is_static(items):
        raise error("E111", "a set of run-time values is not supported", frame.location(node), help="use a list")
    return it.native(set, to_python(items))


def static_key(it: Interpreter, key: Any) -> Any:
    """A dictionary key."""
    from .values import Closure, Instance
    if isinstance(key, (Closure, Instance)):
        return key
    if not is_static(key):
        it.demand(key)
        raise RuleError("a key of a dict must be known while transpiling", kind=TypeError, code="E117")
    return to_python(key)


def _dict(it: Interpreter, node: gast.Dict, frame: Frame) -> Any:
    found: dict[Any, Any] = {}
    for key_node, value_node in zip(node.keys, node.values):
        if key_node is None:
            value = evaluate(it, value_node, frame)
            it.at(frame.location(value_node))
            found.update(it.native(dict, value))
            continue
        key = evaluate(it, key_node, frame)
        value = evaluate(it, value_node, frame)
        it.at(frame.location(key_node))
        key = static_key(it, key)
        it.native(hash, key)
        found[key] = value
    return found


# ---------------------------------------------------------------------------------------------------------------
# operators


def _binary(it: Interpreter, node: gast.BinOp, frame: Frame) -> Any:
    # Long chains (a + b + c + ...) lean to the left: by a loop, so that they may be longer than Python's stack is deep.
    pending = [node]
    while isinstance(pending[-1].left, gast.BinOp):
        pending.append(pending[-1].left)
    value = evaluate(it, pending[-1].left, frame)
    for part in reversed(pending):
        right = evaluate(it, part.right, frame)
        it.at(frame.location(part))
        value = binary(it, BINARY[type(part.op)], value, right)
    return value


def _unary(it: Interpreter, node: gast.UnaryOp, frame: Frame) -> Any:
    if isinstance(node.op, gast.Not):
        return evaluate_test(it, node, frame)
    value = evaluate(it, node.operand, frame)
    it.at(frame.location(node))
    return unary(it, UNARY[type(node.op)], value)


def opposite(it: Interpreter, value: Any) -> Any:
    """`not value`."""
    from .arms import condition, negated
    holds = condition(it, value, "`not`")
    return not holds if isinstance(holds, bool) else Weak(negated(holds))


def evaluate_test(it: Interpreter, node: Any, frame: Frame) -> Any:
    """An expression of which only the truth matters: operands of `and` and `or` may be of any kinds."""
    if isinstance(node, gast.BoolOp):
        return _following(it, _truth_of(it, node.values[0], frame), node, 1, frame, _truth_of)
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        value = evaluate_test(it, node.operand, frame)
        it.at(frame.location(node.operand))
        return opposite(it, value)
    return evaluate(it, node, frame)


def _truth_of(it: Interpreter, node: Any, frame: Frame) -> Any:
    from .arms import condition
    value = evaluate_test(it, node, frame)
    it.at(frame.location(node))
    holds = condition(it, value, "`and` or `or`")
    return holds if isinstance(holds, bool) else Weak(holds)


def _bool(it: Interpreter, node: gast.BoolOp, frame: Frame) -> Any:
    value = evaluate(it, node.values[0], frame)
    it.at(frame.location(node.values[0]))
    return _following(it, value, node, 1, frame)


def _following(it: Interpreter, value: Any, node: gast.BoolOp, k: int, frame: Frame,
               evaluate: Callable[[Any, Any, Frame], Any] = evaluate) -> Any:
    """The value of `a and b and c`, of which the first k operands gave `value`."""
    from .arms import condition
    from .branches import choose_value
    is_and = isinstance(node.op, gast.And)
    while k < len(node.values):
        holds = condition(it, value, "`and`" if is_and else "`or`")
        if not isinstance(holds, bool):
            break
        if holds is not is_and:
            return value
        value = evaluate(it, node.values[k], frame)
        it.at(frame.location(node.values[k]))
        k += 1
    else:
        return value

    def more() -> Any:
        found = evaluate(it, node.values[k], frame)
        it.at(frame.location(node.values[k]))
        return _following(it, found, node, k + 1, frame, evaluate)

    cheap = _without_branch(it, value, holds, more, is_and)
    if cheap is not None:
        return cheap
    arms = (more, lambda: value) if is_and else (lambda: value, more)
    return choose_value(it, frame, holds, *arms, source=value)


def _without_branch(it: Interpreter, value: Any, holds: Value, more: Callable[[], Any], is_and: bool) -> Any:
    """`a and b` of bools where computing b does no harm: both are computed.  None where it might."""
    from .arms import both, condition, either
    from .state import capture, restore, same_contents
    if type_of(value) not in (bool, np.bool_):
        return None
    before, names = capture(it), it.names.taken.copy()
    with building() as builder:
        try:
            second = more()
            held = condition(it, second, "a condition")
        except (RuleError, TranspileError):
            builder.stmts.clear()
            held = None
    after = capture(it, known=before)
    unchanged = all(same_contents(contents, after.contents(cell)) for cell, contents in before.cells.values())
    if held is None or not unchanged or len(builder.stmts) > MOST_EAGER or not all(
            isinstance(s, Let) and s.op.is_pure and not s.target.rank for s in builder.stmts) or type_of(
            second) not in (bool, np.bool_):
        restore(before)
        it.forget_names(names)
        return None
    current().stmts.extend(builder.stmts)
    if isinstance(held, bool):
        held = Const(held, BOOL)
    return Weak(both(holds, held) if is_and else either(holds, held))


def _compare(it: Interpreter, node: gast.Compare, frame: Frame) -> Any:
    optional = _may_be_none(node, frame)
    if optional is not None:
        from .arms import negated
        it.at(frame.location(node))
        return Weak(negated(optional.is_set) if isinstance(node.ops[0], gast.Is) else optional.is_set)
    left = evaluate(it, node.left, frame)
    return _compare_rest(it, node, left, 0, frame)


def _compare_rest(it: Interpreter, node: gast.Compare, left: Any, k: int, frame: Frame) -> Any:
    """`left < b < c`, from the k-th operator on."""
    from .arms import condition
    from .branches import choose_value
    right = evaluate(it, node.comparators[k], frame)
    it.at(frame.location(node))
    result = compare_values(it, node.ops[k], left, right)
    if k == len(node.ops) - 1:
        return result
    holds = condition(it, result, "a chain of comparisons")
    if isinstance(holds, bool):
        return _compare_rest(it, node, right, k + 1, frame) if holds else result

    def more() -> Any:
        return _compare_rest(it, node, right, k + 1, frame)

    cheap = _without_branch(it, result, holds, more, True)
    return cheap if cheap is not None else choose_value(it, frame, holds, more, lambda: result, source=result)


def compare_values(it: Interpreter, op: Any, left: Any, right: Any) -> Any:
    match op:
        case gast.Is() | gast.IsNot():
            if left is not right and is_decided(it, left) and is_decided(it, right):
                check_own(it, left, "is compared with it")
            return identical(left, right) is isinstance(op, gast.Is)
        case gast.In():
            return contains(it, left, right)
        case gast.NotIn():
            return opposite(it, contains(it, left, right))
    return compare(it, COMPARE[type(op)], left, right)


def identical(a: Any, b: Any) -> bool:
    """`a is b`."""
    if isinstance(a, ArrayRef) or isinstance(b, ArrayRef):
        return a is b
    return a is b or (type(a) is type(b) and isinstance(a, (int, str, float)) and a == b)


def _conditional(it: Interpreter, node: gast.IfExp, frame: Frame) -> Any:
    from .arms import condition
    from .branches import choose_value
    test = evaluate_test(it, node.test, frame)
    it.at(frame.location(node.test))
    holds = condition(it, test, "this conditional expression")
    if isinstance(holds, bool):
        return evaluate(it, node.body if holds else node.orelse, frame)
    return choose_value(it, frame, holds, lambda: evaluate(it, node.body, frame),
                        lambda: evaluate(it, node.orelse, frame), source=test)


def _walrus(it: Interpreter, node: gast.NamedExpr, frame: Frame) -> Any:
    from .assignments import store_name
    value = evaluate(it, node.value, frame)
    owner = frame
    while owner.is_comprehension and owner.parent is not None:
        owner = owner.parent
    store_name(it, node.target.id, value, node, owner)
    return value


# ---------------------------------------------------------------------------------------------------------------
# parts and calls


def _attribute(it: Interpreter, node: gast.Attribute, frame: Frame) -> Any:
    value = evaluate(it, node.value, frame)
    it.at(frame.location(node))
    return get_attribute(it, value, frame.mangled(node.attr))


def _subscript(it: Interpreter, node: gast.Subscript, frame: Frame) -> Any:
    value = evaluate(it, node.value, frame)
    key = evaluate(it, node.slice, frame)
    it.at(frame.location(node))
    return get_item(it, value, key)


def _slice(it: Interpreter, node: gast.Slice, frame: Frame) -> Any:
    parts = [None if part is None else evaluate(it, part, frame) for part in (node.lower, node.upper, node.step)]
    return slice(*parts)


def _call(it: Interpreter, node: gast.Call, frame: Frame) -> Any:
    from .calls import call_value
    callee = evaluate(it, node.func, frame)
    args = elements(it, node.args, frame)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(it, keyword.value, frame)
        it.at(frame.location(keyword.value))
        more = {keyword.arg: value} if keyword.arg is not None else it.native(dict, value)
        for name in more:
            if name in kwargs:
                raise error("E118", f"got multiple values for keyword argument '{name}'", frame.location(node))
        kwargs.update(more)
    loc = frame.location(node)
    it.at(loc)
    if callee is super and not args:
        from .calls import zero_argument_super
        return zero_argument_super(it, frame)
    result = call_value(it, callee, tuple(args), kwargs)
    it.at(loc)
    return result


def _lambda(it: Interpreter, node: gast.Lambda, frame: Frame) -> Any:
    return make_closure(it, node, "<lambda>", frame)


def make_closure(it: Interpreter, node: Any, name: str, frame: Frame) -> Closure:
    """The function that a def or lambda makes; its default values are evaluated now."""
    if isinstance(node, gast.AsyncFunctionDef) or scope_of(node).is_generator:
        raise error("E112", f"`{name}` is a generator or a coroutine", frame.location(node),
                    help="return a list or an array")
    defaults = tuple(evaluate(it, d, frame) for d in node.args.defaults)
    kw_defaults = {arg.id: evaluate(it, d, frame)
                   for arg, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d is not None}
    return Closure(name, node, frame, frame.source, defaults, kw_defaults)


def _comprehension(it: Interpreter, node: Any, frame: Frame) -> Any:
    from .comprehensions import comprehension
    return comprehension(it, node, frame)


HANDLERS: dict[type, Callable[[Any, Any, Frame], Any]] = {
    gast.Constant: _constant, gast.Name: _name, gast.JoinedStr: _joined, gast.FormattedValue: _formatted,
    gast.List: _list, gast.Tuple: _tuple, gast.Set: _set, gast.Dict: _dict, gast.BinOp: _binary,
    gast.UnaryOp: _unary, gast.BoolOp: _bool, gast.Compare: _compare, gast.IfExp: _conditional,
    gast.NamedExpr: _walrus, gast.Attribute: _attribute, gast.Subscript: _subscript, gast.Slice: _slice,
    gast.Call: _call, gast.Lambda: _lambda, gast.ListComp: _comprehension, gast.SetComp: _comprehension,
    gast.DictComp: _comprehension, gast.GeneratorExp: _comprehension,
}
