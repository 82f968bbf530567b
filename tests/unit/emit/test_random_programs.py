"""Random programs of loops, branches and writes: the emitted text means what the evaluator says, whatever is written
to in place and whatever is copied."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.emit.programs import VECTOR, N, add_to, agrees, func, get, put

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.build import choose, const, for_loop, int_const, size_value, while_loop
from gradsmith.transpiler.ir.index import At, Span
from gradsmith.transpiler.ir.nodes import Func
from gradsmith.transpiler.ir.parse import parse
from gradsmith.transpiler.ir.show import show
from gradsmith.transpiler.ir.types import F64, Type
from gradsmith.transpiler.ir.verify import verify

LENGTH = 3
SQUARE = Type("float64", (N, N))


class Program:
    """Draws statements; `draw` is Hypothesis's."""

    def __init__(self, draw):
        self.draw = draw
        self.budget = 14

    def one(self, items):
        return self.draw(st.sampled_from(list(items)))

    def recent(self, values):
        """One of the values, mostly of the last ones, so that little of the program is dead."""
        return self.one([*values, *values[-3:], *values[-2:], *values[-1:]])

    def index(self, ints):
        return self.one([int_const(k) for k in range(LENGTH)] + ints)

    def number(self, scalars):
        return self.recent([const(self.one([0.5, -1.0, 2.0]), F64), *scalars])

    def statements(self, scalars, arrays, squares, ints, depth):
        """Values in scope after some more statements; lists are extended."""
        for _ in range(self.draw(st.integers(1, 4))):
            if self.budget <= 0:
                return
            self.budget -= 1
            kind = self.one(["scalar", "load", "store", "store", "add", "span", "view", "square", "loop", "loop",
                             "branch", "while"])
            if kind == "scalar":
                a, b = self.number(scalars), self.number(scalars)
                scalars.append(self.one([lambda: a + b, lambda: a * b - a, lambda: ops.sin(a) + b * b,
                                         lambda: ops.select(a > b, a, b - 1.0)])())
            elif kind == "load":
                scalars.append(get(self.recent(arrays), self.index(ints)))
            elif kind in ("store", "add"):
                write = put if kind == "store" else add_to
                arrays.append(write(self.recent(arrays), self.number(scalars), self.index(ints)))
            elif kind == "span":
                arrays.append(ops.load(self.recent(arrays), index=(Span(*self.one([(0, N, 1), (N - 1, N, -1)])),)))
            elif kind == "view":
                squares.append(ops.transpose(self.recent(squares), axes=(1, 0)))
            elif kind == "square":
                choice = self.draw(st.integers(0, 2))
                s = self.recent(squares)
                if choice == 0:
                    squares.append(put(s, self.number(scalars), self.index(ints), self.index(ints)))
                elif choice == 1:
                    arrays.append(ops.load(s, self.index(ints), index=(At(), Span(0, N))))
                else:
                    scalars.append(get(s, self.index(ints), self.index(ints)))
            elif depth < 2 and kind == "loop":
                self.loop(scalars, arrays, squares, ints, depth, counted=True)
            elif depth < 2 and kind == "while":
                self.loop(scalars, arrays, squares, ints, depth, counted=False)
            elif depth < 2 and kind == "branch":
                self.branch(scalars, arrays, squares, ints, depth)

    def loop(self, scalars, arrays, squares, ints, depth, counted):
        inits = [self.number(scalars) for _ in range(self.draw(st.integers(0, 2)))]
        first_array = len(inits)
        inits += [self.recent(arrays) for _ in range(self.draw(st.integers(0, 2)))]
        first_square = len(inits)
        inits += [self.recent(squares) for _ in range(self.draw(st.integers(0, 1)))]

        def body(i, *carries):
            mine = ([*scalars, *carries[:first_array]], [*arrays, *carries[first_array:first_square]],
                    [*squares, *carries[first_square:]], [*ints, i])
            self.statements(*mine, depth + 1)
            recent = [v[-4:] for v in mine]
            return [self.recent(recent[0 if k < first_array else 1 if k < first_square else 2])
                    for k in range(len(inits))]

        hints = [self.one(["u", "v", "t", "x"]) for _ in inits]
        if counted:
            found = for_loop(int_const(0), size_value(N), inits, body, hints=hints)
        else:
            found = while_loop([int_const(0), *inits], lambda i, *_: i < 2,
                               lambda i, *carries: [i + 1, *body(i, *carries)], hints=["k", *hints])[1:]
        scalars += found[:first_array]
        arrays += found[first_array:first_square]
        squares += found[first_square:]

    def branch(self, scalars, arrays, squares, ints, depth):
        counts = [self.draw(st.integers(0, 2)), self.draw(st.integers(0, 2)), self.draw(st.integers(0, 1))]

        def arm():
            mine = ([*scalars], [*arrays], [*squares])
            self.statements(*mine, ints, depth + 1)
            return [self.recent(values[-3:]) if values else const(1.0, F64) for values, count in zip(mine, counts)
                    for _ in range(count)]

        found = choose(self.number(scalars) > self.number(scalars), arm, arm, self.one(["t", "y"]))
        a, b = counts[0], counts[0] + counts[1]
        scalars += found[:a]
        arrays += found[a:b]
        squares += found[b:]


@st.composite
def programs(draw) -> Func:
    program = Program(draw)

    def body(x, y, A, s):
        scalars, arrays, squares = [s], [x, y, const(1.0, VECTOR)], [A, const(0.5, SQUARE)]
        program.statements(scalars, arrays, squares, [], 0)
        program.statements(scalars, arrays, squares, [], 0)
        results = [program.recent(scalars[-3:]), *(program.recent(arrays[-4:]) for _ in range(2)), program.recent(squares[-3:])]
        return results

    return func("f", {"x": VECTOR, "y": VECTOR, "A": SQUARE, "s": F64}, body)


ARGS = (np.array([0.5, -1.25, 2.0]), np.array([1.0, 0.25, -0.5]), np.arange(9.0).reshape(3, 3) / 8, 0.75)


@settings(max_examples=150, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs())
def test_plain_python_agrees_with_the_evaluator(f):
    agrees(f, *ARGS)


@st.composite
def programs_with_effects(draw) -> Func:
    """The last results are left in some of the parameters."""
    made = draw(programs())
    scalar, one, two, square = made.results
    chosen = draw(st.sampled_from(["x", "y", "xy", "yx", "xA", "A", "xyA"]))
    params = {p.name: p for p in made.params}
    arrays = [*made.params, *(t for s in made.body.stmts for t in s.targets)]
    effects, finals = [], []
    for name in chosen:
        suited = [v for v in arrays if v.type == params[name].type]
        effects.append(params[name])
        finals.append(draw(st.sampled_from([one, two] if name != "A" else [square])) if draw(st.booleans()) else
                      draw(st.sampled_from([*suited, *suited[-3:], *suited[-2:]])))
    returned = (scalar, one, two, square)[:draw(st.integers(0, 4))]
    body = dataclasses.replace(made.body, results=(*returned, *finals))
    made = dataclasses.replace(made, body=body, effects=tuple(effects))
    verify(made)
    return made


@settings(max_examples=200, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs_with_effects())
def test_effects_are_left_in_the_parameters(f):
    agrees(f, *ARGS)
    assert show(parse(show(f))) == show(f)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs())
def test_compiled_text_agrees_with_the_evaluator(f):
    agrees(f, *ARGS, compiled=True, exact=False)
