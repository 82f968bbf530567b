"""Random programs of stores: through names, views and containers, with repeated indices, masks and NumPy's functions, in
loops and branches, some with an exception in between.

Each is compared with CPython on the same arrays: results, what the caller's arrays hold afterwards (also after an
exception), and derivatives in both modes with differences; batches with each lane by itself, second derivatives with
differences of first ones.
"""

import copy
import linecache

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from in_place import flat
from tracing import leaves

from gradsmith.transpiler import pipeline
from gradsmith.transpiler.emit.python import emit
from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.trees import rebuild
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

# What a program may be refused for: which array a name is, or whether it is a view, depends on the run.
REFUSALS = frozenset({"E121", "E122", "E123", "E124", "E311"})
VECTORS = ("x[1:]", "x[::-1]", "x[::2]", "a[0]", "a[:, 1]", "a[-1, ::-1]", "a.T[2]", "a.reshape(-1)", "a.ravel()[2:7]",
           "np.diag(a)", "np.split(x, [2])[1]", "x", "x.copy()", "x[[0, 2, 1]]", "box['v']", "a[1:][0]", "a.flat[3:6]")
MATRICES = ("a", "a.T", "a[1:]", "a[::-1, ::2]", "a.swapaxes(0, 1)", "np.flip(a, 1)", "a.copy()", "a[:, None, 1]",
            "x.reshape(-1, 1)", "np.rot90(a)")


class Program:
    """Lines of a function of x (a vector), a (a matrix), y (a vector that is read), i (ints) and n (trips)."""

    def __init__(self, draw):
        self.draw = draw
        self.lines = []
        self.vectors, self.matrices, self.ints = ["x"], ["a"], ["0", "1", "-1", "i[0]"]
        self.count = 0

    def one(self, options):
        return self.draw(st.sampled_from(list(options)))

    def number(self):
        atom = self.one([f"{self.one(self.vectors)}[{self.one(self.ints)}]", "y[1]", "s", "0.7", "a[0, 1]",
                         f"{self.one(self.matrices)}[{self.one(self.ints)}, 0]", f"np.sum({self.one(self.vectors)})"])
        return self.one(["{}", "np.sin({})", "0.5 * {} + y[0]", "np.tanh({}) * s", "{} * 0.3"]).format(atom)

    def vector_part(self):
        return self.one(["1:", ":-1", "::-1", "::2", "[0, 1, 0]", "i[:2]", "[1, -1]", ":"])

    def statement(self, depth):
        pad = "    " * depth
        v, m, k, number = self.one(self.vectors), self.one(self.matrices), self.one(self.ints), self.number()
        part, op = self.vector_part(), self.one(["=", "+=", "*=", "-="])
        kind = self.one(["element", "element", "part", "part", "whole", "view", "view", "read", "read", "mask", "matrix",
                         "matrix", "function", "function", "function", "loop", "branch", "raise", "swap", "box"])
        if kind == "element":
            self.lines.append(f"{pad}{v}[{k}] {op} {number}")
        elif kind == "part":
            self.lines.append(f"{pad}{v}[{part}] {op} {self.one([number, f'np.sin({v}[{part}])', f'{v}[{part}] * y[0]'])}")
        elif kind == "whole":
            self.lines.append(f"{pad}{v} {self.one(['*=', '+=', '-='])} {number}")
        elif kind == "view":
            self.count += 1
            name, is_vector = f"v{self.count}", self.draw(st.booleans())
            self.lines.append(f"{pad}{name} = {self.one(VECTORS if is_vector else MATRICES)}")
            (self.vectors if is_vector else self.matrices).append(name)
        elif kind == "read":
            self.lines.append(f"{pad}s = 0.5 * s + {number}")
        elif kind == "mask":
            self.lines.append(f"{pad}{v}[y[0] < y[1:1 + len({v})] * 0 + {self.one(['9.0', '-9.0'])}] {op} {number}"
                              if depth < 0 else f"{pad}{m}[{m} > {self.one(['40.0', '-40.0'])}] {op} {number}")
        elif kind == "matrix":
            self.lines.append(pad + self.one([
                f"{m}[{k}, 0] {op} {number}", f"{m}[{k}] {op} {number}", f"{m}[:, 0] {op} {number}",
                f"{m}[[0, 0], [0, 0]] {op} {number}", f"{m}[..., 0] {op} {m}[..., 0] * 0.5", f"{m} *= {number}",
                f"{m}.flat[{k}] {op} {number}"]))
        elif kind == "function":
            self.lines.append(pad + self.one([
                f"np.add.at({v}, i[:2], {number})", f"np.multiply.at({v}, [0, 0], {number})", f"{v}.fill({number})",
                f"np.copyto({v}, {number})", f"np.put({m}, [0, 1, 0], [{number}, 0.3])", f"np.sin({v}, out={v})",
                f"np.multiply({v}, {number}, out={v})", f"np.add({m}, {number}, out={m}, where={m} < 50.0)",
                f"np.fill_diagonal(a, {number})", f"np.putmask({v}, {v} < 50.0, {number})", f"np.cumsum({v}, out={v})",
                f"np.copyto({m}, {number}, where={m} < -50.0)", f"np.subtract.at({m}, ([0, 0], [0, 0]), {number})",
                f"np.put_along_axis(a, i[:3, None], {number}, 1)", f"np.nan_to_num({v}, copy=False)",
                f"np.place({m}, {m} < 50.0, [{number}])", f"helper({v}, {number})"]))
        elif kind == "swap":
            self.lines.append(f"{pad}{v}[0], {v}[-1] = {v}[-1], {v}[0]")
        elif kind == "box":
            self.lines.append(pad + self.one([f"box['v'] {self.one(['+=', '*='])} {number}", f"box['v'][{k}] = {number}"]))
        elif kind == "raise":
            self.lines.append(f"{pad}if n == {self.one('0123789')}:\n{pad}    raise ValueError('stop')")
        elif depth < 3:
            self.nested(pad, depth, kind)

    def nested(self, pad, depth, kind):
        known = self.vectors[:], self.matrices[:], self.ints[:]
        if kind == "loop":
            self.count += 1
            self.lines.append(f"{pad}for k{self.count} in range({self.one(['n', '2', 'n - 1'])}):")
            self.ints.append(f"k{self.count} % 2")
        else:
            self.lines.append(f"{pad}if n > {self.one('0123')}:")
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth + 1)
        self.lines.append(f"{pad}    s *= 0.9")
        self.vectors, self.matrices, self.ints = known


HEAD = """def helper(w, t):
    w[0] = t
    w[1:] *= 0.5

def f(x, a, y, i, n):
    s = 0.25
    box = {'v': x}
"""


@st.composite
def programs(draw):
    program = Program(draw)
    for _ in range(draw(st.integers(3, 9))):
        program.statement(1)
    return HEAD + "\n".join(program.lines) + "\n    return s + x[0] * a[1, 1]\n"


def loaded(text):
    file = f"<random {hash(text)}>"
    linecache.cache[file] = (1, None, text.splitlines(True), file)
    namespace = {"np": np}
    exec(compile(text, file, "exec"), namespace)
    return namespace["f"]


def arguments(trips):
    x, y = np.array([0.3, -0.6, 0.9, 1.2]), np.array([0.4, -0.2, 0.1])
    return [x, np.arange(9.0).reshape(3, 3) / 7 - 0.5, y, np.array([1, 0, 2]), trips]


def outcome(fun, args):
    """The result, or the exception's class."""
    try:
        with np.errstate(all="ignore"):
            return fun(*args)
    except (ValueError, IndexError, TypeError) as problem:
        return next(c for c in type(problem).__mro__ if c.__module__ == "builtins")


def emitted(found):
    """The traced function as lowered and emitted, in plain Python."""
    text = emit(pipeline.run(found.func), decorator=False)
    namespace = {}
    exec(compile(text, "<emitted>", "exec"), namespace)
    return namespace[found.func.name], text


def check(text, trips):
    fun = loaded(text)
    expected_args, actual_args = arguments(trips), arguments(trips)
    expected = outcome(fun, expected_args)
    try:
        found = trace(fun, tuple(leaves(a, f"a{k}") for k, a in enumerate(actual_args)))
    except TranspileError as problem:
        code = problem.problems[0].code
        if isinstance(expected, type):
            assert code in REFUSALS or isinstance(problem, expected), text
        assert code in REFUSALS or isinstance(expected, type), f"{problem}\n{text}"
        assume(False)
    call, written = emitted(found)
    run_time = [a for a, leaf in zip(actual_args, leaves_of_arguments(found, actual_args)) if leaf]
    actual = outcome(call, run_time)
    note = f"{text}\n{written}"
    if isinstance(expected, type):
        assert actual is expected, note
    else:
        np.testing.assert_allclose(rebuild(found.out_tree, (actual,)), expected, rtol=1e-12, atol=1e-12, err_msg=note)
    for want, have in zip(expected_args[:4], actual_args[:4]):
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12, err_msg=note)
    if not isinstance(expected, type):
        check_derivatives(fun, found, trips, text)


def leaves_of_arguments(found, args):
    """Which arguments are parameters: an int may have been made static."""
    return [True] * 4 + [len(found.leaves) == 5]


def check_derivatives(fun, found, trips, text):
    values = [np.array(a) if isinstance(a, np.ndarray) else a for a, is_param in zip(
        arguments(trips), leaves_of_arguments(found, None)) if is_param]
    wanted = [np.asarray(v).dtype.kind == "f" for v in values]
    rng = np.random.default_rng(0)
    tangents = [rng.normal(size=np.shape(v)) for v, w in zip(values, wanted) if w]
    count = len(found.func.results)
    results = evaluate(found.func, *values)
    moved = evaluate(jvp(found.func, wanted), *values, *tangents)[count:]
    cts = [np.asarray(rng.normal(size=np.shape(r)))[()] for r in results]
    bars = evaluate(vjp(found.func, wanted), *values, *cts)[count:]
    forward, reverse = (sum(np.sum(p * q) for p, q in pairs) for pairs in (zip(cts, moved), zip(bars, tangents)))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-9, err_msg=text)

    def at(step):
        args = arguments(trips)
        for k, tangent in zip((0, 1, 2), tangents):
            args[k] = args[k] + step * tangent
        result = fun(*args)
        return flat([result, *(args[k] for k, p in enumerate(found.func.params) if p in found.func.effects)])

    differences = [(up - down) / 2e-6 for up, down in zip(at(1e-6), at(-1e-6))]
    for want, have in zip(differences, moved, strict=True):
        scale = 1.0 + np.max(np.abs(want), initial=0.0)
        assert np.max(np.abs(want - have), initial=0.0) < 1e-5 * scale, text


@settings(max_examples=100, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])
@given(programs(), st.sampled_from([0, 1, 2, 3, 7]))
def test_random_stores(text, trips):
    check(copy.copy(text), trips)


def evaluated(func, lanes, batched, extra=()):
    """Each lane by itself, stacked."""
    found = [evaluate(func, *lane, *extra) for lane in lanes]
    return [np.stack(parts) for parts in zip(*found)], [
        np.stack([lane[k] for lane in lanes]) if batched[k] else lanes[0][k] for k in range(len(batched))]


@settings(max_examples=40, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])
@given(programs(), st.sampled_from([0, 1, 2, 3]))
def test_random_stores_in_batches_and_to_second_order(text, trips):
    args = arguments(trips)
    assume(not isinstance(outcome(loaded(text), arguments(trips)), type))
    try:
        func = trace(loaded(text), tuple(leaves(a, f"a{k}") for k, a in enumerate(args))).func
    except TranspileError:
        assume(False)
    values = args[:len(func.params)]
    moves = [isinstance(v, np.ndarray) and v.dtype.kind == "f" for v in values]
    lanes = [[v + 0.1 * k if m else v for v, m in zip(values, moves)] for k in range(3)]
    expected, batch = evaluated(func, lanes, moves)
    for want, have in zip(expected, evaluate(vmap(func, moves, 3), *batch), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-10, err_msg=text)

    cts = [np.cos(np.arange(np.size(r)) + 1.0).reshape(np.shape(r))[()] for r in evaluate(func, *values)]
    pulled = vjp(func, moves)
    batched = [*moves, *[False] * len(cts)]
    expected, _ = evaluated(pulled, lanes, moves, cts)
    for want, have in zip(expected, evaluate(vmap(pulled, batched, 3), *batch, *cts), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9, err_msg=text)

    rng = np.random.default_rng(1)
    steps = [rng.normal(size=np.shape(v)) if m else 0 for v, m in zip(values, moves)]
    up, down = (evaluate(pulled, *(v + sign * 1e-6 * s if m else v for v, s, m in zip(values, steps, moves)), *cts)
                for sign in (1, -1))
    count = len(func.results)
    moved = evaluate(jvp(pulled, batched), *values, *cts, *(s for s, m in zip(steps, moves) if m))[len(up) + count:]
    for want, have in zip([(u - d) / 2e-6 for u, d in zip(up, down)][count:], moved, strict=True):
        assert np.max(np.abs(want - have)) < 2e-5 * (1.0 + np.max(np.abs(want))), text
