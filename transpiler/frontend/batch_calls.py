"""Batching called on abstract values: vmap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import ops
from ..errors import RuleError
from ..ir.build import const
from ..ir.nodes import Value, Var
from ..ir.types import Type
from ..ir.walk import inline
from ..ops.spelling import as_value, axis_of
from ..transforms.vmap import vmap
from .transform_tracing import options_of
from .trees import LeafNode, StaticNode, Structure, TreeNode, flatten, leaf_count, unflatten
from .values import ArrayRef, TransformValue


def vmap_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    options = options_of(value, ("in_axes", "out_axes"), {"in_axes": 0, "out_axes": 0, "axis_size": None,
                                                          "axis_name": None})
    in_axes = options["in_axes"]
    axes_each = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    if len(axes_each) != len(args):
        raise RuleError(f"vmap in_axes has {len(axes_each)} entries for {len(args)} arguments", code="E407",
                        kind=ValueError)
    size: Any = options["axis_size"]
    inner_args, inputs, flags = [], [], []
    for tree, axes in [*zip(args, axes_each), (kwargs, 0)]:
        leaves, structure = flatten(tree, sizes_are_static=True)
        lanes = []
        for leaf, axis in zip(leaves, axes_for(axes, structure), strict=True):
            array = leaf.read() if isinstance(leaf, ArrayRef) else as_value(leaf)
            if axis is None:
                lanes.append(leaf)
                inputs.append(array)
                flags.append(False)
                continue
            if not array.shape:
                raise RuleError("vmap was asked to map over a scalar argument; axes are for arrays", code="E407",
                                kind=ValueError, help="give None in in_axes for it")
            at = axis_of(axis, array.rank)
            size = _same_size(interpreter, size, array.shape[at])
            lane = Type(array.dtype, tuple(d for k, d in enumerate(array.shape) if k != at))
            hint = array.name if isinstance(array, Var) else "x"
            stand_in = Var(hint, lane)
            lanes.append(ArrayRef(stand_in) if lane.shape else stand_in)
            inputs.append(_axis_to_front(array, at))
            flags.append(True)
        inner_args.append(unflatten(structure, lanes))
    if size is None:
        raise RuleError("vmap needs at least one argument with a batch axis, or axis_size=", code="E407",
                        kind=ValueError)
    func, out, outer = interpreter.subtrace(value.fun, inner_args[:-1], inner_args[-1])
    interpreter.at(loc)
    mapped = vmap(func, (*flags, *[False] * len(outer)), size, report=interpreter.report)
    results = list(inline(mapped, (*inputs, *outer)))
    moved = [_axis_from_front(r, a) for r, a in zip(results, axes_for(options["out_axes"], out), strict=True)]
    return unflatten(*_with_numbers(arrays(out), iter(moved), size))


def _with_numbers(out: Structure, leaves: Iterator[Value], size: Any) -> tuple[Structure, list[Value]]:
    """Numbers known while transpiling are results like others: the same one for each element of the batch."""
    if isinstance(out, LeafNode):
        return out, [next(leaves)]
    if isinstance(out, TreeNode):
        parts = [_with_numbers(c, leaves, size) for c in out.children]
        return (TreeNode(out.kind, out.cls, out.keys, tuple(p for p, _ in parts)),
                [leaf for _, found in parts for leaf in found])
    if isinstance(out.value, (bool, int, float, complex, np.number, np.bool_)):
        number: Any = as_value(out.value)
        return LeafNode("array"), [const(number.value, Type(number.dtype, (size,)))]
    return out, []


def _same_size(interpreter: Any, known: Any, found: Any) -> Any:
    if known is None or known == found:
        return found
    if not interpreter.assumptions.are_equal(known, found):
        raise RuleError(f"vmap got inconsistent sizes for its batch axis: {known} and {found}", code="E408",
                        kind=ValueError)
    return known


def axes_for(axes: Any, structure: Structure) -> list[Any]:
    """One axis (or None) for each leaf; `axes` is an int, None, or a tree that is a prefix of the structure."""
    if isinstance(structure, StaticNode):
        return []
    if axes is None or isinstance(axes, (int, np.integer)) or isinstance(structure, LeafNode):
        return [axes] * leaf_count(structure)
    if isinstance(axes, dict):
        return [a for k, c in zip(structure.keys, structure.children) for a in axes_for(axes[k], c)]
    if len(axes) != len(structure.children):
        raise RuleError("in_axes and out_axes must have the structure of what they describe", code="E407",
                        kind=ValueError)
    return [a for part, c in zip(axes, structure.children) for a in axes_for(part, c)]


def arrays(out: Structure) -> Structure:
    """Leaves that were scalars are arrays after batching."""
    if isinstance(out, LeafNode):
        return LeafNode("array")
    if isinstance(out, TreeNode):
        return TreeNode(out.kind, out.cls, out.keys, tuple(map(arrays, out.children)))
    return out


def _axis_to_front(x: Value, axis: int) -> Value:
    order = (axis, *(k for k in range(x.rank) if k != axis))
    return x if axis == 0 else ops.transpose(x, axes=order)


def _axis_from_front(x: Value, axis: Any) -> Value:
    at = axis_of(axis, x.rank)
    order = [*range(1, x.rank)]
    order.insert(at, 0)
    return x if at == 0 else ops.transpose(x, axes=tuple(order))
