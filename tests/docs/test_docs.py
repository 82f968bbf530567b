"""The documentation is current, its links lead somewhere, and its examples run."""

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_generated_pages_are_current():
    """`python docs/build.py --pages` writes them anew.  In a process of its own: other tests add operations."""
    code = "import sys; sys.path.insert(0, 'docs'); import build; print(build.out_of_date())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_links_lead_somewhere(build):
    assert build.dead_links() == []


class Links(HTMLParser):
    """What a page links to and asks for, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.resources, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and attributes.get("href"):
            self.targets.append(attributes["href"])
        if tag == "link" and attributes.get("href"):
            self.resources.append(attributes["href"])
        if attributes.get("src"):
            self.resources.append(attributes["src"])
        if attributes.get("id"):
            self.anchors.add(attributes["id"])


def test_the_site(build, tmp_path):
    """Sphinx has nothing to complain of, links lead to pages and anchors, and nothing comes from other machines."""
    pytest.importorskip("sphinx")
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def figures(folder):
        for name in build.EXAMPLES:
            pyplot.figure(figsize=(0.5, 0.5)).savefig(folder / f"{name}.png")
            pyplot.close()

    assert build.build(tmp_path / "site", figures) == 0
    made = {path: Links(path.read_text()) for path in (tmp_path / "site").rglob("*.html")}
    names = {str(path.relative_to(tmp_path / "site")) for path in made}
    assert {"index.html", "quickstart.html", "gallery/kalman_filter.html", "design/README.html"} <= names
    for path, links in made.items():
        for target in links.targets:
            if "://" in target or target.startswith("mailto:"):
                continue
            file, _, anchor = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            assert there.exists(), f"{path.name} links to {target}"
            assert not anchor or anchor in made[there].anchors or anchor == "_", f"{path.name} links to {target}"
        for resource in set(links.resources) - {"#"}:
            assert "://" not in resource and not resource.startswith("//"), f"{path.name} asks for {resource}"
            assert (path.parent / resource.partition("?")[0]).resolve().exists(), f"{path.name} asks for {resource}"


def test_the_gallery_is_whole(build):
    examples = {path.stem for path in build.GALLERY.glob("*.py")} - {"figures"}
    assert examples == set(build.EXAMPLES)
    for name in examples:
        page = (build.DOCS / "gallery" / f"{name}.md").read_text()
        assert f"({name}.png)" in page and f"examples/gallery/{name}.py" in page


def test_pages_name_no_machine(build):
    for name, path in build.pages().items():
        assert not re.search(r"/(root|home|tmp|work|Users)/", path.read_text()), name


def test_the_new_operation_of_the_guide(build):
    """Its row works as it stands: the operation and both derivatives."""
    text = (ROOT / "docs" / "adding_an_op.md").read_text()
    row = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1]
    program = row + """
from gradsmith.transpiler.ir.build import build_func
from gradsmith.transpiler.ir.evaluate import evaluate
from gradsmith.transpiler.ir.types import F64
from gradsmith.transpiler.transforms.jvp import jvp
from gradsmith.transpiler.transforms.vjp import vjp
func = build_func("f", [("x", F64)], lambda x: (ops.cosine(x),))
for transform in (jvp, vjp):
    value, slope = evaluate(transform(func, [True]), np.float64(0.5), np.float64(1.0))
    assert value == np.cos(0.5) and abs(slope + np.sin(0.5)) < 1e-15
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_examples_of_the_python_page(tmp_path):
    """One program, in which each goes on from those before."""
    text = (ROOT / "docs" / "python_api.md").read_text()
    program = tmp_path / "examples.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "def total(x):" in done.stdout
    assert "loss: agrees" in done.stdout


def test_the_examples_of_the_page_on_xla(tmp_path):
    pytest.importorskip("jax")
    text = (ROOT / "docs" / "tpu.md").read_text()
    program = tmp_path / "examples.py"
    program.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("xla:0 [") and done.stdout.endswith("\n()\n")


def test_the_python_page_names_everything():
    import gradsmith
    text = (ROOT / "docs" / "python_api.md").read_text()
    for name in set(gradsmith.__all__) - {"tree_util"}:
        assert re.search(rf"\b{name}\b", text), name


def test_stages_named_in_the_documentation_exist():
    from gradsmith.transpiler import pipeline
    text = (ROOT / "docs" / "architecture.md").read_text()
    for name in pipeline.NAMES:
        assert re.search(rf"\b{name}\b", text), name


def test_files_named_in_the_architecture_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    files = {path.name for part in ("runtime", "transpiler", "cli") for path in (ROOT / part).rglob("*.py")}
    named = {name.rsplit("/", 1)[-1] for name in re.findall(r"`([\w/]+\.py)`", text)}
    assert named and named <= files, named - files
