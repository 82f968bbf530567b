"""Arrays that a loop carries only to write to them: what of them a trip may read before it is written.

    for k in 0 .. steps carry (u, v):               w = concatenate(v[0:1], empty (n - 2,), v[n-1:n])
      v_1 = for i in 1 .. n - 1 carry (x = v):      for k in 0 .. steps carry (u, w): ...
        yield store(x, f(u, i), i)
      yield v_1, u

The first trip writes over all of v but its borders, so that these are all that has to be kept of it.
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..ir import dims
from ..ir.dims import bounds, symbols_of
from ..ir.index import At, New, Span
from ..ir.ints import Ints, factor_of
from ..ir.nodes import Block, For, Let, Value, Var
from ..ir.walk import all_statements, blocks, bound_inside, operands, reads

Box = list[tuple[Any, Any]]         # the first place and how many there are, on each axis


def borders(loop: For, ints: Ints) -> dict[int, Box]:
    """Which part of the loop's carries, by their numbers, each trip writes before it reads any of the carry; its
    bounds are the same in all trips."""
    inside = {v.name for s in (loop, *all_statements(loop.body)) for v in (*s.targets, *bound_inside(s))}
    found = {}
    for k, carry in enumerate(loop.carries):
        box = _written(loop.body, carry, ints) if carry.type.shape else None
        if box is not None and not any(name in inside for pair in box for d in pair for name in symbols_of(d)) and all(
                _is_sure(size) and _is_sure(start) and _is_sure(dim - start - size)
                for (start, size), dim in zip(box, carry.type.shape)):
            found[k] = box
    return found


def _is_sure(size: Any) -> bool:
    low = bounds(size)[0]
    return low is not None and low >= 0


def _written(block: Block, array: Var, ints: Ints) -> Box | None:
    """The part of the array that the block's only statement with it writes over."""
    users = [s for s in block.stmts if array in operands(s) or any(
        array in reads(b) for b in blocks(s))]
    if len(users) != 1 or array in block.results:
        return None
    (stmt,) = users
    if isinstance(stmt, Let) and stmt.op.access == "store" and stmt.args[0] is array and array not in stmt.args[1:]:
        return _place(stmt, ints)
    if isinstance(stmt, For) and stmt.inits.count(array) == 1 and not any(array in reads(b) for b in blocks(stmt)):
        return _swept(stmt, stmt.inits.index(array), ints)
    return None


def _swept(loop: For, k: int, ints: Ints) -> Box | None:
    """The part that all trips of a loop write over, which go along one axis of it."""
    part = _written(loop.body, loop.carries[k], ints)
    made = next((s for s in loop.body.stmts if loop.body.results[k] in s.targets), None)
    if part is None or made is None or ints.dim(loop.step) != 1 or loop.carries[k] not in operands(made):
        return None
    index = loop.index.name
    box = []
    for start, size in part:
        if index in symbols_of(size):
            return None
        if index in symbols_of(start):
            if size != 1 or factor_of(start, index) != 1:
                return None
            lo = ints.dim(loop.lo)
            start, size = dims.substitute(start, {index: lo}), ints.dim(loop.hi) - lo
        box.append((start, size))
    return box


def _place(let: Let, ints: Ints) -> Box | None:
    box: Box = []
    positions = list(let.args[2:])
    for item in let.params["index"]:
        match item:
            case At():
                box.append((ints.dim(positions.pop(0)), 1))
            case Span(start=start, size=size, step=1):
                box.append((ints.dim(positions.pop(0)) if start is None else start, size))
            case Span() | New():
                return None
    return box


def without(array: Value, box: Box) -> Value:
    """Emit an array that has the elements outside of the box, and any others in it."""
    shape = array.type.shape

    def part(axis: int, before: tuple[Span, ...]) -> Value:
        """What lies in `before` on the axes before, put together along the others."""
        if axis == len(shape):
            made: Value = ops.empty(shape=tuple(span.size for span in before), dtype=array.type.dtype)
            return made
        start, size = box[axis]
        rest = tuple(Span(0, d) for d in shape[axis + 1:])
        low, high = (ops.load(array, index=(*before, span, *rest)) if span.size != 0 else None
                     for span in (Span(0, start), Span(start + size, shape[axis] - start - size)))
        pieces = [p for p in (low, part(axis + 1, (*before, Span(start, size))), high) if p is not None]
        joined: Value = ops.concatenate(*pieces, axis=axis)
        return joined

    return part(0, ())
