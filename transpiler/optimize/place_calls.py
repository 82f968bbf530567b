"""Put calls of funcs with rules in place, once nothing is to be differentiated any more.

    before                                     after
    func f(x) rule (x) forward g pull h:       y = exp(a)
      y = exp(x)                               return y
      return y
    y = call f(a)
    return y
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.build import Names, building
from ..ir.library import Program, collecting
from ..ir.nodes import Block, Call, Func, Module, Value, Var
from ..ir.types import I64
from ..ir.walk import all_statements, blocks, inline, replacement, substituted, used_names, with_blocks
from ..transforms.rules import named


def place_ruled_calls(program: Program) -> Program:
    """The program without funcs that have rules, and without what only these call."""
    if isinstance(program, Func) or all(func.rule is None for func in program):
        return program
    ruled = {func.name: func for func in program if func.rule is not None}
    main, *others = (_placed(func, ruled) for func in program if func.rule is None)
    with collecting(Module((main, *others))) as library:
        return library.program(main)


def _placed(func: Func, ruled: dict[str, Func]) -> Func:
    while any(isinstance(s, Call) and s.func in ruled for s in all_statements(func.body)):
        with building(Names(used_names(func))):
            replaced: dict[Var, Value] = {}
            body = _visit(func.body, ruled, replaced)
        func = replace(func, body=Block(tuple(substituted(s, replaced) for s in body.stmts),
                                        tuple(replacement(r, replaced) for r in body.results)))
    return func


def _visit(block: Block, ruled: dict[str, Func], replaced: dict[Var, Value]) -> Block:
    with building() as b:
        for stmt in block.stmts:
            if isinstance(stmt, Call) and stmt.func in ruled:
                values = inline(ruled[stmt.func], stmt.args)
                replaced.update((t, v) for t, v in zip(stmt.targets, values, strict=True) if t.type != I64)
                b.stmts += named(stmt, values)
            else:
                b.stmts.append(with_blocks(stmt, [_visit(inner, ruled, replaced) for inner in blocks(stmt)]))
    return Block(tuple(b.stmts), block.results)
