"""Calls of Functions: which specialisation serves, on the fast path and on the slow one."""

import dataclasses
import functools
import math
import sys
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from numba import typeof

import gradsmith as gs
from gradsmith import compile, function
from gradsmith.arguments import describe
from gradsmith.kernels.guard import Miss

Pair = namedtuple("Pair", "w b")


@dataclasses.dataclass
class Params:
    w: object
    b: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: object
    b: object


@dataclasses.dataclass(frozen=True)
class Named(Frozen):
    name: str = "plain"


def energy(x):
    return np.sum(x * x * x)


def is_fast(made, *args):
    """Whether the fast path serves this call."""
    try:
        made._fast(*args)
    except (Miss, TypeError):
        return False
    return True


# --- arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_any_size(size):
    x = np.arange(size, dtype=float)
    d_x = gs.grad(energy)(x)
    assert (size,) == d_x.shape
    np.testing.assert_allclose(d_x, 3 * x * x)


def test_one_compilation_serves_every_length():
    made = gs.grad(lambda x: np.sum(np.sin(x)))
    for size in (5, 2, 100):
        np.testing.assert_allclose(np.cos(np.ones(size)), made(np.ones(size)))
    assert 1 == len(made._specialisations)
    made(np.ones(1)), made(np.ones(0)), made(np.ones(3))
    assert 3 == len(made._specialisations)


def views():
    base = np.arange(48.0).reshape(6, 8) / 7
    read_only = base.copy()
    read_only.flags.writeable = False
    return {"C": base, "F": np.asfortranarray(base), "strided": base[::2, ::3], "negative": base[::-1, ::-2],
            "read-only": read_only, "0-stride": np.broadcast_to(base[0], (6, 8)), "transposed": base.T,
            "slice": base[:, 2:5], "size 1": base[:1], "empty": base[:0]}


@pytest.mark.parametrize("kind", views())
def test_any_layout(kind):
    x = views()[kind]
    before = x.copy()
    weight = np.arange(x.shape[1], dtype=float)
    d_x = gs.grad(lambda x, w: np.sum(x * x * w))(x, weight)
    np.testing.assert_allclose(d_x, 2 * x * weight)
    np.testing.assert_array_equal(before, x)
    assert d_x.flags.writeable and not np.shares_memory(d_x, x)


def test_layouts_change_from_call_to_call():
    made = gs.grad(lambda x: np.sum(np.exp(x)[0]))
    all_views = views()
    for kind in ("C", "F", "strided", "C", "negative", "read-only", "F"):
        x = all_views[kind]
        expected = np.zeros(x.shape)
        expected[0] = np.exp(x[0])
        np.testing.assert_allclose(made(x), expected)


def test_arrays_of_rank_0_and_scalars():
    made = gs.jit(lambda x: x * 2)
    zero_d = made(np.array(1.5))
    assert (3.0, np.float64) == (zero_d, type(zero_d))
    for x, expected in [(np.float32(1.5), np.float32), (np.float64(1.5), np.float64), (1.5, float), (2, int),
                        (np.int32(2), np.int32), (True, int), (np.float32(1.5), np.float32), (1.5, float)]:
        assert expected is type(made(x)), x
        assert 2 * x == made(x)


def test_unaligned_arrays_and_big_endian():
    raw = np.frombuffer(bytearray(8 * 8 + 1), np.uint8)[1:].view(float)
    raw[:] = np.arange(8.0)
    np.testing.assert_allclose(gs.grad(energy)(raw), 3 * np.arange(8.0) ** 2)
    with pytest.raises(TypeError, match="x has dtype >f8"):
        gs.grad(energy)(np.arange(3.0).astype(">f8"))


def test_array_classes_with_meanings_of_their_own_are_refused():
    with pytest.raises(TypeError, match=r"x is a numpy\..*matrix"):
        gs.jit(energy)(np.matrix([[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(TypeError, match=r"MaskedArray.*[\s\S]*numpy.asarray"):
        gs.jit(energy)(np.ma.array([1.0, 2.0], mask=[True, False]))
    with pytest.raises(TypeError, match="x has dtype object"):
        gs.jit(energy)(np.array([1.0, None]))


def test_types_are_those_that_numba_finds():
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = np.zeros(rng.integers(0, 3, rng.integers(0, 4)), rng.choice(["f8", "f4", "i8", "?", "c16", "u1"]))
        x = np.asarray(x.transpose(rng.permutation(x.ndim)), order=rng.choice(["C", "F", "K"]))
        if x.ndim:
            x = x[tuple(slice(None, None, step) for step in rng.choice([1, 1, -1, 2], x.ndim))]
        x = np.broadcast_to(x, (rng.integers(1, 3), *x.shape)) if rng.random() < 0.2 else x
        described = describe((x,), {})
        assert typeof(x) == compile.numba_type(described.leaves[0], described.values[0])


def test_ints_that_are_too_long():
    made = gs.jit(lambda n: n + 1)
    for _ in range(2):
        with pytest.raises(OverflowError):
            made(2 ** 70)
        assert 3 == made(2)


def test_memory_maps_are_arrays(tmp_path):
    x = np.memmap(tmp_path / "x", dtype=float, mode="w+", shape=(4,))
    x[:] = 2.0
    np.testing.assert_allclose(12 * np.ones(4), gs.grad(energy)(x))


# --- weak and strong numbers -----------------------------------------------------------------------------------------

NUMBERS = [2.0, np.float64(2.0), np.float32(2.0), 2, np.int64(2), np.int32(2), True, np.True_]


@pytest.mark.parametrize("first", range(len(NUMBERS)))
def test_weak_and_strong_are_never_mixed_up(first):
    array = np.ones(3, np.float32)

    def scale(x, s):
        return x * s, s + s

    made = gs.jit(scale)
    for s in [*NUMBERS[first:], *NUMBERS[:first], *NUMBERS]:
        for got, expected in zip(made(array, s), scale(array, s), strict=True):
            assert type(expected) is type(got), s
            assert np.asarray(expected).dtype == np.asarray(got).dtype, s
            np.testing.assert_array_equal(expected, got)


def test_gradients_keep_the_kind_of_their_argument():
    made = gs.grad(lambda a, b: a * b, (0, 1))
    for a, b in [(2.0, 3.0), (np.float64(2.0), 3.0), (2.0, np.float32(3.0)), (np.float64(2.0), np.float64(3.0))]:
        d_a, d_b = made(a, b)
        assert (float(b), float(a)) == (d_a, d_b)
        assert np.asarray(a).dtype == np.asarray(d_a).dtype
        assert np.asarray(b).dtype == np.asarray(d_b).dtype


# --- static values -----------------------------------------------------------------------------------------------------


def test_ints_become_static_where_they_must():
    made = gs.jit(lambda x, n: np.sum(x.reshape(n, -1), axis=0))
    x = np.arange(12.0)
    for n in (2, 3, 2, 4):
        np.testing.assert_allclose(made(x, n), x.reshape(n, -1).sum(axis=0))


def test_static_values_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(function, "MAX_SPECIALISATIONS", 4)
    made = gs.jit(lambda x, n: (x,) * n, static_argnums=1)
    for n in (0, 1, 2, 3, 4, 5, 0, 5):
        assert (1.5,) * n == made(1.5, n)
        assert len(made._specialisations) <= 4


def test_run_time_ints_do_not_compile_anew():
    made = gs.jit(lambda x, n: x * n)
    for n in range(10):
        assert 1.5 * n == made(1.5, n)
    assert 1 == len(made._specialisations)


def test_bool_arguments_decide_branches():
    def choose(x, flip):
        return -x if flip else x

    made = gs.jit(choose)
    assert [2.0, -2.0, 2.0, -2.0] == [made(2.0, flip) for flip in (False, True, False, True)]


def test_static_argnums_and_names():
    def power(x, n, *, mode="plain"):
        return (x ** n, mode)

    for made in (gs.jit(power, static_argnums=1), gs.jit(power, static_argnums=(-2,)),
                 gs.jit(power, static_argnames="n"), gs.jit(power, static_argnames=["n", "mode"])):
        assert (8.0, "plain") == made(2.0, 3) == made(2.0, n=3)
        assert (4.0, "loud") == made(2.0, 2, mode="loud")
    config = functools.partial(gs.jit, static_argnums=(1,))(lambda x, c: x * c.w)
    assert 6.0 == config(2.0, Frozen(3.0, None))
    count = len(config._specialisations)
    assert 6.0 == config(2.0, Frozen(3.0, None))          # equal, but another object
    assert count == len(config._specialisations)


def test_static_arguments_must_be_hashable_and_exist():
    with pytest.raises(ValueError, match=r"n is static, but a list cannot be hashed"):
        gs.jit(lambda x, n: x, static_argnums=1)(1.0, [2])
    with pytest.raises(ValueError, match="argument 5 of a function of 2"):
        gs.jit(lambda x, n: x, static_argnums=5)
    with pytest.raises(ValueError, match="'m', which is none of x, n"):
        gs.jit(lambda x, n: x, static_argnames="m")


# --- ways to call ------------------------------------------------------------------------------------------------------


def test_keywords_and_defaults():
    def f(x, y=2.0, *, z=3.0):
        return x * y + z

    made = gs.jit(f)
    assert [7.0, 8.0, 8.0, 14.0, 9.0] == [made(2.0), made(2.0, 2.5), made(2.0, y=2.5), made(2.0, 2.5, z=9.0),
                                          made(y=3.0, x=2.0)]
    fast = [spec for spec in made._specialisations if not spec.described.kwargs]
    assert 2 == len(fast), "a keyword argument is a positional one where it can be"
    assert 2.5 == gs.grad(f)(x=1.0, y=2.5)


def test_wrong_calls_say_what_python_says():
    made = gs.jit(energy)
    made(np.ones(3))
    with pytest.raises(TypeError, match="energy"):
        made()
    with pytest.raises(TypeError, match="energy"):
        made(np.ones(3), 2.0)
    with pytest.raises(TypeError, match="unknown"):
        made(np.ones(3), unknown=1)


class Model:
    def __init__(self, scale):
        self.scale = scale

    @gs.jit
    def apply(self, x):
        return self.scale * x

    def loss(self, x):
        return np.sum(self.scale * x * x)

    def __call__(self, x):
        return self.scale + x


def test_methods_and_callables():
    two, three = Model(2.0), Model(3.0)
    assert (4.0, 6.0, 4.0) == (two.apply(2.0), three.apply(2.0), two.apply(2.0))
    two.scale = 5.0
    assert 10.0 == two.apply(2.0)
    assert 40.0 == gs.grad(two.loss)(4.0)
    two.scale = 6.0
    assert 48.0 == gs.grad(two.loss)(4.0)
    assert (8.0, 5.0) == (gs.jit(two)(2.0), gs.jit(three)(2.0))


def test_dataclasses_that_can_be_called_are_arguments():
    @dataclasses.dataclass
    class Layer:
        w: object
        by: str

        def __call__(self, x):
            return x * self.w if self.by == "product" else x + self.w

    layer, x = Layer(2.0, "product"), np.array([1.0, 3.0])
    apply, batch = gs.jit(lambda layer, x: layer(x)), gs.vmap(lambda layer, x: layer(x), in_axes=(None, 0))
    for layer.w, layer.by in ((2.0, "product"), (5.0, "product"), (5.0, "sum"), (2.0, "product")):
        want = layer(x).tolist()
        assert want == apply(layer, x).tolist()
        assert want == batch(layer, x).tolist()


def test_equal_callables_are_not_the_same():
    @dataclasses.dataclass(frozen=True)
    class Scale:
        by: object

        def __call__(self, x):
            return self.by * x

    x = np.ones(2, np.float32)
    assert np.float32 == gs.jit(Scale(1.0))(x).dtype
    assert np.float64 == gs.jit(Scale(np.float64(1.0)))(x).dtype


def test_partial():
    def f(a, b, x):
        return a * x + b

    assert 7.0 == gs.jit(functools.partial(f, 2.0, 3.0))(2.0)
    assert 2.0 == gs.grad(functools.partial(f, 2.0, 3.0))(5.0)


def test_a_function_looks_like_its_own():
    made = gs.grad(energy)
    assert "energy" == made.__name__ and __name__ == made.__module__
    assert "<gradsmith.grad of energy>" == repr(made)
    assert made is gs.grad(energy)


# --- trees ------------------------------------------------------------------------------------------------------------


def forward(p, x):
    return np.sum(p["w"] * x) + p["b"]


def test_dicts_in_any_order():
    made = gs.grad(forward)
    x = np.arange(3.0)
    for p in ({"w": np.ones(3), "b": 2.0}, {"b": 2.0, "w": np.ones(3)}, OrderedDict(b=1.0, w=np.ones(3))):
        d_p = made(p, x)
        assert type(p) is type(d_p) and list(p) == list(d_p)
        np.testing.assert_allclose(x, d_p["w"])
        assert 1.0 == d_p["b"]
        assert is_fast(made, p, x) is (type(p) is dict)
    assert is_fast(made, {"w": np.ones(5), "b": 2.0}, np.ones(5)) is False, "the latest call was another kind of dict"
    made({"w": np.ones(5), "b": 2.0}, np.ones(5))
    assert is_fast(made, {"w": np.ones(2), "b": 7.0}, np.ones(2))
    assert not is_fast(made, {"b": 7.0, "w": np.ones(2)}, np.ones(2)), "the order of keys is part of the type"


@pytest.mark.parametrize("cls", [Params, Frozen, Pair])
def test_objects(cls):
    made = gs.grad(lambda p, x: np.sum(p.w * x) * p.b)
    d_p = made(cls(np.ones(3), 2.0), np.arange(3.0))
    assert cls is type(d_p)
    np.testing.assert_allclose(2 * np.arange(3.0), d_p.w)
    assert 3.0 == d_p.b


def test_objects_with_static_parts():
    made = gs.grad(lambda x, p: np.sum(p.w * x) if p.name == "plain" else np.sum(p.b * x))
    for name, expected in [("plain", 1.0), ("other", 2.0), ("plain", 1.0)]:
        np.testing.assert_array_equal(np.full(3, expected), made(np.ones(3), Named(np.ones(3), 2.0, name)))
    with pytest.raises(TypeError, match="which is a str"):
        gs.grad(lambda p: np.sum(p.w))(Named(np.ones(3), 2.0))


def test_static_parts_of_trees():
    def f(options, x):
        kind, shift, rest = options
        y = np.sin(x) if kind == "sin" else np.cos(x)
        return y if shift is None else y + shift

    made = gs.jit(f)
    for _ in range(2):
        assert math.sin(1.0) == pytest.approx(made(("sin", None, []), 1.0))
        assert math.cos(1.0) + 2 == pytest.approx(made(("cos", 2.0, []), 1.0))
        assert math.cos(1.0) == pytest.approx(made(("cos", None, []), 1.0))
        assert math.cos(1.0) + 3 == pytest.approx(made(("cos", 3.0, ()), 1.0))


def test_lists_are_not_tuples():
    made = gs.jit(lambda t: t)
    for tree in ([1.0, 2.0], (1.0, 2.0), [(1.0,), [2.0, {"a": 3.0}]], ((1.0,), [2.0, {"a": 3.0}]), [], (), {}):
        got = made(tree)
        assert tree == got and repr(tree) == repr(got)


def test_results_are_new_containers():
    tree = {"a": [1.0, np.ones(2)]}
    got = gs.jit(lambda t: t)(tree)
    assert got is not tree and got["a"] is not tree["a"]


# --- limits ------------------------------------------------------------------------------------------------------------


def test_the_recursion_limit_is_put_back():
    before = sys.getrecursionlimit()
    gs.jit(lambda x: x + 1)(1.0)
    with pytest.raises(TypeError):
        gs.jit(lambda x: x + 1)("text")
    assert before == sys.getrecursionlimit()


def test_deep_nesting():
    made = lambda x: np.sin(x)
    for _ in range(30):
        made = gs.jit(made)
    assert math.sin(1.0) == pytest.approx(made(1.0))


def test_nothing_that_is_not_callable():
    with pytest.raises(TypeError, match="takes a function, not a float"):
        gs.grad(2.0)


def test_source_lower_and_stages():
    made, x = gs.grad(energy), np.ones(3)
    assert "def energy_grad(x):" in made.source(x)
    assert {"trace", "pipeline", "emit", "compile"} == set(made.stages(x))
    assert ("x",) == tuple(p.name for p in made.lower(x).func.params)


def test_names_of_kernels_are_no_trouble():
    assert math.sin(1.0) == pytest.approx(gs.jit(np.sin)(1.0))

    def exp(x):
        return np.exp(x) + len((1, 2))

    assert math.e + 2 == pytest.approx(gs.jit(exp)(1.0))


def test_zero_as_a_size_is_not_taken_for_unknown():
    def first_is_one(n):
        z = np.zeros(n)
        z[0] = 1
        return z

    made = gs.jit(first_is_one)
    np.testing.assert_array_equal([1.0, 0.0], made(2))
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        made(0)
