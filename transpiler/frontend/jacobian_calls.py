"""Jacobians and Hessians called on abstract values: a derivative over the unit vectors of what goes in or comes out.

The whole is one batch (`vmap` of jvp or vjp).  With `chunk` it is a loop over batches of at most that many unit
vectors, each of which writes its part of the Jacobian, so that no more of what lies between is held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ops
from ..errors import RuleError
from ..ir.build import const, for_loop, int_const, size_value
from ..ir.dims import floordiv, product, symbol
from ..ir.index import Span
from ..ir.nodes import Func, Value
from ..ir.types import Type
from ..ir.walk import inline, map_results, prints, without_prints
from ..ops.spelling import describe
from ..report import Report
from ..transforms.jvp import jvp
from ..transforms.split import split
from ..transforms.vjp import vjp
from ..transforms.vmap import vmap
from .batch_calls import arrays
from .derivative_calls import scalar_pair
from .transform_tracing import (
    Traced,
    chosen,
    options_of,
    packed,
    parts_of,
    positional,
    results_here,
    trace_call,
)
from .trees import LeafNode, StaticNode, Structure, leaf_count, unflatten
from .values import Instance, TransformValue

OPTIONS = {"argnums": 0, "has_aux": False, "holomorphic": False, "allow_int": False, "chunk": None}


def jacobian_call(kind: str) -> Callable[..., Any]:
    """jacfwd, jacrev, or jacobian: the one of the two that takes fewer unit vectors, forward where it is the same."""

    def call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
        return _jacobian(interpreter, value, args, kwargs, loc, kind, kind)

    return call


def hessian_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """Forward over reverse."""
    names = ("argnums", "has_aux", "holomorphic")
    options = options_of(value, names, OPTIONS)
    inner = TransformValue("jacrev", value.fun, (), {name: options[name] for name in names})
    outer = TransformValue("jacfwd", inner, (), options)
    return _jacobian(interpreter, outer, args, kwargs, loc, "jacfwd", "hessian")


def _jacobian(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any, kind: str, said: str) -> Any:
    """said: the name by which the user called it."""
    options = options_of(value, ("argnums", "has_aux", "holomorphic", "allow_int"), OPTIONS)
    argnums, chunk = options["argnums"], chunk_of(options["chunk"], said)
    args, kwargs = positional(value.fun, args, kwargs)
    numbers = chosen(interpreter, value.fun, args, kwargs, argnums, said)
    traced = trace_call(interpreter, value.fun, args, kwargs, numbers, said, bool(options["allow_int"]))
    interpreter.at(loc)
    out, aux = (scalar_pair(traced.out) if options["has_aux"] else (traced.out, None))
    count = leaf_count(out)
    values: Sequence[Value] | None = None
    if prints(traced.func.body):                     # once, and not for each part of the derivative
        values, traced = inline(traced.func, traced.inputs), silent(traced)
    forward = kind == "jacfwd" or (kind == "jacobian" and _goes_forward(interpreter, traced, count))
    require_kinds(traced, count, options["holomorphic"], forward, said)
    rows = (_columns if forward else _rows)(traced, count, chunk, interpreter.report)     # [result][wanted input]

    def with_structure(row: Sequence[Value], shape: Sequence[Any] = ()) -> Any:
        leaves = traced.with_zeros(row, shape)
        trees = dict(zip(sorted(set(numbers)), parts_of([arrays(s) for s in traced.structures], leaves)))
        return packed([trees[k] for k in numbers], argnums)

    def of_number() -> Any:
        return with_structure([const(0, x.type) for x in traced.wanted_inputs()])

    shapes = [r.type.shape for r in results_here(traced)[:count]] if options["allow_int"] else [()] * count
    jacobian = with_parts(out, list(map(with_structure, rows, shapes)), of_number)
    if aux is None:
        return jacobian
    values = inline(traced.func, traced.inputs) if values is None else values
    return jacobian, unflatten(aux, list(values[count:]))


def silent(traced: Traced) -> Traced:
    """The same without what it prints."""
    return replace(traced, func=replace(traced.func, body=without_prints(traced.func.body)))


def chunk_of(chunk: Any, kind: str) -> int | None:
    """The option, checked: how many unit vectors at a time."""
    if chunk is None:
        return None
    if not isinstance(chunk, (int, np.integer)) or isinstance(chunk, bool):
        raise RuleError(f"chunk of {kind} must be an int that is known while transpiling, not {describe(chunk)}",
                        code="E402", kind=TypeError)
    if chunk < 1:
        raise RuleError(f"chunk of {kind} must be at least 1, not {chunk}", code="E402", kind=ValueError)
    return int(chunk)


def _goes_forward(interpreter: Any, traced: Traced, count: int) -> bool:
    """The mode of `jacobian`: where complex numbers are on one side only, the one that there is, else the cheaper."""
    given = any(x.type.kind == "c" for x in traced.wanted_inputs())
    results = any(r.type.kind == "c" for r in traced.func.results[:count])
    return results if given != results else _forward_is_less(interpreter, traced, count)


def _forward_is_less(interpreter: Any, traced: Traced, count: int) -> bool:
    """Whether forward mode takes no more unit vectors than reverse mode; sizes that decide it become a guard."""
    before = sum(product(x.shape) for x in traced.wanted_inputs())
    after = sum(product(r.type.shape) for r in results_here(traced)[:count])
    return interpreter.assumptions.is_negative(after - before) is False


def require_kinds(traced: Traced, count: int, holomorphic: bool, forward: bool, kind: str) -> None:
    """Real numbers move and come out, unless the function is said to be holomorphic: then complex ones do.

    As in JAX, results may be complex in forward mode and arguments in reverse mode.
    """
    given = [x.type for x in traced.wanted_inputs()]
    results = [r.type for r in traced.func.results[:count] if r.type.is_inexact]
    if holomorphic:
        if any(t.kind != "c" for t in (*given, *results)):
            raise RuleError(f"{kind} with holomorphic=True is for complex arguments and results", code="E409",
                            kind=TypeError, help="leave holomorphic out, or pass x.astype(complex)")
    elif forward and any(t.kind == "c" for t in given):
        raise RuleError(f"{kind} with respect to a complex argument", code="E409", kind=TypeError,
                        help="say holomorphic=True if the function is, or split the argument into its real and "
                             "imaginary parts")
    elif not forward and any(t.kind == "c" for t in results):
        raise RuleError(f"{kind} of a function with a complex result", code="E404", kind=TypeError,
                        help="say holomorphic=True if the function is, or take the real part or the absolute value")


def with_parts(out: Structure, parts: list[Any], of_number: Callable[[], Any]) -> Any:
    """The result's structure with a Jacobian at each leaf; of_number: that of a number known while transpiling."""
    if isinstance(out, LeafNode):
        return parts.pop(0)
    if isinstance(out, StaticNode):
        return _constant_parts(out.value, of_number)
    children = [with_parts(c, parts, of_number) for c in out.children]
    if out.kind == "dict":
        return dict(zip(out.keys, children))
    if out.kind == "object":
        return Instance(out.cls, dict(zip(out.keys, children)))
    if out.kind == "namedtuple":
        return out.cls._make(children)                     # type: ignore[attr-defined]
    return tuple(children) if out.kind == "tuple" else children


def _constant_parts(value: Any, of_number: Callable[[], Any]) -> Any:
    if hasattr(value, "_make"):
        return type(value)._make(_constant_parts(v, of_number) for v in value)
    if type(value) in (tuple, list):
        return type(value)(_constant_parts(v, of_number) for v in value)
    if type(value) is dict:
        return {key: _constant_parts(v, of_number) for key, v in value.items()}
    is_number = isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)
    return of_number() if is_number else value


# ---------------------------------------------------------------------------------------------------------------
# unit vectors


def _basis(type: Type, first: Value | None = None, count: Any = None) -> Value:
    """Unit vectors of a type, stacked along a new first axis: all of them, or `count` from number `first`."""
    size = product(type.shape)
    if not type.shape:
        return const(1, Type(type.dtype, (1,)))
    units = ops.unit_vectors(int_const(0) if first is None else first, count=size if count is None else count,
                             size=size, dtype=type.dtype)
    return ops.reshape(units, shape=(units.shape[0], *type.shape))


Block = Callable[[Value | None, Any], list[Value]]      # from the first unit vector and their number to stacked results


def _whole_or_in_chunks(block: Block, size: Any, chunk: int | None, results: Sequence[Type],
                        last: bool) -> list[Value]:
    """The results for all `size` unit vectors, whose axis is put first, or `last`; of these `results` for each.

    Chunks are as even as they can be, and the last one begins early enough to be whole: all have one length, which is
    `chunk` or a little less.
    """
    if chunk is None or (isinstance(size, int) and size <= chunk):
        found = block(None, size)
        return [_axis_last(v) for v in found] if last else found
    rounds = floordiv(size + chunk - 1, chunk)
    length = floordiv(size + rounds - 1, rounds)
    if not isinstance(length, int):
        bound = ops.size(dim=length)
        length = symbol(bound.name, 1)
    outs = [ops.empty(shape=(*r.shape, size) if last else (size, *r.shape), dtype=r.dtype) for r in results]

    def trip(number: Value, *carried: Value) -> list[Value]:
        first = ops.minimum(number * size_value(length), size_value(size - length))
        stored = []
        for out, value in zip(carried, block(first, length), strict=True):
            full = tuple(Span(0, d) for d in value.shape[1:])
            index = (*full, Span(None, length)) if last else (Span(None, length), *full)
            stored.append(ops.store(out, _axis_last(value) if last else value, first, index=index))
        return stored

    return list(for_loop(int_const(0), size_value(rounds), outs, trip, index="part", hints=["rows"] * len(outs)))


def _axis_last(x: Value) -> Value:
    return ops.transpose(x, axes=(*range(1, x.rank), 0)) if x.rank > 1 else x


def _parts(derived: Func, inputs: Sequence[Value], count: int, chunk: int | None) -> tuple[Func, list[Value]]:
    """Of a derivative, the func that gives the results after the first `count` (those of the primal), and its
    arguments that are the same for all unit vectors; these follow.

    In chunks, what does not depend on unit vectors is computed once, before the loop.
    """
    moved = map_results(derived, derived.results[count:])
    if chunk is None:
        return moved, list(inputs)
    halves = split(moved, [k >= len(inputs) for k in range(len(moved.params))], 0)
    return halves.second, list(inline(halves.first, inputs))


def _columns(traced: Traced, count: int, chunk: int | None, report: Report | None) -> list[list[Value]]:
    """Forward: one batch of jvp over the unit tangents of each wanted input."""
    results = results_here(traced)
    inexact = [k for k, r in enumerate(results) if r.type.is_inexact and k < count]
    table: list[list[Value]] = [[] for _ in range(count)]
    for k, (x, wanted) in enumerate(zip(traced.inputs, traced.wanted, strict=True)):
        if not wanted:
            continue
        block = _pushed(traced, k, len(inexact), chunk, report)
        slopes = _whole_or_in_chunks(block, product(x.shape), chunk, [results[j].type for j in inexact], last=True)
        for j, row in enumerate(table):
            shape = (*results[j].type.shape, *x.shape)
            row.append(ops.reshape(slopes[inexact.index(j)], shape=shape) if j in inexact else
                       const(0, Type("float64", shape)))
    return table


def _pushed(traced: Traced, k: int, count: int, chunk: int | None, report: Report | None) -> Block:
    """Tangents of the first `count` real or complex results for unit tangents of input k."""
    x = traced.inputs[k]
    moved = jvp(traced.func, [j == k for j in range(len(traced.inputs))], report=report)
    pushed, fixed = _parts(moved, traced.inputs, len(traced.func.results), chunk)

    def block(first: Value | None, size: Any) -> list[Value]:
        mapped = vmap(pushed, [*[False] * len(fixed), True], size, report=report)
        return list(inline(mapped, (*fixed, _basis(x.type, first, size))))[:count]

    return block


def _rows(traced: Traced, count: int, chunk: int | None, report: Report | None) -> list[list[Value]]:
    """Reverse: one batch of vjp over the unit cotangents of each result."""
    results = results_here(traced)
    pulled, fixed = _parts(vjp(traced.func, traced.wanted, report=report), traced.inputs, len(results), chunk)
    wanted = traced.wanted_inputs()
    table: list[list[Value]] = []
    for at, result in enumerate(results[:count]):
        shapes = [(*result.shape, *x.shape) for x in wanted]
        if not result.type.is_inexact:
            table.append([const(0, Type(x.dtype, shape)) for x, shape in zip(wanted, shapes, strict=True)])
            continue
        block = _pulled(pulled, fixed, results, at, report)
        bars = _whole_or_in_chunks(block, product(result.shape), chunk, [x.type for x in wanted], last=False)
        table.append([ops.reshape(v, shape=shape) for v, shape in zip(bars, shapes, strict=True)])
    return table


def _pulled(pulled: Func, fixed: Sequence[Value], results: Sequence[Value], at: int, report: Report | None) -> Block:
    """Cotangents of the wanted inputs for unit cotangents of result `at`."""
    inexact = [k for k, r in enumerate(results) if r.type.is_inexact]     # one value may be several results
    flags = [*[False] * len(fixed), *(k == at for k in inexact)]

    def block(first: Value | None, size: Any) -> list[Value]:
        cts = [_basis(results[k].type, first, size) if k == at else const(0, results[k].type) for k in inexact]
        return list(inline(vmap(pulled, flags, size, report=report), (*fixed, *cts)))

    return block
