"""Work done when the user's module is imported: functions with typed parameters are compiled at once."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from .arguments import Described
from .function import Function
from .log import logger
from .transpiler.annotations import function_specs
from .transpiler.frontend.values import Leaf
from .transpiler.ir.dims import symbol
from .transpiler.ir.types import Type
from .transpiler.signature import ArraySpec, DictSpec, ListSpec, ScalarSpec, Spec, TupleSpec

SAME_PARAMETERS = {"jit", "grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian"}


def compile_if_typed(made: Function, fun: Callable[..., Any]) -> None:
    """Compile `made` now if every parameter of `fun` is typed, or of the function that `fun` is the derivative of.
    A global that the module defines only later defers the work to the first call."""
    while getattr(fun, "__gradsmith_transformed__", ("",))[0] in SAME_PARAMETERS:
        fun = fun.__gradsmith_transformed__[1]  # type: ignore[attr-defined]
    if not hasattr(fun, "__code__"):
        return
    specs = function_specs(fun)
    if not specs or any(spec is None for spec in specs):
        return
    missing = undefined_globals(fun)
    if missing:
        logger.info("%s waits for its first call: %s is not defined yet", made, missing[0])
        return
    described = described_specs([s for s in specs if s is not None])
    if any(spec.described.key == described.key for spec in made._specialisations):
        return
    try:
        made.specialisation(described)
    except NameError as problem:
        logger.info("%s waits for its first call: %s", made, problem)


def undefined_globals(fun: Callable[..., Any]) -> list[str]:
    """Global names that the function and those that it calls read, and that nothing has bound yet, such as its own."""
    found: list[str] = []
    pending: list[Any] = [fun]
    seen: set[int] = set()
    while pending:
        function = pending.pop()
        if id(function) in seen or not isinstance(function, FunctionType):
            continue
        seen.add(id(function))
        for name in _globals_read(function.__code__):
            if name in function.__globals__:
                pending.append(function.__globals__[name])
            elif not hasattr(builtins, name) and name not in found:
                found.append(name)
    return found


def _globals_read(code: CodeType) -> list[str]:
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return names + [name for inner in code.co_consts if isinstance(inner, CodeType) for name in _globals_read(inner)]


def described_specs(specs: list[Spec]) -> Described:
    """Typed parameters as a call's arguments, without values.  Names of lengths are shared between arguments."""
    leaves: list[Leaf] = []
    values: list[Any] = []
    key: list[Any] = []
    anonymous = iter(range(1_000_000))

    def leaf(type: Type, weak: bool, part: Any, value: Any) -> Leaf:
        made = Leaf(type, weak, None)
        leaves.append(made)
        values.append(value)
        key.append(part)
        return made

    def visit(spec: Spec) -> Any:
        match spec:
            case ScalarSpec():
                python = {"bool": bool, "int64": int, "float64": float, "complex128": complex}.get(spec.dtype)
                return leaf(Type(spec.dtype), python is not None,
                            (python,) if python else ("scalar", spec.dtype), (python or np.dtype(spec.dtype).type)(0))
            case ArraySpec():
                dims = tuple(d if isinstance(d, int) else symbol(d or f"n{next(anonymous)}") for d in spec.dims)
                pattern = tuple(d if isinstance(d, int) and d < 2 else -1 for d in dims)
                return leaf(Type(spec.dtype, dims), False, ("array", spec.dtype, pattern, spec.layout, True),
                            spec.layout)
            case TupleSpec():
                key.extend((tuple, len(spec.items)))
                return tuple(map(visit, spec.items))
            case ListSpec():
                key.extend((list, len(spec.items)))
                return [visit(s) for s in spec.items]
            case DictSpec():
                key.extend((dict, tuple(k for k, _ in spec.items)))
                return {k: visit(s) for k, s in spec.items}
        raise TypeError(spec)

    args = tuple(map(visit, specs))
    return Described(args, {}, leaves, values, (tuple(key), (), len(args)))
