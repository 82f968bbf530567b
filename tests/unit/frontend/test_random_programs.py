"""Random straight-line programs with views, aliases, writes, containers and static control flow, against CPython."""

import linecache
import random

import numpy as np
from tracing import check

from gradsmith.transpiler.errors import TranspileError

COLUMNS, ROWS = 3, 4          # sizes that no slice below confuses with each other


class Writer:
    """Writes one function of a matrix `x` and a vector `v`; every name's shape is known, so that the code runs."""

    def __init__(self, random):
        self.random, self.lines, self.count = random, [], 0
        self.shapes = {"x": (ROWS, COLUMNS), "v": (COLUMNS,)}
        self.writable = set()

    def pick(self, options):
        return self.random.choice(list(options))

    def name(self, shape, text, writable=True):
        self.count += 1
        name = f"a{self.count}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = shape
        if writable:
            self.writable.add(name)

    def some(self, rank=None):
        return self.pick(sorted(n for n, s in self.shapes.items() if rank is None or len(s) == rank))

    def elementwise(self):
        a, b = self.some(), self.some()
        try:
            shape = np.broadcast_shapes(self.shapes[a], self.shapes[b])
        except ValueError:
            return
        op = self.pick(["{} + {}", "{} * {}", "{} - 0.5 * {}", "np.maximum({}, {})", "np.where({} > {}, 1.5, -0.5)",
                        "np.hypot({}, {})", "{} / (1.0 + {} ** 2)"])
        self.name(shape, op.format(a, b))

    def unary(self):
        a = self.some()
        op = self.pick(["np.tanh({})", "-{}", "{} ** 2", "np.exp(-{} ** 2)", "abs({})", "{}.copy()", "np.clip({}, -1, 1)"])
        self.name(self.shapes[a], op.format(a))

    def reduction(self):
        a = self.some()
        rank = len(self.shapes[a])
        if rank == 0 or 0 in self.shapes[a]:
            return
        axis = self.random.randrange(-rank, rank)
        shape = tuple(n for k, n in enumerate(self.shapes[a]) if k != axis % rank)
        op = self.pick(["np.sum({}, axis={})", "{}.mean(axis={})", "np.max({}, {})", "np.cumsum({}, {})"])
        self.name(self.shapes[a] if "cumsum" in op else shape, op.format(a, axis))

    def view(self):
        a = self.some()
        if not self.shapes[a]:
            return
        key = self.pick(["[1:]", "[:-1]", "[::-1]", "[::2]", "[0]", "[-1]", ".T", ".reshape(-1)", "[None]", "[..., 0]",
                         "[..., 1:]", "[-2:, ...]", "[[0, -1]]", "[...]"])
        try:
            shape = eval(f"a{key}", {"a": np.zeros(self.shapes[a])}).shape
        except IndexError:
            return
        self.name(shape, f"{a}{key}", a in self.writable)

    def alias(self):
        a = self.some()
        self.name(self.shapes[a], a, a in self.writable)

    def write(self):
        options = sorted(n for n in self.writable if self.shapes[n])
        if not options:
            return
        a = self.pick(options)
        key = self.pick(["[0]", "[1:]", "[...]", "[::-1]", "[[0, -1]]", "[..., -1]", f"[{a} > 0.3]"])
        try:
            eval(f"a{key}" if ">" not in key else "a", {"a": np.zeros(self.shapes[a])})
        except IndexError:
            return
        sign = self.pick(["=", "+=", "*=", "-="])
        value = self.pick(["0.25", "1", "-2.0", "np.float64(0.5)"])
        self.lines.append(f"{a}{key} {sign} {value}")

    def update(self):
        options = sorted(n for n in self.writable if self.shapes[n])
        if not options:
            return
        a = self.pick(options)
        b = self.pick([n for n in self.shapes if self.shapes[n] in (self.shapes[a], ())] or ["1.5"])
        self.lines.append(f"{a} {self.pick(['+=', '*=', '-='])} {b}")

    def control(self):
        a = self.some()
        text = self.pick([
            "{a}.ndim + sum(k for k in range({a}.ndim + 1) if k % 2)", "len([s for s in {a}.shape if s > 1])",
            "(lambda *t, k=2: t[0] * k + len(t))({a}, *range(2))", "{a} if {a}.size > 4 else {a} * 2",
            "dict(zip('pq', ({a}, 1)))['p'] + 0", "[{a}, {a} * 3][-1]", "max({a}.shape, default=0) * 1.0",
        ]).format(a=a)
        shape = self.shapes[a] if a in text.replace(f"{a}.ndim", "").replace(f"{a}.shape", "").replace(
            "max(", "") else ()
        self.name(shape, text, writable=False)

    def source(self):
        steps = [self.elementwise, self.unary, self.reduction, self.view, self.alias, self.write, self.update, self.control,
                 self.write]
        for _ in range(self.random.randint(3, 12)):
            self.pick(steps)()
        body = "\n    ".join(self.lines) or "pass"
        results = ", ".join(sorted(self.shapes, key=len))
        return f"import numpy as np\n\ndef f(x, v):\n    {body}\n    return ({results},)\n"


def program(seed):
    """A program, or None where Python itself rejects what was written."""
    source = Writer(random.Random(seed)).source()
    name = f"<program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"], source


def run_programs(seeds):
    """How many ran; those whose meaning hangs on the order in memory are refused, and few."""
    ran = refused = 0
    for seed in seeds:
        f, source = program(seed)
        rng = np.random.default_rng(seed)
        x, v = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
        try:
            f(x.copy(), v.copy())
        except Exception:
            continue
        try:
            check(f, x, v, fixed=seed % 2 == 0)
            ran += 1
        except TranspileError as problem:
            assert problem.code == "E123", f"{source}\n{problem}"
            refused += 1
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}:\n{source}\n{problem}") from None
        finally:
            del linecache.cache[f"<program {seed}>"]
    return ran, refused


def test_programs_mean_what_python_says():
    ran, refused = run_programs(range(150))
    assert ran > 90
    assert refused < 15
