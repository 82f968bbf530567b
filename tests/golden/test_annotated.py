"""What `gradsmith annotate` says of the functions in annotated/, each with its text beside it.

`pytest tests/golden --update-golden` rewrites the texts.  Read the diff then.
"""

import importlib.util
from pathlib import Path

import pytest
from golden.golden import Golden, all_goldens

from gradsmith.cli.annotate import annotated
from gradsmith.cli.annotate_html import page
from gradsmith.cli.annotate_text import as_text
from gradsmith.cli.generate import Request, generate
from gradsmith.cli.parameters import specs_for
from gradsmith.cli.transform import generated_name, parse_transform

FOLDER = Path(__file__).resolve().parent / "annotated"
CASES = sorted(FOLDER.glob("*.py"))
DOCS = Path(__file__).resolve().parents[2] / "docs" / "annotate.md"


def request_of(path: Path) -> Request:
    spec = importlib.util.spec_from_file_location(f"annotated_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    chain = parse_transform(path.read_text().partition("\n")[0].removeprefix("# annotate: "))
    shown, function = f"{path.name}:{path.stem}", getattr(module, path.stem)
    return Request(function, shown, chain, specs_for(function, None, chain, shown), generated_name(path.stem, chain))


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_annotated(path, update_golden):
    text = as_text(annotated(request_of(path)))
    expected = path.with_suffix(".txt")
    if update_golden:
        expected.write_text(text)
    assert expected.is_file(), "no golden file: run pytest with --update-golden, and review what it wrote"
    assert expected.read_text() == text


def test_the_page_in_the_docs_shows_what_is_printed():
    text = (FOLDER / "growth.txt").read_text()
    assert f"```\n{text}```" in DOCS.read_text()
    assert f"```python\n{(FOLDER / 'growth.py').read_text().partition(chr(10))[2]}```" in DOCS.read_text()


@pytest.mark.parametrize("golden", all_goldens(), ids=lambda golden: golden.file)
def test_a_report_changes_nothing(golden: Golden):
    """What is annotated is the very module that `build` writes; and every line of it is shown or has no place."""
    made = annotated(golden.request)
    assert generate(golden.request) == made.module
    lines = made.module.split("\n")
    shown = {line.number: line.text for s in made.sections for source in s.lines for part in source.parts
             for line in part.lines}
    for number, text in shown.items():
        assert lines[number - 1].strip().startswith(text)
    commented = {k for k, line in enumerate(lines, 1) if f"  # {golden.request.shown.partition(':')[0]}:" in line}
    assert commented <= shown.keys()
    assert page(made).endswith("</html>\n")
