"""Calls: our kernels by their own typing and code, the rest by Numba's.

A kernel is found among what Numba's registries hold before Numba has read them, so that a program of kernels alone
does not wait for the registries of all of Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.base import OverloadSelector, _wrap_impl
from numba.core.compiler import Flags
from numba.core.errors import NumbaError, NumbaNotImplementedError
from numba.core.imputils import builtin_registry as code_registry
from numba.core.targetconfig import ConfigStack
from numba.core.typing.templates import builtin_registry as type_registry
from numba.np.numpy_support import from_dtype

from ..registries import load_registries
from . import arrays, values
from .numbers import LLVM, cast, literal
from .values import TYPES, Array, Known, NotCovered, Number, Other, Value

PACKAGE = "gradsmith.kernels"


class _Kernels:
    """The types of our kernels, and the code for them, as far as they have been imported."""

    def __init__(self) -> None:
        self._seen = [0, 0]
        self._types: dict[Any, Any] = {}
        self._code: dict[Any, OverloadSelector] = {}

    def _update(self) -> None:
        found_types, found_code = type_registry.globals, code_registry.functions
        for function, type_ in found_types[self._seen[0]:]:
            if _is_ours(function):
                self._types[function] = type_
        for code, function, kinds in found_code[self._seen[1]:]:
            if _is_ours(function):
                self._code.setdefault(function, OverloadSelector()).append(code, kinds)
        self._seen = [len(found_types), len(found_code)]

    def type_of(self, function: Any) -> Any:
        """None for what is no kernel that was written for Numba."""
        if function not in self._types:
            self._update()
        return self._types.get(function)

    def code(self, function: Any, signature: Any) -> Callable[..., Any] | None:
        overloads = self._code.get(function)
        if overloads is None:
            return None
        try:
            return overloads.find(signature.args)  # type: ignore[no-any-return]
        except NumbaNotImplementedError:
            return None


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", None)).startswith(PACKAGE)


kernels = _Kernels()


@cache
def dtype_of(x: Any) -> Any:
    """The Numba type that `np.float32` or the like stands for; None for anything else."""
    if x in (bool, int, float, complex):
        return {bool: TYPES.boolean, int: TYPES.int64, float: TYPES.float64, complex: TYPES.complex128}[x]
    return from_dtype(np.dtype(x)) if isinstance(x, type) and issubclass(x, np.generic) else None


def type_of(value: Value) -> Any:
    """As Numba would have it, literals as such."""
    match value:
        case Number():
            return TYPES.literal(value.literal) if value.literal is not None else value.type
        case Array() | Other():
            return value.type
        case values.Sequence():
            return TYPES.BaseTuple.from_types(tuple(map(type_of, value.items)))
        case Known(None):
            return TYPES.none
        case Known(str() as text):
            return TYPES.literal(text)
        case Known(found) if isinstance(found, type) and dtype_of(found) is not None:
            return TYPES.NumberClass(dtype_of(found))
    raise NotCovered(f"{value} as an argument")


@cache
def flags() -> Any:
    """How Numba compiles functions of its own for one of ours."""
    made: Any = Flags()
    made.nrt, made.release_gil, made.error_model, made.no_cfunc_wrapper = True, True, "numpy", True
    return made


def read_registries(context: Any) -> None:
    """Let Numba read what it knows."""
    load_registries()
    context.typing_context.refresh()
    context.refresh()


class Caller:
    """Calls in one function.  `builder` is where code goes."""

    def __init__(self, context: Any, function: Any) -> None:
        self.context = context
        self.function = function        # the Python function that is being compiled

    def call(self, builder: Any, function: Any, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """What `function(*args)` gives; an array in it is owned."""
        callee = getattr(function, "py_func", None)
        if callee is not None and callee.__globals__ is self.function.__globals__:
            raise NotCovered("a call of another function of the module, which may be recursive")
        type_ = kernels.type_of(function)
        if type_ is None:
            return self.by_numba(builder, function, args, keywords)
        signature = self._signature(lambda *given: type_.get_call_type(self.context.typing_context, *given),
                                    args, keywords)
        code = kernels.code(function, signature)
        if code is None:
            return self.by_numba(builder, function, args, keywords)
        if getattr(code, "takes_members", False):
            return self.raised(builder, signature.return_type, code(self.context, builder, signature, args))
        return self._emit(builder, _wrap_impl(code, self.context, signature), signature, args, keywords)

    def by_numba(self, builder: Any, function: Any, args: Sequence[Value], keywords: Mapping[str, Value],
                 this: Value | None = None) -> Value:
        """The same through all that Numba knows.  this: `function` is the name of a method of it."""
        read_registries(self.context)
        typing = self.context.typing_context
        with ConfigStack().enter(flags()):
            return self._by_numba(typing, builder, function, args, keywords, this)

    def _by_numba(self, typing: Any, builder: Any, function: Any, args: Sequence[Value], keywords: Mapping[str, Value],
                  this: Value | None) -> Value:
        try:
            type_ = typing.resolve_value_type(function) if this is None else typing.resolve_getattr(
                type_of(this), function)
        except (NumbaError, KeyError, ValueError) as problem:
            raise NotCovered(f"{function}: {problem}") from None
        if type_ is None:
            raise NotCovered(f"Numba has no {function}")
        signature = self._signature(lambda *given: typing.resolve_function_type(type_, *given), args, keywords)
        try:
            code = self.context.get_function(type_, signature)
        except NotImplementedError as problem:
            raise NotCovered(f"{function}: {problem}") from None
        found = self._emit(builder, code, signature, args, keywords, this)
        self.context.add_linking_libs(getattr(code, "libs", ()))
        return found

    def _signature(self, resolve: Callable[..., Any], args: Sequence[Value], keywords: Mapping[str, Value]) -> Any:
        try:
            found = resolve(tuple(map(type_of, args)), {name: type_of(value) for name, value in keywords.items()})
        except NumbaError as problem:
            raise NotCovered(str(problem)) from None
        if found is None:
            raise NotCovered("Numba knows no such call")
        return found

    def _emit(self, builder: Any, code: Callable[..., Any], signature: Any, args: Sequence[Value],
              keywords: Mapping[str, Value], this: Value | None = None) -> Value:
        given: list[Value] = list(args)
        if signature.pysig is not None:
            bound = signature.pysig.bind(*args, **keywords)
            bound.apply_defaults()
            given = [x if isinstance(x, Value) else _default(x) for x in bound.arguments.values()]
        elif keywords:
            raise NotCovered("keywords")
        kinds = list(signature.args)
        if this is not None and len(kinds) == len(given):
            kinds.insert(0, type_of(this))
        if this is not None:
            given.insert(0, this)
        if len(kinds) != len(given):
            raise NotCovered("a call with default arguments")
        result = code(builder, [self.lowered(builder, value, kind) for value, kind in zip(given, kinds)])
        return self.raised(builder, TYPES.unliteral(signature.return_type), result)

    def lowered(self, builder: Any, value: Value, kind: Any) -> Any:
        """One LLVM value of the type `kind`."""
        match value:
            case Number():
                plain = TYPES.unliteral(kind)
                if value.type == plain or (plain in LLVM and value.type in LLVM):
                    return cast(builder, value, plain).llvm
            case Array():
                struct = arrays.to_struct(builder, self.context, value)
                return struct if value.type == kind else self.context.cast(builder, struct, value.type, kind)
            case values.Sequence() if isinstance(kind, types.BaseTuple) and len(kind) == len(value.items):
                parts = [self.lowered(builder, item, part) for item, part in zip(value.items, values.items_of(kind))]
                return self.packed(builder, kind, parts)
            case Known():
                return self.context.get_dummy_value()
            case Other() if value.type == kind:
                return value.llvm
        return self._cast_by_numba(builder, value, kind)

    def _cast_by_numba(self, builder: Any, value: Value, kind: Any) -> Any:
        if not isinstance(value, Number | Other):
            raise NotCovered(f"{type(value).__name__} as {kind}")
        read_registries(self.context)
        return self.context.cast(builder, value.llvm, value.type, kind)

    def packed(self, builder: Any, kind: Any, parts: Sequence[Any]) -> Any:
        tuple_: Any = ir.Constant(self.context.get_value_type(kind), ir.Undefined)
        for k, part in enumerate(parts):
            tuple_ = builder.insert_value(tuple_, part, k)
        return tuple_

    def raised(self, builder: Any, kind: Any, llvm: Any) -> Value:
        """The value that Numba's code gave for the type."""
        if kind in LLVM:
            return Number(kind, llvm)
        if type(kind) is types.Array:
            return arrays.of_struct(builder, kind, llvm, owned=True)
        if isinstance(kind, types.BaseTuple):
            return values.Sequence([self.raised(builder, TYPES.unliteral(part), builder.extract_value(llvm, k))
                                    for k, part in enumerate(values.items_of(kind))])
        if kind == TYPES.none:
            return Known(None)
        if self.context.data_model_manager[kind].contains_nrt_meminfo() or isinstance(kind, types.Optional):
            raise NotCovered(f"a value of type {kind}")
        return Other(kind, llvm)


def _default(x: Any) -> Value:
    return literal(x) if isinstance(x, (bool, int, float)) else Known(x)
