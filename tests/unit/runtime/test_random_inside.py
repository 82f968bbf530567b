"""gradsmith.random inside transpiled functions: the numbers that it gives outside, batched and differentiated."""

import numpy as np
import pytest

from gradsmith import grad, jit, jvp, random, vmap
from gradsmith.array import Array

KEY = random.PRNGKey(3)
A = np.arange(12.0).reshape(4, 3)
WEIGHTS = np.arange(1.0, 5.0) / 10


def exact(key, a, weights):
    """Everything that is to be equal to the bit."""
    keys = random.split(key, 9)
    first = (random.bits(keys[0], (3,)), random.bits(keys[0], (5,), np.uint8), random.bits(keys[0], (5,), np.uint64),
             random.uniform(keys[1], (2, 3)), random.uniform(keys[1], (3,), np.float64, -1.3, 2.0),
             random.normal(keys[2], (5,)), random.normal(keys[2], a.shape, a.dtype), random.normal(keys[2]),
             random.normal(keys[2], (2,), np.complex64), random.randint(keys[3], (6,), -5, 300, np.int16),
             random.randint(keys[3], (6,), -2**40, 2**41, np.int64), random.bernoulli(keys[4], 0.3, (6,)),
             random.bernoulli(keys[4], weights), random.rademacher(keys[4], (3,)))
    return first, keys[5], random.fold_in(keys[5], 7), random.permutation(keys[6], a), random.choice(keys[7], a, (2,)), \
        random.categorical(keys[8], weights), random.truncated_normal(keys[1], -1.0, 2.0, (3,))


def close(key, weights):
    """What is made with functions whose last digits differ."""
    kinds = (np.float32, np.float64)
    spread = np.eye(2) + 0.3
    return [(random.exponential(key, (5,), k), random.laplace(key, (5,), k), random.gumbel(key, (5,), k),
             random.cauchy(key, (5,), k), random.logistic(key, (5,), k), random.pareto(key, weights, dtype=k),
             random.rayleigh(key, weights, dtype=k), random.weibull_min(key, 2.0, 1.5, (3,), k),
             random.lognormal(key, 0.5, (3,), k), random.maxwell(key, (3,), k), random.wald(key, weights, dtype=k),
             random.triangular(key, 0.0, 0.5, 2.0, (4,), k), random.multivariate_normal(key, weights[:2], spread, dtype=k))
            for k in kinds]


def flat(tree):
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, (tuple, list)) else [np.asarray(tree)]


def assert_same(expected, actual):
    for want, got in zip(flat(expected), flat(actual), strict=True):
        assert want.dtype == got.dtype
        assert want.shape == got.shape
        np.testing.assert_array_equal(got, want)


def test_numbers_are_those_from_outside():
    assert_same(exact(KEY, A, WEIGHTS), jit(exact)(KEY, A, WEIGHTS))


def test_other_distributions():
    for want, got in zip(flat(close(KEY, WEIGHTS)), flat(jit(close)(KEY, WEIGHTS)), strict=True):
        assert want.dtype == got.dtype
        np.testing.assert_allclose(got, want, rtol=2e-6 if want.dtype == np.float32 else 1e-13, atol=2e-7)


def test_each_lane_gets_the_numbers_of_its_key():
    keys = random.split(KEY, 3)
    batched = vmap(exact, in_axes=(0, None, None))(keys, A, WEIGHTS)
    for lane, key in enumerate(keys):
        assert_same(exact(key, A, WEIGHTS), [part[lane] for part in flat(batched)])


def test_keys_and_parameters_are_batched():
    seeds, places = np.arange(4), np.array([0.0, 1.0, 2.0, 3.0])

    def draw(seed, place):
        return place + random.uniform(random.fold_in(random.PRNGKey(seed), 2), (3,), np.float64, maxval=1 + place)

    found = vmap(draw)(seeds, places)
    for lane in range(4):
        np.testing.assert_allclose(found[lane], draw(int(seeds[lane]), places[lane]), rtol=1e-15)


def walk(key, limit):
    """A key carried through a loop whose end the numbers decide."""
    total, steps = 0.0, 0
    while total < limit:
        key, subkey = random.split(key)
        total += abs(random.normal(subkey, (), np.float64))
        steps += 1
    return total, steps


def test_keys_are_carried_through_loops():
    expected = walk(KEY, 5.0)
    assert expected == jit(walk)(KEY, 5.0)
    keys = random.split(KEY, 5)
    totals, steps = vmap(walk, in_axes=(0, None))(keys, 5.0)
    for lane, key in enumerate(keys):
        assert walk(key, 5.0) == (totals[lane], steps[lane])


def tree_sum(key, depth):
    """A key split in a recursion."""
    if depth == 0:
        return random.normal(key, (), np.float64)
    left, right = random.split(key)
    return tree_sum(left, depth - 1) + tree_sum(right, depth - 1)


def test_keys_are_split_in_recursions():
    np.testing.assert_allclose(tree_sum(KEY, 3), jit(tree_sum)(KEY, 3), rtol=1e-14)


def test_sizes_known_at_run_time():
    draw = jit(lambda key, n: random.normal(key, (n,)))
    for n in (0, 1, 5, 1000):
        np.testing.assert_array_equal(random.normal(KEY, (n,)), draw(KEY, n))
    order = jit(lambda key, x: random.permutation(key, x))
    for n in (1, 2, 50, 2000):
        np.testing.assert_array_equal(random.permutation(KEY, np.arange(n)), order(KEY, np.arange(n)))


@pytest.mark.parametrize("draw", [
    lambda t: t[0] + t[1] * random.normal(KEY, (4,), np.float64),
    lambda t: random.uniform(KEY, (4,), np.float64, t[0], t[1]),
    lambda t: random.exponential(KEY, (4,), np.float64) / t[0] + t[1],
    lambda t: random.truncated_normal(KEY, t[0] - 2, t[1], (4,), np.float64),
    lambda t: random.weibull_min(KEY, t[0], t[1], (4,), np.float64),
    lambda t: random.multivariate_normal(KEY, t, np.diag(t * t) + 0.3, (4,), np.float64),
], ids=["normal", "uniform", "exponential", "truncated_normal", "weibull_min", "multivariate_normal"])
def test_numbers_move_with_their_parameters(draw):
    def loss(t):
        return np.sum(np.cos(draw(t)))

    at, along, step = np.array([0.7, 1.9]), np.array([0.4, -1.1]), 1e-5
    slope = (loss(at + step * along) - loss(at - step * along)) / (2 * step)
    np.testing.assert_allclose(grad(loss)(at) @ along, slope, rtol=1e-7)
    np.testing.assert_allclose(jvp(loss, (at,), (along,))[1], slope, rtol=1e-7)


def test_results_follow_the_key():
    draw = jit(lambda key: random.normal(key, (3,)))
    assert isinstance(draw(KEY), Array)
    assert type(draw(np.asarray(KEY))) is np.ndarray


def test_errors_show_the_users_line():
    place = r"(.|\n)*test_random_inside.py"
    cases = [(lambda k, x: random.normal(k, (3,)), random.split(KEY), "array of keys"),
             (lambda k, x: random.normal(k, (3,)), np.zeros(2), "uint32"),
             (lambda k, x: random.normal(k, 3), KEY, "1D sequences"),
             (lambda k, x: random.normal(k, (-3,)), KEY, "negative"),
             (lambda k, x: random.uniform(k, (3,), minval=x), KEY, "broadcast"),
             (lambda k, x: random.normal(k, (3,), np.int32), KEY, "float32 or float64")]
    for function, key, message in cases:
        with pytest.raises((TypeError, ValueError), match=message + place):
            jit(function)(key, np.zeros(5))
