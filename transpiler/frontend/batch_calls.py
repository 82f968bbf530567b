"""Batching called on abstract values: vmap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import ops
from ..errors import RuleError
from ..ir.build import const
from ..ir.nodes import Func, Value, Var
from ..ir.types import Type
from ..ir.walk import inline
from ..ops.spelling import as_value
from ..transforms.batch_dependence import Dependence, Parts, parting
from ..transforms.vmap import vmap
from .batch_axes import NUMBERS, BatchSize, Place, entries, front_axis, places
from .common_sizes import with_common_sizes
from .transform_tracing import argument_names, options_of
from .trees import LeafNode, StaticNode, Structure, TreeNode, flatten, unflatten
from .values import ArrayRef, TransformValue

OPTIONS = {"in_axes": 0, "out_axes": 0, "axis_name": None, "axis_size": None, "spmd_axis_name": None}


def vmap_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    options = options_of(value, ("in_axes", "out_axes", "axis_name", "axis_size"), OPTIONS)
    axes = [*entries(options["in_axes"], len(args)), *[0] * len(kwargs)]
    names = [*argument_names(value.fun, len(args)), *kwargs]
    size = BatchSize(interpreter, options["axis_size"])
    interpreter.has_batches = True
    inner_args, inputs, flags = [], [], []
    for tree, axis, name in zip([*args, *kwargs.values()], axes, names, strict=True):
        lanes, whole, are_batched = _lanes(tree, axis, name, size)
        inner_args.append(lanes)
        inputs += whole
        flags += are_batched
    length = size.known()
    func, out, outer = interpreter.subtrace(value.fun, inner_args[:len(args)],
                                            dict(zip(kwargs, inner_args[len(args):])))
    interpreter.at(loc)
    flags += [False] * len(outer)
    results = list(places(options["out_axes"], out, "the result", "out_axes"))
    told = [place.axis is not None for place in results if place.number is None]
    _refuse_unmapped(func, flags, [place for place in results if place.number is None])
    func, flags, given = with_common_sizes(func, flags, (*inputs, *outer), length)
    with parting(Parts.EVERYWHERE if not interpreter.orders else
                 Parts.NOWHERE if interpreter.branching else Parts.AT_THE_TOP):
        mapped = vmap(func, flags, length, report=interpreter.report, is_told=True, has_axis=told)
    values = iter(inline(mapped, given))
    return unflatten(*_with_axes(out, iter(results), values, length))


def _lanes(tree: Any, axes: Any, name: str, size: BatchSize) -> tuple[Any, list[Value], list[bool]]:
    """An argument for one element of the batch, its leaves with the batch in front, and which of these are batched."""
    leaves, structure = flatten(tree, sizes_are_static=True)
    pending = iter(leaves)
    lanes, inputs, flags = [], [], []
    for place in places(axes, structure, name, "in_axes"):
        if place.number is not None:
            if place.axis is not None:
                front_axis(place, Type("int64"))
            continue
        leaf = next(pending)
        array = leaf.read() if isinstance(leaf, ArrayRef) else as_value(leaf)
        flags.append(place.axis is not None)
        if place.axis is None:
            lanes.append(leaf)
            inputs.append(array)
            continue
        at = front_axis(place, array.type)
        size.agree(array.shape[at], place)
        lane = Type(array.dtype, tuple(d for k, d in enumerate(array.shape) if k != at))
        stand_in = Var(array.name if isinstance(array, Var) else "x", lane)
        size.interpreter.stands[stand_in] = array
        # One element along the first axis of an array in C order is in C order itself.
        order = leaf.layout if isinstance(leaf, ArrayRef) and at == 0 else "A"
        lanes.append(ArrayRef(stand_in, layout=order) if lane.shape else stand_in)
        inputs.append(_axis_to_front(array, at))
    return unflatten(structure, lanes), inputs, flags


def _refuse_unmapped(func: Func, flags: list[bool], results: list[Place]) -> None:
    """out_axes may be None only for what is the same for all elements."""
    if all(place.axis is not None for place in results):
        return
    depends = Dependence(func, flags)
    for place, value in zip(results, func.results, strict=True):
        if place.axis is None and value in depends:
            raise RuleError(f"vmap out_axes is None for {place.path}, which differs from element to element",
                            code="E407", kind=ValueError, help="give it an axis")


def _with_axes(out: Structure, axes: Iterator[Place], leaves: Iterator[Value],
               size: Any) -> tuple[Structure, list[Value]]:
    """The results with their batch axes where they were asked for.  Numbers known while transpiling are results like
    others: the same one for each element."""
    if isinstance(out, TreeNode):
        parts = [_with_axes(c, axes, leaves, size) for c in out.children]
        return (TreeNode(out.kind, out.cls, out.keys, tuple(p for p, _ in parts)),
                [leaf for _, found in parts for leaf in found])
    if isinstance(out, StaticNode) and type(out.value) in (tuple, list, dict):
        inner = out.value.values() if type(out.value) is dict else out.value
        keys = tuple(out.value) if type(out.value) is dict else ()
        children = tuple(map(StaticNode, inner))
        return _with_axes(TreeNode(type(out.value).__name__, type(out.value), keys, children), axes, leaves, size)
    if isinstance(out, StaticNode) and not isinstance(out.value, NUMBERS):
        return out, []
    place = next(axes)
    if place.axis is None:
        return (out, []) if isinstance(out, StaticNode) else (out, [next(leaves)])
    if isinstance(out, StaticNode):
        number: Any = as_value(out.value)
        value: Value = const(number.value, Type(number.dtype, (size,)))
    else:
        value = next(leaves)
    return LeafNode("array"), [_axis_from_front(value, front_axis(place, value.type, "out_axes"))]


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


def _axis_from_front(x: Value, at: int) -> Value:
    order = [*range(1, x.rank)]
    order.insert(at, 0)
    return x if at == 0 else ops.transpose(x, axes=tuple(order))
