"""Batching called on abstract values: vmap, and the Jacobians and Hessians that are vmaps of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import ops
from ..errors import RuleError
from ..ir.build import const
from ..ir.dims import product
from ..ir.nodes import Func, Value, Var
from ..ir.types import Type
from ..ir.walk import inline
from ..ops.spelling import as_value, axis_of
from ..report import Report
from ..transforms.jvp import jvp
from ..transforms.vjp import vjp
from ..transforms.vmap import vmap
from .derivative_calls import scalar_pair
from .transform_tracing import Traced, chosen, options_of, packed, parts_of, positional, trace_call
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


def jacobian_call(kind: str) -> Callable[..., Any]:
    def call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
        options = options_of(value, ("argnums", "has_aux"), {"argnums": 0, "has_aux": False, "holomorphic": False,
                                                             "chunk": None})
        argnums = options["argnums"]
        args, kwargs = positional(value.fun, args, kwargs)
        numbers = chosen(interpreter, value.fun, args, kwargs, argnums, kind)
        traced = trace_call(interpreter, value.fun, args, kwargs, numbers, kind)
        interpreter.at(loc)
        out, aux = (scalar_pair(traced.out) if options["has_aux"] else (traced.out, None))
        count = leaf_count(out)
        rows = (_columns if kind == "jacfwd" else _rows)(traced, count, interpreter.report)   # [result][wanted input]

        def with_structure(row: Sequence[Value]) -> Any:
            trees = dict(zip(sorted(set(numbers)), parts_of([arrays(s) for s in traced.structures], row)))
            return packed([trees[k] for k in numbers], argnums)

        def of_number() -> Any:
            return with_structure([const(0, x.type) for x, w in zip(traced.inputs, traced.wanted, strict=True) if w])

        jacobian = _with_parts(out, list(map(with_structure, rows)), of_number)
        if aux is None:
            return jacobian
        values = inline(traced.func, traced.inputs)
        return jacobian, unflatten(aux, list(values[count:]))

    return call


def _with_parts(out: Structure, parts: list[Any], of_number: Callable[[], Any]) -> Any:
    """The result's structure with a Jacobian at each leaf; of_number: that of a number known while transpiling."""
    if isinstance(out, LeafNode):
        return parts.pop(0)
    if isinstance(out, StaticNode):
        return _constant_parts(out.value, of_number)
    children = [_with_parts(c, parts, of_number) for c in out.children]
    if out.kind == "dict":
        return dict(zip(out.keys, children))
    return tuple(children) if out.kind in ("tuple", "namedtuple") else children


def _constant_parts(value: Any, of_number: Callable[[], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_constant_parts(v, of_number) for v in value)
    if type(value) is dict:
        return {key: _constant_parts(v, of_number) for key, v in value.items()}
    is_number = isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)
    return of_number() if is_number else value


def _basis(type: Type) -> Value:
    """All unit vectors of a type, stacked along a new first axis."""
    size = product(type.shape)
    if not type.shape:
        return const(1, Type(type.dtype, (1,)))
    grid = (size, size)
    rows = ops.iota(shape=grid, axis=0, dtype="int64")
    columns = ops.iota(shape=grid, axis=1, dtype="int64")
    return ops.reshape(ops.convert(ops.equal(rows, columns), dtype=type.dtype), shape=(size, *type.shape))


def _columns(traced: Traced, count: int, report: Report | None) -> list[list[Value]]:
    """Forward: one vmap of jvp over the unit tangents of each wanted input."""
    table: list[list[Value]] = [[] for _ in range(count)]
    for k, (x, wanted) in enumerate(zip(traced.inputs, traced.wanted, strict=True)):
        if not wanted:
            continue
        only = [j == k for j in range(len(traced.inputs))]
        moved = jvp(traced.func, only, report=report)
        size = product(x.shape)
        mapped = vmap(moved, [*[False] * len(traced.inputs), True], size, report=report)
        values = list(inline(mapped, (*traced.inputs, _basis(x.type))))[len(traced.func.results):]
        for row, slope, result in zip(table, _stacked(traced.func, values, size), traced.func.results):
            order = (*range(1, slope.rank), 0)
            row.append(ops.reshape(ops.transpose(slope, axes=order) if slope.rank > 1 else slope,
                                   shape=(*result.shape, *x.shape)))
    return table


def _stacked(func: Func, slopes: list[Value], size: Any) -> list[Value]:
    return [slopes.pop(0) if r.type.is_inexact else const(0, Type("float64", (size, *r.shape)))
            for r in func.results]


def _rows(traced: Traced, count: int, report: Report | None) -> list[list[Value]]:
    """Reverse: one vmap of vjp over the unit cotangents of each result."""
    pulled = vjp(traced.func, traced.wanted, report=report)
    results = traced.func.results
    inexact = [k for k, r in enumerate(results) if r.type.is_inexact]     # one value may be several results
    table: list[list[Value]] = []
    for at, result in enumerate(results[:count]):
        wanted = traced.wanted_inputs()
        if not result.type.is_inexact:
            table.append([const(0, Type(x.dtype, (*result.shape, *x.shape))) for x in wanted])
            continue
        size = product(result.shape)
        flags = [k == at for k in inexact]
        cts = [_basis(result.type) if k == at else const(0, results[k].type) for k in inexact]
        mapped = vmap(pulled, [*[False] * len(traced.inputs), *flags], size, report=report)
        values = list(inline(mapped, (*traced.inputs, *cts)))[len(results):]
        table.append([ops.reshape(v, shape=(*result.shape, *x.shape)) if v.shape != (*result.shape, *x.shape) else v
                      for v, x in zip(values, wanted, strict=True)])
    return table


def hessian_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    inner = TransformValue("jacrev", value.fun, value.args, value.kwargs)
    outer = TransformValue("jacfwd", inner, value.args, value.kwargs)
    return jacobian_call("jacfwd")(interpreter, outer, args, kwargs, loc)
