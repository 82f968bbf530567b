"""Minimal cuts, compared with SciPy's maximum flow on random networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from gradsmith.transpiler.transforms.flow import INFINITE, Network


def cut(capacities, side):
    return sum(c for (a, b), c in capacities.items() if a not in side and b in side)


@pytest.mark.parametrize("seed", range(40))
def test_the_cut_costs_as_much_as_the_flow(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 14))
    matrix = rng.integers(1, 30, (size, size)) * (rng.uniform(size=(size, size)) < 0.35)
    np.fill_diagonal(matrix, 0)
    network = Network()
    capacities = {(a, b): int(matrix[a, b]) for a in range(size) for b in range(size) if matrix[a, b]}
    for (a, b), c in capacities.items():
        network.edge(a, b, c)
    side = network.sink_side(0, size - 1)
    assert 0 not in side and size - 1 in side
    assert maximum_flow(csr_array(matrix.astype(np.int32)), 0, size - 1).flow_value == cut(capacities, side)


def test_infinite_edges_are_not_cut():
    network = Network()
    network.edge("s", "make", 5)
    network.edge("make", "need", 3)
    network.edge("need", "t", INFINITE)
    assert {"need", "t"} == network.sink_side("s", "t")
