"""Loops of which the reverse mode keeps only some states: parts of the iterations, run again from the state before.

    before                                        after
    x = for i in 0 .. n carry (v = x0)            parts = ceil(n / k)
        checkpoint:                               x = for s in 0 .. parts carry (v = x0):
      yield f(v)                                    v_2 = for i in s * k .. min(s * k + k, n) carry (v_1 = v) segment:
                                                      yield f(v_1)
                                                    yield v_2

The reverse mode saves the states between segments and, of one segment at a time, what each iteration needs
(`residuals`).  With states of c bytes and p bytes for each iteration that is c n / k + p k, least for
k = sqrt(c n / p), where it is 2 sqrt(c n p).  Where more may be kept, segments are shorter.

Source: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, section 12.2 (multistage schedules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import ops
from ..ir.build import Names, building, check, const, current, int_const, size_value
from ..ir.dims import product
from ..ir.ints import Ints
from ..ir.nodes import Block, Const, For, Func, Value, Var
from ..ir.types import F64, I64
from ..ir.walk import all_statements, blocks, used_names, with_blocks
from .forward_sweep import trip_count
from .overlap import Places
from .residuals import Residuals
from .written_first import Box, borders, without

SHARE = 0.96875       # of the memory that may be kept, used for segments that are shorter than they would have to be


@dataclass(frozen=True)
class Needs:
    """Bytes, as dimensions: of the state between segments, and of what is saved of an iteration in one."""

    state: Any
    iteration: Any


def measured(func: Func, residuals: Residuals, places: Places) -> list[Needs]:
    """What each segment of the func needs, in the order of the program; sizes that change are left out."""
    return [Needs(_saved(outer, residuals, places, but=stmt), _saved(stmt, residuals, places))
            for outer in all_statements(func.body) if isinstance(outer, For)
            for stmt in outer.body.stmts if isinstance(stmt, For) and stmt.segment]


def _saved(loop: For, residuals: Residuals, places: Places, but: For | None = None) -> Any:
    """What is saved of one iteration of the loop; not for each iteration of other loops that run again.  but: an inner
    loop that is left out."""
    total: Any = 0
    for scope, found in residuals.saved.items():
        loops = scope.loops()
        if loop not in loops or but in loops:
            continue
        trips = [places.most_trips(inner) for inner in loops[loops.index(loop) + 1:]]
        for var in found:
            sizes = [places.most(dim, loops) for dim in var.type.shape]
            if residuals.own.get(var, loop) is loop and None not in (*trips, *sizes):
                total = total + product(sizes) * product(trips) * np.dtype(var.type.dtype).itemsize
    return total


def in_segments(func: Func, needs: Mapping[tuple[Var, ...], Needs]) -> Func:
    """The func with loops in segments.  needs: of which, by their targets."""
    ints = Ints(func.body)

    def visit(block: Block) -> Block:
        with building() as b:
            for stmt in block.stmts:
                inner = blocks(stmt)
                changed = with_blocks(stmt, [visit(block) for block in inner]) if inner else stmt
                if isinstance(stmt, For) and stmt.targets in needs and isinstance(changed, For):
                    _emit(changed, needs[stmt.targets], borders(stmt, ints))
                else:
                    b.stmts.append(changed)
        return Block(tuple(b.stmts), block.results)

    with building(Names(used_names(func))):
        return replace(func, body=visit(func.body))


def _emit(loop: For, needs: Needs, borders: Mapping[int, Box]) -> None:
    """borders: of the carries that a trip writes to first, what it writes over."""
    outer = current()
    trips = trip_count(loop.lo, loop.hi, loop.step)
    length = ops.minimum(_length(loop, trips, needs), ops.maximum(trips, int_const(1)))
    parts = ops.floor_divide(trips + length - 1, length)
    part = outer.var(I64, "part")
    carries, ends = (tuple(outer.var(c.type, c.name) for c in loop.carries) for _ in range(2))
    with building() as b:
        begin = loop.lo + part * length * loop.step
        end = begin + length * loop.step
        nearer = ops.maximum if isinstance(loop.step, Const) and loop.step.value < 0 else ops.minimum
        stop = nearer(end, loop.hi)
        inits = tuple(without(carry, borders[k]) if k in borders else carry for k, carry in enumerate(carries))
        b.stmts.append(replace(loop, targets=ends, lo=begin, hi=stop, inits=inits, checkpoint=None, segment=True))
    outer.stmts.append(For(loop.targets, part, int_const(0), parts, int_const(1), carries, loop.inits,
                           Block(tuple(b.stmts), ends), False, loop.loc))


def _shorter(least: Value, needed: Value, state: Value, memory: Value) -> Value:
    """The shortest segments for which the memory does: what is saved of one is in faster memory then, and an iteration
    is run again once in any case.  They are not so short that saving states takes longer than saving iterations.

    least: the length that needs least memory; in units of what is saved of an iteration, needed: least**2, state: the
    size of one, memory: what there is.  A length k needs needed / k + k.
    """
    spare = memory * memory - const(4.0, F64) * needed
    shortest = (memory - ops.sqrt(ops.maximum(spare, const(0.0, F64)))) / const(2.0, F64)
    return ops.select(spare > const(0.0, F64), ops.minimum(ops.maximum(shortest, state), least), least)  # type: ignore


def _length(loop: For, trips: Value, needs: Needs) -> Value:
    """The iterations of a segment, at least 1."""
    wish = loop.checkpoint
    assert wish is not None
    if wish.every is not None:
        return int_const(wish.every)
    c, p = size_value(needs.state), size_value(needs.iteration)
    if isinstance(needs.iteration, int) and needs.iteration == 0:       # one segment: there is nothing to save in it
        length = ops.maximum(trips, int_const(1))
    else:
        state, each = (ops.maximum(ops.convert(bytes, dtype="float64"), const(1.0, F64)) for bytes in (c, p))
        needed = ops.convert(trips, dtype="float64") * (state / each)
        best = ops.sqrt(needed)
        if wish.memory is not None:
            best = _shorter(best, needed, state / each, const(wish.memory * SHARE, F64) / each)
        length = ops.maximum(ops.convert(ops.ceil(best), dtype="int64"), int_const(1))
    if wish.memory is not None:
        kept = ops.floor_divide(trips + length - 1, length) * c + ops.minimum(length, trips) * p
        check(kept <= wish.memory, "MemoryError", f"checkpoint: the loop needs more than {wish.memory} bytes, even "
              "with its state kept at the best distance")
    return length
