"""Merging loops: which paths share which loops, and which arrays shrink because of it.

A new loop joins an earlier one of the same size when both read an array in common or the new one reads what the
old one makes, everything that it reads from it is read at the very place where the loops stand, and nothing between
them is read by the new one.  Children are then placed in the same way, so row-wise chains such as softmax share
the loop over rows.

An array that is made and read at one place of a loop (not a result, not read whole) needs no axis for that loop; one
without any axis left is a scalar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from ..ir.nodes import Let, Value, Var
from ..ir.types import I64
from .tree import Alloc, Finish, Init, Item, Leaf, Loop, Scalar, Step, Store, Whole, leaves, made_by, read_by, sizes_of


@dataclass
class Schedule:
    """items: the merged tree, allocations before the outermost loop that needs them.  kept_axes: for arrays that
    shrink, the axes that stay.  same: merged loop variables, each to the one that stands for it."""

    items: list[Item] = field(default_factory=list)
    kept_axes: dict[Var, tuple[int, ...]] = field(default_factory=dict)
    same: dict[Var, Var] = field(default_factory=dict)

    def resolve(self, value: Value) -> Value:
        while isinstance(value, Var) and value in self.same:
            value = self.same[value]
        return value


def schedule(groups: Iterable[list[Item]], whole: set[Var], private: bool = False) -> Schedule:
    """Merge the items of all statements; `whole` are arrays that must exist entire.

    private: an array that shrinks is allocated inside the loop, so that each iteration has its own, not before it.
    """
    result = Schedule()
    groups = list(groups)
    lengths = _lengths(groups)
    for group in groups:
        waiting: list[Leaf] = []
        before: set[Var] = set()           # what must be complete where the group's next item begins
        taken: set[Var] = set()            # arrays whose memory the group goes on with: whoever reads them goes before
        for item in group:
            if isinstance(item, Alloc) or (isinstance(item, Init) and item.in_array):
                waiting.append(item)
                before |= item.read()
                taken |= item.read()
                continue
            if lengths:
                before |= {lengths[name] for part in (*waiting, item) for name in sizes_of(part) if name in lengths}
            at = _place(result, result.items, item, before, taken)
            result.items[at:at] = waiting
            waiting, before = [], made_by(item)
    _shrink(result, whole, private)
    return result


def _lengths(groups: Iterable[list[Item]]) -> dict[str, Var]:
    """Whole numbers that are computed here, by their names, as which they may be lengths of loops and arrays."""
    return {v.name: v for group in groups for item in group for v in made_by(item) if v.type == I64}


def _place(plan: Schedule, items: list[Item], new: Item, before: Set[Var], taken: Set[Var]) -> int:
    """Merge `new` into an earlier loop or append it; return the position of the item that it became part of.

    It stays behind everything that makes one of `before`: arrays that its own start from, or goes on writing; and
    behind everything that reads one of `taken`.
    """
    if isinstance(new, Init):
        items.insert(0, new)
        return 0
    if isinstance(new, Scalar) or _is_size(new):      # early: a loop that reads it can then join one before it
        at = len(items)
        sizes = sizes_of(new)
        while at and not _is_barrier(items[at - 1]):
            made = made_by(items[at - 1])
            if not read_by(new).isdisjoint(made) or not sizes.isdisjoint(v.name for v in made):
                break
            at -= 1
        items.insert(at, new)
        return at
    if isinstance(new, Loop):
        needs = read_by(new)
        for at in range(len(items) - 1, -1, -1):
            old = items[at]
            made = made_by(old)
            reads_taken = not taken.isdisjoint(read_by(old))
            if isinstance(old, Loop) and before.isdisjoint(made) and not reads_taken and _can_merge(
                    plan, old, new, needs):
                plan.same[new.index] = old.index
                for child in new.children:
                    _place(plan, old.children, child, before, taken)
                return at
            if not (needs | before).isdisjoint(made) or reads_taken or _is_barrier(old):
                break
    items.append(new)
    return len(items) - 1


def _is_barrier(item: Item) -> bool:
    return isinstance(item, Whole) and item.is_barrier


def _is_size(item: Item) -> bool:
    """A statement without operands, such as a size."""
    return isinstance(item, Whole) and isinstance(item.stmt, Let) and not item.stmt.args and item.stmt.op.is_shareable


def _can_merge(plan: Schedule, old: Loop, new: Loop, needs: set[Var]) -> bool:
    if old.size != new.size:
        return False
    made = made_by(old)
    handed = needs & made
    if not handed:      # rows side by side may share more later; a lone loop gains only from what both read
        return (_is_outer(old) and _is_outer(new)) or any(v.type.shape for v in needs & read_by(old))
    places = _places(old)
    for leaf in leaves(new):
        reads = {id(load): load for load in (leaf.code.loads if leaf.code else ())}.values()
        for array in leaf.read() & handed:
            loads = [load for load in reads if load.args[0] is array]
            place = places.get(array)
            if place is None or not loads or isinstance(leaf, (Whole, Alloc)):
                return False
            axes = [a for a, p in enumerate(place) if plan.resolve(p) is plan.resolve(old.index)]
            if len(axes) != 1 or any(plan.resolve(load.args[1 + axes[0]]) is not new.index for load in loads):
                return False
    return True


def _is_outer(loop: Loop) -> bool:
    return any(isinstance(child, Loop) for child in loop.children)


def _places(loop: Loop) -> dict[Var, tuple[Value, ...] | None]:
    """Where each array made in the loop is written, None where not at one place of the loops."""
    found: dict[Var, tuple[Value, ...] | None] = {}
    for leaf in leaves(loop):
        if isinstance(leaf, Store):
            found[leaf.target] = leaf.place() if leaf.pointwise else None  # type: ignore[index]
        elif isinstance(leaf, Finish) and leaf.kept:
            found[leaf.target] = leaf.place()  # type: ignore[index]
        elif isinstance(leaf, Step) and leaf.kept is not None:
            found[leaf.target] = None  # type: ignore[index]
    return found


def _shrink(plan: Schedule, whole: set[Var], private: bool) -> None:
    """Fill `kept_axes`; drop the allocation of arrays that became scalars."""
    inner: dict[Var, Loop] = {}
    read = [read_by(item) for item in plan.items]
    readers = Counter(v for found in read for v in found)
    for own, item in zip(read, plan.items):
        if not isinstance(item, Loop):
            continue
        for array, place in _places(item).items():
            is_read_outside = readers[array] > (array in own)
            if place is None or array in whole or is_read_outside or not array.type.shape:
                continue
            dropped, inner[array] = _local_axes(plan, item, array, place)
            if dropped:
                plan.kept_axes[array] = tuple(a for a in range(array.type.rank) if a not in dropped)
    for item in [i for i in plan.items if isinstance(i, Alloc)]:
        axes = plan.kept_axes.get(item.target)  # type: ignore[arg-type]
        if axes is None or (axes and not private):
            continue
        plan.items.remove(item)
        if axes:
            inner[item.target].children.insert(0, item)  # type: ignore[index]


def _local_axes(plan: Schedule, loop: Loop, array: Var, place: tuple[Value, ...]) -> tuple[set[int], Loop]:
    """Axes along which the array is made and read at one place of a loop that holds all its uses; the innermost of
    those loops."""
    dropped: set[int] = set()
    innermost = loop
    while True:
        axes = [a for a, p in enumerate(place) if plan.resolve(p) is plan.resolve(loop.index)]
        loads = [load for leaf in leaves(loop) if leaf.code for load in leaf.code.loads if load.args[0] is array]
        if len(axes) != 1 or any(plan.resolve(x.args[1 + axes[0]]) is not plan.resolve(loop.index) for x in loads):
            return dropped, innermost
        dropped.add(axes[0])
        innermost = loop
        users = [c for c in loop.children if array in read_by(c) or array in made_by(c)]
        if len(users) != 1 or not isinstance(users[0], Loop):
            return dropped, innermost
        loop = users[0]
