"""The pattern of a Jacobian from the marks of a few passes over the function.

A mark has 64 bits, and there may be many more inputs.  So the first pass only tells which of 64 blocks of consecutive
inputs each result depends on.  Blocks that no result needs both of may share bits in the next pass, which splits all of
them: what a bit means in a row follows from the blocks known to be in that row.  For a band this takes one pass for
each five halvings or so, whatever the number of inputs; where all depends on all, one for every 64 inputs, about.
(Griewank, Walther, "Evaluating Derivatives", 7.1, has the bits; Griewank, Mitev, "Detecting Jacobian sparsity patterns
by Bayesian probing", 2002, the blocks.  Nothing is left to chance here.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .colouring import Ints, apart_in_rows, run, split_entries

WORD = 64
DENSE = 1024            # of at least as many blocks, a row that has half of them is taken to have all their elements


@dataclass(frozen=True, eq=False)
class Pattern:
    """The places that may not be zero, in CSR with sorted columns."""

    indptr: Ints
    indices: Ints
    shape: tuple[int, int]

    @property
    def count(self) -> int:
        return len(self.indices)

    def equals(self, other: Pattern) -> bool:
        return (self.shape == other.shape and np.array_equal(self.indptr, other.indptr)
                and np.array_equal(self.indices, other.indices))

    def by_columns(self) -> tuple[Ints, Ints]:
        """(column pointers, rows)."""
        rows, columns = self.shape
        whole = sparse.csr_array((np.ones(self.count, np.int8), self.indices, self.indptr), shape=(rows, columns))
        found = whole.tocsc()
        return found.indptr.astype(np.int64), found.indices.astype(np.int64)

    def rows(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def transposed(self) -> Pattern:
        indptr, indices = self.by_columns()
        return Pattern(indptr, indices, self.shape[::-1])

    def symmetric(self) -> Pattern:
        """The pattern with every entry mirrored."""
        mirrored = self.transposed()
        if self.equals(mirrored):
            return self
        one, other = (sparse.csr_array((np.ones(p.count, bool), p.indices, p.indptr), shape=p.shape)
                      for p in (self, mirrored))
        return pattern_of(one + other)

    def only(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Pattern:
        """The pattern without the entries that are False in `keep`."""
        ends = np.concatenate([[0], np.cumsum(keep)])
        return Pattern(ends[self.indptr], self.indices[keep], self.shape)


def pattern_of(matrix: object) -> Pattern:
    """The pattern of what SciPy takes for a sparse matrix, or of an array."""
    found = sparse.csr_array(matrix if sparse.issparse(matrix) else np.asarray(matrix))
    found.sum_duplicates()
    return Pattern(found.indptr.astype(np.int64), found.indices.astype(np.int64), found.shape)


def detect(marks_of: Callable[[Ints], Ints], columns: int, rows: int) -> Pattern:
    """The pattern of a function that takes `columns` marks to `rows` marks."""
    indptr, blocks = np.arange(rows + 1), np.zeros(rows, np.int64)       # one block, in every row
    shift = max(columns - 1, 0).bit_length()                             # a block has 2 ** shift inputs
    if not rows or not columns:
        return Pattern(np.zeros(rows + 1, np.int64), np.zeros(0, np.int64), (rows, columns))
    inputs = np.arange(columns)
    first = True
    while first or shift > 0:
        first = False
        colours, whole = _block_colours(Pattern(indptr, blocks, (rows, (columns - 1 >> shift) + 1)))
        halvings = _halvings(int(colours.max(initial=0)) + 1, shift)
        bits = 1 << halvings
        at_once = WORD // bits                                           # colours in one pass
        rows_of = np.repeat(np.arange(rows), np.diff(indptr))
        own = colours[blocks]
        found = np.where(whole[rows_of], np.int64(-1 if bits == WORD else (1 << bits) - 1), 0)
        place = colours[inputs >> shift]
        part = inputs >> shift - halvings & bits - 1
        for turn in range(0, int(colours.max(initial=0)) + 1, at_once):
            seeds = np.left_shift(1, (place - turn) * bits + part, where=(place >= turn) & (place < turn + at_once),
                                  out=np.zeros(columns, np.int64))
            told = marks_of(seeds)
            mine = (own >= turn) & (own < turn + at_once) & ~whole[rows_of]
            bits_of = told[rows_of[mine]].view(np.uint64) >> ((own[mine] - turn) * bits).astype(np.uint64)
            found[mine] = (bits_of & np.uint64(2**bits - 1)).view(np.int64)
        shift -= halvings
        count = int(np.bitwise_count(found.view(np.uint64)).sum())
        indptr, blocks = run(split_entries, len(blocks) * bits, indptr, blocks, found, bits, count)
    pattern = Pattern(indptr, blocks, (rows, columns))
    return pattern.only(blocks < columns) if len(blocks) and blocks.max() >= columns else pattern


def _block_colours(coarse: Pattern) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Colours of blocks, by which those of one row differ; and which rows are left out, since they have so many blocks
    that all of their elements are taken."""
    blocks = coarse.shape[1]
    sizes = np.diff(coarse.indptr)
    whole = (sizes * 2 > blocks) & (blocks >= DENSE)
    if whole.any():
        coarse = coarse.only(~whole[coarse.rows()])
    if blocks == 1:
        return np.zeros(1, np.int64), whole
    pointers, rows = coarse.by_columns()
    return run(apart_in_rows, coarse.count, coarse.indptr, coarse.indices, pointers, rows, np.arange(blocks)), whole


def _halvings(colours: int, shift: int) -> int:
    """How often to halve the blocks now, so that there are the fewest passes in all."""
    def passes(halvings: int) -> int:
        return -(-colours // (WORD >> halvings)) * -(-shift // halvings)

    return min(range(min(6, shift), 0, -1), key=passes, default=0)
