"""Funcs that calls name, collected while IR is being built: what a `Module` holds beside its main func.

    with collecting() as library:              # transforms look up callees here and add those that they derive
        ...
    module = library.program(func)             # with all that it calls; the func itself where it calls nothing

Names in a library are provisional: `program` names what is reached anew, in the order of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import RuleError
from . import build
from .build import Names
from .nodes import Block, Call, Func, Module, Rule, Stmt
from .walk import all_statements, blocks, with_blocks

if TYPE_CHECKING:
    from ..report import Report

_current: ContextVar[Library | None] = ContextVar("library", default=None)

Program = Func | Module


class Library:
    """report: what transforms of callees tell of what they do, where it is asked for.

    funcs: by name; `wanted` names of them; derived: the name of what a transform made of a func, by what and how."""

    def __init__(self, funcs: Iterable[Func] = (), report: Report | None = None) -> None:
        self.report = report
        self.funcs: dict[str, Func] = {}
        self.wanted: dict[str, str] = {}
        self.derived: dict[tuple[Any, ...], str] = {}
        self.facts: dict[tuple[str, str], Any] = {}          # what analyses found out, by analysis and func
        self._names = Names()
        for func in funcs:
            self._names.taken.add(func.name)
            self.wanted[func.name] = func.name
            self.funcs[func.name] = func

    def reserve(self, wanted: str) -> str:
        """A name for a func that is about to be made, so that it can be called before."""
        name = self._names.fresh(wanted)
        self.wanted[name] = wanted
        return name

    def snapshot(self) -> tuple[Any, ...]:
        return (dict(self.funcs), dict(self.wanted), dict(self.derived), dict(self.facts), set(self._names.taken))

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """As it was: what was made since is not known any more."""
        self.funcs, self.wanted, self.derived, self.facts = map(dict, snapshot[:4])
        self._names = Names(snapshot[4])

    def add(self, func: Func) -> None:
        self.funcs[func.name] = func

    def callee(self, name: str) -> Func:
        """The func of that name.  RuleError where it is being traced still."""
        found = self.funcs.get(name)
        if found is None:
            raise RuleError(f"a derivative or batch of `{self.wanted.get(name, name)}` inside itself is not supported",
                            code="E204", kind=NotImplementedError,
                            help="let what ends the recursion be static (static_argnums), so that it is unrolled")
        return found

    def derive(self, key: tuple[Any, ...], wanted: str, make: Callable[[str], Func]) -> str:
        """The name of what `make(name)` gives, made once for each key; it may be asked for again while it is made."""
        if key not in self.derived:
            name = self.derived[key] = self.reserve(wanted)
            token = build._current.set(None)                 # another func: nothing of the one being built is seen
            try:
                self.add(make(name))
            finally:
                build._current.reset(token)
        return self.derived[key]

    def reached(self, func: Func) -> list[Func]:
        """All funcs that it calls, directly or not, in the order of calls."""
        found: dict[str, Func] = {}
        pending = [func]
        while pending:
            for name in dict.fromkeys(callees(pending.pop())):
                if name not in found:
                    found[name] = self.callee(name)
                    pending.append(found[name])
        return list(found.values())

    def program(self, main: Func) -> Program:
        """The func with all that it calls, which are named anew; the func itself where it calls nothing."""
        reached = self.reached(main)
        if not reached:
            return main
        names = Names([main.name])
        renamed = {func.name: names.fresh(self.wanted[func.name]) for func in reached}
        return Module((_renamed(main, main.name, renamed), *(_renamed(f, renamed[f.name], renamed) for f in reached)))


def library() -> Library:
    """The current one; calls outside of `collecting` are a mistake of ours."""
    found = _current.get()
    if found is None:
        raise RuntimeError("a call was looked up outside of `collecting()`")
    return found


@contextmanager
def collecting(program: Program | None = None, report: Report | None = None) -> Iterator[Library]:
    """A new current library, with what the program's main func calls."""
    made = Library(program.funcs[1:] if isinstance(program, Module) else (), report)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def main_of(program: Program) -> Func:
    return program.main if isinstance(program, Module) else program


def transformed(program: Program, change: Callable[[Func], Func]) -> Program:
    """A transform of the main func, with what it derives of the others."""
    with collecting(program) as made:
        return made.program(change(main_of(program)))


def each_func(program: Any, change: Callable[[Func], Func]) -> Any:
    """A pass on every func; the program itself where it has nothing to do."""
    if isinstance(program, Func):
        return change(program)
    funcs = tuple(map(change, program.funcs))
    return program if all(a is b for a, b in zip(funcs, program.funcs)) else Module(funcs)


def callees(func: Func) -> Iterator[str]:
    """The funcs that it calls, and those that its rule is made of."""
    yield from (stmt.func for stmt in all_statements(func.body) if isinstance(stmt, Call))
    if func.rule is not None:
        yield from func.rule.funcs


def _renamed(func: Func, name: str, names: dict[str, str]) -> Func:
    def visit(block: Block) -> Block:
        return Block(tuple(map(statement, block.stmts)), block.results)

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Call):
            return Call(stmt.targets, names[stmt.func], stmt.args, stmt.loc, stmt.needed)
        return with_blocks(stmt, [visit(b) for b in blocks(stmt)])

    return replace(func, name=name, body=visit(func.body), rule=_renamed_rule(func.rule, names))


def _renamed_rule(rule: Rule | None, names: dict[str, str]) -> Rule | None:
    if rule is None:
        return None
    parts = (None if name is None else names[name]
             for name in (rule.forward, rule.push, rule.pull, rule.ahead, rule.code))
    return Rule(rule.wrt, *parts)
