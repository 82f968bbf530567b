"""Functions of numbers and arrays in a row that return a tuple of them, and their derivatives and batches as functions
of the same kind: what the rules of other frameworks (`gradsmith.torch`, `gradsmith.jax`) call.

They are short Python programs over the user's function, which are transpiled like any other:

    def loss_flat(a0, a1, a2):                  # the user's arguments, {"w": a1} say, of their leaves
        r = functional(fun)(a0, {'w': a1}, a2)[0]
        return (r[0], r['n'],)

    def loss_flat_pullback(a0, a1, a2, c0):
        def active(a0, a1):
            return fun(a0, a1, a2)
        return vjp(active, a0, a1)[1]((c0,))

So rules of derivatives need no rules of their own, and any order works.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import transforms
from .parted import parted
from .transpiler.errors import error
from .transpiler.frontend.trees import LeafNode, StaticNode, Structure, TreeNode, build, python_object
from .transpiler.ir.dims import substitute
from .transpiler.ir.types import Type

LITERALS = (str, int, bytes)            # keys of dicts that are written as they are


class Flat:
    """A function of `count` leaves that returns a tuple of `results`."""

    def __init__(self, fun: Callable[..., Any], count: int, results: int) -> None:
        self.fun, self.count, self.results = fun, count, results
        self.compiled = transforms.jit(fun)

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        made: tuple[Any, ...] = self.compiled(*leaves)
        return made

    def __repr__(self) -> str:
        return f"<{self.fun.__name__} of {self.count}>"

    @functools.cached_property
    def _params(self) -> list[str]:
        return [f"a{k}" for k in range(self.count)]

    def _derived(self, kind: str, more: Sequence[str], results: int, *lines: str) -> Flat:
        name = f"{self.fun.__name__}_{kind}"
        params = [*self._params, *more]
        fun = written(name, params, lines, fun=self.fun, vjp=transforms.vjp, jvp=transforms.jvp, vmap=transforms.vmap,
                      conj=np.conj)
        return Flat(fun, len(params), results)

    @functools.cache  # noqa: B019  (they live as long as the function)
    def selecting(self, which: tuple[int, ...]) -> Flat:
        """The same function with these results alone."""
        if which == tuple(range(self.results)):
            return self
        picked = "".join(f"r[{k}], " for k in which)
        return self._derived("part", (), len(which), f"r = fun({', '.join(self._params)})", f"return ({picked})")

    @functools.cache  # noqa: B019
    def pullback(self, active: tuple[int, ...], conjugate: bool = False) -> Flat:
        """Of all leaves and a cotangent for each result, to the cotangents of the `active` leaves.

        conjugate: a cotangent is the conjugate of ours, as in PyTorch (it tells of complex numbers only).
        """
        cts = [f"c{k}" for k in range(self.results)]
        mine = ", ".join(self._params[k] for k in active)
        given = "".join(f"conj({c}), " if conjugate else f"{c}, " for c in cts)
        made = "".join(f"conj(d[{k}]), " if conjugate else f"d[{k}], " for k in range(len(active)))
        return self._derived("pullback", cts, len(active), f"def active({mine}):",
                             f"    return fun({', '.join(self._params)})",
                             f"d = vjp(active, {mine})[1](({given}))", f"return ({made})")

    @functools.cache  # noqa: B019
    def pushforward(self, active: tuple[int, ...]) -> Flat:
        """Of all leaves and a tangent for each of the `active` ones, to the tangents of the results."""
        tangents = [f"t{k}" for k in active]
        mine = "".join(f"{self._params[k]}, " for k in active)
        return self._derived("pushforward", tangents, self.results, f"def active({mine[:-2]}):",
                             f"    return fun({', '.join(self._params)})",
                             f"return jvp(active, ({mine}), ({''.join(f'{t}, ' for t in tangents)}))[1]")

    @functools.cache  # noqa: B019
    def batched(self, axes: tuple[int | None, ...]) -> Flat:
        """Over a batch; the results' batch axis is the first."""
        return self._derived("batch", (), self.results, f"return vmap(fun, {axes!r})({', '.join(self._params)})")

    @functools.cache  # noqa: B019
    def kept(self, active: tuple[int, ...]) -> Callable[..., Any]:
        """What returns (results, residuals, `Later`) and so serves one pullback without computing results anew."""
        return parted("vjp", self.fun, False, active)

    def result_types(self, leaves: Sequence[Any]) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
        """The dtypes and shapes of the results, without a call.  TypeError where a shape depends on values."""
        described = self.compiled.described(tuple(leaves), {})
        spec = self.compiled.specialisation(described)
        sizes: dict[str, int] = {}
        for leaf, value in zip(spec.leaves, described.values, strict=True):
            sizes |= {str(dim): size for dim, size in zip(leaf.type.shape, np.shape(value)) if not isinstance(dim, int)}
        return [(result.type.numpy, _shape(result.type, sizes, self)) for result in spec.func.returned]


def _shape(type: Type, sizes: dict[str, int], of: Flat) -> tuple[int, ...]:
    found = []
    for dim in type.shape:
        size = substitute(dim, sizes)
        if not isinstance(size, int):
            raise error("E311", f"a result of {of.fun.__name__} has a size that depends on values", None,
                        kind=TypeError, help="return arrays whose sizes follow from those of the arguments")
        found.append(size)
    return tuple(found)


class Outputs:
    """What a function of leaves returns: its containers, and the flat function that gives its leaves."""

    def __init__(self, called: Callable[..., Any], count: int, example: Sequence[Any]) -> None:
        spec = transforms.jit(called).lower(*example)
        self.structure = spec.trace.out_tree
        paths = list(_paths(self.structure, "r"))
        params = [f"a{k}" for k in range(count)]
        lines = [f"r = fun({', '.join(params)})", f"return ({''.join(f'{p}, ' for p in paths)})"]
        self.flat = Flat(written(f"{called.__name__}_flat", params, lines, fun=called), count, len(paths))

    def rebuilt(self, leaves: Sequence[Any]) -> Any:
        """The user's containers around `leaves`, whatever they are."""
        return build(self.structure, leaves, lambda node, leaf: leaf, python_object)


def _paths(node: Structure, text: str) -> Any:
    """Where the leaves are, as expressions."""
    if isinstance(node, LeafNode):
        yield text
    elif isinstance(node, TreeNode):
        steps = ([f".{key}" for key in node.keys] if node.kind == "object" else
                 [f"[{key!r}]" for key in (node.keys if node.kind == "dict" else range(len(node.children)))])
        for step, child in zip(steps, node.children, strict=True):
            yield from _paths(child, text + step)
    else:
        assert isinstance(node, StaticNode)


def taken_apart(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], str, tuple[Any, ...]]:
    """The leaves of a call's arguments, the text that puts them together again, and the classes in it."""
    leaves: list[Any] = []
    classes: list[Any] = []

    def visit(x: Any) -> str:
        kind = type(x)
        if kind in (tuple, list):
            parts = "".join(f"{visit(v)}, " for v in x)
            return f"({parts})" if kind is tuple else f"[{parts}]"
        if kind is dict and all(type(key) in LITERALS for key in x):
            return "{" + "".join(f"{key!r}: {visit(v)}, " for key, v in x.items()) + "}"
        if isinstance(x, tuple) and hasattr(kind, "_fields"):
            return f"{named(kind)}({''.join(f'{visit(v)}, ' for v in x)})"
        if dataclasses.is_dataclass(kind) and all(f.init for f in dataclasses.fields(kind)):
            fields = "".join(f"{f.name}={visit(getattr(x, f.name))}, " for f in dataclasses.fields(kind))
            return f"{named(kind)}({fields})"
        leaves.append(x)
        return f"a{len(leaves) - 1}"

    def named(cls: Any) -> str:
        classes.append(cls)
        return f"k{len(classes) - 1}"

    text = "".join(f"{visit(x)}, " for x in args) + "".join(f"{name}={visit(x)}, " for name, x in kwargs.items())
    return leaves, text.removesuffix(", "), tuple(classes)


class Trees:
    """A user's function on whatever trees it is called with."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self._calls: dict[Any, Callable[..., Any]] = {}
        self._outputs: dict[Any, Outputs] = {}

    def outputs(self, text: str, classes: tuple[Any, ...], example: Sequence[Any], key: Any) -> Outputs:
        """For arguments such as those that were taken apart.  key: equal for calls with the same result."""
        found = self._outputs.get((text, classes, key))
        if found is None:
            called = self._calls.get((text, classes))
            if called is None:
                name = getattr(self.fun, "__name__", type(self.fun).__name__)
                params = [f"a{k}" for k in range(len(example))]
                objects = {f"k{k}": cls for k, cls in enumerate(classes)}
                called = written(name if name.isidentifier() else "lambda_", params,
                                 [f"return functional(fun)({text})[0]"], fun=self.fun,
                                 functional=transforms.functional, **objects)
                self._calls[text, classes] = called
            found = self._outputs[text, classes, key] = Outputs(called, len(example), example)
        return found


def written(name: str, params: Sequence[str], lines: Sequence[str], **objects: Any) -> Callable[..., Any]:
    """A Python function of this text, whose source Python can show."""
    text = "".join([f"def {name}({', '.join(params)}):\n", *(f"    {line}\n" for line in lines)])
    file = f"<{name} {hashlib.sha256(text.encode()).hexdigest()[:8]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = dict(objects)
    exec(compile(text, file, "exec"), space)        # names are ours, the function's and literals
    made: Callable[..., Any] = space[name]
    return made
