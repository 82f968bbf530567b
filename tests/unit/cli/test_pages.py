"""`gradsmith ops`, `explain`, `doctor` and `cache`: what they print."""

from pathlib import Path

import numpy as np
import pytest
from commands import gradsmith

from gradsmith.cli import doctor
from gradsmith.cli.cache import human_size
from gradsmith.cli.ops import RULES, page, spelling_name, table
from gradsmith.transpiler import ops
from gradsmith.transpiler.error_codes import ERROR_CODES
from gradsmith.transpiler.ir.registry import OPERATIONS


def test_the_table_holds_every_operation_with_every_rule():
    rows = {row.name: row for row in table()}
    assert set(OPERATIONS) == set(rows)
    assert all(set(RULES) == set(row.rules) for row in rows.values())
    assert all(row.family in ops.FAMILIES for row in rows.values())
    assert "elementary" == rows["tanh"].family
    assert {"np.tanh", "math.tanh"} <= set(rows["tanh"].names)
    assert {"np.sum", "ndarray.sum"} <= set(rows["sum"].names)
    assert "zero" == rows["floor"].rules["vjp"]


@pytest.mark.parametrize("key, name", [
    (np.sum, "np.sum"), (np.ndarray.sum, "ndarray.sum"), (np.ndarray.T, "ndarray.T"), (np.exp, "np.exp"),
    ((np.add, "reduce"), "np.add.reduce"), (("scipy.special", "erf"), "scipy.special.erf"), (abs, "abs"),
    (np.linalg.solve, "np.linalg.solve"),
])
def test_names_as_users_write_them(key, name):
    assert name == spelling_name(key)


def test_one_operation():
    text = gradsmith("ops", "np.tanh").stdout
    assert text.startswith("tanh (elementary)\n")
    assert gradsmith("ops", "numpy.tanh").stdout == text
    assert "jvp        yes" in text


def test_a_family_and_the_page():
    text = gradsmith("ops", "--family", "reduction").stdout
    assert all(line.startswith("reduction ") for line in text.splitlines())
    markdown = gradsmith("ops", "--markdown").stdout
    assert page(table()) == markdown
    assert markdown.startswith("# Operations\n")
    assert "`np.einsum`" in markdown


def test_every_code_is_explained():
    listed = gradsmith("explain").stdout
    for code, entry in ERROR_CODES.items():
        assert f"{code}  {entry.title}" in listed
    assert gradsmith("explain", "E204").stdout == gradsmith("explain", "204").stdout == ERROR_CODES["E204"].page


def test_doctor():
    text = gradsmith("doctor").stdout
    for topic in ("python", "gradsmith", "numba", "blas", "numba threads", "cuda", "xla", "cache"):
        assert any(line.startswith(topic) for line in text.splitlines()), topic


def test_doctor_finds_what_is_missing(monkeypatch, own_folder):
    (own_folder / "occupied").write_text("a file")
    monkeypatch.setenv("GRADSMITH_CACHE_DIR", str(own_folder / "occupied"))
    result = gradsmith("doctor", status=1)
    assert "which cannot be written" in result.stdout
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    assert "2 problems" in gradsmith("doctor", status=1).stderr


def test_cache(own_folder):
    assert "files:  0" in gradsmith("cache", "info").stdout
    stored = own_folder / "cache" / "v1" / "ab" / ("ab" * 20) / "module.py"
    stored.parent.mkdir(parents=True)
    stored.write_text("x" * 1500)
    text = gradsmith("cache", "info").stdout
    assert "files:  1" in text
    assert "1.5 kB" in text
    assert "removed 1 file " in gradsmith("cache", "clear").stdout
    assert not stored.exists()


def test_sizes():
    assert ["0 bytes", "999 bytes", "1.0 kB", "2.5 MB", "3000.0 GB"] == [
        human_size(n) for n in (0, 999, 1000, 2_500_000, 3_000_000_000_000)]


def test_version_and_help():
    from gradsmith import __version__
    assert f"gradsmith {__version__}\n" == gradsmith("--version").stdout
    text = gradsmith("--help").stdout
    for command in ("build", "show", "annotate", "check", "ops", "explain", "doctor", "cache"):
        assert command in text
        assert "Usage" in gradsmith(command, "--help").stdout


def test_the_error_page_of_the_command_covers_its_codes():
    pages = (Path(__file__).parents[2] / "errors" / "command_line.md").read_text()
    for code in ("E501", "E502", "E503", "E504", "E505", "E506", "E507", "E508", "E509", "E510", "E511", "E512",
                 "E513"):
        assert f"error[{code}]" in pages
