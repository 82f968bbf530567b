"""The documentation as a static site.

    make docs                       the pages of docs/ and the README as HTML in build/site
    python docs/build.py --pages    write what is generated anew: errors.md, ops.md, the README's example
    python docs/build.py --check    status 1 where one of these is not current, or a link leads nowhere

Pages are Markdown and link to each other by file; in the site they link to HTML.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
SECTIONS = {
    "": ["README.md"],
    "Using": ["docs/python_api.md", "docs/command_line.md", "docs/annotate.md", "docs/numerics.md", "docs/ops.md",
              "docs/stablehlo.md", "docs/tpu.md", "docs/errors.md"],
    "Working on it": ["docs/architecture.md", "docs/conventions.md", "docs/adding_an_op.md", "docs/adding_a_pass.md",
                      "docs/glossary.md", "CONTRIBUTING.md", "CHANGELOG.md"],
    "Decisions": ["docs/design/README.md"],
}
STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: flex; }
nav { flex: 0 0 15rem; padding: 1.5rem; border-right: 1px solid var(--line);
      min-height: 100vh; box-sizing: border-box; }
nav a { display: block; padding: .1rem 0; text-decoration: none; } nav b { display: block; margin-top: 1rem; }
nav a.here { font-weight: 600; }
main { flex: 1 1 auto; min-width: 0; max-width: 58rem; padding: 1.5rem 2.5rem 4rem; }
pre { padding: .8rem 1rem; overflow-x: auto; background: var(--soft); border-radius: 4px; line-height: 1.35; }
code { font: 13.5px/1.4 ui-monospace, monospace; } p code, li code, td code { background: var(--soft); }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
@media (max-width: 50rem) { body { display: block; } nav { min-height: 0; border: 0; } }
"""


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
                gradsmith.stablehlo(fun, locations=False)(*args)
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
GENERATED = {"docs/errors.md": errors_page, "docs/ops.md": ops_page, "README.md": readme,
             "docs/stablehlo.md": stablehlo_page}


def out_of_date() -> list[str]:
    """Generated pages that are not what would be generated."""
    return [name for name, make in GENERATED.items()
            if not (ROOT / name).is_file() or (ROOT / name).read_text() != make()]


# ---------------------------------------------------------------------------------------------------------------
# links


def pages() -> dict[str, Path]:
    """Every page by its path from the root, those of the sections first."""
    listed = [name for names in SECTIONS.values() for name in names]
    rest = sorted(str(p.relative_to(ROOT)) for p in DOCS.rglob("*.md"))
    return {name: ROOT / name for name in dict.fromkeys([*listed, *rest])}


def place(name: str) -> str:
    """Where a page stands in the site."""
    if name == "README.md":
        return "index.html"
    return name.removeprefix("docs/").removesuffix(".md").replace("README", "index") + ".html"


def dead_links() -> list[str]:
    """Links between pages, and to other files of the repository, that lead nowhere."""
    found = []
    for name, path in pages().items():
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" not in target and not target.startswith("#") and not (
                    path.parent / target.partition("#")[0]).exists():
                found.append(f"{name}: {target}")
    return found


# ---------------------------------------------------------------------------------------------------------------
# the site


def coloured(code: str, language: str, attributes: str) -> str:
    """Highlighted HTML; plain where the language is none that Pygments knows."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return f"<pre><code>{html.escape(code)}</code></pre>\n"
    return f"<pre><code>{highlight(code, lexer, HtmlFormatter(nowrap=True))}</code></pre>\n"


def renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"highlight": coloured}).enable("table")


def anchors(body: str) -> str:
    """Headings with ids, as GitHub makes them."""
    def named(match: re.Match[str]) -> str:
        text = html.unescape(re.sub(r"<.*?>", "", match[2])).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        return f'<h{match[1]} id="{anchor}">{match[2]}</h{match[1]}>'
    return re.sub(r"<h([1-6])>(.*?)</h\1>", named, body)


def links(body: str, name: str) -> str:
    """Links to pages lead to their HTML; to files that are no pages, they are left out."""
    known = pages()

    def changed(match: re.Match[str]) -> str:
        target, _, anchor = match[1].partition("#")
        if "://" in target or not target:
            return match[0]
        there = str((ROOT / name).parent.joinpath(target).resolve().relative_to(ROOT))
        if there not in known:
            return "<a>"
        up = "../" * place(name).count("/")
        return f'<a href="{up}{place(there)}{"#" + anchor if anchor else ""}">'
    return re.sub(r'<a href="([^"]*)">', changed, body)


def title_of(path: Path) -> str:
    first = next((line for line in path.read_text().splitlines() if line.startswith("# ")), f"# {path.stem}")
    return first[2:].replace("`", "")


def navigation(name: str) -> str:
    up = "../" * place(name).count("/")
    lines = []
    for section, names in SECTIONS.items():
        if section == "Decisions":
            names = [*names, *[n for n in pages() if n.startswith("docs/design/") and n not in names]]
        lines += [f"<b>{section}</b>"] if section else []
        for other in names:
            here = ' class="here"' if other == name else ""
            lines.append(f'<a href="{up}{place(other)}"{here}>{html.escape(title_of(ROOT / other))}</a>')
    return "\n".join(lines)


def build(out: Path) -> int:
    """Write the site; the number of its pages."""
    if out.exists():
        shutil.rmtree(out)
    markdown = renderer()
    colours = HtmlFormatter(style="default").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    for name, path in pages().items():
        body = links(anchors(markdown.render(path.read_text())), name)
        target = out / place(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * place(name).count("/")
        target.write_text(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{html.escape(title_of(path))}</title><link rel="stylesheet" href="{up}style.css"></head>\n'
            f"<body><nav>{navigation(name)}</nav>\n<main>{body}</main></body></html>\n")
    (out / "style.css").write_text(f"{colours}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{STYLE}")
    return len(pages())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", action="store_true", help="write what is generated and stop")
    parser.add_argument("--check", action="store_true", help="check generated pages and links and stop")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    options = parser.parse_args()
    if options.pages:
        for name, make in GENERATED.items():
            (ROOT / name).write_text(make())
        return 0
    problems = [f"{name} is not current: python docs/build.py --pages" for name in out_of_date()]
    problems += [f"link to nowhere in {link}" for link in dead_links()]
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    if not options.check:
        count = build(options.out)
        here = Path.cwd()
        print(f"{count} pages in {options.out.relative_to(here) if options.out.is_relative_to(here) else options.out}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
