"""gradsmith.random against JAX's classic streams, and against numbers written down."""

import numpy as np
import pytest
from scipy import stats

from gradsmith import random
from gradsmith.array import Array
from gradsmith.kernels import random_words

SHAPES = [(), (1,), (7,), (3, 4), (2, 0), (1001,)]
SEEDS = [0, 1, 42, 2**31, 2**40 + 3, -1]


@pytest.fixture
def jax_random():
    """JAX's module, with classic streams and 64-bit types."""
    jax = pytest.importorskip("jax")
    before = jax.config.jax_threefry_partitionable, jax.config.jax_enable_x64
    jax.config.update("jax_threefry_partitionable", False)
    jax.config.update("jax_enable_x64", True)
    yield jax.random
    jax.config.update("jax_threefry_partitionable", before[0])
    jax.config.update("jax_enable_x64", before[1])


def same(expected, actual):
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.shape == actual.shape
    assert expected.dtype == actual.dtype
    np.testing.assert_array_equal(actual, expected)


def close(expected, actual, digits=200):
    """Equal up to `digits` units in the last place of the larger of 1 and the number: XLA's log1p is that far off in
    float64."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert expected.shape == actual.shape
    assert expected.dtype == actual.dtype
    eps = np.finfo(expected.dtype).eps
    digits = digits if expected.dtype.itemsize >= 8 and expected.dtype != np.complex64 else 40
    np.testing.assert_allclose(actual, expected, rtol=digits * eps, atol=digits * eps)


# --- numbers that do not need JAX -----------------------------------------------------------------------------------


def test_threefry_test_vectors():
    """From the authors' Random123: counter and key of zeros, of ones, and of digits of pi."""
    cases = [((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
             ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
             ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0))]
    for key, counter, expected in cases:
        left, right = (np.array([c], np.uint32) for c in counter)
        random_words.encrypt(np.array(key, np.uint32), left, right)
        assert expected == (int(left[0]), int(right[0]))


def test_long_streams_are_made_of_the_same_blocks():
    key = random.PRNGKey(3)
    for count in (2 * random_words.BLOCK + 5, 6, 1, 0):
        half = (count + 1) // 2
        counters = np.arange(2 * half, dtype=np.uint32)
        counters[count:] = 0
        random_words.encrypt(key, counters[:half], counters[half:])
        np.testing.assert_array_equal(counters[:count], random.bits(key, (count,)))


def test_results_are_arrays_of_the_default_dtypes():
    key = random.PRNGKey(0)
    assert isinstance(key, Array)
    assert np.dtype(np.uint32) == key.dtype
    for name, dtype in [("uniform", "float32"), ("normal", "float32"), ("gumbel", "float32"), ("bits", "uint32")]:
        found = getattr(random, name)(key, (3,))
        assert isinstance(found, Array)
        assert np.dtype(dtype) == found.dtype
    assert np.dtype(np.int32) == random.randint(key, (3,), 0, 9).dtype
    assert random.uniform(key).block_until_ready().shape == ()


def test_distributions_have_their_moments():
    key = random.PRNGKey(5)
    for dtype in (np.float32, np.float64):
        assert stats.kstest(np.asarray(random.normal(key, (20000,), dtype)), "norm").pvalue > 1e-3
        assert stats.kstest(np.asarray(random.exponential(key, (20000,), dtype)), "expon").pvalue > 1e-3
        assert stats.kstest(np.asarray(random.laplace(key, (20000,), dtype)), "laplace").pvalue > 1e-3
        assert stats.kstest(np.asarray(random.gumbel(key, (20000,), dtype)), "gumbel_r").pvalue > 1e-3


def test_permutation_and_choice_without_replacement_lose_nothing():
    key = random.PRNGKey(2)
    np.testing.assert_array_equal(np.sort(random.permutation(key, 1000)), np.arange(1000))
    assert len(set(np.asarray(random.choice(key, 50, (50,), replace=False)).tolist())) == 50
    assert set(np.asarray(random.choice(key, 4, (200,), p=np.array([0.5, 0.0, 0.5, 0.0]))).tolist()) == {0, 2}


def test_errors():
    key = random.PRNGKey(0)
    with pytest.raises(TypeError, match="unexpected PRNG key type"):
        random.normal(0, (3,))
    with pytest.raises(TypeError, match="uint32"):
        random.normal(np.zeros(2), (3,))
    with pytest.raises(ValueError, match="single key"):
        random.normal(random.split(key), (3,))
    with pytest.raises(TypeError, match="1D sequences"):
        random.normal(key, 3)
    with pytest.raises(ValueError, match="negative dimensions"):
        random.normal(key, (-1,))
    with pytest.raises(ValueError, match="float dtype|float32 or float64"):
        random.uniform(key, (3,), dtype=int)
    with pytest.raises(TypeError, match="integer dtypes"):
        random.randint(key, (3,), 0, 5, dtype=float)
    with pytest.raises(ValueError, match="unsigned"):
        random.bits(key, (3,), dtype=int)
    with pytest.raises(ValueError, match="broadcast"):
        random.uniform(key, (3,), minval=np.zeros(2))
    with pytest.raises(TypeError, match="must be an integer"):
        random.PRNGKey(1.5)
    with pytest.raises(TypeError, match="scalar seed"):
        random.PRNGKey([1, 2])
    with pytest.raises(OverflowError):
        random.PRNGKey(2**64)
    with pytest.raises(TypeError, match="scalar"):
        random.fold_in(key, [1])
    with pytest.raises(TypeError, match="floating"):
        random.bernoulli(key, 1)
    with pytest.raises(ValueError, match="larger sample"):
        random.choice(key, 3, (4,), replace=False)
    with pytest.raises(ValueError, match="cannot exceed"):
        random.categorical(key, np.zeros(3), shape=(4,), replace=False)
    with pytest.raises(TypeError, match="at least 1-dimensional"):
        random.permutation(key, 1.5)


# --- against JAX ------------------------------------------------------------------------------------------------


@pytest.mark.jax
@pytest.mark.parametrize("seed", SEEDS)
def test_keys(jax_random, seed):
    theirs, ours = jax_random.PRNGKey(seed), random.PRNGKey(seed)
    same(theirs, ours)
    same(jax_random.split(theirs, 5), random.split(ours, 5))
    same(jax_random.split(theirs, (2, 3)), random.split(ours, (2, 3)))
    for data in (0, 1, 2**32 - 1):
        same(jax_random.fold_in(theirs, data), random.fold_in(ours, data))


@pytest.mark.jax
@pytest.mark.parametrize("shape", SHAPES)
def test_bits(jax_random, shape):
    key = jax_random.PRNGKey(9)
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        same(jax_random.bits(key, shape, dtype), random.bits(np.asarray(key), shape, dtype))


@pytest.mark.jax
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(jax_random, shape, dtype):
    key = jax_random.PRNGKey(7)
    own = np.asarray(key)
    same(jax_random.uniform(key, shape, dtype), random.uniform(own, shape, dtype))
    limits = (np.float32(-2.7), np.float32(3.3)) if dtype == "float32" else (-2.7, 3.3)
    same(jax_random.uniform(key, shape, dtype, *limits), random.uniform(own, shape, dtype, *limits))
    same(jax_random.normal(key, shape, dtype), random.normal(own, shape, dtype))
    for name in ("exponential", "laplace", "gumbel"):
        close(getattr(jax_random, name)(key, shape, dtype), getattr(random, name)(own, shape, dtype))
    close(jax_random.gumbel(key, shape, dtype, mode="high"), random.gumbel(own, shape, dtype, mode="high"))
    close(jax_random.truncated_normal(key, -1.5, 2.0, shape, dtype),
          random.truncated_normal(own, -1.5, 2.0, shape, dtype))
    probability = np.asarray(0.3, dtype)
    for mode in ("low", "high"):
        same(jax_random.bernoulli(key, probability, shape, mode), random.bernoulli(own, probability, shape, mode))


@pytest.mark.jax
def test_complex_normal(jax_random):
    key = jax_random.PRNGKey(7)
    for dtype in ("complex64", "complex128"):
        same(jax_random.normal(key, (5, 2), dtype), random.normal(np.asarray(key), (5, 2), dtype))


@pytest.mark.jax
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("limits", [(0, 10), (3, 3), (5, 2), (-5, 100), (0, 127), (0, 2**31 - 1)])
def test_randint(jax_random, dtype, limits):
    key = jax_random.PRNGKey(7)
    for shape in ((), (101,)):
        same(jax_random.randint(key, shape, *limits, dtype), random.randint(np.asarray(key), shape, *limits, dtype))


@pytest.mark.jax
def test_randint_over_all_of_a_dtype_and_with_arrays_of_limits(jax_random):
    key = jax_random.PRNGKey(8)
    own = np.asarray(key)
    for dtype in ("int8", "int16", "int32"):
        info = np.iinfo(dtype)
        limits = int(info.min), int(info.max) + 1
        same(jax_random.randint(key, (100,), *limits, dtype), random.randint(own, (100,), *limits, dtype))
    low, high = np.array([0, 5, -3]), np.array([[10], [6]])
    same(jax_random.randint(key, (2, 3), low, high, "int32"), random.randint(own, (2, 3), low, high, "int32"))


@pytest.mark.jax
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_choosing(jax_random, dtype, axis):
    key = jax_random.PRNGKey(11)
    own = np.asarray(key)
    a = np.arange(24, dtype=dtype).reshape(4, 6)
    logits = np.sin(3 * a)
    other = a.shape[1 - axis % 2]
    same(jax_random.permutation(key, a, axis), random.permutation(own, a, axis))
    same(jax_random.permutation(key, a, axis, independent=True), random.permutation(own, a, axis, independent=True))
    same(jax_random.choice(key, a, (3,), False, axis=axis), random.choice(own, a, (3,), False, axis=axis))
    weights = np.linspace(0.1, 1.0, a.shape[axis]).astype(dtype)
    for replace in (True, False):
        same(jax_random.choice(key, a, (2, 2), replace, weights, axis),
             random.choice(own, a, (2, 2), replace, weights, axis))
    for options in ({}, {"shape": (5, other)}, {"shape": (3, other), "replace": False}, {"mode": "high"}):
        same(np.asarray(jax_random.categorical(key, logits, axis, **options)).astype(np.int32),
             random.categorical(own, logits, axis, **options))


@pytest.mark.jax
@pytest.mark.parametrize("size", [0, 1, 2, 1000, 100_000])
def test_permutation_of_a_range(jax_random, size):
    key = jax_random.PRNGKey(size)
    same(np.asarray(jax_random.permutation(key, size)).astype(np.int32), random.permutation(np.asarray(key), size))
