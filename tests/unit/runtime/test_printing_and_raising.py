"""What compiled code prints and raises: as the program does, in value, gradient and batch."""

import numpy as np
import pytest

import gradsmith

X = np.array([0.5, -1.25, 3.0])


class Refused(Exception):
    pass


class Detailed(ValueError):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def progress(x):
    s = 0.0
    for i, v in enumerate(x):
        print("step", i, v)
        s += v * v
    print(f"total {s:.3f}", x, sep="|", end="!\n")
    return s


def printed_by(f, *args, capfd):
    capfd.readouterr()
    f(*args)
    return capfd.readouterr().out


def test_prints_once_in_value_and_gradient(capfd):
    expected = printed_by(progress, X, capfd=capfd)
    assert "step 1 -1.25\n" in expected and expected.endswith("total 10.812|[ 0.5  -1.25  3.  ]!\n")
    assert expected == printed_by(gradsmith.jit(progress), X, capfd=capfd)
    assert expected == printed_by(gradsmith.grad(progress), X, capfd=capfd)


def test_prints_once_for_each_lane(capfd):
    def f(x):
        print("x is", x)
        return x * x

    found = printed_by(gradsmith.vmap(f), X, capfd=capfd)
    assert ["x is -1.25", "x is 0.5", "x is 3.0"] == sorted(found.splitlines())


def test_static_text_is_printed_when_the_function_runs(capfd):
    def f(x):
        print("{}", x.shape, sep=" of ")
        return x

    g = gradsmith.jit(f)
    g(X)
    assert "{} of (3,)\n" == printed_by(g, X, capfd=capfd)


def loop(x):
    for i, v in enumerate(x):
        if v > 2:
            raise Detailed(f"element {i} is {v:.2f}, {{of}} {len(x)}", 7)
    return np.sum(x)


@pytest.mark.parametrize("transform", [gradsmith.jit, gradsmith.grad, gradsmith.value_and_grad])
def test_exceptions_of_the_programs_own(transform):
    g = transform(loop)
    for _ in range(2):                                 # by the slow and the quick way
        with pytest.raises(Detailed) as caught:
            g(X)
        assert "element 2 is 3.00, {of} 3" == str(caught.value)
        assert 7 == caught.value.code
        assert any("test_printing_and_raising.py" in note for note in getattr(caught.value, "__notes__", ["skip"])) or (
            not hasattr(caught.value, "add_note"))
    g(X - 2.0)


def test_exceptions_in_a_batch():
    def f(x, n):
        assert x < 2, f"{x} after {n * 2:04d}"
        if x < -1:
            raise Refused
        return x

    g = gradsmith.vmap(f, in_axes=(0, None))
    with pytest.raises(AssertionError) as caught:
        g(np.array([0.5, 3.0]), 5)
    assert "3.0 after 0010 (in lane 1)" == str(caught.value)
    with pytest.raises(Refused):
        g(X[:2], 5)
    np.testing.assert_array_equal(g(X[:1], 5), X[:1])


def test_several_arguments_of_an_exception():
    def f(x):
        if x > 0:
            raise KeyError("a key", 3)
        return x

    with pytest.raises(KeyError) as caught:
        gradsmith.jit(f)(1.0)
    assert ("a key", 3) == caught.value.args


def held(x):
    """Numbers, text, and an attribute that is no argument."""
    if x.max() > 2:
        raise ValueError("too large", x.max(), x.shape[0], f"{x[0]} {{of}} {x[2]:.1f}", x.dtype)
    if x.min() < -2:
        raise Detailed(f"{x[0]}", x.min())
    return np.sum(x)


@pytest.mark.parametrize("transform", [gradsmith.jit, gradsmith.grad])
def test_run_time_numbers_among_the_arguments_of_an_exception(transform):
    g = transform(held)
    for x in (X, -X, -X):
        with pytest.raises(ValueError) as expected:
            held(x)
        with pytest.raises(ValueError) as actual:
            g(x)
        assert expected.value.args == actual.value.args
        assert [type(a) for a in expected.value.args] == [type(a) for a in actual.value.args]
        assert vars(expected.value).items() >= {k: v for k, v in vars(actual.value).items() if k != "__notes__"}.items()
    g(X / 2)


def test_a_number_as_the_only_argument():
    def f(x):
        if x > 0:
            raise ValueError(x)
        return x

    g = gradsmith.jit(f)
    for x in (2.5, np.float32(2.1)):
        with pytest.raises(ValueError) as caught:
            g(x)
        assert (x,) == caught.value.args
        assert type(x) is type(caught.value.args[0])


def matched(x, y, scale):
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y):03d}", scale, x.sum())
    return np.sum(x * y) * scale


@pytest.mark.parametrize("transform", [gradsmith.jit, gradsmith.grad])
def test_what_is_surely_raised_tells_the_sizes_of_the_call(transform):
    g = transform(matched)
    for x, y in ((np.ones(5), np.ones(3)), (np.ones(2), np.ones(4))):
        with pytest.raises(ValueError) as caught:
            g(x, y, 7)
        args = caught.value.__cause__.args
        assert (f"{len(x)} and {len(y):03d}", 7, "...") == args
        assert f"ValueError: {args}" in str(caught.value)
    g(X, X, 7)
