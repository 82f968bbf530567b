"""Finding the definition of a function, wherever Python got it from."""

import ast
import functools
import importlib
import linecache
import sys
import textwrap
import zipfile

import gast
import pytest

from gradsmith.transpiler.errors import TranspileError
from gradsmith.transpiler.frontend.source import find_source

SCALE = 2.0


def plain(x):
    """A docstring."""
    y = x * SCALE
    return y


def keep(f):
    return f


@keep
@functools.wraps(plain)
def decorated(x): pass  # fmt: skip


def nested(k):
    def inner(x, *args, n=k, **rest):
        def innermost():
            return x + k

        return innermost() + n

    return inner


class Model:
    __secret = 3

    def method(self, x):
        return self.__secret * x

    def parent(self):
        return super().__repr__() + __class__.__name__

    @staticmethod
    def static(x):
        return [k * x for k in range(3)]

    @property
    def prop(self):
        return lambda y: self.__secret + y


def countdown(n):
    return n and countdown(n - 1)


def with_assert(x):
    assert x > 0, "rewritten by pytest"
    return x


def test_a_function_in_a_file():
    found = find_source(plain)
    assert isinstance(found.node, gast.FunctionDef)
    assert found.text == 'def plain(x):\n    """A docstring."""\n    y = x * SCALE\n    return y\n'
    assert found.file == __file__
    assert found.first_line == plain.__code__.co_firstlineno == found.node.lineno
    assert found.free_variables == ()
    product = found.node.body[1].value
    place = found.location_of(product)
    assert place.source_line[place.column : place.end_column] == "x * SCALE"
    assert place.line == found.first_line + 2


def test_a_decorated_function_starts_at_its_decorator():
    found = find_source(decorated)
    assert found.text.startswith("@keep\n@functools.wraps(plain)\ndef decorated")
    assert len(found.node.decorator_list) == 2
    assert found.first_line == found.node.lineno - 2


def test_nested_functions_and_their_free_variables():
    inner = nested(2)
    found = find_source(inner)
    assert found.node.name == "inner"
    assert found.free_variables == ("k",)


@pytest.mark.parametrize("fn", [Model.method, Model().method, Model.parent, Model.static, Model.prop.fget, Model().prop])
def test_methods(fn):
    assert getattr(find_source(fn).node, "name", "<lambda>") == fn.__name__


def test_recursion_globally_and_locally():
    def local(n):
        return n and local(n - 1)

    assert find_source(local).free_variables == ("local",)
    assert find_source(countdown).free_variables == ()


def test_functions_whose_asserts_pytest_has_rewritten():
    assert find_source(with_assert).node.name == "with_assert"


def test_several_lambdas_on_a_line():
    square, cube, other = (lambda x: x * x), (lambda x: x**3), (lambda y: y * y)
    same = [lambda x: x, lambda x: x, lambda x: (lambda: x)]
    assert find_source(square).text == "lambda x: x * x"
    assert find_source(cube).text == "lambda x: x**3"
    assert find_source(other).text == "lambda y: y * y"
    columns = [find_source(f).node.col_offset for f in same]
    assert columns == sorted(set(columns))
    assert find_source(same[2](1)).text == "lambda: x"


def test_a_lambda_over_several_lines_and_in_a_default():
    f = lambda x, k=(lambda: 3): (
        x + k()
    )
    assert find_source(f).text.startswith("lambda x, k=(lambda: 3): (\n")
    assert find_source(f.__defaults__[0]).text == "lambda: 3"


def test_lambdas_that_differ_only_in_a_constant():
    fs = [lambda: 1, lambda: 1.0, lambda: True, lambda: 0.0, lambda: -0.0, lambda: (1, 2), lambda: (1, 2.0)]  # fmt: skip
    for f, text in zip(fs, ["1", "1.0", "True", "0.0", "-0.0", "(1, 2)", "(1, 2.0)"]):
        assert find_source(f).text == f"lambda: {text}"


def test_columns_count_characters():
    f = lambda é: é + 1; g = lambda ü: "日本" + ü * 2  # noqa: E702
    found = find_source(g)
    assert found.text == 'lambda ü: "日本" + ü * 2'
    place = found.location_of(found.node.body.right)
    assert place.source_line[place.column : place.end_column] == "ü * 2"
    assert find_source(f).text == "lambda é: é + 1"


def test_parts_without_a_position_take_that_of_what_they_hold():
    found = find_source(plain)
    assert found.location_of(found.node.args).line == found.first_line
    assert found.location_of(found.node.body[1].value.op).line == found.first_line


def test_the_same_code_is_found_once():
    assert find_source(plain) is find_source(plain)


def module(tmp_path, monkeypatch, text, name):
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    imported = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    return imported


def test_a_file_edited_after_import_is_an_error(tmp_path, monkeypatch):
    made = module(tmp_path, monkeypatch, "def f(x):\n    return x * 2\n", "gs_stale")
    (tmp_path / "gs_stale.py").write_text("\n\ndef f(x):\n    return x * 3\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError) as caught:
        find_source(made.f)
    assert str(caught.value) == """\
error[E102]: the source of `f` is not what the running function was made from
 --> gs_stale.py:3:1
  |
3 | def f(x):
  | ^^^^^^^^^ edited after it was imported?
  = help: import the module again, or restart Python"""


def test_a_file_that_no_longer_parses_is_an_error(tmp_path, monkeypatch):
    made = module(tmp_path, monkeypatch, "def f(x):\n    return x * 2\n", "gs_broken")
    (tmp_path / "gs_broken.py").write_text("def f(x:\n")
    with pytest.raises(TranspileError, match="E102"):
        find_source(made.f)


def test_a_function_that_only_moved_is_found_where_it_is_now(tmp_path, monkeypatch):
    made = module(tmp_path, monkeypatch, "def f(x):\n    return x * 2\n", "gs_moved")
    (tmp_path / "gs_moved.py").write_text("# new\n# lines\ndef f(x):\n    return x * 2\n")
    assert find_source(made.f).first_line == 3


def test_an_older_text_that_linecache_still_has_serves(tmp_path, monkeypatch):
    made = module(tmp_path, monkeypatch, "def f(x):\n    return x * 2\n", "gs_older")
    linecache.getlines(str(tmp_path / "gs_older.py"))
    (tmp_path / "gs_older.py").write_text("def f(x):\n    return x * 33\n")
    assert "x * 2" in find_source(made.f).text
    again = module(tmp_path, monkeypatch, "def f(x):\n    return x * 33\n", "gs_older")
    assert "x * 33" in find_source(again.f).text


def test_a_deleted_file(tmp_path, monkeypatch):
    made = module(tmp_path, monkeypatch, "def f(x):\n    return x * 2\n", "gs_gone")
    (tmp_path / "gs_gone.py").unlink()
    with pytest.raises(OSError, match="which is not there"):
        find_source(made.f)


def test_a_module_in_a_zip_file(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("gs_zipped.py", "def f(x):\n    return x - 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "a.zip"))
    assert "x - 1" in find_source(importlib.import_module("gs_zipped").f).text


def test_future_annotations_and_conditional_definitions(tmp_path, monkeypatch):
    text = """
        from __future__ import annotations
        FAST = True
        if FAST:
            def f(x: int) -> int:
                def g(y: int): return y
                z: float = 1
                return g(x)
        else:
            def f(x): return x
        def f_twice(x):
            return 1
        f1 = f_twice
        def f_twice(x):
            return 2
    """
    made = module(tmp_path, monkeypatch, text, "gs_futures")
    assert find_source(made.f).node.lineno == 5
    assert "return 1" in find_source(made.f1).text
    assert "return 2" in find_source(made.f_twice).text


def test_a_module_that_mentions_super(tmp_path, monkeypatch):
    text = """
        kept = super
        class C:
            def f(self):
                return super().__repr__()
    """
    assert find_source(module(tmp_path, monkeypatch, text, "gs_super").C.f).node.name == "f"


def executed(text, name="f", file="<string>", **names):
    exec(compile(text, file, "exec"), names)
    return names[name]


def test_exec_with_text_in_linecache():
    text = "def f(x):\n    return x + 41\n"
    linecache.cache["<made 41>"] = (len(text), None, text.splitlines(True), "<made 41>")
    assert "x + 41" in find_source(executed(text, file="<made 41>")).text


def test_exec_without_text_says_how_to_give_it():
    f = executed("\ndef f(x):\n    return x + 42\n")
    with pytest.raises(OSError) as caught:
        find_source(f)
    assert str(caught.value) == """\
error[E101]: the source of `f` cannot be found
 --> <string>:2:1
  |
  | it was made from text that Python did not keep (<string>): exec, eval or -c
  = help: put the function in a file, or give its text: source=..."""


def test_given_source():
    text = "\ndef f(x):\n    return x + 42\n"
    found = find_source(executed(text), source=text)
    assert found.first_line == 2
    assert found.location_of(found.node.body[0]).source_line == "    return x + 42"


@pytest.mark.parametrize(
    "given, first_column",
    [("def f(x):\n    return x + 42\n", 0), ("    def f(x):\n        return x + 42\n", 4), ("\n  def f(x): return x + 42", 2)],
)
def test_given_source_cut_out_of_its_text_keeps_the_lines_of_the_whole(given, first_column):
    f = executed("\n\n\ndef f(x):\n    return x + 42\n")
    if "f(x): return" in given:
        f = executed("\n\n\ndef f(x): return x + 42\n")
    found = find_source(f, source=given)
    assert found.first_line == found.node.lineno == 4
    place = found.location_of(found.node.body[0].value.right)
    assert place.source_line[place.column : place.end_column] == "42"
    assert found.node.col_offset == first_column


def test_given_source_of_a_lambda():
    f = executed("f = lambda x: x + 43")
    assert find_source(f, source="g = 1; f = lambda x: x + 43").text == "lambda x: x + 43"
    assert find_source(f, source="lambda x: x + 43").text == "lambda x: x + 43"


def test_given_source_without_the_imports_above_it():
    text = "import math\ndef f(x):\n    return math.sin(x) + [math.cos(x) for _ in x]\n"
    f = executed(text)
    assert find_source(f, source=text).first_line == 2
    assert find_source(f, source=text.partition("\n")[2]).first_line == 2


def test_wrong_given_source():
    f = executed("def f(x):\n    return x + 42\n")
    with pytest.raises(ValueError, match=r"E103.*does not hold `f`"):
        find_source(f, source="def f(x):\n    return x + 43\n")
    with pytest.raises(ValueError, match=r"E105[^|]*<string>:2:\d+"):
        find_source(f, source="def f(x):\n    return x +\n")


@pytest.mark.parametrize("fn", [len, int, functools.partial(plain, 1), 3])
def test_what_has_no_source(fn):
    with pytest.raises(TypeError, match="E104"):
        find_source(fn)


def test_every_function_of_real_modules_is_found():
    import argparse
    import dataclasses
    import statistics
    import typing

    from numpy.lib import _function_base_impl

    for whole in (argparse, dataclasses, statistics, typing, textwrap, ast, _function_base_impl):
        functions = [fn for fn in vars(whole).values() if type(fn) is type(plain)]
        for owner in vars(whole).values():
            if isinstance(owner, type):
                functions += [fn for fn in vars(owner).values() if type(fn) is type(plain)]
        for fn in functions:
            if fn.__code__.co_filename == whole.__file__:
                found = find_source(fn)
                name = getattr(found.node, "name", "<lambda>")
                assert (fn.__code__.co_name, fn.__code__.co_firstlineno) == (name, found.first_line)
