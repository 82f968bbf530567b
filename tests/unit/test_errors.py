"""The error pages, and the exceptions that carry them."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import gradsmith
from gradsmith.transpiler.error_codes import ERROR_CODES
from gradsmith.transpiler.errors import (
    Location,
    Problem,
    RuleError,
    SourceText,
    TranspileError,
    did_you_mean,
    draw,
    error,
    error_of,
    locate,
    nearest,
)


def place(text, part, file="model.py", first_line=1):
    """Where `part` stands in `text`."""
    lines = text.split("\n")
    row = next(i for i, line in enumerate(lines) if part in line)
    column = lines[row].index(part)
    line = first_line + row
    return Location(file, line, column, line, column + len(part), SourceText(text, first_line))


def test_the_page_is_the_one_in_the_style_guide():
    source = "    m = np.median(residuals)"
    fault = error(
        "E204",
        "np.median has no reverse-mode rule",
        place(source, "np.median(residuals)", first_line=12),
        label="`residuals` depends on `w`, which you asked to differentiate",
        help="use np.mean, or wrap the call in stop_gradient(...)",
    )
    assert str(fault) == """\
error[E204]: np.median has no reverse-mode rule
  --> model.py:12:9
   |
12 |     m = np.median(residuals)
   |         ^^^^^^^^^^^^^^^^^^^^ `residuals` depends on `w`, which you asked to differentiate
   = help: use np.mean, or wrap the call in stop_gradient(...)"""


def test_source_is_read_from_the_file_when_no_text_is_given(tmp_path, monkeypatch):
    file = tmp_path / "model.py"
    file.write_text("a = 1\nb = a + c\n")
    monkeypatch.chdir(tmp_path)
    assert str(error("E114", "no `c`", Location(str(file), 2, 8, 2, 9))) == """\
error[E114]: no `c`
 --> model.py:2:9
  |
2 | b = a + c
  |         ^"""


def test_a_missing_file_still_gives_place_and_label():
    fault = error("E114", "no `c`", Location("/nowhere/m.py", 3, 0, 3, 1), label="read here")
    assert str(fault) == "error[E114]: no `c`\n --> /nowhere/m.py:3:1\n  |\n  | read here"


def test_no_place_at_all():
    assert str(error("E605", "jax is not installed", help="a\nb")) == (
        "error[E605]: jax is not installed\n  = help: a\n          b"
    )


def test_tabs_wide_letters_and_accents_keep_the_carets_in_place():
    tabbed = str(error("E110", "m", place("\tx = y", "y")))
    assert tabbed.splitlines()[-1] == "  | \t    ^"
    wide = str(error("E110", "m", place("名 = y", "y")))
    assert wide.splitlines()[-1] == "  |      ^"
    assert str(error("E110", "m", place("名前 = y", "名前"))).splitlines()[-1] == "  | ^^^^"
    combined = str(error("E110", "m", place("e\u0301 = y", "y")))
    assert combined.splitlines()[-1] == "  |     ^"


@pytest.mark.parametrize("column, end", [(3, 3), (99, 99), (2, 1), (5, 900)])
def test_odd_spans_still_draw_a_caret(column, end):
    text = str(error("E110", "m", Location("f.py", 1, column, 1, end, SourceText("a = bc"))))
    assert "^" in text.splitlines()[-1]


def test_a_span_of_several_lines_shows_its_first():
    source = SourceText("x = f(a,\n      b)")
    assert str(error("E110", "m", Location("f.py", 1, 4, 2, 8, source), label="all of it")).splitlines()[2:] == [
        "  |",
        "1 | x = f(a,",
        "  |     ^^^^ all of it",
        "  ...",
    ]


def test_a_second_place_is_drawn_below_the_first():
    text = "a = x\n\n\n\n\n\n\n\n\na[0] = 1"
    fault = error("E123", "m", place(text, "a[0]"), label="written", also=[(place(text, "x"), "made here")])
    assert str(fault) == """\
error[E123]: m
  --> model.py:10:1
   |
10 | a[0] = 1
   | ^^^^ written
  ::: model.py:1:5
   |
 1 | a = x
   |     ^ made here"""


def test_all_problems_are_shown():
    fault = error_of([Problem("E114", "first"), Problem("E301", "second")])
    assert str(fault) == "error[E114]: first\n\nerror[E301]: second"
    assert type(fault) is TranspileError
    assert isinstance(error_of([Problem("E301", "a"), Problem("E302", "b")]), ValueError)


def test_colour_goes_through_paint_and_changes_nothing_else():
    problem = Problem("E110", "m", place("x = y", "y"), "l", "h")
    tagged = draw(problem, severity="warning", paint=lambda style, text: f"<{style}>{text}</{style}>")
    assert re.sub(r"</?[a-z]+>", "", tagged) == str(problem).replace("error[", "warning[")
    assert "<caret>^</caret>" in tagged


@pytest.mark.parametrize(
    "code, kind",
    [
        ("E301", ValueError),
        ("E305", IndexError),
        ("E303", np.exceptions.AxisError),
        ("E303", IndexError),
        ("E201", AttributeError),
        ("E401", TypeError),
        ("E101", OSError),
        ("E114", NameError),
        ("E115", UnboundLocalError),
    ],
)
def test_what_is_raised_is_also_what_numpy_would_raise(code, kind):
    with pytest.raises(kind) as caught:
        raise error(code, "wrong")
    assert isinstance(caught.value, TranspileError)
    assert code == caught.value.code
    assert str(caught.value) == f"error[{code}]: wrong"


@pytest.mark.parametrize("code", sorted(ERROR_CODES))
def test_every_code_can_be_raised_pickled_and_explained(code):
    fault = error(code, "wrong", Location("f.py", 1, 0, 1, 1), help="so")
    again = pickle.loads(pickle.dumps(fault))
    assert type(again) is type(fault)
    assert str(again) == str(fault)
    assert again.problems == fault.problems
    assert len(ERROR_CODES[code].explanation) > 40
    assert ERROR_CODES[code].page.startswith(f"# {code}: ")


def test_a_kind_can_be_chosen():
    assert isinstance(error("E120", "m", kind=ZeroDivisionError), ZeroDivisionError)
    assert isinstance(error("E120", "m", kind=KeyError), KeyError)
    assert str(error("E120", "m", kind=KeyError)) == "error[E120]: m"


def test_an_error_needs_a_problem():
    with pytest.raises(ValueError, match="needs a problem"):
        TranspileError([])


def test_a_rule_says_what_and_its_caller_says_where():
    here = place("x = y", "y")
    with pytest.raises(ValueError) as caught, locate(here):
        raise RuleError("no fit", help="make it fit")
    assert caught.value.problems == (Problem("E302", "no fit", here, "", "make it fit"),)
    assert isinstance(RuleError("no", code="E305").at(None), IndexError)


def test_nearest_names():
    names = ["mean", "median", "nanmedian", "sum"]
    assert nearest("medain", names)[0] == "median"
    assert nearest("MEAN", names)[0] == "mean"
    assert nearest("qqqq", names) == []
    assert did_you_mean("smu", ["sum"]) == "did you mean `sum`?"
    assert did_you_mean("medan", ["mean", "median"]) == "did you mean `median` or `mean`?"
    assert did_you_mean("qqqq", names) is None


def test_every_code_in_the_source_has_a_page():
    roots = {Path(gradsmith.__file__).parent}
    roots |= {Path(__import__(f"gradsmith.{part}", fromlist=["x"]).__file__).parent for part in ("transpiler", "cli")}
    used = {
        code
        for root in roots
        for file in root.rglob("*.py")
        for code in re.findall(r'"(E[1-6]\d\d)"', file.read_text(encoding="utf-8"))
    }
    assert used <= set(ERROR_CODES)
