"""NumPy's functions and methods that write in place."""

import numpy as np
import pytest
from in_place import agrees, program

from gradsmith.transpiler.frontend import written_functions

FUNCTIONS = {
    "flat_set": "a.flat[2] = 7.0; a.flat[[0, 5]] = a.flat[3]; a.flat[::4] *= 2",
    "flat_whole": "a.flat = 2.0",
    "flat_whole_arr": "a.flat = x",
    "flat_T": "b = a.T; b.flat[1] = 9.0",
    "flat_slice": "a[:, 1:].flat[0] = 3.0; return (a, a.flat[2:5], len(a.flat))",
    "flat_known": "z = np.zeros(5); z[1::2].flat[0] = x[0]; z[::-1].flat[[0, 1]] = y[:2]; return z",
    "flat_known_T": "z = np.ones((3, 4)); z.T.flat = y[0]; z[:, 1:3].flat[1:4] += x[:3]; return (z, z.T.flat[2])",
    "flat_branch": "z = np.zeros(5); v = z[1::2]\n    if x[0] > 100.0: z += 1.0\n    else: v.flat[0] = x[0]\n    return z",
    "fill_": "x[1:].fill(2.0)",
    "put_": "np.put(x, [0, 2], [9.0, 8.0])",
    "put_rep": "np.put(x, i, y[:4])",
    "put_meth": "a.put([0, 5, -1], [1.0, 2.0])",
    "put_scalar": "np.put(a, [1, 2], 3.0)",
    "put_clip": "np.put(a, [100], 3.0, mode='clip')",
    "put_along": "np.put_along_axis(a, np.array([[0], [1], [2]]), 99.0, axis=1)",
    "put_along_arg": "i = np.argmax(a, axis=1, keepdims=True); np.put_along_axis(a, i, 0.0, axis=1)",
    "place_": "np.place(x, np.array([True, False, True, False, True]), [7.0, 8.0])",
    "place_rt": "np.place(x, x > 2, [7.0])",
    "putmask_": "np.putmask(x, np.array([True, False, True, False, True]), np.arange(5.0) * 10)",
    "putmask_rt": "np.putmask(x, x > 2, y)",
    "putmask_short": "np.putmask(x, x > 2, y[:2])",
    "putmask_num": "np.putmask(x, x > 2, -1.0)",
    "sort_": "a[::-1].sort(axis=0); a.sort()",
    "sort_ax": "a = -a; a.sort(axis=None) if False else a.sort(0)",
    "sort_view": "a = -a; a[1].sort()",
    "nan_to_num": "np.nan_to_num(x, copy=False)",
    "nan_to_num2": "x = np.where(x > 2, np.nan, x); np.nan_to_num(x, copy=False, nan=-1.0)",
    "copyto_": "np.copyto(x, y)",
    "copyto_where": "np.copyto(x, y, where=y > 0)",
    "copyto_where2": "np.copyto(a, a[0] * 2, where=np.array([True, False, True, False]))",
    "copyto_num": "np.copyto(a[1:, ::2], 5.0)",
    "copyto_unsafe": "z = np.zeros(5, np.int64); np.copyto(z, x, casting='unsafe'); return z * 2",
    "filldiag": "np.fill_diagonal(a, 0.0)",
    "filldiag_arr": "np.fill_diagonal(a, x[:3])",
    "filldiag_wrap": "b = np.zeros((5, 2)) + a[0, 0]; np.fill_diagonal(b, 4.0, wrap=True)",
    "filldiag_wide": "np.fill_diagonal(a, [1.0, 2.0, 3.0])",
    "filldiag_short": "np.fill_diagonal(a, x[:2])",
    "filldiag_3d": "b = np.zeros((3, 3, 3)); np.fill_diagonal(b, x[0])",
    "filldiag_view": "np.fill_diagonal(a[:, 1:], 0.0)",
    "add_out": "z = np.empty(5); r = np.add(x, y, out=z); r[0] = 9.0",
    "add_out_pos": "z = np.empty(5); np.add(x, y, z)",
    "add_out_self": "np.add(x, y, out=x)",
    "add_out_tuple": "z = np.empty(5); np.add(x, y, out=(z,))",
    "mul_out_view": "np.multiply(x[:4], 2.0, out=a[1])",
    "mul_out_bcast": "z = np.empty((2, 5)); np.multiply(x, 2.0, out=z)",
    "where_out": "z = y.copy(); np.sqrt(x, out=z, where=y > 0)",
    "where_out_known": "z = y.copy(); np.multiply(x, 3.0, out=z, where=np.array([True, False, True, False, True]))",
    "where_div": "z = np.zeros(5); np.divide(x, y, out=z, where=y != 0.5)",
    "where_nan": "z = np.zeros(5); np.log(y, out=z, where=y > 0)",
    "where_bcast": "z = np.zeros((3, 4)); np.add(a, 1.0, out=z, where=x[:4] > 2)",
    "where_scalar": "z = np.zeros(5); np.add(x, 1.0, out=z, where=x[0] > 0)",
    "dot_out": "z = np.empty((3, 3)); np.dot(a, a.T, out=z)",
    "dot_out_self": "z = a[:, :3].copy(); np.dot(z, a[:, :3], out=np.empty((3, 3)))",
    "matmul_out": "z = np.empty((3, 3)); np.matmul(a, a.T, out=z)",
    "matmul_out_alias": "z = a[:, :3].copy(); np.matmul(z, a[:, :3], out=z)",
    "sum_out": "z = np.empty(4); np.sum(a, axis=0, out=z)",
    "sum_meth_out": "z = np.empty(4); a.sum(axis=0, out=z)",
    "cumsum_out": "np.cumsum(x, out=x)",
    "mean_out": "z = np.empty(3); np.mean(a, axis=1, out=z)",
    "max_out": "z = np.empty(3); a.max(1, out=z)",
    "clip_out": "np.clip(x, 2.0, 4.0, out=x)",
    "clip_meth_out": "x.clip(2.0, 4.0, out=x)",
    "take_out": "z = np.empty(4); np.take(x, i, out=z)",
    "concat_out": "z = np.empty(10); np.concatenate([x, y], out=z)",
    "stack_out": "z = np.empty((2, 5)); np.stack([x, y], out=z)",
    "einsum_out": "z = np.empty(3); np.einsum('ij->i', a, out=z)",
    "outer_out": "z = np.empty((5, 5)); np.outer(x, y, out=z)",
    "ufunc_outer": "return np.multiply.outer(x, y)",
    "reduce_out": "z = np.empty(4); np.add.reduce(a, axis=0, out=z)",
    "accumulate_out": "z = np.empty(5); np.multiply.accumulate(x, out=z)",
    "exp_pos_out": "np.exp(x, x)",
    "modf_out": "a = np.empty(5); b = np.empty(5); np.modf(x * 0.3, out=(a, b)); return a + 2 * b",
    "divmod_out": "a = np.empty(5); b = np.empty(5); np.divmod(x, 1.5, out=(a, b)); return a + 2 * b",
    "maximum_out": "np.maximum(x, y, out=y)",
    "argmax_out": "z = np.empty(3, np.int64); np.argmax(a, axis=1, out=z)",
    "add_at": "np.add.at(x, i, 2.0)",
    "add_at_v": "np.add.at(x, i, y[:4])",
    "sub_at": "np.subtract.at(x, i, y[:4])",
    "mul_at": "np.multiply.at(x, i, y[:4])",
    "div_at": "np.divide.at(x, i, y[:4])",
    "max_at": "x = x.copy() * 0; np.maximum.at(x, i, y[:4])",
    "min_at": "x = x.copy() * 0; np.minimum.at(x, i, y[:4])",
    "pow_at": "np.power.at(x, i, 2.0)",
    "exp_at": "x = x.copy() * 0.1; np.exp.at(x, i)",
    "neg_at": "np.negative.at(x, [0, 0, 1])",
    "add_at_2d": "np.add.at(a, (i[:3] % 3, i[:3]), 1.0)",
    "add_at_rows": "np.add.at(a, [0, 0, 1], y[:4])",
    "add_at_slice": "np.add.at(a, (slice(None), [0, 0, 1]), y[:3])",
    "add_at_int": "np.add.at(x, 1, 2.0)",
    "add_at_mask": "np.add.at(x, x > 2, 2.0)",
    "add_at_maskk": "np.add.at(x, np.array([True, False, True, False, True]), 2.0)",
    "add_at_neg": "np.add.at(x, [-1, 4, -5], 2.0)",
    "add_at_dtype": "z = np.zeros(3, np.int64); np.add.at(z, [0, 0], 1.5); return z + x[0]",
    "add_at_view": "np.add.at(a[1], [0, 0], 5.0); np.add.at(a.T, ([0], [0]), 5.0)",
    "lor_at": "z = np.zeros(5, bool); np.logical_or.at(z, i, True)",
    "bitor_at": "z = np.zeros(5, np.int64); np.bitwise_or.at(z, i, 4)",
}

@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions_that_write(name):
    agrees(program(name, FUNCTIONS[name]))


@pytest.mark.parametrize("name, calls", [
    ("put", [([0, 2], [9.0, 8.0]), ([1, 1, -1], [1.0, 2.0, 3.0]), (3, 5.0), ([0, 1, 2], [7.0]), ([], []), ([0], []),
             ([70, -9], [1.0, 2.0], "wrap"), ([70, -9], [1.0, 2.0], "clip"), (np.arange(6), [1.0, 2.0])]),
    ("putmask", [(np.arange(12).reshape(3, 4) % 2 == 0, 5.0), (np.arange(12) % 3 == 0, np.arange(12.0)),
                 (np.ones((3, 4), bool), [1.0, 2.0, 3.0]), (np.zeros(12, bool), []), (np.ones(12, bool), [])]),
    ("place", [(np.arange(12).reshape(3, 4) % 2 == 0, [5.0]), (np.arange(12) % 3 == 0, [1.0, 2.0]),
               (np.ones((3, 4), bool), np.arange(20.0)), (np.zeros(12, bool), [])]),
    ("put_along_axis", [(np.array([[0], [1], [2]]), 9.0, 1), (np.array([[0, 1, 2, 0]]), np.arange(4.0)[None], 0),
                        (np.array([0, 5]), [1.0, 2.0], None), (np.array([[0], [1], [2]]), 9.0, -1)]),
    ("fill_diagonal", [(0.0,), ([1.0, 2.0],), (np.arange(9.0), True), ([],), (np.ones((2, 2)),)]),
])
def test_the_python_forms_are_numpys_functions(name, calls):
    for shape in ((3, 4), (4, 3), (9, 2)):
        for call in calls:
            expected, actual = [np.arange(float(np.prod(shape))).reshape(shape) + 0.5 for _ in range(2)]
            outcomes = []
            for function, array in ((getattr(np, name), expected), (getattr(written_functions, name), actual)):
                try:
                    outcomes.append(function(array, *call))
                except (ValueError, IndexError) as problem:
                    outcomes.append(type(problem))
            assert outcomes[0] == outcomes[1], (shape, call)
            np.testing.assert_array_equal(expected, actual)
