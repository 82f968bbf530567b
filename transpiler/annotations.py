"""The types of a function's parameters, from its annotations.

Understood are `"f64[n,m]"`, `f64["n", "m"]`, `float`, `int`, `bool`, `complex`, NumPy's scalar types,
`np.ndarray[tuple[int, int], np.dtype[np.float64]]`, jaxtyping's `Float64[np.ndarray, "n m"]`, `tuple[...]` of these,
and `Annotated[..., "f64[n,m]"]`. Whatever does not settle dtype and rank, as `NDArray[np.float64]`, gives None.
"""

import __future__

import ast
import builtins
from collections.abc import Callable
from types import FunctionType, GenericAlias, MethodType
from typing import Annotated, Any, Literal, get_args, get_origin

import gast
import numpy as np

from gradsmith.transpiler.errors import Location, Problem, TranspileError, error_of
from gradsmith.transpiler.frontend.source import find_source
from gradsmith.transpiler.signature import (
    DTYPE_NAMES,
    ArraySpec,
    Dim,
    ScalarSpec,
    Spec,
    TupleSpec,
    looks_like_array_spec,
    parse_spec,
)

_PYTHON_NUMBERS = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def function_specs(fn: Callable[..., Any]) -> tuple[Spec | None, ...] | None:
    """What the annotations say about each parameter (`*args` and `**kwargs` excepted), or None if nothing."""
    if isinstance(fn, MethodType):
        rest = function_specs(fn.__func__)
        return rest and rest[1:]
    if not isinstance(fn, FunctionType) or not fn.__annotations__:
        return None
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    specs = tuple(_spec_of_parameter(fn, name) for name in names)
    return specs if any(spec is not None for spec in specs) else None


def _spec_of_parameter(fn: FunctionType, name: str) -> Spec | None:
    annotation = fn.__annotations__.get(name)
    if annotation is None:
        return None
    try:
        if isinstance(annotation, str) and fn.__code__.co_flags & __future__.annotations.compiler_flag:
            # The string is the source of the annotation; of a written string, that is its literal.
            annotation = _resolve(annotation, fn)
        return spec_of_annotation(annotation, resolve=lambda text: _resolve(text, fn))
    except TranspileError as fault:
        raise error_of(_at_the_annotation(problem, fn, name) for problem in fault.problems) from None


def spec_of_annotation(annotation: object, resolve: Callable[[str], object] = lambda text: None) -> Spec | None:
    """The spec that an annotation amounts to. `resolve` looks up the text of a forward reference."""
    if isinstance(annotation, Spec):
        return annotation
    if isinstance(annotation, str):
        return _spec_of_text(annotation, resolve)
    if isinstance(annotation, type) and not isinstance(annotation, GenericAlias):
        return _spec_of_class(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        told = (extra for extra in (*args[1:], args[0]) if extra is args[0] or isinstance(extra, str | Spec))
        return next((spec for extra in told if (spec := spec_of_annotation(extra, resolve))), None)
    if origin is np.ndarray:
        return _spec_of_ndarray(*args)
    if origin is tuple and Ellipsis not in args:
        items = [spec_of_annotation(item, resolve) for item in args]
        return TupleSpec(tuple(item for item in items if item)) if all(items) else None
    return None


def _spec_of_text(text: str, resolve: Callable[[str], object]) -> Spec | None:
    try:
        return parse_spec(text)
    except TranspileError:
        if looks_like_array_spec(text):
            raise
    resolved = resolve(text)
    return None if isinstance(resolved, str) else spec_of_annotation(resolved, resolve)


def _spec_of_class(annotation: type) -> Spec | None:
    if annotation in _PYTHON_NUMBERS:
        return ScalarSpec(_PYTHON_NUMBERS[annotation])
    if issubclass(annotation, np.generic):
        dtype = _dtype_name(annotation)
        return ScalarSpec(dtype) if dtype else None
    dtypes, dims = getattr(annotation, "dtypes", None), getattr(annotation, "dim_str", None)
    if isinstance(dtypes, list | tuple) and isinstance(dims, str):
        return _spec_of_jaxtyping(list(dtypes), dims.split())
    return None


def _spec_of_ndarray(shape: object, dtype: object) -> ArraySpec | None:
    lengths, scalar_types = get_args(shape), get_args(dtype)
    if get_origin(shape) is not tuple or Ellipsis in lengths or len(scalar_types) != 1:
        return None
    name = _dtype_name(scalar_types[0])
    return ArraySpec(name, tuple(map(_literal_length, lengths))) if name else None


def _dtype_name(scalar_type: object) -> str | None:
    if not isinstance(scalar_type, type) or not issubclass(scalar_type, np.generic):
        return None
    try:
        name = np.dtype(scalar_type).name
    except TypeError:  # an abstract type, such as np.floating
        return None
    return name if DTYPE_NAMES.get(name) == name and np.dtype(name).type is scalar_type else None


def _literal_length(length: object) -> int | None:
    values = get_args(length) if get_origin(length) is Literal else ()
    return values[0] if len(values) == 1 and isinstance(values[0], int) else None


def _spec_of_jaxtyping(dtypes: list[object], dims: list[str]) -> ArraySpec | None:
    named = {DTYPE_NAMES.get(dtype) if isinstance(dtype, str) else None for dtype in dtypes}
    dtype = named.pop() if len(named) == 1 else None  # Bool says both "bool" and "bool_"
    if dtype is None:
        return None
    if any(dim == "..." or "*" in dim[:3] for dim in dims):  # any number of dimensions
        return None
    return ArraySpec(dtype, tuple(map(_jaxtyping_dim, dims)))


def _jaxtyping_dim(dim: str) -> Dim:
    length = dim.partition("=")[2] or dim  # `batch=32` is a comment and a length
    if length.isdecimal():
        return int(length)
    return length if length.isidentifier() and not length.startswith("_") else None


def _resolve(text: str, fn: FunctionType) -> object:
    """The object that the text of an annotation names, by looking up names, attributes and subscripts alone."""
    try:
        return _look_up(ast.parse(text.strip(), mode="eval").body, fn)
    except (SyntaxError, LookupError, AttributeError, TypeError):
        return None


def _look_up(node: ast.expr | None, fn: FunctionType) -> Any:  # an annotation can be any object
    match node:
        case None:
            return None
        case ast.Constant(value):
            return value
        case ast.Name(name):
            if name in fn.__code__.co_freevars and fn.__closure__:
                return fn.__closure__[fn.__code__.co_freevars.index(name)].cell_contents
            return fn.__globals__[name] if name in fn.__globals__ else vars(builtins)[name]
        case ast.Attribute(value, name):
            return getattr(_look_up(value, fn), name)
        case ast.Tuple(items):
            return tuple(_look_up(item, fn) for item in items)
        case ast.Slice(lower, upper, step):
            return slice(_look_up(lower, fn), _look_up(upper, fn), _look_up(step, fn))
        case ast.Subscript(value, index):
            return _look_up(value, fn)[_look_up(index, fn)]
        case _:
            raise LookupError("not a plain annotation")


def _at_the_annotation(problem: Problem, fn: FunctionType, name: str) -> Problem:
    """`problem`, found in the text of an annotation, at its place in the user's file, where there is one."""
    try:
        source = find_source(fn)
    except TranspileError:
        return problem
    arg = next((n for n in gast.walk(source.node.args) if getattr(n, "id", None) == name and n.annotation), None)
    if arg is None:
        return problem
    place, inner = source.location_of(arg.annotation), problem.location
    written = (place.source_line or "")[place.column : place.end_column]
    if inner is not None and inner.source and written[1:-1] == inner.source.text:  # the string stands there plainly
        start = place.column + 1 + inner.column
        end = start + inner.end_column - inner.column
        place = Location(place.file, place.line, start, place.line, end, place.source)
    return Problem(problem.code, problem.message, place, problem.label, problem.help, problem.kind)
