"""Random straight-line tensor programs: funcs over a few inputs of named sizes, for testing what passes keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import build_func, const
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.index import At, New, Span
from gradsmith.transpiler.ir.nodes import Func, Value
from gradsmith.transpiler.ir.types import Type

N, M = symbol("n"), symbol("m")
F64 = Type("float64")
INPUTS = (("x", Type("float64", (N,))), ("y", Type("float64", (M,))), ("a", Type("float64", (N, M))),
          ("s", F64), ("c", Type("float64", (3,))))


def arguments(n: int, m: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.2, 1.5, n), rng.uniform(0.2, 1.5, m), rng.uniform(0.2, 1.5, (n, m)),
            np.float64(rng.uniform(0.2, 1.5)), rng.uniform(0.2, 1.5, 3)]


@st.composite
def programs(draw: Any) -> Func:
    """A func whose values stay bounded; results are one to three of the values that it makes."""
    count = draw(st.integers(1, 9))
    results = draw(st.integers(1, 3))

    def body(*params: Value) -> list[Value]:
        values: list[Value] = list(params)
        for _ in range(count):
            values.append(_step(draw, values))
        made = values[len(params):]
        return [made[-1 - k] for k in range(min(results, len(made)))]

    return build_func("f", INPUTS, body)


def _step(draw: Any, values: list[Value]) -> Value:
    x = draw(st.sampled_from(values[-6:]))
    kind = draw(st.sampled_from(STEPS))
    made = kind(draw, x, values)
    return ops.tanh(x) if made is None else made


def _unary(draw: Any, x: Value, values: list[Value]) -> Value:
    name = draw(st.sampled_from(["tanh", "sin", "cos", "negative", "exp_small", "square", "root"]))
    if name == "exp_small":
        return ops.exp(ops.tanh(x))
    if name == "square":
        return ops.tanh(x * x)
    if name == "root":
        return ops.sqrt(x * x + 1.0)
    return getattr(ops, name)(x)


def _binary(draw: Any, x: Value, values: list[Value]) -> Value | None:
    fitting = [v for v in values if v.shape == x.shape or not v.shape]
    if not fitting:
        return None
    y = draw(st.sampled_from(fitting))
    name = draw(st.sampled_from(["add", "subtract", "multiply", "maximum", "divide"]))
    if name == "divide":
        return x / (y * y + 1.0)
    if name == "multiply":
        return ops.tanh(x * y)
    return getattr(ops, name)(x, y)


def _choice(draw: Any, x: Value, values: list[Value]) -> Value:
    return ops.select(x > 0.5, x * 2.0, ops.exp(ops.negative(x * x)))


def _reduce(draw: Any, x: Value, values: list[Value]) -> Value | None:
    if not x.shape:
        return None
    axes = draw(st.lists(st.integers(0, x.rank - 1), min_size=1, max_size=x.rank, unique=True))
    name = draw(st.sampled_from(["sum", "max", "min", "prod"]))
    if name == "sum":
        return ops.tanh(ops.sum(x, axes=tuple(sorted(axes))) * 0.25)
    if name == "prod":
        return ops.prod(ops.tanh(x), axes=tuple(sorted(axes)))
    return getattr(ops, name)(x, axes=tuple(sorted(axes)))


def _broadcast(draw: Any, x: Value, values: list[Value]) -> Value | None:
    if x.rank == 0:
        return ops.broadcast(x, shape=draw(st.sampled_from([(N,), (N, M), (3,)])), axes=())
    if x.shape == (N,):
        return ops.broadcast(x, shape=(N, M), axes=(0,))
    if x.shape == (M,):
        return ops.broadcast(x, shape=(N, M), axes=(1,))
    return None


def _move(draw: Any, x: Value, values: list[Value]) -> Value | None:
    if not x.shape:
        return None
    name = draw(st.sampled_from(["reverse", "transpose", "reshape", "part", "one", "concatenate", "pad", "cumsum"]))
    last = x.rank - 1
    if name == "reverse":
        return ops.reverse(x, axes=(last,))
    if name == "transpose":
        return ops.transpose(x, axes=tuple(reversed(range(x.rank))))
    if name == "reshape" and x.rank == 2:
        return ops.reshape(x, shape=(x.shape[0] * x.shape[1],))
    if name == "part":
        keep = tuple(Span(0, d) for d in x.shape[:-1])
        return ops.load(x, index=(*keep, Span(1, x.shape[-1] - 1)))
    if name == "one":
        keep = tuple(Span(0, d) for d in x.shape[:-1])
        return ops.load(x, const(0, Type("int64")), index=(*keep, At(), New()))
    if name == "concatenate":
        return ops.concatenate(x, ops.tanh(x), axis=last)
    if name == "pad":
        return ops.pad(x, low=(0,) * last + (1,), high=(0,) * last + (2,), interior=(0,) * x.rank)
    if name == "cumsum":
        return ops.tanh(ops.cumsum(x, axis=last, reverse=False) * 0.1)
    return None


def _product(draw: Any, x: Value, values: list[Value]) -> Value | None:
    partners = [v for v in values if v.rank == 1 and x.rank >= 1 and v.shape[0] == x.shape[-1]]
    if not partners:
        return None
    y = draw(st.sampled_from(partners))
    if x.rank > 2:
        return None
    return ops.tanh(ops.dot_general(x, y, contract=((x.rank - 1,), (0,)), batch=((), ())) * 0.2)


STEPS = (_unary, _unary, _binary, _binary, _choice, _reduce, _reduce, _broadcast, _broadcast, _move, _move, _product)
