"""Random functions of a matrix, a vector and numbers, with branches and loops that the batch decides and others that it
does not: vmap is a loop over lanes, and its derivatives are the lanes'.  All in IR, by its evaluator."""

import random

import numpy as np
import pytest

from gradsmith.transpiler.frontend.trace import trace
from gradsmith.transpiler.frontend.values import Leaf
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.library import main_of
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.batch_dependence import Parts, parting
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
from gradsmith.transpiler.transforms.vmap import vmap

LANES, SIZE = 4, 9          # large enough for products to be products

VECTORS = ["m @ {v}", "m.T @ {v}", "np.tanh({v})", "{v} * {s}", "0.5 * {v} + {w}", "np.sin({v}) - {w}", "{v}[::-1]",
           "np.linalg.solve(m @ m.T + 9 * np.eye(9), {v})"]
SCALARS = ["np.sum({v})", "{s} * 0.7 + 0.1", "np.sin({s})", "{v}[k % 9]", "{s} - {q}", "{v} @ {w}", "np.max({v})"]
TESTS = ["{s} > 0.1", "{v}[2] < {q}", "k > 2", "a > 0", "np.sum(m) > 0", "i % 2 == 0"]


class Writer:
    """A function of (m, x, a, k): its text, line by line."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def f(m, x, a, k):", "    y = x * 0.5", "    s = a + 0.0", "    i = 0"]

    def filled(self, templates: list[str]) -> str:
        pick = self.random.choice
        return pick(templates).format(v=pick("xy"), w=pick("xy"), s=pick("as"), q=pick("as"))

    def block(self, pad: str, depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["vector", "vector", "scalar", "if", "for", "while"] if depth else ["vector", "scalar"])
            if kind == "vector":
                self.lines.append(f"{pad}y = np.tanh({self.filled(VECTORS)})")
            elif kind == "scalar":
                self.lines.append(f"{pad}s = np.sin({self.filled(SCALARS)})")
            elif kind == "if":
                self.lines.append(f"{pad}if {self.filled(TESTS)}:")
                self.block(pad + "    ", depth - 1)
                if self.random.random() < 0.6:
                    self.lines.append(f"{pad}else:")
                    self.block(pad + "    ", depth - 1)
            elif kind == "for":
                self.lines.append(f"{pad}for i in range({self.random.choice(['3', 'k', 'k // 2'])}):")
                self.block(pad + "    ", depth - 1)
            else:
                count = f"n{len(self.lines)}"
                self.lines.append(f"{pad}{count} = 0")
                self.lines.append(f"{pad}while {count} < 3 and {self.filled(TESTS)}:")
                self.lines.append(f"{pad}    {count} += 1")
                self.block(pad + "    ", depth - 1)

    def text(self) -> str:
        self.block("    ", 2)
        return "\n".join([*self.lines, "    return y, s"]) + "\n"


def arguments(rng, flags):
    shapes = [(SIZE, SIZE), (SIZE,)]
    rows = [[rng.normal(size=s) * (0.3 if len(s) == 2 else 1.0) for s in shapes[:2]] + [np.float64(rng.normal()), np.int64(rng.integers(0, 5))]
            for _ in range(LANES)]
    return [[row[k] if flag else rows[0][k] for k, flag in enumerate(flags)] for row in rows]


def leaf(value):
    return Leaf(Type(value.dtype.name, value.shape), example=value)


def close(expected, found, text):
    for want, got in zip(expected, found, strict=True):
        assert np.shape(want) == np.shape(got), text
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9, err_msg=text)


def stacked(results):
    return [np.stack(column) for column in zip(*results, strict=True)]


@pytest.mark.parametrize("seed", range(30))
def test_batches_of_random_functions(seed):
    rng = np.random.default_rng(seed)
    text = Writer(seed).text()
    space = {"np": np}
    exec(text, space)
    flags = [bool(flag) for flag in rng.random(4) < [0.3, 0.7, 0.5, 0.3]]
    flags[1] = flags[1] or not any(flags)
    lanes = arguments(rng, flags)
    func = main_of(trace(space["f"], tuple(map(leaf, lanes[0])), source=text).func)
    assert 4 == len(func.params)
    whole = [np.stack([row[k] for row in lanes]) if flag else lanes[0][k] for k, flag in enumerate(flags)]

    def check(one, extra_flags, extras, what):
        mapped = vmap(one, [*flags, *extra_flags], LANES)
        verify(mapped)
        expected = stacked([evaluate(one, *row, *(e[k] for e in extras)) for k, row in enumerate(lanes)])
        close(expected, evaluate(mapped, *whole, *extras), f"{text}# {what}, batched {flags}")
        return expected

    check(func, [], [], "values")
    wanted = [False, True, True, False]
    cts = [rng.normal(size=(LANES, SIZE)), rng.normal(size=LANES)]
    pulled = check(vjp(func, wanted), [True, True], cts, "vmap of vjp")[2:]
    moved = [rng.normal(size=(LANES, SIZE)), rng.normal(size=LANES)]
    check(jvp(func, wanted), [True, True], moved, "vmap of jvp")
    with parting(Parts.AT_THE_TOP):
        outside = vjp(vmap(func, flags, LANES), wanted)
    verify(outside)
    found = evaluate(outside, *whole, *cts)[2:]
    summed = [rows if flags[k] else rows.sum(axis=0) for k, rows in zip([k for k, w in enumerate(wanted) if w], pulled)]
    close(summed, found, f"{text}# vjp of vmap, batched {flags}")
