"""Greedy colourings, after Gebremedhin, Manne, Pothen, "What Color Is Your Jacobian?", SIAM Review 47 (2005).

Each is a loop over a pattern in CSR, which gradsmith compiles where the pattern is large (`run`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
SMALL = 2000            # patterns of at most as many entries are looked at by Python itself


@functools.cache
def _compiled(function: Callable[..., Any]) -> Any:
    from ..transforms import jit
    return jit(function)


def run(function: Callable[..., Any], entries: int, *args: Any) -> Any:
    """`function(*args)`, compiled where there are many entries."""
    return (function if entries <= SMALL else _compiled(function))(*args)


def apart_in_rows(indptr: Ints, indices: Ints, column_ptr: Ints, rows: Ints, order: Ints) -> Ints:
    """Colours of columns, the least possible one after the other in this order, so that no row has two entries of one
    colour (partial distance-2 colouring).

    indptr, indices: the rows in CSR; column_ptr, rows: the same pattern by columns.
    """
    count = len(column_ptr) - 1
    colours = np.full(count, -1)
    taken = np.full(count, -1)                # for each colour, the last column that may not have it
    for column in order:
        for at in range(column_ptr[column], column_ptr[column + 1]):
            row = rows[at]
            for near in range(indptr[row], indptr[row + 1]):
                colour = colours[indices[near]]
                if colour >= 0:
                    taken[colour] = column
        colour = 0
        while taken[colour] == column:
            colour += 1
        colours[column] = colour
    return colours


def stars(indptr: Ints, indices: Ints, alone: Ints, order: Ints) -> Ints:
    """Colours of the vertices of a symmetric pattern (with its diagonal or not): neighbours differ, and no path over
    four vertices has two colours (star colouring, their algorithm 4.1).

    Vertices that are `alone` (1, else 0) get colours that no other has, the last ones; they keep no others apart.
    """
    count = len(indptr) - 1
    colours = np.full(count, -1)
    taken = np.full(count + 1, -1)
    most = 0
    for v in order:
        if alone[v] == 1:
            continue
        for at in range(indptr[v], indptr[v + 1]):
            w = indices[at]
            if w == v or alone[w] == 1:
                continue
            if colours[w] >= 0:
                taken[colours[w]] = v
            for near in range(indptr[w], indptr[w + 1]):
                x = indices[near]
                if x in (w, v) or alone[x] == 1 or colours[x] < 0 or taken[colours[x]] == v:
                    continue
                if colours[w] < 0:
                    taken[colours[x]] = v
                    continue
                for end in range(indptr[x], indptr[x + 1]):
                    y = indices[end]
                    if y != w and y != x and alone[y] == 0 and colours[y] == colours[w]:
                        taken[colours[x]] = v
                        break
        colour = 0
        while taken[colour] == v:
            colour += 1
        colours[v] = colour
        most = max(most, colour + 1)
    for v in range(count):
        if alone[v] == 1:
            colours[v] = most
            most += 1
    return colours


def read_places(indptr: Ints, indices: Ints, colours: Ints) -> tuple[Ints, Ints]:
    """For each entry (i, j) of a symmetric pattern with a star colouring, the colour and the row in which it stands
    alone among the products with the colours: (colour of j, i), or (colour of i, j)."""
    count = len(indptr) - 1
    which = np.empty(len(indices), np.int64)
    rows = np.empty(len(indices), np.int64)
    times = np.zeros(count + 1, np.int64)           # how many neighbours of i have each colour
    for i in range(count):
        for at in range(indptr[i], indptr[i + 1]):
            times[colours[indices[at]]] = 0
        for at in range(indptr[i], indptr[i + 1]):
            times[colours[indices[at]]] += 1
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            if times[colours[j]] == 1:
                which[at] = colours[j]
                rows[at] = i
            else:
                which[at] = colours[i]
                rows[at] = j
    return which, rows


def split_entries(indptr: Ints, blocks: Ints, found: Ints, bits: int, count: int) -> tuple[Ints, Ints]:
    """A finer pattern of `count` entries: entry e of the coarse one has the parts of its block that are set in
    `found[e]`; a block has `bits` of them."""
    pointers = np.zeros(len(indptr), np.int64)
    parts = np.empty(count, np.int64)
    done = 0
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            value = found[at]
            part = 0
            while value != 0:
                while value & 255 == 0:
                    value = value >> 8 & (1 << 56) - 1              # shifts of negative numbers repeat their sign
                    part += 8
                if value & 1 == 1:
                    parts[done] = blocks[at] * bits + part
                    done += 1
                value = value >> 1 & (1 << 63) - 1
                part += 1
        pointers[row + 1] = done
    return pointers, parts
