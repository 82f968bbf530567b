"""One func of a module's funcs, where each calls others a number of times that is known.

    func f(x): y = g(x)            func f(x): y = sin(x)
    func g(x): return sin(x)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import RuleError
from ..ir.build import Names, building
from ..ir.library import Program
from ..ir.nodes import Block, Call, Func, Module, Value, Var
from ..ir.walk import all_statements, blocks, inline, replacement, substituted, used_names, with_blocks


def without_calls(module: Program) -> Func:
    """The main func with all that it calls in it.  RuleError (located where the call has a place): a func that calls
    itself, directly or not."""
    if isinstance(module, Func):
        return module
    done: dict[str, Func] = {}

    def flat(func: Func, above: tuple[str, ...]) -> Func:
        if func.name in done:
            return done[func.name]
        if not any(isinstance(s, Call) for s in all_statements(func.body)):
            return func
        with building(Names(used_names(func))):
            body = _inlined(func.body, {}, lambda call: flat(_callee(module, call, above), (*above, call.func)))
        done[func.name] = replace(func, body=body)
        return done[func.name]

    return flat(module.main, (module.main.name,))


def calls_itself(program: Program) -> bool:
    """Whether a func calls itself, directly or not."""
    if isinstance(program, Func):
        return False
    below = {f.name: {s.func for s in all_statements(f.body) if isinstance(s, Call)} for f in program.funcs}
    for _ in program.funcs:
        below = {name: found.union(*(below[callee] for callee in found)) for name, found in below.items()}
    return any(name in found for name, found in below.items())


def _callee(module: Module, call: Call, above: tuple[str, ...]) -> Func:
    if call.func not in above:
        return module[call.func]
    problem = recursion(call)
    raise problem if call.loc is None else problem.at(call.loc)


def recursion(call: Call) -> RuleError:
    return RuleError(f"`{call.func}` calls itself as often as its values say, which StableHLO has no form for",
                     code="E207", kind=NotImplementedError, help=(
                         "let what ends the recursion be known while compiling (static_argnums), so that it is "
                         "unrolled, or write it as a loop"))


def _inlined(block: Block, outer: dict[Var, Value], callee: Callable[[Call], Func]) -> Block:
    replaced = dict(outer)
    with building() as b:
        for stmt in block.stmts:
            stmt = substituted(stmt, replaced)
            if isinstance(stmt, Call):
                replaced.update(zip(stmt.targets, inline(callee(stmt), stmt.args), strict=True))
            else:
                b.stmts.append(with_blocks(stmt, [_inlined(x, replaced, callee) for x in blocks(stmt)]))
    return Block(tuple(b.stmts), tuple(replacement(r, replaced) for r in block.results))
