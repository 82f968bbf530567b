"""Values that are a number or an array without axes: what may be seen of it is right, or refused."""

import numpy as np
import pytest

import gradsmith
from gradsmith import TranspileError


def array_or_number(x):
    z = np.array(x[0])
    r = z if x[1] > 0 else x[1]
    return z, r * 2.0, x[0] + r


def of_two_arrays(x):
    z, w = np.array(x[0]), np.array(x[1])
    r = z if x[1] > 0 else w
    return z * r + w


def without_another_name(x):
    r = np.array(x[0]) if x[1] > 0 else x[1]
    r += x[0]
    r *= r
    return r


def carried(x):
    s = 0.5
    for v in x:
        s += v
        s = np.where(s > 1.0, s * s, s)
    s += 1.0
    return s


def in_a_loop(x):
    best = x[0]
    for v in x:
        best = np.where(v > best, v, best) if v > 0 else v
    return best * x[1]


def greatest(x):
    z = np.array(x[1])
    t = max(z, x[0], 0.1)
    return t * 2.0 + min(z, np.where(x[2] > 0, x[2], x[0])) + max([z * z, x[0]]) + z


def greatest_of_a_new_array(x):
    t = max(np.where(x[0] > 0, x[0], x[1]), x[2])
    t *= 3.0
    return t


def set_in_one_arm(x):
    if x[0] > 0:
        z = np.array(x[0])
        z += 1.0
    else:
        z = np.array(x[1])
    z *= 2.0
    return z


RIGHT = [array_or_number, of_two_arrays, without_another_name, carried, in_a_loop, greatest, greatest_of_a_new_array,
         set_in_one_arm]
POINTS = [np.array(p) for p in ([1.0, 2.0, 0.5], [1.0, -2.0, -0.5], [-0.3, 0.7, 0.2], [-1.0, -2.0, -3.0])]


@pytest.mark.parametrize("fun", RIGHT, ids=lambda f: f.__name__)
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_values_and_slopes_are_right(fun, point):
    for wanted, found in zip(np.atleast_1d(fun(point.copy())), np.atleast_1d(gradsmith.jit(fun)(point)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)

    def total(x):
        return np.sum(np.array(fun(x)))

    step = 1e-6
    slopes = [(total(point + step * e) - total(point - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(gradsmith.grad(total)(point), slopes, rtol=1e-7, atol=1e-7)


def changed_under_both_names(x):
    z = np.array(x[0])
    r = z if x[1] > 0 else x[1]
    r += 1.0
    return z, r


def changed_under_both_names_of_two(x):
    z, w = np.array(x[0]), np.array(x[1])
    r = z if x[1] > 0 else w
    r += 1.0
    return z, r


def changed_after_a_loop(x):
    z, r = np.array(x[0]), x[1]
    for v in x:
        if v > 0:
            r = z
    r += 1.0
    return z, r


def changed_first(x):
    z = np.array(x[0])
    r = z or x[1]
    z += 1.0
    return r


def changed_greatest(x):
    z = np.array(x[0])
    r = max(z, x[1])
    r += 1.0
    return z, r


def changed_with_an_alias(x):
    r = np.array(x[0]) if x[1] > 0 else x[1]
    q = r
    r += 1.0
    return q, r


def changed_after_it_was_put_into_a_list(x):
    z, kept = np.array(x[0]), []
    for v in x:
        kept.append(z if v > 0 else v)
    z += 1.0
    return sum(kept)


def one_of_two_rows_changed_in_a_list(x):
    a, b, kept = x * 2.0, x * 3.0, []
    for v in x:
        kept.append(a if v > 0 else b)
    b[0] = 1.0
    return np.sum(np.array(kept))


def set_by_index(x):
    r = np.array(x[0]) if x[1] > 0 else x[1]
    r[...] = 1.0
    return r


@pytest.mark.parametrize("fun", [changed_under_both_names, changed_under_both_names_of_two, changed_after_a_loop,
                                 changed_first, changed_greatest, changed_with_an_alias,
                                 changed_after_it_was_put_into_a_list, one_of_two_rows_changed_in_a_list, set_by_index],
                         ids=lambda f: f.__name__)
def test_what_depends_on_which_it_is_is_refused(fun):
    with pytest.raises(TranspileError, match="E123"):
        gradsmith.jit(fun)(POINTS[0])
