"""What is a view of an array and what is a copy: told by writing to one and looking at the other.

For each expression on `a`, run-time and known while transpiling, the array or what the expression gave is written to;
both must be what NumPy says, or the write is refused.  Nothing may be silently lost.
"""

import linecache

import numpy as np
import pytest
from tracing import run, same, traced

from gradsmith.transpiler.errors import TranspileError

EXPRESSIONS = """
a.T; a.transpose(); a.transpose(1, 0); np.transpose(a); a.mT; np.matrix_transpose(a); np.permute_dims(a, (1, 0))
a.reshape(4, 3); np.reshape(a, (2, 6)); a.reshape(-1); a.ravel(); np.ravel(a); a.flatten(); np.ravel(a, order='F')
a.reshape(6, 2, order='F'); a.ravel('K'); a.T.ravel(); a.T.reshape(-1); a[:, ::2].reshape(-1); a[1:].reshape(-1)
a.swapaxes(0, 1); np.swapaxes(a, 0, 1); np.moveaxis(a, 0, 1); np.rollaxis(a, 1); a.squeeze(); np.squeeze(a[None])
np.expand_dims(a, 1); a[None]; a[...]; a[()]; a[:, 1:]; a[::-1]; a[0]; a[1:, ::-2]; a.T[1:, ::-1]; a.T.T
np.flip(a); np.flip(a, 0); np.fliplr(a); np.flipud(a); np.rot90(a); np.rot90(a, 2); np.rot90(a, -1)
np.asarray(a); np.asanyarray(a); np.array(a); np.array(a, copy=False); np.array(a, copy=None); np.array(a, ndmin=3)
np.asarray(a, dtype=float); np.ascontiguousarray(a); np.asfortranarray(a); np.asfortranarray(a[0]); np.require(a)
np.asarray_chkfinite(a); a.astype(float); a.astype(float, copy=False); np.astype(a, float, copy=False); a.view()
a.copy(); np.copy(a); np.atleast_1d(a); np.atleast_2d(a); np.atleast_3d(a); np.positive(a); np.conj(a); a.conj()
np.split(a, 3)[1]; np.split(a, [1], axis=1)[1]; np.array_split(a, 2)[0]; np.array_split(a, 3, axis=1)[1]
np.hsplit(a, 2)[1]; np.vsplit(a, 3)[2]; np.dsplit(a[None], 2)[0]; np.unstack(a)[1]
np.real(a); a.real; np.imag(a); a.imag; np.nan_to_num(a, copy=False); np.nan_to_num(a); np.real_if_close(a)
np.tril(a); np.where(a > 100, 0.0, a); np.take(a, [0, 1], axis=0); np.compress([True, False, True], a, axis=0)
np.delete(a, 0, axis=0); np.roll(a, 0); np.concatenate([a]); np.stack([a]); np.vstack([a]); np.column_stack([a])
np.repeat(a, 1, axis=0); np.tile(a, 1); np.sort(a, axis=0); np.clip(a, -100, 100); np.round(a, 3)
np.resize(a, (3, 4)); np.broadcast_to(a, (3, 4)); np.einsum('ij->ji', a); np.einsum('ij->ij', a); np.einsum('ij', a)
np.einsum('ij->i', a); a[[0, 1]]; a[np.array([True, False, True])]; np.diagonal(a); a.diagonal(1); np.diag(a)
np.linalg.diagonal(a); np.trim_zeros(a[0]); np.meshgrid(a[0], a[0])[0]; np.meshgrid(a[0], a[0], copy=False)[0]
np.pad(a, 0); a + 0; +a; np.maximum(a, a); [a][0]; list(a)[1]; [r for r in a][1]; next(iter(a)); tuple(a)[0]; [*a][2]
np.array([a[0], a[1]]); np.asarray([a[0], a[1]]); dict(k=a)['k']; a.flat[:]; a.flat[1:3]; a.flat; (lambda q: q)(a)
""".replace("\n", "; ").strip("; ").split("; ")

WRITES = {
    "to what it gave": "    v[0] = 99.0\n", "to the array": "    a[0] = 99.0\n    a[1, 1] = 98.0\n",
    "to what it gave, in place": "    v *= 2.0\n", "to both": "    v[0] = 5.0\n    a *= 3.0\n    v[-1] += 1.0\n",
}


def program(expression, source, write):
    text = f"def f(x):\n    a = {source}\n    v = {expression}\n{write}    return a + 0.0 * x[0, 0], np.array(v) * x[0, 1]\n"
    name = f"<{expression} {source} {len(write)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


@pytest.mark.filterwarnings("ignore:Numpy has detected:DeprecationWarning")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_is_shared(expression):
    refused = 0
    for source in ("x * 1.0", "np.arange(12.0).reshape(3, 4)"):
        for write in WRITES.values():
            f = program(expression, source, write)
            x = np.arange(12.0).reshape(3, 4) + 0.5
            try:
                expected = f(x.copy())
            except (ValueError, TypeError) as problem:
                with pytest.raises((type(problem), NotImplementedError)):
                    run(traced(f, x))
                continue
            try:
                found = traced(f, x)
            except TranspileError:
                refused += 1
                continue
            same(expected, run(found))
    assert refused < 8 or expression in REFUSED, "nothing is supported"


REFUSED = {"np.trim_zeros(a[0])", "np.broadcast_to(a, (3, 4))", "np.unstack(a)[1]", "np.asfortranarray(a)", "np.permute_dims(a, (1, 0))"}
