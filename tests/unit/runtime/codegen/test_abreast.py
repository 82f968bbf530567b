"""What LLVM is told about loops whose trips are apart."""

from __future__ import annotations

import re

import numpy as np
import pytest
from llvmlite import ir
from unit.runtime.codegen.two_ways import require_same

from gradsmith.codegen.abreast import trips_are_apart

TEXT = """
def f(a, b, n):
    for i in range(0, n - 1, 2):
        p = b[i]
        q = b[i + 1]
        total = 0.0
        for k in abreast(i, n):
            x = b[k]
            y = 0.0 if x == 0.0 else x * p
            a[i, k] += y
            z = 0.0 if x == 0.0 else x * (q - y)
            a[i + 1, k] -= z
            total = accumulate(total, z)
        b[i] = total
        for k in abreast(n):
            a[i, k] = a[i + 1, k] * q if a[i, k] > 0.0 else -a[i, k]
    return a
"""


@pytest.mark.parametrize("n", [1, 2, 3, 4, 15, 16, 17, 64, 71])
def test_rows_of_one_array(n):
    rng = np.random.default_rng(n)
    b = rng.normal(size=n)
    b[::3] = 0.0
    require_same(TEXT, "f", (rng.normal(size=(n, n)), b, n), exact=False)


def test_zeros_beside_infinities():
    b = np.array([0.0, 1.0, np.inf, 0.0, 2.0, 0.0, 0.0, np.nan] * 3)
    require_same(TEXT, "f", (np.ones((24, 24)), b, 24), exact=False)


def test_each_loop_has_accesses_of_its_own():
    """Nodes without operands are equal to llvmlite, which once gave all loops of a module the first one's."""
    module = ir.Module()
    double = ir.DoubleType()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [double.as_pointer()]), "f")
    before = ir.IRBuilder(function.append_basic_block())
    for number in range(2):
        first = len(function.blocks)
        loop, after = function.append_basic_block(), function.append_basic_block()
        before.branch(loop)
        inside = ir.IRBuilder(loop)
        inside.load(function.args[0])
        latch = inside.cbranch(ir.Constant(ir.IntType(1), 0), loop, after)
        trips_are_apart(function, first, latch, dear=bool(number), length=1)
        before = ir.IRBuilder(after)
    before.ret_void()
    text = str(module)
    groups = re.findall(r"llvm.access.group !(\d+)", text)
    listed = re.findall(r'!"llvm.loop.parallel_accesses", !(\d+)', text)
    assert len(set(groups)) == 2 and sorted(groups) == sorted(listed)
    assert sorted(re.findall(r'interleave.count", i32 (\d)', text)) == ["1", "4"]
