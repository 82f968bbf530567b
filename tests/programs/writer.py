"""Random programs as a Hypothesis strategy: the text of `f(x, A, c, n, q)` and arguments for it.

x: 8 floats.  A: 3 rows of 4 floats.  c: a float.  n: an int, the trips of many of its loops.  q: 3 ints from -1 to 2,
as indices and as bounds.  `f` returns a number and up to two arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .scope import COLUMNS, LONG, ROWS, Scope
from .statements import Statements

TRIPS = (0, 1, 2, 3, 7)
INDICES = ((0, 1, 2), (1, 1, 0), (2, -1, 0), (0, 0, 0), (-1, 2, -1))


@dataclass(frozen=True)
class Program:
    """source: the text of a module with `f`.  seed: of its arguments.  indices: its `q`.  fixed: sizes are known while
    transpiling.  writes: `f` may write to its arguments."""

    source: str
    seed: int
    indices: tuple[int, ...]
    fixed: bool
    writes: bool = False

    def arguments(self, trips: int) -> list[Any]:
        rng = np.random.default_rng(self.seed)
        return [rng.normal(size=LONG), rng.normal(size=(ROWS, COLUMNS)), float(rng.normal()), trips,
                np.array(self.indices)]

    def tangents(self, which: int = 0) -> list[Any]:
        """A direction in the space of arguments; None for ints."""
        rng = np.random.default_rng(self.seed + 1000 + which)
        return [rng.normal(size=LONG), rng.normal(size=(ROWS, COLUMNS)), float(rng.normal()), None, None]

    def __str__(self) -> str:
        return f"{self.source}\n# seed {self.seed}, q = {self.indices}{', fixed sizes' if self.fixed else ''}\n"


@st.composite
def programs(draw: Any) -> Program:
    helpers: dict[str, Any] = {}
    text = ["import numpy as np", "", "W = np.array([0.4, -0.6, 0.9, -0.2])", ""]
    for name in ("g", "h")[:draw(st.integers(0, 2))]:
        text += _helper(draw, name, helpers)
    writes = draw(st.integers(0, 3)) == 3
    text += _main(draw, helpers, writes)
    return Program("\n".join(text) + "\n", draw(st.integers(0, 999)), INDICES[draw(st.integers(0, len(INDICES) - 1))],
                   draw(st.booleans()), writes)


def _helper(draw: Any, name: str, helpers: dict[str, Any]) -> list[str]:
    """A function of an array that it may write to, and a float."""
    shape = (COLUMNS,) if draw(st.booleans()) else (LONG,)
    scope = Scope(floats=["t"], arrays={"a": shape, "W": (COLUMNS,)}, fresh={"a"}, read_only={"W"}, helpers=dict(helpers))
    writer = Statements(draw, scope)
    writer.budget, writer.loops, writer.trips = 4, 3, "3"
    writer.some(3)
    writer.emit(f"return {writer.number()}")
    helpers[name] = shape
    return [f"def {name}(a, t):", *writer.lines, ""]


def _inner_function(writer: Statements, scope: Scope) -> None:
    """A closure that changes a number and an array of the function around."""
    written = next(n for n in ("y", "z") if n in scope.arrays)
    at = ", ".join("0" for _ in scope.arrays[written])
    for line in ("def bump(v):", "    nonlocal s", f"    s {writer.pick(('+=', '='))} {writer.pick(('v * 0.5', 'np.sin(v + s)'))}",
                 f"    {written}[{at}] {writer.pick(('+=', '*='))} {writer.pick(('0.5', 's', 'np.cos(v)'))}", "    return s"):
        writer.emit(line)
    scope.helpers["bump"] = None


def _main(draw: Any, helpers: dict[str, Any], writes: bool) -> list[str]:
    scope = Scope(floats=["s"], fixed=["c"], ints={"n": None}, arrays={"x": (LONG,), "A": (ROWS, COLUMNS)},
                  read_only={"q"} if writes else {"x", "A", "q"}, helpers=dict(helpers))
    writer = Statements(draw, scope)
    writer.kernel = draw(st.booleans())
    writer.emit(f"s = {writer.pick(('0.5', 'c', 'c * c', 'x[0]', '0.0'))}")
    for name in ("y", "z")[:draw(st.integers(1, 2))]:
        shape = writer.pick(((LONG,), (LONG,), (COLUMNS,), (ROWS, COLUMNS)))
        writer.bind(name, writer.pick((writer.made_array(shape), f"{writer.array(shape, 0)} * 1.0")), shape)
    if draw(st.integers(0, 3)) == 3:
        _inner_function(writer, scope)
    arrays = [n for n in ("y", "z") if n in scope.arrays]
    scope.returns = tuple(arrays[:draw(st.integers(0, len(arrays)))])
    writer.some(7, 92)
    total = [*scope.floats, *(f"np.sum({a} * {k + 1}.0)" for k, a in enumerate(scope.arrays) if scope.arrays[a]),
             *(f"{p}[0] * {p}[1]" for p in scope.pairs), *(f"{d}['a'] * 2.0 + {d}['b']" for d in scope.dicts),
             *(f"sum({name})" for name in scope.lists)]
    writer.emit("return " + ", ".join((" + ".join(total), *scope.returns)))
    return ["def f(x, A, c, n, q):", *writer.lines]
