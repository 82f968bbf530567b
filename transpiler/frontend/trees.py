"""Containers of abstract values taken apart into run-time leaves and a structure, and put together again.

The structure also builds the Python result from what the compiled function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.build import size_value
from ..ir.dims import DimExpr
from ..ir.nodes import Const, Value, Var
from ..ops.base import RuleError
from ..ops.spelling import Weak, as_value, python_type
from . import iteration
from .masked import elements
from .values import ArrayRef, Instance, Masked, OpaqueText, OuterDict, OuterList


@dataclass(frozen=True)
class LeafNode:
    """One run-time leaf.  weak: the Python type it has (bool, int, float, complex), None for NumPy's.

    like: tells arrays ("array") from NumPy scalars ("scalar") and Python's ("weak").
    """

    like: str
    weak: type | None = None


@dataclass(frozen=True)
class StaticNode:
    """A part known while transpiling."""

    value: Any


@dataclass(frozen=True)
class TreeNode:
    """A container.  kind: tuple, list, dict, namedtuple or object.  keys: of a dict, or names of an object's
    attributes."""

    kind: str
    cls: type
    keys: tuple[Any, ...]
    children: tuple[Structure, ...]


Structure = LeafNode | StaticNode | TreeNode


def flatten(value: Any, *, sizes_are_static: bool = False) -> tuple[list[Any], Structure]:
    """Run-time leaves in order (IR values, ArrayRef, Weak), and what they stood in.

    Sizes become Weak ints, unless they are asked to stay as they are.  Known arrays become leaves too, so that every
    caller gets an array of its own.
    """
    leaves: list[Any] = []
    if sizes_are_static:
        return leaves, _flatten(value, leaves)
    return leaves, _flatten(_sizes_as_values(value), leaves)


def _sizes_as_values(value: Any) -> Any:
    if isinstance(value, DimExpr):
        return Weak(size_value(value))
    if isinstance(value, Instance):
        return Instance(value.cls, {k: _sizes_as_values(v) for k, v in value.fields.items()})
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(map(_sizes_as_values, value))
    if type(value) in (tuple, list):
        return type(value)(map(_sizes_as_values, value))
    if type(value) is dict:
        return {k: _sizes_as_values(v) for k, v in value.items()}
    return value


def _flatten(value: Any, leaves: list[Any]) -> Structure:
    if isinstance(value, ArrayRef):
        leaves.append(value)
        return LeafNode("array")
    if isinstance(value, (Var, Const)):
        leaves.append(value)
        return LeafNode("array" if value.rank else "scalar")
    if isinstance(value, Weak):
        leaves.append(value)
        return LeafNode("weak", python_type(value))
    if isinstance(value, OpaqueText):
        raise RuleError("text made of run-time values cannot be returned", code="E111", kind=NotImplementedError,
                        help="return the values, and format them outside")
    if isinstance(value, Masked):
        return _flatten(elements(value), leaves)
    if isinstance(value, Instance):
        from .grown import is_grown
        if is_grown(value):
            raise RuleError("a list whose length is known only at run time cannot be returned", code="E111",
                            kind=NotImplementedError, help="return it as an array: `np.array(values)`")
        parts = tuple(_flatten(v, leaves) for v in value.fields.values())
        return TreeNode("object", value.cls, tuple(value.fields), parts)
    if isinstance(value, tuple):
        kind = "namedtuple" if hasattr(value, "_fields") else "tuple"
        return _node(kind, type(value), (), value, leaves)
    if isinstance(value, list):
        return _node("list", list if isinstance(value, OuterList) else type(value), (), value, leaves)
    if isinstance(value, dict):
        cls = value.cls if isinstance(value, OuterDict) else type(value)
        return _node("dict", cls, tuple(value), value.values(), leaves)
    return StaticNode(value)


def _node(kind: str, cls: type, keys: tuple[Any, ...], parts: Any, leaves: list[Any]) -> Structure:
    children = tuple(_flatten(v, leaves) for v in parts)
    if all(isinstance(c, StaticNode) for c in children) and kind == "tuple" and children:
        return StaticNode(tuple(c.value for c in children))          # type: ignore[union-attr]
    return TreeNode(kind, cls, keys, children)


def refuse_inner(structure: Structure) -> None:
    """RuleError where a result is something that only the interpreter knows: a function made inside, an iterator."""
    if isinstance(structure, TreeNode):
        for child in structure.children:
            refuse_inner(child)
    elif isinstance(structure, StaticNode):
        for value in structure.value if type(structure.value) is tuple else (structure.value,):
            if type(value).__module__.startswith(f"{__package__}."):
                made = isinstance(value, (iteration.DimRange, iteration.Iterator))
                raise RuleError(f"{'an iterator' if made else 'a function made inside'} cannot be returned",
                                code="E111", kind=NotImplementedError,
                                help="return its elements in a list or an array" if made else
                                "return what it gives, or make it outside of the function")


def leaf_values(leaves: Sequence[Any]) -> list[Value]:
    """The leaves as IR values."""
    return [leaf.read() if isinstance(leaf, ArrayRef) else leaf.value if isinstance(leaf, Weak) else as_value(leaf)
            for leaf in leaves]


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The abstract value again.  IR values among the leaves become what the structure says they were."""
    return build(structure, leaves, _abstract_leaf, _abstract_object)


def _abstract_leaf(node: LeafNode, leaf: Any) -> Any:
    if not isinstance(leaf, (Var, Const)):
        return leaf
    if node.like == "array" and leaf.rank:
        return ArrayRef(leaf)
    return Weak(leaf) if node.like == "weak" else leaf


def _abstract_object(cls: type, names: Sequence[str], parts: Sequence[Any]) -> Instance:
    return Instance(cls, dict(zip(names, parts)))


def rebuild(structure: Structure, results: Sequence[Any]) -> Any:
    """The Python result out of the flat results of the compiled function."""
    return build(structure, results, _python_leaf, python_object)


def _python_leaf(node: LeafNode, result: Any) -> Any:
    if node.weak is not None:
        return node.weak(result)
    if node.like == "array" or not isinstance(result, np.ndarray):
        return result
    return result[()]


def python_object(cls: type, names: Sequence[str], parts: Sequence[Any]) -> Any:
    """An object of the user's class, without running its `__init__`."""
    made: Any = object.__new__(cls)
    for name, part in zip(names, parts):
        object.__setattr__(made, name, part)       # also into frozen dataclasses
    return made


def build(structure: Structure, leaves: Sequence[Any], leaf: Callable[[LeafNode, Any], Any],
          make_object: Callable[[type, Sequence[str], Sequence[Any]], Any]) -> Any:
    """Put a tree together; `leaf` and `make_object` say of what."""
    pending = iter(leaves)
    result = _build(structure, pending, leaf, make_object)
    if next(pending, pending) is not pending:
        raise ValueError("more leaves than the structure has places")
    return result


def _build(node: Structure, pending: Iterator[Any], leaf: Callable[[LeafNode, Any], Any],
           make_object: Callable[[type, Sequence[str], Sequence[Any]], Any]) -> Any:
    if isinstance(node, LeafNode):
        return leaf(node, next(pending))
    if isinstance(node, StaticNode):
        return node.value
    parts = [_build(child, pending, leaf, make_object) for child in node.children]
    if node.kind == "object":
        return make_object(node.cls, node.keys, parts)
    if node.kind == "dict":
        if node.cls is dict:
            return dict(zip(node.keys, parts))
        made: Any = node.cls.__new__(node.cls)             # type: ignore[call-overload]
        for key, part in zip(node.keys, parts):
            made[key] = part
        return made
    if node.kind == "namedtuple":
        return node.cls._make(parts)               # type: ignore[attr-defined]
    return node.cls(parts)


def leaf_count(structure: Structure) -> int:
    if isinstance(structure, LeafNode):
        return 1
    return sum(map(leaf_count, structure.children)) if isinstance(structure, TreeNode) else 0
