"""Which variables of a function may still be read: what branches and loops leave behind is merged for those alone.

    exposed(statements)     names that may be read before the statements bind them
    live_after(function, n) names that may be read once statement n is over

An approximation from above: what is not in the answer is surely not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gast

from .environment import FUNCTIONS, scope_of

LOOPS = (gast.For, gast.While)


def loads(node: Any) -> Iterator[str]:
    """Names read anywhere inside, nested functions included."""
    for part in gast.walk(node):
        if isinstance(part, gast.Name) and not isinstance(part.ctx, gast.Store):
            yield part.id
        elif isinstance(part, gast.AugAssign) and isinstance(part.target, gast.Name):
            yield part.target.id
        elif isinstance(part, (gast.Nonlocal, gast.Global)):
            yield from part.names


def stores(node: Any) -> Iterator[str]:
    """Names bound anywhere inside."""
    for part in gast.walk(node):
        if isinstance(part, gast.Name) and isinstance(part.ctx, gast.Store):
            yield part.id


@dataclass
class _Flow:
    """Names read so far before they were bound, and those bound on every way; `ends`: nothing comes after."""

    read: set[str]
    bound: set[str]
    ends: bool = False


def exposed(body: Sequence[Any]) -> frozenset[str]:
    """Names that the statements may read before they bind them."""
    return frozenset(_flow(body).read)


def _flow(body: Sequence[Any]) -> _Flow:
    flow = _Flow(set(), set())
    for node in body:
        _step(node, flow)
        if flow.ends:
            break
    return flow


def _read(flow: _Flow, *nodes: Any) -> None:
    for node in nodes:
        if node is not None:
            flow.read.update(name for name in loads(node) if name not in flow.bound)


def _add(flow: _Flow, inner: _Flow) -> None:
    flow.read |= inner.read - flow.bound


def _step(node: Any, flow: _Flow) -> None:
    match node:
        case gast.Assign():
            _read(flow, node.value, *node.targets)
            for target in node.targets:
                _bind(target, flow)
        case gast.AnnAssign():
            _read(flow, node.value, node.target)
            if node.value is not None:
                _bind(node.target, flow)
        case gast.If():
            _read(flow, node.test)
            arms = [_flow(node.body), _flow(node.orelse)]
            for arm in arms:
                _add(flow, arm)
            open_arms = [arm.bound for arm in arms if not arm.ends]
            if open_arms:
                flow.bound |= set.intersection(*open_arms)
            flow.ends = not open_arms
        case gast.For():
            _read(flow, node.iter)
            inner = _Flow(set(), set(flow.bound))
            _read(inner, node.target)
            _bind(node.target, inner)
            for part in node.body:
                _step(part, inner)
                if inner.ends:
                    break
            _add(flow, inner)
            _add(flow, _flow(node.orelse))
        case gast.While():
            _read(flow, node.test)
            _add(flow, _flow(node.body))
            _add(flow, _flow(node.orelse))
        case gast.Match():
            _read(flow, node.subject)
            for case in node.cases:
                inner = _Flow(set(), set(flow.bound) | captured(case.pattern))
                _read(inner, case.pattern, case.guard)
                for part in case.body:
                    _step(part, inner)
                    if inner.ends:
                        break
                _add(flow, inner)
        case gast.Return():
            _read(flow, node.value)
            flow.ends = True
        case gast.Break() | gast.Continue():
            flow.ends = True
        case gast.With():
            _read(flow, *(item.context_expr for item in node.items))
            inner = _flow(node.body)
            _add(flow, inner)
            flow.bound |= inner.bound
            flow.ends = inner.ends
        case _:
            _read(flow, node)


def captured(pattern: Any) -> set[str]:
    """Names that a pattern binds."""
    found = {part.name for part in gast.walk(pattern) if isinstance(part, (gast.MatchAs, gast.MatchStar)) and part.name}
    return found | {part.rest for part in gast.walk(pattern) if isinstance(part, gast.MatchMapping) and part.rest}


def _bind(target: Any, flow: _Flow) -> None:
    if isinstance(target, gast.Name):
        flow.bound.add(target.id)
    elif isinstance(target, (gast.Tuple, gast.List)):
        for part in target.elts:
            _bind(part, flow)
    elif isinstance(target, gast.Starred):
        _bind(target.value, flow)


# ---------------------------------------------------------------------------------------------------------------
# a function as a whole


def live_after(function: Any, node: Any) -> frozenset[str] | None:
    """Names that may be read after `node` of `function`; None where that is not known."""
    table = getattr(function, "_gradsmith_live", None)
    if table is None:
        table = {}
        if isinstance(function.body, list):
            always = _shared(function)
            _after(function.body, always, {"return": always}, table)
        function._gradsmith_live = table
    return table.get(id(node))


def live_at_head(function: Any, loop: Any) -> frozenset[str] | None:
    """Names that may be read when a loop begins another trip, or ends."""
    after = live_after(function, loop)
    if after is None:
        return None
    inner = _Flow(set(), set())
    if isinstance(loop, gast.For):
        _bind(loop.target, inner)
        _read(inner, loop.target)
    else:
        _read(inner, loop.test)
    _add(inner, _flow(loop.body))
    return after | frozenset(inner.read) | exposed(loop.orelse)


def _shared(function: Any) -> frozenset[str]:
    """Names that nested functions and generators read, whenever they run, and those that belong to outer functions."""
    found: set[str] = set(scope_of(function).nonlocal_ | scope_of(function).global_)
    for part in gast.walk(function):
        if isinstance(part, (*FUNCTIONS, gast.GeneratorExp)) and part is not function:
            found.update(loads(part))
    return frozenset(found)


def _after(body: Sequence[Any], after: frozenset[str], jumps: dict[str, frozenset[str]],
           table: dict[int, frozenset[str]]) -> frozenset[str]:
    """Fill in what is live after each statement of a block; returns what is live before the block.

    jumps: what is live where `break` and `continue` go.
    """
    live = after
    for node in reversed(body):
        table[id(node)] = live
        match node:
            case gast.Return() | gast.Raise():
                live = frozenset(loads(node)) | jumps["return"]
            case gast.Break() | gast.Continue():
                live = jumps["break" if isinstance(node, gast.Break) else "continue"]
            case gast.If():
                live = (_after(node.body, live, jumps, table) | _after(node.orelse, live, jumps, table)
                        | frozenset(loads(node.test)))
            case gast.For() | gast.While():
                live = _loop(node, live, jumps, table)
            case gast.Match():
                otherwise = live
                for case in reversed(node.cases):
                    inside = _after(case.body, live, jumps, table)
                    guard = frozenset() if case.guard is None else frozenset(loads(case.guard))
                    otherwise |= (inside | guard) - captured(case.pattern) | frozenset(loads(case.pattern))
                live = otherwise | frozenset(loads(node.subject))
            case gast.With():
                live = _after(node.body, live, jumps, table).union(*(loads(i.context_expr) for i in node.items))
            case gast.Try():
                inside = live | frozenset(name for part in (*node.body, *node.handlers, *node.orelse, *node.finalbody)
                                          for name in loads(part))
                for part in (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody):
                    _after(part, inside, {k: v | inside for k, v in jumps.items()}, table)
                live = inside
            case _:
                flow = _Flow(set(), set())
                _step(node, flow)
                live = (live - flow.bound) | flow.read
    return live


def _loop(node: Any, after: frozenset[str], jumps: dict[str, frozenset[str]],
          table: dict[int, frozenset[str]]) -> frozenset[str]:
    otherwise = _after(node.orelse, after, jumps, table)
    head = otherwise | frozenset(loads(node.iter if isinstance(node, gast.For) else node.test))
    inner = _Flow(set(), set())
    if isinstance(node, gast.For):
        _bind(node.target, inner)
        _read(inner, node.target)
    _add(inner, _flow(node.body))
    again = otherwise | frozenset(inner.read)
    if isinstance(node, gast.While):
        again |= frozenset(loads(node.test))
    _after(node.body, again, {**jumps, "break": after, "continue": again}, table)
    return head | again
