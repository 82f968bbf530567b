"""The tree of a generated function, and where its variables live.

A variable is *local* if each value that is read was assigned further up in the same block or in a block around the
read: then its name simply stands for that value.  All others have a place in memory, which LLVM turns into registers.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from .values import NotCovered

Path = tuple[int, ...]


def function_tree(text: str, name: str) -> ast.FunctionDef:
    """The definition of the function `name` in a module's text."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            arguments = node.args
            if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or (
                    arguments.defaults):
                raise NotCovered("parameters other than plain ones")
            return node
    raise NotCovered(f"the text has no function {name}")


class Variables:
    """in_memory: the names that need a place.  handed_on: the names of values that a loop computes for its next trip
    while it still reads those of the trip before, as in `b = f(x[i]); y[i] = a + x[i]; a = b`."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._blocks = 0
        self._order = 0
        self._assigned: dict[str, list[tuple[Path, int]]] = defaultdict(list)
        self._read: dict[str, list[tuple[Path, int]]] = defaultdict(list)
        for parameter in function.args.args:
            self._assigned[parameter.arg].append(((), 0))
        self.handed_on: set[str] = set()
        self._visit_block(function.body, ())
        self.in_memory = {name for name in self._assigned if not self._is_local(name)}

    def _is_local(self, name: str) -> bool:
        assigned = self._assigned[name]
        paths = {path for path, _ in assigned}
        if any(a != b and a == b[:len(a)] for a in paths for b in paths):
            return False
        return all(any(path == place[:len(path)] and order < moment for path, order in assigned)
                   for place, moment in self._read[name])

    def _visit_block(self, block: Sequence[ast.stmt], path: Path) -> None:
        for stmt in block:
            self._visit(stmt, path)

    def _new_block(self, block: Sequence[ast.stmt], path: Path, *first: ast.expr) -> None:
        self._blocks += 1
        inner = (*path, self._blocks)
        for target in first:
            self._assign(target, inner)
        self._visit_block(block, inner)

    def _visit(self, stmt: ast.stmt, path: Path) -> None:
        self._order += 1
        match stmt:
            case ast.Assign():
                self._reads(stmt.value, path)
                for target in stmt.targets:
                    self._assign(target, path)
            case ast.AugAssign():
                self._reads(stmt.value, path)
                self._reads(stmt.target, path)
                self._assign(stmt.target, path)
            case ast.For():
                self._reads(stmt.iter, path)
                self._new_block(stmt.body, path, stmt.target)
                self.handed_on.update(s.value.id for s in stmt.body if isinstance(s, ast.Assign)
                                      and isinstance(s.value, ast.Name) and isinstance(s.targets[0], ast.Name))
            case ast.While():
                self._reads(stmt.test, path)
                self._new_block(stmt.body, path)
            case ast.If():
                self._reads(stmt.test, path)
                self._new_block(stmt.body, path)
                self._new_block(stmt.orelse, path)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                raise NotCovered("printing")
            case ast.Expr():
                self._reads(stmt.value, path)
            case ast.Return() | ast.Raise():
                for child in ast.iter_child_nodes(stmt):
                    self._reads(child, path)
            case ast.Break() | ast.Continue() | ast.Pass():
                pass
            case _:
                raise NotCovered(f"the statement {type(stmt).__name__}")

    def _assign(self, target: ast.expr, path: Path) -> None:
        if isinstance(target, ast.Tuple):
            for item in target.elts:
                self._assign(item, path)
        elif isinstance(target, ast.Name):
            self._order += 1
            self._assigned[target.id].append((path, self._order))
        else:
            self._reads(target, path)

    def _reads(self, tree: ast.AST, path: Path) -> None:
        self._order += 1
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self._read[node.id].append((path, self._order))
