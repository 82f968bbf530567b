"""`gradsmith annotate`: what it says of lines, in text and in the page (in a browser: test_annotate_page)."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from commands import gradsmith, write


def annotate(function, *args, name="model.py"):
    return gradsmith("annotate", f"{name}:{function}", *args).stdout


def labels(text):
    """What is said of each line, by its code."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r" *\d+ \| +(.*?)(?:  +(\S.*))?", line)
        if match and match[1]:
            found[match[1]] = match[2].split(", ") if match[2] else []
    return found


def model(text):
    write("model.py", "import numpy as np\n\n\n" + re.sub(r"^        ", "", text.strip("\n"), flags=re.MULTILINE) + "\n")


# --- what is said ------------------------------------------------------------------------------------------------


def test_elementwise_code_is_fused_and_parallel():
    model("""
        def f(x: "f64[n]"):
            e = np.exp(-x)
            s = 1.0 / (1.0 + e)
            return s * s
    """)
    said = labels(annotate("f", "-t", "jit", "--brief"))
    assert ["parallel", "fused"] == said["e = np.exp(-x)"]
    assert ["parallel", "fused"] == said["s = 1.0 / (1.0 + e)"]
    assert ["parallel", "array 8*n B"] == said["return s * s"]


def test_a_loop_carry_that_the_derivative_reads_is_saved_per_trip():
    model("""
        def f(x: "f64", n: "i64"):
            total = 0.0
            for t in range(3, n):
                x = x * (1.0 - x)
                total += 2.0 * x
            return total
    """)
    said = labels(annotate("f", "-t", "grad", "--brief"))
    assert ["saved 8 B/trip", "recomputed"] == said["x = x * (1.0 - x)"]        # `1.0 - x` is
    assert ["saves 8 B/trip"] == said["for t in range(3, n):"]
    assert [] == said["total += 2.0 * x"]
    page = annotate("f", "-t", "grad", "--format", "html")
    assert "x as it is before the trip: 8 B for each trip of the loop at line 6, (8*n - 24) B in all" in page


def test_amounts_add_up():
    model("""
        def f(x: "f64", y: "f64", n: "i64"):
            for t in range(n):
                x, y = x * y, y - x * x
            return x + y
    """)
    said = labels(annotate("f", "-t", "grad(argnums=(0, 1))", "--brief"))
    assert ["saves 16 B/trip"] == said["for t in range(n):"]
    page = annotate("f", "-t", "grad(argnums=(0, 1))", "--format", "html")
    for name in "xy":
        assert f"{name} as it is before the trip: 8 B for each trip of the loop at line 5, 8*n B in all" in page


def test_a_linear_loop_saves_nothing():
    model("""
        def f(x: "f64[n]"):
            x = x.copy()
            for i in range(1, x.shape[0]):
                x[i] += 0.5 * x[i - 1]
            return x
    """)
    assert not any("saved" in label for found in labels(annotate("f", "-t", "vjp", "--brief")).values() for label in found)


def test_what_is_overwritten_is_saved_and_restored_where_earlier_reads_need_it():
    model("""
        def f(u: "f64[n]", steps: "i64"):
            u = u.copy()
            for t in range(steps):
                for i in range(1, u.shape[0]):
                    u[i] = u[i] * u[i - 1]
            return u
    """)
    said = labels(annotate("f", "-t", "vjp", "--brief"))["u[i] = u[i] * u[i - 1]"]
    assert {"saved 8 B/trip", "restored", "read again"} <= set(said)
    page = annotate("f", "-t", "vjp", "--format", "html")
    assert "what u held: 8 B for each trip of the loops at lines 6 and 7, (8*n*steps - 8*steps) B in all" in page


def test_what_is_not_overwritten_later_is_read_again():
    model("""
        def f(A: "f64[n,n]"):
            A = A.copy()
            n = A.shape[0]
            for k in range(n - 1):
                for i in range(k + 1, n):
                    A[i, k] = A[i, k] / A[k, k]
                    for j in range(k + 1, n):
                        A[i, j] = A[i, j] - A[i, k] * A[k, j]
            return A
    """)
    said = labels(annotate("f", "-t", "vjp", "--brief"))
    assert "read again" in said["A[i, j] = A[i, j] - A[i, k] * A[k, j]"]
    assert not any("/trip" in label or label == "restored" for found in said.values() for label in found)


def test_an_inner_loop_that_is_run_again():
    model("""
        def f(x: "f64[n]"):
            s = 0.0
            for i in range(x.shape[0]):
                y = x[i]
                while y > 0.1:
                    y = 0.5 * y * y
                s += y
            return s
    """)
    said = labels(annotate("f", "-t", "grad", "--brief"))
    assert "run again" in said["while y > 0.1:"]
    assert "allocates" not in said["for i in range(x.shape[0]):"]   # the tapes of a run are kept for the next one
    assert "saved 8 B/trip" in said["y = 0.5 * y * y"]
    page = annotate("f", "-t", "grad", "--format", "html")
    assert "as it is run again in the reverse part; the memory is used over" in page


def test_what_the_reverse_part_computes_again():
    model("""
        def f(x: "f64[n]"):
            total = 0.0
            for i in range(x.shape[0]):
                y = 3.0 * x[i]
                total += np.sin(y)
            return total
    """)
    said = labels(annotate("f", "-t", "grad", "--brief"))
    assert "recomputed" in said["y = 3.0 * x[i]"]
    assert not any("saved" in label for found in said.values() for label in found)


def test_library_calls_and_arrays_kept_for_the_reverse_part():
    model("""
        def f(w: "f64[m,k]", x: "f64[n,m]"):
            h = np.tanh(x @ w)
            return np.sum(h @ h.T)

        def g(a: "f64[n,n]", b: "f64[n]"):
            return np.linalg.solve(a, b)
    """)
    said = labels(annotate("f", "-t", "grad", "--brief"))
    assert ["saved 8*k*n B", "BLAS"] == said["h = np.tanh(x @ w)"][:2]
    said = labels(annotate("f", "-t", "jit", "--brief"))
    assert "BLAS" in said["h = np.tanh(x @ w)"]
    assert not any("saved" in label for label in said["h = np.tanh(x @ w)"])
    assert "LAPACK" in labels(annotate("g", "-t", "jit", "--brief"))["return np.linalg.solve(a, b)"]


def test_lines_that_carry_no_derivative():
    model("""
        def f(x: "f64", y: "f64"):
            a = y * y
            b = x * a
            c = np.sin(x)
            return b
    """)
    said = labels(annotate("f", "-t", "grad", "--brief"))
    assert ["inactive"] == said["a = y * y"]
    assert "inactive" not in said["b = x * a"]
    assert ["inactive", "elided"] == said["c = np.sin(x)"]


@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_a_line_is_inactive_for_what_is_differentiated(transform):
    model("""
        def f(x: "f64", y: "f64"):
            a = np.sin(y)
            return x * a
    """)
    assert ["inactive"] == labels(annotate("f", "-t", f"{transform}(argnums=0)", "--brief"))["a = np.sin(y)"]
    assert [] == labels(annotate("f", "-t", f"{transform}(argnums=1)", "--brief"))["a = np.sin(y)"]


def test_what_loops_do_badly():
    model("""
        def f(a: "f64[n,m]", places: "i64[k]"):
            total = 0.0
            for j in range(a.shape[1]):
                column = np.sin(a[:j + 1, j])
                column[0] = 1.0
                total += column[-1]
            for p in range(places.shape[0]):
                total += a[0, places[p]]
            return total
    """)
    said = labels(annotate("f", "-t", "jit", "--brief"))
    assert ["allocates", "strided"] == said["column = np.sin(a[:j + 1, j])"][:2]
    assert ["checks"] == said["total += a[0, places[p]]"]


def test_what_does_not_depend_on_the_batch():
    model("""
        def f(x: "f64[n]", w: "f64[n]"):
            v = np.exp(w)
            return np.sum(v * x)
    """)
    said = labels(annotate("f", "-t", "vmap(in_axes=(0, None))", "--brief"))
    assert "once" in said["v = np.exp(w)"]
    assert "once" not in said["return np.sum(v * x)"]


def test_functions_in_other_files_are_shown_too():
    write("other/inner.py", """
        import numpy as np

        def softplus(z):
            e = np.exp(z)
            return np.log(1.0 + e)
    """)
    write("other/model.py", """
        from inner import softplus

        def f(x: "f64[n]"):
            return softplus(x).sum()
    """)
    text = annotate("f", "-t", "grad", name="other/model.py")
    assert ["model.py: f", "inner.py: softplus"] == re.findall(r"^\S+\.py: \w+$", text, flags=re.MULTILINE)
    assert "fused" in labels(text)["e = np.exp(z)"]


def test_recursion():
    model("""
        def f(n: "i64", x: "f64"):
            if n <= 0:
                return x
            return x * f(n - 1, np.sin(x))
    """)
    text = annotate("f", "-t", "grad(argnums=1)")
    assert "saved 8 B" in labels(text)["return x * f(n - 1, np.sin(x))"]
    assert re.search(r"reverse +\d+  d_\w+ = f_vjp\(", text)


def test_functions_of_gradsmith_count_as_the_lines_that_call_them():
    model("""
        def f(x: "f64", n: "i64"):
            found = []
            for i in range(n):
                found.append(np.sin(x * i))
            return np.sum(np.array(found))
    """)
    text = annotate("f", "-t", "vjp")
    assert ["model.py: f"] == re.findall(r"^\S+\.py: \w+$", text, flags=re.MULTILINE)
    assert {"model.py"} == set(re.findall(r"# (\S+):\d+$", gradsmith("build", "model.py:f", "-t", "vjp").stdout, re.MULTILINE))


def test_a_method_and_a_lambda():
    model("""
        class Model:
            def __init__(self):
                self.scale = 2.0

            def loss(self, x: "f64[n]"):
                inner = lambda y: np.sum(np.sin(y) * self.scale)
                return inner(x)

        model = Model()
    """)
    assert "fused" in labels(annotate("model.loss", "-t", "grad"))["inner = lambda y: np.sum(np.sin(y) * self.scale)"]


# --- generated lines ---------------------------------------------------------------------------------------------

CURVE = """
        def f(x: "f64", n: "i64"):
            for t in range(n):
                x = np.sin(x) * x
            return x
"""


def test_generated_lines_are_those_of_the_module():
    model(CURVE)
    module = gradsmith("build", "model.py:f", "-t", "vjp").stdout.splitlines()
    shown = re.findall(r"^ +\|  .*?(\d+)  +(\S.*)$", annotate("f", "-t", "vjp"), flags=re.MULTILINE)
    assert len(shown) > 8
    for number, text in shown:
        assert text == re.sub(r"  # model\.py:\d+$", "", module[int(number) - 1]).strip()


def test_trips_that_the_reverse_part_counts_itself_are_not_said_to_be_saved():
    model("""
        def f(e: "f64", m: "f64[n]"):
            s = 0.0
            for i in range(m.shape[0]):
                x = m[i]
                while abs(x - e * np.sin(x) - m[i]) > 1e-12:
                    x = x - (x - e * np.sin(x) - m[i]) / (1.0 - e * np.cos(x))
                s += x * x
            return s
    """)
    late = labels(annotate("f", "-t", "grad", "--brief"))
    assert [] == late["for i in range(m.shape[0]):"]
    assert "saved 8 B/trip" not in late["while abs(x - e * np.sin(x) - m[i]) > 1e-12:"]
    assert "saved 24 B/trip" in late["x = x - (x - e * np.sin(x) - m[i]) / (1.0 - e * np.cos(x))"]
    first = labels(annotate("f", "-t", "vjp", "--brief"))       # the value is wanted, so the loop runs first
    assert "saved 8 B/trip" in first["while abs(x - e * np.sin(x) - m[i]) > 1e-12:"]


@pytest.mark.parametrize("transform, parts", [
    ("jit", ["code"]), ("grad", ["forward", "reverse"]), ("jvp", ["primal", "tangent"]),
    ("hvp", ["forward", "tangent of forward", "tangent of reverse"]),
    ("hessian", ["tangent of reverse"])])
def test_parts_are_named(transform, parts):
    model("""
        def f(x: "f64[n]"):
            return np.sum(np.sin(x) * x ** 2)
    """)
    shown = re.findall(r"^ +\| +([a-z][a-z ]*?) +\d+  ", annotate("f", "-t", transform), flags=re.MULTILINE)
    assert set(parts) <= set(shown)


def test_brief_leaves_them_out():
    model(CURVE)
    assert "reverse" in annotate("f", "-t", "vjp").split("slow")[0]
    assert not re.search(r"^ +\|", annotate("f", "-t", "vjp", "--brief"), flags=re.MULTILINE)


@pytest.mark.parametrize("options", [["--parallel"], ["--standalone"], ["--static", "n=3", "--sig", "f64"], ["-t", "jit(grad)"]])
def test_options_are_those_of_build(options):
    model(CURVE)
    page = annotate("f", *options, "--format", "html")
    built = gradsmith("build", "model.py:f", *options).stdout
    assert built.split("\n") == TextOf.lines_of(page, "module")


# --- the page ----------------------------------------------------------------------------------------------------


class TextOf(HTMLParser):
    """Checks that tags fit together, and collects the code of list items with ids that begin with G."""

    EMPTY = {"meta", "link", "br", "hr", "input", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.found, self.inside = [], [], False
        self.ids = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
            if attrs["id"].startswith("G") and tag == "li":
                self.found.append("")
        if tag == "code":
            self.inside = bool(self.found)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag == self.open.pop()
        if tag == "code":
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1] += data

    @classmethod
    def lines_of(cls, page, _):
        parser = cls()
        parser.feed(page)
        parser.close()
        assert [] == parser.open
        assert len(parser.ids) == len(set(parser.ids))
        return [*parser.found, ""]


def test_the_page_is_one_well_formed_file():
    model(CURVE)
    page = annotate("f", "-t", "vjp", "--format", "html")
    assert TextOf.lines_of(page, "module") == gradsmith("build", "model.py:f", "-t", "vjp").stdout.split("\n")
    assert not re.search(r"https?:|src=|url\(|@import|<link", page)


def test_the_same_page_in_another_process_under_another_hash_seed(own_folder):
    model(CURVE)
    env = {**os.environ, "PYTHONHASHSEED": "4321"}
    command = [sys.executable, "-m", "gradsmith.cli", "annotate", "model.py:f", "-t", "vjp", "--format", "html"]
    elsewhere = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert elsewhere == annotate("f", "-t", "vjp", "--format", "html")
    assert str(own_folder) not in elsewhere


def test_the_file_name_tells_the_format(own_folder):
    model(CURVE)
    for name, starts in (("page.html", "<!doctype html>"), ("page.txt", "vjp of f")):
        assert "" == annotate("f", "-t", "vjp", "-o", name)
        assert (own_folder / name).read_text().startswith(starts)
    annotate("f", "-t", "vjp", "-o", "page.html", "--format", "text")
    assert (own_folder / "page.html").read_text() == (own_folder / "page.txt").read_text()


def test_colours_when_they_are_forced(monkeypatch):
    model(CURVE)
    plain = annotate("f", "-t", "vjp")
    assert "\x1b[" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    coloured = annotate("f", "-t", "vjp")
    assert "\x1b[" in coloured
    assert plain.split() == re.sub(r"\x1b\[[\d;]*m", "", coloured).split()


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args, code", [
    (["model.py:g"], "E504"), (["nothing.py:f"], "E505"), (["model.py:f", "-t", "gard"], "E506"),
    (["model.py:f", "--format", "htlm"], "E513"), (["model.py:f", "-o", "model.py/x.html"], "E510"),
    (["model.py:f", "--sig", "f64"], "E503")])
def test_errors(args, code):
    model(CURVE)
    assert f"error[{code}]" in gradsmith("annotate", *args, status=1).stderr


def test_a_function_that_cannot_be_transpiled():
    model("""
        def f(x: "f64[n]"):
            return np.median(x) + undefined
    """)
    fault = gradsmith("annotate", "model.py:f", status=1).stderr
    assert "model.py:5" in fault and "^" in fault
