"""Transforms called inside interpreted code, and at its top: which kind is done by which function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import RuleError
from .batch_calls import vmap_call
from .derivative_calls import (
    gradient_call,
    hvp_call,
    jvp_apply_call,
    jvp_call,
    linearize_call,
    pullback_call,
    pushforward_call,
    value_and_vjp_call,
    vjp_apply_call,
    vjp_call,
)
from .functional_calls import functional_call
from .jacobian_calls import hessian_call, jacobian_call
from .ruled_calls import ruled_call
from .sparse_calls import besides_call, compressed_columns_call, compressed_rows_call, sparsity_call
from .values import TransformValue

IMMEDIATE = frozenset({"vjp", "jvp", "linearize", "hvp", "value_and_vjp"})      # given the function's arguments at once


def make_transform(interpreter: Any, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], loc: Any) -> Any:
    """`gradsmith.kind(*args, **kwargs)` in interpreted code."""
    if not args and kind not in IMMEDIATE:
        return TransformValue(kind, None, (), kwargs)
    if kind in IMMEDIATE:
        return CALLS[kind](interpreter, args[0], args[1:], kwargs, loc)
    return TransformValue(kind, args[0], args[1:], kwargs)


def call_transform(interpreter: Any, value: TransformValue, args: tuple[Any, ...], kwargs: dict[str, Any],
                   loc: Any) -> Any:
    """Call what a transform gave."""
    if value.fun is None and value.kind not in ("pullback", "pushforward"):      # grad(argnums=1)(f)
        return TransformValue(value.kind, args[0], (*value.args, *args[1:]), {**value.kwargs, **kwargs})
    if value.kind in IMMEDIATE:
        return CALLS[value.kind](interpreter, value.fun, (*value.args, *args), {**value.kwargs, **kwargs}, loc)
    call = CALLS.get(value.kind)
    if call is None:
        raise RuleError(f"gradsmith.{value.kind} is not supported inside transpiled code", code="E204",
                        kind=NotImplementedError)
    return call(interpreter, value, args, kwargs, loc)


def _jit(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    return interpreter.call(value.fun, args, kwargs, loc)


def _checkpoint(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """The function stays a func of its own, of whose call the reverse mode keeps nothing but the arguments."""
    interpreter.outlined = True
    try:
        return interpreter.call(value.fun, args, kwargs, loc)
    finally:
        interpreter.outlined = False


CALLS: dict[str, Callable[..., Any]] = {
    "jit": _jit, "grad": gradient_call(False), "value_and_grad": gradient_call(True), "jvp": jvp_call, "vjp": vjp_call,
    "linearize": linearize_call, "hvp": hvp_call, "vmap": vmap_call, "jacfwd": jacobian_call("jacfwd"),
    "jacrev": jacobian_call("jacrev"), "jacobian": jacobian_call("jacobian"), "hessian": hessian_call,
    "value_and_vjp": value_and_vjp_call, "pullback": pullback_call, "pushforward": pushforward_call,
    "vjp_apply": vjp_apply_call, "jvp_apply": jvp_apply_call, "functional": functional_call, "checkpoint": _checkpoint,
    "sparsity": sparsity_call, "compressed_columns": compressed_columns_call, "compressed_rows": compressed_rows_call,
    "besides": besides_call,
    "custom_vjp": ruled_call, "custom_jvp": ruled_call,
}
