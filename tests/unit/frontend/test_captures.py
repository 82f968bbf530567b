"""Values from outside: read at call time where they are numbers or arrays, guarded where they are not."""

import dataclasses
import enum
import functools
from typing import NamedTuple

import numba
import numpy as np
from tracing import check, failure, run, traced

from gradsmith.transpiler.ir.walk import all_statements

X = np.array([1.0, 2.0, 3.0])
SCALE = 2.0
COUNT = 3
WEIGHTS = np.array([0.5, 1.5, 2.5])
TABLE = [1.0, 2.0, [3.0, WEIGHTS]]
CONFIG = {"rate": 0.1, "steps": 2, "name": "sgd"}


def test_global_numbers_are_read_at_call_time(monkeypatch):
    def f(x):
        return SCALE * x + COUNT

    found = check(f, X)
    assert [c.name for c in found.captures] == ["SCALE"]
    assert [str(g.access) for g in found.static_guards] == ["COUNT"]
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    np.testing.assert_array_equal(run(found), 10.0 * X + 3)
    monkeypatch.setitem(globals(), "COUNT", 4)
    assert not all(g.holds() for g in found.static_guards)


def test_arrays_and_containers():
    def f(x):
        return WEIGHTS * x + TABLE[0] + TABLE[2][1], CONFIG["rate"] * x, [1] * CONFIG["steps"], CONFIG["name"]

    found = check(f, X)
    assert len([c for c in found.captures if c.type.shape]) == 1, "one array, whatever the ways to it"
    assert found.captures[0].type.shape[0] == found.func.params[1].type.shape[0]


def test_same_array_through_two_names():
    also = WEIGHTS

    def f(x):
        return WEIGHTS is also, WEIGHTS * x + also

    assert len(check(f, X).captures) == 1


def test_closures_of_one_factory():
    def make(k):
        def f(x):
            return sum(k[i] * x ** i for i in range(len(k)))
        return f

    check(make([0.0, 1.0]), 2.0)
    check(make([0.0, 0.0, 5.0]), 2.0)


def test_default_values():
    def f(x, alpha=1.67, table=(1.0, 2.0), w=WEIGHTS):
        return alpha * x + table[1] + w

    found = check(f, X)
    assert [c.name for c in found.captures] == ["w"]


def helper(x, scale):
    return x * scale * SCALE


def test_functions_of_the_module():
    def f(x):
        return helper(x, scale=3.0) + helper(x, COUNT)

    found = check(f, X)
    assert len(found.sources) == 2
    assert any(g.kind == "is" and g.expected is helper for g in found.static_guards)


def twice(fn):
    @functools.wraps(fn)
    def inner(*args):
        return 2.0 * fn(*args)
    return inner


@twice
def doubled(x):
    return x * x


@functools.lru_cache
def cached(x):
    return x * x * x


class Shifted:
    def __init__(self, fn, by):
        self.fn, self.by = fn, by

    def __call__(self, x):
        return self.fn(x + self.by)

    @property
    def twice_by(self):
        return 2.0 * self.by

    @classmethod
    def make(cls, fn):
        return cls(fn, 2.0)

    @staticmethod
    def square(x):
        return x * x

    def shifted(self, x):
        return self.square(x) + self.twice_by + self.__call__(x)


@numba.njit
def compiled(x):
    return x * 2.0 + 1.0


def test_wrapped_functions():
    def f(x):
        return doubled(x), cached(x[0]), functools.partial(helper, scale=2.0)(x), compiled(x)

    check(f, X)
    check(doubled, 3.0)
    check(functools.partial(helper, scale=WEIGHTS), X)


def test_objects_from_outside():
    model = Shifted(lambda x: x * x, 1.5)

    def f(x):
        return model(x), model.shifted(x), model.twice_by

    found = check(f, X)
    model.by = 4.0
    np.testing.assert_array_equal(run(found)[0], (X + 4.0) ** 2)
    check(model.shifted, X)


def test_objects_made_inside():
    class Base:
        kind = "base"

        def __init__(self, w):
            self.w = w

        def apply(self, x):
            return self.w * x

    class Layer(Base):
        def __init__(self, w, b):
            super().__init__(w)
            self.b = b
            self._last = None

        def apply(self, x):
            return super().apply(x) + self.b

        def __call__(self, x):
            self._last = self.apply(x)
            return self._last

        def __add__(self, other):
            return Layer(self.w + other.w, self.b + other.b)

        def __len__(self):
            return 2

    def f(x):
        layers = [Layer(x[0], 1.0), Layer(2.0, b=x)]
        y = x
        for layer in layers:
            y = layer(y)
        both = layers[0] + layers[1]
        return y, both.b, len(both), both.kind, isinstance(both, Base), Shifted.make(np.sin)(x)

    check(f, X)


@dataclasses.dataclass
class Well:
    k: float
    c: np.ndarray
    name: str = "well"
    tags: list = dataclasses.field(default_factory=list)

    def energy(self, x):
        return self.k * np.sum((x - self.c) ** 2)


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float = 2.0

    @property
    def norm(self):
        return np.sqrt(self.x ** 2 + self.y ** 2)


class Params(NamedTuple):
    w: np.ndarray
    b: float = 0.0

    def apply(self, x):
        return self.w * x + self.b


def test_dataclasses_and_named_tuples():
    def f(well, params, x):
        point = Point(x[0])
        moved = dataclasses.replace(well, k=well.k * 2)
        return well.energy(x), moved, point.norm, params.apply(x), params._replace(b=x[0]), Params(x), point

    check(f, Well(2.0, np.ones(3)), Params(X * 2, 1.0), X)


def test_methods_of_captured_dataclasses():
    well = Well(2.0, np.ones(3))
    found = check(well.energy, X)
    well.k = 3.0
    assert run(found) == 3.0 * np.sum((X - 1.0) ** 2)


def test_nested_arguments_name_their_parameters():
    def f(params, xs):
        return params["w"] * xs[0] + params["b"][1] + xs[1]

    found = check(f, {"w": X, "b": (1.0, 2.0)}, [X, 3.0])
    assert [p.name for p in found.func.params] == ["params_w", "params_b_0", "params_b_1", "xs_0", "xs_1"]


def test_sizes_are_unified_and_pinned():
    def f(x, y, a):
        return x + y, a @ x, np.ones(4) * x[:4]

    found = check(f, np.arange(5.0), np.arange(5.0), np.ones((2, 5)))
    shapes = [p.type.shape for p in found.func.params]
    assert shapes[0] == shapes[1]
    assert shapes[2][1] == shapes[0][0]
    caught = failure(lambda x, y: x + y, np.arange(5.0), np.arange(4.0))
    assert caught.message == "operands could not be broadcast together with shapes (5,) (4,)"


def test_captured_masks_and_conditions_become_static():
    mask = np.array([True, False, True])
    threshold = 1.5

    def f(x):
        return x[mask] if threshold > 1 else x

    found = check(f, X)
    assert {g.kind for g in found.static_guards} == {"array", "equal"}
    mask[1] = True
    assert not all(g.holds() for g in found.static_guards)


def test_outer_containers_are_not_changed():
    history = []

    def f(x):
        history.append(x)
        return x

    def g(x, items):
        items[0] = x
        return x

    assert failure(f, X).code == "E126"
    assert failure(g, X, [1.0]).code == "E126"
    assert history == []


def test_private_names():
    class Secret:
        def __init__(self):
            self.__key = 3.0

        def open(self, x):
            return self.__key * x

    check(Secret().open, X)


class Vector:
    def __init__(self, *parts):
        self.parts = list(parts)

    def __getitem__(self, k):
        return self.parts[k]

    def __len__(self):
        return len(self.parts)

    def __add__(self, other):
        return Vector(*(a + b for a, b in zip(self, other)))

    def __rmul__(self, factor):
        return Vector(*(factor * a for a in self.parts))

    def __eq__(self, other):
        return len(self) == len(other)

    def __bool__(self):
        return len(self) > 1


def test_special_methods_of_outer_objects():
    v = Vector(1.0, 2.0)

    def f(x):
        w = v + 2.0 * v
        return w[0] * x, w[1], len(v), v == w, bool(v), [p * 2 for p in v], v[1] * x

    found = check(f, X)
    v.parts[1] = 5.0
    np.testing.assert_array_equal(run(found)[-1], 5.0 * X)


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = 2.0


def test_enumerations():
    def f(x, mode):
        if mode is Mode.FAST or mode == Mode.FAST:
            return x
        return x * Mode.SLOW.value

    check(f, X, Mode.FAST)
    check(f, X, Mode.SLOW)


def test_lists_in_dicts_stay_the_same_lists():
    def f(x):
        groups = {"a": [], "b": []}
        for key, items in groups.items():
            items.append(x)
            items.append(key)
        for items in [groups["a"], *groups.values()]:
            items.extend([1])
        return groups

    check(f, X)


def test_variables_keep_their_names():
    def f(x):
        shifted = x + 1.0
        scale: float = np.sum(shifted)
        unused_alias = shifted
        total = unused_alias * scale
        return total

    names = [stmt.targets[0].name for stmt in traced(f, X).func.body.stmts]
    assert names == ["shifted", "scale", "total"] or set(names) >= {"shifted", "scale", "total"}


def test_a_derived_length_of_one_broadcasts():
    def f(v):
        return v - 0.5 * v[:-1][1:]

    found = check(f, X)
    assert found.func.params[0].type.shape == (3,)


MATRIX, START = np.array([[0.2, 0.3], [0.1, -0.2]]), np.zeros(2)


def test_a_size_that_a_later_capture_has_too_keeps_a_loop_one():
    """START is read first, and has in the end the size that MATRIX gives its own name."""
    def settled(a):
        x = START
        for _ in range(200):
            before, x = x, MATRIX @ x + a
            if np.max(np.abs(x - before)) < 1e-12:
                break
        return x

    a = np.array([0.3, 0.2])
    found = traced(settled, a)
    np.testing.assert_allclose(run(found), np.linalg.solve(np.eye(2) - MATRIX, a))
    assert len(list(all_statements(found.func.body))) < 60
