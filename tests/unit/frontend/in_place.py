"""Programs that write in place, compared with NumPy: values, what the caller's arrays hold afterwards, and derivatives
in both modes with differences."""

import copy
import linecache
import re

import numpy as np
import pytest
from tracing import leaves, same

from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.trees import rebuild
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp

GIVEN = {
    "x": np.array([1.1, 2.2, 3.3, 4.4, 5.5]), "y": np.array([0.45, -1.1, 2.3, 0.31, -2.2]),
    "a": np.arange(12.0).reshape(3, 4) + 1.05, "i": np.array([1, 3, 1, 0]),
}


def given(fun):
    return [GIVEN[name].copy() for name in fun.__code__.co_varnames[:fun.__code__.co_argcount]]


def flat(tree):
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in flat(part)]
    return [] if tree is None else [np.asarray(tree)]


def agrees(fun):
    """Value, effects, and derivatives of the results in the floats among the arguments."""
    args = given(fun)
    after = copy.deepcopy(args)
    expected = fun(*after)
    found = trace(fun, tuple(leaves(a, f"a{k}") for k, a in enumerate(args)))
    values = [leaf.example for leaf in found.leaves]
    results = evaluate(found.func, *values)
    count = len(found.func.returned)
    same(expected, rebuild(found.out_tree, results[:count]))
    effects = dict(zip(found.func.effects, results[count:]))
    for param, value, want in zip(found.func.params, values, after):
        same(want, np.asarray(effects.get(param, value)))

    wanted = [v.dtype.kind == "f" for v in values]
    inexact = [k for k, r in enumerate(found.func.results) if r.type.is_inexact]
    if not any(wanted) or not inexact:
        return
    rng = np.random.default_rng(0)
    tangents = [rng.normal(size=v.shape) for v, w in zip(values, wanted) if w]
    cts = [np.asarray(rng.normal(size=np.shape(results[k])))[()] for k in inexact]
    moved = evaluate(jvp(found.func, wanted), *values, *tangents)[len(results):]
    bars = evaluate(vjp(found.func, wanted), *values, *cts)[len(results):]
    np.testing.assert_allclose(sum(np.sum(c * m) for c, m in zip(cts, moved)),
                               sum(np.sum(b * t) for b, t in zip(bars, tangents)), rtol=1e-9, atol=1e-12)

    def at(step):
        ways, rest = [], iter(tangents)
        for value, w in zip(args, wanted):
            ways.append(value + step * next(rest) if w else value.copy())
        found_now = flat(fun(*ways)) + [v for v, param in zip(ways, found.func.params) if param in effects]
        return [v for v in found_now if v.dtype.kind in "fc"]

    differences = [(up - down) / 2e-6 for up, down in zip(at(1e-6), at(-1e-6))]
    for want, have in zip(differences, moved, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def raises(fun, kind):
    args = given(fun)
    with pytest.raises(kind):
        fun(*copy.deepcopy(args))
    with pytest.raises(kind):
        found = trace(fun, tuple(leaves(a, f"a{k}") for k, a in enumerate(args)))
        evaluate(found.func, *(leaf.example for leaf in found.leaves))


def program(name, text):
    """The statements as a function of those of GIVEN that they name."""
    params = [p for p in GIVEN if p in set(re.findall(r"\w+", text))]
    lines = [f"def {name}({', '.join(params)}):\n", *(f"    {line}\n" for line in text.split("; "))]
    file = f"<{name}>"
    linecache.cache[file] = (1, None, lines, file)
    namespace = {"np": np}
    exec(compile("".join(lines), file, "exec"), namespace)
    return namespace[name]


__all__ = ["GIVEN", "agrees", "given", "program", "raises"]
