"""Patterns, colours, and what is read in products with them, without any function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gradsmith.sparse import colouring
from gradsmith.sparse.compression import compress_hessian, compress_jacobian
from gradsmith.sparse.pattern import detect, pattern_of

SHAPES = st.tuples(st.integers(0, 40), st.integers(0, 150), st.sampled_from([0.0, 0.02, 0.1, 0.4, 1.0]),
                   st.integers(0, 2**31))
many = settings(max_examples=40, deadline=None, derandomize=True)


def random_matrix(rows: int, columns: int, density: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(1.0, 2.0, (rows, columns)) * (rng.random((rows, columns)) < density)
    if seed % 3 == 0 and rows and columns:                              # a full row, or a full column
        matrix[0] = rng.uniform(1.0, 2.0, columns)
    if seed % 5 == 0 and rows and columns:
        matrix[:, -1] = rng.uniform(1.0, 2.0, rows)
    return matrix


def products_with(colours: np.ndarray, count: int, matrix: np.ndarray) -> np.ndarray:
    """[colour, place]: what one tangent for each colour gives."""
    return (colours[:, None] == np.arange(count)).astype(float).T @ matrix.T


def marks_through(matrix: np.ndarray):
    """The function on marks of a linear function, and how often it was called."""
    calls = []

    def marks_of(seeds):
        calls.append(seeds)
        return np.array([np.bitwise_or.reduce(seeds[row != 0], initial=0) for row in matrix], np.int64)

    return marks_of, calls


@many
@given(SHAPES)
def test_detected_patterns_are_exact(case):
    matrix = random_matrix(*case)
    marks_of, _ = marks_through(matrix)
    found = detect(marks_of, matrix.shape[1], matrix.shape[0])
    assert matrix.shape == found.shape
    assert found.equals(pattern_of(matrix))


@pytest.mark.parametrize("count, passes", [(64, 1), (65, 2), (2048, 2), (4000, 3), (65536, 3)])
def test_a_band_takes_few_passes(count, passes):
    def marks_of(seeds):
        calls.append(1)
        return seeds | np.append(seeds[1:], 0)

    calls: list[int] = []
    found = detect(marks_of, count, count)
    assert passes == len(calls)
    assert found.equals(pattern_of(sparse.diags_array([np.ones(count), np.ones(count - 1)], offsets=[0, 1])))


def test_long_rows_of_large_functions_may_be_taken_as_full():
    count = 5000

    def marks_of(seeds):
        return np.append(seeds, np.bitwise_or.reduce(seeds[::2]))

    found = detect(marks_of, count, count + 1)
    dense = sparse.csr_array((np.ones(found.count, bool), found.indices, found.indptr), shape=found.shape)
    assert 2 * count == found.count
    assert dense[[count]].toarray().all() and dense.diagonal().all()


@many
@given(SHAPES, st.booleans())
def test_jacobians_are_read_back(case, columns_alone):
    matrix = random_matrix(*case)
    found = compress_jacobian(pattern_of(matrix), columns_alone=columns_alone)
    assert not columns_alone or 0 == found.cotangents
    assert found.tangents <= matrix.shape[1] and found.cotangents <= matrix.shape[0]
    forward = products_with(found.column_colours, found.tangents, matrix)
    backward = products_with(found.row_colours, found.cotangents, matrix.T)
    expected = matrix[found.pattern.rows(), found.pattern.indices]
    actual = np.empty_like(expected)
    for table, mine in ((forward, found.by_tangent), (backward, ~found.by_tangent)):
        actual[mine] = table[found.colours[mine], found.places[mine]]
    np.testing.assert_allclose(actual, expected, rtol=1e-15)


@many
@given(st.integers(0, 50), st.sampled_from([0.0, 0.02, 0.1, 0.4, 1.0]), st.integers(0, 2**31))
def test_hessians_are_read_back(size, density, seed):
    matrix = random_matrix(size, size, density, seed)
    matrix = matrix + matrix.T
    found = compress_hessian(pattern_of(matrix).symmetric())
    table = products_with(found.column_colours, found.tangents, matrix)
    expected = matrix[found.pattern.rows(), found.pattern.indices]
    np.testing.assert_allclose(table[found.colours, found.places], expected, rtol=1e-15)


def test_known_numbers_of_colours():
    def passes(matrix):
        found = compress_jacobian(pattern_of(matrix))
        return found.tangents, found.cotangents

    band = np.eye(30) + np.eye(30, k=1) + np.eye(30, k=-1)
    arrow = np.eye(30)
    arrow[0] = arrow[:, 0] = 1.0
    assert (3, 0) == passes(band)
    assert (2, 1) == passes(arrow)
    assert (0, 1) == passes(np.ones((1, 30)))
    assert (1, 0) == passes(np.ones((30, 1)))
    assert (0, 0) == passes(np.zeros((4, 5)))
    assert 3 == compress_hessian(pattern_of(band)).tangents
    assert 2 == compress_hessian(pattern_of(arrow)).tangents
    large = sparse.eye_array(200, format="lil")
    large[[0]], large[:, [0]] = 1.0, 1.0
    assert 2 == compress_hessian(pattern_of(large)).tangents         # the hub gets a colour of its own


def test_compiled_colourings_agree_with_plain_python(monkeypatch):
    patterns = [pattern_of(random_matrix(30, 40, 0.1, 1)), pattern_of(random_matrix(25, 25, 0.1, 2)).symmetric()]
    plain = compress_jacobian(patterns[0]), compress_hessian(patterns[1]), detect(
        marks_through(random_matrix(20, 150, 0.1, 3))[0], 150, 20)
    monkeypatch.setattr(colouring, "SMALL", 0)
    compiled = compress_jacobian(patterns[0]), compress_hessian(patterns[1]), detect(
        marks_through(random_matrix(20, 150, 0.1, 3))[0], 150, 20)
    for one, other in zip(plain[:2], compiled[:2]):
        np.testing.assert_array_equal(one.column_colours, other.column_colours)
        np.testing.assert_array_equal(one.colours, other.colours)
        np.testing.assert_array_equal(one.places, other.places)
    assert plain[2].equals(compiled[2])
