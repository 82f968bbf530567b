"""Applying a chain of transforms to a function: the callable to trace, and the arguments that it takes.

    vjp    f(x, n)  ->  f_vjp(x, n, ct): (value, cotangents of the arguments that have them)
    jvp    f(x, n)  ->  f_jvp(x, n, t_x): (value, tangent)
    hvp    f(x, n)  ->  f_hvp(x, n, t_x): the Hessian times t_x

The other transforms keep the arguments.  What is traced is ordinary Python that calls gradsmith's own transforms.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradsmith
from gradsmith.half_precision import half_of_all
from gradsmith.transforms import _marked, function
from gradsmith.transpiler.errors import did_you_mean, error
from gradsmith.transpiler.frontend.trace import leaves_of, trace
from gradsmith.transpiler.frontend.trees import LeafNode, build
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.types import Type

from .parameters import Tree, axes_of_arguments, differentiable, map_leaves, parameters_of
from .transform import Chain, Step

Fun = Callable[..., Any]


@dataclass(frozen=True)
class Applied:
    """callable: what to trace at `arguments`.  names: of the arguments; those after the signature's were added.

    kind: of the transform that decides what the results are, for naming them; numbers: the arguments that it
    differentiates.
    """

    callable: Fun
    arguments: tuple[Tree, ...]
    names: tuple[str, ...]
    kind: str = "jit"
    numbers: tuple[int, ...] = ()

    @property
    def with_value(self) -> bool:
        """Whether the first part of the result is the function's own."""
        return self.kind in ("vjp", "jvp", "value_and_grad")

    def differentiated(self, params: Sequence[Any]) -> list[int]:
        """Which of the flat params belong to the differentiated arguments of a gradient, in order."""
        if self.kind not in ("grad", "value_and_grad", "vjp"):
            return []
        owner = [k for k, tree in enumerate(self.arguments) for _ in leaves_of(tree)]
        return [p for k in self.numbers for p, own in enumerate(owner[:len(params)]) if own == k]


def with_static(fun: Fun, statics: Mapping[str, Any], shown: str) -> Fun:
    """`fun` without the parameters in `statics`, which are given these values."""
    parameters = parameters_of(fun)
    names = [p.name for p in parameters]
    for name in statics:
        if name not in names:
            raise error("E503", f"{shown} has no argument `{name}`",
                        help=did_you_mean(name, names) or f"its arguments are {', '.join(names)}")
    places = tuple(k for k, name in enumerate(names) if name in statics)
    bound = _fixed(fun, places, tuple(statics[names[k]] for k in places))
    bound.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p for p in parameters if p.name not in statics])
    bound.__name__ = getattr(fun, "__name__", "f")
    return bound


def _fixed(fun: Fun, places: tuple[int, ...], fixed: tuple[Any, ...]) -> Fun:
    def call(*args: Any) -> Any:
        every = list(args)
        for place, value in zip(places, fixed):
            every.insert(place, value)
        return fun(*every)

    return call


def apply_chain(fun: Fun, chain: Chain, arguments: tuple[Tree, ...], names: Sequence[str]) -> Applied:
    """Transform `fun`; `arguments` are those of the whole chain's result."""
    if not chain:
        return Applied(fun, arguments, tuple(names))
    *inner, step = chain
    if step.kind == "vmap":
        return _mapped(fun, tuple(inner), step, arguments, names)
    applied = apply_chain(fun, tuple(inner), arguments, names)
    if step.kind == "vjp":
        return _with_cotangents(applied, step)
    if step.kind in ("jvp", "hvp"):
        return _with_tangents(applied, step)
    options = dict(step.options)
    positional = [options.pop("argnums", 0)] if step.kind not in ("jit", "functional") else []
    made = function(step.kind, applied.callable, *positional, **options)
    if step.kind in ("jit", "functional"):
        return replace(applied, callable=made)
    count = len(applied.arguments)
    many = positional[0] if isinstance(positional[0], tuple) else positional
    return Applied(made, applied.arguments, applied.names, step.kind, tuple(k % count for k in many if count))


# ---------------------------------------------------------------------------------------------------------------
# vmap


def _mapped(fun: Fun, inner: Chain, step: Step, arguments: tuple[Tree, ...], names: Sequence[str]) -> Applied:
    axes = axes_of_arguments(step.options.get("in_axes", 0), len(arguments))
    sizes: list[Any] = []
    lanes = tuple(_lane(tree, axis, sizes) for tree, axis in zip(arguments, axes))
    applied = apply_chain(fun, inner, lanes, names)
    added = applied.arguments[len(arguments):]
    size = sizes[0] if sizes else step.options.get("axis_size")
    stacked = tuple(map_leaves(lambda leaf: Leaf(Type(leaf.type.dtype, (size, *leaf.type.shape)), stored=leaf.stored),
                               tree) for tree in added)
    mapped = function("vmap", applied.callable, (*axes, *[0] * len(added)), step.options.get("out_axes", 0),
                      axis_size=step.options.get("axis_size"))
    return replace(applied, callable=mapped, arguments=(*arguments, *stacked))


def _lane(tree: Tree, axis: Any, sizes: list[Any]) -> Tree:
    """What one example of the batch sees of an argument; batch sizes are appended to `sizes`."""
    if axis is None:
        return tree
    if isinstance(tree, Leaf):
        rank = tree.type.rank
        if not -rank <= axis < rank:
            raise error("E407", f"in_axes names axis {axis} of {tree.type}, which has {rank} "
                                f"dimension{'s' if rank != 1 else ''}",
                        help="the signature describes the batched arguments; in_axes=None for one that is not batched")
        at = axis % rank
        sizes.append(tree.type.shape[at])
        shape = tuple(d for k, d in enumerate(tree.type.shape) if k != at)
        return Leaf(Type(tree.type.dtype, shape), stored=tree.stored)
    if isinstance(tree, dict):
        return {key: _lane(part, axis[key] if isinstance(axis, dict) else axis, sizes) for key, part in tree.items()}
    if not isinstance(tree, (tuple, list)):
        return tree
    parts = [_lane(part, a, sizes) for part, a in zip(tree, axes_of_arguments(axis, len(tree)))]
    return type(tree)(parts)


# ---------------------------------------------------------------------------------------------------------------
# vjp, jvp, hvp


def _numbers(step: Step, arguments: Sequence[Tree], names: Sequence[str]) -> tuple[int, ...]:
    """The arguments to differentiate: those of `argnums`, else all that can be."""
    given = step.options.get("argnums")
    if given is None:
        found = tuple(k for k, tree in enumerate(arguments) if differentiable(tree))
        if not found:
            raise error("E401", f"{step.kind} needs an argument of floats, and there is none among "
                                f"{', '.join(names) or 'no arguments'}")
        return found
    count = len(arguments)
    many = given if isinstance(given, tuple) else (given,)
    for number in many:
        if not -count <= number < count:
            raise error("E402", f"argnums of {step.kind} names argument {number}, but there are {count}")
    return tuple(number % count for number in many)


def _with_cotangents(applied: Applied, step: Step) -> Applied:
    numbers = _numbers(step, applied.arguments, applied.names)
    has_aux = step.options.get("has_aux", False)
    result = _result_of(applied)
    if has_aux:
        if not (isinstance(result, tuple) and len(result) == 2):
            raise error("E405", "vjp with has_aux=True needs a function that returns a pair (value, aux)")
        result = result[0]
    name = _fresh("ct", applied.names)
    make = _cotangents_and_aux if has_aux else _cotangents
    call = _named(make(applied.callable, numbers), (*applied.names, name))
    return Applied(call, (*applied.arguments, result), (*applied.names, name), "vjp", numbers)


@_marked("value_and_vjp")
def _value_and_vjp(fun: Fun, ct: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The frontend knows it by its mark: (value, cotangents) from one forward sweep, which `gradsmith.vjp` and its
    pullback would run one each of in traced code."""
    raise TypeError("for traced code")


# What follows is traced as the user's own code is, so its closures hold nothing but what it needs.


def _cotangents(fun: Fun, numbers: tuple[int, ...]) -> Fun:
    def call(*args: Any) -> Any:
        *primals, ct = args
        return _value_and_vjp(_moving(fun, numbers, primals), ct, *[primals[k] for k in numbers])

    return call


def _cotangents_and_aux(fun: Fun, numbers: tuple[int, ...]) -> Fun:
    def call(*args: Any) -> Any:
        *primals, ct = args
        return _value_and_vjp(_moving(fun, numbers, primals), ct, *[primals[k] for k in numbers], has_aux=True)

    return call


def _moving(fun: Fun, numbers: tuple[int, ...], primals: Sequence[Any]) -> Fun:
    """The function of the differentiated arguments alone."""

    def call(*some: Any) -> Any:
        every = list(primals)
        for k, x in zip(numbers, some):
            every[k] = x
        return fun(*every)

    return call


def _with_tangents(applied: Applied, step: Step) -> Applied:
    numbers = _numbers(step, applied.arguments, applied.names)
    names = list(applied.names)
    for k in numbers:
        names.append(_fresh(f"t_{applied.names[k]}", names))
    tangents = tuple(map_leaves(lambda leaf: Leaf(leaf.type, leaf.weak, stored=leaf.stored), applied.arguments[k])
                     for k in numbers)
    if step.kind == "hvp":
        one = isinstance(step.options.get("argnums", 0 if len(numbers) == 1 else ()), int)
        make = _product if one else _products
    else:
        make = _tangent_and_aux if step.options.get("has_aux") else _tangent
    call = _named(make(applied.callable, numbers), names)
    return Applied(call, (*applied.arguments, *tangents), tuple(names), step.kind, numbers)


def _tangent(fun: Fun, numbers: tuple[int, ...]) -> Fun:
    def call(*args: Any) -> Any:
        primals, tangents = args[:-len(numbers)], args[-len(numbers):]
        return gradsmith.jvp(_moving(fun, numbers, primals), tuple([primals[k] for k in numbers]), tangents)

    return call


def _tangent_and_aux(fun: Fun, numbers: tuple[int, ...]) -> Fun:
    def call(*args: Any) -> Any:
        primals, tangents = args[:-len(numbers)], args[-len(numbers):]
        moving = _moving(fun, numbers, primals)
        return gradsmith.jvp(moving, tuple([primals[k] for k in numbers]), tangents, has_aux=True)

    return call


def _products(fun: Fun, numbers: tuple[int, ...]) -> Fun:
    def call(*args: Any) -> Any:
        primals, tangents = args[:-len(numbers)], args[-len(numbers):]
        return gradsmith.hvp(_moving(fun, numbers, primals), tuple([primals[k] for k in numbers]), tangents)

    return call


def _product(fun: Fun, numbers: tuple[int, ...]) -> Fun:
    def call(*args: Any) -> Any:
        (product,) = _products(fun, numbers)(*args)
        return product

    return call


def _named(call: Fun, names: Sequence[str]) -> Fun:
    """Give the function the parameter names that its arguments shall have."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return call


def _fresh(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _result_of(applied: Applied) -> Tree:
    """The result's tree with Leafs of its types."""
    traced = trace(applied.callable, applied.arguments)
    leaves = [Leaf(r.type) for r in traced.func.returned]
    half = half_of_all(leaves_of(applied.arguments))

    def leaf(node: LeafNode, made: Leaf) -> Leaf:
        weak = node.weak is not None
        return Leaf(made.type, weak, stored=half if made.type.dtype == "float32" and not weak else None)

    def refuse(cls: type, names: Sequence[str], parts: Sequence[Any]) -> Any:
        raise error("E406", f"vjp of a function that returns a {cls.__name__}",
                    help="return a tuple or a dict of its fields")

    found = build(traced.out_tree, leaves, leaf, refuse)
    if not leaves_of(found):
        raise error("E406", "vjp of a function whose result is a constant")
    return found
