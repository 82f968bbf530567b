"""Python's statements and expressions, traced and compared with running them."""

import functools
import itertools
import math
import operator

import numpy as np
import pytest
from tracing import check, failure, run, traced

X = np.array([1.0, 2.0, 3.0])
A = np.arange(6.0).reshape(2, 3) + 1


def test_sum_logistic():
    def f(x):
        return np.sum(1.0 / (1.0 + np.exp(-x)))

    found = check(f, X)
    assert found.func.name == "f"
    assert len(found.func.body.stmts) == 5


def test_assignments():
    def f(x):
        a, *b = x, x * 2, x * 3
        c = d = b[0]
        (p, q), r = (c, d), 1
        [s, t] = [p + q, r]
        u: float = 2.0
        v = (w := u * 2) + w
        first, *middle, last = range(5)
        return s * t + v, a, b, first, middle, last

    check(f, X)


def test_augmented_forms():
    def f(x):
        n = 1
        n += 2
        n *= 3.5
        items = [1]
        items += [x]
        also = items
        also += (2,)
        d = {"a": 1.0}
        d["a"] += x[0]
        return n, items, d

    check(f, X)


def test_unpacking_an_array_of_unknown_length():
    def f(x):
        a, b, c = x
        head, *tail = x
        return a * b - c, head, tail

    found = check(f, X)
    assert found.func.params[0].type.shape == (3,)


@pytest.mark.parametrize("names, text", [(2, "too many values to unpack (expected 2)"),
                                         (4, "not enough values to unpack (expected 4, got 3)")])
def test_unpacking_into_the_wrong_number(names, text):
    def two(x):
        a, b = x
        return a

    def four(x):
        a, b, c, d = x
        return a

    caught = failure({2: two, 4: four}[names], X)
    assert isinstance(caught, ValueError)
    assert caught.message == text


def test_conditions_on_static_values():
    def f(x, mode, flag=None):
        if mode == "square" and x.ndim == 1:
            y = x * x
        elif mode in ("cube", "third"):
            y = x ** 3
        else:
            y = x
        z = 1.0 if flag is None else 2.0
        if not x.shape == (3,):
            return z
        return y * z if 0 < len(x) <= 3 else None

    for mode in ("square", "cube", "none"):
        check(f, X, mode)
        check(f, X, mode, flag=mode)


def test_sizes_decide_and_are_guarded():
    def f(x):
        return x * 2 if x.shape[0] > 2 else x

    found = check(f, X)
    (guard,) = found.shape_guards
    assert guard.holds({"a0_n0": 3})
    assert not guard.holds({"a0_n0": 2})


def test_loops():
    def f(x):
        total = 0.0
        for i in range(5):
            if i == 1:
                continue
            if i == 4:
                break
            total += x[i % 3] * i
        else:
            total = -1.0
        k = 0
        while k < 3:
            k += 1
            total = total * 2
        else:
            total = total + 1
        for name, value in {"a": 1.0, "b": 2.0}.items():
            total = total + value * len(name)
        return total

    check(f, X)


def test_comprehensions_and_generators():
    def f(x):
        n = 10
        squares = [v * v + n for v in x if True]
        table = {k: 2 * v for k, v in zip("abc", x)}
        nested = [i * j for i in range(3) for j in range(i)]
        grid = [[x[i] * j for j in range(2)] for i in range(2)]
        total = sum(v for v in x)
        lengths = {len(s) for s in ("a", "b", "cc")}
        any_big = any(i > 1 for i in range(3))
        return squares, table, nested, grid, total, sorted(lengths), any_big, max(i for i in range(3))

    check(f, X)


def test_comprehension_variables_stay_inside():
    def f(x):
        i = 7
        y = [i * i for i in range(3)]
        z = [last := j for j in range(3)]
        return i, y, z, last, x

    check(f, X)


def test_calls_of_every_kind():
    def g(a, b=2.0, *rest, c=3.0, **more):
        return a * b + c + sum(rest) + sum(more.values())

    def f(x):
        args, options = (x, 1.0), {"c": 4.0, "d": 5.0}
        return g(x), g(x, 3.0, 4.0), g(*args, **options), g(b=x, a=1.0), g(x, *[1.0, 2.0], e=6.0)

    check(f, X)


def test_positional_only_and_keyword_only():
    def g(a, /, b, *, c=1.0):
        return a + b * c

    def f(x):
        return g(x, b=2.0, c=3.0), g(x, 1.0)

    check(f, X)


@pytest.mark.parametrize("call", [
    lambda g: g(), lambda g: g(1, 2, 3, 4), lambda g: g(1, 2, z=3), lambda g: g(1, a=2), lambda g: g(1, 2, 3),
])
def test_wrong_arguments_have_pythons_words(call):
    def g(a, b, *, c=1):
        return a

    def f(x):
        return call(g)

    with pytest.raises(TypeError) as expected:
        call(g)
    caught = failure(f, X)
    assert isinstance(caught, TypeError)
    assert caught.message == str(expected.value).rpartition("<locals>.")[2]


def test_closures_bind_late():
    def f(x):
        n = 1.0

        def g(y):
            return y * n

        n = 5.0
        fs = [lambda y: y * k for k in range(3)]
        return g(x), [h(x) for h in fs]

    check(f, X)


def test_nonlocal():
    def f(x):
        count = 0

        def tick():
            nonlocal count
            count += 1
            return count

        return tick() + tick() * x, count

    check(f, X)


def test_decorators_inside():
    def f(x):
        def twice(h):
            @functools.wraps(h)
            def inner(*a, **k):
                return 2.0 * h(*a, **k)
            return inner

        @twice
        @twice
        def g(y, scale=1.0):
            return y * scale

        return g(x), g(x, scale=3.0)

    check(f, X)


def test_static_recursion():
    def f(x):
        def power(y, n):
            return y if n == 1 else y * power(y, n - 1)

        def total(tree):
            return sum(total(part) for part in tree) if isinstance(tree, (list, tuple)) else tree

        return power(x, 20), total([x[0], [x[1], (x[2], 1.0)]])

    check(f, X)


def test_recursion_without_end():
    def f(x):
        return f(x) + 1

    caught = failure(f, X)
    assert isinstance(caught, RecursionError)
    assert caught.code == "E125"


def test_loop_without_end():
    def f(x):
        while True:
            x = x + 0 if False else x

    assert failure(f, X).code == "E125"


def test_builtins():
    def f(x):
        return (len(x), sum(x), abs(-x), max(x), min(x), max(x[0], 0.5), min(2.5, x[1], 3.0), round(x[0] * 2.7),
                divmod(7, 2), pow(x, 2), float(x[0]), int(x[1] * 1.9), bool(x[2]), list(reversed([1, x])),
                list(map(lambda a, b: a * b, x, [1, 2, 3])), list(filter(None, [0, 1, 2])),
                list(enumerate(x, 1)), tuple(zip(x, "abc")), sorted([3, 1, 2], reverse=True), next(iter([x])),
                isinstance(x, np.ndarray), isinstance(x[0], float), type(x) is np.ndarray, hasattr(x, "shape"),
                getattr(x, "nope", 4), callable(f), str(3), f"{1.5:.2f}|{'a'!r}", any([0, 1]), all([]))

    check(f, X)


def test_other_standard_functions():
    def f(x):
        scaled = functools.partial(operator.mul, 2.0)
        pairs = list(itertools.product(range(2), [x[0], x[1]]))
        return (functools.reduce(operator.add, [x, x * 2, 1.0]), scaled(x), pairs, list(itertools.chain([1], [2])),
                operator.itemgetter(1)([1, 2]), math.prod([x[0], 2.0]))

    check(f, X)


def test_math_gives_python_floats():
    def f(x):
        return (math.exp(x), math.sqrt(x) + math.pi, math.log(x, 2.0), math.atan2(x, 1.0), math.floor(x), math.hypot(x, 2.0),
                math.isnan(x), math.sqrt(2.0))

    check(f, 1.7)


def test_python_arithmetic_of_run_time_numbers():
    def f(x, n, b):
        return (x / 2, n / 2, n // 2, n % 3, n ** 2, n ** -1, x ** n, -n, +b, b + b, n * x, n == 3, x < n, b & True,
                n & 1, x // 1, x % 0.7, abs(n), 2 ** n, n << 1)

    check(f, 2.5, 7, True)


def test_division_by_zero_is_checked():
    def f(x):
        return 1.0 / x

    found = traced(f, 2.0)
    assert run(found) == 0.5
    assert [s.kind for s in found.func.body.stmts if hasattr(s, "kind")] == ["ZeroDivisionError"]
    caught = failure(lambda x: x / 0, 2.0)
    assert isinstance(caught, ZeroDivisionError)


def test_arguments_needed_while_transpiling():
    def f(x, n, axis):
        items = [x, x * 2, x * 3]
        total = np.sum(items[n], axis=axis)
        for _ in range(n):
            total = total + 1
        return total

    found = check(f, A, 2, 0)
    assert sorted(value for _, value in found.static_args) == [0, 2]


def test_int_argument_as_a_size():
    def f(x, n):
        return np.zeros(n) + x, np.ones((n, 2)), np.arange(n + 1)

    found = check(f, 2.0, 4)
    assert found.static_args == ()


def test_bool_argument_as_a_condition():
    def f(x, flag):
        return x if flag else -x

    found = check(f, 2.0, False)
    assert found.static_args == ()


def test_bool_argument_that_decides_the_structure():
    def f(x, flag):
        if flag:
            return x, 2.0
        return [x]

    for flag in (False, True):
        found = check(f, 2.0, flag)
        assert [value for _, value in found.static_args] == [flag]


def test_try_and_raise():
    def f(x, table):
        try:
            k = table["missing"]
        except (KeyError, IndexError) as problem:
            k = 2.0 if isinstance(problem, KeyError) else 3.0
        else:
            k = 4.0
        finally:
            x = x + 1
        try:
            raise ValueError("no")
        except ValueError:
            k = k + 1
        try:
            x[7]
        except IndexError:
            k = k + 1
        return k * x

    check(f, X, {"a": 1.0})


def test_unsupported_code_is_not_caught_as_an_exception():
    def f(x):
        try:
            return np.partition(x, 1)
        except Exception:
            return x

    assert failure(f, X).code == "E202"


def test_assert_and_raise_are_located():
    def f(x):
        assert x.ndim == 2, "a matrix please"
        return x

    caught = failure(f, X)
    assert isinstance(caught, AssertionError)
    assert "a matrix please" in str(caught)
    assert "assert x.ndim == 2" in str(caught)

    def g(x):
        raise KeyError("k")

    assert isinstance(failure(g, X), KeyError)


def test_with_errstate_and_imports():
    def f(x):
        import math as m

        from numpy import exp
        with np.errstate(all="ignore"):
            y = exp(x) * m.pi
        del x
        return y

    check(f, X)


def test_truth_of_an_array():
    def f(x):
        return 1.0 if x > 0 else 0.0

    caught = failure(f, X)
    assert isinstance(caught, ValueError)
    assert caught.code == "E310"


@pytest.mark.parametrize("body, code", [
    ("global X\n    X = x", "E126"), ("class C: pass\n    return x", "E110"), ("yield x", "E112"),
    ("return missing_name", "E114"), ("y = z\n    z = 1", "E115"), ("return np.nosuch(x)", "E201"),
    ("return np.linalg.lstsq(x, x)", "E202"), ("return x.nope", "E116"), ("return x[0, 0]", "E306"),
    ("return x + np.ones(7)", "E301"), ("return np.random.normal()", "E202"), ("return np.sum(x, axis=3)", None),
    ("with open('f') as g: return x", None), ("for v in 3.0: pass", "E312"), ("return x @ np.ones(4)", None),
    ("return {x: 1}", "E117"), ("np.diagonal(x)[0] = 1.0", None),
    ("match x:\n        case Z(): pass", "E114"),
])
def test_errors_are_located(body, code, tmp_path):
    import importlib.util
    path = tmp_path / "user_code.py"
    path.write_text(f"import numpy as np\nX = 1\n\ndef f(x):\n    {body}\n")
    spec = importlib.util.spec_from_file_location("user_code", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    caught = failure(module.f, X)
    assert "user_code.py:" in str(caught)
    if code is not None:
        assert caught.code == code


def test_unknown_name_offers_the_nearest():
    def f(x):
        return np.linalg.lstsq2(x, x)

    caught = failure(f, A)
    assert isinstance(caught, AttributeError)
    assert "lstsq" in caught.problems[0].help
    assert len(str(caught).splitlines()) < 10


def test_results_keep_their_structure():
    def f(x, s):
        return {"a": [x, (s, 1)], "b": None}, "text", x.shape[0], len(x) * 2, s

    check(f, X, 2.0)


def test_many_terms_on_one_line():
    f = eval("lambda x: " + " + ".join(["x"] * 1500))
    import linecache
    text = "f = lambda x: " + " + ".join(["x"] * 1500) + "\n"
    linecache.cache["<long>"] = (len(text), None, [text], "<long>")
    namespace = {}
    exec(compile(text, "<long>", "exec"), namespace)
    check(namespace["f"], 1.0)
    assert f(1.0) == 1500.0


def test_text_of_run_time_values_stays_in_messages():
    def f(x):
        if x.ndim != 2:
            raise ValueError(f"bad value {x[0]:.2f} of {x.shape[0]}")
        return x

    assert "bad value ... of 3" in failure(f, X).message
    assert failure(lambda x: f"{x[0]}", X).code == "E111"


def test_ranges_between_sizes():
    def f(q):
        q = q.copy()
        n = q.shape[0]
        for j in range(n - 2, n):
            for i in range(2):
                q[i, j] = q[j - 2, n - 1 - i] * q[i, j]
        return np.sum(q), [2 * j for j in range(n - 1, n - 3, -1)]

    check(f, np.arange(16.0).reshape(4, 4))


@pytest.mark.parametrize("made, what", [(lambda x: lambda y: y * x, "a function made inside"),
                                        (lambda x: {"sum": x.sum}, "a function made inside"),
                                        (lambda x: (x, functools.partial(np.add, x)), "a function made inside"),
                                        (lambda x: zip(x, x), "an iterator")])
def test_what_only_the_interpreter_knows_is_not_returned(made, what):
    problem = failure(made, X)
    assert problem.code == "E111"
    assert f"{what} cannot be returned" in problem.message
