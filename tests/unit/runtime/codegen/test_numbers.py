"""Numbers have Numba's types and values."""

from __future__ import annotations

import ast
import itertools
import operator

import numpy as np
import pytest
from llvmlite import ir
from numba.core.registry import cpu_target
from numba.core.typing.templates import Signature
from unit.runtime.codegen.two_ways import require_same

from gradsmith.codegen.numbers import LLVM, arithmetic, comparison
from gradsmith.codegen.values import Number

ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor}
COMPARISONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
               ast.Eq: operator.eq, ast.NotEq: operator.ne}


def numbas_type(function, kinds) -> Signature:
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_function_type(function, kinds, {})


def test_results_have_numbas_types():
    """Of every operation on every pair of types that is compiled here."""
    seen = 0
    for kinds in itertools.product(LLVM, repeat=2):
        module = ir.Module()
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [LLVM[kind] for kind in kinds]), "f")
        builder = ir.IRBuilder(function.append_basic_block())
        left, right = (Number(kind, arg) for kind, arg in zip(kinds, function.args))
        for table, compile_ in ((ARITHMETIC, arithmetic), (COMPARISONS, comparison)):
            for op, meaning in table.items():
                found = compile_(builder, op(), left, right)
                if found is not None:
                    assert numbas_type(meaning, kinds).return_type == found.type, (op, kinds)
                    assert LLVM[found.type] == found.llvm.type
                    seen += 1
    assert seen > 500


PAIRS = [(np.int64, np.int64), (np.int32, np.int64), (np.uint8, np.uint64), (np.uint32, np.int16),
         (np.float64, np.float64), (np.float32, np.float32), (np.float32, np.int64), (np.float64, np.float32)]
VALUES = [-2**40, -7, -1, 0, 1, 3, 250, 2**33]


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda dtype: dtype.__name__)
def test_values(left, right):
    are_ints = {np.dtype(left).kind, np.dtype(right).kind} <= {"i", "u"}
    bits = "x[i] & y[i], x[i] | y[i], x[i] ^ y[i]," if are_ints else ""
    text = f"""
def f(x, y, i):
    return (x[i] + y[i], x[i] - y[i], x[i] * y[i], x[i] / y[i], -x[i], x[i] < y[i], x[i] >= y[i], x[i] == y[i],
            x[i] != y[i], np.float64(x[i]), np.float32(y[i]), np.int32(x[i]), np.bool_(y[i]), {bits} x[i] + 3,
            2 * y[i], not x[i])
"""
    with np.errstate(all="ignore"):
        x, y = (np.array(VALUES, np.int64).astype(dtype) for dtype in (left, right))
    pairs = np.array(list(itertools.product(range(len(VALUES)), repeat=2)))
    x, y = x[pairs[:, 0]], y[pairs[:, 1]]
    if np.dtype(left).kind == "f":
        text = text.replace("np.int32(x[i])", "np.int64(x[i])")
    require_same(text, "f", *((x, y, k) for k in range(len(pairs))))


def test_division_of_ints():
    require_same("""
def f(n, m):
    return n // 3, n % 3, n // 1, n % 7, n // m, n % m, (n * n) // 2, abs(n)
""", "f", *((n, m) for n in (-7, -1, 0, 5, 2**40) for m in (-3, 0, 2)))
