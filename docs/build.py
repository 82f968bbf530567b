"""The documentation as a static site, by Sphinx with MyST and the theme furo.

    make docs                       the site in build/site, with the gallery's figures
    python docs/build.py --pages    write what is generated anew: errors.md, ops.md, the README's example,
                                    and what the programs of other pages print
    python docs/build.py --check    status 1 where one of these is not current, or a link leads nowhere
    python docs/build.py --small    the site, with the gallery's examples at their small sizes

Pages are Markdown and link to each other by file, so that they can be read as files, too.  The site asks for nothing
from other machines.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GALLERY = ROOT / "examples" / "gallery"
EXAMPLES = ("neural_ode", "kalman_filter", "gaussian_process", "hamiltonian_monte_carlo", "heat_equation")

# Pages beside docs/, and where they stand in the site.
BESIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
SECTIONS = {
    "Using gradsmith": ["quickstart", "coming_from", "differences", "python_api", "interoperation", "command_line",
                        "annotate", "stablehlo", "tpu", "gallery/index"],
    "Reference": ["numerics", "ops", "errors", "glossary", "changelog"],
    "Working on it": ["architecture", "conventions", "adding_an_op", "adding_a_pass", "contributing", "design/README"],
}


# ---------------------------------------------------------------------------------------------------------------
# generated pages


def errors_page() -> str:
    """Every error code with its explanation, as `gradsmith explain` prints it."""
    from gradsmith.transpiler.error_codes import ERROR_CODES
    lines = ["# Errors", "", "Written by `python docs/build.py --pages` from `transpiler/error_codes.py`; "
             "`gradsmith explain CODE` prints a page of it.", ""]
    families = {"E1": "Source and syntax", "E2": "Operations and their rules", "E3": "Shapes, types and indices",
                "E4": "Differentiation and batching", "E5": "Signatures and the command line",
                "E6": "Caches and run time"}
    for prefix, title in families.items():
        lines += [f"## {title}", ""]
        for code in sorted(c for c in ERROR_CODES if c.startswith(prefix)):
            entry = ERROR_CODES[code]
            lines += [f"### {code}: {entry.title}", ""]
            if entry.kind is not None:
                lines += [f"Is a `{entry.kind.__name__}` as well.", ""]
            lines += [entry.explanation, ""]
    assert all(code[:2] in families for code in ERROR_CODES)
    return "\n".join(lines)


def ops_page() -> str:
    """The operation table, as `gradsmith ops --markdown` prints it."""
    from gradsmith.cli.ops import page, table
    return page(table())


def readme() -> str:
    """The README with the text of examples/quickstart.py and what it prints."""
    example = ROOT / "examples" / "quickstart.py"
    code = example.read_text().split('"""\n', 1)[1].strip()
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=True)
    block = f"```python\n{code}\n```\n\nprints\n\n```\n{done.stdout.strip()}\n```"
    text, count = re.subn(r"```python\n.*?\n```\n\nprints\n\n```\n.*?\n```", lambda _: block,
                          (ROOT / "README.md").read_text(), count=1, flags=re.DOTALL)
    assert count == 1, "the README has lost its example"
    return text


def stablehlo_page() -> str:
    """The page about StableHLO with its account of what can be written: the operation table, and the programs that
    tests/stablehlo runs on XLA."""
    import gradsmith
    from gradsmith.transpiler import ops
    from gradsmith.transpiler.errors import TranspileError
    from gradsmith.transpiler.ir.registry import OPERATIONS
    ops.load_table()
    lacking = {name: why for name, op in OPERATIONS.items()
               if (why := getattr(op.stablehlo, "unsupported", None)) is not None}
    sys.path.insert(0, str(ROOT / "tests"))
    from stablehlo.suite import KINDS, all_programs
    written: dict[str, int] = dict.fromkeys(KINDS, 0)
    refused, programs = [], all_programs()
    for program in programs:
        for kind, (fun, args) in program.kinds().items():
            try:
                gradsmith.stablehlo(fun, locations=False, max_trips=program.max_trips)(*args)
                written[kind] += 1
            except TranspileError as problem:
                refused.append(f"- {program.name}, {kind}: {problem.problems[0].message}")
    assert sum(written.values()) + len(refused) == len(KINDS) * len(programs)
    lines = [COVERED, "", f"{len(OPERATIONS) - len(lacking)} of {len(OPERATIONS)} operations have a rule"
             + (":" if lacking else "."), *(f"- {name}: {why}" for name, why in sorted(lacking.items())), "",
             "Programs of the suite that are written, and run by XLA with the results of the IR's evaluator:", "",
             "| kind | written | of |", "|---|---|---|",
             *(f"| {kind} | {count} | {len(programs)} |" for kind, count in written.items()), *refused]
    text = (DOCS / "stablehlo.md").read_text()
    return text[:text.index(COVERED)] + "\n".join(lines) + "\n"


COVERED = "## What can be written"


def blocks(text: str) -> list[str]:
    """A page's program: its Python blocks, each of which goes on from those before.  Blocks in ```py are not run."""
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def with_outputs(name: str) -> str:
    """A page on which ```text after a block of Python is what that prints."""
    text = (DOCS / name).read_text()
    mark = "=== end of a block ==="
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / f"{Path(name).stem}.py"
        program.write_text("\n".join(f"{block}\nprint({mark!r})" for block in blocks(text)))
        done = subprocess.run([sys.executable, program.name], cwd=folder, capture_output=True, text=True, check=False,
                              env=os.environ | {"JAX_PLATFORMS": "cpu"})
    if done.returncode:
        raise RuntimeError(f"the program of docs/{name} fails:\n{done.stderr}")
    printed = iter(done.stdout.split(f"{mark}\n"))

    def renewed(match: re.Match[str]) -> str:
        output = next(printed)
        if bool(output) != bool(match[2]):
            raise RuntimeError(f"docs/{name}: {'no' if match[2] else 'a'} ```text belongs after\n{match[1]}")
        return match[1] + (f"\n\n```text\n{output.rstrip()}\n```" if output else "")

    return re.sub(r"(^```python\n.*?^```)(\n\n```text\n.*?^```)?", renewed, text, flags=re.DOTALL | re.MULTILINE)


PROGRAMS = ("quickstart.md", "coming_from.md", "differences.md", "interoperation.md")
GENERATED = {"docs/errors.md": errors_page, "docs/ops.md": ops_page, "README.md": readme,
             "docs/stablehlo.md": stablehlo_page,
             **{f"docs/{name}": functools.partial(with_outputs, name) for name in PROGRAMS}}


def out_of_date() -> list[str]:
    """Generated pages that are not what would be generated."""
    return [name for name, make in GENERATED.items()
            if not (ROOT / name).is_file() or (ROOT / name).read_text() != make()]


# ---------------------------------------------------------------------------------------------------------------
# links


def pages() -> dict[str, Path]:
    """Every page by its path from the root."""
    found = [*(ROOT / name for name in BESIDE), *sorted(DOCS.rglob("*.md"))]
    return {str(path.relative_to(ROOT)): path for path in found}


def dead_links() -> list[str]:
    """Links between pages, and to other files of the repository, that lead nowhere."""
    found = []
    for name, path in pages().items():
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            is_made = target.endswith(".png") and path.parent.name == "gallery"       # a figure, made with the site
            if not is_made and "://" not in target and not target.startswith("#") and not (
                    path.parent / target.partition("#")[0]).exists():
                found.append(f"{name}: {target}")
    return found


# ---------------------------------------------------------------------------------------------------------------
# the site


def draw(folder: Path, small: bool = False) -> None:
    """The gallery's figures, each by its example."""
    for name in EXAMPLES:
        print(f"{name}: ", end="", flush=True)
        subprocess.run([sys.executable, str(GALLERY / f"{name}.py"), "-o", str(folder / f"{name}.png"),
                        *(["--small"] if small else [])], check=True)


def assemble(folder: Path) -> Path:
    """The pages in a tree like the repository's, those beside docs/ among them; the folder for Sphinx."""
    if folder.exists():
        shutil.rmtree(folder)
    source = folder / "docs"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copy(DOCS / "conf.py", source)
    for name in os.listdir(ROOT):
        if name not in ("docs", "build") and not name.startswith("."):
            (folder / name).symlink_to(ROOT / name)
    for name, place in BESIDE.items():
        (source / place).write_text(in_site(ROOT / name) + (contents() if place == "index.md" else ""))
    for path in DOCS.rglob("*.md"):
        (source / path.relative_to(DOCS)).write_text(in_site(path))
    with open(source / "design" / "README.md", "a") as file:
        file.write("\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n")
    return source


def in_site(path: Path) -> str:
    """The text of a page with its links as they are in the site, where the pages beside docs/ are in it."""
    here = DOCS if path.parent == ROOT else path.parent

    def changed(match: re.Match[str]) -> str:
        target, mark, anchor = match[2].partition("#")
        if "://" in target or not target:
            return match[0]
        there = Path(os.path.normpath(path.parent / target))
        beside = BESIDE.get(str(there.relative_to(ROOT)))
        there = DOCS / beside if beside else there
        return f"{match[1]}({os.path.relpath(there, here)}{mark}{anchor})"

    parts = re.split(r"(^```.*?^```)", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else re.sub(r"(\])\(([^)\s]+)\)", changed, part) for part in parts)


def contents() -> str:
    """The site's sections, for its sidebar; pages that no section lists are at the end of the first."""
    listed = {name for names in SECTIONS.values() for name in names}
    rest = sorted({path.stem for path in DOCS.glob("*.md")} - listed)
    lines = []
    for k, (title, names) in enumerate(SECTIONS.items()):
        names = names if k else [*names, *rest]
        lines += ["", "```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```", ""]
    return "\n".join(lines)


def build(out: Path, figures: Callable[[Path], None]) -> int:
    """Write the site; status 1 for any warning of Sphinx's, such as a link that leads nowhere.  figures: makes those
    of the gallery in a folder."""
    from sphinx.cmd.build import build_main
    if out.exists():
        shutil.rmtree(out)
    source = assemble(out.parent / f"{out.name}-pages")
    figures(source / "gallery")
    return build_main(["-q", "-W", "--keep-going", "-b", "html", "-d", str(out.parent / f"{out.name}-doctrees"),
                       str(source), str(out)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", action="store_true", help="write what is generated and stop")
    parser.add_argument("--check", action="store_true", help="check generated pages and links and stop")
    parser.add_argument("--small", action="store_true", help="run the gallery's examples at their small sizes")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    options = parser.parse_args()
    if options.pages:
        for name, make in GENERATED.items():
            (ROOT / name).write_text(make())
        return 0
    problems = [f"{name} is not current: python docs/build.py --pages" for name in out_of_date()]
    problems += [f"link to nowhere in {link}" for link in dead_links()]
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    status = 0
    if not options.check:
        status = build(options.out.resolve(), lambda folder: draw(folder, options.small))
        here = Path.cwd()
        print(f"the site is in {options.out.relative_to(here) if options.out.is_relative_to(here) else options.out}")
    return 1 if problems or status else 0


if __name__ == "__main__":
    sys.exit(main())
