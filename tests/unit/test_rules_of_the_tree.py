"""Rules of the source tree that no other test would notice: imports go one way, operations are not told by their names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = {"transpiler": "gradsmith.transpiler", "runtime": "gradsmith", "cli": "gradsmith.cli"}
LOWEST = {"ir": {"ir", "errors", "report"}, "ops": {"ops", "ir", "errors", "report"}}     # what these two may import


def sources(part):
    return sorted((ROOT / part).rglob("*.py"))


def imported(path, part):
    """The modules that a file imports anywhere in it, by their full names; names taken from packages included."""
    package = [*PARTS[part].split("."), *path.relative_to(ROOT / part).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def importing(part, is_wrong):
    """What files of a part should not import."""
    return {str(p.relative_to(ROOT)): wrong for p in sources(part)
            if (wrong := [n for n in imported(p, part.split("/")[0]) if is_wrong(n)])}


def test_the_transpiler_imports_nothing_of_the_other_parts():
    assert {} == importing("transpiler", lambda n: (
        n.split(".")[0] == "gradsmith" and not n.startswith("gradsmith.transpiler")))


def test_the_run_time_does_not_import_the_command_line():
    assert {} == importing("runtime", lambda n: n.startswith("gradsmith.cli"))


@pytest.mark.parametrize("layer", sorted(LOWEST))
def test_the_lowest_layers_import_only_what_is_below(layer):
    assert {} == importing(f"transpiler/{layer}", lambda n: (
        n.startswith("gradsmith.transpiler.") and n.split(".")[2] not in LOWEST[layer]))


def told_by_name(text):
    """Comparisons such as `x.op is ops.add`, `x.op in (ops.add, ops.subtract)` and `x.op.name == "add"`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            if any(side.endswith((".op", ".op.name")) for side in sides) and any(
                    "ops." in side or side[0] in "'\"({[" for side in sides):
                yield ast.unparse(node)


@pytest.mark.parametrize("text", ["let.op is ops.add", "x if s.op not in (ops.add, ops.scale) else y",
                                  "let.op.name == 'add'", "let.op.name in {'add', 'scale'}"])
def test_comparisons_with_names_are_seen(text):
    assert 1 == len(list(told_by_name(text)))
    assert [] == list(told_by_name("before.op is let.op and let.op.access == 'load' and let.op.chooses"))


def test_no_operation_is_told_by_its_name_outside_the_table():
    """An entry says what is special about it."""
    outside = [p for p in sources("transpiler") + sources("runtime") if p.parent.name != "ops"]
    assert {} == {str(p.relative_to(ROOT)): told for p in outside if (told := list(told_by_name(p.read_text())))}
