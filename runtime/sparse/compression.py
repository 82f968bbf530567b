"""Colours for a pattern, and where each entry is read in the products with them.

Columns of one colour have no row in common, so one tangent that moves all of them tells each of their entries.  Where
some rows are long, they are told by cotangents instead (and the other way round), as few in all as the lengths allow:
a Jacobian with a diagonal and one full row takes one tangent and one cotangent.  A Hessian is symmetric, and takes
products with the colours of a star colouring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .colouring import Ints, apart_in_rows, read_places, run, stars
from .pattern import Pattern

COTANGENT = 2           # what a cotangent costs, in tangents, about
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
DEAR = 3e8              # about how many steps a colouring may take, before one is guessed that has a colour for each


@dataclass(frozen=True, eq=False)
class Compression:
    """column_colours: of each column, -1 for none; `tangents` of them.  row_colours, `cotangents`: likewise.

    Entry e is read at [colours[e], places[e]] of the results (by_tangent[e]) or of the arguments' cotangents.
    """

    pattern: Pattern
    column_colours: Ints
    tangents: int
    row_colours: Ints
    cotangents: int
    by_tangent: Flags
    colours: Ints
    places: Ints


def compress_jacobian(pattern: Pattern, *, columns_alone: bool = False) -> Compression:
    """Colours for columns, for rows, or for both.  columns_alone: no cotangents."""
    columns = pattern.shape[1]
    row_of = pattern.rows()
    long_rows, cost = _set_apart(np.diff(pattern.indptr), COTANGENT, 1)
    long_columns, other_cost = _set_apart(np.bincount(pattern.indices, minlength=columns), 1, COTANGENT)
    if columns_alone:
        by_tangent = np.ones(pattern.count, bool)
    elif cost <= other_cost:
        by_tangent = ~long_rows[row_of]
    else:
        by_tangent = long_columns[pattern.indices]
    column_colours = _colours(pattern.only(by_tangent))
    row_colours = _colours(pattern.only(~by_tangent).transposed())
    tangents, cotangents = (int(c.max(initial=-1)) + 1 for c in (column_colours, row_colours))
    return Compression(pattern, column_colours, tangents, row_colours, cotangents, by_tangent,
                       np.where(by_tangent, column_colours[pattern.indices], row_colours[row_of]),
                       np.where(by_tangent, row_of, pattern.indices))


def _set_apart(lengths: Ints, each: int, rest: int) -> tuple[Flags, int]:
    """Which lines to tell each by a product of its own, so that these, each at a price, and the products for the rest,
    at least as many as the longest of them has entries, cost the least; and what that is."""
    order = np.argsort(-lengths, kind="stable")
    costs = each * np.arange(len(lengths) + 1) + rest * np.append(lengths[order], 0)
    count = int(np.argmin(costs))
    apart = np.zeros(len(lengths), bool)
    apart[order[:count]] = True
    return apart, int(costs[count])


def _colours(pattern: Pattern) -> Ints:
    """Colours of columns; -1 for empty ones."""
    columns = pattern.shape[1]
    pointers, rows = pattern.by_columns()
    filled = np.diff(pointers) > 0
    lengths = np.diff(pattern.indptr)
    if not pattern.count:
        return np.full(columns, -1)
    least, steps = int(lengths.max()), float(np.sum(lengths.astype(float) ** 2))
    if steps > DEAR:
        return np.where(filled, np.cumsum(filled) - 1, -1)
    found = run(apart_in_rows, pattern.count, pattern.indptr, pattern.indices, pointers, rows, np.arange(columns))
    if int(found[filled].max()) + 1 > least:                              # another order may do with fewer
        order = np.argsort(-np.diff(pointers), kind="stable")
        other = run(apart_in_rows, pattern.count, pattern.indptr, pattern.indices, pointers, rows, order)
        found = min(found, other, key=lambda c: int(c[filled].max()))
    return np.where(filled, found, -1)


def compress_hessian(pattern: Pattern) -> Compression:
    """Colours for a symmetric pattern."""
    size = pattern.shape[0]
    degrees = np.diff(pattern.indptr)
    mean = pattern.count / max(size, 1)
    alone = (degrees > max(64.0, 16.0 * mean)).astype(np.int64)
    is_even = degrees.max(initial=0) <= degrees.min(initial=0) + 2        # as of a band, where they go in order
    order = np.arange(size) if is_even else np.argsort(-degrees, kind="stable")
    colours = run(stars, pattern.count, pattern.indptr, pattern.indices, alone, order)
    if not pattern.count:
        colours = np.full(size, -1)
    which, rows = run(read_places, pattern.count, pattern.indptr, pattern.indices, colours)
    return Compression(pattern, colours, int(colours.max(initial=-1)) + 1, np.full(size, -1), 0,
                       np.ones(pattern.count, bool), which, rows)
