"""What sparse Jacobians are made of, called on abstract values: marks of the results, and compressed derivatives.

    sparsity(f, argnums)(*args, marks)                      which marks each element of the result has
    compressed_columns(f, argnums)(*args, colours, which)   tangents: arguments' elements of one colour move together
    compressed_rows(f, argnums)(*args, colours, which)      cotangents: of elements of the result of one colour
    besides(f, argnums)(*args)                              aux; it prints what f prints, which the others do not

`marks` and `colours` are tuples of int64 arrays, one of its shape for each array of the arguments (of the result for
rows); `which` is an array of colours, whose axis comes first in what is given back: a tuple with an array for each of
the result's (of the arguments').
"""

from __future__ import annotations

from typing import Any

from .. import ops
from ..errors import RuleError
from ..ir.build import const
from ..ir.nodes import Value
from ..ir.types import Type
from ..ir.walk import inline, prints
from ..transforms.jvp import jvp
from ..transforms.marking import marking
from ..transforms.vjp import vjp
from ..transforms.vmap import vmap
from .derivative_calls import matched, scalar_pair
from .jacobian_calls import require_kinds, silent, with_parts
from .transform_tracing import Traced, chosen, options_of, results_here, trace_call
from .trees import Structure, leaf_count, unflatten
from .values import ArrayRef, TransformValue

OPTIONS = {"argnums": 0, "has_aux": False, "said": "sparse_jacobian"}


def _traced(interpreter: Any, value: TransformValue, args: Any, given: int, loc: Any) -> tuple[
        Traced, Structure, Structure | None]:
    """The function at its arguments, which all but the last `given` of `args` are; the result's structure, and that of
    aux.  It does not print if there are any given."""
    options = options_of(value, ("argnums",), OPTIONS)
    own = args[:len(args) - given]
    numbers = chosen(interpreter, value.fun, own, {}, options["argnums"], options["said"])
    traced = trace_call(interpreter, value.fun, own, {}, numbers, options["said"])
    interpreter.at(loc)
    out, aux = scalar_pair(traced.out) if options["has_aux"] else (traced.out, None)
    require_kinds(traced, leaf_count(out), False, True, options["said"])
    return silent(traced) if given else traced, out, aux


def sparsity_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    """(marks of each array of the result; what the result is, with the number of an array in each place, -1 for a
    number that is known while transpiling; the dtypes of the arrays; whether the function prints)."""
    loud, out, _ = _traced(interpreter, value, (*args[:-1],), 0, loc)
    traced = silent(loud)
    given = [_fitted(interpreter, m, x) for m, x in zip(args[-1], traced.wanted_inputs(), strict=True)]
    found = list(inline(marking(traced.func, traced.wanted), (*traced.inputs, *given)))
    results = results_here(traced)[:leaf_count(out)]
    marks = [found.pop(0) if r.type.is_inexact else const(0, Type("int64", r.type.shape)) for r in results]
    dtypes = tuple(r.dtype if r.type.is_inexact else "float64" for r in results)
    return tuple(marks), with_parts(out, list(range(len(results))), lambda: -1), dtypes, prints(loud.func.body)


def _fitted(interpreter: Any, given: Any, like: Value) -> Value:
    """Ints for each element of `like`."""
    return matched(interpreter, given, const(0, Type("int64", like.shape)))


def compressed_columns_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    traced, out, _ = _traced(interpreter, value, args, 2, loc)
    wanted = traced.wanted_inputs()
    which = _array(args[-1])
    seeds = [_seeds(_fitted(interpreter, c, x), which, x) for c, x in zip(args[-2], wanted, strict=True)]
    flags = [*[False] * len(traced.inputs), *[True] * len(wanted)]
    mapped = vmap(jvp(traced.func, traced.wanted), flags, which.shape[0], report=interpreter.report)
    values = list(inline(mapped, (*traced.inputs, *seeds)))[len(traced.func.results):]
    count = leaf_count(out)
    moved = tuple(values.pop(0) if r.type.is_inexact else const(0, Type("float64", (which.shape[0], *r.type.shape)))
                  for r in results_here(traced)[:count])
    return moved


def besides_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    traced, out, aux = _traced(interpreter, value, args, 0, loc)
    values = inline(traced.func, traced.inputs)
    return None if aux is None else unflatten(aux, list(values[leaf_count(out):]))


def compressed_rows_call(interpreter: Any, value: TransformValue, args: Any, kwargs: Any, loc: Any) -> Any:
    traced, out, _ = _traced(interpreter, value, args, 2, loc)
    results, count = results_here(traced), leaf_count(out)
    which, colours = _array(args[-1]), list(args[-2])
    inexact = [k for k, r in enumerate(results) if r.type.is_inexact]
    seeds, flags = [], []
    for k in inexact:
        flags.append(k < count)
        seeds.append(_seeds(_fitted(interpreter, colours[k], results[k]), which, results[k]) if k < count else
                     const(0, results[k].type))
    mapped = vmap(vjp(traced.func, traced.wanted), [*[False] * len(traced.inputs), *flags], which.shape[0],
                  report=interpreter.report)
    bars = list(inline(mapped, (*traced.inputs, *seeds)))[len(results):]
    return tuple(bars)


def _array(given: Any) -> Value:
    if not isinstance(given, ArrayRef):
        raise RuleError("colours must be an array", kind=TypeError)
    return given.read()


def _seeds(colours: Value, which: Value, like: Value) -> Value:
    """For each colour in `which`, ones at the elements of that color."""
    shape = (which.shape[0], *like.shape)
    own = ops.broadcast(colours, shape=shape, axes=tuple(range(1, len(shape))))
    colour = ops.broadcast(which, shape=shape, axes=(0,))
    return ops.convert(ops.equal(own, colour), dtype=like.dtype)

