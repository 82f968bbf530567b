"""Derivatives called on abstract values: grad, value_and_grad, jvp, vjp, linearize, hvp.

The derived func is put in place (`inline`); equal statements of primal and derivative become one later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import RuleError
from ..ir.build import const
from ..ir.nodes import Func, Value
from ..ir.walk import inline
from ..ops.spelling import as_value, cast
from ..transforms.jvp import jvp
from ..transforms.vjp import vjp
from .transform_tracing import (
    Traced,
    chosen,
    options_of,
    packed,
    parts_of,
    positional,
    results_here,
    scalar_result,
    trace_call,
    with_numbers,
)
from .trees import LeafNode, StaticNode, Structure, TreeNode, flatten, leaf_count, unflatten
from .values import ArrayRef, TransformValue

OPTIONS = {"argnums": 0, "has_aux": False, "holomorphic": False, "allow_int": False}


def gradient_call(with_value: bool) -> Callable[..., Any]:
    def call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
        options = options_of(value, ("argnums", "has_aux", "holomorphic", "allow_int"), OPTIONS)
        argnums, has_aux = options["argnums"], options["has_aux"]
        args, kwargs = positional(value.fun, args, kwargs)
        numbers = chosen(interpreter, value.fun, args, kwargs, argnums, value.kind)
        traced = trace_call(interpreter, value.fun, args, kwargs, numbers, value.kind,
                            bool(options["allow_int"]))
        interpreter.at(loc)
        out, aux = scalar_result(interpreter, value.fun, traced, value.kind, has_aux)
        results = traced.func.results
        if isinstance(out, LeafNode) and results[0].type.is_inexact:
            if results[0].type.kind == "c" and not options["holomorphic"]:
                raise RuleError(f"{value.kind} of a function with a complex result", code="E404", kind=TypeError,
                                help="take the real part or the absolute value, or say holomorphic=True")
            seeds: list[Value | None] = [const(1, results[0].type)]
            seeds += [None] * (sum(r.type.is_inexact for r in results) - 1)
            derived = vjp(traced.func, traced.wanted, cotangents=seeds, report=interpreter.report)
            values = inline(derived, traced.inputs)
        else:
            values = (*inline(traced.func, traced.inputs), *(const(0, v.type) for v in traced.wanted_inputs()))
        primal, bars = values[:len(results)], values[len(results):]
        trees = dict(zip(sorted(set(numbers)), parts_of(traced.structures, traced.with_zeros(bars))))
        gradient = packed([trees[k] for k in numbers], argnums)
        count = leaf_count(out)
        extra = unflatten(aux, list(primal[count:])) if aux is not None else None
        if not with_value:
            return (gradient, extra) if has_aux else gradient
        number = unflatten(out, list(primal[:count]))
        return ((number, extra), gradient) if has_aux else (number, gradient)

    return call


def _tuple_of(value: Any, what: str) -> tuple[Any, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    raise RuleError(f"{what} must be a tuple or list, one entry for each argument", code="E406", kind=TypeError,
                    help="write (x,) for a single argument")


def jvp_call(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    has_aux = kwargs.pop("has_aux", False)
    args = (*args, *(kwargs.pop(name) for name in ("primals", "tangents")[len(args):] if name in kwargs))
    if len(args) != 2:
        raise RuleError("jvp takes a function, a tuple of primals and a tuple of tangents", code="E406", kind=TypeError)
    primals, tangents = _tuple_of(args[0], "primals of jvp"), _tuple_of(args[1], "tangents of jvp")
    if len(primals) != len(tangents):
        raise RuleError(f"jvp got {len(primals)} primals and {len(tangents)} tangents", code="E406", kind=ValueError)
    traced = trace_call(interpreter, fun, primals, {}, range(len(primals)), "jvp")
    moving = _moving(interpreter, tangents, traced)
    interpreter.at(loc)
    values = inline(jvp(traced.func, traced.wanted, report=interpreter.report), (*traced.inputs, *moving))
    return _value_and_tangent(traced, values, has_aux)


def _value_and_tangent(traced: Traced, values: Sequence[Value], has_aux: bool) -> Any:
    count = len(traced.func.results)
    tangents = _filled(traced.func, list(values[count:]))
    result, slope = unflatten(traced.out, list(values[:count])), unflatten(_as_leaves(traced.out), tangents)
    return (result[0], slope[0], result[1]) if has_aux else (result, slope)


def _as_leaves(out: Structure) -> Structure:
    """The structure of a tangent: static numbers have tangent 0."""
    if isinstance(out, StaticNode):
        if isinstance(out.value, tuple):
            return StaticNode(tuple(_as_leaves(StaticNode(v)).value for v in out.value))  # type: ignore[union-attr]
        return StaticNode(0.0) if isinstance(out.value, (int, float)) else out
    if isinstance(out, TreeNode):
        return TreeNode(out.kind, out.cls, out.keys, tuple(map(_as_leaves, out.children)))
    return out


def _filled(func: Func, tangents: list[Value]) -> list[Value]:
    """One tangent for each result: zeros of float64 for ints and bools."""
    return [tangents.pop(0) if r.type.is_inexact else const(0, r.type) for r in func.results]


def _moving(interpreter: Any, tangents: Sequence[Any], traced: Traced) -> list[Value]:
    """One tangent for each wanted input."""
    flat = _flat_tangents(tangents, traced)
    return [matched(interpreter, t, v) for t, v in zip(flat, traced.wanted_inputs(), strict=True)]


def _flat_tangents(tangents: Sequence[Any], traced: Traced) -> list[Any]:
    """Leaves of the tangents, which must have the primals' structure."""
    found: list[Any] = []
    for tangent, structure in zip(tangents, traced.structures, strict=True):
        leaves, given = flatten(tangent)
        numbers = with_numbers(given, leaves)
        if len(numbers) != leaf_count(structure):
            raise RuleError("tangents must have the structure of the primals", code="E406", kind=TypeError)
        found += numbers
    return found


def matched(interpreter: Any, tangent: Any, primal: Value) -> Value:
    """A tangent (or cotangent) as a value of the primal's type."""
    value = tangent.read() if isinstance(tangent, ArrayRef) else as_value(tangent)
    if len(value.shape) != len(primal.shape) or not all(
            interpreter.assumptions.are_equal(a, b) for a, b in zip(value.shape, primal.shape)):
        raise RuleError(f"a tangent of shape {_shape(value)} for a value of shape {_shape(primal)}", code="E406",
                        kind=ValueError)
    return cast(value, primal.dtype)


def _shape(value: Value) -> str:
    return "(" + ", ".join(map(str, value.shape)) + ("," if value.rank == 1 else "") + ")"


def vjp_call(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    has_aux = kwargs.pop("has_aux", False)
    traced = trace_call(interpreter, fun, args, kwargs, range(len(args)), "vjp")
    interpreter.at(loc)
    results = inline(traced.func, traced.inputs)
    out, aux = traced.out, None
    if has_aux:
        _, aux = scalar_pair(traced.out)
    value = unflatten(out, list(results))
    pullback = TransformValue("pullback", None, (traced, has_aux))
    return (value[0], pullback, value[1]) if aux is not None else (value, pullback)


def scalar_pair(out: Structure) -> tuple[Structure, Structure]:
    if isinstance(out, TreeNode) and out.kind == "tuple" and len(out.children) == 2:
        return out.children[0], out.children[1]
    raise RuleError("has_aux=True needs a function that returns a pair (value, aux)", code="E405", kind=TypeError)


def pullback_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    traced, has_aux = value.args
    if len(args) != 1:
        raise RuleError("a pullback takes one cotangent, with the structure of the result", code="E406",
                        kind=TypeError)
    interpreter.at(loc)
    return _pulled_back(interpreter, traced, has_aux, args[0])[1]


def value_and_vjp_call(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    """(ct, *primals) -> (value, cotangents) or (value, cotangents, aux), with one forward sweep for both."""
    has_aux = kwargs.pop("has_aux", False)
    ct, *primals = args
    traced = trace_call(interpreter, fun, primals, kwargs, range(len(primals)), "vjp")
    interpreter.at(loc)
    if has_aux:
        scalar_pair(traced.out)
    results, bars = _pulled_back(interpreter, traced, has_aux, ct)
    value = unflatten(traced.out, results)
    return (value[0], bars, value[1]) if has_aux else (value, bars)


def _pulled_back(interpreter: Any, traced: Traced, has_aux: bool, ct: Any) -> tuple[list[Value], tuple[Any, ...]]:
    """The results again and the cotangents of the primals."""
    leaves, given = flatten(ct)
    numbers = with_numbers(given, leaves)
    results = results_here(traced)
    if has_aux:
        first, _ = scalar_pair(traced.out)
        results = results[:leaf_count(first)]
    if len(numbers) != len(results):
        raise RuleError("the cotangent must have the structure of the function's result", code="E406", kind=TypeError)
    cts = [matched(interpreter, ct, r) for ct, r in zip(numbers, results, strict=True) if r.type.is_inexact]
    cts += [const(0, r.type) for r in traced.func.results[len(results):] if r.type.is_inexact]
    values = inline(vjp(traced.func, traced.wanted, report=interpreter.report), (*traced.inputs, *cts))
    count = len(traced.func.results)
    return list(values[:count]), tuple(parts_of(traced.structures, values[count:]))


def vjp_apply_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """The pullback at given primals: (ct, *primals) -> cotangents."""
    _, pullback, *_ = vjp_call(interpreter, value.fun, args[1:], dict(value.kwargs), loc)
    return pullback_call(interpreter, pullback, args[:1], {}, loc)


def jvp_apply_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """The tangent at given primals: (primals, tangents) -> the result's tangent."""
    primals, tangents = args
    _, pushforward = linearize_call(interpreter, value.fun, primals, {}, loc)
    return pushforward_call(interpreter, pushforward, tangents, {}, loc)


def linearize_call(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    has_aux = kwargs.pop("has_aux", False)
    traced = trace_call(interpreter, fun, args, kwargs, range(len(args)), "linearize")
    interpreter.at(loc)
    if has_aux:
        scalar_pair(traced.out)
    value = unflatten(traced.out, list(inline(traced.func, traced.inputs)))
    pushforward = TransformValue("pushforward", None, (traced, has_aux))
    return (value[0], pushforward, value[1]) if has_aux else (value, pushforward)


def pushforward_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    traced, has_aux = value.args
    if len(args) != len(traced.structures):
        raise RuleError(f"the linear map takes {len(traced.structures)} tangents, not {len(args)}", code="E406",
                        kind=TypeError)
    interpreter.at(loc)
    moving = _moving(interpreter, args, traced)
    values = inline(jvp(traced.func, traced.wanted, report=interpreter.report), (*traced.inputs, *moving))
    return _value_and_tangent(traced, values, has_aux)[1]


def hvp_call(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    """Hessian times vector, forward over reverse: of the structure of the primals."""
    args = (*args, *(kwargs.pop(name) for name in ("primals", "tangents")[len(args):] if name in kwargs))
    if len(args) != 2:
        raise RuleError("hvp takes a function, primals and tangents", code="E406", kind=TypeError)
    many = isinstance(args[0], (tuple, list))
    primals = tuple(args[0]) if many else (args[0],)
    tangents = tuple(args[1]) if many else (args[1],)
    gradient = TransformValue("grad", fun, (tuple(range(len(primals))),))
    _, product = jvp_call(interpreter, gradient, (primals, tangents), {}, loc)
    return product if many else product[0]
