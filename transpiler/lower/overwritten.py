"""Parts of arrays that are read after they were written over get arrays of their own.

    row = load(d, j, 1:)                      for k: row[k] = d[j, 1 + k]
    d_1 = store(d, 0.0, j, 1:)                for k: d[j, 1 + k] = 0.0
    d_2 = add_at(d_1, row * p, j + 1, 1:)     for k: d[j + 1, 1 + k] += row[k] * p[k]

Read where they are used, the whole of `d` would have to be copied.  The same goes for what is stored over elements from
which others of it are computed: `a[j, 1:] = a[j, :-1] + 1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..ir.dependence import Access, axis_items, may_meet, place_of
from ..ir.index import At
from ..ir.ints import Ints
from ..ir.nodes import Let, Var
from ..ir.walk import same_value
from ..ops.base import Lowering


def keep_overwritten(lets: list[Let], virtual: dict[Var, Let], users: Mapping[Var, set[Let]],
                     behind: Mapping[Var, frozenset[Var]], ints: Ints) -> None:
    """Take out of `virtual` parts that are written over before they are used, and values of stores that read elements
    which these write over.  users: statements with memory of their own for which a virtual value is computed; behind:
    for each value, those that it depends on."""
    for write in lets:
        if write.op.access not in ("store", "add_at") or not _is_part(write):
            continue
        for load in _parts_of(write.args[0], virtual):
            if load.targets[0] in virtual and _meet(write, load, ints) and any(
                    write.targets[0] in behind[user.targets[0]] for user in users[load.targets[0]]):
                del virtual[load.target]
        value = write.args[1]
        if isinstance(value, Var) and value in virtual and any(
                _meet(write, load, ints) and (moved or not _is_same(write, load))
                for load, moved in _loads(value, virtual) if load.args[0] is write.args[0]):
            del virtual[value]


def _is_part(let: Let) -> bool:
    """Whether the index picks a place along some axis: the part is of less elements than the array."""
    return any(isinstance(item, At) for item, _ in axis_items(let))


def _parts_of(array: Any, virtual: Mapping[Var, Let]) -> list[Let]:
    return [let for let in virtual.values() if let.op.access == "load" and let.args[0] is array and _is_part(let)]


def _loads(value: Var, virtual: Mapping[Var, Let]) -> Iterator[tuple[Let, bool]]:
    """Parts of arrays that a virtual value is computed from, and whether their elements are rearranged on the way."""
    pending = [(value, False)]
    done = set()
    while pending:
        now = pending.pop()
        let = virtual.get(now[0])
        if let is None or now in done:
            continue
        done.add(now)
        if let.op.access == "load":
            yield let, now[1]
        else:
            moved = now[1] or let.op.lowering is Lowering.REINDEX
            pending += [(arg, moved) for arg in let.args if isinstance(arg, Var)]


def _meet(write: Let, load: Let, ints: Ints) -> bool:
    one, other = Access(place_of(write, ints)), Access(place_of(load, ints))
    return may_meet(one, other, (), ints, lambda name: False)


def _is_same(write: Let, load: Let) -> bool:
    return write.params["index"] == load.params["index"] and len(write.args) == len(load.args) + 1 and all(
        map(same_value, write.args[2:], load.args[1:]))
