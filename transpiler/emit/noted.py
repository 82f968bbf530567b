"""Parallel loops whose trips may raise: no exception gets out of a parallel loop, so that there was one is noted.

    for lane in range(n):                       def f_trip(lane, x, out):
        if x[lane] < 0.0:                           if x[lane] < 0.0:
            raise ValueError("...", lane)               return False
        out[lane] = x[lane]                         out[lane] = x[lane]
                                                    return True

                                                for lane in prange(n):
                                                    if not f_trip(lane, x, out):
                                                        failed[0] = True
                                                if failed[0]:
                                                    return np.empty(0)

Then the caller, whose `failed` it is, calls the serial function, which raises what the first trip raises.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence

import numpy as np

from ..ir.nodes import Call, Check, Let, Stmt
from ..ir.types import Type
from . import templates as t

FAILED = "failed"               # the parameter: an array of one truth value
INDENT = "    "
DECORATOR = '@njit(cache=True, nogil=True, error_model="numpy")'
GLOBALS = frozenset(dir(builtins)) | {"np", "math", "empty", "zeros"}


def may_raise(stmts: Iterable[Stmt]) -> bool:
    """Whether an exception may leave one of the statements; nested ones are among them."""
    return any((isinstance(s, Check) and not s.prints) or _raises_inside(s) for s in stmts)


def _raises_inside(stmt: Stmt) -> bool:
    return isinstance(stmt, Call) or (isinstance(stmt, Let) and stmt.op.raises is not None)


def trip_functions(name: str, index: str, lines: Sequence[str], known: Iterable[str],
                   stmts: Iterable[Stmt]) -> tuple[list[str], str]:
    """Texts of functions for one trip, and the call that says whether it came to its end.

    index: the name of the loop's index; lines: the body, with `return False` for what it raises itself; known: names of
    the module; stmts: the body's statements, nested ones, too.
    """
    body = "\n".join([*lines, f"{INDENT}return True"])
    given = [index, *_read_from_outside(f"def {name}():\n{body}", {index, *known})]
    params = ", ".join(given)
    texts = [f"{DECORATOR}\ndef {name}({params}):\n{body}"]
    call = f"{name}({params})"
    if any(map(_raises_inside, stmts)):
        ended = f"{name}_ended"
        texts.append(f"{DECORATOR}\ndef {ended}({params}):\n{INDENT}try:\n{INDENT * 2}return {call}\n"
                     f"{INDENT}except Exception:\n{INDENT * 2}return False")
        call = f"{ended}({params})"
    return texts, call


def _read_from_outside(text: str, known: set[str]) -> list[str]:
    """The names that a function's text reads and never binds, in the order of the text."""
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return list(dict.fromkeys(node.id for node in names if node.id not in bound | known | GLOBALS))


def of_no_use(type: Type) -> ast.expr:
    """Something of the type of a result that nobody will read."""
    if not type.shape:
        return t.constant(np.zeros((), type.dtype).item(), type.dtype)
    sizes = ", ".join("0" for _ in type.shape)
    kind = "" if type.dtype == "float64" else f", {ast.unparse(t.dtype_name(type.dtype))}"
    return ast.parse(f"np.empty(({sizes},){kind})", mode="eval").body
