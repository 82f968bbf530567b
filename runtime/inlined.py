"""What `vjp` and `linearize` gave, called inside transpiled code: the linear function's statements are put in place.

So a pullback or a linear map can be batched, differentiated and compiled like any function: `vmap(pull)(np.eye(n))`.
What was kept for it is read anew at each call, like other arrays of the surroundings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .transpiler.errors import RuleError
from .transpiler.frontend.guards import Access
from .transpiler.frontend.trees import unflatten
from .transpiler.frontend.values import ArrayRef
from .transpiler.ir.dims import substitute
from .transpiler.ir.nodes import Func, Value, Var
from .transpiler.ir.walk import inline, size_substitution
from .transpiler.ops.spelling import as_value, cast

if TYPE_CHECKING:
    from .parted import Later


def inlined(it: Any, owner: Any, later: Later, given: Any, shapes: Sequence[tuple[int, ...]]) -> Any:
    """The result of `owner`, whose second function is `later`, on abstract arguments of these shapes."""
    from .parted import matching
    if not isinstance(later.func, Func):
        raise RuleError(f"the result of {later.kind} of a function that calls itself cannot be called inside "
                        "transpiled code", code="E202", kind=NotImplementedError,
                        help=f"call {later.kind} there, too")
    kept = it.captures.take(owner._residuals, Access(owner, (("attr", "_residuals"),)))
    leaves = [leaf for leaf, type in zip(matching(later.given, given, later.kind), later.results, strict=True) if type]
    wanted = [shape for shape, type in zip(shapes, later.results, strict=True) if type]
    for leaf, shape in zip(leaves, wanted, strict=True):
        _require_shape(it, _value(leaf), shape, later.kind)
    values = [_fitting(_value(x), param, later.kind)
              for x, param in zip((*kept, *leaves), later.func.params, strict=True)]
    sizes = size_substitution(later.func.params, [v.type for v in values])
    for value, param in zip(values, later.func.params, strict=True):
        for have, need in zip(value.shape, param.type.shape, strict=True):
            it.assumptions.are_equal(have, substitute(need, sizes))
    return unflatten(later.made, list(inline(later.func, values)))


def _value(x: Any) -> Value:
    return x.read() if isinstance(x, ArrayRef) else as_value(x)


def _require_shape(it: Any, value: Value, shape: tuple[int, ...], kind: str) -> None:
    if value.rank != len(shape) or not all(it.assumptions.are_equal(a, b) for a, b in zip(value.shape, shape)):
        what = "cotangent" if kind == "vjp" else "tangent"
        raise RuleError(f"a {what} of shape ({', '.join(map(str, value.shape))}) for a value of shape {shape}",
                        code="E406", kind=ValueError)


def _fitting(value: Value, param: Var, kind: str) -> Value:
    if value.type.kind == "c" and param.type.kind != "c":
        raise RuleError(f"{kind}: a complex number for a real one", code="E406", kind=TypeError)
    return cast(value, param.type.dtype)
