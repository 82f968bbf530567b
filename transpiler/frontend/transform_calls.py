"""Transforms called inside interpreted code, and at its top: grad, vjp, jvp, ... on abstract values.

The function under the transform is traced into a func of its own (`Interpreter.subtrace`); values of the surrounding
code that it reads are params of that func, so perturbations of different transforms cannot be confused.  The
transformed func is then put in place, and equal statements of primal and derivative become one later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ops
from ..errors import RuleError
from ..ir.build import const
from ..ir.dims import product
from ..ir.nodes import Func, Value, Var
from ..ir.types import Type
from ..ir.walk import inline
from ..ops.spelling import Weak, as_value, axis_of, cast, describe, python_type
from ..transforms.jvp import jvp
from ..transforms.vjp import vjp
from ..transforms.vmap import vmap
from .trees import LeafNode, StaticNode, Structure, TreeNode, flatten, leaf_count, leaf_values, unflatten
from .values import ArrayRef, TransformValue

IMMEDIATE = frozenset({"vjp", "jvp", "linearize", "hvp"})      # called with the function and its arguments at once


def make_transform(interpreter: Any, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any], loc: Any) -> Any:
    """`gradsmith.kind(*args, **kwargs)` in interpreted code."""
    if not args and kind not in IMMEDIATE:
        return TransformValue(kind, None, (), kwargs)
    if kind in IMMEDIATE:
        return CALLS[kind](interpreter, args[0], args[1:], kwargs, loc)
    return TransformValue(kind, args[0], args[1:], kwargs)


def call_transform(interpreter: Any, value: TransformValue, args: tuple[Any, ...], kwargs: dict[str, Any],
                   loc: Any) -> Any:
    """Call what a transform gave."""
    if value.fun is None and value.kind not in ("pullback", "pushforward"):      # grad(argnums=1)(f)
        return TransformValue(value.kind, args[0], (*value.args, *args[1:]), {**value.kwargs, **kwargs})
    if value.kind in IMMEDIATE:
        return CALLS[value.kind](interpreter, value.fun, (*value.args, *args), {**value.kwargs, **kwargs}, loc)
    call = CALLS.get(value.kind)
    if call is None:
        raise RuleError(f"gradsmith.{value.kind} is not supported inside transpiled code", code="E204",
                        kind=NotImplementedError)
    return call(interpreter, value, args, kwargs, loc)


# ---------------------------------------------------------------------------------------------------------------
# what the kinds share


@dataclass(frozen=True)
class Traced:
    """The traced function: `func`'s params are the arguments' run-time leaves, then `outer` values."""

    func: Func
    out: Structure
    inputs: tuple[Value, ...]
    wanted: tuple[bool, ...]             # which params are leaves of the wanted arguments
    structures: tuple[Structure, ...]    # of the wanted arguments

    def wanted_inputs(self) -> list[Value]:
        return [v for v, w in zip(self.inputs, self.wanted, strict=True) if w]


def numbers_of(argnums: Any, count: int, kind: str) -> tuple[int, ...]:
    """argnums, an int or a tuple or list of ints, as non-negative positions."""
    many = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    found = []
    for number in many:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise RuleError(f"argnums of {kind} must be an int or a tuple of ints, not {describe(number)}",
                            code="E402", kind=TypeError)
        if not -count <= number < count:
            raise RuleError(f"argnums of {kind} names argument {number}, but the call has {count} positional "
                            f"argument{'s' if count != 1 else ''}", code="E402", kind=ValueError)
        found.append(int(number) % count)
    return tuple(found)


def differentiable(value: Any, name: str, kind: str) -> Any:
    """An argument with every number in it as a run-time value; an error for what has no derivative."""
    leaves, structure = flatten(value)
    for leaf in leaves:
        dtype = leaf.value.dtype if isinstance(leaf, Weak) else leaf.dtype
        if np.dtype(dtype).kind not in "fc":
            text = _type_text(leaf, dtype)
            raise RuleError(f"{kind} with respect to {name}, which is {text}: only float and complex values have "
                            "derivatives", code="E401", kind=TypeError, help=_advice(leaf, name))
    return unflatten(_lifted(structure, name, kind), [v for v in _with_numbers(structure, leaves)])


def _type_text(leaf: Any, dtype: str) -> str:
    weak = python_type(leaf)
    if weak is not None:
        return f"a Python {weak.__name__}"
    return f"of dtype {dtype}" if not isinstance(leaf, ArrayRef) else f"an array of dtype {dtype}"


def _advice(leaf: Any, name: str) -> str:
    if python_type(leaf) is int:
        return f"pass a float, for example 2.0 instead of 2, or leave {name} out of argnums"
    return f"convert it with .astype(float), or leave {name} out of argnums"


def _lifted(structure: Structure, name: str, kind: str) -> Structure:
    """Static floats become leaves; other static parts are refused."""
    if isinstance(structure, LeafNode):
        return structure
    if isinstance(structure, StaticNode):
        value = structure.value
        if isinstance(value, (tuple, list)) and value:
            parts = tuple(_lifted(StaticNode(v), name, kind) for v in value)
            return TreeNode("tuple" if isinstance(value, tuple) else "list", type(value), (), parts)
        if value is None or (isinstance(value, (tuple, list, dict)) and not value):
            return structure
        if isinstance(value, (float, complex, np.inexact)):
            return LeafNode("weak", type(value)) if type(value) in (float, complex) else LeafNode("scalar")
        raise RuleError(f"{kind} with respect to {name}, which is a {type(value).__name__}: only float and complex "
                        "values have derivatives", code="E401", kind=TypeError, help=_advice(value, name))
    return TreeNode(structure.kind, structure.cls, structure.keys,
                    tuple(_lifted(c, name, kind) for c in structure.children))


def _with_numbers(structure: Structure, leaves: Sequence[Any]) -> list[Any]:
    """The leaves, with static floats as constants in their places."""
    rest = list(leaves)

    def visit(node: Structure) -> list[Any]:
        if isinstance(node, LeafNode):
            return [rest.pop(0)]
        if isinstance(node, StaticNode):
            value = node.value
            if isinstance(value, (tuple, list)):
                return [x for v in value for x in visit(StaticNode(v))]
            if isinstance(value, (float, complex, np.inexact)):
                number = as_value(value)
                return [Weak(number) if type(value) in (float, complex) else number]
            return []
        return [x for c in node.children for x in visit(c)]

    return visit(structure)


def trace_call(interpreter: Any, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[int],
               kind: str) -> Traced:
    """Trace `fun(*args, **kwargs)`; arguments `numbers` are differentiated."""
    names = _argument_names(fun, len(args))
    new = [differentiable(a, names[k], kind) if k in numbers else a for k, a in enumerate(args)]
    func, out, outer = interpreter.subtrace(fun, new, kwargs)
    inputs: list[Value] = []
    owner: list[int] = []
    structures: dict[int, Structure] = {}
    for k, arg in enumerate(new):
        leaves, structure = flatten(arg, sizes_are_static=True)
        structures[k] = structure
        inputs += leaf_values(leaves)
        owner += [k] * len(leaves)
    extra, _ = flatten(kwargs, sizes_are_static=True)
    inputs += leaf_values(extra)
    wanted = [o in numbers for o in owner] + [False] * (len(extra) + len(outer))
    order = tuple(dict.fromkeys(numbers))
    return Traced(func, out, (*inputs, *outer), tuple(wanted), tuple(structures[k] for k in order))


def _argument_names(fun: Any, count: int) -> list[str]:
    """The names of the positional parameters, for messages."""
    code = getattr(fun, "__code__", None) or getattr(getattr(fun, "py_func", None), "__code__", None)
    node = getattr(fun, "node", None)
    known: list[str] = []
    if code is not None:
        known = list(code.co_varnames[:code.co_argcount])
    elif node is not None:
        known = [a.id for a in (*node.args.posonlyargs, *node.args.args)]
    return (known + [f"argument {k}" for k in range(len(known), count)])[:count]


def scalar_result(traced: Traced, kind: str, has_aux: bool) -> tuple[Structure, Structure | None]:
    """Check that the result is one real number; the structures of the result and of aux."""
    out, aux = traced.out, None
    if has_aux:
        if isinstance(out, StaticNode) and isinstance(out.value, tuple) and len(out.value) == 2:
            out, aux = StaticNode(out.value[0]), StaticNode(out.value[1])
        elif isinstance(out, TreeNode) and out.kind == "tuple" and len(out.children) == 2:
            out, aux = out.children
        else:
            raise RuleError(f"{kind} with has_aux=True needs a function that returns a pair (value, aux)",
                            code="E405", kind=TypeError)
    if isinstance(out, StaticNode) and isinstance(out.value, (int, float)):
        return out, aux
    if not isinstance(out, LeafNode):
        help = "return (value, aux) with has_aux=True, or pick one number" if isinstance(out, TreeNode) else None
        raise RuleError(f"{kind} needs a function that returns one number, not a {_out_text(out)}", code="E403",
                        kind=TypeError, help=help)
    type = traced.func.results[0].type
    if (type.shape and any(d != 1 for d in type.shape)) or type.shape:
        raise RuleError(f"{kind} needs a function that returns one number, not an array of shape "
                        f"({', '.join(map(str, type.shape))}{',' if type.rank == 1 else ''})", code="E403",
                        kind=TypeError, help="sum the result, or use gradsmith.jacrev or gradsmith.vjp")
    return out, aux


def _out_text(out: Structure) -> str:
    return out.kind if isinstance(out, TreeNode) else type(out.value).__name__ if isinstance(out, StaticNode) else "leaf"


def packed(parts: Sequence[Any], argnums: Any) -> Any:
    """One derivative for an int argnums, else a tuple of them."""
    return tuple(parts) if isinstance(argnums, (tuple, list)) else parts[0]


def parts_of(structures: Sequence[Structure], values: Sequence[Value]) -> list[Any]:
    """Split flat values into trees."""
    found, at = [], 0
    for structure in structures:
        count = leaf_count(structure)
        found.append(unflatten(structure, list(values[at:at + count])))
        at += count
    return found


def options_of(value: TransformValue, names: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    """Positional and keyword options of a transform; TypeError for unknown ones."""
    found = dict(defaults)
    found.update(zip(names, value.args))
    for name, option in value.kwargs.items():
        if name not in defaults:
            raise RuleError(f"gradsmith.{value.kind}() has no option {name!r}", code="E402", kind=TypeError)
        found[name] = option
    return found


# ---------------------------------------------------------------------------------------------------------------
# the kinds


def _jit(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    return interpreter.call(value.fun, args, kwargs, loc)


def _gradient(with_value: bool) -> Callable[..., Any]:
    def call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
        options = options_of(value, ("argnums", "has_aux"), {"argnums": 0, "has_aux": False, "holomorphic": False,
                                                             "allow_int": False})
        argnums, has_aux = options["argnums"], options["has_aux"]
        args, kwargs = positional(value.fun, args, kwargs)
        numbers = numbers_of(argnums, len(args), value.kind)
        traced = trace_call(interpreter, value.fun, args, kwargs, numbers, value.kind)
        interpreter.at(loc)
        out, aux = scalar_result(traced, value.kind, has_aux)
        results = traced.func.results
        if isinstance(out, LeafNode) and results[0].type.is_inexact:
            if results[0].type.kind == "c" and not options["holomorphic"]:
                raise RuleError(f"{value.kind} of a function with a complex result", code="E404", kind=TypeError,
                                help="take the real part or the absolute value, or say holomorphic=True")
            seeds: list[Value | None] = [const(1, results[0].type)]
            seeds += [None] * (sum(r.type.is_inexact for r in results) - 1)
            derived = vjp(traced.func, traced.wanted, cotangents=seeds)
            values = inline(derived, traced.inputs)
        else:
            values = (*inline(traced.func, traced.inputs), *(const(0, v.type) for v in traced.wanted_inputs()))
        primal, bars = values[:len(results)], values[len(results):]
        trees = dict(zip(dict.fromkeys(numbers), parts_of(traced.structures, bars)))
        gradient = packed([trees[k] for k in numbers], argnums)
        count = leaf_count(out)
        extra = unflatten(aux, list(primal[count:])) if aux is not None else None
        if not with_value:
            return (gradient, extra) if has_aux else gradient
        number = unflatten(out, list(primal[:count]))
        return ((number, extra), gradient) if has_aux else (number, gradient)

    return call


def positional(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keyword arguments that follow on the positional ones become positional, so that argnums can name them."""
    names = _argument_names(fun, 64)
    args, kwargs = list(args), dict(kwargs)
    while len(args) < len(names) and names[len(args)] in kwargs:
        args.append(kwargs.pop(names[len(args)]))
    return tuple(args), kwargs


def _tuple_of(value: Any, what: str) -> tuple[Any, ...]:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    raise RuleError(f"{what} must be a tuple or list, one entry for each argument", code="E406", kind=TypeError,
                    help="write (x,) for a single argument")


def _jvp(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    has_aux = kwargs.pop("has_aux", False)
    args = (*args, *(kwargs.pop(name) for name in ("primals", "tangents")[len(args):] if name in kwargs))
    if len(args) != 2:
        raise RuleError("jvp takes a function, a tuple of primals and a tuple of tangents", code="E406", kind=TypeError)
    primals, tangents = _tuple_of(args[0], "primals of jvp"), _tuple_of(args[1], "tangents of jvp")
    if len(primals) != len(tangents):
        raise RuleError(f"jvp got {len(primals)} primals and {len(tangents)} tangents", code="E406", kind=ValueError)
    traced = trace_call(interpreter, fun, primals, {}, range(len(primals)), "jvp")
    moving = [_matched(interpreter, t, v) for t, v in zip(_flat_tangents(tangents, traced), traced.wanted_inputs(), strict=True)]
    interpreter.at(loc)
    values = inline(jvp(traced.func, traced.wanted), (*traced.inputs, *moving))
    return _value_and_tangent(traced, values, has_aux)


def _value_and_tangent(traced: Traced, values: Sequence[Value], has_aux: bool) -> Any:
    count = len(traced.func.results)
    tangents = _filled(traced.func, list(values[count:]))
    result, slope = unflatten(traced.out, list(values[:count])), unflatten(_as_leaves(traced.out), tangents)
    return (result[0], slope[0], result[1]) if has_aux else (result, slope)


def _as_leaves(out: Structure) -> Structure:
    """The structure of a tangent: static numbers have tangent 0."""
    if isinstance(out, StaticNode):
        if isinstance(out.value, tuple):
            return StaticNode(tuple(_as_leaves(StaticNode(v)).value for v in out.value))  # type: ignore[union-attr]
        return StaticNode(0.0) if isinstance(out.value, (int, float)) else out
    if isinstance(out, TreeNode):
        return TreeNode(out.kind, out.cls, out.keys, tuple(map(_as_leaves, out.children)))
    return out


def _filled(func: Func, tangents: list[Value]) -> list[Value]:
    """One tangent for each result: zeros of float64 for ints and bools."""
    return [tangents.pop(0) if r.type.is_inexact else const(0, r.type) for r in func.results]


def _flat_tangents(tangents: Sequence[Any], traced: Traced) -> list[Any]:
    """Leaves of the tangents, which must have the primals' structure."""
    found: list[Any] = []
    for tangent, structure in zip(tangents, traced.structures, strict=True):
        leaves, given = flatten(tangent)
        numbers = _with_numbers(given, leaves)
        if len(numbers) != leaf_count(structure):
            raise RuleError("tangents must have the structure of the primals", code="E406", kind=TypeError)
        found += numbers
    return found


def _matched(interpreter: Any, tangent: Any, primal: Value) -> Value:
    """A tangent (or cotangent) as a value of the primal's type."""
    value = tangent.read() if isinstance(tangent, ArrayRef) else as_value(tangent)
    if len(value.shape) != len(primal.shape) or not all(
            interpreter.assumptions.are_equal(a, b) for a, b in zip(value.shape, primal.shape)):
        raise RuleError(f"a tangent of shape {_shape(value)} for a value of shape {_shape(primal)}", code="E406",
                        kind=ValueError)
    return cast(value, primal.dtype)


def _shape(value: Value) -> str:
    return "(" + ", ".join(map(str, value.shape)) + ("," if value.rank == 1 else "") + ")"


def _vjp(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    has_aux = kwargs.pop("has_aux", False)
    traced = trace_call(interpreter, fun, args, kwargs, range(len(args)), "vjp")
    interpreter.at(loc)
    results = inline(traced.func, traced.inputs)
    out, aux = traced.out, None
    if has_aux:
        _, aux = scalar_pair(traced.out)
    value = unflatten(out, list(results))
    pullback = TransformValue("pullback", None, (traced, has_aux))
    return (value[0], pullback, value[1]) if aux is not None else (value, pullback)


def scalar_pair(out: Structure) -> tuple[Structure, Structure]:
    if isinstance(out, TreeNode) and out.kind == "tuple" and len(out.children) == 2:
        return out.children[0], out.children[1]
    raise RuleError("has_aux=True needs a function that returns a pair (value, aux)", code="E405", kind=TypeError)


def _pullback(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    traced, has_aux = value.args
    if len(args) != 1:
        raise RuleError("a pullback takes one cotangent, with the structure of the result", code="E406",
                        kind=TypeError)
    interpreter.at(loc)
    leaves, given = flatten(args[0])
    numbers = _with_numbers(given, leaves)
    results = traced.func.results
    if has_aux:
        first, _ = scalar_pair(traced.out)
        results = results[:leaf_count(first)]
    if len(numbers) != len(results):
        raise RuleError("the cotangent must have the structure of the function's result", code="E406", kind=TypeError)
    cts = [_matched(interpreter, ct, r) for ct, r in zip(numbers, results, strict=True) if r.type.is_inexact]
    cts += [const(0, r.type) for r in traced.func.results[len(results):] if r.type.is_inexact]
    values = inline(vjp(traced.func, traced.wanted), (*traced.inputs, *cts))
    return tuple(parts_of(traced.structures, values[len(traced.func.results):]))


def _vjp_apply(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """The pullback at given primals: (ct, *primals) -> cotangents."""
    _, pullback, *_ = _vjp(interpreter, value.fun, args[1:], dict(value.kwargs), loc)
    return _pullback(interpreter, pullback, args[:1], {}, loc)


def _jvp_apply(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """The tangent at given primals: (primals, tangents) -> the result's tangent."""
    primals, tangents = args
    _, pushforward = _linearize(interpreter, value.fun, primals, {}, loc)
    return _pushforward(interpreter, pushforward, tangents, {}, loc)


def _linearize(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    traced = trace_call(interpreter, fun, args, kwargs, range(len(args)), "linearize")
    interpreter.at(loc)
    value = unflatten(traced.out, list(inline(traced.func, traced.inputs)))
    return value, TransformValue("pushforward", None, (traced,))


def _pushforward(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    (traced,) = value.args
    if len(args) != len(traced.structures):
        raise RuleError(f"the linear map takes {len(traced.structures)} tangents, not {len(args)}", code="E406",
                        kind=TypeError)
    interpreter.at(loc)
    moving = [_matched(interpreter, t, v) for t, v in zip(_flat_tangents(args, traced), traced.wanted_inputs(), strict=True)]
    values = inline(jvp(traced.func, traced.wanted), (*traced.inputs, *moving))
    return _value_and_tangent(traced, values, False)[1]


def _hvp(interpreter: Any, fun: Any, args: Any, kwargs: Any, loc: Any) -> Any:
    """Hessian times vector, forward over reverse: of the structure of the primals."""
    args = (*args, *(kwargs.pop(name) for name in ("primals", "tangents")[len(args):] if name in kwargs))
    if len(args) != 2:
        raise RuleError("hvp takes a function, primals and tangents", code="E406", kind=TypeError)
    many = isinstance(args[0], (tuple, list))
    primals = tuple(args[0]) if many else (args[0],)
    tangents = tuple(args[1]) if many else (args[1],)
    gradient = TransformValue("grad", fun, (tuple(range(len(primals))),))
    _, product = _jvp(interpreter, gradient, (primals, tangents), {}, loc)
    return product if many else product[0]


def _vmap(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
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
    mapped = vmap(func, (*flags, *[False] * len(outer)), size)
    results = list(inline(mapped, (*inputs, *outer)))
    moved = [_axis_from_front(r, a) for r, a in zip(results, axes_for(options["out_axes"], out), strict=True)]
    return unflatten(_arrays(out), moved)


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


def _arrays(out: Structure) -> Structure:
    """Leaves that were scalars are arrays after batching."""
    if isinstance(out, LeafNode):
        return LeafNode("array")
    if isinstance(out, TreeNode):
        return TreeNode(out.kind, out.cls, out.keys, tuple(map(_arrays, out.children)))
    return out


def _axis_to_front(x: Value, axis: int) -> Value:
    order = (axis, *(k for k in range(x.rank) if k != axis))
    return x if axis == 0 else ops.transpose(x, axes=order)


def _axis_from_front(x: Value, axis: Any) -> Value:
    at = axis_of(axis, x.rank)
    order = [*range(1, x.rank)]
    order.insert(at, 0)
    return x if at == 0 else ops.transpose(x, axes=tuple(order))


def _jacobian(kind: str) -> Callable[..., Any]:
    def call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
        options = options_of(value, ("argnums", "has_aux"), {"argnums": 0, "has_aux": False, "holomorphic": False,
                                                             "chunk": None})
        argnums = options["argnums"]
        args, kwargs = positional(value.fun, args, kwargs)
        numbers = numbers_of(argnums, len(args), kind)
        traced = trace_call(interpreter, value.fun, args, kwargs, numbers, kind)
        interpreter.at(loc)
        out, aux = (scalar_pair(traced.out) if options["has_aux"] else (traced.out, None))
        count = leaf_count(out)
        rows = (_columns if kind == "jacfwd" else _rows)(traced, count)          # [result][wanted input]
        per_result = []
        for row in rows:
            trees = dict(zip(dict.fromkeys(numbers), parts_of([_arrays(s) for s in traced.structures], row)))
            per_result.append(packed([trees[k] for k in numbers], argnums))
        jacobian = _with_parts(out, per_result)
        if aux is None:
            return jacobian
        values = inline(traced.func, traced.inputs)
        return jacobian, unflatten(aux, list(values[count:]))

    return call


def _with_parts(out: Structure, parts: list[Any]) -> Any:
    """The result's structure with a Jacobian at each leaf."""
    if isinstance(out, LeafNode):
        return parts.pop(0)
    if isinstance(out, StaticNode):
        return out.value
    children = [_with_parts(c, parts) for c in out.children]
    if out.kind == "dict":
        return dict(zip(out.keys, children))
    return tuple(children) if out.kind in ("tuple", "namedtuple") else children


def _basis(type: Type) -> Value:
    """All unit vectors of a type, stacked along a new first axis."""
    size = product(type.shape)
    if not type.shape:
        return const(1, Type(type.dtype, (1,)))
    grid = (size, size)
    rows = ops.iota(shape=grid, axis=0, dtype="int64")
    columns = ops.iota(shape=grid, axis=1, dtype="int64")
    return ops.reshape(ops.convert(ops.equal(rows, columns), dtype=type.dtype), shape=(size, *type.shape))


def _columns(traced: Traced, count: int) -> list[list[Value]]:
    """Forward: one vmap of jvp over the unit tangents of each wanted input."""
    table: list[list[Value]] = [[] for _ in range(count)]
    for k, (x, wanted) in enumerate(zip(traced.inputs, traced.wanted, strict=True)):
        if not wanted:
            continue
        only = [j == k for j in range(len(traced.inputs))]
        moved = jvp(traced.func, only)
        size = product(x.shape)
        mapped = vmap(moved, [*[False] * len(traced.inputs), True], size)
        values = list(inline(mapped, (*traced.inputs, _basis(x.type))))[len(traced.func.results):]
        for row, slope, result in zip(table, _stacked(traced.func, values, size), traced.func.results):
            order = (*range(1, slope.rank), 0)
            row.append(ops.reshape(ops.transpose(slope, axes=order) if slope.rank > 1 else slope,
                                   shape=(*result.shape, *x.shape)))
    return table


def _stacked(func: Func, slopes: list[Value], size: Any) -> list[Value]:
    return [slopes.pop(0) if r.type.is_inexact else const(0, Type("float64", (size, *r.shape)))
            for r in func.results]


def _rows(traced: Traced, count: int) -> list[list[Value]]:
    """Reverse: one vmap of vjp over the unit cotangents of each result."""
    pulled = vjp(traced.func, traced.wanted)
    results = traced.func.results
    inexact = [r for r in results if r.type.is_inexact]
    table: list[list[Value]] = []
    for result in results[:count]:
        wanted = traced.wanted_inputs()
        if not result.type.is_inexact:
            table.append([const(0, Type(x.dtype, (*result.shape, *x.shape))) for x in wanted])
            continue
        size = product(result.shape)
        flags = [r is result for r in inexact]
        cts = [_basis(r.type) if r is result else const(0, r.type) for r in inexact]
        mapped = vmap(pulled, [*[False] * len(traced.inputs), *flags], size)
        values = list(inline(mapped, (*traced.inputs, *cts)))[len(results):]
        table.append([ops.reshape(v, shape=(*result.shape, *x.shape)) if v.shape != (*result.shape, *x.shape) else v
                      for v, x in zip(values, wanted, strict=True)])
    return table


def _hessian(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    inner = TransformValue("jacrev", value.fun, value.args, value.kwargs)
    outer = TransformValue("jacfwd", inner, value.args, value.kwargs)
    return call_transform(interpreter, outer, args, kwargs, loc)


def _same(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    return interpreter.call(value.fun, args, kwargs, loc)


CALLS: dict[str, Callable[..., Any]] = {
    "jit": _jit, "grad": _gradient(False), "value_and_grad": _gradient(True), "jvp": _jvp, "vjp": _vjp,
    "linearize": _linearize, "hvp": _hvp, "vmap": _vmap, "jacfwd": _jacobian("jacfwd"), "jacrev": _jacobian("jacrev"),
    "jacobian": _jacobian("jacrev"), "hessian": _hessian, "checkpoint": _same, "pullback": _pullback,
    "pushforward": _pushforward, "vjp_apply": _vjp_apply, "jvp_apply": _jvp_apply,
}
