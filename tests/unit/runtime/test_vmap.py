"""vmap is a loop over the elements of the batch: values, derivatives on both sides of it, axes, and exceptions."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import gradsmith

RNG = np.random.default_rng(0)
M, X, S = RNG.normal(size=(6, 6)), RNG.normal(size=(5, 6)), RNG.normal(size=5)
N = np.array([0, 3, 1, 5, 2])


# --- programs -----------------------------------------------------------------------------------------------------


def recursion(x, n):
    if n <= 0:
        return x
    return np.sin(x) + recursion(x * 0.5, n - 1)


def written(x, n):
    y = x.copy()
    for i in range(n):
        y[i] = y[i - 1] * 2
        y[1:] += 0.1
    return y


def grown(x, n):
    found = []
    for i in range(n):
        found.append(x * i)
    total = 0.0
    for value in found:
        total += value
    return total


def left(x):
    n = 0
    while True:
        x = x * 0.5 + 0.1
        n += 1
        if x < 0.3 or n > 50:
            break
        if n % 2:
            continue
        x -= 0.01
    return x, n


def returned_early(x):
    for v in x:
        if v > 0.5:
            return v * 2
    return x.sum()


def led_while(m, x):
    n = 0
    while np.abs(x).max() > 0.01 and n < 20:
        x = 0.3 * np.tanh(m @ x)
        n += 1
    return x, n


def led_if_in_a_loop(m, x):
    for _ in range(4):
        if x[0] > 0:
            x = np.tanh(m @ x)
        else:
            x = np.tanh(x - m.T @ x)
    return x


def shared_for(m, x, k):
    total = 0.0
    for i in range(k):
        x = np.tanh(m @ x) + i
        total += x[i % 6]
        if i % 2:
            x = x * 0.5
    return x, total


def shared_while(m, x, k):
    n, s = 0, k * 1.0
    while s > 0.1:
        s *= 0.5
        x = m @ x * 0.1
        n += 1
    return x, n, s


def shared_if(m, x, flag):
    if flag:
        y, z = m @ x, 1.0
    else:
        y, z = x * 2, x[0]
    return y * z, z


def branches_in_branches(m, x):
    if x[0] > 0:
        if x[1] > 0:
            return m @ x
        return m.T @ (m @ x)
    elif x[2] > 0:
        return x
    return -x


def shared_part(x, k):
    """What all lanes share is read after the loop, too."""
    a = 1.0
    for i in range(k):
        a = np.sin(a) + i
        x = x * a
    return x, a


def work_in_an_arm(m, x):
    if x[0] > 0:
        return np.sum(np.sin(m @ m)) * x
    return x


def two_loops(x):
    n = 0
    while x < 2:
        x = x * 1.5 + 0.1
        n += 1
    y = x + n
    while y > 1:
        y *= 0.7
        n -= 1
    return x * y + n


def dear_trips(x):
    change = 1.0
    while abs(change) > 1e-10:
        change = (x - 0.4 * np.sin(x) - 1.0) / (1.0 - 0.4 * np.cos(x))
        x = x - change
    return x


def solved(m, x, k):
    a = m @ m.T + 6 * np.eye(6)
    for _ in range(k):
        x = np.linalg.solve(a, x) + np.sin(x)
    return x, np.convolve(x, m[0]), np.einsum("ij,j,i->", m, x, x)


PROGRAMS = [
    (recursion, (0, 0), (S, N)), (written, (0, 0), (X, N)), (grown, (0, 0), (S, N)), (left, (0,), (S * 3,)),
    (returned_early, (0,), (X,)), (led_while, (None, 0), (M, X)), (led_if_in_a_loop, (None, 0), (M, X)),
    (shared_for, (None, 0, None), (M, X, 4)), (shared_for, (0, None, None), (np.stack([M, -M]), X[0], 3)),
    (shared_for, (None, 0, 0), (M, X, N)), (shared_while, (None, 0, None), (M, X, 3)),
    (shared_if, (None, 0, None), (M, X, True)), (shared_if, (None, 0, 0), (M, X, N > 2)),
    (branches_in_branches, (None, 1), (M, X.T.copy())), (shared_part, (0, None), (S, 4)),
    (work_in_an_arm, (None, 0), (M, X)), (two_loops, (0,), (abs(S),)), (dear_trips, (0,), (RNG.uniform(0, 3, 70),)),
    (solved, (None, 0, None), (M, X, 3)),
]
NAMES = [f"{program.__name__}-{axes}" for program, axes, _ in PROGRAMS]


def leaves(x):
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple) else [x]


def lane(args, axes, k):
    parts = [arg if axis is None else np.take(arg, k, axis=axis) for arg, axis in zip(args, axes)]
    return [x.item() if isinstance(x, np.generic) and x.dtype.kind in "bi" else x for x in parts]


def size_of(args, axes):
    return next(arg.shape[axis] for arg, axis in zip(args, axes) if axis is not None)


@pytest.mark.parametrize("program, axes, args", PROGRAMS, ids=NAMES)
def test_a_loop_over_lanes(program, axes, args):
    expected = [leaves(program(*lane(args, axes, k))) for k in range(size_of(args, axes))]
    found = leaves(gradsmith.vmap(program, in_axes=axes)(*args))
    assert len(expected[0]) == len(found)
    for k, value in enumerate(found):
        rows = np.stack([np.asarray(row[k]) for row in expected])
        assert (rows.shape, rows.dtype.kind) == (value.shape, value.dtype.kind)
        np.testing.assert_allclose(value, rows, rtol=1e-10, atol=1e-12)


DIFFERENTIATED = {"led_if_in_a_loop", "shared_for", "branches_in_branches", "shared_part", "dear_trips", "written"}


@pytest.mark.parametrize("program, axes, args", [p for p in PROGRAMS if p[0].__name__ in DIFFERENTIATED],
                         ids=[n for n in NAMES if n.split("-")[0] in DIFFERENTIATED])
def test_derivatives_inside_and_outside(program, axes, args):
    """vmap of grad, and grad of vmap, are the lanes' gradients."""
    which = max(k for k, arg in enumerate(args) if isinstance(arg, np.ndarray) and arg.dtype.kind == "f")

    def total(x):
        return sum([np.sum(leaf) for leaf in x]) if isinstance(x, tuple) else np.sum(x)

    gradient = gradsmith.grad(lambda *xs: total(program(*xs)), argnums=which)
    expected = [gradient(*lane(args, axes, k)) for k in range(size_of(args, axes))]
    np.testing.assert_allclose(gradsmith.vmap(gradient, in_axes=axes)(*args), np.stack(expected), rtol=1e-8, atol=1e-9)
    whole = gradsmith.grad(lambda *xs: total(gradsmith.vmap(program, in_axes=axes)(*xs)), argnums=which)(*args)
    wanted = sum(expected) if axes[which] is None else np.stack(expected, axis=axes[which])
    np.testing.assert_allclose(whole, wanted, rtol=1e-8, atol=1e-9)


def test_nested_batches_with_different_axes():
    both = gradsmith.vmap(gradsmith.vmap(branches_in_branches, in_axes=(None, 0)), in_axes=(0, None))
    matrices = np.stack([M, -M.T])
    np.testing.assert_allclose(both(matrices, X), [[branches_in_branches(m, x) for x in X] for m in matrices])


@pytest.mark.parametrize("count", [0, 1])
def test_batches_of_none_and_one(count):
    for program in (returned_early, lambda x: shared_for(M, x, 2)[0], lambda x: branches_in_branches(M, x)):
        expected = [program(x) for x in X[:count]]
        found = gradsmith.vmap(program)(X[:count])
        assert count == len(found)
        np.testing.assert_allclose(found, np.reshape(expected, found.shape))


def test_products_stay_products():
    """Of whole batches, in arms and in loops that all lanes share."""
    for program, args in ((branches_in_branches, (M, X)), (lambda m, x: shared_for(m, x, 4), (M, X))):
        text = gradsmith.vmap(program, in_axes=(None, 0)).source(*args)
        assert "gemm(" in text and "gemv(" not in text


def test_derivatives_of_parted_lanes_in_a_loop():
    def loss(m, x):
        for _ in range(3):
            x = gradsmith.vmap(branches_in_branches, in_axes=(None, 0))(m, x)
        return np.sum(x ** 2)

    def in_a_row(m, x):
        for _ in range(3):
            x = np.stack([branches_in_branches(m, x[0]), branches_in_branches(m, x[1])])
        return np.sum(x ** 2)

    np.testing.assert_allclose(gradsmith.grad(loss)(0.3 * M, X[:2]), gradsmith.grad(in_a_row)(0.3 * M, X[:2]))


def test_products_of_branches_in_loops_stay_products_under_a_derivative():
    """What the loop saves for the reverse sweep has one size in all trips."""
    def loss(m, x):
        return np.sum(gradsmith.vmap(led_if_in_a_loop, in_axes=(None, 0))(m, x) ** 2)

    text = gradsmith.grad(loss).source(0.3 * M, X)
    assert "gemm(" in text and "gemv(" not in text
    rows = [gradsmith.grad(lambda m, x: np.sum(led_if_in_a_loop(m, x) ** 2))(0.3 * M, x) for x in X]
    np.testing.assert_allclose(gradsmith.grad(loss)(0.3 * M, X), sum(rows))


def failing_arms(m, x, k):
    if x[0] > 0:
        return (m @ x)[k]
    return x[0]


def test_lanes_of_arms_are_those_of_the_batch():
    rows = np.array([[-1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, 1.0]])
    kind, text = raised_by(gradsmith.vmap(failing_arms, in_axes=(None, 0, 0)), np.eye(2), rows, np.array([9, 0, 9, 9]))
    assert kind is IndexError and text.endswith("(in lane 3)")


# --- exceptions ---------------------------------------------------------------------------------------------------


class Refused(Exception):
    pass


def picky(x, k):
    if k > 4:
        raise Refused(f"{k} of {len(x)}")
    return x[k]


def deep(x, n):
    if n <= 0:
        if x > 2:
            raise ValueError("too large")
        return x
    return deep(x * 0.5, n - 1)


def endless(x):
    while x < 10:
        if x < -3:
            raise KeyError("negative")
        x = x + x * x * 0.5 + 0.1
    return x


def raised_by(function, *args):
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.type, caught.value.args[0]


def test_exceptions_tell_the_first_lane():
    vmap = gradsmith.vmap
    rows = np.ones((5, 3))
    assert (Refused, "7 of 3 (in lane 1)") == raised_by(vmap(picky), rows, np.array([0, 7, 2, 9, 1]))
    kind, text = raised_by(vmap(picky), rows, np.array([0, 1, -7, 2, 3]))
    assert kind is IndexError and text.endswith("(in lane 2)")
    kind, text = raised_by(vmap(vmap(picky, in_axes=(None, 0)), in_axes=(0, None)), rows, np.array([0, 1, 3]))
    assert kind is IndexError and text.endswith("(in lane (0, 2))")
    for batched in (vmap(endless), vmap(gradsmith.grad(endless)), gradsmith.grad(lambda x: vmap(endless)(x).sum())):
        assert (KeyError, "negative (in lane 2)") == raised_by(batched, np.array([1.0, 2.0, -4.0, -5.0]))


def test_exceptions_of_routines_and_of_recursion_tell_the_lane():
    matrices = np.stack([np.eye(3)] * 4)
    matrices[2, 0, 0] = 0
    solve = gradsmith.vmap(np.linalg.solve)
    assert (np.linalg.LinAlgError, "Singular matrix (in lane 2)") == raised_by(solve, matrices, np.ones((4, 3)))
    pairs = gradsmith.vmap(gradsmith.vmap(lambda p: np.linalg.cholesky(p["a"]), in_axes=({"a": 0},)))
    kind, text = raised_by(pairs, {"a": np.stack([matrices, matrices])})
    assert (np.linalg.LinAlgError, "Matrix is not positive definite (in lane (0, 2))") == (kind, text)
    kind, text = raised_by(gradsmith.vmap(deep), np.array([1.0, 2.0, 10.0]), np.array([1, 2, 0]))
    assert kind is ValueError and "too large" in text and text.endswith("(in lane 2)")


def twice_picky(x, k):
    if x[0] > 5:
        raise ValueError("large")
    print("seen")
    y = x[k]
    if y > 3:
        raise Refused("at last")
    return y


def test_the_first_lane_of_all_statements_is_told(capsys):
    """As a loop over the lanes would: lane 1 fails in the last statement, lanes 3 and 2 in earlier ones."""
    rows, places = np.ones((5, 3)), np.array([0, 1, 7, 0, 0])
    rows[3, 0], rows[1, 1] = 6, 4

    def total(x):
        return gradsmith.vmap(twice_picky)(x, places).sum()

    for batched, args in ((gradsmith.vmap(twice_picky), (rows, places)), (gradsmith.grad(total), (rows,)),
                          (gradsmith.vmap(gradsmith.grad(twice_picky)), (rows, places))):
        assert (Refused, "at last (in lane 1)") == raised_by(batched, *args)
    capsys.readouterr()
    raised_by(gradsmith.vmap(twice_picky), rows, places)
    assert capsys.readouterr().out.count("seen") == 0           # the first statement fails for all


def test_lanes_of_routines_inside_of_other_transforms():
    matrices = np.stack([np.eye(2)] * 4)
    matrices[2:] = 0

    def total(a):
        return gradsmith.vmap(np.linalg.solve)(a, np.ones((4, 2))).sum()

    expected = np.linalg.LinAlgError, "Singular matrix (in lane 2)"
    assert expected == raised_by(gradsmith.grad(total), matrices)
    assert expected == raised_by(gradsmith.vjp, total, matrices)
    assert expected == raised_by(gradsmith.jvp, total, (matrices,), (matrices,))
    kind, text = raised_by(gradsmith.vmap(total), np.stack([matrices * 0 + np.eye(2), matrices]))
    assert (np.linalg.LinAlgError, "Singular matrix (in lane (1, 2))") == (kind, text)


def test_lanes_that_are_run_again_write_to_nothing_of_the_callers():
    def written(a, b):
        b[0] += 1.0
        return np.linalg.solve(a, b)

    b = np.zeros(2)
    kind, text = raised_by(gradsmith.vmap(written, in_axes=(0, None)), np.stack([np.eye(2), np.zeros((2, 2))]), b)
    assert text == "Singular matrix (in lane 1)"
    np.testing.assert_array_equal([0.0, 0.0], b)


# --- axes ---------------------------------------------------------------------------------------------------------

A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 3))
Pair = namedtuple("Pair", "a b")


@dataclass
class Held:
    u: np.ndarray
    v: float


@pytest.mark.jax
def test_axes_as_jax_takes_them():
    jax = pytest.importorskip("jax")
    calls = [
        (lambda x, y: x * y, (0, 1), 0, (A, B)), (lambda x, y: x * y, (-2, -1), -1, (A, B)),
        (lambda x, y: (x * 2, {"s": y.sum(), "t": x.sum()}), (0, None), (1, {"s": None, "t": 0}), (A, B)),
        (lambda p: p["a"] * p["b"], ({"a": 0, "b": None},), 0, ({"a": A, "b": B[:, 0]},)),
        (lambda p, q: p.a * q[0] + p.b, [Pair(0, None), (1,)], 0, (Pair(A, 2.0), (B,))),
        (lambda x: [x, (x, 1.0)], 0, [0, (-1, None)], (A,)),
    ]
    for program, in_axes, out_axes, args in calls:
        wanted, structure = jax.tree.flatten(jax.vmap(program, in_axes, out_axes)(*args))
        found, own = jax.tree.flatten(gradsmith.vmap(program, in_axes, out_axes)(*args))
        assert structure == own
        for a, b in zip(wanted, found, strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(b, a, rtol=1e-5)


def test_more_axes():
    held = gradsmith.vmap(lambda d: d.u * d.v, in_axes=(Held(0, None),))
    np.testing.assert_array_equal(A * 2, held(Held(A, 2.0)))
    np.testing.assert_array_equal(A * A, gradsmith.vmap(lambda x, *, y: x * y)(A, y=A))
    assert (5, 3) == gradsmith.vmap(lambda x: x[0] * 2, in_axes=None, axis_size=5)(B).shape


@pytest.mark.parametrize("options, args, text", [
    ({}, (A, B), "inconsistent sizes for its batch: axis 0 of x is 3, axis 0 of y is 4"),
    ({"in_axes": (2, None)}, (A, B), r"axis 2 of x, which has 2 axes \(its shape is \(3,4\)\)"),
    ({"in_axes": (0, -3)}, (A, B), "axis -3 of y"),
    ({}, (A, 1.0), "axis 0 of y, which is a scalar"),
    ({"in_axes": None}, (A, B), "nothing to map over"),
    ({"in_axes": (0,)}, (A, B), "1 entries for 2 positional arguments"),
    ({"in_axes": (0, {"w": 0})}, (A, B), "no container"),
    ({"in_axes": (0, ({"w": 0},))}, (A, ({"w": A, "v": A},)), r"a dict with the keys 'w', 'v'"),
    ({"in_axes": (0, None), "out_axes": None}, (A, B), "differs from element to element"),
    ({"in_axes": (0, None), "out_axes": 3}, (A, B), "out_axes names axis 3 of the result"),
    ({"axis_size": 7}, (A, A), "axis_size is 7, axis 0 of x is 3"),
])
def test_axes_that_do_not_fit(options, args, text):
    with pytest.raises(ValueError, match=text):
        gradsmith.vmap(lambda x, y: x * 2, **options)(*args)


def test_axes_that_are_none():
    with pytest.raises(TypeError, match="must be an int, None, or a tuple"):
        gradsmith.vmap(lambda x: x, in_axes="0")(A)


def written_through_a_reshaped_view(x):
    flat = x.reshape(-1)
    flat[flat > 0.2] *= 3.0
    x.ravel()[::2] += x[0, 0]
    return np.sum(x**2)


def test_lanes_in_c_order_are_written_through_reshaped_views():
    each = [written_through_a_reshaped_view(x.copy()) for x in np.stack([A, -A])]
    np.testing.assert_allclose(each, gradsmith.vmap(written_through_a_reshaped_view)(np.stack([A, -A])))
    slope = gradsmith.grad(written_through_a_reshaped_view)
    np.testing.assert_allclose([slope(A), slope(-A)], gradsmith.vmap(slope)(np.stack([A, -A])))


def test_lanes_in_an_unknown_order_are_not_written_through_reshaped_views():
    with pytest.raises(gradsmith.TranspileError, match="E123"):
        gradsmith.vmap(written_through_a_reshaped_view, in_axes=1)(np.zeros((3, 2, 4)))
    with pytest.raises(gradsmith.TranspileError, match="E123"):
        gradsmith.vmap(written_through_a_reshaped_view)(np.zeros((4, 3, 2)).T)
