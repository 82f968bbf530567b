"""Lists, dicts and objects of which a loop, when it runs, decides which of several they are.

After `q = p`, `for ...: q = step(q)` the dict `q` is `p` if the loop made no trip, and a new one otherwise.  What is in
them is known all the same: it is carried by the loop.  They may be read; a write to either may be one to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ops.base import RuleError
from .values import Instance

if TYPE_CHECKING:
    from ..errors import Location
    from .interpreter import Interpreter


def mark_decided(it: Interpreter, container: Any, where: Location | None) -> None:
    """Writes to it are errors from now on.  It is held, so that nothing else gets its identity."""
    it.decided.setdefault(id(container), (container, where))


def check_not_kept(it: Interpreter, x: Any) -> None:
    """Raises E123 for an array (or container) that a grown list has a copy of."""
    if id(x) in it.kept:
        where = it.kept[id(x)][1]
        line = f" in line {where.line}" if where is not None else ""
        raise RuleError(f"what was put into a list{line}, or taken out of it, is written to: a list that grows at run "
                        "time has copies", code="E123", kind=ValueError,
                        help="put a copy into the list: `values.append(a.copy())`")


def is_decided(it: Interpreter, container: Any) -> bool:
    return id(container) in it.decided


def check_own(it: Interpreter, container: Any, what: str = "is written to") -> None:
    """Raises E123 for a container that may be another one."""
    if id(container) in it.decided:
        where = it.decided[id(container)][1]
        kind = "object" if isinstance(container, Instance) else type(container).__name__
        loop = f"the loop in line {where.line}" if where is not None else "a loop"
        raise RuleError(f"which {kind} this is was decided at run time by {loop}, and one that it may be {what}",
                        code="E123", kind=ValueError, help="make a copy of it before the loop")
