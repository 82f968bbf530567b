"""The [tool.gradsmith] table of pyproject.toml, and building everything that it lists.

    [tool.gradsmith]
    build = [
        { function = "model.py:loss", transform = "grad", sig = "f64[n], f64[n,m]", output = "loss_grad.py" },
        { function = "package.model:step", transform = "vmap(in_axes=(0, None))", output = "step_vmap.py" },
    ]

    function    FILE.py:FUNC, from the table's folder, or package.module:FUNC          required
    output      the file to write, from the table's folder                             required
    transform   as for `--transform`; "grad" without it
    sig         as for `--sig`; not needed for typed parameters
    static      as for `--static`: "n=3"
    name        of the generated function, instead of FUNC_TRANSFORM
    standalone, parallel    true or false
    target      as for `--target`: "stablehlo"; with `cast`, `checked` and `max-trips` as the options

An output is made again when a file that its function was imported from, its entry, gradsmith or the output itself has
changed since.  What is known of that is kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from gradsmith.transpiler.errors import Location, Problem, SourceText, TranspileError, did_you_mean, error

from .build import chain_of, current, hlo_options, request_of, write
from .console import console, is_terminal, note, report

_TYPES: dict[str, type] = {"function": str, "output": str, "transform": str, "sig": str, "static": str, "name": str,
                           "standalone": bool, "parallel": bool, "target": str, "cast": str, "checked": bool,
                           "max-trips": int}
_REQUIRED = ("function", "output")


@dataclass(frozen=True)
class Project:
    """file: the pyproject.toml.  entries: what it lists, checked."""

    file: Path
    entries: tuple[Mapping[str, Any], ...]

    @property
    def folder(self) -> Path:
        return self.file.parent

    def where(self, entry: Mapping[str, Any]) -> str:
        """The line of an entry: `pyproject.toml:6`."""
        place = _place(self.file, self.file.read_text(encoding="utf-8"), f'"{entry["output"]}"')
        return f"{self.file.name}:{place.line}"


def build_project(start: Path, *, check: bool = False, force: bool = False) -> None:
    """Build what the nearest table lists.  Every problem is reported; typer.Exit(1) if there was one."""
    project = find_project(start)
    state = State(project)
    built = unchanged = failed = 0
    for entry in _progress(project.entries):
        try:
            if not force and state.is_current(entry):
                unchanged += 1
                continue
            text, files = _generated(project, entry)
            path = project.folder / entry["output"]
            same = current(path) == text
            if check and not same:
                note(f"{entry['output']} is out of date")
                failed += 1
                continue
            written = write(path, text, force=force)
            built, unchanged = built + written, unchanged + (not written)
            state.note(entry, text, files)
        except TranspileError as fault:
            failed += 1
            note(f"{project.where(entry)}: {entry['output']} cannot be built")
            for problem in fault.problems:
                report(_told_of_a_table(problem))
    state.save()
    counts = [f"{built} built", f"{unchanged} unchanged"] if not check else [f"{unchanged} up to date"]
    note(", ".join(counts + ([f"{failed} {'out of date or ' if check else ''}failed"] if failed else [])))
    if failed:
        raise typer.Exit(1)


def _told_of_a_table(problem: Problem) -> Problem:
    """The problem with keys of an entry in place of the options of the command line."""
    if problem.help is None:
        return problem
    options = r"--(sig|static|name|transform|cast|target|max-trips) (?=[\"'\d])"
    return replace(problem, help=re.sub(options, r"\1 = ", problem.help))


def _progress(entries: tuple[Mapping[str, Any], ...]) -> Iterator[Mapping[str, Any]]:
    """The entries, with a bar on a terminal."""
    if not is_terminal(sys.stderr):
        yield from entries
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(entries))
        for entry in entries:
            bar.update(task, description=entry["output"])
            yield entry
            bar.advance(task)


def _generated(project: Project, entry: Mapping[str, Any]) -> tuple[str, tuple[Path, ...]]:
    """The entry's text, and the user's files that it came from."""
    from .generate import generate
    from .target import opened
    with opened(entry["function"], base=project.folder) as target:
        chain = chain_of(entry.get("transform", "grad"))
        request = request_of(target, chain, entry.get("sig"), static=entry.get("static"), name=entry.get("name"),
                             standalone=entry.get("standalone", False), parallel=entry.get("parallel", False),
                             hlo=hlo_options(entry.get("target", "python"), checked=entry.get("checked", False),
                                             cast=entry.get("cast"), max_trips=entry.get("max-trips")))
        return generate(request), target.files


# ---------------------------------------------------------------------------------------------------------------
# the table


def find_project(start: Path) -> Project:
    """The nearest pyproject.toml, upwards from `start`, that has the table.  TranspileError (E509)."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        text = file.read_text(encoding="utf-8")
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as fault:
            raise error("E509", f"pyproject.toml cannot be read: {fault}", help=f"the file is {file}") from None
        table = data.get("tool", {}).get("gradsmith")
        if table is not None:
            return Project(file, tuple(_checked(table, file, text)))
    raise error("E509", "there is nothing to build", help=(
        "name a target, FILE.py:FUNC, or list what to build in a [tool.gradsmith] table of pyproject.toml"))


def _checked(table: Any, file: Path, text: str) -> Iterator[Mapping[str, Any]]:
    def fault(message: str, word: str, *, help: str | None = None) -> TranspileError:
        return error("E509", message, _place(file, text, word), help=help)

    for key in table:
        if key != "build":
            raise fault(f"[tool.gradsmith] has no `{key}`", key, help=did_you_mean(key, ["build"]) or "it has `build`")
    entries = table.get("build", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise fault("`build` is a list of tables", "build",
                    help='build = [{ function = "model.py:loss", transform = "grad", output = "loss_grad.py" }]')
    outputs: set[str] = set()
    for entry in entries:
        for key, value in entry.items():
            if key not in _TYPES:
                raise fault(f"an entry of `build` has no `{key}`", key,
                            help=did_you_mean(key, _TYPES) or f"it has {', '.join(_TYPES)}")
            if type(value) is not _TYPES[key]:
                wanted = {str: "a string", bool: "true or false", int: "a number"}[_TYPES[key]]
                raise fault(f"`{key}` is {wanted}, not {value!r}", key)
        missing = [key for key in _REQUIRED if key not in entry]
        if missing:
            known = entry.get("function") or entry.get("output") or "build"
            raise fault(f"an entry of `build` needs `{missing[0]}`", known)
        if entry["output"] in outputs:
            raise fault(f"two entries write {entry['output']}", entry["output"])
        outputs.add(entry["output"])
        yield entry


def _place(file: Path, text: str, word: str) -> Location:
    """The last line below the table's head that has the word."""
    lines = text.split("\n")
    start = next((k for k, line in enumerate(lines) if line.strip().startswith("[tool.gradsmith")), 0)
    found = [k for k, line in enumerate(lines) if k >= start and word in line]
    at = found[0] if found else start
    column = max(lines[at].find(word), 0)
    return Location(str(file), at + 1, column, at + 1, column + len(word), SourceText(text))


# ---------------------------------------------------------------------------------------------------------------
# what changed


class State:
    """What each output was made from, by content.  Losing it costs a rebuild, nothing else."""

    def __init__(self, project: Project) -> None:
        from gradsmith.cache import folder
        self.project = project
        name = hashlib.sha256(str(project.file.resolve()).encode()).hexdigest()[:24]
        self.file = folder() / "builds" / f"{name}.json"
        self.version = _version()
        try:
            self.known: dict[str, Any] = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.known = {}

    def is_current(self, entry: Mapping[str, Any]) -> bool:
        known = self.known.get(entry["output"])
        if not isinstance(known, dict) or known.get("version") != self.version or known.get("entry") != dict(entry):
            return False
        files = {**known.get("files", {}), str(self.project.folder / entry["output"]): known.get("output")}
        return all(_hash_of(Path(path)) == expected for path, expected in files.items())

    def note(self, entry: Mapping[str, Any], text: str, files: tuple[Path, ...]) -> None:
        self.known[entry["output"]] = {
            "version": self.version, "entry": dict(entry), "output": hashlib.sha256(text.encode()).hexdigest(),
            "files": {str(path): _hash_of(path) for path in files}}

    def save(self) -> None:
        outputs = {entry["output"] for entry in self.project.entries}
        text = json.dumps({k: v for k, v in sorted(self.known.items()) if k in outputs}, indent=1)
        try:
            write(self.file, text)
        except TranspileError as fault:
            note(f"warning: what was built is not remembered: {fault.message}")


def _hash_of(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _version() -> str:
    """gradsmith's own files, by size and time, so that a changed gradsmith builds anew."""
    import gradsmith
    import gradsmith.transpiler
    roots = [Path(gradsmith.__file__).parent, Path(gradsmith.transpiler.__file__).parent, Path(__file__).parent]
    files = sorted({file for root in roots for file in root.rglob("*.py")})
    text = "\n".join(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    return hashlib.sha256(f"{gradsmith.__version__}\n{text}".encode()).hexdigest()
