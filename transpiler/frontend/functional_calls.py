"""`gradsmith.functional(f)`: what `f` wrote into its arguments becomes a result, and the arguments stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.nodes import Value
from .transform_tracing import argument_names
from .trees import flatten, unflatten
from .values import ArrayRef, TransformValue

POSITIONS = 64          # of which parameters have names of their own; what comes after is in `*args`


def functional_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """(result, written): `written` maps the names of the arguments in which something was written to what they are
    after the call, whole trees."""
    barrier, interpreter.barrier = interpreter.barrier, ArrayRef(known=np.zeros(0)).serial
    own_args, own_kwargs = _own(tuple(args), dict(kwargs))
    named = _named(value.fun, own_args, own_kwargs)
    before = {name: _contents(tree) for name, tree in named.items()}
    interpreter.outside.held.append(named)
    try:
        result = interpreter.call(value.fun, own_args, own_kwargs, loc)
    finally:
        interpreter.outside.held.pop()
        interpreter.barrier = barrier
    return result, {name: tree for name, tree in named.items() if not _same(before[name], _contents(tree))}


def _own(*trees: Any) -> Any:
    """Trees of arrays of their own: an array that comes twice is two."""
    leaves, structure = flatten(trees, sizes_are_static=True)
    return unflatten(structure, [ArrayRef(x.read(), layout=x.layout) if isinstance(x, ArrayRef) else x for x in leaves])


def _named(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of their parameters; those of `*args` together, under its name."""
    names, rest = parameter_names(fun, len(args))
    found = dict(zip(names, args))
    if len(args) > len(names):
        found[rest] = tuple(args[len(names):])
    return {**found, **kwargs}


def parameter_names(fun: Any, count: int) -> tuple[list[str], str]:
    """The names of the positional parameters that `count` arguments fill, and what the arguments after them are
    called."""
    while hasattr(fun, "__gradsmith_transformed__"):
        fun = fun.__gradsmith_transformed__[1]
    while isinstance(fun, TransformValue) and fun.fun is not None:
        fun = fun.fun
    node, code = getattr(fun, "node", None), getattr(fun, "__code__", None)
    known = [name for name in argument_names(fun, POSITIONS) if not name.startswith("argument ")]
    rest = "args"
    if code is not None and code.co_flags & 0x04:           # CO_VARARGS
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    elif node is not None and node.args.vararg is not None:
        rest = node.args.vararg.id
    return known[:count], rest


def _contents(tree: Any) -> tuple[list[Any], list[Value | None], Any]:
    leaves, structure = flatten(tree, sizes_are_static=True)
    return leaves, [x.read() if isinstance(x, ArrayRef) else None for x in leaves], structure


def _same(a: tuple[list[Any], list[Value | None], Any], b: tuple[list[Any], list[Value | None], Any]) -> bool:
    return len(a[0]) == len(b[0]) and all(x is y for x, y in zip((*a[0], *a[1]), (*b[0], *b[1]))) and a[2] == b[2]
