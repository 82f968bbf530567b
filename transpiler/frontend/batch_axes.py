"""`in_axes` and `out_axes` of vmap, and the size of the batch that they lead to.

Axes are an int, None, or a tree of them that begins like what it describes: an entry stands for all that is below it.
As in JAX, `in_axes` has one entry for each positional argument, and keyword arguments have their batch in front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.dims import DimExpr, shown_shape
from ..ir.types import Type
from ..ops.base import RuleError
from ..ops.spelling import describe
from .trees import LeafNode, StaticNode, Structure, TreeNode
from .values import Instance, TransformValue

NUMBERS = (bool, int, float, complex, np.number, np.bool_, DimExpr)


@dataclass(frozen=True)
class Place:
    """A leaf of the arguments or results: how Python reaches it, its axis, and the number that it is, if known."""

    path: str
    axis: int | None
    number: Any = None


def entries(in_axes: Any, count: int) -> list[Any]:
    """One entry of `in_axes` for each positional argument."""
    if _is_axis(in_axes):
        return [in_axes] * count
    if not isinstance(in_axes, (tuple, list)):
        raise _unfit(f"vmap in_axes must be an int, None, or a tuple with one entry for each positional argument, not "
                     f"{describe(in_axes)}", TypeError)
    if len(in_axes) != count:
        raise _unfit(f"vmap in_axes has {len(in_axes)} entries for {count} positional argument{'s' * (count != 1)}")
    return list(in_axes)


def tells_keywords(fun: Any) -> bool:
    """Whether `fun` has a batch whose `in_axes` say of positional arguments something else than what holds for keyword
    arguments: that their batch is in front."""
    while True:
        if isinstance(fun, TransformValue):
            kind, inner, args, kwargs = fun.kind, fun.fun, fun.args, fun.kwargs
        elif hasattr(fun, "__gradsmith_transformed__"):
            kind, inner, args, kwargs = fun.__gradsmith_transformed__
        else:
            return False
        if kind == "vmap":
            in_axes = args[0] if args else kwargs.get("in_axes", 0)
            if not _is_axis(in_axes) or in_axes != 0:
                return True
        fun = inner


def places(axes: Any, structure: Structure, path: str, option: str) -> Iterator[Place]:
    """The leaves, and the numbers that are known while transpiling, with their axes."""
    if _is_axis(axes):
        yield from _all_at(None if axes is None else int(axes), structure, path)
        return
    parts = _children(structure, path)
    if parts is None:
        raise _unfit(f"vmap {option} has {_shown(axes)} for {path}, which is no container")
    given = _entries_of(axes, structure)
    if given is None:
        raise _unfit(f"vmap {option} must have the structure of what it describes, but has {_shown(axes)} for {path}, "
                     f"which is {_a_container(structure)}")
    for axis, (part, child) in zip(given, parts, strict=True):
        yield from places(axis, child, part, option)


def front_axis(place: Place, type: Type, option: str = "in_axes") -> int:
    """The axis, counted from the front.  ValueError where the array has none such."""
    rank = type.rank
    assert place.axis is not None
    if not -rank <= place.axis < rank:
        what = "which is a scalar" if not rank else f"which has {rank} {'axis' if rank == 1 else 'axes'} " \
            f"(its shape is {shown_shape(type.shape)})"
        raise _unfit(f"vmap {option} names axis {place.axis} of {place.path}, {what}",
                     help="give None in in_axes for it" if option == "in_axes" else "")
    return place.axis % rank


class BatchSize:
    """The size that all batched arguments must have in common."""

    def __init__(self, interpreter: Any, wanted: Any) -> None:
        self.interpreter = interpreter
        self.size = None if wanted is None else interpreter.dimension(wanted, "axis_size of vmap")
        self.origin = "axis_size"

    def agree(self, found: Any, place: Place) -> None:
        """One more argument, whose size along its axis is `found`."""
        origin = f"axis {place.axis} of {place.path}"
        if self.size is None:
            self.size, self.origin = found, origin
        elif self.size != found and not self.interpreter.assumptions.are_equal(self.size, found):
            sizes = [shown_shape((d,))[1:-2] for d in (self.size, found)]
            raise RuleError(f"vmap got inconsistent sizes for its batch: {self.origin} is {sizes[0]}, {origin} is "
                            f"{sizes[1]}", code="E408", kind=ValueError)

    def known(self) -> Any:
        if self.size is None:
            raise RuleError("vmap has nothing to map over: all of in_axes is None", code="E407", kind=ValueError,
                            help="name an axis of at least one argument, or give axis_size=")
        return self.size


def _is_axis(axes: Any) -> bool:
    return axes is None or (isinstance(axes, (int, np.integer)) and not isinstance(axes, bool))


def _all_at(axis: int | None, structure: Structure, path: str) -> Iterator[Place]:
    if isinstance(structure, LeafNode) or (isinstance(structure, StaticNode) and isinstance(structure.value, NUMBERS)):
        yield Place(path, axis, structure.value if isinstance(structure, StaticNode) else None)
    for part, child in _children(structure, path) or ():
        yield from _all_at(axis, child, part)


def _children(structure: Structure, path: str) -> list[tuple[str, Structure]] | None:
    """The parts of a container with their paths; None for what is none."""
    if isinstance(structure, StaticNode):
        value = structure.value
        if isinstance(value, dict):
            return [(f"{path}[{k!r}]", StaticNode(v)) for k, v in value.items()]
        if isinstance(value, (tuple, list)):
            return [(f"{path}[{k}]", StaticNode(v)) for k, v in enumerate(value)]
        return None
    if isinstance(structure, LeafNode):
        return None
    names = getattr(structure.cls, "_fields", structure.keys)
    if structure.kind in ("namedtuple", "object"):
        return [(f"{path}.{name}", child) for name, child in zip(names, structure.children)]
    keys = structure.keys if structure.kind == "dict" else range(len(structure.children))
    return [(f"{path}[{key!r}]", child) for key, child in zip(keys, structure.children)]


def _entries_of(axes: Any, structure: Structure) -> list[Any] | None:
    """The axes of each part, in the order of the parts; None where they do not fit."""
    keys: Sequence[Any] | None = None
    if isinstance(structure, StaticNode):
        count = len(structure.value)
        keys = tuple(structure.value) if isinstance(structure.value, dict) else None
    else:
        assert isinstance(structure, TreeNode)
        count = len(structure.children)
        keys = structure.keys if structure.kind in ("dict", "object") else None
    if keys is not None:
        known = axes.fields if isinstance(axes, Instance) else axes if isinstance(axes, Mapping) else vars(axes) if (
            isinstance(structure, TreeNode) and isinstance(axes, structure.cls)) else None
        return [known[k] for k in keys] if known is not None and set(known) == set(keys) else None
    return list(axes) if isinstance(axes, (tuple, list)) and len(axes) == count else None


def _shown(axes: Any) -> str:
    return repr(axes) if isinstance(axes, (tuple, list, dict, str, float, bool)) else describe(axes)


def _a_container(structure: Structure) -> str:
    if isinstance(structure, StaticNode):
        return f"a {type(structure.value).__name__} of {len(structure.value)}"
    assert isinstance(structure, TreeNode)
    if structure.kind == "dict":
        return f"a dict with the keys {', '.join(map(repr, structure.keys))}"
    return f"a {structure.cls.__name__} of {len(structure.children)}"


def _unfit(message: str, kind: type[Exception] = ValueError, help: str | None = None) -> RuleError:
    return RuleError(message, code="E407", kind=kind, help=help)

