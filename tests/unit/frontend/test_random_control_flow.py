"""Random programs with branches, loops, early exits, aliases and stores, against CPython."""

import linecache
import random

import numpy as np
from loose import check_values

from gradsmith.transpiler.errors import TranspileError

# What a program may be refused for: which array a name is, or which type a variable has, depends on the run.
REFUSALS = frozenset({"E121", "E122", "E123", "E311"})


HEAD = """import numpy as np

def g(a, t):
    if t > 0.5:
        a[0] = t
        return t * 0.5
    for k in range(3):
        a[k] *= 0.5
        if a[k] > t:
            return a[k] + 1.0
    return t + 1.0

def f(x, c, n):
"""


class Writer:
    """Writes one function of `x` (an array), `c` (a float) and `n` (an int)."""

    def __init__(self, random):
        self.random = random
        self.lines = []
        self.numbers = ["c", "s"]
        self.ints = ["n"]
        self.arrays = ["y", "z"]
        self.count = 0
        self.loops = 0

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def pick(self, *options):
        return self.random.choice(options)

    def number(self):
        atom = lambda: self.pick(*self.numbers, self.element(), f"{self.random.uniform(-2, 2):.2f}")  # noqa: E731
        return self.pick("{} + {}", "{} * {}", "{} - {}", "np.sin({}) * {}", "np.tanh({} + {})", "max({}, {})",
                         "{0} if {0} > {1} else {1}", "abs({}) - {}").format(atom(), atom())

    def element(self):
        return f"{self.pick('x', *self.arrays)}[{self.index()}]"

    def index(self):
        return self.pick("0", "-1", "1", *(f"{i} % 4" for i in self.ints), *(f"({i} + 1) % 4" for i in self.ints))

    def condition(self):
        simple = lambda: self.pick(  # noqa: E731
            f"{self.number()} > {self.random.uniform(-1, 1):.2f}", f"{self.pick(*self.ints)} % 2 == 0",
            f"{self.pick(*self.ints)} < {self.random.randint(0, 4)}", f"{self.element()} < {self.pick(*self.numbers)}")
        return self.pick("{}", "not {}", "{} and {}", "{} or {}", "{}").format(simple(), simple())

    def block(self, depth, in_loop, budget):
        start = len(self.lines)
        known = self.numbers[:], self.arrays[:], self.ints[:]
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, in_loop, budget)
        if len(self.lines) == start:
            self.emit(depth, "pass")
        return known

    def statement(self, depth, in_loop, budget):
        kind = self.random.random()
        if kind < 0.2:
            self.emit(depth, f"{self.pick('s', *self.numbers[1:])} {self.pick('=', '+=', '*=', '-=')} {self.number()}")
        elif kind < 0.27:
            self.count += 1
            self.emit(depth, f"t{self.count} = {self.number()}")
            if depth == 1 or self.random.random() < 0.5:
                self.numbers.append(f"t{self.count}")
        elif kind < 0.47:
            self.emit(depth, f"{self.pick(*self.arrays)}[{self.index()}] {self.pick('=', '+=', '*=', '-=')} "
                      f"{self.number()}")
        elif kind < 0.55:
            target = self.pick(*self.arrays)
            self.emit(depth, self.pick(f"{target} = {self.pick('x', *self.arrays)} * {self.pick(*self.numbers)}",
                                       f"{target} = {target} + {self.pick('x', *self.arrays)}",
                                       f"{target}[1:] = {self.pick('x', *self.arrays)}[:-1]",
                                       f"{target}[:2] += {self.pick(*self.numbers)}",
                                       f"{target} = {self.pick(*self.arrays)}.copy()",
                                       "y, z = z, y", f"w = {target}", f"w = {target}[::-1]", "w[0] += 1.0",
                                       f"w[{self.index()}] = {self.number()}", f"z = {target}", "z = w * 1.0",
                                       f"l[{self.pick('0', '1', '-1')}] = {self.number()}", "l[0], l[1] = l[1], l[0]",
                                       f"l = [l[1], {self.number()}]", "s += l[0]", "m = l", "d['a'] = d['b'] * 0.5",
                                       f"d = dict(d, b={self.number()})", f"s = g({target}, s)", "bump()",
                                       f"s = p[0]; p = (p[1], {self.number()})",
                                       f"{target} *= 0.5", f"v = {target}[1:]; v[0] += 1.0"))
        elif kind < 0.62 and in_loop:
            self.emit(depth, f"if {self.condition()}:")
            self.emit(depth + 1, self.pick("break", "continue"))
        elif kind < 0.66 and depth > 1:
            self.emit(depth, f"if {self.condition()}:")
            self.emit(depth + 1, f"return {self.pick(*self.numbers)} * 1.0, y, z")
        elif budget > 0 and kind < 0.84:
            self.emit(depth, f"if {self.condition()}:")
            self.block(depth + 1, in_loop, budget - 1)
            if self.random.random() < 0.3:
                self.emit(depth, f"elif {self.condition()}:")
                self.block(depth + 1, in_loop, budget - 1)
            if self.random.random() < 0.6:
                self.emit(depth, "else:")
                self.block(depth + 1, in_loop, budget - 1)
        elif budget > 0 and self.loops < 4:
            self.loops += 1
            i = f"i{self.loops}"
            if self.random.random() < 0.3:
                self.emit(depth, f"k{self.loops} = 0")
                self.emit(depth, f"while k{self.loops} < {self.pick('n', '3', '2')}:")
                self.emit(depth + 1, f"k{self.loops} += 1")
                i = f"k{self.loops}"
            else:
                over = self.pick(
                    f"for {i} in range(n):", f"for {i} in range(1, 4):", f"for {i} in range(n, -1, -1):",
                    f"for {i}, e{i} in enumerate(x):", f"for {i} in range({self.pick(*self.ints)}):",
                    f"for {i} in range(len(x)):", f"for {i} in range(0, n, 2):")
                self.emit(depth, over)
            self.ints.append(i)
            self.block(depth + 1, True, budget - 1)
            self.ints.remove(i)
            if self.random.random() < 0.2:
                self.emit(depth, "else:")
                self.emit(depth + 1, f"s += {self.number()}")
        else:
            self.emit(depth, f"s += {self.number()}")

    def source(self):
        for text in ("s = 0.5", "y = x * 1.0", "z = np.zeros(4)", "w = x * 2.0", "l = [s, c]", "m = [1.0, 2.0]",
                     "d = {'a': 1.0, 'b': c}", "p = (s, c)", "calls = 0", "def bump():", "    nonlocal calls, s",
                     "    calls += 1", "    s += z[calls % 4]"):
            self.emit(1, text)
        for _ in range(self.random.randint(2, 5)):
            self.statement(1, False, 2)
        result = " + ".join(name for name in self.numbers if name != "c")
        self.emit(1, f"return {result} + calls + w[1] + l[0] + m[1] + d['a'] + p[0], y, z")
        return HEAD + "\n".join(self.lines) + "\n"


def program(seed):
    source = Writer(random.Random(seed)).source()
    name = f"<control flow {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"], source


def run_programs(seeds):
    """How many ran, and the codes of those that were refused."""
    ran, refused = 0, []
    for seed in seeds:
        f, source = program(seed)
        rng = np.random.default_rng(seed)
        try:
            for n in (0, 1, 2, 3, 7):
                x, c = rng.normal(size=4), float(rng.normal())
                with np.errstate(all="ignore"):
                    check_values(f, x, c, n, fixed=seed % 3 == 0)
            ran += 1
        except TranspileError as problem:
            assert problem.code in REFUSALS, f"seed {seed}:\n{source}\n{problem}"
            refused.append(problem.code)
        except Exception as problem:
            raise AssertionError(f"seed {seed}:\n{source}\n{problem!r}") from problem
        finally:
            del linecache.cache[f"<control flow {seed}>"]
    return ran, refused


def test_programs_mean_what_python_says():
    ran, refused = run_programs(range(60))
    assert ran > 40
    assert len(refused) < 15
