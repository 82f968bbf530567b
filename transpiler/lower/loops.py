"""Lowering: from tensor statements to loops over scalars.

    before                              after
    func f(x: f64[n]):                  func f(x: f64[n]):
      e = exp(x)                          d_0 = empty() {shape=(n,)}
      d = multiply(e, x)                  d = for i in 0 .. n carry (d_1 = d_0):
      return d                              a = load(x, i)
                                            e = exp(a)
                                            v = multiply(e, a)
                                            yield store(d_1, v, i)
                                          return d

Plan (what gets an array), roots (a path of loops for each statement), order (writes after reads), schedule (merging),
nests (IR).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..ir.build import Names, building, current, located
from ..ir.ints import Ints
from ..ir.nodes import Block, For, Func, If, Let, Stmt, Value, Var, While
from ..ir.walk import Copier, used_names
from ..report import Fusion, Report
from .nests import Nests
from .order import write_late
from .plan import Plan, plan
from .roots import Roots
from .schedule import Schedule, schedule
from .tree import Alloc, Item, Loop, Whole, leaves


def lower(func: Func, *, private: bool = False, report: Report | None = None) -> Func:
    """The func in loops; params, results and meaning stay.

    private: scratch arrays of a loop are its iterations' own, so that more loops can be parallel; else they are
    allocated once, before the loop.  report: is told which statements share which loops.
    """
    reserved = [p.name for p in func.params]
    with building(Names(reserved + _sizes(func)), share=False) as b:
        copier = Copier()
        results = _lower_block(func.body, copier, Ints(func.body), private, report)
    return replace(func, body=Block(tuple(b.stmts), results))


def _sizes(func: Func) -> list[str]:
    taken = set(used_names(Func(func.name, func.params, Block((), ()))))
    return sorted(taken - {p.name for p in func.params})


def _lower_block(block: Block, copier: Copier, ints: Ints, private: bool, report: Report | None) -> tuple[Value, ...]:
    """Emit the block in loops at the current builder; return its results."""
    chosen = plan(block, ints)
    roots = Roots(chosen)
    groups = write_late([roots.items(stmt) for stmt in block.stmts])
    merged = schedule(groups, _whole(block, groups), private)
    Nests(merged, copier, partial(_lower_nested, ints=ints, private=private, report=report)).emit(merged.items)
    if report is not None:
        report.fusions.append(_fusion(block, chosen, merged, copier))
    return tuple(copier.value(r) for r in block.results)


def _whole(block: Block, groups: list[list[Item]]) -> set[Var]:
    """Arrays that must exist entire: results and what statements on whole arrays read."""
    found = {r for r in block.results if isinstance(r, Var)}
    for group in groups:
        for item in group:
            for leaf in leaves(item):
                if isinstance(leaf, (Whole, Alloc)):
                    found |= leaf.read()
    return found


def _fusion(block: Block, chosen: Plan, merged: Schedule, copier: Copier) -> Fusion:
    """What became of the block's statements on whole arrays."""
    makers = {t: s for s in block.stmts if isinstance(s, Let) for t in s.targets}
    places: dict[Let, list[tuple[Var, ...]]] = {}

    def visit(item: Item, around: tuple[Var, ...]) -> None:
        if isinstance(item, Loop):
            index = copier.values.get(merged.resolve(item.index))  # type: ignore[arg-type]
            inside = (*around, index) if isinstance(index, Var) else around
            for child in item.children:
                visit(child, inside)
            return
        if isinstance(item, (Alloc, Whole)):
            return
        own = makers.get(item.target) if item.target is not None else None
        for let in dict.fromkeys([*(item.code.virtual if item.code else ()), *([own] if own else ())]):
            found = places.setdefault(let, [])
            if around not in found:
                found.append(around)

    for item in merged.items:
        visit(item, ())
    scalars = frozenset(v for v, axes in merged.kept_axes.items() if not axes)
    return Fusion(frozenset(chosen.virtual) | scalars, {let: tuple(found) for let, found in places.items()})


def _lower_nested(stmt: Stmt, copier: Copier, ints: Ints, private: bool, report: Report | None) -> None:
    """A statement with blocks, its blocks in loops."""
    outer = current()

    def inner(block: Block) -> Block:
        with building() as b:
            results = _lower_block(block, copier, ints, private, report)
        return Block(tuple(b.stmts), results)

    with located(stmt.loc):
        match stmt:
            case If():
                pred = copier.value(stmt.pred)
                then, orelse = inner(stmt.then), inner(stmt.orelse)
                outer.stmts.append(If(copier.bind_all(stmt.targets), pred, then, orelse, stmt.loc))
            case For():
                lo, hi, step = (copier.value(v) for v in (stmt.lo, stmt.hi, stmt.step))
                inits = tuple(copier.value(v) for v in stmt.inits)
                index, carries = copier.bind(stmt.index), copier.bind_all(stmt.carries)
                body = inner(stmt.body)
                outer.stmts.append(For(copier.bind_all(stmt.targets), index, lo, hi, step, carries, inits, body,
                                       stmt.parallel, stmt.loc, stmt.checkpoint, stmt.segment))
            case While():
                inits = tuple(copier.value(v) for v in stmt.inits)
                carries = copier.bind_all(stmt.carries)
                cond, body = inner(stmt.cond), inner(stmt.body)
                outer.stmts.append(While(copier.bind_all(stmt.targets), carries, inits, cond, body, stmt.loc))
            case _:
                raise TypeError(type(stmt).__name__)

