"""What all transforms in interpreted code share: tracing the function under the transform, and taking its arguments and
results apart.

The function is traced into a func of its own (`Interpreter.subtrace`); values of the surrounding code that it reads
are params of that func, so perturbations of different transforms cannot be confused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..errors import Location, RuleError, TranspileError, error
from ..ir.build import const
from ..ir.dims import DimExpr, symbols_of
from ..ir.nodes import Func, Value
from ..ir.types import Type
from ..ir.walk import all_statements, inline
from ..ops.spelling import Weak, as_value, describe, python_type
from .batch_axes import tells_keywords
from .pytrees import aux_names
from .source import FunctionSource
from .trees import LeafNode, StaticNode, Structure, TreeNode, flatten, leaf_count, leaf_values, unflatten
from .values import ArrayRef, Closure, TransformValue


@dataclass(frozen=True)
class Traced:
    """The traced function: `func`'s params are the arguments' run-time leaves, then `outer` values."""

    func: Func
    out: Structure
    inputs: tuple[Value, ...]
    wanted: tuple[bool, ...]             # which params are leaves of the wanted arguments
    structures: tuple[Structure, ...]    # of the wanted arguments
    own: tuple[bool, ...]                # which params are leaves of them, with ints that are there by allow_int

    def with_zeros(self, bars: Sequence[Value], shape: Sequence[Any] = ()) -> list[Value]:
        """A derivative for each leaf of the wanted arguments: for ints there is none, and False stands in its place.
        shape: the axes before those of the argument."""
        rest = iter(bars)
        return [next(rest) if wanted else const(False, Type("bool", (*shape, *x.shape)))
                for x, own, wanted in zip(self.inputs, self.own, self.wanted, strict=True) if own]

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


def chosen(interpreter: Any, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], argnums: Any,
           kind: str) -> tuple[int, ...]:
    """`numbers_of` for a call.  Where an argument is missing from the call, that is the error (E118), as in Python."""
    try:
        return numbers_of(argnums, len(args), kind)
    except RuleError as problem:
        here = interpreter.here
        try:
            interpreter.subtrace(fun, args, kwargs)
        except (RuleError, TranspileError) as wrong:
            if _code_of(wrong) == "E118":
                raise
        interpreter.here = here
        raise problem from None


def _code_of(problem: RuleError | TranspileError) -> str | None:
    return problem.code if isinstance(problem, RuleError) else problem.problems[0].code


def differentiable(value: Any, name: str, kind: str, allow_int: bool = False) -> Any:
    """An argument with every number in it as a run-time value; an error for what has no derivative, but for ints and
    bools with `allow_int`."""
    leaves, structure = flatten(value)
    if allow_int:
        return unflatten(_lifted(structure, name, name, kind, True), with_numbers(structure, leaves))
    for leaf, path in zip(leaves, _paths(structure, name), strict=True):
        dtype = leaf.value.dtype if isinstance(leaf, Weak) else leaf.dtype
        if np.dtype(dtype).kind not in "fc":
            raise _no_derivative(leaf, _type_text(leaf, dtype), path, name, kind)
    return unflatten(_lifted(structure, name, name, kind), with_numbers(structure, leaves))


def _no_derivative(leaf: Any, text: str, path: str, name: str, kind: str) -> RuleError:
    return RuleError(f"{kind} with respect to {path}, which is {text}: only float and complex values have derivatives",
                     code="E401", kind=TypeError, help=_advice(leaf, path, name, kind))


def _paths(structure: Structure, path: str) -> list[str]:
    """How Python reaches each leaf: `p['w']`, `p[0]`, `p.rate`."""
    if isinstance(structure, TreeNode):
        return [leaf for part, child in _children(structure, path) for leaf in _paths(child, part)]
    return [path] if isinstance(structure, LeafNode) else []


def _children(node: TreeNode, path: str) -> list[tuple[str, Structure]]:
    """The parts of a container with their paths."""
    fields = getattr(node.cls, "_fields", node.keys)
    if node.kind in ("namedtuple", "object") and len(fields) == len(node.children):
        return [(f"{path}.{field}", child) for field, child in zip(fields, node.children)]
    keys = node.keys if node.kind == "dict" and len(node.keys) == len(node.children) else range(len(node.children))
    return [(f"{path}[{key!r}]", child) for key, child in zip(keys, node.children)]


def _type_text(leaf: Any, dtype: str) -> str:
    weak = python_type(leaf)
    if weak is not None:
        return f"a Python {weak.__name__}"
    return f"of dtype {dtype}" if not isinstance(leaf, ArrayRef) else f"an array of dtype {dtype}"


AT_ONCE = ("jvp", "vjp", "linearize", "hvp")      # these differentiate by all arguments


def _advice(leaf: Any, path: str, name: str, kind: str) -> str:
    if kind in AT_ONCE:
        left_out = "close over what is not to be differentiated"
    else:
        left_out = f"leave {name} out of argnums" if path == name else "pass it in an argument that argnums leaves out"
    if python_type(leaf) is int:
        return f"pass a float, for example 2.0 instead of 2, or {left_out}"
    dtype = getattr(leaf, "dtype", None)
    if isinstance(dtype, (str, np.dtype)) and np.dtype(dtype).kind in "iu":
        return f"convert it with .astype(float), or {left_out}"
    return left_out if kind in AT_ONCE else f"{left_out}, or let the function read it from outside, as a closure does"


def _lifted(structure: Structure, path: str, name: str, kind: str, allow_int: bool = False) -> Structure:
    """Static floats become leaves; other static parts are refused, but for ints with `allow_int`."""
    if isinstance(structure, LeafNode):
        return structure
    if isinstance(structure, StaticNode):
        value = structure.value
        if isinstance(value, (tuple, list)) and value:
            parts = tuple(_lifted(StaticNode(v), f"{path}[{k}]", name, kind, allow_int) for k, v in enumerate(value))
            return TreeNode("tuple" if isinstance(value, tuple) else "list", type(value), (), parts)
        if value is None or (isinstance(value, (tuple, list, dict)) and not value):
            return structure
        if isinstance(value, (float, complex, np.inexact)):
            return LeafNode("weak", type(value)) if type(value) in (float, complex) else LeafNode("scalar")
        if allow_int and isinstance(value, INTEGERS):
            return structure
        raise _no_derivative(value, _of_class(type(value)), path, name, kind)
    return TreeNode(structure.kind, structure.cls, structure.keys, tuple(
        child if kept else _lifted(child, part, name, kind, allow_int)
        for (kept, _), (part, child) in zip(_kept(structure), _children(structure, path), strict=True)))


def _of_class(cls: type) -> str:
    return f"{'an' if cls.__name__[0] in 'aeiouAEIOU' else 'a'} {cls.__name__}"


def with_numbers(structure: Structure, leaves: Sequence[Any]) -> list[Any]:
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
        return [x for kept, c in _kept(node)
                for x in ([rest.pop(0) for _ in range(leaf_count(c))] if kept else visit(c))]

    return visit(structure)


def _kept(node: TreeNode) -> list[tuple[bool, Structure]]:
    """The children, and whether a registered class keeps them beside its own: those are no numbers to differentiate."""
    names = aux_names(node.cls, node.keys) if node.kind == "object" else frozenset()
    fields = node.keys if names else (None,) * len(node.children)
    return [(field in names, child) for field, child in zip(fields, node.children, strict=True)]


def trace_call(interpreter: Any, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[int],
               kind: str, allow_int: bool = False) -> Traced:
    """Trace `fun(*args, **kwargs)`; arguments `numbers` are differentiated, but for ints in them with `allow_int`."""
    names = argument_names(fun, len(args))
    new = [differentiable(a, names[k], kind, allow_int) if k in numbers else a for k, a in enumerate(args)]
    interpreter.orders += 1
    try:
        func, out, outer = interpreter.subtrace(fun, new, kwargs, moving=numbers)
    finally:
        interpreter.orders -= 1
    inputs: list[Value] = []
    owner: list[int] = []
    structures: dict[int, Structure] = {}
    for k, arg in enumerate(new):
        leaves, structure = flatten(arg, sizes_are_static=True)
        structures[k] = _of_derivative(structure, leaf_values(leaves)) if allow_int else structure
        inputs += leaf_values(leaves)
        owner += [k] * len(leaves)
    extra, _ = flatten(kwargs, sizes_are_static=True)
    inputs += leaf_values(extra)
    own = [o in numbers for o in owner] + [False] * (len(extra) + len(outer))
    wanted = [o and x.type.is_inexact for o, x in zip(own, (*inputs, *outer), strict=True)]
    order = sorted(set(numbers))
    return Traced(func, out, (*inputs, *outer), tuple(wanted), tuple(structures[k] for k in order), tuple(own))


def _of_derivative(structure: Structure, leaves: Sequence[Value]) -> Structure:
    """An argument's structure for its derivative, where ints are False."""
    rest = iter(leaves)

    def visit(node: Structure) -> Structure:
        if isinstance(node, LeafNode):
            leaf = next(rest)
            return node if leaf.type.is_inexact else LeafNode("array" if leaf.shape else "scalar")
        if isinstance(node, StaticNode):
            return StaticNode(without(node.value))
        return TreeNode(node.kind, node.cls, node.keys, tuple(map(visit, node.children)))

    def without(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(without, value))
        return False if isinstance(value, INTEGERS) else value

    return visit(structure)


def results_here(traced: Traced) -> tuple[Value, ...]:
    """Values of the types of the func's results, whose sizes are known in the surrounding code: where the func itself
    finds out a size, the results computed there."""
    own = {t.name for stmt in all_statements(traced.func.body) for t in stmt.targets}
    sizes = {name for r in traced.func.results for d in r.type.shape for name in symbols_of(d)}
    return traced.func.results if own.isdisjoint(sizes) else inline(traced.func, traced.inputs)


INTEGERS = (bool, int, np.integer, np.bool_, DimExpr)
SAME_PARAMETERS = frozenset({"jit", "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "jacobian", "hessian"})


def argument_names(fun: Any, count: int) -> list[str]:
    """The names of the positional parameters, for messages."""
    while isinstance(fun, TransformValue) and fun.kind in SAME_PARAMETERS and fun.fun is not None:
        fun = fun.fun
    code = getattr(fun, "__code__", None) or getattr(getattr(fun, "py_func", None), "__code__", None)
    node = getattr(fun, "node", None)
    known: list[str] = []
    if code is not None:
        known = list(code.co_varnames[:code.co_argcount])[isinstance(fun, MethodType):]
    elif node is not None:
        known = [a.id for a in (*node.args.posonlyargs, *node.args.args)]
    return (known + [f"argument {k}" for k in range(len(known), count)])[:count]


def scalar_result(interpreter: Any, fun: Any, traced: Traced, kind: str,
                  has_aux: bool) -> tuple[Structure, Structure | None]:
    """Check that the result of `fun` is one real number; the structures of the result and of aux."""
    out = traced.out
    aux: Structure | None = None
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
    if isinstance(out, StaticNode) and out.value is None:
        raise returns_nothing(f"{kind} needs a function that returns one number, and this one returns None",
                              definition_of(interpreter, fun))
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


def returns_nothing(message: str, place: Location | None) -> TranspileError:
    """The error for a function without a result (E403), at its definition."""
    return error("E403", message, place, kind=TypeError, label="returns nothing",
                 help="end it with a `return`; if it writes its results into its arguments,\n"
                      "gradsmith.functional(f) returns what they hold afterwards")


def definition_of(interpreter: Any, fun: Any) -> Location | None:
    """The first line of the user's function that `fun` is or wraps."""
    while not isinstance(fun, (FunctionType, Closure)):
        inner = next((getattr(fun, name) for name in ("__gradsmith_transformed__", "__func__", "py_func", "function",
                                                      "func", "fun", "__wrapped__") if hasattr(fun, name)), None)
        if inner is None:
            return None
        fun = inner[1] if isinstance(inner, tuple) else inner
    if isinstance(fun, Closure):
        return fun.source.heading(fun.node)
    found: FunctionSource = interpreter.source_of(fun)
    return found.heading()


def _out_text(out: Structure) -> str:
    if isinstance(out, TreeNode):
        return out.kind
    return type(out.value).__name__ if isinstance(out, StaticNode) else "number"


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


def positional(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Keyword arguments that follow on the positional ones become positional, so that argnums can name them."""
    if tells_keywords(fun):
        return tuple(args), dict(kwargs)
    names = argument_names(fun, 64)
    args, kwargs = list(args), dict(kwargs)
    while len(args) < len(names) and names[len(args)] in kwargs:
        args.append(kwargs.pop(names[len(args)]))
    return tuple(args), kwargs
