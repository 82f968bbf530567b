"""From a signature to the arguments that a transformed function is traced at.

A signature describes the arguments of the *generated* function, except those that the transforms add themselves: the
cotangent of `vjp` and the tangents of `jvp` and `hvp`.  Annotations describe those of the user's function, so each
`vmap` puts its batch axis in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradsmith.arguments import SIZE_NAMES
from gradsmith.transpiler.annotations import function_specs
from gradsmith.transpiler.emit.hlo_types import HALVES
from gradsmith.transpiler.errors import error
from gradsmith.transpiler.frontend.trace import leaves_of
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.signature import (
    ArraySpec,
    DictSpec,
    ListSpec,
    ScalarSpec,
    Spec,
    TupleSpec,
    arrays_in,
    built,
    parse_signature,
)

from .transform import Chain

_PYTHON = frozenset({"bool", "int64", "float64", "complex128"})       # what Python's own numbers become
Tree = Any                                                           # tuples, lists and dicts of Leafs


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The positional parameters; `*args` may be the last."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
             inspect.Parameter.VAR_POSITIONAL)
    return [p for p in found if p.kind in kinds]


def specs_for(function: Callable[..., Any], signature: str | None, chain: Chain, shown: str,
              original: Callable[..., Any] | None = None, *, halves: bool = False) -> tuple[Spec, ...]:
    """The types of the generated function's arguments.  `original` holds the annotations, where `function` is made
    from it.  halves: they may be of half precision.

    TranspileError: E501 to E503 for a signature that cannot be read or does not fit the function; E503 where there is
    neither a signature nor typed parameters.
    """
    parameters = parameters_of(function)
    if signature is not None:
        specs = parse_signature(signature, halves=halves)
        _check_count(specs, parameters, shown)
        return specs
    original = original or function
    found = function_specs(getattr(original, "__wrapped__", original)) or ()
    by_name = {p.name: spec for p, spec in zip(parameters_of(original), found)}
    wanted = [p for p in parameters if p.kind is not p.VAR_POSITIONAL]
    typed = [by_name.get(p.name) for p in wanted] if by_name else []
    while typed and typed[-1] is None and wanted[len(typed) - 1].default is not inspect.Parameter.empty:
        typed.pop()
    untyped = [p.name for p, spec in zip(wanted, typed) if spec is None] if typed else [
        p.name for p in wanted if p.default is p.empty]
    if untyped:
        raise error("E503", f"the types of {', '.join(untyped)} are not known", help=(
            f'give them in order: --sig "f64[n], f64", or annotate the parameters of {shown}'))
    return _batched(tuple(spec for spec in typed if spec is not None), chain)


def _check_count(specs: Sequence[Spec], parameters: Sequence[inspect.Parameter], shown: str) -> None:
    positional = [p for p in parameters if p.kind is not p.VAR_POSITIONAL]
    needed = [p for p in positional if p.default is p.empty]
    most = None if len(positional) < len(parameters) else len(positional)
    if len(needed) <= len(specs) and (most is None or len(specs) <= most):
        return
    named = ", ".join(p.name for p in positional)
    raise error("E503", f"the signature has {len(specs)} type{'s' if len(specs) != 1 else ''}, but {shown} takes "
                        f"{len(needed)} argument{'s' if len(needed) != 1 else ''}: {named}")


def _batched(specs: tuple[Spec, ...], chain: Chain) -> tuple[Spec, ...]:
    """The specs with the batch axis of every vmap, the innermost first."""
    for number, step in enumerate(s for s in chain if s.kind == "vmap"):
        name = f"batch{number + 1 if number else ''}"
        axes = axes_of_arguments(step.options.get("in_axes", 0), len(specs))
        specs = tuple(_with_axis(spec, axis, name) for spec, axis in zip(specs, axes))
    return specs


def _with_axis(spec: Spec, axis: Any, name: str) -> Spec:
    match spec:
        case _ if axis is None:
            return spec
        case ScalarSpec():
            return ArraySpec(spec.dtype, (name,))
        case ArraySpec():
            at = axis if axis >= 0 else spec.rank + 1 + axis
            return ArraySpec(spec.dtype, (*spec.dims[:at], name, *spec.dims[at:]), spec.layout)
        case TupleSpec():
            parts = axes_of_arguments(axis, len(spec.items))
            return TupleSpec(tuple(_with_axis(s, a, name) for s, a in zip(spec.items, parts)))
        case ListSpec():
            parts = axes_of_arguments(axis, len(spec.items))
            return ListSpec(tuple(_with_axis(s, a, name) for s, a in zip(spec.items, parts)))
        case DictSpec():
            return DictSpec(tuple((key, _with_axis(s, axis[key] if isinstance(axis, dict) else axis, name))
                                  for key, s in spec.items))
    raise TypeError(spec)


def axes_of_arguments(axes: Any, count: int) -> list[Any]:
    """One entry of `in_axes` for each of `count` things.  TranspileError (E407) where their numbers differ."""
    if not isinstance(axes, (tuple, list)):
        return [axes] * count
    if len(axes) != count:
        raise error("E407", f"in_axes has {len(axes)} entries for {count} argument{'s' if count != 1 else ''}")
    return list(axes)


def arguments_for(specs: Sequence[Spec], names: Sequence[str], low: int) -> tuple[Tree, ...]:
    """A tree of Leafs for each spec.  `low`: the least value of every named size.

    Dims without a name get one, other than the arguments' own names.
    """
    taken = {*names, *(d for spec in specs for array in arrays_in(spec) for d in array.dims)}
    fresh = (name for name in _size_names() if name not in taken)

    def dim(given: int | str | None) -> Any:
        if isinstance(given, int):
            return given
        name = next(fresh) if given is None else f"{given}_size" if given in names else given
        return symbol(name, low)

    def leaf(spec: ScalarSpec | ArraySpec) -> Leaf:
        dims = tuple(map(dim, spec.dims)) if isinstance(spec, ArraySpec) else ()
        if spec.dtype in HALVES:
            return Leaf(Type("float32", dims), stored=spec.dtype)
        return Leaf(Type(spec.dtype, dims), isinstance(spec, ScalarSpec) and spec.dtype in _PYTHON)

    return tuple(built(spec, leaf) for spec in specs)


def _size_names() -> Iterator[str]:
    yield from SIZE_NAMES
    count = 1
    while True:
        yield from (f"{name}{count}" for name in SIZE_NAMES)
        count += 1


def names_for(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first `count` arguments."""
    parameters = parameters_of(function)
    known = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL][:count]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "x")
    return [*known, *(f"{rest}_{k}" for k in range(count - len(known)))]


def differentiable(tree: Tree) -> bool:
    """Whether every leaf is a float or complex number or array."""
    leaves = leaves_of(tree)
    return bool(leaves) and all(leaf.type.is_inexact for leaf in leaves)


def map_leaves(change: Callable[[Leaf], Leaf], tree: Tree) -> Tree:
    if isinstance(tree, Leaf):
        return change(tree)
    if isinstance(tree, dict):
        return {key: map_leaves(change, part) for key, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [map_leaves(change, part) for part in tree]
        return type(tree)._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
    return tree
