"""Parting a func in two: what can be computed from some params, and what must wait for the others.

    before                              after
    func f_vjp(x, ct):                  func first(x):          func second(t, ct):
      y = sin(x)                          y = sin(x)              d_x = multiply(ct, t)
      t = cos(x)                          t = cos(x)              return d_x
      d_x = multiply(ct, t)               return y, t
      return y, d_x

`vjp` (pullback later), `linearize` (tangent later) are this on the outputs of the vjp and jvp transforms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.dims import symbols_of
from ..ir.nodes import Block, Func, Let, Stmt, Var
from ..ir.walk import all_statements, blocks, operands, reads, sizes_used
from ..ops.base import Lowering


@dataclass(frozen=True)
class Split:
    """first: the known params -> the first `kept` results, then residuals.  second: residuals, late params -> rest.

    `first` has all known params; `second` has params (residuals..., late...)."""

    first: Func
    second: Func
    residuals: tuple[Var, ...]


def split(func: Func, late: Sequence[bool], kept: int) -> Split:
    """Part `func` so that params in `late` are given to the second func only.

    The first `kept` results must not depend on late params.
    """
    waiting: set[Var] = {p for p, is_late in zip(func.params, late, strict=True) if is_late}
    first: list[Stmt] = []
    second: list[Stmt] = []
    for stmt in func.body.stmts:
        read = set(operands(stmt)).union(*(reads(b) for b in blocks(stmt)))
        if waiting.isdisjoint(read):
            first.append(stmt)
        else:
            second.append(stmt)
            waiting.update(stmt.targets)
    early, rest = func.results[:kept], func.results[kept:]
    if any(isinstance(r, Var) and r in waiting for r in early):
        raise ValueError("a result that is wanted first depends on a late param")
    second_block = Block(tuple(second), rest)
    needed = reads(second_block)
    inside = {t for s in second for t in s.targets}
    known_params = tuple(p for p, is_late in zip(func.params, late, strict=True) if not is_late)
    late_params = tuple(p for p, is_late in zip(func.params, late, strict=True) if is_late)
    made = [t for s in first for t in s.targets]
    residuals = [v for v in (*known_params, *made) if v in needed and v not in inside]
    kept_values, again = _sources(residuals, first)
    residuals = [v for v in (*known_params, *made) if v in kept_values]
    second = [*again, *second]
    second_block = Block(tuple(second), rest)
    _add_size_carriers(residuals, late_params, second_block, known_params, made)
    return Split(Func(f"{func.name}_first", known_params, Block(tuple(first), (*early, *residuals))),
                 Func(f"{func.name}_second", (*residuals, *late_params), second_block), tuple(residuals))


def _sources(residuals: Sequence[Var], first: Sequence[Stmt]) -> tuple[set[Var], list[Stmt]]:
    """What to keep in place of broadcasts and other rearrangements of smaller arrays, and the statements that make
    those again."""
    makers = {t: (number, s) for number, s in enumerate(first) for t in s.targets}
    kept: set[Var] = set()
    again: dict[int, Stmt] = {}
    pending = list(residuals)
    while pending:
        value = pending.pop()
        number, maker = makers.get(value, (-1, None))
        if maker is not None and _only_rearranges(maker):
            again[number] = maker
            pending += [a for a in operands(maker) if isinstance(a, Var)]
        else:
            kept.add(value)
    return kept, [again[number] for number in sorted(again)]


def _only_rearranges(stmt: Stmt) -> bool:
    """Whether the statement spreads or reorders one array that is no larger than its result."""
    if not isinstance(stmt, Let) or not stmt.op.is_pure or stmt.op.lowering is not Lowering.REINDEX:
        return False
    arrays = [a for a in stmt.args if isinstance(a, Var)]
    if len(arrays) != 1 or len(stmt.targets) != 1:
        return False
    own = Counter(d for d in arrays[0].type.shape if d != 1)
    return own <= Counter(stmt.target.type.shape)          # the array's axes are among the result's


def _add_size_carriers(residuals: list[Var], late: Sequence[Var], second: Block,
                       params: Sequence[Var], made: Sequence[Var]) -> None:
    """The second func must be able to bind every size that it names: keep a value that carries it."""
    used = {size for result in second.results for d in result.type.shape for size in symbols_of(d)}
    for stmt in all_statements(second):
        used |= sizes_used(stmt)
    bound = {str(d) for v in (*residuals, *late) for d in v.type.shape} | {
        v.name for v in residuals if not v.type.shape} | {t.name for s in all_statements(second)
                                                          if isinstance(s, Let) for t in s.targets}
    for size in sorted(used):
        if size in bound:
            continue
        for value in (*params, *made):
            if value.name == size or size in {str(d) for d in value.type.shape}:
                residuals.append(value)
                bound |= {str(d) for d in value.type.shape} | {value.name}
                break
