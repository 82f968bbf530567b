"""Stores of every kind, through names, views, containers and called functions, in loops and branches."""

import dataclasses

import numpy as np
import pytest
from in_place import agrees, given, program, raises
from tracing import failure

STORES = {
    "row": "r = a[1]; r[0] = 7.0",
    "T_write": "a.T[0, 1] = 8.0; a.T[2] *= 3",
    "reshape_write": "a.reshape(-1)[3] = 9.0; a.reshape(2, 6)[1] = 0; a.reshape(-1, 2)[:, 0] += a[0, 0]",
    "strided": "a[1:][::2] = 5.0; a[1:][::-1][0] *= 2",
    "ravel_write": "a.ravel()[1] = 1.5",
    "diag_new": "d = np.diag(x); d[0, 1] = 3.0",
    "swap": "a.swapaxes(0, 1)[0] = 2.0; np.swapaxes(a, 0, 1)[1] *= 2",
    "squeeze": "a[None].squeeze()[0] = 2.0; np.squeeze(a[:, :1])[1] = 5.0",
    "expand": "np.expand_dims(a, 0)[0, 1] = 2.0",
    "newaxis": "a[:, None][1, 0] = 2.0",
    "moveaxis": "b = np.zeros((2, 3, 4)) + a; np.moveaxis(b, 0, -1)[0] = 3.0; np.rollaxis(b, 2)[1] *= 2.0",
    "flip": "np.flip(a)[0, 0] = 3.0; np.flipud(a)[0] = a[0] * 2; np.fliplr(a)[0] += 1; np.flip(a, 1)[1] = 0",
    "rot": "np.rot90(a)[0] = 3.0",
    "split": "a, b = np.split(x, [2]); a[0] = 9.0; b[1] *= 3.0",
    "array_split": "p = np.array_split(x, 2); p[1][:] = 0.0; return (x, p[0])",
    "hsplit": "l, r = np.hsplit(a, 2); r[:] = l",
    "realw": "z = x * (1 + 2j); z.real[0] = 9.0; z.imag[:] = x; return z.real + z.imag",
    "realset": "z = x * (1 + 2j); z.real = x; z.imag = 2.0; return z.real + z.imag",
    "atleast": "np.atleast_2d(x)[0, 1] = 3.0; np.atleast_1d(x)[2] = 5.0",
    "asarray": (
        "np.asarray(x)[0] = 3.0; np.array(x, copy=False) if False else None; np.array(x)[1] = 9.0; "
        "np.ascontiguousarray(x)[2] = 7.0"),
    "view_m": "x.view()[0] = 3.0; x[:].view()[1] = 2.0",
    "viewT": "t = a.T; a[0, 0] = 100.0; s = t[0, 0]; t[1, 1] = 50.0; return s + a[1, 1]",
    "alias": "b = x = x.copy(); b[0] = 3.0; b += 1",
    "alias_list": "l = [x.copy(), x]; l[0][1] = 9.0; m = l[0]; m *= 2; return l[0]",
    "alias_dict": "d = {'a': x.copy()}; e = d['a']; e[:2] = 0.0; d['a'][2] += 1; d['a'] *= 2; return (d['a'], e)",
    "tup": "t = (x.copy(),); t[0][1] = 5.0; a, = t; a[2] = 6.0; return t[0]",
    "walrus": "(y := x.copy())[0] = 3.0",
    "swaps": "x[0], x[1] = (x[1], x[0])",
    "swaprows": "a[[0, 1]] = a[[1, 0]]",
    "swapviews": "a[0], a[1] = (a[1], a[0])",
    "fancy_copy": "y = x[i]; y[0] = 100.0; return x[1] + y[0]",
    "fancy_aug": "x[i] *= 2.0; x[i] += np.arange(4.0)",
    "rep_store": "x[i] = y[:4]",
    "rep_store2": "a[[0, 0, 2], [1, 1, 3]] = y[:3]; a[:, [1, 1]] = y[:2]",
    "mask_store": (
        "x[x > 2] = 0.0; x[y > 0] = y[y > 0] * 2; x[y < 0] += 1.0; x[(x > 1) & (y < 0)] *= y[(x > 1) & (y < 0)]"),
    "mask2d": "a[a > 5] = -1.0; a[a[:, 0] > 2] = 0.0; a[a[:, 1] < 100, 1] = 3.0",
    "maskknown": "x[np.array([True, False, True, True, False])] = y[:3]",
    "neg": "x[::-1] = x; x[::-2] *= 2; x[-2:] = x[1::-1]",
    "overlap": "x[1:] = x[:-1]; x[:-1] += x[1:]; x[1:] *= x[:-1]",
    "ell": "a[...] = 1.0; a[..., 0] += 2; a[0, ...] = 5; a[...][1] = 7",
    "aug_int": "i <<= 1; i |= 1; i &= 7; i ^= 2; i >>= 1; i += 1; i **= 2; i //= 2",
    "aug_elem_int": "i[0] += 1.5; i[1:] = 2.7",
    "aug_matmul": "b = a[:, :3].copy(); b @= b",
    "bool_store": "b = x > 2; b[0] = True; b[1] = 2; b &= x < 4",
    "store_list": "x[:2] = [7.0, x[3]]; x[2:] = (1, 2, 3)",
    "cplx": "z = np.zeros(5, complex); z[0] = x[0] + 1j; z[1:] = x[1:] * 1j; return z.real.sum() + z.imag.sum()",
    "chain": "v = a[1:].T[::2]; v[0, 1] = 4.0; v += 1; w = v[1]; w *= 2",
    "arg_write": "x[0] = a[0, 0]; a[1] *= 2; a.T[0] = x[:3]; return x.sum()",
    "arg_alias": "y = x; y *= 2; z = y[1:]; z[0] = 5.0; x = x + 1; x[0] = 77.0",
    "dellist": "l = [x.copy()]; l[0] += 1; l.append(l[0]); l[1][0] = 9.0; return l[0]",
    "lambda_": "f = lambda v, k: v.__setitem__(k, 3.0); f(x, 1)",
    "itemset": "x[tuple(i[:1])] = 4.0; x[i[0]] += 1",
    "ix": "a[np.ix_([0, 2], [1, 3])] = 0.0; a[np.ix_([0, 2], [1, 3])] += 2",
    "take_copy": "y = np.take(x, [0, 1]); y[0] = 50.0; return x[0] + y[0]",
    "triu": (
        "b = a[:, :3].copy(); b[np.triu_indices(3)] = 0.0; b[np.tril_indices(3, -1)] *= 2; "
        "b[np.diag_indices(3)] = 5.0"),
    "slicev": "s = slice(1, 4); x[s] = 0; x[slice(None, None, 2)] += 1",
    "empty_like": "z = np.empty_like(x); z[:] = x; z[1:-1] -= x[:-2]",
    "full": "z = np.full(5, x[0]); z[2] = 0; z = np.full_like(x, 2.0); z[0] = x[1]",
    "m1": "a[a[:, 1] < 8, 1] += 1.0; a[a[:, 1] < 8, 1:3] *= 2.0",
    "m2": "a[a > 7] = np.arange(6.0) * y[0]",
    "m3": "a[a[:, 1] < 8] = y[:4]",
    "m4": "a[a[:, 1] < 8] = np.array([y[:4], y[1:]])",
    "m6": "x[x > 30] = y[:0]",
    "m7": "a[a[:, 1] < 8, 0] = y[:2]",
    "m8": "x[x > 3] = [1, 2, 3]",
    "m10": "v = a.T; v[v > 7] = 0.0; v[v[:, 0] > 2, 1] = y[0]",
    "m11": "m = x > 3; x[m] += y[m]; x[~m] = y[~m] ** 2; x[m] = x[m][::-1] if False else x[m]",
    "m12": "m = x > 3; x[m] = x[m] * 2 + np.sum(x[m])",
    "fl1": (
        "a.flat = y[:3]; a.flat[2:9] = y[:2]; a.flat[::-3] += 1; a.flat[[0, 0]] = y[:2]; "
        "a.flat[a.flat > 3] if False else None"),
    "fl3": "f = a.flat; f[3] = 1.0; a[0, 0] = 7.0; return (f[0], f[3], a)",
    "re1": "z = x * (1 + 2j); z.real = x; z.imag[1:] = 0.0; z.real[0] *= 5; return z.real * 2 + z.imag",
    "re2": "x.real[0] = 5.0; x.real = 3.0",
    "putl": (
        "np.put_along_axis(a, np.argsort(a, axis=0)[:1], y[:4][None], 0); "
        "np.put_along_axis(a, i[:3][:, None], 7.0, 1); np.put_along_axis(a, np.array([0, 5]), y[:2], None)"),
    "put_dyn": "x.put(i, y[:2]); np.put(x, i + 5, y[:3], mode='wrap'); np.put(x, i - 2, 9.0, mode='clip')",
    "at1": (
        "np.multiply.at(x, i, y[:4]); np.power.at(x, i, 2.0); np.divide.at(x, (i,), 3.0); "
        "np.maximum.at(x, i, y[:4]); np.minimum.at(x, i[:2], 1.0); np.subtract.at(x, i, x[:4]); "
        "np.true_divide.at(x, 0, 2.0); np.hypot.at(x, [0, 0], 1.0)"),
    "at2": (
        "np.multiply.at(a, (slice(None), i), y[:4]); np.add.at(a, ([0, 0, 2], slice(1, 3)), y[:2]); "
        "np.multiply.at(a, ([[0], [0]], [1, 1]), 2.0); np.maximum.at(a, (0,), 20.0)"),
    "at3": "z = np.zeros(4, np.int64); np.add.at(z, i, 1); np.add.at(z, i, 1.5); np.bitwise_or.at(z, i, 8)",
    "at4": (
        "np.add.at(x, [0, 1], 1.0); x.put([2], 5.0); x.fill(3.0) if False else None; x.sort(); "
        "np.copyto(x[:2], x[3:]); np.add(x, x, out=x); return x.sum()"),
    "fd1": "np.fill_diagonal(a.T, y); np.fill_diagonal(a, y[:1])",
    "fd2": "b = np.zeros((9, 2)) + x[0]; np.fill_diagonal(b, y, wrap=True)",
    "fd3": "b = np.zeros((2, 2, 2)) + x[0]; np.fill_diagonal(b, y)",
    "cp": (
        "np.copyto(a, y[:4], where=a > 5); np.copyto(a[1:], y[0], where=[True, False, True, False]); "
        "np.copyto(a[:, 0], 7)"),
    "nn": "x[0] = np.nan; np.nan_to_num(x, copy=False, nan=2.0); r = np.nan_to_num(x[1:], copy=False); r[0] = 5.0",
    "spl": (
        "p, q, r = np.split(x[:3], 3); q[0] = p[0]; u, v = np.vsplit(a[:2], 2); u *= 2; "
        "np.array_split(a, 2, axis=1)[1][0] = 0.0; return x.sum()"),
    "split_known": "z = np.zeros(6); p, q = np.split(z, 2); p[0] = 1; q += 2; z[5] = 7; return (z, p, q)",
    "rot_and_roll": (
        "np.rot90(a)[0] = 3.0; np.rot90(a, 3)[1, 0] = 4.0; np.rollaxis(a, 1)[0] = a[1, 1]; "
        "np.atleast_3d(a)[0, 0, 0] = 8.0"),
    "einsum_v": "v = np.einsum('ij->ji', a); a[0, 1] = 50.0",
}
ERRORS = {
    "copyto_bad": ("z = np.zeros(5, np.int64); np.copyto(z, x); return z * 2", TypeError),
    "out_shape_bad": ("z = np.empty(4); np.multiply(x, 2.0, out=z)", ValueError),
    "diag_write": ("np.diagonal(a)[0] = 1.0", ValueError),
    "diag_write2": ("np.diag(a)[0] = 1.0", ValueError),
    "bcast": ("np.broadcast_to(x, (2, 5))[0] = 1.0", ValueError),
    "mask_arr": ("x[x > 2] = np.array([1.0, 2.0, 3.0])", (IndexError, ValueError)),
    "mask_arr2": ("m = x > 2; x[m] = y[:3]", (IndexError, ValueError)),
    "aug_bcast_bad": ("x += np.ones((2, 5))", ValueError),
    "store_bad": ("a[0] = np.ones(3)", ValueError),
    "oob": ("x[7] = 1.0", IndexError),
    "oob_neg": ("x[-6] = 1.0", IndexError),
    "cplx_bad": ("x[0] = 1j", TypeError),
    "m5": ("x[x > 3] = y[:2]", (IndexError, ValueError)),
    "m9": ("x[(x > 3)[:4]] = 1", IndexError),
    "im_ro": ("x.imag[0] = 5.0", ValueError),
    "put_oob": ("np.put(x, i + 5, 1.0)", (IndexError, ValueError)),
    "wo3": ("z = np.ones(5); np.sqrt(x, out=z, where=np.array([1, 0, 1, 0, 1]))", TypeError),
    "fd4": ("np.fill_diagonal(x, 1.0)", ValueError),
}


@pytest.mark.parametrize("name", list(STORES))
def test_stores(name):
    agrees(program(name, STORES[name]))


@pytest.mark.parametrize("name", list(ERRORS))
def test_errors_are_numpys(name):
    text, kind = ERRORS[name]
    raises(program(name, text), kind)


def elements_of_flat(a):
    s = 0.0
    for v in a.flat:
        s += v * v
    return s


def called_function(x):

    def w(b, k):
        b[k] = b[k - 1] * 2
        return b
    y = w(x, 1)
    y[3] = 0.0
    return x


def loop_that_writes(x, y):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        x[i] = x[i - 1] * y[i]
        s *= x[i]
        r = x[i:]
        r[0] += 1.0
    return s, x


def loops_over_rows(a):
    for r in a:
        r[0] = r[1] * 2
        r /= 2
    for i, r in enumerate(a):
        r[i] = 0.0
    for r in a[::-1]:
        r[2] += a[0, 1]
    for r, q in zip(a, a.T):
        r[0] += q[1]
    return a


def recurrence(x, y):
    for i in range(1, len(x)):
        x[i] += x[i - 1] * y[i]


def arrays_in_a_list(a):
    b = [a[0].copy(), a[1].copy()]
    for v in b:
        v *= 2
    for k in range(2):
        b[k][k] = 0.0
    return b[0] + b[1]


def flat_in_a_loop(a, y):
    for k in range(a.size):
        a.flat[k] = a.flat[k - 1] * y[0]
    return a, list(a.flat)[3], np.sum(a.flat), a.flat[-1]


def at_in_a_loop(x, i):
    s = 0.0
    for k in range(len(i)):
        np.multiply.at(x, i, 1.5)
        s += x[i[k]]
        np.add.at(x, i[k], s)
        x.flat[k] = s
    return s


@dataclasses.dataclass
class Box:
    held: object

    def bump(self):
        self.held[0] += 1.0
        self.held *= 2.0


def object_with_a_method(x):
    box = Box(x)
    other = box.held
    box.bump()
    box.held += 1.0
    return other


def branches(x, y):
    if x[0] > y[0]:
        x[1] = 5.0
        y *= x[2]
    else:
        x[:2] = y[0]
    if y[1] > 0.0:
        x[0] = y[1]
    return x[1] * y[0]


def early_return(x, y):
    for k in range(len(x)):
        x[k] *= y[k]
        if x[k] < 0.0:
            return x[k - 1]
        y[k] = x[k] ** 2
    return y[0]


def read_before_and_after(x, i):
    before = x[1] * x[3]
    for k in i:
        before += x[k]
        x[k] = before * x[k - 1]
        before -= x[k] ** 2
    return before


@pytest.mark.parametrize("fun", [
    elements_of_flat, called_function, loop_that_writes, loops_over_rows, recurrence, arrays_in_a_list, flat_in_a_loop, at_in_a_loop,
    object_with_a_method, branches, early_return, read_before_and_after,
], ids=lambda fun: fun.__name__)
def test_loops_branches_and_objects(fun):
    agrees(fun)


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_loops_of_few_trips(trips):
    def f(x, y, a):
        total = 0.0
        for k in range(trips):
            total += a[k % 3, 0]
            a[k % 3, 0] = total * x[k % 5]
            total -= a[k % 3, 0] * y[0]
            x[1:] += x[:-1] * 0.5
            np.add.at(y, [0, 0, k % 5], x[0])
            a[[0, 0], [1, 1]] = y[:2]
        return total + a[0, 1]

    agrees(f)


@pytest.mark.parametrize("text, code", [
    ("v = x[2:] if y[0] > 0 else x[1:4]; v[0] = 3.0", "E123"), ("x.resize(3)", "E110"), ("x.partition(2)", "E110"),
    ("a.T.ravel()[1] = 1.5", "E123"), ("np.einsum('ij->ji', a)[0] = 1.0", "E124"), ("x.shape = (5, 1)", "E126"),
])
def test_what_is_refused(text, code):
    fun = program("f", text)
    assert code == failure(fun, *given(fun)).code
