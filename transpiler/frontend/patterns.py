"""`match`: whether a pattern fits, as a bool where that is known while transpiling and else as a run-time one.

    match k % 3:                 c = k % 3 == 0
        case 0: ...              If(c, ..., If(k % 3 == 1, ..., ...))
        case 1 | 2 if x > 0: ...
        case other: ...

Comparing has no effects, so all parts of a pattern are compared, whichever of them fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import gast
import numpy as np

from ..errors import TranspileError, error
from ..ir.nodes import Const, Value
from ..ops.base import RuleError
from ..ops.spelling import Weak
from .arms import Outcome, both, condition, either
from .attributes import get_attribute
from .branches import branch, choose_value
from .environment import Frame
from .expressions import compare_values, evaluate, evaluate_test
from .grown import is_grown
from .iteration import DimRange, iterate
from .values import ArrayRef, type_of

if TYPE_CHECKING:
    from .interpreter import Interpreter

Fit = bool | Value
Bindings = dict[str, Any]
ITSELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)    # `case int(n)`: n is all of it


def execute_match(it: Interpreter, node: gast.Match, frame: Frame) -> Outcome:
    """A `match` statement."""
    subject = evaluate(it, node.subject, frame)
    return _cases(it, node, subject, 0, frame)


def _cases(it: Interpreter, node: gast.Match, subject: Any, k: int, frame: Frame) -> Outcome:
    """The cases from the k-th on."""
    from .statements import execute_block
    for number in range(k, len(node.cases)):
        case = node.cases[number]
        it.at(frame.location(case.pattern))
        bindings: Bindings = {}
        holds = fits(it, case.pattern, subject, frame, bindings)
        if isinstance(holds, Const):
            holds = bool(holds.value)
        if holds is False:
            continue
        holds = _guarded(it, case, holds, bindings, frame)
        if holds is True:
            return execute_block(it, case.body, frame)
        if holds is False:
            continue
        it.at(frame.location(case.pattern))
        outcome, _ = branch(it, frame, holds, _body(it, case, bindings, frame),
                            partial(_cases, it, node, subject, number + 1, frame), source=subject)
        return outcome
    return None


def _body(it: Interpreter, case: Any, bindings: Bindings, frame: Frame) -> Callable[[], Outcome]:
    from .statements import execute_block

    def run() -> Outcome:
        _bind(it, case, bindings, frame)
        return execute_block(it, case.body, frame)

    return run


def _bind(it: Interpreter, case: Any, bindings: Bindings, frame: Frame) -> None:
    from .assignments import store_name
    for name, value in bindings.items():
        store_name(it, frame.mangled(name), value, case.pattern, frame)


def _guarded(it: Interpreter, case: Any, holds: Fit, bindings: Bindings, frame: Frame) -> Fit:
    """Whether the case is taken: its pattern fits, and its guard is true, which sees what the pattern binds."""
    if holds is True:
        _bind(it, case, bindings, frame)
        return True if case.guard is None else _test(it, case.guard, frame)
    if case.guard is None:
        return holds
    assert not isinstance(holds, bool)

    def guard() -> Any:
        _bind(it, case, bindings, frame)
        found = _test(it, case.guard, frame)
        return found if isinstance(found, bool) else Weak(found)

    return condition(it, choose_value(it, frame, holds, guard, lambda: False), "the guard of a case")


def _test(it: Interpreter, node: Any, frame: Frame) -> Fit:
    value = evaluate_test(it, node, frame)
    it.at(frame.location(node))
    found = condition(it, value, "the guard of a case")
    return bool(found.value) if isinstance(found, Const) else found


# ---------------------------------------------------------------------------------------------------------------
# patterns


def fits(it: Interpreter, pattern: Any, subject: Any, frame: Frame, bindings: Bindings) -> Fit:
    """Whether the pattern fits; what it captures is added to `bindings`."""
    match pattern:
        case gast.MatchValue():
            return condition(it, compare_values(it, gast.Eq(), subject, evaluate(it, pattern.value, frame)),
                             "this pattern")
        case gast.MatchSingleton():
            return _is_singleton(it, subject, pattern.value)
        case gast.MatchAs():
            holds = True if pattern.pattern is None else fits(it, pattern.pattern, subject, frame, bindings)
            if pattern.name is not None:
                bindings[pattern.name] = subject
            return holds
        case gast.MatchOr():
            return _one_of(it, pattern, subject, frame, bindings)
        case gast.MatchSequence():
            return _sequence(it, pattern, subject, frame, bindings)
        case gast.MatchMapping():
            return _mapping(it, pattern, subject, frame, bindings)
        case gast.MatchClass():
            return _instance(it, pattern, subject, frame, bindings)
    raise error("E110", "this kind of pattern is not supported", frame.location(pattern), kind=NotImplementedError,
                help="write it with `if`")


def _all(parts: list[Callable[[], Fit]]) -> Fit:
    """Whether all hold; those after one that surely does not are not asked."""
    found: Fit = True
    for part in parts:
        holds = part()
        if holds is False:
            return False
        found = holds if found is True else found if holds is True else both(found, holds)    # type: ignore[arg-type]
    return found


def _is_singleton(it: Interpreter, subject: Any, value: Any) -> Fit:
    if isinstance(value, bool) and isinstance(subject, Weak) and type_of(subject) is bool:
        return condition(it, compare_values(it, gast.Eq(), subject, value), "this pattern")
    return subject is value


def _one_of(it: Interpreter, pattern: gast.MatchOr, subject: Any, frame: Frame, bindings: Bindings) -> Fit:
    tried: list[tuple[Value, Bindings]] = []
    last: Bindings | None = None
    for part in pattern.patterns:
        own: Bindings = {}
        holds = fits(it, part, subject, frame, own)
        if holds is True:
            last = own
            break
        if holds is not False:
            tried.append((holds, own))
    if not tried:
        bindings.update(last or {})
        return last is not None
    found: Fit = last is not None
    if last is None:
        found, last = tried.pop()
    for holds, own in reversed(tried):
        last = {name: choose_value(it, frame, holds, partial(own.__getitem__, name), partial(last.__getitem__, name))
                for name in own}
        found = True if found is True else either(holds, found)                               # type: ignore[arg-type]
    bindings.update(last)
    return found


def _sequence(it: Interpreter, pattern: gast.MatchSequence, subject: Any, frame: Frame, bindings: Bindings) -> Fit:
    if is_grown(subject):
        raise RuleError("a list that a loop appended to is matched with a sequence", code="E110",
                        kind=NotImplementedError, help="compare its length and its elements with `if`")
    if not isinstance(subject, (list, tuple, range, DimRange)):
        return False
    items, parts = iterate(it, subject), pattern.patterns
    star = next((k for k, part in enumerate(parts) if isinstance(part, gast.MatchStar)), None)
    if star is None:
        if len(items) != len(parts):
            return False
    else:
        if len(items) < len(parts) - 1:
            return False
        after = len(items) - (len(parts) - star - 1)
        if parts[star].name is not None:
            bindings[parts[star].name] = list(items[star:after])
        items = [*items[:star], *items[after:]]
        parts = [*parts[:star], *parts[star + 1:]]
    return _all([partial(fits, it, part, item, frame, bindings) for part, item in zip(parts, items, strict=True)])


def _mapping(it: Interpreter, pattern: gast.MatchMapping, subject: Any, frame: Frame, bindings: Bindings) -> Fit:
    if not isinstance(subject, dict):
        return False
    keys = [evaluate(it, key, frame) for key in pattern.keys]
    if any(key not in subject for key in keys):
        return False
    if pattern.rest is not None:
        bindings[pattern.rest] = {key: value for key, value in subject.items() if key not in keys}
    return _all([partial(fits, it, part, subject[key], frame, bindings)
                 for part, key in zip(pattern.patterns, keys, strict=True)])


def _instance(it: Interpreter, pattern: gast.MatchClass, subject: Any, frame: Frame, bindings: Bindings) -> Fit:
    cls = evaluate(it, pattern.cls, frame)
    it.at(frame.location(pattern))
    if not isinstance(cls, type):
        raise RuleError("called match pattern must be a class", kind=TypeError, code="E120")
    kind = np.ndarray if isinstance(subject, ArrayRef) else type_of(subject)
    if not issubclass(kind, cls):
        return False
    parts: list[Callable[[], Fit]] = []
    positional = pattern.patterns
    if positional and any(cls is own for own in ITSELF):
        if len(positional) > 1:
            raise _too_many(cls, 1, len(positional))
        parts.append(lambda: fits(it, positional[0], subject, frame, bindings))
        names: tuple[str, ...] = ()
    else:
        names = getattr(cls, "__match_args__", ())
        if len(positional) > len(names):
            raise _too_many(cls, len(names), len(positional))
    named = [*zip(names, positional), *zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)]
    for name, part in named:
        parts.append(partial(_attribute, it, subject, name, part, frame, bindings))
    return _all(parts)


def _attribute(it: Interpreter, subject: Any, name: str, part: Any, frame: Frame, bindings: Bindings) -> Fit:
    try:
        value = get_attribute(it, subject, name)
    except (RuleError, TranspileError) as problem:
        if problem.code != "E116":
            raise
        return False
    return fits(it, part, value, frame, bindings)


def _too_many(cls: type, most: int, given: int) -> RuleError:
    plural = "" if most == 1 else "s"
    return RuleError(f"{cls.__name__}() accepts {most} positional sub-pattern{plural} ({given} given)", kind=TypeError,
                     code="E120")
