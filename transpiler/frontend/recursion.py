"""Recursion that the running function ends: which calls stay calls, and how their funcs are traced.

    def f(n, x):                              func f(depth: i64, n: i64, x: f64) -> (f64):
        return x if n == 0 else x * f(n - 1, x)     check depth < limit RecursionError
                                                    t = if n == 0: yield x
                                                        else: yield x * call f(depth + 1, n - 1, x)
                                                    return t

A call of a function that is running already is followed like any other while what ends it is known; otherwise the
trace starts again with the function marked, and its calls become calls of a func of its own.  That func is interpreted
until the types of its arguments and results settle: first without the calls of itself, which gives the type of what it
returns without them, then with calls that return this.  Sizes of arrays that differ from call to call are the func's
own.  Whatever else a call changes (captured arrays, `nonlocal` names, objects) goes in as arguments and comes back as
results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import TranspileError, error
from ..ir.dims import DimExpr
from .arms import Jump
from .environment import Frame
from .errors import is_pythons_own
from .guards import Restart
from .recursive_func import Recursion
from .templates import held_number, same_static
from .values import ArrayRef, is_static

if TYPE_CHECKING:
    from .interpreter import Interpreter

MAX_DEPTH = 120          # calls of a function inside each other that cannot be a func, followed one by one ...
MAX_UNSETTLED = 16       # ... and where it cannot since its arguments become other things in every call
MAX_KINDS = 6            # calls of one function inside each other that differ in what is known while transpiling
MAX_UNROLLED = 100       # calls of one function inside each other that are followed one by one, all together ...
MAX_CHOSEN = 4           # ... and how deep, where the running function decides whether they are made
Key = tuple[str, int, int, str]


class Recurs(Restart):
    """The function calls itself for as long as the running function decides.

    why: "chosen", "sizes" or "static", the way in which its arguments differ from call to call.
    """

    def __init__(self, key: Key, why: str) -> None:
        super().__init__(f"{key[-1]} is recursive")
        self.key, self.why = key, why


class Unrolls(Restart):
    """The function cannot be a func of its own: its calls are followed one by one, come what may."""

    def __init__(self, key: Key, problem: TranspileError) -> None:
        super().__init__(f"{key[-1]} is unrolled")
        self.key, self.problem = key, problem


def recursive_call(it: Interpreter, node: Any, frame: Frame, name: str) -> Jump | None:
    """The outcome of a call with bound arguments, where it is one of a recursive func; None where the body is to be
    followed."""
    key = (frame.source.file, node.lineno, node.col_offset, name)
    frame.arguments, frame.branching = dict(frame.variables), it.branching
    if it.outlined:
        it.outlined = False
        it.leave_probe()
        return Jump("return", _called(it, key, node, frame, name))
    if key in it.recursive:
        it.leave_probe()
        return Jump("return", _called(it, key, node, frame, name))
    around = [f for f in it.frames if f.node is node and f.parent is frame.parent]
    it.activations[key] = it.activations.get(key, 0) + 1 if around else 0
    if not around:
        return None
    if key in it.unrolled:
        problem = it.unrolled[key]
        if len(around) >= (MAX_UNSETTLED if problem.code == "E130" else MAX_DEPTH):
            raise problem
        return None
    why = _stays_a_call(it, frame, around, it.activations[key])
    if why is not None:
        raise Recurs(key, why)
    return None


def _stays_a_call(it: Interpreter, frame: Frame, around: Sequence[Frame], count: int) -> str | None:
    chosen = it.branching > around[0].branching        # the running function decides whether this call is made
    moves = [_progress(around[-1].arguments.get(name), value) for name, value in frame.arguments.items()]
    if "sizes" in moves:
        return "sizes"
    if "static" in moves:
        return "static" if count > MAX_UNROLLED or (chosen and len(around) >= MAX_CHOSEN) else None
    return "chosen" if chosen else None


def _progress(old: Any, new: Any) -> str | None:
    """How an argument differs from that of the call around: "static" where that is known while transpiling, "sizes"
    where it follows from sizes that have names."""
    if old is new or same_static(old, new):
        return None
    if isinstance(old, ArrayRef) and isinstance(new, ArrayRef) and old.rank == new.rank:
        pairs = [(a, b) for a, b in zip(old.shape, new.shape) if a != b]
        if any(isinstance(d, DimExpr) for pair in pairs for d in pair):
            return "sizes"
        return "static" if pairs else None
    if held_number(old) is not None and held_number(new) is not None:
        if isinstance(old, DimExpr) or isinstance(new, DimExpr):
            return "sizes"
        return "static" if is_static(old) and is_static(new) else None
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        found = [_progress(a, b) for a, b in zip(old, new)]
        return "sizes" if "sizes" in found else "static" if "static" in found else None
    return "static"


def _called(it: Interpreter, key: Key, node: Any, frame: Frame, name: str) -> Any:
    kinds = 0
    for recursion in reversed(it.recursions):
        if recursion.key == key and recursion.parent is frame.parent:
            kinds += 1
            joined = recursion.joined(frame.arguments)
            if joined is not None:
                return recursion.called_inside(frame.arguments, joined)
    for recursion in it.traced:
        if recursion.key == key and recursion.orders == it.orders and recursion.serves(frame):
            return recursion.call(frame.arguments)
    if kinds >= MAX_KINDS:
        raise _unsettled(it, key, name)
    made = Recursion(it, key, node, frame, name)
    try:
        made.trace()
    except TranspileError as problem:
        if it.recursive.get(key, "chosen") == "chosen" or is_pythons_own(problem):
            raise
        raise Unrolls(key, problem) from None
    return made.call(frame.arguments)


def _unsettled(it: Interpreter, key: Key, name: str) -> TranspileError:
    outer = next(r for r in it.recursions if r.key == key)
    return error("E130", f"the arguments of `{name}` do not settle: {outer.clash or 'each call has others'}", it.here,
                 label=f"the first call is at {outer.where}" if outer.where else "")
