"""Equal elements read at places of the lanes' own are a constant of one lane, not of the batch."""

import numpy as np
import pytest

from gradsmith.transpiler import ops
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.parse import parse
from gradsmith.transpiler.ir.verify import verify
from gradsmith.transpiler.transforms.vmap import vmap

READS = """
func f(i: i64, x: f64[1]) -> (z: f64[1]):
  y: f64[1] = load(0.5:f64[3], i) {index=[span(?; 1; 1)]}
  z: f64[1] = add(y, x)
  return z
"""


@pytest.mark.parametrize("batched", [(True, False), (True, True)])
def test_a_constant_has_no_axis_of_lanes(batched):
    ops.load_table()
    func = vmap(parse(READS.strip() + "\n"), batched, 2)
    verify(func)
    x = np.array([[1.0], [2.0]]) if batched[1] else np.array([1.0])
    (z,) = evaluate(func, np.array([0, 2]), x)
    assert (2, 1) == z.shape
    np.testing.assert_array_equal(np.broadcast_to(x + 0.5, (2, 1)), z)
