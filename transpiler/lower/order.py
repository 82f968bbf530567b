"""Writes after reads: an array is written to in place only if nobody reads what it was before.

    before                                      after
    b = store(a, 0.0) {index=1:n}               d = add_at(c, load(a, 1:n), 0:n - 1)
    d = add_at(c, load(a, 1:n), 0:n - 1)        b = store(a, 0.0) {index=1:n}

A write to part of an array is put off until behind the last statement that reads the array as it was, if nothing
before that reads what the write gives.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.nodes import Var
from .tree import Alloc, Item, Whole, leaves, read_by

Group = list[Item]


def write_late(groups: Sequence[Group]) -> list[Group]:
    """The items of statements, in an order that copies fewer arrays."""
    result = list(groups)
    for k in range(len(result) - 1, -1, -1):
        written = _written(result[k])
        if written is not None and (to := _behind(result, k, *written)) > k:
            result.insert(to, result.pop(k))
    return result


def _written(group: Group) -> tuple[Var, Var] | None:
    """The array that the group writes a part of, and what it is afterwards."""
    for item in group:
        if isinstance(item, Alloc) and isinstance(item.base, Var) and item.target is not None:
            return item.base, item.target
    return None


def _behind(groups: Sequence[Group], k: int, old: Var, new: Var) -> int:
    """The place of the last reader of `old` behind group k that group k may follow; k without one."""
    last = k
    for at in range(k + 1, len(groups)):
        read = set[Var]().union(*map(read_by, groups[at]))
        if new in read or any(isinstance(leaf, Whole) and leaf.is_barrier for i in groups[at] for leaf in leaves(i)):
            break
        if old in read:
            last = at
    return last
