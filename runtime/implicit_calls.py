"""What the frontend does with a call of a solver that has an implicit derivative.

The call becomes one of a function with a forward rule, whose arguments are the numbers that the residual depends on:
those of the call, and those that it reads of the code around.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .transpiler.frontend.ruled_calls import all_arguments, differentiated, ruled_call
from .transpiler.frontend.trees import flatten, leaf_values, unflatten
from .transpiler.frontend.values import ArrayRef, Native, TransformValue
from .transpiler.ir.nodes import Var
from .transpiler.ir.walk import inline

if TYPE_CHECKING:
    from .transpiler.frontend.interpreter import Interpreter


def solved_call(it: Interpreter, solver: Any, residual: Any, rule: Any, has_aux: bool, has_start: bool,
                args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`solver(*args, **kwargs)`, which gives x with residual(x, *args) = 0.

    rule: (residual of (x, params), solver of params, primals, tangents) -> (result, tangent), in Python.
    """
    if it.orders == 0:
        return it.call(solver, args, kwargs, it.here)
    here = it.here
    args = all_arguments(it, solver, args, kwargs)
    given = args[1:] if has_start else args
    with differentiated(it, 0):
        found, out, _ = it.subtrace(solver, args, {}, keeps_args=True)
    x = unflatten(out, [_like(v) for v in found.results])
    with differentiated(it, it.orders + 2):
        func, form, outer = it.subtrace(residual, (x[0] if has_aux else x, *given), {}, "residual", keeps_args=True)
    it.at(here)
    leaves, structure = flatten(given, sizes_are_static=True)
    moves = [v.type.is_inexact for v in leaf_values(leaves)]
    captured = [v for v in outer if v.type.is_inexact]

    def with_params(params: tuple[Any, ...]) -> tuple[Any, ...]:
        """The call's arguments with these numbers in them."""
        pending = iter(params)
        return unflatten(structure, [next(pending) if moving else leaf for leaf, moving in zip(leaves, moves)])

    def residual_of(it: Interpreter, x: Any, params: tuple[Any, ...]) -> Any:
        own = dict(zip(captured, leaf_values(params[len(params) - len(captured):])))
        values = leaf_values(flatten((x, *with_params(params)), sizes_are_static=True)[0])
        return unflatten(form, list(inline(func, (*values, *(own.get(v, v) for v in outer)))))

    def solver_of(it: Interpreter, params: tuple[Any, ...]) -> Any:
        again = with_params(params)
        return it.call(solver, (args[0], *again) if has_start else again, {}, here)

    ruled = TransformValue("custom_jvp", Native(solver_of), (), {"by_code": False, "name": getattr(
        solver, "__name__", None) or getattr(solver, "name", None)})
    ruled.kwargs["jvp"] = functools.partial(rule, Native(residual_of), ruled)
    params = (*(leaf for leaf, moving in zip(leaves, moves) if moving),
              *(ArrayRef(v) if v.type.shape else v for v in captured))
    return ruled_call(it, ruled, (params,), {}, here)


def _like(value: Any) -> Any:
    var = Var(value.name if isinstance(value, Var) else "x", value.type)
    return ArrayRef(var) if var.type.shape else var


