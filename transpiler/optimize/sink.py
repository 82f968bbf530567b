"""Do elementwise work before axes are merged.

    before                                   after
    a: f64[m*n] = reshape(x)                 b: f64[n,m] = multiply(x, 2.0)
    b: f64[m*n] = multiply(a, 2.0)           c: f64[m*n] = reshape(b)
    return b                                 return c

Loops then run over the axes as they are, and no element needs a quotient to be found; a reduction over the merged
axes needs no merging at all.
"""

from __future__ import annotations

from .. import ops
from ..ir.nodes import Const, Func, Let, Value, Var
from ..ir.walk import definitions, rewrite
from ..ops.base import Lowering


def sink_merges(func: Func) -> Func:
    known: dict[Var, Let] = {t: s for t, s in definitions(func.body).items() if isinstance(s, Let)}

    def change(let: Let) -> Let | Value:
        merge = _merge_of(let, known)
        if merge is None:
            known[let.targets[0]] = let
            return let
        shape = merge.args[0].type.shape
        early = let.op(*(_before(a, known, shape) for a in let.args), **let.params)
        late = merge.op(early, **merge.params)
        return late  # type: ignore[no-any-return]

    return rewrite(func, change)


def _merge_of(let: Let, known: dict[Var, Let]) -> Let | None:
    """The merge that all arguments of an elementwise operation went through, if there is one."""
    if let.op.lowering is not Lowering.ELEMENTWISE or len(let.targets) != 1 or not let.target.type.shape:
        return None
    found: Let | None = None
    for arg in let.args:
        if isinstance(arg, Const) or _is_splat(known.get(arg)):
            continue
        made = known.get(arg)
        if made is None or made.op.lowering is not Lowering.REINDEX or len(made.args) != 1 or made.op.destination(
                [made.args[0].type], **made.params) is None:
            return None
        if found is not None and (made.op is not found.op or made.params != found.params
                                  or made.args[0].type.shape != found.args[0].type.shape):
            return None
        found = made
    return found


def _is_splat(let: Let | None) -> bool:
    """Whether the array is one number everywhere."""
    return (let is not None and let.op.lowering is Lowering.REINDEX and len(let.args) == 1
            and not let.args[0].type.shape and bool(let.op.copies_along([let.args[0].type], **let.params)))


def _before(arg: Value, known: dict[Var, Let], shape: tuple[object, ...]) -> Value:
    """The argument as it was before the merge."""
    if isinstance(arg, Const):
        return Const(arg.value, arg.type.with_shape(shape))
    made = known[arg]
    if _is_splat(made):
        return ops.broadcast(made.args[0], shape=shape, axes=())  # type: ignore[no-any-return]
    return made.args[0]
