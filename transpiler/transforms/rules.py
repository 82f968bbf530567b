"""Calls of funcs whose derivative is given (`Func.rule`): forward and reverse mode put the rule in place of the func.

    before                          after `with_rules`                        reverse mode
    y = call f(x)                   y_1, t = (the forward func's statements)  d_x = (the pull func's statements,
                                    y = call f_given(x, y_1, t)                      from t and ct)

`f_given` is the identity on the results, and has the rule's `push` and `pull`: a statement that carries a derivative.
When the derived func is complete, `without_given` puts `y_1` in its place, so that what is differentiated once more
is the code of the rule.  A call that is not differentiated stays, and is put in place by the pipeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal, assert_never

from .. import ops
from ..errors import RuleError
from ..ir.build import Names, building, const, current
from ..ir.library import library
from ..ir.nodes import Block, Call, Check, For, Func, If, Let, Rule, Stmt, Value, Var, While
from ..ir.types import I64
from ..ir.walk import all_statements, blocks, inline, map_results, operands, reads, substituted, used_names, with_blocks
from ..optimize.common import share_common
from ..optimize.dead_code import drop_dead_code
from ..optimize.simplify import simplify
from .split import split

Way = Literal["push", "pull"]


def rule_of(name: str) -> Rule | None:
    """The rule of a func of the library; none while it is being traced."""
    found = library().funcs.get(name)
    return None if found is None else found.rule


def is_given(stmt: Stmt) -> bool:
    """Whether the statement is the identity that carries a derivative."""
    rule = rule_of(stmt.func) if isinstance(stmt, Call) else None
    return rule is not None and rule.forward is None


def given_values(call: Call) -> tuple[Value, ...]:
    """What the targets of such a call are."""
    first = len(call.args) - len(call.targets) - _residual_count(call)
    return call.args[first:first + len(call.targets)]


def given_value(stmt: Stmt | None, target: Var) -> Value | None:
    """What a target of such a call is; None for other statements."""
    if not isinstance(stmt, Call) or not is_given(stmt):
        return None
    return given_values(stmt)[stmt.targets.index(target)]


# --- before a derivative -----------------------------------------------------------------------------------------


def with_rules(func: Func, wrt: Sequence[bool], way: Way) -> Func:
    """Calls of funcs with rules run the rule's forward func instead, where a derivative goes through them: a rule whose
    func is called only for a value keeps it for a derivative of the derivative."""
    from .activity import active_variables
    while True:
        called = [s for s in all_statements(func.body) if isinstance(s, Call) and _may_run(s.func)]
        if not called:
            return func
        active = active_variables(func, wrt)
        chosen = {call for call in called if not active.isdisjoint(call.targets)}
        if not chosen:
            return func
        with building(Names(used_names(func))):
            func = replace(func, body=_running(func.body, chosen, way))


def _may_run(name: str) -> bool:
    rule = rule_of(name)
    return rule is not None and rule.forward is not None


def _running(block: Block, chosen: Collection[Stmt], way: Way) -> Block:
    with building() as b:
        for stmt in block.stmts:
            if stmt in chosen and isinstance(stmt, Call):
                _run_forward(stmt, way)
            else:
                b.stmts.append(with_blocks(stmt, [_running(inner, chosen, way) for inner in blocks(stmt)]))
    return Block(tuple(b.stmts), block.results)


def _run_forward(call: Call, way: Way) -> None:
    rule = rule_of(call.func)
    assert rule is not None
    if way == "push" and rule.push is not None:
        rule = replace(rule, forward=rule.ahead or rule.forward, pull=None, ahead=None)
    elif way == "pull" and rule.pull is not None:
        rule = replace(rule, push=None, ahead=None)
    assert rule.forward is not None
    made = inline(library().callee(rule.forward), call.args)
    name = library().derive(("given", call.func, way), library().wanted[call.func],
                            lambda own: _given(own, call.func, rule))
    current().stmts.append(Call(call.targets, name, (*call.args, *made), call.loc, needed=False))


def _given(own: str, name: str, rule: Rule) -> Func:
    assert rule.forward is not None
    func, forward = library().callee(name), library().callee(rule.forward)
    names = Names(used_names(func))
    made = tuple(Var(names.fresh(r.name if isinstance(r, Var) else "t"), r.type) for r in forward.results)
    return Func(own, (*func.params, *made), Block((), made[:len(func.results)]), rule=replace(rule, forward=None))


# --- the derivative ----------------------------------------------------------------------------------------------


def given_jvp(call: Call, tangents: Sequence[Value | None]) -> list[Value | None]:
    """Emit the tangents of the targets; `tangents` of the arguments, None for zero."""
    rule = _rule(call)
    outgoing: list[Value | None] = [None] * len(call.targets)
    if any(tangents[k] is not None for k in rule.wrt):
        moving = [_or_zero(tangents[k], call.args[k]) for k in rule.wrt]
        pushed = iter(inline(library().callee(push_of(call.func)), (*_residuals(call), *moving)))
        outgoing = [next(pushed) if t.type.is_inexact else None for t in call.targets]
    return [a if b is None else b if a is None else a + b
            for a, b in zip(outgoing, _by_code(call, rule, tangents), strict=True)]


def _by_code(call: Call, rule: Rule, tangents: Sequence[Value | None]) -> list[Value | None]:
    """Tangents that follow from what the function read of the code around it."""
    params = _params(call)
    wrt = tuple(tangents[k] is not None and k not in rule.wrt for k in range(params))
    if rule.code is None or not any(wrt):
        return [None] * len(call.targets)
    from .jvp import jvp
    code = rule.code
    name = library().derive(("jvp in place", code, wrt), f"{code}_jvp",
                            lambda own: jvp(library().callee(code), wrt, name=own, is_whole=False))
    given = [t for t, moves in zip(tangents, wrt, strict=False) if moves and t is not None]
    made = inline(library().callee(name), (*call.args[:params], *given))
    found = iter(made[len(call.targets):])
    return [next(found) if t.type.is_inexact else None for t in call.targets]


def given_vjp(call: Call, args: Sequence[Value], cts: Sequence[Value], wanted: Sequence[bool]) -> list[Value | None]:
    """Emit the cotangents of the arguments that are wanted.

    args: as they are read now; cts: of the real or complex targets.
    """
    rule = _rule(call)
    bars: list[Value | None] = [None] * len(args)
    if any(wanted[k] for k in rule.wrt):
        residuals = args[len(args) - _residual_count(call):]
        pulled = inline(library().callee(pull_of(call.func)), (*residuals, *cts))
        for k, bar in zip(rule.wrt, pulled, strict=True):
            bars[k] = bar if wanted[k] else None
    params = _params(call)
    wrt = tuple(wanted[k] and k not in rule.wrt for k in range(params))
    if rule.code is not None and any(wrt):
        from .vjp import vjp
        code = rule.code
        name = library().derive(("vjp in place", code, wrt), f"{code}_vjp",
                                lambda own: vjp(library().callee(code), wrt, name=own))
        made = iter(inline(library().callee(name), (*args[:params], *cts))[len(call.targets):])
        for k, is_wanted in enumerate(wrt):
            if is_wanted:
                bars[k] = next(made)
    return bars


def dependences_of(call: Call, func: Func) -> tuple[frozenset[int], ...]:
    """For each result of a func with a rule, the params that it may depend on."""
    assert func.rule is not None
    count = len(func.params) if func.rule.forward is not None else _params(call)
    known = frozenset(k for k, p in enumerate(func.params[:count]) if p.type.is_inexact and (
        k in func.rule.wrt or func.rule.code is not None))
    return tuple(known if r.type.is_inexact else frozenset() for r in func.results)


def without_given(func: Func) -> Func:
    """Calls that only carry a derivative replaced by what they give."""
    given = [s for s in all_statements(func.body) if isinstance(s, Call) and is_given(s)]
    if not given:
        return func
    replaced: dict[Var, Value] = {}
    for call in given:
        replaced.update((t, v) for t, v in zip(call.targets, given_values(call), strict=True) if t.type != I64)

    def visit(block: Block) -> Block:
        stmts: list[Stmt] = []
        for stmt in block.stmts:
            if stmt in given and isinstance(stmt, Call):
                stmts += named(stmt, given_values(stmt))
            else:
                stmts.append(with_blocks(stmt, [visit(inner) for inner in blocks(stmt)]))
        return Block(tuple(stmts), block.results)

    body = visit(func.body)
    stmts = tuple(substituted(stmt, replaced) for stmt in body.stmts)
    return replace(func, body=Block(stmts, tuple(_final(r, replaced) for r in body.results)))


def named(call: Call, values: Sequence[Value]) -> Iterator[Let]:
    """Ints keep the names that they have as targets, since sizes may be called after them."""
    for target, value in zip(call.targets, values, strict=True):
        if target.type == I64:
            yield Let((target,), ops.convert, (value,), {"dtype": "int64"}, call.loc)


def _final(value: Value, replaced: dict[Var, Value]) -> Value:
    while isinstance(value, Var) and value in replaced:
        value = replaced[value]
    return value


def given_parts(call: Call) -> tuple[Rule, tuple[Value, ...], int]:
    """The rule of a call that only carries a derivative, the residuals among its arguments, and how many of these are
    the function's own."""
    return _rule(call), _residuals(call), _params(call)


def _rule(call: Call) -> Rule:
    rule = rule_of(call.func)
    assert rule is not None and rule.forward is None
    return rule


def _residual_count(call: Call) -> int:
    rule = _rule(call)
    if rule.pull is not None:
        return len(library().callee(rule.pull).params) - sum(t.type.is_inexact for t in call.targets)
    assert rule.push is not None
    return len(library().callee(rule.push).params) - len(rule.wrt)


def _residuals(call: Call) -> tuple[Value, ...]:
    return call.args[len(call.args) - _residual_count(call):]


def _params(call: Call) -> int:
    """How many of the arguments are those of the function itself."""
    return len(call.args) - _residual_count(call) - len(call.targets)


def _or_zero(tangent: Value | None, primal: Value) -> Value:
    return const(0, primal.type) if tangent is None else tangent


# --- each mode from the other ------------------------------------------------------------------------------------


def push_of(name: str) -> str:
    """The func that pushes tangents forward, the transpose of the other where it is not given."""
    func = library().callee(name)
    rule = func.rule
    assert rule is not None
    if rule.push is not None:
        return rule.push
    assert rule.pull is not None
    late = sum(r.type.is_inexact for r in func.results)
    return _transpose(rule.pull, late, f"the reverse rule of `{library().wanted[name]}`", "cotangent", "forward mode")


def pull_of(name: str) -> str:
    """The func that pulls cotangents back, likewise."""
    rule = library().callee(name).rule
    assert rule is not None
    if rule.pull is not None:
        return rule.pull
    assert rule.push is not None
    return _transpose(rule.push, len(rule.wrt), f"the forward rule of `{library().wanted[name]}`", "tangents",
                      "reverse mode")


def _transpose(name: str, late: int, what: str, of: str, mode: str) -> str:
    def make(own: str) -> Func:
        from .vjp import vjp
        func = library().callee(name)
        known = len(func.params) - late
        made = vjp(func, [False] * known + [True] * late, name=own)
        bars = _simple(map_results(made, made.results[len(func.results):]))
        linear = _simple(replace(bars, body=_without_checks_on(bars.body, set(func.params[known:]))))
        if not reads(linear.body).isdisjoint(func.params[known:]):
            raise RuleError(f"{what} is not linear in its {of}, so the {mode} does not follow from it", code="E410",
                            kind=ValueError,
                            help="give the function the other rule, too (defvjp and defjvp)")
        cts = made.params[len(func.params):]
        return replace(linear, params=(*func.params[:known], *cts))

    return library().derive(("transpose", name), f"{library().wanted[name]}_transpose", make)


def _without_checks_on(block: Block, of: set[Var], chosen: bool = False) -> Block:
    """The block without checks that hang on these variables, to which what follows from them is added.  chosen: they
    decide whether the block is run."""
    stmts: list[Stmt] = []
    for stmt in block.stmts:
        match stmt:
            case Let() | Call():
                if not of.isdisjoint(stmt.args):
                    of.update(stmt.targets)
                    stmt = replace(stmt, needed=False) if isinstance(stmt, Call) else stmt
            case Check():
                if chosen or not of.isdisjoint(operands(stmt)):
                    continue
            case If():
                inner = [_without_checks_on(b, of, chosen or stmt.pred in of) for b in blocks(stmt)]
                of.update(t for t, *results in zip(stmt.targets, stmt.then.results, stmt.orelse.results, strict=True)
                          if stmt.pred in of or not of.isdisjoint(results))
                stmt = with_blocks(stmt, inner)
            case For() | While():
                stmt = _loop_without_checks_on(stmt, of, chosen)
            case _:
                assert_never(stmt)
        stmts.append(stmt)
    return Block(tuple(stmts), block.results)


def _loop_without_checks_on(stmt: For | While, of: set[Var], chosen: bool) -> Stmt:
    bounds = operands(stmt)[:3] if isinstance(stmt, For) else stmt.cond.results
    while True:
        before = len(of)
        of.update(c for c, *sources in zip(stmt.carries, stmt.inits, stmt.body.results, strict=True)
                  if not of.isdisjoint(sources))
        if chosen or not of.isdisjoint(bounds):
            of.update(stmt.carries)
            chosen = True
        inner = [_without_checks_on(b, of, chosen) for b in blocks(stmt)]
        if len(of) == before:
            break
    of.update(t for t, c in zip(stmt.targets, stmt.carries, strict=True) if c in of)
    return with_blocks(stmt, inner)


def _simple(func: Func) -> Func:
    while True:
        simpler = drop_dead_code(share_common(simplify(func)))
        if simpler is func:
            return func
        func = simpler


def parted(func: Func, late: Sequence[bool], count: int) -> tuple[Func, Func]:
    """A rule for the forward mode, params -> `count` results and their tangents, as forward and push; `late` tells
    which params are tangents."""
    func = _simple(func)
    try:
        halves = split(func, late, count)
        return halves.first, halves.second
    except ValueError:                      # one loop makes values and tangents
        pass
    zeros = [const(0, p.type) if is_late else p for p, is_late in zip(func.params, late, strict=True)]
    with building(Names(used_names(func))) as b:
        at_rest = inline(func, zeros)[:count]
    whole = Func(func.name, func.params, Block((*b.stmts, *func.body.stmts), (*at_rest, *func.results[count:])))
    halves = split(_simple(whole), late, count)
    return halves.first, halves.second


