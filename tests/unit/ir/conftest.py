"""Small operations for tests of the IR alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from gradsmith.transpiler.ir import registry
from gradsmith.transpiler.ir.dims import symbol
from gradsmith.transpiler.ir.index import At, New, Span, index_shape
from gradsmith.transpiler.ir.types import BOOL, I64, Type


def same(*types):
    first, *rest = types
    if any(t != first for t in rest):
        raise ValueError(f"types differ: {', '.join(map(str, types))}")
    return first


def sum_type(x, *, axes):
    return x.with_shape(tuple(d for i, d in enumerate(x.shape) if i not in axes))


def numpy_index(index, scalars):
    scalars = iter(scalars)
    found = []
    for item in index:
        match item:
            case At():
                found.append(int(next(scalars)))
            case New():
                found.append(None)
            case Span(start, size, step):
                first = int(next(scalars)) if start is None else start
                last = first + size * step
                found.append(slice(first, None if last < 0 else last, step))
    return tuple(found)


def load_type(x, *scalars, index):
    return x.with_shape(index_shape(index))


def load(x, *scalars, index):
    return x[numpy_index(index, scalars)]


def store(x, *scalars, index):
    *scalars, value = scalars
    out = x.copy()
    out[numpy_index(index, scalars)] = value
    return out


def split(x):
    return x // 2, x - x // 2


def positive(x):
    """How many elements are positive, and these."""
    found = x[x > 0]
    return len(found), found


def write(x):
    x[0] = 1.0
    return x


TABLE = {
    "test_add": (same, np.add),
    "test_multiply": (same, np.multiply),
    "test_negative": (same, np.negative),
    "test_less": (lambda a, b: same(a, b).with_dtype("bool"), np.less),
    "test_sum": (sum_type, lambda x, *, axes: np.sum(x, axis=axes)),
    "test_size": (lambda *, dim: I64, lambda *, dim: dim),
    "test_zeros": (lambda *, shape: Type("float64", shape), lambda *, shape: np.zeros(shape)),
    "test_reverse": (lambda x: x, lambda x: x[::-1]),
    "test_load": (load_type, load),
    "test_store": (lambda x, *rest, index: x, store),
    "test_split": (lambda x: (x, x), split),
    "test_all": (lambda x: BOOL, np.all),
    "test_float": (lambda x: x.with_dtype("float64"), lambda x: np.float64(x)),
    "test_positive": (lambda x, *, size: (I64, x.with_shape((symbol(size, 0),))), lambda x, *, size: positive(x)),
    # Wrong ones.
    "test_wrong_shape": (lambda x: x, lambda x: x[:-1]),
    "test_wrong_dtype": (lambda x: x, lambda x: x.astype("float32")),
    "test_wrong_kind": (lambda x: x, lambda x: "text"),
    "test_writes": (lambda x: x, write),
}


@pytest.fixture(autouse=True)
def operations(monkeypatch):
    for name, (infer, reference) in TABLE.items():
        op = SimpleNamespace(name=name, is_pure=True, infer=infer, reference=reference)
        monkeypatch.setitem(registry.OPERATIONS, name, op)
