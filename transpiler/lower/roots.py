"""From one statement of the tensor program to its own path of loops.

    d = exp(x)              (an array)        s = sum(a) {axes=(1,)}
    Alloc d                                   Alloc s
    Loop i:                                   Loop i:
      Store d[i] = exp(x[i])                    Init
                                                Loop j:
                                                  Step a[i, j]
                                                Finish s[i]

A reduction whose reduced axes come before kept ones keeps its accumulators in the result array, so that memory is
read in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.build import int_const, size_value
from ..ir.nodes import Const, Let, Stmt, Value, Var
from ..ir.types import I64
from ..ir.walk import sizes_used
from ..ops.base import Lowering, Op
from .elements import Elements
from .plan import Plan
from .tree import Alloc, Finish, Init, Item, Loop, Scalar, Step, Store, Whole


class Roots:
    """Makes the items of one statement; `elements` computes their scalar code."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sizes = {size for let in plan.virtual.values() for size in sizes_used(let)}
        self.elements = Elements(plan.virtual, self.sizes)

    def items(self, stmt: Stmt) -> list[Item]:
        """The statement's own loops and leaves, in order; none for a virtual value."""
        if not isinstance(stmt, Let):
            return [Whole(None, stmt.loc, stmt=stmt)]
        self.sizes |= sizes_used(stmt)
        self.elements.names.taken |= self.sizes
        if len(stmt.targets) == 1 and stmt.target in self.plan.virtual:
            return []
        if stmt.targets and stmt.targets[0] in self.plan.views:
            return [Whole(stmt.target, stmt.loc, stmt=stmt)]
        match stmt.op.lowering:
            case Lowering.ELEMENTWISE | Lowering.REINDEX if stmt.op.is_pure:
                return self._array(stmt) if stmt.target.type.shape else self._scalar(stmt)
            case Lowering.REDUCTION:
                return self._reduction(stmt)
            case Lowering.SCATTER:
                return self._scatter(stmt)
            case _:
                return [Whole(None, stmt.loc, stmt=stmt)]

    def _scalar(self, let: Let) -> list[Item]:
        own = Elements({**self.plan.virtual, let.target: let}, self.sizes)
        code = own.scalars(lambda: [own.element(let.target, ())], let.loc)
        return [Scalar(let.target, let.loc, code)]

    def _array(self, let: Let) -> list[Item]:
        target = let.target
        if let.op.lowering is Lowering.REINDEX:
            glued = let.op.pieces([a.type for a in let.args], **let.params)
            if glued is not None:
                return self._glued(let, *glued)
            goes = let.op.destination([a.type for a in let.args], **let.params)
            if goes is not None:
                return self._spread(let, goes)
        own = Elements({**self.plan.virtual, target: let}, self.sizes)
        index = loop_vars(target.type.rank)
        code = own.scalars(lambda: [own.element(target, index), *index], let.loc)
        return [Alloc(target, let.loc), nest(index, target.type.shape, [Store(target, let.loc, code)])]

    def _spread(self, let: Let, goes: Callable[[Sequence[Value]], list[Value]]) -> list[Item]:
        """Each element of the argument is stored where it goes."""
        (x,), target = let.args, let.target
        index = loop_vars(x.type.rank)
        code = self.elements.scalars(lambda: [self.elements.element(x, index), *goes(index)], let.loc)
        store = Store(target, let.loc, code, pointwise=False)
        return [Alloc(target, let.loc), nest(index, x.type.shape, [store])]

    def _glued(self, let: Let, fill: Any, pieces: Sequence[Any]) -> list[Item]:
        """Each piece is stored into its own region, unless it has no elements that anybody has set."""
        target = let.target
        base = None if fill is None else Const(target.type.numpy.type(fill).item(), target.type)
        items: list[Item] = [Alloc(target, let.loc, base=base)]
        for k, starts, steps, axes in pieces:
            piece = let.args[k]
            if piece in self.plan.unset:
                continue
            index = loop_vars(piece.type.rank)

            def code(piece: Value = piece, index: Any = index, starts: Any = starts, steps: Any = steps,
                     axes: Any = axes) -> list[Value]:
                place: list[Value] = [_size(s) for s in starts]
                for axis, i in zip(axes, index, strict=True):
                    step = i if steps[axis] == 1 else i * _size(steps[axis])
                    place[axis] = step if starts[axis] == 0 else place[axis] + step
                return [self.elements.element(piece, index), *place]

            store = Store(target, let.loc, self.elements.scalars(code, let.loc), pointwise=False)
            items.append(nest(index, piece.type.shape, [store]))
        return items

    def _scatter(self, let: Let) -> list[Item]:
        target, types = let.target, [a.type for a in let.args]
        space = let.op.space(types, **let.params)
        index = loop_vars(len(space))

        def at(k: int, where: Sequence[Value]) -> Value:
            return self.elements.element(let.args[k], where)

        def code() -> list[Value]:
            return [at(1, index), *let.op.place(at, index, types, **let.params)]

        store = Store(target, let.loc, self.elements.scalars(code, let.loc), adds=let.op.adds, pointwise=False)
        return [Alloc(target, let.loc, base=let.args[0]), nest(index, space, [store])]

    def _reduction(self, let: Let) -> list[Item]:
        (x,), axes, target = let.args, let.params["axes"], let.target
        index = loop_vars(x.type.rank)
        kept = tuple(v for k, v in enumerate(index) if k not in axes)
        reduced = [k for k in range(x.type.rank) if k in axes]

        def code() -> list[Value]:
            return [self.elements.element(x, index), *(index[k] for k in reduced)]

        step = Step(target, let.loc, self.elements.scalars(code, let.loc), let=let, positions=len(reduced))
        in_order = not kept or min(reduced, default=0) > max(k for k in range(x.type.rank) if k not in axes)
        if not in_order and _is_plain_fold(let.op):
            step.kept = kept
            return [Init(target, let.loc, let=let, in_array=True),
                    nest(index, x.type.shape, [step])]
        inner = nest([index[k] for k in reduced], [x.type.shape[k] for k in reduced], [step])
        path = [Init(target, let.loc, let=let), inner, Finish(target, let.loc, let=let, kept=kept)]
        if not kept:
            return path
        outer = [k for k in range(x.type.rank) if k not in axes]
        loops = nest([index[k] for k in outer], [x.type.shape[k] for k in outer], path)
        return [Alloc(target, let.loc), loops]


def _is_plain_fold(op: Op) -> bool:
    """Whether the accumulator itself is the result."""
    return type(op).finish is Op.finish and op.single_accumulator


def _size(dim: Any) -> Value:
    return int_const(dim) if isinstance(dim, int) else size_value(dim)


def loop_vars(count: int) -> list[Var]:
    return [Var("ijklmnpq"[k] if k < 8 else f"i{k}", I64) for k in range(count)]


def nest(index: Sequence[Var], sizes: Sequence[Any], inner: list[Any]) -> Any:
    """Loops around `inner`, the first index outermost; without loops, the single leaf itself."""
    items = inner
    for var, size in reversed(list(zip(index, sizes, strict=True))):
        items = [Loop(var, size, items)]
    (only,) = items
    return only

