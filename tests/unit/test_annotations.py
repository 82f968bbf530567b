"""Specs from annotations of every kind."""

import importlib
import textwrap
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from gradsmith.transpiler.annotations import function_specs, spec_of_annotation
from gradsmith.transpiler.signature import ArraySpec, ScalarSpec, TupleSpec, f64, i64, parse_spec

ndarray2 = np.ndarray[tuple[int, int], np.dtype[np.float32]]


@pytest.mark.parametrize(
    "annotation, text",
    [
        (float, "f64"),
        (int, "i64"),
        (bool, "bool"),
        (complex, "c128"),
        (np.float32, "f32"),
        (np.bool_, "bool"),
        ("f64[n,m]", "f64[n,m]"),
        ("float", "f64"),
        ("float64[:,::1]", "f64[:,::1]"),
        ("{w: f64[n]}", "{w: f64[n]}"),
        (f64, "f64"),
        (f64["n", 3], "f64[n,3]"),
        (ndarray2, "f32[:,::1]"),
        (np.ndarray[tuple[Literal[3], int], np.dtype[np.float64]], "f64[3,:]"),
        (np.ndarray[tuple[()], np.dtype[np.float64]], "f64[]"),
        (tuple[float, ndarray2], "(f64, f32[:,::1])"),
        (Annotated[np.ndarray, "f64[n]"], "f64[n]"),
        (Annotated[float, "metres", 3], "f64"),
    ],
)
def test_annotations_that_settle_the_type(annotation, text):
    assert spec_of_annotation(annotation) == parse_spec(text)


@pytest.mark.parametrize(
    "annotation",
    [
        np.ndarray,
        npt.NDArray[np.float64],
        npt.NDArray[Any],
        npt.ArrayLike,
        np.ndarray[tuple[int], np.dtype[np.floating]],
        np.ndarray[tuple[int], Any],
        np.ndarray[tuple[Any, ...], np.dtype[np.float64]],
        np.floating,
        np.str_,
        str,
        list[float],
        tuple[float, ...],
        tuple[float, str],
        float | None,
        "float | None",
        "Array",
        "np.ndarray",
        None,
        Any,
        3,
    ],
)
def test_annotations_that_do_not(annotation):
    assert spec_of_annotation(annotation) is None


def test_jaxtyping():
    jaxtyping = pytest.importorskip("jaxtyping")
    cases = {
        ("Float64", "n m"): ArraySpec("float64", ("n", "m")),
        ("Float32", "3 _ n=4 n+1"): ArraySpec("float32", (3, None, 4, None)),
        ("Int64", ""): ArraySpec("int64", ()),
        ("Bool", "#n"): ArraySpec("bool", (None,)),
        ("Float", "n"): None,
        ("Float64", "..."): None,
        ("Float64", "*batch n"): None,
    }
    for (kind, dims), spec in cases.items():
        assert spec_of_annotation(getattr(jaxtyping, kind)[np.ndarray, dims]) == spec, (kind, dims)


def test_functions():
    def all_kinds(a: "f64[n]", b, *args: float, c: int = 1, **rest: float): ...  # noqa: F821

    def nothing(a, b: str) -> float: ...

    def bare(a): ...

    class C:
        def method(self, x: float): ...

    assert function_specs(all_kinds) == (ArraySpec("float64", ("n",)), None, i64)
    assert function_specs(nothing) is None
    assert function_specs(bare) is None
    assert function_specs(C().method) == (ScalarSpec("float64"),)
    assert function_specs(C.method) == (None, ScalarSpec("float64"))
    assert function_specs(len) is None


def imported(tmp_path, monkeypatch, name, text):
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return importlib.import_module(name)


def test_annotations_that_python_keeps_as_text(tmp_path, monkeypatch):
    text = """
        from __future__ import annotations
        import numpy as np
        from gradsmith.transpiler import signature as gs
        def f(a: "f64[n,m]", b: gs.f64["n", 3], c: float, d: np.ndarray[tuple[int], np.dtype[np.float64]],
              e: tuple[float, int], g: np.ndarray, h: gs.f64[:, ::1], i: "missing[n]", j: print(1), k: float | None): ...
    """
    assert function_specs(imported(tmp_path, monkeypatch, "gs_future_annotations", text).f) == (
        ArraySpec("float64", ("n", "m")),
        ArraySpec("float64", ("n", 3)),
        f64,
        ArraySpec("float64", (None,)),
        TupleSpec((f64, i64)),
        None,
        ArraySpec("float64", (None, None)),
        None,
        None,
        None,
    )


def test_an_error_stands_under_the_annotation(tmp_path, monkeypatch):
    text = """\
        é = 1
        def f(a, é: "f64[n,,m]" = 1): ...
    """
    made = imported(tmp_path, monkeypatch, "gs_bad_annotation", text)
    with pytest.raises(ValueError) as caught:
        function_specs(made.f)
    assert str(caught.value) == """\
error[E501]: expected a length, a name for one, or `:`
 --> gs_bad_annotation.py:2:20
  |
2 | def f(a, é: "f64[n,,m]" = 1): ...
  |                    ^"""


def test_an_error_without_source_stands_under_the_text():
    names = {}
    exec('def f(a: "f64[n"): ...', names)
    with pytest.raises(ValueError, match=r"never closed\n --> <signature>:1:4"):
        function_specs(names["f"])
