"""Products of arrays against NumPy: dtypes, ranks, sizes 0 and 1, static and named sizes; einsum's subscripts."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from conformance.evaluating import array, assert_conforms, spelled_call
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsmith.transpiler import ops
from gradsmith.transpiler.errors import RuleError
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.types import Type
from gradsmith.transpiler.ops.einsum import parse
from gradsmith.transpiler.ops.spelling import find_spelling

DTYPES = ("bool", "int8", "int64", "float32", "float64", "complex128")
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
PAIRS = (((), (3,)), ((3,), ()), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)),
         ((2, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,)), ((4,), (5, 4, 2)), ((0, 4), (4, 2)), ((2, 0), (0, 3)),
         ((1, 1), (1, 1)), ((1, 4), (4, 1)), ((20, 30), (30, 10)), ((3,), (4,)), ((2, 3), (2, 3)))
STACKS = (((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (3, 4, 5)), ((3, 4), (2, 4, 5)),
          ((2, 3, 4), (1, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((5, 2, 3, 4), (4, 2)), ((2, 3, 4), (3, 4, 5)),
          ((0, 3, 4), (4, 5)), ((2, 9, 8), (2, 8, 7)))


def check(function, *args, **options):
    rtol = 1e-4 if any(a.dtype == np.float32 for a in args if isinstance(a, np.ndarray)) else 1e-12
    assert_conforms(function, *args, rtol=rtol, **options)


def two(shapes, dtype):
    return [array(s, dtype, seed=k) for k, s in enumerate(shapes)]


@every_dtype
def test_dot(dtype):
    for shapes in PAIRS:
        check(np.dot, *two(shapes, dtype))
        if shapes[0]:
            check(np.ndarray.dot, *two(shapes, dtype))


@every_dtype
def test_matmul(dtype):
    for shapes in (*PAIRS, *STACKS):
        if len(shapes[1]) != 3 or shapes in STACKS:
            check(np.matmul, *two(shapes, dtype))
            check(operator.matmul, *two(shapes, dtype))


@every_dtype
def test_vector_products(dtype):
    check(np.vdot, *two(((2, 3), (3, 2)), dtype))
    check(np.vdot, *two(((2,), (3,)), dtype))
    for shapes in (((2, 3), (4, 3)), ((3,), (3,)), ((2, 2, 3), (3,)), ((), (3,)), ((2, 3), (4, 2))):
        check(np.inner, *two(shapes, dtype))
    for shapes in (((2, 3), (4,)), ((), ()), ((0,), (2,))):
        check(np.outer, *two(shapes, dtype))
    check(np.vecdot, *two(((5, 3), (3,)), dtype))
    check(np.vecdot, *two(((3, 5), (3, 5)), dtype), axis=0)
    check(np.linalg.vecdot, *two(((5, 3), (5, 3)), dtype))
    check(np.matvec, *two(((2, 3, 4), (2, 4)), dtype))
    check(np.matvec, *two(((3, 4), (2, 4)), dtype))
    check(np.vecmat, *two(((2, 3), (3, 4)), dtype))


@every_dtype
def test_tensordot(dtype):
    check(np.tensordot, *two(((2, 3, 4), (3, 4, 5)), dtype))
    for axes in ([[1, 2], [1, 0]], (1, -2), ([-1], [0]), 0):
        check(np.tensordot, *two(((2, 3, 4), (4, 3, 5)), dtype), axes=axes)
    check(np.tensordot, *two(((2, 3), (4, 5)), dtype), axes=1)
    check(np.tensordot, *two(((2, 3), (3, 5)), dtype), axes=3)


@every_dtype
def test_kron_and_cross(dtype):
    for shapes in (((2, 3), (3, 2)), ((2,), (3, 2)), ((2, 2, 3), (3,)), ((), (3,)), ((0, 2), (1, 2))):
        check(np.kron, *two(shapes, dtype))
    if dtype == "bool":
        return
    for shapes, options in ((((3,), (3,)), {}), (((4, 3), (3,)), {}), (((3, 4), (4, 3)), {"axisa": 0, "axisc": 0}),
                            (((2,), (2,)), {}), (((2,), (3,)), {}), (((5, 3), (5, 2)), {}),
                            (((3, 4), (3, 4)), {"axis": 0}), (((4,), (4,)), {})):
        check(np.cross, *two(shapes, dtype), names=False, **options)
    check(np.linalg.cross, *two(((5, 3), (5, 3)), dtype), names=False)


def test_python_numbers_count_as_arrays():
    for function in (np.dot, np.inner, np.outer, np.kron):
        check(function, array((3,), "float32"), 2)
        check(function, array((3,), "int8"), 2.5)
    check(np.dot, array((3,)), [1, 2, 3])


EINSUMS = (
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->ij", (3, 3, 2)),
    ("iii->i", (2, 2, 2)), ("iji,kk->jk", (2, 3, 2), (2, 2)), ("ij", (2, 3)), ("ba", (2, 3)), ("bA", (2, 3)),
    ("ij->", (2, 3)), ("i...->...", (2, 3)), ("...ij,...jk", (5, 2, 3), (3, 4)),
    ("...ij,...j->...i", (2, 3, 4), (2, 4)), ("i...j,j...->...i", (2, 5, 3), (3, 5)), ("...,...", (2, 3), (3,)),
    ("...i,...i->...", (2, 3), (1, 3)), (",i->i", (), (3,)), (",", (), ()), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("a,b,c->abc", (2,), (3,), (4,)), ("ij,ij->", (2, 3), (2, 3)), ("ij,ij->i", (2, 3), (2, 3)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bij,kj->bik", (2, 3, 4), (2, 4)), ("i,j->ij", (2,), (3,)),
    ("ij,jk->ik", (2, 1), (3, 4)), ("ij,ij->ij", (2, 1), (2, 3)), ("i,i->", (1,), (3,)), ("i,i->i", (1,), (1,)),
    ("abcd->bd", (2, 3, 2, 3)), ("ijk,ilm,njm,nlk,abc->", *[(2, 2, 2)] * 5),
    ("ea,fb,abcd,gc,hd->efgh", (3, 2), (3, 2), (2, 2, 2, 2), (3, 2), (3, 2)), ("ij,j", (0, 3), (3,)),
    ("ij,j", (2, 0), (0,)), (" i j , j k -> i k", (2, 3), (3, 2)), ("ij,j,i->", (2, 3), (3,), (2,)),
    # refused by NumPy too
    ("ii", (1, 3)), ("ij,jk", (2, 3), (2, 3)), ("i->j", (3,)), ("i->ii", (3,)), ("ij", (3,)), ("i", (3, 3)),
    ("i,i", (3,)), ("i", (3,), (3,)), ("i.j", (3,)), ("i1", (3,)), ("...i->i", (2, 3)),
)


@every_dtype
@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case, dtype):
    subscripts, *shapes = case
    refused = subscripts == "ii" and 1 in shapes[0]             # without a frontend, a name and 1 may be equal
    check(np.einsum, subscripts, *two(shapes, dtype), names=not refused)


def test_einsum_with_lists_of_subscripts():
    check(np.einsum, array((2, 3)), [0, 1], array((3, 2)), [1, 2], [0, 2])
    check(np.einsum, array((2, 3)), [5, 1])


def test_einsum_dtype():
    check(np.einsum, "i,i->", array((3,), "float32"), array((3,), "float32"), dtype="float64")


def test_subscripts_are_read():
    parsed = parse("i...j, jk->...k")
    assert (("i", "...", "j"), ("j", "k")) == parsed.inputs
    assert ("...", "k") == parsed.output
    assert parse("ij").output is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_einsums(data):
    sizes = dict(zip("abcde", (2, 3, 1, 4, 2)))
    inputs = data.draw(st.lists(st.text("abcde", max_size=3), min_size=1, max_size=4))
    labels = sorted({x for part in inputs for x in part})
    output = data.draw(st.lists(st.sampled_from(labels), unique=True)) if labels else []
    arrays = []
    for k, part in enumerate(inputs):
        stretched = data.draw(st.booleans()) and len(set(part)) == len(part)
        shape = tuple(1 if stretched and data.draw(st.booleans()) else sizes[x] for x in part)
        arrays.append(array(shape, seed=k))
    check(np.einsum, ",".join(inputs) + "->" + "".join(output), *arrays)


def spelled_ops(key, *types):
    """The operations that a spelling emits, by name."""
    func = build_func("f", [(f"x{k}", t) for k, t in enumerate(types)], lambda *xs: (find_spelling(key)(*xs),))
    return [stmt.op.name for stmt in func.body.stmts], func.results[0].type


M, N, K = symbol("m"), symbol("n"), symbol("k")


def test_matrix_products_are_one_operation():
    matrix, vector = Type("float64", (M, N)), Type("float64", (N,))
    assert (["dot_general"], Type("float64", (M, K))) == spelled_ops(np.matmul, matrix, Type("float64", (N, K)))
    assert (["dot_general"], Type("float64", (M,))) == spelled_ops(np.dot, matrix, vector)
    names, _ = spelled_ops(np.dot, vector, vector)
    assert ["multiply", "sum"] == names                           # fuses with its surroundings
    names, _ = spelled_ops(np.matmul, Type("int64", (M, N)), Type("int64", (N,)))
    assert "dot_general" not in names                             # BLAS has no integers


def test_many_vectors_make_one_matrix_product():
    def body(a, x):
        return (ops.dot_general.batch((a, x), (False, True), contract=((1,), (0,)), batch=((), ())),)

    func = build_func("f", [("a", Type("float64", (M, N))), ("x", Type("float64", (K, N)))], body)
    assert ["dot_general"] == [stmt.op.name for stmt in func.body.stmts]
    assert Type("float64", (K, M)) == func.results[0].type


def test_sizes_that_do_not_fit_are_numpys_error():
    with pytest.raises(RuleError, match=r"shapes \(2,3\) and \(4,5\) not aligned: 3 \(dim 1\) != 4 \(dim 0\)"):
        spelled_call(np.dot, array((2, 3)), array((4, 5)))
    with pytest.raises(RuleError, match="mismatch in its core dimension 0"):
        spelled_call(np.matmul, array((2, 3)), array((4, 5)))
    with pytest.raises(RuleError, match="does not have enough dimensions"):
        spelled_call(np.matmul, array((2, 3)), 2.0)
