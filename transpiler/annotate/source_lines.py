"""From a trace, its report and the emitted module to the annotated source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from ..emit.python import Emitted
from ..frontend.source import FunctionSource
from ..ir.library import Program
from ..ir.nodes import Module
from ..ir.walk import all_statements
from ..report import Report
from .facts import Annotation, Facts, GeneratedLine, Kind, Part, Place, Section, SourceLine, place_of
from .lowered import add_lowered_facts
from .sweeps import add_sweep_facts
from .written import WrittenLine, parts_by_name, written_functions


def annotation(*, title: str, signature: str, command: str, traced: Program, report: Report, emitted: Emitted,
               finished: str, sources: Sequence[FunctionSource]) -> Annotation:
    """traced: the func before the pipeline.  finished: the module's text, which is `emitted` with lines added.
    sources: the functions to show."""
    functions = written_functions(emitted, finished, report.made_loops)
    facts = Facts()
    add_sweep_facts(report, facts)
    add_lowered_facts(report, functions, facts)
    by_place: dict[Place, list[WrittenLine]] = {}
    for function in functions:
        for line in function.lines:
            for place in line.places:
                by_place.setdefault(place, []).append(line)
    _elided(traced, by_place, facts)
    names = parts_by_name(functions)
    root = os.path.commonpath([os.path.dirname(os.path.abspath(s.file)) for s in sources]) if sources else ""
    sections = tuple(_section(source, root, facts, by_place, names) for source in _outermost(sources))
    return Annotation(title, signature, command, finished, sections)


def _elided(traced: Program, by_place: Mapping[Place, object], facts: Facts) -> None:
    """Lines whose statements are in the trace and of which nothing is left."""
    for stmt in (s for func in (traced.funcs if isinstance(traced, Module) else (traced,)) for s in all_statements(
            func.body)):
        place = place_of(stmt.loc)
        if place is not None and place not in by_place:
            facts.add(place, Kind.ELIDED, "elided", "no generated line comes from it: the result does not need it, or "
                      "it was known while generating")


def _outermost(sources: Sequence[FunctionSource]) -> list[FunctionSource]:
    """Without functions that stand inside others, which show them."""
    def last(source: FunctionSource) -> int:
        return source.first_line + source.text.rstrip("\n").count("\n")

    return [s for s in sources if not any(o is not s and o.file == s.file and o.first_line <= s.first_line and last(
        s) <= last(o) and (last(o) - o.first_line > last(s) - s.first_line) for o in sources)]


def _section(source: FunctionSource, root: str, facts: Facts, by_place: Mapping[Place, list[WrittenLine]],
             names: Mapping[tuple[str, ...], str]) -> Section:
    lines = []
    for number, text in enumerate(source.text.rstrip("\n").split("\n"), source.first_line):
        place = Place(source.file, number)
        parts = _parts(place, by_place.get(place, ()), names)
        lines.append(SourceLine(number, text.rstrip(), facts.at(place), parts))
    file = os.path.relpath(os.path.abspath(source.file), root) if root else source.file
    return Section(PurePath(file).as_posix(), getattr(source.node, "name", "<lambda>"), tuple(lines))


def _parts(place: Place, lines: Sequence[WrittenLine], names: Mapping[tuple[str, ...], str]) -> tuple[Part, ...]:
    """The generated lines of a place by their parts, each with the loops around it."""
    grouped: dict[str, list[WrittenLine]] = {name: [] for name in dict.fromkeys(names.values())}
    for line in lines:
        grouped[names[line.part_at(place)]].append(line)
    return tuple(Part(name, _with_context(found)) for name, found in grouped.items() if found)


def _with_context(lines: Sequence[WrittenLine]) -> tuple[GeneratedLine, ...]:
    own = {line.number for line in lines}
    every = {line.number: line for found in lines for line in (*found.loops, found)}
    least = min(line.line.depth for line in every.values())
    return tuple(GeneratedLine(number, line.line.depth - least, line.line.text, number not in own)
                 for number, line in sorted(every.items()))


